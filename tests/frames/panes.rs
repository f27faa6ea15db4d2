//! Each pane with nothing known, one node, many, an error and stale readings, at three sizes and in ASCII.

use std::fmt::Write;
use std::time::Duration;

use bringup::domain::bench::{BenchEvent, Tally};
use bringup::domain::container::{ContainerFacts, ContainerState};
use bringup::domain::event::{Event, EventKind, Facts, ProbeId, Subject};
use bringup::domain::gpu::GpuFacts;
use bringup::domain::image::InsideFacts;
use bringup::domain::intent::Pane;
use bringup::domain::link::{LinkError, LinkErrorKind, LinkState};
use bringup::domain::load::{EarlierLoad, LineFact, RankLine, Stage};
use bringup::domain::logs::LogFlow;
use bringup::domain::problem::Problem;
use bringup::domain::ray::{PlacementGroup, RayNode, RayStatus, RayVia, StatusFailure};
use bringup::domain::serving::{Health, MetricsOf, MetricsSample, ServeFacts, ServeProcess, ServerFacts};
use bringup::domain::units::{Bytes, Percent};
use bringup::domain::{NodeId, Now, Reading, Source, Stamp, When};
use bringup::log::LogWindows;
use bringup::measure::window::{Acceptance, Quantiles};
use bringup::measure::{Figures, Quantile};
use bringup::model::load::Load;
use bringup::model::load::verdict::Verdict;
use bringup::model::loading;
use bringup::model::state::{LastError, Notice, ServingState, Unread};
use bringup::model::{State, update};
use bringup::view::Glyphs;

use crate::build::*;
use crate::shot::{look, shot, shot_with};

const SIZES: [(u16, u16); 3] = [(80, 24), (120, 40), (200, 60)];

/// Snapshots of one pane in all the given states.
fn snapshot(pane: Pane, states: Vec<(&str, State, LogWindows)>) {
    let name = match pane {
        Pane::Node(_) => "node",
        Pane::Ray => "ray",
        Pane::Serving => "server",
        Pane::Bench => "bench",
    };
    for (width, height) in SIZES {
        let drawn = draw_all(pane, &states, (width, height), Glyphs::Unicode);
        insta::assert_snapshot!(format!("{name}_{width}x{height}"), drawn);
    }
    let drawn = draw_all(pane, &states, (120, 40), Glyphs::Ascii);
    assert!(drawn.is_ascii(), "{drawn}");
    insta::assert_snapshot!(format!("{name}_ascii"), drawn);
}

fn draw_all(pane: Pane, states: &[(&str, State, LogWindows)], size: (u16, u16), glyphs: Glyphs) -> String {
    let mut all = String::new();
    for (name, state, logs) in states {
        let shot = shot_with(state, logs, &look(glyphs), size);
        let _ = write!(all, "{name}\n{}\n\n", shot.pane(pane));
    }
    all
}

/// A state with the logs of the real engine.
fn with_logs(name: &str, mut state: State) -> (&str, State, LogWindows) {
    let logs = logs(&mut state);
    (name, state, logs)
}

/// A state without a log.
fn bare(name: &str, state: State) -> (&str, State, LogWindows) {
    (name, state, LogWindows::default())
}

/// Makes every reading `seconds` old.
fn age_all(state: &mut State, seconds: u64) {
    fn old<T: Clone>(reading: &mut Reading<T>, at: Stamp) {
        if let Some(value) = reading.value().cloned() {
            *reading = Reading::known(value, at);
        }
    }
    let at = ago(seconds).stamp;
    for node in &mut state.observed.nodes {
        old(&mut node.memory, at);
        old(&mut node.gpus, at);
        old(&mut node.containers, at);
    }
    old(&mut state.observed.ray, at);
    old(&mut state.observed.server.health, at);
    old(&mut state.observed.server.metrics, at);
    old(&mut state.server.generation, at);
    old(&mut state.server.prompt, at);
    let figures = &mut state.server.figures;
    for times in [&mut figures.ttft, &mut figures.itl, &mut figures.queue] {
        old(times, at);
    }
    old(&mut figures.prefix_hits, at);
    old(&mut figures.preemptions, at);
}

fn known<T>(value: T) -> Reading<T> {
    Reading::known(value, ago(1).stamp)
}

/// A request has run for so long, and no count has moved.
fn still(state: &mut State, seconds: u64) {
    let scrape = MetricsSample {
        of: Some(MetricsOf::Vllm),
        generation_tokens: Some(9.0),
        running: Some(1.0),
        ..MetricsSample::default()
    };
    let flow = &mut state.server.flow;
    flow.take(None, &scrape, ago(seconds + 1).stamp);
    flow.take(Some(&scrape), &scrape, ago(1).stamp);
}

/// A request has run for so long without a token, and its prefill goes on.
fn prefills(state: &mut State, seconds: u64) {
    let scrape = |percent| MetricsSample {
        of: Some(MetricsOf::Vllm),
        generation_tokens: Some(9.0),
        running: Some(1.0),
        kv_cache: Some(Percent(percent)),
        ..MetricsSample::default()
    };
    let flow = &mut state.server.flow;
    flow.take(None, &scrape(3.0), ago(seconds + 1).stamp);
    flow.take(Some(&scrape(3.0)), &scrape(3.4), ago(1).stamp);
}

fn refused() -> LinkState {
    LinkState::Down {
        error: LinkError {
            kind: LinkErrorKind::Refused,
            text: "spark-1 refused every key: ~/.ssh/id_ed25519; a double ssh used the jump host's key, not this one"
                .into(),
            fix: Some(
                "ssh-copy-id -i ~/.ssh/id_ed25519.pub -o ProxyJump=aurora@10.1.230.180 aurora@192.168.200.12".into(),
            ),
        },
        since: ago(95).stamp,
        retry_at: Some(NOW.stamp.plus(Duration::from_secs(12))),
    }
}

#[test]
fn node() {
    let mut dead = loading(example());
    let node = &mut dead.observed.nodes[0];
    if let Reading::Known { value, .. } = &mut node.containers {
        value.containers[0].state = ContainerState::Exited { code: 137, oom: true };
        value.containers[0].restarts = 2;
        value.containers[0].ours = None;
    }
    let failure = LineFact::Failure("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.32 GiB.".into());
    dead.nodes[0].load.line(failure, When::at(ago(9).stamp));
    let unaccounted =
        Problem::error("33 GiB are in use and no process holds them").with_fix("echo 3 > /proc/sys/vm/drop_caches");
    dead.nodes[0].problems = vec![
        unaccounted,
        Problem::warning("nvidia-smi answered late"),
        Problem::warning("x"),
    ];
    let mut short = loading(example());
    if let Reading::Known { value, .. } = &mut short.observed.nodes[0].memory {
        // A process that is gone has left 33 GiB, and the node comes to its limit.
        value.available = Bytes::from_mib(3_174);
        value.free = Some(Bytes::from_mib(1_126));
        value.cached = Some(Bytes::from_mib(2_253));
        value.pressure = Some(Percent(12.0));
    }
    if let Reading::Known { value, .. } = &mut short.observed.nodes[0].gpus {
        value.processes[0].memory = Some(Bytes::from_mib(79_000));
    }
    let hangs = "docker does not answer".to_owned();
    short.nodes[0].problems = vec![Problem::error(hangs.clone())];
    let since = ago(123).stamp;
    short.nodes[0]
        .unread
        .insert(Subject::Containers, Unread { why: hangs, since });
    let mut many = loading(example());
    many.observed.nodes[0].gpus = read(GpuFacts {
        gpus: (0..8).map(|i| h200(i, 71 + u64::from(i))).collect(),
        ..GpuFacts::default()
    });
    let mut four = loading(example());
    four.observed.nodes[0].gpus = read(GpuFacts {
        gpus: (0..4).map(|i| h200(i, 12)).collect(),
        ..GpuFacts::default()
    });
    let mut of_eight = example();
    of_eight.nodes[0].gpus = 8;
    let mut gone = loading(of_eight);
    gone.observed.nodes[0].gpus = read(GpuFacts {
        gpus: (0..7).map(|i| h200(i, 71)).collect(),
        ..GpuFacts::default()
    });
    let mut down = idle(example());
    down.observed.nodes[0] = Default::default();
    down.observed.nodes[0].link = refused();
    let mut stale = loading(example());
    age_all(&mut stale, 42);
    stale.observed.nodes[0].link = LinkState::Silent { since: ago(41).stamp };
    stale.nodes[0].load.progress_at = Some(When::at(ago(700).stamp));
    stale.screen.held.insert(NodeId(0), 9);
    snapshot(
        Pane::Node(0),
        vec![
            bare("nothing known", empty(example())),
            bare("idle", idle(example())),
            with_logs("one GPU of unified memory, loading", loading(example())),
            with_logs("eight GPUs", many),
            with_logs("four GPUs", four),
            with_logs("seven of eight GPUs", gone),
            bare("refused", down),
            with_logs("container killed, load failed", dead),
            with_logs("silent and stale", stale),
            with_logs("short of memory, and Docker hangs", short),
        ],
    );
}

#[test]
fn ray() {
    let mut wrong = loading(example());
    if let Reading::Known { value, .. } = &mut wrong.observed.ray {
        value.nodes[0].gpus = 0.0;
        value.nodes[1].address = "192.168.201.13".into();
        value.nodes.push(member("10.9.9.9", false));
    }
    second_interface(&mut wrong, 1, "enP2p1s0f1np1", "192.168.201.13");
    let mut more = loading(example());
    if let Reading::Known { value, .. } = &mut more.observed.ray {
        value.nodes[1].gpus = 2.0;
    }
    let mut gone = loading(example());
    if let Reading::Known { value, .. } = &mut gone.observed.ray {
        value.nodes[1].alive = false;
        value.nodes[1].message = Some("Unexpected termination of raylet".into());
    }
    gone.observed.nodes[1].link = refused();
    let mut stale = loading(example());
    age_all(&mut stale, 42);
    let mut silent = loading(example());
    silent.observed.nodes[1].link = LinkState::Silent { since: ago(7).stamp };
    let mut back = loading(example());
    if let Reading::Known { value, .. } = &mut back.observed.ray {
        for minutes in [9, 40] {
            value.nodes.push(RayNode {
                id: minutes.to_string(),
                alive: false,
                ended_ms: Some(NOW.wall.0 - minutes * 60_000),
                ..member("192.168.200.13", false)
            });
        }
        value.nodes.push(RayNode {
            alive: false,
            ..member("10.9.9.9", false)
        });
        value.nodes[1].gpus = 0.0;
        value.nodes[1].devices = vec![("TPU".into(), 1.0)];
    }
    let mut twice = loading(example());
    if let Reading::Known { value, .. } = &mut twice.observed.ray {
        value.nodes.push(RayNode {
            id: "7d3f0c55aa".into(),
            started_ms: Some(NOW.wall.0 - 60_000),
            ..member("192.168.200.13", false)
        });
    }
    snapshot(
        Pane::Ray,
        vec![
            bare("a worker registered twice", twice),
            bare("nothing known", empty(example())),
            bare("one", loading(with_workers(0))),
            bare("two", loading(example())),
            bare("many", loading(with_workers(7))),
            bare("wrong address, no GPU, a stranger", wrong),
            bare("more GPUs than expected", more),
            bare("a worker gone", gone),
            bare("stale", stale),
            bare("silent while Ray says alive", silent),
            bare("a worker in its third life, counted as something else", back),
            bare("a group waits for an address that nobody has", waits()),
            bare("from the container, versions differ", second_source()),
            bare("nothing but ray status", last_resort()),
            bare("ranks without Ray", ranks()),
        ],
    );
}

/// A server waits for GPUs; it was told another address than Ray.
fn waits() -> State {
    let mut state = loading(example());
    let bundle = |words: &[(&str, f64)]| words.iter().map(|(k, n)| ((*k).to_owned(), *n)).collect();
    if let Reading::Known { value, .. } = &mut state.observed.ray {
        value.pending = vec![PlacementGroup {
            id: "39".into(),
            state: "PENDING".into(),
            bundles: vec![
                bundle(&[("GPU", 1.0), ("node:192.168.50.192", 0.001)]),
                bundle(&[("GPU", 1.0)]),
            ],
            asked_ms: Some(NOW.wall.0 - 310_000),
            infeasible: true,
        }];
    }
    state
}

/// Takes an event of the head at a moment, and sets the time back to now.
fn tell(state: &mut State, at: Now, kind: EventKind) {
    let source = Source::Node(NodeId(0));
    update(state, Event { source, at, kind });
    state.now = NOW;
}

/// The dashboard refuses; the worker's container holds another Ray.
fn second_source() -> State {
    let mut state = loading(example());
    let why = "connection refused".to_owned();
    tell(&mut state, ago(130), EventKind::Server(ServerFacts::Ray(Err(why))));
    if let Reading::Known { value, .. } = &mut state.observed.ray {
        value.via = RayVia::Container;
        value.python = Some("3.12.3".into());
    }
    state.observed.nodes[1].inside = read(InsideFacts {
        ray: Some("2.44.1".into()),
        python: Some("3.12.3".into()),
    });
    state
}

/// No better source answers.
fn last_resort() -> State {
    let mut state = loading(example());
    state.observed.ray = Reading::absent("python3 is not in the container");
    let why = "connection refused".to_owned();
    tell(&mut state, ago(130), EventKind::Server(ServerFacts::Ray(Err(why))));
    let failed = EventKind::ProbeFailed {
        probe: ProbeId::Ray,
        why: "python3 is not in the container".into(),
    };
    tell(&mut state, ago(125), failed);
    let status = RayStatus {
        nodes: 2,
        gpus: Some((0.0, 2.0)),
        failures: vec![StatusFailure {
            text: "RayletUnexpectedlyDied".into(),
            address: Some("192.168.200.13".into()),
        }],
        ..RayStatus::default()
    };
    tell(&mut state, ago(40), EventKind::Facts(Facts::RayStatus(status)));
    state
}

/// The server was started with ranks of its own.
fn ranks() -> State {
    let mut state = loading(example());
    state.observed.ray = Reading::absent("Ray does not listen in the head's container");
    state.observed.nodes[0].serve = read(ServeFacts {
        processes: vec![ServeProcess {
            pid: 7,
            mark: None,
            command: "vllm serve m --nnodes 2 --node-rank 0 --master-addr 192.168.200.12".into(),
            up_seconds: Some(400),
        }],
    });
    let line = RankLine {
        rank: Some(0),
        ..RankLine::default()
    };
    state.nodes[0].load.line(LineFact::Rank(line), When::at(ago(300).stamp));
    state.observed.nodes[1].containers = read(ContainerFacts::default());
    state
}

#[test]
fn a_worker_that_was_stopped_is_named_with_its_cure_and_the_load_is_told_as_it_ended() {
    let mut state = ready(example());
    let mut containers = state.observed.nodes[1].containers.value().unwrap().clone();
    containers.containers[0].state = ContainerState::Exited { code: 0, oom: false };
    let at = state.now;
    let (source, kind) = (Source::Node(NodeId(1)), EventKind::Facts(Facts::Containers(containers)));
    update(&mut state, Event { source, at, kind });
    let text = shot(&state, &LogWindows::default(), (120, 40)).pane(Pane::Serving);
    for part in [
        "✗ degraded",
        "✗ the container vllm-qwen35 of spark-2 was stopped",
        "fix: start again what is missing with U or",
        "Docker's events tell when it ended, not by whom",
        "on spark-2: docker events --since 24h",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    assert_eq!(text.matches("y copies").count(), 1, "{text}");
    state.server.state = ServingState::Failed("it died".into());
    state.nodes[1].load = Load::default();
    for (node, line) in [
        (0, "load       was done, and the server has failed since"),
        (1, "load       failed with the server"),
    ] {
        let text = shot(&state, &LogWindows::default(), (120, 40)).pane(Pane::Node(node));
        assert!(text.contains(line), "{line}\n{text}");
    }
    state.nodes[0].load.stage = None;
    state.nodes[0].load.entered = vec![(Stage::Weights, When::at(at.stamp))];
    let text = shot(&state, &LogWindows::default(), (120, 40)).pane(Pane::Node(0));
    assert!(text.contains("load       failed at: weights"), "{text}");
}

#[test]
fn server() {
    let mut down = idle(example());
    down.server.generation = Reading::absent("no model server runs");
    let mut failed = loading(example());
    failed.server.state =
        ServingState::Failed("RuntimeError: No supported CUDA architectures found for major versions [10].".into());
    failed.observed.server.health = read(Health::Unreachable("no answer in 3 s".into()));
    let mut caused = failed.clone();
    says(
        &mut caused,
        NodeId(1),
        40,
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
    );
    let mut stuck = loading(example());
    says(
        &mut stuck,
        NodeId(0),
        70,
        "Waiting for creating a placement group of specs for 70 seconds. specs=[{'node:10.1.230.180': 0.001, 'GPU': 1.0}, {'GPU': 1.0}]",
    );
    let mut degraded = ready(example());
    degraded.server.state = ServingState::Degraded("a worker left the cluster".into());
    let mut waiting = ready(example());
    if let Reading::Known { value, .. } = &mut waiting.observed.server.metrics {
        value.waiting = Some(12.0);
        value.kv_cache = None;
    }
    let mut drafting = ready(example());
    if let Reading::Known { value, .. } = &mut drafting.observed.server.metrics {
        value.accepted_tokens = Some(900.0);
    }
    drafting.server.figures.acceptance = known(Acceptance {
        length: Some(2.71),
        rate: Some(0.57),
    });
    drafting.server.figures.preemptions = known(3.0);
    let mut quiet = ready(example());
    quiet.server.figures = Figures {
        generation: known(0.0),
        preemptions: known(0.0),
        span: Duration::from_secs(60),
        ..Figures::absent("none in the last 60 s")
    };
    let mut broken = ready(example());
    broken.observed.server.metrics = Reading::absent("500: Internal Server Error");
    broken.server.generation = Reading::absent("500: Internal Server Error");
    broken.server.prompt = Reading::absent("500: Internal Server Error");
    broken.server.figures = Figures::absent("500: Internal Server Error");
    let mut doubtful = ready(example());
    still(&mut doubtful, 40);
    let mut long = ready(example());
    prefills(&mut long, 40);
    let mut young = ready(example());
    young.server.live = Duration::from_secs(3);
    let mut stale = ready(example());
    age_all(&mut stale, 42);
    snapshot(
        Pane::Serving,
        vec![
            bare("nothing known", empty(example())),
            bare("down", down),
            bare("loading", loading(example())),
            bare("ready", ready(example())),
            bare("requests wait, no KV figure", waiting),
            bare("tokens are drafted", drafting),
            bare("no request for a while", quiet),
            bare("no metrics", broken),
            bare("nothing moves, and it may be a prefill", doubtful),
            bare("no token for long, in a prefill", long),
            bare("the rates cover three seconds yet", young),
            bare("degraded", degraded),
            bare("failed", failed),
            bare("failed, and it is known why", caused),
            bare("loading, and it is known why it comes no further", stuck),
            bare("stale", stale),
        ],
    );
}

#[test]
fn a_time_of_few_requests_says_of_how_many_it_is() {
    let mut state = ready(example());
    let at = state.now.stamp;
    let mut pane = |count, size| {
        let (p50, p95) = (Quantile::At(0.175), Quantile::At(0.2425));
        state.server.figures.ttft = Reading::known(Quantiles { p50, p95, count }, at);
        shot(&state, &LogWindows::default(), size).pane(Pane::Serving)
    };
    for (count, size, want) in [
        (1.0, (120, 40), "TTFT p50 175 ms of 1 request "),
        (1.0, (80, 24), "TTFT p50 175 ms of 1 request "),
        (4.0, (120, 40), "TTFT p50 175 ms of 4 requests "),
        (5.0, (120, 40), "TTFT p50 175 ms p95 242 ms"),
    ] {
        let pane = pane(count, size);
        assert!(pane.contains(want), "{want}\n{pane}");
    }
}

#[test]
fn bench_pane() {
    let with = |done| {
        let mut state = ready(example());
        state.bench = Some(bench(done));
        state
    };
    let mut done = with(32);
    let mut failed = with(5);
    let mut errors = with(5);
    let mut partly = with(5);
    let mut cancelled = with(5);
    if let Some(bench) = &mut cancelled.bench {
        bench.cancelled = true;
        bench.take(BenchEvent::Failed("cancelled".into()));
    }
    let title = shot(&cancelled, &LogWindows::default(), (120, 40)).pane(Pane::Bench);
    assert!(title.contains("■ cancelled") && !title.contains('✗'), "{title}");
    for (state, events) in [
        (
            &mut done,
            vec![
                BenchEvent::Done {
                    duration: Duration::from_secs(77),
                },
                BenchEvent::Tally(Tally {
                    server_tokens: Some(8_201),
                    other_tokens: 600,
                }),
                BenchEvent::Saved("/home/op/.local/state/bringup/results/2026-11-29T12-31-07.json".into()),
            ],
        ),
        (&mut failed, vec![BenchEvent::Failed("the tunnel is gone".into())]),
        (&mut errors, vec![BenchEvent::Request(broken_request())]),
        (
            &mut partly,
            vec![
                BenchEvent::Request(broken_request()),
                BenchEvent::Request(broken_request()),
                BenchEvent::Done {
                    duration: Duration::from_secs(14),
                },
            ],
        ),
    ] {
        if let Some(bench) = &mut state.bench {
            events.into_iter().for_each(|e| bench.take(e));
        }
    }
    for size in [(120, 40), (80, 24)] {
        let pane = shot(&partly, &LogWindows::default(), size).pane(Pane::Bench);
        for part in [
            "✗ 2 of 7 requests failed",
            "✗ 2 x EngineDeadError",
            "of the 5 requests that succeeded",
        ] {
            assert!(pane.contains(part), "{part}\n{pane}");
        }
        assert!(!pane.contains('✓'), "{pane}");
    }
    snapshot(
        Pane::Bench,
        vec![
            bare("started", with(0)),
            bare("one over", with(1)),
            bare("half way", with(17)),
            bare("done", done),
            bare("a request failed", errors),
            bare("done, and requests failed", partly.clone()),
            bare("failed", failed),
            bare("cancelled", cancelled),
        ],
    );
}

#[test]
fn a_test_that_is_over_says_what_the_server_counted_and_where_its_result_is() {
    let mut state = ready(example());
    let mut test = bench(32);
    let file = format!("/home/{}/results/2026-11-29T12-31-07.json", "long-name/".repeat(9));
    test.take(BenchEvent::Tally(Tally {
        server_tokens: Some(8_201),
        other_tokens: 600,
    }));
    test.take(BenchEvent::Done {
        duration: Duration::from_secs(77),
    });
    test.take(BenchEvent::Saved(file.clone()));
    state.bench = Some(test);
    let pane = |state: &State| shot(state, &LogWindows::default(), (80, 24)).pane(Pane::Bench);
    let low = pane(&state);
    for part in ["8 192 tokens", "server counted 8 201", "TTFT", "32/32", "saved"] {
        assert!(low.contains(part), "{part}\n{low}");
    }
    state.screen.zoom = true;
    state.screen.focus = Pane::Bench;
    let whole: String = pane(&state).split_whitespace().collect();
    assert!(whole.contains(&file), "{whole}");
}

#[test]
fn a_node_that_is_tried_again_still_says_why_the_last_try_failed() {
    let mut state = empty(example());
    let LinkState::Down { error, .. } = refused() else {
        panic!("it is down")
    };
    for (i, node) in state.observed.nodes.iter_mut().enumerate() {
        node.link = LinkState::Connecting;
        state.nodes[i].last_error = Some(LastError {
            error: error.clone(),
            at: ago(4).stamp,
            since: When::at(ago(40).stamp),
        });
    }
    let text = shot(&state, &LogWindows::default(), (120, 40)).text();
    for part in [
        "4 s ago: spark-1 refused every key",
        "nothing can be reached: the panes say why; n tries again now",
        "nothing known: spark-1 can't be reached",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    assert!(!text.contains("not asked yet"), "{text}");
}

#[test]
fn a_notice_that_answers_a_key_goes_with_the_next_key_and_with_what_it_is_about() {
    let shows = |source, pressed: Now, since: Now| {
        let mut state = ready(example());
        state.pressed = pressed.stamp;
        state.server.since = since.stamp;
        state.notices.push_back(Notice {
            at: ago(5),
            source,
            text: "a word".into(),
        });
        shot(&state, &LogWindows::default(), (120, 40))
            .text()
            .contains("a word")
    };
    assert!(shows(Source::Operator, ago(5), ago(60)));
    assert!(!shows(Source::Operator, ago(3), ago(60)));
    assert!(!shows(Source::Operator, ago(5), ago(2)));
    // What nobody asked for is to be read.
    assert!(shows(Source::Bench, ago(3), ago(2)));
}

#[test]
fn a_pane_without_room_for_its_log_keeps_its_foot() {
    let mut state = idle(example());
    state.screen.held.insert(NodeId(0), 0);
    state.screen.zoom = true;
    for height in 0..20 {
        let text = shot(&state, &LogWindows::default(), (90, height)).text();
        let over = text.lines().find(|l| l.contains("no log") && l.contains(['─', '━']));
        assert_eq!(over, None, "{height}");
    }
}

#[test]
fn a_server_that_was_found_ready_is_not_said_to_be_so_since_then() {
    let mut state = ready(example());
    let text = |state: &State| shot(state, &LogWindows::default(), (120, 40)).text();
    assert!(text(&state).contains("ready 3m04s") && !text(&state).contains("known for"));
    state.server.found = true;
    // Its log says since when it listens, and no more than that.
    assert!(text(&state).contains("ready, listens for 3m10s"), "{}", text(&state));
    state.nodes[0].load.stage = None;
    assert!(text(&state).contains("ready, known for 3m04s"), "{}", text(&state));
}

#[test]
fn a_membership_that_is_old_is_marked_so_and_one_with_other_gpus_is_none() {
    let top = |state: &State| {
        let text = shot(state, &LogWindows::default(), (120, 40)).text();
        text.lines().next().unwrap_or_default().to_owned()
    };
    let mut state = loading(example());
    assert!(top(&state).contains("head ✓ ── workers 1/1 ✓"), "{}", top(&state));
    let ray = state.observed.ray.value().cloned().expect("it is known");
    state.observed.ray = Reading::known(ray.clone(), ago(60).stamp);
    assert!(
        top(&state).contains("head ? ── workers 1/1 ? 1m00s ago"),
        "{}",
        top(&state)
    );
    let mut more = ray;
    more.nodes[1].gpus = 2.0;
    state.observed.ray = read(more);
    assert!(top(&state).contains("head ✓ ── workers 0/1 ▸"), "{}", top(&state));
    age_all(&mut state, 42);
    assert!(top(&state).contains("head ? ── workers 0/1 ?"), "{}", top(&state));
}

#[test]
fn a_server_that_is_gone_has_no_load() {
    let mut state = ready(example());
    let text = |state: &State| shot(state, &LogWindows::default(), (120, 40)).text();
    assert!(text(&state).contains("done, a token came back"));
    state.server.state = ServingState::Down;
    assert!(!text(&state).contains("done, "));
}

#[test]
fn a_load_says_how_it_goes_and_how_long_it_takes_and_from_what() {
    let text = |state: &State| shot(state, &LogWindows::default(), (120, 40)).text();
    let mut state = loading(example());
    let seen = text(&state);
    assert!(
        seen.contains("about 5 min left of weights, from the current rate"),
        "{seen}"
    );
    assert!(seen.contains("58 % inferred") && seen.contains("progressing"), "{seen}");
    // The line on top says so as well, of a time that is not the server's, however little room it has.
    for size in [(200, 60), (120, 40), (80, 24), (40, 12)] {
        let seen = shot(&state, &LogWindows::default(), size).text();
        let top = seen.lines().find(|line| line.contains("weights 25/41"));
        assert!(
            top.is_some_and(|top| top.contains("5 min of it left")),
            "{size:?} {seen}"
        );
    }
    let stage = |stage, minutes: u64| (stage, Duration::from_secs(minutes * 60));
    state.earlier = vec![EarlierLoad {
        key: "k".into(),
        model: "m".into(),
        ended: NOW.wall,
        stages: vec![stage(Stage::Weights, 10), stage(Stage::Compile, 4)],
    }];
    assert!(text(&state).contains("about 8 min left, from 1 earlier load"));
    // Nothing moves any more, on no node.
    let mut now = NOW;
    now.stamp.0 += 200_000;
    for node in &mut state.nodes {
        let memory = state.observed.nodes[0].memory.value().copied().unwrap();
        for second in (2..=200).step_by(2) {
            node.trends.memory(&memory, Stamp(NOW.stamp.0 + second * 1000));
        }
    }
    for node in &mut state.observed.nodes {
        node.memory = Reading::known(node.memory.value().copied().unwrap(), now.stamp);
    }
    let judged = loading::judge(&state, None, now.stamp).unwrap();
    assert!(matches!(judged.verdict, Verdict::Stalled { .. }), "{judged:?}");
    assert!(
        judged
            .evidence
            .contains(&"host memory on spark-2 does not grow".to_owned()),
        "{judged:?}"
    );
}

#[test]
fn a_load_that_nobody_sees_any_more_has_no_bar_and_no_time_left() {
    let mut state = loading(example());
    let text = |state: &State| shot(state, &LogWindows::default(), (120, 40)).text();
    assert!(text(&state).contains("weights 25/41"));
    for link in [refused(), LinkState::Silent { since: ago(5).stamp }] {
        state.observed.nodes[0].link = link;
        let seen = text(&state);
        let (_, row) = seen.split_once("load ").expect("a row of the load");
        let row = row.lines().next().unwrap_or_default();
        let known = ["last seen: weights 25/41", "last seen: weights 58 % inferred"];
        assert!(
            known.iter().any(|k| row.contains(k)),
            "what was known last stands: {row}"
        );
        assert!(row.contains(" ago"), "with its age: {row}");
        assert!(!row.contains("left") && !row.contains('█'), "{row}");
    }
}

#[test]
fn workers_out_of_sight_are_counted_as_they_were_last_with_the_age() {
    let mut state = ready(example());
    let top = |state: &State| {
        let text = shot(state, &LogWindows::default(), (120, 40)).text();
        text.lines().next().unwrap_or_default().to_owned()
    };
    assert!(top(&state).contains("workers 1/1 ✓"), "{}", top(&state));
    let containers = &mut state.observed.nodes[1].containers;
    *containers = Reading::known(containers.value().cloned().unwrap(), ago(40).stamp);
    state.observed.nodes[1].link = LinkState::Silent { since: ago(40).stamp };
    assert!(top(&state).contains("workers 1/1 ? 40 s ago"), "{}", top(&state));
    // What was never known is no zero.
    let never = top(&empty(example()));
    assert!(never.contains("workers -/1 ?"), "{never}");
}

#[test]
fn a_node_says_whose_key_opens_it() {
    let mut config = example();
    config.nodes[1].relayed = true;
    let text = shot(&ready(config), &LogWindows::default(), (120, 40)).text();
    let title = text.lines().nth(1).unwrap_or_default();
    assert!(title.contains("via gate") && title.contains("by gate's key"), "{title}");
}

#[test]
fn a_log_that_floods_says_that_it_is_behind_and_what_was_lost() {
    let mut state = ready(example());
    let logs = logs(&mut state);
    state.nodes[0].log.flow = LogFlow {
        behind: Some(ago(12).stamp),
        lost: 4_096_000,
        ..LogFlow::default()
    };
    state.nodes[0].log.dropped = 1_898_095;
    for size in SIZES {
        let pane = shot_with(&state, &logs, &look(Glyphs::Unicode), size).pane(Pane::Node(0));
        let foot = pane.lines().last().unwrap_or_default();
        assert!(foot.contains("behind for 12 s"), "{foot}");
        if size.0 > 80 {
            assert!(foot.contains("4 096 000 bytes lost"), "{foot}");
        }
    }
}
