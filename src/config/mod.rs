//! From text to a checked configuration.
//!
//! Owns the shape of the file, its defaults, its checks, where the file is looked for, and the themes. Never reads a file or a variable: text comes
//! in, a [`types::Config`] or located problems go out.
//!
//! Invariants: a [`types::Config`] has passed every check; a problem has file, line, column and what to write instead; no secret is repeated in a
//! problem; the keys that are known are the keys that the code asks for.

mod engine;
mod hash;
mod hops;
mod logs;
mod meant;
mod nodes;
mod parse;
pub mod place;
mod problem;
mod read;
pub mod theme;
pub mod types;
mod words;

pub use parse::{keys, parse};
pub use problem::ConfigProblem;
pub use types::Config;

/// The manual of the configuration: every key, its default, one line of why. Printed by `bringup config example`.
pub const EXAMPLE: &str = include_str!("../../config.example.toml");
