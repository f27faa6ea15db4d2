//! Frames around panes and overlays.

use ratatui::layout::Rect;
use ratatui::style::Style;

use super::row::Row;
use crate::view::canvas::Canvas;

/// How a frame looks.
#[derive(Clone, Copy)]
pub(in crate::view) struct Border {
    /// Style of the lines.
    pub style: Style,
    /// Drawn with heavy lines, so that the focus shows without a colour.
    pub heavy: bool,
    /// Whether it has sides: without them, text can be selected with the mouse and nothing else comes with it.
    pub sides: bool,
}

impl Border {
    /// Flat line, side, then the corners from the upper left on, left to right.
    fn parts(self) -> [&'static str; 6] {
        match (self.sides, self.heavy) {
            (true, true) => ["━", "┃", "┏", "┓", "┗", "┛"],
            (true, false) => ["─", "│", "╭", "╮", "╰", "╯"],
            (false, true) => ["━", "", "━", "━", "━", "━"],
            (false, false) => ["─", "", "─", "─", "─", "─"],
        }
    }
}

/// Draws a frame and gives the rectangle inside it. A rectangle too small for a frame is left empty.
pub(in crate::view) fn frame(
    canvas: &mut Canvas<'_>,
    area: Rect,
    border: Border,
    title: Row<'_>,
    foot: Row<'_>,
) -> Rect {
    if area.width < 2 || area.height < 2 {
        return Rect::new(area.x, area.y, 0, 0);
    }
    let [flat, side, tl, tr, bl, br] = border.parts();
    let line = flat.repeat(usize::from(area.width - 2));
    let (right, bottom) = (area.right() - 1, area.bottom() - 1);
    for (y, l, r) in [(area.y, tl, tr), (bottom, bl, br)] {
        canvas.text(area.x, y, area.width, &format!("{l}{line}{r}"), border.style);
    }
    for y in area.y + 1..bottom {
        canvas.text(area.x, y, 1, side, border.style);
        canvas.text(right, y, 1, side, border.style);
    }
    let inner = area.width.saturating_sub(4);
    if inner > 0 {
        title.draw(canvas, area.x + 2, area.y, inner);
        foot.draw(canvas, area.x + 2, bottom, inner);
    }
    let side = u16::from(border.sides);
    Rect::new(area.x + side, area.y + 1, area.width - 2 * side, area.height - 2)
}

/// A line across a frame, from side to side.
pub(in crate::view) fn divide(canvas: &mut Canvas<'_>, area: Rect, y: u16, border: Border) {
    if area.width < 2 {
        return;
    }
    let (l, r) = match (border.sides, border.heavy) {
        (true, true) => ("┠", "┨"),
        (true, false) => ("├", "┤"),
        (false, _) => ("─", "─"),
    };
    let line = "─".repeat(usize::from(area.width - 2));
    canvas.text(area.x, y, area.width, &format!("{l}{line}{r}"), border.style);
}

/// A rectangle of at most this size in the middle of `area`.
pub(in crate::view) fn centred(area: Rect, width: u16, height: u16) -> Rect {
    let (w, h) = (width.min(area.width), height.min(area.height));
    Rect::new(area.x + (area.width - w) / 2, area.y + (area.height - h) / 2, w, h)
}
