//! The step machine.

use super::status::StepStatus;
use super::types::Plan;

/// Runs a plan, one step at a time, on what is observed.
#[derive(Debug, Clone)]
pub struct Machine {
    plan: Plan,
    steps: Vec<StepStatus>,
}

impl Machine {
    /// The plan that runs.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Where its steps stand, in the plan's order.
    #[must_use]
    pub fn steps(&self) -> &[StepStatus] {
        &self.steps
    }
}
