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

/// A log: never above its first line, and at the end it follows again.
fn log(state: &State, regions: &Regions, by: Scroll) -> Vec<Scroll> {
    let Some(node) = state.focused_node() else {
        return Vec::new();
    };
    let (Some(log), Some(drawn)) = (state.nodes.get(node.index()).map(|n| &n.log), regions.log(node)) else {
        return Vec::new();
    };
    let number = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    let page = i64::try_from(drawn.lines).unwrap_or(1).saturating_sub(1).max(1);
    let newest = number(log.seq) - 1;
    // The core counts from the held line, or from behind the last one.
    let base = state.screen.held.get(&node).map_or(newest + 1, |held| number(*held));
    let by_lines = match by {
        Scroll::Lines(n) => i64::from(n),
        Scroll::Pages(n) => i64::from(n) * page,
        Scroll::Top if drawn.first > log.dropped => return vec![Scroll::Top],
        Scroll::Top => return Vec::new(),
        Scroll::End => return vec![Scroll::End],
    };
    if by_lines < 0 && drawn.first <= log.dropped {
        return Vec::new();
    }
    let wanted = number(drawn.last) + by_lines;
    if wanted >= newest {
        return vec![Scroll::End];
    }
    lines(wanted.max(number(log.dropped)) - base)
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

    /// A log of which lines `first` to `last` are on the screen.
    fn regions(first: u64, last: u64) -> Regions {
        let lines = usize::try_from(last + 1 - first).unwrap();
        Regions {
            logs: vec![LogRegion {
                node: NODE,
                rows: lines,
                lines,
                first,
                last,
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
        let at = |top, by| within(&state(Mode::Help, 0, 0, None, top), &regions(0, 0), by);
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
    fn a_log_that_follows_is_held_above_its_end() {
        let at = |held, last, by| {
            let state = state(Mode::Panes, 100, 20, held, 0);
            within(&state, &regions(last - 9, last), by)
        };
        assert_eq!(at(None, 99, Scroll::Lines(-1)), [Scroll::Lines(-2)]);
        assert_eq!(at(None, 99, Scroll::Pages(-1)), [Scroll::Lines(-10)]);
        assert_eq!(at(None, 99, Scroll::Lines(1)), [Scroll::End]);
        assert_eq!(at(Some(97), 97, Scroll::Lines(1)), [Scroll::Lines(1)]);
        assert_eq!(at(Some(98), 98, Scroll::Lines(1)), [Scroll::End]);
    }

    #[test]
    fn a_log_stops_at_its_first_line() {
        let at = |held, first, last, by| within(&state(Mode::Panes, 100, 20, held, 0), &regions(first, last), by);
        assert_eq!(at(Some(31), 22, 31, Scroll::Lines(-1)), [Scroll::Lines(-1)]);
        assert_eq!(at(Some(31), 22, 31, Scroll::Top), [Scroll::Top]);
        assert_eq!(at(Some(25), 20, 29, Scroll::Pages(-1)), []);
        // Held at the first line, the pane shows those after it as well: one further down is the one after the last that is shown.
        assert_eq!(at(Some(20), 20, 29, Scroll::Lines(1)), [Scroll::Lines(10)]);
    }

    #[test]
    fn a_log_that_fits_its_pane_stays_as_it_is() {
        let at = |by| within(&state(Mode::Panes, 3, 0, None, 0), &regions(0, 2), by);
        assert_eq!(at(Scroll::Lines(-1)), []);
        assert_eq!(at(Scroll::Top), []);
        assert_eq!(at(Scroll::Lines(1)), [Scroll::End]);
    }

    #[test]
    fn far_jumps_are_made_of_steps() {
        assert_eq!(lines(40_000), [Scroll::Lines(i16::MAX), Scroll::Lines(7233)]);
        assert_eq!(lines(0), []);
    }
}
