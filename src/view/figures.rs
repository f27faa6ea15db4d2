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

/// Times to first token, between tokens and in the queue: median and 95th percentile.
pub(super) fn times<'a>(scene: &Scene<'a>) -> Row<'a> {
    let (look, figures) = (scene.look, &scene.state.server.figures);
    let mut row = Row::new();
    row.put(6, label("p50 p95"), look.label());
    let readings = [
        ("ttft", 0, &figures.ttft),
        ("itl", 1, &figures.itl),
        ("queue", 3, &figures.queue),
    ];
    for (name, rank, reading) in readings {
        value(scene, &mut row, (name, rank), reading, quantiles);
    }
    let reasons = readings.map(|(_, _, r)| r.reason());
    reason(scene, &mut row, &reasons);
    if reasons.contains(&None) {
        row.put(7, format!("last {} s", figures.span.as_secs()), look.dim());
    }
    row
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
    (name, rank): (&'static str, u8),
    reading: &Reading<T>,
    text: impl Fn(&T) -> String,
) {
    let look = scene.look;
    let tone: Style = Age::of(reading, METRICS_EVERY, scene.now.stamp).tone(look, look.text());
    let (text, style) = match reading.value() {
        Some(value) => (text(value), tone),
        None => (NOTHING.to_owned(), look.dim()),
    };
    let name = Span::styled(format!("{name} "), look.label());
    row.spans(rank, vec![name, Span::styled(text, style)]);
}

/// Adds the reason of the first figure that is not known.
fn reason<'a>(scene: &Scene<'a>, row: &mut Row<'a>, reasons: &[Option<&'a str>]) {
    if let Some(why) = reasons.iter().copied().flatten().next() {
        row.put(4, why, scene.look.dim());
    }
}

/// `132/238 ms`: the unit once where it is the same.
fn quantiles(q: &Quantiles) -> String {
    let (p50, p95) = (q.p50.to_string(), q.p95.to_string());
    match (p50.split_once(' '), p95.split_once(' ')) {
        (Some((short, unit)), Some((_, same))) if unit == same => format!("{short}/{p95}"),
        (Some(_) | None, Some(_) | None) => format!("{p50}/{p95}"),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Quantile;

    #[test]
    fn a_unit_stands_once_where_it_is_the_same() {
        let of = |p50, p95| quantiles(&Quantiles { p50, p95, count: 1.0 });
        assert_eq!(of(Quantile::At(0.132), Quantile::At(0.238)), "132/238 ms");
        assert_eq!(of(Quantile::At(0.132), Quantile::At(1.5)), "132 ms/1.50 s");
        assert_eq!(of(Quantile::Above(80.0), Quantile::Above(80.0)), ">80.00/>80.00 s");
    }
}
