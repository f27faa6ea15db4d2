//! Ray's dashboard: the body of `GET /api/v0/nodes`.

use serde_json::Value;

use crate::domain::ray::{RayFacts, RayNode, RayVia};

use super::short;

/// Reads the body.
///
/// # Errors
/// A fragment that says what is wrong, when it is no JSON, has no list of nodes, or is the dashboard's own error.
pub fn parse(body: &[u8]) -> Result<RayFacts, String> {
    let value: Value = serde_json::from_slice(body).map_err(|e| format!("Ray's dashboard: no JSON: {e}"))?;
    if value.get("result") == Some(&Value::Bool(false)) {
        let message = value.get("msg").and_then(Value::as_str).unwrap_or("no reason given");
        return Err(format!("Ray's dashboard: {}", short(message)));
    }
    let list = value.pointer("/data/result/result").and_then(Value::as_array);
    let Some(list) = list else {
        return Err("Ray's dashboard: no list of nodes in the answer".to_owned());
    };
    Ok(RayFacts {
        nodes: list.iter().filter_map(node).collect(),
        via: RayVia::Dashboard,
    })
}

/// One node; `None` without an id, an address or a state.
fn node(value: &Value) -> Option<RayNode> {
    let text = |key: &str| value.get(key).and_then(Value::as_str);
    let resource = |key: &str| {
        value
            .get("resources_total")
            .and_then(|r| r.get(key))
            .and_then(Value::as_f64)
    };
    Some(RayNode {
        id: short(text("node_id")?),
        address: short(text("node_ip")?),
        alive: text("state")? == "ALIVE",
        head: value.get("is_head_node").and_then(Value::as_bool).unwrap_or(false),
        gpus: resource("GPU").unwrap_or(0.0),
        cpus: resource("CPU").unwrap_or(0.0),
        message: text("state_message").filter(|m| !m.is_empty()).map(short),
    })
}
