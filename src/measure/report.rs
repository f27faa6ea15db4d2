//! From request records to the figures of a throughput test.
//!
//! The definitions are those of `vllm bench serve` (vLLM 0.33, `benchmarks/serve.py` and `benchmarks/lib/endpoint_request_func.py`), so that results
//! can be set side by side, but for one thing: a chunk counts for TTFT and ITL when it carries text or reasoning. vLLM's also counts one without text
//! (part of a character, the end), of which nobody can tell whether a token came with it; the chunk that names a chat's role counts for neither. Other clients use the same words for other things: what guidellm and aiperf call ITL is TPOT here.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use crate::domain::bench::RequestRecord;
use crate::domain::count::things;

use super::spread::{Spread, Timings};

/// Different error texts that a report names; the rest is in [`Report::failures`] only.
const ERRORS: usize = 5;

/// The figures of a throughput test. Times and tokens are those of successful requests.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// Requests that succeeded.
    pub successes: u64,
    /// Requests that failed.
    pub failures: u64,
    /// What the failures said and how often, the most frequent first.
    pub errors: Vec<(String, u64)>,
    /// From the first request to the last answer, ramp and drain included.
    pub duration: Duration,
    /// Prompt tokens, by the server's `usage`; `None` when it did not count every request.
    pub prompt_tokens: Option<u64>,
    /// Output tokens.
    pub output_tokens: u64,
    /// Whether the server counted `output_tokens`; else some are chunks, and a chunk can hold several tokens. `None` without a success.
    pub counted_by_server: Option<bool>,
    /// Successful requests per second.
    pub request_rate: Option<f64>,
    /// Output tokens per second.
    pub output_rate: Option<f64>,
    /// Prompt and output tokens per second.
    pub total_rate: Option<f64>,
    /// Time to first token.
    pub ttft: Option<Spread>,
    /// Time per output token.
    pub tpot: Option<Spread>,
    /// Inter-token latency.
    pub itl: Option<Spread>,
    /// End-to-end latency.
    pub e2el: Option<Spread>,
}

impl Report {
    /// The figures of these records, of a test that took `duration`.
    #[must_use]
    pub fn of(records: &[RequestRecord], duration: Duration) -> Self {
        let good: Vec<&RequestRecord> = records.iter().filter(|r| r.error.is_none()).collect();
        let prompt_tokens = good
            .iter()
            .map(|r| r.prompt_tokens)
            .try_fold(0u64, |sum, n| Some(sum.saturating_add(n?)))
            .filter(|_| !good.is_empty());
        let output_tokens = good.iter().fold(0u64, |sum, r| sum.saturating_add(r.output_tokens));
        let per_second = |n: u64| rate(n, duration).filter(|_| !good.is_empty());
        Self {
            successes: good.len() as u64,
            failures: (records.len() - good.len()) as u64,
            errors: errors(records),
            duration,
            prompt_tokens,
            output_tokens,
            counted_by_server: (!good.is_empty()).then(|| good.iter().all(|r| r.counted_by_server)),
            request_rate: per_second(good.len() as u64),
            output_rate: per_second(output_tokens),
            total_rate: prompt_tokens.and_then(|n| per_second(n.saturating_add(output_tokens))),
            ttft: spread(good.iter().filter_map(|r| ttft(r))),
            tpot: spread(good.iter().filter_map(|r| tpot(r))),
            itl: spread(good.iter().flat_map(|r| itls(r))),
            e2el: spread(good.iter().filter_map(|r| e2el(r))),
        }
    }

    /// How many requests failed of how many: `12 of 16 requests failed`; `None` where none did.
    #[must_use]
    pub fn failed(&self) -> Option<String> {
        let all = self.successes.saturating_add(self.failures);
        (self.failures > 0).then(|| format!("{} of {} failed", self.failures, things(all, "request")))
    }

    /// The error that most of the failed requests had, and how many had it: `9 x 503: overloaded`.
    #[must_use]
    pub fn commonest(&self) -> Option<String> {
        self.errors.first().map(|(error, n)| format!("{n} x {error}"))
    }

    /// Both, in a sentence; `None` where no request failed.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        let failed = self.failed()?;
        Some(match self.commonest() {
            Some(commonest) => format!("{failed}: {commonest}"),
            None => failed,
        })
    }
}

/// Time to first token: from sending the request (after its place among the concurrent ones was free) to the first chunk with output.
#[must_use]
pub fn ttft(record: &RequestRecord) -> Option<Duration> {
    record.chunks.first()?.checked_sub(record.sent)
}

/// End-to-end latency: from sending the request to its last chunk with output; the usage chunk after it does not count.
#[must_use]
pub fn e2el(record: &RequestRecord) -> Option<Duration> {
    record.chunks.last()?.checked_sub(record.sent)
}

/// Time per output token: (E2EL - TTFT) / (output tokens - 1); `None` below two tokens.
#[must_use]
pub fn tpot(record: &RequestRecord) -> Option<Duration> {
    let gaps = u32::try_from(record.output_tokens.checked_sub(1)?).ok()?;
    e2el(record)?.checked_sub(ttft(record)?)?.checked_div(gaps)
}

/// Inter-token latencies: the gaps between chunks with output, one a gap even where a chunk holds several tokens.
pub fn itls(record: &RequestRecord) -> impl Iterator<Item = Duration> + '_ {
    record
        .chunks
        .iter()
        .zip(record.chunks.iter().skip(1))
        .filter_map(|(a, b)| b.checked_sub(*a))
}

/// `n` per second over `duration`; `None` when no time has passed.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "rates are shown with a few digits")]
pub fn rate(n: u64, duration: Duration) -> Option<f64> {
    let seconds = duration.as_secs_f64();
    (seconds > 0.0).then(|| n as f64 / seconds)
}

fn spread(values: impl Iterator<Item = Duration>) -> Option<Spread> {
    let mut timings = Timings::default();
    timings.extend(values);
    timings.spread()
}

fn errors(records: &[RequestRecord]) -> Vec<(String, u64)> {
    let mut counts = BTreeMap::<&str, u64>::new();
    for error in records.iter().filter_map(|r| r.error.as_deref()) {
        *counts.entry(error).or_default() += 1;
    }
    let mut errors: Vec<(String, u64)> = counts.into_iter().map(|(text, n)| (text.to_owned(), n)).collect();
    errors.sort_by_key(|(_, n)| Reverse(*n));
    errors.truncate(ERRORS);
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    fn record(sent: u64, chunks: &[u64], output_tokens: u64) -> RequestRecord {
        RequestRecord {
            index: 0,
            sent: ms(sent),
            chunks: chunks.iter().map(|n| ms(*n)).collect(),
            output_tokens,
            counted_by_server: true,
            prompt_tokens: Some(10),
            error: None,
        }
    }

    fn failed(why: &str) -> RequestRecord {
        RequestRecord {
            error: Some(why.to_owned()),
            ..record(0, &[5, 9], 2)
        }
    }

    #[test]
    fn failures_are_told_as_so_many_of_so_many_with_the_commonest_error() {
        let good = || record(0, &[5, 9], 2);
        let of = |records: &[RequestRecord]| Report::of(records, ms(10)).trouble();
        assert_eq!(of(&[good()]), None);
        assert_eq!(
            of(&[failed("gone")]).as_deref(),
            Some("1 of 1 request failed: 1 x gone")
        );
        let mixed = [failed("a late one"), failed("gone"), good(), failed("gone")];
        assert_eq!(of(&mixed).as_deref(), Some("3 of 4 requests failed: 2 x gone"));
    }

    #[test]
    fn the_four_times_follow_vllms_formulas() {
        // Four tokens in three chunks: TTFT 100, E2EL 400, TPOT (400 - 100) / 3.
        let r = record(1000, &[1100, 1200, 1400], 4);
        assert_eq!(ttft(&r), Some(ms(100)));
        assert_eq!(e2el(&r), Some(ms(400)));
        assert_eq!(tpot(&r), Some(ms(100)));
        assert_eq!(itls(&r).collect::<Vec<_>>(), [ms(100), ms(200)]);
    }

    #[test]
    fn one_token_has_no_time_per_output_token() {
        let one = record(0, &[30], 1);
        assert_eq!((tpot(&one), ttft(&one)), (None, Some(ms(30))));
        let report = Report::of(&[one, record(0, &[10, 20], 2)], ms(1000));
        assert_eq!(report.tpot.unwrap().count, 1);
        assert_eq!(report.ttft.unwrap().count, 2);
    }

    #[test]
    fn failures_give_no_tokens_and_no_times() {
        let records = [
            record(0, &[10, 20], 2),
            failed("engine died"),
            failed("engine died"),
            failed("401"),
        ];
        let report = Report::of(&records, ms(2000));
        assert_eq!((report.successes, report.failures), (1, 3));
        assert_eq!(report.errors, [("engine died".to_owned(), 2), ("401".to_owned(), 1)]);
        assert_eq!((report.output_tokens, report.prompt_tokens), (2, Some(10)));
        assert_eq!(report.output_rate, Some(1.0));
        assert_eq!(report.total_rate, Some(6.0));
        assert_eq!(report.itl.unwrap().count, 1);
    }

    #[test]
    fn what_is_unknown_is_none_and_not_zero() {
        for records in [vec![], vec![failed("x")]] {
            let report = Report::of(&records, ms(1000));
            assert_eq!(
                (report.request_rate, report.output_rate, report.total_rate),
                (None, None, None)
            );
            assert_eq!(
                (report.prompt_tokens, report.counted_by_server, report.ttft),
                (None, None, None)
            );
        }
        let no_time = Report::of(&[record(0, &[1, 2], 2)], Duration::ZERO);
        assert_eq!((no_time.output_rate, no_time.request_rate), (None, None));
        let uncounted = RequestRecord {
            prompt_tokens: None,
            counted_by_server: false,
            ..record(0, &[1, 2], 2)
        };
        let report = Report::of(&[uncounted, record(0, &[1, 2], 2)], ms(1000));
        assert_eq!((report.prompt_tokens, report.total_rate), (None, None));
        assert_eq!((report.counted_by_server, report.output_rate), (Some(false), Some(4.0)));
    }

    fn any_record() -> impl Strategy<Value = RequestRecord> {
        let parts = (
            0u64..100_000,
            prop::collection::vec(0u64..5_000, 0..40),
            0u64..100,
            prop::option::of(0u64..4096),
            any::<bool>(),
        );
        parts.prop_map(|(sent, gaps, output_tokens, prompt_tokens, fails)| {
            let mut at = sent;
            let chunks = gaps.iter().map(|gap| {
                at += gap;
                ms(at)
            });
            RequestRecord {
                index: 0,
                sent: ms(sent),
                chunks: chunks.collect(),
                output_tokens,
                counted_by_server: prompt_tokens.is_some(),
                prompt_tokens,
                error: fails.then(|| "failed".to_owned()),
            }
        })
    }

    proptest! {
        #[test]
        fn sums_agree(records in prop::collection::vec(any_record(), 0..40), seconds in 1u64..1000) {
            let report = Report::of(&records, Duration::from_secs(seconds));
            let good = || records.iter().filter(|r| r.error.is_none());
            prop_assert_eq!(report.successes + report.failures, records.len() as u64);
            prop_assert_eq!(report.output_tokens, good().map(|r| r.output_tokens).sum::<u64>());
            if let Some(rate) = report.output_rate {
                prop_assert!((rate * seconds as f64 - report.output_tokens as f64).abs() < 1e-6 * (1.0 + report.output_tokens as f64));
            }
            if let (Some(prompt), Some(total)) = (report.prompt_tokens, report.total_rate) {
                prop_assert_eq!(prompt, good().filter_map(|r| r.prompt_tokens).sum::<u64>());
                let tokens = (prompt + report.output_tokens) as f64;
                prop_assert!((total * seconds as f64 - tokens).abs() < 1e-6 * (1.0 + tokens));
            }
            let gaps: usize = good().map(|r| r.chunks.len().saturating_sub(1)).sum();
            prop_assert_eq!(report.itl.map_or(0, |s| s.count), gaps as u64);
            // A request's first chunk never comes after its last.
            if let (Some(ttft), Some(e2el)) = (report.ttft, report.e2el) {
                prop_assert!(ttft.mean <= e2el.mean && ttft.max <= e2el.max);
            }
        }
    }
}
