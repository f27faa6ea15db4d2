//! Ray's membership as JSON: where it comes from, who is a member, and what waits.

use serde_json::{Value, json};

use crate::domain::ray::{RayFacts, RayNode, RayStatus, RayVia};
use crate::domain::{Now, Stamp};
use crate::model::ray::SourceFailure;
use crate::model::ray::members::{self, Member, Since, Wait};
use crate::model::ray::ranks::{self, Rank};
use crate::model::schedule::{RAY_EVERY, ray_every};
use crate::model::{State, connected};

use super::reading::{Origin, Source, explained, reading, seconds};

/// The whole of it.
pub(super) fn ray(state: &State, now: Now) -> Value {
    let membership = &state.observed.ray;
    let of = membership
        .value()
        .map_or(Origin::each(Source::Ray, RAY_EVERY), |r| origin(r.via));
    let mut value = reading(membership, now.stamp, of, |ray| show(state, ray, now));
    let ranks = ranks::ranks(state);
    if let Value::Object(map) = &mut value {
        map.insert("used".to_owned(), json!(ranks.is_none()));
        map.insert("expected".to_owned(), Value::Array(expected(state, now)));
        map.insert("sources".to_owned(), Value::Array(sources(state, now.stamp)));
        map.insert(
            "status".to_owned(),
            reading(&state.ray.status, now.stamp, origin(RayVia::Status), show_status),
        );
        map.insert("differences".to_owned(), json!(members::differences(state)));
        let ranks = ranks.map(|found| {
            let ranks: Vec<Value> = found.ranks.iter().map(|r| rank(state, r, now.stamp)).collect();
            json!({ "why": found.why, "ranks": ranks })
        });
        map.insert("ranks".to_owned(), json!(ranks));
    }
    value
}

fn origin(via: RayVia) -> Origin {
    let source = match via {
        RayVia::Dashboard => Source::RayDashboard,
        RayVia::Container => Source::RayContainer,
        RayVia::Status => Source::RayStatus,
    };
    Origin::each(source, ray_every(via))
}

/// What `ray status` counts.
fn show_status(status: &RayStatus) -> Value {
    let failures: Vec<Value> = status
        .failures
        .iter()
        .map(|f| {
            explained(json!({ "text": f.text, "address": f.address }), |_| {
                "`ray status` does not tell it".to_owned()
            })
        })
        .collect();
    let said = json!({
        "nodes": status.nodes,
        "gpus": status.gpus.map(|(_, all)| all),
        "gpus_used": status.gpus.map(|(used, _)| used),
        "devices": devices(&status.devices),
        "failures": failures,
        "demands": status.demands,
    });
    explained(said, |_| "`ray status` counts no GPU".to_owned())
}

fn devices(devices: &[(String, f64)]) -> Vec<Value> {
    let one = |(kind, count): &(String, f64)| json!({ "kind": kind, "count": count });
    devices.iter().map(one).collect()
}

/// What Ray itself says.
fn show(state: &State, ray: &RayFacts, now: Now) -> Value {
    let nodes: Vec<Value> = ray.nodes.iter().map(|n| node(state, n, now)).collect();
    let waits: Vec<Value> = members::waits(state, now).iter().map(wait).collect();
    let said = json!({
        "alive": ray.alive().count(),
        "nodes": nodes,
        "via": ray.via,
        "ray_version": ray.version,
        "python_version": ray.python,
        "pending": waits,
        "pending_reason": ray.pending_unknown,
    });
    explained(said, |_| "this source does not tell it".to_owned())
}

fn node(state: &State, n: &RayNode, now: Now) -> Value {
    let at = |c: &&crate::config::types::Node| c.fabric_address == n.address;
    let name = state.config.nodes.iter().find(at).map(|c| c.name.as_str());
    let said = json!({
        "node": name,
        "id": n.id,
        "address": n.address,
        "alive": n.alive,
        "head": n.head,
        "gpus": n.gpus,
        "devices": devices(&n.devices),
        "accelerator": n.accelerator,
        "message": n.message,
        "since": since(members::since(state, n, now)),
    });
    explained(said, |key| {
        match key {
            "node" => "no configured node has this fabric address",
            "message" => "Ray says nothing of it",
            "since" => "Ray does not tell it, and nobody saw it begin",
            _ => "Ray does not tell it",
        }
        .to_owned()
    })
}

fn since(since: Option<Since>) -> Value {
    since.map_or(
        Value::Null,
        |s| json!({ "for_s": s.ago.as_secs_f64(), "by": if s.by_ray { "ray" } else { "bringup" } }),
    )
}

fn wait(wait: &Wait<'_>) -> Value {
    let one = |(kind, count): (&String, &f64)| json!({ "kind": kind, "count": count });
    let bundles: Vec<Vec<Value>> = wait.group.bundles.iter().map(|b| b.iter().map(one).collect()).collect();
    let said = json!({
        "id": wait.group.id,
        "state": wait.group.state,
        "wants": wait.group.wants(),
        "bundles": bundles,
        "infeasible": wait.group.infeasible,
        "addresses_of_no_node": wait.nowhere,
        "since": since(wait.since),
    });
    explained(said, |_| "Ray does not tell it, and nobody saw it begin".to_owned())
}

/// Each node of the config: as it should be, and as it is.
fn expected(state: &State, now: Now) -> Vec<Value> {
    let found = members::members(state);
    let one = |id| {
        let node = state.config.node(id)?;
        let versions = members::versions(state, id);
        let member: Option<&Member<'_>> = found.as_ref().and_then(|all| all.iter().find(|m| m.id == id));
        let silent = members::silent(state, id);
        let said = json!({
            "node": node.name,
            "address": node.fabric_address,
            "gpus": node.gpus,
            "state": member.map(|m| m.standing.word()),
            "registered_as": member.and_then(|m| m.standing.node()).map(|n| n.address.as_str()),
            "earlier_lives": member.map(|m| m.earlier),
            "wrong": member.map(|m| m.wrong.clone()).unwrap_or_default(),
            "not_answering": silent.map(|s| json!({ "for_s": seconds(now.stamp, s.since.stamp), "by": s.by.word() })),
            "ray_version": versions.ray,
            "python_version": versions.python,
        });
        Some(explained(said, |key| match (key, member) {
            ("not_answering", _) => "it answers".to_owned(),
            ("ray_version" | "python_version", _) => "neither its container nor its image has told it".to_owned(),
            (_, Some(_)) => "Ray does not list it".to_owned(),
            (_, None) => match state.observed.ray.reason() {
                Some(why) => format!("the membership is not known: {why}"),
                None => "the membership is not known".to_owned(),
            },
        }))
    };
    state.config.node_ids().filter_map(one).collect()
}

fn sources(state: &State, now: Stamp) -> Vec<Value> {
    // A head that is out of sight is not asked: it was so when it failed last.
    let asked = connected(state, state.config.head());
    let until = |f: &SourceFailure| if asked { now } else { f.last };
    let one = |via| {
        let source = state.ray.source(via);
        let failure = source.failure.as_ref();
        let said = json!({
            "via": via,
            "answered_age_s": source.answered.map(|at| seconds(now, at)),
            "fails": failure.map(|f| json!({ "why": f.why, "for_s": seconds(until(f), f.since), "tries": f.tries })),
        });
        explained(said, |key| match key {
            "fails" => "it does not fail, or was not asked".to_owned(),
            _ => "it has not answered yet".to_owned(),
        })
    };
    RayVia::ALL.into_iter().map(one).collect()
}

fn rank(state: &State, rank: &Rank<'_>, now: Stamp) -> Value {
    let said = json!({
        "node_rank": rank.node_rank,
        "ranks": rank.numbers,
        "node": state.config.node_name(rank.id),
        "container": rank.container.map(|c| c.name.as_str()),
        "runs": rank.runs(),
        "up_s": rank.up_seconds,
        "gpu_processes": rank.processes,
        "not_answering": members::silent(state, rank.id).map(|s| json!({ "for_s": seconds(now, s.since.stamp), "by": s.by.word() })),
    });
    explained(said, |key| {
        match key {
            "container" => "no container of the configured name is known there",
            "up_s" => "it is not known to run, or since when",
            "gpu_processes" => "the processes on its GPUs are not known",
            _ => "it answers",
        }
        .to_owned()
    })
}
