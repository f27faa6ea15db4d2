//! What a ready server has lost of its cluster.
//!
//! A loss stays until the part is seen back: a reading that can't be had now is no sign that all is whole. A worker that was started anew is not back: the rank
//! that served was in its earlier life, and only another start of the server gives it one.
//!
//! That a life is a later one is told by its identity, where the console has known the one before. A console that finds a ready server compares times, and
//! only where the cluster can't do without that worker. Those come from several clocks; where they leave a doubt nothing is said.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::domain::container::{Container, ContainerState};
use crate::domain::event::Subject;
use crate::domain::load::Stage;
use crate::domain::ray::{RayFacts, RayNode};
use crate::domain::{NodeId, Stamp, Wall};

use super::causes::{self, current};
use super::ends;
use super::life;
use super::schedule::{every, ray_every};
use super::server::{listens_since, proven, wrong_model};
use super::state::{ServingState, Started, State};
use super::why::{lost_since, silent_with_its_hop};

/// What the times of two clocks may differ by for rounding and for the error of a look.
const SLACK: Duration = Duration::from_secs(5);

/// How long a server may wait for its workers after its process began: vLLM's limit for a placement group (`PG_WAIT_TIMEOUT`), and that of PyTorch's store.
const WAITS: Duration = Duration::from_secs(1800);

/// What a server that is proven has lost, and what it was proven with. All of it is about one start of the server; an entry a node at most.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Losses {
    /// When it was proven, as far as the console knows; `None` while it is not.
    proven: Option<Stamp>,
    /// The containers in which its ranks are.
    containers: BTreeMap<NodeId, Started>,
    /// The ids of the lives in Ray in which they are.
    lives: BTreeMap<NodeId, String>,
    /// What it calls its models, where none of them is the configured one.
    model: Option<String>,
    /// Nodes that were lost, and whose containers have not been read since.
    away: BTreeSet<NodeId>,
    /// What is wrong with the container of a worker.
    container: BTreeMap<NodeId, Loss>,
    /// What is wrong with a node in Ray.
    ray: BTreeMap<NodeId, Loss>,
}

/// One part that is lost.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Loss {
    /// What is wrong, in words.
    why: String,
    /// Whether the part is there, and only came after the server.
    anew: bool,
}

impl State {
    /// Whether the cluster is whole and the server is not, because a worker was started anew under it: only another start of the server helps.
    #[must_use]
    pub fn needs_new_start(&self) -> bool {
        let losses = &self.losses;
        let mut lost = losses.container.values().chain(losses.ray.values()).peekable();
        lost.peek().is_some() && lost.all(|l| l.anew) && losses.away.is_empty() && losses.model.is_none()
    }
}

/// How a worker has another life now than the one in which its rank of the model server was: the inner `None` where that is not so, the outer one where
/// nobody knows. A server that has failed lost it, too: its log tells since when it had its ranks.
pub(super) fn anew_under(state: &State, id: NodeId) -> Option<Option<String>> {
    let losses = &state.losses;
    let lost = [losses.container.get(&id), losses.ray.get(&id)];
    if let Some(loss) = lost.into_iter().flatten().find(|loss| loss.anew) {
        return Some(Some(loss.why.clone()));
    }
    match state.server.state {
        ServingState::Failed(_) if id != state.config.head() => {}
        ServingState::Failed(_)
        | ServingState::Unknown
        | ServingState::Down
        | ServingState::Loading
        | ServingState::Answering
        | ServingState::Ready
        | ServingState::Degraded(_)
        | ServingState::Stopping => return Some(None),
    }
    let head = state.nodes.get(state.config.head().index())?;
    let mut after = head
        .load
        .entered
        .iter()
        .filter(|(stage, _)| *stage > Stage::Distributed);
    let ranks = after.find_map(|(_, at)| at.sure())?;
    let began = began(state, id, running(state, id)?)?;
    let late = began > ranks.plus(SLACK) && needed(state, id);
    let own = &state.config.container.name;
    let name = state.config.node_name(id);
    Some(late.then(|| format!("{own} on {name} was started after the server had its ranks")))
}

/// When a container was started that runs, by its age when it was read.
fn began(state: &State, id: NodeId, container: &Container) -> Option<Stamp> {
    let read = state.observed.node(id)?.containers.at()?;
    Some(read.minus(Duration::from_secs(container.up_seconds?)))
}

/// The first part that is lost, in words.
pub(super) fn first(state: &State) -> Option<String> {
    let name = |id| state.config.node_name(id);
    for id in state.config.node_ids() {
        if lost_since(state, id).is_some() && !silent_with_its_hop(state, id) {
            let silent = state.observed.node(id).is_some_and(|n| n.link.usable());
            let what = if silent { "is silent" } else { "can't be reached" };
            return Some(format!("{} {what}", name(id)));
        }
    }
    let losses = &state.losses;
    if let Some(model) = &losses.model {
        return Some(model.clone());
    }
    let seen = losses.container.values().chain(losses.ray.values()).next();
    let away = || losses.away.first();
    seen.map(|loss| loss.why.clone()).or_else(|| {
        away().map(|id| {
            format!(
                "{} could not be reached, and its containers are not known since",
                name(*id)
            )
        })
    })
}

/// Takes what was seen since into what is lost.
pub(super) fn settle(state: &mut State, now: Stamp) {
    if !proven(state) {
        state.losses = Losses::default();
        return;
    }
    let mut losses = std::mem::take(&mut state.losses);
    if losses.proven.is_none() {
        losses.proven = Some(now);
        if comes(state) {
            witness(state, &mut losses);
        }
    }
    if state
        .observed
        .server
        .models
        .value()
        .is_some_and(|names| !names.is_empty())
    {
        losses.model = wrong_model(state);
    }
    for id in state.config.node_ids() {
        away(state, &mut losses, id);
        container(state, &mut losses, id);
        ray(state, &mut losses, id);
    }
    state.losses = losses;
}

/// Whether a server that is proven now was seen to come up, and not found so.
fn comes(state: &State) -> bool {
    match &state.server.state {
        ServingState::Down | ServingState::Loading => true,
        ServingState::Answering => !state.server.found,
        ServingState::Unknown
        | ServingState::Ready
        | ServingState::Degraded(_)
        | ServingState::Stopping
        | ServingState::Failed(_) => false,
    }
}

/// A server that was seen to come up has its ranks in what is there now.
fn witness(state: &State, losses: &mut Losses) {
    for id in state.config.workers() {
        if let Some(container) = running(state, id) {
            losses.containers.insert(id, Started::of(container));
        }
        if let Some(life) = members(state).and_then(|ray| alive(state, ray, id)) {
            losses.lives.insert(id, life.id.clone());
        }
    }
}

/// Whether a node was out of reach and nothing of its container is known since.
fn away(state: &State, losses: &mut Losses, id: NodeId) {
    let Some(seen) = state.observed.node(id) else { return };
    if lost_since(state, id).is_some() && !silent_with_its_hop(state, id) {
        losses.away.insert(id);
        return;
    }
    let linked = state.nodes.get(id.index()).and_then(|n| n.linked_at);
    let known = seen.containers.at();
    if known.is_none() || known >= linked {
        losses.away.remove(&id);
    }
}

/// What is wrong with the container of a worker. Where nobody knows that stays as it was.
fn container(state: &State, losses: &mut Losses, id: NodeId) {
    let Some(how) = ends::standing(state, id) else { return };
    let (config, own) = (&state.config, &state.config.container.name);
    let name = config.node_name(id);
    let wrong = match how {
        Some(how) => Some((format!("{own} on {name} does not run: {how}"), false)),
        None => running(state, id).is_some_and(|c| anew(state, losses, id, c)).then(|| {
            let after = "was started after the server was ready: its rank was in an earlier one";
            (format!("{own} on {name} {after}"), true)
        }),
    };
    set(&mut losses.container, id, wrong);
}

/// Whether a container that runs is not the one that has a rank of the server.
fn anew(state: &State, losses: &mut Losses, id: NodeId, container: &Container) -> bool {
    let own = Started::of(container);
    if let Some(served) = losses.containers.get(&id) {
        return *served != own;
    }
    let Some(began) = began(state, id, container) else {
        return false;
    };
    if before(state, began) {
        losses.containers.insert(id, own);
    }
    // Ray's word is of another clock: one that says that the worker was there before is a doubt.
    let joined = members(state).and_then(|ray| joined(state, alive(state, ray, id)?, id));
    let doubt = joined.is_some_and(|(first, _)| !after(state, losses, first));
    after(state, losses, began) && needed(state, id) && !doubt
}

/// What is wrong with a node in Ray. Where nobody knows that stays as it was.
fn ray(state: &State, losses: &mut Losses, id: NodeId) {
    let (Some(ray), Some(node)) = (members(state), state.config.node(id)) else {
        return;
    };
    let who = format!("{} ({})", node.name, node.fabric_address);
    let wrong = match alive(state, ray, id) {
        None => Some((format!("Ray has lost {who}"), false)),
        Some(life) => (id != state.config.head() && joined_anew(state, losses, ray, life, id)).then(|| {
            let after = "has joined Ray after the server was ready: its rank was in an earlier life";
            (format!("{who} {after}"), true)
        }),
    };
    set(&mut losses.ray, id, wrong);
}

/// Whether a life in Ray is not the one that has a rank of the server.
fn joined_anew(state: &State, losses: &mut Losses, ray: &RayFacts, life: &RayNode, id: NodeId) -> bool {
    if let Some(served) = losses.lives.get(&id) {
        // Two may be registered there: the one that served counts for as long as Ray calls it alive.
        return !ray.alive().any(|n| n.id == *served);
    }
    let Some((first, last)) = joined(state, life, id) else {
        return false;
    };
    if before(state, last) {
        losses.lives.insert(id, life.id.clone());
    }
    let earlier = !ray.dead_at(&life.address).is_empty();
    after(state, losses, first) && (earlier || needed(state, id))
}

/// When a life in Ray began, at the earliest and at the latest: nobody says whether its own node's clock or the head's has told it. `None` where either is
/// not known.
fn joined(state: &State, life: &RayNode, id: NodeId) -> Option<(Stamp, Stamp)> {
    let told = Wall(life.started_ms?);
    let by = |id| {
        let clock = &state.observed.node(id)?.clock;
        Some(clock.value()?.stamp(clock.at()?, told))
    };
    let (own, head) = (by(id)?, by(state.config.head())?);
    Some((own.min(head), own.max(head)))
}

/// Whether what began then was there before the server listened, and may have a rank of it.
fn before(state: &State, began: Stamp) -> bool {
    let known = [life::began(state), listens_since(state)];
    known.into_iter().flatten().any(|at| began <= at)
}

/// Whether what began then came too late to have a rank of the server.
fn after(state: &State, losses: &Losses, began: Stamp) -> bool {
    let waited = life::began(state).map(|at| at.plus(WAITS));
    let known = [losses.proven, listens_since(state), waited];
    known.into_iter().flatten().any(|at| began > at.plus(SLACK))
}

/// Whether the server can't be without a node: the others have too few GPUs for it.
fn needed(state: &State, id: NodeId) -> bool {
    let others = state.config.node_ids().filter(|other| *other != id);
    let gpus: u32 = others
        .filter_map(|other| state.config.node(other))
        .map(|n| n.gpus)
        .sum();
    state.config.serve.tensor_parallel_size > gpus
}

/// The container of a worker that belongs to the cluster, where it is known to run now.
fn running(state: &State, id: NodeId) -> Option<&Container> {
    let seen = &state.observed.node(id)?.containers;
    let all = current(state, seen, every(state, id, Subject::Containers))?;
    let own = all.named(&state.config.container.name)?;
    let member = causes::was_member(state, id) != Some(false);
    (own.state == ContainerState::Running && member).then_some(own)
}

/// Ray's list, where it is not too old.
fn members(state: &State) -> Option<&RayFacts> {
    let seen = &state.observed.ray;
    current(state, seen, ray_every(seen.value()?.via))
}

/// The life of a node that Ray calls alive.
fn alive<'a>(state: &State, ray: &'a RayFacts, id: NodeId) -> Option<&'a RayNode> {
    ray.alive_at(&state.config.node(id)?.fabric_address)
}

fn set(lost: &mut BTreeMap<NodeId, Loss>, id: NodeId, wrong: Option<(String, bool)>) {
    match wrong {
        Some((why, anew)) => lost.insert(id, Loss { why, anew }),
        None => lost.remove(&id),
    };
}
