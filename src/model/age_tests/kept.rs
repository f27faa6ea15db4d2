//! A load stays where it is whatever can't be read for a while, as long as its server is the same.

use super::given_up::since;
use super::*;
use crate::domain::container::{Container, ContainerFacts, ContainerState};
use crate::domain::event::{ProbeId, Subject};
use crate::domain::load::RankLine;
use crate::domain::logs::LogSource;
use crate::model::loading::ToldBy;

/// When the server's process began; its container is older.
const BEGAN: u64 = 5;

/// What is taken from the console or given back to it.
#[derive(Debug, Clone, Copy)]
enum Turn {
    /// Docker's client is away.
    NoDocker,
    /// It answers, and leaves out what runs: its daemon has just come up.
    NoContainer,
    Containers,
    /// The processes can't be read, can't be asked for, are none, are there.
    NoProcesses,
    ProbeFails,
    Gone,
    Processes,
    NoClock,
    Clock,
    LinkDown,
    LinkUp,
    /// The log is not there, is followed again from its end, comes again from its beginning, which is all so far or not.
    NoLog,
    Log,
    FirstLines,
    WholeLog,
    Refused,
    NoAnswer,
}

const TURNS: [Turn; 17] = [
    Turn::NoDocker,
    Turn::NoContainer,
    Turn::Containers,
    Turn::NoProcesses,
    Turn::ProbeFails,
    Turn::Gone,
    Turn::Processes,
    Turn::NoClock,
    Turn::Clock,
    Turn::LinkDown,
    Turn::LinkUp,
    Turn::NoLog,
    Turn::Log,
    Turn::FirstLines,
    Turn::WholeLog,
    Turn::Refused,
    Turn::NoAnswer,
];

fn absent(what: Subject) -> EventKind {
    let why = "no docker program on the node".to_owned();
    EventKind::Facts(Facts::Absent { what, why })
}

fn containers(there: bool) -> EventKind {
    let container = Container {
        id: "c1".into(),
        name: "vllm-qwen35".into(),
        image: "image".into(),
        state: ContainerState::Running,
        started_at: Some("2026-11-29T17:00:00Z".into()),
        up_seconds: None,
        restarts: 0,
        ours: None,
        labels: std::collections::BTreeMap::new(),
        pid: Some(100),
    };
    let containers = if there { vec![container] } else { Vec::new() };
    EventKind::Facts(Facts::Containers(ContainerFacts { containers }))
}

fn followed(there: bool) -> EventKind {
    let what = "docker logs vllm-qwen35".to_owned();
    EventKind::LogSource(match there {
        true => LogSource::Follows { what, of: 1 },
        false => LogSource::Absent {
            what,
            why: "Docker did not run".into(),
            said: None,
        },
    })
}

fn log(console: &mut Console, read: u64, lines: usize) {
    let all = [
        (10, LineFact::NewStart),
        (11, LineFact::Stage(Stage::Starting)),
        (20, bar(1)),
    ];
    for (written, fact) in all.into_iter().take(lines) {
        console.line(read.max(written), written, fact);
    }
}

impl Turn {
    fn play(self, console: &mut Console, seconds: u64) {
        let head = Source::Node(HEAD);
        let down = || LinkState::Silent { since: at(seconds) };
        let none = || EventKind::Facts(Facts::Serve(ServeFacts::default()));
        match self {
            Self::NoDocker => console.tell(seconds, head, absent(Subject::Containers)),
            Self::NoContainer => console.tell(seconds, head, containers(false)),
            Self::Containers => console.tell(seconds, head, containers(true)),
            Self::NoProcesses => console.tell(seconds, head, absent(Subject::Serve)),
            Self::ProbeFails => {
                let why = "docker did not answer in time".to_owned();
                let probe = ProbeId::Serve;
                console.tell(seconds, head, EventKind::ProbeFailed { probe, why });
            }
            Self::Gone => console.tell(seconds, head, none()),
            Self::Processes => since(console, seconds, seconds - BEGAN),
            Self::NoClock => console.tell(seconds, head, EventKind::Clock(Err("no date".into()))),
            Self::Clock => console.clock(seconds),
            Self::LinkDown => console.tell(seconds, head, EventKind::Link(down())),
            Self::LinkUp => console.tell(seconds, head, EventKind::Link(LinkState::Up)),
            Self::NoLog => console.tell(seconds, head, followed(false)),
            Self::Log => console.tell(seconds, head, followed(true)),
            Self::FirstLines => log(console, seconds, 2),
            Self::WholeLog => log(console, seconds, 3),
            Self::Refused => console.look(seconds),
            Self::NoAnswer => {
                let health = ServerFacts::Health(Health::Unreachable("no answer".into()));
                console.tell(seconds, Source::Server, EventKind::Server(health));
            }
        }
    }
}

/// A console that has seen a load come to the first of its shards.
fn loading() -> Console {
    let mut console = Console::comes(0, 0);
    console.tell(6, Source::Node(HEAD), followed(true));
    console.tell(6, Source::Node(HEAD), containers(true));
    since(&mut console, 6, 1);
    log(&mut console, 10, 3);
    console.look(22);
    console
}

fn shown(console: &Console) -> Option<(Stage, Option<(u64, u64)>)> {
    let part = part(&console.state, HEAD)?;
    Some((part.stage, part.bar.map(|bar| (bar.done, bar.total))))
}

const THERE: Option<(Stage, Option<(u64, u64)>)> = Some((Stage::Weights, Some((1, 40))));

/// Plays the turns; once all is there again the load must be where it was, and while its server is seen it must never be shown elsewhere.
fn kept(turns: &[Turn]) -> Result<(), String> {
    let mut console = loading();
    assert_eq!(shown(&console), THERE);
    let mut second = 30;
    let back = [
        Turn::LinkUp,
        Turn::Containers,
        Turn::Processes,
        Turn::Clock,
        Turn::Log,
        Turn::Refused,
    ];
    for (n, turn) in turns.iter().chain(&back).enumerate() {
        second += 3;
        turn.play(&mut console, second);
        let runs = console.state.observed.nodes[0].serve.value();
        let runs = runs.is_some_and(|s| !s.processes.is_empty());
        if runs && shown(&console) != THERE {
            return Err(format!("{:?} after {turn:?}, the turn {n}", shown(&console)));
        }
    }
    assert_eq!(console.state.server.state, ServingState::Loading);
    Ok(())
}

#[test]
fn a_container_that_a_list_leaves_out_once_takes_no_load_along() {
    for turns in [
        &[Turn::NoDocker, Turn::NoContainer, Turn::Processes][..],
        &[Turn::Gone, Turn::NoDocker, Turn::Processes],
        &[Turn::NoLog, Turn::Log, Turn::FirstLines],
        &[Turn::Gone, Turn::FirstLines, Turn::Processes],
        &[Turn::Gone, Turn::Gone, Turn::NoClock, Turn::WholeLog, Turn::Processes],
    ] {
        assert_eq!(kept(turns), Ok(()), "{turns:?}");
    }
    // Another one of the same number has a load of its own.
    let mut console = loading();
    Turn::Gone.play(&mut console, 40);
    since(&mut console, 50, 3);
    console.look(50);
    assert_eq!(shown(&console), Some((Stage::Starting, None)));
    console.line(52, 52, LineFact::NewStart);
    console.line(53, 53, bar(0));
    assert_eq!(shown(&console), Some((Stage::Weights, Some((0, 40)))));
}

proptest! {
    #[test]
    fn a_load_never_falls_while_its_server_is_the_same(turns in prop::collection::vec(prop::sample::select(&TURNS[..]), 0..40)) {
        prop_assert_eq!(kept(&turns), Ok(()));
    }
}

#[test]
fn a_workers_lines_that_come_late_never_take_it_back() {
    let mut console = Console::comes(0, 0);
    let worker = NodeId(1);
    let rank = |address: Option<&str>, stage| {
        LineFact::Rank(RankLine {
            name: None,
            rank: Some(u32::from(address.is_some())),
            pid: Some(120),
            address: address.map(str::to_owned),
            stage: Some(stage),
            bar: None,
        })
    };
    let own = console.state.config.node(worker).unwrap().fabric_address.clone();
    console.line(1, 1, LineFact::NewStart);
    // The driver tells what it does at once, and of the worker nothing, or what is long over.
    let mut seen = Vec::new();
    for (second, whole, late) in [
        (10, Stage::Distributed, None),
        (20, Stage::Weights, Some(Stage::Distributed)),
        (30, Stage::Weights, Some(Stage::Download)),
        (40, Stage::KvCache, Some(Stage::Weights)),
        (50, Stage::Graphs, Some(Stage::KvCache)),
        (60, Stage::Graphs, Some(Stage::Graphs)),
    ] {
        console.line(second, second, LineFact::Stage(whole));
        seen.extend(part(&console.state, worker).map(|p| (p.stage, p.told_by)));
        if let Some(late) = late {
            console.line(second + 1, second + 1, rank(Some(&own), late));
            seen.extend(part(&console.state, worker).map(|p| (p.stage, p.told_by)));
        }
    }
    assert!(seen.is_sorted_by_key(|(stage, _)| *stage), "{seen:?}");
    let stages: Vec<Stage> = seen.iter().map(|(stage, _)| *stage).collect();
    let whole = [Stage::Distributed, Stage::Weights, Stage::KvCache, Stage::Graphs];
    assert!(whole.iter().all(|stage| stages.contains(stage)), "{seen:?}");
    assert_eq!(seen.last(), Some(&(Stage::Graphs, ToldBy::HeadLog)));
    assert_eq!(seen.get(2), Some(&(Stage::Weights, ToldBy::Inferred)));
}
