//! Ray's own log files on a node: what each of its workers printed there, whether or not it came to the driver.
//!
//! Ray keeps `worker-WORKER-JOB-PID.out` and `.err` and `raylet.err` in `/tmp/ray/session_latest/logs` of the container in which it runs (Ray's docs, "Logging
//! directory structure"). A line `:actor_name:NAME` in a worker's file says what the worker is; Ray's own reader leaves such lines out too.

use std::time::Duration;

use crate::domain::command::Command;
use crate::log::Stream;

use super::logs::in_container;

/// Id of the script.
pub const ID: &str = "log.ray";

/// Where Ray keeps them, in the container.
pub const FOLDER: &str = "/tmp/ray/session_latest/logs";

/// Bytes of a file's end that are shown when it is followed for the first time.
const FIRST_BYTES: u64 = 16 * 1024;

/// Longest line before a piece of a file. A longer one is none of ours.
const HEADER: usize = 512;

const SCRIPT: &str = include_str!("ray_logs.sh");

/// Follows them all.
#[must_use]
pub fn command(docker: &str, container: &str, limit: Duration) -> Command {
    let args = [docker, container, FOLDER, &FIRST_BYTES.to_string()].map(str::to_owned);
    Command::script(ID, in_container(SCRIPT, 2), args.to_vec(), limit).follow()
}

/// Reads pieces of files out of what the script prints.
#[derive(Debug, Clone, Default)]
pub struct Pieces {
    header: Vec<u8>,
    file: String,
    left: u64,
    none: bool,
}

impl Pieces {
    /// Whether the node says that there is no file yet.
    #[must_use]
    pub fn none(&self) -> bool {
        self.none
    }

    /// Whether a file was named.
    #[must_use]
    pub fn begun(&self) -> bool {
        !self.file.is_empty()
    }

    /// Hands each file's bytes on, with its name.
    pub fn feed(&mut self, mut bytes: &[u8], sink: &mut impl FnMut(&str, &[u8])) {
        while !bytes.is_empty() {
            if self.left > 0 {
                let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(bytes.len());
                let (piece, rest) = bytes.split_at(most);
                sink(&self.file, piece);
                self.left -= piece.len() as u64;
                bytes = rest;
                continue;
            }
            let end = bytes.iter().position(|b| *b == b'\n');
            let (part, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
            if self.header.len() + part.len() <= HEADER {
                self.header.extend_from_slice(part);
            }
            bytes = rest.get(1..).unwrap_or_default();
            if end.is_some() {
                let line = String::from_utf8_lossy(&std::mem::take(&mut self.header)).into_owned();
                if let Some((file, left)) = line.strip_prefix("@@ file ").and_then(|l| l.rsplit_once(' ')) {
                    self.file = file.to_owned();
                    self.left = left.parse().unwrap_or(0);
                    self.none = false;
                } else if line == "@@ none" {
                    self.none = true;
                }
            }
        }
    }
}

/// Whose file it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// What writes it: `worker` until its file names the actor, or `raylet`.
    pub name: String,
    /// Its process id, inside the container.
    pub pid: Option<u32>,
    /// Which output the file holds.
    pub stream: Stream,
}

impl Owner {
    /// Reads a file's name.
    #[must_use]
    pub fn of(file: &str) -> Self {
        let (stem, kind) = file.rsplit_once('.').unwrap_or((file, ""));
        let stream = if kind == "err" { Stream::Err } else { Stream::Out };
        let worker = stem.strip_prefix("worker-").and_then(|rest| rest.rsplit('-').next());
        Self {
            name: if worker.is_some() { "worker" } else { stem }.to_owned(),
            pid: worker.and_then(|pid| pid.parse().ok()),
            stream,
        }
    }

    /// Takes a line that is Ray's own note in the file and not the worker's; says whether it was one.
    pub fn note(&mut self, line: &str) -> bool {
        if let Some(name) = line
            .strip_prefix(":actor_name:")
            .or_else(|| line.strip_prefix(":task_name:"))
        {
            if !name.is_empty() {
                name.clone_into(&mut self.name);
            }
            return true;
        }
        line.starts_with(":job_id:")
    }

    /// What stands before each line, as Ray's driver writes it.
    #[must_use]
    pub fn prefix(&self) -> String {
        match self.pid {
            Some(pid) => format!("({} pid={pid}) ", self.name),
            None => format!("({}) ", self.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_files_come_out_whole_however_they_are_cut() {
        let text =
            b"@@ file worker-a-b-7.out 8\none\n@@ t@@ file raylet.err 3\nx\n\n@@ file worker-a-b-7.out 4\nwo\n\n";
        for size in [1, 2, 5, 100] {
            let mut pieces = Pieces::default();
            let (mut worker, mut raylet) = (Vec::new(), Vec::new());
            for part in text.chunks(size) {
                pieces.feed(part, &mut |file, bytes| match file {
                    "raylet.err" => raylet.extend_from_slice(bytes),
                    _ => worker.extend_from_slice(bytes),
                });
            }
            assert_eq!(String::from_utf8_lossy(&worker), "one\n@@ two\n\n", "{size}");
            assert_eq!(raylet, b"x\n\n", "{size}");
        }
    }

    #[test]
    fn that_there_is_no_file_yet_is_no_line_of_one() {
        let mut pieces = Pieces::default();
        pieces.feed(b"@@ none\n", &mut |_, _| unreachable!("no file was named"));
        assert!(pieces.none() && !pieces.begun());
        pieces.feed(b"@@ file raylet.err 3\nx\n\n", &mut |file, _| {
            assert_eq!(file, "raylet.err")
        });
        assert!(!pieces.none() && pieces.begun());
    }

    #[test]
    fn a_header_without_an_end_is_bounded() {
        let mut pieces = Pieces::default();
        pieces.feed(&[b'x'; 4 * HEADER], &mut |_, _| unreachable!("no file was named"));
        assert!(pieces.header.len() <= HEADER);
    }

    #[test]
    fn a_file_tells_whose_it_is() {
        let file = "worker-3a5c2f05d2f2ec2cf6ca2f7cb3ff1c2f9e7c6bb0e0d5e0ad8c8f5e4d-01000000-490.err";
        let mut owner = Owner::of(file);
        assert_eq!(
            (owner.prefix().as_str(), owner.stream),
            ("(worker pid=490) ", Stream::Err)
        );
        assert!(owner.note(":job_id:01000000"));
        assert!(owner.note(":actor_name:RayWorkerWrapper"));
        assert!(!owner.note("INFO 11-29 17:04:55 [gpu_worker.py:298] x"));
        assert_eq!(owner.prefix(), "(RayWorkerWrapper pid=490) ");
        let raylet = Owner::of("raylet.err");
        assert_eq!((raylet.prefix().as_str(), raylet.stream), ("(raylet) ", Stream::Err));
    }
}
