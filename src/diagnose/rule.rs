//! What a rule is.

use std::collections::BTreeMap;

use regex::Regex;
use serde::{Deserialize, Serialize};

use crate::domain::{NodeId, Wall};

use super::template::Template;

/// A rule: what it is a sign of, and its signs.
#[derive(Debug, Clone)]
pub struct Rule {
    /// Its name.
    pub id: String,
    /// What a match is.
    pub kind: Kind,
    /// Steps of a plan beside which it is shown.
    pub step: Vec<Step>,
    /// One clause that names the cause.
    pub cause: Template,
    /// What to do.
    pub fix: Option<Template>,
    /// What to run.
    pub command: Option<Template>,
    /// Where the command runs.
    pub on: On,
    /// Rules that it follows from.
    pub of: Vec<String>,
    /// Whether its words leave another explanation.
    pub likely: bool,
    pub(super) signs: Vec<TextSign>,
    /// Facts of the cluster that are a sign of it.
    pub facts: Vec<FactName>,
}

impl Rule {
    /// Whether it follows from any cause there is.
    pub(super) fn of_any(&self) -> bool {
        self.of.iter().any(|id| id == ANY)
    }
}

/// The word for every cause in [`Rule::of`].
pub(super) const ANY: &str = "*";

/// What a match of a rule is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// It may be why.
    Cause,
    /// It follows from something else.
    Echo,
    /// Nothing fails by it; worth knowing.
    Warning,
    /// It only says that the cause stands elsewhere.
    Pointer,
    /// It says nothing, whatever its words are.
    Quiet,
}

/// Steps of a plan that a rule can be about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Step {
    /// Pulling the image.
    Pull,
    /// Comparing image and versions.
    Image,
    /// Starting the head.
    Head,
    /// Joining a worker.
    Join,
    /// The whole membership.
    Membership,
    /// Serving the model.
    Serve,
}

/// Where a text was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// Any node's log.
    Log,
    /// The head's log.
    HeadLog,
    /// A worker's log.
    WorkerLog,
    /// The output of a command or verb that failed.
    Output,
    /// What a probe complains of.
    Probe,
}

impl Place {
    /// Whether a sign that is looked for at these places counts here. A log is the head's or a worker's, and any node's too.
    pub(super) fn among(self, places: &[Self]) -> bool {
        let any_log = match self {
            Self::Log | Self::HeadLog | Self::WorkerLog => places.contains(&Self::Log),
            Self::Output | Self::Probe => false,
        };
        any_log || places.contains(&self)
    }
}

/// The node on which a rule's command runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum On {
    /// Where the cause is.
    #[default]
    Node,
    /// The head.
    Head,
}

/// A sign in text.
#[derive(Debug, Clone)]
pub(super) struct TextSign {
    pub places: Vec<Place>,
    pub has: String,
    pub pattern: Option<Regex>,
    pub then: Vec<Regex>,
    /// A group that must hold an address of none of the nodes.
    pub foreign: Option<String>,
    /// A group that holds the address of the node that the cause is about.
    pub about: Option<String>,
    /// Groups that must hold at least so much.
    pub at_least: BTreeMap<String, u64>,
    /// How often it must come.
    pub times: u64,
}

impl TextSign {
    /// Whether more than the line's own words decides.
    pub fn guarded(&self) -> bool {
        self.foreign.is_some() || !self.at_least.is_empty() || self.times > 1
    }
}

/// What of the cluster can be a sign, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FactName {
    /// Ray has a node alive at another address than its fabric address.
    RayAddressDiffers,
    /// The engine waits for GPUs, and those of all nodes that Ray has alive are fewer than its tensor parallel size.
    GpusTooFew,
    /// A host's available memory is nearly at its end.
    MemoryFloor,
    /// A step found a port taken.
    PortTaken,
    /// A step found a container's name taken.
    NameTaken,
    /// A step found the GPU held by others.
    GpuTaken,
    /// A step found other versions of ray or vllm on a node, or none.
    VersionsDiffer,
    /// A step found other layers of the image on a node.
    ImagesDiffer,
    /// A step found no image.
    ImageMissing,
    /// A step found the fabric address on no interface, or on another one.
    FabricAddressMissing,
    /// A step waited for a server that has another model.
    WrongModel,
    /// A node on which the container ran is silent or out of reach.
    NodeNotAnswering,
    /// A node was a member of Ray and is none any more.
    WorkerLeft,
    /// The container was killed, by the kernel or with signal 9.
    ContainerKilled,
    /// The container ended with an exit code.
    ContainerEnded,
    /// The container of a node that was a member of Ray was told to end, or taken away, while the head's runs.
    ContainerStopped,
    /// A worker was started anew, and the rank of the model server was in its earlier life.
    WorkerAnew,
    /// Docker starts the container again and again.
    ContainerRestarts,
    /// /health answers with an error.
    HealthFails,
}

impl FactName {
    /// Whether it is what a step found before it could begin, and not looked at all the time.
    pub(super) fn of_step(self) -> bool {
        match self {
            Self::PortTaken
            | Self::NameTaken
            | Self::GpuTaken
            | Self::VersionsDiffer
            | Self::ImagesDiffer
            | Self::ImageMissing
            | Self::FabricAddressMissing
            | Self::WrongModel => true,
            Self::RayAddressDiffers
            | Self::GpusTooFew
            | Self::MemoryFloor
            | Self::NodeNotAnswering
            | Self::WorkerLeft
            | Self::ContainerKilled
            | Self::ContainerEnded
            | Self::ContainerStopped
            | Self::WorkerAnew
            | Self::ContainerRestarts
            | Self::HealthFails => false,
        }
    }

    /// Names of the values that come with it.
    pub(super) fn values(self) -> &'static [&'static str] {
        match self {
            Self::GpusTooFew => &["needed", "seen"],
            Self::MemoryFloor => &["available", "total"],
            Self::ContainerRestarts => &["restarts"],
            Self::ContainerStopped => &["how", "seen"],
            Self::RayAddressDiffers
            | Self::PortTaken
            | Self::NameTaken
            | Self::GpuTaken
            | Self::VersionsDiffer
            | Self::ImagesDiffer
            | Self::ImageMissing
            | Self::FabricAddressMissing
            | Self::WrongModel
            | Self::NodeNotAnswering
            | Self::WorkerLeft
            | Self::ContainerKilled
            | Self::ContainerEnded
            | Self::WorkerAnew
            | Self::HealthFails => &["seen"],
        }
    }
}

/// A fact of the cluster that is so now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    /// Which.
    pub name: FactName,
    /// On which node; `None` for the cluster.
    pub node: Option<NodeId>,
    /// Values for the rule's text.
    pub fields: Vec<(String, String)>,
    /// What was seen, in words: the evidence.
    pub text: String,
}

/// What was judged of the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Judged {
    /// It is so.
    So(Fact),
    /// It was not so then, on this node.
    Not(FactName, Option<NodeId>, Wall),
}
