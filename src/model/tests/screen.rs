//! What keys do.

use crate::domain::bench::{BenchEvent, RequestRecord};
use crate::domain::logs::LogSource;

use super::*;

fn advanced(seq: u64, dropped: u64) -> EventKind {
    EventKind::LogAdvanced {
        seq,
        dropped,
        newest: Some(Written::LIVE),
        spoke: Some(Written::LIVE),
    }
}

#[test]
fn a_held_log_stays_and_its_end_follows_again() {
    let mut told = Told::new(Options::default());
    told.at(1, Source::Node(HEAD), advanced(100, 40));
    told.wants(Intent::Scroll(Scroll::Lines(-10)));
    assert_eq!(told.0.screen.held.get(&HEAD), Some(&90));
    told.at(2, Source::Node(HEAD), advanced(120, 60));
    assert_eq!(told.0.screen.held.get(&HEAD), Some(&90));
    told.wants(Intent::Scroll(Scroll::Top));
    assert_eq!(
        told.0.screen.held.get(&HEAD),
        Some(&60),
        "no further than what the ring still holds"
    );
    told.wants(Intent::Scroll(Scroll::End));
    assert_eq!(told.0.screen.held.get(&HEAD), None);
}

#[test]
fn nothing_to_read_is_only_known_since_it_was_found_so() {
    let mut told = Told::new(Options::default());
    let (nothing, follows) = (
        LogSource::Nothing {
            wanted: "container x".into(),
        },
        LogSource::Follows {
            what: "docker logs x".into(),
            of: 1,
        },
    );
    let up = || EventKind::Link(LinkState::Up);
    let steps = [
        (1, up(), None),
        (2, EventKind::LogSource(nothing.clone()), Some(true)),
        (3, EventKind::LogSource(follows.clone()), Some(false)),
        (4, EventKind::LogSource(nothing.clone()), Some(false)),
        (5, EventKind::LogSource(follows), Some(false)),
        (6, EventKind::Link(LinkState::Idle), Some(false)),
        (7, up(), Some(false)),
        // It went while nobody looked.
        (8, EventKind::LogSource(nothing), Some(true)),
    ];
    for (second, event, found) in steps {
        told.at(second, Source::Node(HEAD), event);
        let since = told.0.nodes[HEAD.index()].log.source_since();
        assert_eq!(since.map(|when| when.found), found, "{second}");
    }
}

#[test]
fn panes_go_round_both_ways() {
    let mut told = Told::new(Options::default());
    told.wants(Intent::PreviousPane);
    assert_eq!(told.0.screen.focus, Pane::Serving);
    told.wants(Intent::NextPane);
    assert_eq!(told.0.screen.focus, Pane::Node(0));
    told.wants(Intent::PaneNumber(3));
    assert_eq!(told.0.screen.focus, Pane::Ray);
    told.wants(Intent::PaneNumber(9));
    assert_eq!(told.0.screen.focus, Pane::Ray);
}

#[test]
fn the_node_that_was_focused_last_stays_in_sight() {
    let mut told = Told::new(Options::default());
    for (pane, node) in [(2, 1), (3, 1), (4, 1), (1, 0), (3, 0)] {
        told.wants(Intent::PaneNumber(pane));
        assert_eq!(told.0.node_in_sight(), NodeId(node), "{pane}");
    }
}

#[test]
fn leaving_twice_leaves_now() {
    let mut told = Told::new(Options::default());
    assert_eq!(told.wants(Intent::Quit), [Effect::Quit { now: false }]);
    assert_eq!(told.wants(Intent::Quit), [Effect::Quit { now: true }]);
    assert_eq!(told.0.quit, Quit::Now);
}

#[test]
fn a_test_needs_a_server_that_answers() {
    let mut told = Told::serving(Options::default());
    told.server(100, ServerFacts::Health(Health::Refused));
    assert!(told.wants(Intent::Bench).is_empty());
    assert!(told.0.test_refusal().is_some_and(|why| why.contains("loading")));
    assert!(told.wants(Intent::Confirm).is_empty());
    assert!(told.0.bench.is_none());
    told.healthy(200, 1.0);
    assert_eq!(told.0.test_refusal(), None);
    assert!(matches!(told.wants(Intent::Confirm)[..], [Effect::StartBench(_)]));
}

#[test]
fn a_test_is_shown_before_it_starts_and_cancelled_at_once() {
    let mut told = Told::serving(Options::default());
    told.healthy(200, 1.0);
    assert!(told.wants(Intent::Bench).is_empty());
    assert_eq!((told.0.screen.mode, told.0.bench.is_none()), (Mode::Test, true));
    assert!(told.wants(Intent::Back).is_empty());
    assert!(told.wants(Intent::Confirm).is_empty(), "what was left is not started");
    told.wants(Intent::Bench);
    assert!(matches!(told.wants(Intent::Confirm)[..], [Effect::StartBench(_)]));
    assert_eq!((told.0.screen.mode, told.0.screen.focus), (Mode::Panes, Pane::Bench));
    assert_eq!(told.wants(Intent::Bench), [Effect::CancelBench]);
    assert_eq!(told.0.screen.mode, Mode::Panes);
}

#[test]
fn a_plan_that_wants_a_variable_which_is_not_set_is_refused_before_its_first_step() {
    let mut config = config::parse(EXAMPLE, "config.example.toml").unwrap();
    let from = SecretFrom::Variable("MY_HF".to_owned());
    config.hf_token = Some(from.clone());
    let mut state = State::new(Arc::new(config), Options::default(), Now::default());
    let refused = |state: &mut State, action| {
        let event = Event {
            source: Source::Operator,
            at: Now::default(),
            kind: EventKind::Intent(Intent::Plan(action)),
        };
        update(state, event);
        let plan = state.plan.as_ref().unwrap();
        plan.refusals.iter().filter(|r| r.text.contains("MY_HF")).count()
    };
    assert_eq!(refused(&mut state, Action::Head), 0);
    state.unset = vec![(from, "the variable MY_HF is not set here".to_owned())];
    assert_eq!(refused(&mut state, Action::Head), 1);
    assert_eq!(refused(&mut state, Action::StopAll), 0, "stopping wants no token");
}

#[test]
fn a_test_whose_requests_failed_is_news_when_it_ends_and_one_that_the_operator_ended_is_none() {
    let record = |error: Option<&str>| {
        EventKind::Bench(BenchEvent::Request(RequestRecord {
            index: 0,
            sent: Duration::ZERO,
            chunks: Vec::new(),
            output_tokens: 0,
            counted_by_server: true,
            prompt_tokens: None,
            error: error.map(str::to_owned),
        }))
    };
    let done = || {
        let duration = Duration::from_secs(6);
        EventKind::Bench(BenchEvent::Done { duration })
    };
    let failed = || EventKind::Bench(BenchEvent::Failed("the tunnel is gone".into()));
    let cases = [
        (vec![record(None), done()], false, None),
        (
            vec![record(None), record(Some("gone")), done()],
            false,
            Some("1 of 2 requests failed: 1 x gone"),
        ),
        (
            vec![failed()],
            false,
            Some("the throughput test failed: the tunnel is gone"),
        ),
        (vec![failed()], true, None),
    ];
    for (events, cancels, want) in cases {
        let mut told = Told::serving(Options::default());
        told.healthy(200, 1.0);
        told.wants(Intent::Bench);
        told.wants(Intent::Confirm);
        if cancels {
            told.wants(Intent::Bench);
        }
        for event in events {
            told.at(300, Source::Bench, event);
        }
        let news = told.0.notices.iter().filter(|n| n.source == Source::Bench);
        let news: Vec<&str> = news.map(|n| n.text.as_str()).collect();
        assert_eq!(news, Vec::from_iter(want));
    }
}

#[test]
fn what_was_on_the_screen_comes_back_as_it_was_when_what_stood_over_it_is_closed() {
    let mut told = Told::new(Options::default());
    let seen = |told: &Told| (told.0.screen.mode, told.0.screen.overlay_top);
    told.wants(Intent::Steps);
    told.wants(Intent::Scroll(Scroll::Lines(7)));
    let steps = (Mode::Run, 7);
    assert_eq!(seen(&told), steps);
    let closes = [Intent::Help, Intent::Back];
    for (over, closes) in [
        (Intent::Help, closes.clone()),
        (Intent::Commands, [Intent::Commands, Intent::Back]),
        (Intent::StopMenu, [Intent::Back, Intent::Back]),
        (Intent::Bench, [Intent::Back, Intent::Back]),
        (Intent::Plan(Action::Up), [Intent::Back, Intent::Back]),
    ] {
        for close in closes {
            told.wants(over.clone());
            assert_ne!(seen(&told), steps, "{over:?}");
            assert_eq!(told.0.screen.steps_top(), Some(7), "{over:?}");
            told.wants(Intent::Scroll(Scroll::Lines(3)));
            told.wants(close);
            assert_eq!(seen(&told), steps, "{over:?}");
        }
    }
    // One over the other, and each once however often it is asked for.
    for _ in 0..3 {
        told.wants(Intent::Commands);
        told.wants(Intent::Help);
        told.wants(Intent::Commands);
    }
    assert!(told.0.screen.beneath.len() <= 2, "{:?}", told.0.screen.beneath);
    while told.0.screen.mode != Mode::Run {
        told.wants(Intent::Back);
    }
    assert_eq!(seen(&told), steps);
    // A stop that is chosen shows its plan, and nothing is left to choose behind it.
    told.wants(Intent::StopMenu);
    told.wants(Intent::Plan(Action::StopServe));
    told.wants(Intent::Back);
    assert_eq!(seen(&told), steps);
    told.wants(Intent::Back);
    assert_eq!(seen(&told), (Mode::Panes, 0));
}

#[test]
fn a_question_gives_back_what_it_came_over() {
    let ask = || {
        EventKind::Question(crate::domain::question::Question {
            id: crate::domain::QuestionId(3),
            from: Source::Node(HEAD),
            ask: crate::domain::question::Ask::Passphrase {
                key: "id".into(),
                again: false,
            },
        })
    };
    let mut told = Told::new(Options::default());
    told.wants(Intent::Plan(Action::Head));
    let plan = told.0.plan.clone();
    assert!(plan.is_some());
    told.at(1, Source::Node(HEAD), ask());
    assert_eq!(told.0.screen.mode, Mode::Question);
    told.wants(Intent::Answer(
        crate::domain::QuestionId(3),
        crate::domain::question::Answer::Given,
    ));
    assert_eq!((told.0.screen.mode, &told.0.plan), (Mode::Plan, &plan));
    told.wants(Intent::Back);
    assert_eq!((told.0.screen.mode, &told.0.plan), (Mode::Panes, &None));
}
