//! What a ready server has lost stays lost until it is seen back, and a worker that was started anew is not back.

use crate::domain::clock::NodeClock;

use super::*;

/// A moment long after the console's zero, so that what was before can be told.
const T: u64 = 100_000_000;

/// The fabric addresses of the example's nodes.
const ADDRESSES: [&str; 2] = ["192.168.200.12", "192.168.200.13"];

fn secs(n: u64) -> u64 {
    T + n * 1000
}

/// The worker's container, which runs since so many seconds.
fn container(id: &str, up: u64, state: ContainerState) -> Facts {
    let mut all = running("vllm-qwen35");
    all.containers[0].id = id.into();
    all.containers[0].up_seconds = (state == ContainerState::Running).then_some(up);
    all.containers[0].state = state;
    Facts::Containers(all)
}

fn live(id: &str, address: &str, started_ms: u64) -> RayNode {
    RayNode {
        id: id.into(),
        address: address.into(),
        alive: true,
        gpus: 1.0,
        started_ms: Some(started_ms),
        ..RayNode::default()
    }
}

fn dead(id: &str) -> RayNode {
    RayNode {
        alive: false,
        ..live(id, ADDRESSES[1], 0)
    }
}

fn list(worker: Vec<RayNode>) -> ServerFacts {
    let mut nodes = vec![live("head", ADDRESSES[0], 0)];
    nodes.extend(worker);
    ServerFacts::Ray(Ok(RayFacts {
        nodes,
        ..RayFacts::default()
    }))
}

/// The server's process, which is there for so long.
fn process(up: u64) -> Facts {
    let process = ServeProcess {
        pid: 7,
        mark: None,
        command: "vllm serve".into(),
        up_seconds: Some(up),
    };
    Facts::Serve(ServeFacts {
        processes: vec![process],
    })
}

impl Told {
    /// Everything but what is known of the worker; the server's process and the head's container are there for an hour.
    fn hour() -> Self {
        let mut told = Self::new(Options::default());
        for node in [HEAD, WORKER] {
            told.at(T, Source::Node(node), EventKind::Link(LinkState::Up));
            let clock = NodeClock {
                shows: Wall(T),
                within: Duration::from_millis(20),
            };
            told.at(T, Source::Node(node), EventKind::Clock(Ok(clock)));
        }
        told.node(T, HEAD, Facts::Containers(running("vllm-qwen35")));
        told.node(T, HEAD, process(3600));
        told
    }

    /// A server that the console has seen to come up, with its worker.
    fn came_up() -> Self {
        let mut told = Self::hour();
        told.node(T, WORKER, container("w1", 3700, ContainerState::Running));
        told.server(T, ServerFacts::Health(Health::Refused));
        told.server(T, list(vec![live("a", ADDRESSES[1], T - 3_650_000)]));
        assert_eq!(*told.state(), ServingState::Loading);
        told.healthy(secs(1), 9.0);
        assert_eq!(*told.state(), ServingState::Ready);
        told
    }

    /// A server that a console finds ready, with this of its worker.
    fn found(worker: Facts, ray: Option<ServerFacts>) -> Self {
        let mut told = Self::hour();
        told.node(T, WORKER, worker);
        if let Some(ray) = ray {
            told.server(T, ray);
        }
        told.healthy(secs(1), 9.0);
        told
    }

    fn health(&mut self, second: u64) -> ServingState {
        self.server(secs(second), ServerFacts::Health(Health::Ok));
        self.state().clone()
    }
}

fn degraded(why: &str) -> ServingState {
    ServingState::Degraded(why.to_owned())
}

const RAY_LOST: &str = "Ray has lost spark-2 (192.168.200.13)";
const ANEW: &str = "vllm-qwen35 on spark-2 was started after the server was ready: its rank was in an earlier one";
const JOINED_ANEW: &str =
    "spark-2 (192.168.200.13) has joined Ray after the server was ready: its rank was in an earlier life";

#[test]
fn a_node_that_ray_has_lost_stays_lost_while_ray_can_not_be_read() {
    let mut told = Told::came_up();
    told.server(secs(2), list(vec![dead("a")]));
    assert_eq!(*told.state(), degraded(RAY_LOST));
    let since = told.0.server.since;
    for second in (4..60).step_by(2) {
        told.server(secs(second), ServerFacts::Ray(Err("500: Internal Server Error".into())));
        assert_eq!(told.health(second), degraded(RAY_LOST), "{second}");
    }
    assert_eq!(told.0.server.since, since);
    told.server(secs(60), list(vec![live("a", ADDRESSES[1], T - 3_650_000)]));
    assert_eq!(*told.state(), ServingState::Ready, "it was seen back");
    told.server(secs(61), ServerFacts::Ray(Err("500: Internal Server Error".into())));
    for second in (62..90).step_by(2) {
        assert_eq!(told.health(second), ServingState::Ready, "nothing was lost before");
    }
}

#[test]
fn a_container_that_ended_stays_so_while_docker_does_not_answer() {
    let mut told = Told::came_up();
    let ended = ContainerState::Exited { code: 137, oom: false };
    told.node(secs(2), WORKER, container("w1", 0, ended));
    let why = degraded("vllm-qwen35 on spark-2 does not run: exit code 137");
    assert_eq!(*told.state(), why);
    let since = told.0.server.since;
    for second in (4..60).step_by(2) {
        let (what, why_not) = (Subject::Containers, "the Docker daemon does not answer".to_owned());
        let absent = Facts::Absent { what, why: why_not };
        told.node(secs(second), WORKER, absent);
        assert_eq!(told.health(second), why, "{second}");
    }
    assert_eq!(told.0.server.since, since);
}

#[test]
fn a_server_with_another_model_has_it_while_its_models_are_not_known() {
    let mut told = Told::came_up();
    told.server(secs(2), ServerFacts::Models(Ok(vec!["other".into()])));
    let wrong = told.state().clone();
    assert_eq!(wrong.word(), "degraded");
    told.server(
        secs(3),
        ServerFacts::Models(Err("401: the server wants an API key".into())),
    );
    assert_eq!(told.health(4), wrong);
    told.healthy(secs(5), 9.0);
    assert_eq!(*told.state(), ServingState::Ready);
}

#[test]
fn a_node_that_answers_again_is_whole_once_its_containers_are_read() {
    let mut told = Told::came_up();
    told.at(secs(2), Source::Node(WORKER), EventKind::Link(down()));
    assert_eq!(*told.state(), degraded("spark-2 can't be reached"));
    let since = told.0.server.since;
    for second in (4..20).step_by(4) {
        assert_eq!(told.health(second), degraded("spark-2 can't be reached"));
    }
    told.at(secs(20), Source::Node(WORKER), EventKind::Link(LinkState::Up));
    let why = degraded("spark-2 could not be reached, and its containers are not known since");
    assert_eq!((told.health(20), told.0.server.since), (why, since));
    told.node(secs(21), WORKER, container("w1", 3721, ContainerState::Running));
    assert_eq!(*told.state(), ServingState::Ready);
}

#[test]
fn a_worker_that_was_started_anew_is_not_the_one_that_served() {
    let mut told = Told::came_up();
    let mut again = running("vllm-qwen35");
    again.containers[0].id = "w1".into();
    again.containers[0].started_at = Some("2026-11-30T20:00:00Z".into());
    told.health(29);
    told.node(secs(30), WORKER, Facts::Containers(again));
    // Ray has the new one already, or not the old one's end yet.
    told.server(secs(31), list(vec![dead("a"), live("b", ADDRESSES[1], secs(29))]));
    assert_eq!(told.health(32), degraded(ANEW));
    assert!(told.0.needs_new_start());
    told.node(secs(32), WORKER, container("w2", 0, ContainerState::Paused));
    assert!(!told.0.needs_new_start(), "its container first");
    told.node(secs(33), WORKER, container("w2", 3, ContainerState::Running));
    assert_eq!(told.health(34), degraded(ANEW));
    assert_eq!(told.0.server.since, Stamp(secs(30)));
    assert!(told.0.needs_new_start());
    // Another start of the server has its ranks in what is there now.
    told.server(secs(40), ServerFacts::Health(Health::Refused));
    told.node(secs(41), HEAD, process(1));
    told.server(secs(41), list(vec![dead("a"), live("b", ADDRESSES[1], secs(29))]));
    told.node(secs(41), WORKER, container("w2", 11, ContainerState::Running));
    told.healthy(secs(60), 1.0);
    assert_eq!(*told.state(), ServingState::Ready);
}

#[test]
fn a_later_life_in_ray_is_not_the_one_that_served() {
    let mut told = Told::came_up();
    told.health(29);
    // Both are registered, and Ray has not missed the earlier one: it may be there.
    let lives = |first: RayNode| list(vec![first, live("b", ADDRESSES[1], secs(29))]);
    told.server(secs(30), lives(live("a", ADDRESSES[1], T - 3_650_000)));
    assert_eq!(*told.state(), ServingState::Ready);
    told.server(secs(33), lives(dead("a")));
    assert_eq!(*told.state(), degraded(JOINED_ANEW));
}

#[test]
fn a_console_that_finds_a_ready_server_tells_a_worker_that_came_after_it() {
    let young = |up| container("w2", up, ContainerState::Running);
    let joined = |started| list(vec![dead("a"), live("b", ADDRESSES[1], started)]);
    // A server of an hour, and a worker of 25 seconds.
    let told = Told::found(young(25), Some(joined(T - 24_000)));
    assert_eq!(*told.state(), degraded(ANEW));
    assert_eq!(*Told::found(young(25), None).state(), degraded(ANEW), "without Ray");
    let own = Facts::Containers(ContainerFacts::default());
    let told = Told::found(own, Some(joined(T - 24_000)));
    assert_eq!(
        *told.state(),
        degraded("vllm-qwen35 on spark-2 does not run: it is not there")
    );
    // The server may have waited for it.
    for up in [1801, 3599, 3700] {
        let told = Told::found(young(up), Some(joined(T - (up - 1) * 1000)));
        assert_eq!(*told.state(), ServingState::Ready, "{up}");
    }
    // Ray knows its worker for longer than the container is said to run: a clock was set, or there is a worker beside it.
    let told = Told::found(young(25), Some(list(vec![live("a", ADDRESSES[1], T - 3_650_000)])));
    assert_eq!(*told.state(), ServingState::Ready);
}

#[test]
fn a_log_that_says_since_when_the_server_listens_tells_it_sooner() {
    let mut told = Told::found(container("w2", 2700, ContainerState::Running), None);
    assert_eq!(*told.state(), ServingState::Ready);
    let listens = |ago: u64| {
        let by_node = Some(Wall(T - ago * 1000));
        EventKind::Line(LineFact::Stage(Stage::Listening), Written { by_node, backlog: true })
    };
    told.at(secs(2), Source::Node(HEAD), listens(3000));
    assert_eq!(*told.state(), degraded(ANEW));
}

#[test]
fn a_worker_by_a_clock_that_is_hours_wrong_is_as_old_as_its_node_says() {
    let mut told = Told::hour();
    let clock = NodeClock {
        shows: Wall(T + 7_200_000),
        within: Duration::from_millis(20),
    };
    told.at(T, Source::Node(WORKER), EventKind::Clock(Ok(clock)));
    told.node(T, WORKER, container("w1", 3700, ContainerState::Running));
    // Two hours ahead, it told Ray a moment that lies after the server's start by the head's clock.
    told.server(
        T,
        list(vec![dead("a"), live("b", ADDRESSES[1], T + 7_200_000 - 3_650_000)]),
    );
    told.healthy(secs(1), 9.0);
    assert_eq!(*told.state(), ServingState::Ready);
}

#[test]
fn a_worker_whose_container_does_not_run_is_a_loss_however_it_does_not() {
    for (state, how) in [
        (ContainerState::Restarting, "Docker restarts it"),
        (ContainerState::Paused, "it is paused"),
        (ContainerState::Created, "it was made and not started"),
        (ContainerState::Other("dead".into()), "Docker calls it dead"),
    ] {
        let mut told = Told::came_up();
        told.node(secs(2), WORKER, container("w1", 0, state.clone()));
        let why = degraded(&format!("vllm-qwen35 on spark-2 does not run: {how}"));
        assert_eq!(*told.state(), why);
        let found = Told::found(
            container("w1", 0, state),
            Some(list(vec![live("a", ADDRESSES[1], T - 3_650_000)])),
        );
        assert_eq!(*found.state(), why, "a console that comes later says the same");
        told.node(secs(4), WORKER, container("w1", 3704, ContainerState::Running));
        assert_eq!(*told.state(), ServingState::Ready, "the same life goes on");
    }
}

#[test]
fn a_member_without_a_container_is_lost_for_a_console_that_never_saw_one_unless_it_runs_outside_by_design() {
    let none = || Facts::Containers(ContainerFacts::default());
    let member = || list(vec![live("a", ADDRESSES[1], T - 3_650_000)]);
    let told = Told::found(none(), Some(member()));
    let why = "vllm-qwen35 on spark-2 does not run: it is not there";
    assert_eq!(*told.state(), degraded(why));
    let cause = told.0.first_cause().unwrap();
    assert_eq!(
        (cause.rule.as_deref(), cause.node),
        (Some("container-stopped"), Some(WORKER))
    );
    // Nobody says that it belonged to Ray.
    assert_eq!(*Told::found(none(), None).state(), ServingState::Ready);
    // A script decides where its workers run.
    let mut told = Told::hour();
    let script = EXAMPLE
        .replace("kind = \"vllm-ray\"", "kind = \"script\"")
        .replace("#: path", "path");
    told.0.config = Arc::new(config::parse(&script, "config.example.toml").unwrap());
    told.node(T, WORKER, none());
    told.server(T, member());
    told.healthy(secs(1), 9.0);
    assert_eq!(*told.state(), ServingState::Ready);
    // Something computes there that is in no container.
    let mut told = Told::hour();
    let own = GpuProcess {
        pid: 42,
        name: "ray::RayWorkerWrapper".into(),
        memory: None,
        container: None,
        draws: false,
    };
    let gpus = GpuFacts {
        processes: vec![own],
        ..GpuFacts::default()
    };
    told.node(T, WORKER, Facts::Gpus(gpus));
    told.node(T, WORKER, none());
    told.server(T, member());
    told.healthy(secs(1), 9.0);
    assert_eq!(*told.state(), ServingState::Ready);
}
