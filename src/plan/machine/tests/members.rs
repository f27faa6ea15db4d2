//! Workers that join, and a membership that must stay.

use super::*;

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
    let command = (WORKER, "docker logs vllm-qwen35".to_owned());
    assert_eq!(failure.command, Some(command), "what the words name");
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
