//! The one place that writes text into the buffer: clips it, keeps control characters out, and maps to ASCII where the terminal has no more.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Span;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::look::Glyphs;

/// A buffer to draw on.
pub(super) struct Canvas<'a> {
    buffer: &'a mut Buffer,
    glyphs: Glyphs,
}

impl<'a> Canvas<'a> {
    pub(super) fn new(buffer: &'a mut Buffer, glyphs: Glyphs) -> Self {
        Self { buffer, glyphs }
    }

    /// Writes at most `width` cells and gives the column after the last one written. What does not fit ends in an ellipsis.
    pub(super) fn text(&mut self, x: u16, y: u16, width: u16, text: &str, style: Style) -> u16 {
        self.spans(x, y, width, &[Span::styled(text, style)])
    }

    /// As [`Self::text`], for spans with styles of their own.
    pub(super) fn spans(&mut self, x: u16, y: u16, width: u16, spans: &[Span<'_>]) -> u16 {
        let area = self.buffer.area;
        if y < area.y || y >= area.bottom() || x < area.x || x >= area.right() {
            return x;
        }
        let room = width.min(area.right() - x);
        let fits = spans.iter().map(|s| clean_width(&s.content)).sum::<usize>() <= usize::from(room);
        let end = x.saturating_add(if fits { room } else { room.saturating_sub(1) });
        let mut at = x;
        let mut last = Style::default();
        for span in spans {
            if at >= end {
                break;
            }
            let clean: String = span.content.chars().filter(|c| !c.is_control()).collect();
            let clean = match self.glyphs {
                Glyphs::Unicode => clean,
                Glyphs::Ascii => ascii(&clean),
            };
            last = span.style;
            at = self
                .buffer
                .set_stringn(at, y, &clean, usize::from(end - at), span.style)
                .0;
        }
        if !fits && room > 0 {
            let mark = match self.glyphs {
                Glyphs::Unicode => "…",
                Glyphs::Ascii => "~",
            };
            at = self.buffer.set_stringn(at, y, mark, 1, last).0;
        }
        at
    }

    /// Blanks a rectangle.
    pub(super) fn clear(&mut self, area: Rect, style: Style) {
        for y in area.top()..area.bottom() {
            for x in area.left()..area.right() {
                if let Some(cell) = self.buffer.cell_mut((x, y)) {
                    cell.reset();
                    cell.set_style(style);
                }
            }
        }
    }

    /// Lays a style over what is drawn already.
    pub(super) fn restyle(&mut self, area: Rect, style: Style) {
        self.buffer.set_style(area.intersection(self.buffer.area), style);
    }
}

/// Cells that a text takes when its control characters are left out.
fn clean_width(text: &str) -> usize {
    if text.chars().any(char::is_control) {
        text.chars().filter(|c| !c.is_control()).collect::<String>().width()
    } else {
        text.width()
    }
}

/// The same text with every character replaced by ASCII of the same width.
fn ascii(text: &str) -> String {
    if text.is_ascii() {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c.width().unwrap_or(0) {
            0 => {}
            1 => out.push(ascii_char(c)),
            _ => out.push_str("??"),
        }
    }
    out
}

/// The nearest ASCII character of one cell.
fn ascii_char(c: char) -> char {
    match c {
        ' '..='~' => c,
        '─' | '–' | '—' | '╌' => '-',
        '━' => '=',
        '│' | '┃' | '▏' | '▕' => '|',
        '╭' | '╮' | '╰' | '╯' | '├' | '┤' | '┬' | '┴' | '┼' | '┏' | '┓' | '┗' | '┛' | '┠' | '┨' | '✓' => {
            '+'
        }
        '✗' | '×' => 'x',
        '…' => '~',
        '·' | '▁' => '.',
        '▂' | '▎' => ':',
        '▃' | '▍' => '-',
        '▄' | '▌' => '=',
        '▅' | '▋' => '+',
        '▆' | '▊' => '*',
        '▇' | '▉' | '█' | '■' => '#',
        '●' => '*',
        '▸' | '→' | '▶' => '>',
        '°' | '\u{a0}' => ' ',
        '↑' => '^',
        '↓' => 'v',
        '←' => '<',
        '“' | '”' => '"',
        '‘' | '’' => '\'',
        _ => '?',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(buffer: &Buffer, y: u16) -> String {
        (0..buffer.area.width)
            .map(|x| buffer[(x, y)].symbol().to_owned())
            .collect()
    }

    fn drawn(width: u16, room: u16, glyphs: Glyphs, text: &str) -> String {
        let mut buffer = Buffer::empty(Rect::new(0, 0, width, 1));
        Canvas::new(&mut buffer, glyphs).text(0, 0, room, text, Style::default());
        row(&buffer, 0)
    }

    #[test]
    fn no_control_character_reaches_the_buffer() {
        assert_eq!(
            drawn(12, 12, Glyphs::Unicode, "a\u{1b}[31mb\r\n\u{9b}c\0"),
            "a[31mbc     "
        );
    }

    #[test]
    fn what_does_not_fit_ends_in_an_ellipsis_and_what_fits_does_not() {
        assert_eq!(drawn(6, 5, Glyphs::Unicode, "abcdef"), "abcd… ");
        assert_eq!(drawn(6, 5, Glyphs::Unicode, "abcde"), "abcde ");
        assert_eq!(drawn(6, 5, Glyphs::Ascii, "abcdef"), "abcd~ ");
        assert_eq!(drawn(6, 0, Glyphs::Unicode, "abcdef"), "      ");
    }

    #[test]
    fn a_wide_character_is_never_split() {
        assert_eq!(drawn(5, 4, Glyphs::Unicode, "日本語"), "日 …  ");
    }

    #[test]
    fn ascii_keeps_the_width() {
        assert_eq!(drawn(8, 8, Glyphs::Ascii, "╭─✓ é日"), "+-+ ??? ");
    }

    #[test]
    fn writing_outside_does_nothing() {
        let mut buffer = Buffer::empty(Rect::new(2, 2, 3, 1));
        let mut canvas = Canvas::new(&mut buffer, Glyphs::Unicode);
        for (x, y) in [(0, 2), (5, 2), (2, 1), (2, 3), (u16::MAX, u16::MAX)] {
            canvas.text(x, y, 9, "x", Style::default());
        }
        canvas.clear(Rect::new(0, 0, 9, 9), Style::default());
        assert!(buffer.content().iter().all(|c| c.symbol() == " "));
    }
}
