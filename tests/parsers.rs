//! Captured outputs to facts. Each folder `fixtures/GROUP/CASE` holds what a tool printed and, in `expected.json`, what it must come to; all of them
//! are run by one function. With `BRINGUP_BLESS=1` the expectations are written anew, to be read by a person before they are kept.
//!
//! The rest of this file says what holds for any bytes: no reader panics, and no cut of the input changes what a log comes to.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests stop where their input is not as it should be"
)]

#[path = "parsers/captured.rs"]
mod captured;
#[path = "parsers/cases.rs"]
mod cases;
#[path = "parsers/properties.rs"]
mod properties;
#[path = "parsers/ray.rs"]
mod ray;
#[path = "parsers/ray_answers.rs"]
mod ray_answers;
#[path = "parsers/rotation.rs"]
mod rotation;
#[path = "parsers/scripts.rs"]
mod scripts;
#[path = "parsers/stream.rs"]
mod stream;
#[path = "parsers/watch.rs"]
mod watch;
