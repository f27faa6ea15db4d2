//! What only OpenSSH's own server shows. Left out where there is none.

use std::net::TcpListener;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use bringup::domain::command::{Command, Exit};
use bringup::domain::{HopId, Source};
use bringup::ssh::{HopHandle, MOST, Reporter, Session, Target, pipe};
use tokio::process::Child;

use crate::follows::{script, stayed, yielded};
use crate::person::{Home, NODE, Person, here};
use crate::processes::{PATIENCE, until};
use crate::server::key;

const T: Duration = Duration::from_secs(50);
const SSHD: &str = "/usr/sbin/sshd";

/// A real sshd on loopback, and the home of an operator whom it lets in.
pub struct Sshd {
    pub home: Home,
    pub port: u16,
    pub target: Target,
    _process: Child,
}

impl Sshd {
    pub async fn start(more: &str) -> Option<Self> {
        Self::start_with(|_| more.to_owned()).await
    }

    /// With lines for its configuration that are made when its host key is in the home, as `host`.
    pub async fn start_with(more: impl FnOnce(&Home) -> String) -> Option<Self> {
        Self::start_as(&[], more).await
    }

    /// Started through these words too. The first line of a keyword counts.
    pub async fn start_as(through: &[&str], more: impl FnOnce(&Home) -> String) -> Option<Self> {
        let user = std::env::var("USER")
            .ok()
            .or_else(|| std::env::var("LOGNAME").ok())
            .or_else(whoami)?;
        if !here(SSHD) {
            return None;
        }
        let home = Home::new();
        home.write_key("host", &key(russh::keys::Algorithm::Ed25519));
        restrict(&home.path("host"));
        std::fs::write(home.path("authorized"), home.key.public_key().to_openssh().unwrap()).unwrap();
        restrict(&home.path("authorized"));
        let port = TcpListener::bind(("127.0.0.1", 0))
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let more = more(&home);
        let config = format!(
            "{more}\nListenAddress 127.0.0.1\nPort {port}\nHostKey {}\nAuthorizedKeysFile {}\nStrictModes no\nUsePAM no\nPidFile none\nLogLevel QUIET\nPermitRootLogin yes\n",
            home.path("host").display(),
            home.path("authorized").display()
        );
        std::fs::write(home.path("sshd_config"), config).unwrap();
        if Path::new("/run").exists() {
            // sshd run by root wants its empty directory.
            let _ = std::fs::create_dir_all("/run/sshd");
        }
        let words = [through, &[SSHD, "-D", "-e", "-f"]].concat();
        let (program, words) = words.split_first().unwrap();
        let process = tokio::process::Command::new(program)
            .args(words)
            .arg(home.path("sshd_config"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        until("sshd listens", || {
            std::net::TcpStream::connect(("127.0.0.1", port)).is_ok()
        })
        .await;
        let target = Target {
            user: Some(user),
            ..home.target(port)
        };
        Some(Self {
            home,
            port,
            target,
            _process: process,
        })
    }

    pub async fn session(&self) -> Session {
        self.home.connect(&self.target, &Person::trusting()).await.unwrap()
    }
}

fn whoami() -> Option<String> {
    let output = std::process::Command::new("id").arg("-un").output().ok()?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}

pub fn restrict(path: &Path) {
    std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
}

/// Whether a process with this in its command line is on this machine.
fn is_running(line: &str) -> bool {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return false;
    };
    entries.flatten().any(|entry| {
        let text = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&text).replace('\0', " ").trim() == line
    })
}

/// A `sleep` of a length that no other test has.
fn nap(serial: u32) -> String {
    format!("sleep {}{serial}", 100_000 + std::process::id())
}

#[tokio::test]
async fn commands_and_tunnels_work_on_a_real_sshd() {
    let Some(sshd) = Sshd::start("").await else { return };
    let session = sshd.session().await;
    let command = Command::script("test", "echo out; echo err >&2; cat; exit 3", Vec::new(), T);
    let output = session.exec(&command, None).await;
    assert_eq!(
        (output.text().as_ref(), output.error_text().as_ref(), &output.exit),
        ("out\n", "err\n", &Exit::Code(3))
    );
    let big = session
        .exec(&Command::argv(["head", "-c", "5000000", "/dev/zero"], T), None)
        .await;
    assert_eq!(
        (big.stdout.len() as u64 + big.dropped, &big.exit),
        (5_000_000, &Exit::Code(0))
    );
    assert!(session.tunnel("127.0.0.1", sshd.port).await.is_ok());
    assert!(session.tunnel("127.0.0.1", 1).await.is_err());
}

#[tokio::test]
async fn through_a_real_sshd_to_a_real_sshd() {
    let Some(sshd) = Sshd::start("").await else { return };
    let person: Arc<dyn Reporter> = Person::trusting();
    let hop = HopHandle::start(
        sshd.target.clone(),
        None,
        sshd.home.settings.clone(),
        Arc::clone(&person),
        Source::Hop(HopId(0)),
    );
    let session = Session::connect(&sshd.target, Some(hop), &sshd.home.settings, person, NODE)
        .await
        .unwrap();
    let output = session.exec(&Command::argv(["echo", "hello"], T), None).await;
    assert_eq!(output.text(), "hello\n");
}

#[tokio::test]
async fn nothing_is_left_on_the_node_when_the_console_goes() {
    let Some(sshd) = Sshd::start("").await else { return };
    let (stopped, lost) = (nap(1), nap(2));
    let script = |nap: &str| Command::script("test", format!("{nap} & echo up; wait"), Vec::new(), T).follow();

    let session = sshd.session().await;
    let (inlet, mut chunks) = pipe();
    let follow = session.follow(&script(&stopped), inlet).await.unwrap();
    assert!(chunks.recv().await.is_some());
    until("it runs", || is_running(&stopped)).await;
    assert_eq!(
        tokio::time::timeout(PATIENCE, follow.stop()).await.unwrap(),
        Exit::Code(143)
    );
    until("it is gone", || !is_running(&stopped)).await;

    // Without a word to the server, as when the console is killed: its tasks go and its sockets are closed.
    let console = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    let (home, target, command) = (sshd.home, sshd.target.clone(), script(&lost));
    let holding = console.spawn(async move {
        let session = home.connect(&target, &Person::trusting()).await.unwrap();
        let (inlet, _chunks) = pipe();
        let follow = session.follow(&command, inlet).await.unwrap();
        std::future::pending::<()>().await;
        drop((session, follow));
    });
    until("it runs", || is_running(&lost)).await;
    console.shutdown_background();
    assert!(holding.await.is_err());
    until("it is gone", || !is_running(&lost)).await;
}

/// The state of the process with this command line (proc(5), `stat`).
fn state(line: &str) -> Option<char> {
    let read = |path: &Path| String::from_utf8_lossy(&std::fs::read(path).unwrap_or_default()).replace('\0', " ");
    let folders = std::fs::read_dir("/proc").ok()?.flatten().map(|e| e.path());
    let process = folders.into_iter().find(|p| read(&p.join("cmdline")).trim() == line)?;
    read(&process.join("stat")).rsplit_once(") ")?.1.chars().next()
}

#[tokio::test]
async fn a_flood_whose_reader_stands_still_is_held_and_comes_in_order_and_commands_are_answered() {
    let Some(sshd) = Sshd::start("").await else { return };
    let session = sshd.session().await;
    let line = format!("seq 1 {}", 5_000_000 + std::process::id());
    let command = Command::script("test", line.clone(), Vec::new(), T).follow();
    let (inlet, mut chunks) = pipe();
    let mut follow = session.follow(&command, inlet).await.unwrap();
    until("it is held", || state(&line) == Some('T')).await;
    for _ in 0..3 {
        let output = session.exec(&Command::argv(["echo", "on"], T), None).await;
        assert_eq!(output.text(), "on\n");
    }
    assert_eq!(state(&line), Some('T'));
    assert!(chunks.waiting() <= MOST);
    let (mut text, mut lost) = (String::new(), 0);
    while let Some(chunk) = tokio::time::timeout(PATIENCE, chunks.recv()).await.unwrap() {
        lost += chunk.dropped;
        text.push_str(std::str::from_utf8(&chunk.bytes).unwrap());
    }
    assert_eq!(follow.wait().await, Exit::Code(0));
    lost = lost.max(follow.dropped());
    let all: u64 = (1..=5_000_000 + u64::from(std::process::id()))
        .map(|n| u64::from(n.ilog10()) + 2)
        .sum();
    assert_eq!(text.len() as u64 + lost, all, "what does not come is counted");
    if lost == 0 {
        assert!(text.lines().zip(1..).all(|(line, n)| line == n.to_string()));
    }
}

#[tokio::test]
async fn more_commands_at_once_than_sessions_queue() {
    let Some(sshd) = Sshd::start("MaxSessions 10").await else {
        return;
    };
    let session = sshd.session().await;
    let all = (0..40).map(|n| {
        let (session, n) = (session.clone(), n.to_string());
        async move { session.exec(&Command::argv(["echo", &n], T), None).await.exit }
    });
    let exits = futures_util::future::join_all(all).await;
    assert!(exits.iter().all(Exit::ok), "{exits:?}");
}

#[tokio::test]
async fn where_one_session_is_allowed_commands_queue_and_the_connection_lives() {
    let Some(sshd) = Sshd::start("MaxSessions 1").await else {
        return;
    };
    let session = sshd.session().await;
    let all = (0..10).map(|n| {
        let (session, n) = (session.clone(), n.to_string());
        async move { session.exec(&Command::argv(["echo", &n], T), None).await.exit }
    });
    let exits = futures_util::future::join_all(all).await;
    assert!(exits.iter().all(Exit::ok), "{exits:?}");
    // A stream that takes the only place gives it up to the first command that has none, and says why.
    let (inlet, mut chunks) = pipe();
    let stays = script("echo up; sleep 1000");
    let mut ended = match session.follow(&stays, inlet).await {
        Ok(mut follow) => {
            assert!(chunks.recv().await.is_some());
            let beside = session.exec(&Command::argv(["true"], T), None).await;
            assert!(beside.exit.ok(), "{:?}", beside.exit);
            follow.wait().await
        }
        // The commands before have told how few it allows.
        Err(exit) => exit,
    };
    for _ in 0..2 {
        assert!(yielded(&ended, "1 session channel"), "{ended:?}");
        // From then on it does not even begin.
        ended = session.follow(&stays, pipe().0).await.err().unwrap();
    }
    let after = session.exec(&Command::argv(["true"], T), None).await;
    assert!(after.exit.ok(), "{:?}", after.exit);
}

#[tokio::test]
async fn where_two_sessions_are_allowed_the_log_yields_and_the_readings_stay() {
    let Some(sshd) = Sshd::start("MaxSessions 2").await else {
        return;
    };
    let session = sshd.session().await;
    let stays = script("echo up; sleep 1000");
    let (inlet, mut chunks) = pipe();
    let readings = session.follow(&stays, inlet).await.unwrap();
    assert!(chunks.recv().await.is_some());
    let (inlet, _log) = pipe();
    let log = session.follow_last(&stays, inlet).await;
    let brief = Command::argv(["true"], T);
    let all = (0..4).map(|_| session.exec(&brief, None));
    for output in futures_util::future::join_all(all).await {
        assert!(output.exit.ok(), "{:?}", output.exit);
    }
    let ended = match log {
        Ok(mut log) => log.wait().await,
        Err(exit) => exit,
    };
    assert!(yielded(&ended, "2 session channels"), "{ended:?}");
    stayed(readings).await;
}

#[tokio::test]
async fn two_dozen_logins_at_once_fit_into_max_startups_as_it_comes() {
    // No line for it: the default counts.
    let Some(sshd) = Sshd::start("").await else { return };
    let person: Arc<dyn Reporter> = Person::trusting();
    let hop = HopHandle::start(
        sshd.target.clone(),
        None,
        sshd.home.settings.clone(),
        Arc::clone(&person),
        Source::Hop(HopId(0)),
    );
    let all = (0..24).map(|_| {
        let (hop, person) = (hop.clone(), Arc::clone(&person));
        Session::connect(&sshd.target, Some(hop), &sshd.home.settings, person, NODE)
    });
    for session in futures_util::future::join_all(all).await {
        let output = session.unwrap().exec(&Command::argv(["true"], T), None).await;
        assert!(output.exit.ok(), "{:?}", output.exit);
    }
}

#[tokio::test]
async fn a_policy_against_forwarding_is_told_as_such() {
    let Some(sshd) = Sshd::start("AllowTcpForwarding no").await else {
        return;
    };
    let session = sshd.session().await;
    let error = session.tunnel("127.0.0.1", sshd.port).await.err().unwrap();
    assert!(matches!(error, bringup::ssh::TunnelError::Forbidden(_)), "{error}");
    assert!(error.to_string().contains("AllowTcpForwarding"), "{error}");
    let person = Person::trusting();
    let hop = HopHandle::start(
        sshd.target.clone(),
        None,
        sshd.home.settings.clone(),
        person as Arc<dyn Reporter>,
        Source::Hop(HopId(0)),
    );
    let refused = hop.open("127.0.0.1", sshd.port).await.err().unwrap();
    assert!(refused.text.contains("AllowTcpForwarding"), "{}", refused.text);
}
