//! A ready server that has lost a part of its cluster.

use crate::domain::HopId;
use crate::domain::sign::{Sign, SignKind};
use crate::model::loading;
use crate::model::ray::members::{self, Member};

use super::*;

#[test]
fn a_ready_server_without_one_of_its_nodes_is_degraded() {
    let mut told = Told::serving(Options::default());
    told.healthy(100, 9.0);
    told.at(200, Source::Node(WORKER), EventKind::Link(down()));
    assert_eq!(*told.state(), ServingState::Degraded("spark-2 can't be reached".into()));
}

#[test]
fn a_ready_server_whose_ray_lost_a_node_is_degraded() {
    let mut told = Told::serving(Options::default());
    told.healthy(100, 9.0);
    let head = RayNode {
        address: "192.168.200.12".into(),
        alive: true,
        ..RayNode::default()
    };
    told.server(
        200,
        ServerFacts::Ray(Ok(RayFacts {
            nodes: vec![head],
            ..RayFacts::default()
        })),
    );
    assert_eq!(
        *told.state(),
        ServingState::Degraded("Ray has lost spark-2 (192.168.200.13)".into())
    );
}

#[test]
fn a_dashboard_that_refuses_is_not_the_last_word_on_the_membership() {
    let mut told = Told::serving(Options::default());
    told.server(100, ServerFacts::Ray(Err("connection refused".into())));
    assert_eq!(told.0.observed.ray.reason(), Some(NOT_ASKED));
    let asks = |effects: &[Effect]| effects.contains(&Effect::Probe(HEAD, ProbeId::Ray));
    assert!(asks(&told.tick(200)));
    let why = "Ray gave no answer".to_owned();
    let probe = ProbeId::Ray;
    told.at(300, Source::Node(HEAD), EventKind::ProbeFailed { probe, why });
    assert_eq!(told.0.observed.ray.reason(), Some("Ray gave no answer"));
}

#[test]
fn a_lost_node_stays_lost_between_two_records_from_the_container() {
    let mut told = Told::serving(Options::default());
    told.healthy(0, 1.0);
    let nodes = Vec::new();
    let via = RayVia::Container;
    told.node(
        0,
        HEAD,
        Facts::Ray(RayFacts {
            nodes,
            via,
            ..RayFacts::default()
        }),
    );
    for at in [100, 2500, 8500] {
        told.server(at, ServerFacts::Health(Health::Ok));
        assert!(matches!(told.state(), ServingState::Degraded(_)), "{at}");
    }
}

#[test]
fn what_an_unreachable_head_said_last_is_not_what_it_says_now() {
    let mut told = Told::serving(Options::default());
    told.healthy(100, 9.0);
    told.at(200, Source::Node(HEAD), EventKind::Link(down()));
    assert_eq!(*told.state(), ServingState::Unknown);
    assert!(
        told.0.observed.server.health.value().is_some(),
        "the reading stays, with its age"
    );
}

/// Both containers run, and Ray has both nodes.
fn whole() -> Told {
    let mut told = Told::serving(Options::default());
    told.node(0, WORKER, Facts::Containers(running("vllm-qwen35")));
    told.healthy(100, 9.0);
    let nodes = ["192.168.200.12", "192.168.200.13"].map(|address| RayNode {
        address: address.into(),
        alive: true,
        gpus: 1.0,
        ..RayNode::default()
    });
    let ray = RayFacts {
        nodes: nodes.to_vec(),
        ..RayFacts::default()
    };
    told.server(200, ServerFacts::Ray(Ok(ray)));
    told
}

#[test]
fn who_comes_when_a_member_is_out_of_reach_already_names_it_as_the_cause() {
    let mut told = Told::serving(Options::default());
    told.healthy(100, 9.0);
    told.at(150, Source::Node(WORKER), EventKind::Link(down()));
    // Nothing but the connection speaks of it: it may never have been a member.
    assert_eq!(told.0.first_cause(), None);
    let member = |address: &str| RayNode {
        address: address.into(),
        alive: true,
        ..RayNode::default()
    };
    let ray = RayFacts {
        nodes: ["192.168.200.12", "192.168.200.13"].map(member).to_vec(),
        ..RayFacts::default()
    };
    told.server(200, ServerFacts::Ray(Ok(ray)));
    let cause = told.0.first_cause().unwrap();
    assert_eq!(
        (cause.rule.as_deref(), cause.node),
        (Some("node-not-answering"), Some(WORKER))
    );
}

fn ended(code: i32) -> ContainerFacts {
    let mut all = running("vllm-qwen35");
    all.containers[0].state = ContainerState::Exited { code, oom: false };
    all
}

#[test]
fn a_ready_server_whose_worker_has_no_container_is_degraded_before_ray_knows_and_the_cause_is_told_with_its_cure() {
    let gone = ContainerFacts::default();
    for (containers, how, rule) in [
        (ended(0), "exit code 0", "container-stopped"),
        (ended(143), "exit code 143", "container-stopped"),
        (ended(137), "exit code 137", "container-killed"),
        (gone, "it is not there any more", "container-stopped"),
    ] {
        let mut told = whole();
        assert_eq!(*told.state(), ServingState::Ready);
        assert_eq!(told.0.cure(), None);
        told.node(300, WORKER, Facts::Containers(containers));
        assert_eq!(
            *told.state(),
            ServingState::Degraded(format!("vllm-qwen35 on spark-2 does not run: {how}"))
        );
        let cause = told.0.first_cause().unwrap();
        assert_eq!((cause.rule.as_deref(), cause.node), (Some(rule), Some(WORKER)));
        assert!(cause.fix.is_some());
        assert!(told.0.cure().is_some());
        let copied = told.wants(Intent::Copy);
        assert_eq!(copied, [Effect::Copy(told.0.cure().unwrap())]);
        // It runs again.
        told.node(400, WORKER, Facts::Containers(running("vllm-qwen35")));
        assert_eq!((told.state(), told.0.first_cause()), (&ServingState::Ready, None));
    }
}

#[test]
fn a_stop_that_was_found_is_before_what_follows_from_it() {
    let mut told = Told::serving(Options::default());
    let line = "RayWorkerProc rank=[1] died unexpectedly, shutting down executor.";
    let sign = Sign {
        what: SignKind::Rule("worker-process-died".into()),
        text: line.into(),
        written: Some(Wall(50)),
        backlog: true,
        fields: Vec::new(),
        times: 1,
    };
    told.at(10_000, Source::Node(HEAD), EventKind::Sign(sign));
    told.node(10_000, WORKER, Facts::Containers(ended(0)));
    assert_eq!(
        told.0.first_cause().unwrap().rule.as_deref(),
        Some("worker-process-died")
    );
    // Ray is asked later: that the node was a member is learnt then, and not that it is so since then.
    let dead = RayNode {
        address: "192.168.200.13".into(),
        ..RayNode::default()
    };
    let ray = RayFacts {
        nodes: vec![dead],
        ..RayFacts::default()
    };
    told.server(10_500, ServerFacts::Ray(Ok(ray)));
    let cause = told.0.first_cause().unwrap();
    assert_eq!((cause.rule.as_deref(), cause.found), (Some("container-stopped"), true));
    assert_eq!(cause.echoes.len(), 1, "{:?}", cause.echoes);
}

#[test]
fn a_container_that_never_belonged_to_the_cluster_is_no_loss() {
    let mut told = Told::serving(Options::default());
    told.healthy(100, 9.0);
    told.node(200, WORKER, Facts::Containers(ContainerFacts::default()));
    assert_eq!(*told.state(), ServingState::Ready, "its worker may run outside of one");
    told.server(250, ServerFacts::Ray(Ok(RayFacts::default())));
    told.node(300, WORKER, Facts::Containers(ended(0)));
    assert_eq!(told.0.first_cause(), None, "it was no member of this Ray");
}

#[test]
fn who_was_a_member_of_the_head_before_is_no_member_of_the_one_that_runs_now() {
    let mut told = whole();
    let mut anew = running("vllm-qwen35");
    anew.containers[0].id = "c2".into();
    told.node(300, HEAD, Facts::Containers(anew));
    assert_eq!(told.0.observed.ray.reason(), Some("the head was made anew"));
    // What its run takes away was none of this cluster's.
    told.node(400, WORKER, Facts::Containers(ended(0)));
    assert_eq!(told.0.first_cause(), None);
}

#[test]
fn a_head_that_somebody_stops_is_the_cause_and_so_is_one_that_was_found_ended_but_for_when() {
    for (containers, seen) in [
        (ended(0), "was stopped: exit code 0"),
        (ContainerFacts::default(), "is gone: `docker ps -a` does not list it"),
    ] {
        let mut told = whole();
        told.node(300, HEAD, Facts::Containers(containers));
        let cause = told.0.first_cause().unwrap();
        assert_eq!(
            (cause.rule.as_deref(), cause.node),
            (Some("container-stopped"), Some(HEAD))
        );
        assert!(cause.text.contains(seen), "{}", cause.text);
        told.server(400, ServerFacts::Health(Health::Refused));
        assert_eq!(*told.state(), ServingState::Down);
        assert!(told.0.cure().is_some());
    }
    // Nobody saw it run: that it has ended is there to be seen, and nothing tells since when.
    let mut found = Told::new(Options::default());
    found.at(0, Source::Node(HEAD), EventKind::Link(LinkState::Up));
    found.node(300, HEAD, Facts::Containers(ended(0)));
    let cause = found.0.first_cause().unwrap();
    assert_eq!((cause.rule.as_deref(), cause.found), (Some("container-stopped"), true));
    // That none is there is how every cluster begins.
    let mut none = Told::new(Options::default());
    none.at(0, Source::Node(HEAD), EventKind::Link(LinkState::Up));
    none.node(300, HEAD, Facts::Containers(ContainerFacts::default()));
    assert_eq!(none.0.first_cause(), None);
}

#[test]
fn a_worker_that_was_stopped_is_not_back_because_its_head_was_stopped_too() {
    let mut told = whole();
    told.node(300, WORKER, Facts::Containers(ended(0)));
    told.node(400, HEAD, Facts::Containers(ended(0)));
    let stopped = |told: &Told| {
        let causes = told.0.causes().into_iter();
        causes.map(|c| (c.node, c.over)).collect::<Vec<_>>()
    };
    let both = [(Some(WORKER), None), (Some(HEAD), None)];
    assert_eq!(stopped(&told), both);
    // The last answer of each is old by now.
    told.tick(300_000);
    assert_eq!(stopped(&told), both, "Docker tells nothing any more");
}

#[test]
fn a_node_that_is_silent_with_its_jump_host_is_not_blamed_and_one_that_was_before_it_is() {
    let silent = |since| EventKind::Link(LinkState::Silent { since: Stamp(since) });
    let hop = Source::Hop(HopId(0));
    for (node_since, hop_since, blamed) in [(10_000, 10_400, false), (10_000, 60_000, true)] {
        let mut told = whole();
        told.at(node_since + 3000, Source::Node(WORKER), silent(node_since));
        told.at(hop_since + 3100, hop, silent(hop_since));
        told.tick(hop_since + 3200);
        let rule = told.0.first_cause().and_then(|c| c.rule);
        assert_eq!(rule.as_deref() == Some("node-not-answering"), blamed, "{rule:?}");
        assert!(blamed || !matches!(told.state(), ServingState::Degraded(_)));
    }
}

#[test]
fn a_worker_whose_container_was_taken_away_is_doubted_while_ray_calls_it_alive() {
    let mut told = whole();
    let doubted = |told: &Told| {
        let members = members::members(&told.0).unwrap();
        members.iter().map(Member::doubted).collect::<Vec<_>>()
    };
    assert_eq!(doubted(&told), [false, false]);
    told.node(300, WORKER, Facts::Containers(ContainerFacts::default()));
    assert_eq!(doubted(&told), [false, true]);
}

#[test]
fn what_was_ready_when_it_was_seen_last_was_not_at_an_earlier_stage() {
    let mut told = whole();
    let stage = |told: &Told| loading::part(&told.0, HEAD).map(|part| part.stage);
    assert_eq!(stage(&told), Some(Stage::Ready));
    let silent = EventKind::Link(LinkState::Silent { since: Stamp(400) });
    told.at(3500, Source::Node(HEAD), silent);
    told.tick(20_000);
    assert_eq!(*told.state(), ServingState::Unknown);
    assert_eq!(stage(&told), Some(Stage::Ready));
}
