//! Where a node's load stands.

use std::time::Duration;

use ratatui::style::Style;

use crate::domain::load::Stage;
use crate::domain::{NodeId, Stamp};
use crate::model::load::eta::{self, Basis};
use crate::model::load::verdict::{Judgement, Verdict};
use crate::model::loading::{self, Part, ToldBy};
use crate::model::state::ServingState;
use crate::model::{connected, lost_since};
use crate::view::Scene;
use crate::view::look::Look;
use crate::view::widgets::row::Row;
use crate::view::words::{ago, gib, seconds};

use super::readings::label;

/// The load's rows: how far it is, and what that rests on where it does not simply go on.
pub(super) fn rows<'a>(scene: &Scene<'a>, id: NodeId, dense: bool) -> Vec<Row<'a>> {
    let look = scene.look;
    let mut row = Row::new();
    row.put(if dense { 4 } else { 0 }, label("load", dense), look.label());
    let Some(part) = loading::part(scene.state, id) else {
        let (text, style) = nothing(scene, id);
        row.put(0, text, style);
        return vec![row];
    };
    if let Some(from) = out_of_sight(scene, &part, id) {
        last_seen(scene, &part, from, &mut row);
        return vec![row];
    }
    match part.stage {
        Stage::Ready => {
            row.put(0, "done, a token came back", look.good());
            return vec![row];
        }
        Stage::Listening => {
            let head = id == scene.state.config.head();
            let text = if head {
                "done, the server listens"
            } else {
                "done, with the head"
            };
            row.put(0, text, look.good());
        }
        Stage::Image
        | Stage::Container
        | Stage::Starting
        | Stage::Placement
        | Stage::Distributed
        | Stage::Download
        | Stage::Weights
        | Stage::Compile
        | Stage::KvCache
        | Stage::Graphs
        | Stage::Warmup => progress(scene, &part, dense, &mut row),
    }
    let judged = loading::judge(scene.state, Some(id), scene.now.stamp);
    let Some(judged) = judged else { return vec![row] };
    if part.stage < Stage::Listening || judged.verdict != Verdict::Progressing {
        let text = if dense {
            judged.verdict.word().to_owned()
        } else {
            judged.verdict.text(scene.now.stamp)
        };
        row.put(1, text, tone(look, &judged.verdict)).right();
    }
    let mut rows = vec![row];
    rows.extend(because(scene, &judged, dense));
    rows
}

/// Where nothing loads: what has become of the load, where there was one and its server failed.
fn nothing(scene: &Scene<'_>, id: NodeId) -> (String, Style) {
    let (state, look) = (scene.state, scene.look);
    let yet = || ("nothing loads here yet".to_owned(), look.dim());
    let failed = match &state.server.state {
        ServingState::Failed(_) => true,
        ServingState::Down => false,
        ServingState::Stopping => return ("ends with the server".to_owned(), look.dim()),
        ServingState::Unknown
        | ServingState::Loading
        | ServingState::Answering
        | ServingState::Ready
        | ServingState::Degraded(_) => return yet(),
    };
    let load = state.nodes.get(id.index()).map(|view| &view.load);
    let text = match load.and_then(|load| load.stage.as_ref().or(load.entered.last())) {
        Some((stage, _)) if *stage >= Stage::Listening && failed => {
            "was done, and the server has failed since".to_owned()
        }
        Some((stage, _)) if *stage >= Stage::Listening => "over: the server is gone".to_owned(),
        Some((stage, _)) if failed => format!("failed at: {}", stage.word()),
        Some((stage, _)) => format!("ended at: {}", stage.word()),
        None if !failed => return yet(),
        None if id == state.config.head() => "failed".to_owned(),
        None => "failed with the server".to_owned(),
    };
    (text, if failed { look.bad() } else { look.warn() })
}

/// The stage, its bar, and how much of it is there.
fn progress<'a>(scene: &Scene<'a>, part: &Part, dense: bool, row: &mut Row<'a>) {
    let (look, now) = (scene.look, scene.now.stamp);
    let word = word(part);
    match part.bar {
        Some(bar) => row.put(0, format!("{word} {}/{}", bar.done, bar.total), look.text()),
        None => row.put(0, word, look.text()),
    };
    match part.share {
        Some((share, guess)) => {
            let style = if guess { look.dim() } else { look.bar() };
            row.bar(3, share, style, (6, 16));
            if guess {
                row.put(1, format!("{:.0} % inferred", share * 100.0), look.dim());
            }
        }
        None => {
            if let Some(took) = took(part, now) {
                row.put(3, took, look.text());
            }
        }
    }
    if let Some((done, total)) = part.bytes.filter(|_| !dense) {
        let text = match total {
            Some(total) => format!("{}/{} GiB", gib(done), gib(total)),
            None => format!("{} GiB", gib(done)),
        };
        row.put(5, text, look.dim());
    }
    if part.told_by == ToldBy::Inferred && part.share.is_none() {
        row.put(1, "inferred", look.dim());
    }
}

/// A stage's word. That of a container would be the name of a thing, and a time beside it that thing's age.
fn word(part: &Part) -> &'static str {
    if part.stage == Stage::Container {
        "container starts"
    } else {
        part.word()
    }
}

/// How long a stage has taken, from its first second on: before that there is nothing to count, and `0 s` would be read as a result.
fn took(part: &Part, now: Stamp) -> Option<String> {
    let since = part.since.filter(|since| since.age(now) >= Duration::from_secs(1))?;
    Some(ago(since, now))
}

/// What a verdict rests on, where it is not that all goes on; in a dense pane only what is bad.
fn because<'a>(scene: &Scene<'a>, judged: &Judgement, dense: bool) -> Option<Row<'a>> {
    let bad = match judged.verdict {
        Verdict::Progressing => false,
        Verdict::Early { .. }
        | Verdict::Waiting(_)
        | Verdict::Slow
        | Verdict::Stalled { .. }
        | Verdict::Silent { .. } => true,
    };
    // A silence is worth a word even where something moves: that is what it is there for.
    let silent = judged
        .evidence
        .first()
        .is_some_and(|first| first.starts_with("no line"));
    if !(bad || (silent && !dense)) {
        return None;
    }
    let mut row = Row::new();
    row.put(0, label("", dense), scene.look.label());
    let text = judged.advice.clone().unwrap_or_else(|| judged.evidence.join("; "));
    row.put(
        0,
        text,
        if bad {
            tone(scene.look, &judged.verdict)
        } else {
            scene.look.dim()
        },
    )
    .tight();
    Some(row)
}

/// How a verdict looks.
pub(in crate::view) fn tone(look: &Look, verdict: &Verdict) -> Style {
    match verdict {
        Verdict::Progressing | Verdict::Early { .. } => look.dim(),
        Verdict::Waiting(_) => look.busy(),
        Verdict::Slow | Verdict::Silent { .. } => look.warn(),
        Verdict::Stalled { .. } => look.bad(),
    }
}

/// The node that a part of the load is known from and that does not say now what it said: the one whose log tells of it, else the one on which it was inferred.
pub(super) fn out_of_sight(scene: &Scene<'_>, part: &Part, id: NodeId) -> Option<NodeId> {
    let head = scene.state.config.head();
    let guess = part.share.is_some_and(|(_, guess)| guess);
    let (log, moves) = match part.told_by {
        ToldBy::OwnLog | ToldBy::Outside => (id, None),
        ToldBy::HeadLog => (head, guess.then_some(id)),
        ToldBy::Inferred => (head, Some(id)),
    };
    [Some(log), moves]
        .into_iter()
        .flatten()
        .find(|from| !connected(scene.state, *from))
}

/// A load whose node is out of sight: what was known last, as old as it is. Nobody knows how far it is now, so there is no bar and no time left.
fn last_seen(scene: &Scene<'_>, part: &Part, from: NodeId, row: &mut Row<'_>) {
    row.put(0, format!("last seen: {}", figures(part)), scene.look.stale());
    if let Some(since) = lost_since(scene.state, from) {
        row.put(
            1,
            format!("{} ago", seconds(since.age(scene.now.stamp))),
            scene.look.warn(),
        );
    }
    row.put(2, "not known now", scene.look.warn());
}

/// A stage with how far it was, in few words.
pub(super) fn figures(part: &Part) -> String {
    let word = word(part);
    match (part.bar, part.share) {
        (Some(bar), _) => format!("{word} {}/{}", bar.done, bar.total),
        (None, Some((share, guess))) => {
            let guess = if guess { " inferred" } else { "" };
            format!("{word} {:.0} %{guess}", share * 100.0)
        }
        (None, None) if part.told_by == ToldBy::Inferred => format!("{word} (inferred)"),
        (None, None) => word.to_owned(),
    }
}

/// The first failure line of this start, when there is one.
pub(super) fn failure<'a>(scene: &Scene<'a>, id: NodeId) -> Option<Row<'a>> {
    let load = &scene.state.nodes.get(id.index())?.load;
    let (_, first) = load.failures.first()?;
    let mut row = Row::new();
    row.put(0, format!("✗ {first}"), scene.look.bad());
    let more = load.failures.len() - 1;
    if more > 0 {
        row.put(1, format!("+{more} more"), scene.look.bad()).right();
    }
    Some(row)
}

/// The load as a whole, for the line on top: its stage, its bar and the time left.
pub(in crate::view) fn whole<'a>(scene: &Scene<'a>, row: &mut Row<'a>) {
    let (state, look, now) = (scene.state, scene.look, scene.now.stamp);
    let Some(part) = loading::whole(state) else {
        row.put(2, "starting", look.busy());
        return;
    };
    let seen = out_of_sight(scene, &part, state.config.head()).is_none();
    match part.bar {
        _ if !seen => row.put(2, format!("last seen: {}", figures(&part)), look.stale()),
        Some(bar) => row.put(2, format!("{} {}/{}", word(&part), bar.done, bar.total), look.text()),
        None => {
            let took = took(&part, now).map_or(String::new(), |took| format!(" {took}"));
            row.put(2, format!("{}{took}", word(&part)), look.text())
        }
    };
    if let Some((share, _)) = part.share.filter(|_| seen) {
        row.bar(4, share, look.bar(), (6, 16));
    }
    let judged = loading::judge(state, None, now);
    if let Some(judged) = judged.as_ref().filter(|j| j.verdict != Verdict::Progressing) {
        row.put(2, judged.verdict.text(now), tone(look, &judged.verdict));
    }
    if let Ok(eta) = loading::time_left(state, judged.as_ref(), now) {
        let about = eta::about(eta.left);
        // A rate says when the stage beside it is done, and not when the server answers: the words for that never go without the time.
        let text = match eta.basis {
            Basis::EarlierLoads(_) => format!("{about} left"),
            Basis::Rate(_) => format!("{} of it left", about.trim_start_matches("about ")),
        };
        row.put(2, text, look.text());
    }
}

/// The load as a whole, for the server's pane: how long it still takes and from what that is known, how it goes, and what that rests on.
pub(in crate::view) fn summary<'a>(scene: &Scene<'a>) -> Vec<Row<'a>> {
    let (state, look, now) = (scene.state, scene.look, scene.now.stamp);
    let judged = loading::judge(state, None, now);
    let mut first = Row::new();
    match loading::time_left(state, judged.as_ref(), now) {
        Ok(eta) => first.put(0, eta.text(), look.strong()),
        Err(why) => first.put(0, format!("time left not known: {why}"), look.dim()),
    };
    if let Some(judged) = &judged {
        first.put(1, judged.verdict.word(), tone(look, &judged.verdict)).right();
    }
    let mut rows = vec![first];
    if let Some(judged) = judged.filter(|j| !j.evidence.is_empty()) {
        let text = judged.advice.clone().unwrap_or_else(|| judged.evidence.join("; "));
        let mut row = Row::new();
        row.clauses(0, &text, tone(look, &judged.verdict));
        rows.push(row);
    }
    rows
}
