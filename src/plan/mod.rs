//! From what is wanted and what is seen to a plan, and from a plan to steps one at a time.
//!
//! Owns plans as data, the conditions that are judged on observed facts, and the step machine. Never runs anything.

pub mod condition;
pub mod machine;
pub mod status;
pub mod types;

pub use condition::Condition;
pub use machine::Machine;
pub use status::{StepState, StepStatus};
pub use types::{Plan, PlannedCommand, Refusal, Step, StepKind};
