//! Ray's dashboard: the bodies of `GET /api/v0/nodes`, `/api/v0/placement_groups` and `/api/version`.

use serde_json::Value;

use crate::domain::ray::{PlacementGroup, RayFacts, RayNode, RayVia};

use super::members::{self, MAX_GROUPS};
use super::short;

/// The membership. Only with details are there times in it; Ray lists a hundred entries unless it is told otherwise.
pub const NODES: &str = "/api/v0/nodes?detail=true&limit=1000";

/// Placement groups; only with details are there bundles in it.
pub const GROUPS: &str = "/api/v0/placement_groups?detail=true&limit=1000";

/// Ray's version.
pub const VERSION: &str = "/api/version";

/// Reads the nodes.
///
/// # Errors
/// A fragment that says what is wrong, when it is no JSON, has no list of nodes, or is the dashboard's own error.
pub fn parse(body: &[u8]) -> Result<RayFacts, String> {
    let value = list(body, "nodes")?;
    let nodes: Vec<RayNode> = value.iter().filter_map(node).collect();
    // Entries of which none is a node are an answer to something else, and no cluster without nodes.
    if nodes.is_empty() && !value.is_empty() {
        return Err("Ray's dashboard: no node among the entries of the answer".to_owned());
    }
    Ok(RayFacts {
        nodes: members::bounded(nodes),
        via: RayVia::Dashboard,
        ..RayFacts::default()
    })
}

/// Reads the placement groups that wait for something.
///
/// # Errors
/// As [`parse`].
pub fn groups(body: &[u8]) -> Result<Vec<PlacementGroup>, String> {
    let value = list(body, "placement groups")?;
    let is_group = |entry: &Value| entry.get("placement_group_id").is_some_and(Value::is_string);
    if !value.is_empty() && !value.iter().any(is_group) {
        return Err("Ray's dashboard: no placement group among the entries of the answer".to_owned());
    }
    Ok(value.iter().filter_map(members::group).take(MAX_GROUPS).collect())
}

/// Reads Ray's version.
#[must_use]
pub fn version(body: &[u8]) -> Option<String> {
    let value: Value = serde_json::from_slice(body).ok()?;
    value.get("ray_version").and_then(Value::as_str).map(short)
}

/// Python's version from the `Server` header, such as `Python/3.11 aiohttp/3.14.5`.
#[must_use]
pub fn python(server: &str) -> Option<String> {
    let version = server
        .split_ascii_whitespace()
        .find_map(|w| w.strip_prefix("Python/"))?;
    let digits = version.chars().all(|c| c.is_ascii_digit() || c == '.');
    (digits && !version.is_empty()).then(|| short(version))
}

/// The list in an answer of the state API.
fn list(body: &[u8], what: &str) -> Result<Vec<Value>, String> {
    let mut value: Value = serde_json::from_slice(body).map_err(|e| format!("Ray's dashboard: no JSON: {e}"))?;
    if value.get("result") == Some(&Value::Bool(false)) {
        let message = value.get("msg").and_then(Value::as_str).unwrap_or("no reason given");
        return Err(format!("Ray's dashboard: {}", short(message)));
    }
    let told = |key: &str| value.pointer(&format!("/data/result/{key}")).cloned();
    let (total, warning) = (told("total"), told("partial_failure_warning"));
    match value.pointer_mut("/data/result/result").map(Value::take) {
        Some(Value::Array(list)) => {
            // What is left out may be all that is alive: another source has to tell.
            if let Some(warning) = warning.as_ref().and_then(Value::as_str).filter(|w| !w.is_empty()) {
                return Err(format!("Ray's dashboard: not all {what}: {}", short(warning)));
            }
            let all = total
                .as_ref()
                .and_then(Value::as_u64)
                .and_then(|n| usize::try_from(n).ok());
            match all.filter(|all| *all > list.len()) {
                Some(all) => Err(format!("Ray's dashboard lists {} of {all} {what}", list.len())),
                None => Ok(list),
            }
        }
        Some(_) | None => Err(format!("Ray's dashboard: no list of {what} in the answer")),
    }
}

/// One node; `None` without an id, an address or a state.
fn node(value: &Value) -> Option<RayNode> {
    let text = |key: &str| value.get(key).and_then(Value::as_str);
    let mut node = RayNode {
        id: short(text("node_id")?),
        address: short(text("node_ip")?),
        alive: text("state")? == "ALIVE",
        message: text("state_message").filter(|m| !m.is_empty()).map(short),
        started_ms: members::millis(value.get("start_time_ms")),
        ended_ms: members::millis(value.get("end_time_ms")),
        ..RayNode::default()
    };
    members::count(&mut node, value.get("resources_total").and_then(Value::as_object));
    if let Some(head) = value.get("is_head_node").and_then(Value::as_bool) {
        node.head = head;
    }
    Some(node)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_leaves_something_out_is_none() {
        let body = |rest: &str| {
            let node = r#"{"node_id": "a", "node_ip": "10.0.0.1", "state": "DEAD"}"#;
            format!(r#"{{"result": true, "data": {{"result": {{{rest} "result": [{node}]}}}}}}"#).into_bytes()
        };
        assert_eq!(parse(&body("")).unwrap().nodes.len(), 1);
        let whole = r#""total": 1, "num_after_truncation": 1, "partial_failure_warning": "","#;
        assert_eq!(parse(&body(whole)).unwrap().nodes.len(), 1);
        let cut = parse(&body(r#""total": 1002, "num_after_truncation": 1000,"#));
        assert_eq!(cut.unwrap_err(), "Ray's dashboard lists 1 of 1002 nodes");
        let failed = parse(&body(
            r#""total": 1, "partial_failure_warning": "the GCS did not answer","#,
        ));
        assert_eq!(
            failed.unwrap_err(),
            "Ray's dashboard: not all nodes: the GCS did not answer"
        );
    }

    #[test]
    fn versions_come_from_the_answer_and_its_head() {
        let body = br#"{"version": "4", "ray_version": "2.60.0", "ray_commit": "b7f4259e", "session_name": "session_2026-11-29_17-16-29_138076_1"}"#;
        assert_eq!(version(body).as_deref(), Some("2.60.0"));
        assert_eq!(version(b"404: Not Found"), None);
        assert_eq!(python("Python/3.11 aiohttp/3.14.5").as_deref(), Some("3.11"));
        for other in ["uvicorn", "Python/", "Python/3.11;rm", ""] {
            assert_eq!(python(other), None, "{other}");
        }
    }
}
