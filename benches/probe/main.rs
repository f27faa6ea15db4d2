//! What the stream of a node's readings costs the node, against a loop that does next to nothing and, where a path is given, another monitor.
//!
//! `cargo bench --bench probe [-- [SECONDS] [SCRIPT ARGUMENT...]]` runs all of them side by side on this machine, each in a control group of its own, and
//! prints their CPU seconds a minute. It wants root and Linux. `docker` and `nvidia-smi` are those of this machine: what is not here costs nothing.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::panic,
    reason = "a bench stops where it can't measure, and prints what it did"
)]

mod group;

use std::collections::BTreeMap;
use std::io::Read as _;
use std::process::{Command as Process, Stdio};
use std::time::{Duration, Instant};

use bringup::domain::Stamp;
use bringup::domain::event::Subject;
use bringup::probe::node::{self, Ask, stream::Reader};

use group::Group;

/// How long all of them run, unless another time is given.
const SECONDS: u64 = 120;

/// CPU seconds a minute that the stream may cost a node.
const AT_MOST: f64 = 0.6;

/// The same as a share of another monitor's.
const OF_ANOTHER: f64 = 0.3;

/// Longest time for one of the stream's tools.
const LIMIT: Duration = Duration::from_secs(10);

const MARK: &str = "5f3a";

fn main() {
    let mut arguments: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    let seconds = arguments.first().and_then(|a| a.parse().ok());
    if seconds.is_some() {
        arguments.remove(0);
    }
    let seconds = seconds.unwrap_or(SECONDS);
    let ask = Ask {
        docker: "docker",
        container: "vllm-qwen35",
        log: None,
        cache: None,
        ports: &[6379, 8265, 8000],
    };
    let stream = node::watch(ask, MARK, LIMIT).render();
    let mut sides = vec![
        Side::start("the stream of readings", "/bin/sh", &["-c".to_owned(), stream]),
        Side::start(
            "cat /proc/meminfo; sleep 1",
            "/bin/sh",
            &[
                "-c".to_owned(),
                "while :; do cat /proc/meminfo; sleep 1; done".to_owned(),
            ],
        ),
    ];
    if let Some(script) = arguments.first() {
        sides.push(Side::start(&arguments.join(" "), "bash", &arguments));
        println!("another monitor: {script}");
    }
    std::thread::sleep(Duration::from_secs(seconds));
    let cost: Vec<(String, f64, Vec<u8>)> = sides.into_iter().map(Side::end).collect();
    println!("\n| what | CPU s a minute |\n|---|---|");
    for (name, cpu, _) in &cost {
        println!("| {name} | {cpu:.3} |");
    }
    let (ours, said) = (cost[0].1, &cost[0].2);
    println!("\n{}", counted(said));
    println!("at most {AT_MOST}: {}", word(ours <= AT_MOST));
    if let Some((_, other, _)) = cost.get(2) {
        println!(
            "{:.2} x the other monitor, at most {OF_ANOTHER}: {}",
            ours / other,
            word(ours <= other * OF_ANOTHER)
        );
    }
}

fn word(holds: bool) -> &'static str {
    if holds { "holds" } else { "does not hold" }
}

/// How many readings of each subject came, and how many records were torn.
fn counted(said: &[u8]) -> String {
    let mut reader = Reader::new(MARK, LIMIT, Stamp(0));
    let mut readings: BTreeMap<Subject, u32> = BTreeMap::new();
    for reading in reader.feed(said, Stamp(1)) {
        *readings.entry(reading.what).or_default() += 1;
    }
    format!("readings {readings:?}, torn {}, {} bytes", reader.torn(), said.len())
}

/// One of those that are compared.
struct Side {
    name: String,
    group: Group,
    begun: Instant,
    out: std::thread::JoinHandle<Vec<u8>>,
    child: std::process::Child,
}

impl Side {
    fn start(name: &str, program: &str, arguments: &[String]) -> Self {
        let group = Group::make(name);
        // The shell joins the group before it becomes the program.
        let join = format!("echo $$ >{}/cgroup.procs && exec \"$0\" \"$@\"", group.path().display());
        let mut child = Process::new("setsid")
            .args(["/bin/sh", "-c", &join, program])
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut stdout = child.stdout.take().unwrap();
        let out = std::thread::spawn(move || {
            let mut all = Vec::new();
            let _ = stdout.read_to_end(&mut all);
            all
        });
        Self {
            name: name.to_owned(),
            group,
            begun: Instant::now(),
            out,
            child,
        }
    }

    /// Ends it; its name, its CPU seconds a minute, and what it printed.
    fn end(mut self) -> (String, f64, Vec<u8>) {
        let used = self.group.cpu().as_secs_f64();
        let minutes = self.begun.elapsed().as_secs_f64() / 60.0;
        self.group.end();
        let _ = self.child.wait();
        let out = self.out.join().unwrap();
        (self.name, used / minutes, out)
    }
}
