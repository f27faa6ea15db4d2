//! The demo cluster from outside: a plain SSH client through the jump host, docker, Ray's dashboard, a model that loads, an API whose counters are what
//! it sent.

use std::time::Duration;

#[path = "sim/client.rs"]
mod client;
#[path = "sim/console.rs"]
mod console;
#[path = "sim/operator.rs"]
mod operator;

use bringup::domain::command::{Command, Exit, Limit};
use bringup::domain::effect::RunOutcome;
use bringup::domain::event::ProbeId;
use bringup::domain::intent::Action;
use bringup::domain::step::StepOutcome;
use bringup::domain::{NodeId, Wall};
use bringup::engine::{self, Start};
use bringup::plan::{StepState, StepStatus};
use bringup::probe::logs::{Follower, Place};
use bringup::sim::{Cluster, Options};
use client::{LONG, docker, finish, http, jump, node, run, start, until};
use console::Console;
use operator::Operator;
use russh::ChannelMsg;
use serde_json::{Value, json};

/// Names of the story's machines.
const HEAD: &str = "192.168.200.12";
const WORKER: &str = "192.168.200.13";

const RUN: &str = "run -d --name v --network host --gpus all --device /dev/infiniband -e NCCL_DEBUG=INFO -e NCCL_IB_HCA=rocep1s0f1 --entrypoint ray hellohal2064/vllm-qwen3.5-gb10 start --block";
const SERVE: &str = "exec -d -e BRINGUP_SERVE=abc -e RAY_ADDRESS=192.168.200.12:6379 v /bin/sh -c 'exec vllm serve org/model --port 8000 --tensor-parallel-size 2 >>/proc/1/fd/1 2>&1'";

async fn cluster(speed: f64) -> Cluster {
    let options = Options {
        speed,
        ..Options::default()
    };
    Cluster::start(options).await.unwrap()
}

fn counter(metrics: &str, name: &str) -> f64 {
    let line = metrics
        .lines()
        .find(|l| l.starts_with(name))
        .unwrap_or_else(|| panic!("no {name} in\n{metrics}"));
    line.rsplit_once(' ').unwrap().1.parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_are_reached_through_the_jump_alone_and_nothing_else_is() {
    let cluster = cluster(60.0).await;
    let way_in = jump(&cluster).await;
    for (host, port) in [
        (HEAD, 8000),
        ("10.1.230.180", 22),
        ("127.0.0.1", 22),
        ("example.org", 80),
    ] {
        let tried = way_in.channel_open_direct_tcpip(host, port, "127.0.0.1", 0).await;
        assert!(tried.is_err(), "{host}:{port} is reached");
    }
    let head = node(&cluster, &way_in, HEAD).await;
    assert_eq!(docker(&head, "ps").await.code, Some(0));
    let stranger = client::dial_jump(&cluster).await;
    let mut stranger = stranger;
    let key =
        russh::keys::PrivateKey::random(&mut russh::keys::key::safe_rng(), russh::keys::Algorithm::Ed25519).unwrap();
    let key = russh::keys::PrivateKeyWithHashAlg::new(std::sync::Arc::new(key), None);
    assert!(!stranger.authenticate_publickey("aurora", key).await.unwrap().success());
    cluster.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_known_answers_127_and_runs_nothing() {
    let cluster = cluster(60.0).await;
    let way_in = jump(&cluster).await;
    let head = node(&cluster, &way_in, HEAD).await;
    let said = run(&head, &Command::argv(["rm", "-rf", "/nowhere"], LONG)).await;
    assert_eq!(
        (said.out.as_str(), said.err.as_str(), said.code),
        ("", "sh: 1: rm: not found\n", Some(127))
    );
    let said = run(&head, &Command::script("no.such", "echo hello", vec![], LONG)).await;
    assert_eq!(
        (said.err.as_str(), said.code),
        ("sh: 1: no.such: not found\n", Some(127))
    );
    for (handle, command, code) in [
        (&head, "hostname", 127),
        (&way_in, "true", 0),
        (&way_in, "docker ps", 127),
    ] {
        let channel = handle.channel_open_session().await.unwrap();
        channel.exec(true, command).await.unwrap();
        assert_eq!(finish(channel).await.code, Some(code), "{command}");
    }
    let refused = run(&way_in, &Command::argv(["docker", "ps"], LONG)).await;
    assert_eq!(refused.code, Some(127));
    cluster.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_has_ten_session_channels_and_gets_them_back() {
    let cluster = cluster(60.0).await;
    let way_in = jump(&cluster).await;
    let head = node(&cluster, &way_in, HEAD).await;
    let mut open = Vec::new();
    for _ in 0..10 {
        open.push(head.channel_open_session().await.unwrap());
    }
    assert!(head.channel_open_session().await.is_err());
    open.pop().unwrap().close().await.unwrap();
    until("a free channel", || async { head.channel_open_session().await.ok() }).await;
    cluster.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_comes_up_serves_what_it_counts_and_goes() {
    let cluster = cluster(60.0).await;
    let way_in = jump(&cluster).await;
    let head = node(&cluster, &way_in, HEAD).await;
    let worker = node(&cluster, &way_in, WORKER).await;

    let said = docker(&head, &format!("{RUN} --head --port 6379 --node-ip-address {HEAD}")).await;
    assert_eq!((said.out.trim().len(), said.err.as_str(), said.code), (64, "", Some(0)));
    let said = docker(
        &worker,
        &format!("{RUN} --address={HEAD}:6379 --node-ip-address {WORKER}"),
    )
    .await;
    assert_eq!(said.code, Some(0), "{}", said.err);
    let nodes = until("two nodes in Ray", || async {
        let (_, body) = http(&head, 8265, "GET", "/api/v0/nodes", "").await?;
        let body: Value = serde_json::from_str(&body).unwrap();
        let list = body["data"]["result"]["result"].as_array().unwrap().clone();
        (list.len() == 2).then_some(list)
    })
    .await;
    let seen: Vec<_> = nodes
        .iter()
        .map(|n| {
            (
                n["node_ip"].as_str().unwrap(),
                n["state"].as_str().unwrap(),
                &n["resources_total"]["GPU"],
            )
        })
        .collect();
    assert_eq!(seen, [(HEAD, "ALIVE", &json!(1.0)), (WORKER, "ALIVE", &json!(1.0))]);

    let follow = Command::argv(["docker", "logs", "-f", "--timestamps", "v"], LONG).follow();
    let mut log = start(&head, &follow).await;
    assert!(
        http(&head, 8000, "GET", "/health", "").await.is_none(),
        "the port refuses before the load"
    );
    assert_eq!(docker(&head, SERVE).await.code, Some(0));
    until("health", || async {
        http(&head, 8000, "GET", "/health", "")
            .await
            .filter(|(status, _)| *status == 200)
    })
    .await;
    let mut text = String::new();
    while !text.contains("Application startup complete.") {
        match tokio::time::timeout(LONG, log.wait()).await.unwrap().unwrap() {
            ChannelMsg::Data { data } => text.push_str(&String::from_utf8_lossy(&data)),
            _ => {}
        }
    }
    for line in [
        "checkpoint shards: 100% Completed | 41/41",
        "via NET/IB/0",
        "Graph capturing finished",
        "version 0.17.0",
    ] {
        assert!(text.contains(line), "no {line} in the head's log");
    }
    log.eof().await.unwrap();
    assert_eq!(finish(log).await.code, Some(143), "a follower ends with its input");

    serves(&head).await;
    refuses(&head).await;

    assert_eq!(docker(&worker, "stop v").await.code, Some(0));
    until("the port to refuse when a rank is gone", || async {
        http(&head, 8000, "GET", "/health", "").await.is_none().then_some(())
    })
    .await;
    assert_eq!(docker(&head, "stop v").await.code, Some(0));
    assert_eq!(docker(&head, "rm v").await.code, Some(0));
    assert!(http(&head, 8265, "GET", "/api/v0/nodes", "").await.is_none());
    assert_eq!(docker(&head, "ps -a").await.out.lines().count(), 1);
    cluster.shutdown().await;
}

/// Streams and plain answers, and the counters afterwards.
async fn serves(head: &russh::client::Handle<client::Check>) {
    let (_, models) = http(head, 8000, "GET", "/v1/models", "").await.unwrap();
    assert_eq!(
        serde_json::from_str::<Value>(&models).unwrap()["data"][0]["id"],
        "org/model"
    );
    let (_, tokens) = http(
        head,
        8000,
        "POST",
        "/tokenize",
        &json!({"model": "org/model", "prompt": "one two three"}).to_string(),
    )
    .await
    .unwrap();
    assert_eq!(serde_json::from_str::<Value>(&tokens).unwrap()["count"], 3);
    let request = json!({
        "model": "org/model", "prompt": "one two three", "max_tokens": 40, "ignore_eos": true, "stream": true, "stream_options": {"include_usage": true}
    });
    let body = request.to_string();
    let streams = (0..4).map(|_| http(head, 8000, "POST", "/v1/completions", &body));
    let mut sent = 0;
    for answer in futures_util::future::join_all(streams).await {
        let (status, body) = answer.unwrap();
        assert_eq!(status, 200);
        let events: Vec<&str> = body.split("\n\n").filter(|e| !e.is_empty()).collect();
        let (done, chunks) = events.split_last().unwrap();
        assert_eq!(*done, "data: [DONE]");
        let chunks: Vec<Value> = chunks
            .iter()
            .map(|e| serde_json::from_str(e.strip_prefix("data: ").unwrap()).unwrap())
            .collect();
        let texts = chunks.iter().filter(|c| c["choices"][0]["text"].is_string()).count();
        assert_eq!(texts, 40);
        assert_eq!(chunks[39]["choices"][0]["finish_reason"], "length");
        assert_eq!(
            chunks[40]["usage"],
            json!({"prompt_tokens": 3, "total_tokens": 43, "completion_tokens": 40})
        );
        sent += texts;
    }
    let chat = json!({"model": "org/model", "messages": [{"role": "user", "content": "hello"}], "max_tokens": 2000});
    let (_, body) = http(head, 8000, "POST", "/v1/chat/completions", &chat.to_string())
        .await
        .unwrap();
    let body: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(body["choices"][0]["finish_reason"], "stop", "{body}");
    assert!(
        body["choices"][0]["message"]["reasoning"]
            .as_str()
            .unwrap()
            .starts_with("The question")
    );
    assert!(
        body["choices"][0]["message"]["content"]
            .as_str()
            .unwrap()
            .starts_with("The two nodes")
    );
    let generated = sent as f64 + body["usage"]["completion_tokens"].as_f64().unwrap();
    let prompts = 12.0 + body["usage"]["prompt_tokens"].as_f64().unwrap();
    let (_, metrics) = http(head, 8000, "GET", "/metrics", "").await.unwrap();
    assert_eq!(counter(&metrics, "vllm:generation_tokens_total{"), generated);
    assert_eq!(counter(&metrics, "vllm:prompt_tokens_total{"), prompts);
    assert_eq!(counter(&metrics, "vllm:num_requests_running{"), 0.0);
    assert_eq!(counter(&metrics, "vllm:kv_cache_usage_perc{"), 0.0);
    assert_eq!(
        counter(
            &metrics,
            "vllm:request_success_total{engine=\"0\",finished_reason=\"length\""
        ),
        4.0
    );
    assert_eq!(
        counter(
            &metrics,
            "vllm:request_success_total{engine=\"0\",finished_reason=\"stop\""
        ),
        1.0
    );
    assert_eq!(counter(&metrics, "vllm:time_to_first_token_seconds_count{"), 5.0);
}

/// vLLM's error shapes.
async fn refuses(head: &russh::client::Handle<client::Check>) {
    let chat = "/v1/chat/completions";
    let cases = [
        (
            chat,
            r#"{"model":"nope","messages":[]}"#,
            404,
            "The model `nope` does not exist. Valid aliases: org/model.",
        ),
        (chat, "{\"model\":", 400, "JSON decode error"),
        (
            chat,
            r#"{"model":"org/model"}"#,
            400,
            "'loc': 'body.messages', 'msg': 'Field required'",
        ),
        (
            chat,
            r#"{"model":"org/model","messages":[],"max_tokens":99999}"#,
            400,
            "max_tokens=99999 cannot be greater than max_model_len=32768",
        ),
        (
            "/v1/completions",
            r#"{"model":"org/model"}"#,
            400,
            "'loc': 'body.prompt'",
        ),
    ];
    for (path, body, status, text) in cases {
        let (got, answer) = http(head, 8000, "POST", path, body).await.unwrap();
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!((got, &answer["error"]["code"]), (status, &json!(status)), "{body}");
        assert!(answer["error"]["message"].as_str().unwrap().contains(text), "{answer}");
    }
    assert_eq!(http(head, 8000, "GET", "/nowhere", "").await.unwrap().0, 404);
    assert_eq!(http(head, 8000, "GET", "/v1/completions", "").await.unwrap().0, 405);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_world_outlives_those_who_look_at_it() {
    let cluster = cluster(60.0).await;
    {
        let way_in = jump(&cluster).await;
        let head = node(&cluster, &way_in, HEAD).await;
        docker(&head, &format!("{RUN} --head --num-gpus 2 --node-ip-address {HEAD}")).await;
        until("Ray", || async { http(&head, 8265, "GET", "/api/v0/nodes", "").await }).await;
        docker(&head, SERVE).await;
    }
    let way_in = jump(&cluster).await;
    let head = node(&cluster, &way_in, HEAD).await;
    let again = docker(&head, &format!("{RUN} --head --node-ip-address {HEAD}")).await;
    assert_eq!(again.code, Some(125));
    assert!(again.err.contains("is already in use by container"));
    until("health", || async {
        http(&head, 8000, "GET", "/health", "")
            .await
            .filter(|(status, _)| *status == 200)
    })
    .await;
    cluster.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_private_folder_is_private_and_goes_with_the_cluster() {
    use std::os::unix::fs::PermissionsExt as _;
    let cluster = cluster(60.0).await;
    let folder = cluster.folder().to_owned();
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder), 0o700);
    assert_eq!(mode(&folder.join("id_ed25519")), 0o600);
    let config = bringup::config::parse(cluster.config_text(), "config.toml").unwrap();
    assert_eq!(config.nodes.len(), 2);
    assert_eq!(
        std::fs::read_to_string(cluster.config_path()).unwrap(),
        cluster.config_text()
    );
    cluster.shutdown().await;
    assert!(!folder.exists());
}

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
        assert_eq!((gpu.name.as_str(), gpu.unified()), ("NVIDIA GB10", true));
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
    assert!(
        outcomes(&steps)
            .iter()
            .all(|s| **s == StepState::Done(StepOutcome::Skipped)),
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
