//! Where a load stands, from the engine's own lines and from the growth of memory.

use std::time::Duration;

use serde::Serialize;

use crate::domain::Stamp;
use crate::domain::load::{LineFact, Stage, Transport};
use crate::domain::units::Bytes;

/// Failure lines kept of one start; the first is the one that counts.
const FAILURES: usize = 8;

/// Growth of memory that counts as progress.
const MEMORY_STEP: Bytes = Bytes(256 << 20);

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
    /// First failure lines since the start, in order.
    pub failures: Vec<String>,
    /// NCCL transports seen since the start.
    pub transports: Vec<Transport>,
    /// Whether the engine of this node prints nothing and progress is inferred from memory.
    pub inferred: bool,
    memory_mark: Option<Bytes>,
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
                let memory_mark = self.memory_mark;
                *self = Self {
                    memory_mark,
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
                    self.failures.push(text);
                }
            }
        }
    }

    /// Takes a memory reading: growth is progress while a load is under way.
    pub fn memory(&mut self, used: Bytes, now: Stamp) {
        match self.memory_mark {
            Some(mark) if used.0 >= mark.0.saturating_add(MEMORY_STEP.0) => {
                self.memory_mark = Some(used);
                self.progress_at = Some(now);
            }
            Some(mark) if used < mark => self.memory_mark = Some(used),
            Some(_) => {}
            None => self.memory_mark = Some(used),
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

    #[test]
    fn memory_growth_is_progress_and_noise_is_not() {
        let mut load = Load::default();
        load.memory(Bytes::from_mib(1000), Stamp(1));
        load.memory(Bytes::from_mib(1100), Stamp(2));
        assert_eq!(load.progress_at, None);
        load.memory(Bytes::from_mib(1300), Stamp(3));
        assert_eq!(load.progress_at, Some(Stamp(3)));
    }
}
