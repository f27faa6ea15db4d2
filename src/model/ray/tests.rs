//! From events to who is asked next and what is said of each node.

use std::sync::Arc;

use crate::config::{self, EXAMPLE};
use crate::domain::container::{Container, ContainerFacts, ContainerState};
use crate::domain::effect::Effect;
use crate::domain::event::{Event, EventKind, Facts, ProbeId};
use crate::domain::gpu::{Gpu, GpuFacts, GpuProcess};
use crate::domain::image::{ImageFacts, InsideFacts};
use crate::domain::link::{LinkError, LinkErrorKind, LinkState};
use crate::domain::memory::MemoryFacts;
use crate::domain::ray::{PlacementGroup, RayFacts, RayNode, RayStatus, RayVia};
use crate::domain::serving::{ServeFacts, ServeProcess, ServerFacts, ServerProbe};
use crate::domain::{NodeId, Now, Source, Stamp, Wall, When};
use crate::model::{Options, State, update};

use super::members::{self, SilentBy, Standing};
use super::ranks;

const HEAD: NodeId = NodeId(0);
const WORKER: NodeId = NodeId(1);
const OWN: [&str; 2] = ["192.168.200.12", "192.168.200.13"];

/// A state that is told things.
struct Told(State);

impl Told {
    /// Both nodes are linked, and the head's container runs.
    fn new() -> Self {
        let config = config::parse(EXAMPLE, "config.example.toml").unwrap();
        let mut told = Self(State::new(Arc::new(config), Options::default(), Now::default()));
        for node in [HEAD, WORKER] {
            told.node(0, node, EventKind::Link(LinkState::Up));
        }
        told.container(0, "c1");
        told
    }

    fn at(&mut self, ms: u64, source: Source, kind: EventKind) -> Vec<Effect> {
        let at = Now {
            stamp: Stamp(ms),
            wall: Wall(1_000_000 + ms),
        };
        update(&mut self.0, Event { source, at, kind })
    }

    fn node(&mut self, ms: u64, node: NodeId, kind: EventKind) {
        self.at(ms, Source::Node(node), kind);
    }

    fn facts(&mut self, ms: u64, node: NodeId, facts: Facts) {
        self.node(ms, node, EventKind::Facts(facts));
    }

    fn container(&mut self, ms: u64, id: &str) {
        self.container_is(ms, HEAD, id, ContainerState::Running);
    }

    fn container_is(&mut self, ms: u64, node: NodeId, id: &str, state: ContainerState) {
        let container = Container {
            id: id.to_owned(),
            name: self.0.config.container.name.clone(),
            image: "image".to_owned(),
            state,
            started_at: None,
            up_seconds: Some(60),
            restarts: 0,
            ours: None,
            labels: std::collections::BTreeMap::new(),
            pid: Some(100),
        };
        let containers = vec![container];
        self.facts(ms, node, Facts::Containers(ContainerFacts { containers }));
    }

    fn dashboard(&mut self, ms: u64, said: Result<RayFacts, &str>) {
        let said = said.map_err(str::to_owned);
        self.at(ms, Source::Server, EventKind::Server(ServerFacts::Ray(said)));
    }

    fn failed(&mut self, ms: u64, probe: ProbeId, why: &str) {
        let why = why.to_owned();
        self.node(ms, HEAD, EventKind::ProbeFailed { probe, why });
    }

    /// What of Ray is asked at a tick: the dashboard, the container, `ray status`.
    fn asked(&mut self, ms: u64) -> [bool; 3] {
        let effects = self.at(ms, Source::Clock, EventKind::Tick);
        [
            Effect::ProbeServer(ServerProbe::Ray),
            Effect::Probe(HEAD, ProbeId::Ray),
            Effect::Probe(HEAD, ProbeId::RayStatus),
        ]
        .map(|e| effects.contains(&e))
    }

    fn member(&self, id: NodeId) -> members::Member<'_> {
        members::members(&self.0).unwrap().remove(id.index())
    }
}

fn alive(id: &str, address: &str) -> RayNode {
    RayNode {
        id: id.to_owned(),
        address: address.to_owned(),
        alive: true,
        gpus: 1.0,
        ..RayNode::default()
    }
}

fn list(nodes: Vec<RayNode>) -> RayFacts {
    RayFacts {
        nodes,
        ..RayFacts::default()
    }
}

fn whole() -> RayFacts {
    list(vec![alive("a", OWN[0]), alive("b", OWN[1])])
}

#[test]
fn sources_are_asked_in_their_order_and_the_better_one_again() {
    let mut told = Told::new();
    assert_eq!(told.asked(0), [true, false, false]);
    told.dashboard(10, Err("connection refused"));
    assert_eq!(told.asked(250), [false, true, false]);
    told.failed(1000, ProbeId::Ray, "python3 is not in the container");
    assert_eq!(told.asked(1250), [false, false, true]);
    let status = RayStatus {
        nodes: 2,
        ..RayStatus::default()
    };
    told.facts(7000, HEAD, Facts::RayStatus(status));
    assert_eq!(told.0.ray.status.value().map(|s| s.nodes), Some(2));
    // The numbers say nothing of who is a member.
    assert_eq!(told.0.observed.ray.reason(), Some("python3 is not in the container"));
    assert_eq!(told.asked(7250), [true, true, false]);
    told.dashboard(7300, Ok(whole()));
    assert_eq!(told.0.observed.ray.value().map(|r| r.via), Some(RayVia::Dashboard));
    for at in [11_000, 71_000] {
        assert_eq!(told.asked(at), [true, false, false], "{at}");
        told.dashboard(at, Ok(whole()));
    }
}

#[test]
fn a_ray_that_does_not_listen_is_not_asked_for_its_status() {
    let mut told = Told::new();
    told.asked(0);
    told.dashboard(10, Err("connection refused"));
    told.asked(250);
    let why = "Ray does not listen in the head's container".to_owned();
    let what = crate::domain::event::Subject::Ray;
    told.facts(1000, HEAD, Facts::Absent { what, why });
    assert_eq!(told.asked(70_000), [true, true, false]);
    let failure = told.0.ray.source(RayVia::Container).failure.as_ref().unwrap();
    assert!(failure.no_ray && failure.since == Stamp(1000));
}

#[test]
fn a_new_head_is_asked_at_once_whatever_the_old_one_failed_at() {
    let mut told = Told::new();
    for at in [0, 4000, 11_000] {
        told.asked(at);
        told.dashboard(at, Err("connection refused"));
    }
    assert!(!told.asked(15_000)[0]);
    told.container(15_100, "c2");
    assert!(told.asked(15_250)[0]);
}

#[test]
fn a_node_at_another_address_is_named_with_both() {
    let mut told = Told::new();
    told.dashboard(0, Ok(list(vec![alive("a", OWN[0]), alive("b", "192.168.201.13")])));
    assert!(matches!(told.member(HEAD).standing, Standing::Alive(_)));
    let worker = told.member(WORKER);
    assert!(matches!(worker.standing, Standing::Elsewhere(n) if n.address == "192.168.201.13"));
    assert!(!worker.well());
    assert!(members::strangers(&told.0).alive.is_empty(), "it is no stranger");
}

#[test]
fn a_node_that_is_registered_twice_is_one_node_whose_last_life_counts() {
    let mut told = Told::new();
    let life = |id: &str, started| RayNode {
        started_ms: Some(started),
        ..alive(id, OWN[1])
    };
    told.dashboard(
        0,
        Ok(list(vec![
            alive("a", OWN[0]),
            life("0123456789abcdef", 2000),
            life("b", 1000),
        ])),
    );
    let ray = told.0.observed.ray.value().unwrap();
    assert_eq!((ray.alive().count(), ray.alive_addresses()), (3, 2));
    let worker = told.member(WORKER);
    assert!(matches!(worker.standing, Standing::Alive(n) if n.id == "0123456789abcdef"));
    assert!(!worker.well());
    let says = "registered 2 times: Ray calls them all alive, 2 GPUs together; 01234567 came last and is the one that counts here";
    assert_eq!(worker.wrong, [says]);
    assert!(members::strangers(&told.0).alive.is_empty());
    assert!(told.member(HEAD).well());
    // Ray has noticed that the earlier one is gone.
    let mut over = life("b", 1000);
    over.alive = false;
    told.dashboard(
        9000,
        Ok(list(vec![alive("a", OWN[0]), life("0123456789abcdef", 2000), over])),
    );
    let worker = told.member(WORKER);
    assert!(worker.well() && worker.earlier == 1);
}

#[test]
fn earlier_lives_are_counted_and_the_latest_death_is_told() {
    let mut told = Told::new();
    let dead = |id: &str, ended, why: &str| RayNode {
        alive: false,
        ended_ms: Some(ended),
        message: Some(why.to_owned()),
        ..alive(id, OWN[1])
    };
    let lives = vec![
        alive("a", OWN[0]),
        dead("b", 900_000, "first"),
        dead("c", 990_000, "second"),
    ];
    told.dashboard(1000, Ok(list(lives.clone())));
    let worker = told.member(WORKER);
    let Standing::Dead(latest) = worker.standing else {
        panic!("{worker:?}");
    };
    assert_eq!((latest.message.as_deref(), worker.earlier), (Some("second"), 1));
    let since = members::since(&told.0, latest, told.0.now).unwrap();
    assert_eq!((since.ago.as_secs(), since.by_ray), (11, true));
    let back = [lives, vec![alive("d", OWN[1])]].concat();
    told.dashboard(4000, Ok(list(back)));
    let worker = told.member(WORKER);
    assert_eq!((worker.earlier, worker.well()), (2, true));
    // Ray does not tell when it came: the console saw it first three seconds later.
    told.dashboard(7000, Ok(told.0.observed.ray.value().unwrap().clone()));
    let now = told.0.now;
    let Standing::Alive(node) = told.member(WORKER).standing else {
        panic!("it lives");
    };
    let since = members::since(&told.0, node, now).unwrap();
    assert_eq!((since.ago.as_secs(), since.by_ray), (3, false));
}

#[test]
fn a_node_that_is_silent_is_no_member_whatever_ray_says() {
    let mut told = Told::new();
    told.dashboard(9000, Ok(whole()));
    assert!(told.member(WORKER).well());
    let since = Stamp(6000);
    told.node(10_100, WORKER, EventKind::Link(LinkState::Silent { since }));
    told.dashboard(12_000, Ok(whole()));
    let worker = told.member(WORKER);
    assert!(
        matches!(worker.standing, Standing::Alive(_)),
        "Ray's word stands beside it"
    );
    let silent = worker.silent.unwrap();
    assert_eq!((silent.since, silent.by), (When::at(since), SilentBy::Ssh));
    assert!(!worker.well());
    // The connection lives, and the readings stand still.
    told.node(13_000, WORKER, EventKind::Link(LinkState::Up));
    told.facts(13_000, WORKER, Facts::Memory(MemoryFacts::default()));
    assert_eq!(told.member(WORKER).silent, None);
    told.asked(19_250);
    let silent = told.member(WORKER).silent.unwrap();
    assert_eq!((silent.since, silent.by), (When::at(Stamp(13_000)), SilentBy::Readings));
}

#[test]
fn a_node_whose_container_has_ended_is_no_member_whatever_ray_says() {
    let mut told = Told::new();
    told.dashboard(9000, Ok(whole()));
    told.container_is(9000, WORKER, "a", ContainerState::Running);
    assert!(told.member(WORKER).well());
    let ended = ContainerState::Exited { code: 137, oom: false };
    told.container_is(9500, WORKER, "a", ended);
    assert_eq!(
        told.member(WORKER).wrong,
        ["its container has ended with exit code 137: Ray has not noticed yet"]
    );
    assert!(!told.member(WORKER).well());
    told.container_is(9900, WORKER, "b", ContainerState::Running);
    assert!(told.member(WORKER).well());
}

#[test]
fn a_node_that_was_never_reached_does_not_answer_since_the_first_try_at_least() {
    let mut told = Told::new();
    let error = LinkError {
        kind: LinkErrorKind::Unreachable,
        text: "no route to host".into(),
        fix: None,
    };
    let down = |ms| LinkState::Down {
        error: error.clone(),
        since: Stamp(ms),
        retry_at: None,
    };
    told.0.observed.nodes[WORKER.index()].link = LinkState::Idle;
    let said = |told: &mut Told, ms, link| {
        told.node(ms, WORKER, EventKind::Link(link));
        members::silent(&told.0, WORKER).map(|s| s.text(Stamp(ms)))
    };
    assert_eq!(said(&mut told, 2000, LinkState::Connecting), None);
    assert_eq!(said(&mut told, 2010, down(2010)).as_deref(), Some("not answering"));
    assert_eq!(
        said(&mut told, 5000, LinkState::Connecting).as_deref(),
        Some("not answering for over 3 s")
    );
    assert_eq!(
        said(&mut told, 15_000, down(15_000)).as_deref(),
        Some("not answering for over 13 s")
    );
    assert_eq!(said(&mut told, 16_000, LinkState::Up), None);
    assert_eq!(
        said(&mut told, 20_000, down(19_000)).as_deref(),
        Some("not answering for 1 s")
    );
}

#[test]
fn what_ray_counts_is_held_against_the_config_and_the_devices() {
    let mut told = Told::new();
    let mut nodes = whole().nodes;
    nodes[0].devices = vec![("neuron_cores".to_owned(), 2.0)];
    nodes[1].gpus = 0.0;
    nodes[1].devices = vec![("TPU".to_owned(), 1.0)];
    told.dashboard(0, Ok(list(nodes)));
    assert_eq!(told.member(HEAD).wrong, ["Ray counts 2 neuron_cores beside the GPUs"]);
    assert_eq!(
        told.member(WORKER).wrong,
        ["Ray counts 0 GPUs and 1 TPU, expected 1 GPU"]
    );
    told.dashboard(1000, Ok(whole()));
    let gpus = |n| GpuFacts {
        gpus: vec![Gpu::default(); n],
        ..GpuFacts::default()
    };
    told.facts(1000, HEAD, Facts::Gpus(gpus(0)));
    told.facts(1000, WORKER, Facts::Gpus(gpus(1)));
    assert_eq!(told.member(HEAD).wrong, ["Ray counts 1 GPU, the driver lists 0"]);
    assert!(told.member(WORKER).wrong.is_empty());
}

#[test]
fn a_difference_of_versions_is_told() {
    let mut told = Told::new();
    let mut ray = whole();
    ray.version = Some("2.43.0".to_owned());
    ray.python = Some("3.11".to_owned());
    told.dashboard(0, Ok(ray));
    assert!(members::differences(&told.0).is_empty());
    let inside = |ray: &str, python: &str| {
        Facts::Inside(InsideFacts {
            ray: Some(ray.to_owned()),
            python: Some(python.to_owned()),
        })
    };
    told.facts(1000, WORKER, inside("2.43.0", "3.11.10"));
    assert!(members::differences(&told.0).is_empty(), "3.11 may be 3.11.10");
    told.facts(2000, WORKER, inside("2.44.1", "3.10.12"));
    assert_eq!(
        members::differences(&told.0),
        [
            "Ray is 2.43.0 on spark-1 and 2.44.1 on spark-2",
            "Python is 3.11 on spark-1 and 3.10.12 on spark-2"
        ]
    );
}

#[test]
fn images_that_differ_are_asked_for_their_versions_before_a_start() {
    let mut told = Told::new();
    let image = |id: &str, layer: &str| {
        Facts::Image(ImageFacts::Present {
            id: id.to_owned(),
            layers: vec![layer.to_owned()],
        })
    };
    let asked = |told: &mut Told, ms| {
        let effects = told.at(ms, Source::Clock, EventKind::Tick);
        [HEAD, WORKER].map(|n| effects.contains(&Effect::Probe(n, ProbeId::Versions)))
    };
    told.facts(0, HEAD, image("i1", "same"));
    told.facts(0, WORKER, image("i2", "same"));
    assert_eq!(asked(&mut told, 250), [false, false]);
    told.facts(1000, WORKER, image("i3", "other"));
    assert_eq!(asked(&mut told, 1250), [true, true]);
    assert_eq!(asked(&mut told, 1500), [false, false]);
}

#[test]
fn a_server_without_ray_has_ranks_and_no_membership() {
    let mut told = Told::new();
    assert_eq!(ranks::ranks(&told.0), None);
    let process = ServeProcess {
        pid: 7,
        mark: None,
        command: "vllm serve m --nnodes 2 --node-rank 0 --master-addr 192.168.200.12".to_owned(),
        up_seconds: Some(60),
    };
    let processes = vec![process];
    told.facts(1000, HEAD, Facts::Serve(ServeFacts { processes }));
    let held = GpuProcess {
        pid: 3141,
        name: "VLLM::Worker_TP0".to_owned(),
        memory: None,
        container: Some("c1".to_owned()),
        draws: false,
    };
    let gpus = GpuFacts {
        gpus: vec![Gpu::default()],
        processes: vec![held],
        ..GpuFacts::default()
    };
    told.facts(1000, HEAD, Facts::Gpus(gpus));
    let found = ranks::ranks(&told.0).unwrap();
    assert_eq!(found.why, "the server runs with --nnodes 2");
    let seen: Vec<_> = found
        .ranks
        .iter()
        .map(|r| (r.node_rank, r.runs(), r.processes))
        .collect();
    assert_eq!(seen, [(0, true, Some(1)), (1, false, None)]);
    assert_eq!(found.ranks[0].up_seconds, Some(60));
}

#[test]
fn a_group_that_waits_tells_what_for_since_when_and_where_nobody_is() {
    let mut told = Told::new();
    let bundle = |words: &[(&str, f64)]| words.iter().map(|(k, n)| ((*k).to_owned(), *n)).collect();
    let group = |id: &str, asked_ms| PlacementGroup {
        id: id.to_owned(),
        state: "PENDING".to_owned(),
        bundles: vec![
            bundle(&[("GPU", 1.0), ("node:192.168.50.192", 0.001)]),
            bundle(&[("GPU", 1.0)]),
        ],
        asked_ms,
        infeasible: true,
    };
    let mut ray = whole();
    ray.pending = vec![group("told", Some(1_000_000)), group("seen", None)];
    told.dashboard(10_000, Ok(ray.clone()));
    told.dashboard(310_000, Ok(ray));
    let now = told.0.now;
    let waits = members::waits(&told.0, now);
    let since: Vec<_> = waits
        .iter()
        .map(|w| w.since.map(|s| (s.ago.as_secs(), s.by_ray)))
        .collect();
    assert_eq!(since, [Some((310, true)), Some((300, false))]);
    assert_eq!(waits[0].nowhere, ["192.168.50.192"]);
    assert_eq!(waits[0].group.wants(), "1 x GPU 1 on 192.168.50.192, 1 x GPU 1");
}
