//! Whole logs of starts, most of them real, byte by byte through the console's own way: decoder, grammar, state. What the load has come to after each
//! line stands in a table beside the log; lines after which nothing has changed are left out of it.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests stop where their input is not as it should be"
)]

#[path = "replay/player.rs"]
mod player;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use bringup::domain::load::Stage;
use bringup::model::state::ServingState;

use player::{Fate, HEAD, Player, WORKER};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/replay")
}

fn log(case: &str) -> Vec<u8> {
    fs::read(folder().join(case).join("log")).unwrap()
}

/// Plays a log in pieces of `size` bytes.
fn play(case: &str, size: usize) -> Player {
    let (node, fate) = match case {
        "ray-two-hosts-worker" | "no-ray-rank-1" => (WORKER, Fate::Stays),
        "no-such-model" => (HEAD, Fate::Ends),
        _ => (HEAD, Fate::Stays),
    };
    let mut player = Player::new(node);
    for piece in log(case).chunks(size) {
        player.feed(piece);
    }
    player.end(fate);
    player
}

fn cases() -> Vec<String> {
    let entries = fs::read_dir(folder()).unwrap();
    let mut names: Vec<String> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert!(!names.is_empty());
    names
}

#[test]
fn each_line_of_a_real_start_brings_the_load_where_its_table_says() {
    let mut wrong = Vec::new();
    for case in cases() {
        let table = play(&case, 4096).table();
        let file = folder().join(&case).join("expected");
        if std::env::var_os("BRINGUP_BLESS").is_some() {
            fs::write(&file, &table).unwrap();
        }
        if fs::read_to_string(&file).unwrap_or_default() != table {
            wrong.push(format!("{case}:\n{table}"));
        }
    }
    assert!(
        wrong.is_empty(),
        "these come to something else than expected:\n{}",
        wrong.join("\n")
    );
}

/// A log, the stages that it passes, its shards, and how the server ends.
type Way = (&'static str, &'static [Stage], Option<(u64, u64)>, &'static str);

/// What a person who reads a log expects of it, told apart from the tables: where it passes by, and where it ends.
#[test]
fn real_starts_end_as_they_did() {
    let ways: [Way; 10] = [
        (
            "one-host-pipe",
            &[
                Stage::Starting,
                Stage::Distributed,
                Stage::Weights,
                Stage::Compile,
                Stage::KvCache,
                Stage::Warmup,
                Stage::Listening,
            ],
            Some((5, 5)),
            "ready",
        ),
        (
            "one-host-terminal",
            &[
                Stage::Starting,
                Stage::Distributed,
                Stage::Weights,
                Stage::KvCache,
                Stage::Warmup,
                Stage::Listening,
            ],
            Some((14, 14)),
            "ready",
        ),
        ("ray-shared-session", RAY, Some((5, 5)), "ready"),
        // The bars of its workers came before their records: Ray collects them from two streams.
        (
            "ray-two-hosts-head",
            &[
                Stage::Starting,
                Stage::Placement,
                Stage::Weights,
                Stage::KvCache,
                Stage::Warmup,
                Stage::Listening,
            ],
            Some((14, 14)),
            "ready",
        ),
        ("ray-two-hosts-worker", &[], None, "loading"),
        (
            "no-ray-rank-0",
            &[
                Stage::Starting,
                Stage::Distributed,
                Stage::Weights,
                Stage::KvCache,
                Stage::Warmup,
                Stage::Listening,
            ],
            Some((5, 5)),
            "ready",
        ),
        (
            "no-ray-rank-1",
            &[Stage::Starting, Stage::Distributed, Stage::Weights, Stage::KvCache],
            None,
            "loading",
        ),
        ("no-such-model", &[Stage::Starting], None, "failed"),
        // Its process stays, and a rank goes on for a while.
        (
            "engine-gave-up",
            &[Stage::Starting, Stage::Distributed, Stage::Weights],
            Some((4, 4)),
            "failed",
        ),
        (
            "second-start",
            &[
                Stage::Starting,
                Stage::Weights,
                Stage::Starting,
                Stage::Weights,
                Stage::KvCache,
                Stage::Listening,
            ],
            Some((4, 4)),
            "ready",
        ),
    ];
    assert_eq!(ways.len(), cases().len());
    for (case, stages, shards, end) in ways {
        let played = play(case, 4096);
        assert_eq!(played.stages(), stages, "{case}");
        assert_eq!(played.last_bar(Stage::Weights), shards, "{case}");
        assert_eq!(played.server().word(), end, "{case}");
        assert_eq!(played.went_back(), case == "second-start", "{case}");
    }
    let failed = ServingState::Failed(
        "huggingface_hub.errors.HFValidationError: Repo id must be in the form 'repo_name' or 'namespace/repo_name': '/nonexistent/model'. Use `repo_type` argument if needed.".into(),
    );
    assert_eq!(*play("no-such-model", 4096).server(), failed);
    let ServingState::Failed(why) = play("engine-gave-up", 4096).server().clone() else {
        panic!("it has failed");
    };
    assert!(why.starts_with("torch.OutOfMemoryError: CUDA out of memory."), "{why}");
}

const RAY: &[Stage] = &[
    Stage::Starting,
    Stage::Placement,
    Stage::Distributed,
    Stage::Weights,
    Stage::KvCache,
    Stage::Warmup,
    Stage::Listening,
];

#[test]
fn a_head_names_the_ranks_of_its_workers() {
    let played = play("ray-two-hosts-head", 4096);
    let ranks: Vec<_> = played
        .load()
        .ranks
        .iter()
        .map(|r| {
            (
                r.name.as_deref(),
                r.number,
                r.pid,
                r.address.as_deref(),
                r.stage.map(|(s, _)| s),
            )
        })
        .collect();
    assert_eq!(
        ranks,
        [
            (Some("TP0"), Some(0), Some(490), None, Some(Stage::Weights)),
            (
                Some("TP1"),
                Some(1),
                Some(117),
                Some("192.168.200.13"),
                Some(Stage::KvCache)
            ),
        ]
    );
    let size = played.load().checkpoint.map(|b| (b.gib() * 100.0).round());
    assert_eq!(size, Some(72.0), "0.72 GiB");
}

#[test]
fn a_log_comes_to_the_same_however_it_is_torn() {
    for case in cases() {
        let whole = play(&case, usize::MAX).table();
        for size in [7, 61, 1000] {
            assert_eq!(play(&case, size).table(), whole, "{case} in pieces of {size}");
        }
    }
}

/// Bytes of a line up to which it is cut at each: a record is shorter, and the one long line, the engine's configuration, is the same all through.
const EACH: usize = 700;

#[test]
fn a_log_that_ends_at_any_byte_makes_nothing_panic() {
    let logs: Vec<Vec<u8>> = cases().iter().map(|case| log(case)).collect();
    let lines = logs.iter().flat_map(|log| log.split_inclusive(|b| *b == b'\n'));
    // Lines that differ in their numbers alone are one.
    let unnumbered = |line: &[u8]| -> Vec<u8> { line.iter().copied().filter(|b| !b.is_ascii_digit()).collect() };
    let kinds: BTreeMap<Vec<u8>, &[u8]> = lines.map(|line| (unnumbered(line), line)).collect();
    for line in kinds.into_values() {
        let ends = (0..line.len()).filter(|end| *end < EACH || end % 13 == 0);
        for end in ends {
            player::cut(&line[..end]);
        }
    }
}
