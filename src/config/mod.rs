//! From text to a checked configuration.
//!
//! Owns the shape of the file, its defaults, its checks and the themes. Never reads a file or a variable: text comes in, a [`types::Config`] or
//! located problems go out.

mod hash;
pub mod types;

pub use types::Config;
