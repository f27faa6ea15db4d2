//! Lines that say what failed, and those that only point to another line.

use crate::diagnose::{self, Kind};
use crate::domain::load::LineFact;

/// Longest text kept of a failure, in characters.
const KEPT: usize = 300;

/// What an engine says as it gives up, by how the message begins: vLLM's engine core and its workers, SGLang's schedulers and what watches over them.
const LAST_WORDS: [&str; 9] = [
    "EngineCore failed to start",
    "EngineCore encountered a fatal error",
    "EngineCore hit an exception",
    "WorkerProc failed",
    "Exception: WorkerProc initialization failed",
    "RuntimeError: Engine core initialization failed",
    "RuntimeError: Engine process failed to start",
    "Scheduler hit an exception",
    "Received sigquit from a child process",
];

/// The same, by what the message holds.
const LAST_WORDS_WITHIN: [&str; 2] = [
    " died unexpectedly, shutting down ",
    "EngineDeadError: EngineCore encountered an issue",
];

/// What engines' processes say as they end or are ended, within a message in small letters.
const GOODBYES: [&str; 6] = ["shutting down", "shutdown", "terminat", "exiting", "exited", "killing"];

/// Exceptions of a GPU without memory left.
const NO_MEMORY: [&str; 4] = [
    "torch.OutOfMemoryError: ",
    "torch.cuda.OutOfMemoryError: ",
    "RuntimeError: CUDA out of memory",
    "RuntimeError: CUDA error: out of memory",
];

/// The failure that a message says, if it does: one that a rule knows, or a line in the form of one. What only points to another line is none, whatever its
/// form, nor is an exception in a record that only informs or warns: `loud` says that it does more.
pub(super) fn read(text: &str, loud: bool) -> Option<String> {
    let failed = match diagnose::builtin().says(text) {
        Some(Kind::Pointer | Kind::Quiet) => false,
        Some(Kind::Cause | Kind::Echo) => loud || !exception(text),
        Some(Kind::Warning) | None => (loud && exception(text)) || usage(text) || shell(text) || nccl(text),
    };
    failed.then(|| kept(text))
}

/// Whether a message says that this start comes to nothing.
pub(super) fn gives_up(text: &str, loud: bool) -> Option<LineFact> {
    let begins = |all: &[&str]| all.iter().any(|words| text.starts_with(words));
    let own = begins(&LAST_WORDS) || LAST_WORDS_WITHIN.iter().any(|words| text.contains(words));
    if !loud || !(own || begins(&NO_MEMORY)) || diagnose::builtin().says(text) == Some(Kind::Quiet) {
        return None;
    }
    let text = kept(text);
    Some(LineFact::GaveUp { text, sure: own })
}

fn kept(text: &str) -> String {
    text.chars().take(KEPT).collect()
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

/// Whether a text is an exception that the rules know: in a record that only informs it is no failure.
pub(super) fn tame(text: &str) -> bool {
    exception(text) && diagnose::builtin().says(text).is_some()
}

/// Whether a text is an exception's by itself. Ray's autoscaler prints what it lacks as an `Error` of no kind.
pub(super) fn raised(text: &str) -> bool {
    exception(text) && !text.starts_with("Error:")
}

/// Whether a message belongs to an end: who prints it does not go on.
pub(super) fn goodbye(text: &str) -> bool {
    let text = text.to_lowercase();
    GOODBYES.iter().any(|words| text.contains(words))
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
