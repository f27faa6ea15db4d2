//! What is checked before a step.

use super::*;

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
