//! `bringup status --json`: one object for the whole cluster.

use serde_json::{Value, json};

use crate::domain::container::{Container, ContainerState};
use crate::domain::disk::DiskFacts;
use crate::domain::event::Subject;
use crate::domain::fabric::FabricFacts;
use crate::domain::gpu::{Gpu, GpuFacts};
use crate::domain::link::LinkState;
use crate::domain::memory::MemoryFacts;
use crate::domain::ray::RayFacts;
use crate::domain::units::Bytes;
use crate::domain::{NodeId, Now};
use crate::model::State;
use crate::model::schedule::{every, ray_every};
use crate::model::state::NodeView;

use super::SCHEMA;
use super::causes::{causes, timestamp as at_wall};
use super::reading::{decimal, reading, seconds};
use super::server::server;

/// The whole state as one object.
#[must_use]
pub fn status(state: &State, now: Now) -> Value {
    let hops: Vec<Value> = state
        .config
        .ssh
        .jump
        .iter()
        .zip(&state.hops)
        .map(|(hop, link)| json!({ "name": hop.name, "host": hop.login.host, "link": link_json(link, now) }))
        .collect();
    let nodes: Vec<Value> = state
        .config
        .node_ids()
        .filter_map(|id| node_json(state, id, now))
        .collect();
    json!({
        "schema": SCHEMA,
        "bringup": env!("CARGO_PKG_VERSION"),
        "cluster": state.config.cluster,
        "engine": state.config.engine.word(),
        "at": timestamp(now),
        "hops": hops,
        "nodes": nodes,
        "ray": ray_json(state, now),
        "server": server(state, now),
        "causes": causes(state),
        "notices": state.notices.iter().map(|n| n.text.as_str()).collect::<Vec<_>>(),
    })
}

/// The wall clock in RFC 3339, UTC.
#[must_use]
pub fn timestamp(now: Now) -> String {
    at_wall(now.wall)
}

fn link_json(link: &LinkState, now: Now) -> Value {
    match link {
        LinkState::Idle => json!({ "state": "idle" }),
        LinkState::Connecting => json!({ "state": "connecting" }),
        LinkState::Asking => json!({ "state": "asking" }),
        LinkState::Up => json!({ "state": "up" }),
        LinkState::Silent { since } => json!({ "state": "silent", "for_s": seconds(now.stamp, *since) }),
        LinkState::Down { error, since, retry_at } => json!({
            "state": "down",
            "kind": error.kind,
            "error": error.text,
            "fix": error.fix,
            "for_s": seconds(now.stamp, *since),
            "retries": retry_at.is_some(),
        }),
    }
}

fn node_json(state: &State, id: NodeId, now: Now) -> Option<Value> {
    let (node, seen, view) = (
        state.config.node(id)?,
        state.observed.node(id)?,
        state.nodes.get(id.index())?,
    );
    let at = now.stamp;
    let name = &state.config.container.name;
    Some(json!({
        "name": node.name,
        "role": node.role,
        "address": node.login.host,
        "fabric_address": node.fabric_address,
        "expected_gpus": node.gpus,
        "login": if node.relayed { "jump" } else { "own" },
        "link": link_json(&seen.link, now),
        "container": staleness(
            reading(&seen.containers, at, |c| c.named(name).map(container_json)),
            seen.containers.stale(at, every(state, id, Subject::Containers)),
        ),
        "memory": reading(&seen.memory, at, |m| memory_json(m, seen.gpus.value(), state.config.watch.memory_floor)),
        "gpus": reading(&seen.gpus, at, gpus_json),
        "fabric": reading(&seen.fabric, at, fabric_json),
        "disk": reading(&seen.disk, at, disk_json),
        "unread": view.unread.iter().map(|(what, u)| json!({ "what": what, "why": u.why, "for_s": seconds(at, u.since) })).collect::<Vec<_>>(),
        "load": load_json(view, state.loads(), now),
        "log": { "lines": view.log.seq, "dropped": view.log.dropped, "age_s": view.log.at.map(|t| seconds(at, t)) },
        "problems": view.problems,
    }))
}

/// Says so where a value is older than it should be: it was so, and may be so no longer.
fn staleness(mut value: Value, stale: bool) -> Value {
    if let Value::Object(map) = &mut value {
        map.insert("stale".to_owned(), Value::Bool(stale));
    }
    value
}

fn container_json(c: &Container) -> Value {
    let (word, code) = match &c.state {
        ContainerState::Created => ("created", None),
        ContainerState::Running => ("running", None),
        ContainerState::Paused => ("paused", None),
        ContainerState::Restarting => ("restarting", None),
        ContainerState::Exited { code, .. } => ("exited", Some(*code)),
        ContainerState::Other(word) => (word.as_str(), None),
    };
    json!({
        "name": c.name,
        "id": c.id,
        "image": c.image,
        "state": word,
        "exit_code": code,
        "up_s": c.up_seconds,
        "restarts": c.restarts,
        "started_by_bringup": c.ours.is_some(),
    })
}

/// Used, held by the GPU's processes, page cache and free are four numbers of four sources: they need not add up.
fn memory_json(m: &MemoryFacts, gpus: Option<&GpuFacts>, floor: Bytes) -> Value {
    let unaccounted = gpus.filter(|g| g.all_unified()).and_then(|g| m.unaccounted(g.held()));
    json!({
        "total_bytes": m.total.0,
        "used_bytes": m.used().0,
        "available_bytes": m.available.0,
        "free_bytes": m.free.map(|b| b.0),
        "cached_bytes": m.cached.map(|b| b.0),
        "unaccounted_bytes": unaccounted.map(|b| b.0),
        "pressure_percent": m.pressure.map(|p| decimal(p.0)),
        "load": m.load.map(decimal),
        "floor_bytes": floor.0,
        "below_floor": m.available < floor,
    })
}

fn gpus_json(facts: &GpuFacts) -> Value {
    let gpu = |g: &Gpu| {
        json!({
            "index": g.index,
            "name": g.name,
            "utilization_percent": g.utilization.map(|p| decimal(p.0)),
            "memory_used_bytes": g.memory_used.map(|b| b.0),
            "memory_total_bytes": g.memory_total.map(|b| b.0),
            "unified_memory": g.unified,
            "slices": g.slices,
            "power_watts": g.power.map(|w| decimal(w.0)),
            "temperature_celsius": g.temperature.map(|c| decimal(c.0)),
        })
    };
    json!({
        "gpus": facts.gpus.iter().map(gpu).collect::<Vec<_>>(),
        "held_by_processes_bytes": facts.held().map(|b| b.0),
        "processes_reason": facts.processes_unknown,
    })
}

fn fabric_json(facts: &FabricFacts) -> Value {
    let interfaces: Vec<Value> = facts
        .interfaces
        .iter()
        .map(|i| json!({ "name": i.name, "addresses": i.addresses, "state": i.state, "speed_mbit": i.speed, "mtu": i.mtu }))
        .collect();
    let rdma: Vec<Value> = facts
        .rdma
        .iter()
        .map(|p| {
            json!({
                "device": p.device, "port": p.port, "state": p.state, "rate": p.rate, "layer": p.layer, "interface": p.interface,
                "sent_bytes": p.sent.map(|b| b.0), "received_bytes": p.received.map(|b| b.0), "link_downs": p.downs,
            })
        })
        .collect();
    json!({ "interfaces": interfaces, "rdma": rdma, "infiniband": facts.infiniband })
}

fn disk_json(facts: &DiskFacts) -> Value {
    let disks: Vec<Value> = facts
        .disks
        .iter()
        .map(|d| json!({ "mount": d.mount, "total_bytes": d.total.0, "available_bytes": d.available.0 }))
        .collect();
    json!({
        "disks": disks,
        "model_cache": facts.cache.as_ref().map(|c| json!({ "path": c.path, "bytes": c.size.0 })),
        "model_cache_reason": facts.cache_unknown,
    })
}

/// Without a server that loads or has loaded, what the log says is about one that is gone: only its failures are told.
fn load_json(view: &NodeView, loads: bool, now: Now) -> Value {
    let load = &view.load;
    let stage = load.stage.filter(|_| loads);
    let bar = load.bar.filter(|_| loads);
    json!({
        "stage": stage.map(|(stage, _)| stage),
        "stage_for_s": stage.map(|(_, since)| seconds(now.stamp, since)),
        "done": bar.map(|b| b.done),
        "total": bar.map(|b| b.total),
        "eta_s": bar.and_then(|b| b.eta()).map(|d| d.as_secs_f64()),
        "progress_age_s": load.progress_at.filter(|_| loads).map(|t| seconds(now.stamp, t)),
        "failures": load.failures.iter().map(|(_, text)| text).collect::<Vec<_>>(),
        "transports": load.transports,
    })
}

fn ray_json(state: &State, now: Now) -> Value {
    let expected: Vec<Value> = state
        .config
        .nodes
        .iter()
        .map(|n| json!({ "node": n.name, "address": n.fabric_address, "gpus": n.gpus }))
        .collect();
    let show = |ray: &RayFacts| {
        let nodes: Vec<Value> = ray
            .nodes
            .iter()
            .map(|n| {
                let name = state.config.nodes.iter().find(|c| c.fabric_address == n.address).map(|c| c.name.as_str());
                json!({
                    "node": name, "address": n.address, "alive": n.alive, "head": n.head, "gpus": n.gpus, "message": n.message,
                })
            })
            .collect();
        json!({ "alive": ray.alive().count(), "nodes": nodes, "via": ray.via })
    };
    let ray = &state.observed.ray;
    let stale = ray.value().is_some_and(|r| ray.stale(now.stamp, ray_every(r.via)));
    let mut value = staleness(reading(ray, now.stamp, show), stale);
    if let Value::Object(map) = &mut value {
        map.insert("expected".to_owned(), Value::Array(expected));
    }
    value
}
