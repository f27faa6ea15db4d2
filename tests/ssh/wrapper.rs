//! The wrapper under every POSIX shell of this machine: what it passes on, when it ends a script, and that it leaves nothing behind.

use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bringup::domain::command::{Command, CommandKind};
use bringup::domain::wrap::{BOOTSTRAP, Header, job, opening};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin};

use crate::processes::{MARK, PATIENCE, gone, stopped, until};

const NONCE: &str = "0123456789abcdef";

/// Shells to try, those that are here.
fn shells() -> Vec<&'static str> {
    let all = [
        ("/bin/dash", "/bin/dash"),
        ("/bin/bash", "/bin/bash"),
        ("/bin/bash", "/bin/bash --posix"),
        ("/bin/busybox", "/bin/busybox sh"),
    ];
    let mut found: Vec<&str> = all
        .iter()
        .filter(|(path, _)| std::path::Path::new(path).exists())
        .map(|(_, shell)| *shell)
        .collect();
    found.insert(0, "/bin/sh");
    found
}

/// Does the same under every shell at once.
async fn each(test: impl AsyncFn(&'static str)) {
    futures_util::future::join_all(shells().into_iter().map(|shell| test(shell))).await;
}

fn header() -> Header {
    let command = Command::argv(["unused"], Duration::from_secs(50));
    Header {
        kind: CommandKind::Once,
        ..Header::of(&command, NONCE)
    }
}

/// A script under the wrapper, as sshd would start it.
struct Wrapped {
    child: Child,
    stdin: Option<ChildStdin>,
    mark: String,
}

struct Ended {
    stdout: String,
    stderr: String,
    code: Option<i32>,
}

impl Wrapped {
    fn start(shell: &str) -> Self {
        Self::start_with(shell, &std::env::var("PATH").unwrap())
    }

    /// With this PATH, as the login shell gives it.
    fn start_with(shell: &str, path: &str) -> Self {
        static SERIAL: AtomicU32 = AtomicU32::new(0);
        let mark = format!("{}-{}", std::process::id(), SERIAL.fetch_add(1, Ordering::Relaxed));
        let mut child = tokio::process::Command::new("/bin/sh")
            .args(["-c", &BOOTSTRAP.replace("/bin/sh", shell)])
            .env(MARK, &mark)
            .env("PATH", path)
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take();
        Self { child, stdin, mark }
    }

    async fn send(&mut self, bytes: &[u8]) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(bytes).await.unwrap();
        stdin.flush().await.unwrap();
    }

    /// Sends a frame as [`Self::offer`] does and lets its script begin, unless a secret will.
    async fn frame(&mut self, shell: &str, header: &Header, script: &str, edit: (&str, &str)) {
        self.offer(shell, header, script, edit).await;
        if !header.secret {
            self.send(b"\n").await;
        }
    }

    /// Sends a frame whose wrapper runs under this shell and is edited by `edit`.
    async fn offer(&mut self, shell: &str, header: &Header, script: &str, edit: (&str, &str)) {
        let text = String::from_utf8(header.frame(script)).unwrap();
        let (line, rest) = text.split_once('\n').unwrap();
        let (wrapper, job) = rest.split_at(line.parse().unwrap());
        let wrapper = wrapper.replace("/bin/sh", shell).replace(edit.0, edit.1);
        self.send(format!("{}\n{wrapper}{job}", wrapper.len()).as_bytes()).await;
    }

    /// Reads on until stdout holds this text.
    async fn wait_for(&mut self, text: &str) {
        let stdout = self.child.stdout.as_mut().unwrap();
        let mut seen = Vec::new();
        while !String::from_utf8_lossy(&seen).contains(text) {
            let mut byte = [0];
            let n = tokio::time::timeout(PATIENCE, stdout.read(&mut byte))
                .await
                .unwrap()
                .unwrap();
            assert!(n > 0, "{text} did not come: {}", String::from_utf8_lossy(&seen));
            seen.extend_from_slice(&byte);
        }
    }

    fn hang_up(&mut self) {
        self.stdin = None;
    }

    /// Waits until both outputs are closed and the process is over, then until nothing of it is left on the machine.
    async fn end(mut self) -> Ended {
        let (mut stdout, mut stderr) = (String::new(), String::new());
        let (mut out, mut err) = (self.child.stdout.take().unwrap(), self.child.stderr.take().unwrap());
        let all = async {
            let (a, b) = tokio::join!(out.read_to_string(&mut stdout), err.read_to_string(&mut stderr));
            a.and(b).unwrap();
            self.child.wait().await.unwrap()
        };
        let status = tokio::time::timeout(PATIENCE, all).await.unwrap();
        gone(&self.mark).await;
        Ended {
            stdout,
            stderr,
            code: status.code(),
        }
    }
}

async fn run(shell: &str, header: &Header, script: &str, more: &str) -> Ended {
    let mut wrapped = Wrapped::start(shell);
    wrapped.frame(shell, header, script, ("", "")).await;
    wrapped.send(more.as_bytes()).await;
    wrapped.end_with_stdin_open().await
}

impl Wrapped {
    /// As `end`, with the channel's standard input open to the last.
    async fn end_with_stdin_open(mut self) -> Ended {
        let stdin = self.stdin.take();
        let ended = self.end().await;
        drop(stdin);
        ended
    }
}

#[tokio::test]
async fn outputs_and_the_exit_code_pass_and_standard_input_is_empty() {
    each(async |shell| {
        let ended = run(
            shell,
            &header(),
            "echo out; echo err >&2; cat; echo $LC_ALL; exit 7",
            "\n\n",
        )
        .await;
        assert_eq!(ended.stdout, format!("{NONCE}\nout\nC\n"), "{shell}");
        assert_eq!(ended.stderr, format!("{NONCE}\nerr\n"), "{shell}");
        assert_eq!(ended.code, Some(7), "{shell}");
    })
    .await;
}

#[tokio::test]
async fn programs_are_found_where_the_path_of_a_non_login_shell_lacks_them() {
    each(async |shell| {
        let mut wrapped = Wrapped::start_with(shell, "/usr/bin:/bin");
        wrapped.frame(shell, &header(), "echo $PATH", ("", "")).await;
        let ended = wrapped.end_with_stdin_open().await;
        let places: Vec<&str> = ended.stdout.lines().last().unwrap().split(':').collect();
        assert_eq!(places[..2], ["/usr/bin", "/bin"], "the login's own places come first");
        for place in ["/usr/local/bin", "/usr/sbin", "/snap/bin"] {
            assert!(places.contains(&place), "{shell}: {places:?}");
        }
        assert_eq!((ended.stderr, ended.code), (format!("{NONCE}\n"), Some(0)), "{shell}");
    })
    .await;
}

#[tokio::test]
async fn a_script_whose_shell_is_killed_takes_its_loops_along() {
    // A closed pipe does the first; a host without memory the second. Neither lets a trap run, and the loop has nothing to say that would tell it.
    for signal in ["PIPE", "KILL"] {
        each(async |shell| {
            let script =
                format!("trap 'kill $!' TERM\nwhile :; do sleep 1; done &\necho out\nkill -s {signal} $$\nwait\n");
            let ended = run(shell, &header(), &script, "").await;
            assert_eq!(ended.stdout, format!("{NONCE}\nout\n"), "{shell} {signal}");
            assert!(
                ended.code.is_some_and(|code| code > 128),
                "{shell} {signal}: {:?}",
                ended.code
            );
        })
        .await;
    }
}

#[tokio::test]
async fn a_large_script_arrives_whole() {
    each(async |shell| {
        let script = format!("cat <<'X'\n{}\nX\n", "0123456789abcde\n".repeat(6000));
        let ended = run(shell, &header(), &script, "").await;
        assert_eq!(
            (ended.stdout.len(), ended.code),
            (NONCE.len() + 1 + 96_001, Some(0)),
            "{shell}"
        );
    })
    .await;
}

#[tokio::test]
async fn a_dd_without_fullblock_does_as_well() {
    each(async |shell| {
        let mut wrapped = Wrapped::start(shell);
        wrapped
            .frame(shell, &header(), "echo out", ("iflag=fullblock", "iflag=unknown"))
            .await;
        let ended = wrapped.end_with_stdin_open().await;
        assert_eq!(
            (ended.stdout, ended.code),
            (format!("{NONCE}\nout\n"), Some(0)),
            "{shell}"
        );
    })
    .await;
}

#[tokio::test]
async fn the_secret_reaches_the_script_and_nothing_else_does() {
    each(async |shell| {
        let header = Header {
            secret: true,
            ..header()
        };
        let script = "IFS= read -r T && export T\ncat\nprintf '[%s]\\n' \"$T\"; grep -c 's3 cret' /proc/$$/cmdline";
        let ended = run(shell, &header, script, " s3 cret\\n%s\n\n\n").await;
        assert_eq!(ended.stdout, format!("{NONCE}\n[ s3 cret\\n%s]\n0\n"), "{shell}");
    })
    .await;
}

#[tokio::test]
async fn the_end_of_file_ends_the_whole_group() {
    each(async |shell| {
        let mut wrapped = Wrapped::start(shell);
        wrapped
            .frame(
                shell,
                &header(),
                "(sleep 1000; echo no) & sleep 1001 | sleep 1002 & echo up; sleep 1003; echo no",
                ("", ""),
            )
            .await;
        wrapped.wait_for("up\n").await;
        wrapped.hang_up();
        let ended = wrapped.end().await;
        assert_eq!((ended.stdout.as_str(), ended.code), ("", Some(143)), "{shell}");
    })
    .await;
}

#[tokio::test]
async fn one_that_is_held_stands_still_goes_on_and_ends_when_it_is_told_to() {
    each(async |shell| {
        let mut wrapped = Wrapped::start(shell);
        let script = "echo up; while :; do sleep 0.01; echo on; done";
        wrapped.frame(shell, &header(), script, ("", "")).await;
        wrapped.wait_for("up\n").await;
        for _ in 0..2 {
            wrapped.send(b"\nhold\n\n").await;
            until("it stands still", || stopped(&wrapped.mark, "BRINGUP")).await;
            wrapped.send(b"go\n").await;
            until("it goes on", || !stopped(&wrapped.mark, "BRINGUP")).await;
            wrapped.wait_for("on\n").await;
        }
        wrapped.send(b"hold\n").await;
        until("it stands still", || stopped(&wrapped.mark, "BRINGUP")).await;
        wrapped.hang_up();
        assert_eq!(wrapped.end().await.code, Some(143), "{shell}");
    })
    .await;
}

#[tokio::test]
async fn a_script_that_ignores_the_polite_signal_is_killed() {
    each(async |shell| {
        let mut wrapped = Wrapped::start(shell);
        wrapped
            .frame(
                shell,
                &header(),
                "trap '' TERM; (sleep 1000; sleep 1001) & echo up; sleep 1002; sleep 1003",
                ("", ""),
            )
            .await;
        wrapped.wait_for("up\n").await;
        wrapped.hang_up();
        assert_eq!(wrapped.end().await.code, Some(137), "{shell}");
    })
    .await;
}

#[tokio::test]
async fn a_child_that_ignores_the_polite_signal_goes_with_the_script() {
    each(async |shell| {
        let mut wrapped = Wrapped::start(shell);
        wrapped
            .frame(
                shell,
                &header(),
                "(trap '' TERM; echo up; sleep 1000; sleep 1001) & wait",
                ("", ""),
            )
            .await;
        wrapped.wait_for("up\n").await;
        wrapped.hang_up();
        assert_eq!(wrapped.end().await.code, Some(143), "{shell}");
    })
    .await;
}

#[tokio::test]
async fn a_wrapper_that_gets_no_work_ends_by_itself_and_one_that_does_goes_on() {
    each(async |shell| {
        let mut idle = Wrapped::start(shell);
        idle.send(&opening(Some(Duration::from_secs(1)))).await;
        assert_eq!(
            idle.end_with_stdin_open().await.code,
            None,
            "{shell}: ended by a signal"
        );
        let mut busy = Wrapped::start(shell);
        busy.send(&opening(Some(Duration::from_secs(2)))).await;
        let command = Command::argv(["sh", "-c", "sleep 4; echo whole"], Duration::from_secs(50));
        busy.send(&job(&command, NONCE)).await;
        busy.send(b"\n").await;
        let ended = busy.end_with_stdin_open().await;
        assert_eq!(
            (ended.stdout, ended.code),
            (format!("{NONCE}\nwhole\n"), Some(0)),
            "{shell}"
        );
    })
    .await;
}

#[tokio::test]
async fn silence_ends_it_though_the_input_stays_open() {
    each(async |shell| {
        let header = Header {
            silence_seconds: 1,
            kind: CommandKind::Follow,
            limit_seconds: 0,
            ..header()
        };
        let ended = run(shell, &header, "sleep 1000 & sleep 1001", "").await;
        assert_eq!(ended.code, Some(143), "{shell}");
    })
    .await;
}

#[tokio::test]
async fn a_heartbeat_keeps_it_alive_past_the_silence() {
    // The script ends by itself after more ticks than the silence allows: only heartbeats can carry it there.
    each(async |shell| {
        let header = Header {
            silence_seconds: 3,
            ..header()
        };
        let mut wrapped = Wrapped::start(shell);
        wrapped.frame(shell, &header, "sleep 5; echo whole", ("", "")).await;
        let mut stdin = wrapped.stdin.take().unwrap();
        let beat = async {
            while stdin.write_all(b"\n").await.is_ok() {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            // The script has ended and nobody reads any more.
            std::future::pending::<()>().await;
        };
        let ended = tokio::select! { ended = wrapped.end() => ended, () = beat => unreachable!() };
        assert_eq!(
            (ended.stdout, ended.code),
            (format!("{NONCE}\nwhole\n"), Some(0)),
            "{shell}"
        );
    })
    .await;
}

#[tokio::test]
async fn the_limit_ends_it() {
    each(async |shell| {
        let header = Header {
            limit_seconds: 1,
            ..header()
        };
        let ended = run(shell, &header, "sleep 1000; echo no", "").await;
        assert_eq!((ended.stdout, ended.code), (format!("{NONCE}\n"), Some(143)), "{shell}");
    })
    .await;
}

#[tokio::test]
async fn a_script_that_came_in_part_is_not_run() {
    let whole = String::from_utf8(header().frame("echo ran\necho ran")).unwrap();
    each(async |shell| {
        for cut in [5, 20] {
            let mut wrapped = Wrapped::start(shell);
            let text = whole.strip_suffix(&format!("# end {NONCE}\n")).unwrap();
            wrapped.send(text.get(..text.len() - cut).unwrap().as_bytes()).await;
            wrapped.hang_up();
            let ended = wrapped.end().await;
            assert_eq!((ended.stdout.as_str(), ended.code), ("", Some(125)), "{shell}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_script_that_nobody_let_begin_does_not_run() {
    each(async |shell| {
        let mut wrapped = Wrapped::start(shell);
        wrapped.offer(shell, &header(), "echo ran", ("", "")).await;
        wrapped.wait_for(&format!("{NONCE}\n")).await;
        wrapped.hang_up();
        let ended = wrapped.end().await;
        assert_eq!((ended.stdout.as_str(), ended.code), ("", Some(125)), "{shell}");
    })
    .await;
}

#[tokio::test]
async fn without_setsid_the_script_itself_is_still_ended() {
    each(async |shell| {
        let mut wrapped = Wrapped::start(shell);
        wrapped
            .frame(shell, &header(), "echo up; exec sleep 1000", ("own=setsid", "own="))
            .await;
        wrapped.wait_for("up\n").await;
        wrapped.hang_up();
        assert_eq!(wrapped.end().await.code, Some(143), "{shell}");
    })
    .await;
}
