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
