//! A frame as a picture, for the manual: SVG with its colours in it.
//!
//! Boxes, bars and blocks are drawn as shapes, not as letters: they meet without gaps whatever font the reader has.

use std::fmt::Write;

use ratatui::buffer::{Buffer, Cell};
use ratatui::style::{Color, Modifier, Style};

/// Width of a cell; the advance of common monospace fonts at [`FONT`].
const W: f32 = 8.4;

/// Height of a cell.
const H: f32 = 18.0;

/// Font size.
const FONT: f32 = 14.0;

/// Free space around the screen.
const PAD: f32 = 12.0;

/// Foreground of the picture.
const FOREGROUND: &str = "#d8dee4";

/// Background of the picture.
const BACKGROUND: &str = "#12161c";

/// The picture of a frame.
#[must_use]
pub fn svg(buffer: &Buffer) -> String {
    let area = buffer.area;
    let width = f32::from(area.width) * W + 2.0 * PAD;
    let height = f32::from(area.height) * H + 2.0 * PAD;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" viewBox=\"0 0 {width:.1} {height:.1}\" \
         font-family=\"ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace\" font-size=\"{FONT}\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"{BACKGROUND}\"/>\n"
    );
    for y in 0..area.height {
        row(buffer, y, &mut out);
    }
    out.push_str("</svg>\n");
    out
}

/// A run of cells in one style.
struct Run {
    start: u16,
    text: String,
    style: Style,
}

fn row(buffer: &Buffer, y: u16, out: &mut String) {
    let area = buffer.area;
    let mut run: Option<Run> = None;
    let mut hidden = 0;
    for x in 0..area.width {
        let Some(cell) = buffer.cell((area.x + x, area.y + y)) else {
            continue;
        };
        background(cell, x, y, out);
        if hidden > 0 {
            hidden -= 1;
            continue;
        }
        hidden = unicode_width::UnicodeWidthStr::width(cell.symbol()).saturating_sub(1);
        let style = cell.style();
        if shape(cell, x, y, out) || cell.symbol() == " " {
            // A blank ends a run: only runs without blanks keep their place in every font.
            flush(run.take(), y, out);
            continue;
        }
        match &mut run {
            Some(r) if r.style == style => r.text.push_str(cell.symbol()),
            Some(_) | None => {
                flush(run.take(), y, out);
                run = Some(Run {
                    start: x,
                    text: cell.symbol().to_owned(),
                    style,
                });
            }
        }
    }
    flush(run, y, out);
}

fn background(cell: &Cell, x: u16, y: u16, out: &mut String) {
    let (_, bg) = colors(cell.style());
    if bg != BACKGROUND {
        rect(out, left(x), top(y), W, H, bg, 1.0);
    }
}

fn flush(run: Option<Run>, y: u16, out: &mut String) {
    let Some(run) = run else { return };
    let (fg, _) = colors(run.style);
    let mut extra = String::new();
    if has(run.style, Modifier::BOLD) {
        extra.push_str(" font-weight=\"bold\"");
    }
    if has(run.style, Modifier::DIM) {
        extra.push_str(" opacity=\"0.62\"");
    }
    if has(run.style, Modifier::UNDERLINED) {
        extra.push_str(" text-decoration=\"underline\"");
    }
    let cells = unicode_width::UnicodeWidthStr::width(run.text.as_str());
    #[expect(clippy::cast_precision_loss, reason = "a screen's width")]
    let length = cells as f32 * W;
    let _ = writeln!(
        out,
        "<text x=\"{:.1}\" y=\"{:.1}\" textLength=\"{length:.1}\" fill=\"{fg}\"{extra} xml:space=\"preserve\">{}</text>",
        left(run.start),
        top(y) + H * 0.72,
        escape(&run.text),
    );
}

/// Draws a box or block character as a shape; whether it was one.
fn shape(cell: &Cell, x: u16, y: u16, out: &mut String) -> bool {
    let mut chars = cell.symbol().chars();
    let (Some(c), None) = (chars.next(), chars.next()) else {
        return false;
    };
    let (fg, _) = colors(cell.style());
    let opacity = if has(cell.style(), Modifier::DIM) { 0.62 } else { 1.0 };
    let (l, t) = (left(x), top(y));
    if let Some((part, from_left)) = horizontal_eighths(c) {
        let w = W * part / 8.0;
        let x = if from_left { l } else { l + W - w };
        rect(out, x, t + H * 0.16, w, H * 0.68, fg, opacity);
        return true;
    }
    if let Some(part) = vertical_eighths(c) {
        let h = (H - 3.0) * part / 8.0;
        rect(out, l, t + H - 1.5 - h, W - 1.0, h, fg, opacity);
        return true;
    }
    let Some((arms, heavy)) = arms(c) else { return false };
    let thick = if heavy { 2.4 } else { 1.2 };
    let (cx, cy) = (l + W / 2.0, t + H / 2.0);
    let path: String = arms
        .chars()
        .map(|arm| match arm {
            'l' => format!("M{cx:.1} {cy:.1}H{l:.1}"),
            'r' => format!("M{cx:.1} {cy:.1}H{:.1}", l + W),
            'u' => format!("M{cx:.1} {cy:.1}V{t:.1}"),
            _ => format!("M{cx:.1} {cy:.1}V{:.1}", t + H),
        })
        .collect();
    let _ = writeln!(
        out,
        "<path d=\"{path}\" stroke=\"{fg}\" stroke-width=\"{thick}\" stroke-linecap=\"square\" opacity=\"{opacity}\"/>"
    );
    true
}

/// The eighths of a cell that a block fills from a side, and whether that is the left one.
fn horizontal_eighths(c: char) -> Option<(f32, bool)> {
    let part = match c {
        '▏' => 1.0,
        '▎' => 2.0,
        '▍' => 3.0,
        '▌' => 4.0,
        '▋' => 5.0,
        '▊' => 6.0,
        '▉' => 7.0,
        '█' => 8.0,
        '▕' => return Some((1.0, false)),
        _ => return None,
    };
    Some((part, true))
}

/// The eighths of a cell that a column fills from below.
fn vertical_eighths(c: char) -> Option<f32> {
    let at = "▁▂▃▄▅▆▇".chars().position(|b| b == c)?;
    u8::try_from(at + 1).ok().map(f32::from)
}

/// The arms of a box character (left, right, up, down), and whether it is heavy.
fn arms(c: char) -> Option<(&'static str, bool)> {
    Some(match c {
        '─' => ("lr", false),
        '│' => ("ud", false),
        '╭' => ("rd", false),
        '╮' => ("ld", false),
        '╰' => ("ru", false),
        '╯' => ("lu", false),
        '├' => ("udr", false),
        '┤' => ("udl", false),
        '━' => ("lr", true),
        '┃' => ("ud", true),
        '┏' => ("rd", true),
        '┓' => ("ld", true),
        '┗' => ("ru", true),
        '┛' => ("lu", true),
        '┠' => ("udr", true),
        '┨' => ("udl", true),
        _ => return None,
    })
}

fn rect(out: &mut String, x: f32, y: f32, w: f32, h: f32, fill: &str, opacity: f32) {
    let _ = writeln!(
        out,
        "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{w:.1}\" height=\"{h:.1}\" fill=\"{fill}\" opacity=\"{opacity}\"/>"
    );
}

fn left(x: u16) -> f32 {
    PAD + f32::from(x) * W
}

fn top(y: u16) -> f32 {
    PAD + f32::from(y) * H
}

fn has(style: Style, modifier: Modifier) -> bool {
    style.add_modifier.contains(modifier)
}

/// Foreground and background, exchanged where the style says so.
fn colors(style: Style) -> (&'static str, &'static str) {
    let fg = style.fg.map_or(FOREGROUND, |c| hex(c, FOREGROUND));
    let bg = style.bg.map_or(BACKGROUND, |c| hex(c, BACKGROUND));
    if has(style, Modifier::REVERSED) {
        (bg, fg)
    } else {
        (fg, bg)
    }
}

/// A readable palette on the dark background.
fn hex(color: Color, default: &'static str) -> &'static str {
    match color {
        Color::Black => "#0b0e12",
        Color::Red => "#f2636c",
        Color::Green => "#7ccf7c",
        Color::Yellow => "#e6c35c",
        Color::Blue => "#6aa6f8",
        Color::Magenta => "#cf8ef4",
        Color::Cyan => "#5cc8d7",
        Color::Gray => "#c3cad3",
        Color::DarkGray => "#7d8794",
        Color::LightRed => "#ff8a91",
        Color::LightGreen => "#9be29b",
        Color::LightYellow => "#f5d98a",
        Color::LightBlue => "#95c2ff",
        Color::LightMagenta => "#e0b3ff",
        Color::LightCyan => "#8be3ee",
        Color::White => "#f2f5f8",
        Color::Reset | Color::Rgb(..) | Color::Indexed(_) => default,
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use ratatui::layout::Rect;

    use super::*;

    #[test]
    fn text_is_escaped_and_blocks_are_shapes() {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 12, 2));
        buffer.set_string(0, 0, "a<b&c", Style::new().red());
        buffer.set_string(0, 1, "╭█ x", Style::new());
        let picture = svg(&buffer);
        assert!(picture.contains(">a&lt;b&amp;c</text>"), "{picture}");
        assert!(picture.contains("fill=\"#f2636c\""));
        assert!(!picture.contains('╭') && !picture.contains('█'));
        assert_eq!(picture.matches("<text").count(), 2);
        assert!(picture.ends_with("</svg>\n"));
    }

    #[test]
    fn a_selected_cell_has_its_colours_exchanged() {
        let mut buffer = Buffer::empty(Rect::new(0, 0, 1, 1));
        buffer.set_string(0, 0, "x", Style::new().reversed());
        assert!(svg(&buffer).contains(&format!("fill=\"{BACKGROUND}\" xml:space")));
    }
}
