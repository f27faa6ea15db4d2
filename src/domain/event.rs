//! Events: everything that changes the state, in one order.

use std::time::Duration;

use serde::Serialize;

use super::bench::BenchEvent;
use super::clock::{NodeClock, Written};
use super::command::{Command, Exit};
use super::ids::{NodeId, RunId, Source};
use super::intent::Intent;
use super::link::LinkState;
use super::load::{EarlierLoad, LineFact};
use super::logs::{ContainerEnd, LogFlow, LogSource};
use super::observed::VerbFacts;
use super::problem::Problem;
use super::question::Question;
use super::serving::{ServeFacts, ServerFacts};
use super::sign::Sign;
use super::time::Now;
use super::{container, disk, fabric, gpu, image, memory, ray, sockets};

/// Something happened.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Event {
    /// Who says so.
    pub source: Source,
    /// When it was so; for facts, the moment of the question.
    pub at: Now,
    /// What.
    pub kind: EventKind,
}

/// Kinds of event.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum EventKind {
    /// A connection changed. Never dropped.
    Link(LinkState),
    /// A probe's facts. Newest per source and kind wins.
    Facts(Facts),
    /// How often the source will tell of a subject from now on, where that changes.
    Pace {
        /// Which.
        what: Subject,
        /// From one look to the next.
        every: Duration,
    },
    /// A probe that gave nothing, and why.
    ProbeFailed {
        /// Which.
        probe: ProbeId,
        /// Why, as a fragment.
        why: String,
    },
    /// What parsers found wrong. The newest list of a source replaces the one before.
    Problems(Vec<Problem>),
    /// The server's or the dashboard's answer.
    Server(ServerFacts),
    /// A command starts on a node.
    CommandStarted(CommandStart),
    /// A command ended. Never dropped.
    CommandDone(CommandDone),
    /// What a node's own clock shows at the event's moment, or why that is not known. The newest wins.
    Clock(Result<NodeClock, String>),
    /// A log has new lines (they stand beside the queue).
    LogAdvanced {
        /// Lines seen in all.
        seq: u64,
        /// Lines that the ring dropped.
        dropped: u64,
        /// The newest of them that is the log's own; `None` where only the console has written into it.
        newest: Option<Written>,
        /// The newest of them that says more than that something is waited for.
        spoke: Option<Written>,
    },
    /// How a node's log keeps up; the newest replaces the one before.
    LogFlow(LogFlow),
    /// What a node's log is read from now. Never dropped.
    LogSource(LogSource),
    /// The container whose log was followed ended. Never dropped.
    ContainerEnded(ContainerEnd),
    /// A log line said something.
    Line(LineFact, Written),
    /// A log line may say why something failed, or a new start makes what was said before void. Never dropped.
    Sign(Sign),
    /// An actor asks. Never dropped.
    Question(Question),
    /// The throughput test.
    Bench(BenchEvent),
    /// A person wants something.
    Intent(Intent),
    /// What is kept of earlier loads, oldest first.
    EarlierLoads(Vec<EarlierLoad>),
    /// Time goes on.
    Tick,
    /// A line for the notices, such as a file that could not be written.
    Notice(String),
}

/// What a probe found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum Facts {
    /// Host memory.
    Memory(memory::MemoryFacts),
    /// GPUs.
    Gpus(gpu::GpuFacts),
    /// Containers.
    Containers(container::ContainerFacts),
    /// Sockets.
    Sockets(sockets::SocketFacts),
    /// Interfaces.
    Fabric(fabric::FabricFacts),
    /// Disks and the model cache.
    Disk(disk::DiskFacts),
    /// The image.
    Image(image::ImageFacts),
    /// Versions in the image.
    Versions(image::VersionFacts),
    /// Versions in a running container.
    Inside(image::InsideFacts),
    /// Ray's membership, asked in the head's container.
    Ray(ray::RayFacts),
    /// What `ray status` counts.
    RayStatus(ray::RayStatus),
    /// Model-server processes.
    Serve(ServeFacts),
    /// A detached verb of the script engine.
    Verb(VerbFacts),
    /// One of these could not be read, and why: no driver, no permission. What was read beside it stands.
    Absent {
        /// Which.
        what: Subject,
        /// Why, as a fragment.
        why: String,
    },
}

/// What facts can be about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Subject {
    /// [`Facts::Memory`].
    Memory,
    /// [`Facts::Gpus`].
    Gpus,
    /// [`Facts::Containers`].
    Containers,
    /// [`Facts::Sockets`].
    Sockets,
    /// [`Facts::Fabric`].
    Fabric,
    /// [`Facts::Disk`].
    Disk,
    /// [`Facts::Image`].
    Image,
    /// [`Facts::Versions`].
    Versions,
    /// [`Facts::Inside`].
    Inside,
    /// [`Facts::Ray`].
    Ray,
    /// [`Facts::RayStatus`].
    RayStatus,
    /// [`Facts::Serve`].
    Serve,
    /// [`Facts::Verb`].
    Verb,
}

/// The probes that a node can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub enum ProbeId {
    /// Memory, GPUs, containers, sockets and interfaces in one answer: what [`Purpose::Watch`] tells as it goes on, asked for now.
    Node,
    /// The configured image.
    Image,
    /// Versions in the image (runs it once).
    Versions,
    /// Versions in the running container.
    Inside,
    /// Ray's membership, asked in the head's container by a program that goes on while it is asked for again and again.
    Ray,
    /// `ray status` in the head's container.
    RayStatus,
    /// Model-server processes in the head's container.
    Serve,
    /// A detached verb of the script engine.
    Verb,
}

/// What a command is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub enum Purpose {
    /// A probe.
    Probe(ProbeId),
    /// The stream of a node's readings.
    Watch,
    /// A step of a plan.
    Step,
    /// A followed log.
    Log,
    /// A request to the model server that costs tokens.
    Server,
}

/// A command starts.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CommandStart {
    /// Unique within the console.
    pub run: RunId,
    /// Where.
    pub node: NodeId,
    /// What for.
    pub purpose: Purpose,
    /// What.
    pub command: Command,
}

/// A command ended.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CommandDone {
    /// Which.
    pub run: RunId,
    /// How.
    pub exit: Exit,
    /// Last lines of stdout, bounded and masked.
    pub stdout: Vec<String>,
    /// Last lines of stderr, bounded and masked.
    pub stderr: Vec<String>,
    /// How long it took, in milliseconds.
    pub took_ms: u64,
}
