//! Lines that seem to be older than the process that wrote them.

use super::given_up::since;
use super::*;
use crate::domain::disk::{Cache, DiskFacts};

#[test]
fn lines_from_before_a_clock_was_set_are_of_no_known_age() {
    // Its process has run for ten minutes; the clock was set forward by an hour after its lines.
    let mut console = Console::comes(4400, 0);
    since(&mut console, 4400, 600);
    dead(&mut console, 4400);
    let found = Some(When::found(at(4400)));
    let load = &console.state.nodes[0].load;
    assert_eq!((load.started, load.line_at), (found, found));
    assert_eq!(part(&console.state, HEAD).unwrap().since, found);
    assert_eq!(server_since(&console.state), When::found(at(4400)));
    console.looks(4402, 4430);
    assert_eq!(console.verdict(), Verdict::Early { since: at(4400) });
    console.looks(4432, 4590);
    assert_eq!(console.verdict().text(at(4590)), "stalled for at least 3m10s");
    // What comes now has its age.
    console.line(4600, 4600, bar(3));
    assert_eq!(console.state.nodes[0].load.line_at, Some(When::at(at(4600))));
    assert_eq!(console.verdict(), Verdict::Progressing);
    // The process is told of after its lines.
    let mut later = Console::comes(4400, 0);
    dead(&mut later, 4400);
    since(&mut later, 4402, 602);
    assert_eq!(later.state.nodes[0].load.started, found);
}

#[test]
fn a_server_that_has_said_nothing_yet_is_not_where_the_one_before_it_was() {
    let mut console = Console::comes(700, 0);
    since(&mut console, 700, 30);
    dead(&mut console, 700);
    console.look(702);
    assert_eq!(console.state.server.state, ServingState::Loading);
    let part = part(&console.state, HEAD).unwrap();
    assert_eq!((part.stage, part.since), (Stage::Starting, None));
    // It draws its banner.
    console.line(720, 720, LineFact::NewStart);
    console.line(730, 730, bar(1));
    console.look(730);
    let part = super::part(&console.state, HEAD).unwrap();
    assert_eq!((part.stage, part.since), (Stage::Weights, Some(When::at(at(730)))));
}

#[test]
fn a_model_that_may_be_in_the_cache_is_no_download_until_something_tells_of_one() {
    let cache = |gib: u64| {
        Facts::Disk(DiskFacts {
            cache: Some(Cache {
                path: "/home/aurora/.cache/huggingface".into(),
                size: Bytes(gib << 30),
            }),
            ..DiskFacts::default()
        })
    };
    let word = |console: &Console| part(&console.state, HEAD).map(|part| (part.stage, part.word()));
    let mut console = Console::comes(0, 0);
    console.line(10, 10, LineFact::NewStart);
    console.line(20, 20, LineFact::Stage(Stage::Download));
    console.tell(21, Source::Node(HEAD), EventKind::Facts(cache(60)));
    assert_eq!(word(&console), Some((Stage::Download, "model files")));
    console.looks(22, 82);
    assert_eq!(console.verdict(), Verdict::Waiting("the model's files".into()));
    // The cache grows on one of the nodes.
    console.tell(83, Source::Node(NodeId(1)), EventKind::Facts(cache(1)));
    console.tell(143, Source::Node(NodeId(1)), EventKind::Facts(cache(3)));
    console.look(143);
    assert_eq!(word(&console), Some((Stage::Download, "download")));
    assert_eq!(console.verdict(), Verdict::Waiting("the download".into()));
    let mut barred = Console::comes(0, 0);
    barred.line(10, 10, LineFact::NewStart);
    barred.line(
        20,
        20,
        LineFact::Download {
            file: None,
            done: Bytes(0),
            total: Bytes(7),
        },
    );
    barred.look(20);
    assert_eq!(word(&barred), Some((Stage::Download, "download")));
}

#[test]
fn a_clock_that_prints_no_time_is_told_by_what_it_prints() {
    let mut console = Console::comes(700, 0);
    let why = "the node's `date` printed no time: Mon Nov 30";
    let told = || EventKind::Clock(Err(why.to_owned()));
    console.tell(701, Source::Node(HEAD), told());
    assert_eq!(
        console.state.observed.nodes[0].clock.at(),
        Some(at(700)),
        "what is known stays"
    );
    console.tell(701, Source::Node(NodeId(1)), told());
    assert_eq!(console.state.observed.nodes[1].clock.reason(), Some(why));
}
