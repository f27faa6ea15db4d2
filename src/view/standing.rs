//! Where the cluster stands, in one mark for each part: what the top line, the panes and the hint of what to do next agree on.

use std::time::Duration;

use crate::domain::container::{Container, ContainerState};
use crate::domain::event::Subject;
use crate::domain::link::LinkState;
use crate::domain::ray::RayFacts;
use crate::domain::{NodeId, Stamp};
use crate::model::schedule::{every, ray_every};
pub(super) use crate::model::serves_for;
use crate::model::state::ServingState;
use crate::model::{State, connected};
use ratatui::style::Style;

use super::look::Look;

/// How a part is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    /// As it should be.
    Yes,
    /// On its way.
    Busy,
    /// Not there.
    No,
    /// Broken.
    Bad,
    /// Ended by the operator.
    Stopped,
    /// Nobody knows.
    Unknown,
}

impl Mark {
    pub(super) fn glyph(self) -> &'static str {
        match self {
            Self::Yes => "✓",
            Self::Busy => "▸",
            Self::No => "·",
            Self::Bad => "✗",
            Self::Stopped => "■",
            Self::Unknown => "?",
        }
    }

    pub(super) fn style(self, look: &Look) -> Style {
        match self {
            Self::Yes => look.good(),
            Self::Busy => look.busy(),
            Self::No => look.dim(),
            Self::Bad => look.bad(),
            Self::Stopped | Self::Unknown => look.warn(),
        }
    }
}

/// The mark of a connection.
pub(super) fn link(link: &LinkState) -> Mark {
    match link {
        LinkState::Up => Mark::Yes,
        LinkState::Idle | LinkState::Connecting | LinkState::Asking => Mark::Busy,
        LinkState::Silent { .. } => Mark::Unknown,
        LinkState::Down { .. } => Mark::Bad,
    }
}

/// A word for a connection.
pub(super) fn link_word(link: &LinkState) -> &'static str {
    match link {
        LinkState::Idle => "waiting",
        LinkState::Connecting => "connecting",
        LinkState::Asking => "asks",
        LinkState::Up => "connected",
        LinkState::Silent { .. } => "silent",
        LinkState::Down { .. } => "down",
    }
}

/// The container of the configured name on a node.
pub(super) fn container(state: &State, id: NodeId) -> Option<&Container> {
    let name = &state.config.container.name;
    state.observed.node(id)?.containers.value()?.named(name)
}

/// Whether Ray has the node alive at exactly its fabric address, with its GPUs.
fn member(state: &State, id: NodeId, ray: &RayFacts) -> bool {
    let found = state
        .config
        .node(id)
        .and_then(|n| Some((n, ray.alive_at(&n.fabric_address)?)));
    found.is_some_and(|(node, seen)| seen.has_gpus(node.gpus))
}

/// A node's place in the Ray cluster. What was seen too long ago says nothing of now.
pub(super) fn node(state: &State, id: NodeId, now: Stamp) -> Mark {
    let Some(seen) = state.observed.node(id) else {
        return Mark::Unknown;
    };
    let containers = &seen.containers;
    if !connected(state, id)
        || containers.value().is_none()
        || containers.stale(now, every(state, id, Subject::Containers))
    {
        return Mark::Unknown;
    }
    match container(state, id).map(|c| &c.state) {
        None => Mark::No,
        Some(ContainerState::Running) => match state.observed.ray.value() {
            Some(ray) if state.observed.ray.stale(now, ray_every(ray.via)) => Mark::Unknown,
            Some(ray) if member(state, id, ray) => Mark::Yes,
            Some(_) | None => Mark::Busy,
        },
        Some(ContainerState::Created | ContainerState::Restarting) => Mark::Busy,
        Some(ContainerState::Exited { code: 0, oom: false }) => Mark::No,
        Some(ContainerState::Exited { .. } | ContainerState::Paused | ContainerState::Other(_)) => Mark::Bad,
    }
}

/// The workers together: how many are members, of how many.
pub(super) struct Workers {
    /// As far as was known last; `None` when nothing of any of them was ever known.
    pub joined: Option<usize>,
    pub all: usize,
    pub mark: Mark,
    /// How old the oldest of what it rests on is, where some worker is out of sight.
    pub stale: Option<Duration>,
}

/// The workers together. One that is out of sight counts as what it was last.
pub(super) fn workers(state: &State, now: Stamp) -> Workers {
    let ids: Vec<NodeId> = state.config.workers().collect();
    let marks: Vec<Mark> = ids.iter().map(|id| node(state, *id, now)).collect();
    let mut known = Vec::new();
    let mut stale = None;
    for (id, mark) in ids.iter().zip(&marks) {
        match mark {
            Mark::Unknown => {
                if let Some((was, age)) = last(state, *id, now) {
                    known.push(was);
                    stale = stale.max(Some(age));
                }
            }
            Mark::Yes | Mark::Busy | Mark::No | Mark::Bad | Mark::Stopped => known.push(*mark == Mark::Yes),
        }
    }
    let any = |mark| marks.contains(&mark);
    let mark = if marks.iter().all(|m| *m == Mark::Yes) {
        Mark::Yes
    } else if any(Mark::Bad) {
        Mark::Bad
    } else if any(Mark::Unknown) {
        Mark::Unknown
    } else if any(Mark::Busy) || any(Mark::Yes) {
        Mark::Busy
    } else {
        Mark::No
    };
    Workers {
        joined: (!known.is_empty() || ids.is_empty()).then(|| known.iter().filter(|was| **was).count()),
        all: ids.len(),
        mark,
        stale,
    }
}

/// Whether a node that is out of sight was a member when it was seen last, and how old that is; `None` when it was never known.
fn last(state: &State, id: NodeId, now: Stamp) -> Option<(bool, Duration)> {
    let containers = &state.observed.node(id)?.containers;
    let seen = containers.age(now)?;
    if container(state, id).is_none_or(|c| c.state != ContainerState::Running) {
        return Some((false, seen));
    }
    let ray = &state.observed.ray;
    let was = member(state, id, ray.value()?);
    Some((was, seen.max(ray.age(now)?)))
}

/// The model server.
pub(super) fn serve(state: &State) -> Mark {
    match &state.server.state {
        ServingState::Unknown => Mark::Unknown,
        ServingState::Down => Mark::No,
        ServingState::Loading | ServingState::Answering => Mark::Busy,
        ServingState::Ready => Mark::Yes,
        ServingState::Stopping => Mark::Stopped,
        ServingState::Degraded(_) | ServingState::Failed(_) => Mark::Bad,
    }
}
