//! A plan as data.

use std::time::Duration;

use serde::Serialize;

use crate::domain::command::Command;
use crate::domain::intent::Action;
use crate::domain::{NodeId, StepId};

use super::condition::Condition;

/// What an action will do. It leaves no choices to whoever runs it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Plan {
    /// The action.
    pub action: Action,
    /// Steps, in order.
    pub steps: Vec<Step>,
    /// Why it cannot run; a plan with refusals has no run.
    pub refusals: Vec<Refusal>,
    /// What the operator should know before Enter.
    pub notes: Vec<String>,
}

/// Why a plan cannot run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Refusal {
    /// One sentence without a final period.
    pub text: String,
    /// What to do.
    pub fix: Option<String>,
}

/// One step.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Step {
    /// Its place.
    pub id: StepId,
    /// What it does, such as `start the head on spark-1`.
    pub title: String,
    /// What kind of step it is.
    pub kind: StepKind,
    /// The node it is about; `None` for the whole cluster.
    pub node: Option<NodeId>,
    /// What must hold before it runs. They are judged together: all failures are shown.
    pub before: Vec<Condition>,
    /// If all of these hold and `after` does not yet, the step is under way already: its commands are not run.
    pub under_way: Vec<Condition>,
    /// What runs, in order, on which node.
    pub commands: Vec<PlannedCommand>,
    /// What must hold afterwards. If it holds before, the step is skipped. A step without any is done when its checks and commands are.
    pub after: Vec<Condition>,
    /// What ends the wait for `after` as a failure.
    pub broken_by: Vec<Condition>,
    /// How long `after` must hold without a break.
    pub settle: Duration,
    /// Longest time from its start to its end.
    pub limit: Duration,
    /// What runs when the step is over, well or not, such as removing the files of a verb. A failure of it is only noted.
    pub finally: Vec<PlannedCommand>,
    /// What can be read when the step has failed: the output of those on the node where it broke (else on the step's own) becomes the lines that the
    /// failure shows.
    pub evidence: Vec<PlannedCommand>,
    /// Longest time without progress while it waits for `after`; `None` means that only `limit` counts.
    pub stall: Option<Duration>,
}

/// Kinds of step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum StepKind {
    /// Pull the image on a node.
    Pull,
    /// Compare image and versions.
    Image,
    /// Start the head.
    Head,
    /// Join one worker.
    Join,
    /// The whole membership.
    Membership,
    /// Start the model server and wait for a token.
    Serve,
    /// Stop the model server.
    StopServe,
    /// Stop and remove a node's container.
    StopNode,
}

/// A command on a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlannedCommand {
    /// Where.
    pub node: NodeId,
    /// What.
    pub command: Command,
}
