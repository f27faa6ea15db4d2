"""What would be the model: tokens at a pace, places for requests, and death."""

import os
import threading
import time

from vllm import log
from vllm.metrics import Metrics
from vllm.text import word

PREFILL_START_S = 0.03
PREFILL_TOKENS_PER_S = 4000
KV_CACHE_TOKENS = 262_144
# Where an answer ends by itself when the request does not ignore the end.
NATURAL_END = 64
MID_STREAM = 10
# vLLM's server says 503 for a moment before its process ends.
LAST_BREATH_S = 2.0
STATISTICS_S = 10.0


class EngineDead(Exception):
    """No more tokens come from here."""

    message = "EngineCore encountered an issue. See stack trace (above) for the root cause."


class Engine:
    def __init__(self, args):
        self.metrics = Metrics(args.served_model_name[0])
        self.interval = 1.0 / float(os.environ.get("VLLM_STANDIN_TOKENS_PER_S", "50"))
        self.fault = os.environ.get("VLLM_STANDIN_FAULT", "")
        self.places = threading.Semaphore(args.max_num_seqs)
        self.dead = threading.Event()

    def generate(self, prompt_tokens, max_tokens, min_tokens, ignore_eos):
        """Yields (text, finish_reason) for each token; the reason is None but for the last. Closing it early counts as an abort."""
        arrived = time.monotonic()
        with self._place():
            reason = "abort"
            held = 0
            try:
                self._pause(PREFILL_START_S + prompt_tokens / PREFILL_TOKENS_PER_S)
                self._die_if("first-token", True)
                last = max_tokens if ignore_eos else min(max_tokens, max(NATURAL_END, min_tokens))
                held = prompt_tokens
                self._hold(held)
                before = started = time.monotonic()
                for index in range(last):
                    if index:
                        self._pause(started + index * self.interval - time.monotonic())
                    self._die_if("mid-stream", index == MID_STREAM)
                    now = time.monotonic()
                    with self.metrics.lock:
                        if index == 0:
                            self.metrics.prompt_tokens += prompt_tokens
                            self.metrics.first_token.observe(now - arrived)
                        else:
                            self.metrics.between_tokens.observe(now - before)
                        self.metrics.generation_tokens += 1
                    before = now
                    held += 1
                    self._hold(1)
                    end = None
                    if index == last - 1:
                        end = reason = "length" if last == max_tokens else "stop"
                    yield word(index), end
            except EngineDead:
                reason = "error"
                raise
            finally:
                self._hold(-held)
                with self.metrics.lock:
                    self.metrics.finished[reason] += 1
                    self.metrics.whole_request.observe(time.monotonic() - arrived)

    def _place(self):
        return _Place(self)

    def _hold(self, tokens):
        with self.metrics.lock:
            self.metrics.kv_cache_usage = max(0.0, self.metrics.kv_cache_usage + tokens / KV_CACHE_TOKENS)

    def _pause(self, seconds):
        if self.dead.wait(max(0.0, seconds)):
            raise EngineDead

    def _die_if(self, fault, now):
        if self.fault == fault and now:
            self.die(RuntimeError("the kernel could not be compiled"))
        if self.dead.is_set():
            raise EngineDead

    def die(self, error):
        """The end of the engine: requests fail, health turns to 503, then the process ends."""
        if self.dead.is_set():
            return
        log.engine_traceback(error, "EngineCore encountered a fatal error.")
        log.api_error(f"vllm.v1.engine.exceptions.EngineDeadError: {EngineDead.message}")
        self.dead.set()
        threading.Timer(LAST_BREATH_S, self._end).start()

    def _end(self):
        log.uvicorn("Shutting down")
        os._exit(1)

    def report_for_ever(self):
        """vLLM's line of statistics, every few seconds while there is something to say."""
        seen, quiet = (0, 0), True
        while not self.dead.wait(STATISTICS_S):
            with self.metrics.lock:
                now = (self.metrics.prompt_tokens, self.metrics.generation_tokens)
                running, waiting = self.metrics.running, self.metrics.waiting
                usage = self.metrics.kv_cache_usage
            prompt, generated = ((after - before) / STATISTICS_S for after, before in zip(now, seen))
            idle = not (running or waiting or prompt or generated)
            if not (idle and quiet):
                log.api(f"Engine 000: Avg prompt throughput: {prompt:.1f} tokens/s, Avg generation throughput: {generated:.1f} "
                        f"tokens/s, Running: {running} reqs, Waiting: {waiting} reqs, GPU KV cache usage: {usage:.1%}, "
                        "Prefix cache hit rate: 0.0%", "loggers.py:335")
            seen, quiet = now, idle


class _Place:
    """One of the engine's places, with the gauges that show who has one and who waits."""

    def __init__(self, engine):
        self.engine, self.metrics = engine, engine.metrics

    def __enter__(self):
        with self.metrics.lock:
            self.metrics.waiting += 1
        self.engine.places.acquire()
        with self.metrics.lock:
            self.metrics.waiting -= 1
            self.metrics.running += 1

    def __exit__(self, *_):
        with self.metrics.lock:
            self.metrics.running -= 1
        self.engine.places.release()
