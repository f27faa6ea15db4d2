//! The lines on top: where are we, and what keeps us from the nodes when the way in is not up.

use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Span;

use crate::domain::link::LinkState;
use crate::domain::{HopId, Stamp};
use crate::model::state::ServingState;
use crate::model::{State, held_up, server_since};

use super::Scene;
use super::canvas::Canvas;
use super::look::Look;
use super::node::load::whole;
use super::standing::{self, Mark};
use super::widgets::row::Row;
use super::words::{self, NOTHING, clock, seconds};

/// Nodes behind a jump host that are named; more of them are counted.
const NAMED: usize = 4;

/// Lines for hops that are not up; more of them are counted, not shown.
const HOP_LINES: usize = 2;

/// Rows that the top takes.
pub(super) fn height(state: &State) -> u16 {
    1 + u16::try_from(troubled(state).count().min(HOP_LINES)).unwrap_or(0)
}

fn troubled(state: &State) -> impl Iterator<Item = (HopId, &LinkState)> {
    let hops = state.hops.iter().enumerate();
    hops.filter(|(_, link)| **link != LinkState::Up)
        .filter_map(|(i, link)| Some((HopId(u16::try_from(i).ok()?), link)))
}

/// Draws the top lines.
pub(super) fn draw(scene: &Scene<'_>, canvas: &mut Canvas<'_>, area: Rect) {
    line(scene).draw(canvas, area.x, area.y, area.width);
    let more = troubled(scene.state).count().saturating_sub(HOP_LINES);
    for (i, (id, link)) in troubled(scene.state).take(HOP_LINES).enumerate() {
        let y = area.y + 1 + u16::try_from(i).unwrap_or(0);
        if y < area.bottom() {
            hop(scene, id, link, if i + 1 == HOP_LINES { more } else { 0 }).draw(canvas, area.x, y, area.width);
        }
    }
}

fn line<'a>(scene: &Scene<'a>) -> Row<'a> {
    let (state, look) = (scene.state, scene.look);
    let config = &state.config;
    let mut row = Row::new();
    row.put(0, format!(" {}", config.cluster), look.title());
    row.put(
        6,
        format!("{} tp={}", config.engine.word(), config.serve.tensor_parallel_size),
        look.dim(),
    );
    row.put(4, short_model(config.serve.name()), look.text());
    row.spans(0, chain(scene));
    serve(scene, &mut row);
    row.put(3, clock(scene.now.wall, look.utc_offset()), look.dim()).right();
    row
}

/// Head, workers and server, each with its mark.
fn chain(scene: &Scene<'_>) -> Vec<Span<'static>> {
    let (state, look, now) = (scene.state, scene.look, scene.now.stamp);
    let mut spans = Vec::new();
    part(
        &mut spans,
        "head",
        standing::node(state, state.config.head(), now),
        look,
    );
    let workers = standing::workers(state, now);
    if workers.all > 0 {
        let joined = workers.joined.map_or(NOTHING.to_owned(), |n| n.to_string());
        let name = format!("workers {joined}/{}", workers.all);
        part(&mut spans, &name, workers.mark, look);
        if let Some(age) = workers.stale {
            spans.push(Span::styled(format!(" {} ago", seconds(age)), look.stale()));
        }
    }
    part(&mut spans, "serve", standing::serve(state), look);
    spans
}

fn part(spans: &mut Vec<Span<'static>>, name: &str, mark: Mark, look: &Look) {
    if !spans.is_empty() {
        spans.push(Span::styled(" ── ", look.border()));
    }
    spans.push(Span::styled(format!("{name} "), look.text()));
    spans.push(Span::styled(mark.glyph(), mark.style(look)));
}

fn serve<'a>(scene: &Scene<'a>, row: &mut Row<'a>) {
    let (state, look) = (scene.state, scene.look);
    let mark = standing::serve(state);
    match &state.server.state {
        ServingState::Loading => whole(scene, row),
        ServingState::Ready
        | ServingState::Answering
        | ServingState::Degraded(_)
        | ServingState::Stopping
        | ServingState::Failed(_) => {
            let word = state.server.state.word();
            let comma = if server_since(state).found { "," } else { "" };
            let text = format!("{word}{comma} {}", standing::serves_for(state, scene.now.stamp));
            row.put(2, text, mark.style(look));
        }
        ServingState::Down => {
            row.put(2, "down", look.dim());
        }
        ServingState::Unknown => {
            row.put(2, "unknown", look.warn());
        }
    }
}

fn hop<'a>(scene: &Scene<'a>, id: HopId, link: &'a LinkState, more: usize) -> Row<'a> {
    let (state, look) = (scene.state, scene.look);
    let mark = standing::link(link);
    let mut row = Row::new();
    let hop = state.config.ssh.jump.get(id.index());
    let (name, host) = hop.map_or(("host", ""), |h| (h.name.as_str(), h.login.host.as_str()));
    row.spans(
        0,
        vec![
            Span::styled(format!(" {} ", mark.glyph()), mark.style(look)),
            Span::styled(format!("jump {name}"), look.strong()),
        ],
    );
    row.put(4, format!(" ({host})"), look.strong()).tight();
    match link {
        LinkState::Idle => {
            row.put(0, "not dialled yet", look.dim());
        }
        LinkState::Connecting => {
            let last = state.hop_errors.get(id.index()).and_then(Option::as_ref);
            row.put(if last.is_some() { 2 } else { 0 }, "connecting", look.busy());
            if let Some(last) = last {
                let age = seconds(scene.now.stamp.since(last.at));
                why(name, &format!("{age} ago: "), &last.error.text, look.dim(), &mut row);
            }
        }
        LinkState::Asking => {
            row.put(0, "waits for your answer", look.warn());
        }
        LinkState::Up => {}
        LinkState::Silent { since } => {
            let silent = seconds(scene.now.stamp.since(*since));
            row.put(0, format!("silent for {silent}"), look.warn());
        }
        LinkState::Down { error, retry_at, .. } => {
            why(name, "", &error.text, look.bad(), &mut row);
            if let Some(fix) = &error.fix {
                row.put(5, fix.lines().next().unwrap_or_default(), look.text());
            }
            row.put(2, retry(*retry_at, scene.now.stamp), look.dim()).right();
        }
    }
    // Their panes do not say it once more.
    let behind = held_up(state, id);
    if !behind.is_empty() {
        let behind = if behind.len() > NAMED {
            words::things(behind.len(), "node")
        } else {
            behind.join(", ")
        };
        row.put(1, format!("behind it: {behind}"), look.text());
    }
    if more > 0 {
        row.put(1, format!("+{more} more"), look.warn()).right();
    }
    row
}

/// Why a jump host is down, after `when`, without the name that its line begins with. The first clause stays longest.
fn why<'a>(name: &str, when: &str, text: &'a str, style: Style, row: &mut Row<'a>) {
    let text = told_of(name, text);
    let (first, rest) = text.split_at(text.find(": ").unwrap_or(text.len()));
    row.put(0, format!("{when}{first}"), style);
    if !rest.is_empty() {
        row.put(3, rest, style).tight();
    }
}

/// What an error says of a host whose name stands beside it: `gate (aurora@10.1.230.180:22): connection refused` without the name and the address.
fn told_of<'t>(name: &str, text: &'t str) -> &'t str {
    let rest = text.strip_prefix(name).filter(|rest| rest.starts_with([':', ' ']));
    let told = rest.and_then(|rest| match rest.strip_prefix(" (") {
        Some(address) => Some(address.split_once("): ")?.1),
        None => rest.strip_prefix(": "),
    });
    told.unwrap_or(text)
}

/// Whether a line on top tells of a jump host.
pub(super) fn tells_of(state: &State, hop: HopId) -> bool {
    troubled(state).take(HOP_LINES).any(|(id, _)| id == hop)
}

/// When the next try comes.
pub(super) fn retry(at: Option<Stamp>, now: Stamp) -> String {
    match at {
        Some(at) if at > now => format!("retry in {}", seconds(at.since(now))),
        Some(_) => "trying again".to_owned(),
        None => "press n to try again".to_owned(),
    }
}

/// The last part of a hub name or a path.
fn short_model(name: &str) -> &str {
    name.rsplit('/').find(|part| !part.is_empty()).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_of_a_host_is_said_without_its_name() {
        for (text, told) in [
            (
                "gate (aurora@10.1.230.180:22): connection refused: nothing listens there",
                "connection refused: nothing listens there",
            ),
            ("gate: no answer within 10 s", "no answer within 10 s"),
            ("gateway: no answer", "gateway: no answer"),
            ("gate refused every key", "gate refused every key"),
            ("gate (odd", "gate (odd"),
        ] {
            assert_eq!(told_of("gate", text), told);
        }
    }

    #[test]
    fn a_model_is_known_by_its_last_part() {
        for (name, short) in [
            ("Qwen/Qwen3.5-122B", "Qwen3.5-122B"),
            ("/models/x/", "x"),
            ("m", "m"),
            ("/", "/"),
        ] {
            assert_eq!(short_model(name), short);
        }
    }
}
