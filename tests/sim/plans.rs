//! The console's own rooms against the cluster: its config, its plans, every command that it can make.

use std::time::Duration;

use bringup::domain::command::{Command, Exit, Limit};
use bringup::domain::effect::RunOutcome;
use bringup::domain::event::{ProbeId, Subject};
use bringup::domain::intent::Action;
use bringup::domain::step::StepOutcome;
use bringup::domain::{NodeId, Stamp, Wall};
use bringup::engine::{self, Start};
use bringup::plan::{StepState, StepStatus};
use bringup::probe;
use bringup::probe::logs::{Follower, Place};

use crate::client::{LONG, until};
use crate::cluster;
use crate::console::Console;
use crate::operator::Operator;

#[tokio::test(flavor = "multi_thread")]
async fn the_console_logs_in_by_the_config_that_the_cluster_wrote() {
    let cluster = cluster(60.0).await;
    let console = Console::connect(&cluster).await;
    for id in console.config.node_ids() {
        let said = console.run(id, &Command::argv(["docker", "ps", "-a"], LONG)).await;
        assert_eq!((&said.exit, said.text().lines().count()), (&Exit::Code(0), 1));
    }
    let refused = console.node(NodeId(0)).tunnel("127.0.0.1", 8000).await;
    assert!(refused.is_err());
    console.close().await;
    cluster.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_of_the_demo_speaks_the_stream_of_readings() {
    let cluster = cluster(30.0).await;
    let console = Console::connect(&cluster).await;
    let ask = probe::node::Ask {
        docker: "docker",
        container: "vllm-qwen35",
        log: None,
        cache: None,
        ports: &[8000],
    };
    let command = probe::node::watch(ask, "5f3a", LONG);
    let (inlet, mut chunks) = bringup::ssh::pipe();
    let following = console.node(NodeId(0)).follow(&command, inlet).await;
    let mut reader = probe::node::stream::Reader::new("5f3a", LONG, Stamp(0));
    let mut seen = std::collections::BTreeSet::new();
    let mut memory = 0;
    let all = tokio::time::timeout(LONG, async {
        // A second reading of memory: it goes on.
        while seen.len() < 6 || memory < 2 {
            let chunk = chunks.recv().await.unwrap();
            for reading in reader.feed(&chunk.bytes, Stamp(1)) {
                assert_eq!(reading.problems, [], "{:?}", reading.what);
                seen.insert(reading.what);
                memory += usize::from(reading.what == Subject::Memory);
            }
        }
    });
    all.await.unwrap();
    assert_eq!(reader.torn(), 0);
    drop(following);
    console.close().await;
    cluster.shutdown().await;
}

fn outcomes(steps: &[StepStatus]) -> Vec<&StepState> {
    steps.iter().map(|s| &s.state).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_plans_own_machine_brings_it_up_adopts_it_and_takes_it_down() {
    let cluster = cluster(30.0).await;
    let mut console = Console::connect(&cluster).await;
    console.config.limits.settle = Duration::from_millis(300);
    let mut operator = Operator::new(&console);

    let (outcome, steps) = operator.act(Action::Up).await;
    assert_eq!(outcome, RunOutcome::Done, "{steps:#?}");
    let gpus = |o: &Operator, node: usize| o.observed.nodes[node].gpus.value().unwrap().clone();
    for node in console.config.node_ids() {
        operator.ask(node, ProbeId::Node).await;
    }
    for node in [0, 1] {
        let seen = gpus(&operator, node);
        let gpu = &seen.gpus[0];
        assert_eq!((gpu.name.as_str(), gpu.unified), ("NVIDIA GB10", true));
        assert!(seen.held().unwrap().gib() > 90.0);
        let container = operator.observed.nodes[node]
            .containers
            .value()
            .unwrap()
            .named("vllm-qwen35")
            .unwrap();
        assert_eq!(seen.processes[0].container.as_deref(), Some(container.id.as_str()));
        assert!(container.ours.is_some() && container.up_seconds.is_some());
    }
    let sockets = operator.observed.nodes[0].sockets.value().unwrap().clone();
    let ports: Vec<(String, u16)> = sockets.listeners.into_iter().map(|l| (l.address, l.port)).collect();
    assert_eq!(
        ports,
        [
            ("*".into(), 22),
            ("*".into(), 6379),
            ("127.0.0.1".into(), 8265),
            ("*".into(), 8000)
        ]
    );

    let (outcome, steps) = operator.act(Action::Up).await;
    assert_eq!(outcome, RunOutcome::Done);
    // The membership is watched again, all else is true already.
    let again = [
        StepOutcome::Skipped,
        StepOutcome::Skipped,
        StepOutcome::Success,
        StepOutcome::Skipped,
    ];
    assert!(
        outcomes(&steps).into_iter().eq(&again.map(StepState::Done)),
        "{steps:#?}"
    );

    let (outcome, steps) = operator.act(Action::StopServe).await;
    assert_eq!(outcome, RunOutcome::Done, "{steps:#?}");
    operator.ask(NodeId(0), ProbeId::Serve).await;
    assert_eq!(operator.observed.nodes[0].serve.value().unwrap().processes, []);

    let (outcome, steps) = operator.act(Action::StopAll).await;
    assert_eq!(outcome, RunOutcome::Done, "{steps:#?}");
    for node in [0, 1] {
        operator.ask(NodeId(node), ProbeId::Node).await;
        assert_eq!(
            operator.observed.nodes[usize::from(node)]
                .containers
                .value()
                .unwrap()
                .containers,
            []
        );
    }
    drop(operator);
    console.close().await;
    cluster.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_load_that_runs_is_adopted_by_another_console() {
    let cluster = cluster(10.0).await;
    {
        let console = Console::connect(&cluster).await;
        let id = NodeId(0);
        let start = |node| {
            engine::start_node(
                &console.config,
                node,
                Start {
                    generation: Wall(1),
                    infiniband: true,
                },
            )
        };
        for node in [id, NodeId(1)] {
            assert!(console.run(node, &start(node)).await.exit.ok());
        }
        for command in engine::serve(&console.config) {
            until("serve to start", || async {
                console.run(id, &command).await.exit.ok().then_some(())
            })
            .await;
        }
        // Leaves without a word, as a console that was killed.
    }
    let mut console = Console::connect(&cluster).await;
    console.config.limits.settle = Duration::from_millis(300);
    let mut operator = Operator::new(&console);
    let (outcome, steps) = operator.act(Action::Up).await;
    assert_eq!(outcome, RunOutcome::Done, "{steps:#?}");
    let last = outcomes(&steps).pop().unwrap().clone();
    assert_eq!(last, StepState::Done(StepOutcome::Adopted), "{steps:#?}");
    operator.ask(NodeId(0), ProbeId::Serve).await;
    assert_eq!(operator.observed.nodes[0].serve.value().unwrap().processes.len(), 1);
    drop(operator);
    console.close().await;
    cluster.shutdown().await;
}

/// How long each command is listened to: long enough for a refusal, and a follower goes on for ever.
const TRIED: Duration = Duration::from_secs(2);

#[tokio::test(flavor = "multi_thread")]
async fn every_command_that_the_console_can_make_is_known() {
    let cluster = cluster(60.0).await;
    let console = Console::connect(&cluster).await;
    let operator = Operator::new(&console);
    let scripted = cluster
        .config_text()
        .replace("kind = \"vllm-ray\"", "kind = \"script\"")
        .replace("[container]", "[engine.script]\npath = \"./spark.sh\"\n\n[container]");
    let configs = [
        console.config.clone(),
        bringup::config::parse(&scripted, "config.toml").unwrap_or_else(|e| panic!("{e:?}")),
    ];
    let mut commands: Vec<Command> = Vec::new();
    for probe in [
        ProbeId::Node,
        ProbeId::Image,
        ProbeId::Versions,
        ProbeId::Ray,
        ProbeId::Serve,
        ProbeId::Verb,
    ] {
        commands.push(operator.probe(probe));
    }
    let places = [
        Place::Container {
            docker: "docker".into(),
            name: "vllm-qwen35".into(),
        },
        Place::File {
            path: "/var/log/x".into(),
        },
        Place::ContainerFile {
            docker: "docker".into(),
            name: "vllm-qwen35".into(),
            path: "/var/log/x".into(),
        },
    ];
    commands.extend(places.into_iter().map(|place| Follower::new(place).command(LONG)));
    for config in &configs {
        let start = Start {
            generation: Wall(1),
            infiniband: true,
        };
        commands.extend(config.node_ids().map(|n| engine::start_node(config, n, start)));
        commands.extend(engine::serve(config));
        commands.push(engine::stop_serve(config));
        commands.push(engine::last_lines(config));
        commands.extend(engine::stop_node(config, &["vllm-qwen35"]));
        commands.push(engine::remove(config, "vllm-qwen35"));
        commands.push(engine::pull(config));
        commands.push(engine::script::clean(config));
    }
    for command in commands {
        let limited = Command {
            limit: Limit {
                time: TRIED,
                ..command.limit
            },
            ..command.clone()
        };
        let said = console.run(NodeId(0), &limited).await;
        let unknown = said
            .error_text()
            .lines()
            .any(|l| l.starts_with("sh: 1: ") && l.ends_with(": not found"));
        assert!(!unknown, "{}: {}", command.line(), said.error_text());
    }
    drop(operator);
    console.close().await;
    cluster.shutdown().await;
}
