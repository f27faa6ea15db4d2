//! A node's log as JSON: how much of it there is, what it is read from, and how the container that wrote it ended.

use serde_json::{Value, json};

use crate::domain::Stamp;
use crate::domain::logs::{ContainerEnd, LogSource};
use crate::model::state::NodeView;

use super::reading::{at_least, seconds, sure};

/// The log of a node.
pub(super) fn log(view: &NodeView, at: Stamp) -> Value {
    json!({
        "lines": view.log.seq,
        "dropped": view.log.dropped,
        "lost_bytes": view.log.flow.lost,
        "behind_s": view.log.flow.behind.map(|since| seconds(at, since)),
        "age_s": view.log.at.and_then(|t| sure(at, t)),
        "age_at_least_s": view.log.at.and_then(|t| at_least(at, t)),
        "source": view.log.source.as_ref().map(|(source, since)| from(source, seconds(at, *since))),
        "ended": view.ended.as_ref().map(|(end, seen)| ended(end, seconds(at, *seen))),
    })
}

fn from(source: &LogSource, for_s: f64) -> Value {
    match source {
        LogSource::Follows { what, of } => json!({ "kind": "follows", "what": what, "matching": of, "for_s": for_s }),
        LogSource::Nothing { wanted } => json!({ "kind": "nothing", "what": wanted, "matching": 0, "for_s": for_s }),
        LogSource::Ray { container } => json!({ "kind": "ray", "what": container, "matching": 1, "for_s": for_s }),
    }
}

fn ended(end: &ContainerEnd, age_s: f64) -> Value {
    json!({
        "container": end.name,
        "id": end.id,
        "exit_code": end.code,
        "oom_killed": end.oom,
        "available_bytes_before": end.available.map(|b| b.0),
        "age_s": age_s,
    })
}
