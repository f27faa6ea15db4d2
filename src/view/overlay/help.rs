//! The keys, from the same table that gives them their meaning.

use ratatui::layout::Rect;
use ratatui::text::Span;

use crate::input;
use crate::view::Scene;
use crate::view::canvas::Canvas;
use crate::view::regions::Regions;
use crate::view::widgets::row::Row;

use super::{Line, boxed, line};

/// Width of the keys' column.
const KEYS: usize = 11;

pub(super) fn draw(scene: &Scene<'_>, canvas: &mut Canvas<'_>, area: Rect, regions: &mut Regions) {
    let look = scene.look;
    let mut title = Row::new();
    title.put(0, "keys", look.focus());
    let mut lines = Vec::new();
    for (group, bindings) in input::help() {
        if !lines.is_empty() {
            lines.push(Line::new());
        }
        lines.push(line(group.title(), look.title()));
        for binding in bindings {
            lines.push(vec![
                Span::styled(format!("  {:<KEYS$}", binding.keys), look.key()),
                Span::styled(binding.help, look.text()),
            ]);
        }
    }
    lines.push(Line::new());
    lines.push(line("Closing this console stops nothing on the cluster.", look.dim()));
    boxed(scene, canvas, area, title, &lines, regions);
}
