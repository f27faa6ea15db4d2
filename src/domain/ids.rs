//! Names of the things the console talks about.

use serde::Serialize;

/// A node of the config, by its place in `Config::nodes`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct NodeId(pub u16);

impl NodeId {
    /// The place in `Config::nodes` and in every per-node list.
    #[must_use]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// A host of the SSH way in (a jump host), by its place in `Config::ssh.jump`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct HopId(pub u16);

impl HopId {
    /// The place in `Config::ssh.jump` and in every per-hop list.
    #[must_use]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// What a node is in the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Runs the Ray head and the model server.
    Head,
    /// Joins the head.
    Worker,
}

impl Role {
    /// The word in the config, on the screen and in container labels.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Head => "head",
            Self::Worker => "worker",
        }
    }
}

/// Where an event comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub enum Source {
    /// A jump host's connection.
    Hop(HopId),
    /// A node's actor.
    Node(NodeId),
    /// The model server, seen through the tunnel.
    Server,
    /// The throughput test.
    Bench,
    /// The person at the keyboard, or the headless command's arguments.
    Operator,
    /// The clock of the drive loop.
    Clock,
}

/// One command run on a node; unique within a console.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct RunId(pub u64);

/// One question to the operator; unique within a console.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct QuestionId(pub u64);

/// A step of a plan, by its place in `Plan::steps`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct StepId(pub u16);

impl StepId {
    /// The place in `Plan::steps`.
    #[must_use]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}
