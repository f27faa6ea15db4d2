//! What an image holds, and the arguments of what runs in it.

use super::Seen;
use crate::diagnose::Place;

pub(super) const LINES: &[Seen] = &[
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
];
