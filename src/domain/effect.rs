//! Effects: what the core asks the world to do.

use serde::Serialize;

use super::bench::BenchProfile;
use super::command::Command;
use super::event::ProbeId;
use super::ids::{NodeId, QuestionId, RunId};
use super::load::EarlierLoad;
use super::logs::LogChoice;
use super::question::Answer;
use super::serving::ServerProbe;
use super::step::StepEvent;

/// Something to do.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum Effect {
    /// Run a probe now.
    Probe(NodeId, ProbeId),
    /// Ask the server now.
    ProbeServer(ServerProbe),
    /// Run a command of a step.
    Run {
        /// Names it in `CommandStarted` and `CommandDone`.
        run: RunId,
        /// Where.
        node: NodeId,
        /// What.
        command: Command,
    },
    /// Show this one of a node's logs.
    ShowLog(NodeId, LogChoice),
    /// Start the throughput test.
    StartBench(BenchProfile),
    /// Cancel it.
    CancelBench,
    /// Hand an answer to the waiting end.
    Answer(QuestionId, Answer),
    /// Try now to connect what is down, and ask dismissed questions again.
    Reconnect,
    /// Ring the bell and send a desktop notice.
    Notify(String),
    /// Put text on the clipboard.
    Copy(String),
    /// News of a step, for those who watch a run (`up --json`).
    Step(StepEvent),
    /// A run is over.
    RunOver(RunOutcome),
    /// Keep how long a load took, for the times left of later ones.
    KeepLoad(EarlierLoad),
    /// Read the times of earlier loads: other consoles may have kept some since.
    ReadLoads,
    /// End the console: the first time waits for commands in flight.
    Quit {
        /// Do not wait.
        now: bool,
    },
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunOutcome {
    /// Every step is done.
    Done,
    /// A step failed.
    Failed,
    /// A node was lost while a command was in flight.
    Unknown,
    /// The operator stopped it.
    Aborted,
}
