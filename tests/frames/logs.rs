//! What a node's pane says of its log and of the container that wrote it.

use std::fmt::Write as _;

use bringup::domain::NodeId;
use bringup::domain::intent::Pane;
use bringup::domain::logs::{ContainerEnd, LogSource, Wanted};
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
    snapshot("nothing", &state, &LogWindows::default());
    // The lines of what was there before stay, and the foot says that it is gone.
    let mut state = loading(example());
    let logs = logs(&mut state);
    without_containers(&mut state);
    state.nodes[0].log.source = Some((nothing, ago(65).stamp));
    snapshot("nothing_any_more", &state, &logs);
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
