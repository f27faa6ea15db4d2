//! What is wrong is said once, where it is read best, and leaves the rest of the screen as it is.

use bringup::domain::command::Exit;
use bringup::domain::effect::{Effect, RunOutcome};
use bringup::domain::event::{Event, EventKind};
use bringup::domain::intent::{Intent, Mode, Pane};
use bringup::domain::link::{LinkError, LinkErrorKind, LinkState};
use bringup::domain::serving::{ServeFacts, ServeProcess};
use bringup::domain::sockets::{Listener, SocketFacts};
use bringup::domain::{NodeId, Source, When};
use bringup::model::State;
use bringup::model::state::{LastError, ServingState};

use crate::build::*;
use crate::runs::*;
use crate::shot::shot;

/// All words of a frame, in order, without its borders.
fn words(state: &State, size: (u16, u16)) -> String {
    let text = shot(state, &Default::default(), size).text();
    let text = text.replace(|c: char| ('─'..='╿').contains(&c), " ");
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The run has failed at its last step: the server's worker is out of memory, and the log is long.
fn failed_run() -> State {
    let mut state = all_known(loading(example()));
    let listener = Listener {
        address: "*".into(),
        port: 6379,
        pid: None,
        container: None,
    };
    state.observed.nodes[0].sockets = read(SocketFacts {
        listeners: vec![listener],
    });
    let process = ServeProcess {
        pid: 7,
        mark: None,
        command: "vllm serve".into(),
        up_seconds: Some(60),
    };
    state.observed.nodes[0].serve = read(ServeFacts {
        processes: vec![process],
    });
    state.config = {
        let mut config = example();
        config.limits.stall = std::time::Duration::from_secs(5);
        std::sync::Arc::new(config)
    };
    run_until(&mut state, Exit::Code(0), &[]);
    state.server.state = ServingState::Failed("the server ended".into());
    says(
        &mut state,
        NodeId(1),
        40,
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
    );
    for n in 0..40 {
        says(
            &mut state,
            NodeId(0),
            30,
            &format!("RuntimeError: engine core {n} is gone"),
        );
    }
    state.screen.mode = Mode::Run;
    state
}

#[test]
fn a_failed_run_says_its_cause_fix_and_command_once_and_leaves_the_panes_on_the_screen() {
    let state = failed_run();
    let cause = state.first_cause().expect("a cause");
    let fix = cause
        .fix
        .clone()
        .expect("a fix")
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    let (_, command) = cause.command.clone().expect("a command");
    for size in [(80, 24), (120, 32), (120, 40), (200, 60)] {
        let drawn = shot(&state, &Default::default(), size);
        let said = words(&state, size);
        for part in [&cause.text, &format!("fix: {fix}"), &command] {
            assert_eq!(
                said.matches(part.as_str()).count(),
                1,
                "{part} {size:?}\n{}",
                drawn.text()
            );
        }
        if size.1 < 32 {
            continue;
        }
        for (pane, part) in [
            (Pane::Ray, "2/2 alive"),
            (Pane::Serving, "the failed step below says why"),
            (Pane::Serving, "reach it"),
            (Pane::Node(0), "load"),
            (Pane::Node(1), "load"),
        ] {
            let text = drawn.pane(pane);
            assert!(text.contains(part), "{part} {size:?}\n{text}");
        }
    }
    // Where the steps are not on the screen, the server's pane says it.
    let mut hidden = state;
    hidden.screen.mode = Mode::Panes;
    let text = shot(&hidden, &Default::default(), (120, 40)).pane(Pane::Serving);
    assert!(text.contains("fix: ") && text.contains("y copies"), "{text}");
}

#[test]
fn what_a_failed_step_rests_on_is_scrolled_to() {
    let mut state = failed_run();
    let foot = |state: &State| words(state, (120, 32));
    assert!(foot(&state).contains("j k scroll"), "{}", foot(&state));
    assert!(!foot(&state).contains("from it follows"), "{}", foot(&state));
    state.screen.overlay_top = 5;
    let there = (5..30).any(|top| {
        state.screen.overlay_top = top;
        foot(&state).contains("from it follows")
    });
    assert!(there, "{}", foot(&state));
}

/// The jump host is down, and with it the way to the nodes of `behind`.
fn no_way(mut state: State, again: bool) -> State {
    let error = |kind, text: &str| LinkError {
        kind,
        text: text.into(),
        fix: None,
    };
    let refused = "gate (aurora@10.1.230.180:22): connection refused: nothing listens there";
    let gate = error(LinkErrorKind::Unreachable, refused);
    let behind = error(LinkErrorKind::ViaDown, &format!("gate is down: {refused}"));
    let last = |error: &LinkError| {
        Some(LastError {
            error: error.clone(),
            at: ago(3).stamp,
            since: When::at(ago(9).stamp),
        })
    };
    let link = |error| {
        if again {
            return LinkState::Connecting;
        }
        LinkState::Down {
            error,
            since: ago(9).stamp,
            retry_at: Some(NOW.stamp.plus(std::time::Duration::from_secs(4))),
        }
    };
    state.hop_errors[0] = last(&gate);
    state.hops[0] = link(gate);
    for id in state.config.node_ids() {
        state.nodes[id.index()].last_error = last(&behind);
        state.observed.nodes[id.index()].link = link(behind.clone());
    }
    state
}

#[test]
fn a_jump_host_that_is_down_is_said_once_with_the_nodes_behind_it() {
    for again in [false, true] {
        for size in [(80, 24), (120, 40), (200, 60)] {
            let state = no_way(empty(example()), again);
            let (said, text) = (words(&state, size), shot(&state, &Default::default(), size).text());
            for part in ["connection refused", "jump gate"] {
                assert_eq!(said.matches(part).count(), 1, "{part} {size:?}\n{text}");
            }
            let top = text.lines().nth(1).unwrap_or_default();
            assert!(top.contains("behind it: spark-1, spark-2"), "{text}");
            assert!(!said.contains("gate is down"), "{text}");
            assert_eq!(said.matches("waits for its jump host").count(), 2, "{text}");
        }
    }
    // Many are counted.
    let many = no_way(empty(with_workers(7)), false);
    let text = shot(&many, &Default::default(), (120, 40)).text();
    assert!(text.contains("behind it: 8 nodes"), "{text}");
    // What a node has of its own is told in its pane.
    let mut own = no_way(empty(example()), false);
    let LinkState::Down { error, .. } = &mut own.observed.nodes[1].link else {
        panic!("it is down")
    };
    *error = LinkError {
        kind: LinkErrorKind::Refused,
        text: "spark-2 refused every key".into(),
        fix: None,
    };
    let text = shot(&own, &Default::default(), (120, 40)).text();
    assert!(text.contains("behind it: spark-1 "), "{text}");
    assert!(text.contains("spark-2 refused every key"), "{text}");
}

/// What `y` copies, and what the screen says to it.
fn copied(mut state: State) -> (Vec<String>, String) {
    let event = Event {
        source: Source::Operator,
        at: NOW,
        kind: EventKind::Intent(Intent::Copy),
    };
    let effects = bringup::model::update(&mut state, event);
    let copied = effects.into_iter().filter_map(|effect| match effect {
        Effect::Copy(text) => Some(text),
        _ => None,
    });
    (copied.collect(), words(&state, (120, 40)))
}

#[test]
fn of_a_failed_step_a_line_for_the_operators_own_shell_is_copied_or_nothing_and_that_is_said() {
    // Words alone: a shell would run what stands between their backticks.
    let mut state = known();
    state.screen.mode = Mode::Run;
    run_until(&mut state, Exit::Code(1), &["ValueError: Malformed host: "]);
    assert!(words(&state, (120, 40)).contains("fix: "));
    let (lines, said) = copied(state);
    assert_eq!(lines, Vec::<String>::new());
    assert!(said.contains("no command is known for this: the fix is text"), "{said}");
    // The step knows the command that its words name: the head's container runs, and Ray in it does not listen.
    let mut config = example();
    config.limits.head = std::time::Duration::from_secs(5);
    let mut state = known();
    state.config = std::sync::Arc::new(config);
    state.screen.mode = Mode::Run;
    run_until(&mut state, Exit::Code(0), &[]);
    assert_eq!(
        state.run.as_ref().and_then(|run| run.outcome()),
        Some(RunOutcome::Failed)
    );
    let shown = words(&state, (120, 40));
    assert!(
        shown.contains("fix: `docker logs vllm-qwen35` on spark-1 says why"),
        "{shown}"
    );
    let (lines, _) = copied(state);
    let [line] = &lines[..] else { panic!("{lines:?}") };
    assert!(
        line.starts_with("ssh ") && line.ends_with(" 'docker logs vllm-qwen35'"),
        "{line}"
    );
    // Nothing has failed.
    let mut state = known();
    state.screen.mode = Mode::Run;
    let (lines, said) = copied(state);
    assert_eq!(lines, Vec::<String>::new());
    assert!(said.contains("there is no command to copy here"), "{said}");
}
