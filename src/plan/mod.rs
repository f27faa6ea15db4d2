//! From what is wanted and what is seen to a plan, and from a plan to steps one at a time.
//!
//! Owns plans as data, the conditions that are judged on observed facts, and the step machine. Never runs anything.

#![warn(clippy::indexing_slicing, clippy::wildcard_enum_match_arm)]

pub mod condition;
mod fix;
mod judge;
pub mod machine;
mod make;
#[cfg(test)]
pub(crate) mod sample;
mod script;
pub mod status;
pub mod types;
mod want;
pub mod way;

pub use condition::Condition;
pub use judge::{explain, judge};
pub(crate) use judge::{ours, stray_of};
pub use machine::{Do, Machine, Progress};
pub use make::{SKIPPED, make};
pub use script::script;
pub use status::{StepState, StepStatus};
pub use types::{Plan, PlannedCommand, Refusal, Step, StepKind};
pub use want::{Want, wants};
