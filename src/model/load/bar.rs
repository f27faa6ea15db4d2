//! A progress bar and its pace.

use std::time::Duration;

use serde::Serialize;

use crate::domain::When;
use crate::domain::load::Stage;

/// Steps of a bar that come this soon after its first sight say nothing of the pace: what a driver holds back comes in one gulp. Nor do those of which nobody
/// knows when they were.
const BACKLOG: Duration = Duration::from_secs(1);

/// A progress bar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Bar {
    /// Done.
    pub done: u64,
    /// Of how many.
    pub total: u64,
    /// Which bar of its stage it is: graphs are captured in several sets.
    pub round: u32,
    /// First seen.
    pub seen: When,
    /// Since when its pace is known.
    pub since: When,
    /// Last moved.
    pub at: When,
    /// Done at `since`.
    pub from: u64,
}

impl Bar {
    /// A bar that is seen for the first time.
    fn new(done: u64, total: u64, round: u32, now: When) -> Self {
        Self {
            done,
            total,
            round,
            seen: now,
            since: now,
            at: now,
            from: done,
        }
    }

    /// Mean time of a step so far; `None` before two were seen.
    #[must_use]
    pub fn step(&self) -> Option<Duration> {
        let done = self.done.checked_sub(self.from).and_then(|d| u32::try_from(d).ok())?;
        self.at.stamp.since(self.since.stamp).checked_div(done)
    }

    /// Time left at the rate so far; `None` before two steps were seen.
    #[must_use]
    pub fn eta(&self) -> Option<Duration> {
        let done = self.done.checked_sub(self.from).filter(|d| *d > 0)?;
        let left = self.total.checked_sub(self.done)?;
        let took = self.at.stamp.since(self.since.stamp);
        let ms = u128::from(left).checked_mul(took.as_millis())? / u128::from(done);
        u64::try_from(ms).ok().map(Duration::from_millis)
    }

    /// Share that is done.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a share for a bar")]
    pub fn share(&self) -> f64 {
        if self.total == 0 {
            return 0.0;
        }
        (self.done as f64 / self.total as f64).min(1.0)
    }
}

/// Takes what a line says of a stage's bar; says whether it has moved. A bar never goes back: what Ray hands on late or twice is an earlier state of it.
/// Only another total, or a set of graphs after one that is complete, is another bar.
pub(super) fn advance(kept: &mut Option<Bar>, stage: Stage, done: u64, total: u64, now: When) -> bool {
    let Some(bar) = kept else {
        *kept = Some(Bar::new(done, total, 0, now));
        return true;
    };
    if bar.total == total && done >= bar.done {
        let moved = done > bar.done;
        if moved {
            bar.done = done;
            bar.at = now;
            if now.found || now.stamp.since(bar.seen.stamp) < BACKLOG {
                bar.since = now;
                bar.from = done;
            }
        }
        return moved;
    }
    let again = stage == Stage::Graphs && bar.done == bar.total && done < bar.done;
    if bar.total == total && !again {
        return false;
    }
    *bar = Bar::new(done, total, bar.round.saturating_add(1), now);
    true
}
