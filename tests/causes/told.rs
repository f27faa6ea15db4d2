//! A console that is told things, one after the other. Times are since 2026-11-29 17:00 UTC, when it started.

#![expect(clippy::expect_used, reason = "a test that cannot go on says so")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bringup::config::{self, Config};
use bringup::diagnose::{Cause, Matcher, wall};
use bringup::domain::clock::{NodeClock, Written};
use bringup::domain::command::{Command, Exit};
use bringup::domain::container::{Container, ContainerFacts, ContainerState, Labels};
use bringup::domain::effect::Effect;
use bringup::domain::event::{CommandDone, Event, EventKind, Facts};
use bringup::domain::intent::{Action, Intent};
use bringup::domain::link::LinkState;
use bringup::domain::ray::{RayFacts, RayNode, RayVia};
use bringup::domain::serving::{Health, ServeFacts, ServeProcess, ServerFacts, TokenProof};
use bringup::domain::sign::Sign;
use bringup::domain::sockets::{Listener, SocketFacts};
use bringup::domain::{NodeId, Now, Role, Source, Stamp, StepId, Wall};
use bringup::engine::grammar::Context;
use bringup::log::{Decoder, Line, LineEdit, Stream};
use bringup::model::state::ServingState;
use bringup::model::{Options, State, update};
use bringup::plan::{Condition, Plan, PlannedCommand, Step, StepKind, StepState};
use bringup::report;

pub const HEAD: NodeId = NodeId(0);
pub const WORKER: NodeId = NodeId(1);

/// 2026-11-29 17:00 UTC in milliseconds.
const BASE: u64 = 1_795_971_600_000;

/// The console, and what reads each node's log.
pub struct Told {
    state: State,
    logs: BTreeMap<NodeId, (Context, Matcher)>,
}

impl Told {
    pub fn new() -> Self {
        let config = config::parse(config::EXAMPLE, "config.example.toml").expect("the example parses");
        Self::of(config)
    }

    fn of(config: Config) -> Self {
        let logs = [(HEAD, Role::Head), (WORKER, Role::Worker)]
            .map(|(node, role)| (node, (Context::default(), Matcher::new(&config, role))))
            .into();
        let state = State::new(Arc::new(config), Options::default(), now(0));
        Self { state, logs }
    }

    /// Starts anew with these fabric addresses.
    pub fn config_addresses(&mut self, addresses: [&str; 2]) {
        let mut config = Config::clone(&self.state.config);
        for (node, address) in config.nodes.iter_mut().zip(addresses) {
            node.fabric_address = address.to_owned();
        }
        *self = Self::of(config);
    }

    pub fn causes(&self) -> Vec<Cause> {
        self.state.causes()
    }

    /// What is offered to be run for a cause.
    pub fn by_hand(&self, cause: &Cause) -> Option<String> {
        self.state.by_hand(cause)
    }

    /// A node's log says this at once.
    pub fn sign(&mut self, node: NodeId, sign: Sign) {
        let ms = self.state.now.stamp.0;
        self.at(ms, node, EventKind::Sign(sign));
    }

    /// Where the server stands.
    pub fn state(&self) -> &ServingState {
        &self.state.server.state
    }

    /// What `status --json` prints.
    pub fn status(&self) -> serde_json::Value {
        report::status::status(&self.state, self.state.now)
    }

    pub fn at(&mut self, ms: u64, node: NodeId, kind: EventKind) -> Vec<Effect> {
        self.event(ms, Source::Node(node), kind)
    }

    fn event(&mut self, ms: u64, source: Source, kind: EventKind) -> Vec<Effect> {
        let at = now(ms);
        update(&mut self.state, Event { source, at, kind })
    }

    /// A line that was written so many seconds after the start, and is read at once or late: the console's time only goes on.
    pub fn line(&mut self, node: NodeId, seconds: u64, text: &str) {
        self.skewed(node, seconds, 0, text);
    }

    /// As [`Told::line`], on a node whose clock is so many seconds ahead.
    pub fn skewed(&mut self, node: NodeId, seconds: u64, ahead: i64, text: &str) {
        let read = self.state.now.stamp.0.max(seconds * 1000);
        let time = instant((seconds * 1000).saturating_add_signed(ahead * 1000 + BASE as i64));
        let line = Line {
            time: Some(time),
            ..Line::of(Stream::Out, text)
        };
        self.read(node, read, &line);
    }

    /// A whole log without times, in one gulp.
    pub fn log(&mut self, node: NodeId, log: &str) {
        let mut lines = Vec::new();
        Decoder::new().feed(Stream::Out, log.as_bytes(), &mut |edit| match edit {
            LineEdit::Push(line) => lines.push(line),
            LineEdit::Live(..) => {}
        });
        lines.iter().for_each(|line| self.read(node, 1_000, line));
    }

    fn read(&mut self, node: NodeId, ms: u64, line: &Line) {
        let (context, matcher) = self.logs.get_mut(&node).expect("a log");
        let text = line.plain();
        let said = context.read(&text, line.stream == Stream::Err, line.time.as_deref());
        let facts = match said.tame {
            true => said.facts,
            false => matcher.settle(&text, said.facts),
        };
        let signs = match said.quoted {
            true => Vec::new(),
            false => matcher.read(line, &facts, true),
        };
        let written = Written {
            by_node: line.time.as_deref().and_then(wall),
            backlog: true,
        };
        for fact in facts {
            self.at(ms, node, EventKind::Line(fact, written));
        }
        for sign in signs {
            self.at(ms, node, EventKind::Sign(sign));
        }
    }

    /// Both nodes linked, with our containers running and a model server that loads.
    pub fn up(&mut self) {
        for node in [HEAD, WORKER] {
            self.at(0, node, EventKind::Link(LinkState::Up));
            self.container(0, node, ContainerState::Running);
        }
        self.serves(0);
        self.server(0, ServerFacts::Health(Health::Refused));
    }

    pub fn container(&mut self, ms: u64, node: NodeId, state: ContainerState) {
        self.own(ms, node, state, "c1", 0, 0);
    }

    /// Another container of the same name runs since this moment.
    pub fn again(&mut self, ms: u64, node: NodeId) {
        self.own(ms, node, ContainerState::Running, "c2", ms, 0);
    }

    /// Another container of the same name, which runs since then.
    pub fn again_since(&mut self, ms: u64, node: NodeId, since: u64) {
        self.own(ms, node, ContainerState::Running, "c2", since, 0);
    }

    /// The node's clock is so many seconds ahead.
    pub fn clock(&mut self, ms: u64, node: NodeId, ahead: i64) {
        let clock = NodeClock {
            shows: Wall((BASE + ms).saturating_add_signed(ahead * 1000)),
            within: Duration::ZERO,
        };
        self.at(ms, node, EventKind::Clock(Ok(clock)));
        self.own(ms, node, ContainerState::Running, "c1", 0, ahead);
    }

    fn own(&mut self, ms: u64, node: NodeId, state: ContainerState, id: &str, started: u64, ahead: i64) {
        let labels = Labels {
            cluster: self.state.config.cluster.clone(),
            ..Labels::default()
        };
        let container = Container {
            id: id.into(),
            name: self.state.config.container.name.clone(),
            image: "image".into(),
            state,
            started_at: Some(instant((BASE + started).saturating_add_signed(ahead * 1000))),
            up_seconds: Some((ms - started) / 1000),
            restarts: 0,
            ours: Some(labels),
            labels: std::collections::BTreeMap::new(),
            pid: Some(100),
        };
        let facts = ContainerFacts {
            containers: vec![container],
        };
        self.at(ms, node, EventKind::Facts(Facts::Containers(facts)));
    }

    /// Ray's membership; the containers are read again too.
    pub fn ray(&mut self, ms: u64, nodes: Vec<RayNode>) {
        for node in [HEAD, WORKER] {
            self.container(ms, node, ContainerState::Running);
        }
        self.ray_alone(ms, nodes);
    }

    /// Ray's membership, and the head's container.
    pub fn ray_alone(&mut self, ms: u64, nodes: Vec<RayNode>) {
        self.container(ms, HEAD, ContainerState::Running);
        let via = RayVia::Container;
        self.at(
            ms,
            HEAD,
            EventKind::Facts(Facts::Ray(RayFacts {
                nodes,
                via,
                ..RayFacts::default()
            })),
        );
    }

    pub fn server(&mut self, ms: u64, facts: ServerFacts) {
        self.event(ms, Source::Server, EventKind::Server(facts));
    }

    /// The server is healthy, names its model and has given a token.
    pub fn ready(&mut self, ms: u64) {
        let both = ["192.168.200.12", "192.168.200.13"];
        self.ray(ms, both.map(|address| member(address, true)).into());
        self.server(ms, ServerFacts::Health(Health::Ok));
        let name = self.state.config.serve.name().to_owned();
        self.server(ms, ServerFacts::Models(Ok(vec![name.clone()])));
        let proof = TokenProof {
            model: name,
            tokens: 1,
            took: Duration::from_millis(40),
        };
        self.server(ms, ServerFacts::Token(Ok(proof)));
        assert_eq!(self.state.server.state.word(), "ready");
    }

    /// A run of one step on a node that only waits: `see` tells what is seen at each moment, until the step has failed; the cause that is shown beside it.
    pub fn failed_wait(&mut self, kind: StepKind, node: NodeId, see: impl Fn(&mut Self, u64)) -> Option<Cause> {
        let name = self.state.config.container.name.clone();
        let (before, under_way, after, broken) = match kind {
            StepKind::Serve => (
                Condition::PortFree(node, self.state.config.serve.port),
                Condition::ServeUnderWay,
                Condition::ModelListed,
                Condition::WrongModel,
            ),
            _ => (
                Condition::NameFree(node, name),
                Condition::StartUnderWay(node),
                Condition::RayMember(node),
                Condition::StartLost(node),
            ),
        };
        let step = Step {
            id: StepId(0),
            title: "wait".into(),
            kind,
            node: Some(node),
            before: vec![before],
            under_way: vec![under_way],
            commands: Vec::new(),
            after: vec![after],
            broken_by: vec![broken],
            settle: Duration::ZERO,
            limit: Duration::from_secs(3_600),
            finally: Vec::new(),
            evidence: Vec::new(),
            stall: None,
        };
        self.state.plan = Some(Plan {
            action: Action::Up,
            steps: vec![step],
            refusals: Vec::new(),
            notes: Vec::new(),
        });
        self.event(1_000, Source::Operator, EventKind::Intent(Intent::Confirm));
        for ms in (2_000..120_000).step_by(1_000) {
            see(self, ms);
            self.event(ms + 1, Source::Clock, EventKind::Tick);
            if self.failed() {
                break;
            }
        }
        assert!(self.failed(), "the step goes on: {:#?}", self.state.run);
        self.state.step_cause(StepId(0))
    }

    /// The cause that is shown beside the step of such a run.
    pub fn step_cause(&self) -> Option<Cause> {
        self.state.step_cause(StepId(0))
    }

    fn failed(&self) -> bool {
        let run = self.state.run.as_ref().expect("a run");
        matches!(run.steps()[0].state, StepState::Failed(_))
    }

    /// What listens on the port of the model server, as far as the login may see it.
    pub fn listens(&mut self, ms: u64, container: Option<&str>) {
        let listener = Listener {
            address: "*".into(),
            port: self.state.config.serve.port,
            pid: None,
            container: container.map(str::to_owned),
        };
        let facts = SocketFacts {
            listeners: vec![listener],
        };
        self.at(ms, HEAD, EventKind::Facts(Facts::Sockets(facts)));
    }

    /// A model server runs in the head's container.
    pub fn serves(&mut self, ms: u64) {
        let process = ServeProcess {
            pid: 7,
            mark: None,
            command: "vllm serve".into(),
            up_seconds: Some(1),
        };
        let serve = ServeFacts {
            processes: vec![process],
        };
        self.at(ms, HEAD, EventKind::Facts(Facts::Serve(serve)));
    }

    /// A run that starts the head, whose command fails with this on stderr; the cause that is shown beside the step.
    pub fn failed_head(&mut self, stderr: &[&str]) -> Option<Cause> {
        let node = HEAD;
        let command = Command::argv(["docker", "run"], Duration::from_secs(20));
        let step = Step {
            id: StepId(0),
            title: "start the head".into(),
            kind: StepKind::Head,
            node: Some(node),
            before: Vec::new(),
            under_way: Vec::new(),
            commands: vec![PlannedCommand { node, command }],
            after: Vec::new(),
            broken_by: Vec::new(),
            settle: Duration::ZERO,
            limit: Duration::from_secs(60),
            finally: Vec::new(),
            evidence: Vec::new(),
            stall: None,
        };
        self.state.plan = Some(Plan {
            action: Action::Head,
            steps: vec![step],
            refusals: Vec::new(),
            notes: Vec::new(),
        });
        let mut effects = self.event(1_000, Source::Operator, EventKind::Intent(Intent::Confirm));
        effects.extend(self.event(1_250, Source::Clock, EventKind::Tick));
        let run = effects.iter().find_map(|e| match e {
            Effect::Run { run, .. } => Some(*run),
            _ => None,
        });
        let done = CommandDone {
            run: run.expect("the command runs"),
            exit: Exit::Code(125),
            stdout: Vec::new(),
            stderr: stderr.iter().map(|l| (*l).to_owned()).collect(),
            took_ms: 10,
        };
        self.at(1_500, node, EventKind::CommandDone(done));
        self.state.step_cause(StepId(0))
    }
}

/// A node of Ray's at this address, with one GPU.
pub fn member(address: &str, alive: bool) -> RayNode {
    RayNode {
        address: address.to_owned(),
        alive,
        head: address == "192.168.200.12",
        gpus: 1.0,
        ..RayNode::default()
    }
}

fn now(ms: u64) -> Now {
    Now {
        stamp: Stamp(ms),
        wall: Wall(BASE + ms),
    }
}

/// A moment as Docker prints it.
fn instant(ms: u64) -> String {
    let time = jiff::Timestamp::from_millisecond(i64::try_from(ms).expect("in range")).expect("in range");
    time.to_string()
}
