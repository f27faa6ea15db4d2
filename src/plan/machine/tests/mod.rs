//! The machine on scripted facts.

use std::time::Duration;

use crate::config::Config;
use crate::domain::command::{Command, Exit};
use crate::domain::container::{ContainerFacts, ContainerState};
use crate::domain::effect::RunOutcome;
use crate::domain::event::{CommandDone, ProbeId};
use crate::domain::gpu::GpuProcess;
use crate::domain::intent::Action;
use crate::domain::link::{LinkError, LinkErrorKind, LinkState};
use crate::domain::observed::{Observed, VerbFacts};
use crate::domain::serving::{Health, ServerProbe, TOKEN_ASKED, TokenProof};
use crate::domain::step::{Failure, StepEventKind, StepOutcome};
use crate::domain::{NodeId, Now, Reading, RunId, Stamp, Wall};
use crate::engine::sample::{scripted, sparks};

use super::{Do, Machine, Progress};
use crate::plan::make;
use crate::plan::sample::{HEAD, WORKER, answers, container, idle, joined, listen, ray, refresh, server};
use crate::plan::status::StepState;
use crate::plan::types::{Plan, StepKind};
use crate::plan::want::Want;

mod checks;
mod commands;
mod members;
mod serves;
mod starts;
mod verbs;

/// A machine, the cluster that it looks at, and what it has asked for.
struct World {
    config: Config,
    seen: Observed,
    progress: Progress,
    machine: Machine,
    now: Stamp,
    flights: Vec<(RunId, NodeId, Command)>,
    ran: Vec<String>,
    wants: Vec<Want>,
    events: Vec<StepEventKind>,
    over: Option<RunOutcome>,
    /// Whether probes answer: every known reading is new on each tick.
    probing: bool,
}

impl World {
    /// Plans an action on what is seen and begins to run the steps of these kinds.
    fn of(config: Config, seen: Observed, action: Action, kinds: &[StepKind], no_probe: bool) -> Self {
        let now = Now {
            stamp: Stamp(1000),
            wall: Wall(1_764_444_000_000),
        };
        let mut plan = make(action, &config, &seen, now);
        assert_eq!(plan.refusals, []);
        plan.steps.retain(|s| kinds.contains(&s.kind));
        let (machine, first) = Machine::new(plan, no_probe, now.stamp);
        let mut world = Self {
            config,
            seen,
            progress: Progress::default(),
            machine,
            now: now.stamp,
            flights: Vec::new(),
            ran: Vec::new(),
            wants: Vec::new(),
            events: Vec::new(),
            over: None,
            probing: true,
        };
        world.take(first);
        world
    }

    fn head() -> Self {
        let config = sparks();
        let seen = idle(&config);
        Self::of(config, seen, Action::Head, &[StepKind::Head], false)
    }

    fn joining() -> Self {
        let config = sparks();
        let mut seen = idle(&config);
        container(&mut seen, &config, HEAD, ContainerState::Running);
        ray(&mut seen, &["192.168.200.12"]);
        Self::of(
            config,
            seen,
            Action::Workers,
            &[StepKind::Join, StepKind::Membership],
            false,
        )
    }

    fn serving(no_probe: bool) -> Self {
        let config = sparks();
        let seen = joined(&config);
        Self::of(config, seen, Action::Serve, &[StepKind::Serve], no_probe)
    }

    /// A server that was started and loads.
    fn loading(no_probe: bool) -> Self {
        let mut world = Self::serving(no_probe);
        world.tick(1000);
        world.done(0);
        server(&mut world.seen, &world.config, true);
        world.tick(1000);
        world
    }

    fn take(&mut self, all: Vec<Do>) {
        for one in all {
            match one {
                Do::Want(want) => {
                    if want == Want::Server(ServerProbe::Token) {
                        self.seen.server.token = Reading::absent(TOKEN_ASKED);
                    }
                    self.wants.push(want);
                }
                Do::Run { run, node, command } => {
                    self.ran.push(command.line());
                    self.flights.push((run, node, command));
                }
                Do::Event(event) => self.events.push(event.kind),
                Do::Over(outcome) => self.over = Some(outcome),
            }
        }
    }

    /// Time goes on, in looks of 250 ms.
    fn tick(&mut self, ms: u64) {
        let end = self.now.0 + ms;
        while self.now.0 < end {
            self.now = Stamp((self.now.0 + 250).min(end));
            self.look();
        }
    }

    fn look(&mut self) {
        if self.probing {
            refresh(&mut self.seen, self.now);
        }
        let out = self.machine.on_tick(&self.seen, &self.config, &self.progress, self.now);
        self.take(out);
    }

    /// The oldest command in flight ends.
    fn end(&mut self, exit: Exit, stderr: &[&str]) {
        let (run, ..) = self.flights.remove(0);
        let done = CommandDone {
            run,
            exit,
            stdout: Vec::new(),
            stderr: stderr.iter().map(|l| (*l).to_owned()).collect(),
            took_ms: 10,
        };
        let out = self.machine.on_command_done(&done, &self.config, self.now);
        self.take(out);
    }

    fn done(&mut self, code: u32) {
        self.end(Exit::Code(code), &[]);
    }

    fn state(&self, step: usize) -> &StepState {
        &self.machine.steps()[step].state
    }

    fn failure(&self) -> &Failure {
        match self
            .machine
            .steps()
            .iter()
            .map(|s| &s.state)
            .find(|s| matches!(s, StepState::Failed(_)))
        {
            Some(StepState::Failed(failure)) => failure,
            _ => panic!("no step has failed: {:?}", self.machine.steps()),
        }
    }

    fn asked(&self, want: Want) -> usize {
        self.wants.iter().filter(|w| **w == want).count()
    }
}

const SUCCESS: StepState = StepState::Done(StepOutcome::Success);
const SKIPPED: StepState = StepState::Done(StepOutcome::Skipped);
const ADOPTED: StepState = StepState::Done(StepOutcome::Adopted);

fn head_comes_up(world: &mut World) {
    let config = world.config.clone();
    container(&mut world.seen, &config, HEAD, ContainerState::Running);
    ray(&mut world.seen, &["192.168.200.12"]);
}
