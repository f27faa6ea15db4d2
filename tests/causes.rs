//! Evidence in, first cause out: lines of logs with the engine's own grammar, facts of the cluster and failed steps, through the state.

#[path = "causes/by_hand.rs"]
mod by_hand;
#[path = "causes/same.rs"]
mod same;
#[path = "causes/told.rs"]
mod told;

use bringup::diagnose::{Cause, Confidence, Kind};
use bringup::domain::container::ContainerState;
use bringup::domain::event::{EventKind, Facts};
use bringup::domain::link::LinkState;
use bringup::domain::problem::Problem;
use bringup::domain::serving::{Health, ServeFacts, ServerFacts};
use bringup::domain::{NodeId, Stamp};
use bringup::model::state::ServingState;
use bringup::plan::StepKind;

use told::{HEAD, Told, WORKER, member};

const BANNER: &str =
    "(APIServer pid=1) INFO 11-29 17:24:15 [api_utils.py:347]  ▄▄ ▄█ █     █     █ ▀▄▀ █  version 0.32.0";
const MEMORY_KILL: &str = "(raylet, ip=192.168.200.13) ray.exceptions.OutOfMemoryError: 1 worker(s) were killed due to the node running low on memory. Memory on the node (IP: 192.168.200.13, ID: 0f) was 113.76GB / 119.70GB (0.950345)";
const WORKER_DIED: &str = "(EngineCore pid=84) ERROR 06-07 18:13:55 [multiproc.py:1] RayWorkerProc rank=[1] died unexpectedly, shutting down executor.";
const ENGINE_FAILED: &str = "(APIServer pid=1) RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {'EngineCore': 1}";
const TASK_ERROR: &str = "ray.exceptions.RayTaskError(ValueError): ray::RayWorkerWrapper.execute_method() (pid=12)";
const NODE_LOST: &str = "(raylet) The node with node id: 0f21 and address: 192.168.200.13 and node name: 192.168.200.13 has been marked dead because the detector has missed too many heartbeats from it.";
const RANK_MISSING: &str =
    "torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. 1/2 clients joined.";
const KV: &str = "(EngineCore pid=441) INFO 11-24 11:44:17 [gpu_worker.py:348] Available KV cache memory: -2.26 GiB";
const TCP: &str = "spark:1:1 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/Socket/0";
const ODD: &str = "RuntimeError: the flux capacitor is empty";

/// A table of logs: who said what when (in seconds), and what comes first, about whom, how sure, with which echoes.
struct Case {
    lines: &'static [(NodeId, u64, &'static str)],
    first: &'static str,
    about: NodeId,
    confidence: Confidence,
    echoes: &'static [&'static str],
    /// Further causes.
    then: &'static [&'static str],
}

const CASES: &[Case] = &[
    Case {
        lines: &[
            (WORKER, 10, MEMORY_KILL),
            (HEAD, 14, WORKER_DIED),
            (HEAD, 14, TASK_ERROR),
            (HEAD, 15, ENGINE_FAILED),
        ],
        first: "ray-memory-kill",
        about: WORKER,
        confidence: Confidence::Known,
        echoes: &["worker-process-died"],
        then: &[],
    },
    // The head tells it of the worker, after what follows from it.
    Case {
        lines: &[
            (HEAD, 14, WORKER_DIED),
            (HEAD, 15, NODE_LOST),
            (HEAD, 20, ENGINE_FAILED),
        ],
        first: "worker-process-died",
        about: HEAD,
        confidence: Confidence::Likely,
        echoes: &["ray-node-lost"],
        then: &[],
    },
    // The console reads the head's log first; the worker was first all the same.
    Case {
        lines: &[
            (HEAD, 700, RANK_MISSING),
            (HEAD, 701, ODD),
            (WORKER, 30, "ValueError: Malformed host:"),
        ],
        first: "ray-address-empty",
        about: WORKER,
        confidence: Confidence::Known,
        echoes: &["rank-missing", "?"],
        then: &[],
    },
    // Nothing tells which of the two was first.
    Case {
        lines: &[(HEAD, 10, KV), (WORKER, 11, "/bin/sh: 1: ray: not found")],
        first: "no-memory-for-kv-cache",
        about: HEAD,
        confidence: Confidence::Likely,
        echoes: &[],
        then: &["ray-not-in-image"],
    },
    // The second follows from nothing that the first says, and was later.
    Case {
        lines: &[(WORKER, 10, "/bin/sh: 1: ray: not found"), (HEAD, 60, KV)],
        first: "ray-not-in-image",
        about: WORKER,
        confidence: Confidence::Known,
        echoes: &[],
        then: &["no-memory-for-kv-cache"],
    },
    // A rule names what it follows from.
    Case {
        lines: &[
            (
                HEAD,
                5,
                "2026-11-29 17:19:11,161\tINFO scripts.py:1101 -- Local node IP: 10.1.230.180",
            ),
            (
                WORKER,
                60,
                "[2026-11-29 17:19:23,547 W 1 1] rpc_client.h:153: Failed to connect to GCS at address 192.168.200.12:6379 within 5 seconds.",
            ),
        ],
        first: "ray-took-external-address",
        about: HEAD,
        confidence: Confidence::Known,
        echoes: &["gcs-unreachable"],
        then: &[],
    },
    // What no rule knows is quoted; what came before it and has a rule as an echo only is no better.
    Case {
        lines: &[(WORKER, 10, ODD), (HEAD, 20, WORKER_DIED), (HEAD, 21, ENGINE_FAILED)],
        first: "?",
        about: WORKER,
        confidence: Confidence::Quoted,
        echoes: &["worker-process-died"],
        then: &[],
    },
    // A line that no rule knows and that was earlier leaves a doubt.
    Case {
        lines: &[(WORKER, 10, ODD), (HEAD, 60, KV)],
        first: "no-memory-for-kv-cache",
        about: HEAD,
        confidence: Confidence::Likely,
        echoes: &[],
        then: &["?"],
    },
    // An earlier start's failures are not this one's.
    Case {
        lines: &[
            (WORKER, 10, MEMORY_KILL),
            (HEAD, 14, KV),
            (HEAD, 100, BANNER),
            (HEAD, 140, "OSError: [Errno 98] Address already in use"),
            (WORKER, 12, ODD),
        ],
        first: "address-in-use",
        about: HEAD,
        confidence: Confidence::Known,
        echoes: &[],
        then: &[],
    },
    // A warning is no cause, and comes last.
    Case {
        lines: &[(HEAD, 5, TCP), (HEAD, 14, KV)],
        first: "no-memory-for-kv-cache",
        about: HEAD,
        confidence: Confidence::Known,
        echoes: &[],
        then: &["nccl-over-tcp"],
    },
    // A rank that waits says more than once in a good start; the wait follows from the node that is gone.
    Case {
        lines: &[(HEAD, 5, NODE_LOST), (HEAD, 7, WORKER_DIED)],
        first: "ray-node-lost",
        about: WORKER,
        confidence: Confidence::Likely,
        echoes: &["worker-process-died"],
        then: &[],
    },
];

#[test]
fn the_first_cause_stands_before_its_echoes() {
    for case in CASES {
        let mut told = Told::new();
        for (node, seconds, text) in case.lines {
            told.line(*node, *seconds, text);
        }
        let causes = told.causes();
        let name = |rule: &Option<String>| rule.clone().unwrap_or_else(|| "?".to_owned());
        let first = causes
            .first()
            .unwrap_or_else(|| panic!("nothing came of {:?}", case.lines));
        let echoes: Vec<String> = first.echoes.iter().map(|e| name(&e.rule)).collect();
        let then: Vec<String> = causes.iter().skip(1).map(|c| name(&c.rule)).collect();
        let got = (name(&first.rule), first.node, first.confidence, echoes, then);
        let own = |list: &[&str]| list.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>();
        let wanted = (
            case.first.to_owned(),
            Some(case.about),
            case.confidence,
            own(case.echoes),
            own(case.then),
        );
        assert_eq!(got, wanted, "{:?}\n{:#?}", case.lines, causes);
    }
}

/// What vLLM without owner prefixes printed as its engine died, and the web server's goodbye below it.
const DIES: &str = "\
INFO 11-29 17:06:30 [loggers.py:111] Engine 000: Avg prompt throughput: 2.8 tokens/s
Process EngineCore_0:
Traceback (most recent call last):
  File \"/usr/lib/python3.12/multiprocessing/process.py\", line 314, in _bootstrap
    self.run()
RuntimeError: CUDA error: an illegal memory access was encountered
INFO:     Shutting down
INFO:     Waiting for application shutdown.
INFO:     Application shutdown complete.
INFO:     Finished server process [1]";

/// The same of SGLang.
const SCHEDULER_DIES: &str = "\
[2026-11-29 17:06:30 TP0] Scheduler hit an exception: Traceback (most recent call last):
  File \"/sgl-workspace/sglang/python/sglang/srt/managers/scheduler.py\", line 2000, in run_scheduler_process
    scheduler.event_loop_overlap()
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 139.81 GiB

[2026-11-29 17:06:30] Received sigquit from a child process. It usually means the child failed.
INFO:     127.0.0.1:1 - \"GET /health HTTP/1.1\" 200 OK
INFO:     Shutting down";

#[test]
fn a_web_servers_goodbye_outlives_no_crash() {
    let cases = [
        (
            DIES,
            "RuntimeError: CUDA error: an illegal memory access was encountered",
        ),
        (
            SCHEDULER_DIES,
            "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 139.81 GiB",
        ),
    ];
    for (log, why) in cases {
        let mut told = Told::new();
        told.up();
        told.clock(1_000, HEAD, 0);
        told.ready(100_000);
        for line in log.lines() {
            told.line(HEAD, 190, line);
        }
        told.server(191_000, ServerFacts::Health(Health::Refused));
        let none = Facts::Serve(ServeFacts::default());
        told.at(191_100, HEAD, EventKind::Facts(none));
        assert_eq!(*told.state(), ServingState::Failed(why.into()));
    }
}

/// A request whose prompt quotes an exception with its traceback, as a log shows it that marks the first line of a record alone.
const PROMPT: &str = "\
(APIServer pid=422) INFO 11-29 17:03:00 [logger.py:39] Received request cmpl-1: prompt: 'why does this fail:
(APIServer pid=422) Traceback (most recent call last):
(APIServer pid=422)   File \"train.py\", line 3, in <module>
(APIServer pid=422) torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 7.00 GiB. GPU 0 has a total capacity of 8.00 GiB
(APIServer pid=422) ', params: SamplingParams(n=1), prompt_token_ids: None";

/// What its writer prints next.
const GOES_ON: &str = "(APIServer pid=422) INFO 11-29 17:03:00 [async_llm.py:1] Added request cmpl-1.";

#[test]
fn what_its_writer_outlived_is_no_cause_of_a_loss_that_comes_later() {
    for goes_on in [true, false] {
        let mut told = Told::new();
        told.up();
        told.clock(1_000, HEAD, 0);
        told.ready(100_000);
        for line in PROMPT.lines() {
            told.line(HEAD, 180, line);
        }
        let rules = |told: &Told| -> Vec<_> { told.causes().into_iter().filter_map(|cause| cause.rule).collect() };
        assert_eq!(rules(&told), ["gpu-out-of-memory"], "it may be how it dies");
        if goes_on {
            told.line(HEAD, 180, GOES_ON);
            assert_eq!(told.causes(), []);
        }
        told.container(190_000, WORKER, ContainerState::Exited { code: 1, oom: false });
        let wanted = match goes_on {
            true => "container-ended",
            false => "gpu-out-of-memory",
        };
        assert_eq!(rules(&told)[0], wanted);
    }
}

#[test]
fn good_starts_have_no_cause() {
    // The hosts of the logs' clusters.
    let (bridge, lab) = (["10.77.0.1", "10.77.0.2"], ["192.168.200.12", "192.168.200.13"]);
    let logs = [
        (bridge, include_str!("fixtures/engine/vllm-0.32-serve-pipe.log")),
        (bridge, include_str!("fixtures/engine/vllm-0.32-serve-terminal.log")),
        (bridge, include_str!("fixtures/engine/vllm-0.32-ray-two-nodes-head.log")),
        (
            bridge,
            include_str!("fixtures/engine/vllm-0.32-ray-two-nodes-late-lines.log"),
        ),
        (bridge, include_str!("fixtures/replay/one-host-pipe/log")),
        (bridge, include_str!("fixtures/replay/one-host-terminal/log")),
        (bridge, include_str!("fixtures/replay/ray-shared-session/log")),
        (lab, include_str!("fixtures/replay/ray-two-hosts-head/log")),
        (lab, include_str!("fixtures/replay/ray-two-hosts-worker/log")),
        (bridge, include_str!("fixtures/replay/no-ray-rank-0/log")),
        (bridge, include_str!("fixtures/replay/no-ray-rank-1/log")),
    ];
    for (addresses, log) in logs {
        let mut told = Told::new();
        told.config_addresses(addresses);
        told.log(HEAD, log);
        assert_eq!(told.causes(), []);
    }
}

#[test]
fn captured_failures_have_the_cause_that_they_had() {
    let cases = [
        (
            HEAD,
            include_str!("fixtures/engine/vllm-0.32-no-such-model.log"),
            "model-not-found",
            "the model /nonexistent/model is not on spark-1, and it is no name of a hub either",
            Some("docker exec vllm-qwen35 ls -l /nonexistent/model"),
        ),
        (
            WORKER,
            include_str!("fixtures/causes/ray-2.60-join-wrong-port.log"),
            "gcs-unreachable",
            "spark-2 does not reach Ray's head at 10.77.0.1:6399",
            Some("ss -ltn"),
        ),
        (
            WORKER,
            include_str!("fixtures/causes/ray-2.53-joins-2.60.log"),
            "ray-join-refused",
            "what answers on spark-1's Ray port gave spark-2 nothing that its Ray understands",
            Some("docker image inspect --format '{{json .RootFS.Layers}}' hellohal2064/vllm-qwen3.5-gb10"),
        ),
        (
            HEAD,
            include_str!("fixtures/causes/ray-2.60-status-unreachable.log"),
            "gcs-unreachable",
            "spark-1 does not reach Ray's head at 10.77.0.1:6399",
            Some("ss -ltn"),
        ),
    ];
    for (node, log, rule, text, command) in cases {
        let mut told = Told::new();
        told.log(node, log);
        let causes = told.causes();
        let [cause] = causes.as_slice() else {
            panic!("{rule}: {causes:#?}")
        };
        assert_eq!(cause.rule.as_deref(), Some(rule));
        assert_eq!(cause.text, text);
        assert_eq!(cause.command.as_ref().map(|(_, line)| line.as_str()), command);
        assert!(!cause.evidence.is_empty() && cause.fix.is_some(), "{rule}");
    }
}

#[test]
fn a_command_to_copy_quotes_what_a_log_said() {
    let mut told = Told::new();
    told.line(
        HEAD,
        1,
        "HFValidationError: Repo id must be in the form 'repo_name' or 'namespace/repo_name': '/x; rm -rf $HOME'.",
    );
    let causes = told.causes();
    let (node, line) = causes[0].command.clone().expect("a command");
    assert_eq!(
        (node, line.as_str()),
        (HEAD, "docker exec vllm-qwen35 ls -l '/x; rm -rf $HOME'")
    );
}

#[test]
fn a_node_that_is_silent_is_the_cause_of_what_ray_says_later() {
    let mut told = Told::new();
    told.up();
    told.at(
        20_000,
        WORKER,
        EventKind::Link(LinkState::Silent { since: Stamp(16_000) }),
    );
    let first = told.causes().remove(0);
    assert_eq!(first.rule.as_deref(), Some("node-not-answering"));
    assert_eq!(first.text, "spark-2 does not answer: no sign of life for 4 s");
    assert_eq!((first.node, first.confidence), (Some(WORKER), Confidence::Known));
    told.line(HEAD, 80, NODE_LOST);
    told.line(HEAD, 81, WORKER_DIED);
    told.server(85_000, ServerFacts::Health(Health::Status(503)));
    let causes = told.causes();
    let echoes: Vec<_> = causes[0].echoes.iter().filter_map(|e| e.rule.as_deref()).collect();
    assert_eq!(causes.len(), 1, "{causes:#?}");
    assert_eq!(causes[0].rule.as_deref(), Some("node-not-answering"));
    assert_eq!(echoes, ["ray-node-lost", "worker-process-died", "health-fails"]);
}

#[test]
fn a_node_that_answers_again_is_no_cause_any_more_unless_something_came_of_it() {
    let mut told = Told::new();
    told.up();
    told.at(
        20_000,
        WORKER,
        EventKind::Link(LinkState::Silent { since: Stamp(16_000) }),
    );
    told.at(25_000, WORKER, EventKind::Link(LinkState::Up));
    assert_eq!(told.causes(), []);
    told.line(HEAD, 26, WORKER_DIED);
    let causes = told.causes();
    assert_eq!(causes[0].rule.as_deref(), Some("node-not-answering"));
    assert!(causes[0].over.is_some());
    assert_eq!(causes[0].echoes.len(), 1);
}

#[test]
fn a_node_that_answered_again_is_no_cause_where_another_that_does_not_explains_it() {
    let mut told = Told::new();
    told.up();
    let silent = |since: u64| EventKind::Link(LinkState::Silent { since: Stamp(since) });
    told.at(20_000, HEAD, silent(12_000));
    told.at(25_000, HEAD, EventKind::Link(LinkState::Up));
    told.at(40_000, WORKER, silent(36_000));
    told.line(HEAD, 104, NODE_LOST);
    told.line(HEAD, 105, WORKER_DIED);
    let rule = |c: &Cause| (c.rule.clone().unwrap_or_default(), c.node, c.echoes.len());
    let not_answering = |node, echoes| ("node-not-answering".to_owned(), Some(node), echoes);
    let seen: Vec<_> = told.causes().iter().map(rule).collect();
    assert_eq!(seen, [not_answering(WORKER, 2)]);
    // That it is back later takes nothing from that.
    told.at(200_000, WORKER, EventKind::Link(LinkState::Up));
    let seen: Vec<_> = told.causes().iter().map(rule).collect();
    assert_eq!(seen, [not_answering(WORKER, 2)]);
}

#[test]
fn a_worker_that_joined_and_left_is_told_with_its_container() {
    let mut told = Told::new();
    told.up();
    told.ray(
        5_000,
        vec![member("192.168.200.12", true), member("192.168.200.13", true)],
    );
    assert_eq!(told.causes(), []);
    told.ray(
        20_000,
        vec![member("192.168.200.12", true), member("192.168.200.13", false)],
    );
    let alone = told.causes();
    assert_eq!(alone[0].rule.as_deref(), Some("worker-left"));
    assert_eq!((alone[0].kind, alone[0].confidence), (Kind::Echo, Confidence::Likely));
    told.container(21_000, WORKER, ContainerState::Exited { code: 137, oom: true });
    let causes = told.causes();
    assert_eq!(causes.len(), 1, "{causes:#?}");
    assert_eq!(causes[0].rule.as_deref(), Some("container-killed"));
    assert_eq!(
        causes[0].text,
        "the container vllm-qwen35 of spark-2 was killed: exit code 137, by the kernel for lack of memory"
    );
    assert_eq!(causes[0].echoes[0].rule.as_deref(), Some("worker-left"));
}

#[test]
fn a_container_that_was_killed_without_a_word_of_dockers_may_have_lacked_memory() {
    let mut told = Told::new();
    told.up();
    told.container(20_000, WORKER, ContainerState::Exited { code: 137, oom: false });
    let causes = told.causes();
    assert_eq!(causes[0].rule.as_deref(), Some("container-killed"));
    assert_eq!(
        causes[0].text,
        "the container vllm-qwen35 of spark-2 was killed: exit code 137"
    );
    assert_eq!(causes[0].confidence, Confidence::Likely);
    // The kernel's own line tells which process it was.
    told.line(
        WORKER,
        19,
        "oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=x,mems_allowed=0,global_oom,task_memcg=/x,task=lmcache,pid=77,uid=0",
    );
    let causes = told.causes();
    assert_eq!(causes[0].rule.as_deref(), Some("host-out-of-memory"));
    assert_eq!(
        causes[0].text,
        "the kernel of spark-2 killed lmcache for lack of memory"
    );
    let echoes: Vec<_> = causes[0].echoes.iter().filter_map(|e| e.rule.as_deref()).collect();
    assert_eq!(echoes, ["container-killed"]);
}

/// What was seen in starts that went well, and reads as if they had not.
const HARMLESS: &[&str] = &[
    "(EngineCore pid=15003) INFO 11-29 17:13:50 [shm_broadcast.py:871] No available shared memory broadcast block found in 60 seconds. This typically happens when some processes are hanging or doing some time-consuming work (e.g. compilation, weight/kv cache quantization).",
    "Reconstructing (incomplete total...):   0%| |  0.00B / 51.6GB",
    "INFO 04-01 02:46:00 ray_utils.py:214] Waiting for creating a placement group of specs for 10 seconds. specs=[{'node:192.168.200.12': 0.001, 'GPU': 1.0}, {'GPU': 1.0}]. Check `ray status` to see if you have enough resources",
    "(Worker_TP0 pid=490) WARNING 11-29 19:00:25 [utils.py:597] Failed to create oneDNN linear, fallback to torch linear. Exception: could not create a primitive",
    "(APIServer pid=11823) ERROR 11-29 17:14:25 [serving.py:274] Error with model error=ErrorInfo(message='The model `nope` does not exist.')",
    "-bash: warning: setlocale: LC_CTYPE: cannot change locale (sv_SE.UTF-8): No such file or directory",
    "(EngineCore_DP0 pid=2301) (RayWorkerWrapper pid=2528) spark:2528:2528 [0] NCCL INFO Channel 07/16 : 0 1",
    "(Worker_TP0 pid=54) INFO 05-06 04:31:18 [weight_utils.py:927] Auto-prefetch is disabled because the filesystem (EXT4) is not a recognized network FS (NFS/Lustre).",
    "(APIServer pid=1) WARNING 07-24 13:15:43 [envs.py:2019] Unknown vLLM environment variable detected: VLLM_BUILD_COMMIT",
    "(EngineCore pid=84) WARNING 06-07 18:13:45 [ray_utils.py:401] The number of required GPUs exceeds the total number of available GPUs in the placement group.",
    "(EngineCore pid=84) WARNING 06-07 18:13:44 [ray_utils.py:344] Total GPU requirement (world_size=2) exceeds locally visible GPUs (1). For multi-node Ray clusters, this may be expected if the total cluster has enough GPUs.",
    "WARNING 06-07 tensor_parallel_size=2 is bigger than a reserved number of GPUs (1 GPUs) in a node 439b.",
    "(EngineCore_DP0 pid=2557)   warnings.warn(",
    "/usr/local/lib/python3.11/x.py:138: FutureWarning: `torch.distributed.reduce_op` is deprecated",
    "(APIServer pid=1) INFO:     127.0.0.1:40052 - \"GET /v1/models HTTP/1.1\" 404 Not Found",
    "(APIServer pid=1) INFO 11-29 17:14:25 [logger.py:41] Received request cmpl-1: prompt: 'CUDA out of memory, RuntimeError: Address already in use'",
    "2026-02-08 07:27:11,933\tWARNING utils.py:1591 -- Python patch version mismatch: The cluster was started with:",
    "spark:1:1 [0] NCCL INFO Count not open libibverbs.so",
    "config.json: 100%|██████████| 4.19k/4.19k [00:00<00:00, 13.0MB/s]",
    "[W socket.cpp:755] [c10d] The IPv6 network addresses of (spark-1, 29500) cannot be retrieved (gai error: -2 - Name or service not known).",
    "(raylet) [2026-06-15 09:51:20,001 E 77 77] (raylet) main.cc:979: Failed to establish connection to the metrics exporter agent. Metrics will not be exported. Exporter agent status: RpcError: Running out of retries to initialize the metrics agent. rpc_code: 14",
    "/usr/lib/python3.12/multiprocessing/resource_tracker.py:254: UserWarning: resource_tracker: There appear to be 1 leaked semaphore objects to clean up at shutdown",
];

#[test]
fn what_good_starts_say_too_is_no_cause_and_fails_no_server() {
    for line in HARMLESS {
        let mut told = Told::new();
        told.up();
        told.line(HEAD, 1, BANNER);
        told.line(HEAD, 2, line);
        assert_eq!(told.causes(), [], "{line}");
        assert_eq!(told.state().word(), "loading", "{line}");
    }
}

#[test]
fn another_address_in_ray_is_the_cause_of_the_wait_for_gpus() {
    let mut told = Told::new();
    told.up();
    told.line(HEAD, 1, BANNER);
    told.line(
        HEAD,
        40,
        "INFO 04-01 02:46:20 ray_utils.py:214] Waiting for creating a placement group of specs for 30 seconds. specs=[{'node:192.168.200.12': 0.001, 'GPU': 1.0}, {'GPU': 1.0}]",
    );
    told.ray(
        41_000,
        vec![member("192.168.200.12", true), member("10.1.230.181", true)],
    );
    let causes = told.causes();
    assert_eq!(causes.len(), 1, "{causes:#?}");
    assert_eq!(causes[0].rule.as_deref(), Some("ray-address-differs"));
    assert_eq!(
        causes[0].text,
        "Ray on spark-2 registered at another address than 192.168.200.13: spark-2 registered at 10.1.230.181"
    );
    assert_eq!(causes[0].echoes[0].rule.as_deref(), Some("placement-wait"));
}

#[test]
fn too_few_gpus_are_the_cause_of_the_wait_for_them() {
    let mut told = Told::new();
    told.up();
    told.line(HEAD, 1, BANNER);
    told.line(
        HEAD,
        40,
        "INFO 04-01 02:46:20 ray_utils.py:214] Waiting for creating a placement group of specs for 30 seconds. specs=[{'GPU': 1.0}, {'GPU': 1.0}]",
    );
    told.ray(41_000, vec![member("192.168.200.12", true)]);
    let causes = told.causes();
    assert_eq!(causes[0].rule.as_deref(), Some("gpus-too-few"));
    assert_eq!(causes[0].text, "too few GPUs in Ray: the engine needs 2, 1 alive");
    assert_eq!(causes[0].echoes[0].rule.as_deref(), Some("placement-wait"));
    // The newest number counts, and the first time.
    told.line(
        HEAD,
        120,
        "INFO 04-01 02:47:00 ray_utils.py:214] Waiting for creating a placement group of specs for 70 seconds. specs=...",
    );
    let causes = told.causes();
    assert_eq!(
        causes[0].echoes[0].text,
        "the engine waits until Ray has its GPUs free, 70 s so far"
    );
}

#[test]
fn what_kept_a_node_from_joining_is_of_no_matter_once_it_has_joined() {
    let mut told = Told::new();
    told.up();
    told.line(
        WORKER,
        2,
        "[x W 1 1] rpc_client.h:153: Failed to connect to GCS at address 192.168.200.12:6379 within 5 seconds.",
    );
    assert_eq!(told.causes().len(), 1);
    told.ray(
        10_000,
        vec![member("192.168.200.12", true), member("192.168.200.13", true)],
    );
    assert_eq!(told.causes(), []);
    // Lines from before are read late.
    told.line(
        WORKER,
        3,
        "[x W 1 1] rpc_client.h:153: Failed to connect to GCS at address 192.168.200.12:6379 within 5 seconds.",
    );
    assert_eq!(told.causes(), []);
    told.line(
        WORKER,
        30,
        "[x W 1 1] rpc_client.h:153: Failed to connect to GCS at address 192.168.200.12:6379 within 5 seconds.",
    );
    assert_eq!(told.causes().len(), 1);
}

#[test]
fn a_ready_server_has_no_cause_but_warnings_stay() {
    let mut told = Told::new();
    told.up();
    told.line(HEAD, 1, BANNER);
    told.line(HEAD, 2, TCP);
    told.line(HEAD, 3, ODD);
    assert_eq!(told.causes().len(), 2);
    told.ready(10_000);
    let left: Vec<_> = told.causes().into_iter().map(|c| (c.rule, c.kind)).collect();
    assert_eq!(left, [(Some("nccl-over-tcp".to_owned()), Kind::Warning)]);
    told.line(HEAD, 4, KV);
    assert_eq!(told.causes().len(), 1, "it was written before the server was ready");
}

#[test]
fn a_new_container_has_nothing_to_do_with_what_the_one_before_said() {
    let mut told = Told::new();
    told.up();
    told.line(WORKER, 2, "ValueError: Malformed host:");
    told.again(30_000, WORKER);
    assert_eq!(told.causes(), []);
}

#[test]
fn the_difference_of_a_nodes_clock_is_taken_out() {
    // The worker's clock is an hour behind: what it says at 40 s was after the head's line at 10 s.
    let mut told = Told::new();
    told.up();
    told.clock(1_000, WORKER, -3_600);
    told.line(HEAD, 10, KV);
    told.skewed(WORKER, 40, -3_600, "/bin/sh: 1: ray: not found");
    let order: Vec<_> = told.causes().into_iter().filter_map(|c| c.rule).collect();
    assert_eq!(order, ["no-memory-for-kv-cache", "ray-not-in-image"]);
    assert_eq!(told.causes()[0].confidence, Confidence::Known);
}

#[test]
fn what_a_failed_command_prints_is_evidence_of_its_step() {
    let mut told = Told::new();
    let cause = told.failed_head(&[
        "docker: Error response from daemon: could not select device driver \"\" with capabilities: [[gpu]].",
    ]);
    let cause = cause.expect("a cause");
    assert_eq!(cause.rule.as_deref(), Some("nvidia-runtime-missing"));
    assert_eq!(cause.node, Some(HEAD));
}

#[test]
fn a_server_of_ours_with_another_model_takes_no_port() {
    for listener in [None, Some("c1")] {
        let mut told = Told::new();
        told.up();
        let cause = told.failed_wait(StepKind::Serve, HEAD, |told, ms| {
            told.container(ms, HEAD, ContainerState::Running);
            told.serves(ms);
            told.listens(ms, listener);
            told.server(ms, ServerFacts::Health(Health::Ok));
            told.server(ms, ServerFacts::Models(Ok(vec!["other".into()])));
        });
        assert_eq!(
            cause.expect("a cause").text,
            "the server has another model than the configured one: /v1/models names other, not Qwen/Qwen3.5-122B-A10B-FP8"
        );
        let rules: Vec<_> = told.causes().into_iter().map(|c| c.rule).collect();
        assert_eq!(rules, [Some("wrong-model".to_owned())]);
    }
}

#[test]
fn a_port_that_others_hold_is_taken() {
    for (listener, who) in [
        (None, "another process"),
        (Some("0123456789abcdef"), "container 0123456789ab"),
    ] {
        let mut told = Told::new();
        told.up();
        let cause = told.failed_wait(StepKind::Serve, HEAD, |told, ms| {
            told.container(ms, HEAD, ContainerState::Running);
            told.at(ms, HEAD, EventKind::Facts(Facts::Serve(ServeFacts::default())));
            told.listens(ms, listener);
            told.server(ms, ServerFacts::Health(Health::Ok));
            told.server(ms, ServerFacts::Models(Ok(vec!["other".into()])));
        });
        let wanted = format!("a port that is needed on spark-1 is taken: {who} listens at *:8000");
        assert_eq!(cause.expect("a cause").text, wanted);
    }
}

#[test]
fn a_container_of_ours_that_ended_while_it_joined_has_ended_and_takes_no_name() {
    let mut told = Told::new();
    told.up();
    let cause = told.failed_wait(StepKind::Join, WORKER, |told, ms| {
        let state = match ms {
            ..10_000 => ContainerState::Running,
            _ => ContainerState::Exited { code: 1, oom: false },
        };
        told.container(ms, WORKER, state);
    });
    assert_eq!(
        cause.expect("a cause").text,
        "the container vllm-qwen35 of spark-2 has ended: exit code 1"
    );
    let rules: Vec<_> = told.causes().into_iter().map(|c| c.rule).collect();
    assert_eq!(rules, [Some("container-ended".to_owned())]);
}

#[test]
fn a_line_of_evidence_comes_once_whichever_way_it_was_read() {
    let mut told = Told::new();
    let line = "2026-11-29 17:00:02,001 ERROR ValueError: Malformed host:";
    let cause = told.failed_head(&[line]).expect("a cause");
    assert_eq!(cause.evidence.len(), 1);
    told.line(HEAD, 2, "2026-11-29 17:00:02,001 \x20ERROR ValueError: Malformed host:");
    told.line(HEAD, 3, "ValueError: Malformed host: another");
    let texts: Vec<_> = told.causes()[0].evidence.iter().map(|l| l.text.clone()).collect();
    assert_eq!(
        texts,
        [
            "2026-11-29 17:00:02,001  ERROR ValueError: Malformed host:",
            "ValueError: Malformed host: another"
        ]
    );
}

#[test]
fn a_tool_that_hangs_in_the_driver_is_a_warning_with_its_cure() {
    for words in ["nvidia-smi does not answer", "nvidia-smi did not answer in time"] {
        let mut told = Told::new();
        told.up();
        let hangs = vec![Problem::error(words)];
        told.at(1_000, WORKER, EventKind::Problems(hangs));
        let causes = told.causes();
        assert_eq!(causes.len(), 1, "{causes:#?}");
        let cause = &causes[0];
        assert_eq!(
            (cause.rule.as_deref(), cause.kind),
            (Some("driver-hangs"), Kind::Warning)
        );
        assert_eq!(cause.node, Some(WORKER));
        assert!(
            cause.text.contains("nvidia-smi on spark-2 does not answer"),
            "{}",
            cause.text
        );
        assert!(cause.fix.as_ref().expect("a fix").contains("reboot the node"));
        assert!(told.by_hand(cause).expect("a command").contains("dmesg"));
        let status = told.status();
        assert_eq!(status["causes"][0]["kind"], "warning");
        // It answers again.
        told.at(9_000, WORKER, EventKind::Problems(Vec::new()));
        assert_eq!(told.causes(), []);
    }
}

#[test]
fn status_carries_the_causes() {
    let mut told = Told::new();
    told.line(WORKER, 10, MEMORY_KILL);
    told.line(HEAD, 14, WORKER_DIED);
    told.line(HEAD, 15, TCP);
    let status = told.status();
    let causes = &status["causes"];
    assert_eq!(causes[0]["rule"], "ray-memory-kill");
    assert_eq!(causes[0]["kind"], "cause");
    assert_eq!(
        causes[0]["cause"],
        "Ray's memory monitor killed a worker of spark-2: 113.76GB of 119.70GB in use"
    );
    assert_eq!(causes[0]["node"], "spark-2");
    assert_eq!(causes[0]["at"], "2026-11-29T17:00:10Z");
    assert_eq!(causes[0]["confidence"], "known");
    assert_eq!(causes[0]["evidence"][0]["node"], "spark-2");
    assert_eq!(causes[0]["echoes"][0]["rule"], "worker-process-died");
    assert_eq!(causes[0]["echoes"][0]["node"], "spark-1");
    assert_eq!(causes[0]["command"]["node"], "spark-2");
    assert_eq!(causes[0]["command"]["line"], "free -h");
    assert_eq!(causes[1]["kind"], "warning");
    assert_eq!(causes[2], serde_json::Value::Null);
}

#[test]
fn evidence_is_bounded_and_the_first_ones_stay() {
    let mut told = Told::new();
    told.line(HEAD, 1, KV);
    for n in 0..2000 {
        told.line(HEAD, 2 + n, &format!("ValueError: number {n}"));
    }
    let causes = told.causes();
    assert_eq!(causes[0].rule.as_deref(), Some("no-memory-for-kv-cache"));
    assert_eq!(causes.len(), 1);
    assert_eq!(causes[0].echoes[0].text, "ValueError: number 0");
    assert!(causes.iter().all(|c| c.evidence.len() <= 6));
}
