//! How a command ends, and what a run does then.

use super::*;

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
        refusals: vec![crate::plan::types::Refusal {
            text: "no".to_owned(),
            fix: None,
        }],
        notes: Vec::new(),
    };
    let (machine, out) = Machine::new(plan, false, Stamp(0));
    assert_eq!(out, [Do::Over(RunOutcome::Failed)]);
    assert_eq!(machine.outcome(), Some(RunOutcome::Failed));
}
