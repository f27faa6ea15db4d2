//! Whether another bringup may be at work on the cluster: what it has just started carries the cluster's labels and none of this
//! console's runs, and its script's verb leaves its name on the node. A pull of another leaves no trace that could be read.

use std::time::Duration;

use crate::domain::container::{Container, ContainerState};
use crate::domain::observed::VerbFacts;
use crate::domain::time::human;
use crate::domain::{NodeId, Role, Stamp, Wall};

use super::connected;
use super::schedule::VERB_EVERY;
use super::state::{ServingState, State};

/// Runs of this console that are remembered, so that what they started is known as its own.
const OWN_RUNS: usize = 64;

/// What another bringup does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Foreign {
    /// Where it was seen last.
    pub node: NodeId,
    /// How long ago it has started something there; `None` where that is not known.
    pub ago: Option<Duration>,
    /// What of it is there.
    pub work: Work,
}

/// What is seen of another bringup's work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Work {
    /// A container of the cluster.
    Container,
    /// A model server that loads.
    Serve,
    /// A verb of the script.
    Verb(String),
}

impl Foreign {
    /// What it does, as a sentence without a final period.
    #[must_use]
    pub fn text(&self, state: &State) -> String {
        let node = state.config.node_name(self.node);
        let ago = self.ago.map(|ago| human(ago.max(Duration::from_secs(1))));
        let seen = match (&self.work, ago) {
            (Work::Verb(verb), _) => format!("the script's verb {verb} runs on {node}"),
            (Work::Container, Some(ago)) => format!("the container on {node} was started {ago} ago"),
            (Work::Container, None) => format!("the container on {node} is being made"),
            (Work::Serve, Some(ago)) => format!("the server on {node} was started {ago} ago"),
            (Work::Serve, None) => format!("the server on {node} loads"),
        };
        format!("another bringup may be at work: {seen}, and not from here")
    }
}

/// A run of this console begins: what it starts carries the time of its plan.
pub(super) fn begins(state: &mut State) {
    if state.own.len() == OWN_RUNS {
        state.own.pop_front();
    }
    state.own.push_back(state.planned);
}

/// What another bringup is at; `None` while a run of this console goes on, and where nothing of another one is young enough to be in the middle of a
/// start: a step of one ends within its limit.
#[must_use]
pub fn at_work(state: &State, now: Stamp) -> Option<Foreign> {
    if state.run_under_way() {
        return None;
    }
    let containers = state.config.node_ids().filter_map(|id| youngest(state, id, now));
    let verbs = state.config.node_ids().filter_map(|id| verb(state, id, now));
    let all = verbs.chain(containers).chain(serve(state, now));
    // Of a node that is out of sight nobody knows what is done there.
    all.filter(|f| connected(state, f.node)).min_by_key(|f| f.ago)
}

/// A container of the cluster on a node that no run of this console made and that has just been started. What serves, or has failed to, is not in the
/// middle of its start.
fn youngest(state: &State, id: NodeId, now: Stamp) -> Option<Foreign> {
    match state.server.state {
        ServingState::Unknown | ServingState::Down | ServingState::Loading => {}
        ServingState::Answering
        | ServingState::Ready
        | ServingState::Degraded(_)
        | ServingState::Stopping
        | ServingState::Failed(_) => {
            return None;
        }
    }
    let reading = &state.observed.node(id)?.containers;
    let read = reading.age(now)?;
    let limits = &state.config.limits;
    let limit = match state.config.node(id)?.role {
        Role::Head => limits.head,
        Role::Worker => limits.join,
    };
    let limit = limit.saturating_add(limits.settle);
    let foreign = |c: &&Container| {
        let labels = c.ours.as_ref().filter(|l| l.cluster == state.config.cluster);
        labels.is_some_and(|l| !own(state, &l.generation))
    };
    let containers = &reading.value()?.containers;
    let ages = containers.iter().filter(foreign).filter_map(|c| match c.state {
        ContainerState::Created => Some(None),
        ContainerState::Running => Some(Some(Duration::from_secs(c.up_seconds?).saturating_add(read))),
        ContainerState::Paused
        | ContainerState::Restarting
        | ContainerState::Exited { .. }
        | ContainerState::Other(_) => None,
    });
    let ago = ages.filter(|ago| ago.unwrap_or(read) <= limit).min()?;
    Some(Foreign {
        node: id,
        ago,
        work: Work::Container,
    })
}

/// Whether a generation is that of a run of this console.
fn own(state: &State, generation: &str) -> bool {
    let wall = generation.parse().ok().map(Wall);
    wall.is_some_and(|wall| state.own.contains(&wall))
}

/// A verb of the script that runs on a node without this console's doing. One that this console began and gave up is told by its own run.
fn verb(state: &State, id: NodeId, now: Stamp) -> Option<Foreign> {
    let reading = &state.observed.node(id)?.verb;
    let Some(VerbFacts::Running { verb, .. }) = reading.value().filter(|_| !reading.stale(now, VERB_EVERY)) else {
        return None;
    };
    state.own.is_empty().then(|| Foreign {
        node: id,
        ago: None,
        work: Work::Verb(verb.clone()),
    })
}

/// A model server that a bringup has started and that loads, without this console's doing: whoever started it waits for it, or has left.
fn serve(state: &State, now: Stamp) -> Option<Foreign> {
    if state.server.state != ServingState::Loading || !state.own.is_empty() {
        return None;
    }
    let head = state.config.head();
    let reading = &state.observed.node(head)?.serve;
    let ours = reading.value()?.processes.iter().find(|p| p.mark.is_some())?;
    let ago = ours.up_seconds.map(Duration::from_secs);
    let ago = ago.zip(reading.age(now)).map(|(up, read)| up.saturating_add(read));
    ago.is_none_or(|ago| ago <= state.config.limits.serve)
        .then_some(Foreign {
            node: head,
            ago,
            work: Work::Serve,
        })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::domain::event::{Event, EventKind};
    use crate::domain::intent::{Action, Intent};
    use crate::domain::{Now, Source};
    use crate::engine::sample::{scripted, sparks};
    use crate::model::{Options, update};
    use crate::plan::sample::{HEAD, WORKER, container, idle};

    use super::*;

    fn state() -> State {
        let config = sparks();
        let mut state = State::new(Arc::new(config.clone()), Options::default(), Now::default());
        state.observed = idle(&config);
        state
    }

    #[test]
    fn a_young_container_of_the_cluster_that_no_run_here_made_is_anothers_work() {
        let mut state = state();
        assert_eq!(at_work(&state, Stamp(1000)), None);
        let config = state.config.clone();
        // Generation 1, up 5 s.
        container(&mut state.observed, &config, HEAD, ContainerState::Running);
        let said = |state: &State, ms| at_work(state, Stamp(ms)).map(|f| f.text(state));
        assert_eq!(
            said(&state, 35_000).as_deref(),
            Some("another bringup may be at work: the container on spark-1 was started 40 s ago, and not from here")
        );
        let limit = u64::try_from((config.limits.head + config.limits.settle).as_millis()).unwrap();
        assert_eq!(said(&state, limit), None, "its step is over by now");
        // The latest of what it does.
        container(&mut state.observed, &config, WORKER, ContainerState::Created);
        assert!(
            said(&state, 35_000)
                .unwrap()
                .contains("the container on spark-2 is being made")
        );
        state.server.state = ServingState::Ready;
        assert_eq!(said(&state, 35_000), None, "it is done");
        state.server.state = ServingState::Unknown;
        // What a run of this console made is its own.
        state.planned = Wall(1);
        begins(&mut state);
        assert_eq!(said(&state, 35_000), None);
        // Another cluster's, or nobody's, is not this cluster's work.
        state.own.clear();
        for labels in [Some("other"), None] {
            for node in &mut state.observed.nodes {
                let mut facts = node.containers.value().cloned().unwrap();
                for c in &mut facts.containers {
                    c.ours = labels.and_then(|l| {
                        c.ours.clone().map(|ours| crate::domain::container::Labels {
                            cluster: l.to_owned(),
                            ..ours
                        })
                    });
                }
                node.containers = crate::domain::Reading::known(facts, Stamp(0));
            }
            assert_eq!(said(&state, 35_000), None, "{labels:?}");
        }
    }

    #[test]
    fn a_plan_that_is_made_meanwhile_says_so_first() {
        let mut state = state();
        let config = state.config.clone();
        container(&mut state.observed, &config, HEAD, ContainerState::Running);
        let event = Event {
            source: Source::Operator,
            at: Now::default(),
            kind: EventKind::Intent(Intent::Plan(Action::Up)),
        };
        update(&mut state, event);
        let note = &state.plan.as_ref().unwrap().notes[0];
        assert!(note.starts_with("another bringup may be at work"), "{note}");
        assert!(note.ends_with("better wait for what it does"), "{note}");
    }

    #[test]
    fn the_runs_that_are_remembered_are_bounded() {
        let mut state = state();
        for n in 0..200 {
            state.planned = Wall(n);
            begins(&mut state);
        }
        assert_eq!((state.own.len(), state.own.back()), (OWN_RUNS, Some(&Wall(199))));
    }

    #[test]
    fn a_verb_that_runs_without_this_consoles_doing_is_anothers() {
        let mut state = state();
        state.config = Arc::new(scripted());
        let verb = VerbFacts::Running {
            verb: "head".to_owned(),
            tail: Vec::new(),
        };
        state.observed.nodes[0].verb = crate::domain::Reading::known(verb, Stamp(0));
        let said = at_work(&state, Stamp(0)).map(|f| f.text(&state)).unwrap();
        assert!(
            said.ends_with("the script's verb head runs on spark-1, and not from here"),
            "{said}"
        );
    }

    #[test]
    fn a_server_that_another_has_started_is_its_work_while_it_loads_and_its_node_is_in_sight() {
        use crate::domain::Reading;
        use crate::domain::link::LinkState;
        use crate::domain::serving::{ServeFacts, ServeProcess};
        let mut state = state();
        state.server.state = ServingState::Loading;
        let processes = |mark: Option<&str>| {
            let one = ServeProcess {
                pid: 7,
                mark: mark.map(str::to_owned),
                command: "vllm serve m".to_owned(),
                up_seconds: Some(90),
            };
            Reading::known(ServeFacts { processes: vec![one] }, Stamp(0))
        };
        let said = |state: &State, s: u64| at_work(state, Stamp(s * 1000)).map(|f| f.text(state));
        state.observed.nodes[0].serve = processes(None);
        assert_eq!(said(&state, 5), None, "it was started by hand");
        state.observed.nodes[0].serve = processes(Some("2ef2b83c8233"));
        let text = "another bringup may be at work: the server on spark-1 was started 1m35s ago, and not from here";
        assert_eq!(said(&state, 5).as_deref(), Some(text));
        let limit = state.config.limits.serve.as_secs();
        assert_eq!(said(&state, limit), None, "its step is over by now");
        state.observed.nodes[0].link = LinkState::Silent { since: Stamp(0) };
        assert_eq!(said(&state, 5), None, "nobody knows what is done there");
        state.observed.nodes[0].link = LinkState::Up;
        begins(&mut state);
        assert_eq!(said(&state, 5), None, "this console may have started it");
        state.own.clear();
        state.server.state = ServingState::Answering;
        assert_eq!(said(&state, 5), None, "it is done");
    }
}
