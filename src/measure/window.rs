//! What a server did lately, from the differences between scrapes of its counters.

use std::collections::VecDeque;
use std::time::Duration;

use serde::Serialize;

use crate::domain::count::amount;
use crate::domain::histogram::Histogram;
use crate::domain::serving::MetricsSample;
use crate::domain::{Reading, Stamp};

use super::quantile::{Quantile, quantile};

/// How far back the figures look: long enough for a few requests, short enough to follow a change.
pub const WINDOW: Duration = Duration::from_secs(60);

/// How far back the rates of now look. An engine whose steps are slower than the scrapes counts nothing in most of them and a whole step in the next, so that
/// two scrapes alone flip between nothing and too much; its own line in the log is a mean over as long. What has ended is out of the rate after this time.
pub const LIVE: Duration = Duration::from_secs(10);

/// How much further back than [`LIVE`] the scrape may lie that its rates begin with: they come a little more than a second apart, late ones some more, and
/// a rate over 9 s would look as if one had only just begun to look.
const LIVE_LATE: Duration = Duration::from_secs(2);

/// Scrapes kept. One comes a second, so this holds more than the window; the oldest go first.
pub const SCRAPES: usize = 128;

/// Below so many there is no distribution: the 95th percentile of them is the longest, and the median hardly more than the bucket that it fell in.
pub const FEW: f64 = 5.0;

/// Why there is no figure where the server does not count such a thing.
pub const NOT_EXPORTED: &str = "the server does not export it";

/// Why there is no figure after the first scrape of a server.
pub const ONE_SCRAPE: &str = "counted from the second scrape on";

/// Why there is no rate after a counter that began anew.
pub const COUNTS_ANEW: &str = "its counters began anew; counted from the next scrape on";

/// The scrapes of the last [`WINDOW`], all of the same run of the server.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Window {
    scrapes: VecDeque<(Stamp, MetricsSample)>,
}

/// Median and 95th percentile, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Quantiles {
    /// Median.
    pub p50: Quantile,
    /// 95th percentile.
    pub p95: Quantile,
    /// How many were counted.
    pub count: f64,
}

impl Quantiles {
    /// How many there were, `of 1 request`, where they are too few ([`FEW`]) for their 95th percentile to say anything. `one` is what is counted.
    #[must_use]
    pub fn few(&self, one: &str) -> Option<String> {
        (self.count < FEW).then(|| format!("of {}", amount(self.count, one)))
    }
}

/// How speculative decoding does.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Acceptance {
    /// Tokens a step: the accepted ones of a draft and the one that the model adds itself.
    pub length: Option<f64>,
    /// Share of the draft tokens that was accepted, 0 to 1.
    pub rate: Option<f64>,
}

/// What a server did in the window. Every figure says why it is absent.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Figures {
    /// Tokens generated a second, over the whole window: the counter's own difference by its time.
    pub generation: Reading<f64>,
    /// Time to first token.
    pub ttft: Reading<Quantiles>,
    /// Time between tokens (between steps, with speculative decoding).
    pub itl: Reading<Quantiles>,
    /// Time in the queue.
    pub queue: Reading<Quantiles>,
    /// Share of the prompt tokens asked for that the prefix cache had, 0 to 1.
    pub prefix_hits: Reading<f64>,
    /// Speculative decoding.
    pub acceptance: Reading<Acceptance>,
    /// Requests put back because the KV cache was full.
    pub preemptions: Reading<f64>,
    /// Time that the figures cover.
    pub span: Duration,
}

/// Tokens a second now: over the last [`LIVE`], summed over the engines.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Rates {
    /// Generated tokens.
    pub generation: Reading<f64>,
    /// Prompt tokens, which a server counts when their prefill is over.
    pub prompt: Reading<f64>,
    /// Time that they cover: less than [`LIVE`] after the first scrapes, more after a gap between them.
    pub span: Duration,
}

impl Rates {
    /// No rates, for one reason.
    #[must_use]
    pub fn absent(why: &str) -> Self {
        Self {
            generation: Reading::absent(why.to_owned()),
            prompt: Reading::absent(why.to_owned()),
            span: Duration::ZERO,
        }
    }
}

impl Figures {
    /// No figures, for one reason.
    #[must_use]
    pub fn absent(why: &str) -> Self {
        fn reading<T>(why: &str) -> Reading<T> {
            Reading::absent(why.to_owned())
        }
        Self {
            generation: reading(why),
            ttft: reading(why),
            itl: reading(why),
            queue: reading(why),
            prefix_hits: reading(why),
            acceptance: reading(why),
            preemptions: reading(why),
            span: Duration::ZERO,
        }
    }
}

impl Window {
    /// Takes a scrape, and forgets those that are too old, and all when the server was started anew or counts anew. Whether it did.
    pub fn push(&mut self, at: Stamp, sample: MetricsSample) -> bool {
        let reset = self.scrapes.back().is_some_and(|(_, last)| reset(last, &sample));
        if reset {
            self.scrapes.clear();
        }
        self.scrapes.push_back((at, sample));
        let old = |scrapes: &VecDeque<(Stamp, MetricsSample)>| {
            scrapes.len() > SCRAPES || scrapes.front().is_some_and(|(from, _)| at.since(*from) > WINDOW)
        };
        while old(&self.scrapes) {
            self.scrapes.pop_front();
        }
        reset
    }

    /// The newest scrape.
    #[must_use]
    pub fn latest(&self) -> Option<&MetricsSample> {
        self.scrapes.back().map(|(_, sample)| sample)
    }

    /// The newest scrape, and when it came.
    #[must_use]
    pub fn newest(&self) -> Option<(Stamp, &MetricsSample)> {
        self.scrapes.back().map(|(at, sample)| (*at, sample))
    }

    /// The rates at the newest scrape: since the one that is [`LIVE`] old or a little more, else since the oldest one that is younger, or since the one before
    /// where the scrapes were further apart.
    #[must_use]
    pub fn rates(&self) -> Rates {
        let Some((at, new)) = self.newest() else {
            return Rates::default();
        };
        let mut earlier = self.scrapes.iter().rev().skip(1).peekable();
        let before = earlier.peek().copied();
        let mut inside = None;
        for scrape in earlier.take_while(|(from, _)| at.since(*from) <= LIVE + LIVE_LATE) {
            inside = Some(scrape);
            if at.since(scrape.0) >= LIVE {
                break;
            }
        }
        let Some((from, old)) = inside.or(before) else {
            let alone = |counted: Option<f64>| match counted {
                Some(_) => Reading::absent(ONE_SCRAPE),
                None => Reading::absent(NOT_EXPORTED),
            };
            return Rates {
                generation: alone(new.generation_tokens),
                prompt: alone(new.prompt_tokens),
                span: Duration::ZERO,
            };
        };
        let span = at.since(*from);
        let delta = Delta {
            old,
            new,
            at,
            span,
            alone: false,
        };
        Rates {
            generation: delta.rate(|s| s.generation_tokens),
            prompt: delta.rate(|s| s.prompt_tokens),
            span,
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.scrapes.clear();
    }

    /// The figures at the newest scrape.
    #[must_use]
    pub fn figures(&self) -> Figures {
        let (Some((from, old)), Some((at, new))) = (self.scrapes.front(), self.scrapes.back()) else {
            return Figures::default();
        };
        let span = at.since(*from);
        let delta = Delta {
            old,
            new,
            at: *at,
            span,
            alone: self.scrapes.len() < 2,
        };
        Figures {
            generation: delta.rate(|s| s.generation_tokens),
            ttft: delta.quantiles(|s| s.ttft.as_ref()),
            itl: delta.quantiles(|s| s.itl.as_ref()),
            queue: delta.quantiles(|s| s.queue.as_ref()),
            prefix_hits: delta.prefix_hits(),
            acceptance: delta.acceptance(),
            preemptions: match delta.count(|s| s.preemptions) {
                Ok(n) => Reading::known(n, *at),
                Err(why) => Reading::absent(why),
            },
            span,
        }
    }
}

/// Whether a counter fell, engines changed, or another process answers: nothing before it can be compared with what comes after.
fn reset(old: &MetricsSample, new: &MetricsSample) -> bool {
    let counters = |s: &MetricsSample| {
        [
            s.generation_tokens,
            s.prompt_tokens,
            s.finished,
            s.preemptions,
            s.prefix_queries,
            s.prefix_hits,
            s.drafts,
            s.draft_tokens,
            s.accepted_tokens,
        ]
    };
    let times = |s: &MetricsSample| [&s.ttft, &s.itl, &s.queue].map(|h| h.as_ref().map(Histogram::total));
    let fell = |old: &[Option<f64>], new: &[Option<f64>]| {
        old.iter().zip(new).any(|(o, n)| n.zip(*o).is_some_and(|(n, o)| n < o))
    };
    let another = new
        .started
        .zip(old.started)
        .is_some_and(|(n, o)| n.total_cmp(&o).is_ne());
    another
        || engines_changed(old, new)
        || old.of != new.of
        || fell(&counters(old), &counters(new))
        || fell(&times(old), &times(new))
}

/// Whether an engine counts anew, has left or has come: the sums before and after are of different engines.
fn engines_changed(old: &MetricsSample, new: &MetricsSample) -> bool {
    let (old, new) = (&old.generation_of, &new.generation_of);
    let fell = || old.iter().zip(new).any(|((a, was), (b, is))| a != b || is < was);
    // Before the first token of all an engine has no series yet.
    !old.is_empty() && (old.len() != new.len() || fell())
}

/// Two scrapes, and what lies between them.
struct Delta<'a> {
    old: &'a MetricsSample,
    new: &'a MetricsSample,
    at: Stamp,
    span: Duration,
    /// Whether there is only one scrape.
    alone: bool,
}

impl Delta<'_> {
    fn count(&self, of: impl Fn(&MetricsSample) -> Option<f64>) -> Result<f64, String> {
        let Some(new) = of(self.new) else {
            return Err(NOT_EXPORTED.to_owned());
        };
        match of(self.old) {
            Some(old) if !self.alone => Ok((new - old).max(0.0)),
            Some(_) | None => Err(ONE_SCRAPE.to_owned()),
        }
    }

    /// Counts a second.
    fn rate(&self, of: impl Fn(&MetricsSample) -> Option<f64>) -> Reading<f64> {
        match self.count(of) {
            Ok(n) if !self.span.is_zero() => Reading::known(n / self.span.as_secs_f64(), self.at),
            Ok(_) => Reading::absent(ONE_SCRAPE),
            Err(why) => Reading::absent(why),
        }
    }

    fn none(&self) -> String {
        format!("none in the last {} s", self.span.as_secs())
    }

    fn quantiles<'s>(&'s self, of: impl Fn(&'s MetricsSample) -> Option<&'s Histogram>) -> Reading<Quantiles> {
        let Some(new) = of(self.new) else {
            return Reading::absent(NOT_EXPORTED);
        };
        let Some(old) = of(self.old).filter(|_| !self.alone) else {
            return Reading::absent(ONE_SCRAPE);
        };
        let Some(lately) = new.since(old) else {
            return Reading::absent("the server counts by other bounds now");
        };
        match (quantile(&lately, 0.5), quantile(&lately, 0.95)) {
            (Some(p50), Some(p95)) => {
                let count = lately.total();
                Reading::known(Quantiles { p50, p95, count }, self.at)
            }
            (None, _) | (_, None) => Reading::absent(self.none()),
        }
    }

    fn prefix_hits(&self) -> Reading<f64> {
        match (self.count(|s| s.prefix_queries), self.count(|s| s.prefix_hits)) {
            (Ok(queries), Ok(hits)) if queries > 0.0 => Reading::known((hits / queries).min(1.0), self.at),
            (Ok(_), Ok(_)) => Reading::absent(self.none()),
            // A server that gives the rate itself.
            (Err(why), _) | (_, Err(why)) => match self.new.prefix_hit_rate {
                Some(rate) => Reading::known(rate, self.at),
                None => Reading::absent(why),
            },
        }
    }

    fn acceptance(&self) -> Reading<Acceptance> {
        let accepted = match self.count(|s| s.accepted_tokens) {
            Ok(n) => n,
            Err(why) => {
                return match self.new.accept_length {
                    Some(length) => {
                        let (length, rate) = (Some(length), None);
                        Reading::known(Acceptance { length, rate }, self.at)
                    }
                    None => Reading::absent(why),
                };
            }
        };
        let drafts = self.count(|s| s.drafts).ok().filter(|n| *n > 0.0);
        let tokens = self.count(|s| s.draft_tokens).ok().filter(|n| *n > 0.0);
        if drafts.is_none() && tokens.is_none() {
            return Reading::absent(self.none());
        }
        let length = drafts.map(|n| 1.0 + accepted / n);
        let rate = tokens.map(|n| (accepted / n).min(1.0));
        Reading::known(Acceptance { length, rate }, self.at)
    }
}

#[cfg(test)]
#[path = "window_tests.rs"]
mod tests;
