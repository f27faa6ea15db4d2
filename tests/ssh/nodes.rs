//! A node's actor: what it tells of a connection that is lost, and when it connects anew.

use std::io::Write;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bringup::config::types::LogPlace;
use bringup::config::{self, Config, EXAMPLE};
use bringup::diagnose::Rules;
use bringup::domain::command::{Command, Exit};
use bringup::domain::event::{Event, EventKind};
use bringup::domain::link::{LinkErrorKind, LinkState};
use bringup::domain::question::Ask;
use bringup::domain::{NodeId, RunId};
use bringup::log::{Line, Masker, Ring};
use bringup::node::{self, Clock, Feed, NodeHandle, NodeSetup, SharedLog};
use bringup::ssh::{MOST, Reply, Reporter, SILENT_AFTER, Target};
use secrecy::SecretString;
use tokio::sync::mpsc;

use crate::person::{Home, Person};
use crate::processes::{PATIENCE, gone, running, until};
use crate::server::{Server, key};

const T: Duration = Duration::from_secs(3600);

/// Bytes that a log keeps: all of every test's.
const RING: usize = 256 << 20;

/// A node's actor and what it tells.
pub struct Node {
    pub handle: NodeHandle,
    events: mpsc::Receiver<Event>,
    pub log: SharedLog,
}

impl Node {
    fn start(home: &Home, target: Target, person: &Arc<Person>) -> Self {
        let config = config::parse(EXAMPLE, "config.example.toml").unwrap();
        Self::start_with(home, target, person, config)
    }

    pub fn start_with(home: &Home, target: Target, person: &Arc<Person>, config: Config) -> Self {
        let (feed, events) = Feed::new(Clock::start());
        let log = SharedLog::new(Mutex::new(Ring::new(RING)));
        let handle = node::start(NodeSetup {
            id: NodeId(0),
            config: Arc::new(config),
            target,
            via: None,
            settings: home.settings.clone(),
            reporter: Arc::clone(person) as Arc<dyn Reporter>,
            feed,
            log: Arc::clone(&log),
            secrets: Arc::new(bringup::node::Secrets::default()),
            masker: Arc::new(Masker::default()),
            rules: Rules::default(),
        });
        Self { handle, events, log }
    }

    /// Waits for an event, passing over others.
    pub async fn tells<T>(&mut self, what: &str, mut wanted: impl FnMut(EventKind) -> Option<T>) -> T {
        let wait = async {
            loop {
                if let Some(found) = wanted(self.events.recv().await.unwrap().kind) {
                    return found;
                }
            }
        };
        let told = tokio::time::timeout(PATIENCE, wait).await;
        assert!(told.is_ok(), "never told: {what}");
        told.unwrap()
    }

    async fn up(&mut self) {
        self.tells("it is up", |kind| {
            (kind == EventKind::Link(LinkState::Up)).then_some(())
        })
        .await;
    }

    /// Why it is down, and whether another try comes by itself.
    async fn down(&mut self) -> (LinkErrorKind, bool) {
        self.tells("it is down", |kind| match kind {
            EventKind::Link(LinkState::Down { error, retry_at, .. }) => Some((error.kind, retry_at.is_some())),
            _ => None,
        })
        .await
    }
}

#[tokio::test]
async fn a_command_whose_connection_is_lost_ends_as_unknown_at_once() {
    let home = Home::new();
    let server = Server::new(&[&home.key]);
    let target = home.target(server.listen().await);
    let mut node = Node::start(&home, target, &Person::trusting());
    node.up().await;
    assert!(node.handle.run(RunId(7), Command::argv(["sleep", "1011"], T)));
    running(&server.mark, "sleep 1011").await;
    server.drop_connections();
    let exit = node
        .tells("the command's end", |kind| match kind {
            EventKind::CommandDone(done) if done.run == RunId(7) => Some(done.exit),
            _ => None,
        })
        .await;
    assert!(matches!(exit, Exit::Unknown(_)), "{exit:?}");
    assert_eq!(node.down().await, (LinkErrorKind::Lost, true));
    node.up().await;
    gone(&server.mark).await;
    node.handle.stop().await;
}

#[tokio::test]
async fn a_peer_that_goes_silent_as_the_log_begins_is_no_word_on_the_log() {
    let home = Home::new();
    let server = Server::new(&[&home.key]);
    // Every channel waits to be opened: the first command, the readings, the log.
    let (go, late) = tokio::sync::watch::channel(());
    *server.late.lock().unwrap() = Some(late);
    let target = home.target(server.listen().await);
    let mut config = config::parse(EXAMPLE, "config.example.toml").unwrap();
    let path = home.path("server.log");
    std::fs::write(&path, "0 begins\n").unwrap();
    config.logs.head = LogPlace::File(path.display().to_string());
    config.limits.command = SILENT_AFTER + Duration::from_secs(2);
    let mut node = Node::start_with(&home, target, &Person::trusting(), config);
    node.up().await;
    until("the log is asked for", || server.opened.load(Ordering::Relaxed) >= 3).await;
    *server.late.lock().unwrap() = None;
    server.hang();
    assert_eq!(node.down().await, (LinkErrorKind::Lost, true));
    server.drop_connections();
    node.tells("the first line", |kind| {
        matches!(kind, EventKind::LogAdvanced { seq: 1.., .. }).then_some(())
    })
    .await;
    let lines: Vec<String> = node.log.lock().unwrap().last(10).map(Line::plain).collect();
    assert_eq!(lines, ["0 begins"]);
    node.handle.stop().await;
    drop(go);
    gone(&server.mark).await;
}

/// Follows a file to which more is added at once than finds room on its way, and takes some time to decode.
async fn read_a_flood(login: impl FnOnce(&Home) -> String) {
    let home = Home::new();
    let server = Server::new(&[&home.key]);
    *server.login.lock().unwrap() = login(&home);
    let target = home.target(server.listen().await);
    let mut config = config::parse(EXAMPLE, "config.example.toml").unwrap();
    let path = home.path("server.log");
    std::fs::write(&path, "0 begins\n").unwrap();
    config.logs.head = LogPlace::File(path.display().to_string());
    let mut node = Node::start_with(&home, target, &Person::trusting(), config);
    node.tells("the first line", |kind| {
        matches!(kind, EventKind::LogAdvanced { seq: 1, .. }).then_some(())
    })
    .await;
    let many = 2 * MOST / 2000;
    let text: String = (1..=many)
        .map(|n| format!("{n} \x1b[32m{}\x1b[0m\n", "x".repeat(2000)))
        .collect();
    let mut file = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
    // As long as it goes on: so many lines are work for a busy machine.
    let mut read = 1;
    while read <= many as u64 {
        read = node
            .tells("further lines", |kind| match kind {
                EventKind::LogAdvanced { seq, .. } => (seq > read).then_some(seq),
                EventKind::LogFlow(flow) => {
                    assert_eq!(flow.lost, 0);
                    None
                }
                _ => None,
            })
            .await;
    }
    let lines: Vec<String> = node.log.lock().unwrap().last(many + 2).map(Line::plain).collect();
    assert_eq!(lines.len(), many + 1);
    for (n, line) in lines.iter().enumerate() {
        assert_eq!(line.split(' ').next(), Some(n.to_string().as_str()));
    }
    node.handle.stop().await;
    gone(&server.mark).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_line_is_lost_though_they_come_faster_than_they_are_read() {
    read_a_flood(|_| String::new()).await;
}

/// As where there is no setsid: what could not be kept is read again.
#[tokio::test(flavor = "multi_thread")]
async fn no_line_is_lost_where_what_prints_them_cannot_be_held() {
    read_a_flood(|home| {
        let bin = home.path("bin");
        std::fs::create_dir(&bin).unwrap();
        let setsid = bin.join("setsid");
        std::fs::write(&setsid, "#!/bin/sh\nexec \"$@\"\n").unwrap();
        std::fs::set_permissions(&setsid, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        format!("PATH={}:$PATH", bin.display())
    })
    .await;
}

#[tokio::test]
async fn a_node_that_refuses_is_tried_again_by_itself() {
    let home = Home::new();
    let server = Server::new(&[&key(russh::keys::Algorithm::Ed25519)]);
    let target = home.target(server.listen().await);
    let mut node = Node::start(&home, target, &Person::trusting());
    assert_eq!(node.down().await, (LinkErrorKind::Refused, true));
    node.handle.stop().await;
}

#[tokio::test]
async fn a_host_key_that_was_refused_is_asked_about_again_only_on_request() {
    let home = Home::new();
    let server = Server::new(&[&home.key]);
    let target = home.target(server.listen().await);
    let person = Person::new(|_, before| Some(if before == 0 { Reply::No } else { Reply::Yes }));
    let mut node = Node::start(&home, target, &person);
    assert_eq!(node.down().await, (LinkErrorKind::HostKeyUnknown, false));
    node.handle.retry();
    node.up().await;
    assert_eq!(person.asks().len(), 2);
    node.handle.stop().await;
}

#[tokio::test]
async fn a_dismissed_passphrase_is_asked_for_again_on_request() {
    let home = Home::new();
    let locked = home.key.encrypt(&mut russh::keys::key::safe_rng(), "right").unwrap();
    home.write_key("id", &locked);
    let server = Server::new(&[&home.key]);
    let target = home.target(server.listen().await);
    let person = Person::new(|ask, before| {
        Some(match (ask, before) {
            (Ask::HostKey { .. }, _) => Reply::Yes,
            (Ask::Passphrase { .. }, 1) => Reply::No,
            (Ask::Passphrase { .. }, _) => Reply::Secret(SecretString::from("right")),
            (Ask::Login { .. }, _) => Reply::No,
        })
    });
    let mut node = Node::start(&home, target, &person);
    assert_eq!(node.down().await, (LinkErrorKind::Local, true));
    node.handle.retry();
    node.up().await;
    assert_eq!(person.asks().len(), 3);
    node.handle.stop().await;
}
