//! Every size draws without a panic, and says truly where it drew.

use bringup::domain::command::Exit;
use bringup::domain::intent::{Action, Intent, Mode, Pane, Scroll};
use bringup::domain::question::{Ask, Question};
use bringup::domain::{HopId, QuestionId, Source};
use bringup::input::{self, Chord};
use bringup::log::LogWindows;
use bringup::model::State;
use proptest::prelude::*;
use ratatui::layout::Rect;

use crate::build::*;
use crate::runs::*;
use crate::shot::shot;

const MODES: [Mode; 8] = [
    Mode::Panes,
    Mode::Plan,
    Mode::Test,
    Mode::Run,
    Mode::StopMenu,
    Mode::Commands,
    Mode::Help,
    Mode::Question,
];

/// A state of each kind, with something to show in every mode.
fn states() -> Vec<(State, LogWindows)> {
    let mut all = [
        empty(example()),
        idle(with_workers(0)),
        loading(example()),
        ready(with_workers(4)),
        planned(known(), Action::Up),
    ];
    run_until(&mut all[4], Exit::Code(125), &["no"]);
    all.iter_mut()
        .map(|state| {
            commands(state);
            state.bench = Some(bench(3));
            state.questions.push_back(Question {
                id: QuestionId(1),
                from: Source::Hop(HopId(0)),
                ask: Ask::Passphrase {
                    key: "k".into(),
                    again: true,
                },
            });
            let logs = logs(state);
            (state.clone(), logs)
        })
        .collect()
}

fn check(state: &State, logs: &LogWindows, size: (u16, u16)) {
    let shot = shot(state, logs, size);
    let screen = Rect::new(0, 0, size.0, size.1);
    let mode = state.screen.mode;
    if shot.text().contains("j k scroll") {
        let down = input::intent(mode, Chord::char('j'), None);
        assert_eq!(down, Some(Intent::Scroll(Scroll::Lines(1))), "{mode:?} at {size:?}");
    }
    for (pane, area) in &shot.regions.panes {
        assert_eq!(area.intersection(screen), *area, "{pane:?} at {size:?}");
    }
    for log in &shot.regions.logs {
        assert!(log.lines <= log.rows.max(1), "{log:?} at {size:?}");
    }
    if let Some(s) = shot.regions.scrolled {
        assert!(s.top <= s.last_top(), "{s:?} at {size:?}");
    }
}

#[test]
fn every_small_size_draws() {
    for (state, logs) in states() {
        for width in 0..=42 {
            for height in 0..=14 {
                check(&state, &logs, (width, height));
            }
        }
    }
}

#[test]
fn every_mode_draws_at_every_height() {
    for (mut state, logs) in states() {
        for mode in MODES {
            state.screen.mode = mode;
            for height in 0..=45 {
                check(&state, &logs, (1 + height * 4, height));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn any_mode_focus_and_scroll_draws(
        which in 0usize..5,
        mode in 0usize..7,
        focus in 0usize..12,
        zoom: bool,
        top: u16,
        width in 0u16..240,
        height in 0u16..80,
    ) {
        let (mut state, logs) = states().swap_remove(which);
        state.screen.mode = MODES[mode];
        state.screen.focus = state.panes().nth(focus).unwrap_or(Pane::Node(99));
        state.screen.zoom = zoom;
        state.screen.overlay_top = top;
        check(&state, &logs, (width, height));
    }
}
