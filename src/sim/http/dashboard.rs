//! Ray's dashboard: the few questions that are asked of it.

use hyper::body::Incoming;
use hyper::{Request, Response, StatusCode};
use serde_json::{Value, json};

use crate::sim::shared::Shared;
use crate::sim::world::ray::{CPUS, RAY_VERSION};

use super::{Body, full, stamped, text};

/// Bytes of memory that Ray counts on a node, and of its object store.
const MEMORY: [f64; 2] = [84_557_250_560.0, 36_238_821_376.0];

/// Answers one request.
pub fn answer(shared: &Shared, request: &Request<Incoming>) -> Response<Body> {
    let response = match request.uri().path() {
        "/api/v0/nodes" => text::body(StatusCode::OK, &nodes(shared)),
        "/api/v0/placement_groups" => text::body(
            StatusCode::OK,
            &shared.with(|world, now| listed(world.waiting_groups(now))),
        ),
        "/api/version" => text::body(
            StatusCode::OK,
            &json!({"version": "4", "ray_version": RAY_VERSION, "ray_commit": "0de211850589aea71f842873bc32574c702ab492", "session_name": "session"}),
        ),
        "/api/gcs_healthz" => Response::new(full("success")),
        _ => {
            let mut response = Response::new(full("404: Not Found"));
            *response.status_mut() = StatusCode::NOT_FOUND;
            response
        }
    };
    stamped(shared, response, "Python/3.12 aiohttp/3.13.2")
}

fn nodes(shared: &Shared) -> Value {
    let list: Vec<Value> = shared.with(|world, now| {
        let members = world.ray_nodes(now);
        members
            .into_iter()
            .map(|m| {
                let dead = m.dead.filter(|(at, _)| *at <= now);
                let [memory, store] = MEMORY;
                let mut resources = json!({"memory": memory, "CPU": CPUS, format!("node:{}", m.address): 1.0, "object_store_memory": store});
                if let Value::Object(map) = &mut resources {
                    if m.gpus > 0 {
                        map.insert("GPU".to_owned(), json!(f64::from(m.gpus)));
                    }
                    if m.head {
                        map.insert("node:__internal_head__".to_owned(), json!(1.0));
                    }
                }
                json!({
                    "node_id": m.id,
                    "node_ip": m.address,
                    "is_head_node": m.head,
                    "state": if dead.is_some() { "DEAD" } else { "ALIVE" },
                    "state_message": dead.map(|(_, why)| why),
                    "node_name": m.address,
                    "resources_total": resources,
                    "labels": {"ray.io/node-id": m.id},
                    "start_time_ms": world.calendar.unix_seconds(m.from).saturating_mul(1000),
                    "end_time_ms": dead.map_or(0, |(at, _)| world.calendar.unix_seconds(at).saturating_mul(1000)),
                })
            })
            .collect()
    });
    listed(list)
}

/// A list as the state API wraps it.
fn listed(list: Vec<Value>) -> Value {
    let n = list.len();
    json!({"result": true, "msg": "", "data": {"result": {
        "total": n, "num_after_truncation": n, "num_filtered": n, "result": list, "partial_failure_warning": "", "warnings": null
    }}})
}
