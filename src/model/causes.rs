//! Why something failed: the evidence that the state keeps, what of the cluster is judged for it, and the causes that come of it.

use std::time::Duration;

use crate::diagnose::{self, Cause, Fact, FactName, Judged, Kind, Place, Step, rank, read_output};
use crate::domain::container::{Container, ContainerState};
use crate::domain::count::amount;
use crate::domain::event::Subject;
use crate::domain::link::{LinkErrorKind, LinkState};
use crate::domain::load::Stage;
use crate::domain::problem::{Problem, Verdict};
use crate::domain::ray::RayNode;
use crate::domain::serving::Health;
use crate::domain::sign::Sign;
use crate::domain::step::Failure;
use crate::domain::time::{human, millis};
use crate::domain::{NodeId, Now, Reading, Stamp, StepId, Wall};
use crate::plan::{Condition, Machine, StepKind, StepState, explain, judge, ours};

use super::ends;
use super::loss::Losses;
use super::run;
use super::schedule::{HEALTH_EVERY, every, ray_every};
use super::state::{HeadSeen, ServingState, Started, State};
use super::way::command_line;
use super::why::silent_with_its_hop;

/// How long a node may be silent before that is seen.
const UNNOTICED: Duration = Duration::from_secs(4);

/// Time after the end of a step in which what has made it fail is seen at the latest: more than the slowest look at a container takes to come.
const SEEN_LATE: Duration = Duration::from_secs(30);

impl State {
    /// Why something fails, or may: the first cause first, warnings last.
    #[must_use]
    pub fn causes(&self) -> Vec<Cause> {
        rank(&self.evidence, &self.config)
    }

    /// The first cause, when something fails.
    #[must_use]
    pub fn first_cause(&self) -> Option<Cause> {
        self.causes().into_iter().find(fails)
    }

    /// What to run for the cause of what is wrong with the server, where a command is known: what the screen offers to copy.
    #[must_use]
    pub fn cure(&self) -> Option<String> {
        self.by_hand(&self.trouble()?)
    }

    /// The line that runs a cause's command from the operator's own shell, where it has one: what is copied runs as it is.
    #[must_use]
    pub fn by_hand(&self, cause: &Cause) -> Option<String> {
        let (node, line) = cause.command.as_ref()?;
        command_line(&self.config, *node, line)
    }

    /// The first cause of what is wrong with the server. One that is down may have failed: so it is when its container was killed.
    #[must_use]
    pub fn trouble(&self) -> Option<Cause> {
        let wrong = match self.server.state {
            ServingState::Degraded(_) | ServingState::Failed(_) | ServingState::Down => true,
            ServingState::Unknown
            | ServingState::Loading
            | ServingState::Answering
            | ServingState::Stopping
            | ServingState::Ready => false,
        };
        // All evidence is ranked for it: not where nobody asks.
        wrong.then(|| self.first_cause()).flatten()
    }

    /// The first cause of the step that failed: for a step on a node, one that is about such a step there.
    #[must_use]
    pub fn step_cause(&self, id: StepId) -> Option<Cause> {
        let step = self.run.as_ref()?.plan().steps.get(id.index())?;
        let wanted = match step.kind {
            StepKind::Pull => Step::Pull,
            StepKind::Image => Step::Image,
            StepKind::Head => Step::Head,
            StepKind::Join => Step::Join,
            StepKind::Membership => Step::Membership,
            // The whole cluster is needed for it, so anything may be why.
            StepKind::Serve => return self.causes().into_iter().find(|c| fails(c) && self.by_then(c, id)),
            StepKind::StopServe | StepKind::StopNode => return None,
        };
        let here = |cause: &Cause| step.node.is_none() || cause.node.is_none() || cause.node == step.node;
        let about = |cause: &Cause| cause.steps.is_empty() || cause.steps.contains(&wanted);
        let mut causes = self.causes().into_iter();
        causes.find(|c| fails(c) && about(c) && here(c) && self.by_then(c, id))
    }

    /// Whether a cause was there when a step ended, as far as is known: what came later is none of it.
    fn by_then(&self, cause: &Cause, id: StepId) -> bool {
        let status = self.run.as_ref().and_then(|run| run.steps().get(id.index()));
        let Some(ended) = status.and_then(|status| status.ended) else {
            return true;
        };
        let ended = self.now.stamp.since(ended).saturating_sub(SEEN_LATE);
        cause.found || cause.at <= Wall(self.now.wall.0.saturating_sub(millis(ended)))
    }
}

fn fails(cause: &Cause) -> bool {
    match cause.kind {
        Kind::Cause | Kind::Echo => true,
        Kind::Warning | Kind::Pointer | Kind::Quiet => false,
    }
}

/// A node's log has said something.
pub(super) fn take(state: &mut State, node: NodeId, sign: Sign, at: Now) {
    state.evidence.log(node, state.config.head(), sign, at);
}

/// What a node's probe complains of now.
pub(super) fn problems(state: &mut State, node: NodeId, problems: &[Problem]) {
    let texts: Vec<String> = problems.iter().map(|p| p.text.clone()).collect();
    let signs = read_output(&state.config, state.evidence.rules(), Place::Probe, texts.iter());
    state.evidence.probe(node, signs, state.now);
}

/// A step has failed: what it saw, and what its commands and verbs have printed.
pub(super) fn step_failed(state: &mut State, id: StepId, failure: &Failure) {
    let Some(step) = state.run.as_ref().and_then(|run| run.plan().steps.get(id.index())) else {
        return;
    };
    let node = step.node.unwrap_or_else(|| state.config.head());
    let began = state.run.as_ref().is_some_and(Machine::began);
    let unmet = step.before.iter().filter(|c| !own_doing(state, c, began));
    let mut facts: Vec<Fact> = unmet.filter_map(|c| unmet_fact(state, c)).collect();
    if began && step.broken_by.contains(&Condition::WrongModel) {
        facts.extend(wrong_model(state));
    }
    let signs = read_output(
        &state.config,
        state.evidence.rules(),
        Place::Output,
        failure.lines.iter(),
    );
    state.evidence.step_facts(facts, state.now);
    state.evidence.output(node, signs, state.now);
}

/// The fact that a condition which does not hold is.
fn unmet_fact(state: &State, condition: &Condition) -> Option<Fact> {
    let name = match condition {
        Condition::PortFree(..) => FactName::PortTaken,
        Condition::NameFree(..) => FactName::NameTaken,
        Condition::GpuFree(_) => FactName::GpuTaken,
        Condition::VersionsEqual => FactName::VersionsDiffer,
        Condition::ImagesEqual => FactName::ImagesDiffer,
        Condition::ImagePresent(_) => FactName::ImageMissing,
        Condition::FabricAddressPresent(_) => FactName::FabricAddressMissing,
        Condition::NodeReachable(_)
        | Condition::ContainerRuns(_)
        | Condition::StartUnderWay(_)
        | Condition::StartLost(_)
        | Condition::ContainerGone(_)
        | Condition::RayListens(_)
        | Condition::RayMember(_)
        | Condition::WrongAddress(_)
        | Condition::RayComplete
        | Condition::ServeUnderWay
        | Condition::ServeGone
        | Condition::ServeLost
        | Condition::VerbEnded(_)
        | Condition::VerbFailed(_)
        | Condition::Healthy
        | Condition::ModelListed
        | Condition::WrongModel
        | Condition::TokenSeen => return None,
    };
    match judge(condition, &state.observed, &state.config, Stamp(0)) {
        Verdict::Fails { seen, .. } => Some(fact(name, condition.node(), seen)),
        Verdict::Holds | Verdict::Unknown(_) => None,
    }
}

/// Whether a condition of a step does not hold by what we have done ourselves: the step itself once it has begun, or an earlier start.
fn own_doing(state: &State, condition: &Condition, began: bool) -> bool {
    if let Condition::PortFree(node, port) = condition {
        return own_listeners(state, *node, *port);
    }
    if let Condition::NameFree(node, _) = condition {
        let own = own_container(state, *node).is_some_and(|c| ours(&state.config, c));
        // That it has ended, and how, says more than that it has the name.
        let ended = ends::containers(state, *node).iter().any(|judged| match judged {
            Judged::So(fact) => matches!(fact.name, FactName::ContainerKilled | FactName::ContainerEnded),
            Judged::Not(..) => false,
        });
        return own && (began || ended || holds(state, &Condition::StartUnderWay(*node)));
    }
    false
}

/// Whether all that listens on a port of a node is in our own container there. Where the login may not see whose a socket is, it is that of the server or
/// of Ray that is seen in our container.
fn own_listeners(state: &State, node: NodeId, port: u16) -> bool {
    let Some(sockets) = state.observed.node(node).and_then(|n| n.sockets.value()) else {
        return false;
    };
    let runs = holds(state, &Condition::ContainerRuns(node));
    let own = own_container(state, node).filter(|_| runs).map(|c| c.id.as_str());
    let meant = if port == state.config.serve.port {
        holds(state, &Condition::ServeUnderWay)
    } else {
        runs
    };
    sockets.on_port(port).all(|l| match (&l.container, l.pid) {
        (Some(id), _) => own == Some(id.as_str()),
        (None, None) => meant,
        (None, Some(_)) => false,
    })
}

/// Whether a condition holds by what was seen last.
fn holds(state: &State, condition: &Condition) -> bool {
    judge(condition, &state.observed, &state.config, Stamp(0)).holds()
}

/// The fact that the server which a step waited for has another model.
fn wrong_model(state: &State) -> Option<Fact> {
    let condition = Condition::WrongModel;
    let (seen, wanted) = explain(&condition, &state.observed, &state.config);
    let seen = format!("{seen}, not {wanted}");
    holds(state, &condition).then(|| fact(FactName::WrongModel, None, seen))
}

/// A container that was not seen before: what the one before it said is about that one.
pub(super) fn container(state: &mut State, node: NodeId, container: Option<&Container>) {
    let Some(container) = container else { return };
    let by_node = container.started_at.as_deref().and_then(diagnose::wall);
    let started = Started::of(container);
    let before = state.containers.insert(node, started.clone());
    if before.is_some_and(|before| before != started) {
        if let Some(seen) = state.observed.nodes.get_mut(node.index()) {
            seen.inside = Reading::default();
        }
        if node == state.config.head() {
            state.ray.new_head();
            // Who was a member of the head before is none of this one's.
            state.observed.ray = Reading::absent("the head was made anew");
            state.joined.clear();
            state.losses = Losses::default();
        }
        state.evidence.container_started(node, by_node);
        state.joined.remove(&node);
    }
}

/// Judges the cluster anew.
pub(super) fn settle(state: &mut State) {
    // What goes away on purpose is no failure.
    if run::stops_server(state) {
        // What is gone after that is gone on purpose too.
        state.head_seen = HeadSeen::StoppedHere;
        return;
    }
    let head = own_container(state, state.config.head());
    if head.is_some_and(|c| c.state == ContainerState::Running) {
        state.head_seen = HeadSeen::Ran;
    }
    for node in state.config.node_ids() {
        if member(state, node) == Some(true) && state.joined.insert(node) {
            state.evidence.joined(node, state.now);
        }
    }
    let mut judged = Vec::new();
    for node in state.config.node_ids() {
        judged.extend(answering(state, node));
        judged.extend(membership(state, node));
        judged.extend(ends::containers(state, node));
        judged.extend(ends::anew(state, node));
        judged.extend(memory(state, node));
    }
    judged.extend(gpus(state));
    judged.extend(health(state));
    state.evidence.facts(judged, state.now);
}

fn fact(name: FactName, node: Option<NodeId>, seen: String) -> Fact {
    Fact {
        name,
        node,
        fields: vec![("seen".to_owned(), seen.clone())],
        text: seen,
    }
}

/// A fact that is so, or that was not when it was looked at.
pub(super) fn judged(name: FactName, node: NodeId, looked: Wall, seen: Option<String>) -> Judged {
    match seen {
        Some(seen) => Judged::So(fact(name, Some(node), seen)),
        None => Judged::Not(name, Some(node), looked),
    }
}

/// When a reading was asked for, by the console's clock.
pub(super) fn looked<T>(state: &State, reading: &Reading<T>) -> Wall {
    let age = reading.at().map_or(Duration::ZERO, |at| state.now.stamp.since(at));
    earlier(state, age)
}

fn earlier(state: &State, by: Duration) -> Wall {
    Wall(state.now.wall.0.saturating_sub(millis(by)))
}

/// Whether a node on which the container ran is out of reach.
fn answering(state: &State, node: NodeId) -> Option<Judged> {
    let seen = state.observed.node(node)?;
    // Who comes when it is lost already has Ray's word alone that it was there.
    let ran = match seen.containers.value() {
        Some(_) => own_container(state, node).is_some_and(|c| c.state == ContainerState::Running),
        None => was_member(state, node) == Some(true),
    };
    let now = state.now.stamp;
    let silent = match &seen.link {
        LinkState::Up => None,
        // It is the way to it that is silent.
        LinkState::Silent { .. } if silent_with_its_hop(state, node) => None,
        LinkState::Silent { since } => Some(format!("no sign of life for {}", human(now.since(*since)))),
        LinkState::Down { error, .. } => match error.kind {
            LinkErrorKind::Lost | LinkErrorKind::Unreachable => Some(error.text.clone()),
            // Nobody knows how the node is.
            LinkErrorKind::ViaDown
            | LinkErrorKind::HostKeyUnknown
            | LinkErrorKind::HostKeyChanged
            | LinkErrorKind::Refused
            | LinkErrorKind::Local => return None,
        },
        LinkState::Idle | LinkState::Connecting | LinkState::Asking => return None,
    };
    let sign_of_life = earlier(state, UNNOTICED);
    Some(judged(
        FactName::NodeNotAnswering,
        node,
        sign_of_life,
        silent.filter(|_| ran),
    ))
}

/// The container of the configured name, as it was seen last.
pub(super) fn own_container(state: &State, node: NodeId) -> Option<&Container> {
    let containers = state.observed.node(node)?.containers.value()?;
    containers.named(&state.config.container.name)
}

/// Whether a node was a member of Ray in this life of the head; `None` where Ray is not known. Ray lists those that have died too.
pub(super) fn was_member(state: &State, node: NodeId) -> Option<bool> {
    let address = &state.config.node(node)?.fabric_address;
    let listed = |nodes: &[RayNode]| nodes.iter().any(|n| n.address == *address);
    if state.joined.contains(&node) {
        return Some(true);
    }
    state.observed.ray.value().map(|ray| listed(&ray.nodes))
}

/// A reading's value, if it is not too old to say how it is now.
pub(super) fn current<'a, T>(state: &State, reading: &'a Reading<T>, every: Duration) -> Option<&'a T> {
    reading.value().filter(|_| !reading.stale(state.now.stamp, every))
}

/// Whether Ray has a node as it should; `None` when nothing tells.
fn member(state: &State, node: NodeId) -> Option<bool> {
    let ray = &state.observed.ray;
    let every = ray.value().map(|r| ray_every(r.via))?;
    current(state, ray, every)?;
    match judge(&Condition::RayMember(node), &state.observed, &state.config, Stamp(0)) {
        Verdict::Holds => Some(true),
        Verdict::Fails { .. } => Some(false),
        Verdict::Unknown(_) => None,
    }
}

/// Whether a node has another address in Ray, or has left it.
fn membership(state: &State, node: NodeId) -> Vec<Judged> {
    let Some(member) = member(state, node) else {
        return Vec::new();
    };
    let (observed, config) = (&state.observed, &state.config);
    let stray = Condition::WrongAddress(node);
    let elsewhere = !member && judge(&stray, observed, config, Stamp(0)).holds();
    let address = elsewhere.then(|| explain(&stray, observed, config).0);
    let left = match judge(&Condition::RayMember(node), observed, config, Stamp(0)) {
        Verdict::Fails { seen, .. } if state.joined.contains(&node) => Some(seen),
        Verdict::Fails { .. } | Verdict::Holds | Verdict::Unknown(_) => None,
    };
    let looked = looked(state, &observed.ray);
    vec![
        judged(FactName::RayAddressDiffers, node, looked, address),
        judged(FactName::WorkerLeft, node, looked, left.filter(|_| !elsewhere)),
    ]
}

/// Whether a host's memory is near its end.
fn memory(state: &State, node: NodeId) -> Option<Judged> {
    let seen = state.observed.node(node)?;
    let memory = current(state, &seen.memory, every(state, node, Subject::Memory))?;
    let low = memory.available < state.config.watch.memory_floor;
    if !low {
        let looked = looked(state, &seen.memory);
        return Some(Judged::Not(FactName::MemoryFloor, Some(node), looked));
    }
    let (available, total) = (
        format!("{:.1}", memory.available.gib()),
        format!("{:.1}", memory.total.gib()),
    );
    Some(Judged::So(Fact {
        name: FactName::MemoryFloor,
        node: Some(node),
        text: format!("MemAvailable {available} of {total} GiB"),
        fields: vec![("available".to_owned(), available), ("total".to_owned(), total)],
    }))
}

/// Whether the engine waits for more GPUs than Ray has.
fn gpus(state: &State) -> Option<Judged> {
    let ray = &state.observed.ray;
    let facts = current(state, ray, ray_every(ray.value()?.via))?;
    let needed = state.config.serve.tensor_parallel_size;
    let seen = facts.alive_gpus();
    let head = state.nodes.get(state.config.head().index())?;
    let waits = head.load.stage.is_some_and(|(stage, _)| stage == Stage::Placement);
    // Ray counts in fractions.
    if !waits || seen + 0.5 > f64::from(needed) {
        return Some(Judged::Not(FactName::GpusTooFew, None, looked(state, ray)));
    }
    Some(Judged::So(Fact {
        name: FactName::GpusTooFew,
        node: None,
        fields: vec![
            ("needed".to_owned(), needed.to_string()),
            ("seen".to_owned(), seen.to_string()),
        ],
        text: format!("Ray has {} alive of {needed}", amount(seen, "GPU")),
    }))
}

/// Whether the server itself says that it is broken.
fn health(state: &State) -> Option<Judged> {
    let seen = current(state, &state.observed.server.health, HEALTH_EVERY)?;
    let code = match seen {
        Health::Status(code) => Some(format!("/health answers {code}")),
        Health::Ok | Health::Refused | Health::Unreachable(_) => None,
    };
    Some(match code {
        Some(code) => Judged::So(fact(FactName::HealthFails, None, code)),
        None => Judged::Not(
            FactName::HealthFails,
            None,
            looked(state, &state.observed.server.health),
        ),
    })
}

/// The step that failed.
pub(super) fn failed_step(state: &State) -> Option<StepId> {
    let run = state.run.as_ref()?;
    let failed = |s: &StepState| match s {
        StepState::Failed(_) => true,
        StepState::Waiting
        | StepState::Checking
        | StepState::Running
        | StepState::Verifying
        | StepState::Done(_)
        | StepState::Aborted
        | StepState::Unknown(_) => false,
    };
    let place = run.steps().iter().position(|s| failed(&s.state))?;
    run.plan().steps.get(place).map(|s| s.id)
}
