//! Containers of a node, as `docker ps -a` and `docker inspect` tell.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;

/// What Docker says of a node's containers.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct ContainerFacts {
    /// Every container that runs, carries our label or has a configured name, and the latest of those that have ended and whose log is wanted, in Docker's
    /// order.
    pub containers: Vec<Container>,
}

impl ContainerFacts {
    /// The container with this name.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<&Container> {
        self.containers.iter().find(|c| c.name == name)
    }
}

/// One container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Container {
    /// Full id, 64 hex digits.
    pub id: String,
    /// Name without the leading slash.
    pub name: String,
    /// Image reference it was made from.
    pub image: String,
    /// What it does.
    pub state: ContainerState,
    /// Start time as Docker prints it (RFC 3339), when it was started.
    pub started_at: Option<String>,
    /// Seconds since its start by the node's own clock, while it runs.
    pub up_seconds: Option<u64>,
    /// Times Docker restarted it.
    pub restarts: u32,
    /// Our labels, when it carries them.
    pub ours: Option<Labels>,
    /// All its labels, the image's among them, by their keys.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Process id of its first process on the host; `None` when it does not run.
    pub pid: Option<u32>,
}

impl Container {
    /// When it was started, as a time that can be compared: Docker leaves out zeros at the end.
    #[must_use]
    pub fn started(&self) -> Option<Timestamp> {
        self.started_at.as_ref()?.parse().ok()
    }
}

/// State of a container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum ContainerState {
    /// Made, not started.
    Created,
    /// Runs.
    Running,
    /// Frozen.
    Paused,
    /// Between two starts.
    Restarting,
    /// Ended, with its exit code and whether the kernel killed it for memory.
    Exited {
        /// Exit code.
        code: i32,
        /// `State.OOMKilled`.
        oom: bool,
    },
    /// Another word of Docker's, such as `dead` or `removing`.
    Other(String),
}

impl ContainerState {
    /// In words, such as "exited, code 137, out of memory".
    #[must_use]
    pub fn words(&self) -> String {
        match self {
            Self::Created => "created, not started".to_owned(),
            Self::Running => "running".to_owned(),
            Self::Paused => "paused".to_owned(),
            Self::Restarting => "restarting".to_owned(),
            Self::Exited { code, oom: false } => format!("exited, code {code}"),
            Self::Exited { code, oom: true } => format!("exited, code {code}, out of memory"),
            Self::Other(word) => word.clone(),
        }
    }
}

/// Keys of the labels that our containers carry.
pub mod label {
    /// Name of the cluster.
    pub const CLUSTER: &str = "io.bringup.cluster";
    /// `head` or `worker`.
    pub const ROLE: &str = "io.bringup.role";
    /// Node name in the config.
    pub const NODE: &str = "io.bringup.node";
    /// Configuration hash, see `config::Config::container_hash`.
    pub const HASH: &str = "io.bringup.hash";
    /// Start time of the action that made it, milliseconds since 1970: all containers of one bring-up share it.
    pub const GENERATION: &str = "io.bringup.generation";
}

/// Our labels on a container.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Labels {
    /// [`label::CLUSTER`].
    pub cluster: String,
    /// [`label::ROLE`].
    pub role: String,
    /// [`label::NODE`].
    pub node: String,
    /// [`label::HASH`].
    pub hash: String,
    /// [`label::GENERATION`].
    pub generation: String,
}
