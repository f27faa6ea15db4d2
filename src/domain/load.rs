//! Loading a model: what an engine's log lines say about it.

use serde::Serialize;

/// Stages of a start, in the order in which they come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// The process runs, nothing more is known.
    Starting,
    /// Waits until Ray has the GPUs.
    WaitingForGpus,
    /// Ranks find each other.
    Distributed,
    /// Weights come from a hub.
    Download,
    /// Weights go into memory.
    Weights,
    /// torch.compile.
    Compile,
    /// The KV cache is measured and made.
    KvCache,
    /// CUDA graphs are captured.
    Graphs,
    /// First runs before the server listens.
    Warmup,
    /// The server says that it listens.
    Listening,
}

impl Stage {
    /// The word on the screen.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::WaitingForGpus => "waiting for GPUs",
            Self::Distributed => "distributed init",
            Self::Download => "download",
            Self::Weights => "weights",
            Self::Compile => "compile",
            Self::KvCache => "KV cache",
            Self::Graphs => "graphs",
            Self::Warmup => "warm-up",
            Self::Listening => "listening",
        }
    }
}

/// What one log line says.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum LineFact {
    /// A new process starts from the beginning: progress of an earlier one is over.
    NewStart,
    /// The start has come to this stage.
    Stage(Stage),
    /// A progress bar of a stage.
    Bar {
        /// Stage it belongs to.
        stage: Stage,
        /// Done so far.
        done: u64,
        /// Of how many.
        total: u64,
    },
    /// The engine waits for GPUs for so many seconds.
    GpuWait {
        /// Seconds, as the line gives them.
        seconds: u64,
    },
    /// NCCL's transport on a channel.
    Transport(Transport),
    /// A line that says something failed: an exception, a fatal error. Wrapper lines that only point to another line are not given.
    Failure(String),
}

/// How NCCL moves data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    /// `via NET/IB`.
    Ib,
    /// `via NET/Socket`: TCP, slow.
    Socket,
}
