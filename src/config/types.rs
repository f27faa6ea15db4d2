//! The checked configuration. Every value here has passed every check; nothing else in the program reads the file.

use std::time::Duration;

use serde::Serialize;

use crate::domain::bench::BenchProfile;
use crate::domain::link::HostKeys;
use crate::domain::logs::Wanted;
use crate::domain::secret::SecretFrom;
use crate::domain::units::Bytes;
use crate::domain::{HopId, NodeId, Role};

/// SSH's port.
pub const SSH_PORT: u16 = 22;

/// The whole configuration.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Config {
    /// Name of the cluster; on the screen and in container labels.
    pub cluster: String,
    /// SSH.
    pub ssh: Ssh,
    /// Nodes, the head first, then the workers in the file's order.
    pub nodes: Vec<Node>,
    /// How the model server is started.
    pub engine: Engine,
    /// The container.
    pub container: Container,
    /// The model server.
    pub serve: Serve,
    /// Where each role's log is.
    pub logs: Logs,
    /// Longest waits.
    pub limits: Limits,
    /// What is watched on every node.
    pub watch: Watch,
    /// Why something fails.
    pub diagnose: Diagnose,
    /// The throughput test.
    pub bench: BenchProfile,
    /// Where the API key for the server is, when it wants one.
    pub api_key: Option<SecretFrom>,
    /// Where the Hugging Face token is, when the container needs one.
    pub hf_token: Option<SecretFrom>,
    /// The screen.
    pub ui: Ui,
}

/// How the causes of failures are found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Diagnose {
    /// The file of the operator's own rules; `~` is expanded by `cli`.
    pub rules: Option<String>,
    /// Where the configuration names that file, such as `config.toml:203:9`; empty where it does not.
    #[serde(skip)]
    pub named_at: String,
}

/// The SSH way in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Ssh {
    /// Jump hosts.
    pub jump: Vec<Hop>,
    /// The file that `ssh -F` would get instead of the operator's ssh_config; `~` is expanded later.
    pub ssh_config: Option<String>,
    /// known_hosts files; the first is the one that accepted keys are written to. Empty: those that ssh_config names for an alias, and OpenSSH's own
    /// otherwise. `~` is expanded by `cli`.
    pub known_hosts: Vec<String>,
    /// What becomes of an unknown host key; `None` means what ssh_config says for an alias, and a question otherwise.
    pub host_keys: Option<HostKeys>,
    /// Whether keys of an ssh-agent are tried.
    pub agent: bool,
}

/// How to log in to one host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Login {
    /// Host name or address to dial, as seen from the hop before; or an ssh_config alias (`alias` is then true).
    pub host: String,
    /// TCP port; `None` only for an alias, whose port ssh_config says.
    pub port: Option<u16>,
    /// User; `None` means what ssh_config says for an alias, and the local user's name otherwise.
    pub user: Option<String>,
    /// Private key files in the order in which they are tried; empty means those that ssh_config names for an alias, and the usual names in ~/.ssh
    /// otherwise.
    pub keys: Vec<String>,
    /// Whether `host` is an alias of the operator's ssh_config.
    pub alias: bool,
    /// Whether `via = "direct"` stands there: then ssh_config's ProxyJump and ProxyCommand do not count either.
    pub direct: bool,
}

impl Login {
    /// The port, where an `ssh` command line must name it.
    #[must_use]
    pub fn ssh_port(&self) -> Option<u16> {
        self.port.filter(|port| self.alias || *port != SSH_PORT)
    }
}

/// A jump host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Hop {
    /// Name on the screen.
    pub name: String,
    /// How to log in.
    pub login: Login,
    /// The hop before it; `None` means dialled directly.
    pub via: Option<HopId>,
}

/// A node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Node {
    /// Name on the screen and in labels.
    pub name: String,
    /// Head or worker.
    pub role: Role,
    /// How to log in.
    pub login: Login,
    /// The last jump host before it; `None` means dialled directly.
    pub via: Option<HopId>,
    /// Whether that jump host's own key logs in, through its own `ssh` client (`login = "jump"`), and not a key of the operator's.
    pub relayed: bool,
    /// Address on the fabric: what Ray and vLLM must use.
    pub fabric_address: String,
    /// Interface on the fabric.
    pub fabric_interface: Option<String>,
    /// RDMA devices for NCCL, such as `rocep1s0f1`.
    pub hcas: Vec<String>,
    /// GPUs that Ray must see.
    pub gpus: u32,
}

/// How the model server is started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Engine {
    /// vLLM over Ray in containers that bringup starts.
    VllmRay(VllmRay),
    /// The user's own script.
    Script(Script),
}

/// Settings of the `vllm-ray` engine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct VllmRay {
    /// Ray's port on the head.
    pub ray_port: u16,
    /// Port of Ray's dashboard on the head, asked through the tunnel.
    pub dashboard_port: u16,
    /// Shared memory of the container, as `docker run --shm-size` takes it.
    pub shm_size: String,
    /// More arguments for `docker run`.
    pub docker_run_args: Vec<String>,
    /// More arguments for `ray start`.
    pub ray_start_args: Vec<String>,
    /// More arguments of `ray start` on the head alone.
    pub ray_head_args: Vec<String>,
    /// More arguments for `vllm serve`.
    pub vllm_serve_args: Vec<String>,
}

/// Settings of the `script` engine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Script {
    /// The script's path on each node.
    pub path: String,
    /// Directory it is run in; `None` means the login's home.
    pub directory: Option<String>,
    /// Verb that starts the head.
    pub head: String,
    /// Verb that joins a worker.
    pub worker: String,
    /// Verb that serves the model.
    pub serve: String,
    /// Verb that stops a node; `None` means that the container is stopped and removed by name.
    pub stop: Option<String>,
    /// Ray's port on the head.
    pub ray_port: u16,
    /// Port of Ray's dashboard on the head.
    pub dashboard_port: u16,
}

impl Engine {
    /// The word in the config.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::VllmRay(_) => "vllm-ray",
            Self::Script(_) => "script",
        }
    }

    /// Ray's port on the head.
    #[must_use]
    pub fn ray_port(&self) -> u16 {
        match self {
            Self::VllmRay(e) => e.ray_port,
            Self::Script(e) => e.ray_port,
        }
    }

    /// Port of Ray's dashboard on the head.
    #[must_use]
    pub fn dashboard_port(&self) -> u16 {
        match self {
            Self::VllmRay(e) => e.dashboard_port,
            Self::Script(e) => e.dashboard_port,
        }
    }
}

/// The container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Container {
    /// Image reference.
    pub image: String,
    /// Name, the same on every node.
    pub name: String,
    /// Docker's program, a name or a path, or several words such as `sudo -n docker`: see `domain::command::program`.
    pub docker: String,
    /// Environment, in the file's order.
    pub environment: Vec<(String, String)>,
    /// Volumes as `docker run -v` takes them.
    pub volumes: Vec<String>,
}

/// The model server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Serve {
    /// Model path or hub name.
    pub model: String,
    /// Name under which it is served; `None` means the model's own.
    pub served_name: Option<String>,
    /// HTTP port.
    pub port: u16,
    /// Tensor parallel size.
    pub tensor_parallel_size: u32,
}

impl Serve {
    /// The name that /v1/models must show.
    #[must_use]
    pub fn name(&self) -> &str {
        self.served_name.as_deref().unwrap_or(&self.model)
    }
}

/// Where each role's log is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Logs {
    /// The head's.
    pub head: LogPlace,
    /// A worker's.
    pub worker: LogPlace,
}

impl Logs {
    /// The log of a role.
    #[must_use]
    pub fn of(&self, role: Role) -> &LogPlace {
        match role {
            Role::Head => &self.head,
            Role::Worker => &self.worker,
        }
    }
}

/// Where a log is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum LogPlace {
    /// `docker logs` of a container.
    Container(Wanted),
    /// A file on the node.
    File(String),
    /// A file inside a container.
    ContainerFile(Wanted, String),
    /// What a command line of the user's own prints, run by the node's /bin/sh.
    Command(String),
}

impl LogPlace {
    /// Which container it needs, if it needs one.
    #[must_use]
    pub fn wanted(&self) -> Option<&Wanted> {
        match self {
            Self::Container(wanted) | Self::ContainerFile(wanted, _) => Some(wanted),
            Self::File(_) | Self::Command(_) => None,
        }
    }
}

/// Longest waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Limits {
    /// TCP connection and SSH handshake of one hop.
    pub connect: Duration,
    /// A probe or another short command.
    pub command: Duration,
    /// Pulling the image.
    pub pull: Duration,
    /// From the head's start to its own membership.
    pub head: Duration,
    /// From the workers' start to full membership.
    pub join: Duration,
    /// How long the membership must stay.
    pub settle: Duration,
    /// From the start of the model server to its first token.
    pub serve: Duration,
    /// Longest time without any sign of progress while the model loads: a run gives up then, and a new start is advised.
    pub stall: Duration,
    /// Stopping.
    pub stop: Duration,
    /// One verb of the script engine.
    pub verb: Duration,
}

/// What is watched on every node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Watch {
    /// Available memory below which a node is in danger; zero for no alarm.
    pub memory_floor: Bytes,
    /// Folder of the model cache on the nodes; `None` for the hub's own in the login's home.
    pub cache: Option<String>,
}

/// The screen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Ui {
    /// Name of a theme.
    pub theme: String,
    /// Ring the terminal's bell when the model is ready and when something fails.
    pub bell: bool,
    /// Send a desktop notice (OSC 9) then.
    pub notify: bool,
}

impl Config {
    /// Where the secrets are.
    pub fn secrets(&self) -> impl Iterator<Item = &SecretFrom> {
        [&self.api_key, &self.hf_token].into_iter().flatten()
    }

    /// Ids of all nodes, the head first.
    pub fn node_ids(&self) -> impl Iterator<Item = NodeId> + use<> {
        (0..u16::try_from(self.nodes.len()).unwrap_or(u16::MAX)).map(NodeId)
    }

    /// The node with this id.
    #[must_use]
    pub fn node(&self, id: NodeId) -> Option<&Node> {
        self.nodes.get(id.index())
    }

    /// The head's id: it stands first.
    #[must_use]
    pub fn head(&self) -> NodeId {
        NodeId(0)
    }

    /// Ids of the workers.
    pub fn workers(&self) -> impl Iterator<Item = NodeId> + use<> {
        self.node_ids().skip(1)
    }

    /// Name of a node, or `?`.
    #[must_use]
    pub fn node_name(&self, id: NodeId) -> &str {
        self.node(id).map_or("?", |n| n.name.as_str())
    }

    /// GPUs of all nodes.
    #[must_use]
    pub fn gpus(&self) -> u32 {
        self.nodes.iter().map(|n| n.gpus).sum()
    }
}
