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

use super::super::make;
use super::super::sample::{HEAD, WORKER, answers, container, idle, joined, listen, ray, refresh, server};
use super::super::status::StepState;
use super::super::types::{Plan, StepKind};
use super::super::want::Want;
use super::{Do, Machine, Progress};

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

#[test]
fn the_head_is_started_and_verified_by_what_is_seen() {
    let mut world = World::head();
    world.tick(250);
    assert!(
        world.ran[0].starts_with("docker run -d --name vllm-qwen35"),
        "{:?}",
        world.ran
    );
    assert_eq!(world.state(0), &StepState::Running);
    world.done(0);
    world.tick(2000);
    assert_eq!(world.state(0), &StepState::Verifying);
    head_comes_up(&mut world);
    world.tick(250);
    assert_eq!(world.state(0), &SUCCESS);
    assert_eq!(world.over, Some(RunOutcome::Done));
    assert_eq!(world.events.first(), Some(&StepEventKind::Started));
    assert_eq!(world.events.last(), Some(&StepEventKind::Done(StepOutcome::Success)));
    assert_eq!(world.ran.len(), 1);
}

#[test]
fn an_exit_code_of_zero_proves_nothing() {
    let mut world = World::head();
    world.tick(250);
    world.done(0);
    let config = world.config.clone();
    container(&mut world.seen, &config, HEAD, ContainerState::Running);
    world.tick(119_000);
    assert_eq!(world.over, None);
    assert_eq!(world.state(0), &StepState::Verifying);
}

#[test]
fn a_container_that_is_gone_after_its_start_fails_soon() {
    let mut world = World::head();
    world.tick(250);
    world.done(0);
    world.tick(9000);
    world.done(1);
    assert_eq!(world.failure().seen, "no container vllm-qwen35 is on spark-1");
}

#[test]
fn what_is_true_already_is_skipped() {
    let config = sparks();
    let mut seen = idle(&config);
    container(&mut seen, &config, HEAD, ContainerState::Running);
    ray(&mut seen, &["192.168.200.12"]);
    let mut world = World::of(config, seen, Action::Head, &[StepKind::Head], false);
    world.tick(250);
    assert_eq!(world.state(0), &SKIPPED);
    assert_eq!(world.over, Some(RunOutcome::Done));
    assert!(world.ran.is_empty());
}

#[test]
fn what_is_under_way_is_adopted() {
    let config = sparks();
    let mut seen = idle(&config);
    container(&mut seen, &config, HEAD, ContainerState::Running);
    ray(&mut seen, &[]);
    let mut world = World::of(config, seen, Action::Head, &[StepKind::Head], false);
    world.tick(1000);
    assert_eq!(world.state(0), &StepState::Verifying);
    ray(&mut world.seen, &["192.168.200.12"]);
    world.tick(250);
    assert_eq!(world.state(0), &ADOPTED);
    assert!(world.ran.is_empty());
}

#[test]
fn an_answer_that_comes_late_does_not_make_what_is_true_look_unfinished() {
    let config = sparks();
    let mut seen = idle(&config);
    container(&mut seen, &config, HEAD, ContainerState::Running);
    let mut world = World::of(config, seen, Action::Head, &[StepKind::Head], false);
    world.tick(15_000);
    assert_eq!(world.state(0), &StepState::Checking);
    ray(&mut world.seen, &["192.168.200.12"]);
    world.tick(250);
    assert_eq!(world.state(0), &SKIPPED);
    world = World::of(sparks(), world.seen, Action::Head, &[StepKind::Head], false);
    world.seen.ray = Reading::absent("no answer");
    world.tick(21_000);
    assert_eq!(world.state(0), &StepState::Verifying);
}

#[test]
fn a_load_that_runs_is_adopted_and_no_second_server_started() {
    let config = sparks();
    let mut seen = joined(&config);
    server(&mut seen, &config, true);
    let kinds = [StepKind::Head, StepKind::Join, StepKind::Membership, StepKind::Serve];
    let mut world = World::of(config, seen, Action::Up, &kinds, false);
    world.tick(15_000);
    assert_eq!((world.state(0), world.state(1)), (&SKIPPED, &SKIPPED));
    assert_eq!(world.state(2), &SUCCESS);
    assert_eq!(world.state(3), &StepState::Verifying);
    let config = world.config.clone();
    answers(&mut world.seen, &config, 1.0);
    world.tick(1000);
    assert_eq!(world.state(3), &ADOPTED);
    assert!(world.ran.is_empty(), "{:?}", world.ran);
}

#[test]
fn a_wrong_address_fails_soon_and_names_what_was_seen_and_expected() {
    let mut world = World::head();
    world.tick(250);
    world.done(0);
    let config = world.config.clone();
    container(&mut world.seen, &config, HEAD, ContainerState::Running);
    ray(&mut world.seen, &["10.1.230.180"]);
    world.tick(10_000);
    // The container's log is read before the step ends.
    assert_eq!(world.ran[1], "docker logs --tail 20 vllm-qwen35");
    world.end(Exit::Code(0), &["Local node IP: 10.1.230.180"]);
    let failure = world.failure();
    assert_eq!(failure.seen, "spark-1 registered at 10.1.230.180");
    assert_eq!(failure.expected, "192.168.200.12 (fabric_address of spark-1)");
    assert_eq!(failure.lines, ["Local node IP: 10.1.230.180"]);
    assert!(failure.after < Duration::from_secs(15), "{:?}", failure.after);
    assert_eq!(world.over, Some(RunOutcome::Failed));
}

#[test]
fn a_worker_on_its_second_interface_stops_the_run_before_serve() {
    let mut world = World::joining();
    world.tick(250);
    world.done(0);
    let config = world.config.clone();
    container(&mut world.seen, &config, WORKER, ContainerState::Running);
    ray(&mut world.seen, &["192.168.200.12", "192.168.201.13"]);
    world.tick(10_000);
    world.done(0);
    let failure = world.failure();
    assert_eq!(failure.seen, "spark-2 registered at 192.168.201.13");
    assert_eq!(failure.expected, "192.168.200.13 (fabric_address of spark-2)");
}

#[test]
fn the_membership_must_stay_by_facts_read_after_that_time() {
    let mut world = World::joining();
    world.tick(250);
    world.done(0);
    let config = world.config.clone();
    container(&mut world.seen, &config, WORKER, ContainerState::Running);
    ray(&mut world.seen, &["192.168.200.12", "192.168.200.13"]);
    world.tick(500);
    assert_eq!(world.state(0), &SUCCESS);
    world.tick(9000);
    assert_eq!(world.state(1), &StepState::Verifying);
    // Time alone proves nothing: no probe answers.
    world.probing = false;
    world.tick(20_000);
    assert_eq!(world.state(1), &StepState::Verifying);
    world.probing = true;
    world.tick(250);
    assert_eq!(world.state(1), &SUCCESS);
    assert_eq!(world.over, Some(RunOutcome::Done));
}

#[test]
fn a_worker_that_joins_and_leaves_fails_the_membership() {
    let mut world = World::joining();
    world.tick(250);
    world.done(0);
    let config = world.config.clone();
    container(&mut world.seen, &config, WORKER, ContainerState::Running);
    ray(&mut world.seen, &["192.168.200.12", "192.168.200.13"]);
    world.tick(5000);
    container(
        &mut world.seen,
        &config,
        WORKER,
        ContainerState::Exited { code: 1, oom: false },
    );
    ray(&mut world.seen, &["192.168.200.12"]);
    world.tick(9000);
    assert_eq!(world.flights[0].1, WORKER, "its log is read");
    world.done(0);
    let failure = world.failure();
    assert_eq!(
        failure.seen,
        "container vllm-qwen35 on spark-2 has ended with exit code 1"
    );
    assert!(failure.fix.as_deref().unwrap_or("").contains("docker logs vllm-qwen35"));
    let notes = &world.machine.steps()[1].notes;
    assert!(
        notes.iter().any(|n| n.starts_with("it held and holds no longer")),
        "{notes:?}"
    );
}

#[test]
fn workers_join_one_after_the_other() {
    let mut config = sparks();
    let mut third = config.nodes[1].clone();
    third.name = "spark-3".to_owned();
    third.fabric_address = "192.168.200.14".to_owned();
    config.nodes.push(third);
    let mut seen = idle(&config);
    container(&mut seen, &config, HEAD, ContainerState::Running);
    ray(&mut seen, &["192.168.200.12"]);
    let mut world = World::of(config, seen, Action::Workers, &[StepKind::Join], false);
    world.tick(500);
    assert_eq!(world.flights.len(), 1);
    assert_eq!(world.flights[0].1, WORKER);
    world.done(0);
    world.tick(2000);
    assert!(world.flights.is_empty());
    let config = world.config.clone();
    container(&mut world.seen, &config, WORKER, ContainerState::Running);
    ray(&mut world.seen, &["192.168.200.12", "192.168.200.13"]);
    world.tick(500);
    assert_eq!(world.flights[0].1, NodeId(2));
}

#[test]
fn ready_means_a_token() {
    let mut world = World::loading(false);
    let config = world.config.clone();
    assert_eq!(world.asked(Want::Server(ServerProbe::Token)), 0);
    answers(&mut world.seen, &config, 0.0);
    world.tick(60_000);
    assert_eq!(world.asked(Want::Server(ServerProbe::Token)), 1);
    assert_eq!(world.state(0), &StepState::Verifying);
    let proof = TokenProof {
        model: "qwen".to_owned(),
        tokens: 1,
        took: Duration::from_secs(2),
    };
    world.seen.server.token = Reading::known(proof, world.now);
    world.tick(250);
    assert_eq!(world.state(0), &SUCCESS);
}

#[test]
fn tokens_that_the_server_has_counted_are_proof() {
    let mut world = World::loading(false);
    let config = world.config.clone();
    answers(&mut world.seen, &config, 7.0);
    world.tick(500);
    assert_eq!(world.state(0), &SUCCESS);
    assert_eq!(world.asked(Want::Server(ServerProbe::Token)), 0);
}

#[test]
fn a_server_that_says_healthy_and_gives_no_token_is_not_ready() {
    let mut world = World::loading(false);
    let config = world.config.clone();
    answers(&mut world.seen, &config, 0.0);
    // The same words each time: they are three answers all the same.
    for _ in 0..3 {
        world.tick(20_000);
        world.seen.server.token = Reading::absent("HTTP 500");
    }
    world.tick(1000);
    assert_eq!(world.asked(Want::Server(ServerProbe::Token)), 3);
    world.done(0);
    let failure = world.failure();
    assert_eq!(failure.what, "the server has generated a token since its start");
    assert!(failure.seen.contains("HTTP 500"), "{}", failure.seen);
}

#[test]
fn a_server_with_another_model_is_not_waited_for() {
    let mut world = World::loading(false);
    let config = world.config.clone();
    answers(&mut world.seen, &config, 0.0);
    world.seen.server.models = Reading::known(Vec::new(), world.now);
    world.tick(10_000);
    assert_eq!(world.over, None, "an empty list says nothing");
    world.seen.server.models = Reading::known(vec!["qwen35".to_owned()], world.now);
    world.tick(10_000);
    world.done(0);
    let failure = world.failure();
    assert_eq!(failure.seen, "/v1/models names qwen35");
    assert_eq!(failure.expected, config.serve.name());
    assert!(failure.fix.as_deref().unwrap_or("").contains("serve.served_name"));
    assert_eq!(world.asked(Want::Server(ServerProbe::Token)), 0);
}

#[test]
fn without_the_probe_an_answer_is_enough_and_said_to_be_less() {
    let mut world = World::loading(true);
    let config = world.config.clone();
    answers(&mut world.seen, &config, 0.0);
    world.tick(1000);
    assert!(
        matches!(world.state(0), StepState::Done(StepOutcome::Warning(w)) if w.contains("no token")),
        "{:?}",
        world.state(0)
    );
    assert_eq!(world.asked(Want::Server(ServerProbe::Token)), 0);
}

#[test]
fn a_server_that_dies_fails_with_the_lines_that_say_why() {
    let mut world = World::loading(false);
    world.tick(30_000);
    world.progress.failures = vec!["ValueError: Free memory on device cuda:0".to_owned()];
    let config = world.config.clone();
    server(&mut world.seen, &config, false);
    world.tick(5000);
    world.end(Exit::Code(0), &["the end of the log"]);
    let failure = world.failure();
    assert_eq!(failure.what, "the model server on spark-1 has ended");
    assert_eq!(
        failure.lines,
        ["ValueError: Free memory on device cuda:0", "the end of the log"]
    );
}

#[test]
fn the_first_and_the_last_lines_of_a_failure_are_kept() {
    let mut world = World::loading(false);
    world.tick(30_000);
    world.progress.failures = (0..30).map(|n| format!("failure {n}")).collect();
    let config = world.config.clone();
    server(&mut world.seen, &config, false);
    world.tick(5000);
    let log: Vec<String> = (0..20).map(|n| format!("log {n}")).collect();
    let log: Vec<&str> = log.iter().map(String::as_str).collect();
    world.end(Exit::Code(0), &log);
    let lines = &world.failure().lines;
    assert_eq!(lines.len(), super::LINES);
    assert_eq!((lines[0].as_str(), lines[19].as_str()), ("failure 0", "failure 19"));
    assert_eq!((lines[20].as_str(), lines[39].as_str()), ("log 0", "log 19"));
}

#[test]
fn the_log_that_is_shown_is_that_of_the_node_which_broke() {
    let mut world = World::loading(false);
    world.tick(30_000);
    let config = world.config.clone();
    let ended = ContainerState::Exited { code: 1, oom: false };
    container(&mut world.seen, &config, WORKER, ended);
    world.tick(10_000);
    let evidence: Vec<(NodeId, String)> = world.flights.iter().map(|(_, n, c)| (*n, c.line())).collect();
    assert_eq!(evidence, [(WORKER, "docker logs --tail 20 vllm-qwen35".to_owned())]);
    world.end(Exit::Code(0), &["Connection reset by peer"]);
    assert_eq!(world.failure().lines, ["Connection reset by peer"]);
}

#[test]
fn a_process_that_is_slow_to_show_itself_has_not_died() {
    let mut world = World::serving(false);
    world.tick(1000);
    world.done(0);
    world.tick(4000);
    let config = world.config.clone();
    server(&mut world.seen, &config, true);
    world.tick(20_000);
    assert_eq!(world.over, None);
}

#[test]
fn no_sign_of_progress_is_a_stall_and_progress_is_not() {
    let mut world = World::loading(false);
    for _ in 0..3 {
        world.tick(500_000);
        world.progress.last = Some(world.now);
    }
    assert_eq!(world.over, None);
    world.tick(602_000);
    world.done(0);
    let failure = world.failure();
    assert!(
        failure.seen.starts_with("no sign of progress for 10m"),
        "{}",
        failure.seen
    );
    assert!(failure.seen.contains("port 8000 refuses"), "{}", failure.seen);
}

#[test]
fn a_download_may_be_silent_up_to_the_limit_of_the_step() {
    let mut world = World::loading(false);
    world.progress.last = Some(world.now);
    world.progress.downloading = true;
    world.tick(3_000_000);
    assert_eq!(world.over, None);
    world.progress.downloading = false;
    world.tick(1000);
    world.done(0);
    assert!(world.failure().seen.starts_with("no sign of progress for 50m"));
}

#[test]
fn the_limit_ends_a_wait_and_says_what_was_waited_for() {
    let mut world = World::head();
    world.tick(250);
    world.done(0);
    let config = world.config.clone();
    container(&mut world.seen, &config, HEAD, ContainerState::Running);
    listen(&mut world.seen, HEAD, &["127.0.0.1:6379"]);
    ray(&mut world.seen, &["192.168.200.12"]);
    world.tick(121_000);
    world.done(0);
    let failure = world.failure();
    assert!(failure.what.contains("within 2m00s"), "{}", failure.what);
    assert_eq!(failure.seen, "it listens at 127.0.0.1:6379 only");
    assert_eq!(failure.after.as_secs(), 120);
}

#[test]
fn every_failing_check_is_shown_and_nothing_runs() {
    let mut world = World::head();
    listen(&mut world.seen, HEAD, &["0.0.0.0:6379"]);
    let held = GpuProcess {
        pid: 4242,
        name: "/usr/bin/python3".to_owned(),
        memory: None,
        container: None,
        draws: false,
    };
    if let Reading::Known { value, .. } = &mut world.seen.nodes[0].gpus {
        value.processes.push(held);
    }
    world.tick(250);
    let failure = world.failure();
    assert_eq!(
        failure.seen,
        "another process listens at 0.0.0.0:6379; python3 (process 4242)"
    );
    assert_eq!(failure.expected, "port 6379 free; no other process on the GPU");
    assert!(world.ran.is_empty());
}

#[test]
fn facts_from_before_the_step_do_not_count() {
    let mut world = World::head();
    world.probing = false;
    world.tick(60_000);
    assert!(world.ran.is_empty());
    assert!(world.asked(Want::Node(HEAD, ProbeId::Node)) >= 50);
    world.tick(61_000);
    let failure = world.failure();
    assert!(failure.seen.contains("not read again yet"), "{}", failure.seen);
}

#[test]
fn a_gpu_that_nobody_can_ask_about_is_let_pass_with_a_warning() {
    let config = sparks();
    let mut seen = idle(&config);
    seen.nodes[0].gpus = Reading::absent("nvidia-smi: not found");
    let mut world = World::of(config, seen, Action::Head, &[StepKind::Head], false);
    world.tick(250);
    world.done(0);
    head_comes_up(&mut world);
    world.tick(500);
    assert!(
        matches!(world.state(0), StepState::Done(StepOutcome::Warning(w)) if w.contains("nvidia-smi: not found")),
        "{:?}",
        world.state(0)
    );
}

#[test]
fn a_node_that_is_lost_before_a_step_fails_it_at_once() {
    let mut world = World::head();
    world.seen.nodes[0].link = LinkState::Down {
        error: LinkError {
            kind: LinkErrorKind::Unreachable,
            text: "192.168.200.12:22 did not answer within 10 s".to_owned(),
            fix: Some("look at the cable".to_owned()),
        },
        since: Stamp(0),
        retry_at: None,
    };
    world.tick(250);
    let failure = world.failure();
    assert_eq!(failure.seen, "192.168.200.12:22 did not answer within 10 s");
    assert_eq!(failure.fix.as_deref(), Some("look at the cable"));
}

#[test]
fn a_command_that_fails_says_how_and_what_to_do() {
    let mut world = World::head();
    world.tick(250);
    let said = "docker: Error response from daemon: could not select device driver \"\" with capabilities: [[gpu]].";
    world.end(Exit::Code(125), &[said]);
    // The log of a container that never ran says nothing.
    world.end(Exit::Code(1), &["Error: No such container: vllm-qwen35"]);
    let failure = world.failure();
    assert!(failure.what.starts_with("docker run -d"), "{}", failure.what);
    assert_eq!(failure.seen, format!("exit code 125: {said}"));
    assert_eq!(failure.lines, [said]);
    assert!(failure.fix.as_deref().unwrap_or("").contains("container toolkit"));
}

#[test]
fn a_command_that_could_not_start_or_ran_too_long_says_so() {
    let cases = [
        (
            Exit::NotStarted("channel refused".to_owned()),
            "it could not be started: channel refused",
        ),
        (Exit::TimedOut, "it ran past its limit of 2m00s"),
        (Exit::Signal("KILL".to_owned()), "ended by signal KILL"),
    ];
    for (exit, seen) in cases {
        let mut world = World::head();
        world.tick(250);
        world.end(exit, &[]);
        world.done(0);
        assert_eq!(world.failure().seen, seen);
    }
}

#[test]
fn a_link_that_dies_with_a_command_in_flight_is_unknown_and_nothing_goes_on() {
    let mut world = World::head();
    world.tick(250);
    world.end(Exit::Unknown("connection lost".to_owned()), &[]);
    assert_eq!(world.state(0), &StepState::Unknown("connection lost".to_owned()));
    assert_eq!(world.over, Some(RunOutcome::Unknown));
    head_comes_up(&mut world);
    world.tick(5000);
    assert_eq!(world.state(0), &StepState::Unknown("connection lost".to_owned()));
    assert_eq!(world.ran.len(), 1);
}

#[test]
fn a_command_without_an_end_is_given_up() {
    let mut world = World::head();
    world.tick(250);
    world.tick(149_000);
    assert_eq!(world.over, None);
    world.tick(2000);
    assert_eq!(world.over, Some(RunOutcome::Unknown));
}

#[test]
fn an_abort_stops_a_verification_at_once_and_waits_for_a_command() {
    let mut world = World::loading(false);
    let out = world.machine.abort(world.now);
    world.take(out);
    assert_eq!(world.over, Some(RunOutcome::Aborted));
    assert_eq!(world.state(0), &StepState::Aborted);

    let mut world = World::joining();
    world.tick(250);
    let out = world.machine.abort(world.now);
    world.take(out);
    assert_eq!(world.over, None);
    world.done(0);
    assert_eq!(world.over, Some(RunOutcome::Aborted));
    assert_eq!(world.state(1), &StepState::Waiting);
}

#[test]
fn a_run_that_is_over_stays_so() {
    let mut world = World::head();
    world.tick(250);
    world.end(Exit::Unknown("lost".to_owned()), &[]);
    let out = world.machine.abort(world.now);
    assert_eq!(out, []);
    world.tick(1000);
    assert_eq!(world.over, Some(RunOutcome::Unknown));
    assert!(world.machine.current().is_none());
}

#[test]
fn an_answer_about_another_command_changes_nothing() {
    let mut world = World::head();
    world.tick(250);
    let stranger = CommandDone {
        run: RunId(3),
        exit: Exit::Code(1),
        stdout: Vec::new(),
        stderr: Vec::new(),
        took_ms: 1,
    };
    assert_eq!(world.machine.on_command_done(&stranger, &world.config, world.now), []);
    assert_eq!(world.state(0), &StepState::Running);
}

#[test]
fn run_ids_differ_from_those_of_another_run() {
    let mut first = World::head();
    first.tick(250);
    let plan = first.machine.plan().clone();
    let (mut second, _) = Machine::new(plan, false, Stamp(1001));
    refresh(&mut first.seen, Stamp(1001));
    let out = second.on_tick(&first.seen, &first.config, &Progress::default(), Stamp(1001));
    let run = out.iter().find_map(|d| match d {
        Do::Run { run, .. } => Some(*run),
        Do::Want(_) | Do::Event(_) | Do::Over(_) => None,
    });
    assert_ne!(run, Some(first.flights[0].0));
    assert!(run.unwrap().0 < 1 << 53);
}

#[test]
fn a_plan_with_refusals_does_not_run() {
    let plan = Plan {
        action: Action::Head,
        steps: Vec::new(),
        refusals: vec![super::super::types::Refusal {
            text: "no".to_owned(),
            fix: None,
        }],
        notes: Vec::new(),
    };
    let (machine, out) = Machine::new(plan, false, Stamp(0));
    assert_eq!(out, [Do::Over(RunOutcome::Failed)]);
    assert_eq!(machine.outcome(), Some(RunOutcome::Failed));
}

#[test]
fn a_verb_is_watched_and_tidied_up_after() {
    let config = scripted();
    let seen = idle(&config);
    let mut world = World::of(config, seen, Action::Head, &[StepKind::Head], false);
    world.tick(250);
    assert!(world.ran[0].starts_with("engine.verb sparks head"), "{:?}", world.ran);
    world.done(0);
    world.seen.nodes[0].verb = Reading::known(
        VerbFacts::Running {
            verb: "head".to_owned(),
            tail: Vec::new(),
        },
        world.now,
    );
    world.tick(20_000);
    assert_eq!(world.over, None);
    head_comes_up(&mut world);
    world.tick(250);
    assert_eq!(world.ran[1], "engine.verb-clean sparks ended");
    world.done(0);
    assert_eq!(world.state(0), &SUCCESS);
}

#[test]
fn a_verb_that_fails_shows_its_output() {
    let config = scripted();
    let seen = idle(&config);
    let mut world = World::of(config, seen, Action::Head, &[StepKind::Head], false);
    world.tick(250);
    world.done(0);
    world.seen.nodes[0].verb = Reading::known(
        VerbFacts::Ended {
            verb: "head".to_owned(),
            code: 2,
            tail: vec!["no such image".to_owned()],
        },
        world.now,
    );
    world.tick(10_000);
    // The container's log, then the tidying up.
    world.done(1);
    world.done(0);
    let failure = world.failure();
    assert_eq!(
        failure.seen,
        "no container vllm-qwen35 is on spark-1; the verb head ended with exit code 2"
    );
    assert_eq!(failure.lines, ["no such image"]);
}

#[test]
fn a_stop_is_done_when_nothing_of_ours_is_left() {
    let config = sparks();
    let mut seen = joined(&config);
    server(&mut seen, &config, true);
    listen(&mut seen, HEAD, &["*:6379", "*:8000"]);
    let kinds = [StepKind::StopServe, StepKind::StopNode];
    let mut world = World::of(config, seen, Action::StopAll, &kinds, false);
    world.tick(250);
    assert_eq!(world.ran, ["engine.stop-serve docker vllm-qwen35 marked 10"]);
    world.done(0);
    let config = world.config.clone();
    server(&mut world.seen, &config, false);
    listen(&mut world.seen, HEAD, &["*:6379"]);
    world.tick(500);
    assert_eq!(world.flights[0].1, WORKER);
    world.done(0);
    world.done(0);
    world.seen.nodes[1].containers = Reading::known(ContainerFacts::default(), world.now);
    world.tick(500);
    assert_eq!(world.flights[0].1, HEAD);
    world.done(0);
    world.done(0);
    world.tick(1000);
    assert_eq!(world.over, None);
    world.seen.nodes[0].containers = Reading::known(ContainerFacts::default(), world.now);
    world.tick(500);
    assert_eq!(world.over, Some(RunOutcome::Done));
    assert_eq!(
        world.ran[1..],
        [
            "docker stop -t 10 vllm-qwen35",
            "docker rm vllm-qwen35",
            "docker stop -t 10 vllm-qwen35",
            "docker rm vllm-qwen35"
        ]
    );
}

#[test]
fn a_container_that_goes_by_itself_is_stopped_all_the_same() {
    let gone = [
        "Error response from daemon: No such container: vllm-qwen35",
        "Error response from daemon: removal of container vllm-qwen35 is already in progress",
    ];
    for said in gone {
        let config = sparks();
        let mut seen = idle(&config);
        container(&mut seen, &config, HEAD, ContainerState::Running);
        let mut world = World::of(config, seen, Action::StopAll, &[StepKind::StopNode], false);
        world.tick(250);
        world.done(0);
        world.end(Exit::Code(1), &[said]);
        world.tick(1000);
        assert_eq!(world.over, None, "what is seen decides");
        world.seen.nodes[0].containers = Reading::known(ContainerFacts::default(), world.now);
        world.tick(500);
        assert_eq!(world.over, Some(RunOutcome::Done), "{said}");
    }
    let config = sparks();
    let mut seen = idle(&config);
    container(&mut seen, &config, HEAD, ContainerState::Running);
    let mut world = World::of(config, seen, Action::StopAll, &[StepKind::StopNode], false);
    world.tick(250);
    world.end(
        Exit::Code(1),
        &["permission denied while trying to connect to the Docker daemon"],
    );
    assert_eq!(world.over, Some(RunOutcome::Failed));
}

#[test]
fn probes_are_asked_for_at_their_pace_and_only_where_they_help() {
    let mut world = World::loading(false);
    world.wants.clear();
    world.tick(60_000);
    assert!(world.asked(Want::Server(ServerProbe::Health)) <= 61);
    assert!(world.asked(Want::Node(HEAD, ProbeId::Node)) <= 13);
    // A port that refuses is not asked for its models.
    assert_eq!(world.asked(Want::Server(ServerProbe::Models)), 0);
    assert_eq!(world.asked(Want::Server(ServerProbe::Token)), 0);
    assert_eq!(world.seen.server.health.value(), Some(&Health::Refused));
}

#[test]
fn a_look_without_news_gives_nothing_new() {
    let mut world = World::loading(false);
    let first = world
        .machine
        .on_tick(&world.seen, &world.config, &world.progress, world.now);
    let again = world
        .machine
        .on_tick(&world.seen, &world.config, &world.progress, world.now);
    assert_eq!((first, again), (Vec::new(), Vec::new()));
}
