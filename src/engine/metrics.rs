//! What vLLM's counters are called, over its versions.
//!
//! Names: vllm/v1/metrics/loggers.py and, before that, vllm/engine/metrics.py. Series of one name differ by their `engine` label (data parallel engines)
//! and are summed; the use of the KV cache is the fullest engine's.

use crate::domain::serving::MetricsSample;
use crate::domain::units::Percent;
use crate::probe::prometheus::{self, Sample};

/// Share of the KV cache in use, 0 to 1: the present name and the one before vLLM 0.12.
const KV_CACHE: [&str; 2] = ["vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"];

/// Reads a scrape. A server that exports none of vLLM's names gives a sample without values, never zeros.
#[must_use]
pub fn sample(text: &str) -> MetricsSample {
    let (all, _bad_lines) = prometheus::parse(text);
    MetricsSample {
        generation_tokens: sum(&all, "vllm:generation_tokens_total"),
        prompt_tokens: sum(&all, "vllm:prompt_tokens_total"),
        running: sum(&all, "vllm:num_requests_running"),
        waiting: sum(&all, "vllm:num_requests_waiting"),
        kv_cache: KV_CACHE.iter().find_map(|name| most(&all, name)).map(percent),
        finished: sum(&all, "vllm:request_success_total"),
        started: values(&all, "process_start_time_seconds").next(),
    }
}

fn values<'a>(all: &'a [Sample], name: &'a str) -> impl Iterator<Item = f64> + 'a {
    all.iter()
        .filter(move |s| s.name == name && s.value.is_finite())
        .map(|s| s.value)
}

/// Sum over all series of a name; `None` where there is none.
fn sum(all: &[Sample], name: &str) -> Option<f64> {
    values(all, name).fold(None, |sum, v| Some(sum.unwrap_or(0.0) + v))
}

/// The largest of all series of a name.
fn most(all: &[Sample], name: &str) -> Option<f64> {
    values(all, name).reduce(f64::max)
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "a share of 0 to 1, shown without decimals"
)]
fn percent(share: f64) -> Percent {
    Percent((share.clamp(0.0, 1.0) * 100.0) as f32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_present_names_are_read() {
        let text = "\
# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine=\"0\",model_name=\"tiny\"} 2.0
vllm:num_requests_waiting{engine=\"0\",model_name=\"tiny\"} 1.0
vllm:num_requests_waiting_by_reason{engine=\"0\",model_name=\"tiny\",reason=\"capacity\"} 1.0
vllm:kv_cache_usage_perc{engine=\"0\",model_name=\"tiny\"} 0.25
vllm:prompt_tokens_total{engine=\"0\",model_name=\"tiny\"} 1047.0
vllm:prompt_tokens_created{engine=\"0\",model_name=\"tiny\"} 1.79e+09
vllm:generation_tokens_total{engine=\"0\",model_name=\"tiny\"} 3360.0
vllm:request_generation_tokens_sum{engine=\"0\",model_name=\"tiny\"} 9.0
vllm:request_success_total{engine=\"0\",finished_reason=\"stop\",model_name=\"tiny\"} 3.0
vllm:request_success_total{engine=\"0\",finished_reason=\"length\",model_name=\"tiny\"} 30.0
process_start_time_seconds 1.79597297299e+09
";
        let s = sample(text);
        assert_eq!(s.generation_tokens, Some(3360.0));
        assert_eq!(s.prompt_tokens, Some(1047.0));
        assert_eq!((s.running, s.waiting), (Some(2.0), Some(1.0)));
        assert_eq!(s.kv_cache, Some(Percent(25.0)));
        assert_eq!(s.finished, Some(33.0));
        assert_eq!(s.started, Some(1_795_972_972.99));
    }

    #[test]
    fn engines_are_summed_and_the_fullest_cache_counts() {
        let text = "\
vllm:generation_tokens_total{engine=\"0\"} 10
vllm:generation_tokens_total{engine=\"1\"} 5
vllm:gpu_cache_usage_perc{engine=\"0\"} 0.1
vllm:gpu_cache_usage_perc{engine=\"1\"} 0.5
";
        let s = sample(text);
        assert_eq!(s.generation_tokens, Some(15.0));
        assert_eq!(s.kv_cache, Some(Percent(50.0)));
        assert_eq!(s.running, None);
    }

    #[test]
    fn a_scrape_without_vllms_names_has_no_values() {
        let text = "python_gc_objects_collected_total{generation=\"0\"} 9178.0\n";
        assert_eq!(sample(text), MetricsSample::default());
        assert_eq!(sample(""), MetricsSample::default());
        assert_eq!(sample("vllm:num_requests_running NaN\n").running, None);
    }
}
