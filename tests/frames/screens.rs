//! Whole screens.

use bringup::domain::intent::Pane;
use bringup::domain::{NodeId, Source};
use bringup::log::LogWindows;
use bringup::model::State;
use bringup::model::state::Notice;
use bringup::view::Glyphs;

use crate::build::*;
use crate::shot::{look, shot, shot_with};

fn snapshot(name: &str, mut state: State, with_logs: bool) {
    let logs = if with_logs {
        logs(&mut state)
    } else {
        LogWindows::default()
    };
    for (width, height) in [(80, 24), (120, 40), (200, 60)] {
        let name = format!("screen_{name}_{width}x{height}");
        insta::assert_snapshot!(name, shot(&state, &logs, (width, height)).text());
    }
    for (width, height) in [(80, 24), (120, 40)] {
        let text = shot_with(&state, &logs, &look(Glyphs::Ascii), (width, height)).text();
        assert!(text.is_ascii(), "{text}");
        insta::assert_snapshot!(format!("screen_{name}_{width}x{height}_ascii"), text);
    }
}

#[test]
fn first() {
    snapshot("first", empty(example()), false);
}

#[test]
fn nothing_runs() {
    snapshot("idle", idle(example()), false);
}

#[test]
fn the_model_loads() {
    snapshot("loading", loading(example()), true);
}

#[test]
fn ready_with_a_test() {
    let mut state = ready(example());
    state.bench = Some(bench(17));
    snapshot("bench", state, true);
}

#[test]
fn one_node() {
    snapshot("one", ready(with_workers(0)), true);
}

#[test]
fn eight_nodes() {
    snapshot("eight", loading(with_workers(7)), true);
}

#[test]
fn sixteen_nodes_are_a_table_with_the_focused_one_under_it() {
    let mut state = loading(with_workers(15));
    state.screen.focus = Pane::Node(11);
    snapshot("sixteen", state, true);
}

#[test]
fn zoomed() {
    let mut state = loading(example());
    state.screen.zoom = true;
    state.screen.held.insert(NodeId(0), 12);
    state.notices.push_back(Notice {
        at: ago(3),
        source: Source::Node(NodeId(0)),
        text: "the log was cut off and is followed again".into(),
    });
    snapshot("zoomed", state, true);
}

#[test]
fn tiny() {
    let mut state = loading(example());
    let logs = logs(&mut state);
    let all: Vec<String> = [(20, 5), (30, 8), (40, 12), (60, 10)]
        .iter()
        .map(|size| format!("{}x{}\n{}\n", size.0, size.1, shot(&state, &logs, *size).text()))
        .collect();
    insta::assert_snapshot!("screen_tiny", all.join("\n"));
}

#[test]
fn a_log_held_at_its_first_line_fills_the_pane() {
    let mut state = loading(example());
    let logs = logs(&mut state);
    state.screen.held.insert(NodeId(0), 0);
    let at_top = shot(&state, &logs, (120, 40));
    let region = *at_top.regions.log(NodeId(0)).expect("its log is drawn");
    assert_eq!((region.first, region.lines > 5), (0, true), "{region:?}");
    assert_eq!(region.last, region.lines as u64 - 1);
    assert!(at_top.text().contains("Automatically detected"), "{}", at_top.text());
    state.screen.held.insert(NodeId(0), region.last + 1);
    let further = shot(&state, &logs, (120, 40));
    let region = *further.regions.log(NodeId(0)).expect("its log is drawn");
    assert!(region.first > 0, "{region:?}");
}
