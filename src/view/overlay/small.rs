//! What stands over the panes where there is no room for a frame: the question in whole words on top, and under it what one has to know to answer.

use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Span;

use crate::view::Scene;
use crate::view::canvas::Canvas;
use crate::view::regions::{Regions, Scrolled};
use crate::view::widgets::wrap::wrap;

use super::{Line, line};

/// Height below which a frame costs too much.
const LOW: u16 = 9;

/// Width below which a frame costs too much.
const NARROW: u16 = 32;

/// Rows that a title may take.
const TITLE: usize = 2;

/// Whether there is no room for a frame.
pub(super) fn small(area: Rect) -> bool {
    area.height < LOW || area.width < NARROW
}

/// A text in lines as wide as the screen: an indent would cost too much.
pub(super) fn plain(text: &str, width: u16, style: Style) -> Vec<Line> {
    wrap(text, width).into_iter().map(|piece| line(piece, style)).collect()
}

/// Draws a title and a text under it, which scrolls. What is out of sight is counted at the right end of a row.
pub(super) fn draw(
    scene: &Scene<'_>,
    canvas: &mut Canvas<'_>,
    area: Rect,
    title: &str,
    lines: &[Line],
    regions: &mut Regions,
) {
    let look = scene.look;
    canvas.clear(area, look.text());
    let mut y = area.y;
    for piece in wrap(title, area.width).into_iter().take(TITLE) {
        if y < area.bottom() {
            canvas.spans(area.x, y, area.width, &line(piece, look.focus()));
            y += 1;
        }
    }
    let under = Rect::new(area.x, y, area.width, area.bottom().saturating_sub(y));
    let first = lines.iter().position(|l| !l.is_empty()).unwrap_or(0);
    let lines = lines.get(first..).unwrap_or_default();
    let rows = under.height;
    let total = u16::try_from(lines.len()).unwrap_or(u16::MAX);
    let mut scrolled = Scrolled { top: 0, rows, total };
    scrolled.top = scene.state.screen.overlay_top.min(scrolled.last_top());
    text(scene, canvas, under, lines, scrolled);
    regions.scrolled = Some(scrolled);
}

/// Draws the lines of a text that are in sight, and how many are above and below.
pub(super) fn text(scene: &Scene<'_>, canvas: &mut Canvas<'_>, area: Rect, lines: &[Line], scrolled: Scrolled) {
    let last = scrolled.top.saturating_add(scrolled.rows).min(scrolled.total);
    let marks = [
        (scrolled.top, area.y, '↑'),
        (scrolled.total - last, area.bottom().saturating_sub(1), '↓'),
    ];
    let shown = lines.iter().skip(usize::from(scrolled.top));
    for (y, line) in (area.y..area.bottom()).zip(shown) {
        let said: Vec<String> = marks
            .iter()
            .filter(|(n, at, _)| *n > 0 && *at == y)
            .map(|(n, _, arrow)| format!(" {arrow}{n}"))
            .collect();
        let said = said.concat();
        let width = u16::try_from(said.chars().count()).unwrap_or(0);
        let room = area.width.saturating_sub(width);
        canvas.spans(area.x, y, room, line);
        if width > 0 && room > 0 {
            let style = scene.look.key();
            canvas.spans(area.x + room, y, width, &[Span::styled(said, style)]);
        }
    }
}
