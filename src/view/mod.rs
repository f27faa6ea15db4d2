//! From the state to a frame.
//!
//! Owns the layout, the panes, what stands over them and the small widgets they are made of. Never writes state, never keeps anything from frame to
//! frame, never reads a clock: `now` comes with the scene.
//!
//! Invariants: every size from nothing up draws without a panic; text reaches the buffer in `canvas` only, which keeps control characters out; styles
//! are roles of the theme; an unknown value is a dash with its reason; a reading older than its period shows its age and one older than three of
//! them looks stale; only the visible lines of a log are touched.

#![warn(clippy::indexing_slicing, clippy::wildcard_enum_match_arm)]

mod age;
mod bench;
mod brief;
mod canvas;
pub mod cause;
mod figures;
mod hints;
mod layout;
mod look;
mod news;
mod node;
mod nodes;
mod overlay;
mod ray;
mod regions;
mod scene;
mod serving;
mod standing;
mod svg;
mod top;
mod widgets;
mod words;

pub use layout::draw;
pub use look::{Glyphs, Look};
pub use regions::{LogRegion, Regions, Scrolled};
pub use scene::Scene;
pub use svg::svg;

/// Rows inside a node's pane below which its readings share lines.
const DENSE: u16 = 14;

/// Columns inside a node's pane below which its readings share lines and names are short.
const NARROW: u16 = 50;
