//! Where the steps of a run stand.

use serde::Serialize;

use crate::domain::Stamp;
use crate::domain::problem::Verdict;
use crate::domain::step::{Failure, StepOutcome};

use super::condition::Condition;

/// Where one step stands.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct StepStatus {
    /// Its state.
    pub state: StepState,
    /// When its checks began.
    pub started: Option<Stamp>,
    /// When it was over.
    pub ended: Option<Stamp>,
    /// When what it was for was seen to hold, after it had ended otherwise; `None` while that is not so. How it ended stays what it was.
    pub later: Option<Stamp>,
    /// What it told on the way, newest last.
    pub notes: Vec<String>,
    /// What it waits for, with the latest answers.
    pub pending: Vec<(Condition, Verdict)>,
}

/// State of one step.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum StepState {
    /// Its turn has not come.
    #[default]
    Waiting,
    /// What must hold before is looked at.
    Checking,
    /// Its commands run.
    Running,
    /// What must hold afterwards is looked at.
    Verifying,
    /// Over and well.
    Done(StepOutcome),
    /// Failed.
    Failed(Failure),
    /// Stopped by the operator.
    Aborted,
    /// The link died while its command was in flight.
    Unknown(String),
}
