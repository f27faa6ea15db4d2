//! The figures of the server and whether its tokens flow, from scrapes to what the state says. Right values are worked out by hand from the scrapes.

use std::sync::Arc;

use super::update::update;
use crate::config::{self, EXAMPLE};
use crate::domain::event::{Event, EventKind, Facts};
use crate::domain::gpu::{Gpu, GpuFacts};
use crate::domain::histogram::{Bucket, Histogram};
use crate::domain::link::{LinkError, LinkErrorKind, LinkState};
use crate::domain::logs::LogChoice;
use crate::domain::serving::{Health, MetricsOf, MetricsSample, ServerFacts};
use crate::domain::units::{Percent, Watts};
use crate::domain::{Now, Source, Stamp, Wall, When};
use crate::engine::metrics::sample;
use crate::measure::Quantile;
use crate::measure::window::ONE_SCRAPE;
use crate::model::logs::silent_since;
use crate::model::state::ServingState;
use crate::model::{Options, State, doubt, look_on, lost_since, prefill, unproven};

const IDLE: &str = include_str!("../../tests/fixtures/metrics/vllm-0.32-idle.txt");
const AFTER: &str = include_str!("../../tests/fixtures/metrics/vllm-0.32-after.txt");
const RAY: &str = include_str!("../../tests/fixtures/metrics/vllm-0.32-ray-tp2.txt");

/// A console that hears of a healthy server.
struct Heard(State);

impl Heard {
    fn new() -> Self {
        let config = config::parse(EXAMPLE, "config.example.toml").unwrap();
        let state = State::new(Arc::new(config), Options::default(), Now::default());
        let mut heard = Self(state);
        for node in heard.0.config.node_ids().collect::<Vec<_>>() {
            heard.event(0, Source::Node(node), EventKind::Link(LinkState::Up));
        }
        heard
    }

    fn event(&mut self, seconds: u64, source: Source, kind: EventKind) {
        let (stamp, wall) = (Stamp(seconds * 1000), Wall(seconds * 1000));
        let at = Now { stamp, wall };
        let _effects = update(&mut self.0, Event { source, at, kind });
    }

    /// Healthy, with this scrape.
    fn scrape(&mut self, seconds: u64, scrape: Result<MetricsSample, &str>) {
        let scrape = scrape.map(Box::new).map_err(str::to_owned);
        self.event(
            seconds,
            Source::Server,
            EventKind::Server(ServerFacts::Health(Health::Ok)),
        );
        self.event(seconds, Source::Server, EventKind::Server(ServerFacts::Metrics(scrape)));
    }

    fn doubt(&self) -> Option<String> {
        doubt(&self.0, self.0.now.stamp)
    }
}

fn near(seen: Quantile, want: f64) {
    assert!(
        matches!(seen, Quantile::At(v) if (v - want).abs() < 1e-9),
        "{seen:?}, not {want}"
    );
}

fn streaming(generated: f64) -> MetricsSample {
    MetricsSample {
        of: Some(MetricsOf::Vllm),
        generation_tokens: Some(generated),
        prompt_tokens: Some(50.0),
        running: Some(2.0),
        ..MetricsSample::default()
    }
}

#[test]
fn quantiles_of_real_scrapes_are_those_worked_out_by_hand() {
    let mut heard = Heard::new();
    heard.scrape(0, Ok(sample(IDLE)));
    assert_eq!(heard.0.server.figures.ttft.reason(), Some(ONE_SCRAPE));
    heard.scrape(20, Ok(sample(AFTER)));
    let figures = &heard.0.server.figures;
    // 33 requests: 12 up to 0.1 s, the other 21 up to 0.25 s.
    let ttft = figures.ttft.value().unwrap();
    assert_eq!(ttft.count, 33.0);
    near(ttft.p50, 0.1 + 0.15 * (16.5 - 12.0) / 21.0);
    near(ttft.p95, 0.1 + 0.15 * (31.35 - 12.0) / 21.0);
    // 5456 times: 648 up to 10 ms, 3284 up to 25 ms, 5421 up to 50 ms.
    let itl = figures.itl.value().unwrap();
    near(itl.p50, 0.01 + 0.015 * (2728.0 - 648.0) / (3284.0 - 648.0));
    near(itl.p95, 0.025 + 0.025 * (5183.2 - 3284.0) / (5421.0 - 3284.0));
    // All 33 in the first bucket, up to 0.3 s.
    near(figures.queue.value().unwrap().p50, 0.15);
    // 466 prompt tokens asked of the cache, none there: a zero that was counted.
    assert_eq!(figures.prefix_hits.value(), Some(&0.0));
    assert_eq!(figures.preemptions.value(), Some(&0.0));
    assert_eq!(
        figures.acceptance.reason(),
        Some("the server does not export it"),
        "nothing is drafted there"
    );
    assert_eq!(heard.0.server.generation.value(), Some(&(5489.0 / 20.0)));
}

#[test]
fn another_process_behind_the_same_port_is_measured_anew() {
    let mut heard = Heard::new();
    heard.scrape(0, Ok(sample(IDLE)));
    heard.scrape(1, Ok(sample(RAY)));
    assert_eq!(heard.0.server.figures.ttft.reason(), Some(ONE_SCRAPE));
    assert_eq!(
        heard.0.server.generation.value(),
        None,
        "its tokens do not follow on those of the other"
    );
}

#[test]
fn a_scrape_that_fails_takes_the_figures_away_and_not_the_window() {
    let mut heard = Heard::new();
    heard.scrape(0, Ok(sample(IDLE)));
    heard.scrape(1, Err("500: Internal Server Error"));
    let figures = &heard.0.server.figures;
    assert_eq!(figures.ttft.reason(), Some("500: Internal Server Error"));
    assert_eq!(figures.preemptions.reason(), Some("500: Internal Server Error"));
    heard.scrape(2, Ok(sample(AFTER)));
    assert_eq!(heard.0.server.figures.ttft.value().unwrap().count, 33.0);
}

#[test]
fn the_speed_of_a_slow_engine_stands_still_and_starts_anew_with_its_counters() {
    let mut heard = Heard::new();
    assert_eq!(heard.0.server.generation.reason(), Some("not asked yet"));
    // 13 tokens with each step of two seconds.
    let count = |second: u64| 1000.0 + 13.0 * f64::from(u32::try_from(second / 2).unwrap());
    heard.scrape(0, Ok(streaming(count(0))));
    assert_eq!(heard.0.server.generation.reason(), Some(ONE_SCRAPE));
    for second in 1..=60 {
        heard.scrape(second, Ok(streaming(count(second))));
        let rate = heard.0.server.generation.value().copied();
        assert!(second < 10 || rate == Some(6.5), "{second}: {rate:?}");
    }
    let shown = heard.0.server.generation_history.points().skip(10);
    assert!(
        shown.map(|p| p.1).all(|rate| rate == 6.5),
        "the history is of what was shown"
    );
    heard.scrape(61, Err("no answer in time"));
    assert_eq!(heard.0.server.generation.reason(), Some("no answer in time"));
    heard.scrape(62, Ok(streaming(count(62))));
    assert_eq!(
        heard.0.server.generation.value(),
        Some(&6.5),
        "the scrapes before it are there"
    );
    heard.scrape(63, Ok(streaming(7.0)));
    let anew = heard.0.server.generation.reason();
    assert_eq!(anew, Some("its counters began anew; counted from the next scrape on"));
    heard.scrape(64, Ok(streaming(10.0)));
    assert_eq!(heard.0.server.generation.value(), Some(&3.0));
    assert_eq!(heard.0.server.live.as_secs(), 1);
}

#[test]
fn a_quiet_minute_is_said() {
    let mut heard = Heard::new();
    for second in 0..=90 {
        heard.scrape(second, Ok(sample(AFTER)));
    }
    let figures = &heard.0.server.figures;
    assert_eq!(figures.ttft.reason(), Some("none in the last 60 s"));
    assert_eq!(figures.prefix_hits.reason(), Some("none in the last 60 s"));
    assert_eq!(
        heard.0.server.state,
        ServingState::Ready,
        "nothing runs, so nothing is stuck"
    );
}

#[test]
fn a_count_that_stands_still_in_mid_stream_is_degraded_until_it_moves() {
    let mut heard = Heard::new();
    heard.scrape(0, Ok(streaming(10.0)));
    for second in 1..=30 {
        heard.scrape(second, Ok(streaming(20.0)));
    }
    assert_eq!(heard.0.server.state, ServingState::Ready);
    heard.scrape(31, Ok(streaming(20.0)));
    let ServingState::Degraded(why) = &heard.0.server.state else {
        panic!("{:?}", heard.0.server.state);
    };
    assert!(why.contains("no token for 30 s with 2 requests running"), "{why}");
    heard.scrape(32, Err("no answer in time"));
    assert_eq!(
        heard.0.server.state.word(),
        "degraded",
        "one lost scrape takes nothing back"
    );
    heard.scrape(33, Ok(streaming(20.0)));
    assert_eq!(heard.0.server.state.word(), "degraded");
    heard.scrape(64, Err("no answer in time"));
    assert_eq!(
        heard.0.server.state.word(),
        "ready",
        "without counts nothing is claimed for long"
    );
    heard.scrape(65, Ok(streaming(21.0)));
    assert_eq!(heard.0.server.state, ServingState::Ready);
}

#[test]
fn a_long_prefill_is_a_doubt_and_not_a_failure() {
    let mut heard = Heard::new();
    for second in 0..=100 {
        heard.scrape(second, Ok(streaming(20.0)));
    }
    assert_eq!(heard.0.server.state, ServingState::Ready);
    let doubt = heard.doubt().unwrap();
    assert!(doubt.contains("a long prefill looks the same"), "{doubt}");
    heard.scrape(101, Ok(streaming(21.0)));
    assert_eq!(heard.doubt(), None);
}

/// A scrape of a server that counts first tokens and the requests that are over, as real ones do.
fn turn(generated: f64, first: f64, over: f64, kv: f32) -> MetricsSample {
    let bucket = Bucket {
        bound: f64::INFINITY,
        count: first,
    };
    MetricsSample {
        running: Some(1.0),
        ttft: Histogram::of(vec![bucket]),
        finished: Some(over),
        kv_cache: Some(Percent(kv)),
        ..streaming(generated)
    }
}

/// What the GPUs of both nodes say in a second of their work: up and down, or the same all the time, at so many percent.
fn gpus(heard: &mut Heard, second: u64, used: [f32; 2], works: bool) {
    for (id, used) in heard.0.config.node_ids().zip(used).collect::<Vec<_>>() {
        let wave = if works && second.is_multiple_of(4) { 12.0 } else { 0.0 };
        let gpu = Gpu {
            utilization: Some(Percent(used)),
            power: Some(Watts(40.0 + wave)),
            ..Gpu::default()
        };
        let facts = GpuFacts {
            gpus: vec![gpu],
            ..GpuFacts::default()
        };
        heard.event(second, Source::Node(id), EventKind::Facts(Facts::Gpus(facts)));
    }
}

#[test]
fn a_long_prefill_after_a_stream_is_not_degraded() {
    // One request streams; at 5 s another one has its place, in the time between two scrapes.
    let begin = || {
        let mut heard = Heard::new();
        for second in 0..5_u16 {
            heard.scrape(u64::from(second), Ok(turn(f64::from(second), 1.0, 0.0, 5.0)));
        }
        heard
    };
    let mut grows = begin();
    for second in 5..=105_u16 {
        let kv = 5.0 + 0.25 * f32::from(second);
        grows.scrape(u64::from(second), Ok(turn(9.0, 1.0, 1.0, kv)));
        assert_eq!(
            (grows.0.server.state.word(), grows.doubt()),
            ("ready", None),
            "{second}"
        );
    }
    let said = "prefill for 1m40s: no token yet, KV use moves; 1 request running";
    assert_eq!(prefill(&grows.0, grows.0.now.stamp).as_deref(), Some(said));
    assert_eq!(
        grows.0.server.generation.value(),
        Some(&0.0),
        "none came, and none is shown"
    );
    // A part of a prompt that takes long, of an engine whose cache says nothing by itself.
    let mut blind = begin();
    for second in 5..=105_u64 {
        blind.scrape(second, Ok(turn(9.0, 1.0, 1.0, 5.0)));
        assert_eq!(blind.0.server.state.word(), "ready", "{second}");
    }
    let doubt = blind.doubt().unwrap();
    assert!(doubt.contains("whether the GPUs work is not known"), "{doubt}");
    assert_eq!(prefill(&blind.0, blind.0.now.stamp), None);
}

#[test]
fn what_the_gpus_do_tells_a_prefill_from_a_server_that_is_stuck() {
    // A stream whose tokens stop; the place of it may have been given to nobody.
    let stops = |used: [f32; 2], works: bool| {
        let mut heard = Heard::new();
        for second in 0..=60_u16 {
            let stream = second <= 5;
            let count = f64::from(second.min(5));
            if second.is_multiple_of(2) {
                let now = if stream { [92.0, 92.0] } else { used };
                gpus(&mut heard, u64::from(second), now, stream || works);
            }
            heard.scrape(u64::from(second), Ok(turn(count, 1.0, 0.0, 5.0)));
        }
        heard
    };
    let mut works = stops([96.0, 95.0], true);
    assert_eq!(works.0.server.state.word(), "ready");
    let doubt = works.doubt().unwrap();
    assert!(
        doubt.contains("a long prefill looks the same (the GPU of spark-1 is at 96 %"),
        "{doubt}"
    );
    for second in 61..=320_u64 {
        if second.is_multiple_of(2) {
            gpus(&mut works, second, [96.0, 95.0], true);
        }
        works.scrape(second, Ok(turn(5.0, 1.0, 0.0, 5.0)));
    }
    assert_eq!(works.0.server.state.word(), "degraded", "no prompt takes so long");
    for (used, tells) in [
        ([100.0, 0.0], "the GPU of spark-2 is at 0 %"),
        ([100.0, 100.0], "tokens came before"),
    ] {
        let stuck = stops(used, false);
        let ServingState::Degraded(why) = &stuck.0.server.state else {
            panic!("{used:?}: {:?}, {:?}", stuck.0.server.state, stuck.doubt());
        };
        assert!(why.contains(tells), "{why}");
    }
}

#[test]
fn a_server_that_was_never_seen_to_give_a_token_is_not_proven_by_its_count_alone() {
    let mut heard = Heard::new();
    heard.scrape(0, Ok(streaming(20.0)));
    assert_eq!(heard.0.server.state, ServingState::Ready);
    assert!(unproven(&heard.0, heard.0.now.stamp) && look_on(&heard.0));
    assert_eq!(heard.doubt(), None, "one has hardly looked");
    for second in 1..=12 {
        heard.scrape(second, Ok(streaming(20.0)));
    }
    assert!(unproven(&heard.0, heard.0.now.stamp) && !look_on(&heard.0));
    let said =
        "it has given tokens since its start, and none in the 12 s since this console looks, with 2 requests running";
    assert_eq!(heard.doubt().as_deref(), Some(said));
    heard.scrape(13, Ok(streaming(21.0)));
    assert!(!unproven(&heard.0, heard.0.now.stamp) && heard.doubt().is_none());
    // Nothing runs: nothing is owed.
    let mut idle = Heard::new();
    for second in 0..=12 {
        idle.scrape(second, Ok(sample(AFTER)));
    }
    assert!(!unproven(&idle.0, idle.0.now.stamp) && !look_on(&idle.0));
}

#[test]
fn the_watch_starts_anew_with_another_server() {
    let mut heard = Heard::new();
    heard.scrape(0, Ok(streaming(10.0)));
    for second in 1..=25 {
        heard.scrape(second, Ok(streaming(20.0)));
    }
    heard.event(
        26,
        Source::Server,
        EventKind::Server(ServerFacts::Health(Health::Refused)),
    );
    heard.scrape(40, Ok(streaming(20.0)));
    heard.scrape(41, Ok(streaming(20.0)));
    assert_eq!((heard.0.server.state.word(), heard.doubt()), ("ready", None));
}

#[test]
fn a_head_that_is_lost_is_silent_through_every_try_to_reach_it() {
    let mut heard = Heard::new();
    let head = heard.0.config.head();
    let down = LinkState::Down {
        error: LinkError {
            kind: LinkErrorKind::Lost,
            text: "no sign of life".to_owned(),
            fix: None,
        },
        since: Stamp(14_000),
        retry_at: Some(Stamp(16_000)),
    };
    let silent = LinkState::Silent { since: Stamp(1000) };
    for (at, link) in [(4, silent), (14, down), (16, LinkState::Connecting)] {
        heard.event(at, Source::Node(head), EventKind::Link(link));
        assert_eq!(
            silent_since(&heard.0, heard.0.now.stamp),
            Some(When::at(Stamp(1000))),
            "at {at} s"
        );
        assert_eq!(heard.0.nodes[1].log.choice, LogChoice::Ray, "at {at} s");
    }
    heard.event(20, Source::Node(head), EventKind::Link(LinkState::Up));
    assert_eq!(silent_since(&heard.0, heard.0.now.stamp), None);
}

#[test]
fn a_node_that_is_lost_stays_lost_through_every_try_to_reach_it() {
    let mut heard = Heard::new();
    let worker = heard.0.config.node_ids().nth(1).unwrap();
    heard.scrape(1, Ok(streaming(9.0)));
    assert_eq!(heard.0.server.state, ServingState::Ready);
    let error = LinkError {
        kind: LinkErrorKind::Lost,
        text: "no sign of life".to_owned(),
        fix: None,
    };
    let down = |since, retry_at| LinkState::Down {
        error: error.clone(),
        since: Stamp(since),
        retry_at: Some(Stamp(retry_at)),
    };
    let mut last = 1;
    let seen = [
        (4, LinkState::Silent { since: Stamp(1000) }, "spark-2 is silent"),
        (14, down(14_000, 16_000), "spark-2 can't be reached"),
        (16, LinkState::Connecting, "spark-2 can't be reached"),
        (26, down(26_000, 30_000), "spark-2 can't be reached"),
        (30, LinkState::Connecting, "spark-2 can't be reached"),
    ];
    for (at, link, why) in seen {
        (last + 1..=at).for_each(|second| heard.scrape(second, Ok(streaming(9.0))));
        last = at;
        heard.event(at, Source::Node(worker), EventKind::Link(link));
        assert_eq!(
            heard.0.server.state,
            ServingState::Degraded(why.to_owned()),
            "at {at} s"
        );
        assert_eq!(heard.0.server.since, Stamp(4000), "at {at} s");
        assert_eq!(lost_since(&heard.0, worker), Some(When::at(Stamp(1000))), "at {at} s");
    }
    heard.event(31, Source::Node(worker), EventKind::Link(LinkState::Up));
    heard.scrape(31, Ok(streaming(10.0)));
    assert_eq!(heard.0.server.state, ServingState::Ready);
    assert_eq!(lost_since(&heard.0, worker), None);
}

#[test]
fn the_speed_of_an_engine_of_many_ranks_is_that_of_all_of_them() {
    // Sixteen data parallel ranks on two hosts: each has made ten tokens more than the one before it, and each of its two tensor parallel ranks says so.
    let scrape = |seconds: u64| {
        let count = |rank: u64| 1000 * rank + 2 * seconds * (rank + 1);
        let line = |rank: u64, tp: u64| {
            format!(
                "sglang:generation_tokens_total{{dp_rank=\"{rank}\",model_name=\"m\",tp_rank=\"{tp}\"}} {}\n",
                count(rank)
            )
        };
        let lines = (0..16).flat_map(|rank| [line(rank, 2 * rank), line(rank, 2 * rank + 1)]);
        sample(&lines.collect::<String>())
    };
    let mut heard = Heard::new();
    heard.scrape(0, Ok(scrape(0)));
    heard.scrape(5, Ok(scrape(5)));
    // 2 (1 + 2 + ... + 16) a second.
    assert_eq!(heard.0.server.generation.value().copied(), Some(272.0));
    assert_eq!(
        heard
            .0
            .observed
            .server
            .metrics
            .value()
            .and_then(|m| m.generation_tokens),
        Some(121_360.0)
    );
}
