//! From a probe's facts to the observed cluster.

use crate::config::types::Engine;
use crate::domain::container::ContainerState;
use crate::domain::event::{Facts, ProbeId, Subject};
use crate::domain::gpu::GpuFacts;
use crate::domain::memory::MemoryFacts;
use crate::domain::ray::RayVia;
use crate::domain::serving::ServeFacts;
use crate::domain::units::Bytes;
use crate::domain::{NodeId, Reading, Stamp, When};

use super::causes;
use super::life;
use super::load::in_peace;
use super::load::trend::Trends;
use super::ray;
use super::run;
use super::state::{NodeView, State, Unread};

/// Takes what a probe found.
pub(super) fn take(state: &mut State, node: NodeId, found: Facts, at: Stamp) {
    if let Facts::Absent { what, why } = &found {
        source(state, *what, why, at, true);
        absent(state, node, *what, why);
        unread(state, node, *what, why, at);
        return;
    }
    if let Facts::Ray(members) = found {
        ray::take(state, members, at);
        return;
    }
    if let Facts::RayStatus(status) = found {
        state.ray.counted(status, at);
        return;
    }
    let (Some(seen), Some(view)) = (
        state.observed.nodes.get_mut(node.index()),
        state.nodes.get_mut(node.index()),
    ) else {
        return;
    };
    let what = subject(&found);
    // A look that was asked for may be answered before one that began earlier.
    if seen.at(what).is_some_and(|known| known > at) {
        return;
    }
    view.unread.remove(&what);
    match found {
        Facts::Memory(memory) => {
            moved(view, at, |trends| trends.memory(&memory, at));
            seen.memory = Reading::known(memory, at);
        }
        Facts::Gpus(gpus) => {
            if let Some(percent) = utilization(&gpus) {
                view.utilization.push(at, percent);
            }
            if let Some(used) = memory_in_use(&gpus, seen.memory.value()) {
                view.memory.push(at, used.gib());
            }
            moved(view, at, |trends| trends.gpus(&gpus, at));
            let own = seen
                .containers
                .value()
                .and_then(|c| c.named(&state.config.container.name));
            if let Some(held) = own.and_then(|container| gpus.held_in(&container.id)) {
                moved(view, at, |trends| trends.engine(held, at));
            }
            seen.gpus = Reading::known(gpus, at);
        }
        Facts::Containers(c) => {
            let name = state.config.container.name.clone();
            let own = c.named(&name).cloned();
            let found = own.as_ref().map(|c| c.state == ContainerState::Running);
            seen.containers = Reading::known(c, at);
            view.restarts.take(own.as_ref(), at);
            causes::container(state, node, own.as_ref());
            if found != Some(true)
                && let Some(seen) = state.observed.nodes.get_mut(node.index())
            {
                seen.inside = Reading::absent("the container does not run");
            }
            if node == state.config.head() && found != Some(true) {
                // What lives inside the container can't be there without it.
                state.observed.ray = Reading::absent(format!("no container {name} runs on the head"));
                let removed = match state.config.engine {
                    // Ours stay when they end: one that is gone was taken away.
                    Engine::VllmRay(_) => found.is_none(),
                    Engine::Script(_) => false,
                };
                serve(state, node, ServeFacts::default(), removed, at);
            }
        }
        Facts::Sockets(s) => seen.sockets = Reading::known(s, at),
        Facts::Fabric(f) => seen.fabric = Reading::known(f, at),
        Facts::Disk(d) => {
            moved(view, at, |trends| trends.disk(&d, at));
            seen.disk = Reading::known(d, at);
        }
        Facts::Image(i) => seen.image = Reading::known(i, at),
        Facts::Versions(v) => seen.versions = Reading::known(v, at),
        Facts::Serve(s) => serve(state, node, s, false, at),
        Facts::Verb(v) => seen.verb = Reading::known(v, at),
        Facts::Inside(i) => seen.inside = Reading::known(i, at),
        Facts::Ray(_) | Facts::RayStatus(_) | Facts::Absent { .. } => {}
    }
}

/// Takes a reading into what moves on the node: movement is progress while a load is under way.
fn moved(view: &mut NodeView, at: Stamp, take: impl FnOnce(&mut Trends) -> bool) {
    if take(&mut view.trends) {
        view.load.progress_at = Some(When::at(at));
    }
}

/// Takes the list of model servers. When the last of them is gone, so is its load, on every node.
fn serve(state: &mut State, node: NodeId, facts: ServeFacts, removed: bool, at: Stamp) {
    let Some(seen) = state.observed.nodes.get_mut(node.index()) else {
        return;
    };
    let before = seen.serve.value().cloned().zip(seen.serve.at());
    let ran = before.filter(|(before, _)| !before.processes.is_empty());
    let (runs, now) = (!facts.processes.is_empty(), facts.clone());
    seen.serve = Reading::known(facts, at);
    if runs {
        let unseen = state.unseen.take();
        if unseen.is_some_and(|(before, read)| life::same((&before, read), (&now, at))) {
            state.nodes.iter_mut().for_each(|view| view.load.back());
        }
        return;
    }
    let Some(ran) = ran else { return };
    state.unseen = Some(ran);
    let loads = || state.nodes.iter().map(|n| &n.load);
    let head = state.nodes.get(node.index()).map(|n| &n.load);
    let peace = removed || run::stops_server(state) || head.is_some_and(|head| in_peace(head, loads(), at));
    for view in &mut state.nodes {
        view.load.ended(peace);
    }
    if peace {
        state.evidence.clear(state.now);
    }
}

/// A probe gave nothing of all that it asks.
pub(super) fn failed(state: &mut State, node: NodeId, probe: ProbeId, why: &str, at: Stamp) {
    let subjects: &[Subject] = match probe {
        ProbeId::Node => &[
            Subject::Memory,
            Subject::Gpus,
            Subject::Containers,
            Subject::Sockets,
            Subject::Fabric,
        ],
        ProbeId::Image => &[Subject::Image],
        ProbeId::Versions => &[Subject::Versions],
        ProbeId::Inside => &[Subject::Inside],
        ProbeId::Ray => &[Subject::Ray],
        ProbeId::RayStatus => &[Subject::RayStatus],
        ProbeId::Serve => &[Subject::Serve],
        ProbeId::Verb => &[Subject::Verb],
    };
    for subject in subjects {
        source(state, *subject, why, at, false);
        absent(state, node, *subject, why);
    }
}

/// A source of Ray's membership gave nothing: Ray is not there to be asked, or it could not be asked.
fn source(state: &mut State, subject: Subject, why: &str, at: Stamp, no_ray: bool) {
    match subject {
        Subject::Ray => state.ray.failed(RayVia::Container, why, at, no_ray),
        Subject::RayStatus => state.ray.failed(RayVia::Status, why, at, no_ray),
        Subject::Memory
        | Subject::Gpus
        | Subject::Containers
        | Subject::Sockets
        | Subject::Fabric
        | Subject::Disk
        | Subject::Image
        | Subject::Versions
        | Subject::Inside
        | Subject::Serve
        | Subject::Verb => {}
    }
}

/// A node says that a subject can't be read now, and since when that is so.
fn unread(state: &mut State, node: NodeId, what: Subject, why: &str, at: Stamp) {
    let Some(view) = state.nodes.get_mut(node.index()) else {
        return;
    };
    let since = view.unread.get(&what).map_or(at, |unread| unread.since);
    let why = why.to_owned();
    view.unread.insert(what, Unread { why, since });
}

/// What facts are about.
fn subject(facts: &Facts) -> Subject {
    match facts {
        Facts::Memory(_) => Subject::Memory,
        Facts::Gpus(_) => Subject::Gpus,
        Facts::Containers(_) => Subject::Containers,
        Facts::Sockets(_) => Subject::Sockets,
        Facts::Fabric(_) => Subject::Fabric,
        Facts::Disk(_) => Subject::Disk,
        Facts::Image(_) => Subject::Image,
        Facts::Versions(_) => Subject::Versions,
        Facts::Inside(_) => Subject::Inside,
        Facts::Ray(_) => Subject::Ray,
        Facts::RayStatus(_) => Subject::RayStatus,
        Facts::Serve(_) => Subject::Serve,
        Facts::Verb(_) => Subject::Verb,
        Facts::Absent { what, .. } => *what,
    }
}

/// A subject could not be read: what was never known says why. What was known stays and grows old.
fn absent(state: &mut State, node: NodeId, subject: Subject, why: &str) {
    fn say<T>(reading: &mut Reading<T>, why: &str) {
        if reading.value().is_none() {
            *reading = Reading::absent(why.to_owned());
        }
    }
    match subject {
        Subject::Ray => say(&mut state.observed.ray, why),
        Subject::RayStatus => say(&mut state.ray.status, why),
        Subject::Memory
        | Subject::Gpus
        | Subject::Containers
        | Subject::Sockets
        | Subject::Fabric
        | Subject::Disk
        | Subject::Image
        | Subject::Versions
        | Subject::Inside
        | Subject::Serve
        | Subject::Verb => {}
    }
    // Ray is asked in the head's container: where none can be seen, it never is.
    if subject == Subject::Containers && node == state.config.head() && !state.observed.ray.asked() {
        state.observed.ray = Reading::absent(format!("the containers on the head are not known: {why}"));
    }
    let Some(seen) = state.observed.nodes.get_mut(node.index()) else {
        return;
    };
    match subject {
        Subject::Memory => say(&mut seen.memory, why),
        Subject::Gpus => say(&mut seen.gpus, why),
        Subject::Containers => say(&mut seen.containers, why),
        Subject::Sockets => say(&mut seen.sockets, why),
        Subject::Fabric => say(&mut seen.fabric, why),
        Subject::Disk => say(&mut seen.disk, why),
        Subject::Image => say(&mut seen.image, why),
        Subject::Versions => say(&mut seen.versions, why),
        Subject::Serve => say(&mut seen.serve, why),
        Subject::Verb => say(&mut seen.verb, why),
        Subject::Inside => say(&mut seen.inside, why),
        Subject::Ray | Subject::RayStatus => {}
    }
}

/// Mean utilisation over the GPUs that tell it.
fn utilization(facts: &GpuFacts) -> Option<f64> {
    let told: Vec<f64> = facts
        .gpus
        .iter()
        .filter_map(|g| g.utilization)
        .map(|p| f64::from(p.0))
        .collect();
    let count = u32::try_from(told.len()).ok().filter(|n| *n > 0)?;
    Some(told.iter().sum::<f64>() / f64::from(count))
}

/// The GPUs' own memory in use, or the host's where they share it.
#[must_use]
pub fn memory_in_use(facts: &GpuFacts, host: Option<&MemoryFacts>) -> Option<Bytes> {
    if facts.gpus.iter().any(|gpu| gpu.unified) {
        return host.map(MemoryFacts::used);
    }
    facts
        .gpus
        .iter()
        .map(|g| g.memory_used)
        .try_fold(Bytes(0), |sum, m| Some(Bytes(sum.0.saturating_add(m?.0))))
}

/// What is to be said of a node that has too little memory left, as a sentence without its name.
#[must_use]
pub fn memory_alarm(state: &State, node: NodeId) -> Option<String> {
    let memory = state.observed.node(node)?.memory.value()?;
    let floor = state.config.watch.memory_floor;
    (memory.available < floor).then(|| {
        format!(
            "{:.1} GiB of memory available, below the floor of {}",
            memory.available.gib(),
            floor.words()
        )
    })
}
