//! What an engine's log lines say.

use crate::domain::load::LineFact;

/// What a line says about the load; nothing for most lines.
#[must_use]
pub fn read_line(_line: &str) -> Vec<LineFact> {
    Vec::new()
}
