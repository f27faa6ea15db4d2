//! Servers that fail, and what becomes of one that is stopped.

use super::*;

#[test]
fn a_process_that_is_gone_with_a_failure_line_has_failed_with_the_first_one() {
    let mut told = Told::serving(Options::default());
    for text in ["ValueError: first", "RuntimeError: echo"] {
        told.at(
            100,
            Source::Node(HEAD),
            EventKind::Line(LineFact::Failure(text.into()), Written::LIVE),
        );
    }
    told.server(200, ServerFacts::Health(Health::Refused));
    told.node(300, HEAD, Facts::Serve(ServeFacts::default()));
    assert_eq!(*told.state(), ServingState::Failed("ValueError: first".into()));
}

/// Both nodes say that something failed, the worker first.
fn failed_lines(told: &mut Told, at: u64) {
    for (ms, node, text) in [(at, WORKER, "NCCL error"), (at + 5, HEAD, "RuntimeError: echo")] {
        told.at(
            ms,
            Source::Node(node),
            EventKind::Line(LineFact::Failure(text.into()), Written::LIVE),
        );
    }
}

#[test]
fn the_first_failure_of_all_nodes_is_the_one_that_counts() {
    let mut told = Told::serving(Options::default());
    failed_lines(&mut told, 100);
    told.server(200, ServerFacts::Health(Health::Refused));
    told.node(300, HEAD, Facts::Serve(ServeFacts::default()));
    assert_eq!(*told.state(), ServingState::Failed("NCCL error".into()));
}

#[test]
fn a_load_goes_with_its_server_and_its_failures_stay() {
    let mut told = Told::serving(Options::default());
    for node in [HEAD, WORKER] {
        let line = EventKind::Line(LineFact::Stage(Stage::Weights), Written::LIVE);
        told.at(100, Source::Node(node), line);
    }
    failed_lines(&mut told, 200);
    told.server(300, ServerFacts::Health(Health::Refused));
    assert!(told.0.loads());
    told.node(400, HEAD, Facts::Serve(ServeFacts::default()));
    assert!(!told.0.loads());
    for view in &told.0.nodes {
        assert_eq!((view.load.stage, view.load.bar), (None, None));
        assert_eq!(view.load.failures.len(), 1);
    }
}

#[test]
fn a_server_that_was_stopped_has_not_failed_for_what_it_said_long_ago() {
    let listening = || EventKind::Line(LineFact::Stage(Stage::Listening), Written::LIVE);
    let mut told = Told::serving(Options::default());
    failed_lines(&mut told, 100);
    told.at(1000, Source::Node(HEAD), listening());
    told.healthy(2000, 5.0);
    told.server(90_000, ServerFacts::Health(Health::Refused));
    told.node(90_100, HEAD, Facts::Serve(ServeFacts::default()));
    assert_eq!(*told.state(), ServingState::Down);
    // One that has just said so has.
    let mut told = Told::serving(Options::default());
    told.at(1000, Source::Node(HEAD), listening());
    failed_lines(&mut told, 89_000);
    told.server(90_000, ServerFacts::Health(Health::Refused));
    told.node(90_100, HEAD, Facts::Serve(ServeFacts::default()));
    assert_eq!(*told.state(), ServingState::Failed("NCCL error".into()));
    // A container of ours that is not there any more was removed by somebody.
    let mut told = Told::serving(Options::default());
    failed_lines(&mut told, 100);
    told.server(200, ServerFacts::Health(Health::Refused));
    told.node(300, HEAD, Facts::Containers(ContainerFacts::default()));
    assert_eq!(*told.state(), ServingState::Down);
}

/// Our head's container runs with a server in it, and nothing on the worker.
fn ours_serving(options: Options) -> Told {
    let mut told = Told::serving(options);
    let mut head = running("vllm-qwen35");
    head.containers[0].ours = Some(Labels {
        cluster: "sparks".into(),
        ..Labels::default()
    });
    told.node(10, HEAD, Facts::Containers(head));
    told.node(10, WORKER, Facts::Containers(ContainerFacts::default()));
    told
}

#[test]
fn what_a_server_says_while_it_is_stopped_is_no_failure() {
    let mut told = ours_serving(Options::default());
    told.wants(Intent::Plan(Action::StopAll));
    told.wants(Intent::Confirm);
    assert_eq!(told.0.plan, None, "it runs");
    failed_lines(&mut told, 100);
    told.server(200, ServerFacts::Health(Health::Refused));
    told.node(300, HEAD, Facts::Serve(ServeFacts::default()));
    assert_eq!(*told.state(), ServingState::Down);
}

#[test]
fn a_second_run_is_refused_with_the_keys_that_stop_the_first() {
    let mut told = ours_serving(Options::default());
    told.wants(Intent::Plan(Action::StopAll));
    told.wants(Intent::Confirm);
    told.wants(Intent::Plan(Action::StopAll));
    told.wants(Intent::Confirm);
    let said = told.0.notices.back().map(|n| n.text.as_str());
    assert_eq!(said, Some("a run is under way; wait for it, or stop it: X, then r"));
}

#[test]
fn without_the_probe_a_run_ends_with_an_answer_and_says_no_more() {
    let mut told = ours_serving(Options { no_probe: true });
    let member = |address: &str| RayNode {
        address: address.into(),
        alive: true,
        gpus: 1.0,
        ..RayNode::default()
    };
    let ray = RayFacts {
        nodes: vec![member("192.168.200.12"), member("192.168.200.13")],
        ..RayFacts::default()
    };
    let containers = told.0.observed.nodes[0].containers.value().cloned();
    told.server(20, ServerFacts::Ray(Ok(ray)));
    told.wants(Intent::Plan(Action::Serve));
    told.wants(Intent::Confirm);
    told.node(30, HEAD, Facts::Containers(containers.expect("it was told")));
    told.server(30, ServerFacts::Health(Health::Ok));
    let name = told.0.config.serve.name().to_owned();
    let effects = told.server(30, ServerFacts::Models(Ok(vec![name])));
    let said = "sparks: the model server answers; no token was asked for";
    assert!(effects.contains(&Effect::Notify(said.into())), "{effects:?}");
}

#[test]
fn a_server_that_calls_itself_unavailable_loads_until_it_has_answered_and_is_broken_after() {
    let unavailable = || ServerFacts::Health(Health::Status(503));
    let mut told = Told::serving(Options::default());
    told.server(100, unavailable());
    assert_eq!(*told.state(), ServingState::Loading);
    told.healthy(200, 0.0);
    told.server(300, unavailable());
    assert_eq!(*told.state(), ServingState::Failed("/health answers 503".into()));
}

#[test]
fn since_when_a_server_that_was_found_is_so_nobody_knows() {
    let mut told = Told::serving(Options::default());
    told.healthy(100, 0.0);
    told.server(200, token());
    assert_eq!(*told.state(), ServingState::Ready);
    assert!(told.0.server.found, "the token proves what was so before");
    told.server(300, ServerFacts::Health(Health::Refused));
    told.healthy(400, 0.0);
    told.server(500, token());
    assert_eq!(*told.state(), ServingState::Ready);
    assert!(!told.0.server.found, "it was seen to become so");
}

#[test]
fn what_becomes_of_a_server_is_told_and_what_was_found_is_not() {
    let notices = |effects: &[Effect]| -> Vec<String> {
        let text = |e: &Effect| match e {
            Effect::Notify(text) => Some(text.clone()),
            _ => None,
        };
        effects.iter().filter_map(text).collect()
    };
    let metrics = |n| ServerFacts::Metrics(Ok(counted(n).into()));
    let mut told = Told::serving(Options::default());
    told.server(100, ServerFacts::Health(Health::Ok));
    assert_eq!(notices(&told.server(200, metrics(5.0))), [""; 0], "it was ready before");
    assert_eq!(*told.state(), ServingState::Ready);
    let gone = told.server(300, ServerFacts::Health(Health::Status(500)));
    assert_eq!(
        notices(&gone),
        ["sparks: the model server has failed: /health answers 500"]
    );
    let closed = told.server(400, ServerFacts::Health(Health::Refused));
    assert_eq!(notices(&closed), [""; 0]);
    assert_eq!(*told.state(), ServingState::Failed("/health answers 500".into()));
    told.server(500, ServerFacts::Health(Health::Ok));
    assert_eq!(notices(&told.server(600, metrics(5.0))), ["sparks: the model is ready"]);
}

#[test]
fn a_server_that_is_stopped_ends_and_does_not_load() {
    let mut told = Told::serving(Options::default());
    told.healthy(100, 9.0);
    told.server(200, ServerFacts::Health(Health::Refused));
    assert_eq!(
        *told.state(),
        ServingState::Stopping,
        "the process that answered closed its port"
    );
    assert!(!told.0.server.found);
    assert_eq!(
        told.0.server_why().as_deref(),
        Some("it has closed its port, and its process is still there")
    );
    told.node(3000, HEAD, Facts::Serve(ServeFacts::default()));
    assert_eq!(*told.state(), ServingState::Down);
    // Another one loads.
    let process = |pid| ServeProcess {
        pid,
        mark: None,
        command: "vllm serve".into(),
        up_seconds: Some(1),
    };
    let serve = |pid| {
        Facts::Serve(ServeFacts {
            processes: vec![process(pid)],
        })
    };
    told.node(6000, HEAD, serve(8));
    told.server(6100, ServerFacts::Health(Health::Refused));
    assert_eq!(*told.state(), ServingState::Loading);
    // One that stays without a word of an end is broken.
    let mut stays = Told::serving(Options::default());
    stays.healthy(100, 9.0);
    for (at, state) in [
        (5_000, ServingState::Stopping),
        (
            20_000,
            ServingState::Failed("its port refuses, and its process is still there".into()),
        ),
    ] {
        stays.server(at, ServerFacts::Health(Health::Refused));
        stays.node(at + 1, HEAD, serve(7));
        assert_eq!(*stays.state(), state, "{at}");
    }
}

#[test]
fn a_server_that_says_that_it_shuts_down_ends_for_who_comes_late_too() {
    for health in [Health::Refused, Health::Status(503)] {
        let mut told = Told::serving(Options::default());
        let line = |told: &mut Told, at, fact| told.at(at, Source::Node(HEAD), EventKind::Line(fact, Written::LIVE));
        line(&mut told, 100, LineFact::Stage(Stage::Listening));
        line(&mut told, 200, LineFact::ShutsDown);
        told.server(300, ServerFacts::Health(health.clone()));
        assert_eq!(*told.state(), ServingState::Stopping);
        assert_eq!(
            told.0.server_why().as_deref(),
            Some("its log says that it shuts down, and its process is still there")
        );
        told.server(40_000, ServerFacts::Health(health.clone()));
        assert_eq!(*told.state(), ServingState::Stopping, "it says so still");
        line(&mut told, 41_000, LineFact::NewStart);
        told.server(41_100, ServerFacts::Health(Health::Refused));
        assert_eq!(*told.state(), ServingState::Loading);
    }
}

#[test]
fn a_server_that_shuts_down_because_its_engine_died_has_failed() {
    for health in [Health::Refused, Health::Status(503)] {
        let mut told = Told::serving(Options::default());
        told.healthy(100, 9.0);
        let line = |told: &mut Told, at, fact| told.at(at, Source::Node(HEAD), EventKind::Line(fact, Written::LIVE));
        line(&mut told, 200, LineFact::Failure("EngineDeadError".into()));
        line(&mut told, 210, LineFact::ShutsDown);
        told.server(300, ServerFacts::Health(health.clone()));
        assert!(
            matches!(told.state(), ServingState::Failed(_)),
            "{health:?}: {:?}",
            told.state()
        );
    }
}
