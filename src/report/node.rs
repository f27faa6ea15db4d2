//! What was read of a node, as JSON.

use serde_json::{Value, json};

use crate::config::Config;
use crate::config::types::Engine;
use crate::domain::container::{Container, ContainerState};
use crate::domain::disk::DiskFacts;
use crate::domain::event::Subject;
use crate::domain::fabric::{FabricFacts, Interface, RdmaPort};
use crate::domain::gpu::{Gpu, GpuFacts, GpuProcess, GpuTool};
use crate::domain::image::{ImageFacts, VersionFacts};
use crate::domain::memory::MemoryFacts;
use crate::domain::observed::{NodeObserved, VerbFacts};
use crate::domain::serving::{ServeFacts, ServeProcess};
use crate::domain::sockets::{Listener, SocketFacts};
use crate::domain::units::Bytes;
use crate::domain::{NodeId, Now, Reading};
use crate::model::State;
use crate::model::schedule::{IMAGE_EVERY, SERVE_EVERY, VERB_EVERY, every};

use super::reading::{Fields, Origin, Source, decimal, explained, reading};

/// The readings of a node, by the name of their keys.
pub(super) fn readings(state: &State, id: NodeId, seen: &NodeObserved, now: Now) -> Vec<(&'static str, Value)> {
    let at = now.stamp;
    let config: &Config = &state.config;
    let name = &config.container.name;
    let floor = config.watch.memory_floor;
    let of = |source, subject| Origin::each(source, every(state, id, subject));
    let docker = of(Source::Docker, Subject::Containers);
    let others = |c: &&Container| &c.name != name;
    // What is never asked is not "not asked yet".
    let (not_here, no_verbs) = (
        Reading::absent("the server runs on the head"),
        Reading::absent("this engine runs no verbs"),
    );
    let processes = if id == config.head() { &seen.serve } else { &not_here };
    let verbs = match config.engine {
        Engine::Script(_) => &seen.verb,
        Engine::VllmRay(_) => &no_verbs,
    };
    let reads = state.nodes.get(id.index()).map(|view| view.trends.read_rate(at));
    let reads = reads.unwrap_or(Err("no such node"));
    vec![
        (
            "container",
            reading(&seen.containers, at, docker, |c| c.named(name).map(container)),
        ),
        (
            "other_containers",
            reading(&seen.containers, at, docker, |c| {
                c.containers.iter().filter(others).map(container).collect::<Vec<_>>()
            }),
        ),
        (
            "memory",
            reading(&seen.memory, at, of(Source::Proc, Subject::Memory), |m| {
                memory(m, &seen.gpus, floor, reads)
            }),
        ),
        (
            "gpus",
            reading(&seen.gpus, at, of(gpu_tool(&seen.gpus), Subject::Gpus), gpus),
        ),
        (
            "sockets",
            reading(&seen.sockets, at, of(Source::Proc, Subject::Sockets), sockets),
        ),
        (
            "fabric",
            reading(&seen.fabric, at, of(Source::Sys, Subject::Fabric), fabric),
        ),
        ("disk", reading(&seen.disk, at, of(Source::Disk, Subject::Disk), disk)),
        (
            "image",
            reading(&seen.image, at, Origin::each(Source::Docker, IMAGE_EVERY), image),
        ),
        (
            "versions",
            reading(&seen.versions, at, Origin::once(Source::Image), versions),
        ),
        (
            "serve",
            reading(processes, at, Origin::each(Source::Proc, SERVE_EVERY), serve),
        ),
        ("verb", reading(verbs, at, Origin::each(Source::Verb, VERB_EVERY), verb)),
    ]
}

fn container(c: &Container) -> Value {
    let (word, code, oom) = match &c.state {
        ContainerState::Created => ("created", None, None),
        ContainerState::Running => ("running", None, None),
        ContainerState::Paused => ("paused", None, None),
        ContainerState::Restarting => ("restarting", None, None),
        ContainerState::Exited { code, oom } => ("exited", Some(*code), Some(*oom)),
        ContainerState::Other(word) => (word.as_str(), None, None),
    };
    let said = json!({
        "name": c.name,
        "id": c.id,
        "image": c.image,
        "state": word,
        "exit_code": code,
        "oom_killed": oom,
        "up_s": c.up_seconds,
        "restarts": c.restarts,
        "started_by_bringup": c.ours.is_some(),
    });
    let runs = matches!(c.state, ContainerState::Running | ContainerState::Paused);
    explained(said, |key| {
        match key {
            "up_s" if runs => "the node did not tell its start or its own time",
            "up_s" => "it does not run",
            _ => "it has not ended",
        }
        .to_owned()
    })
}

/// Used, held by the GPU's processes, page cache and free are four numbers of four sources: they need not add up.
fn memory(m: &MemoryFacts, gpus: &Reading<GpuFacts>, floor: Bytes, reads: Result<Bytes, &str>) -> Value {
    const NO_LINE: &str = "the node's /proc/meminfo does not tell it";
    let all = json!({
        "total_bytes": m.total.0,
        "used_bytes": m.used().0,
        "available_bytes": m.available.0,
        "floor_bytes": floor.0,
        "below_floor": m.available < floor,
    });
    let amounts = [
        ("free_bytes", m.free),
        ("cached_bytes", m.cached),
        ("held_bytes", m.held),
        ("swap_used_bytes", m.swap_used),
    ];
    let fields = amounts.into_iter().fold(Fields::of(all), |fields, (key, amount)| {
        fields.put(key, amount.map(|b| b.0).ok_or(NO_LINE))
    });
    let read = m.read.ok_or("the node's /proc/vmstat does not tell it");
    let pressure = m.pressure.map(|p| decimal(p.0));
    fields
        .put("unaccounted_bytes", unaccounted(m, gpus))
        .put("pressure_percent", pressure.ok_or("the node's kernel does not tell it"))
        .put(
            "load",
            m.load.map(decimal).ok_or("the node's /proc/loadavg does not tell it"),
        )
        .put("disk_read_bytes", read.map(|b| b.0))
        .put("disk_read_bytes_per_second", reads.map(|b| b.0))
        .done()
}

/// What nobody accounts for; else why none is told.
fn unaccounted(m: &MemoryFacts, gpus: &Reading<GpuFacts>) -> Result<u64, String> {
    let facts = match gpus {
        Reading::Known { value, .. } => value,
        Reading::Absent(why) => return Err(format!("nothing is known of its GPUs: {}", why.0)),
    };
    if !facts.all_unified() {
        return Err("its GPUs have memory of their own".to_owned());
    }
    if facts.held().is_none() {
        return Err("nobody tells what the processes on the GPU hold".to_owned());
    }
    if m.held.is_none() {
        return Err("the node's /proc/meminfo does not tell what programs hold".to_owned());
    }
    let rest = m.unaccounted(facts.held());
    rest.map(|b| b.0)
        .ok_or_else(|| "too little to tell it from the kernel's reserves".to_owned())
}

fn gpu_tool(gpus: &Reading<GpuFacts>) -> Source {
    match gpus.value().map(|facts| facts.tool) {
        Some(GpuTool::NvidiaSmi) => Source::NvidiaSmi,
        Some(GpuTool::RocmSmi) => Source::RocmSmi,
        Some(GpuTool::AmdSmi) => Source::AmdSmi,
        None => Source::GpuTool,
    }
}

fn gpus(facts: &GpuFacts) -> Value {
    const NO_NUMBER: &str = "the tool has no number for it";
    let gpu = |g: &Gpu| {
        let known = json!({ "index": g.index, "name": g.name, "unified_memory": g.unified, "slices": g.slices });
        let no_memory = if g.unified {
            "it uses the host's memory"
        } else {
            NO_NUMBER
        };
        Fields::of(known)
            .put(
                "utilization_percent",
                g.utilization.map(|p| decimal(p.0)).ok_or(NO_NUMBER),
            )
            .put("memory_used_bytes", g.memory_used.map(|b| b.0).ok_or(no_memory))
            .put("memory_total_bytes", g.memory_total.map(|b| b.0).ok_or(no_memory))
            .put("power_watts", g.power.map(|w| decimal(w.0)).ok_or(NO_NUMBER))
            .put(
                "temperature_celsius",
                g.temperature.map(|c| decimal(c.0)).ok_or(NO_NUMBER),
            )
            .done()
    };
    let process = |p: &GpuProcess| {
        let known = json!({ "pid": p.pid, "name": p.name, "draws": p.draws });
        let outside = "it runs in no container that the node's /proc tells of";
        Fields::of(known)
            .put("memory_bytes", p.memory.map(|b| b.0).ok_or(NO_NUMBER))
            .put("container", p.container.as_ref().ok_or(outside))
            .done()
    };
    let known = json!({
        "gpus": facts.gpus.iter().map(gpu).collect::<Vec<_>>(),
        "processes": facts.processes.iter().map(process).collect::<Vec<_>>(),
        "processes_reason": facts.processes_unknown,
    });
    let held = facts.held().map(|b| b.0).ok_or_else(|| {
        let unlisted = facts.processes_unknown.as_deref();
        unlisted
            .unwrap_or("the tool has no number for one of the processes")
            .to_owned()
    });
    Fields::of(known).put("held_by_processes_bytes", held).done()
}

fn sockets(facts: &SocketFacts) -> Value {
    const NOT_TOLD: &str = "the login may not see whose it is";
    let one = |l: &Listener| {
        let known = json!({ "address": l.address, "port": l.port });
        let outside = "it is in no container that the node's /proc tells of";
        Fields::of(known)
            .put("pid", l.pid.ok_or(NOT_TOLD))
            .put(
                "container",
                l.container.as_ref().ok_or(l.pid.map_or(NOT_TOLD, |_| outside)),
            )
            .done()
    };
    facts.listeners.iter().map(one).collect()
}

fn fabric(facts: &FabricFacts) -> Value {
    const NO_FILE: &str = "the node's /sys does not tell it";
    let interface = |i: &Interface| {
        Fields::of(json!({ "name": i.name, "addresses": i.addresses }))
            .put("state", i.state.as_ref().ok_or(NO_FILE))
            .put(
                "speed_mbit",
                i.speed.ok_or("it has none: it is down, or no cable's end"),
            )
            .put("mtu", i.mtu.ok_or(NO_FILE))
            .done()
    };
    let port = |p: &RdmaPort| {
        Fields::of(json!({ "device": p.device, "port": p.port }))
            .put("state", p.state.as_ref().ok_or(NO_FILE))
            .put("rate", p.rate.as_ref().ok_or(NO_FILE))
            .put("layer", p.layer.as_ref().ok_or(NO_FILE))
            .put(
                "interface",
                p.interface.as_ref().ok_or("it has no interface of the network"),
            )
            .put("sent_bytes", p.sent.map(|b| b.0).ok_or(NO_FILE))
            .put("received_bytes", p.received.map(|b| b.0).ok_or(NO_FILE))
            .put("link_downs", p.downs.ok_or(NO_FILE))
            .done()
    };
    let interfaces: Vec<Value> = facts.interfaces.iter().map(interface).collect();
    let rdma: Vec<Value> = facts.rdma.iter().map(port).collect();
    json!({ "interfaces": interfaces, "rdma": rdma, "infiniband": facts.infiniband })
}

fn disk(facts: &DiskFacts) -> Value {
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

fn image(facts: &ImageFacts) -> Value {
    let said = match facts {
        ImageFacts::Present { id, layers } => json!({ "present": true, "id": id, "layers": layers }),
        ImageFacts::Missing => json!({ "present": false, "id": null, "layers": [] }),
    };
    explained(said, |_| "the image is not there".to_owned())
}

fn versions(facts: &VersionFacts) -> Value {
    let said = json!({ "ray": facts.ray, "vllm": facts.vllm, "python": facts.python, "missing": facts.missing });
    explained(said, |_| match facts.missing.is_empty() {
        true => "the image does not tell it".to_owned(),
        false => facts.missing.join("; "),
    })
}

fn serve(facts: &ServeFacts) -> Value {
    let one = |p: &ServeProcess| {
        let said =
            json!({ "pid": p.pid, "started_by_bringup": p.mark.is_some(), "command": p.command, "up_s": p.up_seconds });
        explained(said, |_| "the container's /proc does not tell it".to_owned())
    };
    facts.processes.iter().map(one).collect()
}

fn verb(facts: &VerbFacts) -> Value {
    let (said, why) = match facts {
        VerbFacts::None => (
            json!({ "state": "none", "verb": null, "exit_code": null }),
            "none of ours is there",
        ),
        VerbFacts::Running { verb, .. } => (
            json!({ "state": "running", "verb": verb, "exit_code": null }),
            "it has not ended",
        ),
        VerbFacts::Ended { verb, code, .. } => (
            json!({ "state": "ended", "verb": verb, "exit_code": code }),
            "its exit code was not written down",
        ),
    };
    explained(said, |_| why.to_owned())
}
