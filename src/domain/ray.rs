//! Ray's membership.

use serde::Serialize;

/// What Ray says of its nodes.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct RayFacts {
    /// All nodes that Ray lists, dead ones too.
    pub nodes: Vec<RayNode>,
    /// Where it was read.
    pub via: RayVia,
}

impl RayFacts {
    /// Nodes that Ray calls alive.
    pub fn alive(&self) -> impl Iterator<Item = &RayNode> {
        self.nodes.iter().filter(|n| n.alive)
    }

    /// The alive node registered at this address.
    #[must_use]
    pub fn alive_at(&self, address: &str) -> Option<&RayNode> {
        self.alive().find(|n| n.address == address)
    }
}

/// Whether Ray sees as many GPUs as the config expects, neither fewer nor more. Ray counts in fractions.
#[must_use]
pub fn gpus_match(seen: f64, expected: u32) -> bool {
    (seen - f64::from(expected)).abs() < 0.5
}

impl RayNode {
    /// Whether the node has as many GPUs as the config expects of it.
    #[must_use]
    pub fn has_gpus(&self, expected: u32) -> bool {
        gpus_match(self.gpus, expected)
    }
}

/// How membership was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RayVia {
    /// The dashboard's HTTP (`/api/v0/nodes`).
    #[default]
    Dashboard,
    /// A Python in the head's container that asks the GCS.
    Container,
}

/// One Ray node.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct RayNode {
    /// Ray's node id, hex.
    pub id: String,
    /// Address it registered with (`NodeManagerAddress`, `node_ip`).
    pub address: String,
    /// Whether Ray calls it alive. Ray itself notices a lost host late.
    pub alive: bool,
    /// Whether it is the head.
    pub head: bool,
    /// `GPU` of its resources; 0 when Ray lists none.
    pub gpus: f64,
    /// `CPU` of its resources.
    pub cpus: f64,
    /// Why it is dead or what Ray says of its state.
    pub message: Option<String>,
}
