//! What a node answers to a command, before any of it is sent.

use std::time::Duration;

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Writes, each so long after the command came, and how it ends.
    Once {
        /// What is written, in order.
        writes: Vec<Write>,
        /// When it ends.
        after: Duration,
        /// Exit code.
        code: u32,
    },
    /// A container's log.
    Log(Tail),
    /// The stream of a node's readings.
    Readings(Readings),
    /// Ray's membership as it goes on, from this container.
    Members {
        /// Its id.
        container: String,
        /// The port that is asked.
        port: String,
    },
    /// These writes and then nothing, until the console ends it.
    Silence {
        /// To stdout.
        out: String,
        /// To stderr.
        err: String,
    },
}

/// One write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write {
    /// So long after the command came.
    pub after: Duration,
    /// To stderr.
    pub err: bool,
    /// Bytes.
    pub text: String,
}

/// What a stream of readings was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Readings {
    /// Number of the node.
    pub node: usize,
    /// What stands before each line.
    pub mark: String,
    /// The configured container's name.
    pub name: String,
    /// What an ended container is known by whose log is wanted: a pattern for its name, and a piece of a template for its label.
    pub meant: (String, String),
}

/// What of a container's log is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tail {
    /// Id of the container.
    pub container: String,
    /// From this line on.
    pub from: u64,
    /// Goes on as lines come.
    pub follow: bool,
    /// Each line begins with its date.
    pub dates: bool,
    /// stderr goes to stdout as well.
    pub merged: bool,
}

impl Answer {
    /// An answer at once.
    pub fn now(out: impl Into<String>, err: impl Into<String>, code: u32) -> Self {
        Self::after(Duration::ZERO, out, err, code)
    }

    /// An answer after a while.
    pub fn after(after: Duration, out: impl Into<String>, err: impl Into<String>, code: u32) -> Self {
        let writes = [(false, out.into()), (true, err.into())];
        Self::Once {
            writes: writes
                .into_iter()
                .filter(|(_, text)| !text.is_empty())
                .map(|(err, text)| Write { after, err, text })
                .collect(),
            after,
            code,
        }
    }

    /// What dash says of a program that is not there.
    pub fn unknown(program: &str) -> Self {
        Self::now("", format!("sh: 1: {program}: not found\n"), 127)
    }
}
