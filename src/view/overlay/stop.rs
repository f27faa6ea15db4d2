//! Which stop is wanted.

use ratatui::layout::Rect;
use ratatui::text::Span;

use crate::view::Scene;
use crate::view::canvas::Canvas;
use crate::view::regions::Regions;
use crate::view::widgets::row::Row;

use super::{Line, boxed, line};

pub(super) fn draw(scene: &Scene<'_>, canvas: &mut Canvas<'_>, area: Rect, regions: &mut Regions) {
    let (state, look) = (scene.state, scene.look);
    let mut title = Row::new();
    title.put(0, "stop what?", look.focus());
    let names: Vec<&str> = state.config.nodes.iter().map(|n| n.name.as_str()).collect();
    let choice = |key: &str, text: String| -> Line {
        vec![
            Span::styled(format!("  {key:<5}"), look.key()),
            Span::styled(text, look.text()),
        ]
    };
    let mut lines = vec![Line::new()];
    if state.run.as_ref().is_some_and(|run| run.outcome().is_none()) {
        lines.push(choice("r", "the run under way: no further step".to_owned()));
    }
    lines.extend([
        choice("s", format!("the model server only ({})", state.config.serve.name())),
        choice(
            "a",
            format!("everything: the server, and the containers on {}", names.join(", ")),
        ),
        choice("Esc", "nothing".to_owned()),
        Line::new(),
    ]);
    let running = state.observed.server.metrics.value().and_then(|m| m.running);
    if let Some(running) = running.filter(|n| *n >= 1.0) {
        let text = format!("  ! requests running now: {running:.0}; they will fail");
        lines.push(line(text, look.warn()));
    }
    lines.push(line(
        "  The plan is shown first; nothing runs before Enter.",
        look.dim(),
    ));
    boxed(scene, canvas, area, title, &lines, regions);
}
