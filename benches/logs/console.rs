//! The console's side, in this process: one node's actor, its log, and the queue's reader.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bringup::config;
use bringup::diagnose::Rules;
use bringup::domain::event::{EventKind, Purpose};
use bringup::domain::link::LinkState;
use bringup::domain::question::Ask;
use bringup::domain::{HopId, NodeId, Source, Stamp};
use bringup::log::{Line, Masker, Ring};
use bringup::node::{self, Clock, Feed, NodeHandle, NodeSetup, Secrets, SharedLog};
use bringup::ssh::{HopHandle, Keyring, Reply, Reporter, Settings, Target};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

use super::memory;
use super::node::NAME;

/// Bytes kept of the log: as many as the console keeps of each node's.
const RING: usize = 8 << 20;

/// How often the ring is looked at, as a screen would.
const FRAME: Duration = Duration::from_millis(50);

/// Where the lab's keys are.
pub fn keys() -> PathBuf {
    let lab =
        std::env::var_os("BRINGUP_LAB_DIR").map_or_else(|| std::env::temp_dir().join("bringup-lab"), PathBuf::from);
    lab.join("keys")
}

const CONFIG: &str = r#"
[cluster]
name = "bench"
[ssh]
agent = false
[[ssh.jump]]
name = "gate"
host = "10.1.230.180"
[[node]]
name = "spark-2"
role = "head"
address = "192.168.200.13"
fabric_address = "192.168.200.13"
[engine]
kind = "vllm-ray"
[container]
image = "lab/busybox:1"
name = "NAME"
[serve]
model = "none"
"#;

/// What was read of the log.
pub struct Seen {
    /// Numbered lines that the ring took.
    lines: u64,
    /// Held lines that do not carry the number after that of the one before.
    wrong: u64,
    /// Lines that the ring had no room for any more.
    pub dropped: u64,
    pub took: Duration,
    pub at: Instant,
    over_kib: i64,
}

impl Seen {
    /// Lines that never came.
    pub fn lost(&self, printed: u64) -> String {
        if self.wrong == 0 {
            format!("{}", i128::from(printed) - i128::from(self.lines))
        } else {
            format!("{} of those held are out of order", self.wrong)
        }
    }

    /// Most memory beside what the process had before and the ring's limit, in MB.
    pub fn over_mb(&self) -> f64 {
        f64::from(i32::try_from(self.over_kib).unwrap_or(i32::MAX)) * 1024.0 / 1e6
    }
}

/// What the queue told of the node.
#[derive(Clone, Copy, Default)]
struct Told {
    up: Option<Instant>,
    followed: bool,
}

pub struct Console {
    log: SharedLog,
    handle: NodeHandle,
    hop: HopHandle,
    told: watch::Receiver<Told>,
    reader: JoinHandle<()>,
    started: Instant,
    before_kib: u64,
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

fn target(name: &str, host: &str) -> Target {
    Target {
        name: name.to_owned(),
        host: host.to_owned(),
        port: Some(22),
        user: Some("spark".to_owned()),
        keys: vec![keys().join("op").display().to_string()],
        alias: false,
        direct: true,
    }
}

impl Console {
    pub fn start() -> Self {
        memory::forget_peak();
        let before_kib = memory::now();
        let config = Arc::new(config::parse(&CONFIG.replace("NAME", NAME), "bench").expect("a configuration"));
        let settings = Settings {
            ssh_config: None,
            known_hosts: vec![keys().join("known_hosts")],
            host_keys: None,
            agent: None,
            no_agent: true,
            connect_limit: super::PATIENCE,
            interactive: true,
            keyring: Keyring::default(),
        };
        let reporter: Arc<dyn Reporter> = Arc::new(Nobody(Instant::now()));
        let gate = target("gate", "10.1.230.180");
        let hop = HopHandle::start(
            gate,
            None,
            settings.clone(),
            Arc::clone(&reporter),
            Source::Hop(HopId(0)),
        );
        let (feed, mut events) = Feed::new(Clock::start());
        let log: SharedLog = Arc::new(Mutex::new(Ring::new(RING)));
        let handle = node::start(NodeSetup {
            id: NodeId(0),
            target: target("spark-2", "192.168.200.13"),
            via: Some(hop.clone()),
            settings,
            reporter,
            feed,
            log: Arc::clone(&log),
            secrets: Arc::new(Secrets::read(&config, std::path::Path::new("/nonexistent"))),
            masker: Arc::new(Masker::default()),
            rules: Rules::default(),
            config,
        });
        let (tell, told) = watch::channel(Told::default());
        let reader = tokio::spawn(async move {
            while let Some(event) = events.recv().await {
                match event.kind {
                    EventKind::Link(LinkState::Up) => tell.send_modify(|t| t.up = t.up.or(Some(Instant::now()))),
                    EventKind::CommandStarted(start) if start.purpose == Purpose::Log => {
                        tell.send_modify(|t| t.followed = true);
                    }
                    _ => {}
                }
            }
        });
        Self {
            log,
            handle,
            hop,
            told,
            reader,
            started: Instant::now(),
            before_kib,
        }
    }

    /// When the login was done.
    pub async fn until_up(&self, patience: Duration) -> Instant {
        let mut told = self.told.clone();
        let up = tokio::time::timeout(patience, told.wait_for(|t| t.up.is_some())).await;
        up.expect("a connection").expect("the actor lives").up.expect("a time")
    }

    /// Waits until the log is followed.
    pub async fn until_followed(&self, patience: Duration) {
        let mut told = self.told.clone();
        let followed = tokio::time::timeout(patience, told.wait_for(|t| t.followed)).await;
        followed.expect("a followed log").expect("the actor lives");
        // The command is asked for; Docker has it a moment later.
        tokio::time::sleep(Duration::from_secs(1)).await;
    }

    /// Waits for the line with this number, looking as often as a screen.
    pub async fn until(&self, last: u64, patience: Duration) -> Seen {
        let start = Instant::now();
        loop {
            let newest = {
                let log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
                let screen = log.tail(60);
                screen.lines.last().and_then(number)
            };
            if newest == Some(last) || start.elapsed() > patience {
                break;
            }
            tokio::time::sleep(FRAME).await;
        }
        let (at, took) = (Instant::now(), start.elapsed());
        let log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        let held: Vec<Option<u64>> = log.last(log.len()).map(number).collect();
        let wrong = held
            .windows(2)
            .filter(|pair| matches!(pair, [a, b] if a.map(|n| n + 1) != *b))
            .count();
        let ring_kib = i64::try_from(RING / 1024).unwrap_or(0);
        let over = i64::try_from(memory::peak()).unwrap_or(0) - i64::try_from(self.before_kib).unwrap_or(0) - ring_kib;
        Seen {
            lines: log.next_seq(),
            wrong: wrong as u64,
            dropped: log.dropped(),
            took,
            at,
            over_kib: over,
        }
    }

    pub async fn stop(self) {
        self.handle.stop().await;
        self.hop.close().await;
        self.reader.abort();
        println!("<!-- {:.0} s -->", self.started.elapsed().as_secs_f64());
    }
}

fn number(line: &Line) -> Option<u64> {
    line.plain().split_whitespace().next()?.parse().ok()
}
