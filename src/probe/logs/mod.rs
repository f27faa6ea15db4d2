//! Commands that follow a log, and how one goes on after a connection was lost.

mod docker;
mod file;
mod runs;
mod says;
#[cfg(test)]
mod tests;

use std::time::Duration;

use crate::domain::command::{Command, Exit, Output, quote};
use crate::domain::logs::Older;
use crate::domain::units::Bytes;
use crate::log::Line;

use docker::DockerPosition;
use file::FilePosition;
use runs::Runs;

pub use docker::{FIRST_LINES, OLDER_ID};
pub use says::{NotThere, Speaker};

/// Bytes of an existing log file that are shown when it is followed for the first time.
pub const FIRST_BYTES: u64 = 512 * 1024;

/// Id of the script that follows a file on the node.
pub const FILE_ID: &str = "log.file";

/// Id of the script that follows a file inside a container.
pub const CONTAINER_FILE_ID: &str = "log.container-file";

/// Id of the script that runs a command line of the user's own.
pub const COMMAND_ID: &str = "log.command";

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
    /// What a command line prints, run by /bin/sh; it begins anew each time.
    Command {
        /// The line.
        line: String,
    },
}

impl Place {
    /// The same as an operator would type it or name it.
    #[must_use]
    pub fn words(&self) -> String {
        match self {
            Self::Container { docker, name } => format!("{docker} logs {name}"),
            Self::File { path } => path.clone(),
            Self::ContainerFile { name, path, .. } => format!("{name}:{path}"),
            Self::Command { line } => line.clone(),
        }
    }
}

/// A followed log and how far it was read, so that following it again neither repeats nor leaves out lines.
///
/// `docker logs --since` repeats lines: they are known by their times. A file is taken up after its last whole line. Each run of the command wants a
/// decoder of its own.
#[derive(Debug, Clone)]
pub struct Follower {
    place: Place,
    docker: DockerPosition,
    file: FilePosition,
    runs: Runs,
}

impl Follower {
    /// A log that was not read yet.
    #[must_use]
    pub fn new(place: Place) -> Self {
        Self {
            place,
            docker: DockerPosition::default(),
            file: FilePosition::default(),
            runs: Runs::default(),
        }
    }

    /// Where it is.
    #[must_use]
    pub fn place(&self) -> &Place {
        &self.place
    }

    /// The command that follows it from where it was left. Its stdout passes [`Self::content`] before it is decoded; each line passes
    /// [`Self::fresh`].
    pub fn command(&mut self, limit: Duration) -> Command {
        self.file.begin();
        self.runs.begin();
        let since = self.docker.begin();
        let (from, inode) = self.file.place();
        let part = FIRST_BYTES.to_string();
        let command = match &self.place {
            Place::Container { docker, name } => docker::command(docker, name, since, limit),
            Place::File { path } => Command::script(FILE_ID, TAIL, vec![path.clone(), from, part, inode], limit),
            Place::ContainerFile { docker, name, path } => {
                let args = vec![docker.clone(), name.clone(), path.clone(), from, part, inode];
                Command::script(CONTAINER_FILE_ID, in_container(TAIL, 4), args, limit)
            }
            Place::Command { line } => {
                Command::script(COMMAND_ID, "exec /bin/sh -c \"$1\"\n", vec![line.clone()], limit)
            }
        };
        command.follow()
    }

    /// The bytes of stdout that belong to the log.
    pub fn content<'b>(&mut self, bytes: &'b [u8]) -> &'b [u8] {
        match &self.place {
            Place::Container { .. } | Place::Command { .. } => bytes,
            Place::File { .. } | Place::ContainerFile { .. } => self.file.content(bytes),
        }
    }

    /// What has to stand in the log before what was just read, if anything: that lines are missing.
    pub fn notice(&mut self) -> Option<String> {
        let file = self.file.why.take().map(str::to_owned);
        file.or_else(|| self.docker.notice.take())
    }

    /// That there is nothing to read, where the node has just said so.
    pub fn absent(&mut self) -> Option<NotThere> {
        self.file.absent.take()
    }

    /// Whether a file that is followed was found, since the command was last given.
    #[must_use]
    pub fn found(&self) -> bool {
        match &self.place {
            Place::Container { .. } | Place::Command { .. } => false,
            Place::File { .. } | Place::ContainerFile { .. } => self.file.begun(),
        }
    }

    /// Whether Docker is to give a line again that was read.
    #[must_use]
    pub fn expects(&self) -> bool {
        self.docker.expects()
    }

    /// What the log holds before the first line that was read; `None` where nothing is known of any.
    #[must_use]
    pub fn older(&self) -> Option<Older> {
        match &self.place {
            Place::Container { .. } => self.docker.has_older().then_some(Older::Lines),
            Place::File { .. } | Place::ContainerFile { .. } => self
                .file
                .first
                .filter(|from| *from > 0)
                .map(|from| Older::Bytes(Bytes(from))),
            Place::Command { .. } => None,
        }
    }

    /// Asks once whether Docker has lines from before the first that was read, where so many came that it may.
    pub fn ask_older(&mut self, limit: Duration) -> Option<Command> {
        match &self.place {
            Place::Container { docker, name } => self.docker.ask_older(docker, name, limit),
            Place::File { .. } | Place::ContainerFile { .. } | Place::Command { .. } => None,
        }
    }

    /// Takes the answer to that.
    pub fn take_older(&mut self, output: &Output) {
        self.docker.take_older(output);
    }

    /// Who says a line, where it is none of the log's own.
    #[must_use]
    pub fn speaker(&self, line: &Line) -> Option<Speaker> {
        says::speaker(&self.place, line)
    }

    /// Whether an unfinished line at the end comes again when the log is taken up: it is no line then.
    #[must_use]
    pub fn repeats(&self) -> bool {
        match &self.place {
            Place::Container { .. } | Place::Command { .. } => false,
            Place::File { .. } | Place::ContainerFile { .. } => true,
        }
    }

    /// Whether it goes on where it was left: what came and was not taken comes again with the next [`Self::command`].
    #[must_use]
    pub fn goes_on(&self) -> bool {
        match &self.place {
            Place::Container { .. } | Place::File { .. } | Place::ContainerFile { .. } => true,
            Place::Command { .. } => false,
        }
    }

    /// Whether what came before this end is a log, however it ended: a command of the user's own that could be run.
    #[must_use]
    pub fn printed(&self, exit: &Exit) -> bool {
        match &self.place {
            Place::Command { .. } => !matches!(exit, Exit::Code(126 | 127)),
            Place::Container { .. } | Place::File { .. } | Place::ContainerFile { .. } => false,
        }
    }

    /// Bytes of the log came and could not be taken: a file is not taken up before them again.
    pub fn lost(&mut self, bytes: u64) {
        self.file.lost(bytes);
    }

    /// Whether a line was not seen before the command was last given.
    pub fn fresh(&mut self, line: &Line) -> bool {
        self.docker.fresh(line)
    }

    /// Whether an earlier run of the user's own command has printed this line too: it is shown again, and what it says has been counted.
    pub fn told_before(&mut self, line: &Line) -> bool {
        match &self.place {
            Place::Command { .. } => self.runs.again(line),
            Place::Container { .. } | Place::File { .. } | Place::ContainerFile { .. } => false,
        }
    }
}

/// A script that follows something inside a container: its first words are Docker's program and the container's name, then come `args` more that are its
/// own. What `docker exec` starts there outlives its client; it ends with an input that the client keeps open.
pub(super) fn in_container(script: &str, args: usize) -> String {
    let script: String = script
        .split_inclusive('\n')
        .filter(|line| !line.trim_start().starts_with('#'))
        .collect();
    let inner = format!(
        "exec 4<&0\n(\n{script}) </dev/null 4<&- &\njob=$!\n{{ cat <&4 >/dev/null; kill \"$job\" 2>/dev/null; }} &\near=$!\nexec 4<&-\n\
         wait \"$job\"\ncode=$?\nkill \"$ear\" 2>/dev/null\nexit \"$code\"\n"
    );
    let own: String = (3..3 + args).map(|n| format!(" \"${n}\"")).collect();
    format!(
        "while echo; do sleep 5; done 2>/dev/null | $1 exec -i \"$2\" /bin/sh -c {} tail{own}\n",
        quote(&inner)
    )
}
