//! Where a node's load stands.

use std::time::Duration;

use crate::domain::NodeId;
use crate::domain::link::LinkState;
use crate::domain::load::Stage;
use crate::view::Scene;
use crate::view::top::load_bar;
use crate::view::widgets::row::Row;
use crate::view::words::seconds;

use super::readings::label;

/// Time without progress from which it is worth a warning. The engine's longest silent stage, compiling, goes on for minutes, so it is no verdict:
/// that is the configured stall limit.
const QUIET: Duration = Duration::from_secs(60);

/// The load's row.
pub(super) fn row<'a>(scene: &Scene<'a>, id: NodeId, dense: bool) -> Row<'a> {
    let (look, now) = (scene.look, scene.now.stamp);
    let mut row = Row::new();
    row.put(if dense { 4 } else { 0 }, label("load", dense), look.label());
    let Some(node) = scene.state.nodes.get(id.index()) else {
        return row;
    };
    if !scene.state.loads() {
        row.put(0, "nothing loads here yet", look.dim());
        return row;
    }
    let load = &node.load;
    let with_head = head_stage(scene, id);
    // What this row is read from: the node's own log, else the head's.
    let from = if load.stage.is_some() {
        id
    } else {
        scene.state.config.head()
    };
    if !reached(scene, from) {
        last_seen(scene, load.stage.map(|(stage, _)| stage).or(with_head), &mut row);
        return row;
    }
    match load.stage {
        None if with_head == Some(Stage::Listening) => {
            row.put(0, "done, with the head", look.good());
            return row;
        }
        None if with_head.is_some() => {
            let stage = with_head.map_or("loading", Stage::word);
            row.put(0, format!("with the head: {stage}"), look.text());
            row.put(4, "(inferred from memory)", look.dim());
        }
        None => {
            row.put(0, "nothing loads here yet", look.dim());
            return row;
        }
        Some((Stage::Listening, _)) => {
            row.put(0, "done, the server listens", look.good());
            return row;
        }
        Some((Stage::WaitingForGpus, _)) if load.gpu_wait.is_some() => {
            let waited = Duration::from_secs(load.gpu_wait.unwrap_or_default());
            row.put(
                0,
                format!("{} for {}", Stage::WaitingForGpus.word(), seconds(waited)),
                look.warn(),
            );
        }
        Some(_) => load_bar(look, load, now, &mut row),
    }
    if let Some(at) = load.progress_at {
        let age = now.since(at);
        let style = match age {
            age if age > scene.state.config.limits.stall => look.bad(),
            age if age > QUIET => look.warn(),
            _ => look.dim(),
        };
        let text = if dense {
            format!("moved {}", seconds(age))
        } else {
            format!("moved {} ago", seconds(age))
        };
        row.put(1, text, style).right();
    }
    row
}

/// Whether a node says now what it says.
pub(super) fn reached(scene: &Scene<'_>, id: NodeId) -> bool {
    scene.state.observed.node(id).is_some_and(|n| match n.link {
        LinkState::Up => true,
        LinkState::Idle
        | LinkState::Connecting
        | LinkState::Asking
        | LinkState::Silent { .. }
        | LinkState::Down { .. } => false,
    })
}

/// A load whose node is out of sight: nobody knows how far it is now, so there is no bar and no time left.
fn last_seen(scene: &Scene<'_>, stage: Option<Stage>, row: &mut Row<'_>) {
    let stage = stage.map_or("nothing", Stage::word);
    row.put(0, format!("last seen: {stage}"), scene.look.dim());
    row.put(1, "not known now", scene.look.warn());
}

/// The stage of the head's load, for a worker: its own engine prints little or nothing.
pub(super) fn head_stage(scene: &Scene<'_>, id: NodeId) -> Option<Stage> {
    let head = scene.state.config.head();
    let load = &scene.state.nodes.get(head.index())?.load;
    load.stage.filter(|_| id != head).map(|(stage, _)| stage)
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
