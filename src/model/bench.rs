//! The throughput test as the console shows it.

use std::collections::VecDeque;
use std::time::Duration;

use serde::Serialize;

use crate::domain::Stamp;
use crate::domain::bench::{BenchEvent, BenchProfile, PromptSizing, RequestRecord};

/// Request records kept; a profile larger than this is refused by the config.
pub const RECORDS: usize = 100_000;

/// Window of the live rate.
pub const LIVE_WINDOW: Duration = Duration::from_secs(3);

/// Token stamps kept for the live rate.
const STAMPS: usize = 65_536;

/// One run of the throughput test.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BenchView {
    /// What is sent.
    pub profile: BenchProfile,
    /// When it started.
    pub started: Stamp,
    /// How the prompt was made, and its tokens.
    pub prompt: Option<(PromptSizing, u64)>,
    /// Warm-up requests done.
    pub warmup: u32,
    /// Requests that are over.
    pub records: Vec<RequestRecord>,
    /// Where it stands.
    pub phase: BenchPhase,
    /// File of the result.
    pub saved: Option<String>,
    /// Arrivals of chunks within the live window, relative to the test's start.
    arrivals: VecDeque<Duration>,
}

/// Where a test stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum BenchPhase {
    /// It runs.
    Running,
    /// It is over; from the first request that counts to the last answer.
    Done(Duration),
    /// It could not go on.
    Failed(String),
}

impl BenchView {
    /// A test that starts.
    #[must_use]
    pub fn new(profile: BenchProfile, started: Stamp) -> Self {
        Self {
            profile,
            started,
            prompt: None,
            warmup: 0,
            records: Vec::new(),
            phase: BenchPhase::Running,
            saved: None,
            arrivals: VecDeque::new(),
        }
    }

    /// Whether it still runs.
    #[must_use]
    pub fn running(&self) -> bool {
        self.phase == BenchPhase::Running
    }

    /// Takes an event.
    pub fn take(&mut self, event: BenchEvent) {
        match event {
            BenchEvent::Started(profile) => self.profile = profile,
            BenchEvent::Prompt { sizing, tokens } => self.prompt = Some((sizing, tokens)),
            BenchEvent::Warmup { done } => self.warmup = done,
            BenchEvent::Token { at } => {
                self.arrivals.push_back(at);
                while self.arrivals.len() > STAMPS || self.arrivals.front().is_some_and(|f| *f + LIVE_WINDOW < at) {
                    self.arrivals.pop_front();
                }
            }
            BenchEvent::Request(record) => {
                if self.records.len() < RECORDS {
                    self.records.push(record);
                }
            }
            BenchEvent::Done { duration } => self.phase = BenchPhase::Done(duration),
            BenchEvent::Saved(path) => self.saved = Some(path),
            BenchEvent::Failed(why) => self.phase = BenchPhase::Failed(why),
        }
    }

    /// Output chunks per second over the live window; `None` before two arrived.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a rate for the screen")]
    pub fn live_rate(&self) -> Option<f64> {
        let (first, last) = (self.arrivals.front()?, self.arrivals.back()?);
        let span = last.checked_sub(*first)?.as_secs_f64();
        (span > 0.0).then(|| (self.arrivals.len() - 1) as f64 / span)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_live_rate_counts_the_last_seconds_only() {
        let profile = BenchProfile {
            requests: 1,
            concurrency: 1,
            prompt_tokens: 1,
            output_tokens: 1,
            warmup: 0,
            request_limit: Duration::from_secs(1),
        };
        let mut view = BenchView::new(profile, Stamp(0));
        assert_eq!(view.live_rate(), None);
        for ms in [0, 100, 10_000, 10_500, 11_000] {
            view.take(BenchEvent::Token {
                at: Duration::from_millis(ms),
            });
        }
        assert_eq!(view.live_rate(), Some(2.0));
    }
}
