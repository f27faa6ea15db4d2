//! Servers that say that they failed for good, while their process stays.

use super::*;

const NO_MEMORY: &str = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.32 GiB.";

fn last_word() -> LineFact {
    LineFact::GaveUp {
        text: "EngineCore failed to start.".into(),
        sure: true,
    }
}

fn no_memory() -> [LineFact; 2] {
    let text = NO_MEMORY.to_owned();
    [LineFact::Failure(text.clone()), LineFact::GaveUp { text, sure: false }]
}

fn failed(why: &str) -> ServingState {
    ServingState::Failed(why.to_owned())
}

/// A server that has run since then.
pub(super) fn since(console: &mut Console, seconds: u64, up: u64) {
    let process = ServeProcess {
        pid: 7,
        mark: None,
        command: "vllm serve".into(),
        up_seconds: Some(up),
    };
    let facts = Facts::Serve(ServeFacts {
        processes: vec![process],
    });
    console.tell(seconds, Source::Node(HEAD), EventKind::Facts(facts));
}

/// A load that came to its weights at 20 s.
fn loading() -> Console {
    let mut console = Console::comes(0, 0);
    console.line(10, 10, LineFact::NewStart);
    console.line(20, 20, bar(1));
    console
}

#[test]
fn an_engine_that_says_that_it_failed_has_failed_at_once_though_its_process_hangs() {
    let mut console = loading();
    console.line(30, 30, last_word());
    console.look(31);
    assert_eq!(
        console.state.server.state,
        ServingState::Loading,
        "its traceback follows"
    );
    let why = "ValueError: no valid shape";
    console.line(31, 31, LineFact::Failure(why.into()));
    assert_eq!(console.state.server.state, failed(why));
    assert_eq!(server_since(&console.state), When::at(at(31)));
    assert_eq!(
        (part(&console.state, HEAD), judge(&console.state, None, at(31))),
        (None, None)
    );
    // Ranks that go on for a while, and lines that Ray hands on late, change nothing; nor does time.
    console.line(33, 32, bar(2));
    console.line(34, 33, LineFact::Stage(Stage::KvCache));
    console.looks(34, 400);
    assert_eq!(console.state.server.state, failed(why));
    // Without a traceback its own word is the reason.
    let mut bare = loading();
    bare.line(30, 30, last_word());
    bare.look(32);
    assert_eq!(bare.state.server.state, failed("EngineCore failed to start."));
    // Who comes later knows the same, and since when.
    let mut late = Console::comes(700, HOUR);
    for (second, fact) in [
        (10, LineFact::NewStart),
        (20, bar(1)),
        (30, last_word()),
        (31, LineFact::Failure(why.into())),
    ] {
        late.line(700, second, fact);
    }
    assert_eq!(late.state.server.state, failed(why));
    assert_eq!(server_since(&late.state), When::at(at(31)));
}

#[test]
fn a_gpu_without_memory_ends_a_load_that_does_not_go_on_and_is_a_doubt_until_then() {
    let mut console = loading();
    for fact in no_memory() {
        console.line(30, 30, fact);
    }
    console.looks(30, 88);
    assert_eq!(console.state.server.state, ServingState::Loading);
    let doubt = format!("its process still runs 58 s after it printed {NO_MEMORY}");
    assert_eq!(console.state.server_why().as_deref(), Some(doubt.as_str()));
    console.look(90);
    assert_eq!(console.state.server.state, failed(NO_MEMORY));
    assert_eq!(server_since(&console.state), When::at(at(30)), "it was found loading");
    // It went on: this engine has survived it.
    console.line(92, 92, bar(2));
    console.looks(92, 200);
    assert_eq!(
        (&console.state.server.state, console.state.server_why()),
        (&ServingState::Loading, None)
    );
    // Its process is gone: it died of it.
    let mut console = loading();
    for fact in no_memory() {
        console.line(30, 30, fact);
    }
    console.look(30);
    let none = Facts::Serve(ServeFacts::default());
    console.tell(31, Source::Node(HEAD), EventKind::Facts(none));
    assert_eq!(console.state.server.state, failed(NO_MEMORY));
    // Who comes later knows at once.
    let mut late = Console::comes(700, HOUR);
    late.line(700, 10, LineFact::NewStart);
    for fact in no_memory() {
        late.line(700, 30, fact);
    }
    assert_eq!(late.state.server.state, failed(NO_MEMORY));
}

#[test]
fn an_exception_whose_writer_goes_on_is_no_failure() {
    let mut console = loading();
    for fact in no_memory() {
        console.line(30, 30, fact);
    }
    console.line(31, 31, LineFact::Failure("ValueError: of another rank".into()));
    console.line(32, 32, LineFact::Outlived(NO_MEMORY.into()));
    console.looks(32, 200);
    assert_eq!(
        (&console.state.server.state, console.state.server_why()),
        (&ServingState::Loading, None)
    );
    let said: Vec<&str> = console.state.nodes[0]
        .load
        .failures
        .iter()
        .map(|(_, text)| text.as_str())
        .collect();
    assert_eq!(said, ["ValueError: of another rank"]);
    // What the engine says of itself is not taken back.
    let mut console = loading();
    console.line(30, 30, last_word());
    console.line(31, 31, LineFact::Outlived("EngineCore failed to start.".into()));
    console.look(33);
    assert_eq!(console.state.server.state, failed("EngineCore failed to start."));
}

#[test]
fn what_an_engine_survives_or_only_warns_of_ends_no_load() {
    let mut console = loading();
    console.line(
        30,
        30,
        LineFact::Failure("ModuleNotFoundError: No module named 'x'".into()),
    );
    console.looks(32, 80);
    assert_eq!(console.state.server.state, ServingState::Loading);
    // An engine that begins anew in the same server, another server in the same container, and a server that comes up.
    for fact in [
        LineFact::Stage(Stage::Starting),
        LineFact::NewStart,
        LineFact::Stage(Stage::Listening),
    ] {
        let mut console = loading();
        console.line(30, 30, last_word());
        console.look(33);
        assert_eq!(console.state.server.state, failed("EngineCore failed to start."));
        console.line(40, 40, fact.clone());
        console.look(42);
        assert_eq!(console.state.server.state, ServingState::Loading, "{fact:?}");
    }
}

#[test]
fn a_server_is_not_held_to_what_the_one_before_it_said() {
    let mut console = loading();
    console.line(30, 30, last_word());
    console.line(31, 31, LineFact::Failure("ValueError: old".into()));
    // It was started anew, and is silent until its banner.
    since(&mut console, 50, 10);
    console.look(52);
    assert_eq!(console.state.server.state, ServingState::Loading);
    let mut late = Console::comes(700, 0);
    since(&mut late, 700, 10);
    for (second, fact) in [
        (10, LineFact::NewStart),
        (30, last_word()),
        (31, LineFact::Failure("ValueError: old".into())),
    ] {
        late.line(700, second, fact);
    }
    late.look(702);
    assert_eq!(late.state.server.state, ServingState::Loading);
    // What it says itself counts, and is told by its own words.
    late.line(709, 709, LineFact::NewStart);
    late.look(710);
    late.line(710, 710, last_word());
    late.line(711, 711, LineFact::Failure("ValueError: new".into()));
    assert_eq!(late.state.server.state, failed("ValueError: new"));
}

#[test]
fn a_last_word_of_unknown_age_is_that_of_a_server_that_has_run_for_long() {
    let backlog = Written {
        by_node: None,
        backlog: true,
    };
    for (up, state) in [(20, ServingState::Loading), (3600, failed(NO_MEMORY))] {
        let mut console = Console::comes(700, 0);
        since(&mut console, 700, up);
        for fact in no_memory() {
            console.reads(700, fact, backlog);
        }
        console.looks(703, 761);
        assert_eq!(console.state.server.state, state, "{up}");
    }
}

#[test]
fn a_worker_that_gave_up_ends_the_load_of_all() {
    let mut console = loading();
    let told = |console: &mut Console, seconds: u64, fact: LineFact| {
        console.tell(seconds, Source::Node(NodeId(1)), EventKind::Line(fact, Written::LIVE));
    };
    console.look(30);
    told(&mut console, 30, last_word());
    told(&mut console, 30, LineFact::Failure("ValueError: rank 1".into()));
    assert_eq!(console.state.server.state, failed("ValueError: rank 1"));
    // It is started anew while the head still waits for it.
    told(&mut console, 40, LineFact::NewStart);
    console.look(40);
    assert_eq!(console.state.server.state, ServingState::Loading);
}

#[test]
fn a_last_word_that_may_be_of_the_server_before_is_told_as_that() {
    let backlog = Written {
        by_node: None,
        backlog: true,
    };
    let mut console = Console::comes(700, 0);
    since(&mut console, 700, 20);
    console.reads(700, LineFact::NewStart, backlog);
    for fact in no_memory() {
        console.reads(700, fact, backlog);
    }
    console.look(701);
    assert_eq!(console.state.server.state, ServingState::Loading);
    let judged = judge(&console.state, None, at(701)).unwrap();
    assert!(matches!(judged.verdict, Verdict::Early { .. }), "{judged:?}");
    assert_eq!(
        judged.advice.unwrap(),
        format!(
            "its log ends with a failure, and nothing tells when that was written, by this server or by one before it: {NO_MEMORY}; \
             read the log of spark-1 before you wait"
        )
    );
    // What follows it says that the server goes on.
    console.line(702, 702, LineFact::NewStart);
    console.look(703);
    assert_eq!(judge(&console.state, None, at(703)).unwrap().advice, None);
}
