//! The container of a node.

use std::time::Duration;

use ratatui::style::Style;

use crate::domain::NodeId;
use crate::domain::container::{Container, ContainerState};
use crate::domain::event::Subject;
use crate::domain::load::{Stage, Transport};
use crate::model::schedule::every;
use crate::model::{tells, told_until};
use crate::view::Scene;
use crate::view::age::Age;
use crate::view::look::Look;
use crate::view::standing;
use crate::view::widgets::row::Row;
use crate::view::words::{NOTHING, seconds, unknown};

/// Restarts in ten minutes that are more than a hiccup.
const RESTARTS: u32 = 3;

/// Adds what is known of the node's container, and how NCCL moves data.
pub(super) fn add<'a>(scene: &Scene<'a>, id: NodeId, row: &mut Row<'a>, dense: bool) {
    let look = scene.look;
    let Some(seen) = scene.state.observed.node(id) else {
        return;
    };
    let name = &scene.state.config.container.name;
    if seen.containers.value().is_none() {
        let text = unknown(&seen.containers);
        row.put(0, if dense { format!("container {text}") } else { text }, look.dim());
        return;
    }
    let age = age(scene, id);
    let Some(container) = standing::container(scene.state, id) else {
        let text = if dense {
            format!("no {name}")
        } else {
            format!("none named {name}")
        };
        let ended = scene.state.nodes.get(id.index()).and_then(|n| n.ended.as_ref());
        let Some((end, at)) = ended else {
            row.put(1, text, look.dim());
            return;
        };
        // How it ended says that it is not there, and more.
        let ago = seconds(scene.now.stamp.since(*at));
        let style = if end.code == Some(0) { look.dim() } else { look.bad() };
        row.put(1, format!("{} {ago} ago", end.short()), style);
        row.put(if dense { 5 } else { 2 }, end.name.as_str(), look.text());
        if let Some(memory) = end.memory_before() {
            row.put(3, memory, look.warn());
        }
        if !dense {
            row.put(4, text, look.dim());
        }
        return;
    };
    row.put(if dense { 5 } else { 2 }, name.as_str(), age.tone(look, look.text()));
    let (text, style) = state(look, container, age, if dense { RAN_DENSE } else { RAN });
    row.put(1, text, age.tone(look, style));
    let end = scene.state.nodes.get(id.index()).and_then(|n| n.ended.as_ref());
    if let Some(memory) = end
        .filter(|(end, _)| ended(container, &end.id))
        .and_then(|(end, _)| end.memory_before())
    {
        row.put(2, memory, look.warn());
    }
    if container.ours.is_none() {
        let text = if dense { "not ours" } else { "not started by bringup" };
        row.put(1, text, look.warn());
    }
    if container.restarts > 0 {
        let lately = scene
            .state
            .nodes
            .get(id.index())
            .map_or(0, |n| n.restarts.lately(told_until(scene.state, id, scene.now.stamp)));
        let rate = if lately > 0 {
            format!(", {lately} of them in 10m")
        } else {
            String::new()
        };
        let style = if lately > RESTARTS { look.bad() } else { look.warn() };
        row.put(4, format!("restarted {}x{rate}", container.restarts), style);
    }
    transport(scene, id, row);
    if !dense {
        age.note(look, row);
    }
}

/// What a node's container does, in few words.
pub(super) fn word(scene: &Scene<'_>, id: NodeId) -> (String, Style) {
    let look = scene.look;
    let Some(seen) = scene.state.observed.node(id) else {
        return (NOTHING.to_owned(), look.dim());
    };
    let age = age(scene, id);
    let (text, style) = match (seen.containers.value(), standing::container(scene.state, id)) {
        (None, _) => (NOTHING.to_owned(), look.dim()),
        (Some(_), None) => ("no container".to_owned(), look.dim()),
        (Some(_), Some(container)) => state(look, container, age, RAN_COLUMN),
    };
    (text, age.tone(look, style))
}

/// How old what is known of a node's containers is; of a node that does not tell it is not known to be so now.
pub(in crate::view) fn age(scene: &Scene<'_>, id: NodeId) -> Age {
    let Some(seen) = scene.state.observed.node(id) else {
        return Age::None;
    };
    let period = every(scene.state, id, Subject::Containers);
    Age::of(&seen.containers, period, scene.now.stamp).while_told(tells(scene.state, id))
}

/// The words around how long a container had run when it was seen last, as there is room for them.
pub(in crate::view) type Ran = (&'static str, &'static str);

/// In a row of its own.
pub(in crate::view) const RAN: Ran = ("ran", " when last seen");

/// Beside the age of the readings, or under the line that says how long the node is silent.
const RAN_DENSE: Ran = ("ran", "");

/// In a table's column.
const RAN_COLUMN: Ran = ("last ran", "");

/// How long a container has run. Where nobody knows whether it still does, how long it had when that was seen last.
pub(in crate::view) fn runs(up: Option<Duration>, age: Age, (ran, then): Ran) -> String {
    let goes_on = age.of_what_goes_on();
    let up = up.map(|up| up.saturating_add(goes_on.unwrap_or_default()));
    let long = up.map(|up| format!(" {}", seconds(up))).unwrap_or_default();
    match goes_on {
        Some(_) if up.is_some_and(|up| up < Duration::from_secs(1)) => "just started".to_owned(),
        Some(_) => format!("runs{long}"),
        None => format!("{ran}{long}{then}"),
    }
}

fn state(look: &Look, container: &Container, age: Age, ran: Ran) -> (String, Style) {
    match &container.state {
        ContainerState::Running => {
            let up = container.up_seconds.map(Duration::from_secs);
            (runs(up, age, ran), look.good())
        }
        ContainerState::Created => ("made, not started".to_owned(), look.busy()),
        ContainerState::Paused => ("paused".to_owned(), look.warn()),
        ContainerState::Restarting => ("restarting".to_owned(), look.warn()),
        ContainerState::Exited { oom: true, code } => (format!("✗ out of memory ({code})"), look.bad()),
        ContainerState::Exited { code: 0, .. } => ("ended (0)".to_owned(), look.dim()),
        ContainerState::Exited { code, .. } => (format!("✗ ended with {code}"), look.bad()),
        ContainerState::Other(word) => (word.clone(), look.warn()),
    }
}

/// Whether a container is the one of this id, and has ended.
fn ended(container: &Container, id: &str) -> bool {
    match container.state {
        ContainerState::Exited { .. } => container.id == id,
        ContainerState::Running
        | ContainerState::Created
        | ContainerState::Paused
        | ContainerState::Restarting
        | ContainerState::Other(_) => false,
    }
}

fn transport(scene: &Scene<'_>, id: NodeId, row: &mut Row<'_>) {
    let Some(node) = scene.state.nodes.get(id.index()) else {
        return;
    };
    let seen = &node.load.transports;
    if seen.contains(&Transport::Socket) {
        row.put(3, "NCCL over TCP: slow", scene.look.warn());
    } else if seen.contains(&Transport::Ib) {
        row.put(5, "NCCL over IB", scene.look.good());
    } else if scene.state.loads() && node.load.stage.is_some_and(|(stage, _)| stage > Stage::Distributed) {
        // The engine prints it only where NCCL_DEBUG asks for it.
        row.put(6, "NCCL transport not seen", scene.look.dim());
    }
}
