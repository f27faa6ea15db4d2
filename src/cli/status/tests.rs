//! What the plain status says, line by line.

use std::sync::Arc;

use crate::config::{self, EXAMPLE};
use crate::domain::Now;
use crate::domain::link::{LinkError, LinkErrorKind, LinkState};
use crate::domain::logs::{LogSource, Seeks};
use crate::domain::problem::Problem;
use crate::domain::serving::{Health, MetricsOf, MetricsSample};
use crate::domain::sign::{Sign, SignKind};
use crate::domain::units::{Celsius, Percent, Watts};
use crate::measure::Quantile;
use crate::model::Options;
use crate::model::state::LastError;

use super::*;

fn all_up(no_probe: bool) -> State {
    let config = config::parse(EXAMPLE, "config.example.toml").unwrap();
    let mut state = State::new(Arc::new(config), Options { no_probe }, Now::default());
    state.hops.fill(LinkState::Up);
    for node in &mut state.observed.nodes {
        node.link = LinkState::Up;
    }
    state
}

#[test]
fn what_a_lost_node_would_tell_is_unknown_because_it_is_lost() {
    let mut state = all_up(false);
    assert!(text(&state).contains("container unknown (not asked yet), Ray unknown (not asked yet)"));
    let error = LinkError {
        kind: LinkErrorKind::Unreachable,
        text: "spark-1 does not answer".into(),
        fix: None,
    };
    // It was down, and is tried again.
    state.nodes[0].last_error = Some(LastError {
        error,
        at: state.now.stamp,
        since: crate::domain::When::found(state.now.stamp),
    });
    state.observed.nodes[0].link = LinkState::Connecting;
    let text = text(&state);
    for part in [
        "container unknown (spark-1 can't be reached), Ray unknown (spark-1 can't be reached)",
        "server is unknown: spark-1 can't be reached",
        "! spark-1: no answer yet, after ",
        "; last: spark-1 does not answer",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

#[test]
fn a_container_that_ended_is_told_in_words() {
    use crate::domain::container::{Container, ContainerFacts, ContainerState};
    let mut state = all_up(false);
    let name = state.config.container.name.clone();
    let mut said = |container_state| {
        let container = Container {
            id: "c0ffee".into(),
            name: name.clone(),
            image: "i".into(),
            state: container_state,
            started_at: None,
            up_seconds: None,
            restarts: 0,
            ours: None,
            labels: std::collections::BTreeMap::new(),
            pid: None,
        };
        let containers = vec![container];
        state.observed.nodes[0].containers = Reading::known(ContainerFacts { containers }, state.now.stamp);
        text(&state)
    };
    let exited = |code, oom| ContainerState::Exited { code, oom };
    for (container_state, words) in [
        (exited(137, false), "exited, code 137"),
        (exited(137, true), "exited, code 137, out of memory"),
        (ContainerState::Created, "created, not started"),
        (ContainerState::Running, "running"),
        (ContainerState::Other("dead".into()), "dead"),
    ] {
        let text = said(container_state);
        assert!(text.contains(&format!(" {name} {words}, Ray ")), "{words}\n{text}");
    }
}

#[test]
fn a_node_without_a_log_to_read_says_so_since_when_and_in_whose_words() {
    let mut state = all_up(false);
    state.now.stamp.0 += 65_000;
    let since = state.now.stamp;
    let mut said = |ago_ms: u64, source| {
        state.nodes[0].log.source = Some((source, Stamp(since.0 - ago_ms)));
        state.nodes[0].log.found = true;
        log(&state, NodeId(0), "")
    };
    let file = LogSource::Absent {
        what: "/x.log".into(),
        why: "there is no such file".into(),
        said: Some("ls: cannot access '/x.log'".into()),
    };
    assert_eq!(
        said(65_000, file.clone()),
        "  ! spark-1: no log: /x.log: there is no such file, known for 1m05s (ls: cannot access '/x.log')\n"
    );
    assert!(said(0, file).contains("no such file (ls:"), "it was found so just now");
    let nothing = |wanted: &Wanted| LogSource::Nothing { wanted: wanted.words() };
    assert_eq!(
        said(5_000, nothing(&Wanted::named("node-*"))),
        "  ! spark-1: no log: no container whose name fits node-* on this node, known for 5 s\n"
    );
    assert_eq!(
        said(0, nothing(&Wanted::named("vllm-qwen35"))),
        "",
        "the node's line says it"
    );
    let follows = LogSource::Follows {
        what: "docker logs vllm-qwen35".into(),
        of: 1,
    };
    assert_eq!(said(0, follows), "");
    state.nodes[0].log.flow.seeks = Some(Seeks {
        since: Stamp(since.0 - 12_000),
        again: true,
    });
    assert_eq!(
        log(&state, NodeId(0), ""),
        "  ! spark-1: the log waits for Docker to find its place, for 12 s\n"
    );
    state.observed.nodes[0].link = LinkState::Connecting;
    assert_eq!(log(&state, NodeId(0), ""), "", "nothing is known of it now");
}

#[test]
fn the_first_cause_is_told_with_what_to_do() {
    let mut state = all_up(false);
    let sign = |rule: &str, text: &str| Sign {
        what: SignKind::Rule(rule.to_owned()),
        text: text.to_owned(),
        written: None,
        backlog: false,
        fields: Vec::new(),
        times: 1,
    };
    let (head, worker, now) = (NodeId(0), NodeId(1), state.now);
    state.evidence.log(
        worker,
        head,
        sign("nccl-memlock", "NCCL WARN Call to ibv_reg_mr failed"),
        now,
    );
    state
        .evidence
        .log(head, head, sign("nccl-error", "RuntimeError: NCCL error: x"), now);
    state.now.wall.0 += 12_000;
    let text = text(&state);
    for part in [
        "  first cause: NCCL on spark-2 may not pin memory for RDMA (12 s ago)\n",
        "    | spark-2: NCCL WARN Call to ibv_reg_mr failed\n",
        "    from it follows: NCCL failed on spark-1\n",
        "    fix: start the container with --ulimit memlock=-1",
        "    run: ssh -J aurora@10.1.230.180 aurora@192.168.200.13 'grep Cma /proc/meminfo'\n",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

#[test]
fn a_ready_server_beside_a_cause_is_asked_again() {
    let mut state = all_up(false);
    state.server.state = ServingState::Ready;
    assert!(!at_odds(&state));
    let sign = Sign {
        what: SignKind::Rule("worker-process-died".to_owned()),
        text: "RayWorkerProc rank=[1] died unexpectedly, shutting down executor.".to_owned(),
        written: None,
        backlog: false,
        fields: Vec::new(),
        times: 1,
    };
    state.evidence.log(NodeId(0), NodeId(0), sign, state.now);
    assert!(at_odds(&state));
    state.server.state = ServingState::Failed("it died".to_owned());
    assert!(!at_odds(&state), "it is told as failed");
}

#[test]
fn what_the_server_does_is_one_line_and_what_is_old_is_left_out() {
    let mut state = all_up(false);
    assert_eq!(serving(&state), None);
    let at = state.now.stamp;
    let sample = MetricsSample {
        running: Some(2.0),
        ..MetricsSample::default()
    };
    state.observed.server.metrics = Reading::known(sample, at);
    state.server.generation = Reading::known(27.14, at);
    let (p50, p95, count) = (Quantile::At(0.132), Quantile::Above(80.0), 9.0);
    state.server.figures.ttft = Reading::known(Quantiles { p50, p95, count }, at);
    state.server.figures.span = std::time::Duration::from_secs(60);
    let line = "27.1 tok/s generated, in the last 60 s TTFT p50 132 ms p95 >80.00 s, 2 running";
    assert_eq!(serving(&state).as_deref(), Some(line));
    state.server.live = Duration::from_millis(998);
    let over = serving(&state).unwrap_or_default();
    assert!(over.starts_with("27.1 tok/s generated over 1 s, in the last"), "{over}");
    state.server.live = Duration::ZERO;
    for (count, of) in [(1.0, "1 request"), (4.0, "4 requests")] {
        state.server.figures.ttft = Reading::known(Quantiles { p50, p95, count }, at);
        let line = format!("27.1 tok/s generated, in the last 60 s TTFT p50 132 ms of {of}, 2 running");
        assert_eq!(serving(&state), Some(line));
    }
    state.now.stamp.0 += 60_000;
    assert_eq!(serving(&state), None);
}

#[test]
fn the_place_of_the_server_and_since_when_it_is_so_are_told() {
    let mut state = all_up(false);
    state.server.state = ServingState::Down;
    let at = "at http://192.168.200.12:8000 as seen from gate, ";
    state.now.stamp = state.server.since.plus(std::time::Duration::from_secs(72));
    assert!(
        text(&state).contains(&format!("  {at}so for 1m12s\n")),
        "{}",
        text(&state)
    );
    state.server.found = true;
    assert!(
        text(&state).contains(&format!("  {at}known for 1m12s\n")),
        "{}",
        text(&state)
    );
}

#[test]
fn how_long_is_told_of_states_that_last_and_of_no_other() {
    let mut state = all_up(false);
    let at = "at http://192.168.200.12:8000 as seen from gate";
    let after = |state: &mut State, seconds| state.now.stamp = state.server.since.plus(Duration::from_secs(seconds));
    for (seconds, health, server, says) in [
        (0, None, ServingState::Unknown, ", which nobody has asked yet"),
        (7, None, ServingState::Unknown, ", which nobody has asked yet"),
        (0, Some(Health::Refused), ServingState::Unknown, ""),
        (7, Some(Health::Refused), ServingState::Unknown, ", not known for 7 s"),
        (0, Some(Health::Refused), ServingState::Down, ", since just now"),
        (7, Some(Health::Refused), ServingState::Down, ", so for 7 s"),
    ] {
        after(&mut state, seconds);
        state.server.state = server;
        let seen = &mut state.observed.server.health;
        *seen = health.map_or_else(Reading::default, |health| Reading::known(health, state.now.stamp));
        assert_eq!(place(&state), format!("{at}{says}"));
    }
}

/// A ready server whose two requests got nothing in the seconds that one has looked.
fn hangs(seconds: u64) -> State {
    let mut state = all_up(false);
    let scrape = MetricsSample {
        of: Some(MetricsOf::Vllm),
        generation_tokens: Some(20.0),
        running: Some(2.0),
        ..MetricsSample::default()
    };
    let (server, now) = (&mut state.server, Stamp(seconds * 1000));
    server.state = ServingState::Ready;
    server.flow.take(None, &scrape, Stamp(0));
    server.flow.take(Some(&scrape), &scrape, now);
    server.generation = Reading::known(0.0, now);
    server.live = Duration::from_secs(seconds.min(10));
    state.observed.server.metrics = Reading::known(scrape, now);
    state.now.stamp = now;
    state
}

#[test]
fn a_ready_server_whose_requests_get_nothing_is_not_called_proven() {
    for seconds in [1, 12] {
        let state = hangs(seconds);
        assert_eq!(model::look_on(&state), seconds < 10);
        assert_eq!(verdict(&state), Exit::NotServing);
        assert!(
            text(&state).contains("  server is ready, which is not proven now\n"),
            "{}",
            text(&state)
        );
    }
    let line = "0.0 tok/s generated over 10 s, 2 running, it has given tokens since its start, and none in the 12 s since this console looks, with 2 requests running";
    assert_eq!(serving(&hangs(12)).as_deref(), Some(line));
    let mut flows = hangs(12);
    let before = flows.observed.server.metrics.value().cloned().unwrap();
    let sample = MetricsSample {
        generation_tokens: Some(21.0),
        ..before.clone()
    };
    flows.server.flow.take(Some(&before), &sample, flows.now.stamp);
    assert_eq!(verdict(&flows), Exit::Done);
    assert!(text(&flows).contains("  server is ready\n"));
}

fn facts_of(state: &State) -> GpuFacts {
    state.observed.nodes[0].gpus.value().cloned().unwrap_or_default()
}

#[test]
fn gpus_are_one_line_a_node_and_what_is_wrong_with_them_another() {
    let mut state = all_up(false);
    let id = NodeId(0);
    assert_eq!(gpus(&state, id), "    GPUs unknown (not asked yet)\n");
    let gb10 = Gpu {
        name: "NVIDIA GB10".into(),
        utilization: Some(Percent(96.0)),
        power: Some(Watts(45.1)),
        temperature: Some(Celsius(61.0)),
        unified: true,
        ..Gpu::default()
    };
    let of = |all: Vec<Gpu>| GpuFacts {
        gpus: all,
        ..GpuFacts::default()
    };
    state.observed.nodes[0].gpus = Reading::known(of(vec![gb10]), state.now.stamp);
    assert_eq!(gpus(&state, id), "    NVIDIA GB10: 96 %, 45 W, 61 C\n");
    let h200 = |busy, warm, power| Gpu {
        name: "NVIDIA H200".into(),
        utilization: Some(Percent(busy)),
        power,
        temperature: Some(Celsius(warm)),
        memory_used: Some(Bytes(20 << 30)),
        memory_total: Some(Bytes(140 << 30)),
        ..Gpu::default()
    };
    let two = vec![h200(3.0, 52.0, Some(Watts(90.0))), h200(95.0, 40.0, None)];
    state.observed.nodes[0].gpus = Reading::known(of(two), state.now.stamp);
    let line = "    2 x NVIDIA H200: busiest 95 %, - W, warmest 52 C, memory 40.0/280.0 GiB, held by processes 0.0\n";
    assert_eq!(gpus(&state, id), line);
    let three = EXAMPLE.replace("name = \"spark-1\"", "name = \"spark-1\"\ngpus = 3");
    let mut mixed = facts_of(&state).gpus;
    mixed[1].name = "NVIDIA A100".into();
    assert_eq!(named(&mixed), "1 x NVIDIA H200, 1 x NVIDIA A100");
    state.config = Arc::new(config::parse(&three, "config.example.toml").unwrap());
    let line = line.replace("H200:", "H200 of 3 expected:");
    assert_eq!(gpus(&state, id), line);
    state.nodes[0].problems = vec![Problem::error("nvidia-smi lists 2 of the 3 GPUs")];
    assert!(text(&state).contains("  ! spark-1: nvidia-smi lists 2 of the 3 GPUs\n"));
    assert_eq!(problems(&state, id, "(nvidia-smi lists 2 of the 3 GPUs)"), "");
    state.now.stamp.0 += 60_000;
    assert_eq!(gpus(&state, id), "    GPUs unknown (the last answer is old)\n");
}

#[test]
fn metrics_that_are_refused_are_said_while_the_server_answers() {
    let mut state = all_up(false);
    let why = "401: the server refuses the API key";
    state.observed.server.metrics = Reading::absent(why);
    assert!(!text(&state).contains("/metrics"));
    state.server.state = ServingState::Ready;
    assert!(text(&state).contains("  ! /metrics tells nothing: 401: the server refuses the API key\n"));
    state.observed.server.metrics = Reading::default();
    assert!(!text(&state).contains("/metrics"));
}

#[test]
fn an_answer_is_enough_only_where_no_token_may_be_asked_for() {
    for (no_probe, exit) in [(false, Exit::NotServing), (true, Exit::Done)] {
        let mut state = all_up(no_probe);
        state.server.state = ServingState::Answering;
        assert_eq!(verdict(&state), exit);
        state.server.state = ServingState::Ready;
        assert_eq!(verdict(&state), Exit::Done);
    }
}

#[test]
fn a_log_that_is_not_looked_for_since_docker_does_not_answer_is_said_to_be_missing() {
    let mut state = all_up(false);
    assert_eq!(log(&state, NodeId(0), ""), "", "it was not asked yet");
    state.observed.nodes[0].containers = Reading::absent("Docker's daemon does not answer");
    let line = "  ! spark-1: no log: which containers it has is not known";
    assert_eq!(
        log(&state, NodeId(0), ""),
        format!("{line}: Docker's daemon does not answer\n")
    );
    assert!(text(&state).contains("container unknown (Docker's daemon does not answer)"));
    assert!(text(&state).contains(&format!("{line}\n")), "the reason is said once");
}

#[test]
fn who_has_just_come_does_not_say_for_how_long_he_has_known() {
    let mut state = all_up(false);
    state.server.state = ServingState::Down;
    state.server.found = true;
    assert_eq!(
        place(&state),
        "at http://192.168.200.12:8000 as seen from gate, since when is not known"
    );
}

#[test]
fn what_another_bringup_does_is_told() {
    use crate::domain::container::{Container, ContainerFacts, ContainerState, Labels};
    let mut state = all_up(false);
    assert!(!text(&state).contains("another bringup"));
    let container = Container {
        id: "3f9a".into(),
        name: state.config.container.name.clone(),
        image: String::new(),
        state: ContainerState::Running,
        started_at: None,
        up_seconds: Some(8),
        restarts: 0,
        ours: Some(Labels {
            cluster: state.config.cluster.clone(),
            ..Labels::default()
        }),
        labels: std::collections::BTreeMap::new(),
        pid: None,
    };
    let containers = vec![container];
    state.observed.nodes[1].containers = Reading::known(ContainerFacts { containers }, state.now.stamp);
    let text = text(&state);
    let line = "  ! another bringup may be at work: the container on spark-2 was started 8 s ago, and not from here\n";
    assert!(text.contains(line), "{text}");
}

#[test]
fn a_jump_host_that_is_down_is_told_once_with_the_nodes_behind_it() {
    let mut state = all_up(false);
    let down = |kind, text: &str| LinkState::Down {
        error: LinkError {
            kind,
            text: text.into(),
            fix: None,
        },
        since: state.now.stamp,
        retry_at: None,
    };
    let refused = "gate (aurora@10.1.230.180:22): connection refused: nothing listens there";
    let gate = down(LinkErrorKind::Unreachable, refused);
    let behind = down(LinkErrorKind::ViaDown, &format!("gate is down: {refused}"));
    state.observed.nodes[0].link = behind.clone();
    state.observed.nodes[1].link = behind;
    if let LinkState::Down { error, .. } = &gate {
        state.hop_errors[0] = Some(LastError {
            error: error.clone(),
            at: state.now.stamp,
            since: When::found(state.now.stamp),
        });
    }
    state.hops[0] = gate;
    let said = text(&state);
    let line = format!("  ! {refused}; behind it: spark-1, spark-2\n");
    assert!(said.contains(&line), "{said}");
    assert_eq!(said.matches("connection refused").count(), 1, "{said}");
    // What one of them has of its own is told of it.
    state.observed.nodes[1].link = down(LinkErrorKind::Refused, "spark-2 refused every key");
    let said = text(&state);
    for line in [
        format!("  ! {refused}; behind it: spark-1\n"),
        "  ! spark-2 refused every key\n".to_owned(),
    ] {
        assert!(said.contains(&line), "{line}\n{said}");
    }
}

#[test]
fn what_ray_says_of_a_node_whose_container_has_ended_is_told_as_its_word_alone() {
    use crate::domain::container::{Container, ContainerFacts, ContainerState};
    use crate::domain::ray::{RayFacts, RayNode};
    let mut state = all_up(false);
    let now = state.now.stamp;
    let member = |n: &crate::config::types::Node| RayNode {
        id: n.name.clone(),
        address: n.fabric_address.clone(),
        alive: true,
        gpus: f64::from(n.gpus),
        ..RayNode::default()
    };
    let nodes = state.config.nodes.iter().map(member).collect();
    state.observed.ray = Reading::known(
        RayFacts {
            nodes,
            ..RayFacts::default()
        },
        now,
    );
    for (index, ends) in [
        (0, ContainerState::Running),
        (1, ContainerState::Exited { code: 137, oom: false }),
    ] {
        let container = Container {
            id: "c0ffee".into(),
            name: state.config.container.name.clone(),
            image: "i".into(),
            state: ends,
            started_at: None,
            up_seconds: None,
            restarts: 0,
            ours: None,
            labels: std::collections::BTreeMap::new(),
            pid: None,
        };
        let containers = vec![container];
        state.observed.nodes[index].containers = Reading::known(ContainerFacts { containers }, now);
    }
    let text = text(&state);
    for part in [" running, alive in Ray\n", " exited, code 137, Ray still says alive\n"] {
        assert!(text.contains(part), "{part}\n{text}");
    }
}
