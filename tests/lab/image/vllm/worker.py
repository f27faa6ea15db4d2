"""The part of the stand-in that runs in Ray, one process for each GPU. It is called RayWorkerProc, as vLLM's own is, because Ray
writes the name before every line that it forwards from here."""

import os
import sys
import threading
import time

from ray._raylet import setproctitle

from vllm import log
from vllm.network import own_address

WEIGHTS_MIB = 57_344
GRAPHS = 9


class RayWorkerProc:
    def __init__(self, rank, world_size, model, driver_env):
        self.rank, self.world_size, self.model = rank, world_size, model
        self.gpu_mib = 0
        for name, value in driver_env.items():
            if os.environ.get(name, value) != value:
                log.worker(rank, f"Overwriting environment variable {name} from '{os.environ[name]}' to '{value}'",
                           "system_utils.py:38", "WARNING")
            os.environ[name] = value
        threading.Thread(target=self._show_gpu_memory, daemon=True).start()

    def _show_gpu_memory(self):
        """The lab's nvidia-smi reads the memory that this process pretends to hold from its title. Ray sets a title of its own
        around every call, so this one is set again and again."""
        while True:
            setproctitle(f"ray::RayWorkerProc gpu_mib={self.gpu_mib}")
            time.sleep(0.2)

    def address(self):
        return own_address()

    def load_weights(self, seconds, shards, fault):
        log.worker(self.rank, f"world_size={self.world_size} rank={self.rank} local_rank=0 "
                   f"distributed_init_method=tcp://{own_address()}:0 backend=nccl", "parallel_state.py:1906")
        log.worker(self.rank, f"Starting to load model {self.model}...", "gpu_model_runner.py:4410")
        started = time.monotonic()
        for done in range(shards + 1):
            if done:
                time.sleep(seconds / shards)
            self.gpu_mib = WEIGHTS_MIB * done // shards
            # Only the first rank shows a bar.
            if self.rank == 0:
                log.line("\r" + bar("Loading safetensors checkpoint shards", done, shards, time.monotonic() - started))
            if done == shards // 2 and fault == "load-crash":
                raise RuntimeError("CUDA out of memory. Tried to allocate 1.50 GiB.")
            if done == shards // 2 and fault == "load-stall":
                threading.Event().wait()
        took = time.monotonic() - started
        if self.rank == 0:
            log.line("")
            log.worker(self.rank, f"Loading weights took {took:.2f} seconds", "default_loader.py:501")
        log.worker(self.rank, f"Model loading took {WEIGHTS_MIB / 1024:.2f} GiB memory and {took:.6f} seconds",
                   "gpu_model_runner.py:4512")
        log.worker(self.rank, "Available KV cache memory: 38.12 GiB", "gpu_worker.py:721")

    def capture_graphs(self, seconds):
        started = time.monotonic()
        for done in range(GRAPHS + 1):
            if done:
                time.sleep(seconds / GRAPHS)
            if self.rank == 0:
                # This bar stays on one line, as tqdm's do.
                sys.stderr.write("\r" + graph_bar(done, GRAPHS, time.monotonic() - started))
                sys.stderr.flush()
        if self.rank == 0:
            log.line("")
        self.gpu_mib += 38 * 1024
        log.worker(self.rank, f"Graph capturing finished in {time.monotonic() - started:.0f} secs, took 0.42 GiB",
                   "gpu_model_runner.py:5120")

    def hold(self):
        """Never returns. A driver that waits for it learns of this process's end."""
        threading.Event().wait()


def clock(seconds):
    return f"{int(seconds) // 60:02}:{int(seconds) % 60:02}"


def pace(done, total, elapsed):
    """tqdm's right-hand side: elapsed, remaining and rate."""
    if not done:
        return f"[{clock(elapsed)}<?, ?it/s]"
    rate = done / elapsed
    shown = f"{rate:5.2f}it/s" if rate >= 1 else f"{1 / rate:5.2f}s/it"
    return f"[{clock(elapsed)}<{clock((total - done) / rate)}, {shown}]"


def bar(title, done, total, elapsed):
    return f"{title}: {100 * done / total:3.0f}% Completed | {done}/{total} {pace(done, total, elapsed)}"


def graph_bar(done, total, elapsed):
    filled = "█" * (10 * done // total)
    return (f"Capturing CUDA graphs (mixed prefill-decode, PIECEWISE): {100 * done / total:3.0f}%|{filled:<10}| "
            f"{done}/{total} {pace(done, total, elapsed)}")
