//! Any bytes for every reader of what comes from outside: what was seen of it, whole, cut and changed at random.
//!
//! The smoke test runs a fixed number of changes and belongs to every run of the tests, so that no target rots. For longer:
//! `BRINGUP_FUZZ=60 cargo test --test fuzz -- --nocapture` gives each target so many seconds (`BRINGUP_FUZZ_TARGET=log` one of them alone). The same targets
//! under a fuzzer that looks for new paths: `cargo +nightly fuzz run --fuzz-dir tests/fuzz/libfuzzer log`.

#![expect(clippy::panic, reason = "a test that found something says what")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod change;
mod targets;

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use change::Random;
use targets::TARGETS;

/// Changed inputs of a target in the smoke test.
const SMOKE: usize = 60;

/// Longest input that is made, in bytes: a reader's mistakes show in small ones.
const LONGEST: usize = 4096;

/// Longest seed that is read whole, in bytes.
const SEED: usize = 64 << 10;

/// The files of a folder and those below it, or the file itself.
fn files(path: &Path, found: &mut Vec<PathBuf>) {
    if path.is_file() {
        found.push(path.to_owned());
        return;
    }
    let mut inside: Vec<PathBuf> = fs::read_dir(path).unwrap().map(|e| e.unwrap().path()).collect();
    inside.sort();
    for path in inside {
        files(&path, found);
    }
}

fn seeds(places: &[&str]) -> Vec<Vec<u8>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    places.iter().for_each(|place| files(&root.join(place), &mut found));
    assert!(!found.is_empty(), "no seed in {places:?}");
    let read = |path: &PathBuf| {
        let mut bytes = fs::read(path).unwrap();
        bytes.truncate(SEED);
        bytes
    };
    found.iter().map(read).collect()
}

/// Runs a target and tells the bytes that it did not take.
fn give(name: &str, bytes: &[u8]) {
    if catch_unwind(AssertUnwindSafe(|| targets::run(name, bytes))).is_err() {
        panic!("{name} does not take b\"{}\"", bytes.escape_ascii());
    }
}

#[test]
fn no_reader_panics_on_what_was_seen_or_on_changes_of_it() {
    for (name, _, places) in TARGETS {
        let seeds = seeds(places);
        seeds.iter().for_each(|seed| give(name, seed));
        give(name, b"");
        let mut random = Random::new(name.len() as u64);
        for _ in 0..SMOKE {
            give(name, &change::of(&seeds, LONGEST, &mut random));
        }
    }
}

#[test]
fn for_as_long_as_was_asked_for() {
    let Some(seconds) = std::env::var("BRINGUP_FUZZ").ok().and_then(|s| s.parse().ok()) else {
        println!("left out: BRINGUP_FUZZ=60 gives each target 60 seconds");
        return;
    };
    let wanted = std::env::var("BRINGUP_FUZZ_TARGET").ok();
    let named = TARGETS
        .iter()
        .filter(|(name, ..)| wanted.as_deref().is_none_or(|w| w == *name));
    for (name, _, places) in named {
        let (seeds, begun) = (seeds(places), Instant::now());
        // Another start with each run.
        let mut random = Random::new(u64::from(std::process::id()));
        let mut count = 0_u64;
        while begun.elapsed() < Duration::from_secs(seconds) {
            give(name, &change::of(&seeds, LONGEST, &mut random));
            count += 1;
        }
        println!("{name}: {count} inputs");
    }
}
