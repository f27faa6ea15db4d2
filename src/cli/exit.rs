//! Exit codes.

use std::process::ExitCode;

/// How the program ends. `--help` prints this table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Done.
    Done,
    /// A step or a verification failed, or its wait ran out.
    Failed,
    /// Usage, configuration, or `--yes` missing without a terminal.
    Usage,
    /// A configured hop or node could not be reached or refused us. Wins over [`Exit::NotServing`].
    Unreachable,
    /// Everything was reached, and the cluster is not serving.
    NotServing,
    /// Ended by SIGINT.
    Interrupted,
    /// Ended by SIGTERM or SIGHUP.
    Terminated,
}

impl Exit {
    /// The number.
    #[must_use]
    pub fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Unreachable => 3,
            Self::NotServing => 4,
            Self::Interrupted => 130,
            Self::Terminated => 143,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}
