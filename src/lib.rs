//! bringup: an operator console in the terminal for serving a large language model across several GPU nodes.
//!
//! This is the map of the rooms. Pure rooms take text or values and give values: no IO, no clock, no spawn, no environment, no panic. Shells touch the
//! world and hold as little logic as possible. `tests/rooms.rs` checks who may import whom.

pub mod api;
pub mod app;
pub mod bench;
pub mod cli;
pub mod config;
pub mod diagnose;
pub mod domain;
pub mod drive;
pub mod engine;
pub mod input;
pub mod log;
pub mod measure;
pub mod model;
pub mod node;
pub mod plan;
pub mod probe;
pub mod record;
pub mod report;
pub mod sim;
pub mod ssh;
pub mod view;
