//! What the console shows of a peer that falls silent and of a reset, and that it comes back by itself.
//!
//! The times are the console's own promises. A machine that is busy is late by [`LATE`]; nothing here fails for less.

use std::time::Duration;

use super::hosts::{Lab, wait_for};
use super::operator::{Change, Operator, now_ms};
use super::resume::{BACK, TWO, both_up, fault, start_container, stop_container};

/// How late a busy machine may be.
const LATE: Duration = Duration::from_secs(10);

/// Silence is shown within this.
const SHOWN: Duration = Duration::from_secs(4);

/// A silent peer is given up after this.
const GIVEN_UP: Duration = Duration::from_secs(15);

/// Three periods of a probe and its longest wait for an answer.
const STALE: Duration = Duration::from_secs(40);

/// Longest step of the console's loop under all of this.
const STEP: u64 = 5000;

fn container(operator: &Operator, limit: Duration, fresh: bool) {
    wait_for(limit, "the container's state", || {
        let now = operator.now("container 0");
        if (now == "fresh") == fresh { Ok(()) } else { Err(now) }
    });
}

/// Silence, the give-up, a reset, a frozen engine, a long line, a host without power.
pub fn shown(lab: &Lab) {
    start_container(lab, "1m", "2");
    let operator = Operator::start(lab, "links", TWO);
    both_up(&operator);
    container(&operator, BACK, true);

    let since = now_ms();
    fault(&["blackhole", "spark1", "22"]);
    operator.wait("node 0", "silent", since, SHOWN + LATE);
    container(&operator, STALE, false);
    let down = operator.wait("node 0", "down", since, GIVEN_UP + LATE);
    assert!(down.value.contains("said nothing for 15"), "{down:?}");
    assert_eq!(operator.now("node 1"), "up", "the other node has nothing to do with it");
    fault(&["clear"]);
    both_up(&operator);
    container(&operator, BACK, true);
    lab.say("  silence");

    let since = now_ms();
    fault(&["sshd-drop", "spark1"]);
    operator.wait("node 0", "down", since, LATE);
    both_up(&operator);
    container(&operator, BACK, true);
    lab.say("  reset");

    fault(&["docker-freeze", "spark1"]);
    container(&operator, STALE, false);
    assert_eq!(operator.now("node 0"), "up", "the host itself is well");
    fault(&["docker-thaw", "spark1"]);
    container(&operator, BACK, true);
    lab.say("  a frozen engine");

    // A reading that is asked for and answered while every packet is late.
    let since = now_ms();
    fault(&["delay", "spark1:enp1s0f1np1", "400", "100"]);
    fault(&["docker-freeze", "spark1"]);
    operator.wait("container 0", "stale", since, STALE);
    fault(&["docker-thaw", "spark1"]);
    operator.wait("container 0", "fresh", since, BACK);
    let lost = |change: &Change| change.key == "node 0" && change.at >= since && change.value != "up";
    let changes = operator.changes();
    assert!(!changes.iter().any(lost), "a long line is no lost one: {changes:?}");
    fault(&["clear"]);
    lab.say("  delayed packets");

    let since = now_ms();
    fault(&["power-off", "spark2"]);
    operator.wait("node 1", "silent", since, SHOWN + LATE);
    let down = operator.wait("node 1", "down", since, GIVEN_UP + LATE);
    assert!(down.value.contains("said nothing for 15"), "{down:?}");
    assert_eq!(operator.now("node 0"), "up", "the other node has nothing to do with it");
    fault(&["power-on", "spark2"]);
    both_up(&operator);
    lab.say("  a host without power");

    let slowest: u64 = operator.now("step").parse().unwrap_or(0);
    assert!(slowest < STEP, "the loop stood still for {slowest} ms");
    operator.stop();
    stop_container(lab);
    lab.on("spark1", "docker rm vllm-qwen35");
}
