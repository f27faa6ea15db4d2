//! The figures of a throughput test while it runs.

use std::collections::VecDeque;
use std::time::Duration;

use crate::domain::bench::{BenchEvent, RequestRecord};

use super::report;
use super::spread::{Spread, Timings};

/// Window of the newest rate.
pub const WINDOW: Duration = Duration::from_secs(3);

/// Samples kept for the newest rate. The sender puts the chunks of a short time into one event, so this holds far more than the window.
const SAMPLES: usize = 1024;

/// Follows a test event by event; each costs little, so that a frame can be drawn from it at any time.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Live {
    successes: u64,
    failures: u64,
    ttft: Timings,
    tpot: Timings,
    newest_ttft: Option<Duration>,
    /// Chunks of the requests that are over.
    over_chunks: u64,
    /// Tokens and chunks of those that succeeded.
    good_tokens: u64,
    good_chunks: u64,
    /// Chunks of all requests.
    chunks: u64,
    newest: Duration,
    /// Chunks so far at a time, the newest last.
    samples: VecDeque<(Duration, u64)>,
}

impl Live {
    /// Takes an event.
    pub fn take(&mut self, event: &BenchEvent) {
        match event {
            BenchEvent::Started(_) => *self = Self::default(),
            BenchEvent::Token { at, chunks, ttft } => {
                self.newest_ttft = ttft.or(self.newest_ttft);
                self.sample(*at, *chunks);
            }
            BenchEvent::Request(record) => self.over(record),
            BenchEvent::Prompt { .. }
            | BenchEvent::Warmup { .. }
            | BenchEvent::Tally(_)
            | BenchEvent::Done { .. }
            | BenchEvent::Saved(_)
            | BenchEvent::Unsaved(_)
            | BenchEvent::Failed(_) => {}
        }
    }

    /// Requests that succeeded.
    #[must_use]
    pub fn successes(&self) -> u64 {
        self.successes
    }

    /// Requests that failed.
    #[must_use]
    pub fn failures(&self) -> u64 {
        self.failures
    }

    /// Median time to first token of the requests that are over; before the first, the newest one seen.
    #[must_use]
    pub fn ttft(&self) -> Option<Duration> {
        self.ttft.spread().map(|s| s.median).or(self.newest_ttft)
    }

    /// Times to first token of the requests that are over.
    #[must_use]
    pub fn ttft_spread(&self) -> Option<Spread> {
        self.ttft.spread()
    }

    /// Time per output token of the requests that are over.
    #[must_use]
    pub fn tpot(&self) -> Option<Spread> {
        self.tpot.spread()
    }

    /// Output tokens per second since the start. Requests that succeeded count by their tokens, those in flight by
    /// their chunks.
    #[must_use]
    pub fn output_rate(&self) -> Option<f64> {
        let in_flight = self.chunks.saturating_sub(self.over_chunks);
        let tokens = self.good_tokens.saturating_add(in_flight);
        report::rate(tokens, self.newest).filter(|_| tokens > 0)
    }

    /// Output tokens per second over the newest seconds: the chunks seen, times the tokens per chunk of the requests that are over (one before the
    /// first). `None` before two samples.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a rate for the screen")]
    pub fn recent_rate(&self) -> Option<f64> {
        let ((from, before), (to, now)) = (self.samples.front()?, self.samples.back()?);
        let chunks = report::rate(now.checked_sub(*before)?, to.checked_sub(*from)?)?;
        let tokens_per_chunk = if self.good_chunks > 0 && self.good_tokens > 0 {
            self.good_tokens as f64 / self.good_chunks as f64
        } else {
            1.0
        };
        Some(chunks * tokens_per_chunk)
    }

    fn sample(&mut self, at: Duration, chunks: u64) {
        // Workers send side by side, so an older count can come after a newer one.
        if at < self.newest || chunks < self.chunks {
            return;
        }
        self.newest = at;
        self.chunks = chunks;
        self.samples.push_back((at, chunks));
        while self.samples.len() > SAMPLES || self.samples.front().is_some_and(|(f, _)| *f + WINDOW < at) {
            self.samples.pop_front();
        }
    }

    fn over(&mut self, record: &RequestRecord) {
        self.over_chunks = self.over_chunks.saturating_add(record.chunks.len() as u64);
        if record.error.is_some() {
            self.failures += 1;
            return;
        }
        self.successes += 1;
        self.good_tokens = self.good_tokens.saturating_add(record.output_tokens);
        self.good_chunks = self.good_chunks.saturating_add(record.chunks.len() as u64);
        self.ttft.extend(report::ttft(record));
        self.tpot.extend(report::tpot(record));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    fn token(at: u64, chunks: u64, ttft: Option<u64>) -> BenchEvent {
        BenchEvent::Token {
            at: ms(at),
            chunks,
            ttft: ttft.map(ms),
        }
    }

    fn over(chunks: &[u64], output_tokens: u64, error: Option<&str>) -> BenchEvent {
        BenchEvent::Request(RequestRecord {
            index: 0,
            sent: ms(0),
            chunks: chunks.iter().map(|n| ms(*n)).collect(),
            output_tokens,
            counted_by_server: true,
            prompt_tokens: None,
            error: error.map(str::to_owned),
        })
    }

    fn after(events: &[BenchEvent]) -> Live {
        let mut live = Live::default();
        for event in events {
            live.take(event);
        }
        live
    }

    #[test]
    fn nothing_is_known_before_the_first_token() {
        let live = Live::default();
        assert_eq!((live.ttft(), live.tpot()), (None, None));
        assert_eq!((live.output_rate(), live.recent_rate()), (None, None));
    }

    #[test]
    fn the_first_token_shows_before_a_request_is_over() {
        let live = after(&[token(80, 1, Some(80)), token(1000, 10, None)]);
        assert_eq!(live.ttft(), Some(ms(80)));
        assert_eq!(live.output_rate(), Some(10.0));
        let live = after(&[token(80, 1, Some(80)), over(&[100, 300], 3, None)]);
        assert_eq!(live.ttft(), Some(ms(100)));
        assert_eq!(live.tpot().unwrap().mean, ms(100));
        assert_eq!((live.successes(), live.failures()), (1, 0));
    }

    #[test]
    fn a_chunk_of_several_tokens_counts_as_such_once_its_request_is_over() {
        let live = after(&[token(1000, 2, None), over(&[500, 1000], 8, None), token(2000, 5, None)]);
        // 8 tokens of the request that is over and 3 chunks in flight, in 2 s.
        assert_eq!(live.output_rate(), Some(5.5));
        // 3 chunks in the last second, at 4 tokens a chunk.
        assert_eq!(live.recent_rate(), Some(12.0));
    }

    #[test]
    fn the_recent_rate_forgets() {
        let live = after(&[token(0, 1, None), token(10_000, 100, None), token(12_000, 110, None)]);
        assert_eq!(live.recent_rate(), Some(5.0));
    }

    #[test]
    fn a_late_event_does_not_turn_the_count_back() {
        let live = after(&[token(1000, 10, None), token(900, 9, None)]);
        assert_eq!(live.output_rate(), Some(10.0));
    }

    #[test]
    fn a_failure_is_no_success_and_gives_no_time() {
        let live = after(&[over(&[10, 20], 2, Some("engine died"))]);
        assert_eq!((live.successes(), live.failures(), live.ttft()), (0, 1, None));
        assert_eq!(live.output_rate(), None);
    }
}
