//! Whether the server's tokens flow while requests run.
//!
//! A server whose rank is gone can say healthy for a long time. What gives it away is a count that stands still although requests run. Two things look
//! alike: a long prefill counts nothing until its first token, and engines that count a request's tokens when it is over stand still while it runs. The
//! first is only a doubt for a while, the second says nothing.

use std::time::Duration;

use serde::Serialize;

use crate::domain::Stamp;
use crate::domain::count::amount;
use crate::domain::serving::{MetricsOf, MetricsSample};
use crate::domain::time::human;

/// How long nothing may move with requests running. A token takes far less, and the engine's gauges are renewed with each of its steps.
pub const FROZEN_AFTER: Duration = Duration::from_secs(30);

/// How long nothing may move when it may be a prefill. Prompts of the longest contexts take minutes on a slow node.
pub const FROZEN_PREFILL: Duration = Duration::from_secs(300);

/// What was seen of the flow.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Flow {
    still: Option<Still>,
}

/// Requests run, and nothing has moved.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
struct Still {
    since: Stamp,
    /// The newest scrape that shows it.
    until: Stamp,
    running: f64,
    /// Whether tokens came until then: what runs is past its prefill.
    mid_stream: bool,
}

/// What the flow says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Verdict {
    /// It may be frozen, and why that is not sure.
    Doubt(String),
    /// It is frozen, with the evidence.
    Frozen(String),
}

impl Flow {
    /// Takes a scrape after another of the same run of the server; `None` where there is none.
    pub fn take(&mut self, before: Option<&MetricsSample>, sample: &MetricsSample, at: Stamp) {
        let running = sample.running.filter(|n| *n >= 1.0);
        let counts = sample.of.is_some_and(MetricsOf::counts_while_running) && sample.generation_tokens.is_some();
        let (Some(running), true) = (running, counts) else {
            self.still = None;
            return;
        };
        let mid_stream = before.is_some_and(|b| b.generation_tokens != sample.generation_tokens);
        let moved = before.is_none_or(|b| signs(b) != signs(sample));
        match &mut self.still {
            Some(still) if !moved => still.until = at,
            Some(_) | None => {
                self.still = Some(Still {
                    since: at,
                    until: at,
                    running,
                    mid_stream,
                });
            }
        }
    }

    /// Forgets what was seen.
    pub fn forget(&mut self) {
        self.still = None;
    }

    /// What is to be said of it, if anything. A scrape that fails takes nothing back; after [`FROZEN_AFTER`] without one nothing is claimed any more.
    #[must_use]
    pub fn verdict(&self, now: Stamp) -> Option<Verdict> {
        let still = self.still.filter(|s| now.since(s.until) <= FROZEN_AFTER)?;
        let time = still.until.since(still.since);
        if time < FROZEN_AFTER {
            return None;
        }
        let seen = format!(
            "no token for {} with {} running",
            human(time),
            amount(still.running.round(), "request")
        );
        let rest = "neither prompt tokens nor KV use nor the number of requests has moved";
        Some(if still.mid_stream {
            Verdict::Frozen(format!("{seen}: tokens came before, and since then {rest}"))
        } else if time >= FROZEN_PREFILL {
            Verdict::Frozen(format!("{seen}: {rest}, and that is long for a prefill"))
        } else {
            Verdict::Doubt(format!("{seen}; a long prefill looks the same"))
        })
    }
}

/// What moves while an engine works. Requests that are over are not among it: a client that gives up ends one, whatever the engine does.
fn signs(sample: &MetricsSample) -> [Option<f64>; 6] {
    [
        sample.generation_tokens,
        sample.prompt_tokens,
        sample.running,
        sample.waiting,
        sample.kv_cache.map(|p| f64::from(p.0)),
        sample.preemptions,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::units::Percent;

    fn scrape(generated: f64, running: f64) -> MetricsSample {
        MetricsSample {
            of: Some(MetricsOf::Vllm),
            generation_tokens: Some(generated),
            prompt_tokens: Some(100.0),
            running: Some(running),
            waiting: Some(0.0),
            kv_cache: Some(Percent(10.0)),
            ..MetricsSample::default()
        }
    }

    fn after(scrapes: &[(u64, MetricsSample)]) -> Option<Verdict> {
        let mut flow = Flow::default();
        let (mut before, mut now) = (None, Stamp(0));
        for (seconds, sample) in scrapes {
            now = Stamp(seconds * 1000);
            flow.take(before, sample, now);
            before = Some(sample);
        }
        flow.verdict(now)
    }

    #[test]
    fn a_stream_that_stops_is_frozen_with_its_evidence() {
        let seen = |until| after(&[(0, scrape(1.0, 3.0)), (1, scrape(9.0, 3.0)), (until, scrape(9.0, 3.0))]);
        assert_eq!(seen(30), None);
        let Some(Verdict::Frozen(why)) = seen(31) else {
            panic!("{:?}", seen(31));
        };
        for part in ["no token for 30 s with 3 requests running", "tokens came before"] {
            assert!(why.contains(part), "{why}");
        }
    }

    #[test]
    fn what_may_be_a_prefill_is_a_doubt_first() {
        let seen = |until| after(&[(0, scrape(9.0, 0.0)), (1, scrape(9.0, 1.0)), (until, scrape(9.0, 1.0))]);
        assert!(matches!(seen(60), Some(Verdict::Doubt(why)) if why.contains("long prefill")));
        assert!(matches!(seen(301), Some(Verdict::Frozen(why)) if why.contains("1 request running")));
    }

    #[test]
    fn prompt_tokens_kv_use_and_other_requests_are_progress() {
        let prompt = MetricsSample {
            prompt_tokens: Some(900.0),
            ..scrape(9.0, 1.0)
        };
        let cache = MetricsSample {
            kv_cache: Some(Percent(11.0)),
            ..scrape(9.0, 1.0)
        };
        for moved in [prompt, cache, scrape(9.0, 2.0)] {
            let last = moved.clone();
            let verdict = after(&[(0, scrape(9.0, 1.0)), (25, scrape(9.0, 1.0)), (29, moved), (50, last)]);
            assert_eq!(verdict, None);
        }
    }

    #[test]
    fn an_idle_server_is_not_frozen() {
        assert_eq!(after(&[(0, scrape(9.0, 0.0)), (1000, scrape(9.0, 0.0))]), None);
    }

    #[test]
    fn a_count_that_moves_only_when_a_request_is_over_says_nothing() {
        for of in [MetricsOf::Sglang, MetricsOf::LlamaCpp] {
            let sample = |n| MetricsSample {
                of: Some(of),
                ..scrape(n, 1.0)
            };
            assert_eq!(after(&[(0, sample(1.0)), (1, sample(2.0)), (900, sample(2.0))]), None);
        }
    }
}
