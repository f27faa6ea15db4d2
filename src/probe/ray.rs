//! The Ray probe: one long-lived Python in the head's container asks the GCS who is a member.
//!
//! It is the way where the dashboard does not run. A start of Python with Ray in it costs about a second of a core, an asking next to nothing, so it is
//! started once and prints a record a time: `@ray BYTES JSON`, a line each.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::domain::command::{Command, Output, quote};
use crate::domain::event::{Facts, Subject};
use crate::domain::problem::Problem;
use crate::domain::ray::{RayFacts, RayNode, RayVia};

use super::members::{self, MAX_GROUPS};
use super::{Found, absent, code, docker, failure, not_there, short};

/// Id of the script.
pub const ID: &str = "probe.ray";

/// From one record to the next.
pub const EVERY: Duration = Duration::from_secs(3);

/// Silence of its input after which the program ends: three and a half of the beats in `ray.sh`.
const SILENCE: Duration = Duration::from_secs(35);

/// Longest life of the program; another one is started then. A program that grows does not grow for ever.
const LIFE: Duration = Duration::from_secs(3600);

/// Longest line; a longer one is dropped.
pub const MAX_LINE: usize = 1 << 20;

/// First characters of a record.
const MARK: &[u8] = b"@ray ";

/// Exit code of the Python program when an asking took too long: it is ended by SIGALRM.
const ALARM_CODE: u32 = 128 + 14;

/// Follows Ray in a container; `port` is the GCS's, `limit` the longest time of one asking.
#[must_use]
pub fn command(docker: &str, container: &str, port: u16, limit: Duration) -> Command {
    let body = format!(
        "program={}\n{}",
        quote(include_str!("ray_nodes.py")),
        include_str!("ray.sh")
    );
    let seconds = |d: Duration| d.as_secs().max(1).to_string();
    let args = vec![
        docker.to_owned(),
        container.to_owned(),
        port.to_string(),
        seconds(limit),
        seconds(EVERY),
        seconds(SILENCE),
        seconds(LIFE),
    ];
    Command::script(ID, body, args, limit).follow()
}

/// What the Python program prints.
#[derive(Deserialize)]
struct Printed {
    ray: Option<String>,
    python: Option<String>,
    nodes: Vec<Node>,
    groups: Option<Vec<Value>>,
    groups_error: Option<String>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    address: String,
    alive: bool,
    #[serde(default)]
    resources: Map<String, Value>,
    message: Option<String>,
    #[serde(default)]
    started: u64,
    #[serde(default)]
    ended: u64,
}

/// Takes records out of the program's output, however it is cut.
#[derive(Debug, Default)]
pub struct Reader {
    line: Vec<u8>,
    overlong: bool,
}

impl Reader {
    /// Takes bytes; gives what the records say that they complete.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<RayFacts> {
        let mut found = Vec::new();
        for piece in bytes.split_inclusive(|b| *b == b'\n') {
            let (text, whole) = match piece.split_last() {
                Some((b'\n', text)) => (text, true),
                Some(_) | None => (piece, false),
            };
            if self.line.len() + text.len() > MAX_LINE {
                self.overlong = true;
                self.line.clear();
            }
            if !self.overlong {
                self.line.extend_from_slice(text);
            }
            if whole {
                let line = std::mem::take(&mut self.line);
                if !std::mem::take(&mut self.overlong) {
                    found.extend(record(&line));
                }
            }
        }
        found
    }

    /// Bytes were lost: the line that they belong to is none.
    pub fn lost(&mut self) {
        self.overlong = true;
        self.line.clear();
    }
}

/// A line that is a whole record. What others print beside it is none.
fn record(line: &[u8]) -> Option<RayFacts> {
    let rest = line.strip_prefix(MARK)?;
    let blank = rest.iter().position(|b| *b == b' ')?;
    let (bytes, json) = rest.split_at_checked(blank)?;
    let json = json.strip_prefix(b" ")?;
    let bytes: usize = std::str::from_utf8(bytes).ok()?.parse().ok()?;
    if json.len() != bytes {
        return None;
    }
    let printed: Printed = serde_json::from_slice(json).ok()?;
    let pending = printed
        .groups
        .as_ref()
        .map(|list| list.iter().filter_map(members::group).take(MAX_GROUPS).collect());
    Some(RayFacts {
        nodes: members::bounded(printed.nodes.into_iter().map(node).collect()),
        via: RayVia::Container,
        version: printed.ray.as_deref().map(short),
        python: printed.python.as_deref().map(short),
        pending_unknown: match (&pending, printed.groups_error) {
            (Some(_), _) => None,
            (None, Some(why)) => Some(short(&why)),
            (None, None) => Some("this version of Ray does not tell".to_owned()),
        },
        pending: pending.unwrap_or_default(),
    })
}

fn node(seen: Node) -> RayNode {
    let mut node = RayNode {
        id: short(&seen.id),
        address: short(&seen.address),
        alive: seen.alive,
        message: seen.message.filter(|m| !m.is_empty()).as_deref().map(short),
        started_ms: Some(seen.started).filter(|ms| *ms > 0),
        ended_ms: Some(seen.ended).filter(|ms| *ms > 0),
        ..RayNode::default()
    };
    members::count(&mut node, Some(&seen.resources));
    node
}

/// Reads a whole output: its last record, else why there is none.
#[must_use]
pub fn parse(output: &Output) -> Found {
    if let Some(ray) = Reader::default().feed(&output.stdout).pop() {
        return (vec![Facts::Ray(ray)], Vec::new());
    }
    let said = format!("{}\n{}", output.text(), output.error_text());
    if docker::not_running(&said) {
        return not_there(Subject::Ray, "the head's container does not run");
    }
    if code(output) == Some(ALARM_CODE) {
        return absent(Subject::Ray, Problem::warning("Ray does not answer in time"));
    }
    if said.contains("nothing listens at") {
        return not_there(Subject::Ray, "Ray does not listen in the head's container");
    }
    let problem = docker::refusal(&said, code(output)).unwrap_or_else(|| {
        if said.contains("python3") && said.contains("not found") {
            Problem::error("python3 is not in the container")
        } else if said.contains("No module named 'ray'") {
            Problem::error("Ray is not in the container").with_fix("use an image that holds Ray")
        } else {
            let why = failure(output).unwrap_or_else(|| "no answer that can be read".to_owned());
            Problem::warning(format!("Ray could not be asked: {why}"))
        }
    });
    absent(Subject::Ray, problem)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &[u8] = b"@ray 92 {\"nodes\": [{\"id\": \"af92\", \"address\": \"10.0.0.1\", \"alive\": true, \"resources\": {\"GPU\": 1.0}}]}\n";

    #[test]
    fn a_record_comes_out_however_it_is_cut_and_a_part_of_one_never() {
        for at in 0..LINE.len() {
            let mut reader = Reader::default();
            let (first, second) = LINE.split_at(at);
            assert_eq!(reader.feed(first), []);
            let found = reader.feed(second);
            assert_eq!(found.len(), 1, "cut at {at}");
            assert_eq!(
                (found[0].nodes[0].address.as_str(), found[0].nodes[0].gpus),
                ("10.0.0.1", 1.0)
            );
            if at + 1 < LINE.len() {
                assert_eq!(Reader::default().feed(&[first, b"\n"].concat()), [], "torn at {at}");
            }
        }
    }

    #[test]
    fn what_is_lost_or_too_long_takes_only_its_own_record_along() {
        let mut reader = Reader::default();
        assert_eq!(reader.feed(&LINE[..50]), []);
        reader.lost();
        assert_eq!(reader.feed(&LINE[60..]), []);
        assert_eq!(reader.feed(LINE).len(), 1);
        assert_eq!(reader.feed(&vec![b'x'; MAX_LINE + 1]), []);
        assert_eq!(reader.feed(b"\n"), []);
        assert_eq!(reader.feed(LINE).len(), 1);
    }
}
