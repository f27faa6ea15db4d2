//! Commands that follow a log, and how one goes on after a connection was lost.

use std::time::Duration;

use jiff::Timestamp;

use crate::domain::command::{Command, quote};
use crate::log::{Line, Stream};

/// Lines of an existing log that are shown when it is followed for the first time.
pub const FIRST_LINES: u32 = 2000;

/// Bytes of an existing log file that are shown when it is followed for the first time.
pub const FIRST_BYTES: u64 = 512 * 1024;

/// Id of the script that follows a file on the node.
pub const FILE_ID: &str = "log.file";

/// Id of the script that follows a file inside a container.
pub const CONTAINER_FILE_ID: &str = "log.container-file";

/// How far before the last line seen `docker logs` is asked to begin again: the two streams may have overtaken each other by that much.
const OVERLAP: Duration = Duration::from_secs(2);

/// Finds where a file is to be followed from, and says so.
const TAIL: &str = include_str!("tail.sh");

/// Where a log is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// `docker logs` of a container.
    Container {
        /// Docker's program.
        docker: String,
        /// The container's name.
        name: String,
    },
    /// A file on the node.
    File {
        /// Its path; `~/` is the login's home.
        path: String,
    },
    /// A file inside a container.
    ContainerFile {
        /// Docker's program.
        docker: String,
        /// The container's name.
        name: String,
        /// Its path.
        path: String,
    },
}

/// A followed log and how far it was read, so that following it again neither repeats nor leaves out lines.
///
/// `docker logs --since` repeats lines: they are known by their times. A file is taken up after its last whole line. Each run of the command wants a
/// decoder of its own.
#[derive(Debug, Clone)]
pub struct Follower {
    place: Place,
    out: Seen,
    err: Seen,
    file: FilePosition,
}

/// How far one stream of `docker logs` was read.
#[derive(Debug, Clone, Default)]
struct Seen {
    /// Time of the last line.
    last: Option<String>,
    /// Lines up to this time come again and are dropped, until a later one comes.
    again: Option<String>,
}

/// How far a file was read.
#[derive(Debug, Clone, Default)]
struct FilePosition {
    /// The answer's first line as far as it has come; `None` once it is read.
    header: Option<Vec<u8>>,
    /// Byte after the last byte read.
    read: u64,
    /// Byte after the last whole line; `None` before the first answer.
    whole: Option<u64>,
    /// The rest of a line whose start is not shown is dropped.
    skip: bool,
}

impl Follower {
    /// A log that was not read yet.
    #[must_use]
    pub fn new(place: Place) -> Self {
        Self {
            place,
            out: Seen::default(),
            err: Seen::default(),
            file: FilePosition::default(),
        }
    }

    /// The command that follows it from where it was left. Its stdout passes [`Self::content`] before it is decoded; each line passes
    /// [`Self::fresh`].
    pub fn command(&mut self, limit: Duration) -> Command {
        self.file.header = Some(Vec::new());
        self.out.again = self.out.last.clone();
        self.err.again = self.err.last.clone();
        let from = self.file.whole.map_or_else(|| "-".to_owned(), |byte| byte.to_string());
        let part = FIRST_BYTES.to_string();
        let command = match &self.place {
            Place::Container { docker, name } => {
                let mut words = vec![docker.clone(), "logs".into(), "--timestamps".into(), "--follow".into()];
                match self.since() {
                    Some(time) => words.extend(["--since".to_owned(), time]),
                    None => words.extend(["--tail".to_owned(), FIRST_LINES.to_string()]),
                }
                words.push(name.clone());
                Command::argv(words, limit)
            }
            Place::File { path } => {
                let body = format!("{TAIL}exec tail -c \"+$((from + 1))\" -F \"$path\"\n");
                Command::script(FILE_ID, body, vec![path.clone(), from, part], limit)
            }
            Place::ContainerFile { docker, name, path } => {
                let args = vec![docker.clone(), name.clone(), path.clone(), from, part];
                Command::script(CONTAINER_FILE_ID, container_tail(), args, limit)
            }
        };
        command.follow()
    }

    /// The bytes of stdout that belong to the log.
    pub fn content<'b>(&mut self, bytes: &'b [u8]) -> &'b [u8] {
        match &self.place {
            Place::Container { .. } => bytes,
            Place::File { .. } | Place::ContainerFile { .. } => self.file.content(bytes),
        }
    }

    /// Bytes of the log came and could not be taken: a file is not taken up before them again.
    pub fn lost(&mut self, bytes: u64) {
        // Before the answer's first line there is no position to move.
        if self.file.header.is_none() {
            self.file.read = self.file.read.saturating_add(bytes);
            self.file.whole = Some(self.file.read);
        }
    }

    /// Whether a line was not seen before the command was last given.
    pub fn fresh(&mut self, line: &Line) -> bool {
        let Some(time) = &line.time else { return true };
        let seen = match line.stream {
            Stream::Out => &mut self.out,
            Stream::Err => &mut self.err,
        };
        // Docker writes all its times with the same number of digits.
        if seen.again.as_ref().is_some_and(|again| time <= again) {
            return false;
        }
        seen.again = None;
        seen.last = Some(time.clone());
        true
    }

    /// The time from which `docker logs` is to begin again.
    fn since(&self) -> Option<String> {
        let last = self.out.last.as_ref().max(self.err.last.as_ref())?;
        let time: Timestamp = last.parse().ok()?;
        Some(time.saturating_sub(OVERLAP).ok()?.to_string())
    }
}

impl FilePosition {
    /// Longest first line of an answer.
    const HEADER_BYTES: usize = 64;

    fn content<'b>(&mut self, mut bytes: &'b [u8]) -> &'b [u8] {
        if let Some(header) = &mut self.header {
            let end = bytes.iter().position(|b| *b == b'\n');
            let (line, rest) = bytes.split_at(end.map_or(bytes.len(), |n| n + 1));
            header.extend(line.iter().take(Self::HEADER_BYTES));
            if end.is_none() {
                return &[];
            }
            let text = String::from_utf8_lossy(header);
            let from = text
                .trim()
                .strip_prefix("@@ from ")
                .and_then(|n| n.parse().ok())
                .unwrap_or(0);
            // Where the file is taken up at a byte that is not ours, a line begins anywhere.
            self.skip = from > 0 && self.whole != Some(from);
            self.read = from;
            self.whole = Some(from);
            self.header = None;
            bytes = rest;
        }
        self.read += bytes.len() as u64;
        if let Some(last) = bytes.iter().rposition(|b| *b == b'\n') {
            self.whole = Some(self.read - (bytes.len() - last - 1) as u64);
        }
        if self.skip {
            let Some(end) = bytes.iter().position(|b| *b == b'\n') else {
                return &[];
            };
            self.skip = false;
            bytes = bytes.get(end + 1..).unwrap_or_default();
        }
        bytes
    }
}

/// Follows a file inside a container. What `docker exec` starts there outlives its client; it ends with an input that the client keeps open.
fn container_tail() -> String {
    let find: String = TAIL
        .split_inclusive('\n')
        .filter(|line| !line.starts_with('#'))
        .collect();
    let inner = format!("{find}tail -c \"+$((from + 1))\" -F \"$path\" </dev/null &\ncat >/dev/null\nkill $!\n");
    format!(
        "while echo; do sleep 5; done 2>/dev/null | \"$1\" exec -i \"$2\" /bin/sh -c {} tail \"$3\" \"$4\" \"$5\"\n",
        quote(&inner)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(10);

    fn line(stream: Stream, time: &str) -> Line {
        Line {
            stream,
            time: Some(time.into()),
            ..Line::default()
        }
    }

    #[test]
    fn docker_logs_go_on_where_they_stopped() {
        let mut log = Follower::new(Place::Container {
            docker: "docker".into(),
            name: "vllm-qwen35".into(),
        });
        assert_eq!(
            log.command(LIMIT).line(),
            "docker logs --timestamps --follow --tail 2000 vllm-qwen35"
        );
        let (a, b, c) = (
            "2026-11-29T17:04:55.000000001Z",
            "2026-11-29T17:04:55.000000002Z",
            "2026-11-29T17:04:56.000000000Z",
        );
        assert!(log.fresh(&line(Stream::Err, a)));
        assert!(
            log.fresh(&line(Stream::Err, a)),
            "two lines of one moment are two lines"
        );
        assert!(log.fresh(&line(Stream::Out, b)));
        assert_eq!(
            log.command(LIMIT).line(),
            "docker logs --timestamps --follow --since 2026-11-29T17:04:53.000000002Z vllm-qwen35"
        );
        assert!(!log.fresh(&line(Stream::Err, a)));
        assert!(!log.fresh(&line(Stream::Out, b)));
        assert!(log.fresh(&line(Stream::Err, b)), "each stream has its own last line");
        assert!(log.fresh(&line(Stream::Out, c)));
        assert!(log.fresh(&line(Stream::Out, c)));
    }

    #[test]
    fn a_file_goes_on_after_its_last_whole_line() {
        let mut log = Follower::new(Place::File {
            path: "~/vllm.log".into(),
        });
        assert_eq!(log.command(LIMIT).line(), "log.file '~/vllm.log' - 524288");
        assert_eq!(log.content(b"@@ fro"), b"");
        assert_eq!(log.content(b"m 100\nrest of a li"), b"");
        assert_eq!(log.content(b"ne\nwhole\npart"), b"whole\npart");
        // 100 + "rest of a line\n" + "whole\n"
        assert_eq!(log.command(LIMIT).line(), "log.file '~/vllm.log' 121 524288");
        assert_eq!(log.content(b"@@ from 121\npartial\n"), b"partial\n");
        assert_eq!(log.command(LIMIT).line(), "log.file '~/vllm.log' 129 524288");
    }

    #[test]
    fn a_file_that_began_again_is_shown_from_its_start() {
        let mut log = Follower::new(Place::File { path: "/x".into() });
        log.command(LIMIT);
        log.content(b"@@ from 0\nold\n");
        log.command(LIMIT);
        assert_eq!(log.content(b"@@ from 0\nnew\n"), b"new\n");
    }
}
