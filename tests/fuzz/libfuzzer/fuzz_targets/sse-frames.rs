//! `sse-frames` of tests/fuzz/targets.rs under libFuzzer.
#![no_main]

#[path = "../../targets.rs"]
mod targets;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::run("sse-frames", bytes));
