//! `ray status`: the last resort. It counts nodes and can't say which, some versions go on counting dead ones, and a call costs seconds of a core.
//!
//! The text has changed over the years: *Healthy* became *Active* and *Idle*, *Usage* became *Total Usage*, *Demands* became *Pending Demands*. Only what
//! stands before the details of single nodes (`-v`) is read.

use std::time::Duration;

use crate::domain::command::{Command, Output};
use crate::domain::event::{Facts, Subject};
use crate::domain::problem::Problem;
use crate::domain::ray::{RayStatus, StatusFailure, is_device};

use super::{Found, absent, code, docker, failure, not_there, plain, short};

/// Id of the script.
pub const ID: &str = "probe.ray-status";

/// Lines kept of failures and of demands, each.
const MAX_LINES: usize = 32;

/// Exit code of `timeout -s KILL` when the time is over.
const KILLED_CODE: u32 = 128 + 9;

/// Seconds that the program in the container has more than the command: the command's own limit is what should be told.
const GRACE: u64 = 2;

/// Asks in a container; `port` is the GCS's. Without an address the program looks for a Ray of its own and fails with a traceback where it finds none.
#[must_use]
pub fn command(docker: &str, container: &str, port: u16, limit: Duration) -> Command {
    let body = "exec $1 exec \"$2\" timeout -s KILL \"$4\" ray status --address=\"127.0.0.1:$3\"\n";
    let seconds = limit.as_secs().max(1).saturating_add(GRACE).to_string();
    let args = vec![docker.to_owned(), container.to_owned(), port.to_string(), seconds];
    Command::script(ID, body, args, limit)
}

/// Reads the answer.
#[must_use]
pub fn parse(output: &Output) -> Found {
    let text = plain(output);
    match status(&text) {
        Some(status) => return (vec![Facts::RayStatus(status)], Vec::new()),
        None if output.exit.ok() => {
            return absent(
                Subject::RayStatus,
                Problem::warning("ray status printed nothing that can be read"),
            );
        }
        None => {}
    }
    let said = format!("{text}\n{}", output.error_text());
    if docker::not_running(&said) {
        return not_there(Subject::RayStatus, "the head's container does not run");
    }
    let has = |words: &str| said.contains(words);
    let unreachable = [
        "Failed to connect to GCS",
        "waiting for GCS to become available",
        "failed to connect to all addresses",
        "Could not find any running Ray instance",
        "canonicalize_bootstrap_address_or_die",
    ];
    if unreachable.into_iter().any(has) {
        return not_there(Subject::RayStatus, "Ray's GCS can't be reached in the head's container");
    }
    let problem = docker::refusal(&said, code(output)).unwrap_or_else(|| {
        if code(output) == Some(KILLED_CODE) {
            Problem::warning("ray status does not answer in time")
        } else if has("not found") || has("No module named 'ray'") {
            Problem::error("ray is not in the container")
        } else {
            let why = failure(output).unwrap_or_else(|| "no answer that can be read".to_owned());
            Problem::warning(format!("ray status failed: {why}"))
        }
    });
    absent(Subject::RayStatus, problem)
}

/// Parts of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Other,
    Nodes,
    Failures,
    Usage,
    Demands,
}

/// Reads the text; `None` unless it is there from the nodes to the demands, so that a part of it is never taken for all.
#[must_use]
pub fn status(text: &str) -> Option<RayStatus> {
    let (mut found, mut part) = (RayStatus::default(), Part::Other);
    let (mut nodes, mut demands) = (false, false);
    for line in text.lines() {
        if line.starts_with("Node: ") {
            break;
        }
        let indented = line.starts_with([' ', '\t']);
        let line = line.trim();
        if !indented {
            let heading = line.strip_suffix(':').unwrap_or_default();
            part = match heading {
                "Healthy" | "Active" | "Idle" => Part::Nodes,
                "Recent failures" => Part::Failures,
                "Usage" | "Total Usage" => Part::Usage,
                "Demands" | "Total Demands" | "Pending Demands" => Part::Demands,
                _ => Part::Other,
            };
            nodes |= part == Part::Nodes;
            demands |= part == Part::Demands;
            continue;
        }
        // `(no failures)`, `(none)`
        if line.is_empty() || line.starts_with('(') {
            continue;
        }
        match part {
            Part::Nodes => found.nodes = found.nodes.saturating_add(many(line)),
            Part::Failures if found.failures.len() < MAX_LINES => found.failures.push(lost(line)),
            Part::Usage => usage(&mut found, line),
            Part::Demands if found.demands.len() < MAX_LINES => found.demands.push(short(line)),
            Part::Failures | Part::Demands | Part::Other => {}
        }
    }
    (nodes && demands).then_some(found)
}

/// `2 p3.2xlarge`, `1 node_af92…`
fn many(line: &str) -> usize {
    let first = line.split_ascii_whitespace().next();
    first.and_then(|n| n.parse().ok()).unwrap_or(0)
}

/// `p3.2xlarge: RayletUnexpectedlyDied (ip: 1.2.3.6)`
fn lost(line: &str) -> StatusFailure {
    let address = line.split_once("(ip: ").and_then(|(_, rest)| rest.split_once(')'));
    let text = line.split_once(": ").map_or(line, |(_, text)| text);
    let text = text.split_once(" (ip: ").map_or(text, |(text, _)| text);
    StatusFailure {
        text: short(text),
        address: address.map(|(address, _)| short(address)),
    }
}

/// `0.7/1 GPU`, `2.0/2.0 GPU (2.0 used of 2.0 reserved in placement groups)`, `0/8 neuron_cores`, `0.0/1.0 accelerator_type:G`
fn usage(found: &mut RayStatus, line: &str) {
    let mut words = line.split_ascii_whitespace();
    let (Some(amounts), Some(name)) = (words.next(), words.next()) else {
        return;
    };
    let number = |text: &str| text.parse::<f64>().ok().filter(|n| n.is_finite());
    let Some((used, all)) = amounts
        .split_once('/')
        .and_then(|(u, a)| Some((number(u)?, number(a)?)))
    else {
        return;
    };
    if name == "GPU" {
        found.gpus = Some((used, all));
    } else if is_device(name) && found.devices.len() < MAX_LINES {
        found.devices.push((name.to_owned(), all));
    }
}
