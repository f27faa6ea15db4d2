//! The grammar on lines that were seen, and on whole logs.

use crate::domain::load::{LineFact, Stage, Transport};
use crate::domain::units::Bytes;

use super::read_line;

fn stage(stage: Stage) -> Vec<LineFact> {
    vec![LineFact::Stage(stage)]
}

fn bar(stage: Stage, done: u64, total: u64) -> Vec<LineFact> {
    vec![LineFact::Bar { stage, done, total }]
}

fn download(file: Option<&str>, done: u64, total: u64) -> Vec<LineFact> {
    let (file, done, total) = (file.map(str::to_owned), Bytes(done), Bytes(total));
    vec![LineFact::Download { file, done, total }]
}

fn failure(text: &str) -> Vec<LineFact> {
    vec![LineFact::Failure(text.to_owned())]
}

fn gave_up(text: &str) -> Vec<LineFact> {
    let text = text.to_owned();
    vec![LineFact::GaveUp { text, sure: true }]
}

#[test]
fn stages_are_read_in_the_words_of_every_version() {
    let cases = [
        (
            "(EngineCore_DP0 pid=441) INFO 11-24 11:43:54 [gpu_model_runner.py:3341] Model loading took 2.0513 GiB memory and 27.200487 seconds",
            Stage::Weights,
        ),
        (
            "(RayWorkerWrapper pid=665758, ip=10.5.1.70) INFO 08-07 10:36:23 model_runner.py:692] Loading model weights took 24.4023 GB",
            Stage::Weights,
        ),
        (
            "(EngineCore pid=1265223) INFO 06-02 00:51:40 [model_runner.py:295] Model loading took 7.64 GiB and 32.969258 seconds",
            Stage::Weights,
        ),
        (
            "INFO 03-21 20:15:45 [worker.py:267] model weights take 12.55GiB; non_torch_memory takes 0.16GiB",
            Stage::Weights,
        ),
        (
            "(ServeReplica:app:LLMServer:some-model pid=28488) (EngineCore pid=29087) (RayWorkerProc pid=29271) (Worker pid=29271) INFO 08-19 17:59:46 [model_runner.py:284] Loading model from scratch...",
            Stage::Weights,
        ),
        (
            "(Worker_TP0 pid=490) INFO 11-29 19:00:23 [cpu_model_runner.py:68] Starting to load model /srv/models/mid-qwen2...",
            Stage::Weights,
        ),
        (
            "INFO 11-29 19:00:23 [gpu_model_runner.py:68] Starting to load model Qwen/Qwen3.5-122B-A10B-FP8...",
            Stage::Download,
        ),
        (
            "(APIServer pid=1) (EngineCore_DP0 pid=283) (Worker_TP6 pid=301) INFO 11-23 15:55:18 [weight_utils.py:441] Time spent downloading weights for deepseek-ai/DeepSeek-V3.1: 176.288637 seconds",
            Stage::Download,
        ),
        (
            "INFO 11-24 11:44:01 [backends.py:708] Dynamo bytecode transform time: 6.07 s",
            Stage::Compile,
        ),
        (
            "(Worker pid=20976) INFO 11-29 17:13:51 [decorators.py:743] [backbone] saved AOT compiled function to /root/.cache",
            Stage::Compile,
        ),
        (
            "(EngineCore_DP0 pid=441) INFO 11-24 11:44:17 [gpu_worker.py:348] Available KV cache memory: 33.31 GiB",
            Stage::KvCache,
        ),
        (
            "(Worker pid=20976) INFO 11-29 17:13:54 [cpu_worker.py:260] Explicitly set (1.0/14.59) GiB for KV cache on node 0.",
            Stage::KvCache,
        ),
        (
            "(Worker_TP0 pid=116) INFO 05-18 06:19:19 [gpu_model_runner.py:6190] Graph capturing finished in 2 secs, took 0.04 GiB",
            Stage::Graphs,
        ),
        (
            "(EngineCore pid=107) INFO 05-18 06:19:19 [core.py:299] init engine (profile, create kv cache, warmup model) took 147.31 s (compilation: 79.95 s)",
            Stage::Warmup,
        ),
        (
            "(EngineCore_DP0 pid=2557) INFO 04-27 14:16:51 [ray_utils.py:417] No current placement group found. Creating a new placement group.",
            Stage::Placement,
        ),
        (
            "2026-11-29 18:59:36,901\tINFO worker.py:1841 -- Connecting to existing Ray cluster at address: 192.168.200.12:6379...",
            Stage::Placement,
        ),
        // The same once its tab has become blanks.
        (
            "2026-11-29 18:59:36,901 INFO worker.py:1841 -- Connecting to existing Ray cluster at address: 192.168.200.12:6379...",
            Stage::Placement,
        ),
        (
            "(Worker pid=958) INFO 08-09 20:55:03 [distributed/parallel_state.py:1607] world_size=2 rank=1 local_rank=0",
            Stage::Distributed,
        ),
        ("INFO:     Application startup complete.", Stage::Listening),
        (
            "2026-05-12T08:01:39.331095044Z (APIServer pid=1) INFO:     Uvicorn running on http://0.0.0.0:8000 (Press CTRL+C to quit)",
            Stage::Listening,
        ),
        (
            "[2025-03-27 21:33:31 TP0] KV Cache is allocated. #tokens: 834615, K size: 54.12 GB",
            Stage::KvCache,
        ),
        (
            "[2025-03-27 21:33:31 TP0] Memory pool end. avail mem=14.61 GB",
            Stage::KvCache,
        ),
        (
            "[2025-03-27 21:33:50] The server is fired up and ready to roll!",
            Stage::Listening,
        ),
    ];
    for (line, expected) in cases {
        assert_eq!(read_line(line), stage(expected), "{line}");
    }
}

#[test]
fn a_new_start_is_told_by_the_banner_or_by_words() {
    let new = vec![LineFact::NewStart, LineFact::Stage(Stage::Starting)];
    let lines = [
        "(APIServer pid=1868) INFO 04-27 14:16:41 [utils.py:302]  ▄▄ ▄█ █     █     █ ▀▄▀ █  version 0.17.1+a03ca76a.nv26.03.46967107",
        "\u{1b}[0;36m(APIServer pid=1)\u{1b}[0;0m \u{1b}[32mINFO\u{1b}[0m \u{1b}[90m11-29 17:30:48\u{1b}[0m \u{1b}[90m[api_utils.py:347]\u{1b}[0m  \u{1b}[93m▄▄\u{1b}[0m \u{1b}[94m▄█\u{1b}[0m \u{1b}[1m█     █     █ ▀▄▀ █\u{1b}[22m  version 0.32.0",
        "INFO 06-16 10:03:14 [api_server.py:1885] vLLM API server version 0.9.1",
        "[0;36m(APIServer pid=1) [0;0m [32mINFO [0m [90m07-24 13:15:43 [0m [90m[api_server.py:3] [0m vLLM API server version 0.11.0",
        "(MainProcess pid=1) INFO 11-29 17:31:55 [serve.py:224] Launching vLLM (v0.32.0) headless multiproc executor, with head node address 10.77.0.1:29555 for torch.distributed process group.",
        "[2025-12-23 14:17:40] server_args=ServerArgs(model_path='m', tp_size=2)",
    ];
    for line in lines {
        assert_eq!(read_line(line), new, "{line}");
    }
    // The banner's other rows.
    assert_eq!(
        read_line("(APIServer pid=1868) INFO 04-27 14:16:41 [utils.py:302]        █     █     █▄   ▄█"),
        []
    );
}

#[test]
fn bars_give_their_counts() {
    let cases = [
        (
            "Loading safetensors checkpoint shards:  55% Completed | 90/163 [00:22<00:13,  5.23it/s]",
            bar(Stage::Weights, 90, 163),
        ),
        (
            "[36m(RayWorkerProc pid=490)[0m Loading safetensors checkpoint shards:   7% Completed | 1/14 [00:00<00:01,  7.28it/s]",
            bar(Stage::Weights, 1, 14),
        ),
        (
            "\u{1b}[36m(RayWorkerProc pid=516, ip=10.77.0.2)\u{1b}[0m \rLoading safetensors checkpoint shards: 100% Completed | 5/5 [00:00<00:00, 298.13it/s]",
            bar(Stage::Weights, 5, 5),
        ),
        (
            "Loading pt checkpoint shards:  50% Completed | 1/2 [00:03<00:30,  3.09s/it]",
            bar(Stage::Weights, 1, 2),
        ),
        (
            "Loading safetensors using Fastsafetensor loader:  25% Completed | 1/4 [00:03<00:30,  3.09s/it]",
            bar(Stage::Weights, 1, 4),
        ),
        (
            "Multi-thread loading shards:  25% Completed | 3/12 [00:03<00:30,  3.09s/it]",
            bar(Stage::Weights, 3, 12),
        ),
        (
            "Capturing CUDA graphs (decode, FULL):  46%|████▌     | 16/35 [00:02<00:02,  8.85it/s]",
            bar(Stage::Graphs, 16, 35),
        ),
        (
            "Capturing CUDA graph shapes:  14%|█▍        | 5/35 [00:02<00:02,  8.85it/s]",
            bar(Stage::Graphs, 5, 35),
        ),
        (
            "Capturing batches (bs=16 avail_mem=13.56 GB):  17%|█▋        | 1/6 [00:16<01:22, 16.57s/it]",
            bar(Stage::Graphs, 1, 6),
        ),
        (
            "Fetching 6 files:  17%|█▋        | 1/6 [00:16<01:22, 16.57s/it]",
            bar(Stage::Download, 1, 6),
        ),
        (
            "model-00001-of-00006.safetensors: 100%|██████▉| 4.93G/4.93G [00:25<00:00, 194MB/s]",
            download(Some("model-00001-of-00006.safetensors"), 4_930_000_000, 4_930_000_000),
        ),
        (
            "Reconstructing (incomplete total...):   0%| |  0.00B / 51.6GB",
            download(None, 0, 51_600_000_000),
        ),
        // Without a name, and with a record glued to it.
        (
            "  0%|                    | 0/23 [00:00<?, ?it/s][2025-03-03 18:46:44 TP3] Capture cuda graph begin. This can take up to several minutes.",
            bar(Stage::Graphs, 0, 23),
        ),
        // Two states glued together: the later counts.
        (
            "Loading safetensors checkpoint shards:  25% Completed | 1/4 [00:00<00:01,  2.32it/s]Loading safetensors checkpoint shards:  50% Completed | 2/4 [00:00<00:01,  2.32it/s]",
            bar(Stage::Weights, 2, 4),
        ),
    ];
    for (line, expected) in cases {
        assert_eq!(read_line(line), expected, "{line}");
    }
}

#[test]
fn the_size_of_the_weights_is_read() {
    let line = "(Worker_TP0 pid=54) INFO 05-06 04:31:18 [weight_utils.py:904] Filesystem type for checkpoints: EXT4. Checkpoint size: 17.69 GiB. Available RAM: 51.99 GiB.";
    let size = LineFact::Checkpoint(Bytes(18_994_492_866));
    assert_eq!(read_line(line), [LineFact::Stage(Stage::Weights), size]);
    for other in [
        "Checkpoint size: much GiB.",
        "Checkpoint size: -1 GiB.",
        "Checkpoint size: 1",
    ] {
        assert_eq!(read_line(other), [], "{other}");
    }
}

#[test]
fn waits_and_transports_are_read() {
    let wait = "INFO 04-01 02:47:00 ray_utils.py:214] Waiting for creating a placement group of specs for 70 seconds. specs=[{'GPU': 1.0}]";
    let expected = vec![LineFact::Stage(Stage::Placement), LineFact::GpuWait { seconds: 70 }];
    assert_eq!(read_line(wait), expected);
    let channel = "(EngineCore_DP0 pid=2301) (RayWorkerWrapper pid=2528) spark:2528:2528 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/";
    assert_eq!(
        read_line(&format!("{channel}IB/0")),
        [LineFact::Transport(Transport::Ib)]
    );
    assert_eq!(
        read_line(&format!("{channel}Socket/0")),
        [LineFact::Transport(Transport::Socket)]
    );
    let idle = "(EngineCore pid=15003) INFO 11-29 17:13:50 [shm_broadcast.py:871] No available shared memory broadcast block found in 60 seconds.";
    assert_eq!(read_line(idle), [LineFact::StillWaits]);
    assert_eq!(
        read_line("spark:1:1 [0] NCCL INFO Channel 00 : 0[0] -> 1[1] via P2P/IPC"),
        []
    );
}

#[test]
fn failures_are_lines_that_say_what_failed() {
    let cases = [
        (
            "(EngineCore_DP0 pid=6940) ValueError: Free memory on device cuda:1 (19.77/22.05 GiB) on startup is less than desired",
            "ValueError: Free memory on device cuda:1 (19.77/22.05 GiB) on startup is less than desired",
        ),
        (
            "(EngineCore_DP0 pid=120) ERROR 01-28 06:36:45 [core.py:946] RuntimeError: No supported CUDA architectures found for major versions [10].",
            "RuntimeError: No supported CUDA architectures found for major versions [10].",
        ),
        (
            "ray.exceptions.OutOfMemoryError: 1 worker(s) were killed due to the node running low on memory",
            "ray.exceptions.OutOfMemoryError: 1 worker(s) were killed due to the node running low on memory",
        ),
        (
            "Error: No available node types can fulfill resource request {'GPU': 1.0, 'node:192.168.50.192': 0.001}",
            "Error: No available node types can fulfill resource request {'GPU': 1.0, 'node:192.168.50.192': 0.001}",
        ),
        (
            "vllm: error: unrecognized arguments: serve /models/GLM",
            "vllm: error: unrecognized arguments: serve /models/GLM",
        ),
        ("/bin/sh: 1: ray: not found", "/bin/sh: 1: ray: not found"),
        (
            "spark:1:1 [0] misc/ibvwrap.cc:217 (wrap_ibv_reg_mr_iova2) NCCL WARN Call to ibv_reg_mr_iova2 failed with error Cannot allocate memory",
            "spark:1:1 [0] misc/ibvwrap.cc:217 (wrap_ibv_reg_mr_iova2) NCCL WARN Call to ibv_reg_mr_iova2 failed with error Cannot allocate memory",
        ),
    ];
    for (line, expected) in cases {
        assert_eq!(read_line(line), failure(expected), "{line}");
    }
    // One that says why and that nothing comes after it, and one that only says the latter.
    let died = "RayWorkerProc rank=[2] died unexpectedly, shutting down executor.";
    let record = format!("(EngineCore pid=84) ERROR 06-07 18:13:55 [multiproc.py:1] {died}");
    assert_eq!(read_line(&record), [failure(died), gave_up(died)].concat());
    for pointer in [
        "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {'EngineCore': 1}",
        "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See stack trace (above) for the root cause.",
    ] {
        assert_eq!(read_line(pointer), gave_up(pointer));
    }
    let raylet = "(raylet) The node with node id: 0f21 and address: 10.0.0.51 has been marked dead because the detector has missed too many heartbeats";
    assert!(matches!(read_line(raylet).as_slice(), [LineFact::Failure(_)]));
}

#[test]
fn a_last_word_is_told_by_who_says_it_and_how_loud() {
    let own = [
        "(EngineCore pid=1639) ERROR 04-25 03:33:09 [core.py:1108] EngineCore failed to start.",
        "ERROR 06-18 09:11:02 [core.py:516] EngineCore encountered a fatal error.",
        "(VllmWorker rank=0 pid=1110) ERROR 08-26 12:16:15 [multiproc_executor.py:492] WorkerProc failed to start.",
        "(EngineCore pid=1281) ERROR 09-10 08:13:54 [core.py:1374] Exception: WorkerProc initialization failed due to an exception in a background process. See stack trace for root cause.",
        "(APIServer pid=1) RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {'EngineCore': 1}",
        "RuntimeError: Engine process failed to start. See stack trace for the root cause.",
        "(EngineCore pid=1709) ERROR 06-01 17:32:04 [multiproc_executor.py:283] Worker proc VllmWorker-0 died unexpectedly, shutting down executor.",
        "(APIServer pid=1) ERROR 09-05 01:15:59 [async_llm.py:718] vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See stack trace (above) for the root cause.",
        "[2025-03-29 18:56:25 TP0] Scheduler hit an exception: Traceback (most recent call last):",
        "[2026-02-27 15:27:13] Received sigquit from a child process. It usually means the child failed.",
    ];
    let likely = [
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.32 GiB.",
        "(Worker_TP1 pid=86) ERROR 09-10 08:13:53 [multiproc_executor.py:944] torch.cuda.OutOfMemoryError: CUDA out of memory.",
    ];
    let none = [
        "(Worker_TP0 pid=85) WARNING 09-10 08:13:53 [backends.py:1] torch.OutOfMemoryError: CUDA out of memory. Trying the next one.",
        "2026-11-29 18:59:36,893 WARNING worker.py:1841 -- Worker proc x died unexpectedly, shutting down executor.",
        "INFO:     EngineCore failed to start once, and is tried again",
        "Received request cmpl-1: prompt: 'the EngineDeadError: EngineCore encountered an issue'",
        "Runtime error during autotuning: CUDA out of memory. Ignoring this choice.",
        "(EngineCore pid=7) ERROR 09-10 08:13:53 [core.py:7] RuntimeError: No supported CUDA architectures found for major versions [10].",
    ];
    for (lines, told) in [(&own[..], Some(true)), (&likely, Some(false)), (&none, None)] {
        for line in lines {
            let said = read_line(line).into_iter().find_map(|fact| {
                let LineFact::GaveUp { sure, .. } = fact else {
                    return None;
                };
                Some(sure)
            });
            assert_eq!(said, told, "{line}");
        }
    }
    // What only warns is no failure either, whoever knows it.
    assert_eq!(read_line(none[0]), []);
    let warned =
        "(Worker_TP0 pid=85) WARNING 09-10 08:13:53 [x.py:1] ModuleNotFoundError: No module named 'flash_attn'";
    assert_eq!(read_line(warned), []);
    assert_eq!(
        read_line(&warned.replace("WARNING", "ERROR")),
        failure("ModuleNotFoundError: No module named 'flash_attn'")
    );
}

#[test]
fn lines_that_only_point_elsewhere_or_do_no_harm_say_nothing() {
    let lines = [
        "ray.exceptions.RayTaskError(ValueError): ray::RayWorkerWrapper.execute_method() (pid=12)",
        "(Worker_TP0 pid=490) WARNING 11-29 19:00:25 [utils.py:597] Failed to create oneDNN linear, fallback to torch linear. Exception: could not create a primitive",
        "(APIServer pid=11823) ERROR 11-29 17:14:25 [serving.py:274] Error with model error=ErrorInfo(message='The model `nope` does not exist.')",
        "/usr/local/lib/python3.11/x.py:138: FutureWarning: `torch.distributed.reduce_op` is deprecated",
        "(EngineCore_DP0 pid=2301) (RayWorkerWrapper pid=2528) spark:2528:2528 [0] NCCL INFO Channel 07/16 : 0 1",
        "INFO 06-16 10:03:14 [loggers.py:87] Engine 000: Avg prompt throughput: 1254.4 tokens/s, GPU KV cache usage: 57.9%, Prefix cache hit rate: 40.5%",
        "  0%|                    | 0/23 [00:00<?, ?it/s]",
        "Received request cmpl-1: prompt: 'Application startup complete.'",
        "    raise RuntimeError(",
        "[36m(RayWorkerWrapper pid=860)[0m ",
        "config.json: 100%|██████████| 4.19k/4.19k [00:00<00:00, 13.0MB/s]",
        "%|",
        "",
        "\u{1b}[",
        "((((",
    ];
    for line in lines {
        assert_eq!(read_line(line), [], "{line}");
    }
}

/// The stages of a log in the order in which they are first reached, and what the last fact that counts is.
fn walk(log: &str) -> (Vec<Stage>, Option<LineFact>, bool) {
    let mut reached: Vec<Stage> = Vec::new();
    let mut backwards = false;
    let mut last = None;
    for fact in log.lines().flat_map(read_line) {
        let stage = match &fact {
            LineFact::NewStart => {
                reached.clear();
                None
            }
            LineFact::Stage(stage) | LineFact::Bar { stage, .. } => Some(*stage),
            LineFact::Download { .. } => Some(Stage::Download),
            LineFact::GpuWait { .. }
            | LineFact::StillWaits
            | LineFact::Transport(_)
            | LineFact::Checkpoint(_)
            | LineFact::Outlived(_)
            | LineFact::ShutsDown
            | LineFact::Rank(_) => None,
            LineFact::Failure(_) | LineFact::GaveUp { .. } => {
                last = Some(fact.clone());
                None
            }
        };
        if let Some(stage) = stage {
            backwards |= reached.last().is_some_and(|r| stage < *r);
            if !reached.contains(&stage) {
                reached.push(stage);
            }
            if stage == Stage::Listening {
                last = Some(fact);
            }
        }
    }
    (reached, last, backwards)
}

const LISTENING: Option<LineFact> = Some(LineFact::Stage(Stage::Listening));

#[test]
fn a_whole_log_of_one_host_goes_forward_to_the_end() {
    let piped = include_str!("../../../tests/fixtures/engine/vllm-0.32-serve-pipe.log");
    let (stages, last, backwards) = walk(piped);
    assert!(!backwards);
    assert_eq!(last, LISTENING);
    let all = [
        Stage::Starting,
        Stage::Distributed,
        Stage::Weights,
        Stage::Compile,
        Stage::KvCache,
        Stage::Warmup,
        Stage::Listening,
    ];
    assert_eq!(stages, all);
    let terminal = include_str!("../../../tests/fixtures/engine/vllm-0.32-serve-terminal.log");
    let (stages, last, backwards) = walk(terminal);
    assert!(!backwards);
    assert_eq!(last, LISTENING);
    assert!(stages.contains(&Stage::Weights));
    let bars = terminal
        .lines()
        .flat_map(read_line)
        .filter(|f| matches!(f, LineFact::Bar { total: 14, .. }));
    assert_eq!(bars.count(), 16);
}

#[test]
fn a_whole_log_over_ray_reaches_every_stage_though_some_lines_come_late() {
    let logs = [
        include_str!("../../../tests/fixtures/engine/vllm-0.32-ray-two-nodes-head.log"),
        include_str!("../../../tests/fixtures/engine/vllm-0.32-ray-two-nodes-late-lines.log"),
    ];
    for log in logs {
        let (stages, last, _) = walk(log);
        assert_eq!(last, LISTENING);
        for stage in [
            Stage::Placement,
            Stage::Distributed,
            Stage::Weights,
            Stage::KvCache,
            Stage::Warmup,
        ] {
            assert!(stages.contains(&stage), "{stage:?}");
        }
        assert_eq!(stages.last(), Some(&Stage::Listening));
    }
}

#[test]
fn a_log_that_ends_badly_ends_with_the_exception() {
    let log = include_str!("../../../tests/fixtures/engine/vllm-0.32-no-such-model.log");
    let (stages, last, _) = walk(log);
    assert_eq!(stages, [Stage::Starting]);
    assert!(
        matches!(&last, Some(LineFact::Failure(text)) if text.starts_with("huggingface_hub.errors.HFValidationError: Repo id must be")),
        "{last:?}"
    );
    let failures = log
        .lines()
        .flat_map(read_line)
        .filter(|f| matches!(f, LineFact::Failure(_)));
    assert_eq!(failures.count(), 1);
}

proptest::proptest! {
    #[test]
    fn no_line_makes_it_panic(line in "\\PC*|[\\[\\]()%|/0-9 :.\u{1b}█m]{0,60}") {
        let facts = read_line(&line);
        proptest::prop_assert!(facts.len() <= 120);
    }
}

#[test]
fn a_server_that_was_told_to_end_says_so() {
    for line in [
        "INFO:     Shutting down",
        "\u{1b}[32mINFO\u{1b}[0m:     Waiting for application shutdown.",
        "(APIServer pid=14229) INFO 11-29 17:37:19 [launcher.py:254] [shutdown] API server: shutdown triggered",
    ] {
        assert_eq!(read_line(&strip(line)), vec![LineFact::ShutsDown], "{line}");
    }
    for line in [
        "INFO:     Waiting for application startup.",
        "(APIServer pid=14229) INFO 11-29 17:37:15 [loggers.py:335] Shutting down is not what this says",
    ] {
        assert!(!read_line(line).contains(&LineFact::ShutsDown), "{line}");
    }
}

/// Without colours, as the log's decoder gives a line.
fn strip(line: &str) -> String {
    line.replace("\u{1b}[32m", "").replace("\u{1b}[0m", "")
}
