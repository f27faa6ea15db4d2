"""The driver's side of Ray: connect, take the GPUs, have the workers load."""

import json
import os
import threading
import time

import ray
from ray.util.placement_group import placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from vllm import __version__, log
from vllm.network import own_address
from vllm.worker import RayWorkerProc

FIRST_WAIT_S = 10
LONGEST_WAIT_S = 1800
# Variables with these beginnings go from the driver to all workers, over what each worker's container has set.
CARRIED = ("VLLM_", "NCCL_", "UCX_", "HF_", "LMCACHE_")
PER_WORKER = ("VLLM_HOST_IP",)
# How the load's seconds are spent; what is left is the engine's own start.
WEIGHTS_SHARE, GRAPHS_SHARE = 0.7, 0.2


class Cluster:
    def __init__(self, args):
        self.args = args
        self.size = args.tensor_parallel_size
        self.workers = []

    def connect(self):
        log.engine(f"Initializing a V1 LLM engine (v{__version__}) with config: model='{self.args.model_tag}', "
                   f"tensor_parallel_size={self.size}, max_seq_len={self.args.max_model_len}", "core.py:133")
        ray.init(address=os.environ.get("RAY_ADDRESS") or "auto")

    def take_gpus(self):
        log.engine("No current placement group found. Creating a new placement group.", "ray_utils.py:607")
        here = ray.get_runtime_context().get_node_id()
        per_node = ray._private.state.available_resources_per_node()
        for node, resources in per_node.items():
            if 0 < resources.get("GPU", 0) < self.size:
                log.engine(f"tensor_parallel_size={self.size} is bigger than a reserved number of GPUs "
                           f"({resources['GPU']:.0f} GPUs) in a node {node}. Tensor parallel workers can be spread out to 2+ nodes "
                           "which can degrade the performance unless you have fast interconnect across nodes, like Infiniband.",
                           "ray_utils.py:321", "WARNING")
        if per_node.get(here, {}).get("GPU", 0) < 1:
            raise ValueError(f"Current node has no GPU available. current_node_resource={per_node.get(here)}. vLLM engine cannot start "
                             f"without GPU. Make sure you have at least 1 GPU available in a node current_node_id='{here}' "
                             f"current_ip='{own_address()}'.")
        bundles = [{"GPU": 1.0} for _ in range(self.size)]
        # The first worker has to be on this node, which Ray knows by the address that it has registered.
        bundles[0][f"node:{own_address()}"] = 0.001
        group = placement_group(bundles, strategy="PACK")
        self._wait_until_placed(group, bundles)
        self._start_workers(group)

    def _wait_until_placed(self, group, bundles):
        started, wait = time.monotonic(), FIRST_WAIT_S
        while not group.wait(wait):
            waited = time.monotonic() - started
            if waited >= LONGEST_WAIT_S:
                raise ValueError(f"Cannot provide a placement group requiring {float(self.size)} GPUs (placement_group_specs={bundles}) "
                                 f"within {LONGEST_WAIT_S} seconds. See `ray status` and `ray list nodes`.")
            log.engine(f"Waiting for creating a placement group of specs for {waited:.0f} seconds. specs={bundles}. Check `ray status` "
                       "and `ray list nodes` to see if you have enough resources, and make sure the IP addresses used by ray "
                       "cluster are the same as VLLM_HOST_IP environment variable specified in each node if you are running on a "
                       "multi-node.", "ray_utils.py:464")
            wait *= 2

    def _start_workers(self, group):
        carried = carried_environment()
        log.engine(f"Copying the following environment variables to workers: {sorted(carried)}", "ray_env.py:74")
        # Two calls at a time: one that holds, one that works.
        actor = ray.remote(num_cpus=0, num_gpus=1, max_concurrency=2)(RayWorkerProc)
        self.workers = [
            actor.options(
                scheduling_strategy=PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=rank)
            ).remote(rank, self.size, self.args.model_tag, carried)
            for rank in range(self.size)
        ]
        addresses = ray.get([worker.address.remote() for worker in self.workers])
        if len(set(addresses)) < len(addresses):
            raise RuntimeError(f"Every node should have a unique IP address. Got {len(addresses)} nodes and {len(set(addresses))} unique "
                               f"IP addresses {set(addresses)}. Please check your network configuration. If you set VLLM_HOST_IP, make "
                               "sure it is unique for each node.")

    def load(self):
        seconds = float(os.environ.get("VLLM_STANDIN_LOAD_S", "20"))
        shards = int(os.environ.get("VLLM_STANDIN_SHARDS", "14"))
        fault = os.environ.get("VLLM_STANDIN_FAULT", "")
        started = time.monotonic()
        ray.get([worker.load_weights.remote(seconds * WEIGHTS_SHARE, shards, fault) for worker in self.workers])
        log.engine("GPU KV cache size: 262,144 tokens, Maximum concurrency for "
                   f"{self.args.max_model_len:,} tokens per request: {262144 / self.args.max_model_len:.2f}x", "kv_cache_utils.py:2327")
        ray.get([worker.capture_graphs.remote(seconds * GRAPHS_SHARE) for worker in self.workers])
        time.sleep(max(0.0, started + seconds - time.monotonic()))
        log.engine(f"init engine (profile, create kv cache, warmup model) took {time.monotonic() - started:.2f} s", "core.py:402")

    def watch(self, on_death):
        """Calls on_death(error) when a worker ends, from a thread of its own."""
        held = [worker.hold.remote() for worker in self.workers]

        def wait():
            try:
                ray.get(ray.wait(held, num_returns=1)[0])
            except Exception as error:  # of any kind: the worker is gone
                on_death(error)

        threading.Thread(target=wait, daemon=True).start()


def carried_environment():
    config = os.environ.get("VLLM_CONFIG_ROOT") or os.path.expanduser("~/.config/vllm")
    try:
        with open(os.path.join(config, "ray_non_carry_over_env_vars.json")) as file:
            kept_back = set(json.load(file))
    except FileNotFoundError:
        kept_back = set()
    return {name: value for name, value in os.environ.items()
            if name.startswith(CARRIED) and name not in PER_WORKER and name not in kept_back}
