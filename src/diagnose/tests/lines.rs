//! Lines as they were seen, each with the rule that it is a sign of and the clause that comes of it.

use std::collections::BTreeSet;
use std::fmt::Write;

use proptest::prelude::*;

use crate::diagnose::{Evidence, Matcher, Place, builtin, rank};
use crate::domain::Role;
use crate::domain::sign::SignKind;

use super::{HEAD, config, id, now, read, signs};

/// Place, line, rule, clause on spark-1.
const SEEN: &[(Place, &str, &str, &str)] = &[
    (
        Place::HeadLog,
        "2026-11-29 17:19:11,161\tINFO scripts.py:1101 -- Local node IP: 10.1.230.180",
        "ray-took-external-address",
        "Ray on spark-1 took the address 10.1.230.180, which is no node's fabric address",
    ),
    (
        Place::HeadLog,
        "2026-11-29 18:58:10,882\tINFO scripts.py:1043 -- [37mLocal node IP[39m: [1m127.0.0.1[22m",
        "ray-took-external-address",
        "Ray on spark-1 took the address 127.0.0.1, which is no node's fabric address",
    ),
    (
        Place::HeadLog,
        "INFO 04-01 02:46:00 ray_utils.py:214] Waiting for creating a placement group of specs for 10 seconds. specs=[{'node:10.163.194.101': 0.001, 'GPU': 1.0}, {'GPU': 1.0}]. Check `ray status` to see if you have enough resources",
        "vllm-host-ip-differs",
        "vLLM on spark-1 asks Ray for a GPU at 10.163.194.101, where Ray has no node",
    ),
    (
        Place::HeadLog,
        "Error: No available node types can fulfill resource request {'GPU': 1.0, 'node:192.168.50.192': 0.001}. Add suitable node types to this cluster",
        "vllm-host-ip-differs",
        "vLLM on spark-1 asks Ray for a GPU at 192.168.50.192, where Ray has no node",
    ),
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
        Place::HeadLog,
        "RuntimeError: Every node should have a unique IP address. Got 2 nodes with node ids ['a', 'b'] and 1 unique IP addresses {'192.168.200.12'}.",
        "same-address-twice",
        "two nodes of the Ray cluster have one address",
    ),
    (
        Place::WorkerLog,
        "ValueError: Malformed host:",
        "ray-address-empty",
        "Ray on spark-1 was started with an empty address",
    ),
    (
        Place::WorkerLog,
        "[2025-03-01 10:00:00,000 W 1 1] gcs_rpc_client.h:179: Failed to connect to GCS at address :6379 within 5 seconds.",
        "ray-address-empty",
        "Ray on spark-1 was started with an empty address",
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
    (
        Place::Output,
        "docker: Error response from daemon: Conflict. The container name \"/vllm-qwen35\" is already in use by container \"8fcb2a9a1234567890\". You have to remove (or rename) that container to be able to reuse that name.",
        "name-taken",
        "the name vllm-qwen35 is taken by another container of spark-1: 8fcb2a9a1234",
    ),
    (
        Place::HeadLog,
        "torch.distributed.DistNetworkError: The server socket has failed to listen on any local network address. port: 29500, useIpv6: false, code: -98, name: EADDRINUSE, message: address already in use",
        "address-in-use",
        "a port that is wanted on spark-1 is taken: 29500",
    ),
    (
        Place::HeadLog,
        "OSError: [Errno 98] Address already in use",
        "address-in-use",
        "a port that is wanted on spark-1 is taken",
    ),
    (
        Place::HeadLog,
        "ERROR:    [Errno 98] error while attempting to bind on address ('0.0.0.0', 8000): address already in use",
        "address-in-use",
        "a port that is wanted on spark-1 is taken: 8000",
    ),
    (
        Place::Output,
        "docker: Error response from daemon: driver failed programming external connectivity on endpoint x: Bind for 0.0.0.0:8000 failed: port is already allocated.",
        "address-in-use",
        "a port that is wanted on spark-1 is taken: 8000",
    ),
    // Docker since 28, where something else than a container has the port.
    (
        Place::Output,
        "docker: Error response from daemon: failed to set up container networking: driver failed programming external connectivity on endpoint vllm-qwen35 (77cf): failed to bind host port for 0.0.0.0:8000:172.17.0.2:8000/tcp: address already in use",
        "address-in-use",
        "a port that is wanted on spark-1 is taken: 8000",
    ),
    (
        Place::Output,
        "ERROR: failed to bind host port for [::]:11434: address already in use",
        "address-in-use",
        "a port that is wanted on spark-1 is taken: 11434",
    ),
    (
        Place::HeadLog,
        "api_server.py: error: unrecognized arguments: /bin/bash -c vllm serve",
        "entrypoint-takes-command",
        "the image's own entry point takes the command for its arguments",
    ),
    (
        Place::HeadLog,
        "vllm: error: unrecognized arguments: serve /models/GLM-4.7-Flash-AWQ-4bit",
        "unknown-arguments",
        "the program in the image does not know these arguments: serve /models/GLM-4.7-Flash-AWQ-4bit",
    ),
    (
        Place::Output,
        "Error response from daemon: OCI runtime create failed: runc create failed: unable to start container process: exec: \"vllm\": executable file not found in $PATH: unknown",
        "program-missing",
        "the image hellohal2064/vllm-qwen3.5-gb10 holds no program vllm",
    ),
    (
        Place::Output,
        "docker: Error response from daemon: failed to create task for container: exec: \"./run-cluster-node.sh\": stat ./run-cluster-node.sh: no such file or directory: unknown.",
        "program-missing",
        "the image hellohal2064/vllm-qwen3.5-gb10 holds no program ./run-cluster-node.sh",
    ),
    (
        Place::HeadLog,
        "exec /usr/bin/ray: exec format error",
        "other-processor",
        "the image hellohal2064/vllm-qwen3.5-gb10 is not made for the processor of spark-1",
    ),
    (
        Place::Output,
        "no matching manifest for linux/arm64/v8 in the manifest list entries",
        "other-processor",
        "the image hellohal2064/vllm-qwen3.5-gb10 is not made for the processor of spark-1",
    ),
    (
        Place::HeadLog,
        "ValueError: The checkpoint you are trying to load has model type `qwen3_5_moe` but Transformers does not recognize this architecture.",
        "unknown-model-type",
        "the image is too old for the model: it does not know the type qwen3_5_moe",
    ),
    (
        Place::HeadLog,
        "pydantic_core._pydantic_core.ValidationError: Value error, Model architectures ['Qwen3_5MoeForConditionalGeneration'] failed to be inspected. Please check the logs for more details.",
        "model-not-inspected",
        "vLLM could not load its own code for the model Qwen3_5MoeForConditionalGeneration",
    ),
    (
        Place::HeadLog,
        "(APIServer pid=1)   Value error, Model architectures ['Qwen3_5MoeForConditionalGeneration'] are not supported for now. Supported architectures: dict_keys(['AquilaModel', 'ArcticForCausalLM'])",
        "unknown-model-type",
        "the image is too old for the model: it does not know the type Qwen3_5MoeForConditionalGeneration",
    ),
    (
        Place::HeadLog,
        "Cannot access gated repo for url https://huggingface.co/org/model/resolve/main/config.json.",
        "model-gated",
        "the hub does not give spark-1 the model: it wants a token whose owner was let in",
    ),
    (
        Place::HeadLog,
        "OSError: You are trying to access a gated repo.",
        "model-gated",
        "the hub does not give spark-1 the model: it wants a token whose owner was let in",
    ),
    (
        Place::HeadLog,
        "huggingface_hub.errors.HFValidationError: Repo id must be in the form 'repo_name' or 'namespace/repo_name': '/nonexistent/model'. Use `repo_type` argument if needed.",
        "model-not-found",
        "the model /nonexistent/model is not on spark-1, and it is no name of a hub either",
    ),
    (
        Place::HeadLog,
        "(EngineCore_DP0 pid=120) ERROR 01-28 06:36:45 [core.py:946] RuntimeError: No supported CUDA architectures found for major versions [10].",
        "gpu-architecture",
        "a library in the image has nothing for this GPU (architecture 10)",
    ),
    (
        Place::Output,
        "permission denied while trying to connect to the docker API at unix:///var/run/docker.sock",
        "docker-not-allowed",
        "the login on spark-1 may not use Docker",
    ),
    (
        Place::Output,
        "Got permission denied while trying to connect to the Docker daemon socket at unix:///var/run/docker.sock",
        "docker-not-allowed",
        "the login on spark-1 may not use Docker",
    ),
    (
        Place::Probe,
        "the login may not use Docker: permission denied on its socket",
        "docker-not-allowed",
        "the login on spark-1 may not use Docker",
    ),
    (
        Place::Output,
        "sudo: a password is required",
        "sudo-wants-password",
        "sudo wants a password on spark-1",
    ),
    (
        Place::Output,
        "sudo: a terminal is required to read the password; either use the -S option to read from standard input or configure an askpass helper",
        "sudo-wants-password",
        "sudo wants a password on spark-1",
    ),
    (
        Place::Output,
        "sudo: sorry, you are not allowed to preserve the environment",
        "sudo-drops-secret",
        "sudo on spark-1 does not hand on the variable of the secret",
    ),
    (
        Place::Output,
        "zsh:1: command not found: docker",
        "docker-missing",
        "there is no docker program on spark-1",
    ),
    (
        Place::Output,
        "sh: 1: docker: not found",
        "docker-missing",
        "there is no docker program on spark-1",
    ),
    (
        Place::Output,
        "docker: Error response from daemon: could not select device driver \"\" with capabilities: [[gpu]].",
        "nvidia-runtime-missing",
        "Docker on spark-1 cannot give a container the GPU: NVIDIA's container toolkit is missing",
    ),
    (
        Place::Output,
        "Error response from daemon: could not select device driver \"nvidia\" with capabilities: [[gpu]]",
        "nvidia-runtime-missing",
        "Docker on spark-1 cannot give a container the GPU: NVIDIA's container toolkit is missing",
    ),
    (
        Place::Output,
        "docker: Error response from daemon: CDI device injection failed: unresolvable CDI devices: nvidia.com/gpu=all",
        "cdi-stale",
        "the list of devices (CDI) on spark-1 is stale after a driver update",
    ),
    (
        Place::Output,
        "nvidia-container-cli: initialization error: nvml error: driver/library version mismatch: unknown.",
        "driver-replaced",
        "the NVIDIA driver of spark-1 was replaced while the old one is loaded",
    ),
    (
        Place::Probe,
        "the NVIDIA driver was replaced while the old one is loaded: driver/library version mismatch",
        "driver-replaced",
        "the NVIDIA driver of spark-1 was replaced while the old one is loaded",
    ),
    (
        Place::Output,
        "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA driver is installed and running.",
        "driver-not-loaded",
        "the NVIDIA driver of spark-1 is not loaded",
    ),
    (
        Place::Probe,
        "nvidia-smi: Unable to determine the device handle for GPU 0000:02:00.0: GPU is lost. Reboot the system to recover this GPU",
        "gpu-lost",
        "a GPU of spark-1 has dropped off its bus",
    ),
    (
        Place::Output,
        "Error response from daemon: pull access denied for x, repository does not exist or may require 'docker login'",
        "pull-denied",
        "the registry does not give out hellohal2064/vllm-qwen3.5-gb10",
    ),
    (
        Place::Output,
        "write /var/lib/docker/tmp/GetImageBlob1: no space left on device",
        "disk-full",
        "a disk of spark-1 is full",
    ),
    (
        Place::HeadLog,
        "Error response from daemon: Get \"https://registry-1.docker.io/v2/\": tls: failed to verify certificate: x509: certificate has expired or is not yet valid: current time 2026-03-13T10:00:00Z is before 2026-05-23T14:30:00Z",
        "clock-off",
        "the clock of spark-1 is behind: it finds a certificate not yet valid",
    ),
    (
        Place::HeadLog,
        "ssl.SSLCertVerificationError: [SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: certificate is not yet valid (_ssl.c:1000)",
        "clock-off",
        "the clock of spark-1 is behind: it finds a certificate not yet valid",
    ),
    (
        Place::HeadLog,
        "spark:1:1 [0] misc/ibvwrap.cc:217 (wrap_ibv_reg_mr_iova2) NCCL WARN Call to ibv_reg_mr_iova2 failed with error Cannot allocate memory",
        "nccl-memlock",
        "NCCL on spark-1 may not pin memory for RDMA",
    ),
    (
        Place::HeadLog,
        "spark:1:1 [0] misc/ibvwrap.cc:68 NCCL WARN Call to ibv_reg_mr_iova2 failed with error Cannot allocate memory errno 12",
        "nccl-memlock",
        "NCCL on spark-1 may not pin memory for RDMA",
    ),
    (
        Place::HeadLog,
        "spark:1:1 [0] misc/ibvwrap.cc:376 NCCL WARN Call to ibv_modify_qp failed with 110 Connection timed out, on dev rocep1s0f0:1, curr state INIT, next state RTR, local GID index 3, local GID ::ffff:192.168.200.12, remote GID ::ffff:192.168.201.13",
        "rdma-wrong-port",
        "RDMA devices that are paired are not on one cable: rocep1s0f0:1",
    ),
    (
        Place::HeadLog,
        "misc/ibvwrap.cc:284 NCCL WARN Call to ibv_modify_qp failed with error Connection timed out",
        "rdma-wrong-port",
        "RDMA devices that are paired are not on one cable",
    ),
    (
        Place::HeadLog,
        "NCCL WARN Call to ibv_modify_qp failed with 61 No data available, on dev rocep1s0f0:1, curr state INIT, next state RTR, local GID index 5, local GID ::, remote GID ::ffff:192.168.200.13",
        "rdma-gid",
        "NCCL on spark-1 uses a GID of its RDMA device that is empty or does not leave the link",
    ),
    (
        Place::HeadLog,
        "misc/ibvwrap.cc:284 NCCL WARN Call to ibv_modify_qp failed with error Invalid argument",
        "rdma-gid",
        "NCCL on spark-1 uses a GID of its RDMA device that is empty or does not leave the link",
    ),
    (
        Place::HeadLog,
        "spark:33:61 [1] transport/net_ib/p2p.cc:854 NCCL WARN NET/IB: ncclIbTest: Got CQE with error (devIndex=0, req=0x7fccfc04e028, comm=0x7fccfc04e000 (recv), wr_id=0, qp_num=26257)",
        "rdma-fault",
        "an RDMA transfer of spark-1 failed",
    ),
    (
        Place::HeadLog,
        "spark:33:61 [1] transport/net_ib/p2p.cc:688 NCCL WARN NET/IB: Got completion from peer 192.168.200.13<40554> with status=IBV_WC_RETRY_EXC_ERR(12) opcode=IBV_WC_RECV_RDMA_WITH_IMM(129) vendor_err=129 localGid ::ffff:1.1.2.2 hca rocep1s0f0",
        "rdma-fault",
        "an RDMA transfer of spark-1 failed",
    ),
    (
        Place::HeadLog,
        "spark:33:61 [0] transport/net_ib.cc:1296 NCCL WARN NET/IB : Got completion from peer 192.168.200.13<33092> with error 12, opcode 0, len 0, vendor err 129 (Recv)",
        "rdma-fault",
        "an RDMA transfer of spark-1 failed",
    ),
    (
        Place::HeadLog,
        "RuntimeError: [enforce fail at /pytorch/third_party/gloo/gloo/transport/tcp/device.cc:84] ifa != nullptr. Unable to find address for: enp1s0f1np1",
        "gloo-interface",
        "Gloo finds no address on the interface enp1s0f1np1 of spark-1",
    ),
    (
        Place::HeadLog,
        "spark:1:1 [0] bootstrap.cc:45 NCCL WARN Bootstrap : no socket interface found",
        "nccl-interface",
        "NCCL finds no interface of the name that it was given on spark-1",
    ),
    (
        Place::HeadLog,
        "spark:1:1 [0] transport/net_socket.cc:61 NCCL WARN NET/Socket : no interface found",
        "nccl-interface",
        "NCCL finds no interface of the name that it was given on spark-1",
    ),
    (
        Place::HeadLog,
        "spark:1:1 [0] bootstrap.cc:119 NCCL WARN NET/Socket : No usable listening interface found",
        "nccl-interface",
        "NCCL finds no interface of the name that it was given on spark-1",
    ),
    (
        Place::HeadLog,
        "torch.distributed.DistStoreError: wait timeout after 1800000ms, keys: /default_pg/0//2//cpu//0/2",
        "gloo-wait",
        "ranks waited for each other in vain",
    ),
    (
        Place::HeadLog,
        "torch.distributed.DistStoreError: Socket Timeout",
        "gloo-wait",
        "ranks waited for each other in vain",
    ),
    (
        Place::HeadLog,
        "[rank7]:[W410 21:36:52.176066491 socket.cpp:460] [c10d] waitForInput: poll for socket SocketImpl(fd=5, addr=[localhost]:39284, remote=[localhost]:47115) returned 0, likely a timeout",
        "gloo-wait",
        "ranks waited for each other in vain",
    ),
    (
        Place::HeadLog,
        "[rank7]:[W410 21:36:52.177160212 socket.cpp:485] [c10d] waitForInput: socket SocketImpl(fd=5, addr=[localhost]:39284, remote=[localhost]:47115) timed out after 300000ms",
        "gloo-wait",
        "ranks waited for each other in vain",
    ),
    (
        Place::HeadLog,
        "torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. 1/2 clients joined.",
        "rank-missing",
        "a rank never came: 1/2 joined",
    ),
    (
        Place::HeadLog,
        "(EngineCore pid=15) INFO 11-29 17:13:50 [shm_broadcast.py:871] No available shared memory broadcast block found in 60 seconds.\n\
         (EngineCore pid=15) INFO 11-29 17:14:50 [shm_broadcast.py:871] No available shared memory broadcast block found in 60 seconds.\n\
         (EngineCore pid=15) INFO 11-29 17:15:50 [shm_broadcast.py:871] No available shared memory broadcast block found in 60 seconds.",
        "rank-silent",
        "a rank has not answered the others for minutes",
    ),
    (
        Place::WorkerLog,
        "RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:544] Connection closed by peer [192.168.200.13]:38812",
        "peer-gone",
        "the connection of a rank on spark-1 to another was closed",
    ),
    (
        Place::HeadLog,
        "[rank1]:[E805 01:44:10.2 ProcessGroupNCCL.cpp:685] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=9, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600351 milliseconds before timing out.",
        "rank-silent",
        "a rank has not answered the others for minutes",
    ),
    (
        Place::WorkerLog,
        "    self._semlock = _multiprocessing.SemLock._rebuild(*state)",
        "semaphore-deleted",
        "a semaphore of the engine on spark-1 was deleted: systemd does that when a user's last session ends",
    ),
    (
        Place::HeadLog,
        "RuntimeError: NCCL error: unhandled system error",
        "nccl-error",
        "NCCL failed on spark-1: unhandled system error",
    ),
    (
        Place::HeadLog,
        "torch.distributed.DistBackendError: NCCL error in: /pytorch/torch/csrc/distributed/c10d/NCCLUtils.cpp:77, remote process exited or there was a network error, NCCL version 2.27.3",
        "nccl-error",
        "NCCL failed on spark-1: remote process exited or there was a network error",
    ),
    (
        Place::HeadLog,
        "torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:1970, unhandled cuda error (run with NCCL_DEBUG=INFO for details), NCCL version 2.20.5",
        "nccl-error",
        "NCCL failed on spark-1: unhandled cuda error",
    ),
    (
        Place::WorkerLog,
        "[W socket.cpp:1] recvValue failed on SocketImpl(fd=77): Failed to recv, got 0 bytes. Connection was likely closed. Did the remote server shutdown or crash?",
        "peer-gone",
        "the connection of a rank on spark-1 to another was closed",
    ),
    (
        Place::WorkerLog,
        "[W522 11:47:45.949247853 TCPStore.cpp:125] [c10d] recvValue failed on SocketImpl(fd=77, addr=[::ffff:127.0.0.1]:39732, remote=[::ffff:127.0.0.1]:29600): failed to recv, got 0 bytes",
        "peer-gone",
        "the connection of a rank on spark-1 to another was closed",
    ),
    (
        Place::WorkerLog,
        "spark:77:91 [0] misc/socket.cc:59 NCCL WARN socketProgress: Connection closed by remote peer 192.168.200.13<40554>",
        "peer-gone",
        "the connection of a rank on spark-1 to another was closed",
    ),
    (
        Place::HeadLog,
        "(EngineCore pid=84) ERROR 06-07 18:13:55 [multiproc.py:1] RayWorkerProc rank=[2] died unexpectedly, shutting down executor.",
        "worker-process-died",
        "a process of the engine died",
    ),
    (
        Place::HeadLog,
        "(EngineCore pid=143) ERROR 06-01 17:32:04 [multiproc_executor.py:283] Worker proc VllmWorker-1 died unexpectedly, shutting down executor.",
        "worker-process-died",
        "a process of the engine died",
    ),
    (
        Place::HeadLog,
        "(APIServer pid=1) ERROR 09-05 01:15:59 [core_client.py:562] Engine core proc EngineCore_DP0 died unexpectedly, shutting down client.",
        "worker-process-died",
        "a process of the engine died",
    ),
    (
        Place::HeadLog,
        "(raylet) A worker died or was killed while executing a task by an unexpected system error. Worker IP address: 192.168.200.13 Worker port: 10029 Worker PID: 127 Worker exit type: SYSTEM_ERROR Worker exit detail: Worker unexpectedly exits with a connection error code 2. End of file.",
        "worker-process-died",
        "a process of the engine died",
    ),
    (
        Place::HeadLog,
        "(EngineCore_DP0 pid=2301) (RayWorkerWrapper pid=2528) spark:2528:2528 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/Socket/0",
        "nccl-over-tcp",
        "NCCL on spark-1 goes over TCP, not over InfiniBand or RoCE: it works, and slowly",
    ),
    (
        Place::HeadLog,
        "spark:1:1 [0] NCCL INFO Failed to open libibverbs.so[.1]",
        "ibverbs-missing",
        "the image lacks libibverbs: NCCL cannot use InfiniBand or RoCE",
    ),
    (
        Place::HeadLog,
        "spark:1:1 [0] NCCL INFO Count not open libibverbs.so.1",
        "ibverbs-missing",
        "the image lacks libibverbs: NCCL cannot use InfiniBand or RoCE",
    ),
    (
        Place::HeadLog,
        "Overwriting environment variable NCCL_IB_HCA from 'rocep1s0f0,roceP2p1s0f0' to 'rocep1s0f1,roceP2p1s0f1'",
        "environment-overwritten",
        "vLLM gave a worker the head's NCCL_IB_HCA",
    ),
    (
        Place::HeadLog,
        "(APIServer pid=1) INFO:     127.0.0.1:40052 - \"GET /v1/models HTTP/1.1\" 401 Unauthorized",
        "api-key-wanted",
        "the server wants an API key and was asked without it",
    ),
    (
        Place::WorkerLog,
        "Fatal Python error: Segmentation fault",
        "process-crashed",
        "a process on spark-1 crashed",
    ),
];

#[test]
fn lines_that_were_seen_give_their_rule_and_a_clause_with_their_values() {
    let config = config();
    let mut wrong = String::new();
    for (place, text, rule, clause) in SEEN {
        let found = signs(*place, text);
        let first = found.iter().find_map(id);
        let mut evidence = Evidence::default();
        for sign in found.clone() {
            evidence.log(HEAD, HEAD, sign, now(0));
        }
        let causes = rank(&evidence, &config);
        let said = causes.first().map(|c| c.text.as_str());
        if first != Some(*rule) || said != Some(*clause) {
            let _ok = writeln!(wrong, "{text}\n  {first:?}, not {rule}\n  {said:?}\n  not {clause}");
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

#[test]
fn every_rule_that_looks_for_a_text_is_tried_on_a_line() {
    let tried: BTreeSet<&str> = SEEN.iter().map(|(_, _, rule, _)| *rule).collect();
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
    fn seen_lines_cut_anywhere_make_no_panic(which in 0..SEEN.len(), at in 0usize..600) {
        let (place, text, ..) = SEEN[which];
        let cut: String = text.chars().take(at).collect();
        let found = signs(place, &cut);
        prop_assert!(found.len() <= 8);
    }
}
