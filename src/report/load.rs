//! The load of the model: of the whole, and of each node's part in it.

use serde_json::{Value, json};

use crate::domain::units::Bytes;
use crate::domain::{NodeId, Now, When};
use crate::model::State;
use crate::model::load::eta::Basis;
use crate::model::load::verdict::{Judgement, Verdict};
use crate::model::load::{Load, Rank};
use crate::model::loading::{self, Part};
use crate::model::state::NodeView;

use super::reading::{at_least, explained, sure};

/// A node's part of the load. Without a server that loads or has loaded, what the log says is about one that is gone: only its failures are told.
pub(super) fn node(state: &State, id: NodeId, view: &NodeView, now: Now) -> Value {
    let load = &view.load;
    let part = loading::part(state, id);
    let mut value = json!({
        "progress_age_s": load.progress_at.filter(|_| state.loads()).and_then(|t| sure(now.stamp, t)),
        "failures": load.failures.iter().map(|(_, text)| text).collect::<Vec<_>>(),
        "transports": load.transports,
        "ranks": ranks(state, load, now),
        "checkpoint_bytes": load.checkpoint.filter(|_| state.loads()).map(|b| b.0),
        "verdict": loading::judge(state, Some(id), now.stamp).map(|j| judgement(&j, now)),
    });
    add(&mut value, place(part.as_ref(), now));
    explained(value, |key| match key {
        "progress_age_s" if state.loads() => "nothing tells when it last went on".to_owned(),
        "checkpoint_bytes" if state.loads() => "the engine did not tell it".to_owned(),
        _ => missing(state, part.as_ref(), key).to_owned(),
    })
}

/// Why a value of a part is null.
fn missing(state: &State, part: Option<&Part>, key: &str) -> &'static str {
    let Some(part) = part else {
        return match state.loads() {
            true => "nothing tells how far it is",
            false => "nothing loads here, or has loaded",
        };
    };
    let found = part.since.is_some_and(|since| since.found);
    match key {
        "stage_for_at_least_s" if part.since.is_some() && !found => "it is known since when",
        "stage_for_s" | "stage_for_at_least_s" => "nothing tells since when",
        "done" | "total" => "the stage has no bar",
        "eta_s" if part.bar.is_some() => "two steps were not seen yet, or it is done",
        "eta_s" => "the stage has no bar",
        "done_bytes" | "total_bytes" => "nothing tells it in bytes",
        "share_percent" | "share_inferred" => "nothing tells what share is done",
        "verdict" => "nothing loads here, or it is done",
        _ => "nothing tells it",
    }
}

/// The load as a whole: the head's part, with the time left and what that is known from.
pub(super) fn whole(state: &State, now: Now) -> Value {
    let part = loading::whole(state);
    let judged = loading::judge(state, None, now.stamp);
    let left = loading::time_left(state, judged.as_ref(), now.stamp);
    let basis = left.as_ref().ok().map(|eta| match eta.basis {
        Basis::EarlierLoads(_) => "earlier-loads",
        Basis::Rate(_) => "rate",
    });
    // Those that the time left rests on: others are known and went at another pace.
    let alike = left.as_ref().map_or(0, |eta| match eta.basis {
        Basis::EarlierLoads(n) => n,
        Basis::Rate(_) => 0,
    });
    let of = left.as_ref().ok().and_then(|eta| match eta.basis {
        Basis::EarlierLoads(_) => None,
        Basis::Rate(stage) => Some(stage),
    });
    let mut value = json!({
        "left_s": left.as_ref().ok().map(|eta| eta.left.as_secs_f64()),
        "left_from": basis,
        "left_of_stage": of,
        "left_reason": left.as_ref().err(),
        "earlier_loads": alike,
        "verdict": judged.map(|j| judgement(&j, now)),
    });
    add(&mut value, place(part.as_ref(), now));
    explained(value, |key| match (key, &left) {
        ("left_s" | "left_from" | "left_of_stage", Err(why)) => (*why).to_string(),
        ("left_of_stage", Ok(_)) => "it is all that is left".to_owned(),
        _ => missing(state, part.as_ref(), key).to_owned(),
    })
}

/// How far a part is. All of it is null where nothing loads.
fn place(part: Option<&Part>, now: Now) -> Value {
    let bytes =
        |which: fn(&(Bytes, Option<Bytes>)) -> Option<Bytes>| part.and_then(|p| which(p.bytes.as_ref()?)).map(|b| b.0);
    let bar = part.and_then(|p| p.bar);
    let share = part.and_then(|p| p.share);
    json!({
        "stage": part.map(|p| p.stage),
        "stage_guessed": part.map(|p| p.guessed),
        "stage_for_s": part.and_then(|p| p.since).and_then(|since| sure(now.stamp, since)),
        "stage_for_at_least_s": part.and_then(|p| p.since).and_then(|since| at_least(now.stamp, since)),
        "told_by": part.map(|p| p.told_by),
        "done": bar.map(|b| b.done),
        "total": bar.map(|b| b.total),
        "done_bytes": bytes(|(done, _)| Some(*done)),
        "total_bytes": bytes(|(_, total)| *total),
        "share_percent": share.map(|(share, _)| (share * 1000.0).round() / 10.0),
        "share_inferred": share.map(|(_, guess)| guess),
        "eta_s": bar.and_then(|b| b.eta()).map(|d| d.as_secs_f64()),
    })
}

fn ranks(state: &State, load: &Load, now: Now) -> Vec<Value> {
    let show = |rank: &Rank| {
        let stage = loading::rank_stage(load, rank);
        let node = loading::node_of(state, rank.address.as_deref()).map(|id| state.config.node_name(id));
        let said = json!({
            "name": rank.name,
            "rank": rank.number,
            "pid": rank.pid,
            "address": rank.address,
            "node": node,
            "stage": stage.map(|(stage, ..)| stage),
            "stage_for_s": stage.and_then(|(_, since, _)| sure(now.stamp, since)),
            "done": rank.bar.map(|b| b.done),
            "total": rank.bar.map(|b| b.total),
        });
        explained(said, |key| {
            match key {
                "address" => "it is on the host whose log this is",
                "node" if rank.address.is_some() => "no configured node has its address",
                "stage" => "no line of it names one",
                "stage_for_s" => "nothing tells since when",
                "done" | "total" => "its stage has no bar",
                _ => "no line of it tells",
            }
            .to_owned()
        })
    };
    load.ranks.iter().filter(|_| state.loads()).map(show).collect()
}

fn judgement(judged: &Judgement, now: Now) -> Value {
    let since = match &judged.verdict {
        Verdict::Stalled { since } | Verdict::Silent { since } => Some(*since),
        Verdict::Early { since } => Some(When::at(*since)),
        Verdict::Progressing | Verdict::Slow | Verdict::Waiting(_) => None,
    };
    let what = match &judged.verdict {
        Verdict::Waiting(what) => Some(what),
        Verdict::Progressing
        | Verdict::Early { .. }
        | Verdict::Slow
        | Verdict::Stalled { .. }
        | Verdict::Silent { .. } => None,
    };
    let said = json!({
        "verdict": judged.verdict.word().replace(' ', "-"),
        "waits_for": what,
        "for_s": since.and_then(|since| sure(now.stamp, since)),
        "for_at_least_s": since.and_then(|since| at_least(now.stamp, since)),
        "evidence": judged.evidence,
        "advice": judged.advice,
    });
    explained(said, |key| {
        match key {
            "waits_for" => "it waits for nothing that is known",
            "advice" => "there is none yet",
            "for_s" if since.is_some() => "nothing tells since when",
            "for_at_least_s" if since.is_some() => "it is known since when",
            _ => "it stands still for no time that is known",
        }
        .to_owned()
    })
}

fn add(to: &mut Value, more: Value) {
    if let (Value::Object(to), Value::Object(more)) = (to, more) {
        to.extend(more);
    }
}
