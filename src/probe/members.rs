//! Ray's own words for nodes and placement groups, as its dashboard and its Python give them.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::domain::ray::{PlacementGroup, RayNode, is_device};

use super::short;

/// Nodes kept of one answer: of those that are dead, the last ones in Ray's list go.
pub const MAX_NODES: usize = 1024;

/// Placement groups kept of one answer.
pub const MAX_GROUPS: usize = 32;

/// Bundles kept of one placement group.
const MAX_BUNDLES: usize = 256;

/// Resources kept of one bundle.
const MAX_RESOURCES: usize = 16;

/// Keeps as many nodes as there is room for, alive ones before dead ones.
pub(super) fn bounded(mut nodes: Vec<RayNode>) -> Vec<RayNode> {
    if nodes.len() > MAX_NODES {
        nodes.sort_by_key(|n| !n.alive);
        nodes.truncate(MAX_NODES);
    }
    nodes
}

/// Fills in what a node's resources say.
pub(super) fn count(node: &mut RayNode, resources: Option<&Map<String, Value>>) {
    for (name, amount) in resources.into_iter().flatten() {
        let amount = number(amount);
        match (name.as_str(), amount) {
            ("GPU", Some(n)) => node.gpus = n,
            ("CPU", Some(n)) => node.cpus = n,
            // The second spelling is what the dashboard's summary makes of it.
            ("node:__internal_head__" | "node:InternalHead", _) => node.head = true,
            (name, Some(n)) if is_device(name) => node.devices.push((name.to_owned(), n)),
            (name, _) => {
                if let Some(kind) = name.strip_prefix("accelerator_type:") {
                    node.accelerator = Some(short(kind));
                }
            }
        }
    }
}

/// A finite number that is not negative.
fn number(value: &Value) -> Option<f64> {
    value.as_f64().filter(|n| n.is_finite() && *n >= 0.0)
}

/// Milliseconds since 1970; 0 stands for never, and some versions write numbers as text.
pub(super) fn millis(value: Option<&Value>) -> Option<u64> {
    let value = value?;
    let n = value.as_u64().or_else(|| value.as_str()?.parse().ok());
    n.filter(|ms| *ms > 0)
}

/// One placement group as the dashboard's `detail=true` or `placement_group_table()` gives it; `None` where it waits for nothing.
pub(super) fn group(value: &Value) -> Option<PlacementGroup> {
    let text = |key: &str| value.get(key).and_then(Value::as_str);
    let state = text("state")?;
    // CREATED holds its resources, REMOVED holds nothing any more.
    if !matches!(state, "PENDING" | "PREPARED" | "RESCHEDULING") {
        return None;
    }
    let bundles: Vec<&Value> = match value.get("bundles") {
        Some(Value::Array(list)) => list.iter().map(|b| b.get("unit_resources").unwrap_or(b)).collect(),
        Some(Value::Object(map)) => map.values().collect(),
        Some(_) | None => Vec::new(),
    };
    let stats = value.get("stats");
    let stat = |key: &str| stats.and_then(|s| s.get(key));
    Some(PlacementGroup {
        id: short(text("placement_group_id")?),
        state: short(state),
        bundles: bundles.into_iter().take(MAX_BUNDLES).map(bundle).collect(),
        asked_ms: millis(stat("creation_request_received_ns")).map(|ns| ns / 1_000_000),
        infeasible: stat("scheduling_state").and_then(Value::as_str) == Some("INFEASIBLE"),
    })
}

fn bundle(value: &Value) -> BTreeMap<String, f64> {
    let resources = value.as_object().into_iter().flatten();
    resources
        .filter_map(|(k, n)| Some((short(k), number(n)?)))
        .take(MAX_RESOURCES)
        .collect()
}
