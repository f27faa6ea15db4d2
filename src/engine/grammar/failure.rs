//! Lines that say what failed, and those that only point to another line.

use crate::diagnose::{self, Kind};

/// Longest text kept of a failure, in characters.
const KEPT: usize = 300;

/// The failure that a message says, if it does: one that a rule knows, or a line in the form of one. What only points to another line is none, whatever its
/// form.
pub(super) fn read(text: &str) -> Option<String> {
    let failed = match diagnose::builtin().says(text) {
        Some(Kind::Pointer | Kind::Quiet) => false,
        Some(Kind::Cause | Kind::Echo) => true,
        Some(Kind::Warning) | None => exception(text) || usage(text) || shell(text) || nccl(text),
    };
    failed.then(|| text.chars().take(KEPT).collect())
}

/// The last line of a Python traceback: a dotted name that ends in Error or Exception, then a colon or nothing.
fn exception(text: &str) -> bool {
    let name = text
        .split_once(": ")
        .map_or(text.trim_end_matches(':'), |(name, _)| name);
    let dotted = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '.');
    dotted && (name.ends_with("Error") || name.ends_with("Exception"))
}

/// `vllm: error: unrecognized arguments: …`, `api_server.py: error: …`
fn usage(text: &str) -> bool {
    text.split_once(": error: ")
        .is_some_and(|(program, _)| !program.contains(' '))
}

/// `/bin/sh: 1: ray: not found`
fn shell(text: &str) -> bool {
    text.split_once(": ")
        .is_some_and(|(program, _)| program.ends_with("sh"))
        && text.ends_with(": not found")
}

/// NCCL warns of much that does no harm; a warning that names a failed call is another matter.
fn nccl(text: &str) -> bool {
    text.contains("NCCL WARN") && (text.contains(" failed") || text.contains(" error"))
}
