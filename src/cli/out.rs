//! The two streams of a headless command.

use std::io::{self, IsTerminal, Write};

use serde_json::Value;

/// Prints a line of result. False when nobody reads any more.
pub(super) fn line(text: &str) -> bool {
    let mut out = io::stdout().lock();
    writeln!(out, "{text}").and_then(|()| out.flush()).is_ok()
}

/// Prints one JSON object on a line.
pub(super) fn json(value: &Value) -> bool {
    line(&value.to_string())
}

/// Prints a line for a person on standard error.
pub(super) fn say(text: &str) {
    let _closed = writeln!(io::stderr().lock(), "{text}");
}

/// Prints an error.
pub(super) fn error(text: &str) {
    say(&format!("bringup: {text}"));
}

/// Whether a person can answer.
pub(super) fn has_person() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks a person for yes or no; no without an answer.
pub(super) fn confirm(question: &str) -> bool {
    let _closed = write!(io::stderr().lock(), "{question} [y/N] ");
    let mut answer = String::new();
    let read = io::stdin().read_line(&mut answer);
    read.is_ok() && matches!(answer.trim(), "y" | "Y" | "yes")
}
