//! One event is one cause, in the same words for who has watched it and for who comes later.

use bringup::diagnose::{Cause, Kind};
use bringup::domain::Stamp;
use bringup::domain::container::ContainerState;
use bringup::domain::event::{EventKind, Facts};
use bringup::domain::link::LinkState;
use bringup::domain::serving::{Health, ServeFacts, ServerFacts};
use bringup::plan::StepKind;

use crate::told::{HEAD, Told, WORKER, member};
use crate::{BANNER, WORKER_DIED};

const ADDRESSES: [&str; 2] = ["192.168.200.12", "192.168.200.13"];
const EXITED: fn(i32) -> ContainerState = |code| ContainerState::Exited { code, oom: false };

/// The rule, the words and the echoes of each cause that is no warning.
fn causes(told: &Told) -> Vec<(String, String, Vec<String>)> {
    let causes = told.causes().into_iter().filter(|c| c.kind != Kind::Warning);
    let rule = |rule: Option<String>| rule.unwrap_or_default();
    causes
        .map(|c| {
            (
                rule(c.rule),
                c.text,
                c.echoes.into_iter().map(|e| rule(e.rule)).collect(),
            )
        })
        .collect()
}

/// The head and what runs on it, without the worker's container.
fn head_alone() -> Told {
    let mut told = Told::new();
    for node in [HEAD, WORKER] {
        told.at(0, node, EventKind::Link(LinkState::Up));
    }
    told.container(0, HEAD, ContainerState::Running);
    told
}

/// The server's log, until its worker died a minute after its start.
fn failed(told: &mut Told) {
    told.line(HEAD, 1, BANNER);
    told.line(
        HEAD,
        20,
        "Loading safetensors checkpoint shards:  50% Completed | 1/2 [00:08<00:08,  8.00s/it]",
    );
    told.line(HEAD, 60, WORKER_DIED);
}

#[test]
fn what_was_seen_between_two_looks_may_be_why_of_a_line_between_them() {
    let mut told = Told::new();
    told.up();
    for ms in [5_000, 10_000] {
        told.container(ms, WORKER, ContainerState::Running);
    }
    told.line(HEAD, 1, BANNER);
    told.line(HEAD, 11, WORKER_DIED);
    // Time goes on between two looks, and nothing new is known by it.
    for ms in [12_000, 13_000, 14_500] {
        told.at(ms, HEAD, EventKind::Tick);
    }
    told.container(15_000, WORKER, EXITED(137));
    assert_eq!(
        causes(&told),
        [(
            "container-killed".to_owned(),
            "the container vllm-qwen35 of spark-2 was killed: exit code 137".to_owned(),
            vec!["worker-process-died".to_owned()]
        )]
    );
    // A line from before the earlier look has another cause.
    let mut told = Told::new();
    told.up();
    told.line(HEAD, 1, BANNER);
    told.line(HEAD, 6, WORKER_DIED);
    told.container(10_000, WORKER, ContainerState::Running);
    told.container(15_000, WORKER, EXITED(137));
    let rules: Vec<_> = causes(&told).into_iter().map(|(rule, ..)| rule).collect();
    assert_eq!(rules, ["container-killed", "worker-process-died"]);
}

#[test]
fn a_container_that_nobody_knew_of_before_ray_did_is_found_gone_and_the_cause_of_what_follows() {
    // Neither the head nor Ray has said a word when it is read first.
    let mut told = Told::new();
    told.at(0, WORKER, EventKind::Link(LinkState::Up));
    told.at(100, WORKER, EventKind::Facts(Facts::Containers(Default::default())));
    told.at(200, HEAD, EventKind::Link(LinkState::Up));
    told.container(300, HEAD, ContainerState::Running);
    told.line(HEAD, 1, BANNER);
    told.line(HEAD, 2, WORKER_DIED);
    told.ray_alone(70_000, vec![member(ADDRESSES[0], true), member(ADDRESSES[1], false)]);
    told.at(70_500, WORKER, EventKind::Facts(Facts::Containers(Default::default())));
    let text = "the container vllm-qwen35 of spark-2 is gone: `docker ps -a` does not list it";
    assert_eq!(
        causes(&told),
        [(
            "container-stopped".to_owned(),
            text.to_owned(),
            vec!["worker-process-died".to_owned()]
        )]
    );
    assert!(told.causes()[0].found, "nobody knows since when");
}

#[test]
fn a_container_that_was_killed_and_taken_away_then_was_killed() {
    let mut told = Told::new();
    told.up();
    told.ray(1_000, ADDRESSES.map(|address| member(address, true)).into());
    told.container(5_000, WORKER, EXITED(137));
    let killed = causes(&told);
    assert_eq!(killed[0].0, "container-killed");
    told.at(10_000, WORKER, EventKind::Facts(Facts::Containers(Default::default())));
    assert_eq!(causes(&told), killed);
    assert_eq!(told.causes()[0].over, None);
}

#[test]
fn a_head_that_was_stopped_before_anybody_looked_is_told() {
    for code in [0, 130, 143] {
        let mut late = Told::new();
        late.at(0, HEAD, EventKind::Link(LinkState::Up));
        late.container(0, HEAD, EXITED(code));
        let mut watched = Told::new();
        watched.up();
        watched.container(9_000, HEAD, EXITED(code));
        assert_eq!(causes(&late), causes(&watched));
        let cause = &late.causes()[0];
        let text = format!("the container vllm-qwen35 of spark-1 was stopped: exit code {code}");
        assert_eq!((cause.text.as_str(), cause.found), (text.as_str(), true));
        assert!(!watched.causes()[0].found, "it was seen");
        assert!(late.by_hand(cause).is_some() && cause.fix.is_some());
    }
    // No container is how every cluster begins.
    let mut none = Told::new();
    none.at(0, HEAD, EventKind::Link(LinkState::Up));
    none.at(1, HEAD, EventKind::Facts(Facts::Containers(Default::default())));
    assert_eq!(causes(&none), []);
}

#[test]
fn a_worker_that_was_replaced_under_a_server_that_failed_is_told_alike_by_who_watched_and_who_came_later() {
    let both = || ADDRESSES.map(|address| member(address, true)).to_vec();
    let gone = |told: &mut Told, ms| {
        told.at(ms, HEAD, EventKind::Facts(Facts::Serve(ServeFacts::default())));
        told.server(ms, ServerFacts::Health(Health::Refused));
    };
    for removed in [false, true] {
        let mut watched = Told::new();
        watched.up();
        watched.clock(100, HEAD, 0);
        watched.ray(1_000, both());
        watched.container(59_000, WORKER, ContainerState::Running);
        failed(&mut watched);
        watched.container(62_000, WORKER, EXITED(137));
        gone(&mut watched, 63_000);
        assert_eq!(watched.state().word(), "failed");
        assert_eq!(causes(&watched)[0].0, "container-killed");
        if removed {
            watched.at(66_000, WORKER, EventKind::Facts(Facts::Containers(Default::default())));
        }
        watched.again_since(75_000, WORKER, 70_000);
        gone(&mut watched, 75_200);

        let mut late = head_alone();
        late.clock(100, HEAD, 0);
        late.again_since(75_000, WORKER, 70_000);
        failed(&mut late);
        late.ray_alone(75_100, both());
        gone(&mut late, 75_200);
        late.again_since(75_300, WORKER, 70_000);
        assert_eq!(late.state().word(), "failed");

        assert_eq!(causes(&watched), causes(&late));
        assert_eq!(
            causes(&late),
            [(
                "worker-anew".to_owned(),
                "the worker on spark-2 was started anew, and the model server's rank was in its earlier life"
                    .to_owned(),
                vec!["worker-process-died".to_owned()]
            )]
        );
        // Who has seen how it ended says that too.
        let evidence = |told: &Told| {
            told.causes()[0]
                .evidence
                .iter()
                .map(|l| l.text.clone())
                .collect::<Vec<_>>()
        };
        let anew = "vllm-qwen35 on spark-2 was started after the server had its ranks";
        assert_eq!(evidence(&watched), [anew, "exit code 137"]);
        assert_eq!(evidence(&late), [anew]);
        for told in [&watched, &late] {
            let cause = &told.causes()[0];
            assert_eq!(cause.over, None);
            let fix = cause.fix.as_deref().expect("a fix");
            assert!(
                fix.contains("X and then s and S") && fix.contains("`bringup down --serve`"),
                "{fix}"
            );
            assert!(told.by_hand(cause).is_some());
        }
    }
}

#[test]
fn a_worker_that_was_replaced_under_a_ready_server_is_the_cause_with_its_cure_until_another_start() {
    let mut told = Told::new();
    told.up();
    told.line(HEAD, 1, BANNER);
    told.ready(10_000);
    assert_eq!(causes(&told), []);
    told.container(20_000, WORKER, EXITED(143));
    told.server(20_000, ServerFacts::Health(Health::Ok));
    assert_eq!(causes(&told)[0].0, "container-stopped");
    told.again_since(30_000, WORKER, 25_000);
    told.server(30_100, ServerFacts::Health(Health::Ok));
    told.at(30_200, HEAD, EventKind::Tick);
    assert_eq!(told.state().word(), "degraded");
    let rules: Vec<_> = causes(&told).into_iter().map(|(rule, ..)| rule).collect();
    assert_eq!(rules, ["worker-anew"]);
    let cause = &told.causes()[0];
    assert!(
        cause
            .fix
            .as_ref()
            .is_some_and(|fix| fix.contains("start the server anew"))
    );
    assert!(told.by_hand(cause).is_some());
    // The next server has its ranks in what is there now.
    told.server(40_000, ServerFacts::Health(Health::Refused));
    told.at(40_100, HEAD, EventKind::Tick);
    assert_eq!(causes(&told), []);
}

#[test]
fn a_run_that_is_over_takes_no_cause_from_what_happens_later() {
    let mut told = Told::new();
    told.up();
    let of = |cause: Option<Cause>| cause.and_then(|c| c.rule);
    let cause = told.failed_wait(StepKind::Join, WORKER, |told, ms| {
        let state = if ms < 10_000 {
            ContainerState::Running
        } else {
            EXITED(1)
        };
        told.container(ms, WORKER, state);
    });
    assert_eq!(of(cause).as_deref(), Some("container-ended"));
    // Minutes later somebody has brought the worker back, and it is killed.
    told.again_since(200_000, WORKER, 195_000);
    told.container(300_000, WORKER, EXITED(137));
    let now: Vec<_> = told.causes().into_iter().filter_map(|c| c.rule).collect();
    assert_eq!(now, ["container-killed"]);
    assert_eq!(of(told.step_cause()), None);
}

#[test]
fn a_silence_that_is_over_is_not_why_a_replaced_worker_had_died() {
    let mut told = Told::new();
    told.up();
    told.clock(100, HEAD, 0);
    told.ray(1_000, ADDRESSES.map(|address| member(address, true)).to_vec());
    told.line(HEAD, 1, BANNER);
    told.at(
        40_000,
        HEAD,
        EventKind::Link(LinkState::Silent { since: Stamp(33_000) }),
    );
    told.at(42_000, HEAD, EventKind::Link(LinkState::Up));
    told.container(45_000, WORKER, ContainerState::Running);
    told.container(48_000, WORKER, EXITED(137));
    told.line(HEAD, 48, WORKER_DIED);
    let first = |told: &Told| causes(told).first().map(|c| c.0.clone());
    assert_eq!(first(&told).as_deref(), Some("container-killed"));
    // Another run removes it and starts it again.
    told.at(60_000, WORKER, EventKind::Facts(Facts::Containers(Default::default())));
    assert_eq!(first(&told).as_deref(), Some("container-killed"));
    let worker = ["worker-anew", "container-killed"];
    for ms in (75_000..90_000).step_by(1_000) {
        told.again_since(ms, WORKER, 70_000);
        told.at(ms + 100, HEAD, EventKind::Facts(Facts::Serve(ServeFacts::default())));
        told.server(ms + 200, ServerFacts::Health(Health::Refused));
        told.ray_alone(
            ms + 300,
            ADDRESSES
                .map(|address| member(address, ms > 80_000 || address == ADDRESSES[0]))
                .to_vec(),
        );
        let seen = first(&told).unwrap_or_default();
        assert!(worker.contains(&seen.as_str()), "{ms}: {:#?}", told.causes());
    }
}
