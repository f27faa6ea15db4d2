//! What the console knows, and the only place that changes it.
//!
//! Owns [`State`] and [`update`]: (state, event) to effects. Never does IO, never reads a clock; whoever drives it gives the time with each event.
//!
//! Invariants: `update` is the only writer; every list here is bounded; a reading that went stale stays, with its age; a link that went down keeps
//! its readings; which probe is due is decided here, the actors only run them.

#[cfg(test)]
mod age_tests;
pub mod bench;
#[cfg(test)]
mod captured_tests;
mod causes;
mod commands;
mod ends;
pub mod facts;
pub mod flow;
pub mod foreign;
mod given_up;
mod history;
mod intents;
mod life;
pub mod load;
pub mod loading;
pub mod logs;
mod loss;
pub mod ray;
pub mod restarts;
mod run;
pub mod schedule;
pub mod series;
mod server;
#[cfg(test)]
mod serving_tests;
pub mod state;
mod survived;
#[cfg(test)]
mod tests;
mod update;
pub mod way;
mod when;
mod why;

pub use server::{doubt, listens_since, look_on, prefill, server_since, serves_for, unproven};
pub use state::{Options, State};
pub use update::update;
pub use way::{server_url, tunnel_line};
pub use why::{connected, heard_until, held_up, held_up_by, lost_since, tells, told_until};
