//! The console without a terminal: the queue, the clock, effects to actors, and the way out.
//!
//! Owns [`Console`]: it starts one actor per SSH hop, one per node and one for the server, feeds their events to the core one at a time, and carries
//! out the effects. `app`, `cli` and the tests all drive through it; none has a loop of its own over the core.
//!
//! Invariants: events are taken in the order of the one queue; every task started here ends with the console; a secret answer goes straight to the
//! waiting end; leaving never stops the cluster.

mod bench;
mod console;
mod questions;
mod server;
mod setup;
mod ways;

pub use console::{Console, ForFront, LEAVE_WAIT, Left};
pub use setup::{LOG_BYTES, Setup, StartError};
pub use ways::with_ssh_config;
