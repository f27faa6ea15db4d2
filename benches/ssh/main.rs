//! bringup's SSH against OpenSSH's own client, on real `sshd`s on loopback: one jump host and up to 64 nodes at addresses of their own behind it.
//!
//! Both sides do each job in turn, several times; the table gives the medians and their ratio. It wants root (for the addresses' `sshd`s) and Linux
//! (for `/proc`). `cargo bench --bench ssh` runs all of it, `cargo bench --bench ssh -- warm bulk` some, and `-- docker` reads a container's log in a lab
//! that is up (tests/lab/README.md). docs/performance.md says how to read it.

#![expect(clippy::expect_used, reason = "a bench ends where it can go no further")]
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "its table is what it is run for"
)]

mod docker;
mod measure;
mod openssh;
mod ours;
mod servers;

use std::time::Duration;

use measure::{Bound, Row, median, table};
use openssh::OpenSsh;
use ours::Ours;
use servers::{BULK_LINES, NODES, Servers};

/// Runs of each side where one takes long.
const RUNS: usize = 5;

/// Runs of each side where one takes milliseconds.
const QUICK_RUNS: usize = 25;

fn main() {
    let asked: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    let wanted = |name: &str| asked.is_empty() || asked.iter().any(|a| a == name);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        if asked == ["docker"] {
            print!("{}", table(&docker::row().await));
            return;
        }
        let servers = Servers::start().await;
        let theirs = OpenSsh::new(servers.place(), servers.folder.path());
        let ours = Ours::new(servers.place());
        let mut rows = Vec::new();
        // First: what other jobs leave to this process would hide what a node needs.
        if wanted("memory") {
            rows.push(memory(&ours, &theirs).await);
        }
        if wanted("connect") {
            rows.push(connect(&ours, &theirs).await);
        }
        if wanted("jump") {
            rows.push(behind_a_jump_that_is_up(&ours, &theirs).await);
        }
        if wanted("warm") {
            rows.push(warm(&ours, &theirs).await);
        }
        if wanted("bulk") {
            rows.extend(bulk(&ours, &theirs, &servers.print_bulk(), "of a file").await);
        }
        if wanted("lines") {
            rows.extend(bulk(&ours, &theirs, &servers.print_lines(), "written one by one").await);
        }
        if wanted("nodes") {
            rows.push(all_nodes(&ours).await);
        }
        print!("{}", table(&rows));
    });
}

async fn connect(ours: &Ours, theirs: &OpenSsh) -> Row {
    let (mut a, mut b) = (Vec::new(), Vec::new());
    for _ in 0..RUNS * 2 {
        a.push(ours.connect_and_run().await.as_secs_f64());
        b.push(theirs.connect_and_run().await.as_secs_f64());
    }
    Row::ratio(
        "connect to a node behind the jump and run `true`",
        "s",
        median(a),
        median(b),
        Bound::Ratio(0.5),
    )
}

async fn behind_a_jump_that_is_up(ours: &Ours, theirs: &OpenSsh) -> Row {
    let hop = ours.hop();
    ours.run_through(&hop).await;
    let master = theirs.master(&theirs.jump()).await;
    let (mut a, mut b) = (Vec::new(), Vec::new());
    for _ in 0..RUNS * 2 {
        a.push(ours.run_through(&hop).await.as_secs_f64());
        b.push(theirs.run_through(&master).await.as_secs_f64());
    }
    master.end().await;
    Row::ratio(
        "the same with the jump already up",
        "s",
        median(a),
        median(b),
        Bound::Ratio(0.5),
    )
}

async fn warm(ours: &Ours, theirs: &OpenSsh) -> Row {
    let hop = ours.hop();
    let session = ours.session(0, &hop).await;
    let master = theirs.master(&theirs.node(0)).await;
    ours.run(&session).await;
    let (mut a, mut b) = (Vec::new(), Vec::new());
    for _ in 0..QUICK_RUNS {
        a.push(ours.run(&session).await.as_secs_f64());
        b.push(theirs.run_on(&master).await.as_secs_f64());
    }
    master.end().await;
    Row::ratio(
        "a command on a warm connection, against ControlMaster",
        "s",
        median(a),
        median(b),
        Bound::Ratio(0.5),
    )
}

/// Reads two million lines through either.
async fn bulk(ours: &Ours, theirs: &OpenSsh, words: &[String], of_what: &str) -> Vec<Row> {
    let (mut a, mut b, mut a_cpu, mut b_cpu) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..RUNS {
        let ours = ours.count_lines(words).await;
        assert_eq!((ours.lines, ours.dropped), (BULK_LINES, 0), "every line is counted");
        a.push(ours.took.as_secs_f64());
        a_cpu.push(ours.cpu.as_secs_f64());
        let theirs = theirs.count_lines(words).await;
        assert_eq!(theirs.lines, BULK_LINES);
        b.push(theirs.took.as_secs_f64());
        b_cpu.push(theirs.cpu.as_secs_f64());
    }
    vec![
        Row::ratio(
            &format!("2 million lines (188 MB) {of_what}, connect and count: client CPU"),
            "s",
            median(a_cpu),
            median(b_cpu),
            Bound::Ratio(0.5),
        ),
        Row::ratio("the same: time", "s", median(a), median(b), Bound::Ratio(1.0)),
    ]
}

async fn all_nodes(ours: &Ours) -> Row {
    let mut took = Vec::new();
    let mut failures = 0;
    for _ in 0..RUNS {
        let run = ours.connect_and_probe_all(NODES).await;
        took.push(run.took.as_secs_f64());
        failures += run.failures;
    }
    let name = format!("{NODES} nodes connected and probed once, {failures} failures in {RUNS} runs");
    Row::alone(&name, "s", median(took), Bound::Most(5.0), failures == 0)
}

async fn memory(ours: &Ours, theirs: &OpenSsh) -> Row {
    let a = ours.memory_of_idle(NODES).await;
    let b = theirs.memory_of_idle(NODES).await;
    Row::ratio(
        "memory (PSS) of an idle node, 64 through one jump",
        "KiB",
        a,
        b,
        Bound::Ratio(0.1),
    )
}

/// Longest wait for anything here.
const PATIENCE: Duration = Duration::from_secs(120);
