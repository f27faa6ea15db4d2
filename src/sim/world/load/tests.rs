//! The load that is played.

use super::*;
use crate::domain::load::{LineFact, Stage, Transport};
use crate::engine::grammar::read_line;
use std::time::Duration;

fn words(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

fn around<'a>(ranks: &'a [String]) -> Around<'a> {
    Around {
        ray: "192.168.200.12:6379",
        ranks,
        nccl: Some(Nccl {
            hcas: Some("rocep1s0f1,roceP2p1s0f1"),
            interface: "enp1s0f1np1",
        }),
    }
}

#[test]
fn a_load_takes_a_minute_and_its_lines_come_in_order() {
    let ranks = words("192.168.200.12 192.168.200.13");
    let spec = Spec::parse(&words("m -tp 2"));
    let start = Duration::from_secs(5);
    let (lines, marks) = load(
        &spec,
        &around(&ranks),
        start,
        Pace::new(1.0),
        Calendar::at(Duration::ZERO),
        None,
    );
    assert_eq!(marks.ready, Duration::from_secs(65));
    let shards: Vec<&Line> = lines.iter().filter(|(_, t)| t.contains("checkpoint shards")).collect();
    assert_eq!(shards.len(), 42);
    assert!(
        shards.windows(2).all(|w| matches!(w, [a, b] if a.0 < b.0)),
        "shards come one after the other"
    );
    assert!(lines.iter().any(|(_, t)| t.contains("via NET/IB/0")));
    let (last, text) = lines.iter().max_by_key(|(at, _)| *at).unwrap();
    assert_eq!(
        (*last, text.as_str()),
        (marks.ready, "INFO:     Application startup complete.")
    );
}

#[test]
fn the_engines_grammar_reads_every_stage_in_order() {
    let ranks = words("192.168.200.12 192.168.200.13");
    let spec = Spec::parse(&words("m -tp 2"));
    let (mut lines, _) = load(
        &spec,
        &around(&ranks),
        Duration::ZERO,
        Pace::new(1.0),
        Calendar::at(Duration::ZERO),
        None,
    );
    lines.sort_by_key(|(at, _)| *at);
    let facts: Vec<LineFact> = lines.iter().flat_map(|(_, text)| read_line(text)).collect();
    let mut stages: Vec<Stage> = Vec::new();
    for fact in &facts {
        if let LineFact::Stage(stage) | LineFact::Bar { stage, .. } = fact
            && stages.last() != Some(stage)
        {
            stages.push(*stage);
        }
    }
    let all = [
        Stage::Starting,
        Stage::Placement,
        Stage::Distributed,
        // What comes between `Starting to load` and the first shard.
        Stage::Download,
        Stage::Weights,
        Stage::Compile,
        Stage::KvCache,
        Stage::Graphs,
        Stage::Warmup,
        Stage::Listening,
    ];
    assert_eq!(stages, all, "{facts:?}");
    let bar = |stage, done, total| LineFact::Bar { stage, done, total };
    assert!(
        facts.contains(&bar(Stage::Weights, 25, 41))
            && facts.contains(&bar(Stage::Weights, 41, 41))
            && facts.contains(&bar(Stage::Graphs, 35, 35))
    );
    assert!(facts.contains(&LineFact::Transport(Transport::Ib)));
    assert!(!facts.iter().any(|f| matches!(f, LineFact::Failure(_))), "{facts:?}");
}

#[test]
fn memory_rises_with_the_load_and_ends_at_the_share_that_was_asked() {
    let ranks = words("a b");
    let spec = Spec::parse(&words("m -tp 2 --gpu-memory-utilization 0.8"));
    let (_, m) = load(
        &spec,
        &around(&ranks),
        Duration::ZERO,
        Pace::new(1.0),
        Calendar::at(Duration::ZERO),
        None,
    );
    let at = |s: u64| m.held_gib(&spec, Duration::from_secs(s));
    assert!(at(0) < 0.01 && at(25) > 20.0 && at(25) < at(38) && at(38) < at(60));
    assert!((at(60) - TOTAL_GIB * 0.8).abs() < 0.1, "{}", at(60));
}

#[test]
fn a_load_that_stalls_says_and_moves_nothing_from_then_on() {
    let ranks = words("a b");
    let spec = Spec::parse(&words("m -tp 2"));
    let (start, pace, calendar) = (Duration::ZERO, Pace::new(1.0), Calendar::at(Duration::ZERO));
    let (lines, m) = load(&spec, &around(&ranks), start, pace, calendar, Some(Trouble::Stalls));
    let last = lines.iter().map(|(at, _)| *at).max().unwrap();
    assert!(last > Duration::from_secs(23) && last <= Duration::from_secs(25));
    let held = |s: u64| m.held_gib(&spec, Duration::from_secs(s));
    assert!(held(24) < held(26) && (held(26) - held(9000)).abs() < 0.001);
}

#[test]
fn a_silent_download_comes_before_the_weights_and_is_told_when_it_is_over() {
    let ranks = words("a b");
    let spec = Spec::parse(&words("m -tp 2"));
    let (start, pace, calendar) = (Duration::ZERO, Pace::new(1.0), Calendar::at(Duration::ZERO));
    let trouble = Some(Trouble::SilentDownload);
    let (lines, m) = load(&spec, &around(&ranks), start, pace, calendar, trouble);
    let silent = Duration::from_secs(12)..Duration::from_secs(611);
    assert!(!lines.iter().any(|(at, _)| silent.contains(at)));
    assert!(
        lines
            .iter()
            .any(|(_, text)| text.contains("Time spent downloading weights"))
    );
    let share = |s: u64| m.downloaded_share(Duration::from_secs(s));
    assert!(share(11) < 0.01 && share(300) > 0.4 && share(300) < 0.6 && share(620) > 0.99);
    assert_eq!(m.ready, Duration::from_secs(660));
}

#[test]
fn without_gpus_it_waits_with_vllms_line_and_gives_up() {
    let ranks = words("192.168.200.12");
    let spec = Spec::parse(&words("m -tp 2"));
    let (lines, end) = starve(
        &spec,
        &around(&ranks),
        Duration::ZERO,
        Pace::new(1.0),
        Calendar::at(Duration::ZERO),
    );
    assert!(lines.iter().any(|(at, t)| *at == Duration::from_secs(17)
        && t.contains("Waiting for creating a placement group of specs for 10 seconds. specs=[{'GPU': 1.0, 'node:192.168.200.12': 0.001}, {'GPU': 1.0}]")));
    assert_eq!(end, Duration::from_secs(1810));
}
