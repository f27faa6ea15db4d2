//! States to draw: the two Sparks of the example at several moments, and how to change them.

use std::sync::Arc;
use std::time::Duration;

use bringup::config::{self, Config};
use bringup::diagnose::Matcher;
use bringup::domain::bench::{BenchEvent, BenchProfile, PromptSizing, RequestRecord};
use bringup::domain::command::{Command, Exit};
use bringup::domain::container::{Container, ContainerFacts, ContainerState, Labels};
use bringup::domain::event::{ProbeId, Purpose};
use bringup::domain::fabric::{FabricFacts, Interface};
use bringup::domain::gpu::{Gpu, GpuFacts, GpuProcess, GpuTool};
use bringup::domain::link::LinkState;
use bringup::domain::load::{LineFact, RankLine, Stage, Transport};
use bringup::domain::memory::MemoryFacts;
use bringup::domain::ray::{RayFacts, RayNode, RayVia};
use bringup::domain::serving::{Health, MetricsSample, TokenProof};
use bringup::domain::units::{Bytes, Celsius, Percent, Watts};
use bringup::domain::{NodeId, Now, Reading, RunId, Stamp, Wall, When};
use bringup::engine::grammar;
use bringup::log::{Decoder, Line, LogWindows, Ring, Stream};
use bringup::measure::window::{LIVE, NOT_EXPORTED, Quantiles};
use bringup::measure::{Figures, Quantile};
use bringup::model::bench::BenchView;
use bringup::model::state::{CommandEntry, LogMeta, ServingState};
use bringup::model::{Options, State};

/// The moment of every frame.
pub const NOW: Now = Now {
    stamp: Stamp(1_000_000),
    wall: Wall(1_764_419_467_000),
};

/// A moment `seconds` before [`NOW`].
pub fn ago(seconds: u64) -> Now {
    Now {
        stamp: Stamp(NOW.stamp.0 - seconds * 1000),
        wall: Wall(NOW.wall.0 - seconds * 1000),
    }
}

/// A reading of a second ago.
pub fn read<T>(value: T) -> Reading<T> {
    Reading::known(value, ago(1).stamp)
}

/// The example's configuration.
pub fn example() -> Config {
    config::parse(config::EXAMPLE, "config.example.toml").expect("the example parses")
}

/// The example with so many workers.
pub fn with_workers(count: u8) -> Config {
    let mut config = example();
    let worker = config.nodes.remove(1);
    for n in 0..count {
        let mut node = worker.clone();
        node.name = format!("spark-{}", n + 2);
        node.fabric_address = format!("192.168.200.{}", 13 + n);
        config.nodes.push(node);
    }
    config
}

/// Nothing known yet.
pub fn empty(config: Config) -> State {
    let mut state = State::new(Arc::new(config), Options::default(), ago(1000));
    state.now = NOW;
    state
}

/// A node's log said this so many seconds ago, as far as it may be why something fails.
pub fn says(state: &mut State, node: NodeId, seconds: u64, text: &str) {
    let role = state.config.nodes[node.index()].role;
    let mut matcher = Matcher::new(&state.config, role);
    let line = Line::of(Stream::Out, text);
    let facts = grammar::read_line(text);
    for sign in matcher.read(&line, &facts, false) {
        state.evidence.log(node, NodeId(0), sign, ago(seconds));
    }
}

/// Connected, nothing runs.
pub fn idle(config: Config) -> State {
    let mut state = empty(config);
    for hop in &mut state.hops {
        *hop = LinkState::Up;
    }
    for id in state.config.node_ids() {
        let gib = |g: f64| Bytes((g * 1_073_741_824.0) as u64);
        let node = &mut state.observed.nodes[id.index()];
        node.link = LinkState::Up;
        node.memory = read(MemoryFacts {
            total: Bytes::from_kib(127_600_748),
            available: gib(113.2),
            free: Some(gib(108.0)),
            cached: Some(gib(5.8)),
            swap_used: Some(Bytes(0)),
            held: Some(gib(6.4)),
            read: Some(Bytes::from_mib(90_000)),
            pressure: None,
            load: None,
        });
        node.gpus = read(GpuFacts {
            gpus: vec![spark(0.0, 4.0, 36.0)],
            processes: Vec::new(),
            processes_unknown: None,
            tool: GpuTool::NvidiaSmi,
        });
        node.containers = read(ContainerFacts::default());
    }
    state.server.state = ServingState::Down;
    state.server.since = ago(300).stamp;
    state.observed.server.health = read(Health::Refused);
    state.observed.ray = Reading::absent("the head's container does not run");
    state
}

/// A GB10: no memory of its own.
pub fn spark(util: f32, watts: f32, celsius: f32) -> Gpu {
    Gpu {
        index: 0,
        name: "NVIDIA GB10".into(),
        utilization: Some(Percent(util)),
        unified: true,
        power: Some(Watts(watts)),
        temperature: Some(Celsius(celsius)),
        ..Gpu::default()
    }
}

/// A GPU with memory of its own.
pub fn h200(index: u32, used_gib: u64) -> Gpu {
    Gpu {
        index,
        name: "NVIDIA H200".into(),
        utilization: Some(Percent(91.0 + index as f32)),
        memory_used: Some(Bytes::from_mib(used_gib * 1024)),
        memory_total: Some(Bytes::from_mib(143_771)),
        unified: false,
        slices: Vec::new(),
        power: Some(Watts(611.0)),
        temperature: Some(Celsius(63.0)),
    }
}

/// Our container on a node.
pub fn container(state: &State, id: NodeId, up_seconds: u64) -> Container {
    Container {
        id: "3f9a".repeat(16),
        name: state.config.container.name.clone(),
        image: state.config.container.image.clone(),
        state: ContainerState::Running,
        started_at: None,
        up_seconds: Some(up_seconds),
        restarts: 0,
        ours: Some(Labels {
            cluster: state.config.cluster.clone(),
            node: state.config.node_name(id).into(),
            ..Labels::default()
        }),
        labels: std::collections::BTreeMap::new(),
        pid: Some(4711),
    }
}

/// A member of Ray.
pub fn member(address: &str, head: bool) -> RayNode {
    RayNode {
        id: "0f".repeat(28),
        address: address.into(),
        alive: true,
        head,
        gpus: 1.0,
        cpus: 20.0,
        started_ms: Some(NOW.wall.0 - 720_000),
        ..RayNode::default()
    }
}

/// Head and workers are up, the model loads.
pub fn loading(config: Config) -> State {
    let mut state = idle(config);
    for id in state.config.node_ids() {
        let up = 720 - 60 * u64::from(id.0.min(9));
        let running = container(&state, id, up);
        let node = &mut state.observed.nodes[id.index()];
        node.containers = read(ContainerFacts {
            containers: vec![running],
        });
        node.memory = read(MemoryFacts {
            total: Bytes::from_kib(127_600_748),
            available: Bytes::from_mib(23_552 + 4500 * u64::from(id.0)),
            free: Some(Bytes::from_mib(17_000)),
            cached: Some(Bytes::from_mib(6_240)),
            swap_used: None,
            held: Some(Bytes::from_mib(7_100)),
            read: Some(Bytes::from_mib(90_000)),
            pressure: None,
            load: None,
        });
        node.gpus = read(GpuFacts {
            gpus: vec![spark(96.0 - f32::from(id.0), 45.0, 61.0)],
            processes: vec![GpuProcess {
                pid: 3141,
                name: "VLLM::EngineCore".into(),
                memory: Some(Bytes::from_mib(91_420 - 4400 * u64::from(id.0))),
                container: Some("3f9a".repeat(16)),
                draws: false,
            }],
            processes_unknown: None,
            tool: GpuTool::NvidiaSmi,
        });
        let view = &mut state.nodes[id.index()];
        for i in 0..110u64 {
            let wave = ((i * 37) % 23) as f64;
            let at = Stamp(NOW.stamp.0 - 110_000 + i * 1000);
            view.utilization.push(at, if i < 60 { wave / 3.0 } else { 74.0 + wave });
        }
        // What the load has taken so far, most of it in the last minute.
        if let Some(memory) = node.memory.value().copied() {
            let took = |mib: u64| MemoryFacts {
                available: Bytes(memory.available.0 + (mib << 20)),
                // Each rank reads the files of all.
                read: memory.read.map(|read| Bytes(read.0 - (mib << 21))),
                ..memory
            };
            view.trends.begin();
            view.trends.memory(&took(36_000), ago(483).stamp);
            for back in (0..30).rev() {
                view.trends.memory(&took(100 * back), ago(2 * back + 1).stamp);
            }
        }
        view.load.line(LineFact::NewStart, When::at(ago(482).stamp));
        view.load
            .line(LineFact::Transport(Transport::Ib), When::at(ago(470).stamp));
        if id == state.config.head() {
            view.load
                .line(LineFact::Checkpoint(Bytes(122 << 30)), When::at(ago(481).stamp));
            let first = RankLine {
                name: Some("TP0".into()),
                rank: Some(0),
                pid: Some(490),
                address: None,
                stage: Some(Stage::Weights),
                bar: Some((25, 41)),
            };
            view.load.line(LineFact::Rank(first), When::at(ago(2).stamp));
            for (done, when) in [(0, 480), (12, 300), (25, 2)] {
                let bar = LineFact::Bar {
                    stage: Stage::Weights,
                    done,
                    total: 41,
                };
                view.load.line(bar, When::at(ago(when).stamp));
            }
        } else {
            view.load.stage = None;
            view.load.progress_at = Some(When::at(ago(3).stamp));
        }
    }
    state.observed.ray = read(RayFacts {
        nodes: state
            .config
            .nodes
            .iter()
            .enumerate()
            .map(|(i, n)| member(&n.fabric_address, i == 0))
            .collect(),
        via: RayVia::Dashboard,
        version: Some("2.53.0".into()),
        python: Some("3.12".into()),
        ..RayFacts::default()
    });
    state.server.state = ServingState::Loading;
    state.server.since = ago(482).stamp;
    state.observed.server.health = read(Health::Refused);
    let why = "the server does not answer yet";
    state.server.generation = Reading::absent(why);
    state.server.prompt = Reading::absent(why);
    state.observed.server.metrics = Reading::absent(why);
    state
}

/// Everything is up, requests run.
pub fn ready(config: Config) -> State {
    let mut state = loading(config);
    for node in &mut state.nodes {
        node.load
            .line(LineFact::Stage(Stage::Listening), When::at(ago(190).stamp));
    }
    state.server.state = ServingState::Ready;
    state.server.since = ago(184).stamp;
    state.server.generation = read(27.14);
    state.server.prompt = read(312.0);
    state.server.live = LIVE;
    for i in 0..180u64 {
        let at = Stamp(NOW.stamp.0 - 180_000 + i * 1000);
        let wave = ((i * 29) % 17) as f64 / 4.0;
        state
            .server
            .generation_history
            .push(at, if i < 40 { 0.0 } else { 24.0 + wave });
        state
            .server
            .prompt_history
            .push(at, if i % 31 < 3 { 900.0 } else { 20.0 });
    }
    let server = &mut state.observed.server;
    server.health = read(Health::Ok);
    server.models = read(vec![state.config.serve.name().to_owned()]);
    server.token = read(TokenProof {
        model: state.config.serve.name().to_owned(),
        tokens: 1,
        took: Duration::from_millis(412),
    });
    server.metrics = read(MetricsSample {
        running: Some(1.0),
        waiting: Some(0.0),
        kv_cache: Some(Percent(3.4)),
        finished: Some(128.0),
        preemptions: Some(0.0),
        ..MetricsSample::default()
    });
    let times = |p50, p95| {
        let (p50, p95) = (Quantile::At(p50), Quantile::At(p95));
        read(Quantiles { p50, p95, count: 12.0 })
    };
    state.server.figures = Figures {
        generation: read(27.4),
        ttft: times(0.412, 1.24),
        itl: times(0.0369, 0.0412),
        queue: times(0.0002, 0.0008),
        prefix_hits: read(0.624),
        acceptance: Reading::absent(NOT_EXPORTED),
        preemptions: read(0.0),
        span: Duration::from_secs(60),
    };
    state
}

/// A throughput test with `done` of its requests over.
pub fn bench(done: u32) -> BenchView {
    let profile = BenchProfile {
        requests: 32,
        concurrency: 4,
        prompt_tokens: 512,
        output_tokens: 256,
        warmup: 2,
        request_limit: Duration::from_secs(300),
    };
    let mut view = BenchView::new(profile, ago(75).stamp);
    view.take(BenchEvent::Prompt {
        sizing: PromptSizing::Tokenize,
        tokens: 512,
    });
    view.take(BenchEvent::Warmup { done: 2 });
    for i in 0..done {
        view.take(BenchEvent::Request(record(i)));
        view.take(BenchEvent::Token {
            at: Duration::from_millis(2400 * u64::from(i + 1)),
            chunks: u64::from(i + 1) * 256,
            ttft: None,
        });
    }
    view
}

fn record(index: u32) -> RequestRecord {
    let sent = Duration::from_secs(u64::from(index / 4) * 10);
    let first = Duration::from_millis(390 + u64::from(index) * 7);
    RequestRecord {
        index,
        sent,
        chunks: (0..256)
            .map(|n| sent + first + Duration::from_micros(36_900) * n)
            .collect(),
        output_tokens: 256,
        counted_by_server: true,
        prompt_tokens: Some(512),
        error: None,
    }
}

/// Probes and steps that ran.
pub fn commands(state: &mut State) {
    let limit = Duration::from_secs(10);
    let mut add = |run, node, purpose, command, started: Now, ended, times, output: &[&str]| {
        state.commands.push_back(CommandEntry {
            run: RunId(run),
            node: NodeId(node),
            purpose,
            command,
            started,
            ended,
            times,
            output: output.iter().map(|s| (*s).to_owned()).collect(),
        });
    };
    let probe = || Command::script("probe.node", "echo", vec!["docker".into(), "vllm-qwen35".into()], limit);
    let run = Command::argv(
        ["docker", "run", "-d", "--name", "vllm-qwen35", "--network", "host"],
        limit,
    );
    let image = Command::argv(["docker", "image", "inspect", "hellohal2064/vllm-qwen3.5-gb10"], limit);
    let node = Purpose::Probe(ProbeId::Node);
    add(1, 0, node, probe(), ago(1), Some((Exit::Code(0), 84)), 412, &[]);
    add(2, 1, node, probe(), ago(1), Some((Exit::Code(0), 91)), 411, &[]);
    let missing = ["Error: No such image: hellohal2064/vllm-qwen3.5-gb10"];
    add(
        3,
        1,
        Purpose::Probe(ProbeId::Image),
        image,
        ago(40),
        Some((Exit::Code(1), 120)),
        7,
        &missing,
    );
    add(
        4,
        0,
        Purpose::Step,
        run.clone(),
        ago(720),
        Some((Exit::Code(0), 1310)),
        1,
        &[],
    );
    let conflict =
        ["docker: Error response from daemon: Conflict. The container name \"/vllm-qwen35\" is already in use."];
    add(
        5,
        1,
        Purpose::Step,
        run,
        ago(660),
        Some((Exit::Code(125), 240)),
        1,
        &conflict,
    );
    let follow = Command::argv(["docker", "logs", "--timestamps", "-f", "vllm-qwen35"], limit).follow();
    add(6, 0, Purpose::Log, follow, ago(719), None, 1, &[]);
}

/// The second interface of a node, off the fabric.
pub fn second_interface(state: &mut State, node: usize, name: &str, address: &str) {
    state.observed.nodes[node].fabric = read(FabricFacts {
        interfaces: vec![Interface {
            name: name.into(),
            addresses: vec![address.into()],
            ..Interface::default()
        }],
        rdma: Vec::new(),
        infiniband: true,
    });
}

/// Log lines as the real engine prints them, decoded as in production. Sets the nodes' counters too.
pub fn logs(state: &mut State) -> LogWindows {
    const HEAD: &str = include_str!("head.log");
    const WORKER: &str = include_str!("worker.log");
    let mut windows = LogWindows::default();
    for id in state.config.node_ids() {
        let mut ring = Ring::new(1 << 20);
        let text = if id.0 == 0 { HEAD } else { WORKER };
        Decoder::new().feed(Stream::Err, text.as_bytes(), &mut |edit| ring.apply(edit));
        let window = ring.tail(60);
        state.nodes[id.index()].log = LogMeta {
            seq: window.next_seq,
            dropped: 0,
            at: Some(When::at(ago(2).stamp)),
            ..LogMeta::default()
        };
        windows.0.insert(id, window);
    }
    windows
}

/// A request that the server broke off.
pub fn broken_request() -> RequestRecord {
    RequestRecord {
        error: Some("EngineDeadError: the engine died".into()),
        ..record(5)
    }
}
