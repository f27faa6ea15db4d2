//! Loads, line by line.

use std::time::Duration;

use proptest::prelude::*;

use crate::domain::disk::{Cache, DiskFacts};
use crate::domain::gpu::{Gpu, GpuFacts};
use crate::domain::load::{LineFact, RankLine, Stage};
use crate::domain::memory::MemoryFacts;
use crate::domain::units::{Bytes, Percent, Watts};
use crate::domain::{Stamp, When};

use super::Load;
use super::trend::{Signal, Trends};

fn bar(done: u64) -> LineFact {
    LineFact::Bar {
        stage: Stage::Weights,
        done,
        total: 10,
    }
}

#[test]
fn stages_never_go_back_within_a_start() {
    let mut load = Load::default();
    load.line(LineFact::NewStart, When::at(Stamp(0)));
    load.line(LineFact::Stage(Stage::KvCache), When::at(Stamp(10)));
    load.line(bar(3), When::at(Stamp(20)));
    assert_eq!(load.stage, Some((Stage::KvCache, When::at(Stamp(10)))));
    assert_eq!(load.bar, None);
}

#[test]
fn a_new_start_forgets_the_one_before() {
    let mut load = Load::default();
    load.line(LineFact::Stage(Stage::Listening), When::at(Stamp(5)));
    load.line(LineFact::Failure("boom".into()), When::at(Stamp(6)));
    load.line(LineFact::NewStart, When::at(Stamp(7)));
    assert_eq!(load.stage, Some((Stage::Starting, When::at(Stamp(7)))));
    assert!(load.failures.is_empty());
}

#[test]
fn eta_comes_from_the_steps_seen() {
    let mut load = Load::default();
    load.line(bar(2), When::at(Stamp(1000)));
    assert_eq!(load.bar.and_then(|b| b.eta()), None);
    load.line(bar(4), When::at(Stamp(5000)));
    assert_eq!(load.bar.and_then(|b| b.eta()), Some(Duration::from_secs(12)));
}

#[test]
fn steps_that_come_in_one_gulp_say_nothing_of_the_pace() {
    let mut load = Load::default();
    for done in 0..=4 {
        load.line(bar(done), When::at(Stamp(1000 + done)));
    }
    assert_eq!(load.bar.and_then(|b| b.eta()), None);
    load.line(bar(6), When::at(Stamp(5004)));
    assert_eq!(load.bar.and_then(|b| b.eta()), Some(Duration::from_secs(8)));
}

fn memory(used: u64, cached: u64) -> MemoryFacts {
    MemoryFacts {
        total: Bytes::from_mib(8000),
        available: Bytes::from_mib(8000 - used),
        cached: Some(Bytes::from_mib(cached)),
        ..MemoryFacts::default()
    }
}

#[test]
fn memory_growth_is_progress_and_noise_is_not() {
    let mut trends = Trends::default();
    assert!(!trends.memory(&memory(1000, 0), Stamp(1)));
    assert!(!trends.memory(&memory(1100, 0), Stamp(2)));
    assert!(trends.memory(&memory(1300, 0), Stamp(3)));
    // What has moved is not seen to move again by the same step.
    assert!(!trends.memory(&memory(1310, 0), Stamp(4)));
}

#[test]
fn a_page_cache_that_grows_is_progress_too() {
    let mut trends = Trends::default();
    assert!(!trends.memory(&memory(1000, 500), Stamp(1)));
    assert!(!trends.memory(&memory(1000, 600), Stamp(2)));
    assert!(trends.memory(&memory(1000, 800), Stamp(3)));
    // What the kernel drops from it under pressure is no step back.
    assert!(!trends.memory(&memory(1000, 100), Stamp(4)));
    assert!(trends.memory(&memory(1000, 400), Stamp(5)));
}

#[test]
fn growth_that_is_slower_than_a_step_a_minute_is_none_however_long_it_goes_on() {
    let mut trends = Trends::default();
    for second in 0..1200 {
        let moved = trends.memory(&memory(1000 + second / 10, 0), Stamp(second * 1000));
        assert!(!moved, "second {second}");
    }
    let seen = trends.seen(Stamp(1_199_000), None);
    let memory = seen.iter().find(|s| s.signal == Signal::Memory).unwrap();
    assert_eq!((memory.moved_at, memory.text.as_str()), (None, "does not grow"));
}

#[test]
fn a_slope_is_told_a_minute_and_an_old_reading_tells_nothing() {
    let mut trends = Trends::default();
    for second in (0..60).step_by(2) {
        trends.memory(&memory(1000 + second * 20, 0), Stamp(second * 1000));
    }
    let text = |now| {
        let seen: Vec<_> = trends.seen(now, None);
        seen.into_iter().find(|s| s.signal == Signal::Memory).map(|s| s.text)
    };
    assert_eq!(text(Stamp(60_000)).as_deref(), Some("grows 1.2 GiB/min"));
    assert_eq!(text(Stamp(70_000)), None);
}

fn read(gb: u64) -> MemoryFacts {
    MemoryFacts {
        read: Some(Bytes(gb * 1_000_000_000)),
        ..memory(1000, 0)
    }
}

/// What the trends say of the disk now.
fn disk(trends: &Trends, now: u64) -> Option<String> {
    let mut seen = trends.seen(Stamp(now), None).into_iter();
    seen.find(|s| s.signal == Signal::DiskReads).map(|s| s.text)
}

#[test]
fn reads_from_disks_are_movement_and_their_rate_is_told_as_it_is_now() {
    let mut trends = Trends::default();
    assert!(!trends.memory(&read(100), Stamp(0)));
    assert_eq!(trends.read_rate(Stamp(0)), Err("read once so far"));
    assert_eq!(disk(&trends, 0), None);
    for turn in 1..=10 {
        let moved = trends.memory(&read(100 + turn * 3), Stamp(turn * 2000));
        assert!(moved, "turn {turn}");
    }
    assert_eq!(trends.read_rate(Stamp(20_000)), Ok(Bytes(1_500_000_000)));
    assert_eq!(disk(&trends, 20_000).as_deref(), Some("reads 1.5 GB/s from disk"));
    for turn in 11..=20 {
        assert!(!trends.memory(&read(130), Stamp(turn * 2000)));
    }
    assert_eq!(trends.read_rate(Stamp(40_000)), Ok(Bytes(0)));
    let lately = "has read 30.0 GB from disk in the last minute";
    assert_eq!(disk(&trends, 40_000).as_deref(), Some(lately));
    for turn in 21..=60 {
        trends.memory(&read(130), Stamp(turn * 2000));
    }
    let still = "reads next to nothing from disk";
    assert_eq!(disk(&trends, 120_000).as_deref(), Some(still));
    // What is old says nothing of now.
    assert_eq!(trends.read_rate(Stamp(130_000)), Err("not read lately"));
    assert_eq!(disk(&trends, 130_000), None);
}

#[test]
fn a_counter_of_reads_that_begins_anew_is_neither_movement_nor_a_rate_below_zero() {
    let mut trends = Trends::default();
    for turn in 0..5 {
        trends.memory(&read(500 + turn), Stamp(turn * 2000));
    }
    // The node was booted anew: it has read 2 GB since.
    assert!(!trends.memory(&read(2), Stamp(10_000)));
    let why = "the node counts anew, and was read once since";
    assert_eq!(trends.read_rate(Stamp(10_000)), Err(why));
    assert_eq!(disk(&trends, 10_000), None);
    assert!(trends.memory(&read(4), Stamp(12_000)));
    assert_eq!(trends.read_rate(Stamp(12_000)), Ok(Bytes(1_000_000_000)));
}

#[test]
fn a_node_that_does_not_count_its_reads_has_no_rate_of_zero() {
    let mut trends = Trends::default();
    for turn in 0..5 {
        trends.memory(&memory(1000, 0), Stamp(turn * 2000));
    }
    let why = "the node's /proc/vmstat does not tell it";
    assert_eq!(trends.read_rate(Stamp(8000)), Err(why));
    assert_eq!(disk(&trends, 8000), None);
}

fn gpu(utilization: f32, watts: f32) -> GpuFacts {
    GpuFacts {
        gpus: vec![Gpu {
            utilization: Some(Percent(utilization)),
            power: Some(Watts(watts)),
            unified: true,
            ..Gpu::default()
        }],
        ..GpuFacts::default()
    }
}

#[test]
fn a_gpu_works_when_it_is_busy_and_its_figures_move() {
    // Idle, with the noise of an idle GPU; a spin of waiting ranks, which stands still however high; work.
    let idle = [(0.0, 11.0), (0.0, 11.2), (1.0, 10.9), (0.0, 11.1)];
    let spins = [(96.0, 21.0), (96.0, 21.4), (96.0, 21.2), (97.0, 21.3)];
    let works = [(40.0, 24.0), (71.0, 33.0), (66.0, 31.0), (34.0, 22.0)];
    for (figures, want) in [(idle, false), (spins, false), (works, true)] {
        let mut trends = Trends::default();
        let moved = (0..)
            .zip(figures)
            .filter(|(i, (u, w))| trends.gpus(&gpu(*u, *w), Stamp(i * 2000)));
        assert_eq!(moved.count() > 0, want, "{figures:?}");
    }
}

#[test]
fn a_model_cache_that_grows_between_two_looks_is_a_download() {
    let cache = |mib: u64| DiskFacts {
        cache: Some(Cache {
            path: "/c".into(),
            size: Bytes::from_mib(mib),
        }),
        ..DiskFacts::default()
    };
    let mut trends = Trends::default();
    assert!(!trends.disk(&cache(100), Stamp(0)));
    assert!(!trends.disk(&cache(101), Stamp(70_000)));
    assert!(trends.disk(&cache(2101), Stamp(140_000)));
    let seen = trends.seen(Stamp(150_000), None);
    assert_eq!(seen[0].text, "grows 1.7 GiB/min");
}

#[test]
fn bars_never_go_back_but_for_another_set_of_graphs() {
    let mut load = Load::default();
    load.line(bar(4), When::at(Stamp(1000)));
    load.line(bar(2), When::at(Stamp(2000)));
    assert_eq!(load.bar.map(|b| (b.done, b.round)), Some((4, 0)));
    let graphs = |done, total| LineFact::Bar {
        stage: Stage::Graphs,
        done,
        total,
    };
    for (done, total, want) in [
        (35, 35, (35, 0)),
        (1, 35, (1, 1)),
        (35, 35, (35, 1)),
        (2, 51, (2, 2)),
        (1, 51, (2, 2)),
    ] {
        load.line(graphs(done, total), When::at(Stamp(3000)));
        assert_eq!(load.bar.map(|b| (b.done, b.round)), Some(want));
    }
}

#[test]
fn a_download_adds_its_files_and_knows_its_size_when_all_parts_were_seen() {
    let part = |n: u32, done, total| LineFact::Download {
        file: Some(format!("model-0000{n}-of-00002.safetensors")),
        done: Bytes(done),
        total: Bytes(total),
    };
    let mut load = Load::default();
    load.line(part(1, 10, 100), When::at(Stamp(0)));
    assert_eq!((load.download.done(), load.download.total()), (Some(Bytes(10)), None));
    load.line(part(2, 30, 100), When::at(Stamp(1000)));
    load.line(part(1, 5, 100), When::at(Stamp(2000)));
    assert_eq!(load.download.done(), Some(Bytes(40)));
    assert_eq!(load.download.total(), Some(Bytes(200)));
    load.line(part(1, 70, 100), When::at(Stamp(10_000)));
    // 90 in ten seconds, 100 are missing.
    assert_eq!(load.download.eta(Stamp(10_000)), Some(Duration::from_millis(11_111)));
    assert_eq!(load.stage, Some((Stage::Download, When::at(Stamp(0)))));
}

#[test]
fn ranks_are_followed_by_their_processes_and_keep_their_furthest_stage() {
    let line = |name: Option<&str>, pid, address: Option<&str>, stage| {
        LineFact::Rank(RankLine {
            name: name.map(str::to_owned),
            pid: Some(pid),
            address: address.map(str::to_owned),
            stage: Some(stage),
            ..RankLine::default()
        })
    };
    let mut load = Load::default();
    load.line(line(None, 490, None, Stage::Distributed), When::at(Stamp(1)));
    // The same process number in another container.
    load.line(
        line(None, 490, Some("10.0.0.2"), Stage::Distributed),
        When::at(Stamp(2)),
    );
    load.line(
        line(Some("TP1"), 490, Some("10.0.0.2"), Stage::Weights),
        When::at(Stamp(3)),
    );
    load.line(line(Some("TP0"), 490, None, Stage::KvCache), When::at(Stamp(4)));
    // Handed on late.
    load.line(line(None, 490, None, Stage::Weights), When::at(Stamp(5)));
    let ranks: Vec<_> = load
        .ranks
        .iter()
        .map(|r| (r.name.as_deref(), r.address.as_deref(), r.stage))
        .collect();
    assert_eq!(
        ranks,
        [
            (Some("TP0"), None, Some((Stage::KvCache, When::at(Stamp(4))))),
            (
                Some("TP1"),
                Some("10.0.0.2"),
                Some((Stage::Weights, When::at(Stamp(3))))
            ),
        ]
    );
}

#[test]
fn lines_that_only_say_that_something_is_waited_for_break_no_silence() {
    let mut load = Load::default();
    load.line(LineFact::NewStart, When::at(Stamp(0)));
    load.spoke(When::at(Stamp(5_000)));
    load.line(LineFact::StillWaits, When::at(Stamp(60_000)));
    load.line(LineFact::GpuWait { seconds: 70 }, When::at(Stamp(70_000)));
    assert_eq!(load.line_at, Some(When::at(Stamp(5_000))));
}

/// Any line of a load.
fn any_fact() -> impl Strategy<Value = LineFact> {
    let stage = prop::sample::select(vec![
        Stage::Starting,
        Stage::Placement,
        Stage::Distributed,
        Stage::Download,
        Stage::Weights,
        Stage::Compile,
        Stage::KvCache,
        Stage::Graphs,
        Stage::Warmup,
        Stage::Listening,
    ]);
    let rank = (stage.clone(), 0u32..3, 0u64..5).prop_map(|(stage, pid, done)| {
        LineFact::Rank(RankLine {
            pid: Some(pid),
            stage: Some(stage),
            bar: Some((done, 4)),
            ..RankLine::default()
        })
    });
    prop_oneof![
        stage.clone().prop_map(LineFact::Stage),
        (stage, 0u64..5, 4u64..6).prop_map(|(stage, done, total)| LineFact::Bar { stage, done, total }),
        (0u8..3, 0u64..9).prop_map(|(file, done)| LineFact::Download {
            file: Some(format!("f{file}-of-3.bin")),
            done: Bytes(done),
            total: Bytes(9)
        }),
        rank,
        Just(LineFact::StillWaits),
        (0u64..99).prop_map(|seconds| LineFact::GpuWait { seconds }),
    ]
}

proptest! {
    #[test]
    fn whatever_the_lines_say_a_load_never_goes_back(facts in prop::collection::vec(any_fact(), 0..60)) {
        let mut load = Load::default();
        load.line(LineFact::NewStart, When::at(Stamp(0)));
        let place = |load: &Load| {
            (load.stage.map(|(s, _)| s), load.bar.map(|b| (b.round, b.done)), load.download.done())
        };
        let ranks = |load: &Load| -> Vec<_> {
            load.ranks.iter().map(|r| (r.stage.map(|(s, _)| s), r.bar.map(|b| (b.round, b.done)))).collect()
        };
        for (i, fact) in (1..).zip(facts) {
            let (before, ranks_before) = (place(&load), ranks(&load));
            load.line(fact, When::at(Stamp(i)));
            let after = place(&load);
            // A new stage begins with no bar.
            prop_assert!(after.0 > before.0 || after >= before, "{before:?} {after:?}");
            for (before, after) in ranks_before.iter().zip(ranks(&load)) {
                prop_assert!(after.0 > before.0 || after >= *before, "{before:?} {after:?}");
            }
        }
    }
}
