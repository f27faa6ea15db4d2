//! What the console's own follower makes of a container that floods, on a node of the lab with a real Docker engine: the node's actor behind a jump host, its
//! ring, and a queue that is read as the console reads it.
//!
//! Run it as the lab's operator: `lab.sh up bare`, then `lab.sh op cargo bench --bench logs`. docs/performance.md says how to read the table.

#![expect(clippy::expect_used, reason = "a bench ends where it can go no further")]
#![expect(clippy::print_stdout, reason = "its table is what it is run for")]

mod console;
mod memory;
mod node;

use std::time::{Duration, Instant};

use console::Console;
use node::{Flood, Node};

/// Lines of a container that prints at a steady pace: 10 000 a second for 30 s.
const STEADY: u64 = 300_000;

/// Lines of a container that prints as fast as it can, and of one that has printed already.
const MANY: u64 = 2_000_000;

/// Longest wait for the last line.
const PATIENCE: Duration = Duration::from_secs(300);

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let node = Node::of_the_lab();
        println!(
            "| what | lines lost | dropped by the ring | time | memory over the ring's limit |\n|---|---|---|---|---|"
        );
        steady(&node).await;
        flood(&node).await;
        old(&node).await;
        node.remove();
    });
}

async fn steady(node: &Node) {
    let console = waiting(node).await;
    node.release(Flood::Steady);
    let seen = console.until(STEADY, PATIENCE).await;
    print("10 000 lines a second for 30 s", STEADY, &seen);
    console.stop().await;
}

async fn flood(node: &Node) {
    let console = waiting(node).await;
    node.release(Flood::Fast);
    let seen = console.until(MANY, PATIENCE).await;
    print("2 million lines as fast as it can", MANY, &seen);
    console.stop().await;
}

/// A console that follows a container which has printed nothing yet.
async fn waiting(node: &Node) -> Console {
    node.prepare();
    let console = Console::start();
    console.until_followed(PATIENCE).await;
    console
}

async fn old(node: &Node) {
    node.prepare();
    node.release(Flood::Fast);
    node.until_printed(MANY, PATIENCE);
    let start = Instant::now();
    let console = Console::start();
    let up = console.until_up(PATIENCE).await;
    let seen = console.until(MANY, PATIENCE).await;
    let (all, after) = (start.elapsed(), seen.at.duration_since(up));
    println!(
        "| a container that holds 2 million lines: its last line in the pane | - | - | {:.2} s after the login, {:.2} s after the start | {:.1} MB |",
        after.as_secs_f64(),
        all.as_secs_f64(),
        seen.over_mb()
    );
    console.stop().await;
}

fn print(what: &str, lines: u64, seen: &console::Seen) {
    println!(
        "| {what} | {} | {} | {:.1} s | {:.1} MB |",
        seen.lost(lines),
        seen.dropped,
        seen.took.as_secs_f64(),
        seen.over_mb()
    );
}
