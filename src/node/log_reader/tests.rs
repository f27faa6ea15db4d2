//! What stands in the log after bytes that were lost, torn or said by others, and what is found in them.

use std::sync::Mutex;
use std::time::Duration;

use bytes::Bytes;

use super::*;
use crate::domain::sign::SignKind;
use crate::domain::{Role, Wall};
use crate::log::Ring;

const LIMIT: Duration = Duration::from_secs(10);

fn chunk(text: &'static str, dropped: u64) -> Chunk {
    Chunk {
        stream: ssh::Stream::Out,
        bytes: Bytes::from_static(text.as_bytes()),
        dropped,
    }
}

fn node_log(place: Place) -> NodeLog {
    let config = crate::config::parse(crate::config::EXAMPLE, "config.example.toml").unwrap();
    NodeLog::new(Follower::new(place), Matcher::new(&config, Role::Head))
}

fn lines(log: &SharedLog) -> Vec<String> {
    log.lock().unwrap().last(10).map(Line::plain).collect()
}

#[test]
fn lost_bytes_stand_in_the_log_and_a_file_is_not_taken_up_before_them() {
    let log = SharedLog::new(Mutex::new(Ring::new(1 << 16)));
    let masker = Masker::default();
    let mut node = node_log(Place::File { path: "/x".into() });
    node.follower.command(LIMIT);
    let mut reader = Reader::new(&log, &masker, &mut node, false);
    reader.take(&chunk("@@ from 0 7 0 \none\nhalf", 0));
    reader.take(&chunk("rest\ntwo\n", 100));
    reader.end(107, true);
    let lost = |n: u32| format!("… {n} bytes of the log were lost here: they came faster than they could be read");
    assert_eq!(lines(&log), ["one", "half", &lost(100), "rest", "two", &lost(7)]);
    // "one\n" + "half" + 100 + "rest\n" + "two\n" + 7
    assert_eq!(node.follower.command(LIMIT).line(), "log.file /x 124 524288 7");
}

#[test]
fn a_line_that_the_end_of_the_connection_tore_comes_again_whole() {
    let log = SharedLog::new(Mutex::new(Ring::new(1 << 16)));
    let masker = Masker::default();
    let mut node = node_log(Place::Container {
        docker: "docker".into(),
        name: "c".into(),
    });
    for (text, well) in [
        (
            "2026-11-29T17:04:55.000000001Z one\n2026-11-29T17:04:55.000000002Z tw",
            false,
        ),
        (
            "2026-11-29T17:04:55.000000001Z one\n2026-11-29T17:04:55.000000002Z two\n2026-11-29T17:04:55.000000003Z end",
            true,
        ),
    ] {
        node.follower.command(LIMIT);
        let mut reader = Reader::new(&log, &masker, &mut node, false);
        reader.take(&chunk(text, 0));
        reader.end(0, well);
    }
    assert_eq!(lines(&log), ["one", "two", "end"]);
}

/// What a reader finds in these bytes.
fn found(log: &SharedLog, node: &mut NodeLog, stream: ssh::Stream, text: &'static str) -> Vec<EventKind> {
    let masker = Masker::default();
    node.follower.command(LIMIT);
    let mut reader = Reader::new(log, &masker, node, false);
    reader.take(&Chunk {
        stream,
        ..chunk(text, 0)
    });
    reader.end(0, true);
    reader.findings.into_iter().collect()
}

#[test]
fn dockers_own_words_are_told_as_its_own_and_are_no_failure_of_the_engine() {
    let log = SharedLog::new(Mutex::new(Ring::new(1 << 16)));
    let mut node = node_log(Place::Container {
        docker: "docker".into(),
        name: "c".into(),
    });
    for text in [
        "Error response from daemon: No such container: c\n",
        "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?\n",
    ] {
        assert_eq!(found(&log, &mut node, ssh::Stream::Err, text), [], "{text}");
    }
    assert!(
        lines(&log)[0].starts_with("… Docker says: Cannot connect to the Docker daemon"),
        "that a container is gone is told with how it ended"
    );
    assert_eq!((lines(&log).len(), node.flow.own), (1, 1));
    let text = "2026-11-29T17:04:55.000000001Z ValueError: no such model\n";
    assert_eq!(found(&log, &mut node, ssh::Stream::Err, text).len(), 2);
}

#[test]
fn what_a_record_quotes_fails_nothing_and_an_unfinished_line_neither() {
    let log = SharedLog::new(Mutex::new(Ring::new(1 << 16)));
    let mut node = node_log(Place::Command { line: "cat x".into() });
    let why = "torch.OutOfMemoryError: CUDA out of memory.";
    let text = "INFO 11-29 18:59:08 [logger.py:39] Received request cmpl-1: prompt: 'what does it mean:\n";
    let quoted: &'static str = format!("{text}{why}\n").leak();
    assert_eq!(found(&log, &mut node, ssh::Stream::Out, quoted), []);
    let warned = "(Worker_TP0 pid=85) WARNING 09-10 08:13:53 [x.py:1] torch.OutOfMemoryError: CUDA out of memory.\n";
    let mut warned = found(&log, &mut node, ssh::Stream::Out, warned).into_iter();
    assert!(!warned.any(|f| matches!(f, EventKind::Line(LineFact::Failure(_), _))));
    let masker = Masker::default();
    let mut reader = Reader::new(&log, &masker, &mut node, false);
    reader.take(&chunk("ValueError: half of a li", 0));
    assert!(reader.findings.is_empty());
    reader.take(&chunk("ne\n", 0));
    let whole = LineFact::Failure("ValueError: half of a line".into());
    let first = reader.findings.pop_front();
    assert!(matches!(first, Some(EventKind::Line(fact, _)) if fact == whole));
}

#[test]
fn a_command_that_is_run_again_counts_its_failures_once() {
    let log = SharedLog::new(Mutex::new(Ring::new(1 << 16)));
    let mut node = node_log(Place::Command { line: "cat x".into() });
    let text = "ValueError: no such model\n";
    // The failure for the load, and the sign for the causes.
    assert_eq!(found(&log, &mut node, ssh::Stream::Out, text).len(), 2);
    assert_eq!(found(&log, &mut node, ssh::Stream::Out, text), []);
    let text = "ValueError: no such model\nValueError: no such tokenizer\n";
    assert_eq!(found(&log, &mut node, ssh::Stream::Out, text).len(), 2);
    assert_eq!(lines(&log).len(), 4);
}

#[test]
fn a_command_that_is_run_again_begins_no_load_with_the_half_of_a_line() {
    let log = SharedLog::new(Mutex::new(Ring::new(1 << 16)));
    let masker = Masker::default();
    let mut node = node_log(Place::Command { line: "cat x".into() });
    let pieces = [
        "INFO 11-29 18:59:08 [api_server.py:1] vLLM API server version 0.1",
        "8.0\n",
        "Loading safetensors checkpoint shards:  25% Completed | 1/4 [00:00<00:01,  2.32it/s]",
    ];
    let starts = |node: &mut NodeLog| {
        node.follower.command(LIMIT);
        let mut reader = Reader::new(&log, &masker, node, false);
        pieces.iter().for_each(|piece| reader.take(&chunk(piece, 0)));
        let is = |of: &dyn Fn(&LineFact) -> bool| {
            let lines = reader.findings.iter();
            lines
                .filter(|f| matches!(f, EventKind::Line(fact, _) if of(fact)))
                .count()
        };
        (
            is(&|fact| matches!(fact, LineFact::NewStart)),
            is(&|fact| matches!(fact, LineFact::Bar { done: 1, .. })) > 0,
        )
    };
    assert_eq!(starts(&mut node), (1, true));
    assert_eq!(starts(&mut node), (0, true));
}

#[test]
fn what_may_be_why_is_told_with_the_time_of_its_line_though_bars_and_failures_flood() {
    let log = SharedLog::new(Mutex::new(Ring::new(1 << 16)));
    let masker = Masker::default();
    let mut node = node_log(Place::Container {
        docker: "docker".into(),
        name: "c".into(),
    });
    node.follower.command(LIMIT);
    let mut reader = Reader::new(&log, &masker, &mut node, false);
    reader.take(&chunk(
        "2026-11-29T17:04:55.000000001Z torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n",
        0,
    ));
    for n in 0..2 * FINDINGS {
        let text = format!("2026-11-29T17:04:56.{n:09}Z ValueError: number {n}\n");
        reader.take(&Chunk {
            bytes: Bytes::from(text),
            ..chunk("", 0)
        });
    }
    let (feed, mut queue) = Feed::new(crate::node::feed::Clock::start());
    reader.offer(&feed, NodeId(0));
    let mut signs = Vec::new();
    while let Ok(event) = queue.try_recv() {
        if let EventKind::Sign(sign) = event.kind {
            signs.push(sign);
        }
    }
    let first = &signs[0];
    assert_eq!(first.what, SignKind::Rule("gpu-out-of-memory".into()));
    assert_eq!(first.written, Some(Wall(1_795_971_895_000)));
    assert_eq!(first.fields, [("wanted".to_owned(), "2.00 GiB".to_owned())]);
    let unknown: Vec<u64> = signs.iter().skip(1).map(|s| s.times).collect();
    assert_eq!(unknown, [1, 2, 3, 4, 5, 6, 7, 8, 16, 32, 64, 128, 256, 512]);
}
