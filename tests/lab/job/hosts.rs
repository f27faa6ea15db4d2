//! The lab itself: up and down, and the root console of its hosts.

use std::cell::Cell;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// The hosts that have processes of their own.
pub const HOSTS: [&str; 3] = ["jump", "spark1", "spark2"];

/// The hosts with a Docker engine.
pub const NODES: [&str; 2] = ["spark1", "spark2"];

/// Longest start of the lab: the first one installs packages and builds the image.
const UP_LIMIT: Duration = Duration::from_secs(20 * 60);

/// Longest command on a host.
const COMMAND_LIMIT: Duration = Duration::from_secs(60);

/// Pause between two looks of [`wait_for`].
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// A running lab; it goes when this is dropped.
pub struct Lab {
    started: Instant,
    said: Cell<Instant>,
    /// The operator's home and the console's state, away from those of whoever runs the test.
    pub home: tempfile::TempDir,
    /// Held while the lab is up: two runs would take each other's hosts.
    _turn: File,
}

impl Lab {
    /// Starts it.
    pub fn up() -> Self {
        std::fs::create_dir_all(directory()).unwrap();
        let turn = File::create(directory().join("test.lock")).unwrap();
        wait_for(UP_LIMIT, "another run of this test ends", || {
            turn.try_lock().map_err(|e| e.to_string())
        });
        let now = Instant::now();
        let lab = Self {
            started: now,
            said: Cell::new(now),
            home: tempfile::tempdir().unwrap(),
            _turn: turn,
        };
        let out = bounded(&mut script(&["up"]), UP_LIMIT);
        assert!(out.status.success(), "lab.sh up: {}", text(&out));
        print!("{}", String::from_utf8_lossy(&out.stdout));
        lab
    }

    /// Prints where the test is, and since when.
    pub fn say(&self, what: &str) {
        let now = Instant::now();
        let (all, last) = (now - self.started, now - self.said.replace(now));
        println!("[{:>5.1}s, +{:>5.1}s] {what}", all.as_secs_f64(), last.as_secs_f64());
    }

    /// What a shell on a host prints, when it succeeds.
    pub fn try_on(&self, host: &str, command: &str) -> Result<String, String> {
        let out = bounded(&mut script(&["nx", host, "sh", "-c", command]), COMMAND_LIMIT);
        match out.status.success() {
            true => Ok(String::from_utf8_lossy(&out.stdout).into_owned()),
            false => Err(text(&out)),
        }
    }

    /// What a shell on a host prints; it must succeed.
    pub fn on(&self, host: &str, command: &str) -> String {
        self.try_on(host, command)
            .unwrap_or_else(|e| panic!("{host}: {command}: {e}"))
    }
}

impl Lab {
    /// Prints what a failure leaves to look at.
    fn show(&self) {
        let log = self.home.path().join("state/bringup/bringup.log");
        let log = std::fs::read_to_string(log).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        println!(
            "--- the console's log\n{}",
            lines[lines.len().saturating_sub(40)..].join("\n")
        );
        for host in NODES {
            for command in [
                "ps -eo pid,ppid,user,args --forest | cut -c1-200",
                "docker ps -a",
                "docker logs --tail 20 vllm-qwen35 2>&1",
            ] {
                let seen = self.try_on(host, command).unwrap_or_else(|e| e);
                println!("--- {host}: {command}\n{seen}");
            }
        }
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.show();
        }
        let out = bounded(&mut script(&["down"]), COMMAND_LIMIT);
        println!("{}", text(&out));
    }
}

/// Looks again and again until there is something; fails with what was seen last when the time is over.
pub fn wait_for<T>(limit: Duration, what: &str, mut look: impl FnMut() -> Result<T, String>) -> T {
    let end = Instant::now() + limit;
    loop {
        match look() {
            Ok(found) => return found,
            Err(seen) => assert!(Instant::now() < end, "{what}: not within {limit:?}; seen: {seen}"),
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// The lab's own directory: keys, images, state.
pub fn directory() -> PathBuf {
    std::env::var_os("BRINGUP_LAB_DIR").map_or_else(|| std::env::temp_dir().join("bringup-lab"), PathBuf::from)
}

/// lab.sh with these arguments. A lab of this name is the test's own: one that a person started stays.
pub fn script(args: &[&str]) -> Command {
    let mut command = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lab/lab.sh"));
    command
        .args(args)
        .env("BRINGUP_LAB_DIR", directory())
        .env("BRINGUP_LAB_NAME", "bringup-test")
        .stdin(Stdio::null());
    command
}

/// Runs a program that must end within a limit.
pub fn bounded(command: &mut Command, limit: Duration) -> Output {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (id, end) = (child.id(), Instant::now() + limit);
    // Both pipes are emptied by threads, so that a talkative program is not held up.
    let readers = (reader(child.stdout.take()), reader(child.stderr.take()));
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if Instant::now() > end {
            child.kill().unwrap();
            panic!("{command:?} (process {id}) did not end within {limit:?}");
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    Output {
        status,
        stdout: readers.0.join().unwrap(),
        stderr: readers.1.join().unwrap(),
    }
}

fn reader(pipe: Option<impl std::io::Read + Send + 'static>) -> std::thread::JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        pipe.unwrap().read_to_end(&mut bytes).unwrap();
        bytes
    })
}

/// Everything that a program printed.
fn text(out: &Output) -> String {
    let (stdout, stderr) = (
        String::from_utf8_lossy(&out.stdout),
        String::from_utf8_lossy(&out.stderr),
    );
    format!(
        "{}{stdout}{stderr}",
        if out.status.success() {
            String::new()
        } else {
            format!("{}: ", out.status)
        }
    )
}
