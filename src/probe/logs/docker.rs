//! How far a container's log was read: `docker logs --since` repeats lines, which are known by their times.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use jiff::Timestamp;

use crate::domain::command::{Command, Output, program};
use crate::log::{Line, Stream};

/// Lines of an existing log that are shown when it is followed for the first time.
pub const FIRST_LINES: u32 = 2000;

/// Lines from which on it is asked whether Docker has older ones: fewer than [`FIRST_LINES`], as one that is longer than 16 KiB counts more than once there.
pub(super) const ASK_FROM: u32 = FIRST_LINES / 2;

/// Id of the script that asks for the first line that Docker has of a container.
pub const OLDER_ID: &str = "log.older";

/// Gives the beginning of the first line, and ends Docker's client with that: $1 is Docker's program, $2 a time up to which a line counts, $3 the container.
const OLDER: &str = "$1 logs --timestamps --until \"$2\" \"$3\" 2>&1 | head -c 64\n";

/// How far before the last line seen `docker logs` is asked to begin again: the two streams may have overtaken each other by that much.
const OVERLAP: Duration = Duration::from_secs(2);

/// Lines of each stream by which Docker's repetitions are known.
const RECENT: usize = 1024;

/// How far a container's log was read.
#[derive(Debug, Clone, Default)]
pub(super) struct DockerPosition {
    out: Seen,
    err: Seen,
    first: First,
    /// That lines are missing before what comes now, until it was told.
    pub(super) notice: Option<String>,
}

/// The first lines that were read of a container's log.
#[derive(Debug, Clone, Default)]
struct First {
    /// How many, up to [`ASK_FROM`].
    lines: u32,
    /// The time of the earliest of them.
    earliest: Option<String>,
    /// Whether it was asked what Docker has before it.
    asked: bool,
    /// The time of the earliest line that Docker has.
    oldest: Option<String>,
}

/// How far one stream of `docker logs` was read.
#[derive(Debug, Clone, Default)]
struct Seen {
    /// Time of the last line.
    last: Option<String>,
    /// Lines up to this time come again and are dropped, until a later one comes.
    again: Option<String>,
    /// Marks of the last lines, the newest last: Docker 20.10 repeats the first lines of a new file to who had come to the old one's end.
    recent: VecDeque<u64>,
    /// The last line itself was asked for again: where a later one comes first, lines are missing.
    expected: bool,
}

/// A line with its time in few bytes.
pub(super) fn mark(time: &str, line: &Line) -> u64 {
    let mut hasher = DefaultHasher::new();
    time.hash(&mut hasher);
    line.text().hash(&mut hasher);
    hasher.finish()
}

/// The command that follows a container's log from a time.
pub(super) fn command(docker: &str, name: &str, since: Option<String>, limit: Duration) -> Command {
    let options = ["logs", "--timestamps", "--follow"].map(str::to_owned);
    let mut words: Vec<String> = program(docker).chain(options).collect();
    match since {
        Some(time) => words.extend(["--since".to_owned(), time]),
        None => words.extend(["--tail".to_owned(), FIRST_LINES.to_string()]),
    }
    words.push(name.to_owned());
    Command::argv(words, limit)
}

impl DockerPosition {
    /// The command is given anew; the time from which the log is asked for.
    pub(super) fn begin(&mut self) -> Option<String> {
        let since = self.since();
        for seen in [&mut self.out, &mut self.err] {
            seen.again = seen.last.clone();
            // Times of one format: their order is that of their texts, up to the digits that one of them lacks.
            seen.expected = since.as_ref().is_some_and(|since| seen.last.as_ref() > Some(since));
        }
        since
    }

    /// Whether Docker is to give a line again that was read.
    pub(super) fn expects(&self) -> bool {
        self.out.expected || self.err.expected
    }

    /// Whether Docker has lines from before the first that was read, as far as it was asked.
    pub(super) fn has_older(&self) -> bool {
        self.first.oldest.is_some() && self.first.oldest < self.first.earliest
    }

    /// Asks once whether it has, where so many lines came that it may.
    pub(super) fn ask_older(&mut self, docker: &str, name: &str, limit: Duration) -> Option<Command> {
        if self.first.asked || self.first.lines < ASK_FROM {
            return None;
        }
        self.first.asked = true;
        let args = vec![docker.to_owned(), self.first.earliest.clone()?, name.to_owned()];
        Some(Command::script(OLDER_ID, OLDER, args, limit))
    }

    /// Takes the answer to that.
    pub(super) fn take_older(&mut self, output: &Output) {
        let text = output.text();
        let time = text
            .split_whitespace()
            .next()
            .filter(|time| time.parse::<Timestamp>().is_ok());
        self.first.oldest = time.map(str::to_owned);
    }

    /// Whether a line was not seen before the command was last given.
    pub(super) fn fresh(&mut self, line: &Line) -> bool {
        let Some(time) = &line.time else { return true };
        self.first.lines = self.first.lines.saturating_add(1).min(ASK_FROM);
        if self.first.earliest.as_ref().is_none_or(|earliest| time < earliest) {
            self.first.earliest = Some(time.clone());
        }
        let seen = match line.stream {
            Stream::Out => &mut self.out,
            Stream::Err => &mut self.err,
        };
        // Docker writes all its times with the same number of digits. A clock that was set back gives earlier times too, but none that was seen.
        let mark = mark(time, line);
        let seen_before = seen.last.as_ref().is_some_and(|last| time <= last) && seen.recent.contains(&mark);
        if seen_before && seen.last.as_ref() != Some(time) {
            seen.again = seen.last.clone();
        }
        let repeated = seen_before || seen.again.as_ref().is_some_and(|again| time <= again);
        let expected = std::mem::take(&mut seen.expected);
        if repeated {
            return false;
        }
        if let Some(last) = seen.last.as_ref().filter(|_| expected) {
            self.notice = Some(format!(
                "… lines after {last} are missing here: the log was rotated and Docker has them no more, or the container is another one"
            ));
        }
        seen.again = None;
        seen.last = Some(time.clone());
        if seen.recent.len() == RECENT {
            seen.recent.pop_front();
        }
        seen.recent.push_back(mark);
        true
    }

    /// The time from which `docker logs` is to begin again.
    fn since(&self) -> Option<String> {
        let last = self.out.last.as_ref().max(self.err.last.as_ref())?;
        let time: Timestamp = last.parse().ok()?;
        Some(time.saturating_sub(OVERLAP).ok()?.to_string())
    }
}
