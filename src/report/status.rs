//! `bringup status --json`: one object for the whole cluster.

use serde_json::{Value, json};

use crate::domain::event::Subject;
use crate::domain::link::LinkState;
use crate::domain::time::millis;
use crate::domain::{NodeId, Now, Stamp, Wall};
use crate::model::foreign::{self, Foreign, Work};
use crate::model::schedule::every;
use crate::model::state::LastError;
use crate::model::{State, heard_until, told_until};

use super::SCHEMA;
use super::causes::{causes, timestamp as at_wall};
use super::load;
use super::log;
use super::node::readings;
use super::ray::ray;
use super::reading::{Origin, Source, explained, reading, seconds};
use super::server::server;

/// The whole state as one object.
#[must_use]
pub fn status(state: &State, now: Now) -> Value {
    let hops: Vec<Value> = state
        .config
        .ssh
        .jump
        .iter()
        .zip(state.hops.iter().zip(&state.hop_errors))
        .map(|(hop, (link, lost))| json!({ "name": hop.name, "host": hop.login.host, "link": link_json(link, lost.as_ref(), now) }))
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
        "load": load::whole(state, now),
        "ray": ray(state, now),
        "server": server(state, now),
        "other_bringups": others(state, now),
        "causes": causes(state),
        "notices": state.notices.iter().map(|n| n.text.as_str()).collect::<Vec<_>>(),
    })
}

/// What another bringup seems to be at, at most one.
fn others(state: &State, now: Now) -> Vec<Value> {
    let one = |other: Foreign| {
        let (kind, verb) = match &other.work {
            Work::Container => ("container", None),
            Work::Serve => ("server", None),
            Work::Verb(verb) => ("verb", Some(verb)),
        };
        let said = json!({
            "node": state.config.node_name(other.node),
            "kind": kind,
            "verb": verb,
            "started_ago_s": other.ago.map(|ago| ago.as_secs_f64()),
            "text": other.text(state),
        });
        explained(said, |key| {
            match key {
                "verb" => "it is no verb of the script",
                _ => "the node does not tell when it was started",
            }
            .to_owned()
        })
    };
    foreign::at_work(state, now.stamp).map(one).into_iter().collect()
}

/// The wall clock in RFC 3339, UTC.
#[must_use]
pub fn timestamp(now: Now) -> String {
    at_wall(now.wall)
}

/// A connection. Where it is lost, since when: the tries in between do not begin that anew.
fn link_json(link: &LinkState, lost: Option<&LastError>, now: Now) -> Value {
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
            "for_s": seconds(now.stamp, lost.map_or(*since, |l| l.since.stamp)),
            "retries": retry_at.is_some(),
        }),
    }
}

/// A node's own clock, held against the console's.
fn clock(state: &State, id: NodeId, now: Now) -> Value {
    let Some(seen) = state.observed.node(id).map(|seen| &seen.clock) else {
        return Value::Null;
    };
    let by_console = |at: Stamp| Wall(now.wall.0.saturating_sub(millis(now.stamp.since(at))));
    let origin = Origin::each(Source::Proc, every(state, id, Subject::Containers));
    let at = seen.at().unwrap_or_default();
    reading(seen, now.stamp, origin, |clock| {
        json!({
            "ahead_s": ms(clock.ahead_ms(by_console(at))),
            "within_s": clock.within.as_secs_f64(),
        })
    })
}

#[expect(
    clippy::cast_precision_loss,
    reason = "milliseconds for a person; a clock that is off by millennia is off"
)]
fn ms(ms: i64) -> f64 {
    ms as f64 / 1000.0
}

fn node_json(state: &State, id: NodeId, now: Now) -> Option<Value> {
    let (node, seen, view) = (
        state.config.node(id)?,
        state.observed.node(id)?,
        state.nodes.get(id.index())?,
    );
    let (at, told) = (now.stamp, told_until(state, id, now.stamp));
    let mut value = json!({
        "name": node.name,
        "role": node.role,
        "address": node.login.host,
        "fabric_address": node.fabric_address,
        "expected_gpus": node.gpus,
        "login": if node.relayed { "jump" } else { "own" },
        "link": link_json(&seen.link, view.last_error.as_ref(), now),
        "clock": clock(state, id, now),
        "unread": view.unread.iter().map(|(what, u)| json!({ "what": what, "why": u.why, "for_s": seconds(told, u.since) })).collect::<Vec<_>>(),
        "load": load::node(state, id, view, now),
        "log": log::log(view, at, heard_until(state, id, at)),
        "restarts_lately": view.restarts.lately(at),
        "problems": view.problems,
    });
    if let Value::Object(map) = &mut value {
        let read = readings(state, id, seen, now);
        map.extend(read.into_iter().map(|(key, value)| (key.to_owned(), value)));
    }
    Some(value)
}
