//! Which probe is due: the core decides, the actors only run them.

use std::time::Duration;

use crate::config::types::Engine;
use crate::domain::cadence;
use crate::domain::command::Exit;
use crate::domain::container::{Container, ContainerState};
use crate::domain::effect::Effect;
use crate::domain::event::{ProbeId, Purpose, Subject};
use crate::domain::image::ImageFacts;
use crate::domain::ray::RayVia;
use crate::domain::serving::{Health, ServerProbe};
use crate::domain::{NodeId, Stamp};

use super::server::{self, proven};
use super::state::{State, Watch};

/// Memory, GPUs, containers, sockets and interfaces of a node, asked for while the stream that tells of them does not run.
pub const NODE_EVERY: Duration = Duration::from_secs(5);
/// How long a stream may not run before its node is asked instead.
const STREAM_WAIT: Duration = Duration::from_secs(4);
/// Model-server processes in the head's container.
pub const SERVE_EVERY: Duration = Duration::from_secs(3);
/// The configured image.
pub const IMAGE_EVERY: Duration = Duration::from_secs(60);
/// The script engine's detached verb.
pub const VERB_EVERY: Duration = Duration::from_secs(2);
/// /health.
pub const HEALTH_EVERY: Duration = Duration::from_secs(2);
/// /v1/models.
pub const MODELS_EVERY: Duration = Duration::from_secs(10);
/// /metrics.
pub const METRICS_EVERY: Duration = Duration::from_secs(1);
/// Ray's membership from the dashboard.
pub const RAY_EVERY: Duration = Duration::from_secs(3);
/// Ray's membership from the head's container, where there is no dashboard: the program there tells it this often.
pub const RAY_IN_CONTAINER_EVERY: Duration = Duration::from_secs(3);
/// How often the program in the head's container is asked to go on; it ends when nobody has asked for three times as long.
pub const RAY_WATCH_EVERY: Duration = Duration::from_secs(10);
/// `ray status`, where nothing else tells of Ray: a call costs the head seconds of a core.
pub const RAY_STATUS_EVERY: Duration = Duration::from_secs(60);
/// Versions in a running container, asked again while they are not known or Ray is not in it yet.
pub const INSIDE_EVERY: Duration = Duration::from_secs(60);
/// Versions in images that differ between the nodes, asked again while they are not known.
pub const VERSIONS_EVERY: Duration = Duration::from_secs(300);

/// The least time between two tokens that are asked for: a failure may have been the request's, and each costs the server one.
pub const TOKEN_AGAIN: Duration = Duration::from_secs(60);

/// A probe that took a while is not asked again before this many times as long: on a node that is slow or busy, the console takes no more than its
/// share of the time and never is what keeps the node busy.
const REST: u32 = 5;
/// Longest such wait: short enough that a membership which is asked for in the container does not go stale between two answers.
const REST_LIMIT: Duration = Duration::from_secs(20);

/// How often membership is asked for where it is read.
#[must_use]
pub fn ray_every(via: RayVia) -> Duration {
    match via {
        RayVia::Dashboard => RAY_EVERY,
        RayVia::Container => RAY_IN_CONTAINER_EVERY,
        RayVia::Status => RAY_STATUS_EVERY,
    }
}

/// What can be asked on a cadence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Asked {
    Node(NodeId, ProbeId),
    Health,
    Models,
    Metrics,
    Ray,
}

/// Adds the probes that are due. Actors leave out one that is still under way.
pub(super) fn due(state: &mut State, now: Stamp, effects: &mut Vec<Effect>) {
    for (asked, every, effect) in cadences(state) {
        let every = every.max(rest(state, asked));
        let is_due = state.asked.get(&asked).is_none_or(|last| now.since(*last) >= every);
        if is_due {
            state.asked.insert(asked, now);
            effects.push(effect);
        }
    }
    if healthy(state) && needs_token(state, now) {
        server::token_asked(state);
        effects.push(Effect::ProbeServer(ServerProbe::Token));
    }
}

/// How often a subject of a node is read: as the node says, or as usual. Where no stream runs, it is as often as the node is asked, and a slow one is asked
/// less often. One that did not answer at all is not slow: what it said last grows old at the usual pace.
#[must_use]
pub fn every(state: &State, node: NodeId, what: Subject) -> Duration {
    let usual = cadence::every(what).unwrap_or(NODE_EVERY);
    let Some(view) = state.nodes.get(node.index()) else {
        return usual;
    };
    match view.watch {
        // A node that reads something seldom does so as it would tell of a change: one that has fallen silent, or can't read it, does not.
        Watch::Runs(_) if silent(state, node) || view.unread.contains_key(&what) => usual,
        Watch::Runs(_) => view.paces.get(&what).copied().unwrap_or(usual),
        Watch::None => usual,
        Watch::Ended(_) => {
            let answered = latest(state, node, ProbeId::Node).filter(|(exit, _)| **exit != Exit::TimedOut);
            let rest = answered.map_or(Duration::ZERO, |(_, took)| rest_after(took));
            usual.max(NODE_EVERY).max(rest)
        }
    }
}

/// Whether a node's stream has said nothing for a while: memory is what it tells most often.
fn silent(state: &State, node: NodeId) -> bool {
    let memory = state.observed.node(node).map(|n| &n.memory);
    memory.is_some_and(|m| m.stale(state.now.stamp, cadence::MEMORY_EVERY))
}

/// Whether a node is asked because no stream tells of it.
fn unwatched(state: &State, node: NodeId) -> bool {
    match state.nodes.get(node.index()).map(|view| view.watch) {
        Some(Watch::Ended(since)) => state.now.stamp.since(since) >= STREAM_WAIT,
        Some(Watch::Runs(_) | Watch::None) | None => false,
    }
}

/// How long a node is left alone after a probe, counted from its start.
fn rest(state: &State, asked: Asked) -> Duration {
    let Asked::Node(node, probe) = asked else {
        return Duration::ZERO;
    };
    latest(state, node, probe).map_or(Duration::ZERO, |(_, took)| rest_after(took))
}

fn rest_after(took: Duration) -> Duration {
    (took * REST).min(REST_LIMIT)
}

/// How the latest run of a probe ended, and how long it took.
fn latest(state: &State, node: NodeId, probe: ProbeId) -> Option<(&Exit, Duration)> {
    let runs = state.commands.iter().rev();
    runs.filter(|c| c.node == node && c.purpose == Purpose::Probe(probe))
        .find_map(|c| {
            c.ended
                .as_ref()
                .map(|(exit, took)| (exit, Duration::from_millis(*took)))
        })
}

/// What is asked in the present state, and how often.
fn cadences(state: &State) -> Vec<(Asked, Duration, Effect)> {
    let mut all = Vec::new();
    let mut node = |id, probe, every| all.push((Asked::Node(id, probe), every, Effect::Probe(id, probe)));
    let head = state.config.head();
    let runs = container_runs(state);
    for id in state.config.node_ids().filter(|id| usable(state, *id)) {
        if unwatched(state, id) {
            node(id, ProbeId::Node, NODE_EVERY);
        }
        node(id, ProbeId::Image, IMAGE_EVERY);
        if wants_inside(state, id) {
            node(id, ProbeId::Inside, INSIDE_EVERY);
        }
        if wants_versions(state, id) {
            node(id, ProbeId::Versions, VERSIONS_EVERY);
        }
        match state.config.engine {
            Engine::Script(_) => node(id, ProbeId::Verb, VERB_EVERY),
            Engine::VllmRay(_) => {}
        }
        if id == head && runs {
            node(id, ProbeId::Serve, SERVE_EVERY);
            if state.ray.fails(RayVia::Dashboard) {
                node(id, ProbeId::Ray, state.ray.every(RayVia::Container, RAY_WATCH_EVERY));
            }
            if state.ray.wants_status() {
                node(
                    id,
                    ProbeId::RayStatus,
                    state.ray.every(RayVia::Status, RAY_STATUS_EVERY),
                );
            }
        }
    }
    if usable(state, head) {
        let mut server = |asked, every, probe| all.push((asked, every, Effect::ProbeServer(probe)));
        server(Asked::Health, HEALTH_EVERY, ServerProbe::Health);
        if runs {
            server(
                Asked::Ray,
                state.ray.every(RayVia::Dashboard, RAY_EVERY),
                ServerProbe::Ray,
            );
        }
        if healthy(state) {
            server(Asked::Models, MODELS_EVERY, ServerProbe::Models);
            server(Asked::Metrics, METRICS_EVERY, ServerProbe::Metrics);
        }
    }
    all
}

/// Whether the versions in a node's container are to be asked for: it runs, and they are not known, or it may still install Ray.
fn wants_inside(state: &State, id: NodeId) -> bool {
    let Some(seen) = state.observed.node(id) else {
        return false;
    };
    let own = seen
        .containers
        .value()
        .and_then(|c| c.named(&state.config.container.name));
    let runs = own.is_some_and(|c| c.state == ContainerState::Running);
    runs && seen.inside.value().is_none_or(|i| i.ray.is_none())
}

/// Whether the versions in a node's image are to be asked for before anybody starts it: equal layers hold equal versions, others may not.
fn wants_versions(state: &State, id: NodeId) -> bool {
    let image = |id| match state.observed.node(id)?.image.value()? {
        ImageFacts::Present { id, layers } => Some((id, layers)),
        ImageFacts::Missing => None,
    };
    let Some((own, layers)) = image(id) else {
        return false;
    };
    let known = state.observed.node(id).and_then(|n| n.versions.value());
    let differ = state.config.node_ids().filter_map(image).any(|(_, l)| l != layers);
    differ && known.is_none_or(|v| v.image_id != *own)
}

fn usable(state: &State, id: NodeId) -> bool {
    state.observed.node(id).is_some_and(|n| n.link.usable())
}

fn container_runs(state: &State) -> bool {
    head_container(state).is_some_and(|c| c.state == ContainerState::Running)
}

/// The head's container, when one of the configured name is there.
pub(super) fn head_container(state: &State) -> Option<&Container> {
    state
        .observed
        .node(state.config.head())?
        .containers
        .value()?
        .named(&state.config.container.name)
}

fn healthy(state: &State) -> bool {
    state.observed.server.health.value() == Some(&Health::Ok)
}

/// Whether one token must be asked for: the server is healthy and names the model, its counters were read and prove nothing, and it was not asked since
/// its start, or a while ago and in vain.
fn needs_token(state: &State, now: Stamp) -> bool {
    let seen = &state.observed.server;
    let name = state.config.serve.name();
    let listed = seen.models.value().is_some_and(|all| all.iter().any(|n| n == name));
    let looked = listed && (seen.metrics.value().is_some() || state.metrics_failed);
    let open = state
        .token_asked
        .is_none_or(|at| state.token_failed.is_some() && now.since(at) >= TOKEN_AGAIN);
    // A run asks for its own.
    looked && open && !state.options.no_probe && !proven(state) && !state.run_under_way()
}
