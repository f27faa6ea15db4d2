//! The result of a throughput test as JSON.
//!
//! The top level has the keys of `vllm bench serve --save-result` (vLLM 0.33) wherever a figure of ours is the same thing, so that tools which read
//! those files read these; times are in milliseconds. What is ours alone stands under `bringup`.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::domain::Wall;
use crate::domain::bench::{BenchProfile, PromptSizing, Tally};

use super::report::Report;
use super::spread::Spread;

/// What was tested, with what.
#[derive(Debug, Clone, PartialEq)]
pub struct Context<'a> {
    /// bringup's own version.
    pub version: &'a str,
    /// The cluster's name.
    pub cluster: &'a str,
    /// The engine's word in the config.
    pub engine: &'a str,
    /// The served model's name.
    pub model: &'a str,
    /// What was sent.
    pub profile: &'a BenchProfile,
    /// How the prompt was made to size, and its tokens; `None` when the test did not come so far.
    pub prompt: Option<(PromptSizing, u64)>,
    /// What the server itself counted; `None` when the test did not come so far.
    pub tally: Option<Tally>,
    /// When the test ended.
    pub ended: Wall,
}

/// The whole result file.
#[must_use]
pub fn json(report: &Report, context: &Context<'_>) -> Value {
    let mut all = Map::new();
    let mut put = |key: &str, value: Value| all.insert(key.to_owned(), value);
    put("date", json!(compact_utc(context.ended)));
    put("endpoint_type", json!("openai"));
    put("backend", json!("bringup"));
    put("label", Value::Null);
    put("model_id", json!(context.model));
    put("num_prompts", json!(context.profile.requests));
    // A fixed set of workers, each sending its next request when the one before is over.
    put("request_rate", json!("inf"));
    put("max_concurrency", json!(context.profile.concurrency));
    put("duration", json!(report.duration.as_secs_f64()));
    put("completed", json!(report.successes));
    put("failed", json!(report.failures));
    put("total_input_tokens", json!(report.prompt_tokens));
    put("total_output_tokens", json!(report.output_tokens));
    put("request_throughput", json!(report.request_rate));
    put("request_goodput", Value::Null);
    put("output_throughput", json!(report.output_rate));
    put("total_token_throughput", json!(report.total_rate));
    let times = [
        ("ttft", report.ttft),
        ("tpot", report.tpot),
        ("itl", report.itl),
        ("e2el", report.e2el),
    ];
    for (name, spread) in times {
        for (statistic, value) in statistics(spread) {
            put(&format!("{statistic}_{name}_ms"), json!(value.map(milliseconds)));
        }
    }
    put("bringup", ours(report, context));
    Value::Object(all)
}

fn statistics(spread: Option<Spread>) -> [(&'static str, Option<Duration>); 4] {
    [
        ("mean", spread.map(|s| s.mean)),
        ("median", spread.map(|s| s.median)),
        ("p90", spread.map(|s| s.p90)),
        ("p99", spread.map(|s| s.p99)),
    ]
}

fn ours(report: &Report, context: &Context<'_>) -> Value {
    let profile = context.profile;
    let errors = report.errors.iter().map(|(text, n)| json!({"error": text, "count": n}));
    json!({
        "version": context.version,
        "cluster": context.cluster,
        "engine": context.engine,
        "ended": rfc3339(context.ended),
        "profile": {
            "requests": profile.requests,
            "concurrency": profile.concurrency,
            "prompt_tokens": profile.prompt_tokens,
            "output_tokens": profile.output_tokens,
            "warmup": profile.warmup,
            "request_limit_s": profile.request_limit.as_secs_f64(),
        },
        "prompt_sizing": context.prompt.map(|(sizing, _)| sizing.word()),
        "prompt_tokens": context.prompt.map(|(_, tokens)| tokens),
        "tokens_counted_by_server": report.counted_by_server,
        "server_output_tokens": context.tally.and_then(|t| t.server_tokens),
        "other_output_tokens": context.tally.map(|t| t.other_tokens),
        "errors": errors.collect::<Vec<_>>(),
    })
}

fn milliseconds(value: Duration) -> f64 {
    value.as_secs_f64() * 1000.0
}

/// `20261129-171424`, in UTC: sorts by time and stands in file names and under vLLM's key `date`.
#[must_use]
pub fn compact_utc(wall: Wall) -> String {
    timestamp(wall).strftime("%Y%m%d-%H%M%S").to_string()
}

fn rfc3339(wall: Wall) -> String {
    format!("{:.0}", timestamp(wall))
}

/// A wall time beyond jiff's range (the year 9999) is drawn as the epoch.
fn timestamp(wall: Wall) -> Timestamp {
    i64::try_from(wall.0)
        .ok()
        .and_then(|ms| Timestamp::from_millisecond(ms).ok())
        .unwrap_or(Timestamp::UNIX_EPOCH)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::bench::RequestRecord;

    const PROFILE: BenchProfile = BenchProfile {
        requests: 2,
        concurrency: 1,
        prompt_tokens: 8,
        output_tokens: 3,
        warmup: 1,
        request_limit: Duration::from_secs(60),
    };

    fn context() -> Context<'static> {
        Context {
            version: "0.1.0",
            cluster: "sparks",
            engine: "vllm-ray",
            model: "Qwen/tiny",
            profile: &PROFILE,
            prompt: Some((PromptSizing::Tokenize, 8)),
            tally: Some(Tally {
                server_tokens: Some(6),
                other_tokens: 4,
            }),
            ended: Wall(1_795_972_464_123),
        }
    }

    fn record(error: Option<&str>) -> RequestRecord {
        RequestRecord {
            index: 0,
            sent: Duration::ZERO,
            chunks: [100, 150, 200].map(Duration::from_millis).to_vec(),
            output_tokens: 3,
            counted_by_server: true,
            prompt_tokens: Some(8),
            error: error.map(str::to_owned),
        }
    }

    #[test]
    fn the_keys_are_those_of_vllms_result_file() {
        let report = Report::of(&[record(None), record(Some("engine died"))], Duration::from_secs(2));
        let value = json(&report, &context());
        let expected = [
            ("date", json!("20261129-171424")),
            ("model_id", json!("Qwen/tiny")),
            ("num_prompts", json!(2)),
            ("request_rate", json!("inf")),
            ("max_concurrency", json!(1)),
            ("duration", json!(2.0)),
            ("completed", json!(1)),
            ("failed", json!(1)),
            ("total_input_tokens", json!(8)),
            ("total_output_tokens", json!(3)),
            ("request_throughput", json!(0.5)),
            ("output_throughput", json!(1.5)),
            ("total_token_throughput", json!(5.5)),
            ("mean_ttft_ms", json!(100.0)),
            ("median_tpot_ms", json!(50.0)),
            ("p90_itl_ms", json!(50.0)),
            ("p99_e2el_ms", json!(200.0)),
        ];
        for (key, want) in expected {
            let got = value.get(key);
            let near = |w: f64| got.and_then(Value::as_f64).is_some_and(|g| (g - w).abs() <= w / 1000.0);
            assert!(
                got == Some(&want) || want.as_f64().is_some_and(near),
                "{key}: {got:?}, not {want}"
            );
        }
        let ours = value.get("bringup").unwrap();
        assert_eq!(ours.get("ended"), Some(&json!("2026-11-29T17:14:24Z")));
        assert_eq!(ours.get("prompt_sizing"), Some(&json!("tokenize")));
        assert_eq!(ours.get("tokens_counted_by_server"), Some(&json!(true)));
        assert_eq!(ours.get("server_output_tokens"), Some(&json!(6)));
        assert_eq!(ours.get("other_output_tokens"), Some(&json!(4)));
        assert_eq!(ours.pointer("/profile/output_tokens"), Some(&json!(3)));
        assert_eq!(ours.pointer("/errors/0/error"), Some(&json!("engine died")));
    }

    #[test]
    fn what_is_unknown_is_null() {
        let value = json(&Report::of(&[], Duration::ZERO), &context());
        for key in [
            "output_throughput",
            "request_throughput",
            "total_token_throughput",
            "total_input_tokens",
            "mean_ttft_ms",
            "p99_itl_ms",
        ] {
            assert_eq!(value.get(key), Some(&Value::Null), "{key}");
        }
    }

    #[test]
    fn a_time_out_of_range_is_no_panic() {
        assert_eq!(compact_utc(Wall(u64::MAX)), "19700101-000000");
    }
}
