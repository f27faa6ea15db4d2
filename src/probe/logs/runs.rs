//! Which lines of a command that is run again were told before.

use std::collections::HashMap;

use super::docker::mark;
use crate::log::Line;

/// Lines of a command of the user's own that are kept to know them again when it is run again. What comes beyond them counts each time.
pub(super) const KNOWN_LINES: usize = 8192;

/// Lines of a command that is run again and again, by their marks: how often each came in this run, and the most in an earlier one.
#[derive(Debug, Clone, Default)]
pub(super) struct Runs {
    now: HashMap<u64, u32>,
    before: HashMap<u64, u32>,
}

impl Runs {
    /// A new run begins.
    pub(super) fn begin(&mut self) {
        let now = std::mem::take(&mut self.now);
        if self.before.len().saturating_add(now.len()) > KNOWN_LINES {
            self.before.clear();
        }
        for (mark, times) in now {
            let most = self.before.entry(mark).or_default();
            *most = times.max(*most);
        }
    }

    /// Whether a line came as often as this in an earlier run.
    pub(super) fn again(&mut self, line: &Line) -> bool {
        let mark = mark("", line);
        if self.now.len() >= KNOWN_LINES && !self.now.contains_key(&mark) {
            return false;
        }
        let times = self.now.entry(mark).or_default();
        *times = times.saturating_add(1);
        self.before.get(&mark).is_some_and(|most| *times <= *most)
    }
}
