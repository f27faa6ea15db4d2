//! Whether the server's tokens flow while requests run.
//!
//! A server whose rank is gone can say healthy for a long time. What gives it away is a count that stands still although requests run. Two things look
//! alike: a prefill counts nothing until its first token, and engines that count a request's tokens when it is over stand still while it runs. The second
//! says nothing.
//!
//! What tells a prefill from a server that is stuck: of requests that have had their first token, tokens come with each step; an engine that goes on moves
//! one of its other counts (the use of its KV cache grows with each part of a prompt); and GPUs that idle run no prefill, while those whose figures go up
//! and down do. Where none of these can be had, it is a doubt, and says what is not known.

use std::time::Duration;

use serde::Serialize;

use crate::domain::Stamp;
use crate::domain::count::amount;
use crate::domain::histogram::Histogram;
use crate::domain::serving::{MetricsOf, MetricsSample};
use crate::domain::time::human;

/// How long nothing may move with requests running. A token takes far less, and the engine's gauges are renewed with each of its steps.
pub const FROZEN_AFTER: Duration = Duration::from_secs(30);

/// How long nothing may move when it may be a prefill. Prompts of the longest contexts take minutes on a slow node.
pub const FROZEN_PREFILL: Duration = Duration::from_secs(300);

/// How old the last movement of a count is at most that moves: some scrapes, as the parts of a prompt take seconds each on a slow node.
const MOVES: Duration = Duration::from_secs(5);

/// How long one looks at requests that run before it is said that no token was seen: a slow engine's step, and more.
pub const UNSEEN_AFTER: Duration = Duration::from_secs(10);

/// What moves while an engine works, by its name on the screen. Requests that are over are not among it: a client that gives up ends one, whatever the
/// engine does.
const SIGNS: [Sign; 8] = [
    ("the count of prompt tokens", |s| s.prompt_tokens),
    ("the number of running requests", |s| s.running),
    ("the number of waiting requests", |s| s.waiting),
    ("KV use", |s| s.kv_cache.map(|p| f64::from(p.0))),
    ("the count of preemptions", |s| s.preemptions),
    ("the count of prefix cache queries", |s| s.prefix_queries),
    ("the count of engine steps", |s| s.steps),
    ("the count of operations", |s| s.flops),
];

/// A count that an engine's work moves.
type Sign = (&'static str, fn(&MetricsSample) -> Option<f64>);

/// What was seen of the flow.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Flow {
    still: Option<Still>,
    quiet: Option<Quiet>,
    /// Requests that have had their first token and are not over: so many at least. `None` where the server does not count them.
    streams: Option<f64>,
}

/// Requests run, and nothing has moved.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
struct Still {
    since: Stamp,
    /// The newest scrape that shows it.
    until: Stamp,
    running: f64,
    /// Whether tokens came until then.
    after_tokens: bool,
}

/// Requests run, and no token has come.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
struct Quiet {
    since: Stamp,
    /// Whether it was so when it was first looked at: no token was ever seen to come.
    found: bool,
    /// What else of the engine moved last, and when.
    moved: Option<(&'static str, Stamp)>,
}

/// What the GPUs of the nodes do while nothing is counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Gpus {
    /// One works at least, and which.
    Work(String),
    /// One idles at least and none works, and which.
    Idle(String),
    /// All are busy, and neither their use nor their power moves.
    Even,
    /// The readings do not tell.
    Unknown,
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
        self.streams = streams(self.streams, before, sample);
        let counts = sample.of.is_some_and(MetricsOf::counts_while_running) && sample.generation_tokens.is_some();
        let (Some(running), true) = (running, counts) else {
            self.still = None;
            self.quiet = None;
            return;
        };
        let token = before.is_some_and(|b| b.generation_tokens != sample.generation_tokens);
        let sign = before.and_then(|b| SIGNS.iter().find(|(_, of)| of(b) != of(sample)));
        match &mut self.still {
            Some(still) if !token && sign.is_none() => still.until = at,
            Some(_) | None => {
                self.still = Some(Still {
                    since: at,
                    until: at,
                    running,
                    after_tokens: token,
                });
            }
        }
        let quiet = self.quiet.filter(|_| !token).unwrap_or(Quiet {
            since: at,
            found: before.is_none(),
            moved: None,
        });
        let moved = sign.filter(|_| quiet.since < at).map(|(name, _)| (*name, at));
        self.quiet = Some(Quiet {
            moved: moved.or(quiet.moved),
            ..quiet
        });
    }

    /// Forgets what was seen.
    pub fn forget(&mut self) {
        *self = Self::default();
    }

    /// Since when nothing has moved, for the readings of that time.
    #[must_use]
    pub fn still_since(&self) -> Option<Stamp> {
        self.still.map(|s| s.since)
    }

    /// What is to be said of it, if anything. A scrape that fails takes nothing back; after [`FROZEN_AFTER`] without one nothing is claimed any more.
    #[must_use]
    pub fn verdict(&self, now: Stamp, gpus: &Gpus) -> Option<Verdict> {
        let still = self.still.filter(|s| now.since(s.until) <= FROZEN_AFTER)?;
        let time = still.until.since(still.since);
        if time < FROZEN_AFTER {
            return None;
        }
        let silent = still.until.since(self.quiet?.since);
        let (seen, mid_stream) = (self.seen(&still)?, self.mid_stream(&still));
        let rest = "neither prompt tokens nor KV use nor the number of requests has moved";
        let since = if silent > time {
            format!("for {} ", human(time))
        } else if mid_stream {
            "since then ".to_owned()
        } else {
            String::new()
        };
        let what = match (mid_stream, gpus) {
            (true, Gpus::Work(_)) | (false, Gpus::Work(_) | Gpus::Even | Gpus::Unknown) if time >= FROZEN_PREFILL => {
                return Some(Verdict::Frozen(format!(
                    "{seen}: {since}{rest}, and that is long for a prefill"
                )));
            }
            (true, Gpus::Idle(_) | Gpus::Even | Gpus::Unknown) => {
                let idle = gpus.idle().map_or_else(String::new, |which| format!("; {which}"));
                return Some(Verdict::Frozen(format!(
                    "{seen}: tokens came before, and {since}{rest}{idle}"
                )));
            }
            (false, Gpus::Idle(which)) => {
                return Some(Verdict::Frozen(format!("{seen}: {since}{rest}, and {which}")));
            }
            (_, Gpus::Work(which)) => which.as_str(),
            (false, Gpus::Even) => "the GPUs are busy, as in work and as in a wait for each other",
            (false, Gpus::Unknown) => "whether the GPUs work is not known",
        };
        Some(Verdict::Doubt(format!(
            "{seen}; a long prefill looks the same ({what})"
        )))
    }

    /// That no token has come for long and the engine works all the same, as in a prefill: one of its other counts moves.
    #[must_use]
    pub fn works(&self, now: Stamp) -> Option<String> {
        let still = self.still.filter(|s| now.since(s.until) <= FROZEN_AFTER)?;
        let quiet = self.quiet?;
        if still.until.since(still.since) >= FROZEN_AFTER || still.until.since(quiet.since) < FROZEN_AFTER {
            return None;
        }
        let (name, at) = quiet.moved?;
        let moves = match still.until.since(at) {
            now if now <= MOVES => "moves".to_owned(),
            ago => format!("moved {} ago", human(ago)),
        };
        if self.mid_stream(&still) {
            return Some(format!("{}: the engine works, {name} {moves}", self.seen(&still)?));
        }
        let silent = human(still.until.since(quiet.since));
        let running = amount(still.running.round(), "request");
        Some(format!(
            "prefill for {silent}: no token yet, {name} {moves}; {running} running"
        ))
    }

    /// What is seen: `no token for 40 s with 1 request running`.
    fn seen(&self, still: &Still) -> Option<String> {
        let silent = still.until.since(self.quiet?.since);
        let running = amount(still.running.round(), "request");
        Some(format!("no token for {} with {running} running", human(silent)))
    }

    /// Whether one of the requests that run has had its first token: what comes next of it is no prefill.
    fn mid_stream(&self, still: &Still) -> bool {
        self.streams.map_or(still.after_tokens, |n| n >= 1.0)
    }

    /// For how long requests were seen to run without a token, where none was ever seen to come and nothing else has moved: that the server has counted
    /// tokens before is then all that is known.
    #[must_use]
    pub fn unseen(&self) -> Option<(Duration, f64)> {
        let (still, quiet) = (self.still?, self.quiet?);
        let never = quiet.found && quiet.moved.is_none();
        never.then(|| (still.until.since(quiet.since), still.running))
    }
}

impl Gpus {
    fn idle(&self) -> Option<&str> {
        match self {
            Self::Idle(which) => Some(which),
            Self::Work(_) | Self::Even | Self::Unknown => None,
        }
    }
}

/// Requests that have had their first token and are not over, after a scrape: so many at least. What is not known errs downwards: those that ran before the
/// first scrape, and those that were put back and begin with a prefill again.
fn streams(known: Option<f64>, before: Option<&MetricsSample>, sample: &MetricsSample) -> Option<f64> {
    let counts = |s: &MetricsSample| {
        let first = s.ttft.as_ref().map(Histogram::total)?;
        Some((first, s.finished?, s.generation_tokens?, s.preemptions.unwrap_or(0.0)))
    };
    let (now, running) = (counts(sample)?, sample.running?);
    let Some(old) = before.and_then(counts) else {
        return Some(0.0);
    };
    let (first, over, tokens, put_back) = (now.0 - old.0, now.1 - old.1, now.2 - old.2, now.3 - old.3);
    let followed = (known.unwrap_or(0.0) + first - over - put_back).max(0.0);
    // Who gave more tokens than first ones, while nothing ended, streams on.
    let at_least = if tokens > first && over + put_back <= 0.0 {
        1.0
    } else {
        0.0
    };
    Some(followed.max(at_least).min(running.max(0.0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::histogram::Bucket;
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

    fn flow(scrapes: &[(u64, MetricsSample)]) -> Flow {
        let mut flow = Flow::default();
        let mut before = None;
        for (seconds, sample) in scrapes {
            flow.take(before, sample, Stamp(seconds * 1000));
            before = Some(sample);
        }
        flow
    }

    fn after(scrapes: &[(u64, MetricsSample)]) -> Option<Verdict> {
        let now = scrapes.last().map_or(Stamp(0), |(seconds, _)| Stamp(seconds * 1000));
        flow(scrapes).verdict(now, &Gpus::Unknown)
    }

    fn at(seconds: u32) -> Stamp {
        Stamp(u64::from(seconds) * 1000)
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

    /// A scrape of a server that counts first tokens and the requests that are over.
    fn counted(generated: f64, running: f64, first: f64, over: f64) -> MetricsSample {
        let bucket = Bucket {
            bound: f64::INFINITY,
            count: first,
        };
        MetricsSample {
            ttft: Histogram::of(vec![bucket]),
            finished: Some(over),
            ..scrape(generated, running)
        }
    }

    fn frozen(verdict: Option<&Verdict>) -> bool {
        matches!(verdict, Some(Verdict::Frozen(_)))
    }

    #[test]
    fn a_request_that_takes_the_place_of_another_may_be_in_its_prefill() {
        // One streams, and at 2 s it is over and the next one runs.
        let turns = |until, over| {
            let last = counted(20.0, 1.0, 6.0, over);
            let first = [(0, counted(9.0, 0.0, 5.0, 5.0)), (1, counted(10.0, 1.0, 6.0, 5.0))];
            after(&[&first[..], &[(2, last.clone()), (until, last)]].concat())
        };
        assert!(matches!(turns(60, 6.0), Some(Verdict::Doubt(why)) if why.contains("no token for 58 s")));
        assert!(frozen(turns(302, 6.0).as_ref()));
        assert!(frozen(turns(32, 5.0).as_ref()), "it streams on");
    }

    #[test]
    fn one_who_comes_to_a_stream_knows_that_it_is_one_by_its_tokens() {
        let busy = |second: u32, tokens: f64| (u64::from(second), counted(tokens, 3.0, 100.0, 97.0));
        let seen = after(&[busy(0, 500.0), busy(1, 520.0), busy(31, 520.0)]);
        assert!(frozen(seen.as_ref()), "{seen:?}");
        // First tokens alone, of requests that were over with them.
        let first = (1, counted(502.0, 3.0, 102.0, 99.0));
        let seen = after(&[busy(0, 500.0), first.clone(), (31, first.1)]);
        assert!(matches!(seen, Some(Verdict::Doubt(_))), "{seen:?}");
        // What was put back begins anew, with a prefill.
        let put_back = |second, n| {
            let sample = MetricsSample {
                preemptions: Some(n),
                ..counted(520.0 + n, 3.0, 100.0, 97.0)
            };
            (second, sample)
        };
        let seen = after(&[put_back(0, 0.0), put_back(1, 1.0), put_back(31, 1.0)]);
        assert!(matches!(seen, Some(Verdict::Doubt(_))), "{seen:?}");
    }

    /// What a flow says with these GPUs, of one that streams or may be in its prefill.
    fn with(gpus: &Gpus, stream: bool, until: u64) -> Option<Verdict> {
        let first = scrape(if stream { 1.0 } else { 9.0 }, 1.0);
        let mut flow = Flow::default();
        flow.take(None, &scrape(1.0, 0.0), Stamp(0));
        flow.take(Some(&scrape(first.generation_tokens?, 0.0)), &first, Stamp(1000));
        flow.take(Some(&first), &scrape(9.0, 1.0), Stamp(2000));
        flow.take(Some(&scrape(9.0, 1.0)), &scrape(9.0, 1.0), Stamp(until * 1000));
        flow.verdict(Stamp(until * 1000), gpus)
    }

    #[test]
    fn gpus_that_idle_run_no_prefill_and_gpus_that_work_may() {
        let (work, idle) = (
            Gpus::Work("W".to_owned()),
            Gpus::Idle("the GPU of b is at 0 %".to_owned()),
        );
        for (gpus, stream, doubt) in [
            (&work, true, true),
            (&work, false, true),
            (&idle, true, false),
            (&idle, false, false),
            (&Gpus::Even, true, false),
            (&Gpus::Even, false, true),
            (&Gpus::Unknown, true, false),
            (&Gpus::Unknown, false, true),
        ] {
            let seen = with(gpus, stream, 40);
            assert_eq!(matches!(seen, Some(Verdict::Doubt(_))), doubt, "{seen:?}");
            assert_eq!(frozen(seen.as_ref()), !doubt, "{seen:?}");
            let late = with(gpus, stream, 310);
            assert!(frozen(late.as_ref()), "{late:?}");
        }
        let Some(Verdict::Frozen(why)) = with(&idle, false, 40) else {
            panic!("{:?}", with(&idle, false, 40));
        };
        assert!(why.ends_with("has moved, and the GPU of b is at 0 %"), "{why}");
    }

    #[test]
    fn an_engine_that_goes_on_without_a_token_is_in_a_prefill_and_not_frozen() {
        let kv = |second: u32| MetricsSample {
            kv_cache: Some(Percent(10.0 + 0.125 * f32::from(u16::try_from(second).unwrap()))),
            ..scrape(9.0, 1.0)
        };
        let steps = |second: u32| MetricsSample {
            steps: Some(f64::from(second)),
            ..scrape(9.0, 1.0)
        };
        let flops = |second: u32| MetricsSample {
            flops: Some(1e15 * f64::from(second)),
            ..scrape(9.0, 1.0)
        };
        let ways: [(&str, &dyn Fn(u32) -> MetricsSample); 3] = [
            ("KV use", &kv),
            ("the count of engine steps", &steps),
            ("the count of operations", &flops),
        ];
        for (name, of) in ways {
            let all = |until| -> Vec<(u64, MetricsSample)> {
                let idle = (
                    0,
                    MetricsSample {
                        running: Some(0.0),
                        ..of(0)
                    },
                );
                let rest = (1..=until).map(|second: u32| (u64::from(second), of(second)));
                std::iter::once(idle).chain(rest).collect()
            };
            assert_eq!(flow(&all(30)).works(at(30)), None);
            for until in [41, 400] {
                let said = format!(
                    "prefill for {}: no token yet, {name} moves; 1 request running",
                    human(Duration::from_secs(u64::from(until) - 1))
                );
                let flow = flow(&all(until));
                assert_eq!(flow.works(at(until)), Some(said));
                assert_eq!(flow.verdict(at(until), &Gpus::Unknown), None);
            }
            // It goes on for a while, and then stands still.
            let mut stuck = all(41);
            let last = |until| [&stuck[..], &[(until, of(41))]].concat();
            assert!(
                flow(&last(47))
                    .works(Stamp(47_000))
                    .unwrap()
                    .contains(&format!("{name} moved 6 s ago"))
            );
            stuck.push((80, of(41)));
            let Some(Verdict::Doubt(why)) = after(&stuck) else {
                panic!("{:?}", after(&stuck));
            };
            assert!(
                why.starts_with("no token for 1m19s with 1 request running; a long prefill"),
                "{why}"
            );
            stuck.push((342, of(41)));
            assert!(matches!(after(&stuck), Some(Verdict::Frozen(why)) if why.contains(": for 5m01s neither")));
        }
    }

    #[test]
    fn what_was_never_seen_to_flow_is_known_to_be_unseen() {
        let mut flow = Flow::default();
        flow.take(None, &scrape(9.0, 2.0), Stamp(0));
        flow.take(Some(&scrape(9.0, 2.0)), &scrape(9.0, 2.0), Stamp(4000));
        assert_eq!(flow.unseen(), Some((Duration::from_secs(4), 2.0)));
        let mut flows = flow;
        flows.take(Some(&scrape(9.0, 2.0)), &scrape(10.0, 2.0), Stamp(5000));
        flows.take(Some(&scrape(10.0, 2.0)), &scrape(10.0, 2.0), Stamp(6000));
        assert_eq!(flows.unseen(), None, "a token came");
        let mut idle = flow;
        idle.take(Some(&scrape(9.0, 2.0)), &scrape(9.0, 0.0), Stamp(5000));
        assert_eq!(idle.unseen(), None, "nothing runs");
        let moved = MetricsSample {
            kv_cache: Some(Percent(11.0)),
            ..scrape(9.0, 2.0)
        };
        flow.take(Some(&scrape(9.0, 2.0)), &moved, Stamp(5000));
        assert_eq!(flow.unseen(), None, "the engine works");
    }
}
