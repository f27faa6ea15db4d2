//! What is made of silence, growth and reads.

use proptest::prelude::*;

use super::*;

fn at(seconds: u64) -> Stamp {
    Stamp(seconds * 1000)
}

fn sure(seconds: u64) -> When {
    When::at(at(seconds))
}

fn case(stage: Stage) -> Case {
    Case {
        stage,
        guessed: false,
        since: sure(0),
        inferred: false,
        writes: true,
        line_at: Some(sure(0)),
        came: Some(at(0)),
        step_at: None,
        pace: None,
        signals: Vec::new(),
        watched: Some(at(0)),
        gpus: None,
        missing: Vec::new(),
        refused_port: None,
        longest: None,
        notes: Vec::new(),
        restart_after: Duration::from_secs(600),
    }
}

fn seen(signal: Signal, moved_at: Option<Stamp>, text: &str) -> (String, Seen) {
    let text = text.to_owned();
    let seen = Seen {
        signal,
        moved_at,
        rises: false,
        text,
    };
    ("spark-2".to_owned(), seen)
}

fn still() -> (String, Seen) {
    seen(Signal::Memory, None, "does not grow")
}

#[test]
fn what_moves_on_the_host_alone_is_progress_for_a_while_and_then_nobody_can_tell() {
    let reads = |moved: u64| {
        vec![
            seen(Signal::Memory, Some(at(moved)), "grows 1.2 GiB/min"),
            seen(Signal::DiskReads, Some(at(moved)), "reads 0.1 GB/s from disk"),
        ]
    };
    let judged = |now: u64, change: &dyn Fn(&mut Case)| {
        let mut weights = case(Stage::Weights);
        weights.signals = reads(now - 2);
        change(&mut weights);
        judge(&weights, at(now))
    };
    assert_eq!(judged(540, &|_| ()).verdict, Verdict::Progressing);
    let late = judged(542, &|_| ());
    assert_eq!(late.verdict, Verdict::Silent { since: sure(0) });
    assert_eq!(
        late.evidence.last().unwrap(),
        "what moves is the whole host's, and may be other work"
    );
    assert_eq!(late.advice, None);
    let held = seen(Signal::EngineMemory, Some(at(540)), "grows 0.9 GiB/min");
    let own = judged(542, &|case| case.signals.insert(0, held.clone()));
    assert_eq!(own.verdict, Verdict::Progressing);
    assert_eq!(own.evidence[1], "the engine's GPU memory on spark-2 grows 0.9 GiB/min");
    // Its own GPU, a line, a worker that writes none, a download: these are another matter.
    let gpu = seen(Signal::Gpu, Some(at(540)), "at 40 %, 30 W");
    assert_eq!(
        judged(542, &|case| case.signals.push(gpu.clone())).verdict,
        Verdict::Progressing
    );
    assert_eq!(
        judged(542, &|case| case.line_at = Some(sure(400))).verdict,
        Verdict::Progressing
    );
    assert_eq!(judged(542, &|case| case.writes = false).verdict, Verdict::Progressing);
    let download = judged(9000, &|case| case.stage = Stage::Download);
    assert_eq!(download.verdict, Verdict::Waiting("the download".into()));
    // The longest silence of a real start is that of a compilation.
    assert_eq!(
        judged(2700, &|case| case.stage = Stage::Compile).verdict,
        Verdict::Progressing
    );
}

#[test]
fn silence_with_memory_that_grows_is_progress_and_says_so() {
    let mut weights = case(Stage::Weights);
    weights.signals = vec![seen(Signal::Memory, Some(at(248)), "grows 1.2 GiB/min")];
    let judged = judge(&weights, at(250));
    assert_eq!(judged.verdict, Verdict::Progressing);
    assert_eq!(
        judged.evidence,
        ["no line for 4m10s", "host memory on spark-2 grows 1.2 GiB/min"]
    );
    assert_eq!(judged.advice, None);
}

#[test]
fn a_worker_without_a_line_whose_disk_reads_makes_progress() {
    let mut weights = case(Stage::Weights);
    weights.signals = vec![
        still(),
        seen(Signal::DiskReads, Some(at(399)), "reads 1.2 GB/s from disk"),
    ];
    let judged = judge(&weights, at(400));
    assert_eq!(judged.verdict, Verdict::Progressing);
    assert_eq!(judged.evidence[1..], ["spark-2 reads 1.2 GB/s from disk"]);
    weights.signals[1] = seen(Signal::DiskReads, Some(at(100)), "reads next to nothing from disk");
    let judged = judge(&weights, at(400));
    assert_eq!(judged.verdict, Verdict::Stalled { since: sure(100) });
    let told = "spark-2 reads next to nothing from disk".to_owned();
    assert!(judged.evidence.contains(&told), "{judged:?}");
}

#[test]
fn what_stands_still_for_longer_than_its_stage_is_silent_has_stalled() {
    for (stage, quiet, stalled) in [
        (Stage::Weights, 100, 181),
        (Stage::Compile, 880, 901),
        (Stage::Starting, 290, 301),
        (Stage::KvCache, 290, 301),
    ] {
        let mut load = case(stage);
        load.signals = vec![still()];
        let early = judge(&load, at(quiet)).verdict;
        assert!(!matches!(early, Verdict::Stalled { .. }), "{stage:?}: {early:?}");
        assert_eq!(
            judge(&load, at(stalled)).verdict,
            Verdict::Stalled { since: sure(0) },
            "{stage:?}"
        );
    }
}

#[test]
fn a_stall_says_since_when_somebody_looks() {
    let mut load = case(Stage::Weights);
    load.signals = vec![still()];
    load.watched = Some(at(700));
    let judged = judge(&load, at(712));
    assert_eq!(judged.verdict, Verdict::Stalled { since: sure(0) });
    let evidence = [
        "no line for 11m52s",
        "host memory on spark-2 does not grow",
        "looked at for the last 12 s only",
    ];
    assert_eq!(judged.evidence, evidence);
    let advice = "no line has come for 11m52s and nothing moves since it is looked at, for 12 s: read the logs of every node, then stop the server and start it anew";
    assert_eq!(judged.advice.as_deref(), Some(advice));
    // Who has seen the last movement has seen all since.
    load.watched = Some(at(0));
    let judged = judge(&load, at(712));
    assert_eq!(judged.evidence, evidence[..2]);
    let advice = "nothing has moved for 11m52s: read the logs of every node, then stop the server and start it anew";
    assert_eq!(judged.advice.as_deref(), Some(advice));
}

#[test]
fn a_new_start_is_advised_only_after_the_configured_time() {
    let mut load = case(Stage::Weights);
    load.signals = vec![still()];
    assert_eq!(judge(&load, at(599)).advice, None);
    assert!(judge(&load, at(600)).advice.is_some());
}

#[test]
fn without_a_reading_nothing_is_known_but_the_silence() {
    let judged = judge(&case(Stage::Weights), at(4000));
    assert_eq!(judged.verdict, Verdict::Silent { since: sure(0) });
    assert_eq!(judged.verdict.text(at(4000)), "can't tell, no line for 1h06m");
    assert_eq!(judged.evidence, ["no line for 1h06m"]);
}

#[test]
fn a_wait_for_gpus_is_a_wait_however_long_its_gaps_are() {
    let mut load = case(Stage::Placement);
    load.gpus = Some("Ray has 1 GPU alive of 2".to_owned());
    load.signals = vec![still()];
    for second in [5, 70, 310, 1270, 1800] {
        let judged = judge(&load, at(second));
        assert_eq!(judged.verdict, Verdict::Waiting("GPUs".into()), "{second}");
        assert_eq!(judged.evidence[0], "Ray has 1 GPU alive of 2");
    }
}

#[test]
fn a_silent_placement_is_no_wait_for_gpus_where_nobody_says_so() {
    let mut load = case(Stage::Placement);
    load.signals = vec![still()];
    assert_eq!(judge(&load, at(60)).verdict, Verdict::Progressing);
}

#[test]
fn a_download_without_a_line_is_a_wait_and_with_nothing_that_moves_a_stall() {
    let mut load = case(Stage::Download);
    load.signals = vec![seen(Signal::ModelCache, Some(at(1700)), "grows 3.0 GiB/min")];
    let judged = judge(&load, at(1750));
    assert_eq!(judged.verdict, Verdict::Waiting("the download".into()));
    assert_eq!(judged.evidence[1], "the model cache on spark-2 grows 3.0 GiB/min");
    load.signals = vec![still()];
    assert_eq!(judge(&load, at(590)).verdict, Verdict::Waiting("the download".into()));
    assert_eq!(judge(&load, at(601)).verdict, Verdict::Stalled { since: sure(0) });
}

#[test]
fn files_that_may_be_in_the_cache_are_waited_for_by_their_name() {
    let mut load = case(Stage::Download);
    load.guessed = true;
    load.signals = vec![still()];
    assert_eq!(
        judge(&load, at(100)).verdict,
        Verdict::Waiting("the model's files".into())
    );
    load.signals = vec![seen(Signal::Memory, Some(at(90)), "grows 3.0 GiB/min")];
    assert_eq!(
        judge(&load, at(100)).verdict,
        Verdict::Waiting("the model's files".into())
    );
}

#[test]
fn ranks_that_do_not_find_each_other_wait_for_a_peer_that_is_named() {
    let mut load = case(Stage::Distributed);
    load.signals = vec![still()];
    load.missing = vec!["spark-2 does not answer".to_owned()];
    let judged = judge(&load, at(90));
    assert_eq!(judged.verdict, Verdict::Waiting("a peer".into()));
    assert!(
        judged.evidence.contains(&"spark-2 does not answer".to_owned()),
        "{judged:?}"
    );
}

#[test]
fn a_rate_that_falls_is_slow_while_anything_moves() {
    let mut load = case(Stage::Weights);
    load.step_at = Some(sure(100));
    load.line_at = Some(sure(100));
    load.pace = Some((Duration::from_secs(2), at(100)));
    load.signals = vec![seen(Signal::Memory, Some(at(140)), "grows 0.4 GiB/min")];
    assert_eq!(judge(&load, at(120)).verdict, Verdict::Progressing);
    let judged = judge(&load, at(140));
    assert_eq!(judged.verdict, Verdict::Slow);
    assert_eq!(
        judged.evidence[0],
        "the last step came 40 s ago, the ones before took 2 s each"
    );
    assert_eq!(judge(&load, at(400)).verdict, Verdict::Stalled { since: sure(140) });
}

#[test]
fn a_stage_that_takes_twice_its_longest_time_is_slow() {
    let mut load = case(Stage::Compile);
    load.longest = Some(Duration::from_secs(60));
    load.line_at = Some(sure(125));
    assert_eq!(judge(&load, at(119)).verdict, Verdict::Progressing);
    assert_eq!(judge(&load, at(130)).verdict, Verdict::Slow);
}

#[test]
fn an_engine_that_listens_at_a_port_that_refuses_waits_for_it() {
    let mut load = case(Stage::Listening);
    load.refused_port = Some(8000);
    load.signals = vec![still()];
    assert_eq!(judge(&load, at(90)).verdict, Verdict::Waiting("port 8000".into()));
}

fn any_stage() -> impl Strategy<Value = Stage> {
    prop::sample::select(vec![
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
    ])
}

proptest! {
    #[test]
    fn what_moves_is_never_called_stalled(
        stage in any_stage(),
        line in prop::option::of(0u64..4000),
        step in prop::option::of(0u64..4000),
        moved in prop::collection::vec(prop::option::of(0u64..4000), 0..5),
        pace in prop::option::of((0u64..50, 0u64..4000)),
        lost in any::<bool>(),
        now in 4000u64..9000,
    ) {
        let mut load = case(stage);
        load.line_at = line.map(sure);
        load.step_at = step.map(sure);
        load.pace = pace.map(|(mean, last)| (Duration::from_secs(mean), at(last)));
        load.signals = moved.iter().map(|m| seen(Signal::Memory, m.map(at), "x")).collect();
        if lost {
            load.missing.push("spark-2 does not answer".to_owned());
        }
        let last = moved.iter().flatten().copied().chain(line).chain(step).max().unwrap_or(0);
        let judged = judge(&load, at(now));
        if let Verdict::Stalled { since } = judged.verdict {
            prop_assert_eq!(since, sure(last));
            prop_assert!(since.age(at(now)) > patience(stage));
            prop_assert!(!load.signals.is_empty());
        }
        if Duration::from_secs(now - last) <= QUIET {
            let still = matches!(judged.verdict, Verdict::Stalled { .. } | Verdict::Silent { .. });
            prop_assert!(!still);
        }
        // The advice never comes before its time.
        prop_assert!(judged.advice.is_none() || now - last >= 600);
    }
}

#[test]
fn a_look_that_has_just_begun_is_told_in_whole_seconds() {
    for (ms, told) in [(0, "1 s"), (697, "1 s"), (1000, "1 s"), (1001, "2 s"), (9600, "10 s")] {
        let mut found = case(Stage::Weights);
        found.line_at = None;
        found.since = When::found(at(100));
        found.signals = vec![still()];
        let judged = judge(&found, Stamp(100_000 + ms));
        assert_eq!(judged.verdict, Verdict::Early { since: at(100) });
        let evidence = format!("looked at for {told}, judged by its log and the host's memory");
        assert_eq!(judged.evidence, [evidence], "{ms}");
    }
}
