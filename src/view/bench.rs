//! The throughput test: how far it is, and its figures live and at the end.

use std::time::Duration;

use ratatui::layout::Rect;

use crate::domain::bench::PromptSizing;
use crate::domain::intent::Pane;
use crate::measure::{Report, Spread};
use crate::model::bench::{BenchPhase, BenchView};

use super::Scene;
use super::canvas::Canvas;
use super::regions::Regions;
use super::standing::Mark;
use super::widgets::boxes::frame;
use super::widgets::row::Row;
use super::widgets::wrap::wrap;
use super::words::{NOTHING, count, latency, number, seconds, things};

/// Width of the names of values.
const LABEL: usize = 8;

/// Cells before the name of the result's file: the label and the gap after it.
const SAVED: u16 = 10;

/// Rows that the pane wants, frame included.
pub(super) fn height(scene: &Scene<'_>) -> u16 {
    let rows = scene
        .state
        .bench
        .as_ref()
        .map_or(0, |bench| rows(scene, bench, u16::MAX).len());
    u16::try_from(rows).unwrap_or(u16::MAX).saturating_add(2)
}

/// Draws the pane of the latest test.
pub(super) fn draw(scene: &Scene<'_>, canvas: &mut Canvas<'_>, area: Rect, regions: &mut Regions) {
    let Some(bench) = &scene.state.bench else { return };
    let inner = frame(canvas, area, scene.border(Pane::Bench), title(scene, bench), Row::new());
    regions.panes.push((Pane::Bench, area));
    for (y, row) in (inner.y..inner.bottom()).zip(rows(scene, bench, inner.width.saturating_sub(2))) {
        row.draw(canvas, inner.x + 1, y, inner.width.saturating_sub(2));
    }
}

fn title<'a>(scene: &Scene<'a>, bench: &BenchView) -> Row<'a> {
    let look = scene.look;
    let mut row = Row::new();
    row.spans(0, scene.title(Pane::Bench, "throughput test"));
    let (mark, word) = match &bench.phase {
        BenchPhase::Running => (
            Mark::Busy,
            format!("runs {}", seconds(scene.now.stamp.since(bench.started))),
        ),
        BenchPhase::Done(took) => match failed(bench) {
            Some(report) => {
                let failed = report.failed().unwrap_or_default();
                (Mark::Bad, format!("{failed}, in {}", seconds(*took)))
            }
            None => (Mark::Yes, format!("done in {}", seconds(*took))),
        },
        BenchPhase::Failed(_) => (Mark::Bad, "failed".to_owned()),
        BenchPhase::Cancelled => (Mark::Stopped, "cancelled".to_owned()),
    };
    row.put(1, format!("{} {word}", mark.glyph()), mark.style(look));
    if bench.running() {
        row.put(3, "T cancels", look.dim()).right();
    }
    row.over_border()
}

/// The figures of a test that is over and of which requests failed.
fn failed(bench: &BenchView) -> Option<&Report> {
    bench.report.as_ref().filter(|report| report.failures > 0)
}

/// The rows, the ones that matter most first: as many as fit are drawn.
fn rows<'a>(scene: &Scene<'a>, bench: &'a BenchView, width: u16) -> Vec<Row<'a>> {
    let look = scene.look;
    let mut rows = Vec::new();
    if let BenchPhase::Failed(why) = &bench.phase {
        let mut row = Row::new();
        row.put(0, format!("✗ {why}"), look.bad());
        rows.push(row);
    }
    if let Some(commonest) = failed(bench).and_then(Report::commonest) {
        let mut row = Row::new();
        row.put(0, format!("✗ {commonest}"), look.bad());
        rows.push(row);
    }
    rows.push(output(scene, bench));
    rows.push(times(scene, bench));
    rows.push(progress(scene, bench));
    if let Some(file) = &bench.saved {
        rows.extend(saved(scene, file, width));
    }
    rows.push(profile(scene, bench));
    rows
}

/// The file of the result; all of its name where the pane has the screen.
fn saved<'a>(scene: &Scene<'a>, file: &'a str, width: u16) -> Vec<Row<'a>> {
    let look = scene.look;
    let room = width.saturating_sub(SAVED).max(1);
    let pieces = if scene.state.screen.zoom {
        wrap(file, room)
    } else {
        vec![file.to_owned()]
    };
    let row = |(i, piece): (usize, String)| {
        let mut row = Row::new();
        row.put(0, label(if i == 0 { "saved" } else { "" }), look.label());
        row.put(0, piece, look.text());
        row
    };
    pieces.into_iter().enumerate().map(row).collect()
}

fn label(name: &str) -> String {
    format!("{name:<LABEL$}")
}

fn progress<'a>(scene: &Scene<'a>, bench: &'a BenchView) -> Row<'a> {
    let look = scene.look;
    let total = bench.profile.requests;
    // Once it is over, what failed is no progress.
    let (done, word) = match failed(bench) {
        Some(report) => (report.successes, " succeeded"),
        None => (bench.live.successes() + bench.live.failures(), ""),
    };
    let mut row = Row::new();
    row.put(0, label("requests"), look.label());
    #[expect(clippy::cast_precision_loss, reason = "a share for a bar")]
    let share = done as f64 / f64::from(total.max(1));
    row.bar(2, share, look.bar(), (8, 30));
    row.put(0, format!("{done}/{total}{word}"), look.strong());
    if bench.warmup < bench.profile.warmup && bench.running() {
        row.put(
            1,
            format!("warm-up {}/{}", bench.warmup, bench.profile.warmup),
            look.busy(),
        );
    }
    let failed = bench.live.failures();
    let style = if failed > 0 { look.bad() } else { look.dim() };
    row.put(if failed > 0 { 0 } else { 3 }, format!("failed {failed}"), style);
    let newest = || bench.records.iter().rev().find_map(|r| r.error.as_deref());
    if let (true, Some(error)) = (bench.report.is_none(), newest()) {
        row.put(2, error, look.bad());
    }
    row
}

fn output<'a>(scene: &Scene<'a>, bench: &BenchView) -> Row<'a> {
    let look = scene.look;
    let mut row = Row::new();
    row.put(0, label("output"), look.label());
    let rate = match &bench.phase {
        BenchPhase::Done(took) => final_rate(bench, *took),
        BenchPhase::Running | BenchPhase::Failed(_) | BenchPhase::Cancelled => bench.live.output_rate(),
    };
    let text = rate.map_or_else(|| NOTHING.to_owned(), number);
    row.put(
        0,
        format!("{text} tok/s"),
        if rate.is_some() { look.strong() } else { look.dim() },
    );
    if let (true, Some(now)) = (bench.running(), bench.live.recent_rate()) {
        row.put(1, format!("now {} tok/s", number(now)), look.text());
    }
    if matches!(bench.phase, BenchPhase::Done(_)) {
        row.put(1, things(tokens(bench), "token"), look.text());
        if let Some(report) = failed(bench).filter(|r| r.successes > 0) {
            let good = format!("of the {} that succeeded", things(report.successes, "request"));
            row.put(0, good, look.warn());
        }
        if let Some(counted) = bench.tally.and_then(|t| t.server_tokens) {
            row.put(1, format!("server counted {}", count(counted)), look.text());
        }
    }
    row
}

/// Output tokens of the requests that succeeded, over the time of the test.
fn final_rate(bench: &BenchView, took: Duration) -> Option<f64> {
    let tokens = tokens(bench);
    crate::measure::report::rate(tokens, took).filter(|_| tokens > 0)
}

/// Output tokens of the requests that succeeded.
fn tokens(bench: &BenchView) -> u64 {
    let good = bench.records.iter().filter(|r| r.error.is_none());
    good.map(|r| r.output_tokens).sum()
}

fn times<'a>(scene: &Scene<'a>, bench: &BenchView) -> Row<'a> {
    let look = scene.look;
    let mut row = Row::new();
    row.put(0, label("latency"), look.label());
    spread(scene, &mut row, "TTFT", bench.live.ttft_spread(), bench.live.ttft());
    spread(scene, &mut row, "TPOT", bench.live.tpot(), None);
    row
}

fn spread<'a>(scene: &Scene<'a>, row: &mut Row<'a>, name: &str, all: Option<Spread>, newest: Option<Duration>) {
    let look = scene.look;
    let median = all.as_ref().map(|s| s.median).or(newest);
    let text = median.map_or_else(|| NOTHING.to_owned(), latency);
    row.put(
        0,
        format!("{name} p50 {text}"),
        if median.is_some() { look.text() } else { look.dim() },
    );
    if let Some(all) = all {
        row.put(3, format!("p99 {}", latency(all.p99)), look.dim());
    }
}

fn profile<'a>(scene: &Scene<'a>, bench: &BenchView) -> Row<'a> {
    let look = scene.look;
    let p = &bench.profile;
    let mut row = Row::new();
    row.put(0, label("sends"), look.label());
    let prompt = match bench.prompt {
        Some((PromptSizing::Tokenize, n)) => format!("prompt {} (/tokenize)", things(n, "token")),
        Some((PromptSizing::Usage, n)) => format!("prompt {} (usage)", things(n, "token")),
        Some((PromptSizing::Estimate, n)) => format!("prompt about {}", things(n, "token")),
        None => format!("prompt {}", things(p.prompt_tokens, "token")),
    };
    row.put(0, prompt, look.text());
    row.put(1, format!("output {}", p.output_tokens), look.text());
    row.put(2, format!("{} at a time", p.concurrency), look.text());
    row
}
