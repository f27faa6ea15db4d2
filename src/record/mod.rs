//! Files that the console writes: results of throughput tests.
//!
//! Owns their names, their permissions and how many are kept. Never decides when to write, never reads a file back, never holds a secret (what it is
//! given is masked already).
//!
//! Invariants: a file is there whole or not at all; only its owner can read it; a file that is not one of ours is never touched.

pub mod atomic;
pub mod results;

pub use results::save_result;
