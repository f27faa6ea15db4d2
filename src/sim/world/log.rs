//! A container's log: lines with the moment at which they appear, some of them in the future.

use std::collections::VecDeque;

use crate::sim::clock::Moment;

/// Most lines kept of one container.
const MAX_LINES: usize = 20_000;

/// Distance of two lines that were written at once.
const APART: Moment = Moment::from_micros(1);

/// Owner of the lines of a container's first process; processes started later have other numbers.
pub const FIRST_PROCESS: u64 = 0;

/// One write of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// When it appears.
    pub at: Moment,
    /// The process that wrote it.
    pub owner: u64,
    /// Whether it went to stderr.
    pub err: bool,
    /// Text without its final newline; may hold carriage returns.
    pub text: String,
}

/// Lines in the order of their moments, the oldest dropped first.
#[derive(Debug, Default)]
pub struct Log {
    entries: VecDeque<Entry>,
    dropped: u64,
}

impl Log {
    /// Adds a line after all lines that appear at the same moment or before. No two lines have the same date, as with Docker: who reads on from a date
    /// would lose or repeat one.
    pub fn push(&mut self, mut entry: Entry) {
        let place = loop {
            let place = self.entries.partition_point(|e| e.at <= entry.at);
            match place.checked_sub(1).and_then(|before| self.entries.get(before)) {
                Some(before) if before.at == entry.at => entry.at = before.at.saturating_add(APART),
                Some(_) | None => break place,
            }
        };
        self.entries.insert(place, entry);
        if self.entries.len() > MAX_LINES {
            self.entries.pop_front();
            self.dropped += 1;
        }
    }

    /// Forgets what a process would have written after `at`.
    pub fn cut(&mut self, owner: u64, at: Moment) {
        self.entries.retain(|e| e.at <= at || e.owner != owner);
    }

    /// Forgets what anyone would have written after `at`.
    pub fn cut_all(&mut self, at: Moment) {
        self.entries.retain(|e| e.at <= at);
    }

    /// Number of the line after the last one, for a reader that wants only what comes.
    pub fn end(&self, now: Moment) -> u64 {
        self.dropped + as_u64(self.entries.partition_point(|e| e.at <= now))
    }

    /// Number of the first line that appears at `since` or later.
    pub fn since(&self, since: Moment) -> u64 {
        self.dropped + as_u64(self.entries.partition_point(|e| e.at < since))
    }

    /// Lines from number `from` that have appeared by `now`, at most `most`, and the number to go on from.
    pub fn read(&self, from: u64, now: Moment, most: usize) -> (Vec<Entry>, u64) {
        let skip = usize::try_from(from.saturating_sub(self.dropped)).unwrap_or(usize::MAX);
        let shown = self.entries.partition_point(|e| e.at <= now);
        let taken: Vec<Entry> = self.entries.iter().take(shown).skip(skip).take(most).cloned().collect();
        let next = from.max(self.dropped) + as_u64(taken.len());
        (taken, next)
    }

    /// When the next line appears after `now`.
    pub fn next_at(&self, now: Moment) -> Option<Moment> {
        let shown = self.entries.partition_point(|e| e.at <= now);
        self.entries.get(shown).map(|e| e.at)
    }
}

fn as_u64(n: usize) -> u64 {
    u64::try_from(n).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn line(at: u64, owner: u64, text: &str) -> Entry {
        Entry {
            at: Duration::from_secs(at),
            owner,
            err: false,
            text: text.to_owned(),
        }
    }

    fn texts(log: &Log, from: u64, now: u64) -> (Vec<String>, u64) {
        let (lines, next) = log.read(from, Duration::from_secs(now), 100);
        (lines.into_iter().map(|e| e.text).collect(), next)
    }

    #[test]
    fn a_reader_sees_each_line_once_when_its_moment_comes() {
        let mut log = Log::default();
        log.push(line(5, 1, "later"));
        log.push(line(1, 0, "first"));
        assert_eq!(texts(&log, 0, 1), (vec!["first".to_owned()], 1));
        log.push(line(2, 0, "second"));
        assert_eq!(log.next_at(Duration::from_secs(2)), Some(Duration::from_secs(5)));
        assert_eq!(texts(&log, 1, 9), (vec!["second".to_owned(), "later".to_owned()], 3));
        assert_eq!(texts(&log, 3, 9), (vec![], 3));
    }

    #[test]
    fn lines_that_were_written_at_once_have_dates_of_their_own() {
        let mut log = Log::default();
        for text in ["a", "b", "c"] {
            log.push(line(1, 0, text));
        }
        let (lines, _) = log.read(0, Duration::from_secs(2), 100);
        assert!(
            lines.windows(2).all(|w| w[0].at < w[1].at && w[0].text < w[1].text),
            "{lines:?}"
        );
    }

    #[test]
    fn a_process_that_ended_writes_no_more() {
        let mut log = Log::default();
        log.push(line(1, 0, "ray"));
        log.push(line(4, 7, "vllm"));
        log.push(line(5, 0, "ray again"));
        log.cut(7, Duration::from_secs(3));
        assert_eq!(texts(&log, 0, 9).0, ["ray", "ray again"]);
        log.cut_all(Duration::from_secs(3));
        assert_eq!(texts(&log, 0, 9).0, ["ray"]);
    }

    #[test]
    fn old_lines_go_and_numbers_stay() {
        let mut log = Log::default();
        for n in 0..(MAX_LINES as u64 + 2) {
            log.push(line(n, 0, &n.to_string()));
        }
        let (lines, next) = log.read(0, Duration::MAX, 1);
        assert_eq!((lines.first().map(|e| e.text.as_str()), next), (Some("2"), 3));
    }
}
