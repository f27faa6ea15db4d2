//! Memory that was not there.

use super::Seen;
use crate::diagnose::Place;

pub(super) const LINES: &[Seen] = &[
    (
        Place::HeadLog,
        "(EngineCore_DP0 pid=6940) ValueError: Free memory on device cuda:1 (19.77/22.05 GiB) on startup is less than desired GPU memory utilization (0.9, 19.84 GiB). Decrease GPU memory utilization",
        "memory-check-at-start",
        "spark-1 had less memory free at the start than vLLM was told to take: 19.77 of 22.05 GiB, wanted 19.84 GiB",
    ),
    (
        Place::HeadLog,
        "ValueError: Free memory on device cuda:0 (36.75/121.63 GiB) on startup is less than\ndesired GPU memory utilization (0.85, 103.38 GiB).",
        "memory-check-at-start",
        "spark-1 had less memory free at the start than vLLM was told to take: 36.75 of 121.63 GiB, wanted 103.38 GiB",
    ),
    // vLLM of 2025 names no device.
    (
        Place::HeadLog,
        "ValueError: Free memory on device (3.25/23.43 GiB) on startup is less than desired GPU memory utilization (0.96, 22.49 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes.",
        "memory-check-at-start",
        "spark-1 had less memory free at the start than vLLM was told to take: 3.25 of 23.43 GiB, wanted 22.49 GiB",
    ),
    (
        Place::HeadLog,
        "(EngineCore_DP0 pid=441) INFO 11-24 11:44:17 [gpu_worker.py:348] Available KV cache memory: -2.26 GiB",
        "no-memory-for-kv-cache",
        "no memory is left for the KV cache (-2.26 GiB)",
    ),
    (
        Place::HeadLog,
        "(EngineCore pid=441) ERROR 11-24 11:44:18 [core.py:946] ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.",
        "no-memory-for-kv-cache",
        "no memory is left for the KV cache",
    ),
    (
        Place::HeadLog,
        "ValueError: To serve at least one request with the model's max seq len (262144), (7.17 GiB KV cache is needed, which is larger than the available KV cache memory (6.74 GiB). Based on the available memory, the estimated maximum model length is 232000. Try increasing `gpu_memory_utilization`",
        "kv-cache-too-small",
        "one request of the longest length needs 7.17 GiB of KV cache, and 6.74 GiB are left for it",
    ),
    (
        Place::HeadLog,
        "ValueError: To serve at least one request with the models's max seq len (2048), 0.28 GiB KV cache is needed, which is larger than the available KV cache memory (0.17 GiB).",
        "kv-cache-too-small",
        "one request of the longest length needs 0.28 GiB of KV cache, and 0.17 GiB are left for it",
    ),
    (
        Place::HeadLog,
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.10 GiB of which 1.12 GiB is free.",
        "gpu-out-of-memory",
        "the GPU of spark-1 has no memory left: 2.00 GiB more was wanted",
    ),
    (
        Place::HeadLog,
        "NVRM: nvCheckOkFailedNoLog: Check failed: Out of memory [NV_ERR_NO_MEMORY] (0x00000051)",
        "gpu-out-of-memory",
        "the GPU of spark-1 has no memory left",
    ),
    (
        Place::WorkerLog,
        "oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=x,mems_allowed=0,global_oom,task_memcg=/x,task=lmcache,pid=77,uid=0",
        "host-out-of-memory",
        "the kernel of spark-1 killed lmcache for lack of memory",
    ),
    (
        Place::WorkerLog,
        "Out of memory: Killed process 815855 (ray::RayWorker) total-vm:2548856kB, anon-rss:1877432kB",
        "host-out-of-memory",
        "the kernel of spark-1 killed ray::RayWorker for lack of memory",
    ),
];
