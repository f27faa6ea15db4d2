//! The throughput test as the console shows it.

use std::time::Duration;

use serde::Serialize;

use crate::domain::Stamp;
use crate::domain::bench::{BenchEvent, BenchProfile, PromptSizing, RequestRecord, Tally};
use crate::measure::{Live, Report};

/// Request records kept; a profile larger than this is refused by the config.
pub const RECORDS: usize = 100_000;

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
    /// The figures, once it is over.
    #[serde(skip)]
    pub report: Option<Report>,
    /// File of the result.
    pub saved: Option<String>,
    /// Why the result could not be written.
    pub unsaved: Option<String>,
    /// Whether the operator wants it to end.
    pub cancelled: bool,
    /// What the server itself counted, once it is over.
    pub tally: Option<Tally>,
    /// Figures while it runs.
    #[serde(skip)]
    pub live: Live,
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
    /// The operator ended it.
    Cancelled,
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
            report: None,
            saved: None,
            unsaved: None,
            cancelled: false,
            tally: None,
            live: Live::default(),
        }
    }

    /// Whether it still runs.
    #[must_use]
    pub fn running(&self) -> bool {
        self.phase == BenchPhase::Running
    }

    /// What went wrong, once it is over: that it could not go on, or how many of its requests failed. `None` while it runs, when all went well, and where
    /// the operator ended it.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        match &self.phase {
            BenchPhase::Failed(why) => Some(format!("the throughput test failed: {why}")),
            BenchPhase::Done(_) => self.report.as_ref()?.trouble(),
            BenchPhase::Running | BenchPhase::Cancelled => None,
        }
    }

    /// Takes an event.
    pub fn take(&mut self, event: BenchEvent) {
        self.live.take(&event);
        match event {
            BenchEvent::Started(profile) => self.profile = profile,
            BenchEvent::Prompt { sizing, tokens } => self.prompt = Some((sizing, tokens)),
            BenchEvent::Warmup { done } => self.warmup = done,
            BenchEvent::Token { .. } => {}
            BenchEvent::Request(record) => {
                if self.records.len() < RECORDS {
                    self.records.push(record);
                }
            }
            BenchEvent::Done { duration } => {
                self.report = Some(Report::of(&self.records, duration));
                self.phase = BenchPhase::Done(duration);
            }
            BenchEvent::Tally(tally) => self.tally = Some(tally),
            BenchEvent::Saved(path) => self.saved = Some(path),
            BenchEvent::Unsaved(why) => self.unsaved = Some(why),
            // A test that is told to end says that it failed.
            BenchEvent::Failed(_) if self.cancelled => self.phase = BenchPhase::Cancelled,
            BenchEvent::Failed(why) => self.phase = BenchPhase::Failed(why),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_kept_and_the_live_figures_follow() {
        let profile = BenchProfile {
            requests: 1,
            concurrency: 1,
            prompt_tokens: 1,
            output_tokens: 1,
            warmup: 0,
            request_limit: Duration::from_secs(1),
        };
        let mut view = BenchView::new(profile, Stamp(0));
        for (ms, chunks) in [(0, 1), (100, 2), (10_000, 3), (10_500, 4), (11_000, 5)] {
            view.take(BenchEvent::Token {
                at: Duration::from_millis(ms),
                chunks,
                ttft: None,
            });
        }
        assert_eq!(view.live.recent_rate(), Some(2.0));
        view.take(BenchEvent::Request(RequestRecord {
            index: 0,
            sent: Duration::ZERO,
            chunks: vec![Duration::from_millis(10)],
            output_tokens: 1,
            counted_by_server: true,
            prompt_tokens: None,
            error: None,
        }));
        assert_eq!((view.records.len(), view.live.successes()), (1, 1));
        view.take(BenchEvent::Done {
            duration: Duration::from_secs(11),
        });
        assert!(!view.running());
    }

    #[test]
    fn a_test_that_the_operator_ends_did_not_fail() {
        let profile = BenchProfile {
            requests: 1,
            concurrency: 1,
            prompt_tokens: 1,
            output_tokens: 1,
            warmup: 0,
            request_limit: Duration::from_secs(1),
        };
        for (cancelled, phase) in [
            (true, BenchPhase::Cancelled),
            (false, BenchPhase::Failed("cancelled".into())),
        ] {
            let mut view = BenchView::new(profile.clone(), Stamp(0));
            view.cancelled = cancelled;
            view.take(BenchEvent::Failed("cancelled".into()));
            assert_eq!(view.phase, phase);
        }
    }
}
