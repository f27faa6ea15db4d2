//! Ages of what a log said before the console came.

mod given_up;
mod kept;
mod life;
mod rates;
mod survived;

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;

use crate::config::{self, EXAMPLE};
use crate::domain::clock::{NodeClock, Written};
use crate::domain::event::{Event, EventKind, Facts};
use crate::domain::link::LinkState;
use crate::domain::load::{LineFact, Stage};
use crate::domain::logs::ContainerEnd;
use crate::domain::memory::MemoryFacts;
use crate::domain::serving::{Health, ServeFacts, ServeProcess, ServerFacts};
use crate::domain::units::Bytes;
use crate::domain::{NodeId, Now, Source, Stamp, Wall, When};

use super::load::verdict::Verdict;
use super::loading::{judge, part, time_left};
use super::state::ServingState;
use super::{Options, State, server_since, update};

const HEAD: NodeId = NodeId(0);

/// What the console's wall clock shows when the first of these consoles starts.
const BASE: u64 = 1_795_971_600_000;

/// An hour in milliseconds.
const HOUR: i64 = 3_600_000;

/// A console; seconds are since a moment that all of a test share.
struct Console {
    state: State,
    /// How far the head's clock is ahead, in milliseconds.
    ahead: i64,
}

fn now(ms: u64) -> Now {
    Now {
        stamp: Stamp(Stamp::START.0 + ms),
        wall: Wall(BASE + ms),
    }
}

fn at(seconds: u64) -> Stamp {
    now(seconds * 1000).stamp
}

impl Console {
    /// One that comes to a cluster whose server loads.
    fn comes(seconds: u64, ahead: i64) -> Self {
        let config = config::parse(EXAMPLE, "config.example.toml").unwrap();
        let state = State::new(Arc::new(config), Options::default(), now(seconds * 1000));
        let mut console = Self { state, ahead };
        for id in console.state.config.clone().node_ids() {
            console.tell(seconds, Source::Node(id), EventKind::Link(LinkState::Up));
        }
        console.clock(seconds);
        console.process(seconds);
        console.look(seconds);
        console
    }

    /// The model server's process is there.
    fn process(&mut self, seconds: u64) {
        let process = ServeProcess {
            pid: 7,
            mark: None,
            command: "vllm serve".into(),
            up_seconds: Some(7200 + seconds),
        };
        let processes = vec![process];
        let facts = Facts::Serve(ServeFacts { processes });
        self.tell(seconds, Source::Node(HEAD), EventKind::Facts(facts));
    }

    fn tell(&mut self, seconds: u64, source: Source, kind: EventKind) {
        let at = now(seconds * 1000);
        update(&mut self.state, Event { source, at, kind });
    }

    fn clock(&mut self, seconds: u64) {
        let clock = NodeClock {
            shows: Wall((BASE + seconds * 1000).saturating_add_signed(self.ahead)),
            within: Duration::from_millis(50),
        };
        self.tell(seconds, Source::Node(HEAD), EventKind::Clock(Ok(clock)));
    }

    /// Memory on all nodes as it always was, and a port that refuses.
    fn look(&mut self, seconds: u64) {
        for id in self.state.config.clone().node_ids() {
            let memory = MemoryFacts {
                total: Bytes(120 << 30),
                available: Bytes(60 << 30),
                ..MemoryFacts::default()
            };
            self.tell(seconds, Source::Node(id), EventKind::Facts(Facts::Memory(memory)));
        }
        self.tell(
            seconds,
            Source::Server,
            EventKind::Server(ServerFacts::Health(Health::Refused)),
        );
    }

    fn looks(&mut self, from: u64, to: u64) {
        (from..=to).step_by(2).for_each(|second| self.look(second));
    }

    /// Reads a line at `read` that Docker says was written at `written`, by the node's clock as it is.
    fn line(&mut self, read: u64, written: u64, fact: LineFact) {
        let wall = Wall((BASE + written * 1000).saturating_add_signed(self.ahead));
        self.reads(
            read,
            fact,
            Written {
                by_node: Some(wall),
                backlog: read > written + 1,
            },
        );
    }

    fn reads(&mut self, read: u64, fact: LineFact, written: Written) {
        self.tell(read, Source::Node(HEAD), EventKind::Line(fact, written));
        let seq = self.state.nodes[0].log.seq + 1;
        let news = EventKind::LogAdvanced {
            seq,
            dropped: 0,
            newest: Some(written),
            spoke: Some(written),
        };
        self.tell(read, Source::Node(HEAD), news);
    }

    fn verdict(&self) -> Verdict {
        judge(&self.state, None, self.state.now.stamp).unwrap().verdict
    }
}

fn bar(done: u64) -> LineFact {
    LineFact::Bar {
        stage: Stage::Weights,
        done,
        total: 40,
    }
}

/// A load that came to its weights at 60 s and died at 100 s.
fn dead(console: &mut Console, read: u64) {
    for (written, fact) in [(10, LineFact::NewStart), (60, bar(1)), (100, bar(2))] {
        console.line(read.max(written), written, fact);
    }
}

#[test]
fn a_console_that_comes_to_a_dead_load_says_since_when_it_has_stalled() {
    for ahead in [0, HOUR, -HOUR] {
        let mut console = Console::comes(700, ahead);
        dead(&mut console, 700);
        assert_eq!(console.state.nodes[0].log.at, Some(When::at(at(100))), "{ahead}");
        assert_eq!(server_since(&console.state), When::at(at(10)));
        assert_eq!(part(&console.state, HEAD).unwrap().since, Some(When::at(at(60))));
        // Whether anything moves, nobody has looked yet.
        console.looks(702, 708);
        assert_eq!(console.verdict(), Verdict::Early { since: at(700) }, "{ahead}");
        console.looks(710, 710);
        let stalled = Verdict::Stalled {
            since: When::at(at(100)),
        };
        assert_eq!(console.verdict(), stalled, "{ahead}");
        assert_eq!(stalled.text(at(710)), "stalled for 10m10s");
    }
}

#[test]
fn a_load_that_moves_is_not_called_stalled_by_who_comes_to_it() {
    for (mib_a_second, verdicts) in [
        (64, [Verdict::Slow, Verdict::Slow]),
        // A step takes it longer, and until then it may come.
        (12, [Verdict::Early { since: at(700) }, Verdict::Slow]),
    ] {
        let mut console = Console::comes(700, 0);
        dead(&mut console, 700);
        let mut told = Vec::new();
        for second in (702..=740).step_by(2) {
            let memory = MemoryFacts {
                total: Bytes(120 << 30),
                available: Bytes((60 << 30) - (((second - 700) * mib_a_second) << 20)),
                ..MemoryFacts::default()
            };
            console.tell(second, Source::Node(HEAD), EventKind::Facts(Facts::Memory(memory)));
            let refused = EventKind::Server(ServerFacts::Health(Health::Refused));
            console.tell(second, Source::Server, refused);
            told.push(console.verdict());
        }
        assert_eq!([&told[4], &told[19]], verdicts.each_ref(), "{mib_a_second}");
    }
}

#[test]
fn a_time_that_cannot_be_true_is_no_age() {
    // The clock was set back by an hour after these lines: Docker's times lie in the future.
    let mut console = Console::comes(700, 0);
    console.ahead = HOUR;
    dead(&mut console, 700);
    console.ahead = 0;
    assert_eq!(console.state.nodes[0].log.at, Some(When::found(at(700))));
    assert_eq!(server_since(&console.state), When::found(at(700)));
    console.looks(702, 730);
    assert_eq!(console.verdict(), Verdict::Early { since: at(700) });
    console.looks(732, 890);
    let stalled = Verdict::Stalled {
        since: When::found(at(700)),
    };
    assert_eq!(console.verdict(), stalled);
    assert_eq!(stalled.text(at(890)), "stalled for at least 3m10s");
    // One that is read as it is written is as old as its arrival, and the next by the clock as it is now.
    console.ahead = HOUR;
    console.line(900, 900, bar(3));
    assert_eq!(console.state.nodes[0].log.at, Some(When::at(at(900))));
    console.ahead = 0;
    console.line(905, 904, bar(4));
    assert_eq!(console.state.nodes[0].log.at, Some(When::at(at(904))));
}

#[test]
fn a_bar_that_stands_does_not_run_out_of_time_left() {
    let mut console = Console::comes(0, 0);
    console.line(0, 0, LineFact::NewStart);
    for done in 0..=20u64 {
        console.line(10 + done * 2, 10 + done * 2, bar(done));
    }
    let left = |console: &Console| {
        let now = console.state.now.stamp;
        let judged = judge(&console.state, None, now);
        time_left(&console.state, judged.as_ref(), now).map(|eta| eta.left.as_secs())
    };
    assert_eq!(left(&console), Ok(40));
    console.looks(51, 51);
    assert_eq!(left(&console), Ok(39));
    // The twenty that are left take as long as ever, however long the step under way goes on.
    console.looks(53, 55);
    assert_eq!(left(&console), Ok(38));
    console.looks(57, 95);
    assert_eq!(console.verdict(), Verdict::Slow);
    assert_eq!(left(&console), Err("it goes slower than it did"));
}

#[test]
fn a_log_never_goes_back_in_time() {
    let mut console = Console::comes(100, 0);
    console.line(100, 50, LineFact::NewStart);
    console.line(100, 60, bar(1));
    // Two streams overtake each other, and a clock is set back.
    console.line(100, 59, bar(2));
    assert_eq!(console.state.nodes[0].load.bar.unwrap().at, When::at(at(60)));
    console.ahead = -HOUR;
    console.line(100, 100, bar(3));
    assert_eq!(console.state.nodes[0].log.at, Some(When::at(at(60))));
}

#[test]
fn a_log_without_times_is_of_unknown_age_until_it_speaks_again() {
    let mut console = Console::comes(700, 0);
    let backlog = Written {
        by_node: None,
        backlog: true,
    };
    console.reads(700, LineFact::NewStart, backlog);
    console.reads(700, bar(1), backlog);
    console.reads(700, bar(9), backlog);
    let bar_now = console.state.nodes[0].load.bar.unwrap();
    assert_eq!((bar_now.step(), bar_now.eta()), (None, None));
    assert_eq!(part(&console.state, HEAD).unwrap().since, Some(When::found(at(700))));
    console.looks(702, 710);
    assert_eq!(console.verdict(), Verdict::Early { since: at(700) });
    console.reads(712, bar(10), Written::LIVE);
    assert_eq!(console.state.nodes[0].log.at, Some(When::at(at(712))));
    assert_eq!(console.verdict(), Verdict::Progressing);
}

#[test]
fn a_clock_that_is_not_known_gives_no_age() {
    let mut console = Console::comes(700, 0);
    console.state.observed.nodes[0].clock = crate::domain::Reading::default();
    dead(&mut console, 700);
    assert_eq!(console.state.nodes[0].log.at, Some(When::found(at(700))));
}

#[test]
fn a_server_that_failed_does_not_load_while_its_process_is_still_there() {
    let mut console = Console::comes(10, 0);
    for (second, fact) in [(11, LineFact::NewStart), (20, LineFact::Stage(Stage::Listening))] {
        console.line(second, second, fact);
    }
    console.look(21);
    assert_eq!(
        console.state.server.state,
        ServingState::Loading,
        "its port may open yet"
    );
    let health = |health| EventKind::Server(ServerFacts::Health(health));
    console.tell(22, Source::Server, health(Health::Ok));
    console.look(30);
    assert_eq!(
        console.state.server.state,
        ServingState::Stopping,
        "it may have been told to end"
    );
    console.process(31);
    assert_eq!(console.state.server.state, ServingState::Stopping);
    assert_eq!(
        (part(&console.state, HEAD), judge(&console.state, None, at(30))),
        (None, None)
    );
    console.line(31, 31, LineFact::Failure("RuntimeError: NCCL error".into()));
    console.look(32);
    assert_eq!(
        console.state.server.state,
        ServingState::Failed("RuntimeError: NCCL error".into())
    );
    // Who comes now knows it from the log, and since when.
    let mut late = Console::comes(700, HOUR);
    for (second, fact) in [
        (11, LineFact::NewStart),
        (20, LineFact::Stage(Stage::Listening)),
        (31, LineFact::Failure("RuntimeError: NCCL error".into())),
    ] {
        late.line(700, second, fact);
    }
    late.look(702);
    late.process(703);
    assert_eq!(server_since(&late.state), When::at(at(31)));
    assert_eq!(
        late.state.server.state,
        ServingState::Failed("RuntimeError: NCCL error".into())
    );
    // The same process may start from the beginning.
    console.line(40, 40, LineFact::NewStart);
    console.look(42);
    assert_eq!(console.state.server.state, ServingState::Loading);
}

#[test]
fn memory_before_an_end_is_that_of_before_it_and_not_what_the_end_has_freed() {
    let mut console = Console::comes(10, 0);
    for (second, gib) in [(12, 40), (14, 2), (16, 90), (18, 100)] {
        let memory = MemoryFacts {
            total: Bytes(120 << 30),
            available: Bytes(gib << 30),
            ..MemoryFacts::default()
        };
        console.tell(second, Source::Node(HEAD), EventKind::Facts(Facts::Memory(memory)));
    }
    let end = ContainerEnd {
        id: "c1".into(),
        name: "vllm".into(),
        code: Some(137),
        oom: false,
        available: None,
        unasked: None,
    };
    console.tell(18, Source::Node(HEAD), EventKind::ContainerEnded(end));
    let (end, _) = console.state.nodes[0].ended.as_ref().unwrap();
    assert_eq!(end.available, Some(Bytes(2 << 30)));
}

fn any_fact() -> impl Strategy<Value = LineFact> {
    let stage = prop::sample::select(vec![Stage::Distributed, Stage::Weights, Stage::KvCache, Stage::Warmup]);
    prop_oneof![
        1 => Just(LineFact::NewStart),
        4 => stage.prop_map(LineFact::Stage),
        6 => (0u64..40).prop_map(bar),
        1 => Just(LineFact::Failure("RuntimeError: x".to_owned())),
        2 => Just(LineFact::StillWaits),
    ]
}

proptest! {
    /// Who comes late knows the same of the log as who has watched it, however wrong the node's clock is.
    #[test]
    fn a_late_console_tells_the_same_ages(
        lines in prop::collection::vec((0u64..400, any_fact()), 1..40),
        ahead in -100 * HOUR..100 * HOUR,
        late in 0u64..5000,
    ) {
        let mut second = 10;
        let mut log = Vec::new();
        for (after, fact) in lines {
            second += after;
            log.push((second, fact));
        }
        let end = second + late;
        let mut watched = Console::comes(10, ahead);
        for (written, fact) in &log {
            watched.line(*written, *written, fact.clone());
        }
        let mut came = Console::comes(end, ahead);
        for (written, fact) in &log {
            came.line(end, *written, fact.clone());
        }
        prop_assert_eq!(&watched.state.nodes[0].load, &came.state.nodes[0].load);
        prop_assert_eq!(watched.state.nodes[0].log.at, came.state.nodes[0].log.at);
        let since = |console: &Console| part(&console.state, HEAD).and_then(|part| part.since);
        prop_assert_eq!(since(&watched), since(&came));
    }
}
