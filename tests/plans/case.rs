//! A case: an action, one of a few configurations, and what is seen where it differs from two idle Sparks.

use std::collections::BTreeMap;

use bringup::config::types::{Engine, Script};
use bringup::config::{self, Config};
use bringup::domain::container::{Container, ContainerFacts, ContainerState, Labels};
use bringup::domain::fabric::{FabricFacts, Interface};
use bringup::domain::gpu::{Gpu, GpuFacts, GpuProcess, GpuTool};
use bringup::domain::image::{ImageFacts, VersionFacts};
use bringup::domain::intent::Action;
use bringup::domain::link::{LinkError, LinkErrorKind, LinkState};
use bringup::domain::observed::{NodeObserved, Observed, VerbFacts};
use bringup::domain::ray::{RayFacts, RayNode, RayVia};
use bringup::domain::secret::SecretFrom;
use bringup::domain::serving::{Health, MetricsSample, ServeFacts, ServeProcess};
use bringup::domain::sockets::{Listener, SocketFacts};
use bringup::domain::units::Bytes;
use bringup::domain::{NodeId, Reading, Stamp};
use serde::Deserialize;

/// When everything was seen.
const SEEN: Stamp = Stamp(59_000);

/// What a file holds.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// One sentence.
    pub about: String,
    action: String,
    #[serde(default = "example")]
    config: String,
    /// A part of each refusal, in order.
    #[serde(default)]
    pub refusals: Vec<String>,
    /// By node name.
    #[serde(default)]
    node: BTreeMap<String, Seen>,
    /// Ray's nodes: `ADDRESS alive|dead GPUS`, the first one the head.
    ray: Option<Vec<String>>,
    /// Running and waiting requests.
    requests: Option<(f64, f64)>,
    /// The server answers.
    #[serde(default)]
    healthy: bool,
}

fn example() -> String {
    "example".to_owned()
}

/// What is seen of a node; what is left out is as on an idle Spark.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Seen {
    /// `up`, `connecting`, `asking` or the error of a link that is down.
    link: Option<String>,
    /// Nothing was answered yet.
    #[serde(default)]
    silent: bool,
    /// `missing`, `unknown`, or the last layer.
    image: Option<String>,
    /// `RAY VLLM PYTHON`; a dash for a module that is not there.
    versions: Option<String>,
    container: Option<SeenContainer>,
    /// `ADDRESS:PORT`
    listen: Option<Vec<String>>,
    /// `NAME ADDRESS`
    interfaces: Option<Vec<String>>,
    infiniband: Option<bool>,
    /// `PID NAME GIB`
    gpu: Option<Vec<String>>,
    /// Model servers: `ours`, `other` (another configuration's) or the command line of a foreign one.
    serve: Option<Vec<String>>,
    /// The list of model servers was not read yet.
    #[serde(default)]
    serve_unknown: bool,
    /// `running VERB` or `ended VERB CODE`.
    verb: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SeenContainer {
    /// `running`, `created`, `paused`, `restarting` or an exit code.
    state: String,
    /// `ours`, `old` (ours, of another configuration), `foreign` or another cluster's name.
    #[serde(default = "ours")]
    whose: String,
    /// Another name than the configured one.
    name: Option<String>,
    /// Milliseconds since 1970 of the action that made it.
    #[serde(default = "first")]
    generation: u64,
}

fn first() -> u64 {
    1
}

fn ours() -> String {
    "ours".to_owned()
}

impl Case {
    pub fn action(&self) -> Action {
        match self.action.as_str() {
            "head" => Action::Head,
            "workers" => Action::Workers,
            "serve" => Action::Serve,
            "up" => Action::Up,
            "stop-serve" => Action::StopServe,
            "stop-all" => Action::StopAll,
            other => panic!("no action {other}"),
        }
    }

    pub fn config(&self) -> Config {
        let mut config = config::parse(config::EXAMPLE, "config.example.toml").unwrap();
        for word in self.config.split('+') {
            match word {
                "example" => {}
                "alone" => config.nodes.truncate(1),
                "uneven" => {
                    config.nodes[1].fabric_interface = Some("enP2p1s0f1np1".to_owned());
                    config.nodes[1].hcas = vec!["roceP2p1s0f1".to_owned()];
                }
                "no-dashboard" => {
                    if let Engine::VllmRay(ray) = &mut config.engine {
                        ray.ray_head_args = vec!["--include-dashboard=false".to_owned()];
                    }
                }
                "plain" => config.nodes.iter_mut().for_each(|n| {
                    n.fabric_interface = None;
                    n.hcas.clear();
                }),
                "secrets" => {
                    config.hf_token = Some(SecretFrom::File("~/keys/hf token".to_owned()));
                    config.api_key = Some(SecretFrom::Variable("MY_API_KEY".to_owned()));
                }
                "script" | "script-stop" => {
                    config.engine = Engine::Script(Script {
                        path: "./spark-vllm-qwen35.sh".to_owned(),
                        directory: Some("/home/aurora".to_owned()),
                        head: "head".to_owned(),
                        worker: "worker".to_owned(),
                        serve: "serve".to_owned(),
                        stop: (word == "script-stop").then(|| "stop".to_owned()),
                        ray_port: 6379,
                        dashboard_port: 8265,
                    });
                }
                other => panic!("no configuration {other}"),
            }
        }
        config
    }

    pub fn observed(&self, config: &Config) -> Observed {
        for name in self.node.keys() {
            assert!(config.nodes.iter().any(|n| n.name == *name), "no node {name}");
        }
        let idle = Seen::default();
        let mut observed = Observed::of(config.nodes.len());
        for id in config.node_ids() {
            let seen = self.node.get(config.node_name(id)).unwrap_or(&idle);
            observed.nodes[id.index()] = seen.node(config, id);
        }
        if let Some(nodes) = &self.ray {
            let nodes = nodes.iter().enumerate().map(|(at, text)| ray_node(at, text)).collect();
            observed.ray = known(RayFacts {
                nodes,
                via: RayVia::Dashboard,
                ..RayFacts::default()
            });
        }
        observed.server.health = known(if self.healthy { Health::Ok } else { Health::Refused });
        if let Some((running, waiting)) = self.requests {
            observed.server.metrics = known(MetricsSample {
                running: Some(running),
                waiting: Some(waiting),
                ..MetricsSample::default()
            });
        }
        observed
    }
}

impl Seen {
    fn node(&self, config: &Config, id: NodeId) -> NodeObserved {
        let link = self.link();
        if self.silent {
            return NodeObserved {
                link,
                ..NodeObserved::default()
            };
        }
        let head = id == config.head();
        NodeObserved {
            link,
            gpus: known(self.gpus()),
            containers: known(self.containers(config, id)),
            sockets: known(self.sockets()),
            fabric: known(self.fabric(config, id)),
            image: self.image(id),
            versions: known(self.versions(id)),
            serve: if head && !self.serve_unknown {
                known(self.serve(config))
            } else {
                Reading::default()
            },
            verb: known(self.verb()),
            ..NodeObserved::default()
        }
    }

    fn link(&self) -> LinkState {
        match self.link.as_deref() {
            None | Some("up") => LinkState::Up,
            Some("connecting") => LinkState::Connecting,
            Some("asking") => LinkState::Asking,
            Some(error) => LinkState::Down {
                error: LinkError {
                    kind: LinkErrorKind::Refused,
                    text: error.to_owned(),
                    fix: Some("ssh-copy-id through the jump host".to_owned()),
                },
                since: SEEN,
                retry_at: None,
            },
        }
    }

    fn gpus(&self) -> GpuFacts {
        let processes = self.gpu.iter().flatten().map(|text| {
            let words: Vec<&str> = text.split(' ').collect();
            GpuProcess {
                pid: words[0].parse().unwrap(),
                name: words[1].to_owned(),
                memory: Some(Bytes(words[2].parse::<u64>().unwrap() << 30)),
                container: None,
                draws: false,
            }
        });
        GpuFacts {
            gpus: vec![Gpu::default()],
            processes: processes.collect(),
            processes_unknown: None,
            tool: GpuTool::NvidiaSmi,
        }
    }

    fn containers(&self, config: &Config, id: NodeId) -> ContainerFacts {
        let Some(seen) = &self.container else {
            return ContainerFacts::default();
        };
        let state = match seen.state.as_str() {
            "running" => ContainerState::Running,
            "created" => ContainerState::Created,
            "paused" => ContainerState::Paused,
            "restarting" => ContainerState::Restarting,
            code => ContainerState::Exited {
                code: code.parse().unwrap(),
                oom: false,
            },
        };
        let node = config.node(id).unwrap();
        let label = |cluster: &str, hash: &str| Labels {
            cluster: cluster.to_owned(),
            role: node.role.word().to_owned(),
            node: node.name.clone(),
            hash: hash.to_owned(),
            generation: seen.generation.to_string(),
        };
        let ours = match seen.whose.as_str() {
            "ours" => Some(label(&config.cluster, &config.container_hash(id))),
            "old" => Some(label(&config.cluster, "0123456789ab")),
            "foreign" => None,
            cluster => Some(label(cluster, "0123456789ab")),
        };
        let container = Container {
            id: "c".repeat(64),
            name: seen.name.clone().unwrap_or_else(|| config.container.name.clone()),
            image: config.container.image.clone(),
            pid: (state == ContainerState::Running).then_some(100),
            state,
            started_at: None,
            up_seconds: None,
            restarts: 0,
            ours,
            labels: std::collections::BTreeMap::new(),
        };
        ContainerFacts {
            containers: vec![container],
        }
    }

    fn sockets(&self) -> SocketFacts {
        let listeners = self.listen.iter().flatten().map(|text| {
            let (address, port) = text.rsplit_once(':').unwrap();
            Listener {
                address: address.to_owned(),
                port: port.parse().unwrap(),
                pid: Some(4711),
                container: None,
            }
        });
        SocketFacts {
            listeners: listeners.collect(),
        }
    }

    fn fabric(&self, config: &Config, id: NodeId) -> FabricFacts {
        let node = config.node(id).unwrap();
        let own = format!(
            "{} {}",
            node.fabric_interface.as_deref().unwrap_or("enp1s0f1np1"),
            node.fabric_address
        );
        let external = "enP7s7 10.1.230.180".to_owned();
        let idle = if id == config.head() {
            vec![own, external]
        } else {
            vec![own]
        };
        let interfaces = self.interfaces.as_ref().unwrap_or(&idle).iter().map(|text| {
            let (name, address) = text.split_once(' ').unwrap();
            Interface {
                name: name.to_owned(),
                addresses: vec![address.to_owned()],
                ..Interface::default()
            }
        });
        FabricFacts {
            interfaces: interfaces.collect(),
            rdma: Vec::new(),
            infiniband: self.infiniband.unwrap_or(true),
        }
    }

    /// Ids differ between hosts for equal content, as on real ones.
    fn image(&self, id: NodeId) -> Reading<ImageFacts> {
        match self.image.as_deref() {
            Some("missing") => known(ImageFacts::Missing),
            Some("unknown") => Reading::absent("not asked yet"),
            last => known(ImageFacts::Present {
                id: format!("sha256:id-{}", id.0),
                layers: vec!["sha256:base".to_owned(), format!("sha256:{}", last.unwrap_or("top"))],
            }),
        }
    }

    fn versions(&self, id: NodeId) -> VersionFacts {
        let text = self.versions.as_deref().unwrap_or("2.53.0 0.17.0 3.12.3");
        let mut words = text.split(' ').map(|w| (w != "-").then(|| w.to_owned()));
        VersionFacts {
            image_id: format!("sha256:id-{}", id.0),
            ray: words.next().flatten(),
            vllm: words.next().flatten(),
            python: words.next().flatten(),
            missing: Vec::new(),
        }
    }

    fn serve(&self, config: &Config) -> ServeFacts {
        let processes = self.serve.iter().flatten().map(|text| ServeProcess {
            pid: 415,
            mark: match text.as_str() {
                "ours" => Some(config.serve_hash()),
                "other" => Some("0123456789ab".to_owned()),
                _ => None,
            },
            command: if text.contains(' ') {
                text.clone()
            } else {
                "vllm serve M".to_owned()
            },
            up_seconds: None,
        });
        ServeFacts {
            processes: processes.collect(),
        }
    }

    fn verb(&self) -> VerbFacts {
        let Some(text) = &self.verb else { return VerbFacts::None };
        let words: Vec<&str> = text.split(' ').collect();
        let verb = words[1].to_owned();
        let tail = vec!["its last line".to_owned()];
        match words[0] {
            "running" => VerbFacts::Running { verb, tail },
            "ended" => VerbFacts::Ended {
                verb,
                code: words[2].parse().unwrap(),
                tail,
            },
            other => panic!("no state {other}"),
        }
    }
}

fn ray_node(at: usize, text: &str) -> RayNode {
    let words: Vec<&str> = text.split(' ').collect();
    RayNode {
        id: format!("{at:056x}"),
        address: words[0].to_owned(),
        alive: words[1] == "alive",
        head: at == 0,
        gpus: words[2].parse().unwrap(),
        cpus: 20.0,
        ..RayNode::default()
    }
}

fn known<T>(value: T) -> Reading<T> {
    Reading::known(value, SEEN)
}
