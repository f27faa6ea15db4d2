//! Which stop is wanted.

use ratatui::layout::Rect;
use ratatui::text::Span;

use crate::view::Scene;
use crate::view::canvas::Canvas;
use crate::view::regions::Regions;
use crate::view::widgets::row::Row;
use crate::view::words;

use super::{Line, boxed, broken, fits, small, text_width};

/// Width of the keys' column.
const KEYS: u16 = 7;

pub(super) fn draw(scene: &Scene<'_>, canvas: &mut Canvas<'_>, area: Rect, regions: &mut Regions) {
    let (state, look) = (scene.state, scene.look);
    let mut title = Row::new();
    title.put(0, "stop what?", look.focus());
    let names: Vec<&str> = state.config.nodes.iter().map(|n| n.name.as_str()).collect();
    let width = text_width(area);
    let choice = |key: &str, text: String| choice(scene, key, &text, width);
    let run = state.run_under_way();
    let mut lines = vec![Line::new()];
    if run {
        lines.extend(choice("r", "the run under way: no further step".to_owned()));
    }
    let (model, nodes) = (state.config.serve.name(), names.join(", "));
    lines.extend(choice("s", format!("the model server only ({model})")));
    lines.extend(choice(
        "a",
        format!("everything: the server, and the containers on {nodes}"),
    ));
    lines.extend(choice("Esc", "nothing".to_owned()));
    lines.push(Line::new());
    if let Some(running) = state.observed.running_requests() {
        let text = format!(
            "! {} running now: a stop ends what runs",
            words::amount(running.round(), "request")
        );
        lines.extend(broken(&text, 2, width, look.warn()));
    }
    let after = if run {
        "r acts at once. s and a show their plan first; nothing of it runs before Enter."
    } else {
        "The plan is shown first; nothing runs before Enter."
    };
    lines.extend(broken(after, 2, width, look.dim()));
    if fits(area, &lines) {
        boxed(scene, canvas, area, title, &lines, regions);
    } else {
        small::draw(scene, canvas, area, "stop what?", &short(scene, area.width), regions);
    }
}

/// The same in as few words as it takes, each choice on a line of its own.
fn short(scene: &Scene<'_>, width: u16) -> Vec<Line> {
    let (state, look) = (scene.state, scene.look);
    let choice = |key: &'static str, text: &'static str| {
        vec![
            Span::styled(format!("{key:<4}"), look.key()),
            Span::styled(text, look.text()),
        ]
    };
    let mut lines = Vec::new();
    if state.run_under_way() {
        lines.push(choice("r", "the run, at once"));
    }
    lines.push(choice("s", "the server only"));
    lines.push(choice("a", "everything"));
    if let Some(running) = state.observed.running_requests() {
        let text = format!("! {} running", words::amount(running.round(), "request"));
        lines.extend(small::plain(&text, width, look.warn()));
    }
    lines
}

/// A key and what it stops, in as many lines as that takes.
fn choice(scene: &Scene<'_>, key: &str, text: &str, width: u16) -> Vec<Line> {
    let look = scene.look;
    let mut lines = broken(text, KEYS, width, look.text());
    // The key takes the place of the first line's indent.
    if let Some(first) = lines.first_mut().and_then(|l| l.first_mut()) {
        *first = Span::styled(format!("  {key:<5}"), look.key());
    }
    lines
}
