//! Lines as they were seen, each with the rule that it is a sign of and the clause that comes of it.

use std::collections::BTreeSet;
use std::fmt::Write;

use proptest::prelude::*;

use crate::diagnose::{Evidence, Matcher, Place, builtin, rank};
use crate::domain::load::LineFact;
use crate::domain::sign::SignKind;
use crate::domain::{NodeId, Role};
use crate::log::{Line, Stream};

use super::seen::seen;
use super::{HEAD, config, id, now, read, signs};

#[test]
fn lines_that_were_seen_give_their_rule_and_a_clause_with_their_values() {
    let config = config();
    let mut wrong = String::new();
    for (place, text, rule, clause) in seen() {
        let found = signs(place, text);
        let first = found.iter().find_map(id);
        let mut evidence = Evidence::default();
        for sign in found.clone() {
            evidence.log(HEAD, HEAD, sign, now(0));
        }
        let causes = rank(&evidence, &config);
        let said = causes.first().map(|c| c.text.as_str());
        if first != Some(rule) || said != Some(clause) {
            let _ok = writeln!(wrong, "{text}\n  {first:?}, not {rule}\n  {said:?}\n  not {clause}");
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

#[test]
fn every_rule_that_looks_for_a_text_is_tried_on_a_line() {
    let tried: BTreeSet<&str> = seen().iter().map(|(_, _, rule, _)| *rule).collect();
    let unsaid = ["request-text", "points-elsewhere", "rdma-tried-again"];
    let untried: Vec<&str> = builtin()
        .iter()
        .filter(|r| !r.signs.is_empty())
        .map(|r| r.id.as_str())
        .filter(|id| !tried.contains(id) && !unsaid.contains(id))
        .collect();
    assert!(untried.is_empty(), "{untried:?}");
}

#[test]
fn lines_that_point_elsewhere_or_quote_a_request_are_a_sign_of_nothing() {
    let lines = [
        "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {'EngineCore': 1}",
        "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}",
        "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See stack trace (above) for the root cause.",
        "ray.exceptions.RayTaskError(ValueError): ray::RayWorkerWrapper.execute_method() (pid=12)",
        "INFO 11-29 17:14:25 [logger.py:41] Received request cmpl-1: prompt: 'why CUDA out of memory and EADDRINUSE?'",
        "2026-11-29 18:58:10,882\tINFO scripts.py:1043 -- Local node IP: 192.168.200.12",
        "INFO 04-01 02:46:00 ray_utils.py:214] Waiting for creating a placement group of specs for 10 seconds. specs=[{'node:192.168.200.12': 0.001, 'GPU': 1.0}, {'GPU': 1.0}].",
        "(EngineCore pid=15) INFO 11-29 17:13:50 [shm_broadcast.py:871] No available shared memory broadcast block found in 60 seconds.",
        "WARNING 06-07 tensor_parallel_size=2 is bigger than a reserved number of GPUs (1 GPUs) in a node 439b.",
        "spark:1:1 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0",
        "spark:1:1 [0] NCCL INFO Call to ibv_modify_qp failed with 110 Connection timed out, on dev rocep1s0f0:1, curr state INIT, next state RTR, local GID index 3, retrying 1/34 after 100 msec of sleep",
        "(raylet) node_manager.cc:3090: 0 Workers (tasks / actors) killed due to memory pressure (OOM), 1 Workers crashed due to other reasons at node (ID: e5d9, IP: 192.168.200.13) over the last time period.",
        "(APIServer pid=1) INFO:     127.0.0.1:40052 - \"GET /health HTTP/1.1\" 401 Unauthorized",
    ];
    for line in lines {
        assert_eq!(signs(Place::HeadLog, line), [], "{line}");
    }
}

#[test]
fn a_failure_that_no_rule_knows_is_told_as_that_and_not_without_end() {
    let mut matcher = Matcher::new(&config(), Role::Head);
    let found = read(&mut matcher, &"ValueError: odd\n".repeat(100));
    let counts: Vec<u64> = found.iter().map(|s| s.times).collect();
    assert_eq!(counts, [1, 2, 3, 4, 5, 6, 7, 8, 16, 32, 64]);
    assert!(
        found
            .iter()
            .all(|s| s.what == SignKind::Unknown && s.text == "ValueError: odd")
    );
}

#[test]
fn what_stands_beyond_the_limit_of_a_line_is_not_looked_at() {
    let pad = "x".repeat(crate::diagnose::LOOKED_AT - 3);
    assert_eq!(signs(Place::HeadLog, &format!("{pad} CUDA out of memory")), []);
    // A character that the limit falls into does no harm.
    assert_eq!(signs(Place::HeadLog, &format!("{pad}████ CUDA out of memory")), []);
    assert_eq!(signs(Place::HeadLog, &format!("CUDA out of memory {pad}")).len(), 1);
}

#[test]
fn what_a_line_costs_does_not_grow_with_what_it_repeats() {
    // Every text of every rule, many times over: each rule is tried once on a line.
    let texts: Vec<&str> = builtin()
        .iter()
        .flat_map(|r| &r.signs)
        .map(|s| s.has.as_str())
        .collect();
    let line = texts.join(" ").repeat(4);
    let candidates = builtin().candidates(&line).len();
    assert_eq!(candidates, texts.len());
}

proptest! {
    #[test]
    fn no_line_makes_it_panic(lines in prop::collection::vec("\\PC{0,200}|[\\[\\]()%|/0-9 :.\u{1b}█m]{0,60}", 0..20)) {
        let found = signs(Place::HeadLog, &lines.join("\n"));
        prop_assert!(found.len() <= 3 * lines.len());
    }

    #[test]
    fn seen_lines_cut_anywhere_make_no_panic((place, text, ..) in prop::sample::select(seen()), at in 0usize..600) {
        let cut: String = text.chars().take(at).collect();
        let found = signs(place, &cut);
        prop_assert!(found.len() <= 8);
    }
}

#[test]
fn what_is_outlived_is_taken_back_by_its_text_and_node_and_counts_no_more() {
    let first = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 7.00 GiB.";
    let then = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.";
    let config = config();
    let mut matcher = Matcher::at(&config, Place::HeadLog, builtin());
    let mut evidence = Evidence::default();
    let seen = |evidence: &mut Evidence, matcher: &mut Matcher, text: &str, ms| {
        for sign in read(matcher, text) {
            evidence.log(HEAD, HEAD, sign, now(ms));
        }
    };
    let outlive = |evidence: &mut Evidence, matcher: &mut Matcher, text: &str| {
        let fact = [LineFact::Outlived(text.to_owned())];
        let line = Line::of(Stream::Out, "it goes on");
        assert_eq!(matcher.read(&line, &fact, true), []);
        evidence.outlived(HEAD, text);
    };
    seen(&mut evidence, &mut matcher, first, 1_000);
    seen(&mut evidence, &mut matcher, then, 9_000);
    evidence.outlived(NodeId(1), first);
    assert_eq!(rank(&evidence, &config)[0].times, 2, "another node goes on");
    outlive(&mut evidence, &mut matcher, first);
    let causes = rank(&evidence, &config);
    let lines: Vec<&str> = causes[0].evidence.iter().map(|line| line.text.as_str()).collect();
    assert_eq!((causes.len(), causes[0].times, lines), (1, 1, vec![then]));
    assert_eq!(causes[0].at, now(9_000).wall);
    assert!(!causes[0].text.contains("7.00 GiB"), "{}", causes[0].text);
    outlive(&mut evidence, &mut matcher, then);
    assert_eq!(rank(&evidence, &config), []);
    // However often one was outlived, the next one is told, as the first.
    for _ in 0..20 {
        seen(&mut evidence, &mut matcher, first, 10_000);
        outlive(&mut evidence, &mut matcher, first);
        seen(&mut evidence, &mut matcher, "ValueError: odd", 10_000);
        outlive(&mut evidence, &mut matcher, "ValueError: odd");
    }
    assert_eq!(rank(&evidence, &config), []);
    let told: Vec<u64> = [first, "ValueError: odd"]
        .iter()
        .flat_map(|text| read(&mut matcher, text))
        .map(|sign| sign.times)
        .collect();
    assert_eq!(told, [1, 1]);
}
