//! What happens to the steps of a plan.

use std::time::Duration;

use serde::Serialize;

use super::ids::{NodeId, StepId};

/// News of a step.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StepEvent {
    /// Which.
    pub step: StepId,
    /// What.
    pub kind: StepEventKind,
}

/// Kinds of step news.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum StepEventKind {
    /// Its checks begin.
    Started,
    /// Something to tell while it runs.
    Progress(String),
    /// It is over and well.
    Done(StepOutcome),
    /// It failed.
    Failed(Failure),
    /// The operator stopped it.
    Aborted,
    /// The link died while its command was in flight: nobody knows.
    Unknown(String),
}

/// How a step ended well.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum StepOutcome {
    /// Its command ran and its verification holds.
    Success,
    /// As success, with something to say.
    Warning(String),
    /// It was true already.
    Skipped,
    /// It was under way already and has come true.
    Adopted,
}

/// Why a step failed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Failure {
    /// Which check, command or verification.
    pub what: String,
    /// What was seen.
    pub seen: String,
    /// What was expected.
    pub expected: String,
    /// Lines around it, from the command's output or the container's log, masked.
    pub lines: Vec<String>,
    /// What to do, in words, when it is known: no shell is meant to read it.
    pub fix: Option<String>,
    /// What to run for it, and on which node, where the fix is such a command.
    pub command: Option<(NodeId, String)>,
    /// How long the step ran.
    pub after: Duration,
}
