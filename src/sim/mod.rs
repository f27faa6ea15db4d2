//! An in-process cluster behind real SSH on loopback, for the demo and for tests.
//!
//! Owns a jump host and its Sparks: SSH servers with throwaway keys, and a simulated world that answers docker, ray and nvidia-smi as the real ones do,
//! loads a model and serves an API. Reads the same commands that a real node gets ([`crate::domain::command::Command`]) as data.
//!
//! Never runs a program of the machine it is on, never opens a port but the jump host's on 127.0.0.1, never speaks to another host.
//!
//! Invariants: an unknown command answers 127; the world lives as long as the [`Cluster`], whoever connects and leaves; the server's counters are what
//! it sent; all that waits is bounded.

mod answer;
mod clock;
mod cluster;
mod commands;
mod docker;
mod files;
mod http;
mod probes;
mod ray_logs;
mod server;
mod session;
mod shared;
mod world;

pub use cluster::{Cluster, Options};
pub use files::folder_of;
pub use world::Trouble;

/// Why a cluster could not be started.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    /// The jump host's port.
    #[error("the demo's jump host cannot listen on 127.0.0.1: {0}")]
    Listen(#[source] std::io::Error),
    /// The private folder.
    #[error("the demo's folder cannot be written: {0}")]
    Files(#[source] std::io::Error),
    /// A throwaway key.
    #[error("no throwaway key could be made: {0}")]
    Key(String),
}
