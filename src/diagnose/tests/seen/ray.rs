//! Ray: who joined, what it waits for, and what it lost.

use super::Seen;
use crate::diagnose::Place;

pub(super) const LINES: &[Seen] = &[
    (
        Place::HeadLog,
        "(EngineCore pid=84) INFO 06-07 18:13:55 [ray_utils.py:464] Waiting for creating a placement group of specs for 150 seconds. specs=[{'GPU': 1.0}, {'GPU': 1.0}]. Check `ray status` and `ray list nodes`",
        "placement-wait",
        "the engine waits until Ray has its GPUs free, 150 s so far",
    ),
    (
        Place::HeadLog,
        "ValueError: Cannot provide a placement group requiring 2.0 GPUs (placement_group_specs=[...]) within 1800 seconds.",
        "placement-failed",
        "Ray never had the GPUs that the engine asked for: 2.0",
    ),
    // vLLM of 2025, and a single GPU still.
    (
        Place::HeadLog,
        "ValueError: Cannot provide a placement group of placement_group_specs=[{'node:192.168.200.12': 0.001, 'GPU': 1.0}, {'GPU': 1.0}] within 1800 seconds. See `ray status` to make sure the cluster has enough resources.",
        "placement-failed",
        "Ray never had the GPUs that the engine asked for",
    ),
    (
        Place::HeadLog,
        "(autoscaler +1m2s) No available node types can fulfill resource requests {'GPU': 1.0}*2. Add suitable node types to this cluster to resolve this issue.",
        "placement-failed",
        "Ray never had the GPUs that the engine asked for",
    ),
    (
        Place::WorkerLog,
        "RuntimeError: Version mismatch: The cluster was started with:\n    Ray: 2.43.0\n    Python: 3.11.10\nThis process on node 192.168.200.13 was started with:\n    Ray: 2.44.1\n    Python: 3.11.11",
        "ray-version-differs",
        "Ray or Python of spark-2 differ from the head's: Ray 2.44.1 and Python 3.11.11 there, Ray 2.43.0 and Python 3.11.10 in the cluster",
    ),
    (
        Place::WorkerLog,
        "RuntimeError: Version mismatch: The cluster was started with:",
        "ray-version-differs",
        "Ray or Python of spark-1 differ from the head's",
    ),
    (
        Place::WorkerLog,
        "ConnectionError: Could not read 'temp_dir' from GCS. Did GCS start successfully?",
        "ray-join-refused",
        "what answers on spark-1's Ray port gave spark-1 nothing that its Ray understands",
    ),
    (
        Place::Output,
        "docker: Error response from daemon: OCI runtime create failed: runc create failed: unable to start container process: exec: \"ray\": executable file not found in $PATH: unknown.",
        "ray-not-in-image",
        "the image hellohal2064/vllm-qwen3.5-gb10 holds no Ray",
    ),
    (
        Place::HeadLog,
        "bash: line 1: ray: command not found",
        "ray-not-in-image",
        "the image hellohal2064/vllm-qwen3.5-gb10 holds no Ray",
    ),
    (
        Place::HeadLog,
        "/bin/sh: 1: ray: not found",
        "ray-not-in-image",
        "the image hellohal2064/vllm-qwen3.5-gb10 holds no Ray",
    ),
    (
        Place::WorkerLog,
        "[2026-11-29 17:19:23,547 W 20785 20785] rpc_client.h:153: Failed to connect to GCS at address 10.77.0.1:6399 within 5 seconds.",
        "gcs-unreachable",
        "spark-1 does not reach Ray's head at 10.77.0.1:6399",
    ),
    (
        Place::WorkerLog,
        "[2026-11-29 17:19:58,600 W 20785 20785] gcs_client.cc:210: Failed to get cluster ID from GCS server: TimedOut: Timed out while waiting for GCS to become available.",
        "gcs-unreachable",
        "spark-1 does not reach Ray's head",
    ),
    (
        Place::Output,
        "ray.exceptions.RpcError: failed to connect to all addresses; last error: UNKNOWN: ipv4:203.0.113.11:6379: Failed to connect to remote host: Connection refused",
        "gcs-unreachable",
        "spark-1 does not reach Ray's head at 203.0.113.11:6379",
    ),
    (
        Place::Output,
        "ray.exceptions.RpcError: Timed out while waiting for GCS to become available.",
        "gcs-unreachable",
        "spark-1 does not reach Ray's head",
    ),
    (
        Place::WorkerLog,
        "Unable to connect to GCS at 192.168.200.12:6379. Check that (1) Ray GCS with matching version started successfully at the specified address, and (2) there is no firewall setting preventing access.",
        "gcs-unreachable",
        "spark-1 does not reach Ray's head at 192.168.200.12:6379",
    ),
    (
        Place::Output,
        "    address = services.canonicalize_bootstrap_address_or_die(address)",
        "no-ray-here",
        "no Ray runs where it was asked for on spark-1",
    ),
    (
        Place::HeadLog,
        "RuntimeError: This node has an IP address of 10.1.230.180, but we cannot find a local Raylet with the same address.",
        "no-raylet-here",
        "the model server on spark-1 finds no Ray process at its own address 10.1.230.180",
    ),
    (
        Place::HeadLog,
        "ValueError: Current node has no GPU available. current_node_resource={'CPU': 20.0}. vLLM engine cannot start without GPU.",
        "no-gpu-in-ray",
        "Ray sees no free GPU on spark-1",
    ),
    (
        Place::HeadLog,
        "ray.exceptions.OutOfMemoryError: 1 worker(s) were killed due to the node running low on memory. Memory on the node (IP: 192.168.200.13, ID: 0f) was 113.76GB / 119.70GB (0.950345), which exceeds the memory usage threshold of 0.95.",
        "ray-memory-kill",
        "Ray's memory monitor killed a worker of spark-2: 113.76GB of 119.70GB in use",
    ),
    (
        Place::HeadLog,
        "ray.exceptions.OutOfMemoryError: 1 worker(s) were killed due to the node\nrunning low on memory. Memory on the node (IP: 10.99.0.2) was\n113.76GB / 119.70GB (0.950345)",
        "ray-memory-kill",
        "Ray's memory monitor killed a worker of 10.99.0.2: 113.76GB of 119.70GB in use",
    ),
    // Ray before 2.55.
    (
        Place::HeadLog,
        "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.\nMemory on the node (IP: 192.168.200.13, ID: e5d9) where the task (task ID: 4353, name=RayWorkerWrapper.execute_method, pid=11362, memory used=41.25GB) was running was 113.71GB / 119.70GB (0.949958), which exceeds the memory usage threshold of 0.95.",
        "ray-memory-kill",
        "Ray's memory monitor killed a worker of spark-2: 113.71GB of 119.70GB in use",
    ),
    (
        Place::HeadLog,
        "(raylet, ip=192.168.200.13) [2026-06-01 17:32:04,001 E 77 77] (raylet) node_manager.cc:3090: 1 Workers (tasks / actors) killed due to memory pressure (OOM), 0 Workers crashed due to other reasons at node (ID: e5d9, IP: 192.168.200.13) over the last time period.",
        "ray-memory-kill",
        "Ray's memory monitor killed a worker of spark-2",
    ),
    (
        Place::WorkerLog,
        "[Timeout] Exiting because this node manager has mistakenly been marked as dead by the GCS: GCS failed to check the health of this node for 5 times. This is likely because the machine or raylet has become overloaded.",
        "called-dead-by-ray",
        "Ray's head called spark-1 dead while it lived: it had answered too late",
    ),
    (
        Place::HeadLog,
        "(raylet) The node with node id: 0f21...d818 and address: 192.168.200.13 and node name: 192.168.200.13 has been marked dead because the detector has missed too many heartbeats from it.",
        "ray-node-lost",
        "Ray has lost spark-2: it was not heard from any more",
    ),
    (
        Place::WorkerLog,
        "(raylet) Raylet is terminated. Termination is unexpected. Possible reasons include: (1) SIGKILL by the user or system OOM killer",
        "raylet-ended",
        "Ray's process on spark-1 ended and was not told to",
    ),
];
