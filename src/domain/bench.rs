//! Records of a throughput test.

use std::time::Duration;

use serde::Serialize;

/// Most requests of a test, and of its warm-up.
pub const REQUESTS: u32 = 100_000;

/// Most requests in flight at a time. A tunnel takes some more, so that the probes still come through.
pub const CONCURRENCY: u32 = 256;

/// Most chunks of a test (requests times output tokens): their stamps are all kept for the percentiles.
pub const CHUNKS: u64 = 4_000_000;

/// Most prompt tokens.
pub const PROMPT_TOKENS: u32 = 2_000_000;

/// What a throughput test sends.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BenchProfile {
    /// Requests that count.
    pub requests: u32,
    /// Requests in flight at a time.
    pub concurrency: u32,
    /// Prompt tokens of each request.
    pub prompt_tokens: u32,
    /// Output tokens asked of each request (`max_tokens`, with `ignore_eos`).
    pub output_tokens: u32,
    /// Requests sent first and not counted.
    pub warmup: u32,
    /// Longest time for one request.
    pub request_limit: Duration,
}

/// How the prompt was made to size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PromptSizing {
    /// Counted by the server's /tokenize.
    Tokenize,
    /// Measured from `usage.prompt_tokens` of a first request.
    Usage,
    /// The server counts neither: made to about the size that was asked.
    Estimate,
}

impl PromptSizing {
    /// The word in the result file and on the screen.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Tokenize => "tokenize",
            Self::Usage => "usage",
            Self::Estimate => "estimate",
        }
    }
}

/// One request, with times relative to the test's start.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RequestRecord {
    /// Number within the test.
    pub index: u32,
    /// When the request was sent.
    pub sent: Duration,
    /// When each chunk that carried output (text or reasoning) arrived.
    pub chunks: Vec<Duration>,
    /// Output tokens: `usage.completion_tokens`, else the number of chunks.
    pub output_tokens: u64,
    /// Whether `output_tokens` is the server's count.
    pub counted_by_server: bool,
    /// Prompt tokens by `usage`.
    pub prompt_tokens: Option<u64>,
    /// Why it failed; `None` when it succeeded.
    pub error: Option<String>,
}

/// What the server itself counted, to hold against the records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Tally {
    /// How far the server's own count of generated tokens (/metrics) grew from before the first counted request to after the last. Other clients' tokens
    /// are in it. `None` when it could not be read.
    pub server_tokens: Option<u64>,
    /// Output tokens of what the test sent beside the counted requests: finding the way to ask, sizing the prompt, warming up.
    pub other_tokens: u64,
}

/// What the throughput test tells while it runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum BenchEvent {
    /// It starts, with the profile that it will send.
    Started(BenchProfile),
    /// The prompt is made.
    Prompt {
        /// How.
        sizing: PromptSizing,
        /// Tokens it has, as counted; with [`PromptSizing::Estimate`] the number that was asked.
        tokens: u64,
    },
    /// Warm-up requests done.
    Warmup {
        /// Done so far.
        done: u32,
    },
    /// Output arrived. Not one event a chunk: the sender puts chunks of a short time together, and the newest may replace those before it.
    Token {
        /// Since the test's start.
        at: Duration,
        /// Chunks with output of all requests so far.
        chunks: u64,
        /// Time to first token, when this was a request's first chunk.
        ttft: Option<Duration>,
    },
    /// A request is over.
    Request(RequestRecord),
    /// All are over, and this is what the server counted. Comes before `Done`.
    Tally(Tally),
    /// All are over.
    Done {
        /// From the first request that counts to the last answer.
        duration: Duration,
    },
    /// The result was written to this file.
    Saved(String),
    /// The result could not be written, and why.
    Unsaved(String),
    /// It could not go on.
    Failed(String),
}
