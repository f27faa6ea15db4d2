//! The state, event by event.

use std::sync::Arc;
use std::time::Duration;

use crate::config::{self, EXAMPLE};
use crate::domain::cadence;
use crate::domain::clock::Written;
use crate::domain::command::{Command, Exit};
use crate::domain::container::{Container, ContainerFacts, ContainerState, Labels};
use crate::domain::effect::Effect;
use crate::domain::event::{CommandDone, CommandStart, Event, EventKind, Facts, ProbeId, Purpose, Subject};
use crate::domain::intent::{Action, Intent, Mode, Pane, Scroll};
use crate::domain::link::{LinkError, LinkErrorKind, LinkState};
use crate::domain::load::{LineFact, Stage};
use crate::domain::memory::MemoryFacts;
use crate::domain::ray::{RayFacts, RayNode, RayVia};
use crate::domain::reading::NOT_ASKED;
use crate::domain::secret::SecretFrom;
use crate::domain::serving::{
    Health, MetricsSample, ServeFacts, ServeProcess, ServerFacts, ServerProbe, TOKEN_ASKED, TokenProof,
};
use crate::domain::units::Bytes;
use crate::domain::{NodeId, Now, RunId, Source, Stamp, Wall};

use super::facts::memory_alarm;
use super::schedule::{NODE_EVERY, every};
use super::state::{COMMANDS, Quit, ServingState, Watch};
use super::{Options, State, update};

const HEAD: NodeId = NodeId(0);
const WORKER: NodeId = NodeId(1);

/// A state that is told things, one after the other.
struct Told(State);

impl Told {
    fn new(options: Options) -> Self {
        let config = config::parse(EXAMPLE, "config.example.toml").expect("the example parses");
        Self(State::new(Arc::new(config), options, Now::default()))
    }

    /// Both nodes linked, the head's container and the server's process running.
    fn serving(options: Options) -> Self {
        let mut told = Self::new(options);
        for node in [HEAD, WORKER] {
            told.at(0, Source::Node(node), EventKind::Link(LinkState::Up));
        }
        told.node(0, HEAD, Facts::Containers(running("vllm-qwen35")));
        let process = ServeProcess {
            pid: 7,
            mark: None,
            command: "vllm serve".into(),
            up_seconds: Some(1),
        };
        told.node(
            0,
            HEAD,
            Facts::Serve(ServeFacts {
                processes: vec![process],
            }),
        );
        told
    }

    fn at(&mut self, ms: u64, source: Source, kind: EventKind) -> Vec<Effect> {
        let at = Now {
            stamp: Stamp(ms),
            wall: Wall(ms),
        };
        update(&mut self.0, Event { source, at, kind })
    }

    fn node(&mut self, ms: u64, node: NodeId, facts: Facts) -> Vec<Effect> {
        self.at(ms, Source::Node(node), EventKind::Facts(facts))
    }

    fn server(&mut self, ms: u64, facts: ServerFacts) -> Vec<Effect> {
        self.at(ms, Source::Server, EventKind::Server(facts))
    }

    fn tick(&mut self, ms: u64) -> Vec<Effect> {
        self.at(ms, Source::Clock, EventKind::Tick)
    }

    fn wants(&mut self, intent: Intent) -> Vec<Effect> {
        let ms = self.0.now.stamp.0;
        self.at(ms, Source::Operator, EventKind::Intent(intent))
    }

    /// Healthy, with the model listed and this many tokens counted.
    fn healthy(&mut self, ms: u64, tokens: f64) {
        self.server(ms, ServerFacts::Health(Health::Ok));
        let name = self.0.config.serve.name().to_owned();
        self.server(ms, ServerFacts::Models(Ok(vec![name])));
        self.server(ms, ServerFacts::Metrics(Ok(counted(tokens).into())));
    }

    fn state(&self) -> &ServingState {
        &self.0.server.state
    }
}

fn running(name: &str) -> ContainerFacts {
    let container = Container {
        id: "c1".into(),
        name: name.into(),
        image: "image".into(),
        state: ContainerState::Running,
        started_at: None,
        up_seconds: Some(60),
        restarts: 0,
        ours: None,
        labels: std::collections::BTreeMap::new(),
        pid: Some(100),
    };
    ContainerFacts {
        containers: vec![container],
    }
}

fn counted(tokens: f64) -> MetricsSample {
    MetricsSample {
        generation_tokens: Some(tokens),
        prompt_tokens: Some(0.0),
        ..MetricsSample::default()
    }
}

fn token() -> ServerFacts {
    ServerFacts::Token(Ok(TokenProof {
        model: "m".into(),
        tokens: 1,
        took: Duration::from_millis(40),
    }))
}

fn down() -> LinkState {
    let error = LinkError {
        kind: LinkErrorKind::Lost,
        text: "lost".into(),
        fix: None,
    };
    LinkState::Down {
        error,
        since: Stamp(0),
        retry_at: None,
    }
}

fn asks(effects: &[Effect], probe: ServerProbe) -> usize {
    effects.iter().filter(|e| **e == Effect::ProbeServer(probe)).count()
}

#[test]
fn a_wish_to_connect_anew_is_carried_out_whatever_is_in_front() {
    let mut told = Told::new(Options::default());
    assert_eq!(told.wants(Intent::Reconnect), [Effect::Reconnect]);
    told.wants(Intent::Help);
    assert_eq!(told.wants(Intent::Reconnect), [Effect::Reconnect]);
}

#[test]
fn healthy_is_answering_until_a_token_came_back() {
    let mut told = Told::serving(Options::default());
    told.healthy(100, 0.0);
    assert_eq!(*told.state(), ServingState::Answering);
    told.server(200, token());
    assert_eq!(*told.state(), ServingState::Ready);
}

#[test]
fn tokens_that_the_server_has_counted_are_proof_and_cost_none() {
    let mut told = Told::serving(Options::default());
    told.healthy(100, 3.0);
    assert_eq!(*told.state(), ServingState::Ready);
    assert_eq!(asks(&told.tick(200), ServerProbe::Token), 0);
}

#[test]
fn one_token_is_asked_for_once_a_start_of_the_server() {
    let mut told = Told::serving(Options::default());
    told.healthy(100, 0.0);
    assert_eq!(asks(&told.tick(200), ServerProbe::Token), 1);
    assert_eq!(asks(&told.tick(5000), ServerProbe::Token), 0);
    told.server(6000, ServerFacts::Health(Health::Refused));
    told.healthy(7000, 0.0);
    assert_eq!(asks(&told.tick(7001), ServerProbe::Token), 1);
}

#[test]
fn no_probe_asks_for_no_token_and_says_answering() {
    let mut told = Told::serving(Options { no_probe: true });
    told.healthy(100, 0.0);
    assert_eq!(asks(&told.tick(200), ServerProbe::Token), 0);
    assert_eq!(*told.state(), ServingState::Answering);
}

#[test]
fn an_engine_that_says_healthy_and_dies_at_the_first_token_is_not_ready() {
    let mut told = Told::serving(Options::default());
    told.healthy(100, 0.0);
    told.server(200, ServerFacts::Token(Err("the engine died".into())));
    assert!(
        matches!(told.state(), ServingState::Failed(why) if why.contains("the engine died")),
        "{:?}",
        told.state()
    );
    told.healthy(300, 0.0);
    assert!(
        matches!(told.state(), ServingState::Failed(_)),
        "health does not outweigh it"
    );
}

#[test]
fn a_token_that_failed_is_asked_for_again_after_a_while_and_tokens_counted_meanwhile_are_proof() {
    let mut told = Told::serving(Options::default());
    told.healthy(100, 0.0);
    assert_eq!(asks(&told.tick(200), ServerProbe::Token), 1);
    assert_eq!(told.0.observed.server.token.reason(), Some(TOKEN_ASKED));
    told.server(300, ServerFacts::Token(Err("the tunnel broke".into())));
    told.healthy(50_000, 0.0);
    assert_eq!(asks(&told.tick(50_001), ServerProbe::Token), 0);
    told.healthy(60_300, 0.0);
    assert_eq!(asks(&told.tick(60_301), ServerProbe::Token), 1);
    assert_eq!(asks(&told.tick(70_000), ServerProbe::Token), 0);
    told.server(70_001, ServerFacts::Token(Err("the tunnel broke".into())));
    told.healthy(71_000, 5.0);
    assert_eq!(*told.state(), ServingState::Ready, "somebody else's tokens are as good");
}

#[test]
fn a_token_that_was_asked_for_when_the_head_was_lost_is_asked_for_again() {
    let mut told = Told::serving(Options::default());
    told.healthy(100, 0.0);
    assert_eq!(asks(&told.tick(200), ServerProbe::Token), 1);
    told.server(300, ServerFacts::Token(Err("the tunnel broke".into())));
    told.at(400, Source::Node(HEAD), EventKind::Link(down()));
    told.at(500, Source::Node(HEAD), EventKind::Link(LinkState::Up));
    told.healthy(600, 0.0);
    assert_eq!(*told.state(), ServingState::Answering);
    assert_eq!(asks(&told.tick(700), ServerProbe::Token), 1);
}

#[test]
fn a_server_that_was_started_anew_between_two_good_scrapes_must_prove_itself_again() {
    let mut told = Told::serving(Options::default());
    let sample = |started| {
        let scrape = MetricsSample {
            started: Some(started),
            ..counted(0.0)
        };
        ServerFacts::Metrics(Ok(scrape.into()))
    };
    told.healthy(100, 0.0);
    told.server(200, sample(1000.0));
    told.server(300, token());
    assert_eq!(*told.state(), ServingState::Ready);
    told.server(400, ServerFacts::Metrics(Err("no answer in time".into())));
    assert_eq!(*told.state(), ServingState::Ready);
    told.server(500, sample(2000.0));
    assert_eq!(*told.state(), ServingState::Answering);
    assert_eq!(asks(&told.tick(600), ServerProbe::Token), 1);
}

#[test]
fn a_server_of_another_model_is_not_ready_and_is_asked_for_no_token() {
    let mut told = Told::serving(Options::default());
    told.healthy(100, 3.0);
    told.server(200, ServerFacts::Models(Ok(vec!["qwen35".into()])));
    let wanted = told.0.config.serve.name().to_owned();
    assert_eq!(
        *told.state(),
        ServingState::Degraded(format!("/v1/models names qwen35, not {wanted}"))
    );
    told.server(300, ServerFacts::Metrics(Ok(counted(0.0).into())));
    assert_eq!(asks(&told.tick(400), ServerProbe::Token), 0);
}

#[test]
fn a_proof_dies_with_the_server_that_gave_it() {
    let mut told = Told::serving(Options::default());
    told.healthy(100, 0.0);
    told.server(200, token());
    told.server(300, ServerFacts::Health(Health::Refused));
    assert_eq!(*told.state(), ServingState::Loading, "its process still runs");
    told.healthy(400, 0.0);
    assert_eq!(*told.state(), ServingState::Answering);
}

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
    told.server(400, ServerFacts::Health(Health::Refused));
    assert_eq!(*told.state(), ServingState::Loading);
    told.server(500, ServerFacts::Health(Health::Ok));
    assert_eq!(notices(&told.server(600, metrics(5.0))), ["sparks: the model is ready"]);
}

#[test]
fn rates_come_from_two_scrapes_and_a_reset_gives_none() {
    let mut told = Told::serving(Options::default());
    told.healthy(1000, 100.0);
    assert_eq!(told.0.server.generation.value(), None);
    told.server(3000, ServerFacts::Metrics(Ok(counted(154.0).into())));
    assert_eq!(told.0.server.generation.value(), Some(&27.0));
    told.server(4000, ServerFacts::Metrics(Ok(counted(2.0).into())));
    assert_eq!(told.0.server.generation.value(), None);
    assert!(told.0.server.generation.reason().is_some());
}

/// A command on the head and its end, as events.
fn began(run: u64, purpose: Purpose) -> EventKind {
    EventKind::CommandStarted(CommandStart {
        run: RunId(run),
        node: HEAD,
        purpose,
        command: Command::script("probe.node", "x", Vec::new(), Duration::from_secs(1)),
    })
}

fn ended(run: u64, exit: Exit, took_ms: u64) -> EventKind {
    EventKind::CommandDone(CommandDone {
        run: RunId(run),
        exit,
        stdout: Vec::new(),
        stderr: Vec::new(),
        took_ms,
    })
}

#[test]
fn a_node_is_asked_on_a_cadence_only_while_no_stream_tells_of_it() {
    let asked = |effects: &[Effect]| effects.contains(&Effect::Probe(HEAD, ProbeId::Node));
    let mut told = Told::new(Options::default());
    assert!(!asked(&told.tick(0)), "there is no connection");
    told.at(10, Source::Node(HEAD), EventKind::Link(LinkState::Up));
    assert!(!asked(&told.tick(3000)), "the stream may still begin");
    assert!(asked(&told.tick(4010)));
    assert!(!asked(&told.tick(8000)));
    assert!(asked(&told.tick(9010)));
    told.at(10_000, Source::Node(HEAD), began(1, Purpose::Watch));
    assert!(!asked(&told.tick(60_000)));
    told.at(60_000, Source::Node(HEAD), ended(1, Exit::Code(1), 50_000));
    assert!(!asked(&told.tick(63_000)), "it is begun again");
    assert!(asked(&told.tick(64_000)));
}

#[test]
fn a_slow_probe_leaves_its_node_alone_for_longer() {
    let asked = |effects: &[Effect]| effects.contains(&Effect::Probe(HEAD, ProbeId::Node));
    let took = |told: &mut Told, at, run, took_ms| {
        told.at(at, Source::Node(HEAD), began(run, Purpose::Probe(ProbeId::Node)));
        told.at(at + took_ms, Source::Node(HEAD), ended(run, Exit::Code(0), took_ms));
    };
    let mut told = Told::new(Options::default());
    told.at(0, Source::Node(HEAD), EventKind::Link(LinkState::Up));
    assert!(asked(&told.tick(5000)));
    took(&mut told, 5000, 1, 2000);
    assert!(!asked(&told.tick(14_900)));
    assert!(asked(&told.tick(15_000)));
    took(&mut told, 15_000, 2, 10_000);
    assert!(!asked(&told.tick(34_900)));
    assert!(asked(&told.tick(35_000)), "but not for ever");
    took(&mut told, 35_000, 3, 100);
    assert!(
        asked(&told.tick(40_000)),
        "and one that is quick again is asked as before"
    );
}

#[test]
fn what_a_node_said_grows_old_at_the_pace_at_which_it_tells() {
    let mut told = Told::new(Options::default());
    let pace = |told: &Told, what| every(&told.0, HEAD, what);
    let usual = |what| cadence::every(what).unwrap();
    told.at(0, Source::Node(HEAD), EventKind::Link(LinkState::Up));
    told.at(0, Source::Node(HEAD), began(1, Purpose::Watch));
    assert_eq!(pace(&told, Subject::Memory), usual(Subject::Memory));
    let slow = EventKind::Pace {
        what: Subject::Containers,
        every: Duration::from_secs(40),
    };
    told.at(10, Source::Node(HEAD), slow);
    assert_eq!(pace(&told, Subject::Containers), Duration::from_secs(40));
    let absent = Facts::Absent {
        what: Subject::Containers,
        why: "docker does not answer".to_owned(),
    };
    told.node(11, HEAD, absent);
    assert_eq!(pace(&told, Subject::Containers), usual(Subject::Containers));
    told.node(12, HEAD, Facts::Containers(ContainerFacts::default()));
    told.node(13, HEAD, Facts::Memory(MemoryFacts::default()));
    assert_eq!(pace(&told, Subject::Containers), Duration::from_secs(40));
    told.tick(7000);
    assert_eq!(
        pace(&told, Subject::Containers),
        usual(Subject::Containers),
        "it says nothing more"
    );
    told.at(7020, Source::Node(HEAD), ended(1, Exit::Code(1), 7020));
    assert_eq!(pace(&told, Subject::Containers), usual(Subject::Containers));
    assert_eq!(
        pace(&told, Subject::Memory),
        NODE_EVERY,
        "as often as the node is asked"
    );
    for (run, exit, slow) in [(2, Exit::Code(0), true), (3, Exit::TimedOut, false)] {
        told.at(7030, Source::Node(HEAD), began(run, Purpose::Probe(ProbeId::Node)));
        told.at(17_030, Source::Node(HEAD), ended(run, exit, 10_000));
        assert_eq!(
            pace(&told, Subject::Memory) > NODE_EVERY,
            slow,
            "a slow answer is one, silence is none"
        );
    }
}

#[test]
fn a_reading_that_began_earlier_does_not_take_the_place_of_a_later_one() {
    let mut told = Told::new(Options::default());
    let memory = |gib: u64| {
        Facts::Memory(MemoryFacts {
            total: Bytes(gib << 30),
            ..MemoryFacts::default()
        })
    };
    told.node(500, HEAD, memory(2));
    told.node(400, HEAD, memory(1));
    assert_eq!(told.0.observed.nodes[0].memory.value().unwrap().total, Bytes(2 << 30));
    told.node(500, HEAD, memory(3));
    assert_eq!(told.0.observed.nodes[0].memory.value().unwrap().total, Bytes(3 << 30));
}

#[test]
fn what_a_node_cannot_read_is_told_since_when_until_it_can() {
    let mut told = Told::serving(Options::default());
    let absent = || Facts::Absent {
        what: Subject::Containers,
        why: "docker does not answer".to_owned(),
    };
    told.node(30_000, HEAD, absent());
    told.node(45_000, HEAD, absent());
    let unread = told.0.nodes[0].unread.get(&Subject::Containers).unwrap();
    assert_eq!(
        (unread.why.as_str(), unread.since),
        ("docker does not answer", Stamp(30_000))
    );
    assert!(
        told.0.observed.nodes[0].containers.value().is_some(),
        "what was known stays and grows old"
    );
    told.node(60_000, HEAD, Facts::Containers(ContainerFacts::default()));
    assert!(told.0.nodes[0].unread.is_empty());
}

#[test]
fn too_little_memory_is_an_alarm_and_a_floor_of_nothing_is_none() {
    let mut told = Told::new(Options::default());
    let left = |gib: u64| {
        Facts::Memory(MemoryFacts {
            total: Bytes(121 << 30),
            available: Bytes(gib << 30),
            ..MemoryFacts::default()
        })
    };
    assert_eq!(memory_alarm(&told.0, HEAD), None, "nothing is known");
    told.node(10, HEAD, left(4));
    assert_eq!(memory_alarm(&told.0, HEAD), None);
    told.node(20, HEAD, left(3));
    assert_eq!(
        memory_alarm(&told.0, HEAD).as_deref(),
        Some("3.0 GiB of memory available, below the floor of 4 GiB")
    );
    let mut config = (*told.0.config).clone();
    config.watch.memory_floor = Bytes(0);
    told.0.config = Arc::new(config);
    assert_eq!(memory_alarm(&told.0, HEAD), None);
}

#[test]
fn what_went_on_over_a_connection_ends_with_it() {
    let mut told = Told::new(Options::default());
    told.at(0, Source::Node(HEAD), EventKind::Link(LinkState::Up));
    told.at(5, Source::Node(HEAD), began(1, Purpose::Watch));
    let error = LinkError {
        kind: LinkErrorKind::Unreachable,
        text: "gone".to_owned(),
        fix: None,
    };
    let down = LinkState::Down {
        error,
        since: Stamp(1005),
        retry_at: None,
    };
    told.at(1005, Source::Node(HEAD), EventKind::Link(down));
    let (exit, took) = told.0.commands[0].ended.clone().unwrap();
    assert_eq!((exit.word().as_str(), took), ("unknown", 1000));
    assert_eq!(told.0.nodes[0].watch, Watch::None);
}

#[test]
fn membership_goes_with_the_heads_container() {
    let mut told = Told::serving(Options::default());
    told.server(100, ServerFacts::Ray(Ok(RayFacts::default())));
    assert!(told.0.observed.ray.value().is_some());
    told.node(200, HEAD, Facts::Containers(ContainerFacts::default()));
    assert_eq!(
        told.0.observed.ray.reason(),
        Some("no container vllm-qwen35 runs on the head")
    );
}

#[test]
fn a_failed_probe_keeps_what_was_known_and_explains_what_was_not() {
    let mut told = Told::serving(Options::default());
    let why = "no answer in time".to_owned();
    told.at(
        500,
        Source::Node(HEAD),
        EventKind::ProbeFailed {
            probe: ProbeId::Node,
            why: why.clone(),
        },
    );
    let seen = &told.0.observed.nodes[0];
    assert!(seen.containers.value().is_some());
    assert_eq!(seen.memory.reason(), Some(why.as_str()));
}

#[test]
fn a_probe_that_repeats_is_one_line_and_the_list_is_bounded() {
    let mut told = Told::new(Options::default());
    let start = |run, purpose| {
        let command = Command::script("probe.node", "x", Vec::new(), Duration::from_secs(1));
        EventKind::CommandStarted(CommandStart {
            run: RunId(run),
            node: HEAD,
            purpose,
            command,
        })
    };
    for run in 0..3 {
        told.at(run, Source::Node(HEAD), start(run, Purpose::Probe(ProbeId::Node)));
    }
    assert_eq!(told.0.commands.len(), 1);
    assert_eq!(told.0.commands[0].times, 3);
    let done = CommandDone {
        run: RunId(2),
        exit: Exit::Code(0),
        stdout: Vec::new(),
        stderr: Vec::new(),
        took_ms: 12,
    };
    told.at(5, Source::Node(HEAD), EventKind::CommandDone(done));
    assert_eq!(told.0.commands[0].ended, Some((Exit::Code(0), 12)));
    for run in 10..(20 + COMMANDS as u64) {
        told.at(run, Source::Node(HEAD), start(run, Purpose::Step));
    }
    assert_eq!(told.0.commands.len(), COMMANDS);
}

fn advanced(seq: u64, dropped: u64) -> EventKind {
    EventKind::LogAdvanced {
        seq,
        dropped,
        newest: Some(Written::LIVE),
        spoke: Some(Written::LIVE),
    }
}

#[test]
fn a_held_log_stays_and_its_end_follows_again() {
    let mut told = Told::new(Options::default());
    told.at(1, Source::Node(HEAD), advanced(100, 40));
    told.wants(Intent::Scroll(Scroll::Lines(-10)));
    assert_eq!(told.0.screen.held.get(&HEAD), Some(&90));
    told.at(2, Source::Node(HEAD), advanced(120, 60));
    assert_eq!(told.0.screen.held.get(&HEAD), Some(&90));
    told.wants(Intent::Scroll(Scroll::Top));
    assert_eq!(
        told.0.screen.held.get(&HEAD),
        Some(&60),
        "no further than what the ring still holds"
    );
    told.wants(Intent::Scroll(Scroll::End));
    assert_eq!(told.0.screen.held.get(&HEAD), None);
}

#[test]
fn panes_go_round_both_ways() {
    let mut told = Told::new(Options::default());
    told.wants(Intent::PreviousPane);
    assert_eq!(told.0.screen.focus, Pane::Serving);
    told.wants(Intent::NextPane);
    assert_eq!(told.0.screen.focus, Pane::Node(0));
    told.wants(Intent::PaneNumber(3));
    assert_eq!(told.0.screen.focus, Pane::Ray);
    told.wants(Intent::PaneNumber(9));
    assert_eq!(told.0.screen.focus, Pane::Ray);
}

#[test]
fn leaving_twice_leaves_now() {
    let mut told = Told::new(Options::default());
    assert_eq!(told.wants(Intent::Quit), [Effect::Quit { now: false }]);
    assert_eq!(told.wants(Intent::Quit), [Effect::Quit { now: true }]);
    assert_eq!(told.0.quit, Quit::Now);
}

#[test]
fn a_test_needs_a_server_that_answers() {
    let mut told = Told::serving(Options::default());
    told.server(100, ServerFacts::Health(Health::Refused));
    assert!(told.wants(Intent::Bench).is_empty());
    assert!(told.0.test_refusal().is_some_and(|why| why.contains("loading")));
    assert!(told.wants(Intent::Confirm).is_empty());
    assert!(told.0.bench.is_none());
    told.healthy(200, 1.0);
    assert_eq!(told.0.test_refusal(), None);
    assert!(matches!(told.wants(Intent::Confirm)[..], [Effect::StartBench(_)]));
}

#[test]
fn a_test_is_shown_before_it_starts_and_cancelled_at_once() {
    let mut told = Told::serving(Options::default());
    told.healthy(200, 1.0);
    assert!(told.wants(Intent::Bench).is_empty());
    assert_eq!((told.0.screen.mode, told.0.bench.is_none()), (Mode::Test, true));
    assert!(told.wants(Intent::Back).is_empty());
    assert!(told.wants(Intent::Confirm).is_empty(), "what was left is not started");
    told.wants(Intent::Bench);
    assert!(matches!(told.wants(Intent::Confirm)[..], [Effect::StartBench(_)]));
    assert_eq!((told.0.screen.mode, told.0.screen.focus), (Mode::Panes, Pane::Bench));
    assert_eq!(told.wants(Intent::Bench), [Effect::CancelBench]);
    assert_eq!(told.0.screen.mode, Mode::Panes);
}

#[test]
fn a_plan_that_wants_a_variable_which_is_not_set_is_refused_before_its_first_step() {
    let mut config = config::parse(EXAMPLE, "config.example.toml").unwrap();
    let from = SecretFrom::Variable("MY_HF".to_owned());
    config.hf_token = Some(from.clone());
    let mut state = State::new(Arc::new(config), Options::default(), Now::default());
    let refused = |state: &mut State, action| {
        let event = Event {
            source: Source::Operator,
            at: Now::default(),
            kind: EventKind::Intent(Intent::Plan(action)),
        };
        update(state, event);
        let plan = state.plan.as_ref().unwrap();
        plan.refusals.iter().filter(|r| r.text.contains("MY_HF")).count()
    };
    assert_eq!(refused(&mut state, Action::Head), 0);
    state.unset = vec![(from, "the variable MY_HF is not set here".to_owned())];
    assert_eq!(refused(&mut state, Action::Head), 1);
    assert_eq!(refused(&mut state, Action::StopAll), 0, "stopping wants no token");
}
