//! A cluster as observed, for unit tests: two reachable Sparks with the image and nothing running, and ways to change it.

use crate::config::Config;
use crate::domain::container::{Container, ContainerFacts, ContainerState, Labels};
use crate::domain::fabric::{FabricFacts, Interface};
use crate::domain::gpu::{Gpu, GpuFacts};
use crate::domain::image::{ImageFacts, VersionFacts};
use crate::domain::link::LinkState;
use crate::domain::observed::{NodeObserved, Observed, VerbFacts};
use crate::domain::ray::{RayFacts, RayNode, RayVia};
use crate::domain::serving::{Health, MetricsSample, ServeFacts, ServeProcess};
use crate::domain::sockets::{Listener, SocketFacts};
use crate::domain::{NodeId, Reading, Stamp};

/// The head.
pub const HEAD: NodeId = NodeId(0);
/// The worker.
pub const WORKER: NodeId = NodeId(1);

fn known<T>(value: T) -> Reading<T> {
    Reading::known(value, Stamp(0))
}

/// Nothing runs, everything is free.
pub fn idle(config: &Config) -> Observed {
    let mut seen = Observed::of(config.nodes.len());
    for (node, configured) in seen.nodes.iter_mut().zip(&config.nodes) {
        let interface = |name: &str, address: &str| Interface {
            name: name.to_owned(),
            addresses: vec![address.to_owned()],
            ..Interface::default()
        };
        let mut interfaces = vec![
            interface("lo", "127.0.0.1"),
            interface("enp1s0f1np1", &configured.fabric_address),
        ];
        if configured.name == "spark-1" {
            interfaces.push(interface("enP7s7", "10.1.230.180"));
        } else {
            interfaces.push(interface("enP2p1s0f1np1", "192.168.201.13"));
        }
        *node = NodeObserved {
            link: LinkState::Up,
            gpus: known(GpuFacts {
                gpus: vec![Gpu::default()],
                ..GpuFacts::default()
            }),
            containers: known(ContainerFacts::default()),
            sockets: known(SocketFacts::default()),
            fabric: known(FabricFacts {
                interfaces,
                rdma: Vec::new(),
                infiniband: true,
            }),
            image: known(ImageFacts::Present {
                id: format!("sha256:{}", configured.name),
                layers: vec!["sha256:aaaa".to_owned(), "sha256:bbbb".to_owned()],
            }),
            versions: known(VersionFacts {
                image_id: format!("sha256:{}", configured.name),
                ray: Some("2.53.0".to_owned()),
                vllm: Some("0.17.0".to_owned()),
                python: Some("3.12.3".to_owned()),
                missing: Vec::new(),
            }),
            verb: known(VerbFacts::None),
            ..NodeObserved::default()
        };
    }
    seen.server.health = known(Health::Refused);
    seen.server.models = Reading::absent("the server's port refuses");
    seen.server.token = Reading::absent("the server's port refuses");
    seen.server.metrics = Reading::absent("the server's port refuses");
    seen.ray = Reading::absent("no container runs");
    seen
}

/// Puts our container on a node.
pub fn container(seen: &mut Observed, config: &Config, node: NodeId, state: ContainerState) {
    let configured = &config.nodes[node.index()];
    let running = state == ContainerState::Running;
    seen.nodes[node.index()].containers = known(ContainerFacts {
        containers: vec![Container {
            id: format!("{:064x}", node.0 + 7),
            name: config.container.name.clone(),
            image: config.container.image.clone(),
            state,
            started_at: None,
            up_seconds: running.then_some(5),
            restarts: 0,
            ours: Some(Labels {
                cluster: config.cluster.clone(),
                role: configured.role.word().to_owned(),
                node: configured.name.clone(),
                hash: config.container_hash(node),
                generation: "1".to_owned(),
            }),
            labels: std::collections::BTreeMap::new(),
            pid: running.then_some(100),
        }],
    });
    if node == HEAD && running {
        seen.nodes[0].serve = known(ServeFacts::default());
        listen(seen, HEAD, &["*:6379"]);
    }
}

/// Sets a node's listeners, each `ADDRESS:PORT`.
pub fn listen(seen: &mut Observed, node: NodeId, all: &[&str]) {
    let listeners = all
        .iter()
        .map(|text| {
            let (address, port) = text.rsplit_once(':').unwrap();
            Listener {
                address: address.to_owned(),
                port: port.parse().unwrap(),
                pid: None,
                container: None,
            }
        })
        .collect();
    seen.nodes[node.index()].sockets = known(SocketFacts { listeners });
}

/// Sets Ray's membership: alive nodes at these addresses, the first one the head, one GPU each.
pub fn ray(seen: &mut Observed, alive: &[&str]) {
    let nodes = alive
        .iter()
        .enumerate()
        .map(|(at, address)| RayNode {
            id: format!("{at:056x}"),
            address: (*address).to_owned(),
            alive: true,
            head: at == 0,
            gpus: 1.0,
            cpus: 20.0,
            ..RayNode::default()
        })
        .collect();
    seen.ray = known(RayFacts {
        nodes,
        via: RayVia::Dashboard,
        ..RayFacts::default()
    });
}

/// Both containers run and Ray is complete.
pub fn joined(config: &Config) -> Observed {
    let mut seen = idle(config);
    container(&mut seen, config, HEAD, ContainerState::Running);
    container(&mut seen, config, WORKER, ContainerState::Running);
    ray(&mut seen, &["192.168.200.12", "192.168.200.13"]);
    seen
}

/// Puts a server process of ours into the head's container, or takes it away.
pub fn server(seen: &mut Observed, config: &Config, runs: bool) {
    let process = ServeProcess {
        pid: 415,
        mark: Some(config.serve_hash()),
        command: "/usr/bin/python3 /usr/local/bin/vllm serve Qwen/Qwen3.5-122B-A10B-FP8".to_owned(),
        up_seconds: Some(3),
    };
    let processes = if runs { vec![process] } else { Vec::new() };
    seen.nodes[0].serve = known(ServeFacts { processes });
}

/// The server answers; so many tokens were generated by its own count.
pub fn answers(seen: &mut Observed, config: &Config, tokens: f64) {
    seen.server.health = known(Health::Ok);
    seen.server.models = known(vec![config.serve.name().to_owned()]);
    seen.server.metrics = known(MetricsSample {
        generation_tokens: Some(tokens),
        ..MetricsSample::default()
    });
}

/// Every reading that is known was read now.
pub fn refresh(seen: &mut Observed, now: Stamp) {
    fn touch<T>(reading: &mut Reading<T>, now: Stamp) {
        if let Reading::Known { at, .. } = reading {
            *at = now;
        }
    }
    for n in &mut seen.nodes {
        touch(&mut n.gpus, now);
        touch(&mut n.containers, now);
        touch(&mut n.sockets, now);
        touch(&mut n.fabric, now);
        touch(&mut n.image, now);
        touch(&mut n.versions, now);
        touch(&mut n.serve, now);
        touch(&mut n.verb, now);
    }
    touch(&mut seen.ray, now);
    touch(&mut seen.server.health, now);
    touch(&mut seen.server.models, now);
    touch(&mut seen.server.metrics, now);
}
