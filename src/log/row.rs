//! The line that is being written: cells, a cursor, and what escape sequences do to them.

use unicode_width::UnicodeWidthChar;

use super::bar::{Bar, prefix_len};
use super::line::{Line, Span, Stream, Style};
use super::sgr;

/// Longest line kept, in characters. Longer ones are cut: an engine's configuration on one line has some thousands.
pub const MAX_CELLS: usize = 16 * 1024;

/// Furthest column that a cursor movement may reach beyond the text.
const MAX_COLUMN: usize = 512;

/// Most combining marks kept in a row on one character.
const MAX_MARKS: u8 = 4;

/// Columns between tab stops.
const TAB: usize = 8;

/// Length of the time that `docker logs --timestamps` puts before a line, with the space after it.
const TIME_LEN: usize = "2026-11-29T17:04:55.516948455Z ".len();

/// Its shape: every digit stands for one digit, everything else for itself.
const SHAPE: &str = "0000-00-00T00:00:00.000000000Z ";

/// A line without any of them is no bar, poll or news of NCCL's.
const BAR_MARKS: [char; 3] = ['%', '"', 'N'];

/// A character and how it looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cell {
    ch: char,
    style: Style,
}

/// The line that is being written on one stream.
#[derive(Debug, Default)]
pub struct Row {
    cells: Vec<Cell>,
    /// Where the next character goes.
    col: usize,
    /// Where a carriage return goes: after an owner prefix, so that a bar does not overwrite whose it is.
    home: usize,
    /// Style of the next character. It lasts over line ends, as on a terminal.
    pen: Style,
    time: Option<String>,
    cut: bool,
    /// The cursor left the line: the next character starts it anew.
    restart: bool,
    /// A carriage return was seen on this line.
    returned: bool,
    marks: u8,
    /// An owner prefix that stood alone on the line before: Ray splits a bar that begins with a carriage return this way.
    owner: Vec<Cell>,
}

impl Row {
    /// Goes back to the start of the line, or to the end of an owner prefix if there is nothing else.
    pub fn carriage_return(&mut self) {
        if !self.returned && self.bare_prefix() {
            self.home = self.cells.len();
        }
        self.returned = true;
        self.col = self.home;
    }

    /// Ends the line and gives it. A line of an owner prefix alone is not given: it is kept for the bar that follows.
    pub fn end(&mut self, stream: Stream) -> Option<Line> {
        self.drop_lost_colours();
        let line = self.line(stream, false);
        let bare = self.bare_prefix();
        self.owner.clear();
        if bare {
            self.owner.append(&mut self.cells);
        }
        self.cells.clear();
        (self.col, self.home) = (0, 0);
        (self.cut, self.restart, self.returned) = (false, false, false);
        self.time = None;
        (!bare).then_some(line)
    }

    /// A whole line, without its end, as writing it here and ending it would give it; `None` where that is for the cells to find out: more than printable
    /// ASCII, something of an earlier line that still counts, or a beginning that may be an owner's alone or a colour's rest.
    pub fn plain_line(&mut self, stream: Stream, bytes: &[u8]) -> Option<Line> {
        let begins = self.untouched() && self.col == 0 && !self.restart && self.owner.is_empty();
        let text = bytes.strip_suffix(b"\r").unwrap_or(bytes);
        // Without a way out in between, so that it is done for many bytes at once.
        let printable = text.iter().fold(true, |all, b| all & (b.wrapping_sub(b' ') < 0x5f));
        if !begins || self.pen != Style::default() || !printable {
            return None;
        }
        let text = str::from_utf8(text).ok()?;
        let (time, text) = match text.split_at_checked(TIME_LEN) {
            Some((time, rest)) if is_time(time) => (Some(time.trim_end()), rest),
            Some(_) | None => (None, text),
        };
        if text.len() > MAX_CELLS || text.starts_with(['(', '[']) {
            return None;
        }
        if !bytes.is_empty() {
            self.marks = 0;
        }
        let bar = bar_of(text);
        let spans = match text.trim_end_matches(' ') {
            "" => Vec::new(),
            kept => vec![Span {
                text: kept.to_owned(),
                style: Style::default(),
            }],
        };
        Some(Line {
            stream,
            time: time.map(str::to_owned),
            spans,
            bar,
            ..Line::default()
        })
    }

    /// The line as it stands, unless nothing is visible on it, or nothing but what may be the beginning of Docker's time: where the command is held in
    /// the middle of one, that would stand there as a line for as long.
    pub fn live(&self, stream: Stream) -> Option<Line> {
        let visible = self.cells.iter().any(|c| c.ch != ' ');
        (visible && !self.bare_prefix() && !self.begins_time()).then(|| self.line(stream, true))
    }

    /// Whether what stands there may be the beginning of Docker's time.
    fn begins_time(&self) -> bool {
        let short = self.cells.len() < TIME_LEN && self.time.is_none() && !self.returned;
        short
            && self
                .cells
                .iter()
                .zip(SHAPE.chars())
                .all(|(cell, shape)| fits(cell.ch, shape))
    }

    /// Nothing was written since the last line end.
    pub fn untouched(&self) -> bool {
        self.cells.is_empty() && self.time.is_none() && !self.returned
    }

    /// Takes away colours of which only the ESC was lost on the way, as in a log that was copied: `[36m(RayWorkerProc pid=490)[0m x`. A line is taken for one
    /// of those only where it begins so and an owner or a level follows: `[5m ago]` is text.
    fn drop_lost_colours(&mut self) {
        let Some(first) = lost_colour(&self.cells) else { return };
        let next = self.cells.get(first).map(|c| c.ch);
        if !next.is_some_and(|c| c == '(' || c.is_ascii_uppercase()) {
            return;
        }
        let mut kept = Vec::with_capacity(self.cells.len());
        let mut rest = self.cells.as_slice();
        while let Some((cell, after)) = rest.split_first() {
            match lost_colour(rest).and_then(|n| rest.get(n..)) {
                Some(behind) => rest = behind,
                None => {
                    kept.push(*cell);
                    rest = after;
                }
            }
        }
        self.cells = kept;
    }

    fn text(&self) -> String {
        self.cells.iter().map(|c| c.ch).collect()
    }

    fn bare_prefix(&self) -> bool {
        let opens = self.cells.first().is_some_and(|c| c.ch == '(');
        let closes = self
            .cells
            .iter()
            .rev()
            .find(|c| c.ch != ' ')
            .is_some_and(|c| c.ch == ')');
        opens && closes && {
            let text = self.text();
            prefix_len(&text) == text.len()
        }
    }

    fn line(&self, stream: Stream, live: bool) -> Line {
        let mut bar = None;
        let mut owner: &[Cell] = &[];
        if self.cells.iter().any(|c| BAR_MARKS.contains(&c.ch)) {
            let text = self.text();
            bar = bar_of(&text);
            if bar.is_some() && !self.owner.is_empty() && prefix_len(&text) == 0 {
                owner = &self.owner;
                let owned: String = owner.iter().map(|c| c.ch).collect();
                bar = Bar::read(&(owned + &text));
            }
        }
        let kept = self.cells.len() - self.cells.iter().rev().take_while(|c| c.ch == ' ').count();
        // A line of a flood that fills the ring keeps no more room than it needs.
        let mut spans: Vec<Span> = Vec::with_capacity(1);
        for cell in owner.iter().chain(self.cells.iter().take(kept)) {
            match spans.last_mut() {
                Some(span) if span.style == cell.style => span.text.push(cell.ch),
                _ => spans.push(Span {
                    text: cell.ch.into(),
                    style: cell.style,
                }),
            }
        }
        spans.shrink_to_fit();
        spans.iter_mut().for_each(|span| span.text.shrink_to_fit());
        Line {
            stream,
            time: self.time.clone(),
            spans,
            bar,
            live,
            folded: 0,
            cut: self.cut,
        }
    }

    fn put(&mut self, ch: char) {
        if self.restart {
            self.cells.truncate(self.home);
            self.col = self.home;
            self.restart = false;
        }
        if self.col >= MAX_CELLS {
            self.cut = true;
            return;
        }
        let blank = Cell {
            ch: ' ',
            style: Style::default(),
        };
        while self.cells.len() < self.col {
            self.cells.push(blank);
        }
        let cell = Cell { ch, style: self.pen };
        match self.cells.get_mut(self.col) {
            Some(old) => *old = cell,
            None => self.cells.push(cell),
        }
        self.col += 1;
        if ch == ' ' && self.cells.len() == TIME_LEN && self.col == TIME_LEN {
            self.take_time();
        }
    }

    /// Takes a Docker timestamp off the start of the line.
    fn take_time(&mut self) {
        if self.returned || self.time.is_some() {
            return;
        }
        if self
            .cells
            .iter()
            .zip(SHAPE.chars())
            .all(|(cell, shape)| fits(cell.ch, shape))
        {
            self.time = Some(self.text().trim_end().to_owned());
            self.cells.clear();
            self.col = 0;
        }
    }

    /// Blanks cells from `from` up to `to`, and forgets them where the line ends there.
    fn erase(&mut self, from: usize, to: usize) {
        let style = Style::default();
        for cell in self.cells.iter_mut().take(to).skip(from) {
            *cell = Cell { ch: ' ', style };
        }
        if to >= self.cells.len() {
            self.cells.truncate(from);
        }
    }

    fn move_to(&mut self, col: usize) {
        self.col = col.min(self.cells.len().max(MAX_COLUMN));
    }
}

impl vte::Perform for Row {
    fn print(&mut self, ch: char) {
        match shape(ch) {
            Shape::Visible => {
                self.marks = 0;
                self.put(ch);
            }
            Shape::Mark if self.marks < MAX_MARKS => {
                self.marks += 1;
                self.put(ch);
            }
            Shape::Mark | Shape::Invisible => {}
            Shape::Direction => self.put(char::REPLACEMENT_CHARACTER),
        }
    }

    fn execute(&mut self, byte: u8) {
        match byte {
            b'\t' => {
                let stop = self.col - self.col % TAB + TAB;
                while self.col < stop.min(MAX_CELLS) {
                    self.put(' ');
                }
            }
            0x08 => self.col = self.col.saturating_sub(1),
            _ => {}
        }
    }

    fn csi_dispatch(&mut self, params: &vte::Params, intermediates: &[u8], ignore: bool, action: char) {
        if ignore || !intermediates.is_empty() {
            return;
        }
        let first = params
            .iter()
            .next()
            .and_then(|p| p.first().copied())
            .map_or(0, usize::from);
        let count = first.max(1);
        match action {
            'm' => sgr::apply(&mut self.pen, params),
            'K' => match first {
                0 => self.erase(self.col, usize::MAX),
                1 => self.erase(0, self.col.saturating_add(1)),
                2 => self.erase(0, usize::MAX),
                _ => {}
            },
            'G' | '`' => self.move_to(count - 1),
            'C' => self.move_to(self.col.saturating_add(count)),
            'D' => self.col = self.col.saturating_sub(count),
            // There is one line here: a cursor that goes to another one starts this one anew with what it writes there.
            'A' | 'B' | 'E' | 'F' | 'H' | 'J' | 'S' | 'T' | 'd' | 'f' => self.restart = true,
            _ => {}
        }
    }
}

fn fits(ch: char, shape: char) -> bool {
    ch == shape || (shape == '0' && ch.is_ascii_digit())
}

/// Whether these characters, as many as it has, are the time that Docker puts before a line.
fn is_time(text: &str) -> bool {
    text.chars().zip(SHAPE.chars()).all(|(ch, shape)| fits(ch, shape))
}

fn bar_of(text: &str) -> Option<Bar> {
    if !text.contains(BAR_MARKS) {
        return None;
    }
    Bar::read(text).or_else(|| Bar::poll(text)).or_else(|| Bar::nccl(text))
}

/// How many cells at the start are `[`, numbers with `;` between them, and `m`.
fn lost_colour(cells: &[Cell]) -> Option<usize> {
    let (open, rest) = cells.split_first()?;
    let numbers = rest.iter().take_while(|c| c.ch.is_ascii_digit() || c.ch == ';').count();
    let ends = rest.get(numbers).is_some_and(|c| c.ch == 'm');
    (open.ch == '[' && numbers > 0 && ends).then_some(numbers + 2)
}

/// What a character does on a screen.
enum Shape {
    Visible,
    /// Joins the character before it.
    Mark,
    /// Shows nothing, or splits words without showing it.
    Invisible,
    /// Changes the direction of what follows, so that a line reads as something else.
    Direction,
}

fn shape(ch: char) -> Shape {
    match ch {
        ' '..='~' => Shape::Visible,
        '\u{061C}' | '\u{200E}' | '\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' => Shape::Direction,
        '\u{00AD}'
        | '\u{034F}'
        | '\u{115F}'
        | '\u{1160}'
        | '\u{17B4}'
        | '\u{17B5}'
        | '\u{180B}'..='\u{180F}'
        | '\u{200B}'..='\u{200D}'
        | '\u{2028}'
        | '\u{2029}'
        | '\u{2060}'..='\u{2065}'
        | '\u{206A}'..='\u{206F}'
        | '\u{3164}'
        | '\u{FE00}'..='\u{FE0F}'
        | '\u{FEFF}'
        | '\u{FFA0}'
        | '\u{FFF9}'..='\u{FFFB}'
        | '\u{1BCA0}'..='\u{1BCA3}'
        | '\u{1D173}'..='\u{1D17A}'
        | '\u{E0000}'..='\u{E0FFF}' => Shape::Invisible,
        _ => match ch.width() {
            None => Shape::Invisible,
            Some(0) => Shape::Mark,
            Some(_) => Shape::Visible,
        },
    }
}
