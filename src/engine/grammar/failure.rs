//! Lines that say what failed, and those that only point to another line.

/// Longest text kept of a failure, in characters.
const KEPT: usize = 300;

/// What a line holds that only points to another line or follows from one: the cause stands elsewhere.
const POINTERS: &[&str] = &[
    "root cause",
    "Engine core initialization failed",
    "EngineDeadError",
    "RayTaskError",
    "CancelledError",
];

/// What a line begins with that says something failed, beside exceptions.
const BEGINNINGS: &[&str] = &[
    "Fatal Python error:",
    "Raylet is terminated",
    "terminate called after throwing",
    "Segmentation fault",
];

/// What a line holds that says something failed, beside exceptions.
const PARTS: &[&str] = &[
    "has been marked dead because",
    "died unexpectedly, shutting down executor",
    "Failed to connect to GCS at address",
    ": executable file not found",
    "exec format error",
    ": command not found",
];

/// The failure that a message says, if it does.
pub(super) fn read(text: &str) -> Option<String> {
    if POINTERS.iter().any(|p| text.contains(p)) {
        return None;
    }
    let failed = exception(text)
        || usage(text)
        || shell(text)
        || nccl(text)
        || BEGINNINGS.iter().any(|b| text.starts_with(b))
        || PARTS.iter().any(|p| text.contains(p));
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
