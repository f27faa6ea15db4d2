//! A small operator: makes a plan, runs it with the plan room's own step machine, and answers its questions over SSH.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bringup::api::{ByteStream, Client, Connect, ConnectError, Place};
use bringup::domain::command::{Command, CommandKind, Output};
use bringup::domain::effect::RunOutcome;
use bringup::domain::event::{CommandDone, Facts, ProbeId};
use bringup::domain::intent::Action;
use bringup::domain::link::LinkState;
use bringup::domain::observed::Observed;
use bringup::domain::serving::{ServerFacts, ServerProbe};
use bringup::domain::{NodeId, Now, Reading, Stamp, Wall};
use bringup::plan::{Do, Machine, Progress, StepStatus, Want};
use bringup::probe;
use bringup::ssh::Session;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;

use crate::client::LONG;
use crate::console::Console;

/// Time in which a demo node tells Ray's membership once.
const A_RECORD: Duration = Duration::from_secs(2);

/// Opens tunnels on the head's connection.
struct Head(Session);

impl Connect for Head {
    fn open<'a>(&'a self, host: &'a str, port: u16) -> BoxFuture<'a, Result<Box<dyn ByteStream>, ConnectError>> {
        async move {
            match self.0.tunnel(host, port).await {
                Ok(stream) => Ok(Box::new(stream) as Box<dyn ByteStream>),
                Err(_) => Err(ConnectError::Refused),
            }
        }
        .boxed()
    }
}

pub struct Operator<'a> {
    console: &'a Console,
    pub api: Client,
    pub observed: Observed,
    start: Instant,
}

impl<'a> Operator<'a> {
    pub fn new(console: &'a Console) -> Self {
        let config = &console.config;
        let place = Place {
            host: "127.0.0.1".into(),
            port: config.serve.port,
            dashboard_port: config.engine.dashboard_port(),
        };
        let mut observed = Observed::of(config.nodes.len());
        for node in &mut observed.nodes {
            node.link = LinkState::Up;
        }
        Self {
            console,
            api: Client::open(Arc::new(Head(console.node(NodeId(0)).clone())), &place, None).unwrap(),
            observed,
            start: Instant::now(),
        }
    }

    fn stamp(&self) -> Stamp {
        Stamp(u64::try_from(self.start.elapsed().as_millis()).unwrap())
    }

    pub fn probe(&self, probe: ProbeId) -> Command {
        let config = &self.console.config;
        let (docker, name) = (config.container.docker.as_str(), config.container.name.as_str());
        match probe {
            ProbeId::Node => {
                let ask = probe::node::Ask {
                    docker,
                    container: name,
                    log: None,
                    cache: None,
                    ports: &[config.engine.ray_port(), config.serve.port],
                };
                probe::node::command(ask, LONG)
            }
            ProbeId::Image => probe::image::command(docker, &config.container.image, LONG),
            ProbeId::Versions => probe::versions::command(docker, &config.container.image, LONG),
            ProbeId::Inside => probe::inside::command(docker, name, LONG),
            ProbeId::RayStatus => probe::ray_status::command(docker, name, config.engine.ray_port(), LONG),
            // It goes on for as long as it is wanted; here for one record.
            ProbeId::Ray => Command {
                kind: CommandKind::Once,
                ..probe::ray::command(docker, name, config.engine.ray_port(), A_RECORD)
            },
            ProbeId::Serve => probe::serve::command(docker, name, LONG),
            ProbeId::Verb => probe::verb::command(&config.cluster, LONG),
        }
    }

    /// Asks a node and keeps what it says; nothing that it says may be a problem.
    pub async fn ask(&mut self, node: NodeId, probe: ProbeId) {
        let output: Output = self.console.run(node, &self.probe(probe)).await;
        let (facts, problems) = probe::parse(probe, &output);
        assert!(problems.is_empty(), "{probe:?} on {node:?}: {problems:?}");
        let at = self.stamp();
        for fact in facts {
            let seen = &mut self.observed.nodes[node.index()];
            match fact {
                Facts::Memory(f) => seen.memory = Reading::known(f, at),
                Facts::Gpus(f) => seen.gpus = Reading::known(f, at),
                Facts::Containers(f) => seen.containers = Reading::known(f, at),
                Facts::Sockets(f) => seen.sockets = Reading::known(f, at),
                Facts::Fabric(f) => seen.fabric = Reading::known(f, at),
                Facts::Disk(f) => seen.disk = Reading::known(f, at),
                Facts::Image(f) => seen.image = Reading::known(f, at),
                Facts::Versions(f) => seen.versions = Reading::known(f, at),
                Facts::Serve(f) => seen.serve = Reading::known(f, at),
                Facts::Verb(f) => seen.verb = Reading::known(f, at),
                Facts::Inside(f) => seen.inside = Reading::known(f, at),
                Facts::RayStatus(_) => {}
                Facts::Ray(f) => self.observed.ray = Reading::known(f, at),
                Facts::Absent { .. } => {}
            }
        }
    }

    async fn ask_server(&mut self, probe: ServerProbe) {
        let facts = self.api.ask(probe, self.console.config.serve.name()).await;
        let at = self.stamp();
        let server = &mut self.observed.server;
        match facts {
            ServerFacts::Health(h) => server.health = Reading::known(h, at),
            ServerFacts::Models(Ok(m)) => server.models = Reading::known(m, at),
            ServerFacts::Metrics(Ok(m)) => server.metrics = Reading::known(*m, at),
            ServerFacts::Token(Ok(t)) => server.token = Reading::known(t, at),
            ServerFacts::Ray(Ok(r)) => self.observed.ray = Reading::known(r, at),
            ServerFacts::Models(Err(why)) => server.models = Reading::absent(why),
            ServerFacts::Metrics(Err(why)) => server.metrics = Reading::absent(why),
            ServerFacts::Token(Err(why)) => server.token = Reading::absent(why.why().to_owned()),
            ServerFacts::Ray(Err(_)) => {}
        }
    }

    /// Looks at every node, plans an action and runs it.
    pub async fn act(&mut self, action: Action) -> (RunOutcome, Vec<StepStatus>) {
        for node in self.console.config.node_ids() {
            for probe in [ProbeId::Node, ProbeId::Image, ProbeId::Serve] {
                self.ask(node, probe).await;
            }
        }
        self.ask_server(ServerProbe::Ray).await;
        self.ask_server(ServerProbe::Health).await;
        let now = Now {
            stamp: self.stamp(),
            wall: Wall(1_795_978_690_000),
        };
        let plan = bringup::plan::make(action, &self.console.config, &self.observed, now);
        assert!(plan.refusals.is_empty(), "{:?}", plan.refusals);
        let (mut machine, mut todo) = Machine::new(plan, false, now.stamp);
        let progress = Progress::default();
        let outcome = tokio::time::timeout(LONG, async {
            loop {
                for one in std::mem::take(&mut todo) {
                    match one {
                        Do::Want(Want::Node(node, probe)) => self.ask(node, probe).await,
                        Do::Want(Want::Server(probe)) => self.ask_server(probe).await,
                        Do::Run { run, node, command } => {
                            let output = self.console.run(node, &command).await;
                            let lines = |text: &str| text.lines().map(str::to_owned).collect();
                            let done = CommandDone {
                                run,
                                stdout: lines(&output.text()),
                                stderr: lines(&output.error_text()),
                                exit: output.exit,
                                took_ms: 1,
                            };
                            todo.extend(machine.on_command_done(&done, &self.console.config, self.stamp()));
                        }
                        Do::Event(_) => {}
                        Do::Over(outcome) => return outcome,
                    }
                }
                todo.extend(machine.on_tick(&self.observed, &self.console.config, &progress, self.stamp()));
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
        })
        .await;
        let outcome = outcome.unwrap_or_else(|_| panic!("{action:?} hangs: {:#?}", machine.steps()));
        (outcome, machine.steps().to_vec())
    }
}
