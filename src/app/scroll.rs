//! Scrolling in whole pages and within bounds: the core counts in lines and does not know how many are on the screen.

use crate::domain::intent::{Mode, Scroll};
use crate::model::State;
use crate::view::Regions;

/// What to tell the core, in order, so that it scrolls as wanted.
pub(super) fn within(state: &State, regions: &Regions, by: Scroll) -> Vec<Scroll> {
    if state.screen.mode == Mode::Panes {
        log(state, regions, by)
    } else {
        overlay(state, regions, by)
    }
}

/// A text over the panes: never past its last page.
fn overlay(state: &State, regions: &Regions, by: Scroll) -> Vec<Scroll> {
    let Some(drawn) = regions.scrolled else {
        return Vec::new();
    };
    let page = i64::from(drawn.rows.saturating_sub(1).max(1));
    let (top, last) = (i64::from(drawn.top), i64::from(drawn.last_top()));
    let wanted = match by {
        Scroll::Lines(n) => top + i64::from(n),
        Scroll::Pages(n) => top + i64::from(n) * page,
        Scroll::Top => 0,
        Scroll::End => last,
    };
    lines(wanted.clamp(0, last) - i64::from(state.screen.overlay_top))
}

/// A log: the top is where its first lines fill the pane, and at the end it follows again.
fn log(state: &State, regions: &Regions, by: Scroll) -> Vec<Scroll> {
    let Some(node) = state.focused_node() else {
        return Vec::new();
    };
    let (Some(log), Some(drawn)) = (state.nodes.get(node.index()).map(|n| n.log), regions.log(node)) else {
        return Vec::new();
    };
    let number = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    let shown = i64::try_from(drawn.lines.max(1)).unwrap_or(1);
    let (first, newest) = (number(log.dropped), number(log.seq) - 1);
    let highest = (first + shown - 1).min(newest);
    let held = state.screen.held.get(&node).copied().map(number);
    let at = held.unwrap_or(newest);
    let wanted = match by {
        Scroll::Lines(n) => at + i64::from(n),
        Scroll::Pages(n) => at + i64::from(n) * (shown - 1).max(1),
        Scroll::Top => return std::iter::once(Scroll::Top).chain(lines(highest - first)).collect(),
        Scroll::End => newest,
    };
    let wanted = wanted.max(highest);
    if wanted >= newest {
        return vec![Scroll::End];
    }
    // The core counts from the held line, or from behind the last one.
    lines(wanted - held.unwrap_or(newest + 1))
}

/// As many lines, in steps that the core takes; none for zero.
fn lines(n: i64) -> Vec<Scroll> {
    let mut left = n;
    let mut steps = Vec::new();
    while left != 0 && steps.len() < STEPS {
        let step = i16::try_from(left).unwrap_or(if left > 0 { i16::MAX } else { i16::MIN });
        steps.push(Scroll::Lines(step));
        left -= i64::from(step);
    }
    steps
}

/// Most steps for one key.
const STEPS: usize = 64;

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::config;
    use crate::domain::{NodeId, Now};
    use crate::model::{Options, State};
    use crate::view::{LogRegion, Scrolled};

    const NODE: NodeId = NodeId(0);

    fn state(mode: Mode, seq: u64, dropped: u64, held: Option<u64>, overlay_top: u16) -> State {
        let config = config::parse(config::EXAMPLE, "example").unwrap();
        let mut state = State::new(Arc::new(config), Options::default(), Now::default());
        state.screen.mode = mode;
        state.screen.overlay_top = overlay_top;
        state.nodes[0].log.seq = seq;
        state.nodes[0].log.dropped = dropped;
        if let Some(held) = held {
            state.screen.held.insert(NODE, held);
        }
        state
    }

    fn regions(lines: usize) -> Regions {
        Regions {
            logs: vec![LogRegion {
                node: NODE,
                rows: lines,
                lines,
            }],
            scrolled: Some(Scrolled {
                top: 5,
                rows: 11,
                total: 40,
            }),
            ..Regions::default()
        }
    }

    #[test]
    fn an_overlay_stays_within_its_text() {
        let at = |top, by| within(&state(Mode::Help, 0, 0, None, top), &regions(0), by);
        assert_eq!(at(5, Scroll::Lines(1)), [Scroll::Lines(1)]);
        assert_eq!(at(5, Scroll::Pages(1)), [Scroll::Lines(10)]);
        assert_eq!(at(5, Scroll::Pages(9)), [Scroll::Lines(24)]);
        assert_eq!(at(5, Scroll::Pages(-1)), [Scroll::Lines(-5)]);
        assert_eq!(at(5, Scroll::Top), [Scroll::Lines(-5)]);
        assert_eq!(at(5, Scroll::End), [Scroll::Lines(24)]);
        // A run shows its step at work (line 5) while the core says 0.
        assert_eq!(at(0, Scroll::Lines(1)), [Scroll::Lines(6)]);
    }

    #[test]
    fn a_log_that_follows_is_held_a_line_above_its_end() {
        let at = |held, by| within(&state(Mode::Panes, 100, 20, held, 0), &regions(10), by);
        assert_eq!(at(None, Scroll::Lines(-1)), [Scroll::Lines(-2)]);
        assert_eq!(at(None, Scroll::Pages(-1)), [Scroll::Lines(-10)]);
        assert_eq!(at(None, Scroll::Lines(1)), [Scroll::End]);
        assert_eq!(at(Some(97), Scroll::Lines(1)), [Scroll::Lines(1)]);
        assert_eq!(at(Some(98), Scroll::Lines(1)), [Scroll::End]);
    }

    #[test]
    fn a_log_stops_at_its_first_full_page() {
        let at = |held, by| within(&state(Mode::Panes, 100, 20, held, 0), &regions(10), by);
        assert_eq!(at(Some(31), Scroll::Pages(-3)), [Scroll::Lines(-2)]);
        assert_eq!(at(Some(29), Scroll::Lines(-1)), []);
        assert_eq!(at(None, Scroll::Top), [Scroll::Top, Scroll::Lines(9)]);
        let short = within(&state(Mode::Panes, 3, 0, None, 0), &regions(3), Scroll::Lines(-1));
        assert_eq!(short, [Scroll::End]);
    }

    #[test]
    fn far_jumps_are_made_of_steps() {
        assert_eq!(lines(40_000), [Scroll::Lines(i16::MAX), Scroll::Lines(7233)]);
        assert_eq!(lines(0), []);
    }
}
