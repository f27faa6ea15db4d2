//! The throughput test: sends streamed completions to the model server and notes when their chunks arrive.
//!
//! Owns the prompts, their size, the workers and the stamps. Never computes a figure (that is `measure`), never writes a file, never starts by itself.
//!
//! Invariants: no prompt starts like another one, in this test or an earlier one, so that a prefix cache cannot help; a fixed set of workers sends, each
//! its next request when the one before is over; each counted request gives exactly one record; requests, chunks and workers are bounded.

mod prompt;
mod request;
mod run;
mod size;
#[cfg(test)]
mod tests;

pub use run::run_test;
