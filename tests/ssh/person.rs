//! Whoever answers questions in these tests, and the settings around a test.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bringup::domain::link::{LinkError, LinkState};
use bringup::domain::question::Ask;
use bringup::domain::{NodeId, Source, Stamp};
use bringup::ssh::{Keyring, Reply, Reporter, Session, Settings, Target};
use russh::keys::ssh_key::LineEnding;
use russh::keys::{Algorithm, PrivateKey};
use tempfile::TempDir;
use tokio::sync::oneshot;

use crate::processes::until;
use crate::server::{Server, key};

/// The node that tests connect as.
pub const NODE: Source = Source::Node(NodeId(0));

type Answer = Box<dyn Fn(&Ask, usize) -> Option<Reply> + Send + Sync>;

/// Answers questions by a rule that gets the question and how many came before it; `None` leaves it open for ever.
pub struct Person {
    start: Instant,
    answer: Answer,
    pub asks: Mutex<Vec<Ask>>,
    pub links: Mutex<Vec<(Source, LinkState)>>,
    open: Mutex<Vec<oneshot::Sender<Reply>>>,
}

impl Person {
    pub fn new(answer: impl Fn(&Ask, usize) -> Option<Reply> + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self {
            start: Instant::now(),
            answer: Box::new(answer),
            asks: Mutex::default(),
            links: Mutex::default(),
            open: Mutex::default(),
        })
    }

    /// Says yes to host keys and knows no passphrase.
    pub fn trusting() -> Arc<Self> {
        Self::new(|ask, _| {
            Some(if matches!(ask, Ask::HostKey { .. }) {
                Reply::Yes
            } else {
                Reply::No
            })
        })
    }

    pub fn asks(&self) -> Vec<Ask> {
        self.asks.lock().unwrap().clone()
    }

    /// The states that one source has told.
    pub fn links(&self, source: Source) -> Vec<LinkState> {
        let links = self.links.lock().unwrap();
        links
            .iter()
            .filter(|(s, _)| *s == source)
            .map(|(_, state)| state.clone())
            .collect()
    }

    /// Waits until a source has told a state.
    pub async fn told(&self, source: Source, what: &str, is: impl Fn(&LinkState) -> bool) {
        until(what, || self.links(source).iter().any(&is)).await;
    }
}

impl Reporter for Person {
    fn link(&self, source: Source, state: LinkState) {
        self.links.lock().unwrap().push((source, state));
    }

    fn ask(&self, _source: Source, ask: Ask) -> oneshot::Receiver<Reply> {
        let mut asks = self.asks.lock().unwrap();
        let (sender, receiver) = oneshot::channel();
        match (self.answer)(&ask, asks.len()) {
            Some(reply) => sender.send(reply).unwrap(),
            None => self.open.lock().unwrap().push(sender),
        }
        asks.push(ask);
        receiver
    }

    fn now(&self) -> Stamp {
        Stamp(self.start.elapsed().as_millis().try_into().unwrap())
    }
}

/// A directory with known_hosts and keys, and the settings that use it.
pub struct Home {
    pub folder: TempDir,
    pub settings: Settings,
    pub key: PrivateKey,
}

impl Home {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let settings = Settings {
            known_hosts: vec![folder.path().join("known_hosts")],
            agent: None,
            no_agent: false,
            ssh_config: None,
            host_keys: None,
            connect_limit: Duration::from_secs(30),
            interactive: true,
            keyring: Keyring::default(),
        };
        let home = Self {
            folder,
            settings,
            key: key(Algorithm::Ed25519),
        };
        home.write_key("id", &home.key);
        home
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write_key(&self, name: &str, key: &PrivateKey) -> String {
        let path = self.path(name);
        std::fs::write(&path, key.to_openssh(LineEnding::LF).unwrap().as_bytes()).unwrap();
        path.to_string_lossy().into_owned()
    }

    pub fn known_hosts(&self) -> String {
        std::fs::read_to_string(self.path("known_hosts")).unwrap_or_default()
    }

    /// A target on loopback that logs in with the home's own key.
    pub fn target(&self, port: u16) -> Target {
        self.target_at("127.0.0.1", port)
    }

    pub fn target_at(&self, host: &str, port: u16) -> Target {
        Target {
            name: "spark-1".into(),
            host: host.into(),
            port: Some(port),
            user: Some("aurora".into()),
            keys: vec![self.path("id").to_string_lossy().into_owned()],
            alias: false,
            direct: false,
        }
    }

    pub async fn connect(&self, target: &Target, person: &Arc<Person>) -> Result<Session, LinkError> {
        Session::connect(
            target,
            None,
            &self.settings,
            Arc::clone(person) as Arc<dyn Reporter>,
            NODE,
        )
        .await
    }
}

/// A server that takes the home's key, and a session on it.
pub async fn connected() -> (Home, Arc<Server>, Arc<Person>, Session) {
    let home = Home::new();
    let server = Server::new(&[&home.key]);
    let person = Person::trusting();
    let session = home
        .connect(&home.target(server.listen().await), &person)
        .await
        .unwrap();
    (home, server, person, session)
}

/// The whole text of an error, for looking into.
pub fn text(error: &LinkError) -> String {
    format!("{}\n{}", error.text, error.fix.as_deref().unwrap_or_default())
}

/// Whether a program is here.
pub fn here(program: &str) -> bool {
    let found = Path::new(program).exists();
    if !found {
        eprintln!("left out: no {program} here");
    }
    found
}
