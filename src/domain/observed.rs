//! Everything that is known of the cluster, by node and reading. The planner and the step machine decide on this alone.

use serde::Serialize;

use super::clock::NodeClock;
use super::container::ContainerFacts;
use super::disk::DiskFacts;
use super::event::Subject;
use super::fabric::FabricFacts;
use super::gpu::GpuFacts;
use super::ids::NodeId;
use super::image::{ImageFacts, InsideFacts, VersionFacts};
use super::link::LinkState;
use super::memory::MemoryFacts;
use super::ray::RayFacts;
use super::reading::Reading;
use super::serving::{Health, MetricsSample, ServeFacts, TokenProof};
use super::sockets::SocketFacts;
use super::time::Stamp;

/// What is known of the cluster.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Observed {
    /// By node, in the config's order.
    pub nodes: Vec<NodeObserved>,
    /// Ray's membership.
    pub ray: Reading<RayFacts>,
    /// The model server.
    pub server: ServerObserved,
}

impl Observed {
    /// Nothing known of so many nodes.
    #[must_use]
    pub fn of(nodes: usize) -> Self {
        Self {
            nodes: vec![NodeObserved::default(); nodes],
            ..Self::default()
        }
    }

    /// Requests that the model server works on, where it is known that there are some.
    #[must_use]
    pub fn running_requests(&self) -> Option<f64> {
        let running = self.server.metrics.value()?.running;
        running.filter(|n| *n >= 1.0)
    }

    /// What is known of a node.
    #[must_use]
    pub fn node(&self, id: NodeId) -> Option<&NodeObserved> {
        self.nodes.get(id.index())
    }
}

/// What is known of a node.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct NodeObserved {
    /// Its SSH connection.
    pub link: LinkState,
    /// Its own clock.
    pub clock: Reading<NodeClock>,
    /// Host memory.
    pub memory: Reading<MemoryFacts>,
    /// GPUs and what holds them.
    pub gpus: Reading<GpuFacts>,
    /// Containers.
    pub containers: Reading<ContainerFacts>,
    /// Listening sockets.
    pub sockets: Reading<SocketFacts>,
    /// Interfaces and RDMA devices.
    pub fabric: Reading<FabricFacts>,
    /// Disks and the model cache.
    pub disk: Reading<DiskFacts>,
    /// The configured image.
    pub image: Reading<ImageFacts>,
    /// Versions in the image.
    pub versions: Reading<VersionFacts>,
    /// Versions in the container that runs.
    pub inside: Reading<InsideFacts>,
    /// Model-server processes in the container (head only).
    pub serve: Reading<ServeFacts>,
    /// The script engine's verb that runs detached on the node.
    pub verb: Reading<VerbFacts>,
}

impl NodeObserved {
    /// When a subject was read last; `None` also for what is not read of a node alone.
    #[must_use]
    pub fn at(&self, what: Subject) -> Option<Stamp> {
        match what {
            Subject::Memory => self.memory.at(),
            Subject::Gpus => self.gpus.at(),
            Subject::Containers => self.containers.at(),
            Subject::Sockets => self.sockets.at(),
            Subject::Fabric => self.fabric.at(),
            Subject::Disk => self.disk.at(),
            Subject::Image => self.image.at(),
            Subject::Versions => self.versions.at(),
            Subject::Serve => self.serve.at(),
            Subject::Verb => self.verb.at(),
            Subject::Inside => self.inside.at(),
            Subject::Ray | Subject::RayStatus => None,
        }
    }
}

/// A detached verb of the script engine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum VerbFacts {
    /// None of ours is there.
    None,
    /// It runs.
    Running {
        /// Verb's name, such as `head`.
        verb: String,
        /// Last lines of its output.
        tail: Vec<String>,
    },
    /// It ended.
    Ended {
        /// Verb's name.
        verb: String,
        /// Exit code.
        code: i32,
        /// Last lines of its output.
        tail: Vec<String>,
    },
}

/// What is known of the model server.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct ServerObserved {
    /// /health.
    pub health: Reading<Health>,
    /// Names in /v1/models.
    pub models: Reading<Vec<String>>,
    /// A token that came back since the server's last start.
    pub token: Reading<TokenProof>,
    /// Last scrape.
    pub metrics: Reading<MetricsSample>,
}
