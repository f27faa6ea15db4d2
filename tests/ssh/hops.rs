//! Jump hosts: chains, loss and return, and what is said when something behind them fails.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bringup::domain::command::{Command, Exit};
use bringup::domain::link::{LinkErrorKind, LinkState};
use bringup::domain::question::Ask;
use bringup::domain::{HopId, NodeId, Source};
use bringup::ssh::{HopHandle, Reply, Reporter, SILENT_AFTER, Session, Target, pipe};
use secrecy::SecretString;

use crate::person::{Home, NODE, Person, text};
use crate::processes::{PATIENCE, gone, running, until};
use crate::server::Server;

const JUMP: Source = Source::Hop(HopId(0));
const SECOND: Source = Source::Hop(HopId(1));
const T: Duration = Duration::from_secs(50);
const NODE_ADDRESS: &str = "192.168.200.13";

/// A jump host and a node behind it.
struct Site {
    home: Home,
    person: Arc<Person>,
    jump: Arc<Server>,
    port: u16,
    node: Arc<Server>,
}

impl Site {
    async fn new() -> Self {
        let home = Home::new();
        let (jump, node) = (Server::new(&[&home.key]), Server::new(&[&home.key]));
        jump.put_behind(NODE_ADDRESS, 22, &node);
        let port = jump.listen().await;
        Self {
            home,
            person: Person::trusting(),
            jump,
            port,
            node,
        }
    }

    fn reporter(&self) -> Arc<dyn Reporter> {
        Arc::clone(&self.person) as Arc<dyn Reporter>
    }

    fn hop(&self) -> HopHandle {
        let target = Target {
            name: "jump".into(),
            ..self.home.target(self.port)
        };
        HopHandle::start(target, None, self.home.settings.clone(), self.reporter(), JUMP)
    }

    fn target(&self) -> Target {
        self.home.target_at(NODE_ADDRESS, 22)
    }

    async fn session(&self, hop: &HopHandle) -> Result<Session, bringup::domain::link::LinkError> {
        Session::connect(
            &self.target(),
            Some(hop.clone()),
            &self.home.settings,
            self.reporter(),
            NODE,
        )
        .await
    }
}

pub async fn say(session: &Session, word: &str) -> String {
    session
        .exec(&Command::argv(["echo", word], T), None)
        .await
        .text()
        .into_owned()
}

#[tokio::test]
async fn a_node_is_reached_through_its_jump_host() {
    let site = Site::new().await;
    let hop = site.hop();
    let session = site.session(&hop).await.unwrap();
    assert_eq!(say(&session, "hello").await, "hello\n");
    assert_eq!(site.person.links(JUMP).last(), Some(&LinkState::Up));
    assert_eq!(site.person.links(NODE).last(), Some(&LinkState::Up));
    let hosts: Vec<String> = site
        .home
        .known_hosts()
        .lines()
        .map(|l| l.split(' ').next().unwrap().to_owned())
        .collect();
    assert_eq!(hosts, [format!("[127.0.0.1]:{}", site.port), NODE_ADDRESS.to_owned()]);
}

#[tokio::test]
async fn hops_form_chains() {
    let site = Site::new().await;
    let first = Server::new(&[&site.home.key]);
    first.put_behind("bastion", 2200, &site.jump);
    let target = Target {
        name: "first".into(),
        ..site.home.target(first.listen().await)
    };
    let first_hop = HopHandle::start(target, None, site.home.settings.clone(), site.reporter(), JUMP);
    let target = Target {
        name: "second".into(),
        ..site.home.target_at("bastion", 2200)
    };
    let hop = HopHandle::start(
        target,
        Some(first_hop),
        site.home.settings.clone(),
        site.reporter(),
        SECOND,
    );
    let session = site.session(&hop).await.unwrap();
    assert_eq!(say(&session, "hello").await, "hello\n");
    assert_eq!(site.person.links(SECOND).last(), Some(&LinkState::Up));
}

#[tokio::test]
async fn many_nodes_share_the_way_through_a_jump_host() {
    let site = Site::new().await;
    let hop = site.hop();
    let nodes: Vec<String> = (0..24).map(|n| format!("10.0.0.{n}")).collect();
    // One server stands for all of them.
    site.node.max_sessions.store(1000, Ordering::Relaxed);
    for node in &nodes {
        site.jump.put_behind(node, 22, &site.node);
    }
    let all = nodes.iter().enumerate().map(|(n, node)| {
        let (target, hop) = (site.home.target_at(node, 22), hop.clone());
        let (settings, reporter) = (&site.home.settings, site.reporter());
        async move {
            let source = Source::Node(NodeId(n.try_into().unwrap()));
            let session = Session::connect(&target, Some(hop), settings, reporter, source)
                .await
                .unwrap();
            say(&session, node).await
        }
    });
    let said = futures_util::future::join_all(all).await;
    assert_eq!(said, nodes.iter().map(|n| format!("{n}\n")).collect::<Vec<_>>());
    assert_eq!(site.jump.connections.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_node_that_refuses_the_key_says_whose_key_a_double_ssh_uses() {
    let site = Site::new().await;
    let refusing = Server::new(&[]);
    site.jump.put_behind(NODE_ADDRESS, 22, &refusing);
    std::fs::write(site.home.path("id.pub"), "").unwrap();
    let error = site.session(&site.hop()).await.err().unwrap();
    assert_eq!(error.kind, LinkErrorKind::Refused);
    let text = text(&error);
    let parts = [
        "spark-1 (aurora@192.168.200.13:22 via jump): it refused every key: tried ".to_owned(),
        "uses a key of jump, not this one".to_owned(),
        format!(" -p {} aurora@127.0.0.1 ", site.port),
        "ssh aurora@192.168.200.13 ".to_owned(),
    ];
    for part in parts {
        assert!(text.contains(&part), "{part} is not in {text}");
    }
}

#[tokio::test]
async fn a_host_that_the_jump_host_cannot_reach_is_not_the_jump_hosts_fault() {
    let site = Site::new().await;
    let hop = site.hop();
    // Nothing is put behind it there; the jump host tries for real, and port 1 of loopback is closed.
    let target = site.home.target_at("127.0.0.1", 1);
    let error = Session::connect(&target, Some(hop.clone()), &site.home.settings, site.reporter(), NODE)
        .await
        .err()
        .unwrap();
    assert_eq!(error.kind, LinkErrorKind::Unreachable);
    assert!(error.text.contains("jump refused the way to it"), "{}", error.text);
    assert_eq!(say(&site.session(&hop).await.unwrap(), "hello").await, "hello\n");
}

#[tokio::test]
async fn what_waits_behind_a_hop_that_is_down_hears_why() {
    let site = Site::new().await;
    let refusing = Server::new(&[]);
    let target = Target {
        name: "jump".into(),
        ..site.home.target(refusing.listen().await)
    };
    let hop = HopHandle::start(target, None, site.home.settings.clone(), site.reporter(), JUMP);
    let error = site.session(&hop).await.err().unwrap();
    assert_eq!(error.kind, LinkErrorKind::ViaDown);
    assert!(
        error.text.starts_with("jump is down: jump (aurora@127.0.0.1:") && error.text.contains("refused every key"),
        "{}",
        error.text
    );
    let down = site.person.links(JUMP).into_iter().next_back().unwrap();
    assert!(matches!(down, LinkState::Down { retry_at: Some(_), .. }), "{down:?}");
}

#[tokio::test]
async fn a_hop_that_is_lost_comes_back_by_itself() {
    let site = Site::new().await;
    let hop = site.hop();
    let session = site.session(&hop).await.unwrap();
    site.jump.drop_connections();
    let why = tokio::time::timeout(PATIENCE, session.closed()).await.unwrap();
    assert!(!why.is_empty());
    site.person
        .told(JUMP, "the hop is down", |s| matches!(s, LinkState::Down { .. }))
        .await;
    tokio::time::timeout(PATIENCE, hop.until_up()).await.unwrap();
    assert_eq!(say(&site.session(&hop).await.unwrap(), "again").await, "again\n");
    assert_eq!(site.jump.connections.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn a_dismissed_host_key_is_asked_about_again_only_on_request() {
    let site = Site::new().await;
    let person = Person::new(|_, before| Some(if before == 0 { Reply::No } else { Reply::Yes }));
    let target = site.home.target(site.port);
    let hop = HopHandle::start(
        target,
        None,
        site.home.settings.clone(),
        Arc::clone(&person) as Arc<dyn Reporter>,
        JUMP,
    );
    person
        .told(JUMP, "it is down for good", |s| {
            matches!(s, LinkState::Down { retry_at: None, .. })
        })
        .await;
    hop.retry();
    tokio::time::timeout(PATIENCE, hop.until_up()).await.unwrap();
    assert_eq!(person.asks().len(), 2);
}

#[tokio::test]
async fn a_dismissed_passphrase_is_asked_for_again_on_request() {
    let site = Site::new().await;
    let locked = site
        .home
        .key
        .encrypt(&mut russh::keys::key::safe_rng(), "right")
        .unwrap();
    site.home.write_key("id", &locked);
    let person = Person::new(|ask, before| {
        Some(match (ask, before) {
            (Ask::HostKey { .. }, _) => Reply::Yes,
            (Ask::Passphrase { .. }, 1) => Reply::No,
            (Ask::Passphrase { .. }, _) => Reply::Secret(SecretString::from("right")),
            (Ask::Login { .. }, _) => Reply::No,
        })
    });
    let target = site.home.target(site.port);
    let reporter = Arc::clone(&person) as Arc<dyn Reporter>;
    let hop = HopHandle::start(target, None, site.home.settings.clone(), reporter, JUMP);
    person
        .told(JUMP, "it is down", |s| matches!(s, LinkState::Down { .. }))
        .await;
    hop.retry();
    tokio::time::timeout(PATIENCE, hop.until_up()).await.unwrap();
    assert_eq!(person.asks().len(), 3);
}

#[tokio::test]
async fn silence_is_shown_and_then_given_up() {
    let site = Site::new().await;
    let hop = site.hop();
    let session = site.session(&hop).await.unwrap();
    assert_eq!(say(&session, "hello").await, "hello\n");
    site.node.hang();
    site.person
        .told(NODE, "the node is silent", |s| matches!(s, LinkState::Silent { .. }))
        .await;
    assert!(session.quiet_for() > SILENT_AFTER);
    let why = tokio::time::timeout(PATIENCE, session.closed()).await.unwrap();
    assert_eq!(why, "the peer said nothing for 15 s");
    let output = session.exec(&Command::argv(["true"], T), None).await;
    assert!(matches!(output.exit, Exit::NotStarted(_)), "{:?}", output.exit);
    // The hop is well, and so is a new connection.
    let silent = site
        .person
        .links(JUMP)
        .iter()
        .any(|s| matches!(s, LinkState::Silent { .. } | LinkState::Down { .. }));
    assert!(!silent, "{:?}", site.person.links(JUMP));
    site.node.drop_connections();
    assert_eq!(say(&site.session(&hop).await.unwrap(), "again").await, "again\n");
    gone(&site.node.mark).await;
}

#[tokio::test]
async fn an_unread_stream_of_one_node_stalls_no_other_behind_the_same_hop() {
    let site = Site::new().await;
    let hop = site.hop();
    let loud = site.session(&hop).await.unwrap();
    let other = Server::new(&[&site.home.key]);
    site.jump.put_behind("192.168.200.14", 22, &other);
    let target = site.home.target_at("192.168.200.14", 22);
    let quiet = Session::connect(
        &target,
        Some(hop),
        &site.home.settings,
        site.reporter(),
        Source::Node(NodeId(1)),
    )
    .await
    .unwrap();
    let (inlet, chunks) = pipe();
    let command = Command::script("test", "cat /dev/zero", Vec::new(), T).follow();
    let follow = loud.follow(&command, inlet).await.unwrap();
    until("it is held", || chunks.held()).await;
    for _ in 0..3 {
        assert_eq!(say(&quiet, "on").await, "on\n");
    }
    follow.stop().await;
}

#[tokio::test]
async fn closing_says_goodbye_to_every_hop() {
    let site = Site::new().await;
    let hop = site.hop();
    let session = site.session(&hop).await.unwrap();
    let nap = Command::argv(["sleep", "1005"], T);
    let work = session.exec(&nap, None);
    let close = async {
        running(&site.node.mark, "sleep 1005").await;
        session.close().await;
        hop.close().await;
    };
    let (output, ()) = tokio::join!(work, close);
    assert_eq!(output.exit, Exit::Unknown("spark-1: closed by bringup".into()));
    gone(&site.node.mark).await;
    assert_eq!(site.session(&hop).await.err().unwrap().kind, LinkErrorKind::ViaDown);
}
