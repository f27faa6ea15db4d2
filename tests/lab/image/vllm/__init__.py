"""A stand-in for vLLM, for the lab's image: it takes GPUs from a real Ray cluster, pretends to load a model and serves an API that
looks like vLLM's. There is no model in it. Everything it counts, it has really sent.

Behaviour is set by the environment of the container, beside vLLM's own variables:
  VLLM_STANDIN_LOAD_S        seconds from the first line of loading to serving (20)
  VLLM_STANDIN_SHARDS        checkpoint shards that it counts up (14)
  VLLM_STANDIN_TOKENS_PER_S  tokens a second of each stream (50)
  VLLM_STANDIN_FAULT         load-crash: dies in mid-load
                             load-stall: stops loading in mid-load, and stays
                             first-token: gets healthy, dies at the first token
                             mid-stream: dies some tokens into the first answer
"""

__version__ = "0.32.0+standin"
