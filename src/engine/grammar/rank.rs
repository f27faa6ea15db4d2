//! Which rank wrote a line.

use crate::domain::load::{LineFact, RankLine, Stage};

use super::record;

/// How the names of a rank's processes begin, over the versions.
const WORKERS: [&str; 4] = ["RayWorker", "Worker", "VllmWorker", "SGLangWorker"];

/// Kinds of parallelism that a prefix names.
const KINDS: [&str; 6] = ["DP", "PP", "PCP", "TP", "EP", "DCP"];

/// Longest address that is kept, in characters.
const ADDRESS: usize = 64;

/// The rank that wrote a line and what the line says of it, when it names one and says something. `facts` is what was read from the line; only its
/// beginning is needed.
pub(super) fn read(plain: &str, facts: &[LineFact]) -> Option<RankLine> {
    let mut found = RankLine::default();
    let mut worker = false;
    let text = record::undated(plain);
    for group in record::groups(text) {
        worker |= read_group(group, &mut found);
    }
    if let Some(named) = sglang(text) {
        found.name = Some(named);
        worker = true;
    }
    if !worker {
        return None;
    }
    found.rank = number(record::message(plain));
    for fact in facts {
        match fact {
            LineFact::Stage(stage) => found.stage = found.stage.max(Some(*stage)),
            LineFact::Bar { stage, done, total } => {
                found.stage = Some(*stage);
                found.bar = Some((*done, *total));
            }
            LineFact::Download { .. } => found.stage = Some(Stage::Download),
            LineFact::NewStart
            | LineFact::Checkpoint(_)
            | LineFact::Rank(_)
            | LineFact::GpuWait { .. }
            | LineFact::StillWaits
            | LineFact::Transport(_)
            | LineFact::Failure(_)
            | LineFact::Outlived(_)
            | LineFact::ShutsDown
            | LineFact::GaveUp { .. } => {}
        }
    }
    (found.stage.is_some() || found.rank.is_some()).then_some(found)
}

/// `RayWorkerProc pid=117, ip=192.168.200.13` or `Worker_TP1 pid=117`. Says whether it is a rank's.
fn read_group(group: &str, found: &mut RankLine) -> bool {
    let (name, rest) = group.split_once(' ').unwrap_or((group, ""));
    if !WORKERS.iter().any(|w| name.starts_with(w)) {
        return false;
    }
    if let Some((_, label)) = name.split_once('_').filter(|(_, label)| label_of_kinds(label)) {
        found.name = Some(label.to_owned());
    }
    for pair in rest.split(", ") {
        match pair.split_once('=') {
            Some(("pid", pid)) => found.pid = pid.parse().ok().or(found.pid),
            Some(("ip", ip)) => found.address = Some(ip.chars().take(ADDRESS).collect()),
            Some(_) | None => {}
        }
    }
    true
}

/// `TP1`, `DP1_TP0_EP2`.
fn label_of_kinds(label: &str) -> bool {
    label.split('_').all(kind)
}

fn kind(word: &str) -> bool {
    KINDS.iter().any(|k| {
        word.strip_prefix(k)
            .is_some_and(|n| !n.is_empty() && n.len() <= 5 && n.chars().all(|c| c.is_ascii_digit()))
    })
}

/// `[2026-03-17 17:35:07 DP9 TP9] …`: SGLang's ranks stand behind the time.
fn sglang(text: &str) -> Option<String> {
    let (head, _) = text.strip_prefix("[20")?.split_once("] ")?;
    let words: Vec<&str> = head.split(' ').filter(|w| kind(w)).collect();
    (!words.is_empty()).then(|| words.join("_"))
}

/// `world_size=2 rank=1 local_rank=0 …` or `rank 1 in world size 2 is assigned as …`.
fn number(message: &str) -> Option<u32> {
    let rest = if message.starts_with("world_size=") {
        message.split_once(" rank=")?.1
    } else {
        let (number, _) = message.strip_prefix("rank ")?.split_once(" in world size ")?;
        number
    };
    rest.split(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::super::read;
    use super::*;

    fn rank(line: &str) -> Option<RankLine> {
        read(line).into_iter().find_map(|fact| {
            let LineFact::Rank(rank) = fact else { return None };
            Some(rank)
        })
    }

    #[test]
    fn a_rank_is_named_by_its_prefixes_in_any_order() {
        let cases = [
            (
                "\u{1b}[36m(RayWorkerProc pid=117, ip=192.168.200.13)\u{1b}[0m (Worker_TP1 pid=117) INFO 11-29 19:00:23 [cpu_model_runner.py:68] Starting to load model /srv/models/mid-qwen2...",
                (
                    Some("TP1"),
                    None,
                    Some(117),
                    Some("192.168.200.13"),
                    Some(Stage::Weights),
                ),
            ),
            (
                "(Worker pid=490) INFO 11-29 19:00:21 [parallel_state.py:1906] world_size=2 rank=1 local_rank=0 distributed_init_method=tcp://192.168.200.12:38055 backend=gloo",
                (None, Some(1), Some(490), None, Some(Stage::Distributed)),
            ),
            (
                "(RayWorkerProc pid=490) (Worker pid=490) INFO 11-29 19:00:23 [parallel_state.py:2350] rank 0 in world size 2 is assigned as DP rank 0, PP rank 0",
                (None, Some(0), Some(490), None, Some(Stage::Distributed)),
            ),
            (
                "(RayWorkerWrapper pid=665758, ip=10.5.1.70) INFO 08-07 10:36:23 model_runner.py:692] Loading model weights took 24.4023 GB",
                (None, None, Some(665_758), Some("10.5.1.70"), Some(Stage::Weights)),
            ),
            (
                "(RayWorkerProc pid=2784025, ip=192.168.10.220) (Worker_DP1_TP0_EP2 pid=2784025) INFO 06-10 11:03:33 [gpu_worker.py:1] Available KV cache memory: 3.1 GiB",
                (
                    Some("DP1_TP0_EP2"),
                    None,
                    Some(2_784_025),
                    Some("192.168.10.220"),
                    Some(Stage::KvCache),
                ),
            ),
            (
                "[2025-03-27 21:33:31 TP0] KV Cache is allocated. #tokens: 834615, K size: 54.12 GB",
                (Some("TP0"), None, None, None, Some(Stage::KvCache)),
            ),
        ];
        for (line, (name, number, pid, address, stage)) in cases {
            let want = RankLine {
                name: name.map(str::to_owned),
                rank: number,
                pid,
                address: address.map(str::to_owned),
                stage,
                bar: None,
            };
            assert_eq!(rank(line), Some(want), "{line}");
        }
        let bar = "\u{1b}[36m(RayWorkerProc pid=490)\u{1b}[0m Loading safetensors checkpoint shards:   7% Completed | 1/14 [00:00<00:01,  7.28it/s]";
        assert_eq!(rank(bar).and_then(|r| r.bar), Some((1, 14)));
    }

    #[test]
    fn what_no_rank_wrote_or_what_says_nothing_of_one_names_none() {
        for line in [
            "(EngineCore_DP0 pid=441) INFO 11-24 11:44:17 [gpu_worker.py:348] Available KV cache memory: 33.31 GiB",
            "(RayWorkerWrapper pid=2528) spark:2528:2528 [0] NCCL INFO Channel 07/16 : 0 1",
            "Loading safetensors checkpoint shards:   7% Completed | 1/14 [00:00<00:01,  7.28it/s]",
            "(raylet) The node with node id: 0f21 has been marked dead",
        ] {
            assert_eq!(rank(line), None, "{line}");
        }
    }
}
