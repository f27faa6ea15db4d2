//! What a server has survived is no failure, and what it dies of stays the reason.

use super::*;
use crate::domain::serving::{MetricsSample, TokenProof};
use crate::domain::sign::{Sign, SignKind};

const WORKER: NodeId = NodeId(1);

fn failure(text: &str) -> LineFact {
    LineFact::Failure(text.into())
}

fn failures(console: &Console) -> Vec<&str> {
    let lines = console.state.nodes.iter().flat_map(|n| &n.load.failures);
    lines.map(|(_, text)| text.as_str()).collect()
}

impl Console {
    fn server(&mut self, seconds: u64, facts: ServerFacts) {
        self.tell(seconds, Source::Server, EventKind::Server(facts));
    }

    /// It says healthy, and a token came back.
    fn ready(&mut self, seconds: u64) {
        self.server(seconds, ServerFacts::Health(Health::Ok));
        let proof = TokenProof {
            model: "m".into(),
            tokens: 1,
            took: Duration::from_millis(40),
        };
        self.server(seconds, ServerFacts::Token(Ok(proof)));
        assert_eq!(self.state.server.state, ServingState::Ready);
    }

    fn healthy(&mut self, from: u64, to: u64) {
        for second in (from..=to).step_by(2) {
            self.server(second, ServerFacts::Health(Health::Ok));
        }
    }

    fn counted(&mut self, seconds: u64, tokens: f64) {
        let sample = MetricsSample {
            generation_tokens: Some(tokens),
            ..MetricsSample::default()
        };
        self.server(seconds, ServerFacts::Metrics(Ok(sample.into())));
    }

    /// Its port refuses, and its process is gone.
    fn ends(&mut self, seconds: u64) {
        self.server(seconds, ServerFacts::Health(Health::Refused));
        let none = Facts::Serve(ServeFacts::default());
        self.tell(seconds, Source::Node(HEAD), EventKind::Facts(none));
    }

    /// A sign in a line that was written then, by the head's clock.
    fn sign(&mut self, read: u64, written: u64, what: SignKind) {
        let sign = Sign {
            text: format!("{what:?}"),
            what,
            written: Some(Wall((BASE + written * 1000).saturating_add_signed(self.ahead))),
            backlog: false,
            fields: Vec::new(),
            times: 1,
        };
        self.tell(read, Source::Node(HEAD), EventKind::Sign(sign));
    }

    /// Reads the log of a load that began then, that had an exception and that came up all the same.
    fn reads_a_load(&mut self, read: u64, began: u64) {
        self.line(read, began, LineFact::NewStart);
        self.sign(read, began, SignKind::NewStart);
        self.line(read, began + 3, failure("torch.OutOfMemoryError: x"));
        self.sign(read, began + 3, SignKind::Rule("gpu-out-of-memory".into()));
        self.sign(read, began + 3, SignKind::Unknown);
        self.line(read, began + 5, LineFact::Stage(Stage::Listening));
    }

    fn causes(&self) -> Vec<Option<String>> {
        self.state.causes().into_iter().map(|cause| cause.rule).collect()
    }

    fn worker_is(&mut self, seconds: u64, link: LinkState) {
        self.tell(seconds, Source::Node(WORKER), EventKind::Link(link));
    }
}

/// A server that has printed a failure in its load, on both nodes, and came up.
fn came_up() -> Console {
    let mut console = Console::comes(0, 0);
    console.line(10, 10, LineFact::NewStart);
    console.line(20, 20, failure("ModuleNotFoundError: No module named 'x'"));
    let line = EventKind::Line(failure("NCCL WARN Call failed"), Written::LIVE);
    console.tell(21, Source::Node(WORKER), line);
    console.look(22);
    assert_eq!(failures(&console).len(), 2);
    assert_eq!(console.state.server.state, ServingState::Loading);
    console.ready(100);
    console
}

#[test]
fn what_a_load_printed_before_its_token_came_back_is_no_failure_and_no_later_reason() {
    let mut console = came_up();
    assert_eq!(failures(&console), [""; 0]);
    console.line(200, 200, failure("ValueError: the end"));
    console.ends(210);
    assert_eq!(
        console.state.server.state,
        ServingState::Failed("ValueError: the end".into())
    );
    // Another start says what it says of itself.
    console.line(300, 300, LineFact::NewStart);
    console.line(301, 301, failure("OSError: anew"));
    assert_eq!(failures(&console)[0], "OSError: anew");
}

#[test]
fn a_line_from_before_the_token_that_is_read_after_it_is_none_either() {
    let mut console = came_up();
    console.healthy(102, 110);
    // The whole log comes once more, with its first line.
    console.line(110, 10, LineFact::NewStart);
    console.line(110, 20, failure("ModuleNotFoundError: No module named 'x'"));
    let backlog = Written {
        by_node: None,
        backlog: true,
    };
    console.reads(111, failure("RuntimeError: of an age that nobody knows"), backlog);
    assert_eq!(failures(&console), [""; 0]);
    console.line(112, 105, failure("ValueError: after it"));
    assert_eq!(failures(&console), ["ValueError: after it"]);
}

#[test]
fn a_loss_of_which_the_server_dies_stays_the_reason_and_one_that_is_over_does_not() {
    let silent = LinkState::Silent { since: at(200) };
    for (ends, reason) in [(230, "NCCL error: of the loss"), (330, "ValueError: the end")] {
        let mut console = came_up();
        console.healthy(102, 198);
        console.worker_is(200, silent.clone());
        console.line(201, 201, failure("NCCL error: of the loss"));
        console.healthy(202, 206);
        assert!(matches!(console.state.server.state, ServingState::Degraded(_)));
        // It looks ready once more.
        console.worker_is(208, LinkState::Up);
        console.healthy(208, ends);
        assert_eq!(console.state.server.state, ServingState::Ready);
        console.line(ends, ends, failure("ValueError: the end"));
        console.ends(ends + 1);
        assert_eq!(console.state.server.state, ServingState::Failed(reason.into()));
    }
    // It does not come back.
    let mut console = came_up();
    console.healthy(102, 198);
    console.worker_is(200, silent);
    console.line(201, 201, failure("NCCL error: of the loss"));
    console.healthy(202, 400);
    console.ends(401);
    assert_eq!(
        console.state.server.state,
        ServingState::Failed("NCCL error: of the loss".into())
    );
}

#[test]
fn tokens_that_are_counted_long_after_a_failure_outlive_it_and_an_idle_server_does_not() {
    let mut console = came_up();
    console.healthy(102, 198);
    console.counted(199, 1.0);
    console.line(200, 200, failure("ValueError: of one request"));
    console.healthy(202, 300);
    console.counted(300, 1.0);
    assert_eq!(failures(&console), ["ValueError: of one request"]);
    console.healthy(302, 302);
    console.counted(302, 9.0);
    assert_eq!(failures(&console), [""; 0]);
    console.line(310, 310, failure("ValueError: of another"));
    console.counted(312, 12.0);
    console.counted(314, 15.0);
    assert_eq!(failures(&console), ["ValueError: of another"], "it may be the end");
}

#[test]
fn who_comes_to_a_ready_server_shows_no_failure_of_its_load() {
    let mut late = Console::comes(700, 0);
    late.line(700, 10, LineFact::NewStart);
    late.line(700, 20, failure("ModuleNotFoundError: No module named 'x'"));
    late.server(701, ServerFacts::Health(Health::Ok));
    late.counted(702, 50.0);
    assert_eq!(late.state.server.state, ServingState::Ready);
    assert_eq!(failures(&late), [""; 0]);
}

#[test]
fn what_a_ready_server_survived_in_its_load_is_no_cause_whichever_comes_first() {
    // It began long before the proof that the console saw, or a moment before.
    for began in [400, 660, 690] {
        let answers = |console: &mut Console| {
            console.server(701, ServerFacts::Health(Health::Ok));
            console.counted(702, 50.0);
            assert_eq!(console.state.server.state, ServingState::Ready);
        };
        for ahead in [0, HOUR] {
            let mut late = Console::comes(700, ahead);
            answers(&mut late);
            late.reads_a_load(703, began);
            assert_eq!(late.causes(), [], "the answer first, {began}");
            assert_eq!(failures(&late), [""; 0]);
            let mut late = Console::comes(700, ahead);
            late.reads_a_load(700, began);
            answers(&mut late);
            assert_eq!(late.causes(), [], "the log first, {began}");
            assert_eq!(failures(&late), [""; 0]);
        }
    }
}

#[test]
fn a_start_after_the_proof_begins_anew_and_an_older_one_that_is_read_again_does_not() {
    let mut console = came_up();
    console.sign(110, 10, SignKind::NewStart);
    console.sign(110, 20, SignKind::Unknown);
    assert_eq!(console.causes(), [], "it came to its token all the same");
    console.sign(300, 300, SignKind::NewStart);
    console.sign(301, 301, SignKind::Rule("gpu-out-of-memory".into()));
    assert_eq!(console.causes(), [Some("gpu-out-of-memory".to_owned())]);
    // What is read late of the one before is not of this one.
    console.sign(302, 200, SignKind::Unknown);
    assert_eq!(console.causes().len(), 1);
    // A start whose line has no time, and that comes now.
    let mut console = came_up();
    let mut untimed = |at, what| {
        let (text, written, fields) = ("x".to_owned(), None, Vec::new());
        let sign = Sign {
            what,
            text,
            written,
            backlog: false,
            fields,
            times: 1,
        };
        console.tell(at, Source::Node(HEAD), EventKind::Sign(sign));
    };
    untimed(300, SignKind::NewStart);
    untimed(301, SignKind::Rule("gpu-out-of-memory".into()));
    assert_eq!(console.causes(), [Some("gpu-out-of-memory".to_owned())]);
}
