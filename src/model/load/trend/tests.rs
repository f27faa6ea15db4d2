//! What is told of a reading that grows and falls.

use super::*;

/// A gibibyte, in MiB.
const GIB: u64 = 1024;

/// What is said of memory, of a load that began then, after looks at MiB in use two seconds apart.
fn told(used: &[u64], began: Option<u64>) -> Option<String> {
    let mut trends = Trends::default();
    let mut now = Stamp(0);
    for (turn, used) in (0..).zip(used) {
        now = Stamp(turn * 2000);
        let facts = MemoryFacts {
            total: Bytes::from_mib(120 * GIB),
            available: Bytes::from_mib(120 * GIB - used),
            ..MemoryFacts::default()
        };
        trends.memory(&facts, now);
    }
    let mut seen = trends.seen(now, began.map(Stamp)).into_iter();
    seen.find(|s| s.signal == Signal::Memory).map(|s| s.text)
}

#[test]
fn the_end_of_the_server_before_is_no_rate_of_a_load() {
    // The old server's memory goes back at 2 s, the new one begins at 6 s.
    let used = [107 * GIB, 7680, 7680, 7680, 9000, 11_000, 13_000];
    let began = Some(6000);
    let grows = "grows 52.0 GiB/min";
    assert_eq!(told(&used, began).as_deref(), Some(grows));
    let once = "was read once since the load began";
    assert_eq!(told(&used[..4], began).as_deref(), Some(once));
    let not = "was not read since the load began";
    assert_eq!(told(&used[..3], began).as_deref(), Some(not));
    // It is a fall where nobody knows of a load that began since.
    assert_eq!(told(&used[..3], None).as_deref(), Some("fell by 99.5 GiB in 4 s"));
}

#[test]
fn a_rate_is_of_some_looks_and_not_of_the_minute() {
    // Half a minute of nothing, then 1.5 GiB with each look.
    let mut used = vec![7680; 15];
    used.extend((1..=6).map(|turn| 7680 + turn * 1536));
    assert_eq!(told(&used, None).as_deref(), Some("grows 45.0 GiB/min"));
    assert_eq!(told(&used, Some(0)).as_deref(), Some("grows 45.0 GiB/min"));
}

#[test]
fn what_two_looks_show_is_told_with_its_time_and_not_as_a_rate() {
    let steps = [7680, 7680 + 1536];
    assert_eq!(told(&steps, None).as_deref(), Some("grew by 1.5 GiB in 2 s"));
    assert_eq!(told(&[9216, 7680], None).as_deref(), Some("fell by 1.5 GiB in 2 s"));
    // From some looks on it is one.
    let more = [7680, 9216, 10_752, 12_288];
    assert_eq!(told(&more, None).as_deref(), Some("grows 45.0 GiB/min"));
}

#[test]
fn what_stands_still_after_it_has_grown_says_over_what_time_it_grew() {
    let mut used = vec![7680, 9216, 10_752];
    used.extend([10_752; 8]);
    let lately = "has grown 3.0 GiB in the last minute";
    assert_eq!(told(&used, None).as_deref(), Some(lately));
    let since = "has grown 3.0 GiB since the load began";
    assert_eq!(told(&used, Some(0)).as_deref(), Some(since));
    assert_eq!(told(&used, Some(4000)).as_deref(), Some("does not grow"));
    // What a host takes beside, for some seconds, is no rate.
    used.extend([10_752 + 80; 2]);
    assert_eq!(told(&used, Some(4000)).as_deref(), Some("does not grow"));
}

#[test]
fn what_grows_by_less_than_a_movement_has_hardly_grown_once_it_is_looked_at_for_long() {
    // Up and down by 170 MiB, over and over.
    let used: Vec<u64> = (0..60)
        .map(|turn| 7680 + [0, 34, 68, 102, 136, 170, 100, 50][turn % 8])
        .collect();
    let all: Vec<Option<String>> = (2..used.len()).map(|end| told(&used[..end], None)).collect();
    let grows = |told: &Option<String>| told.as_ref().is_some_and(|told| told.starts_with("grows"));
    // Two seconds a look: after a minute it is known that it was no movement.
    assert!(all.iter().take(28).any(grows), "{all:?}");
    assert!(!all.iter().skip(30).any(grows), "{all:?}");
    assert!(all.contains(&Some("has hardly grown".to_owned())), "{all:?}");
}

#[test]
fn memory_that_falls_and_comes_back_is_no_progress_of_a_load() {
    let mut trends = Trends::default();
    let mut look = |second: u64, used: u64| {
        let facts = MemoryFacts {
            total: Bytes::from_mib(120 * GIB),
            available: Bytes::from_mib(120 * GIB - used),
            ..MemoryFacts::default()
        };
        let now = Stamp(second * 1000);
        let moved = trends.memory(&facts, now);
        let text = trends.seen(now, None).into_iter().next().map(|seen| seen.text);
        (moved, text.unwrap_or_default())
    };
    assert!(!look(0, 40 * GIB).0);
    assert!(look(2, 41 * GIB).0);
    // Other work goes up and down below what was in use.
    let mut said = Vec::new();
    for turn in 0..60 {
        let (down, _) = look(4 + turn * 4, 37 * GIB);
        let (up, text) = look(6 + turn * 4, 40 * GIB + 900);
        assert_eq!((down, up), (false, false), "{turn}");
        said.push(text);
    }
    assert_eq!(said.last().map(String::as_str), Some("goes up and down"));
    assert!(look(300, 42 * GIB).0, "beyond it");
    trends.begin();
    let facts = |used: u64| MemoryFacts {
        total: Bytes::from_mib(120 * GIB),
        available: Bytes::from_mib(120 * GIB - used),
        ..MemoryFacts::default()
    };
    trends.memory(&facts(10 * GIB), Stamp(302_000));
    assert!(
        trends.memory(&facts(11 * GIB), Stamp(304_000)),
        "another load begins from where it is"
    );
}

#[test]
fn what_gpus_did_since_a_moment_is_work_a_wait_nothing_or_not_known() {
    use crate::domain::gpu::Gpu;
    use crate::domain::units::{Percent, Watts};
    let told = |looks: &[(u8, f32)], since: u64| {
        let mut trends = Trends::default();
        let mut now = Stamp(0);
        for (turn, (used, watts)) in (0..).zip(looks) {
            now = Stamp(turn * 2000);
            let gpu = Gpu {
                utilization: Some(Percent(f32::from(*used))),
                power: Some(Watts(*watts)),
                ..Gpu::default()
            };
            let facts = GpuFacts {
                gpus: vec![gpu],
                ..GpuFacts::default()
            };
            trends.gpus(&facts, now);
        }
        trends.busy(Stamp(since), now)
    };
    let said = |busy, text: &str| Some((busy, text.to_owned()));
    // Five looks at a stream, and then eight at what comes after it.
    let then = |looks: [(u8, f32); 8]| {
        [
            &[(92, 44.0), (70, 38.0), (93, 45.0), (80, 41.0), (92, 44.0)],
            &looks[..],
        ]
        .concat()
    };
    let spin = then([(100, 31.0); 8]);
    assert_eq!(told(&spin, 8000), said(Busy::Even, "at 100 %, 31 W"));
    assert_eq!(
        told(&spin, 0),
        said(Busy::Works, "at 100 %, 31 W"),
        "the stream before it is in that time"
    );
    let idle = then([
        (0, 9.0),
        (1, 11.0),
        (0, 9.0),
        (0, 9.0),
        (0, 9.0),
        (0, 9.0),
        (0, 9.0),
        (0, 9.0),
    ]);
    assert_eq!(told(&idle, 8000), said(Busy::Idle, "at 0 %, 9 W"));
    let works = then([
        (96, 61.0),
        (96, 52.0),
        (96, 60.0),
        (96, 53.0),
        (96, 62.0),
        (96, 50.0),
        (96, 60.0),
        (95, 58.0),
    ]);
    assert_eq!(told(&works, 8000), said(Busy::Works, "at 95 %, 58 W"));
    assert_eq!(told(&works, 18_000), None, "three looks say nothing");
    assert_eq!(told(&[], 0), None);
}
