//! bringup's side: its own SSH room, in this process.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bringup::domain::command::{Command, Exit};
use bringup::domain::link::LinkState;
use bringup::domain::question::Ask;
use bringup::domain::{HopId, NodeId, Source, Stamp};
use bringup::probe;
use bringup::ssh::{HopHandle, Keyring, Reply, Reporter, Session, Settings, Target, pipe};
use tokio::sync::oneshot;

use super::PATIENCE;
use super::measure::{cpu, pss};
use super::servers::Place;

pub struct Ours {
    settings: Settings,
    place: Place,
    reporter: Arc<dyn Reporter>,
}

/// Lines read, and what it took.
pub struct Counted {
    pub lines: u64,
    /// Bytes that nobody took in time.
    pub dropped: u64,
    pub took: Duration,
    pub cpu: Duration,
}

/// All nodes at once.
pub struct Run {
    pub took: Duration,
    pub failures: usize,
}

/// Nobody: every key is on file.
struct Nobody(Instant);

impl Reporter for Nobody {
    fn link(&self, _: Source, _: LinkState) {}

    fn ask(&self, _: Source, _: Ask) -> oneshot::Receiver<Reply> {
        oneshot::channel().1
    }

    fn now(&self) -> Stamp {
        Stamp(u64::try_from(self.0.elapsed().as_millis()).unwrap_or(u64::MAX))
    }
}

impl Ours {
    pub fn new(place: Place) -> Self {
        Self {
            settings: Settings {
                ssh_config: None,
                known_hosts: vec![place.known_hosts.clone()],
                host_keys: None,
                agent: None,
                no_agent: true,
                connect_limit: PATIENCE,
                interactive: true,
                keyring: Keyring::default(),
            },
            place,
            reporter: Arc::new(Nobody(Instant::now())),
        }
    }

    pub fn hop(&self) -> HopHandle {
        HopHandle::start(
            self.target("jump".to_owned(), self.place.jump.clone()),
            None,
            self.settings.clone(),
            Arc::clone(&self.reporter),
            Source::Hop(HopId(0)),
        )
    }

    pub async fn session(&self, n: usize, hop: &HopHandle) -> Session {
        self.try_session(n, hop).await.expect("a session")
    }

    async fn try_session(&self, n: usize, hop: &HopHandle) -> Result<Session, String> {
        let target = self.target(format!("node-{n}"), self.place.nodes[n].clone());
        let id = NodeId(u16::try_from(n).expect("a small number"));
        let reporter = Arc::clone(&self.reporter);
        let session = Session::connect(&target, Some(hop.clone()), &self.settings, reporter, Source::Node(id));
        session.await.map_err(|e| e.text)
    }

    fn target(&self, name: String, host: String) -> Target {
        Target {
            name,
            host,
            port: Some(self.place.port),
            user: Some(self.place.user.clone()),
            keys: vec![self.place.key.display().to_string()],
            alias: false,
            direct: true,
        }
    }

    pub async fn connect_and_run(&self) -> Duration {
        let start = Instant::now();
        let hop = self.hop();
        let session = self.session(0, &hop).await;
        run(&session).await;
        let took = start.elapsed();
        session.close().await;
        hop.close().await;
        took
    }

    pub async fn run_through(&self, hop: &HopHandle) -> Duration {
        let start = Instant::now();
        let session = self.session(0, hop).await;
        run(&session).await;
        let took = start.elapsed();
        session.close().await;
        took
    }

    pub async fn run(&self, session: &Session) -> Duration {
        let start = Instant::now();
        run(session).await;
        start.elapsed()
    }

    /// Connects, runs something long and counts its lines, as a node's log is read.
    pub async fn count_lines(&self, words: &[String]) -> Counted {
        let before = cpu(true);
        let start = Instant::now();
        let hop = self.hop();
        let session = self.session(0, &hop).await;
        let (inlet, mut chunks) = pipe();
        let command = Command::argv(words, PATIENCE).follow();
        let mut follow = session.follow(&command, inlet).await.expect("it starts");
        // Beside the connection, as the console's own readers are.
        let counting = tokio::spawn(async move {
            let mut lines = 0;
            while let Some(chunk) = chunks.recv().await {
                lines += memchr::memchr_iter(b'\n', &chunk.bytes).count() as u64;
            }
            lines
        });
        let lines = counting.await.expect("it counts");
        let took = start.elapsed();
        assert_eq!(follow.wait().await, Exit::Code(0));
        let cpu = cpu(true) - before;
        session.close().await;
        hop.close().await;
        Counted {
            lines,
            dropped: follow.dropped(),
            took,
            cpu,
        }
    }

    /// Connects to all nodes at once and runs the console's own probe on each.
    pub async fn connect_and_probe_all(&self, nodes: usize) -> Run {
        let start = Instant::now();
        let hop = self.hop();
        let ask = probe::node::Ask {
            docker: "docker",
            container: "vllm",
            log: None,
            cache: None,
            ports: &[8000, 6379],
        };
        let probe = probe::node::command(ask, PATIENCE);
        let each = (0..nodes).map(|n| {
            let (hop, probe) = (&hop, &probe);
            async move {
                let session = self.try_session(n, hop).await?;
                let output = session.exec(probe, None).await;
                match output.exit {
                    Exit::Code(_) => Ok(session),
                    other => Err(format!("{other:?}")),
                }
            }
        });
        let sessions = futures_util::future::join_all(each).await;
        let took = start.elapsed();
        let mut failures = 0;
        for session in sessions {
            match session {
                Ok(session) => session.close().await,
                Err(why) => {
                    eprintln!("{why}");
                    failures += 1;
                }
            }
        }
        hop.close().await;
        Run { took, failures }
    }

    /// KiB that one of so many idle connections adds.
    pub async fn memory_of_idle(&self, nodes: usize) -> f64 {
        let own = std::process::id();
        let before = pss(own).expect("Linux");
        let hop = self.hop();
        let sessions = futures_util::future::join_all((0..nodes).map(|n| self.session(n, &hop))).await;
        futures_util::future::join_all(sessions.iter().map(run)).await;
        let after = pss(own).expect("Linux");
        for session in sessions {
            session.close().await;
        }
        hop.close().await;
        (after - before) / nodes as f64
    }
}

async fn run(session: &Session) {
    let output = session.exec(&Command::argv(["true"], PATIENCE), None).await;
    assert_eq!(output.exit, Exit::Code(0), "{}", output.error_text());
}
