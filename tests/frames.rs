//! Frames: what is drawn for a state, as text in snapshots and as styles where they matter. Every size draws without a panic.

#![expect(clippy::expect_used, clippy::panic, reason = "a test that cannot go on says so")]

#[path = "frames/build.rs"]
mod build;
#[path = "frames/colours.rs"]
mod colours;
#[path = "frames/logs.rs"]
mod logs;
#[path = "frames/once.rs"]
mod once;
#[path = "frames/overlays.rs"]
mod overlays;
#[path = "frames/panes.rs"]
mod panes;
#[path = "frames/runs.rs"]
mod runs;
#[path = "frames/screens.rs"]
mod screens;
#[path = "frames/shot.rs"]
mod shot;
#[path = "frames/silence.rs"]
mod silence;
#[path = "frames/sizes.rs"]
mod sizes;
#[path = "frames/small.rs"]
mod small;
