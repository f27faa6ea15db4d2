//! Files that the program writes: results of throughput tests, how long loads took, and private folders for what lives no longer than itself.
//!
//! Owns their names, their permissions and how many are kept. Never decides when to write, never holds a secret (what it is given is masked already). It
//! reads back one file only, the times of earlier loads, and takes nothing of it on trust.
//!
//! Invariants: a file is there whole or not at all; only its owner can read it; a file that is not one of ours is never touched.

pub mod atomic;
pub mod folder;
pub mod loads;
pub mod results;

pub use folder::Folder;
pub use loads::{earlier_loads, keep_load};
pub use results::save_result;
