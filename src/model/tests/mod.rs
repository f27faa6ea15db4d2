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
use crate::domain::gpu::{GpuFacts, GpuProcess};
use crate::domain::intent::{Action, Intent, Mode, Pane, Scroll};
use crate::domain::link::{LinkError, LinkErrorKind, LinkState};
use crate::domain::load::{EarlierLoad, LineFact, Stage};
use crate::domain::memory::MemoryFacts;
use crate::domain::ray::{RayFacts, RayNode, RayVia};
use crate::domain::reading::NOT_ASKED;
use crate::domain::secret::SecretFrom;
use crate::domain::serving::{
    Health, MetricsSample, ServeFacts, ServeProcess, ServerFacts, ServerProbe, TOKEN_ASKED, TokenProof,
};
use crate::domain::units::Bytes;
use crate::domain::{NodeId, Now, RunId, Source, Stamp, Wall};

use crate::model::facts::memory_alarm;
use crate::model::load::trend::Signal;
use crate::model::schedule::{NODE_EVERY, every};
use crate::model::state::{COMMANDS, Quit, ServingState, Watch};
use crate::model::{Options, State, update};

mod failed;
mod loss;
mod lost;
mod proof;
mod readings;
mod screen;

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
