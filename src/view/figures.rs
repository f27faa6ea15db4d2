//! What the server did lately, in two rows: times of requests, and what the caches and the drafts bring.

use ratatui::style::Style;
use ratatui::text::Span;

use crate::domain::Reading;
use crate::measure::window::{Acceptance, Quantiles};
use crate::model::schedule::METRICS_EVERY;

use super::Scene;
use super::age::Age;
use super::serving::label;
use super::widgets::row::Row;
use super::words::NOTHING;

/// TTFT, ITL and time in the queue as vLLM's histograms count them: p50 and p95 over the window.
pub(super) fn times<'a>(scene: &Scene<'a>) -> Row<'a> {
    let (look, figures) = (scene.look, &scene.state.server.figures);
    let mut row = Row::new();
    row.put(6, label("latency"), look.label());
    let readings = [
        (("TTFT", "request"), (0, 3), &figures.ttft),
        (("ITL", "token"), (1, 3), &figures.itl),
        (("queue", "request"), (4, 5), &figures.queue),
    ];
    for (names, ranks, reading) in readings {
        quantiles(scene, &mut row, names, ranks, reading);
    }
    let reasons = readings.map(|(_, _, r)| r.reason());
    reason(scene, &mut row, &reasons);
    if reasons.contains(&None) {
        row.put(2, format!("last {} s", figures.span.as_secs()), look.dim());
    }
    row
}

/// Adds a time by its quantiles, each named: `TTFT p50 412 ms p95 1.24 s`. The second goes first where there is no room. Of few there is none, and their
/// number stands with the first, wherever that does: `TTFT p50 175 ms of 1 request`.
fn quantiles(
    scene: &Scene<'_>,
    row: &mut Row<'_>,
    (name, one): (&'static str, &'static str),
    (rank, tail): (u8, u8),
    reading: &Reading<Quantiles>,
) {
    let name = if reading.value().is_some() {
        format!("{name} p50")
    } else {
        name.to_owned()
    };
    value(scene, row, (name, rank), reading, |q| match q.few(one) {
        Some(few) => format!("{} {few}", q.p50),
        None => q.p50.to_string(),
    });
    if let Some(q) = reading.value().filter(|q| q.few(one).is_none()) {
        let tone = Age::of(reading, METRICS_EVERY, scene.now.stamp).tone(scene.look, scene.look.text());
        let p95 = vec![
            Span::styled(" p95 ", scene.look.label()),
            Span::styled(q.p95.to_string(), tone),
        ];
        row.spans(tail, p95).tight();
    }
}

/// The prefix cache, speculative decoding and preemptions. What the server does not count has no place here.
pub(super) fn caches<'a>(scene: &Scene<'a>) -> Row<'a> {
    let (look, figures) = (scene.look, &scene.state.server.figures);
    let mut row = Row::new();
    row.put(6, label("cache"), look.label());
    let percent = |share: &f64| format!("{:.1} %", share * 100.0);
    value(scene, &mut row, ("prefix hit", 0), &figures.prefix_hits, percent);
    let put_back = &figures.preemptions;
    value(scene, &mut row, ("preempted", 2), put_back, |n| format!("{n:.0}"));
    let drafts = &scene.state.observed.server.metrics.value();
    if drafts.is_some_and(|m| m.accepted_tokens.is_some() || m.accept_length.is_some()) {
        value(scene, &mut row, ("spec", 1), &figures.acceptance, acceptance);
    }
    reason(scene, &mut row, &[figures.prefix_hits.reason()]);
    row
}

/// Adds a figure with its name: a dash where it is not known.
fn value<T>(
    scene: &Scene<'_>,
    row: &mut Row<'_>,
    (name, rank): (impl Into<String>, u8),
    reading: &Reading<T>,
    text: impl Fn(&T) -> String,
) {
    let look = scene.look;
    let tone: Style = Age::of(reading, METRICS_EVERY, scene.now.stamp).tone(look, look.text());
    let (text, style) = match reading.value() {
        Some(value) => (text(value), tone),
        None => (NOTHING.to_owned(), look.dim()),
    };
    let name = Span::styled(format!("{} ", name.into()), look.label());
    row.spans(rank, vec![name, Span::styled(text, style)]);
}

/// Adds the reason of the first figure that is not known.
fn reason<'a>(scene: &Scene<'a>, row: &mut Row<'a>, reasons: &[Option<&'a str>]) {
    if let Some(why) = reasons.iter().copied().flatten().next() {
        row.put(4, why, scene.look.dim());
    }
}

fn acceptance(a: &Acceptance) -> String {
    match (a.length, a.rate) {
        (Some(length), Some(rate)) => format!("{length:.2} tok/step {:.0} %", rate * 100.0),
        (Some(length), None) => format!("{length:.2} tok/step"),
        (None, Some(rate)) => format!("{:.0} %", rate * 100.0),
        (None, None) => NOTHING.to_owned(),
    }
}
