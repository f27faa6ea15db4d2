//! Plans and runs to draw, made by the planner and the step machine themselves.

use std::time::Duration;

use bringup::domain::command::Exit;
use bringup::domain::container::ContainerFacts;
use bringup::domain::event::CommandDone;
use bringup::domain::fabric::{FabricFacts, Interface};
use bringup::domain::image::{ImageFacts, VersionFacts};
use bringup::domain::intent::Action;
use bringup::domain::observed::VerbFacts;
use bringup::domain::sockets::SocketFacts;
use bringup::domain::{NodeId, Now, RunId, Stamp};
use bringup::model::State;
use bringup::plan::{self, Do, Machine, Progress};

use crate::build::*;

/// Everything is known and nothing runs: what the planner needs.
pub fn known() -> State {
    all_known(idle(example()))
}

/// The same of a cluster of which something runs.
pub fn all_known(mut state: State) -> State {
    for id in state.config.node_ids() {
        let address = state.config.nodes[id.index()].fabric_address.clone();
        let node = &mut state.observed.nodes[id.index()];
        node.sockets = read(SocketFacts::default());
        node.fabric = read(FabricFacts {
            interfaces: vec![Interface {
                name: "enp1s0f1np1".into(),
                addresses: vec![address],
                ..Interface::default()
            }],
            rdma: Vec::new(),
            infiniband: true,
        });
        let image = format!("sha256:{id:?}");
        node.image = read(ImageFacts::Present {
            id: image.clone(),
            layers: vec!["sha256:aaaa".into()],
        });
        node.versions = read(VersionFacts {
            image_id: image,
            ray: Some("2.53.0".into()),
            vllm: Some("0.17.0".into()),
            python: Some("3.12.3".into()),
            missing: Vec::new(),
        });
        node.verb = read(VerbFacts::None);
    }
    state
}

/// With a plan in front.
pub fn planned(mut state: State, action: Action) -> State {
    state.plan = Some(plan::make(action, &state.config, &state.observed, NOW));
    state
}

/// A run of everything that goes until a step's command has ended as `exit`, and a little on.
pub fn run_until(state: &mut State, exit: Exit, stderr: &[&str]) {
    let start = ago(40).stamp;
    let made = plan::make(Action::Up, &state.config, &state.observed, Now { stamp: start, ..NOW });
    let (mut machine, mut todo) = Machine::new(made, false, start);
    for second in 0..40 {
        let now = start.plus(Duration::from_secs(second));
        refresh(state, now);
        for run in runs(&std::mem::take(&mut todo)) {
            let done = CommandDone {
                run,
                exit: exit.clone(),
                stdout: Vec::new(),
                stderr: stderr.iter().map(|l| (*l).to_owned()).collect(),
                took_ms: 900,
            };
            todo.extend(machine.on_command_done(&done, &state.config, now));
            if exit.ok() {
                // The head's container runs from here on; Ray has not been asked yet.
                let container = container(state, NodeId(0), 2);
                state.observed.nodes[0].containers = read(ContainerFacts {
                    containers: vec![container],
                });
            }
        }
        todo.extend(machine.on_tick(&state.observed, &state.config, &Progress::default(), now));
    }
    state.run = Some(machine);
}

fn runs(todo: &[Do]) -> Vec<RunId> {
    let run = |d: &Do| match d {
        Do::Run { run, .. } => Some(*run),
        Do::Want(_) | Do::Event(_) | Do::Over(_) => None,
    };
    todo.iter().filter_map(run).collect()
}

/// Reads everything again at `now`.
pub fn refresh(state: &mut State, now: Stamp) {
    fn again<T: Clone>(reading: &mut bringup::domain::Reading<T>, now: Stamp) {
        if let Some(value) = reading.value().cloned() {
            *reading = bringup::domain::Reading::known(value, now);
        }
    }
    for node in &mut state.observed.nodes {
        again(&mut node.memory, now);
        again(&mut node.gpus, now);
        again(&mut node.containers, now);
        again(&mut node.sockets, now);
        again(&mut node.fabric, now);
        again(&mut node.image, now);
        again(&mut node.versions, now);
        again(&mut node.verb, now);
        again(&mut node.serve, now);
    }
    again(&mut state.observed.server.health, now);
}
