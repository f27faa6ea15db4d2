"""Prometheus text with vLLM's names. Nothing is estimated: a counter counts what has been sent."""

import threading
import time

LATENCY = (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0)
BETWEEN_TOKENS = (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0)
WHOLE_REQUEST = (0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 60.0, 120.0, 240.0)
REASONS = ("stop", "length", "abort", "error")


class Metrics:
    def __init__(self, model_name):
        self.lock = threading.Lock()
        self.created = time.time()
        self.model_name = model_name
        self.prompt_tokens = 0
        self.generation_tokens = 0
        self.running = 0
        self.waiting = 0
        self.kv_cache_usage = 0.0
        self.finished = dict.fromkeys(REASONS, 0)
        self.first_token = Histogram(LATENCY)
        self.between_tokens = Histogram(BETWEEN_TOKENS)
        self.whole_request = Histogram(WHOLE_REQUEST)

    def text(self):
        with self.lock:
            return "".join(self._lines())

    def _lines(self):
        yield from self._gauge("num_requests_running", "Number of requests in model execution batches.", self.running)
        yield from self._gauge("num_requests_waiting", "Number of requests waiting to be processed.", self.waiting)
        yield from self._gauge("kv_cache_usage_perc", "KV-cache usage. 1 means 100 percent usage.", self.kv_cache_usage)
        yield from self._counter("prompt_tokens", "Number of prefill tokens processed.", [("", self.prompt_tokens)])
        yield from self._counter("generation_tokens", "Number of generation tokens processed.", [("", self.generation_tokens)])
        yield from self._counter("request_success", "Count of successfully processed requests.",
                                 [(f'finished_reason="{reason}",', count) for reason, count in self.finished.items()])
        yield from self._histogram("time_to_first_token_seconds", "Histogram of time to first token in seconds.", self.first_token)
        yield from self._histogram("inter_token_latency_seconds", "Histogram of inter-token latency in seconds.", self.between_tokens)
        yield from self._histogram("e2e_request_latency_seconds", "Histogram of e2e request latency in seconds.", self.whole_request)

    def _sample(self, name, value, labels=""):
        return f'vllm:{name}{{engine="0",{labels}model_name="{self.model_name}"}} {number(value)}\n'

    def _head(self, name, help_text, kind):
        return f"# HELP vllm:{name} {help_text}\n# TYPE vllm:{name} {kind}\n"

    def _gauge(self, name, help_text, value):
        yield self._head(name, help_text, "gauge")
        yield self._sample(name, value)

    def _counter(self, name, help_text, values):
        yield self._head(f"{name}_total", help_text, "counter")
        for labels, value in values:
            yield self._sample(f"{name}_total", value, labels)
        yield self._head(f"{name}_created", help_text, "gauge")
        for labels, _ in values:
            yield self._sample(f"{name}_created", self.created, labels)

    def _histogram(self, name, help_text, histogram):
        yield self._head(name, help_text, "histogram")
        for bound, count in histogram.cumulative():
            yield self._sample(f"{name}_bucket", count, f'le="{bound}",')
        yield self._sample(f"{name}_count", histogram.count)
        yield self._sample(f"{name}_sum", histogram.sum)
        yield self._head(f"{name}_created", help_text, "gauge")
        yield self._sample(f"{name}_created", self.created)


class Histogram:
    def __init__(self, bounds):
        self.bounds, self.buckets = bounds, [0] * len(bounds)
        self.count, self.sum = 0, 0.0

    def observe(self, value):
        self.count += 1
        self.sum += value
        for index, bound in enumerate(self.bounds):
            if value <= bound:
                self.buckets[index] += 1
                break

    def cumulative(self):
        total = 0
        for bound, count in zip(self.bounds, self.buckets):
            total += count
            yield bound, total
        yield "+Inf", self.count


def number(value):
    """As Prometheus' client writes it: always a float, large ones with an exponent."""
    value = float(value)
    return f"{value:.15e}" if value >= 1e6 else repr(value)
