//! Figures of a window, by hand.

use super::*;
use crate::domain::histogram::Bucket;

fn histogram(buckets: &[(f64, f64)]) -> Option<Histogram> {
    Histogram::of(buckets.iter().map(|&(bound, count)| Bucket { bound, count }).collect())
}

/// `fast` requests below 0.1 s and `slow` ones below 1 s.
fn times(fast: f64, slow: f64) -> Option<Histogram> {
    histogram(&[(0.1, fast), (1.0, fast + slow), (f64::INFINITY, fast + slow)])
}

fn sample(fast: f64, slow: f64) -> MetricsSample {
    MetricsSample {
        generation_tokens: Some(fast + slow),
        ttft: times(fast, slow),
        ..MetricsSample::default()
    }
}

fn after(scrapes: Vec<(u64, MetricsSample)>) -> Window {
    let mut window = Window::default();
    for (seconds, sample) in scrapes {
        window.push(Stamp(seconds * 1000), sample);
    }
    window
}

#[test]
fn quantiles_are_of_the_window_and_not_of_all_time() {
    let figures = after(vec![(0, sample(1000.0, 0.0)), (10, sample(1000.0, 10.0))]).figures();
    let ttft = figures.ttft.value().unwrap();
    assert_eq!((ttft.p50, ttft.count), (Quantile::At(0.55), 10.0));
    assert_eq!(figures.span, Duration::from_secs(10));
    assert_eq!(figures.itl.reason(), Some(NOT_EXPORTED));
}

#[test]
fn after_one_scrape_nothing_can_be_said() {
    let figures = after(vec![(0, sample(5.0, 5.0))]).figures();
    assert_eq!(figures.ttft.reason(), Some(ONE_SCRAPE));
    assert_eq!(figures.itl.reason(), Some(NOT_EXPORTED));
}

#[test]
fn no_request_in_the_window_is_said_and_is_not_zero() {
    let figures = after(vec![
        (0, sample(5.0, 5.0)),
        (30, sample(5.0, 5.0)),
        (45, sample(5.0, 5.0)),
    ])
    .figures();
    assert_eq!(figures.ttft.reason(), Some("none in the last 45 s"));
}

#[test]
fn what_is_older_than_the_window_is_forgotten() {
    let window = after(vec![
        (0, sample(0.0, 0.0)),
        (1, sample(0.0, 9.0)),
        (61, sample(2.0, 9.0)),
    ]);
    let ttft = *window.figures().ttft.value().unwrap();
    assert_eq!((ttft.count, ttft.p50), (2.0, Quantile::At(0.05)));
    let gap = after(vec![(0, sample(0.0, 0.0)), (120, sample(0.0, 9.0))]);
    assert_eq!(
        gap.figures().ttft.reason(),
        Some(ONE_SCRAPE),
        "the minutes between are not the window"
    );
    let many = after((0..1000).map(|n| (n / 100, sample(0.0, 0.0))).collect());
    assert_eq!(many.scrapes.len(), SCRAPES);
}

#[test]
fn a_server_that_counts_anew_is_measured_anew() {
    let mut window = after(vec![(0, sample(100.0, 100.0)), (1, sample(100.0, 120.0))]);
    assert!(window.push(Stamp(2000), sample(3.0, 0.0)), "a count fell");
    assert_eq!(window.figures().ttft.reason(), Some(ONE_SCRAPE));
    assert!(!window.push(Stamp(3000), sample(5.0, 0.0)));
    assert_eq!(window.figures().ttft.value().unwrap().count, 2.0);
    // More than before, and yet another process.
    let started = |n, fast| MetricsSample {
        started: Some(n),
        ..sample(fast, 0.0)
    };
    let mut window = after(vec![(0, started(1.0, 5.0))]);
    assert!(window.push(Stamp(1000), started(2.0, 9.0)));
    assert_eq!(window.figures().ttft.reason(), Some(ONE_SCRAPE));
}

#[test]
fn hits_of_the_prefix_cache_are_of_the_window() {
    let cache = |queries, hits| MetricsSample {
        prefix_queries: Some(queries),
        prefix_hits: Some(hits),
        ..MetricsSample::default()
    };
    let hits = |from, to| after(vec![(0, from), (5, to)]).figures().prefix_hits;
    assert_eq!(hits(cache(1000.0, 0.0), cache(1200.0, 150.0)).value(), Some(&0.75));
    assert_eq!(
        hits(cache(9.0, 1.0), cache(9.0, 1.0)).reason(),
        Some("none in the last 5 s")
    );
    let own = MetricsSample {
        prefix_hit_rate: Some(0.5),
        ..MetricsSample::default()
    };
    assert_eq!(hits(own.clone(), own).value(), Some(&0.5));
}

#[test]
fn acceptance_is_of_the_window_and_of_nothing_where_nothing_was_drafted() {
    let spec = |drafts, tokens, accepted| MetricsSample {
        drafts: Some(drafts),
        draft_tokens: Some(tokens),
        accepted_tokens: Some(accepted),
        ..MetricsSample::default()
    };
    let of = |from, to| after(vec![(0, from), (5, to)]).figures().acceptance;
    let seen = *of(spec(100.0, 300.0, 0.0), spec(200.0, 600.0, 240.0)).value().unwrap();
    assert_eq!((seen.length, seen.rate), (Some(3.4), Some(0.8)));
    assert_eq!(
        of(spec(1.0, 3.0, 1.0), spec(1.0, 3.0, 1.0)).reason(),
        Some("none in the last 5 s")
    );
    assert_eq!(of(sample(0.0, 0.0), sample(0.0, 0.0)).reason(), Some(NOT_EXPORTED));
}

#[test]
fn preemptions_are_counted_in_the_window() {
    let put_back = |n| MetricsSample {
        preemptions: Some(n),
        ..MetricsSample::default()
    };
    let figures = after(vec![(0, put_back(7.0)), (5, put_back(9.0))]).figures();
    assert_eq!(figures.preemptions.value(), Some(&2.0));
    let quiet = after(vec![(0, put_back(7.0)), (5, put_back(7.0))]).figures();
    assert_eq!(
        quiet.preemptions.value(),
        Some(&0.0),
        "a counter that stands still is a zero that was seen"
    );
}

#[test]
fn the_rate_of_the_window_is_its_tokens_by_its_time() {
    let figures = after(vec![
        (0, sample(0.0, 0.0)),
        (1, sample(90.0, 0.0)),
        (40, sample(90.0, 600.0)),
    ])
    .figures();
    assert_eq!(figures.generation.value(), Some(&17.25));
    let idle = after(vec![(0, sample(9.0, 0.0)), (1, sample(9.0, 0.0))]).figures();
    assert_eq!(idle.generation.value(), Some(&0.0), "counted, and none");
    let alone = after(vec![(0, sample(9.0, 0.0))]).figures();
    assert_eq!(alone.generation.reason(), Some(ONE_SCRAPE));
    let uncounted = after(vec![(0, MetricsSample::default()), (1, MetricsSample::default())]).figures();
    assert_eq!(uncounted.generation.reason(), Some(NOT_EXPORTED));
}

#[test]
fn an_engine_that_leaves_comes_back_or_counts_anew_is_no_burst_of_tokens() {
    let engines = |each: &[f64]| MetricsSample {
        generation_tokens: Some(each.iter().sum()),
        generation_of: each
            .iter()
            .enumerate()
            .map(|(n, v)| (format!("engine={n}"), *v))
            .collect(),
        ..MetricsSample::default()
    };
    let mut window = after(vec![
        (0, engines(&[1000.0, 50_000.0])),
        (1, engines(&[1100.0, 50_100.0])),
    ]);
    assert_eq!(window.figures().generation.value(), Some(&200.0));
    assert!(window.push(Stamp(2000), engines(&[1200.0])), "one left");
    assert!(window.push(Stamp(3000), engines(&[1300.0, 50_300.0])), "it is back");
    assert!(!window.push(Stamp(4000), engines(&[1400.0, 50_400.0])));
    assert_eq!(window.figures().generation.value(), Some(&200.0));
    assert!(
        window.push(Stamp(5000), engines(&[61_400.0, 0.0])),
        "one began anew, and the sum rose"
    );
}

/// Scrapes a second apart of an engine that counts `tokens` with each step of `step` seconds, until `end`.
fn stepping(step: u64, tokens: f64, end: u64, scrapes: u64) -> Vec<(u64, MetricsSample)> {
    let counted = |second: u64| MetricsSample {
        generation_tokens: Some(tokens * whole(second.min(end) / step)),
        prompt_tokens: Some(9.0),
        ..MetricsSample::default()
    };
    (0..=scrapes).map(|second| (second, counted(second))).collect()
}

fn whole(n: u64) -> f64 {
    f64::from(u32::try_from(n).unwrap())
}

#[test]
fn the_rate_of_now_does_not_flip_where_steps_are_slower_than_scrapes() {
    let mut window = Window::default();
    for (second, scrape) in stepping(2, 13.0, 120, 120) {
        window.push(Stamp(second * 1000), scrape);
        let rates = window.rates();
        if second < 10 {
            assert_eq!(rates.span, Duration::from_secs(second), "{second}");
            continue;
        }
        assert_eq!((rates.span, rates.generation.at()), (LIVE, Some(Stamp(second * 1000))));
        // 65 tokens in any ten seconds.
        assert_eq!(rates.generation.value(), Some(&6.5), "{second}");
        assert_eq!(rates.prompt.value(), Some(&0.0), "counted, and none");
        let figures = window.figures();
        let mean = figures.generation.value().unwrap();
        let first = second.saturating_sub(60);
        let own = 13.0 * whole(second / 2 - first / 2) / whole(second - first);
        assert!((mean - own).abs() <= 0.02 * own, "{second}: {mean} and {own}");
    }
}

#[test]
fn what_has_ended_is_out_of_the_rate_of_now_after_its_window() {
    let mut window = Window::default();
    let mut last = f64::INFINITY;
    for (second, scrape) in stepping(1, 20.0, 30, 50) {
        window.push(Stamp(second * 1000), scrape);
        let rate = window.rates().generation.value().copied();
        if second >= 30 {
            let rate = rate.unwrap();
            assert!(rate < last || rate == 0.0, "{second}: {rate} after {last}");
            assert_eq!(rate == 0.0, second >= 40, "{second}: {rate}");
            last = rate;
        }
    }
    // What came before a gap is told with it once, and is not of now any more with the next scrape.
    let at = |second, tokens| (second, sample(tokens, 0.0));
    let after_gap = after(vec![at(0, 0.0), at(1, 20.0), at(41, 420.0)]).rates();
    assert_eq!(
        (after_gap.generation.value(), after_gap.span),
        (Some(&10.0), Duration::from_secs(40))
    );
    let next = after(vec![at(0, 0.0), at(1, 20.0), at(41, 420.0), at(42, 420.0)]).rates();
    assert_eq!(
        (next.generation.value(), next.span),
        (Some(&0.0), Duration::from_secs(1))
    );
}

#[test]
fn the_rate_of_now_covers_its_window_where_scrapes_come_late() {
    // Each comes 1.07 s after the one before, and one of them 2 s later still.
    let mut window = Window::default();
    let mut spans = Vec::new();
    for turn in 0..60_u64 {
        let at = Stamp(turn * 1070 + if turn > 30 { 2000 } else { 0 });
        window.push(at, sample(whole(turn), 0.0));
        spans.push(window.rates().span);
    }
    let full = |span: &Duration| (LIVE..LIVE + LIVE_LATE).contains(span);
    assert!(spans[10..].iter().filter(|span| !full(span)).count() <= 1, "{spans:?}");
    assert!(spans.iter().all(|span| *span < LIVE + LIVE_LATE), "{spans:?}");
    assert!(spans[..10].windows(2).all(|two| two[0] < two[1]), "{spans:?}");
}

#[test]
fn there_is_no_rate_of_now_before_two_scrapes() {
    assert_eq!(Window::default().rates(), Rates::default());
    let alone = after(vec![(0, sample(9.0, 0.0))]).rates();
    assert_eq!(alone.generation.reason(), Some(ONE_SCRAPE));
    assert_eq!(alone.prompt.reason(), Some(NOT_EXPORTED));
    let both = after(vec![(0, MetricsSample::default()), (1, MetricsSample::default())]).rates();
    assert_eq!(both.generation.reason(), Some(NOT_EXPORTED));
    let long_after = after(vec![(0, sample(9.0, 0.0)), (90, sample(99.0, 0.0))]).rates();
    assert_eq!(
        long_after.generation.reason(),
        Some(ONE_SCRAPE),
        "the one before is forgotten"
    );
}
