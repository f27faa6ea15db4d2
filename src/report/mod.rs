//! The state as JSON: what `status --json` and `up --json` print; and what is said of it at the end.
//!
//! Owns the shape of the machine-readable output. Never decides anything: it says what the state says, with ages and reasons.
//!
//! Invariants: a reading is its value, its age and its source; where nothing is known the value is null and a `reason` stands beside it. What `status`
//! prints is described by [`STATUS_SCHEMA`], and tests hold every key of it to that.

pub mod bench;
pub mod causes;
pub mod left;
mod load;
mod log;
mod node;
mod ray;
mod reading;
mod server;
pub mod status;
pub mod step;

/// Version of the shapes; a change that takes something away raises it.
pub const SCHEMA: u32 = 1;

/// The JSON Schema (draft 2020-12) of what [`status::status`] gives.
pub const STATUS_SCHEMA: &str = include_str!("../../assets/status.schema.json");
