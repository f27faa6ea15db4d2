//! The console as a library in the operator's network: a job runs this test's own binary again, as `operator::console`, and reads what it writes.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bringup::config;
use bringup::diagnose::Rules;
use bringup::domain::event::Subject;
use bringup::domain::link::LinkState;
use bringup::domain::{NodeId, Stamp};
use bringup::drive;
use bringup::log::Stream;
use bringup::model::Options;
use bringup::model::State;
use bringup::model::ray::members::{Standing, members};
use bringup::model::schedule::{every, ray_every};

use super::hosts::{self, Lab, wait_for};

/// Names the folder in which the console finds its configuration and writes what it sees.
const FOLDER: &str = "BRINGUP_LAB_OPERATOR";

/// Longest wait for something that the console writes at its next step.
const SOON: Duration = Duration::from_secs(20);

/// A longest step from which on each longer one is written: the loop has a tick four times a second.
const SLOW_STEP: Duration = Duration::from_secs(1);

/// What the job's half holds of the running console.
pub struct Operator {
    child: Child,
    folder: PathBuf,
}

/// Something that changed on the console.
#[derive(Debug)]
pub struct Change {
    /// Milliseconds since 1970.
    pub at: u64,
    /// What: `hop 0`, `node 1`, `container 1`, `ray 1`, `ray from`, `step`.
    pub key: String,
    /// How it stands now.
    pub value: String,
}

impl Operator {
    /// Starts it with a configuration.
    pub fn start(lab: &Lab, name: &str, config: &str) -> Self {
        let folder = lab.home.path().join(name);
        std::fs::create_dir(&folder).unwrap();
        let keys = hosts::directory().join("keys");
        let text = config.replace("@KEYS@", keys.to_str().unwrap());
        std::fs::write(folder.join("lab.toml"), text).unwrap();
        let own = std::env::current_exe().unwrap();
        let said = std::fs::File::create(folder.join("said")).unwrap();
        let child = hosts::script(&[
            "op",
            own.to_str().unwrap(),
            "--exact",
            "operator::console",
            "--nocapture",
        ])
        .env(FOLDER, &folder)
        .env_remove("BRINGUP_LAB")
        .stdout(Stdio::from(said.try_clone().unwrap()))
        .stderr(Stdio::from(said))
        .spawn()
        .unwrap();
        Self { child, folder }
    }

    /// All changes so far.
    pub fn changes(&self) -> Vec<Change> {
        let text = std::fs::read_to_string(self.folder.join("journal")).unwrap_or_default();
        // The last line may be half written.
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let change = |line: &str| {
            let mut parts = line.splitn(3, '\t');
            let mut next = || parts.next().unwrap().to_owned();
            Change {
                at: next().parse().unwrap(),
                key: next(),
                value: next(),
            }
        };
        whole.lines().map(change).collect()
    }

    /// Waits until something stands like this, from a moment on, and gives that change. Fails with the changes of the thing since then.
    pub fn wait(&self, key: &str, value: &str, since: u64, limit: Duration) -> Change {
        wait_for(limit, &format!("{key} is {value}"), || {
            let mut seen: Vec<Change> = self.changes().into_iter().filter(|c| c.key == key).collect();
            let found = seen.iter().position(|c| c.at >= since && c.value.starts_with(value));
            match found {
                Some(found) => Ok(seen.swap_remove(found)),
                None => {
                    seen.retain(|c| c.at >= since);
                    Err(format!("{seen:?}\n{}", self.said()))
                }
            }
        })
    }

    /// How something stands.
    pub fn now(&self, key: &str) -> String {
        let last = self.changes().into_iter().rfind(|c| c.key == key);
        last.map(|c| c.value).unwrap_or_default()
    }

    /// The lines of a node's log, each behind its stream.
    pub fn lines(&self, node: u16) -> Vec<String> {
        let file = self.folder.join(format!("lines.{node}"));
        let _none = std::fs::remove_file(&file);
        std::fs::write(self.folder.join(format!("ask.{node}")), "").unwrap();
        let text = wait_for(SOON, "the console's lines", || {
            std::fs::read_to_string(&file).map_err(|e| format!("{e}: {}", self.said()))
        });
        text.lines().map(str::to_owned).collect()
    }

    /// What it printed.
    fn said(&self) -> String {
        std::fs::read_to_string(self.folder.join("said")).unwrap_or_default()
    }

    /// Ends it; it must end well.
    pub fn stop(mut self) {
        std::fs::write(self.folder.join("stop"), "").unwrap();
        let status = wait_for(SOON, "the console ends", || {
            self.child.try_wait().unwrap().ok_or_else(|| self.said())
        });
        assert!(status.success(), "{}", self.said());
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        // After a failure; else it has ended.
        let _gone = self.child.kill();
        let _gone = self.child.wait();
    }
}

/// Milliseconds since 1970.
pub fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    u64::try_from(now.as_millis()).unwrap()
}

/// The console's half.
#[test]
fn console() {
    let Some(folder) = std::env::var_os(FOLDER) else {
        println!("left out: a job of the lab runs it");
        return;
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(watch(Path::new(&folder)));
}

async fn watch(folder: &Path) {
    let text = std::fs::read_to_string(folder.join("lab.toml")).unwrap();
    let config = config::parse(&text, "lab.toml").unwrap_or_else(|all| panic!("{all:?}"));
    let nodes = config.node_ids().collect::<Vec<_>>();
    let mut console = drive::Console::start(drive::Setup {
        known_hosts: config.ssh.known_hosts.iter().map(PathBuf::from).collect(),
        results: folder.join("results"),
        loads: folder.join("loads.json"),
        home: folder.to_owned(),
        options: Options { no_probe: false },
        interactive: false,
        rules: Rules::default(),
        notes: Vec::new(),
        config: Arc::new(config),
    })
    .unwrap();
    let mut journal = std::fs::File::create(folder.join("journal")).unwrap();
    let mut last: BTreeMap<String, String> = BTreeMap::new();
    let mut slowest = SLOW_STEP;
    while !folder.join("stop").exists() {
        let began = Instant::now();
        console.step().await;
        let mut seen = stands(&console, &nodes);
        if began.elapsed() > slowest {
            slowest = began.elapsed();
            seen.push(("step".to_owned(), slowest.as_millis().to_string()));
        }
        let mut news = String::new();
        for (key, value) in seen {
            if last.get(&key) != Some(&value) {
                writeln!(news, "{}\t{key}\t{}", now_ms(), value.replace('\n', " ")).unwrap();
                last.insert(key, value);
            }
        }
        journal.write_all(news.as_bytes()).unwrap();
        for node in &nodes {
            if std::fs::remove_file(folder.join(format!("ask.{}", node.0))).is_ok() {
                write_lines(&console, *node, folder);
            }
        }
    }
    console.shutdown().await;
}

/// The state of every connection, and of what is known of the nodes.
fn stands(console: &drive::Console, nodes: &[NodeId]) -> Vec<(String, String)> {
    let (state, now) = (console.state(), console.now().stamp);
    let hops = state.hops.iter().enumerate();
    let mut all: Vec<_> = hops.map(|(n, link)| (format!("hop {n}"), word(link))).collect();
    for node in nodes {
        let Some(seen) = state.observed.node(*node) else {
            continue;
        };
        all.push((format!("node {}", node.0), word(&seen.link)));
        let containers = match seen.containers.reason() {
            Some(why) => format!("absent: {why}"),
            None if seen.containers.stale(now, every(state, *node, Subject::Containers)) => "stale".to_owned(),
            None => "fresh".to_owned(),
        };
        all.push((format!("container {}", node.0), containers));
        let problems = state.nodes.get(node.index()).map(|n| n.problems.as_slice());
        let problems: Vec<_> = problems.unwrap_or_default().iter().map(|p| p.text.clone()).collect();
        all.push((format!("problems {}", node.0), problems.join("; ")));
    }
    all.extend(membership(state, now));
    all
}

/// Where Ray's membership comes from, and how each node stands in it. What is stale is told as nothing.
fn membership(state: &State, now: Stamp) -> Vec<(String, String)> {
    let ray = &state.observed.ray;
    let Some(facts) = ray.value().filter(|r| !ray.stale(now, ray_every(r.via))) else {
        return vec![("ray from".to_owned(), "nothing".to_owned())];
    };
    let mut all = vec![("ray from".to_owned(), facts.via.word().to_owned())];
    for member in members(state).unwrap_or_default() {
        let mut text = member.standing.word().to_owned();
        if let Standing::Elsewhere(node) = member.standing {
            write!(text, " {}", node.address).unwrap();
        }
        if let Some(silent) = member.silent {
            write!(text, ", {}", silent.by.says()).unwrap();
        }
        all.push((format!("ray {}", member.id.0), text));
    }
    all
}

fn word(link: &LinkState) -> String {
    match link {
        LinkState::Idle => "idle".to_owned(),
        LinkState::Connecting => "connecting".to_owned(),
        LinkState::Asking => "asking".to_owned(),
        LinkState::Up => "up".to_owned(),
        LinkState::Silent { .. } => "silent".to_owned(),
        LinkState::Down { error, .. } => format!("down: {}", error.text),
    }
}

fn write_lines(console: &drive::Console, node: NodeId, folder: &Path) {
    let windows = console.windows(&[(node, None, usize::MAX >> 1)]);
    let window = windows.0.get(&node).unwrap();
    assert_eq!(window.dropped, 0, "the ring holds the whole job");
    let mut text = String::new();
    for line in &window.lines {
        let stream = match line.stream {
            Stream::Out => 1,
            Stream::Err => 2,
        };
        writeln!(text, "{stream} {}", line.plain()).unwrap();
    }
    let (part, whole) = (folder.join("part"), folder.join(format!("lines.{}", node.0)));
    std::fs::write(&part, text).unwrap();
    std::fs::rename(part, whole).unwrap();
}
