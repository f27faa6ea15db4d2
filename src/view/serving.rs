//! The model server: where it stands, how to reach it, how fast it is.

use std::borrow::Cow;
use std::time::Duration;

use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Span;

use crate::domain::Reading;
use crate::domain::intent::Pane;
use crate::domain::serving::{Health, MetricsSample};
use crate::domain::time::human;
use crate::measure::window::LIVE;
use crate::model::schedule::{HEALTH_EVERY, METRICS_EVERY};
use crate::model::series::Series;
use crate::model::state::ServingState;
use crate::model::{doubt, prefill, server_url, tunnel_line};

use super::Scene;
use super::age::Age;
use super::canvas::Canvas;
use super::cause;
use super::figures;
use super::node::load::summary;
use super::overlay::run;
use super::regions::Regions;
use super::standing;
use super::widgets::boxes::frame;
use super::widgets::row::{History, Row};
use super::widgets::wrap::wrap;
use super::words::{NOTHING, amount, number, seconds, things};

/// Time that the history of rates covers.
const HISTORY: Duration = Duration::from_secs(300);

/// Rows inside the pane below which values share them.
const LOW: u16 = 6;

/// Rows inside the pane from which each rate has a row of its own beside all figures.
const HIGH: u16 = 8;

/// Most lines of what is wrong.
const TROUBLE: usize = 2;

/// Lines of a fix that are shown where there is room; the run's pane and `status` have all of it.
const FIX: usize = 2;

/// Width of the names of values.
const LABEL: usize = 8;

/// Draws the pane.
pub(super) fn draw(scene: &Scene<'_>, canvas: &mut Canvas<'_>, area: Rect, regions: &mut Regions) {
    let inner = frame(canvas, area, scene.border(Pane::Serving), title(scene), Row::new());
    regions.panes.push((Pane::Serving, area));
    let width = inner.width.saturating_sub(2);
    for (y, row) in (inner.y..inner.bottom()).zip(rows(scene, inner.height, width)) {
        row.draw(canvas, inner.x + 1, y, width);
    }
}

fn title<'a>(scene: &Scene<'a>) -> Row<'a> {
    let (state, look) = (scene.state, scene.look);
    let mark = standing::serve(state);
    let mut row = Row::new();
    row.spans(0, scene.title(Pane::Serving, "server"));
    row.put(
        0,
        format!("{} {}", mark.glyph(), state.server.state.word()),
        mark.style(look),
    );
    row.put(2, standing::serves_for(state, scene.now.stamp), look.text());
    let age = Age::of(&state.observed.server.health, HEALTH_EVERY, scene.now.stamp);
    age.title(look, &mut row);
    row.over_border()
}

/// The rows, the ones that matter most first: as many as fit are drawn.
fn rows<'a>(scene: &Scene<'a>, height: u16, width: u16) -> Vec<Row<'a>> {
    let mut rows = Vec::new();
    rows.extend(trouble(scene, height, width));
    rows.extend(cure(scene, height, width));
    rows.extend(loads(scene));
    // Figures that have all the same reason to be absent are left to the row that names it, where rows are few.
    let counted = scene.state.observed.server.metrics.value().is_some();
    if height < LOW {
        rows.push(rates(scene));
        rows.push(requests(scene));
        if counted {
            rows.push(figures::times(scene));
            rows.push(figures::caches(scene));
        }
        rows.push(url(scene));
        return rows;
    }
    if counted && height < HIGH {
        rows.push(rates(scene));
        rows.push(requests(scene));
        rows.push(figures::times(scene));
        rows.push(figures::caches(scene));
        reach(scene, &mut rows, height, width);
        return rows;
    }
    let server = &scene.state.server;
    let look = scene.look;
    let mut generation = rate(
        scene,
        "gen",
        &server.generation,
        &server.generation_history,
        look.chart_generation(),
    );
    over(scene, &mut generation);
    mean(scene, &mut generation);
    rows.push(generation);
    rows.push(rate(
        scene,
        "prompt",
        &server.prompt,
        &server.prompt_history,
        look.chart_prompt(),
    ));
    rows.push(requests(scene));
    if height >= HIGH {
        rows.push(figures::times(scene));
        rows.push(figures::caches(scene));
    }
    rows.push(url(scene));
    reach(scene, &mut rows, height, width);
    rows
}

/// Adds the line that reaches the server, and what proves that it answers. A line that is longer than a row stands whole below its name, where there are
/// rows for it.
fn reach<'a>(scene: &Scene<'a>, rows: &mut Vec<Row<'a>>, height: u16, width: u16) {
    let line = tunnel_line(&scene.state.config);
    let room = usize::from(height).saturating_sub(rows.len() + 2);
    let beside = usize::from(width).saturating_sub(LABEL + 2);
    let pieces = wrap(&line, width);
    let whole = line.chars().count() > beside && pieces.len() <= room;
    let mut row = Row::new();
    row.put(0, label("reach it"), scene.look.label());
    if !whole {
        row.put(0, line, address_style(scene));
    }
    // What mends the server goes before the way to it.
    if scene.state.cure().is_none() {
        row.put(1, "y copies", scene.look.dim()).right();
    }
    rows.push(row);
    for piece in pieces.into_iter().filter(|_| whole) {
        let mut row = Row::new();
        row.put(0, piece, address_style(scene));
        rows.push(row);
    }
    rows.push(proof(scene));
}

/// What a load has come to, how long it still takes and what that rests on: until the server answers, nothing else is of interest.
fn loads<'a>(scene: &Scene<'a>) -> Vec<Row<'a>> {
    if scene.state.server.state != ServingState::Loading {
        return Vec::new();
    }
    summary(scene)
}

/// What is wrong, when something is: in two lines where there is room.
fn trouble<'a>(scene: &Scene<'a>, height: u16, width: u16) -> Vec<Row<'a>> {
    let (state, look) = (scene.state, scene.look);
    if run::tells_cause(scene) {
        let mut row = Row::new();
        row.put(0, "the failed step below says why, and what to do", look.bad());
        return vec![row];
    }
    let known = || state.first_cause().map(|c| cause::headline(state, &c, scene.now));
    let said = match &state.server.state {
        ServingState::Degraded(why) | ServingState::Failed(why) => {
            let text = known().unwrap_or_else(|| why.clone());
            Some((format!("✗ {text}"), look.bad()))
        }
        ServingState::Stopping => state.server_why().map(|why| (why.into_owned(), look.warn())),
        ServingState::Unknown => {
            let why = state.server_why().unwrap_or_default();
            Some((format!("nothing known: {why}"), look.dim()))
        }
        // Nothing has failed yet, or nothing was there to fail: what was seen may still say why it comes no further.
        ServingState::Down | ServingState::Loading | ServingState::Answering => {
            let why = known().or_else(|| state.server_why().map(Cow::into_owned));
            why.map(|why| (format!("! {why}"), look.warn()))
        }
        ServingState::Ready => doubt(state, scene.now.stamp)
            .map(|doubt| (format!("? {doubt}"), look.warn()))
            .or_else(|| prefill(state, scene.now.stamp).map(|why| (format!("▸ {why}"), look.busy()))),
    };
    let Some((text, style)) = said else { return Vec::new() };
    // A ready server's other rows are of use all the same.
    let least = if state.server.state == ServingState::Ready {
        HIGH
    } else {
        LOW
    };
    let most = if height < least { 1 } else { TROUBLE };
    at_most(&wrap(&text, width), most)
        .into_iter()
        .map(|line| {
            let mut row = Row::new();
            row.put(0, line, style);
            row
        })
        .collect()
}

/// At most so many lines; the last one has the rest, so that one sees that it is cut.
fn at_most(lines: &[String], most: usize) -> Vec<String> {
    let (whole, rest) = lines.split_at(lines.len().min(most.saturating_sub(1)));
    let rest = (!rest.is_empty()).then(|| rest.join(" "));
    whole.iter().cloned().chain(rest).collect()
}

/// Cells of "y copies".
const COPIES: u16 = 8;

/// What to do about what is wrong: the fix, in as many lines as leave room for the rest, and the command that goes with it.
fn cure<'a>(scene: &Scene<'a>, height: u16, width: u16) -> Vec<Row<'a>> {
    let (state, look) = (scene.state, scene.look);
    let Some(cause) = state.trouble().filter(|_| !run::tells_cause(scene)) else {
        return Vec::new();
    };
    let most = if height < LOW { 1 } else { FIX };
    let lines: Vec<String> = cause
        .fix
        .iter()
        .flat_map(|fix| wrap(&format!("fix: {fix}"), width))
        .collect();
    let mut rows = Vec::new();
    for line in at_most(&lines, most) {
        let mut row = Row::new();
        row.put(0, line, look.good());
        rows.push(row);
    }
    if let Some(text) = cause::command(state, &cause) {
        let mut row = Row::new();
        // A line of which not all is seen is the one to be copied: it leaves that its place.
        let room = width.saturating_sub(COPIES + 2);
        let cut = (text.chars().count() > usize::from(room)).then(|| wrap(&text, room.saturating_sub(1)));
        let first = cut.and_then(|pieces| Some(format!("{}…", pieces.first()?)));
        row.put(0, first.unwrap_or(text), look.good());
        row.put(1, "y copies", look.dim()).right();
        rows.push(row);
    }
    rows
}

/// Why a value of the server is not known.
fn why<'a, T>(scene: &Scene<'a>, reading: &'a Reading<T>) -> Cow<'a, str> {
    scene.state.why_absent(scene.state.config.head(), reading)
}

pub(super) fn label(name: &str) -> String {
    format!("{name:<LABEL$}")
}

/// Both rates in one row, where there is room for no more.
fn rates<'a>(scene: &Scene<'a>) -> Row<'a> {
    let look = scene.look;
    let server = &scene.state.server;
    let mut row = Row::new();
    let both = [("gen", &server.generation), ("prompt", &server.prompt)];
    // Two rates that are absent for one reason are one dash with that reason.
    let shown = if server.generation.value().is_none() && server.generation.reason() == server.prompt.reason() {
        1
    } else {
        both.len()
    };
    for (rank, (name, reading)) in (0..).zip(both).take(shown) {
        let (text, style) = speed(scene, reading);
        row.spans(
            rank,
            vec![
                Span::styled(format!("{name} "), look.label()),
                Span::styled(text, style),
            ],
        );
    }
    if server.generation.value().is_none() {
        let rank = if shown == 1 { 0 } else { 1 };
        row.put(rank, why(scene, &server.generation), look.dim());
    }
    history(scene, &server.generation_history, look.chart_generation(), &mut row);
    over(scene, &mut row);
    mean(scene, &mut row);
    row
}

/// Adds the time that the rates of now cover.
fn over(scene: &Scene<'_>, row: &mut Row<'_>) {
    let server = &scene.state.server;
    if let Some(span) = server.live_text().filter(|_| server.generation.value().is_some()) {
        // Of a rate of one step or two that is the most to know.
        let rank = if server.live < LIVE { 1 } else { 4 };
        row.put(rank, format!("over {span}"), scene.look.dim());
    }
}

/// Adds the rate of the whole minute: what comes and goes with single requests is evened out in it.
fn mean(scene: &Scene<'_>, row: &mut Row<'_>) {
    let figures = &scene.state.server.figures;
    if let Some(n) = figures.generation.value() {
        let tone = Age::of(&figures.generation, METRICS_EVERY, scene.now.stamp).tone(scene.look, scene.look.text());
        let text = format!("last {} s mean {}", figures.span.as_secs(), number(*n));
        row.put(3, text, tone);
    }
}

/// A rate with its unit, and its style.
fn speed(scene: &Scene<'_>, reading: &Reading<f64>) -> (String, Style) {
    let look = scene.look;
    let age = Age::of(reading, METRICS_EVERY, scene.now.stamp);
    match reading.value() {
        Some(n) => (format!("{} tok/s", number(*n)), age.tone(look, look.strong())),
        None => (format!("{NOTHING} tok/s"), look.dim()),
    }
}

fn rate<'a>(
    scene: &Scene<'a>,
    name: &'static str,
    reading: &'a Reading<f64>,
    series: &'a Series,
    chart: Style,
) -> Row<'a> {
    let look = scene.look;
    let mut row = Row::new();
    row.put(0, label(name), look.label());
    let (text, style) = speed(scene, reading);
    row.put(0, format!("{text:>12}"), style);
    // That there is no rate now, and why, weighs more than what it was.
    if reading.value().is_none() {
        row.put(0, why(scene, reading), look.dim());
    }
    history(scene, series, chart, &mut row);
    let age = Age::of(reading, METRICS_EVERY, scene.now.stamp);
    age.note(look, &mut row);
    row
}

/// Adds the history of a rate, when there is one.
fn history<'a>(scene: &Scene<'a>, series: &'a Series, style: Style, row: &mut Row<'a>) {
    let Some(top) = series.max().filter(|m| *m > 0.0) else {
        return;
    };
    let history = History {
        series,
        now: scene.now.stamp,
        span: HISTORY,
        top,
        style,
    };
    row.spark(2, history, (10, 60));
    row.put(4, format!("max {} tok/s", number(top)), scene.look.dim());
}

fn requests<'a>(scene: &Scene<'a>) -> Row<'a> {
    let look = scene.look;
    let reading = &scene.state.observed.server.metrics;
    let age = Age::of(reading, METRICS_EVERY, scene.now.stamp);
    let mut row = Row::new();
    row.put(3, label("requests"), look.label());
    let value = |of: fn(&MetricsSample) -> Option<f64>| {
        let n = reading.value().and_then(of);
        n.map_or_else(|| NOTHING.to_owned(), |n| format!("{n:.0}"))
    };
    let style = if reading.value().is_some() {
        age.tone(look, look.text())
    } else {
        look.dim()
    };
    let waiting = reading.value().and_then(|m| m.waiting).is_some_and(|n| n > 0.0);
    row.put(0, format!("running {}", value(|m| m.running)), style);
    row.put(
        0,
        format!("waiting {}", value(|m| m.waiting)),
        if waiting { age.tone(look, look.warn()) } else { style },
    );
    let kv = reading.value().and_then(|m| m.kv_cache);
    row.put(
        1,
        kv.map_or_else(|| "kv -".to_owned(), |p| format!("kv {:.1} %", p.0)),
        style,
    );
    let finished = reading.value().and_then(|m| m.finished);
    if let Some(n) = finished {
        row.put(4, format!("finished {n:.0}"), look.dim());
    }
    row
}

fn url<'a>(scene: &Scene<'a>) -> Row<'a> {
    let look = scene.look;
    let mut row = Row::new();
    row.put(2, label("url"), look.label());
    row.put(0, server_url(&scene.state.config), address_style(scene));
    if !scene.state.config.ssh.jump.is_empty() {
        row.put(3, "as seen from the jump host", look.dim());
    }
    row
}

/// An address that answers is to be read; one that does not yet is there for later.
fn address_style(scene: &Scene<'_>) -> Style {
    let answers = scene.state.observed.server.health.value() == Some(&Health::Ok);
    if answers { scene.look.text() } else { scene.look.dim() }
}

/// What proves that it answers.
fn proof<'a>(scene: &Scene<'a>) -> Row<'a> {
    let (seen, look) = (&scene.state.observed.server, scene.look);
    let mut row = Row::new();
    row.put(0, label("proof"), look.label());
    // A token that came back proves more than all the rest.
    let (health_rank, models_rank) = if seen.token.value().is_some() { (1, 3) } else { (0, 1) };
    if let (Some(token), Some(at)) = (seen.token.value(), seen.token.at()) {
        let ago = seconds(scene.now.stamp.since(at));
        let what = if token.tokens == 1 {
            "a token".to_owned()
        } else {
            things(token.tokens, "token")
        };
        row.put(0, format!("{what} came back {ago} ago"), look.good());
        row.put(2, format!("in {}", human(token.took)), look.good());
    }
    let health = match seen.health.value() {
        Some(Health::Ok) => ("/health 200".to_owned(), look.good()),
        Some(Health::Status(code)) => (format!("/health {code}"), look.bad()),
        Some(Health::Refused) => ("the port refuses".to_owned(), look.dim()),
        Some(Health::Unreachable(why)) => (format!("no answer: {why}"), look.warn()),
        None => (format!("/health {NOTHING}"), look.dim()),
    };
    row.put(health_rank, health.0, health.1);
    if let Some(models) = seen.models.value() {
        let name = scene.state.config.serve.name();
        let listed = models.iter().any(|m| m == name);
        let (text, style) = if listed {
            ("model listed", look.good())
        } else {
            ("model not listed", look.bad())
        };
        row.put(models_rank, text, style);
    }
    let counted = seen.metrics.value().and_then(|m| m.generation_tokens);
    if let (None, Some(tokens)) = (seen.token.value(), counted.filter(|n| *n >= 1.0)) {
        row.put(2, format!("counted {}", amount(tokens, "token")), look.good());
    }
    row
}
