//! Whole screens.

use std::fmt::Write as _;

use bringup::domain::intent::Pane;
use bringup::domain::link::{LinkError, LinkErrorKind, LinkState};
use bringup::domain::{NodeId, Source};
use bringup::log::LogWindows;
use bringup::model::State;
use bringup::model::state::{Notice, ServingState};
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

/// The list of nodes always holds the one that was focused last, and says how many are out of sight on either side.
#[test]
fn a_list_of_nodes_follows_the_focus_and_counts_what_is_out_of_sight() {
    let mut state = loading(with_workers(7));
    let logs = logs(&mut state);
    let cases = [
        (
            0,
            (80, 24),
            &["1  spark-1", "+2 below"][..],
            &["above", "7  spark-7"][..],
        ),
        (6, (80, 24), &["7  spark-7", "+1 above", "+1 below"], &["8  spark-8"]),
        (7, (80, 24), &["8  spark-8", "+2 above"], &["below", "2  spark-2"]),
        (7, (60, 10), &["8  spark-8", "+4 above"], &["below"]),
        (4, (60, 8), &["5  spark-5", "+1 above", "+3 below"], &["6  spark-6"]),
        (3, (20, 5), &["4  spark-4", "↑2", "↓4"], &["5  spark-5"]),
    ];
    for (node, size, there, gone) in cases {
        state.screen.node = NodeId(node);
        // Another pane may be looked at meanwhile: the list stays where it was.
        for focus in [Pane::Node(node), Pane::Ray] {
            state.screen.focus = focus;
            let text = shot(&state, &logs, size).text();
            for part in there {
                assert!(text.contains(part), "{part} at {size:?}\n{text}");
            }
            for part in gone {
                assert!(!text.contains(part), "{part} at {size:?}\n{text}");
            }
        }
    }
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
    let mut failed = loading(example());
    let text = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.";
    says(&mut failed, NodeId(1), 40, text);
    failed.server.state = ServingState::Failed("the server ended".into());
    let mut lost = idle(example());
    lost.observed.nodes[0].link = LinkState::Down {
        error: LinkError {
            kind: LinkErrorKind::Unreachable,
            text: "spark-1 does not answer".into(),
            fix: None,
        },
        since: ago(9).stamp,
        retry_at: None,
    };
    let states = [
        ("loading", state),
        ("ready", ready(example())),
        ("failed", failed),
        ("out of reach", lost),
        ("nothing known", empty(example())),
    ];
    let mut all = String::new();
    for (name, state) in &states {
        for (width, height) in [(20, 5), (30, 8), (40, 12), (60, 10)] {
            let text = shot(state, &logs, (width, height)).text();
            let _ok = writeln!(all, "{name} {width}x{height}\n{text}\n");
        }
    }
    insta::assert_snapshot!("screen_tiny", all);
}

#[test]
fn a_tiny_screen_does_not_say_since_when_a_server_is_ready_that_was_found_so() {
    let mut state = ready(example());
    let logs = logs(&mut state);
    let said = |state: &State| shot(state, &logs, (40, 12)).text();
    assert!(!said(&state).contains(" for 3m04s"), "{}", said(&state));
    state.server.found = true;
    for node in &mut state.nodes {
        node.load.stage = None;
    }
    assert!(said(&state).contains("known for 3m04s"), "{}", said(&state));
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

/// The head's container was started just now, by the step that is at work.
#[test]
fn what_has_just_begun_has_no_time_yet() {
    use bringup::domain::container::ContainerFacts;
    use bringup::plan::{self, Machine, Progress};
    let mut state = crate::runs::known();
    let action = bringup::domain::intent::Action::Up;
    let made = plan::make(action, &state.config, &state.observed, NOW);
    let (mut machine, _) = Machine::new(made, false, NOW.stamp);
    crate::runs::refresh(&mut state, NOW.stamp);
    for _ in 0..4 {
        let _todo = machine.on_tick(&state.observed, &state.config, &Progress::default(), NOW.stamp);
    }
    state.run = Some(machine);
    let mut own = container(&state, NodeId(0), 0);
    for (up, said) in [(0, "just started"), (3, "runs 3 s")] {
        own.up_seconds = Some(up);
        state.observed.nodes[0].containers = bringup::domain::Reading::known(
            ContainerFacts {
                containers: vec![own.clone()],
            },
            NOW.stamp,
        );
        for size in [(80, 24), (120, 40), (200, 60)] {
            let text = shot(&state, &LogWindows::default(), size).pane(Pane::Node(0));
            for part in [said, "container starts"] {
                assert!(text.contains(part), "{part} {size:?}\n{text}");
            }
            assert!(!text.lines().skip(1).any(|l| l.contains(" 0 s ")), "{size:?}\n{text}");
        }
    }
}
