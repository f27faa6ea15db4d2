//! A frame from the console's state, into whatever buffer it goes to.

use ratatui::buffer::Buffer;

use crate::domain::NodeId;
use crate::drive::Console;
use crate::view::{self, Look, Regions, Scene};

/// What the terminal adds to a frame beside the console's state.
#[derive(Clone, Copy, Default)]
pub(super) struct Beside<'a> {
    /// Characters typed so far into the field of a secret.
    pub(super) typed: usize,
    /// What was typed, where it may be seen.
    pub(super) shown: Option<&'a str>,
    /// Whether the question on the screen is too new for an answer.
    pub(super) early: bool,
    /// What the terminal itself has to say.
    pub(super) told: Option<&'a str>,
}

/// Composes a frame. How many log lines are wanted is known only once it is laid out, so a frame whose layout is new is composed twice.
pub(super) fn compose(console: &Console, look: &Look, beside: Beside<'_>, frame: &mut Buffer, regions: &mut Regions) {
    for _ in 0..2 {
        let asked = wanted(console, regions);
        let logs = console.windows(&asked);
        let scene = Scene {
            state: console.state(),
            logs: &logs,
            look,
            now: console.now(),
            typed: beside.typed,
            shown: beside.shown,
            early: beside.early,
            told: beside.told,
        };
        let area = frame.area;
        *regions = view::draw(&scene, frame, area);
        if wanted(console, regions) == asked {
            break;
        }
    }
}

/// The log lines that the latest layout has room for.
fn wanted(console: &Console, regions: &Regions) -> Vec<(NodeId, Option<u64>, usize)> {
    let held = &console.state().screen.held;
    let logs = regions.logs.iter();
    logs.map(|l| (l.node, held.get(&l.node).copied(), l.rows)).collect()
}
