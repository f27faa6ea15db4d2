//! Causes as JSON: why something fails, or may, the first one first.

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::diagnose::{Cause, Echo, Line};
use crate::domain::{NodeId, Wall};
use crate::model::State;

/// The causes of what fails now.
#[must_use]
pub fn causes(state: &State) -> Vec<Value> {
    state.causes().iter().map(|cause| one(state, cause)).collect()
}

/// One cause.
#[must_use]
pub fn one(state: &State, cause: &Cause) -> Value {
    let name = |node: Option<NodeId>| node.map(|n| state.config.node_name(n));
    let line = |l: &Line| json!({ "node": name(l.node), "text": l.text });
    let echo = |e: &Echo| json!({ "rule": e.rule, "text": e.text, "node": name(e.node), "at": timestamp(e.at) });
    json!({
        "rule": cause.rule,
        "kind": cause.kind,
        "cause": cause.text,
        "node": name(cause.node),
        "at": timestamp(cause.at),
        "only_known_since": cause.found,
        "over": cause.over.map(timestamp),
        "confidence": cause.confidence,
        "note": cause.note,
        "times": cause.times,
        "evidence": cause.evidence.iter().map(line).collect::<Vec<_>>(),
        "echoes": cause.echoes.iter().map(echo).collect::<Vec<_>>(),
        "fix": cause.fix,
        "command": cause.command.as_ref().map(|(node, line)| json!({
            "node": name(Some(*node)),
            "line": line,
            "by_hand": state.by_hand(cause),
        })),
    })
}

/// A moment in RFC 3339, UTC.
pub(super) fn timestamp(at: Wall) -> String {
    let ms = i64::try_from(at.0).unwrap_or(i64::MAX);
    Timestamp::from_millisecond(ms).map_or_else(|_| String::new(), |t| t.to_string())
}
