//! What is asked when, and how old it grows.

use super::*;

#[test]
fn rates_come_from_two_scrapes_and_a_reset_gives_none() {
    let mut told = Told::serving(Options::default());
    told.healthy(1000, 100.0);
    assert_eq!(told.0.server.generation.value(), None);
    told.server(3000, ServerFacts::Metrics(Ok(counted(154.0).into())));
    assert_eq!(told.0.server.generation.value(), Some(&27.0));
    told.server(4000, ServerFacts::Metrics(Ok(counted(2.0).into())));
    assert_eq!(told.0.server.generation.value(), None);
    assert!(told.0.server.generation.reason().is_some());
}

/// A command on the head and its end, as events.
fn began(run: u64, purpose: Purpose) -> EventKind {
    EventKind::CommandStarted(CommandStart {
        run: RunId(run),
        node: HEAD,
        purpose,
        command: Command::script("probe.node", "x", Vec::new(), Duration::from_secs(1)),
    })
}

fn ended(run: u64, exit: Exit, took_ms: u64) -> EventKind {
    EventKind::CommandDone(CommandDone {
        run: RunId(run),
        exit,
        stdout: Vec::new(),
        stderr: Vec::new(),
        took_ms,
    })
}

#[test]
fn a_node_is_asked_on_a_cadence_only_while_no_stream_tells_of_it() {
    let asked = |effects: &[Effect]| effects.contains(&Effect::Probe(HEAD, ProbeId::Node));
    let mut told = Told::new(Options::default());
    assert!(!asked(&told.tick(0)), "there is no connection");
    told.at(10, Source::Node(HEAD), EventKind::Link(LinkState::Up));
    assert!(!asked(&told.tick(3000)), "the stream may still begin");
    assert!(asked(&told.tick(4010)));
    assert!(!asked(&told.tick(8000)));
    assert!(asked(&told.tick(9010)));
    told.at(10_000, Source::Node(HEAD), began(1, Purpose::Watch));
    assert!(!asked(&told.tick(60_000)));
    told.at(60_000, Source::Node(HEAD), ended(1, Exit::Code(1), 50_000));
    assert!(!asked(&told.tick(63_000)), "it is begun again");
    assert!(asked(&told.tick(64_000)));
}

#[test]
fn a_slow_probe_leaves_its_node_alone_for_longer() {
    let asked = |effects: &[Effect]| effects.contains(&Effect::Probe(HEAD, ProbeId::Node));
    let took = |told: &mut Told, at, run, took_ms| {
        told.at(at, Source::Node(HEAD), began(run, Purpose::Probe(ProbeId::Node)));
        told.at(at + took_ms, Source::Node(HEAD), ended(run, Exit::Code(0), took_ms));
    };
    let mut told = Told::new(Options::default());
    told.at(0, Source::Node(HEAD), EventKind::Link(LinkState::Up));
    assert!(asked(&told.tick(5000)));
    took(&mut told, 5000, 1, 2000);
    assert!(!asked(&told.tick(14_900)));
    assert!(asked(&told.tick(15_000)));
    took(&mut told, 15_000, 2, 10_000);
    assert!(!asked(&told.tick(34_900)));
    assert!(asked(&told.tick(35_000)), "but not for ever");
    took(&mut told, 35_000, 3, 100);
    assert!(
        asked(&told.tick(40_000)),
        "and one that is quick again is asked as before"
    );
}

#[test]
fn what_a_node_said_grows_old_at_the_pace_at_which_it_tells() {
    let mut told = Told::new(Options::default());
    let pace = |told: &Told, what| every(&told.0, HEAD, what);
    let usual = |what| cadence::every(what).unwrap();
    told.at(0, Source::Node(HEAD), EventKind::Link(LinkState::Up));
    told.at(0, Source::Node(HEAD), began(1, Purpose::Watch));
    assert_eq!(pace(&told, Subject::Memory), usual(Subject::Memory));
    let slow = EventKind::Pace {
        what: Subject::Containers,
        every: Duration::from_secs(40),
    };
    told.at(10, Source::Node(HEAD), slow);
    assert_eq!(pace(&told, Subject::Containers), Duration::from_secs(40));
    let absent = Facts::Absent {
        what: Subject::Containers,
        why: "docker does not answer".to_owned(),
    };
    told.node(11, HEAD, absent);
    assert_eq!(pace(&told, Subject::Containers), usual(Subject::Containers));
    told.node(12, HEAD, Facts::Containers(ContainerFacts::default()));
    told.node(13, HEAD, Facts::Memory(MemoryFacts::default()));
    assert_eq!(pace(&told, Subject::Containers), Duration::from_secs(40));
    told.tick(7000);
    assert_eq!(
        pace(&told, Subject::Containers),
        usual(Subject::Containers),
        "it says nothing more"
    );
    told.at(7020, Source::Node(HEAD), ended(1, Exit::Code(1), 7020));
    assert_eq!(pace(&told, Subject::Containers), usual(Subject::Containers));
    assert_eq!(
        pace(&told, Subject::Memory),
        NODE_EVERY,
        "as often as the node is asked"
    );
    for (run, exit, slow) in [(2, Exit::Code(0), true), (3, Exit::TimedOut, false)] {
        told.at(7030, Source::Node(HEAD), began(run, Purpose::Probe(ProbeId::Node)));
        told.at(17_030, Source::Node(HEAD), ended(run, exit, 10_000));
        assert_eq!(
            pace(&told, Subject::Memory) > NODE_EVERY,
            slow,
            "a slow answer is one, silence is none"
        );
    }
}

#[test]
fn a_reading_that_began_earlier_does_not_take_the_place_of_a_later_one() {
    let mut told = Told::new(Options::default());
    let memory = |gib: u64| {
        Facts::Memory(MemoryFacts {
            total: Bytes(gib << 30),
            ..MemoryFacts::default()
        })
    };
    told.node(500, HEAD, memory(2));
    told.node(400, HEAD, memory(1));
    assert_eq!(told.0.observed.nodes[0].memory.value().unwrap().total, Bytes(2 << 30));
    told.node(500, HEAD, memory(3));
    assert_eq!(told.0.observed.nodes[0].memory.value().unwrap().total, Bytes(3 << 30));
}

#[test]
fn what_a_node_cannot_read_is_told_since_when_until_it_can() {
    let mut told = Told::serving(Options::default());
    let absent = || Facts::Absent {
        what: Subject::Containers,
        why: "docker does not answer".to_owned(),
    };
    told.node(30_000, HEAD, absent());
    told.node(45_000, HEAD, absent());
    let unread = told.0.nodes[0].unread.get(&Subject::Containers).unwrap();
    assert_eq!(
        (unread.why.as_str(), unread.since),
        ("docker does not answer", Stamp(30_000))
    );
    assert!(
        told.0.observed.nodes[0].containers.value().is_some(),
        "what was known stays and grows old"
    );
    told.node(60_000, HEAD, Facts::Containers(ContainerFacts::default()));
    assert!(told.0.nodes[0].unread.is_empty());
}

#[test]
fn too_little_memory_is_an_alarm_and_a_floor_of_nothing_is_none() {
    let mut told = Told::new(Options::default());
    let left = |gib: u64| {
        Facts::Memory(MemoryFacts {
            total: Bytes(121 << 30),
            available: Bytes(gib << 30),
            ..MemoryFacts::default()
        })
    };
    assert_eq!(memory_alarm(&told.0, HEAD), None, "nothing is known");
    told.node(10, HEAD, left(4));
    assert_eq!(memory_alarm(&told.0, HEAD), None);
    told.node(20, HEAD, left(3));
    assert_eq!(
        memory_alarm(&told.0, HEAD).as_deref(),
        Some("3.0 GiB of memory available, below the floor of 4 GiB")
    );
    let mut config = (*told.0.config).clone();
    config.watch.memory_floor = Bytes(0);
    told.0.config = Arc::new(config);
    assert_eq!(memory_alarm(&told.0, HEAD), None);
}

#[test]
fn what_went_on_over_a_connection_ends_with_it() {
    let mut told = Told::new(Options::default());
    told.at(0, Source::Node(HEAD), EventKind::Link(LinkState::Up));
    told.at(5, Source::Node(HEAD), began(1, Purpose::Watch));
    let error = LinkError {
        kind: LinkErrorKind::Unreachable,
        text: "gone".to_owned(),
        fix: None,
    };
    let down = LinkState::Down {
        error,
        since: Stamp(1005),
        retry_at: None,
    };
    told.at(1005, Source::Node(HEAD), EventKind::Link(down));
    let (exit, took) = told.0.commands[0].ended.clone().unwrap();
    assert_eq!((exit.word().as_str(), took), ("unknown", 1000));
    assert_eq!(told.0.nodes[0].watch, Watch::None);
}

#[test]
fn membership_goes_with_the_heads_container() {
    let mut told = Told::serving(Options::default());
    told.server(100, ServerFacts::Ray(Ok(RayFacts::default())));
    assert!(told.0.observed.ray.value().is_some());
    told.node(200, HEAD, Facts::Containers(ContainerFacts::default()));
    assert_eq!(
        told.0.observed.ray.reason(),
        Some("no container vllm-qwen35 runs on the head")
    );
}

#[test]
fn where_the_heads_containers_are_not_known_ray_is_not_waited_for() {
    let mut told = Told::serving(Options::default());
    let absent = |what| Facts::Absent {
        what,
        why: "no docker program on the node".into(),
    };
    told.node(100, NodeId(1), absent(Subject::Containers));
    assert_eq!(told.0.observed.ray.reason(), Some("not asked yet"));
    told.node(100, HEAD, absent(Subject::Containers));
    let why = Some("the containers on the head are not known: no docker program on the node");
    assert_eq!(told.0.observed.ray.reason(), why);
    told.server(200, ServerFacts::Ray(Ok(RayFacts::default())));
    assert!(told.0.observed.ray.value().is_some());
    told.node(300, HEAD, absent(Subject::Containers));
    assert!(told.0.observed.ray.value().is_some());
}

#[test]
fn a_failed_probe_keeps_what_was_known_and_explains_what_was_not() {
    let mut told = Told::serving(Options::default());
    let why = "no answer in time".to_owned();
    told.at(
        500,
        Source::Node(HEAD),
        EventKind::ProbeFailed {
            probe: ProbeId::Node,
            why: why.clone(),
        },
    );
    let seen = &told.0.observed.nodes[0];
    assert!(seen.containers.value().is_some());
    assert_eq!(seen.memory.reason(), Some(why.as_str()));
}

#[test]
fn a_probe_that_repeats_is_one_line_and_the_list_is_bounded() {
    let mut told = Told::new(Options::default());
    let start = |run, purpose| {
        let command = Command::script("probe.node", "x", Vec::new(), Duration::from_secs(1));
        EventKind::CommandStarted(CommandStart {
            run: RunId(run),
            node: HEAD,
            purpose,
            command,
        })
    };
    for run in 0..3 {
        told.at(run, Source::Node(HEAD), start(run, Purpose::Probe(ProbeId::Node)));
    }
    assert_eq!(told.0.commands.len(), 1);
    assert_eq!(told.0.commands[0].times, 3);
    let done = CommandDone {
        run: RunId(2),
        exit: Exit::Code(0),
        stdout: Vec::new(),
        stderr: Vec::new(),
        took_ms: 12,
    };
    told.at(5, Source::Node(HEAD), EventKind::CommandDone(done));
    assert_eq!(told.0.commands[0].ended, Some((Exit::Code(0), 12)));
    for run in 10..(20 + COMMANDS as u64) {
        told.at(run, Source::Node(HEAD), start(run, Purpose::Step));
    }
    assert_eq!(told.0.commands.len(), COMMANDS);
}

#[test]
fn what_the_engines_own_processes_hold_of_a_gpu_is_told_apart_from_others() {
    let process = |container: &str, gib: u64| GpuProcess {
        pid: 100,
        name: "python".into(),
        memory: Some(Bytes(gib << 30)),
        container: Some(container.into()),
        draws: false,
    };
    let mut told = Told::serving(Options::default());
    for (ms, own, other) in [(1000, 4, 1), (3000, 4, 9), (5000, 7, 9)] {
        let facts = GpuFacts {
            processes: vec![process("c1", own), process("c2", other)],
            ..GpuFacts::default()
        };
        told.node(ms, HEAD, Facts::Gpus(facts));
        let seen = told.0.nodes[0].trends.seen(Stamp(ms), None);
        let engine = seen.iter().find(|seen| seen.signal == Signal::EngineMemory);
        let moved = engine.and_then(|seen| seen.moved_at);
        assert_eq!(moved, (own == 7).then_some(Stamp(5000)), "{ms}");
    }
}

#[test]
fn what_other_consoles_have_kept_of_loads_is_read_when_a_load_begins() {
    let mut told = Told::new(Options::default());
    told.at(0, Source::Node(HEAD), EventKind::Link(LinkState::Up));
    told.node(0, HEAD, Facts::Containers(running("vllm-qwen35")));
    let load = |ended| EarlierLoad {
        key: told.0.config.load_key(),
        model: String::new(),
        ended: Wall(ended),
        stages: vec![(Stage::Weights, Duration::from_millis(10))],
    };
    let (own, others) = (load(50), [20, 50, 70, 90, 110, 130].map(load));
    told.0.earlier = vec![own];
    assert!(
        !told
            .server(1, ServerFacts::Health(Health::Refused))
            .contains(&Effect::ReadLoads)
    );
    let process = ServeProcess {
        pid: 7,
        mark: None,
        command: "vllm serve".into(),
        up_seconds: Some(1),
    };
    let serve = Facts::Serve(ServeFacts {
        processes: vec![process],
    });
    assert!(told.node(2, HEAD, serve.clone()).contains(&Effect::ReadLoads));
    assert_eq!(*told.state(), ServingState::Loading);
    assert!(!told.node(3, HEAD, serve).contains(&Effect::ReadLoads), "once a load");
    told.at(4, Source::Clock, EventKind::EarlierLoads(others.to_vec()));
    assert_eq!(told.0.earlier, others[1..], "the latest of all of them, each once");
}
