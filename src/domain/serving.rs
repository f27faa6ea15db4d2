//! The model server: its process and its HTTP answers.

use std::time::Duration;

use serde::Serialize;

use super::histogram::Histogram;
use super::units::Percent;

/// The serve process on the head.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct ServeFacts {
    /// Model-server processes seen in the container, the topmost ones only.
    pub processes: Vec<ServeProcess>,
}

/// A model-server process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ServeProcess {
    /// Process id inside the container.
    pub pid: u32,
    /// The value of `BRINGUP_SERVE` in its environment: a hash of the command that started it. `None` when others started it.
    pub mark: Option<String>,
    /// Its command line, secrets masked.
    pub command: String,
    /// Seconds since it started.
    pub up_seconds: Option<u64>,
}

/// Name of the variable that marks a serve process as ours.
pub const SERVE_MARK: &str = "BRINGUP_SERVE";

/// Why there is no token while one is asked for.
pub const TOKEN_ASKED: &str = "asked for, no answer yet";

/// What one question to the server can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub enum ServerProbe {
    /// GET /health.
    Health,
    /// GET /v1/models.
    Models,
    /// GET /metrics.
    Metrics,
    /// One generated token, POST /v1/completions.
    Token,
    /// Ray's dashboard, GET /api/v0/nodes.
    Ray,
}

/// An answer of the server, or of Ray's dashboard.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum ServerFacts {
    /// GET /health.
    Health(Health),
    /// Names in /v1/models, or why there are none.
    Models(Result<Vec<String>, String>),
    /// A scrape of /metrics.
    Metrics(Result<Box<MetricsSample>, String>),
    /// What one asked token came to.
    Token(Result<TokenProof, NoToken>),
    /// Ray's dashboard.
    Ray(Result<super::ray::RayFacts, String>),
}

/// Why no token came back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum NoToken {
    /// The server lets nobody in without a key, and this program has none or another: that is no word on the server.
    NotLetIn(String),
    /// The server failed to give one.
    Failed(String),
}

impl NoToken {
    /// Why, as a fragment.
    #[must_use]
    pub fn why(&self) -> &str {
        match self {
            Self::NotLetIn(why) | Self::Failed(why) => why,
        }
    }
}

/// What /health said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Health {
    /// 200.
    Ok,
    /// Another status.
    Status(u16),
    /// The port refuses: nothing listens yet.
    Refused,
    /// No answer in time, or the tunnel is down.
    Unreachable(String),
}

/// A token came back.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TokenProof {
    /// Model that answered.
    pub model: String,
    /// Tokens generated, from `usage`.
    pub tokens: u64,
    /// Request to answer.
    pub took: Duration,
}

/// Whose names a scrape carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum MetricsOf {
    /// `vllm:`.
    Vllm,
    /// `sglang:`, or `sglang_` where a scraper in between has rewritten the colon.
    Sglang,
    /// `llamacpp:`.
    LlamaCpp,
}

impl MetricsOf {
    /// Whether the counter of generated tokens moves while a request runs. SGLang and llama.cpp add a request's tokens when it is over, so that a counter
    /// which stands still says nothing there.
    #[must_use]
    pub fn counts_while_running(self) -> bool {
        match self {
            Self::Vllm => true,
            Self::Sglang | Self::LlamaCpp => false,
        }
    }
}

/// One scrape of /metrics: counters summed over engines. `None` where the server does not export it. The names are those of vLLM; what others call them
/// stands in `engine::metrics`.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct MetricsSample {
    /// Whose names were found; `None` when nobody's were.
    pub of: Option<MetricsOf>,
    /// `vllm:generation_tokens_total`.
    pub generation_tokens: Option<f64>,
    /// The same of each engine, by its labels in their order: one that begins anew or leaves does not show in the sum.
    pub generation_of: Vec<(String, f64)>,
    /// `vllm:prompt_tokens_total`, those from the prefix cache included.
    pub prompt_tokens: Option<f64>,
    /// `vllm:num_requests_running`.
    pub running: Option<f64>,
    /// `vllm:num_requests_waiting`.
    pub waiting: Option<f64>,
    /// `vllm:kv_cache_usage_perc` (or `gpu_cache_usage_perc`) of the fullest engine, as percent.
    pub kv_cache: Option<Percent>,
    /// Sum of `vllm:request_success_total`.
    pub finished: Option<f64>,
    /// `vllm:num_preemptions_total`.
    pub preemptions: Option<f64>,
    /// `vllm:prefix_cache_queries_total`, in tokens.
    pub prefix_queries: Option<f64>,
    /// `vllm:prefix_cache_hits_total`, in tokens.
    pub prefix_hits: Option<f64>,
    /// The hit rate of the prefix cache as the server itself gives it, 0 to 1, the mean of its engines. Over which time is the server's matter.
    pub prefix_hit_rate: Option<f64>,
    /// `vllm:spec_decode_num_drafts_total`.
    pub drafts: Option<f64>,
    /// `vllm:spec_decode_num_draft_tokens_total`.
    pub draft_tokens: Option<f64>,
    /// `vllm:spec_decode_num_accepted_tokens_total`.
    pub accepted_tokens: Option<f64>,
    /// Tokens a step with speculation as the server itself gives it (SGLang), the mean of its engines.
    pub accept_length: Option<f64>,
    /// Time to first token, in seconds.
    pub ttft: Option<Histogram>,
    /// Time between tokens, in seconds. With speculative decoding it is the time between steps.
    pub itl: Option<Histogram>,
    /// Time in the queue, in seconds.
    pub queue: Option<Histogram>,
    /// How often `vllm:iteration_tokens_total`, a histogram, was added to. Of vLLM's first engine it counts every step; since then only steps that gave a
    /// token, so that it stands still in a prefill: that it moves says something, that it doesn't says nothing.
    pub steps: Option<f64>,
    /// `vllm:estimated_flops_per_gpu_total`, which each step moves, those of a prefill too, where the server was started with it; elsewhere
    /// it stays zero.
    pub flops: Option<f64>,
    /// `process_start_time_seconds`: a change means another process answers.
    pub started: Option<f64>,
}
