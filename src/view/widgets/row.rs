//! One line made of pieces: what matters least goes first when there is no room, bars and histories take what is left over.

use std::borrow::Cow;
use std::time::Duration;

use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Span;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::domain::Stamp;
use crate::model::series::Series;

use super::bar::bar;
use super::spark::spark;
use crate::view::canvas::Canvas;

/// Cells between two pieces.
const GAP: u16 = 2;

/// A line.
pub(in crate::view) struct Row<'a> {
    pieces: Vec<Piece<'a>>,
    /// Drawn over a border: blanks around and between the pieces.
    over_border: bool,
    /// Stands closer before a piece is lost.
    closes: bool,
    /// Cells between two pieces.
    gap: u16,
}

struct Piece<'a> {
    body: Body<'a>,
    /// 0 stays always; the highest rank is the first to go.
    rank: u8,
    /// Stands at the right end.
    right: bool,
    /// Follows the piece before without a gap.
    tight: bool,
}

enum Body<'a> {
    Spans(Vec<Span<'a>>),
    Bar {
        share: f64,
        style: Style,
        min: u16,
        max: u16,
    },
    Spark(History<'a>, u16, u16),
}

impl Body<'_> {
    fn min(&self) -> u16 {
        match self {
            Self::Spans(spans) => u16::try_from(spans.iter().map(Span::width).sum::<usize>()).unwrap_or(u16::MAX),
            Self::Bar { min, .. } | Self::Spark(_, min, _) => *min,
        }
    }

    fn max(&self) -> u16 {
        match self {
            Self::Spans(_) => self.min(),
            Self::Bar { max, .. } | Self::Spark(_, _, max) => *max,
        }
    }
}

impl<'a> Row<'a> {
    pub(in crate::view) fn new() -> Self {
        Self {
            pieces: Vec::new(),
            over_border: false,
            closes: false,
            gap: GAP,
        }
    }

    fn push(&mut self, rank: u8, body: Body<'a>) -> &mut Self {
        self.pieces.push(Piece {
            body,
            rank,
            right: false,
            tight: false,
        });
        self
    }

    /// Adds a text.
    pub(in crate::view) fn put(&mut self, rank: u8, text: impl Into<Cow<'a, str>>, style: Style) -> &mut Self {
        self.push(rank, Body::Spans(vec![Span::styled(text, style)]))
    }

    /// Adds a text as its first clause, which stays as long as `rank` says, and the later ones, which go before it.
    pub(in crate::view) fn clauses(&mut self, rank: u8, text: &str, style: Style) -> &mut Self {
        let (first, mut rest) = text.split_at(clause_end(text));
        self.put(rank, first.to_owned(), style);
        while !rest.is_empty() {
            let (next, after) = rest.split_at(clause_end(rest));
            self.put(rank.saturating_add(1), next.to_owned(), style).tight();
            rest = after;
        }
        self
    }

    /// Adds several spans as one piece.
    pub(in crate::view) fn spans(&mut self, rank: u8, spans: Vec<Span<'a>>) -> &mut Self {
        self.push(rank, Body::Spans(spans))
    }

    /// Adds a bar between `min` and `max` cells wide.
    pub(in crate::view) fn bar(&mut self, rank: u8, share: f64, style: Style, (min, max): (u16, u16)) -> &mut Self {
        self.push(rank, Body::Bar { share, style, min, max })
    }

    /// Adds a history between `min` and `max` cells wide.
    pub(in crate::view) fn spark(&mut self, rank: u8, history: History<'a>, (min, max): (u16, u16)) -> &mut Self {
        self.push(rank, Body::Spark(history, min, max))
    }

    /// Moves the piece added last to the right end.
    pub(in crate::view) fn right(&mut self) -> &mut Self {
        if let Some(p) = self.pieces.last_mut() {
            p.right = true;
        }
        self
    }

    /// Puts the piece added last directly after the one before.
    pub(in crate::view) fn tight(&mut self) -> &mut Self {
        if let Some(p) = self.pieces.last_mut() {
            p.tight = true;
        }
        self
    }

    /// Makes it fit to stand on a border: blanks around and between its pieces.
    #[must_use]
    pub(in crate::view) fn over_border(mut self) -> Self {
        self.over_border = true;
        self
    }

    /// Lets its pieces stand closer before one of them is lost.
    #[must_use]
    pub(in crate::view) fn closing(mut self) -> Self {
        self.closes = true;
        self
    }

    /// The words of what stays always.
    pub(in crate::view) fn words(&self) -> String {
        let mut words: Vec<&str> = Vec::new();
        for piece in self.pieces.iter().filter(|p| p.rank == 0) {
            match &piece.body {
                Body::Spans(spans) => words.extend(spans.iter().map(|s| s.content.trim())),
                Body::Bar { .. } | Body::Spark(..) => {}
            }
        }
        words.join(" ")
    }

    /// Draws within `width` cells.
    pub(in crate::view) fn draw(mut self, canvas: &mut Canvas<'_>, x: u16, y: u16, width: u16) {
        if (self.over_border || self.closes) && self.min() > width {
            // A title stands closer before it loses a piece.
            self.gap = 1;
        }
        self.drop_until_it_fits(width);
        let spare = width.saturating_sub(self.min());
        let flexible: Vec<u16> = self
            .pieces
            .iter()
            .map(|p| p.body.max().saturating_sub(p.body.min()))
            .collect();
        let extra = share_out(spare, &flexible);
        let end = x.saturating_add(width);
        let left_end = self.group(canvas, x, y, end, &extra, false);
        let right = self.sum(&extra, true);
        self.group(canvas, left_end.max(end.saturating_sub(right)), y, end, &extra, true);
    }

    /// Draws the pieces of one side from `x` on and gives where they end.
    fn group(&self, canvas: &mut Canvas<'_>, x: u16, y: u16, end: u16, extra: &[u16], right: bool) -> u16 {
        let mut at = x;
        let mut first = true;
        for (piece, extra) in self.pieces.iter().zip(extra).filter(|(p, _)| p.right == right) {
            let gap = match (first, self.over_border) {
                (true, true) => 1,
                (true, false) => 0,
                (false, _) if piece.tight => 0,
                (false, _) => self.gap,
            };
            first = false;
            let room = end.saturating_sub(at).saturating_sub(gap);
            let w = piece.body.min().saturating_add(*extra).min(room);
            if self.over_border {
                // The border's style must not shine through.
                canvas.clear(
                    Rect::new(at, y, (gap + w + 1).min(end.saturating_sub(at)), 1),
                    Style::new(),
                );
            }
            at = at.saturating_add(gap).min(end);
            at = match &piece.body {
                Body::Spans(spans) => match spans.as_slice() {
                    [one] => canvas.text(at, y, room, &whole_words(&one.content, room), one.style),
                    _ => canvas.spans(at, y, room, spans),
                },
                Body::Bar { share, style, .. } => canvas.text(at, y, w, &bar(*share, w), *style),
                Body::Spark(history, ..) => canvas.text(at, y, w, &history.text(w), history.style),
            };
        }
        if self.over_border && !first {
            at.saturating_add(1).min(end)
        } else {
            at
        }
    }

    fn drop_until_it_fits(&mut self, width: u16) {
        while self.min() > width {
            let worst = self.pieces.iter().map(|p| p.rank).max().unwrap_or(0);
            let Some(at) = self.pieces.iter().rposition(|p| p.rank == worst && worst > 0) else {
                return;
            };
            self.pieces.remove(at);
        }
    }

    /// Cells of all pieces at their narrowest, with the gaps.
    fn min(&self) -> u16 {
        let none = vec![0; self.pieces.len()];
        let (left, right) = (self.sum(&none, false), self.sum(&none, true));
        let between = if left > 0 && right > 0 && !self.over_border {
            self.gap
        } else {
            0
        };
        left.saturating_add(right).saturating_add(between)
    }

    fn sum(&self, extra: &[u16], right: bool) -> u16 {
        let mut total = 0u16;
        let mut first = true;
        for (p, e) in self.pieces.iter().zip(extra).filter(|(p, _)| p.right == right) {
            let gap = if first || p.tight { 0 } else { self.gap };
            first = false;
            total = total
                .saturating_add(gap)
                .saturating_add(p.body.min())
                .saturating_add(*e);
        }
        if self.over_border && !first {
            total.saturating_add(2)
        } else {
            total
        }
    }
}

/// A text that is too long for its room without the word that would be cut, where most of the room is left.
fn whole_words(text: &str, room: u16) -> Cow<'_, str> {
    let room = usize::from(room);
    if text.width() <= room {
        return text.into();
    }
    let mut cells = 0;
    let mut end = None;
    for (at, c) in text.char_indices() {
        // One cell is the mark's.
        if cells >= room {
            break;
        }
        if c == ' ' {
            end = Some(at).filter(|_| cells * 2 >= room);
        }
        cells += c.width().unwrap_or(0);
    }
    match end.and_then(|end| text.get(..end)) {
        Some(words) => format!("{}…", words.trim_end()).into(),
        None => text.into(),
    }
}

/// Where a text's first clause ends: before the mark that the next one begins with.
fn clause_end(text: &str) -> usize {
    let later = |mark| text.match_indices(mark).map(|(at, _)| at).find(|at| *at > 0);
    let ends = [": ", "; ", ", and "].into_iter().filter_map(later);
    ends.min().unwrap_or(text.len())
}

/// A history to draw.
#[derive(Clone, Copy)]
pub(in crate::view) struct History<'a> {
    /// Points.
    pub series: &'a Series,
    /// The right end.
    pub now: Stamp,
    /// From the left end to the right.
    pub span: Duration,
    /// Value of a full column.
    pub top: f64,
    /// Style of the columns.
    pub style: Style,
}

impl History<'_> {
    fn text(&self, width: u16) -> String {
        spark(self.series, self.now, self.span, width, self.top)
    }
}

/// Shares spare cells out over those who can take them, evenly.
fn share_out(spare: u16, room: &[u16]) -> Vec<u16> {
    let mut given = vec![0u16; room.len()];
    let mut left = spare;
    while left > 0 {
        let mut any = false;
        for (g, r) in given.iter_mut().zip(room) {
            if left > 0 && *g < *r {
                *g += 1;
                left -= 1;
                any = true;
            }
        }
        if !any {
            break;
        }
    }
    given
}

#[cfg(test)]
mod tests {
    use ratatui::buffer::Buffer;

    use super::*;
    use crate::view::look::Glyphs;

    fn drawn(build: impl Fn(&mut Row<'_>), width: u16) -> String {
        let mut buffer = Buffer::empty(Rect::new(0, 0, width, 1));
        let mut row = Row::new();
        build(&mut row);
        row.draw(&mut Canvas::new(&mut buffer, Glyphs::Unicode), 0, 0, width);
        buffer.content().iter().map(ratatui::buffer::Cell::symbol).collect()
    }

    fn sample(row: &mut Row<'_>) {
        let s = Style::default();
        row.put(0, "mem", s)
            .bar(1, 0.5, s, (4, 6))
            .put(2, "12 GiB", s)
            .put(3, "old", s)
            .right();
    }

    #[test]
    fn the_highest_rank_goes_first_and_bars_take_what_is_left() {
        let cases = [
            (24, "mem  ▕██  ▏  12 GiB  old"),
            (22, "mem  ▕█ ▏  12 GiB  old"),
            (19, "mem  ▕██  ▏  12 GiB"),
            (17, "mem  ▕█ ▏  12 GiB"),
            (9, "mem  ▕█ ▏"),
            (3, "mem"),
            (2, "m…"),
        ];
        for (width, text) in cases {
            assert_eq!(drawn(sample, width), text, "{width}");
        }
    }

    #[test]
    fn the_later_clauses_of_a_text_go_whole_and_the_first_stays() {
        let text = |row: &mut Row<'_>| {
            row.clauses(0, "ready: T tests, y copies; q leaves", Style::default());
        };
        for (width, shown) in [
            (34, "ready: T tests, y copies; q leaves"),
            (33, "ready: T tests, y copies         "),
            (24, "ready: T tests, y copies"),
            (23, "ready                  "),
            (4, "rea…"),
        ] {
            assert_eq!(drawn(text, width), shown, "{width}");
        }
    }

    #[test]
    fn a_text_that_is_too_long_is_cut_between_words_unless_one_word_is_most_of_it() {
        let text = |row: &mut Row<'_>| {
            row.put(0, "no container vllm-qwen35 runs", Style::default());
        };
        for (width, shown) in [
            (29, "no container vllm-qwen35 runs"),
            (28, "no container vllm-qwen35…   "),
            (25, "no container vllm-qwen35…"),
            (24, "no container…           "),
            (13, "no container…"),
            (12, "no containe…"),
        ] {
            assert_eq!(drawn(text, width), shown, "{width}");
        }
    }

    #[test]
    fn the_right_piece_stands_at_the_end() {
        assert_eq!(drawn(sample, 28), "mem  ▕██  ▏  12 GiB      old");
    }
}
