//! What the console knows, and the only place that changes it.
//!
//! Owns [`State`] and [`update`]: (state, event) to effects. Never does IO, never reads a clock; whoever drives it gives the time with each event.
//!
//! Invariants: `update` is the only writer; every list here is bounded; a reading that went stale stays, with its age; a link that went down marks
//! its readings old and keeps them.

pub mod bench;
pub mod load;
pub mod series;
pub mod state;

pub use state::{Options, State};
