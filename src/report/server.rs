//! The model server as JSON.

use serde_json::{Value, json};

use crate::domain::Now;
use crate::domain::serving::{Health, MetricsSample};
use crate::measure::Quantile;
use crate::measure::window::{NOT_EXPORTED, Quantiles};
use crate::model::schedule::{HEALTH_EVERY, METRICS_EVERY, MODELS_EVERY};
use crate::model::{State, doubt, listens_since, prefill, server_since, server_url, tunnel_line};

use super::reading::{Origin, Source, decimal, part, reading, seconds};

/// Where it stands, what its counters say now, and what they say of the last minute.
pub(super) fn server(state: &State, now: Now) -> Value {
    let (seen, view, at) = (&state.observed.server, &state.server, now.stamp);
    let since = server_since(state);
    let scrape = Origin::each(Source::Metrics, METRICS_EVERY);
    let counter = |get: fn(&MetricsSample) -> Option<f64>| part(&seen.metrics, at, scrape, NOT_EXPORTED, get);
    json!({
        "state": view.state.word(),
        "why": state.server_why(),
        "doubt": doubt(state, at),
        "prefill": prefill(state, at),
        "since_s": seconds(at, since.stamp),
        "only_known_since": since.found,
        "listens_for_s": listens_since(state).map(|since| seconds(at, since)),
        "url": server_url(&state.config),
        "tunnel": tunnel_line(&state.config),
        "expected_model": state.config.serve.name(),
        "health": reading(&seen.health, at, Origin::each(Source::Health, HEALTH_EVERY), health_word),
        "models": reading(&seen.models, at, Origin::each(Source::Models, MODELS_EVERY), Clone::clone),
        "token": reading(&seen.token, at, Origin::once(Source::Completions), |t| {
            json!({ "model": t.model, "tokens": t.tokens, "took_s": t.took.as_secs_f64() })
        }),
        "metrics_of": part(&seen.metrics, at, scrape, "no names of a server that is known", |m| m.of),
        "tokens_per_second": {
            "generation": reading(&view.generation, at, scrape, |v| *v),
            "prompt": reading(&view.prompt, at, scrape, |v| *v),
            "span_s": view.live.as_secs_f64(),
        },
        "generated_tokens": counter(|m| m.generation_tokens),
        "prompt_tokens": counter(|m| m.prompt_tokens),
        "running": counter(|m| m.running),
        "waiting": counter(|m| m.waiting),
        "finished": counter(|m| m.finished),
        "preemptions": counter(|m| m.preemptions),
        "kv_cache_percent": part(&seen.metrics, at, scrape, NOT_EXPORTED, |m| m.kv_cache.map(|p| decimal(p.0))),
        "lately": lately(state, now, scrape),
    })
}

/// Differences of counters over the window.
fn lately(state: &State, now: Now, scrape: Origin) -> Value {
    let (figures, at) = (&state.server.figures, now.stamp);
    json!({
        "span_s": figures.span.as_secs_f64(),
        "generation_tokens_per_second": reading(&figures.generation, at, scrape, |v| *v),
        "ttft": reading(&figures.ttft, at, scrape, quantiles),
        "itl": reading(&figures.itl, at, scrape, quantiles),
        "queue": reading(&figures.queue, at, scrape, quantiles),
        "prefix_hit_percent": reading(&figures.prefix_hits, at, scrape, |share| share * 100.0),
        "speculation": reading(&figures.acceptance, at, scrape, |a| json!({
            "tokens_per_step": a.length,
            "accepted_percent": a.rate.map(|share| share * 100.0),
        })),
        "preemptions": reading(&figures.preemptions, at, scrape, |n| *n),
    })
}

fn quantiles(q: &Quantiles) -> Value {
    json!({ "p50": quantile(q.p50), "p95": quantile(q.p95), "count": q.count })
}

/// Seconds, or the bound that it lies above: the two are never mistaken for each other.
fn quantile(q: Quantile) -> Value {
    match q {
        Quantile::At(s) => json!({ "seconds": s }),
        Quantile::Above(s) => json!({ "above_seconds": s }),
    }
}

fn health_word(health: &Health) -> String {
    match health {
        Health::Ok => "ok".to_owned(),
        Health::Status(code) => format!("status {code}"),
        Health::Refused => "refused".to_owned(),
        Health::Unreachable(why) => format!("unreachable: {why}"),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use crate::config::{self, EXAMPLE};
    use crate::domain::serving::MetricsOf;
    use crate::domain::{Reading, Stamp};
    use crate::measure::window::{Acceptance, Figures};
    use crate::model::Options;

    use super::*;

    #[test]
    fn what_is_known_has_its_age_and_what_is_not_has_its_reason() {
        let config = config::parse(EXAMPLE, "config.example.toml").unwrap();
        let mut state = State::new(Arc::new(config), Options::default(), Now::default());
        let now = Now {
            stamp: Stamp(1500),
            ..Now::default()
        };
        let before = server(&state, now);
        assert_eq!(
            before["lately"]["ttft"],
            json!({ "value": null, "reason": "not asked yet", "stale": false, "source": "metrics" })
        );
        assert_eq!(
            before["preemptions"],
            json!({ "value": null, "reason": "not asked yet", "stale": false, "source": "metrics" })
        );
        let at = Stamp(1000);
        let sample = MetricsSample {
            of: Some(MetricsOf::Vllm),
            preemptions: Some(0.0),
            ..MetricsSample::default()
        };
        state.observed.server.metrics = Reading::known(sample, at);
        let (p50, p95, count) = (Quantile::At(0.125), Quantile::Above(2.5), 4.0);
        let (length, rate) = (Some(2.5), Some(0.75));
        state.server.figures = Figures {
            generation: Reading::known(17.25, at),
            ttft: Reading::known(Quantiles { p50, p95, count }, at),
            itl: Reading::absent("none in the last 60 s"),
            prefix_hits: Reading::known(0.25, at),
            acceptance: Reading::known(Acceptance { length, rate }, at),
            span: Duration::from_secs(60),
            ..Figures::absent(NOT_EXPORTED)
        };
        let after = server(&state, now);
        let lately = &after["lately"];
        let ttft = json!({ "p50": { "seconds": 0.125 }, "p95": { "above_seconds": 2.5 }, "count": 4.0 });
        assert_eq!(lately["generation_tokens_per_second"]["value"], json!(17.25));
        assert_eq!(
            lately["ttft"],
            json!({ "value": ttft, "age_s": 0.5, "stale": false, "source": "metrics" })
        );
        assert_eq!(
            lately["itl"],
            json!({ "value": null, "reason": "none in the last 60 s", "stale": false, "source": "metrics" })
        );
        assert_eq!(lately["queue"]["reason"], NOT_EXPORTED);
        assert_eq!(lately["prefix_hit_percent"]["value"], json!(25.0));
        let speculation = json!({ "tokens_per_step": 2.5, "accepted_percent": 75.0 });
        assert_eq!(lately["speculation"]["value"], speculation);
        assert_eq!(lately["span_s"], json!(60.0));
        let zero = json!({ "value": 0.0, "age_s": 0.5, "stale": false, "source": "metrics" });
        assert_eq!(after["preemptions"], zero, "a zero that was counted");
        assert_eq!(after["waiting"]["reason"], NOT_EXPORTED);
        assert_eq!(after["metrics_of"]["value"], json!("vllm"));
    }
}
