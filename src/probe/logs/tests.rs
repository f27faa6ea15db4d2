//! A log that is followed again neither repeats nor leaves out lines, and what is no line of it is known.

use std::time::Duration;

use super::docker::ASK_FROM;
use super::runs::KNOWN_LINES;
use super::says::docker_says;
use super::*;
use crate::domain::command::Output;
use crate::log::Stream;

const LIMIT: Duration = Duration::from_secs(10);

fn line(stream: Stream, time: &str) -> Line {
    Line {
        stream,
        time: Some(time.into()),
        ..Line::default()
    }
}

#[test]
fn docker_logs_go_on_where_they_stopped() {
    let mut log = Follower::new(Place::Container {
        docker: "docker".into(),
        name: "vllm-qwen35".into(),
    });
    assert_eq!(
        log.command(LIMIT).line(),
        "docker logs --timestamps --follow --tail 2000 vllm-qwen35"
    );
    let (a, b, c) = (
        "2026-11-29T17:04:55.000000001Z",
        "2026-11-29T17:04:55.000000002Z",
        "2026-11-29T17:04:56.000000000Z",
    );
    assert!(log.fresh(&line(Stream::Err, a)));
    let other = Line {
        time: Some(a.into()),
        ..Line::of(Stream::Err, "other")
    };
    assert!(log.fresh(&other), "two lines of one moment are two lines");
    assert!(!log.fresh(&other), "and one line twice is one");
    assert!(log.fresh(&line(Stream::Out, b)));
    assert_eq!(
        log.command(LIMIT).line(),
        "docker logs --timestamps --follow --since 2026-11-29T17:04:53.000000002Z vllm-qwen35"
    );
    assert!(!log.fresh(&line(Stream::Err, a)));
    assert!(!log.fresh(&line(Stream::Out, b)));
    assert!(log.fresh(&line(Stream::Err, b)), "each stream has its own last line");
    assert!(log.fresh(&line(Stream::Out, c)));
}

#[test]
fn what_dockers_client_says_itself_is_known_by_its_words_and_by_the_time_that_it_lacks() {
    let own = [
        "Error response from daemon: No such container: vllm-qwen35",
        "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?",
        "permission denied while trying to connect to the Docker daemon socket at unix:///var/run/docker.sock",
        "docker: Error response from daemon: Conflict.",
        "Error: No such container: vllm-qwen35",
        "Error: No such object: vllm-qwen35",
        "Error: no container with name or ID \"vllm-qwen35\" found: no such container",
    ];
    for text in own {
        assert!(docker_says(&Line::of(Stream::Err, text)), "{text}");
        // A program in the container that uses Docker itself.
        let timed = Line {
            time: Some("2026-11-29T17:04:55.000000001Z".into()),
            ..Line::of(Stream::Err, text)
        };
        assert!(!docker_says(&timed) && !docker_says(&Line::of(Stream::Out, text)));
    }
    // The rest of a line whose beginning was lost.
    assert!(!docker_says(&Line::of(Stream::Err, "Error: CUDA out of memory")));
}

#[test]
fn a_command_that_is_run_again_says_what_it_has_said_once() {
    let mut log = Follower::new(Place::Command { line: "cat x".into() });
    let mut run = |lines: &[&str]| -> Vec<bool> {
        log.command(LIMIT);
        lines
            .iter()
            .map(|l| log.told_before(&Line::of(Stream::Out, *l)))
            .collect()
    };
    assert_eq!(run(&["a", "b", "a"]), [false, false, false]);
    assert_eq!(run(&["a", "b", "a", "a", "c"]), [true, true, true, false, false]);
    assert_eq!(run(&[]), [] as [bool; 0]);
    assert_eq!(run(&["a", "a", "a", "a", "c"]), [true, true, true, false, true]);
    let many: Vec<String> = (0..2 * KNOWN_LINES).map(|n| n.to_string()).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    run(&many);
    let again = run(&many).into_iter().filter(|again| *again).count();
    assert_eq!(again, KNOWN_LINES);
    let mut file = Follower::new(Place::File { path: "/x".into() });
    for _ in 0..2 {
        file.command(LIMIT);
        assert!(!file.told_before(&Line::of(Stream::Out, "a")));
    }
}

#[test]
fn older_lines_are_asked_for_once_where_many_came_and_told_only_where_docker_has_one() {
    let mut log = Follower::new(Place::Container {
        docker: "sudo -n docker".into(),
        name: "c".into(),
    });
    log.command(LIMIT);
    let time = |n: u32| format!("2026-11-29T17:04:55.{n:09}Z");
    for n in 1..ASK_FROM {
        assert!(log.fresh(&line(Stream::Out, &time(n + 10))));
        assert_eq!(log.ask_older(LIMIT), None);
    }
    // The other stream began earlier.
    assert!(log.fresh(&line(Stream::Err, &time(5))));
    let asked = log.ask_older(LIMIT).unwrap();
    assert_eq!(asked.line(), format!("log.older 'sudo -n docker' {} c", time(5)));
    assert_eq!(log.ask_older(LIMIT), None);
    let mut older = |text: &str| {
        log.take_older(&Output {
            stdout: text.as_bytes().to_vec(),
            stderr: Vec::new(),
            dropped: 0,
            exit: crate::domain::command::Exit::Code(0),
            took: Duration::ZERO,
        });
        log.older()
    };
    assert_eq!(
        older(&format!("{} first\n", time(5))),
        None,
        "it is the first that was read"
    );
    assert_eq!(older(&format!("{} fir", time(4))), Some(Older::Lines));
    for nothing in [
        "",
        "Error response from daemon: No such container: c\n",
        "2026-11-29T17:0",
    ] {
        assert_eq!(older(nothing), None, "{nothing}");
    }
}

#[test]
fn a_file_says_how_much_of_it_was_not_read_and_that_it_is_not_there() {
    let mut log = Follower::new(Place::File { path: "/x".into() });
    log.command(LIMIT);
    assert_eq!(
        log.content(b"@@ none missing ls: cannot access '/x': No such file or directory\n@@ "),
        b""
    );
    let absent = log.absent().unwrap();
    assert_eq!(absent.why, "there is no such file");
    assert_eq!(
        absent.said.as_deref(),
        Some("ls: cannot access '/x': No such file or directory")
    );
    assert!(!log.found() && log.absent().is_none() && log.older().is_none());
    assert_eq!(log.content(b"from 0 7 0 \nall\n"), b"all\n");
    assert!(log.found() && log.older().is_none());
    let mut log = Follower::new(Place::File { path: "/x".into() });
    log.command(LIMIT);
    log.content(b"@@ from 100 7 0 \nrest\nline\n");
    assert_eq!(log.older(), Some(Older::Bytes(Bytes(100))));
    // Where it goes on is not its beginning.
    log.command(LIMIT);
    log.content(b"@@ from 300 7 0 \n");
    assert_eq!(log.older(), Some(Older::Bytes(Bytes(100))));
    // What else stands there is no log.
    let mut log = Follower::new(Place::File { path: "/x".into() });
    log.command(LIMIT);
    assert_eq!(log.content(b"OCI runtime exec failed: no /bin/sh\n"), b"");
    assert_eq!(
        log.absent(),
        Some(NotThere {
            why: "it can't be read",
            said: Some("OCI runtime exec failed: no /bin/sh".into()),
        })
    );
}

#[test]
fn a_file_goes_on_after_its_last_whole_line() {
    let mut log = Follower::new(Place::File {
        path: "~/vllm.log".into(),
    });
    assert_eq!(log.command(LIMIT).line(), "log.file '~/vllm.log' - 524288 -");
    assert_eq!(log.content(b"@@ fro"), b"");
    assert_eq!(log.content(b"m 100 7 0 \nrest of a li"), b"");
    assert_eq!(log.content(b"ne\nwhole\npart"), b"whole\npart");
    // 100 + "rest of a line\n" + "whole\n"
    assert_eq!(log.command(LIMIT).line(), "log.file '~/vllm.log' 121 524288 7");
    assert_eq!(log.content(b"@@ from 121 7 0 \npartial\n"), b"partial\n");
    assert_eq!(log.command(LIMIT).line(), "log.file '~/vllm.log' 129 524288 7");
}

#[test]
fn a_file_that_began_again_is_shown_from_its_start() {
    let mut log = Follower::new(Place::File { path: "/x".into() });
    log.command(LIMIT);
    log.content(b"@@ from 0 7 0 \nold\n");
    assert_eq!(log.notice(), None);
    log.command(LIMIT);
    assert_eq!(log.content(b"@@ from 0 7 0 cut\nnew\n"), b"new\n");
    assert!(log.notice().unwrap().contains("was cut"));
    assert_eq!(log.command(LIMIT).line(), "log.file /x 4 524288 7");
    log.content(b"@@ from 0 8 0 anew\n");
    assert!(log.notice().unwrap().contains("another file"));
}

#[test]
fn what_an_earlier_file_still_held_comes_before_the_new_file() {
    let mut log = Follower::new(Place::File { path: "/x".into() });
    log.command(LIMIT);
    log.content(b"@@ from 0 7 0 \none\ntw");
    log.command(LIMIT);
    assert_eq!(log.content(b"@@ from 0 8 10 \ntwo\nth"), b"two\nth");
    assert_eq!(
        log.command(LIMIT).line(),
        "log.file /x 8 524288 7",
        "six of the ten bytes came, of which four are lines"
    );
    assert_eq!(log.content(b"@@ from 0 8 6 \nthree\nfour\nfi"), b"three\nfour\nfi");
    assert_eq!(log.command(LIMIT).line(), "log.file /x 5 524288 8");
    assert_eq!(log.notice(), None);
}

#[test]
fn lines_that_docker_repeats_at_a_rotation_are_dropped_and_a_clock_set_back_is_not() {
    let mut log = Follower::new(Place::Container {
        docker: "docker".into(),
        name: "c".into(),
    });
    log.command(LIMIT);
    let mut fresh = |ms: u32| log.fresh(&line(Stream::Out, &format!("2026-11-29T17:04:50.{ms:03}000000Z")));
    let came = [1, 2, 2, 3, 2, 3, 4, 2, 3, 4, 5].map(&mut fresh);
    assert_eq!(
        came,
        [true, true, false, true, false, false, true, false, false, false, true]
    );
    let after_a_step = [0, 6].map(&mut fresh);
    assert_eq!(after_a_step, [true, true]);
}

#[test]
fn lines_that_docker_has_no_more_are_told_once() {
    let mut log = Follower::new(Place::Container {
        docker: "docker".into(),
        name: "c".into(),
    });
    log.command(LIMIT);
    assert!(log.fresh(&line(Stream::Err, "2026-11-29T17:04:50.000000000Z")));
    assert!(log.fresh(&line(Stream::Out, "2026-11-29T17:04:55.000000000Z")));
    log.command(LIMIT);
    assert!(!log.fresh(&line(Stream::Out, "2026-11-29T17:04:55.000000000Z")));
    assert!(log.fresh(&line(Stream::Out, "2026-11-29T17:04:56.000000000Z")));
    // Its last line was too long ago to be asked for again.
    assert!(log.fresh(&line(Stream::Err, "2026-11-29T17:04:56.500000000Z")));
    assert_eq!(log.notice(), None);
    log.command(LIMIT);
    assert!(log.fresh(&line(Stream::Out, "2026-11-29T17:05:10.000000000Z")));
    let told = log.notice().unwrap();
    assert!(
        told.contains("after 2026-11-29T17:04:56.000000000Z are missing"),
        "{told}"
    );
    assert!(log.fresh(&line(Stream::Out, "2026-11-29T17:05:11.000000000Z")));
    assert_eq!(log.notice(), None);
}
