//! One actor per node: its connection, its probes, its steps' commands and its log.
//!
//! Owns the node's SSH session and the reconnecting, runs what it is asked to run, follows the log into the node's ring; and the secrets' values, which
//! commands get on their standard input. Decides nothing about the
//! cluster: which probe is due and which command runs comes from the core.
//!
//! Invariants: at most one probe of a kind is under way; a command's start and end are both told; the log's reader never waits for the queue; what a
//! lost connection leaves behind on the node ends by itself (`ssh`'s wrapper).

mod ask;
mod exec;
pub mod feed;
mod follow;
mod hide;
mod jobs;
mod log_end;
mod log_reader;
mod log_run;
mod log_source;
mod ray;
pub mod secrets;
mod task;
mod watch;

pub use feed::{Clock, Feed};
pub use follow::SharedLog;
pub use secrets::Secrets;
pub use task::{NodeHandle, NodeSetup, start};
