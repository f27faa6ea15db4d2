//! What a port said over a while, as it was seen of vLLM 0.32, and what the server was called meanwhile.

use std::sync::Arc;

use super::state::ServingState;
use super::update::update;
use super::{Options, State};
use crate::config::{self, EXAMPLE};
use crate::domain::container::{Container, ContainerFacts, ContainerState};
use crate::domain::event::{Event, EventKind, Facts};
use crate::domain::link::LinkState;
use crate::domain::serving::{Health, MetricsOf, MetricsSample, ServeFacts, ServeProcess, ServerFacts, TokenProof};
use crate::domain::{NodeId, Now, Reading, Source, Stamp, Wall};

const HEAD: NodeId = NodeId(0);

/// A console whose head runs the container and the server.
struct Heard(State);

impl Heard {
    fn new() -> Self {
        let config = config::parse(EXAMPLE, "config.example.toml").unwrap();
        let mut heard = Self(State::new(Arc::new(config), Options::default(), Now::default()));
        for node in heard.0.config.node_ids().collect::<Vec<_>>() {
            heard.event(0, Source::Node(node), EventKind::Link(LinkState::Up));
        }
        let container = Container {
            id: "c1".into(),
            name: heard.0.config.container.name.clone(),
            image: "image".into(),
            state: ContainerState::Running,
            started_at: None,
            up_seconds: Some(60),
            restarts: 0,
            ours: None,
            labels: Default::default(),
            pid: Some(4711),
        };
        let containers = vec![container];
        heard.facts(0, Facts::Containers(ContainerFacts { containers }));
        heard.processes(0, true);
        heard
    }

    fn event(&mut self, ms: u64, source: Source, kind: EventKind) {
        let (stamp, wall) = (Stamp(ms), Wall(ms));
        let _effects = update(
            &mut self.0,
            Event {
                source,
                at: Now { stamp, wall },
                kind,
            },
        );
    }

    fn facts(&mut self, ms: u64, facts: Facts) {
        self.event(ms, Source::Node(HEAD), EventKind::Facts(facts));
    }

    /// Whether a model server's process is there.
    fn processes(&mut self, ms: u64, there: bool) {
        let process = ServeProcess {
            pid: 7,
            mark: None,
            command: "vllm serve".into(),
            up_seconds: Some(1),
        };
        let processes = if there { vec![process] } else { Vec::new() };
        self.facts(ms, Facts::Serve(ServeFacts { processes }));
    }

    fn server(&mut self, ms: u64, facts: ServerFacts) -> &ServingState {
        self.event(ms, Source::Server, EventKind::Server(facts));
        &self.0.server.state
    }

    fn scrape(&mut self, ms: u64, tokens: f64) -> &ServingState {
        let sample = MetricsSample {
            of: Some(MetricsOf::Vllm),
            generation_tokens: Some(tokens),
            ..MetricsSample::default()
        };
        self.server(ms, ServerFacts::Metrics(Ok(Box::new(sample))))
    }
}

/// For the whole load the port refuses; then everything answers at once, and still only a token proves that it works.
#[test]
fn a_port_that_refuses_until_the_load_is_done_is_loading_then_answering_then_ready() {
    let mut heard = Heard::new();
    for ms in (20..149_000).step_by(2000) {
        assert_eq!(
            *heard.server(ms, ServerFacts::Health(Health::Refused)),
            ServingState::Loading
        );
        assert_eq!(heard.0.observed.server.metrics.value(), None);
        assert_eq!(heard.0.server.generation, Reading::absent("the server's port refuses"));
    }
    heard.server(149_730, ServerFacts::Health(Health::Ok));
    let name = heard.0.config.serve.name().to_owned();
    heard.server(149_740, ServerFacts::Models(Ok(vec![name.clone()])));
    assert_eq!(*heard.scrape(149_750, 0.0), ServingState::Answering);
    let proof = TokenProof {
        model: name,
        tokens: 1,
        took: std::time::Duration::from_millis(40),
    };
    assert_eq!(
        *heard.server(150_000, ServerFacts::Token(Ok(proof))),
        ServingState::Ready
    );
}

/// A worker of the engine is killed: 200, then 503 for a second, an answer without a byte, and a port that refuses.
#[test]
fn a_server_whose_worker_was_killed_is_not_ready_from_its_first_503() {
    let mut heard = Heard::new();
    heard.server(0, ServerFacts::Health(Health::Ok));
    let name = heard.0.config.serve.name().to_owned();
    heard.server(10, ServerFacts::Models(Ok(vec![name])));
    assert_eq!(*heard.scrape(20, 33.0), ServingState::Ready);
    assert_eq!(*heard.server(519, ServerFacts::Health(Health::Ok)), ServingState::Ready);

    let failed = ServingState::Failed("/health answers 503".into());
    for ms in [1057, 1635] {
        assert_eq!(*heard.server(ms, ServerFacts::Health(Health::Status(503))), failed);
    }
    // Closed without a byte: nothing new is known of it.
    let broken = Health::Unreachable("the connection broke: connection closed before message completed".into());
    assert_eq!(*heard.server(2204, ServerFacts::Health(broken)), ServingState::Unknown);

    heard.server(2767, ServerFacts::Health(Health::Refused));
    heard.processes(3000, false);
    let ended = &heard.0.server.state;
    assert!(!ended.answers(), "{ended:?}");
    assert_eq!(
        heard.0.observed.server.token.value(),
        None,
        "the proof died with its server"
    );
    assert_eq!(heard.0.server.generation, Reading::absent("the server's port refuses"));
}

/// /v1/* wants a key, /health and /metrics do not.
#[test]
fn a_server_that_wants_a_key_answers_and_says_what_is_missing() {
    let mut heard = Heard::new();
    heard.server(0, ServerFacts::Health(Health::Ok));
    let why = "401: the server wants an API key; name where it is in [secrets]";
    heard.server(10, ServerFacts::Models(Err(why.into())));
    assert_eq!(*heard.scrape(20, 0.0), ServingState::Answering);
    assert_eq!(heard.0.observed.server.models.reason(), Some(why));
    let said = heard.0.server_why().map(std::borrow::Cow::into_owned);
    assert_eq!(said, Some(format!("/v1/models: {why}")));
    // Somebody else has the key: what the server counts for them proves it too.
    assert_eq!(*heard.scrape(5000, 33.0), ServingState::Ready);
}

#[test]
fn metrics_that_fail_are_said_and_leave_a_ready_server_ready() {
    for why in [
        "500: Internal Server Error",
        "401: the server wants an API key; name where it is in [secrets]",
        "unexpected answer: metrics without those of a model server: they are off there, or it is not ready",
    ] {
        let mut heard = Heard::new();
        heard.server(0, ServerFacts::Health(Health::Ok));
        let name = heard.0.config.serve.name().to_owned();
        heard.server(10, ServerFacts::Models(Ok(vec![name.clone()])));
        let proof = TokenProof {
            model: name,
            tokens: 1,
            took: std::time::Duration::from_millis(40),
        };
        heard.server(20, ServerFacts::Token(Ok(proof)));
        let state = heard.server(30, ServerFacts::Metrics(Err(why.into()))).clone();
        assert_eq!(state, ServingState::Ready, "{why}");
        assert_eq!(heard.0.server.generation, Reading::absent(why));
        assert_eq!(heard.0.observed.server.metrics.reason(), Some(why));
    }
}
