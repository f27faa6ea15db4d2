//! A head that is started: verified by what is seen, and what is there already is left alone.

use super::*;

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
