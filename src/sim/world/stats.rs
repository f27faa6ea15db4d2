//! What the model server counts, and how /metrics prints it.
//!
//! Names, labels, buckets and number format as in vLLM's exposition (monitoring notes, captured scrapes).

use std::fmt::Write as _;
use std::time::Duration;

/// Upper bounds of `vllm:time_to_first_token_seconds`.
const TTFT_BOUNDS: &[f64] = &[
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0,
    160.0, 640.0, 2560.0,
];

/// Upper bounds of `vllm:inter_token_latency_seconds`.
const ITL_BOUNDS: &[f64] = &[
    0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0,
];

/// Upper bounds of `vllm:e2e_request_latency_seconds`.
const E2E_BOUNDS: &[f64] = &[
    0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 120.0, 240.0, 480.0, 960.0,
    1920.0, 7680.0,
];

/// Tokens that one block of the KV cache holds.
const BLOCK_TOKENS: u64 = 16;

/// A Prometheus histogram.
#[derive(Debug, Clone)]
pub struct Histogram {
    bounds: &'static [f64],
    counts: Vec<u64>,
    sum: f64,
    count: u64,
}

impl Histogram {
    fn new(bounds: &'static [f64]) -> Self {
        Self {
            bounds,
            counts: vec![0; bounds.len()],
            sum: 0.0,
            count: 0,
        }
    }

    fn add(&mut self, value: Duration) {
        let v = value.as_secs_f64();
        for (bound, count) in self.bounds.iter().zip(self.counts.iter_mut()) {
            if v <= *bound {
                *count += 1;
            }
        }
        self.sum += v;
        self.count += 1;
    }
}

/// Why a request ended, as `finished_reason` has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finish {
    /// The model ended its answer.
    Stop,
    /// `max_tokens` was reached.
    Length,
    /// The client went away.
    Abort,
}

impl Finish {
    /// The word in the API and in the label.
    pub fn word(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Length => "length",
            Self::Abort => "abort",
        }
    }
}

/// Counters of one start of the server. All of them begin at zero with it.
#[derive(Debug, Clone)]
pub struct Stats {
    /// Prompt tokens of requests that got their first token.
    pub prompt_tokens: u64,
    /// Tokens that were sent.
    pub generation_tokens: u64,
    /// Requests that generate.
    pub running: u64,
    /// Requests that wait for a place.
    pub waiting: u64,
    /// Tokens that stand in the KV cache.
    pub cached_tokens: u64,
    finished: [u64; 3],
    ttft: Histogram,
    itl: Histogram,
    e2e: Histogram,
}

impl Default for Stats {
    fn default() -> Self {
        Self {
            prompt_tokens: 0,
            generation_tokens: 0,
            running: 0,
            waiting: 0,
            cached_tokens: 0,
            finished: [0; 3],
            ttft: Histogram::new(TTFT_BOUNDS),
            itl: Histogram::new(ITL_BOUNDS),
            e2e: Histogram::new(E2E_BOUNDS),
        }
    }
}

impl Stats {
    /// A request got its first token.
    pub fn first_token(&mut self, prompt: u64, after: Duration) {
        self.prompt_tokens += prompt;
        self.generation_tokens += 1;
        self.cached_tokens += 1;
        self.ttft.add(after);
    }

    /// A request got another token.
    pub fn next_token(&mut self, after: Duration) {
        self.generation_tokens += 1;
        self.cached_tokens += 1;
        self.itl.add(after);
    }

    /// A request is over.
    pub fn finish(&mut self, how: Finish, after: Duration) {
        let [stop, length, abort] = &mut self.finished;
        match how {
            Finish::Stop => *stop += 1,
            Finish::Length => *length += 1,
            Finish::Abort => *abort += 1,
        }
        self.e2e.add(after);
    }

    /// Share of the KV cache in use, 0 to 1.
    pub fn kv_usage(&self, capacity: u64) -> f64 {
        let blocks = self.cached_tokens.div_ceil(BLOCK_TOKENS);
        let all = (capacity / BLOCK_TOKENS).max(1);
        (float(blocks) / float(all)).min(1.0)
    }

    /// The text of /metrics.
    pub fn exposition(&self, server: &Exported<'_>) -> String {
        let mut out = String::new();
        let labels = format!("engine=\"0\",model_name=\"{}\"", escape(server.model));
        process(&mut out, server);
        let mut simple = |name: &str, kind: &str, help: &str, value: f64| {
            family(&mut out, name, kind, help);
            let _ = writeln!(out, "{name}{{{labels}}} {}", number(value));
            if kind == "counter" {
                let created = format!("{}_created", name.trim_end_matches("_total"));
                family(&mut out, &created, "gauge", help);
                let _ = writeln!(out, "{created}{{{labels}}} {}", number(server.started));
            }
        };
        simple(
            "vllm:num_requests_running",
            "gauge",
            "Number of requests in model execution batches.",
            float(self.running),
        );
        simple(
            "vllm:num_requests_waiting",
            "gauge",
            "Number of requests waiting to be processed.",
            float(self.waiting),
        );
        simple(
            "vllm:kv_cache_usage_perc",
            "gauge",
            "KV-cache usage. 1 means 100 percent usage.",
            self.kv_usage(server.kv_tokens),
        );
        simple(
            "vllm:prefix_cache_queries_total",
            "counter",
            "Prefix cache queries, in terms of number of queried tokens.",
            float(self.prompt_tokens),
        );
        simple(
            "vllm:prefix_cache_hits_total",
            "counter",
            "Prefix cache hits, in terms of number of cached tokens.",
            0.0,
        );
        simple(
            "vllm:num_preemptions_total",
            "counter",
            "Cumulative number of preemption from the engine.",
            0.0,
        );
        simple(
            "vllm:prompt_tokens_total",
            "counter",
            "Number of prefill tokens processed.",
            float(self.prompt_tokens),
        );
        simple(
            "vllm:generation_tokens_total",
            "counter",
            "Number of generation tokens processed.",
            float(self.generation_tokens),
        );
        let help = "Count of successfully processed requests.";
        family(&mut out, "vllm:request_success_total", "counter", help);
        for (how, count) in [Finish::Stop, Finish::Length, Finish::Abort]
            .into_iter()
            .zip(self.finished)
        {
            let _ = writeln!(
                out,
                "vllm:request_success_total{{engine=\"0\",finished_reason=\"{}\",model_name=\"{}\"}} {}",
                how.word(),
                escape(server.model),
                number(float(count))
            );
        }
        histogram(
            &mut out,
            "vllm:time_to_first_token_seconds",
            "Histogram of time to first token in seconds.",
            &labels,
            &self.ttft,
        );
        histogram(
            &mut out,
            "vllm:inter_token_latency_seconds",
            "Histogram of inter-token latency in seconds.",
            &labels,
            &self.itl,
        );
        histogram(
            &mut out,
            "vllm:e2e_request_latency_seconds",
            "Histogram of e2e request latency in seconds.",
            &labels,
            &self.e2e,
        );
        family(
            &mut out,
            "vllm:cache_config_info",
            "gauge",
            "Information of the LLMEngine CacheConfig",
        );
        let _ = writeln!(
            out,
            "vllm:cache_config_info{{block_size=\"{BLOCK_TOKENS}\",cache_dtype=\"auto\",enable_prefix_caching=\"True\",engine=\"0\",num_gpu_blocks=\"{}\"}} 1.0",
            server.kv_tokens / BLOCK_TOKENS
        );
        out
    }
}

/// What /metrics says of the server besides its counters.
pub struct Exported<'a> {
    /// Name under which the model is served.
    pub model: &'a str,
    /// Start of the process, seconds since 1970.
    pub started: f64,
    /// CPU seconds it has used.
    pub cpu_seconds: f64,
    /// Tokens that the KV cache holds.
    pub kv_tokens: u64,
}

fn process(out: &mut String, server: &Exported<'_>) {
    family(out, "python_info", "gauge", "Python platform information");
    out.push_str(
        "python_info{implementation=\"CPython\",major=\"3\",minor=\"12\",patchlevel=\"3\",version=\"3.12.3\"} 1.0\n",
    );
    let rows = [
        (
            "process_virtual_memory_bytes",
            "gauge",
            "Virtual memory size in bytes.",
            2.7e10,
        ),
        (
            "process_resident_memory_bytes",
            "gauge",
            "Resident memory size in bytes.",
            1.077_374_976e9,
        ),
        (
            "process_start_time_seconds",
            "gauge",
            "Start time of the process since unix epoch in seconds.",
            server.started,
        ),
        (
            "process_cpu_seconds_total",
            "counter",
            "Total user and system CPU time spent in seconds.",
            server.cpu_seconds,
        ),
        ("process_open_fds", "gauge", "Number of open file descriptors.", 71.0),
    ];
    for (name, kind, help, value) in rows {
        family(out, name, kind, help);
        let _ = writeln!(out, "{name} {}", number(value));
    }
}

fn family(out: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

fn histogram(out: &mut String, name: &str, help: &str, labels: &str, h: &Histogram) {
    family(out, name, "histogram", help);
    let (engine, model) = labels.split_once(',').unwrap_or((labels, ""));
    for (bound, count) in h.bounds.iter().zip(h.counts.iter()) {
        let _ = writeln!(
            out,
            "{name}_bucket{{{engine},le=\"{}\",{model}}} {}",
            number(*bound),
            number(float(*count))
        );
    }
    let count = number(float(h.count));
    let _ = writeln!(out, "{name}_bucket{{{engine},le=\"+Inf\",{model}}} {count}");
    let _ = writeln!(out, "{name}_count{{{labels}}} {count}");
    let _ = writeln!(out, "{name}_sum{{{labels}}} {}", number(h.sum));
}

fn escape(label: &str) -> String {
    label.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// Numbers as Python's client prints them: always with a fraction, large ones with an exponent.
fn number(v: f64) -> String {
    if v.abs() < 1e6 {
        return format!("{v:?}");
    }
    let text = format!("{v:e}");
    match text.split_once('e') {
        Some((mantissa, exponent)) => {
            let mantissa = if mantissa.contains('.') {
                mantissa.to_owned()
            } else {
                format!("{mantissa}.0")
            };
            format!("{mantissa}e+{exponent:0>2}")
        }
        None => text,
    }
}

#[expect(clippy::cast_precision_loss, reason = "counters of a demo stay far below 2^53")]
fn float(n: u64) -> f64 {
    n as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_look_as_pythons_client_prints_them() {
        let cases = [
            (0.0, "0.0"),
            (466.0, "466.0"),
            (0.001, "0.001"),
            (1_795_972_040.87, "1.79597204087e+09"),
            (5e6, "5.0e+06"),
        ];
        for (value, text) in cases {
            assert_eq!(number(value), text);
        }
    }

    #[test]
    fn what_was_sent_is_what_is_counted() {
        let mut s = Stats::default();
        s.first_token(13, Duration::from_millis(250));
        s.next_token(Duration::from_millis(37));
        s.next_token(Duration::from_millis(37));
        s.finish(Finish::Length, Duration::from_millis(324));
        let text = s.exposition(&Exported {
            model: "a\"b",
            started: 1e9,
            cpu_seconds: 2.0,
            kv_tokens: 1600,
        });
        for line in [
            "vllm:prompt_tokens_total{engine=\"0\",model_name=\"a\\\"b\"} 13.0",
            "vllm:generation_tokens_total{engine=\"0\",model_name=\"a\\\"b\"} 3.0",
            "vllm:request_success_total{engine=\"0\",finished_reason=\"length\",model_name=\"a\\\"b\"} 1.0",
            "vllm:time_to_first_token_seconds_bucket{engine=\"0\",le=\"0.25\",model_name=\"a\\\"b\"} 1.0",
            "vllm:time_to_first_token_seconds_bucket{engine=\"0\",le=\"0.1\",model_name=\"a\\\"b\"} 0.0",
            "vllm:inter_token_latency_seconds_count{engine=\"0\",model_name=\"a\\\"b\"} 2.0",
            "process_start_time_seconds 1.0e+09",
        ] {
            assert!(text.lines().any(|l| l == line), "no line {line} in\n{text}");
        }
    }
}
