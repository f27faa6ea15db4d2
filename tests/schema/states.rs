//! States of the cluster at several moments, as the console may have them.

use std::time::Duration;

use bringup::domain::clock::NodeClock;
use bringup::domain::container::{Container, ContainerFacts, ContainerState};
use bringup::domain::disk::{Cache, Disk, DiskFacts};
use bringup::domain::event::{Event, EventKind, Subject};
use bringup::domain::fabric::{FabricFacts, Interface, RdmaPort};
use bringup::domain::gpu::{Gpu, GpuFacts, GpuProcess, GpuTool};
use bringup::domain::image::{ImageFacts, VersionFacts};
use bringup::domain::link::{LinkError, LinkErrorKind, LinkState};
use bringup::domain::load::Transport;
use bringup::domain::logs::{ContainerEnd, LogFlow, LogSource, Older, Seeks};
use bringup::domain::memory::MemoryFacts;
use bringup::domain::problem::Problem;
use bringup::domain::ray::{PlacementGroup, RayStatus, StatusFailure};
use bringup::domain::serving::{Health, MetricsOf, MetricsSample, ServeFacts, ServeProcess, ServerFacts, TokenProof};
use bringup::domain::sign::{Sign, SignKind};
use bringup::domain::sockets::{Listener, SocketFacts};
use bringup::domain::units::{Bytes, Celsius, Percent, Watts};
use bringup::domain::{NodeId, Reading, Source, Wall, When};
use bringup::measure::Quantile;
use bringup::measure::window::{Acceptance, Figures, Quantiles};
use bringup::model::state::{LogMeta, ServingState, Unread};
use bringup::model::{State, update};

use crate::build::{NOW, ago, empty, example, idle, loading, read, ready};

/// By name; [`whole`] knows something of everything.
pub fn all() -> Vec<(&'static str, State)> {
    vec![
        ("nothing known", empty(example())),
        ("down", idle(example())),
        ("loading", loading(example())),
        ("ready", ready(example())),
        ("silent node", silent()),
        ("lost node", lost()),
        ("no GPU tool", no_gpu_tool()),
        ("failed", failed()),
        ("Ray by its last resort", last_resort()),
        ("ranks without Ray", ranks()),
        ("another bringup serves", another(true)),
        ("another bringup makes a container", another(false)),
        ("whole", whole()),
    ]
}

/// Another bringup has started the server, or makes a container.
fn another(serves: bool) -> State {
    if serves {
        let mut state = loading(example());
        state.observed.nodes[0].serve = read(ServeFacts {
            processes: vec![ServeProcess {
                pid: 7,
                mark: Some("2ef2b83c8233".into()),
                command: "vllm serve m".into(),
                up_seconds: Some(400),
            }],
        });
        return state;
    }
    let mut state = idle(example());
    let mut made = crate::build::container(&state, NodeId(1), 0);
    (made.state, made.up_seconds) = (ContainerState::Created, None);
    state.observed.nodes[1].containers = read(ContainerFacts { containers: vec![made] });
    state
}

/// No source but `ray status` answers.
fn last_resort() -> State {
    let mut state = loading(example());
    state.observed.ray = Reading::absent("connection refused");
    let status = RayStatus {
        nodes: 2,
        gpus: Some((0.0, 2.0)),
        failures: vec![StatusFailure {
            text: "RayletUnexpectedlyDied".into(),
            address: Some("10.0.0.2".into()),
        }],
        demands: vec!["{'GPU': 1.0}: 1+ pending tasks/actors".into()],
        devices: vec![("TPU".into(), 1.0)],
    };
    state.ray.status = read(status);
    tell(
        &mut state,
        EventKind::Server(ServerFacts::Ray(Err("connection refused".into()))),
    );
    state
}

/// Takes an event of the head.
fn tell(state: &mut State, kind: EventKind) {
    let (source, at) = (Source::Node(NodeId(0)), ago(2));
    update(state, Event { source, at, kind });
    state.now = NOW;
}

/// The server finds its ranks by itself.
fn ranks() -> State {
    let mut state = loading(example());
    state.observed.nodes[0].serve = read(ServeFacts {
        processes: vec![ServeProcess {
            pid: 7,
            mark: None,
            command: "vllm serve m --nnodes 2 --node-rank 0".into(),
            up_seconds: None,
        }],
    });
    state.observed.nodes[1].link = LinkState::Silent { since: ago(7).stamp };
    state
}

/// All that Ray says.
fn membership(state: &mut State) {
    if let Reading::Known { value, .. } = &mut state.observed.ray {
        value.nodes[0].devices = vec![("TPU".into(), 1.0)];
        value.nodes[0].accelerator = Some("GB10".into());
        value.pending = vec![PlacementGroup {
            id: "39".into(),
            state: "PENDING".into(),
            bundles: vec![[("GPU".to_owned(), 1.0), ("node:10.0.0.9".to_owned(), 0.001)].into()],
            asked_ms: Some(NOW.wall.0 - 310_000),
            infeasible: true,
        }];
    }
}

fn silent() -> State {
    let mut state = ready(example());
    let since = ago(7).stamp;
    state.observed.nodes[1].link = LinkState::Silent { since };
    state.observed.nodes[1].memory = Reading::known(MemoryFacts::default(), ago(9).stamp);
    state
}

fn lost() -> State {
    let mut state = ready(example());
    let error = |fix: Option<&str>| LinkError {
        kind: LinkErrorKind::HostKeyChanged,
        text: "spark-2 has another key".into(),
        fix: fix.map(str::to_owned),
    };
    let since = ago(7).stamp;
    let down = |fix, retry_at| LinkState::Down {
        error: error(fix),
        since,
        retry_at,
    };
    state.hops[0] = down(Some("ssh-keygen -R spark-2"), None);
    state.observed.nodes[0].link = LinkState::Asking;
    state.observed.nodes[1].link = down(None, Some(ago(0).stamp));
    state
}

fn no_gpu_tool() -> State {
    let mut state = idle(example());
    let why = "no GPU tool on the node: neither nvidia-smi nor rocm-smi nor amd-smi";
    state.observed.nodes[0].gpus = Reading::absent(why);
    let since = ago(30).stamp;
    state.nodes[0]
        .unread
        .insert(Subject::Gpus, Unread { why: why.into(), since });
    state.nodes[0].problems = vec![Problem::warning(why), Problem::error("x").with_fix("y")];
    state
}

/// A cause with its echo, both in the words of a log.
fn nccl_failed(state: &mut State) {
    let said = [
        (1, 40, "nccl-memlock", "NCCL WARN Call to ibv_reg_mr failed"),
        (0, 30, "nccl-error", "RuntimeError: NCCL error: unhandled system error"),
    ];
    for (node, seconds, rule, text) in said {
        let sign = Sign {
            what: SignKind::Rule(rule.to_owned()),
            text: text.to_owned(),
            written: None,
            backlog: false,
            fields: Vec::new(),
            times: 1,
        };
        state.evidence.log(NodeId(node), NodeId(0), sign, ago(seconds));
    }
}

fn failed() -> State {
    let mut state = loading(example());
    nccl_failed(&mut state);
    state.nodes[0].load.failures = vec![(When::at(ago(30).stamp), "RuntimeError: NCCL error".into())];
    state.server.state = ServingState::Failed("the server ended".into());
    let named = state.config.container.name.clone();
    let ended = Container {
        id: "77aa".repeat(16),
        name: named,
        image: "image".into(),
        state: ContainerState::Exited { code: 137, oom: true },
        started_at: None,
        up_seconds: None,
        restarts: 3,
        ours: None,
        labels: std::collections::BTreeMap::new(),
        pid: None,
    };
    let odd = Container {
        name: "other".into(),
        state: ContainerState::Other("removing".into()),
        ..ended.clone()
    };
    state.observed.nodes[1].containers = read(ContainerFacts {
        containers: vec![ended, odd],
    });
    let (nothing, ray) = (
        LogSource::Nothing {
            wanted: "container whose name fits node-*".into(),
        },
        LogSource::Ray {
            container: "vllm-qwen35".into(),
        },
    );
    state.nodes[0].log.source = Some((nothing, ago(60).stamp));
    state.nodes[0].ended = Some((
        ContainerEnd {
            id: "99".repeat(32),
            name: "node-1".into(),
            code: None,
            oom: false,
            available: None,
            unasked: Some("no answer in time".into()),
        },
        ago(60).stamp,
    ));
    state.nodes[1].log.source = Some((ray, ago(3).stamp));
    state
}

/// Something of everything: no list is empty and no field that can be known is unknown.
pub fn whole() -> State {
    let mut state = ready(example());
    nccl_failed(&mut state);
    let bytes = Some(Bytes(5));
    let node = &mut state.observed.nodes[0];
    node.memory = read(MemoryFacts {
        total: Bytes(1000),
        available: Bytes(100),
        free: bytes,
        cached: bytes,
        swap_used: bytes,
        held: Some(Bytes(300)),
        read: bytes,
        pressure: Some(Percent(1.5)),
        load: Some(0.25),
    });
    node.gpus = read(GpuFacts {
        gpus: vec![Gpu {
            index: 0,
            name: "NVIDIA GB10".into(),
            utilization: Some(Percent(96.0)),
            memory_used: bytes,
            memory_total: bytes,
            unified: true,
            power: Some(Watts(45.0)),
            temperature: Some(Celsius(61.0)),
            slices: vec!["3g.71gb".into()],
        }],
        processes: vec![GpuProcess {
            pid: 7,
            name: "VLLM::EngineCore".into(),
            memory: Some(Bytes(400)),
            container: Some("3f9a".into()),
            draws: false,
        }],
        processes_unknown: None,
        tool: GpuTool::NvidiaSmi,
    });
    let word = |text: &str| Some(text.to_owned());
    node.sockets = read(SocketFacts {
        listeners: vec![Listener {
            address: "*".into(),
            port: 8000,
            pid: Some(7),
            container: word("3f9a"),
        }],
    });
    node.fabric = read(FabricFacts {
        interfaces: vec![Interface {
            name: "enp1s0f1np1".into(),
            addresses: vec!["192.168.200.12".into()],
            state: word("up"),
            speed: Some(200_000),
            mtu: Some(9000),
        }],
        rdma: vec![RdmaPort {
            device: "rocep1s0f1".into(),
            port: 1,
            state: word("ACTIVE"),
            rate: word("200 Gb/sec (4X HDR)"),
            layer: word("Ethernet"),
            interface: word("enp1s0f1np1"),
            sent: bytes,
            received: bytes,
            downs: Some(0),
        }],
        infiniband: true,
    });
    node.disk = read(DiskFacts {
        disks: vec![Disk {
            mount: "/".into(),
            total: Bytes(9),
            available: Bytes(3),
        }],
        cache: Some(Cache {
            path: "/root/.cache/huggingface/hub".into(),
            size: Bytes(2),
        }),
        cache_unknown: None,
    });
    node.image = read(ImageFacts::Present {
        id: "sha256:1".into(),
        layers: vec!["sha256:2".into()],
    });
    node.versions = read(VersionFacts {
        image_id: "sha256:1".into(),
        ray: word("2.53.0"),
        vllm: word("0.17.0"),
        python: word("3.12.3"),
        missing: vec!["No module named 'x'".into()],
    });
    node.serve = read(ServeFacts {
        processes: vec![ServeProcess {
            pid: 99,
            mark: word("abc"),
            command: "vllm serve org/model".into(),
            up_seconds: Some(700),
        }],
    });
    let mut other = node
        .containers
        .value()
        .and_then(|c| c.containers.first())
        .cloned()
        .expect("ours runs");
    other.name = "other".into();
    if let Reading::Known { value, .. } = &mut node.containers {
        value.containers.push(other);
    }
    let clock = NodeClock {
        shows: Wall(1_795_971_600_000),
        within: Duration::from_millis(40),
    };
    node.clock = Reading::known(clock, ago(3).stamp);
    let silence = Unread {
        why: "docker hangs".into(),
        since: ago(3).stamp,
    };
    state.nodes[0].unread.insert(Subject::Containers, silence);
    state.nodes[0].problems = vec![Problem::warning("a").with_fix("b")];
    state.nodes[0].load = loading(example()).nodes[0].load.clone();
    state.nodes[0].load.failures = vec![(When::at(ago(30).stamp), "RuntimeError: x".into())];
    state.nodes[0].load.transports = vec![Transport::Ib, Transport::Socket];
    state.nodes[0].log = LogMeta {
        seq: 9,
        dropped: 2,
        at: Some(When::at(ago(1).stamp)),
        flow: LogFlow {
            older: Some(Older::Bytes(Bytes(7))),
            seeks: Some(Seeks {
                since: ago(9).stamp,
                again: true,
            }),
            ..LogFlow::default()
        },
        source: Some((
            LogSource::Absent {
                what: "/var/log/vllm.log".into(),
                why: "there is no such file".into(),
                said: Some("ls: cannot access '/var/log/vllm.log': No such file or directory".into()),
            },
            ago(9).stamp,
        )),
        ..LogMeta::default()
    };
    let end = ContainerEnd {
        id: "77aa".repeat(16),
        name: "node-1233".into(),
        code: Some(137),
        oom: true,
        available: Some(Bytes(3)),
        unasked: None,
    };
    state.nodes[0].ended = Some((end, ago(20).stamp));
    membership(&mut state);
    serving(&mut state);
    state
}

/// Every figure of the server.
fn serving(state: &mut State) {
    let n = Some(3.0);
    let server = &mut state.observed.server;
    server.health = read(Health::Ok);
    server.models = read(vec!["org/model".into()]);
    server.token = read(TokenProof {
        model: "org/model".into(),
        tokens: 1,
        took: Duration::from_millis(1500),
    });
    server.metrics = read(MetricsSample {
        of: Some(MetricsOf::LlamaCpp),
        generation_tokens: n,
        prompt_tokens: n,
        running: n,
        waiting: n,
        kv_cache: Some(Percent(12.0)),
        finished: n,
        preemptions: n,
        ..MetricsSample::default()
    });
    let quantiles = || {
        read(Quantiles {
            p50: Quantile::At(0.125),
            p95: Quantile::Above(2.5),
            count: 4.0,
        })
    };
    state.server.generation = read(27.5);
    state.server.prompt = read(9.5);
    state.server.figures = Figures {
        generation: read(17.25),
        ttft: quantiles(),
        itl: quantiles(),
        queue: quantiles(),
        prefix_hits: read(0.25),
        acceptance: read(Acceptance {
            length: Some(2.5),
            rate: Some(0.75),
        }),
        preemptions: read(1.0),
        span: Duration::from_secs(60),
    };
    state.server.state = ServingState::Degraded("a rank is lost".into());
}
