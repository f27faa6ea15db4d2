//! Where a load stands, from the engine's own lines and from the growth of memory.

use std::time::Duration;

use serde::Serialize;

use crate::domain::Stamp;
use crate::domain::load::{LineFact, Stage, Transport};
use crate::domain::memory::MemoryFacts;
use crate::domain::units::Bytes;

/// Failure lines kept of one start; the first is the one that counts.
const FAILURES: usize = 8;

/// Growth of memory that counts as progress.
const MEMORY_STEP: Bytes = Bytes(256 << 20);

/// A failure line that is older than this when the server ends is not why it ended.
const LAST_WORDS: Duration = Duration::from_secs(60);

/// Steps of a bar that come this soon after its first sight were made before it: a log that is followed late comes in one gulp, and says nothing
/// of the pace.
const BACKLOG: Duration = Duration::from_secs(1);

/// The progress of one node's load.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Load {
    /// Latest stage and when it began. `None` before the first line that names one.
    pub stage: Option<(Stage, Stamp)>,
    /// The bar of the latest stage: done, of how many, when it moved last.
    pub bar: Option<Bar>,
    /// Seconds that the engine says it has waited for GPUs, when that is the stage.
    pub gpu_wait: Option<u64>,
    /// Last sign of progress: a stage, a bar that moved, memory that grew.
    pub progress_at: Option<Stamp>,
    /// First failure lines since the start, in order, each with when it was read.
    pub failures: Vec<(Stamp, String)>,
    /// NCCL transports seen since the start.
    pub transports: Vec<Transport>,
    /// Whether the engine of this node prints nothing and progress is inferred from memory.
    pub inferred: bool,
    /// Whether the server ended in peace: what it said before is not why it is gone.
    pub over: bool,
    memory_mark: Option<Bytes>,
    cache_mark: Option<Bytes>,
}

/// A progress bar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Bar {
    /// Done.
    pub done: u64,
    /// Of how many.
    pub total: u64,
    /// First seen.
    pub seen: Stamp,
    /// Since when its pace is known.
    pub since: Stamp,
    /// Last moved.
    pub at: Stamp,
    /// Done at `since`.
    pub from: u64,
}

impl Bar {
    /// Time left at the rate so far; `None` before two steps were seen.
    #[must_use]
    pub fn eta(&self) -> Option<Duration> {
        let done = self.done.checked_sub(self.from).filter(|d| *d > 0)?;
        let left = self.total.checked_sub(self.done)?;
        let took = self.at.since(self.since);
        let ms = u128::from(left).checked_mul(took.as_millis())? / u128::from(done);
        u64::try_from(ms).ok().map(Duration::from_millis)
    }
}

impl Load {
    /// Takes what a line says.
    pub fn line(&mut self, fact: LineFact, now: Stamp) {
        match fact {
            LineFact::NewStart => {
                let (memory_mark, cache_mark) = (self.memory_mark, self.cache_mark);
                *self = Self {
                    memory_mark,
                    cache_mark,
                    progress_at: Some(now),
                    stage: Some((Stage::Starting, now)),
                    ..Self::default()
                };
            }
            LineFact::Stage(stage) => self.enter(stage, now),
            LineFact::Bar { stage, done, total } => {
                self.enter(stage, now);
                self.move_bar(stage, done, total, now);
            }
            LineFact::GpuWait { seconds } => {
                self.enter(Stage::WaitingForGpus, now);
                self.gpu_wait = Some(seconds);
            }
            LineFact::Transport(t) => {
                if !self.transports.contains(&t) {
                    self.transports.push(t);
                }
            }
            LineFact::Failure(text) => {
                if self.failures.len() < FAILURES {
                    self.failures.push((now, text));
                }
            }
        }
    }

    /// The server of this load is gone: no load is left. The failure lines stay, they may say why.
    pub fn ended(&mut self, in_peace: bool) {
        self.stage = None;
        self.bar = None;
        self.gpu_wait = None;
        self.inferred = false;
        self.over = in_peace;
    }

    /// Takes a memory reading: growth is progress while a load is under way. So is growth of the page cache, which is all that a download without a bar
    /// shows.
    pub fn memory(&mut self, facts: &MemoryFacts, now: Stamp) {
        let used = grown(&mut self.memory_mark, facts.used());
        let cached = facts.cached.is_some_and(|c| grown(&mut self.cache_mark, c));
        if used || cached {
            self.progress_at = Some(now);
        }
    }

    /// Moves on to a stage; a stage that lies behind changes nothing.
    fn enter(&mut self, stage: Stage, now: Stamp) {
        if self.stage.is_none_or(|(s, _)| stage > s) {
            self.stage = Some((stage, now));
            self.bar = None;
            self.progress_at = Some(now);
        }
    }

    fn move_bar(&mut self, stage: Stage, done: u64, total: u64, now: Stamp) {
        if self.stage.is_none_or(|(s, _)| s != stage) {
            return;
        }
        match &mut self.bar {
            Some(bar) if bar.total == total && done >= bar.done => {
                if done > bar.done {
                    bar.done = done;
                    bar.at = now;
                    if now.since(bar.seen) < BACKLOG {
                        bar.since = now;
                        bar.from = done;
                    }
                    self.progress_at = Some(now);
                }
            }
            // Another bar of the same stage, such as the second set of CUDA graphs.
            _ => {
                self.bar = Some(Bar {
                    done,
                    total,
                    seen: now,
                    since: now,
                    at: now,
                    from: done,
                });
                self.progress_at = Some(now);
            }
        }
    }
}

/// Failure lines of all nodes, the first one first: a worker's cause comes before the head's echo of it.
pub fn failures<'a>(loads: impl Iterator<Item = &'a Load>) -> Vec<&'a (Stamp, String)> {
    let mut all: Vec<_> = loads.flat_map(|l| &l.failures).collect();
    all.sort_by_key(|(at, _)| *at);
    all
}

/// Whether a server that ends now ends in peace: it has listened, and no node has lately said that something failed.
pub fn in_peace<'a>(head: &Load, loads: impl Iterator<Item = &'a Load>, now: Stamp) -> bool {
    let listened = head.stage.is_some_and(|(stage, _)| stage == Stage::Listening);
    listened && failures(loads).iter().all(|(at, _)| now.since(*at) > LAST_WORDS)
}

/// Whether an amount has grown by a step over its mark, which follows it.
fn grown(mark: &mut Option<Bytes>, amount: Bytes) -> bool {
    match *mark {
        Some(before) if amount.0 >= before.0.saturating_add(MEMORY_STEP.0) => {
            *mark = Some(amount);
            true
        }
        Some(before) if amount < before => {
            *mark = Some(amount);
            false
        }
        Some(_) => false,
        None => {
            *mark = Some(amount);
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bar(done: u64) -> LineFact {
        LineFact::Bar {
            stage: Stage::Weights,
            done,
            total: 10,
        }
    }

    #[test]
    fn stages_never_go_back_within_a_start() {
        let mut load = Load::default();
        load.line(LineFact::NewStart, Stamp(0));
        load.line(LineFact::Stage(Stage::KvCache), Stamp(10));
        load.line(bar(3), Stamp(20));
        assert_eq!(load.stage, Some((Stage::KvCache, Stamp(10))));
        assert_eq!(load.bar, None);
    }

    #[test]
    fn a_new_start_forgets_the_one_before() {
        let mut load = Load::default();
        load.line(LineFact::Stage(Stage::Listening), Stamp(5));
        load.line(LineFact::Failure("boom".into()), Stamp(6));
        load.line(LineFact::NewStart, Stamp(7));
        assert_eq!(load.stage, Some((Stage::Starting, Stamp(7))));
        assert!(load.failures.is_empty());
    }

    #[test]
    fn eta_comes_from_the_steps_seen() {
        let mut load = Load::default();
        load.line(bar(2), Stamp(1000));
        assert_eq!(load.bar.and_then(|b| b.eta()), None);
        load.line(bar(4), Stamp(5000));
        assert_eq!(load.bar.and_then(|b| b.eta()), Some(Duration::from_secs(12)));
    }

    #[test]
    fn steps_that_come_in_one_gulp_say_nothing_of_the_pace() {
        let mut load = Load::default();
        for done in 0..=4 {
            load.line(bar(done), Stamp(1000 + done));
        }
        assert_eq!(load.bar.and_then(|b| b.eta()), None);
        load.line(bar(6), Stamp(5004));
        assert_eq!(load.bar.and_then(|b| b.eta()), Some(Duration::from_secs(8)));
    }

    fn memory(used: u64, cached: u64) -> MemoryFacts {
        MemoryFacts {
            total: Bytes::from_mib(8000),
            available: Bytes::from_mib(8000 - used),
            cached: Some(Bytes::from_mib(cached)),
            ..MemoryFacts::default()
        }
    }

    #[test]
    fn memory_growth_is_progress_and_noise_is_not() {
        let mut load = Load::default();
        load.memory(&memory(1000, 0), Stamp(1));
        load.memory(&memory(1100, 0), Stamp(2));
        assert_eq!(load.progress_at, None);
        load.memory(&memory(1300, 0), Stamp(3));
        assert_eq!(load.progress_at, Some(Stamp(3)));
    }

    #[test]
    fn a_page_cache_that_grows_is_progress_too() {
        let mut load = Load::default();
        load.memory(&memory(1000, 500), Stamp(1));
        load.memory(&memory(1000, 600), Stamp(2));
        assert_eq!(load.progress_at, None);
        load.memory(&memory(1000, 800), Stamp(3));
        assert_eq!(load.progress_at, Some(Stamp(3)));
        // What the kernel drops from it under pressure is no step back.
        load.memory(&memory(1000, 100), Stamp(4));
        load.memory(&memory(1000, 400), Stamp(5));
        assert_eq!(load.progress_at, Some(Stamp(5)));
    }
}
