//! Where the cluster stands, in one mark for each part: what the top line, the panes and the hint of what to do next agree on.

use crate::domain::container::{Container, ContainerState};
use crate::domain::event::Subject;
use crate::domain::link::LinkState;
use crate::domain::ray::RayFacts;
use crate::domain::{NodeId, Role, Stamp};
use crate::model::schedule::{every, ray_every};
use crate::model::state::ServingState;
use crate::model::{State, listens_since, server_since};
use ratatui::style::Style;

use super::look::Look;
use super::words::seconds;

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
    if !seen.link.usable()
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
    pub joined: usize,
    pub all: usize,
    pub mark: Mark,
}

/// The workers together.
pub(super) fn workers(state: &State, now: Stamp) -> Workers {
    let marks: Vec<Mark> = state
        .config
        .node_ids()
        .filter(|id| state.config.node(*id).is_some_and(|n| n.role == Role::Worker))
        .map(|id| node(state, id, now))
        .collect();
    let joined = marks.iter().filter(|m| **m == Mark::Yes).count();
    let any = |mark| marks.contains(&mark);
    let mark = if joined == marks.len() {
        Mark::Yes
    } else if any(Mark::Bad) {
        Mark::Bad
    } else if any(Mark::Unknown) {
        Mark::Unknown
    } else if any(Mark::Busy) || joined > 0 {
        Mark::Busy
    } else {
        Mark::No
    };
    Workers {
        joined,
        all: marks.len(),
        mark,
    }
}

/// The model server.
pub(super) fn serve(state: &State) -> Mark {
    match &state.server.state {
        ServingState::Unknown => Mark::Unknown,
        ServingState::Down => Mark::No,
        ServingState::Loading | ServingState::Answering => Mark::Busy,
        ServingState::Ready => Mark::Yes,
        ServingState::Degraded(_) | ServingState::Failed(_) => Mark::Bad,
    }
}

/// How long the server has been as it is: `5 s`; of one that was found so `listens for 5 s`, where its log tells, else `known for 5 s`.
pub(super) fn serves_for(state: &State, now: Stamp) -> String {
    let since = server_since(state);
    match listens_since(state).filter(|_| since.found) {
        Some(listens) => format!("listens for {}", seconds(now.since(listens))),
        None if since.found => format!("known for {}", seconds(since.age(now))),
        None => seconds(since.age(now)),
    }
}
