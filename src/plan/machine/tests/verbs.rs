//! Verbs of a script, stops, and the pace of what is asked.

use crate::probe::serve::UNSEEN;

use super::*;

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

#[test]
fn a_container_that_nothing_can_look_into_is_stopped_whole_and_at_once() {
    let config = sparks();
    let mut seen = joined(&config);
    seen.nodes[0].serve = Reading::absent(UNSEEN);
    let now = Now {
        stamp: Stamp(1000),
        wall: Wall(1_764_444_000_000),
    };
    let kinds = |action| {
        let plan = make(action, &config, &seen, now);
        plan.steps.iter().map(|s| s.kind).collect::<Vec<_>>()
    };
    assert_eq!(kinds(Action::StopAll), [StepKind::StopNode, StepKind::StopNode]);
    let all = make(Action::StopAll, &config, &seen, now);
    assert!(all.notes[0].starts_with(UNSEEN), "{:?}", all.notes);
    let serve = make(Action::StopServe, &config, &seen, now);
    assert!(serve.refusals[0].text.ends_with(UNSEEN), "{:?}", serve.refusals);
    assert!(
        serve.refusals[0]
            .fix
            .as_deref()
            .unwrap_or_default()
            .contains("X and then a")
    );
    assert!(
        make(Action::Serve, &config, &seen, now).refusals[0]
            .text
            .ends_with(UNSEEN)
    );
}
