//! A node that tells nothing any more: what goes on by itself is known up to when it was seen last, and not a second longer.

use bringup::domain::container::ContainerState;
use bringup::domain::event::Subject;
use bringup::domain::intent::Pane;
use bringup::domain::link::LinkState;
use bringup::domain::logs::LogSource;
use bringup::domain::problem::Problem;
use bringup::domain::ray::{PlacementGroup, RayNode};
use bringup::domain::{NodeId, Reading};
use bringup::log::LogWindows;
use bringup::model::State;
use bringup::model::state::Unread;

use crate::build::*;
use crate::shot::shot;

/// Moments at which one looks again: no reading is old yet, and all are.
const LOOKS: [u64; 2] = [5, 65];

/// The state as `seconds` have passed since `node` was heard last: all that it had told by then stands as it did, a second old.
fn silent(mut state: State, node: NodeId, seconds: u64) -> State {
    let at = ago(seconds).stamp;
    fn old<T: Clone>(reading: &mut Reading<T>, at: bringup::domain::Stamp) {
        if let Some(value) = reading.value().cloned() {
            *reading = Reading::known(value, at);
        }
    }
    let seen = &mut state.observed.nodes[node.index()];
    old(&mut seen.memory, at);
    old(&mut seen.gpus, at);
    old(&mut seen.containers, at);
    seen.link = LinkState::Silent { since: at };
    if node == state.config.head() {
        old(&mut state.observed.ray, at);
        // What Ray tells as a moment lies as far back.
        if let Reading::Known { value, .. } = &mut state.observed.ray {
            for member in &mut value.nodes {
                *member = RayNode {
                    started_ms: Some(ago(seconds).wall.0 - 720_000),
                    ..member.clone()
                };
            }
            for group in &mut value.pending {
                group.asked_ms = Some(ago(seconds).wall.0 - 310_000);
            }
        }
    }
    state
}

fn texts(state: impl Fn(u64) -> State, size: (u16, u16)) -> Vec<String> {
    LOOKS
        .map(|s| shot(&state(s), &LogWindows::default(), size).text())
        .to_vec()
}

#[test]
fn a_container_of_a_silent_node_has_run_for_as_long_as_it_had_when_it_was_seen_last() {
    let of = |config: fn() -> bringup::config::Config| move |s| silent(loading(config()), NodeId(0), s);
    for (size, said, many) in [
        ((120, 40), "ran 12m00s when last seen", false),
        ((200, 60), "ran 12m00s when last seen", false),
        ((80, 24), "ran 12m00s", false),
        ((120, 24), "last ran 12m00s", true),
    ] {
        let all = if many {
            texts(of(|| with_workers(7)), size)
        } else {
            texts(of(example), size)
        };
        for text in all {
            assert!(text.contains(said), "{said} {size:?}\n{text}");
            // That of the other node is seen to run.
            assert!(text.contains("runs 11m01s"), "{size:?}\n{text}");
            assert!(!text.contains("runs 12m"), "{size:?}\n{text}");
        }
    }
}

#[test]
fn what_ray_said_is_counted_up_to_when_its_head_was_seen_last() {
    let of = |s| {
        let mut state = loading(example());
        if let Reading::Known { value, .. } = &mut state.observed.ray {
            value.pending = vec![PlacementGroup {
                id: "39".into(),
                state: "PENDING".into(),
                bundles: Vec::new(),
                asked_ms: Some(0),
                infeasible: false,
            }];
        }
        silent(state, NodeId(0), s)
    };
    for text in texts(of, (200, 60)) {
        for said in ["was alive for 12m00s", "waited for 5m10s"] {
            assert!(text.contains(said), "{said}\n{text}");
        }
        assert!(!text.contains(" waits for 5m"), "{text}");
    }
}

#[test]
fn what_a_silent_node_could_not_tell_is_known_up_to_its_last_word() {
    let of = |s| {
        let mut state = loading(example());
        let why = "docker does not answer".to_owned();
        state.nodes[1].problems = vec![Problem::error(why.clone())];
        let unread = Unread {
            why,
            since: ago(s + 123).stamp,
        };
        state.nodes[1].unread.insert(Subject::Disk, unread);
        let wanted = bringup::domain::logs::Wanted::Named("vllm-qwen35".into());
        state.nodes[1].log.source = Some((LogSource::Nothing { wanted: wanted.words() }, ago(s + 40).stamp));
        silent(state, NodeId(1), s)
    };
    for text in texts(of, (200, 60)) {
        for said in ["known for 2m03s when last seen", "no container for 40 s when last seen"] {
            assert!(text.contains(said), "{said}\n{text}");
        }
    }
}

#[test]
fn a_load_that_is_inferred_from_a_silent_node_is_as_old_as_that() {
    // Its engine writes no log of its own.
    let of = |s| silent(loading(example()), NodeId(1), s);
    for (text, ago) in texts(of, (200, 60)).into_iter().zip(["5 s ago", "1m05s ago"]) {
        let said = text.lines().find(|l| l.contains("last seen: ")).unwrap_or_default();
        assert!(said.contains(ago) && said.contains("not known now"), "{text}");
    }
}

#[test]
fn the_line_on_top_tells_no_stage_as_now_while_the_head_is_silent() {
    for text in texts(|s| silent(loading(example()), NodeId(0), s), (120, 40)) {
        let top = text.lines().next().unwrap_or_default();
        assert!(top.contains("last seen: weights 25/41"), "{top}");
        assert!(!top.contains('▕'), "{top}");
    }
}

/// Ray calls two nodes alive, and of the second one it is not so, or nobody knows.
#[test]
fn rays_title_says_no_more_than_its_rows() {
    let ended = |mut state: State| {
        if let Reading::Known { value, .. } = &mut state.observed.nodes[1].containers {
            value.containers[0].state = ContainerState::Exited { code: 137, oom: false };
        }
        state
    };
    let quiet = |mut state: State| {
        if let Reading::Known { at, .. } = &mut state.observed.nodes[1].memory {
            *at = ago(30).stamp;
        }
        state
    };
    for (state, count, doubt) in [
        (loading(example()), "2/2 alive", None),
        (ended(loading(example())), "1/2 alive", Some("1 in doubt")),
        (quiet(loading(example())), "1/2 alive", Some("1 in doubt")),
        (
            silent(loading(example()), NodeId(1), 5),
            "1/2 alive",
            Some("1 not answering"),
        ),
        (
            ended(silent(loading(example()), NodeId(1), 5)),
            "1/2 alive",
            Some("1 not answering"),
        ),
        (
            silent(loading(example()), NodeId(0), 5),
            "2/2 were alive",
            Some("1 not answering"),
        ),
    ] {
        for size in [(80, 24), (120, 40), (200, 60)] {
            let text = shot(&state, &LogWindows::default(), size).pane(Pane::Ray);
            let title = text.lines().next().unwrap_or_default();
            assert!(title.contains(count), "{count}\n{text}");
            assert!(
                size.0 == 80 || doubt.is_none_or(|doubt| title.contains(doubt)),
                "{doubt:?}\n{text}"
            );
            if text.contains("more, z") {
                continue;
            }
            let well = text.lines().skip(1).filter(|l| l.contains('✓')).count();
            let counted = title
                .split('/')
                .next()
                .and_then(|t| t.rsplit(' ').next())
                .unwrap_or_default();
            let past = title.contains("were");
            assert!(past || counted == well.to_string(), "{text}");
            assert!(
                past || title.contains(&format!("{well}/2 GPUs")) || size.0 == 80,
                "{text}"
            );
        }
    }
}

#[test]
fn a_silent_node_is_no_member_for_sure() {
    let state = silent(loading(example()), NodeId(1), 5);
    let text = shot(&state, &LogWindows::default(), (120, 40)).text();
    let top = text.lines().next().unwrap_or_default();
    assert!(top.contains("workers 1/1 ? 5 s ago"), "{top}");
}
