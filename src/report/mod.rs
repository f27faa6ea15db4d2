//! The state as JSON: what `status --json` and `up --json` print; and what is said of it at the end.
//!
//! Owns the shape of the machine-readable output. Never decides anything: it says what the state says, with ages and reasons.
//!
//! Invariant: where nothing is known the value is null and a `reason` stands beside it.

pub mod bench;
pub mod causes;
pub mod left;
mod reading;
mod server;
pub mod status;
pub mod step;

/// Version of the shapes; a change that takes something away raises it.
pub const SCHEMA: u32 = 1;
