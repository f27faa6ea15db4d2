//! What a node's pane says of its log and of the container that wrote it.

use std::fmt::Write as _;

use bringup::domain::NodeId;
use bringup::domain::intent::Pane;
use bringup::domain::logs::{ContainerEnd, LogSource, Older, Seeks, Wanted};
use bringup::domain::units::Bytes;
use bringup::domain::{Reading, container::ContainerFacts};
use bringup::log::{Decoder, LogWindows, Ring, Stream};
use bringup::model::State;
use bringup::view::Glyphs;

use crate::build::*;
use crate::shot::{look, shot_with};

const SIZES: [(u16, u16); 2] = [(80, 24), (120, 40)];

/// The head's pane at some sizes, and in ASCII.
fn snapshot(name: &str, state: &State, logs: &LogWindows) {
    let mut all = String::new();
    for (glyphs, sizes) in [(Glyphs::Unicode, &SIZES[..]), (Glyphs::Ascii, &SIZES[1..])] {
        for size in sizes {
            let shot = shot_with(state, logs, &look(glyphs), *size);
            let _ok = writeln!(all, "{}x{}\n{}\n", size.0, size.1, shot.pane(Pane::Node(0)));
        }
    }
    insta::assert_snapshot!(format!("log_{name}"), all);
}

fn shot_pane(state: &State, logs: &LogWindows) -> String {
    shot_with(state, logs, &look(Glyphs::Unicode), SIZES[1]).pane(Pane::Node(0))
}

/// The containers of the head are read, and none is there.
fn without_containers(state: &mut State) {
    state.observed.nodes[0].containers = Reading::known(ContainerFacts::default(), ago(1).stamp);
}

#[test]
fn a_log_of_nothing_says_what_is_looked_for_and_for_how_long() {
    let mut state = idle(example());
    without_containers(&mut state);
    let label = Wanted::Label {
        key: "com.docker.compose.service".into(),
        value: Some("vllm".into()),
    };
    let nothing = LogSource::Nothing { wanted: label.words() };
    state.nodes[0].log.source = Some((nothing.clone(), ago(65).stamp));
    state.nodes[0].log.found = true;
    snapshot("nothing", &state, &LogWindows::default());
    // The lines of what was there before stay, and the foot says that it is gone.
    let mut state = loading(example());
    let logs = logs(&mut state);
    without_containers(&mut state);
    state.nodes[0].log.source = Some((nothing, ago(65).stamp));
    snapshot("nothing_any_more", &state, &logs);
}

#[test]
fn a_log_that_is_not_there_says_so_since_when_and_in_whose_words() {
    let absent = LogSource::Absent {
        what: "/var/log/vllm.log".into(),
        why: "there is no such file".into(),
        said: Some("ls: cannot access '/var/log/vllm.log': No such file or directory".into()),
    };
    let mut state = idle(example());
    state.nodes[0].log.source = Some((absent.clone(), ago(65).stamp));
    snapshot("absent", &state, &LogWindows::default());
    // What the console itself has written into it says less.
    let (before, mut own) = (shot_pane(&state, &LogWindows::default()), LogWindows::default());
    let mut ring = Ring::new(1 << 20);
    Decoder::new().feed(Stream::Out, "… the shell says: x\n".as_bytes(), &mut |edit| {
        ring.apply(edit)
    });
    own.0.insert(NodeId(0), ring.tail(60));
    (state.nodes[0].log.seq, state.nodes[0].log.flow.own) = (1, 1);
    assert_eq!(shot_pane(&state, &own), before);
    // The lines of before stay.
    let mut state = loading(example());
    let logs = logs(&mut state);
    state.nodes[0].log.source = Some((absent, ago(65).stamp));
    snapshot("absent_any_more", &state, &logs);
}

#[test]
fn a_log_in_which_docker_looks_for_its_place_says_so() {
    let seeks = |again| {
        Some(Seeks {
            since: ago(12).stamp,
            again,
        })
    };
    let mut state = loading(example());
    let logs = logs(&mut state);
    state.nodes[0].log.flow.seeks = seeks(true);
    snapshot("seeking", &state, &logs);
    let mut state = idle(example());
    state.nodes[0].log.flow.seeks = seeks(false);
    snapshot("seeking_at_first", &state, &LogWindows::default());
}

#[test]
fn what_was_not_read_stands_over_the_first_line() {
    let mut state = idle(example());
    let mut logs = LogWindows::default();
    let mut ring = Ring::new(1 << 20);
    let text: String = (1..=60).map(|n| format!("line {n}\n")).collect();
    Decoder::new().feed(Stream::Out, text.as_bytes(), &mut |edit| ring.apply(edit));
    logs.0.insert(NodeId(0), ring.tail(60));
    state.nodes[0].log.seq = ring.next_seq();
    state.nodes[0].log.flow.older = Some(Older::Lines);
    let shown = |state: &State| {
        let shot = shot_with(state, &logs, &look(Glyphs::Unicode), SIZES[1]);
        (shot.pane(Pane::Node(0)), shot.regions.log(NodeId(0)).unwrap().first)
    };
    let words = "… lines before this one were not read";
    assert!(!shown(&state).0.contains(words), "the first line is not there");
    // As far up as it goes.
    state.screen.held.insert(NodeId(0), 0);
    let (pane, first) = shown(&state);
    assert_eq!(first, 0);
    let rows: Vec<&str> = pane.lines().collect();
    let at = rows.iter().position(|row| row.contains(words)).unwrap();
    assert!(rows[at + 1].contains("line 1 "), "{pane}");
    // One line more than fits with it: it is the note that is above.
    let fits = rows.iter().filter(|row| row.contains("line ")).count();
    state.screen.held.insert(NodeId(0), fits as u64);
    let (pane, first) = shown(&state);
    assert!(!pane.contains(words) && first == 1, "it can be gone to: {pane}");
    state.nodes[0].log.flow.older = Some(Older::Bytes(Bytes(1_234_567)));
    state.screen.held.insert(NodeId(0), 0);
    assert!(
        shown(&state)
            .0
            .contains("… 1 234 567 bytes before this line were not read")
    );
}

#[test]
fn lines_that_repeat_are_one_with_a_count() {
    let mut state = loading(example());
    let mut logs = logs(&mut state);
    let mut ring = Ring::new(1 << 20);
    let mut text = String::from("(APIServer pid=1) INFO 11-30 12:30:01 [api_server.py:1000] Starting\n");
    for second in 10..60 {
        let _ok = writeln!(
            text,
            "(APIServer pid=1) INFO:     127.0.0.1:{second}012 - \"GET /health HTTP/1.1\" 200 OK"
        );
    }
    Decoder::new().feed(Stream::Out, text.as_bytes(), &mut |edit| ring.apply(edit));
    logs.0.insert(NodeId(0), ring.tail(60));
    state.nodes[0].log.seq = ring.next_seq();
    snapshot("folded", &state, &logs);
}

#[test]
fn a_container_that_ended_says_how_long_ago_and_how() {
    let end = |code, oom| ContainerEnd {
        id: "77aa".repeat(16),
        name: "vllm-qwen35".into(),
        code,
        oom,
        available: Some(Bytes(3 << 30)),
        unasked: None,
    };
    let ends = [
        ("ended", end(Some(1), false)),
        ("killed", end(Some(137), false)),
        ("out_of_memory", end(Some(137), true)),
        ("gone", end(None, false)),
    ];
    for (name, end) in ends {
        let mut state = loading(example());
        let logs = logs(&mut state);
        without_containers(&mut state);
        state.nodes[0].ended = Some((end, ago(30).stamp));
        snapshot(name, &state, &logs);
    }
}
