//! The model server as JSON.

use serde_json::{Value, json};

use crate::domain::Now;
use crate::domain::serving::Health;
use crate::measure::Quantile;
use crate::measure::window::{NOT_EXPORTED, Quantiles};
use crate::model::{State, doubt, server_url, tunnel_line};

use super::reading::{decimal, known_or, reading, seconds};

/// Where it stands, what its counters say now, and what they say of the last minute.
pub(super) fn server(state: &State, now: Now) -> Value {
    let (seen, view, at) = (&state.observed.server, &state.server, now.stamp);
    let metrics = seen.metrics.value();
    let no_metrics = seen.metrics.reason().unwrap_or(NOT_EXPORTED);
    json!({
        "state": view.state.word(),
        "why": state.server_why(),
        "doubt": doubt(state, at),
        "since_s": seconds(at, view.since),
        "url": server_url(&state.config),
        "tunnel": tunnel_line(&state.config),
        "expected_model": state.config.serve.name(),
        "health": reading(&seen.health, at, health_word),
        "models": reading(&seen.models, at, Clone::clone),
        "metrics_of": reading(&seen.metrics, at, |m| m.of),
        "tokens_per_second": {
            "generation": reading(&view.generation, at, |v| *v),
            "prompt": reading(&view.prompt, at, |v| *v),
        },
        "generated_tokens": known_or(metrics.and_then(|m| m.generation_tokens), no_metrics),
        "prompt_tokens": known_or(metrics.and_then(|m| m.prompt_tokens), no_metrics),
        "running": known_or(metrics.and_then(|m| m.running), no_metrics),
        "waiting": known_or(metrics.and_then(|m| m.waiting), no_metrics),
        "finished": known_or(metrics.and_then(|m| m.finished), no_metrics),
        "preemptions": known_or(metrics.and_then(|m| m.preemptions), no_metrics),
        "kv_cache_percent": known_or(metrics.and_then(|m| m.kv_cache).map(|p| decimal(p.0)), no_metrics),
        "lately": lately(state, now),
    })
}

/// Differences of counters over the window.
fn lately(state: &State, now: Now) -> Value {
    let (figures, at) = (&state.server.figures, now.stamp);
    json!({
        "span_s": figures.span.as_secs_f64(),
        "ttft": reading(&figures.ttft, at, quantiles),
        "itl": reading(&figures.itl, at, quantiles),
        "queue": reading(&figures.queue, at, quantiles),
        "prefix_hit_percent": reading(&figures.prefix_hits, at, |share| share * 100.0),
        "speculation": reading(&figures.acceptance, at, |a| json!({
            "tokens_per_step": a.length,
            "accepted_percent": a.rate.map(|share| share * 100.0),
        })),
        "preemptions": reading(&figures.preemptions, at, |n| *n),
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
    use crate::domain::serving::{MetricsOf, MetricsSample};
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
            json!({ "value": null, "reason": "not asked yet" })
        );
        assert_eq!(
            before["preemptions"],
            json!({ "value": null, "reason": "not asked yet" })
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
        assert_eq!(lately["ttft"], json!({ "value": ttft, "age_s": 0.5 }));
        assert_eq!(
            lately["itl"],
            json!({ "value": null, "reason": "none in the last 60 s" })
        );
        assert_eq!(lately["queue"], json!({ "value": null, "reason": NOT_EXPORTED }));
        assert_eq!(lately["prefix_hit_percent"]["value"], json!(25.0));
        let speculation = json!({ "tokens_per_step": 2.5, "accepted_percent": 75.0 });
        assert_eq!(lately["speculation"]["value"], speculation);
        assert_eq!(lately["span_s"], json!(60.0));
        assert_eq!(after["preemptions"], json!({ "value": 0.0 }), "a zero that was counted");
        assert_eq!(after["waiting"], json!({ "value": null, "reason": NOT_EXPORTED }));
        assert_eq!(after["metrics_of"]["value"], json!("vllm"));
    }
}
