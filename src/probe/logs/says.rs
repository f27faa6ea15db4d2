//! What is no line of a log: what Docker's client or a shell says in its place, and that there is nothing to read.

use super::Place;
use crate::log::{Line, Stream};
use crate::probe::short;

/// Why there is nothing to read, and what the node said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotThere {
    /// Why, as a whole sentence without a full stop.
    pub why: &'static str,
    /// In whose words, where there are any.
    pub said: Option<String>,
}

impl NotThere {
    /// Reads a line that came in place of a file's first one.
    pub(super) fn of(line: &str) -> Self {
        let words = |text: &str| Some(short(text)).filter(|text| !text.is_empty());
        let (why, said) = match line.strip_prefix("@@ none ") {
            Some(rest) => rest.split_once(' ').unwrap_or((rest, "")),
            None => ("", line),
        };
        let why = match why {
            "missing" => "there is no such file",
            "folder" => "it is a folder",
            "device" => "it is a device",
            "closed" => "the login may not read it",
            _ => "it can't be read",
        };
        let said = words(said);
        Self { why, said }
    }
}

/// How Docker's client begins what it says itself, in the spellings of its versions.
const DOCKER_SAYS: [&str; 9] = [
    "Error response from daemon",
    // Docker before 23, and podman.
    "Error: No such ",
    "Error: no such ",
    "Error: no container with ",
    "Cannot connect to Podman",
    "Cannot connect to the Docker daemon",
    "failed to connect to the docker API",
    "permission denied while trying to connect to the ",
    "error during connect: ",
];

/// How the shell that runs a command of the user's own begins what it says itself.
const SHELL_SAYS: &str = "/bin/sh: ";

/// Who says a line that stands in place of a log, or between its lines, and is none of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speaker {
    /// Docker's client.
    Docker,
    /// The shell that runs a command of the user's own.
    Shell,
}

impl Speaker {
    /// Its name.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Docker => "Docker",
            Self::Shell => "the shell",
        }
    }
}

/// Who says a line, where it is none of the log's own.
pub(super) fn speaker(place: &Place, line: &Line) -> Option<Speaker> {
    match place {
        _ if docker_says(line) => Some(Speaker::Docker),
        Place::Command { .. } if shell_says(line) => Some(Speaker::Shell),
        Place::Command { .. } | Place::Container { .. } | Place::File { .. } | Place::ContainerFile { .. } => None,
    }
}

fn shell_says(line: &Line) -> bool {
    line.stream == Stream::Err && line.plain().starts_with(SHELL_SAYS)
}

/// Whether a line in place of a log, or between its lines, is said by Docker's client.
pub(super) fn docker_says(line: &Line) -> bool {
    // What a container has written comes with the time at which it did.
    let own = line.stream == Stream::Err && line.time.is_none();
    own && {
        let text = line.plain();
        let text = text.trim_start();
        let text = text.strip_prefix("docker: ").unwrap_or(text);
        DOCKER_SAYS.iter().any(|words| text.starts_with(words))
    }
}
