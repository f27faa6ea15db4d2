//! What the engines' metrics are called, over their versions.
//!
//! vLLM: vllm/v1/metrics/loggers.py and, before that, vllm/engine/metrics.py. SGLang: python/sglang/srt/metrics/collector.py. llama.cpp:
//! tools/server/README.md. Names are compared whole: `request_generation_tokens_sum` and `generation_tokens_created` hold `generation_tokens` and mean
//! something else. Python's exporter ends a counter's name in `_total`, others do not, and one doubles it; all three are read.
//!
//! Counters, requests and histograms are summed over a server's engines (data parallel ranks). The ranks of one engine that report the same counts again
//! (SGLang with metrics of all schedulers) count once. The use of the KV cache is the fullest engine's, because that one preempts first.

use std::collections::BTreeMap;

use crate::domain::histogram::{Bucket, Histogram};
use crate::domain::serving::{MetricsOf, MetricsSample};
use crate::domain::units::Percent;
use crate::probe::prometheus::{self, Sample};

/// Most series of one histogram's buckets that are read; one with more is left out.
const MAX_BUCKET_SERIES: usize = 4096;

/// Labels that tell ranks of one engine from each other.
const RANK_LABELS: [&str; 3] = ["tp_rank", "pp_rank", "moe_ep_rank"];

/// The names of one engine, without prefix and without `_total`; of several the first that is exported counts.
struct Names {
    of: MetricsOf,
    prefixes: &'static [&'static str],
    generation: &'static [&'static str],
    prompt: &'static [&'static str],
    running: &'static [&'static str],
    waiting: &'static [&'static str],
    kv_cache: &'static [&'static str],
    finished: &'static [&'static str],
    preemptions: &'static [&'static str],
    prefix_queries: &'static [&'static str],
    prefix_hits: &'static [&'static str],
    prefix_hit_rate: &'static [&'static str],
    drafts: &'static [&'static str],
    draft_tokens: &'static [&'static str],
    accepted_tokens: &'static [&'static str],
    accept_length: &'static [&'static str],
    ttft: &'static [&'static str],
    itl: &'static [&'static str],
    queue: &'static [&'static str],
    /// A histogram that an engine adds to with its steps.
    steps: &'static [&'static str],
    flops: &'static [&'static str],
}

const ENGINES: [Names; 3] = [
    Names {
        of: MetricsOf::Vllm,
        prefixes: &["vllm:"],
        generation: &["generation_tokens"],
        prompt: &["prompt_tokens"],
        running: &["num_requests_running"],
        waiting: &["num_requests_waiting"],
        // The second until 0.12.
        kv_cache: &["kv_cache_usage_perc", "gpu_cache_usage_perc"],
        finished: &["request_success"],
        preemptions: &["num_preemptions"],
        // 0.11 exports both.
        prefix_queries: &["prefix_cache_queries", "gpu_prefix_cache_queries"],
        prefix_hits: &["prefix_cache_hits", "gpu_prefix_cache_hits"],
        // Until 0.6, -1 where the cache is off.
        prefix_hit_rate: &["gpu_prefix_cache_hit_rate"],
        drafts: &["spec_decode_num_drafts"],
        draft_tokens: &["spec_decode_num_draft_tokens"],
        accepted_tokens: &["spec_decode_num_accepted_tokens"],
        accept_length: &[],
        ttft: &["time_to_first_token_seconds"],
        // The second until 0.12.
        itl: &["inter_token_latency_seconds", "time_per_output_token_seconds"],
        queue: &["request_queue_time_seconds"],
        // The name ends so, and it is a histogram all the same.
        steps: &["iteration_tokens_total"],
        // Zero without --enable-mfu-metrics.
        flops: &["estimated_flops_per_gpu"],
    },
    Names {
        of: MetricsOf::Sglang,
        prefixes: &["sglang:", "sglang_"],
        generation: &["generation_tokens"],
        prompt: &["prompt_tokens"],
        running: &["num_running_reqs"],
        waiting: &["num_queue_reqs"],
        kv_cache: &["token_usage"],
        finished: &["num_requests"],
        preemptions: &["num_retracted_requests"],
        prefix_queries: &["prompt_tokens"],
        prefix_hits: &["cached_tokens"],
        prefix_hit_rate: &["cache_hit_rate"],
        drafts: &[],
        draft_tokens: &[],
        accepted_tokens: &[],
        accept_length: &["spec_accept_length"],
        ttft: &["time_to_first_token_seconds"],
        itl: &["inter_token_latency_seconds", "time_per_output_token_seconds"],
        queue: &["queue_time_seconds"],
        steps: &[],
        flops: &[],
    },
    Names {
        of: MetricsOf::LlamaCpp,
        prefixes: &["llamacpp:"],
        generation: &["tokens_predicted"],
        prompt: &["prompt_tokens"],
        running: &["requests_processing"],
        waiting: &["requests_deferred"],
        kv_cache: &["kv_cache_usage_ratio"],
        finished: &[],
        preemptions: &[],
        prefix_queries: &[],
        prefix_hits: &[],
        prefix_hit_rate: &[],
        drafts: &["spec_decode_num_drafts"],
        draft_tokens: &["spec_decode_num_draft_tokens"],
        accepted_tokens: &["spec_decode_num_accepted_tokens"],
        accept_length: &[],
        ttft: &[],
        itl: &[],
        queue: &[],
        steps: &[],
        flops: &[],
    },
];

/// Reads a scrape. A server that exports none of the names gives a sample without values, never zeros.
#[must_use]
pub fn sample(text: &str) -> MetricsSample {
    let (all, _bad_lines) = prometheus::parse(text);
    let started = all
        .iter()
        .find(|s| s.name == "process_start_time_seconds" && s.value.is_finite())
        .map(|s| s.value);
    let found = ENGINES.iter().find_map(|names| {
        let exported = |prefix: &&str| all.iter().any(|s| s.name.starts_with(prefix));
        let prefix = names.prefixes.iter().copied().find(exported)?;
        Some((names, Scrape { all: &all, prefix }))
    });
    let Some((names, scrape)) = found else {
        return MetricsSample {
            started,
            ..MetricsSample::default()
        };
    };
    MetricsSample {
        of: Some(names.of),
        generation_tokens: scrape.counter(names.generation),
        generation_of: scrape.each(names.generation),
        prompt_tokens: scrape.counter(names.prompt),
        running: scrape.sum(names.running),
        waiting: scrape.sum(names.waiting),
        kv_cache: scrape.most(names.kv_cache).and_then(percent),
        finished: scrape.counter(names.finished),
        preemptions: scrape.counter(names.preemptions),
        prefix_queries: scrape.counter(names.prefix_queries),
        prefix_hits: scrape.counter(names.prefix_hits),
        prefix_hit_rate: scrape.mean(names.prefix_hit_rate).filter(|r| (0.0..=1.0).contains(r)),
        drafts: scrape.counter(names.drafts),
        draft_tokens: scrape.counter(names.draft_tokens),
        accepted_tokens: scrape.counter(names.accepted_tokens),
        // Zero until something was drafted.
        accept_length: scrape.mean(names.accept_length).filter(|n| *n > 0.0),
        ttft: scrape.histogram(names.ttft),
        itl: scrape.histogram(names.itl),
        queue: scrape.histogram(names.queue),
        steps: scrape.observed(names.steps),
        flops: scrape.counter(names.flops),
        started,
    }
}

/// The samples of one engine.
#[derive(Clone, Copy)]
struct Scrape<'a> {
    all: &'a [Sample],
    prefix: &'static str,
}

impl Scrape<'_> {
    /// Values of a name, one an engine: ranks of the same engine come to the largest of theirs.
    fn values(&self, name: &str, ending: &str) -> Vec<f64> {
        self.engines(name, ending).into_values().collect()
    }

    /// The same by the engines' labels.
    fn engines(&self, name: &str, ending: &str) -> BTreeMap<Vec<(&str, &str)>, f64> {
        let mut engines: BTreeMap<Vec<(&str, &str)>, f64> = BTreeMap::new();
        for sample in self.series(name, ending).filter(|s| s.value.is_finite()) {
            let value = engines.entry(engine(sample)).or_insert(sample.value);
            *value = value.max(sample.value);
        }
        engines
    }

    fn series(&self, name: &str, ending: &str) -> impl Iterator<Item = &Sample> {
        self.all.iter().filter(move |s| {
            let rest = s.name.strip_prefix(self.prefix).and_then(|n| n.strip_prefix(name));
            rest == Some(ending)
        })
    }

    /// Sum of a counter over the engines; `None` where there is none.
    fn counter(&self, names: &[&str]) -> Option<f64> {
        names
            .iter()
            .find_map(|name| COUNTER.iter().find_map(|form| total(&self.values(name, form))))
    }

    /// How often a histogram was added to, summed over the engines.
    fn observed(&self, names: &[&str]) -> Option<f64> {
        names.iter().find_map(|name| total(&self.values(name, "_count")))
    }

    /// A counter of each engine by its labels, in their order; those past [`ENGINES_MOST`] are left out.
    fn each(&self, names: &[&str]) -> Vec<(String, f64)> {
        let mut all = names
            .iter()
            .flat_map(|name| COUNTER.map(|form| self.engines(name, form)));
        let found = all.find(|engines| !engines.is_empty()).unwrap_or_default();
        let labels = |labels: Vec<(&str, &str)>| {
            let labels: Vec<String> = labels.iter().map(|(k, v)| format!("{k}={v}")).collect();
            labels.join(",")
        };
        let each = found.into_iter().map(|(engine, count)| (labels(engine), count));
        each.take(ENGINES_MOST).collect()
    }

    fn sum(&self, names: &[&str]) -> Option<f64> {
        names.iter().find_map(|name| total(&self.values(name, "")))
    }

    fn most(&self, names: &[&str]) -> Option<f64> {
        names
            .iter()
            .find_map(|name| self.values(name, "").into_iter().reduce(f64::max))
    }

    #[expect(clippy::cast_precision_loss, reason = "a number of engines")]
    fn mean(&self, names: &[&str]) -> Option<f64> {
        names.iter().find_map(|name| {
            let values = self.values(name, "");
            total(&values).map(|sum| sum / values.len() as f64)
        })
    }

    fn histogram(&self, names: &[&str]) -> Option<Histogram> {
        names.iter().find_map(|name| {
            let mut buckets: BTreeMap<Vec<(&str, &str)>, Bucket> = BTreeMap::new();
            for sample in self.series(name, "_bucket").filter(|s| s.value.is_finite()) {
                let bound = sample.label("le")?.parse().ok()?;
                let bucket = buckets.entry(engine(sample)).or_insert(Bucket { bound, count: 0.0 });
                bucket.count = bucket.count.max(sample.value);
                if buckets.len() > MAX_BUCKET_SERIES {
                    return None;
                }
            }
            Histogram::of(buckets.into_values().collect())
        })
    }
}

/// The labels of a series without those that tell ranks of one engine from each other.
fn engine(sample: &Sample) -> Vec<(&str, &str)> {
    let labels = sample
        .labels
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()));
    labels.filter(|(name, _)| !RANK_LABELS.contains(name)).collect()
}

/// How the name of a counter may end.
const COUNTER: [&str; 3] = ["_total", "", "_total_total"];

/// Engines of one server whose counters are held one by one; a data-parallel server of today has some tens.
const ENGINES_MOST: usize = 256;

fn total(values: &[f64]) -> Option<f64> {
    // Nothing that is counted here is below zero.
    let sound = !values.is_empty() && values.iter().all(|v| *v >= 0.0);
    sound.then(|| values.iter().sum())
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "a share of 0 to 1, shown without decimals"
)]
fn percent(share: f64) -> Option<Percent> {
    // A little above 1 is rounding; what can't be is not known.
    let share = (0.0..=1.1).contains(&share).then(|| share.min(1.0))?;
    Some(Percent((share * 100.0) as f32))
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
    fn what_tells_of_an_engines_steps_is_read_and_is_no_count_of_tokens() {
        let text = "\
# TYPE vllm:iteration_tokens_total histogram
vllm:iteration_tokens_total_bucket{engine=\"0\",le=\"+Inf\",model_name=\"tiny\"} 1292.0
vllm:iteration_tokens_total_count{engine=\"0\",model_name=\"tiny\"} 1292.0
vllm:iteration_tokens_total_count{engine=\"1\",model_name=\"tiny\"} 8.0
vllm:iteration_tokens_total_sum{engine=\"0\",model_name=\"tiny\"} 5955.0
vllm:iteration_tokens_total_created{engine=\"0\",model_name=\"tiny\"} 1.79e+09
vllm:estimated_flops_per_gpu_total{engine=\"0\"} 2e15
";
        let s = sample(text);
        assert_eq!((s.steps, s.flops), (Some(1300.0), Some(2e15)));
        assert_eq!((s.generation_tokens, s.prompt_tokens), (None, None));
        // The Rust frontend doubles the ending.
        let doubled = sample("vllm:estimated_flops_per_gpu_total_total{engine=\"0\"} 7\n");
        assert_eq!((doubled.steps, doubled.flops), (None, Some(7.0)));
    }

    #[test]
    fn what_cannot_be_is_not_known() {
        let text = "vllm:num_requests_running{engine=\"0\"} -5\nvllm:kv_cache_usage_perc{engine=\"0\"} 1e300\nvllm:num_requests_waiting{engine=\"0\"} 0\n";
        let s = sample(text);
        assert_eq!((s.running, s.kv_cache, s.waiting), (None, None, Some(0.0)));
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
        let each = [("engine=0".to_owned(), 10.0), ("engine=1".to_owned(), 5.0)];
        assert_eq!(s.generation_of, each);
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

    fn bucket(histogram: Option<&Histogram>, bound: f64) -> Option<f64> {
        let found = histogram?.buckets().iter().find(|b| b.bound == bound)?;
        Some(found.count)
    }

    #[test]
    fn histograms_and_caches_of_vllm_are_read_and_summed_over_engines() {
        let text = "\
# TYPE vllm:time_to_first_token_seconds histogram
vllm:time_to_first_token_seconds_bucket{engine=\"0\",le=\"0.1\",model_name=\"tiny\"} 12.0
vllm:time_to_first_token_seconds_bucket{engine=\"0\",le=\"+Inf\",model_name=\"tiny\"} 33.0
vllm:time_to_first_token_seconds_bucket{engine=\"1\",le=\"0.1\",model_name=\"tiny\"} 1.0
vllm:time_to_first_token_seconds_bucket{engine=\"1\",le=\"+Inf\",model_name=\"tiny\"} 2.0
vllm:time_to_first_token_seconds_count{engine=\"0\",model_name=\"tiny\"} 33.0
vllm:time_to_first_token_seconds_created{engine=\"0\",model_name=\"tiny\"} 1.79e+09
vllm:request_time_per_output_token_seconds_bucket{engine=\"0\",le=\"+Inf\",model_name=\"tiny\"} 9.0
vllm:inter_token_latency_seconds_bucket{engine=\"0\",le=\"0.01\",model_name=\"tiny\"} 648.0
vllm:inter_token_latency_seconds_bucket{engine=\"0\",le=\"+Inf\",model_name=\"tiny\"} 5456.0
vllm:request_queue_time_seconds_bucket{engine=\"0\",le=\"0.3\",model_name=\"tiny\"} 33.0
vllm:prefix_cache_queries_total{engine=\"0\",model_name=\"tiny\"} 466.0
vllm:prefix_cache_hits_total{engine=\"0\",model_name=\"tiny\"} 128.0
vllm:external_prefix_cache_hits_total{engine=\"0\",model_name=\"tiny\"} 7.0
vllm:num_preemptions_total{engine=\"0\",model_name=\"tiny\"} 2.0
vllm:num_preemptions_total{engine=\"1\",model_name=\"tiny\"} 1.0
vllm:spec_decode_num_drafts_total{engine=\"0\"} 10
vllm:spec_decode_num_draft_tokens_total{engine=\"0\"} 30
vllm:spec_decode_num_accepted_tokens_total{engine=\"0\"} 21
vllm:spec_decode_num_accepted_tokens_per_pos_total{engine=\"0\",position=\"0\"} 9
# EOF
";
        let s = sample(text);
        assert_eq!(s.of, Some(MetricsOf::Vllm));
        assert_eq!(
            (bucket(s.ttft.as_ref(), 0.1), s.ttft.unwrap().total()),
            (Some(13.0), 35.0)
        );
        assert_eq!(
            (bucket(s.itl.as_ref(), 0.01), s.itl.unwrap().total()),
            (Some(648.0), 5456.0)
        );
        assert_eq!(s.queue, None, "a histogram whose last bucket is missing is cut");
        assert_eq!((s.prefix_queries, s.prefix_hits), (Some(466.0), Some(128.0)));
        assert_eq!(s.preemptions, Some(3.0));
        let spec = (s.drafts, s.draft_tokens, s.accepted_tokens);
        assert_eq!(spec, (Some(10.0), Some(30.0), Some(21.0)));
    }

    #[test]
    fn earlier_names_of_vllm_are_read_and_both_together_count_once() {
        let old = "\
vllm:gpu_prefix_cache_queries_total{engine=\"0\"} 10
vllm:gpu_prefix_cache_hits_total{engine=\"0\"} 4
vllm:time_per_output_token_seconds_bucket{engine=\"0\",le=\"+Inf\"} 7
vllm:generation_tokens{engine=\"0\"} 5
";
        let s = sample(old);
        assert_eq!((s.prefix_queries, s.prefix_hits), (Some(10.0), Some(4.0)));
        assert_eq!((s.itl.unwrap().total(), s.generation_tokens), (7.0, Some(5.0)));
        let both = format!(
            "{old}vllm:prefix_cache_queries_total{{engine=\"0\"}} 10\nvllm:generation_tokens_total{{engine=\"0\"}} 5\n"
        );
        let s = sample(&both);
        assert_eq!((s.prefix_queries, s.generation_tokens), (Some(10.0), Some(5.0)));
        let off = sample("vllm:gpu_prefix_cache_hit_rate{model_name=\"m\"} -1.0\n");
        assert_eq!(off.prefix_hit_rate, None, "minus one means that there is no cache");
        assert_eq!(
            sample("vllm:gpu_prefix_cache_hit_rate 0.25\n").prefix_hit_rate,
            Some(0.25)
        );
    }

    #[test]
    fn sglang_is_read_by_its_names_and_ranks_that_repeat_a_count_count_once() {
        let text = "\
sglang:generation_tokens_total{is_streaming=\"true\",model_name=\"m\"} 300.0
sglang:generation_tokens_total{is_streaming=\"false\",model_name=\"m\"} 20.0
sglang:prompt_tokens_total{model_name=\"m\"} 4000.0
sglang:cached_tokens_total{cache_source=\"device\",model_name=\"m\"} 900.0
sglang:cached_tokens_total{cache_source=\"host\",model_name=\"m\"} 100.0
sglang:num_running_reqs{dp_rank=\"0\",tp_rank=\"0\"} 3.0
sglang:num_running_reqs{dp_rank=\"0\",tp_rank=\"1\"} 3.0
sglang:num_running_reqs{dp_rank=\"1\",tp_rank=\"2\"} 2.0
sglang:num_queue_reqs{dp_rank=\"0\",tp_rank=\"0\"} 1.0
sglang:token_usage{dp_rank=\"0\",tp_rank=\"0\"} 0.1
sglang:token_usage{dp_rank=\"1\",tp_rank=\"2\"} 0.2
sglang:spec_accept_length{tp_rank=\"0\"} 2.5
sglang:time_to_first_token_seconds_bucket{le=\"0.1\",model_name=\"m\"} 4.0
sglang:time_to_first_token_seconds_bucket{le=\"+Inf\",model_name=\"m\"} 6.0
sglang:queue_time_seconds_bucket{le=\"+Inf\",tp_rank=\"0\"} 6.0
sglang:queue_time_seconds_bucket{le=\"+Inf\",tp_rank=\"1\"} 6.0
";
        for text in [text.to_owned(), text.replace("sglang:", "sglang_")] {
            let s = sample(&text);
            assert_eq!(s.of, Some(MetricsOf::Sglang));
            assert_eq!((s.generation_tokens, s.prompt_tokens), (Some(320.0), Some(4000.0)));
            assert_eq!((s.prefix_queries, s.prefix_hits), (Some(4000.0), Some(1000.0)));
            assert_eq!((s.running, s.waiting), (Some(5.0), Some(1.0)));
            assert_eq!((s.kv_cache, s.accept_length), (Some(Percent(20.0)), Some(2.5)));
            assert_eq!((s.ttft.unwrap().total(), s.queue.unwrap().total()), (6.0, 6.0));
            assert_eq!((s.preemptions, s.drafts, s.itl), (None, None, None));
        }
    }

    #[test]
    fn llama_cpp_is_read_by_its_names() {
        let text = "\
llamacpp:prompt_tokens_total 50
llamacpp:tokens_predicted_total 700
llamacpp:tokens_predicted_seconds_total 70
llamacpp:requests_processing 1
llamacpp:requests_deferred 0
llamacpp:spec_decode_num_drafts_total 4
";
        let s = sample(text);
        assert_eq!(s.of, Some(MetricsOf::LlamaCpp));
        assert_eq!((s.prompt_tokens, s.generation_tokens), (Some(50.0), Some(700.0)));
        assert_eq!((s.running, s.waiting), (Some(1.0), Some(0.0)));
        assert_eq!(
            (s.drafts, s.kv_cache, s.ttft, s.finished),
            (Some(4.0), None, None, None)
        );
    }

    #[test]
    fn a_name_that_openmetrics_doubles_is_read() {
        let text = "vllm:generation_tokens_total_total 3\nvllm:request_generation_tokens_total 9\n# EOF\n";
        assert_eq!(sample(text).generation_tokens, Some(3.0));
    }

    proptest::proptest! {
        #[test]
        fn random_text_and_cut_text_never_panic(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..400), cut in 0usize..400) {
            let _any = sample(&String::from_utf8_lossy(&bytes));
            let text = "vllm:inter_token_latency_seconds_bucket{engine=\"0\",le=\"0.01\"} 6\nvllm:inter_token_latency_seconds_bucket{le=\"+Inf\"} 9e9\n";
            let _cut = sample(text.get(..cut).unwrap_or(text));
        }
    }
}
