//! A node's log as JSON: how much of it there is, what it is read from, and how the container that wrote it ended.

use serde_json::{Value, json};

use crate::domain::Stamp;
use crate::domain::logs::{ContainerEnd, LogSource, Older};
use crate::model::state::NodeView;

use super::reading::{Fields, at_least, seconds, sure};

/// The log of a node, which was heard last at `heard`.
pub(super) fn log(view: &NodeView, at: Stamp, heard: Stamp) -> Value {
    json!({
        "lines": view.log.lines(),
        "dropped": view.log.dropped,
        "lost_bytes": view.log.flow.lost,
        "older_not_read": view.log.flow.older.map(|_| true),
        "older_bytes": view.log.flow.older.and_then(older_bytes),
        "seeking_s": view.log.flow.seeks.map(|seeks| seconds(heard, seeks.since)),
        "behind_s": view.log.flow.behind.map(|since| seconds(heard, since)),
        "age_s": view.log.at.and_then(|t| sure(at, t)),
        "age_at_least_s": view.log.at.and_then(|t| at_least(at, t)),
        "source": view.log.source.as_ref().map(|(source, since)| from(source, seconds(heard, *since), view.log.found)),
        "ended": view.ended.as_ref().map(|(end, seen)| ended(end, seconds(at, *seen))),
    })
}

fn older_bytes(older: Older) -> Option<u64> {
    match older {
        Older::Lines => None,
        Older::Bytes(bytes) => Some(bytes.0),
    }
}

fn from(source: &LogSource, for_s: f64, found: bool) -> Value {
    let (kind, matching) = match source {
        LogSource::Follows { of, .. } => ("follows", *of),
        LogSource::Nothing { .. } => ("nothing", 0),
        LogSource::Absent { .. } => ("absent", 0),
        LogSource::Ray { .. } => ("ray", 1),
    };
    json!({
        "kind": kind,
        "what": source.what(),
        "matching": matching,
        "for_s": for_s,
        "only_known_since": found,
        "why": source.why(),
        "said": source.said(),
    })
}

fn ended(end: &ContainerEnd, age_s: f64) -> Value {
    let known = json!({ "container": end.name, "id": end.id, "oom_killed": end.oom, "age_s": age_s });
    let code = end.code.ok_or_else(|| format!("it ended {}", end.words()));
    let available = end.available.map(|b| b.0);
    Fields::of(known)
        .put("exit_code", code)
        .put(
            "available_bytes_before",
            available.ok_or("the node's memory was not read in the seconds before"),
        )
        .done()
}
