//! Whether a load goes on: from silence together with what moves.
//!
//! Silence alone says nothing. An engine compiles, downloads or waits for its peers for minutes without a line, and a line that comes once a minute may only
//! say that it waits. So each verdict names its evidence, a load on which anything moves is never called stalled, and without a reading nothing is
//! known. A console that has just come has seen nothing move yet, and may know from a log's own times that nothing was said for long: it looks for a while
//! before it says that nothing moves.

use std::time::Duration;

use serde::Serialize;

use crate::domain::load::Stage;
use crate::domain::time::human;
use crate::domain::{Stamp, When};

use super::trend::{Seen, Signal, WINDOW};

/// Silence that is worth no word: records of one stage come this far apart on a slow machine. What moves is looked at over the same time.
pub const QUIET: Duration = WINDOW;

/// How often the mean time of a shard one shard may take before the load counts as slow. Shards differ in size, and the last ones are often small.
const SLOW_STEPS: u32 = 4;

/// A shard that takes less is not slow, whatever the others took: a cold disk after a warm cache.
const SLOW_LEAST: Duration = Duration::from_secs(30);

/// How often the longest time that an earlier load took for a stage it may take before it counts as slow.
const SLOW_STAGE: u32 = 2;

/// Time for which readings are looked at before they can say that nothing moves, where none of them rises: memory is read every two seconds, and a load
/// that goes on takes some in that time.
pub const LOOK: Duration = Duration::from_secs(10);

/// How often its patience a stage whose log is silent may last on what moves on the host alone. What else runs there moves the same readings, so after that nobody
/// can tell; a weights' shard, a graph or a kernel is a line, however slow.
const HOST_ALONE: u32 = 3;

/// A log whose newest line came sooner ago may still be read: an old line is then not its last.
const READING: Duration = Duration::from_secs(2);

/// What is known of a load, or of one node's part of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// Its stage.
    pub stage: Stage,
    /// Whether it is a download only by guess: the model may come from the node's own cache.
    pub guessed: bool,
    /// Since when.
    pub since: When,
    /// Whether nobody has said so of this part: it is the stage of the whole.
    pub inferred: bool,
    /// Whether it writes lines of its own: the silence of what never does says nothing.
    pub writes: bool,
    /// Last line that says more than that something is waited for.
    pub line_at: Option<When>,
    /// When the log's newest line was read.
    pub came: Option<Stamp>,
    /// Last move of a stage or a bar.
    pub step_at: Option<When>,
    /// Of a bar that is not complete: the mean time of a step, and when the last one was.
    pub pace: Option<(Duration, Stamp)>,
    /// What is known of each node's readings.
    pub signals: Vec<(String, Seen)>,
    /// Since when all of these nodes are looked at; `None` while one is not.
    pub watched: Option<Stamp>,
    /// Why the stage waits for GPUs, where it does: `Ray has 1 GPU alive of 2`.
    pub gpus: Option<String>,
    /// Nodes whose rank may be missing, each with why: `spark-2 does not answer`.
    pub missing: Vec<String>,
    /// The server's port, where the engine says that it listens and the port refuses.
    pub refused_port: Option<u16>,
    /// The longest time that this stage took in earlier loads.
    pub longest: Option<Duration>,
    /// What else a person should know beside a verdict that is not good: `MemAvailable 4.1 of 119.7 GiB on spark-2`.
    pub notes: Vec<String>,
    /// How long a load must have stalled before a new start is worth a word.
    pub restart_after: Duration,
}

/// How a load goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It goes on.
    Progressing,
    /// It is too early to say: it is looked at since then.
    Early {
        /// The first look.
        since: Stamp,
    },
    /// It goes on, and slower than it did, or nothing has moved for a while.
    Slow,
    /// It waits for something, named as a fragment: `GPUs`, `a peer`.
    Waiting(String),
    /// Nothing has moved for longer than the stage is silent as a rule, since then.
    Stalled {
        /// The last movement.
        since: When,
    },
    /// No line has come since then, and nothing else is known of it: nobody can tell whether it goes on.
    Silent {
        /// The last line.
        since: When,
    },
}

impl Verdict {
    /// The word in `status` and on the screen.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Progressing => "progressing",
            Self::Early { .. } => "too early",
            Self::Slow => "slow",
            Self::Waiting(_) => "waiting",
            Self::Stalled { .. } => "stalled",
            Self::Silent { .. } => "silent",
        }
    }

    /// In words: `waiting for GPUs`, `stalled for 4m10s`.
    #[must_use]
    pub fn text(&self, now: Stamp) -> String {
        match self {
            Self::Progressing | Self::Slow => self.word().to_owned(),
            Self::Early { .. } => "too early to say".to_owned(),
            Self::Waiting(what) => format!("waiting for {what}"),
            Self::Stalled { since } => format!("stalled for {}", since.ago(now)),
            Self::Silent { since } => format!("can't tell, no line for {}", since.ago(now)),
        }
    }
}

/// A verdict with what it rests on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Judgement {
    /// The verdict.
    pub verdict: Verdict,
    /// What it rests on, as fragments, the weightiest first.
    pub evidence: Vec<String>,
    /// What to do, where it is time to do something.
    pub advice: Option<String>,
}

/// How long nothing may move in a stage before it has stalled. Each is above what healthy loads were seen to take on slow machines.
#[must_use]
pub fn patience(stage: Stage) -> Duration {
    let minutes = match stage {
        // Imports and the reading of the configuration: two minutes and a half on a busy host, without a line.
        Stage::Image | Stage::Container | Stage::Starting => 5,
        // The engine gives up by itself after half an hour; until then it waits.
        Stage::Placement => 35,
        // A rank waits for its peers for up to ten minutes before torch gives up.
        Stage::Distributed => 10,
        // A hub may be slow for long, and a file is counted when it is whole.
        Stage::Download => 10,
        // Shards come seconds apart, and memory moves with each.
        Stage::Weights => 3,
        // torch.compile says nothing for minutes, uses one core and no memory to speak of.
        Stage::Compile => 15,
        // Profiling, capturing and warm-up may compile kernels on the way.
        Stage::KvCache | Stage::Graphs | Stage::Warmup => 5,
        Stage::Listening | Stage::Ready => 5,
    };
    Duration::from_secs(minutes * 60)
}

/// Judges a load.
#[must_use]
pub fn judge(case: &Case, now: Stamp) -> Judgement {
    let told = told(case);
    let moved = case
        .signals
        .iter()
        .filter_map(|(_, s)| s.moved_at.map(When::at))
        .fold(told, When::max);
    let silence = told.age(now);
    let verdict = verdict(case, told, moved, now);
    let good = verdict == Verdict::Progressing;
    let mut evidence = Vec::new();
    if let (Verdict::Waiting(_), Some(gpus)) = (&verdict, &case.gpus) {
        evidence.push(gpus.clone());
    }
    if let Some(slow) = slow(case, now).filter(|_| verdict == Verdict::Slow) {
        evidence.push(slow);
    }
    if silence > QUIET && case.writes {
        evidence.push(format!("no line for {}", told.ago(now)));
    }
    if let Verdict::Early { since } = verdict {
        evidence.push(looked(case, since, now));
    } else {
        evidence.extend(moving(case, now, silence > QUIET, good));
        let moves = moved.age(now) <= QUIET;
        if moves && matches!(verdict, Verdict::Silent { .. }) {
            evidence.push("what moves is the whole host's, and may be other work".to_owned());
        }
    }
    // Whether anything moved before somebody looked, nobody knows.
    let looked = match &verdict {
        Verdict::Stalled { since } => case.watched.filter(|watched| *watched > since.stamp),
        Verdict::Progressing | Verdict::Early { .. } | Verdict::Slow | Verdict::Waiting(_) | Verdict::Silent { .. } => {
            None
        }
    };
    evidence.extend(looked.map(|watched| format!("looked at for the last {} only", human(now.since(watched)))));
    if !good {
        evidence.extend(case.missing.iter().cloned());
        evidence.extend(case.notes.iter().cloned());
    }
    let advice = match &verdict {
        Verdict::Stalled { since } if since.age(now) >= case.restart_after => {
            let still = match looked {
                Some(watched) => format!(
                    "no line has come for {} and nothing moves since it is looked at, for {}",
                    told.ago(now),
                    human(now.since(watched))
                ),
                None => format!("nothing has moved for {}", since.ago(now)),
            };
            Some(format!(
                "{still}: read the logs of every node, then stop the server and start it anew"
            ))
        }
        Verdict::Stalled { .. }
        | Verdict::Progressing
        | Verdict::Early { .. }
        | Verdict::Slow
        | Verdict::Waiting(_)
        | Verdict::Silent { .. } => None,
    };
    Judgement {
        verdict,
        evidence,
        advice,
    }
}

/// The last that was said of it. What writes no lines says nothing: it is only known to be where it is since it is looked at.
fn told(case: &Case) -> When {
    let told = [case.line_at, case.step_at]
        .into_iter()
        .flatten()
        .fold(case.since, When::max);
    match case.watched.filter(|_| !case.writes) {
        Some(watched) => told.max(When::found(watched)),
        None => told,
    }
}

/// What it is too early for, and what it will be judged by.
fn looked(case: &Case, since: Stamp, now: Stamp) -> String {
    let mut by: Vec<&str> = Vec::new();
    if case.writes {
        by.push("its log");
    }
    for (_, seen) in &case.signals {
        let name = match seen.signal {
            Signal::EngineMemory => "the engine's GPU memory",
            Signal::Memory => "the host's memory",
            Signal::GpuMemory => "GPU memory",
            Signal::PageCache => continue,
            Signal::DiskReads => "disk reads",
            Signal::ModelCache => "the model cache",
            Signal::Gpu => "GPU",
        };
        if !by.contains(&name) {
            by.push(name);
        }
    }
    let by = match by.as_slice() {
        [] => "what moves on the node".to_owned(),
        [one] => (*one).to_owned(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    };
    // A look that has just begun is told in whole seconds, like every other.
    let seconds = now.since(since).as_millis().div_ceil(1000).max(1);
    let looked = Duration::from_secs(u64::try_from(seconds).unwrap_or(u64::MAX));
    format!("looked at for {}, judged by {by}", human(looked))
}

fn verdict(case: &Case, told: When, moved: When, now: Stamp) -> Verdict {
    let (silence, still) = (told.age(now), moved.age(now));
    // The ranks' processes take a minute to start in silence once they are placed: that no line comes is no sign of a wait.
    if case.stage == Stage::Placement && case.gpus.is_some() {
        return Verdict::Waiting("GPUs".to_owned());
    }
    if slow(case, now).is_some() && still <= patience(case.stage) {
        return Verdict::Slow;
    }
    if silence <= QUIET && !told.found && !case.inferred {
        return Verdict::Progressing;
    }
    let known = !case.signals.is_empty();
    let waits = match case.stage {
        Stage::Download if case.guessed => Some("the model's files".to_owned()),
        Stage::Download => Some("the download".to_owned()),
        Stage::Distributed => Some("a peer".to_owned()),
        Stage::Listening => case.refused_port.map(|port| format!("port {port}")),
        Stage::Image | Stage::Container => Some("the node".to_owned()),
        Stage::Starting
        | Stage::Placement
        | Stage::Weights
        | Stage::Compile
        | Stage::KvCache
        | Stage::Graphs
        | Stage::Warmup
        | Stage::Ready => (!case.missing.is_empty()).then(|| "a peer".to_owned()),
    };
    let moves = |seen: &Seen| seen.moved_at.is_some_and(|at| now.since(at) <= QUIET);
    if case.signals.iter().any(|(_, seen)| moves(seen)) {
        if host_alone(case, told, now) {
            return Verdict::Silent { since: told };
        }
        // A download and a wait for a peer are told by their names all the same.
        return match waits {
            Some(what) if case.stage == Stage::Download => Verdict::Waiting(what),
            Some(_) | None => Verdict::Progressing,
        };
    }
    if case.missing.is_empty()
        && let Some(since) = early(case, told, now)
    {
        return Verdict::Early { since };
    }
    if !known {
        return match waits {
            Some(what) if !case.missing.is_empty() => Verdict::Waiting(what),
            Some(_) | None => Verdict::Silent { since: moved },
        };
    }
    if still > patience(case.stage) {
        return Verdict::Stalled { since: moved };
    }
    match (waits, case.stage) {
        (Some(what), _) => Verdict::Waiting(what),
        // Silent as a rule.
        (None, Stage::Compile | Stage::Starting | Stage::Placement) => Verdict::Progressing,
        (None, _) => Verdict::Slow,
    }
}

/// Whether a load that writes lines has been silent for so long on what moves on the host alone that it may be other work that moves. A download may be as silent for
/// as long as it takes, and is told by its own name.
fn host_alone(case: &Case, told: When, now: Stamp) -> bool {
    let moves = |seen: &Seen| seen.moved_at.is_some_and(|at| now.since(at) <= QUIET);
    let own = case
        .signals
        .iter()
        .any(|(_, seen)| moves(seen) && !seen.signal.of_host());
    let long = told.age(now) > patience(case.stage).saturating_mul(HOST_ALONE);
    case.writes && long && !own && case.stage != Stage::Download
}

/// Since when it is looked at, where that is too short to say anything of what neither speaks nor moves.
fn early(case: &Case, told: When, now: Stamp) -> Option<Stamp> {
    let silence = told.age(now);
    // Of what was found so, or is inferred, nothing is known but that it is looked at.
    if (told.found || case.inferred) && silence <= QUIET {
        return Some(told.stamp);
    }
    // Old lines come before the newest.
    if let Some(came) = case.came.filter(|came| silence > QUIET && now.since(*came) < READING) {
        return Some(came);
    }
    // The log has been silent for long, and whether anything moves was hardly looked at.
    let watched = case.watched.filter(|_| !case.signals.is_empty())?;
    let rises = case.signals.iter().any(|(_, seen)| seen.rises);
    (now.since(watched) < if rises { QUIET } else { LOOK }).then_some(watched)
}

/// Why it is slow, measured by itself or by earlier loads.
fn slow(case: &Case, now: Stamp) -> Option<String> {
    if let Some((mean, at)) = case.pace {
        let took = now.since(at);
        if took > SLOW_LEAST && took > mean.saturating_mul(SLOW_STEPS) {
            return Some(format!(
                "the last step came {} ago, the ones before took {} each",
                human(took),
                human(mean)
            ));
        }
    }
    let longest = case.longest.filter(|l| *l >= SLOW_LEAST)?;
    let took = case.since.age(now);
    (took > longest.saturating_mul(SLOW_STAGE)).then(|| {
        format!(
            "{} for {}, in earlier loads at most {}",
            case.stage.word(),
            case.since.ago(now),
            human(longest)
        )
    })
}

/// What the readings say: what moves, and where it matters what stands still.
fn moving(case: &Case, now: Stamp, silent: bool, good: bool) -> Vec<String> {
    let moves = |seen: &Seen| seen.moved_at.is_some_and(|at| now.since(at) <= QUIET);
    let say = |(node, seen): &(String, Seen)| match seen.signal {
        // The node itself reads.
        Signal::DiskReads => format!("{node} {}", seen.text),
        Signal::EngineMemory
        | Signal::Memory
        | Signal::GpuMemory
        | Signal::PageCache
        | Signal::ModelCache
        | Signal::Gpu => {
            format!("{} {node} {}", named(seen.signal), seen.text)
        }
    };
    let moving: Vec<String> = case.signals.iter().filter(|(_, s)| moves(s)).map(say).collect();
    if !moving.is_empty() || (good && !silent) {
        return moving;
    }
    case.signals
        .iter()
        .filter(|(_, s)| telling(s.signal))
        .map(say)
        .collect()
}

/// A signal's name, to be followed by its node's.
fn named(signal: Signal) -> &'static str {
    match signal {
        Signal::EngineMemory => "the engine's GPU memory on",
        Signal::Memory => "host memory on",
        Signal::GpuMemory => "GPU memory on",
        Signal::PageCache => "the page cache on",
        Signal::DiskReads => "the disks of",
        Signal::ModelCache => "the model cache on",
        Signal::Gpu => "GPU of",
    }
}

/// Whether a signal that stands still says something: the page cache says nothing then that memory does not say.
fn telling(signal: Signal) -> bool {
    match signal {
        Signal::EngineMemory
        | Signal::Memory
        | Signal::GpuMemory
        | Signal::ModelCache
        | Signal::DiskReads
        | Signal::Gpu => true,
        Signal::PageCache => false,
    }
}

#[cfg(test)]
mod tests;
