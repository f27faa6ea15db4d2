//! Why something failed: rules as data (`assets/rules.toml`), what was seen on all nodes as evidence, and the first cause before its echoes.
//!
//! Owns the rules and their prefilter, the matcher of a log, the evidence of a start, and the ranking. Never reads a log and never judges a fact of the
//! cluster: the node's log task hands it lines, the model hands it facts.
//!
//! A user's own rules come before those of the program; one with the id of one of those takes its place.
//!
//! Invariants: a line is searched once for what all rules want, whatever their number, and no further than [`LOOKED_AT`]; what is kept is bounded, the first
//! ones stay and the rest is counted; where the order of two nodes can't be told, it is said; a line that only points to another is never a cause.

#![warn(clippy::indexing_slicing, clippy::wildcard_enum_match_arm)]

mod entry;
mod evidence;
mod matcher;
mod parse;
mod rank;
mod rule;
mod rules;
mod template;
#[cfg(test)]
mod tests;
mod time;

pub use evidence::Evidence;
pub use matcher::{Matcher, advice, read_output, wall};
pub use parse::{MOST, RuleProblem, own, parse};
pub use rank::{Cause, Confidence, Echo, Line, rank};
pub use rule::{Fact, FactName, Judged, Kind, Place, Rule, Step};
pub use rules::{BUILTIN, LOOKED_AT, Rules, builtin};
