//! What goes on when the console is gone.

use std::time::Duration;

use crate::domain::container::ContainerState;
use crate::domain::event::Purpose;
use crate::domain::{NodeId, Reading};
use crate::model::State;
use crate::model::state::CommandEntry;

/// What runs on the nodes and goes on without the console, as far as it was seen.
#[must_use]
pub fn running(state: &State) -> Vec<String> {
    let config = &state.config;
    let name = &config.container.name;
    let mut all = Vec::new();
    for (id, seen) in config.node_ids().zip(&state.observed.nodes) {
        let node = config.node_name(id);
        if !seen.link.usable() {
            all.push(format!("not known what runs on {node}: it can't be reached"));
            continue;
        }
        if outdated(state, id, &seen.containers) || outdated(state, id, &seen.serve) {
            all.push(format!(
                "not known what runs on {node}: the run has changed something there since the last look"
            ));
            continue;
        }
        match seen.containers.value() {
            Some(containers)
                if containers
                    .named(name)
                    .is_some_and(|c| c.state == ContainerState::Running) =>
            {
                all.push(format!("left running on {node}: container {name}"));
            }
            Some(_) => {}
            None => all.push(format!("not known what runs on {node}")),
        }
        match seen.serve.value() {
            Some(serve) if !serve.processes.is_empty() => {
                all.push(format!(
                    "left running on {node}: the model server, {}",
                    state.server.state.word()
                ));
            }
            None if id == config.head() => all.push(format!("not known whether the model server runs on {node}")),
            Some(_) | None => {}
        }
    }
    if all.is_empty() {
        all.push("nothing of the cluster was left running".to_owned());
    }
    all
}

/// Whether a command of a run has ended on the node since this was read, or is still at work there: what was there before says nothing of now.
fn outdated<T>(state: &State, id: NodeId, reading: &Reading<T>) -> bool {
    let Some(read) = reading.at() else { return false };
    let of_run = |c: &&CommandEntry| c.node == id && c.purpose == Purpose::Step;
    state
        .commands
        .iter()
        .filter(of_run)
        .any(|command| match &command.ended {
            Some((_, took_ms)) => command.started.stamp.plus(Duration::from_millis(*took_ms)) > read,
            None => true,
        })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use super::*;
    use crate::config::{self, EXAMPLE};
    use crate::domain::command::{Command, Exit};
    use crate::domain::container::{Container, ContainerFacts};
    use crate::domain::event::{CommandDone, CommandStart, Event, EventKind};
    use crate::domain::link::LinkState;
    use crate::domain::serving::ServeFacts;
    use crate::domain::{Now, RunId, Source, Stamp};
    use crate::model::{Options, update};

    const HEAD: NodeId = NodeId(0);

    fn at(state: &mut State, ms: u64, kind: EventKind) {
        let at = Now {
            stamp: Stamp(ms),
            ..Now::default()
        };
        update(
            state,
            Event {
                source: Source::Node(HEAD),
                at,
                kind,
            },
        );
    }

    /// What is read of the head at a moment: its container runs, or is gone.
    fn look(state: &mut State, ms: u64, runs: bool) {
        let container = Container {
            id: "c1".into(),
            name: state.config.container.name.clone(),
            image: "image".into(),
            state: ContainerState::Running,
            started_at: None,
            up_seconds: Some(60),
            restarts: 0,
            ours: None,
            labels: BTreeMap::new(),
            pid: Some(100),
        };
        let containers = runs.then_some(container).into_iter().collect();
        let node = &mut state.observed.nodes[0];
        node.containers = Reading::known(ContainerFacts { containers }, Stamp(ms));
        node.serve = Reading::known(ServeFacts::default(), Stamp(ms));
    }

    #[test]
    fn what_was_seen_before_the_last_command_of_a_run_is_not_said_to_be_left() {
        let config = config::parse(EXAMPLE, "config.example.toml").unwrap();
        let mut state = State::new(Arc::new(config), Options::default(), Now::default());
        at(&mut state, 0, EventKind::Link(LinkState::Up));
        look(&mut state, 1000, true);
        let said = |state: &State| running(state)[0].clone();
        assert_eq!(said(&state), "left running on spark-1: container vllm-qwen35");
        let stop = CommandStart {
            run: RunId(9),
            node: HEAD,
            purpose: Purpose::Step,
            command: Command::script("stop", "x", Vec::new(), Duration::from_secs(9)),
        };
        at(&mut state, 1500, EventKind::CommandStarted(stop));
        let unknown = "not known what runs on spark-1: the run has changed something there since the last look";
        assert_eq!(said(&state), unknown);
        let done = CommandDone {
            run: RunId(9),
            exit: Exit::Code(0),
            stdout: Vec::new(),
            stderr: Vec::new(),
            took_ms: 2000,
        };
        at(&mut state, 3500, EventKind::CommandDone(done));
        look(&mut state, 3000, true);
        assert_eq!(said(&state), unknown);
        look(&mut state, 3600, false);
        assert!(
            !running(&state).iter().any(|line| line.contains("spark-1")),
            "{:?}",
            running(&state)
        );
    }
}
