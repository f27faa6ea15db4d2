//! A server that loads: ready, dead or silent.

use super::*;

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
    assert_eq!(lines.len(), crate::plan::machine::LINES);
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
fn who_is_told_to_look_for_a_line_finds_one() {
    let mut world = World::loading(false);
    world.progress.last = Some(world.now);
    world.tick(602_000);
    world.done(0);
    let fix = world.failure().fix.clone().unwrap_or_default();
    assert!(!fix.contains("failure line"), "{fix}");
    assert!(
        fix.contains("S waits for it anew"),
        "the server was left running: {fix}"
    );
    let mut world = World::loading(false);
    world.progress.failures = vec!["ValueError: no such thing".to_owned()];
    world.tick(602_000);
    world.done(0);
    assert_eq!(world.failure().lines, ["ValueError: no such thing"]);
    let fix = world.failure().fix.clone().unwrap_or_default();
    assert!(fix.starts_with("the first failure line in the log of spark-1"), "{fix}");
}

#[test]
fn a_log_that_went_with_its_container_is_not_pointed_to() {
    for (config, cure) in [(sparks(), "U starts anew"), (scripted(), "without --rm")] {
        let seen = joined(&config);
        let mut world = World::of(config, seen, Action::Serve, &[StepKind::Serve], false);
        world.tick(1000);
        world.done(0);
        let config = world.config.clone();
        server(&mut world.seen, &config, true);
        world.tick(10_000);
        world.seen.nodes[1].containers = Reading::known(ContainerFacts::default(), world.now);
        world.tick(10_000);
        while !world.flights.is_empty() {
            world.done(0);
        }
        let fix = world.failure().fix.clone().unwrap_or_default();
        assert!(fix.contains("its log with it") && fix.contains(cure), "{fix}");
    }
}

#[test]
fn what_comes_true_after_a_run_gave_up_is_seen_and_what_goes_again_too() {
    let mut world = World::loading(false);
    world.progress.last = Some(world.now);
    world.tick(602_000);
    world.done(0);
    let later = |world: &mut World, ms: u64| {
        world.tick(ms);
        let (seen, config, now) = (&world.seen, &world.config, world.now);
        world.machine.look_back(seen, config, now);
        world.machine.steps()[0].later
    };
    assert_eq!(later(&mut world, 1000), None);
    let config = world.config.clone();
    answers(&mut world.seen, &config, 0.0);
    assert_eq!(later(&mut world, 1000), None, "no token yet");
    answers(&mut world.seen, &config, 7.0);
    let since = later(&mut world, 1000);
    assert_eq!(since, Some(world.now));
    assert_eq!(later(&mut world, 60_000), since, "since it was first seen");
    assert_eq!(world.over, Some(RunOutcome::Failed), "how it ended stays");
    world.seen.server.health = Reading::known(Health::Refused, world.now);
    assert_eq!(later(&mut world, 1000), None);
}
