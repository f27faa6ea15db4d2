//! Styles where they carry meaning.

use bringup::config::theme;
use bringup::domain::intent::Pane;
use bringup::domain::{NodeId, Reading};
use bringup::log::{Line, LogWindows, Span, Stream, Style as LogStyle, Window};
use bringup::model::state::ServingState;
use bringup::view::{Glyphs, Look};
use ratatui::style::{Color, Modifier, Style};

use crate::build::*;
use crate::shot::{Shot, look, shot, shot_with};

/// What a role of the default theme gives to a cell, as far as it says anything.
fn has_role(cell: Style, role: &str) -> bool {
    let theme = theme::builtin(theme::DEFAULT).expect("built in");
    let (_, want) = theme
        .roles()
        .into_iter()
        .find(|(name, _)| *name == role)
        .expect("a role");
    let fg = match want.fg {
        theme::Color::Default => Color::Reset,
        theme::Color::Red => Color::Red,
        theme::Color::Green => Color::Green,
        theme::Color::Yellow => Color::Yellow,
        theme::Color::Blue => Color::Blue,
        theme::Color::Magenta => Color::Magenta,
        theme::Color::Cyan => Color::Cyan,
        other => panic!("the default theme uses {other:?}"),
    };
    let on = |m: Modifier| cell.add_modifier.contains(m);
    cell.fg == Some(fg)
        && on(Modifier::BOLD) == want.bold
        && on(Modifier::DIM) == want.dim
        && on(Modifier::UNDERLINED) == want.underline
        && on(Modifier::REVERSED) == want.reverse
}

#[track_caller]
pub fn assert_role(shot: &Shot, text: &str, role: &str) {
    let style = shot.style_of(text);
    assert!(
        has_role(style, role),
        "`{text}` is not `{role}`: {style:?}\n{}",
        shot.text()
    );
}

#[test]
fn well_and_broken_look_different() {
    let none = LogWindows::default();
    let mut state = ready(example());
    let shot_ready = shot(&state, &none, (120, 40));
    assert_role(&shot_ready, "✓ ready", "good");
    assert_role(&shot_ready, "alive  1/1", "good");
    state.server.state = ServingState::Failed("it died".into());
    let shot_failed = shot(&state, &none, (120, 40));
    assert_role(&shot_failed, "✗ failed", "bad");
    assert_role(&shot_failed, "✗ it died", "bad");
}

#[test]
fn stale_values_look_stale_and_fresh_ones_do_not() {
    let none = LogWindows::default();
    let mut state = idle(example());
    let fresh = shot(&state, &none, (120, 40)).style_of("8.5/121.7 GiB");
    assert!(!has_role(fresh, "stale"));
    for node in &mut state.observed.nodes {
        if let Reading::Known { at, .. } = &mut node.memory {
            *at = ago(60).stamp;
        }
    }
    let shot = shot(&state, &none, (120, 40));
    assert_role(&shot, "8.5/121.7 GiB", "stale");
    assert_role(&shot, "1m00s ago", "stale");
}

#[test]
fn the_focus_shows_without_a_colour() {
    let none = LogWindows::default();
    let mut state = idle(example());
    state.screen.focus = Pane::Ray;
    let theme = theme::builtin(theme::DEFAULT).expect("built in");
    let plain = Look::new(theme, Glyphs::Unicode, false, 0);
    let shot = shot_with(&state, &none, &plain, (120, 40));
    assert!(shot.pane(Pane::Ray).starts_with("┏━ 3 Ray"), "{}", shot.pane(Pane::Ray));
    assert!(shot.pane(Pane::Node(0)).starts_with("╭─ 1 spark-1"));
    let colors = shot.buffer.content().iter().flat_map(|c| [c.fg, c.bg]);
    assert_eq!(colors.filter(|c| *c != Color::Reset).count(), 0);
    assert!(shot.style_of("Ray").add_modifier.contains(Modifier::BOLD));
}

#[test]
fn a_title_does_not_take_its_borders_look() {
    let shot = shot(&idle(example()), &LogWindows::default(), (120, 40));
    assert_role(&shot, "192.168.200.13", "text");
}

fn one_line(text: &str, fg: Option<bringup::log::Color>) -> LogWindows {
    let line = Line {
        spans: vec![Span {
            text: text.into(),
            style: LogStyle {
                fg,
                ..LogStyle::default()
            },
        }],
        ..Line::of(Stream::Out, "")
    };
    let window = Window {
        lines: vec![line],
        ..Window::default()
    };
    LogWindows([(NodeId(0), window)].into_iter().collect())
}

#[test]
fn a_logs_own_colours_stay_unless_colours_are_off() {
    let state = idle(example());
    let logs = one_line("ERROR in red", Some(bringup::log::Color::Red));
    let coloured = shot_with(&state, &logs, &look(Glyphs::Unicode), (120, 40));
    assert_eq!(coloured.style_of("ERROR in red").fg, Some(Color::Red));
    let theme = theme::builtin(theme::DEFAULT).expect("built in");
    let plain = shot_with(&state, &logs, &Look::new(theme, Glyphs::Unicode, false, 0), (120, 40));
    assert_eq!(plain.style_of("ERROR in red").fg, Some(Color::Reset));
}

#[test]
fn no_control_character_reaches_the_buffer_whatever_a_log_or_a_name_holds() {
    let evil = "a\u{1b}[31mb\u{7}c\u{9b}2Jd\r\n\u{202e}e";
    let mut config = example();
    config.cluster = evil.into();
    config.nodes[0].name = evil.into();
    let mut state = idle(config);
    state.server.state = ServingState::Failed(evil.into());
    let shot = shot(&state, &one_line(evil, None), (120, 40));
    for cell in shot.buffer.content() {
        assert!(!cell.symbol().chars().any(char::is_control), "{:?}", cell.symbol());
    }
}
