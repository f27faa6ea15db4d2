//! Loading a model: what an engine's log lines say about it.

use std::cmp::Reverse;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::time::{Wall, millis};
use super::units::Bytes;

/// Stages of a start, in the order in which they come. The first two and the last are never in a log: they are seen from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// The image comes to the node.
    Image,
    /// The container is being started.
    Container,
    /// The process runs, nothing more is known.
    Starting,
    /// Ray places the ranks. Where it has no GPUs for them they wait here, and only Ray or the engine says so.
    Placement,
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
    /// A token came back.
    Ready,
}

impl Stage {
    /// The word on the screen.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Image => "image",
            Self::Container => "container",
            Self::Starting => "starting",
            Self::Placement => "placement",
            Self::Distributed => "distributed init",
            Self::Download => "download",
            Self::Weights => "weights",
            Self::Compile => "compile",
            Self::KvCache => "KV cache",
            Self::Graphs => "graphs",
            Self::Warmup => "warm-up",
            Self::Listening => "listening",
            Self::Ready => "ready",
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
    /// Size of the weights on the disk, all ranks together.
    Checkpoint(Bytes),
    /// The bar of a download, in bytes.
    Download {
        /// The file; `None` where the bar stands for all of them.
        file: Option<String>,
        /// Done so far.
        done: Bytes,
        /// Of how many.
        total: Bytes,
    },
    /// The rank that wrote a line, and what the line says of it.
    Rank(RankLine),
    /// The engine waits for GPUs for so many seconds.
    GpuWait {
        /// Seconds, as the line gives them.
        seconds: u64,
    },
    /// The engine says again that it waits for its own processes. That comes in healthy starts too, once a minute, so it is no failure; and it is no sign of
    /// life either.
    StillWaits,
    /// NCCL's transport on a channel.
    Transport(Transport),
    /// A line that says something failed: an exception, a fatal error. Wrapper lines that only point to another line are not given.
    Failure(String),
    /// A line after which this start comes to nothing, though its process may stay for long. It may only point to the line that says why.
    GaveUp {
        /// What it says.
        text: String,
        /// Whether the engine says so of itself. Else it is an exception that no engine was seen to survive: one that goes on all the same has survived it.
        sure: bool,
    },
    /// Whoever printed this exception goes on: it is no failure.
    Outlived(String),
    /// The server says that it ends: because it was told to, or because its engine has died.
    ShutsDown,
}

impl LineFact {
    /// Whether the line says no more than that something is waited for: such a line breaks no silence.
    #[must_use]
    pub fn waits(&self) -> bool {
        match self {
            Self::GpuWait { .. } | Self::StillWaits => true,
            Self::NewStart
            | Self::Stage(_)
            | Self::Bar { .. }
            | Self::Checkpoint(_)
            | Self::Download { .. }
            | Self::Rank(_)
            | Self::Transport(_)
            | Self::Failure(_)
            | Self::GaveUp { .. }
            | Self::Outlived(_)
            | Self::ShutsDown => false,
        }
    }
}

/// A rank as far as one of its lines names it. Each part may be missing, and which are there differs by version and by line.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct RankLine {
    /// As its prefix names it, such as `TP1` or `DP1_TP0_EP2`.
    pub name: Option<String>,
    /// Its number among all ranks.
    pub rank: Option<u32>,
    /// Its process, in the numbers of its own container.
    pub pid: Option<u32>,
    /// Address of its host, as Ray prints it for a host other than the one that prints.
    pub address: Option<String>,
    /// The stage that it has come to.
    pub stage: Option<Stage>,
    /// Its bar: done, of how many.
    pub bar: Option<(u64, u64)>,
}

/// A load that came to its end on this cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EarlierLoad {
    /// What was loaded and how: a hash over the cluster, the engine, its image and every argument.
    pub key: String,
    /// Name of the model, for a person who reads the file.
    pub model: String,
    /// When it ended.
    pub ended: Wall,
    /// How long each stage took, in their order.
    pub stages: Vec<(Stage, Duration)>,
}

impl EarlierLoad {
    /// How long a stage took; zero where the load did not have it.
    #[must_use]
    pub fn took(&self, stage: Stage) -> Duration {
        self.stages
            .iter()
            .filter(|(s, _)| *s == stage)
            .map(|(_, took)| *took)
            .sum()
    }

    /// From its first stage's beginning to its end, in milliseconds since 1970.
    fn span(&self) -> (u64, u64) {
        let all = self.stages.iter().map(|(_, took)| millis(*took));
        let took = all.fold(0, u64::saturating_add);
        (self.ended.0.saturating_sub(took), self.ended.0)
    }

    /// Whether both are records of one load: a cluster loads a model once at a time, so that two whose times overlap were written by two who watched it.
    #[must_use]
    pub fn same(&self, other: &Self) -> bool {
        let ((from, to), (other_from, other_to)) = (self.span(), other.span());
        self.key == other.key && ((from < other_to && other_from < to) || to == other_to)
    }

    /// How much of the load its record holds: its stages, then the time before the last of them. The last one ends when somebody gets an answer: of those who
    /// saw as much the first one knows best when that was.
    fn saw(&self) -> (usize, u64, Reverse<Wall>) {
        let (from, to) = self.span();
        let last = self.stages.last().map_or(0, |(_, took)| millis(*took));
        let before = to.saturating_sub(from).saturating_sub(last);
        (self.stages.len(), before, Reverse(self.ended))
    }
}

/// Adds a record to those of earlier loads. Of one load the record stays that saw more of it. Oldest first.
pub fn add(loads: &mut Vec<EarlierLoad>, mut load: EarlierLoad) {
    loads.retain(|other| {
        let same = other.same(&load);
        if same && other.saw() >= load.saw() {
            load = other.clone();
        }
        !same
    });
    let after = loads.iter().take_while(|other| other.ended <= load.ended).count();
    loads.insert(after, load);
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A load that ended then, with stages of so many seconds.
    fn load(ended_s: u64, took: &[u64]) -> EarlierLoad {
        let stages = [Stage::Starting, Stage::Weights, Stage::Warmup, Stage::Listening];
        EarlierLoad {
            key: "a".to_owned(),
            model: String::new(),
            ended: Wall(ended_s * 1000),
            stages: stages
                .into_iter()
                .zip(took.iter().map(|s| Duration::from_secs(*s)))
                .collect(),
        }
    }

    fn added(loads: &[EarlierLoad]) -> Vec<EarlierLoad> {
        let mut all = Vec::new();
        for load in loads {
            add(&mut all, load.clone());
        }
        all
    }

    #[test]
    fn of_one_load_that_several_watched_the_record_stays_that_saw_most() {
        let (most, less, late) = (load(1000, &[5, 30, 2, 1]), load(999, &[5, 30, 2]), load(1000, &[9]));
        let next = load(1100, &[5, 30, 2]);
        for order in [
            [&most, &less, &late, &next],
            [&next, &late, &less, &most],
            [&less, &next, &most, &late],
        ] {
            assert_eq!(
                added(&order.map(Clone::clone)),
                [most.clone(), next.clone()],
                "{order:?}"
            );
        }
        let longer = load(1001, &[6, 30, 2, 1]);
        assert_eq!(added(&[most.clone(), longer.clone()]), [longer]);
        // The answer was seen later, or seen again.
        let again = load(4600, &[5, 30, 2, 3601]);
        assert_eq!(added(&[most.clone(), again.clone()]), added(&[again, most.clone()]));
        let earlier = added(&[load(4600, &[5, 30, 2, 3601]), most.clone()]);
        assert_eq!(earlier, std::slice::from_ref(&most));
        // One after the other, and at the same time on another cluster.
        assert_eq!(added(&[load(1000, &[9]), load(1009, &[9])]).len(), 2);
        let mut other = most.clone();
        other.key = "b".to_owned();
        assert_eq!(added(&[most.clone(), other]).len(), 2);
        // Seen for no time at all: the same end is the same load.
        assert_eq!(added(&[load(7, &[]), load(7, &[])]), [load(7, &[])]);
    }
}
