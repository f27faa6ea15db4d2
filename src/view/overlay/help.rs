//! The keys, from the same table that gives them their meaning.

use ratatui::layout::Rect;
use ratatui::text::Span;

use crate::input;
use crate::view::Scene;
use crate::view::canvas::Canvas;
use crate::view::regions::Regions;
use crate::view::widgets::row::Row;
use crate::view::widgets::wrap::wrap_spans;

use super::small::small;
use super::{Line, boxed, broken, line, text_width};

/// Width of the keys' column.
const KEYS: usize = 11;

/// Most lines of what a key does.
const LINES: usize = 20;

/// Where what they do begins.
const INDENT: u16 = 13;

pub(super) fn draw(scene: &Scene<'_>, canvas: &mut Canvas<'_>, area: Rect, regions: &mut Regions) {
    let look = scene.look;
    let mut title = Row::new();
    title.put(0, "keys", look.focus());
    let mut lines = Vec::new();
    for (group, bindings) in input::help() {
        if !lines.is_empty() {
            lines.push(Line::new());
        }
        lines.extend(broken(group.title(), 0, text_width(area), look.title()));
        for binding in bindings {
            if small(area) {
                let key = Span::styled(format!("{} ", binding.keys), look.key());
                let help = Span::styled(binding.help, look.text());
                lines.extend(wrap_spans([key, help], area.width, 2, LINES).0);
                continue;
            }
            let mut text = broken(binding.help, INDENT, text_width(area), look.text());
            // The keys take the place of the first line's indent.
            if let Some(first) = text.first_mut().and_then(|l| l.first_mut()) {
                *first = Span::styled(format!("  {:<KEYS$}", binding.keys), look.key());
            }
            lines.extend(text);
        }
    }
    lines.push(Line::new());
    lines.push(line("Closing this console stops nothing on the cluster.", look.dim()));
    boxed(scene, canvas, area, title, &lines, regions);
}
