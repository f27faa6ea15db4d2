//! How the containers of the cluster ended, and what that is a sign of.

use crate::config::types::Engine;
use crate::diagnose::{Fact, FactName, Judged};
use crate::domain::NodeId;
use crate::domain::container::ContainerState;
use crate::domain::event::Subject;

use super::causes::{current, judged, looked, own_container, was_member};
use super::loss;
use super::schedule::every;
use super::state::{HeadSeen, State};

/// Times that Docker may start a container anew before it is worth a warning.
const RESTARTS: u32 = 3;

/// Codes with which a container ends that was told to: 128 and the number of the signals INT and TERM.
const TOLD_TO_END: [i32; 2] = [130, 143];

/// The code of a container that was killed with signal 9.
const KILLED: i32 = 137;

/// How the container of a worker that belongs to the cluster is, where it does not run any more while the head's does: the inner `None` where nothing is
/// lost, the outer one where nobody knows.
pub(super) fn standing(state: &State, node: NodeId) -> Option<Option<String>> {
    Some(told(state, node)?.filter(|_| was_member(state, node) != Some(false)))
}

fn told(state: &State, node: NodeId) -> Option<Option<String>> {
    let runs = |id: NodeId| own_container(state, id).is_some_and(|c| c.state == ContainerState::Running);
    if node == state.config.head() || !runs(state.config.head()) {
        return None;
    }
    let seen = &state.observed.node(node)?.containers;
    current(state, seen, every(state, node, Subject::Containers))?;
    Some(match own_container(state, node).map(|c| &c.state) {
        Some(ContainerState::Running) => None,
        Some(ContainerState::Exited { code, oom: false }) => Some(format!("exit code {code}")),
        Some(ContainerState::Exited { code, oom: true }) => Some(format!("exit code {code}, out of memory")),
        Some(ContainerState::Created) => Some("it was made and not started".to_owned()),
        Some(ContainerState::Paused) => Some("it is paused".to_owned()),
        Some(ContainerState::Restarting) => Some("Docker restarts it".to_owned()),
        Some(ContainerState::Other(word)) => Some(format!("Docker calls it {word}")),
        None if state.containers.contains_key(&node) => Some("it is not there any more".to_owned()),
        None => (was_member(state, node) == Some(true) && !outside(state, node)).then(|| "it is not there".to_owned()),
    })
}

/// Whether a worker may run outside of a container: its script decides that, or something holds a GPU there that is in none.
fn outside(state: &State, node: NodeId) -> bool {
    let gpus = state.observed.node(node).and_then(|n| n.gpus.value());
    match state.config.engine {
        Engine::Script(_) => true,
        Engine::VllmRay(_) => gpus.is_some_and(|g| g.computing().any(|p| p.container.is_none())),
    }
}

/// Whether a worker that was a member of Ray, or a head, has lost its container, and not by a failure of its own: somebody has told it to end, or has taken it
/// away. A head that has ended is there to be seen by who comes later, one that is gone is known to who saw it run. `None` where nobody knows: what was so
/// stays so then.
fn stopped(state: &State, node: NodeId) -> Option<Judged> {
    let seen = &state.observed.node(node)?.containers;
    let container = own_container(state, node);
    let (how, said) = match container.map(|c| &c.state) {
        Some(ContainerState::Exited { code, oom }) if !oom && (*code == 0 || TOLD_TO_END.contains(code)) => {
            ("was stopped", format!("exit code {code}"))
        }
        Some(
            ContainerState::Exited { .. }
            | ContainerState::Created
            | ContainerState::Running
            | ContainerState::Paused
            | ContainerState::Restarting
            | ContainerState::Other(_),
        ) => return Some(Judged::Not(FactName::ContainerStopped, Some(node), looked(state, seen))),
        None => (
            "is gone",
            format!("`{} ps -a` does not list it", state.config.container.docker),
        ),
    };
    let head = state.config.head();
    let was = if node == head {
        match state.head_seen {
            HeadSeen::Ran => true,
            HeadSeen::Never => container.is_some(),
            HeadSeen::StoppedHere => false,
        }
    } else if !runs(state, head)? {
        // A worker's is missed where a head needs it: what has become of it without one is not told.
        return None;
    } else if container.is_none() && !state.containers.contains_key(&node) && outside(state, node) {
        false
    } else {
        was_member(state, node)?
    };
    Some(match was {
        true => Judged::So(Fact {
            name: FactName::ContainerStopped,
            node: Some(node),
            fields: vec![("how".to_owned(), how.to_owned()), ("seen".to_owned(), said.clone())],
            text: said,
        }),
        false => Judged::Not(FactName::ContainerStopped, Some(node), looked(state, seen)),
    })
}

/// Whether the container of a node runs, as it was read last; `None` where it was not read.
fn runs(state: &State, node: NodeId) -> Option<bool> {
    state.observed.node(node)?.containers.value()?;
    Some(own_container(state, node).is_some_and(|c| c.state == ContainerState::Running))
}

/// Whether a worker was started anew under the model server.
pub(super) fn anew(state: &State, node: NodeId) -> Option<Judged> {
    let how = loss::anew_under(state, node)?;
    let seen = &state.observed.node(node)?.containers;
    Some(judged(FactName::WorkerAnew, node, looked(state, seen), how))
}

/// How the container of a node is.
pub(super) fn containers(state: &State, node: NodeId) -> Vec<Judged> {
    let Some(seen) = state.observed.node(node) else {
        return Vec::new();
    };
    if current(state, &seen.containers, every(state, node, Subject::Containers)).is_none() {
        return Vec::new();
    }
    let container = own_container(state, node);
    let ends = [
        FactName::ContainerKilled,
        FactName::ContainerEnded,
        FactName::ContainerStopped,
    ];
    if container.is_none() && ends.iter().any(|name| state.evidence.holds(*name, node)) {
        // One that has ended and was taken away then has ended as it did.
        return Vec::new();
    }
    let looked = looked(state, &seen.containers);
    let (killed, ended) = match container.map(|c| &c.state) {
        Some(ContainerState::Exited { code, oom: true }) => (
            Some(format!("exit code {code}, by the kernel for lack of memory")),
            None,
        ),
        Some(ContainerState::Exited {
            code: KILLED,
            oom: false,
        }) => (Some(format!("exit code {KILLED}")), None),
        Some(ContainerState::Exited { code, oom: false }) if *code != 0 && !TOLD_TO_END.contains(code) => {
            (None, Some(format!("exit code {code}")))
        }
        Some(
            ContainerState::Exited { .. }
            | ContainerState::Created
            | ContainerState::Running
            | ContainerState::Paused
            | ContainerState::Restarting
            | ContainerState::Other(_),
        )
        | None => (None, None),
    };
    let restarts = container.map(|c| c.restarts).filter(|n| *n > RESTARTS);
    let restarted = match restarts {
        Some(n) => Judged::So(Fact {
            name: FactName::ContainerRestarts,
            node: Some(node),
            fields: vec![("restarts".to_owned(), n.to_string())],
            text: format!("Docker counts {n} restarts"),
        }),
        None => Judged::Not(FactName::ContainerRestarts, Some(node), looked),
    };
    let mut all = vec![
        judged(FactName::ContainerKilled, node, looked, killed),
        judged(FactName::ContainerEnded, node, looked, ended),
        restarted,
    ];
    all.extend(stopped(state, node));
    all
}
