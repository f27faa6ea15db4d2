//! A ready server that has lost a part of its cluster.

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
