//! What stands over the panes: plans, the stop menu, commands, help and questions. A run's steps are a pane (`run`), so that the logs stay in sight.

mod commands;
mod help;
mod plan;
mod question;
pub(super) mod run;
mod small;
mod stop;
mod test;

use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Span;

use crate::domain::intent::Mode;

use super::Scene;
use super::canvas::Canvas;
use super::regions::{Regions, Scrolled};
use super::widgets::boxes::{Border, centred, frame};
use super::widgets::row::Row;
use super::widgets::wrap::wrap;

use small::small;

/// Narrowest box, so that its title and foot can be read.
const NARROWEST: u16 = 40;

/// A line of an overlay's text.
type Line = Vec<Span<'static>>;

/// Draws what stands over the panes.
pub(super) fn draw(scene: &Scene<'_>, canvas: &mut Canvas<'_>, area: Rect, regions: &mut Regions) {
    match scene.state.screen.mode {
        Mode::Panes | Mode::Run => {}
        Mode::Plan => plan::draw(scene, canvas, area, regions),
        Mode::Test => test::draw(scene, canvas, area, regions),
        Mode::StopMenu => stop::draw(scene, canvas, area, regions),
        Mode::Commands => commands::draw(scene, canvas, area, regions),
        Mode::Help => help::draw(scene, canvas, area, regions),
        Mode::Question => question::draw(scene, canvas, area, regions),
    }
}

/// The widest that a text of an overlay may be in `area`.
fn text_width(area: Rect) -> u16 {
    if small(area) {
        area.width
    } else {
        area.width.saturating_sub(4)
    }
}

/// A frame in the middle as large as its text, which scrolls when it is longer than the screen.
fn boxed(
    scene: &Scene<'_>,
    canvas: &mut Canvas<'_>,
    area: Rect,
    title: Row<'_>,
    lines: &[Line],
    regions: &mut Regions,
) {
    if small(area) {
        small::draw(scene, canvas, area, &title.words(), lines, regions);
        return;
    }
    let widest = lines
        .iter()
        .map(|l| l.iter().map(Span::width).sum::<usize>())
        .max()
        .unwrap_or(0);
    let widest = u16::try_from(widest).unwrap_or(u16::MAX);
    let width = widest.clamp(NARROWEST, text_width(area).max(NARROWEST)) + 4;
    let height = u16::try_from(lines.len()).unwrap_or(u16::MAX).saturating_add(2);
    place(scene, canvas, centred(area, width, height), title, lines, regions);
}

/// A text that takes all of `area`.
fn whole(
    scene: &Scene<'_>,
    canvas: &mut Canvas<'_>,
    area: Rect,
    title: Row<'_>,
    lines: &[Line],
    regions: &mut Regions,
) {
    if small(area) {
        small::draw(scene, canvas, area, &title.words(), lines, regions);
    } else {
        place(scene, canvas, area, title, lines, regions);
    }
}

/// Whether a box around so many lines has its place in `area`.
fn fits(area: Rect, lines: &[Line]) -> bool {
    !small(area) && lines.len() + 2 <= usize::from(area.height)
}

/// A frame around a text that scrolls when it is longer than its place.
fn place(
    scene: &Scene<'_>,
    canvas: &mut Canvas<'_>,
    rect: Rect,
    title: Row<'_>,
    lines: &[Line],
    regions: &mut Regions,
) {
    let look = scene.look;
    let rows = rect.height.saturating_sub(2);
    let total = u16::try_from(lines.len()).unwrap_or(u16::MAX);
    let mut scrolled = Scrolled { top: 0, rows, total };
    scrolled.top = scene.state.screen.overlay_top.min(scrolled.last_top());
    canvas.clear(rect, look.text());
    let border = Border {
        style: look.focus(),
        heavy: true,
        sides: true,
    };
    let inner = frame(canvas, rect, border, title.over_border(), foot(scene, scrolled));
    let shown = lines.iter().skip(usize::from(scrolled.top));
    for (y, line) in (inner.y..inner.bottom()).zip(shown) {
        canvas.spans(inner.x + 1, y, inner.width.saturating_sub(2), line);
    }
    regions.scrolled = Some(scrolled);
}

/// Says that there is more, and where; and what the terminal has to say, since the line for that may be hidden.
fn foot<'a>(scene: &Scene<'a>, s: Scrolled) -> Row<'a> {
    let mut row = Row::new();
    if let Some(told) = scene.told {
        row.put(0, told, scene.look.good());
    }
    if s.total > s.rows {
        let last = (s.top + s.rows).min(s.total);
        // What is typed at a question may be part of a secret.
        let keys = if scene.state.screen.mode == Mode::Question {
            ""
        } else {
            ", j k scroll"
        };
        let text = format!("lines {}-{last} of {}{keys}", s.top + 1, s.total);
        row.put(1, text, scene.look.key()).right();
    }
    row.over_border()
}

/// A text broken into lines, the later ones indented by two more.
fn broken(text: &str, indent: u16, width: u16, style: Style) -> Vec<Line> {
    let pad = |n: u16| Span::raw(" ".repeat(usize::from(n)));
    let room = width.saturating_sub(indent + 2).max(10);
    let pieces = wrap(text, room).into_iter().enumerate();
    pieces
        .map(|(i, piece)| {
            vec![
                pad(if i == 0 { indent } else { indent + 2 }),
                Span::styled(piece, style),
            ]
        })
        .collect()
}

/// One span as a line.
fn line(text: impl Into<String>, style: Style) -> Line {
    vec![Span::styled(text.into(), style)]
}
