//! Bytes of a log to lines.

#[cfg(test)]
mod tests;

use super::bar::glued;
use super::line::{Line, Stream};
use super::row::Row;

/// Most bytes between two line ends or carriage returns after which an escape sequence that has not ended is given up: without it, one that never
/// ends would swallow the rest of the log and grow without bound.
const MAX_RUN: usize = 64 * 1024;

/// Cancels an escape sequence, in any state of the parser.
const CANCEL: &[u8] = &[0x18];

/// What new bytes did to a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LineEdit {
    /// A line has ended.
    Push(Line),
    /// The line that is being written now; takes the place of the stream's live line. `None` takes it away.
    Live(Stream, Option<Line>),
}

/// Decodes the two streams of one source.
#[derive(Default)]
pub struct Decoder {
    out: Lane,
    err: Lane,
}

/// One stream.
#[derive(Default)]
struct Lane {
    parser: vte::Parser,
    row: Row,
    /// The first bytes of a character whose rest has not come. `vte` would keep them, and lose a character after them.
    carry: Vec<u8>,
    /// Bytes since the last line end or carriage return.
    run: usize,
    /// A live line was given and not taken away.
    shown: bool,
}

impl Decoder {
    /// A decoder at the start of a log.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next bytes of a stream and gives the lines that they end, then the line that they leave unfinished.
    pub fn feed(&mut self, stream: Stream, bytes: &[u8], sink: &mut impl FnMut(LineEdit)) {
        let lane = self.lane(stream);
        lane.advance(stream, bytes, sink);
        lane.show(stream, sink);
    }

    /// The stream has ended: an unfinished line is a line.
    pub fn finish(&mut self, stream: Stream, sink: &mut impl FnMut(LineEdit)) {
        let lane = self.lane(stream);
        lane.cancel();
        if !lane.row.untouched() {
            lane.end(stream, sink);
        }
        lane.show(stream, sink);
    }

    fn lane(&mut self, stream: Stream) -> &mut Lane {
        match stream {
            Stream::Out => &mut self.out,
            Stream::Err => &mut self.err,
        }
    }
}

impl Lane {
    fn advance(&mut self, stream: Stream, bytes: &[u8], sink: &mut impl FnMut(LineEdit)) {
        let mut rest = bytes;
        while !rest.is_empty() {
            if self.run == 0 && self.carry.is_empty() {
                rest = self.plain_lines(stream, rest, sink);
            }
            let room = MAX_RUN - self.run;
            let near = rest.get(..rest.len().min(room)).unwrap_or_default();
            let stop = memchr::memchr2(b'\n', b'\r', near);
            let (text, tail) = rest.split_at(stop.unwrap_or(near.len()));
            self.write(text);
            self.run += text.len();
            rest = tail;
            if stop.is_some() {
                self.cancel();
                if tail.starts_with(b"\n") {
                    self.end(stream, sink);
                } else {
                    self.row.carriage_return();
                }
                rest = tail.get(1..).unwrap_or_default();
            } else if self.run == MAX_RUN {
                self.cancel();
            }
        }
    }

    /// Gives the lines at the start that are as most lines are, with nothing in them that a terminal would act on: they need no cells. Gives back what is left.
    fn plain_lines<'b>(&mut self, stream: Stream, bytes: &'b [u8], sink: &mut impl FnMut(LineEdit)) -> &'b [u8] {
        let mut rest = bytes;
        while let Some(end) = memchr::memchr(b'\n', rest) {
            let (text, tail) = rest.split_at(end);
            let Some(line) = self.row.plain_line(stream, text) else {
                break;
            };
            self.give(line, sink);
            rest = tail.get(1..).unwrap_or_default();
        }
        rest
    }

    /// Writes all but a last character that is not complete.
    fn write(&mut self, text: &[u8]) {
        let joined;
        let text = if self.carry.is_empty() {
            text
        } else {
            joined = [std::mem::take(&mut self.carry).as_slice(), text].concat();
            &joined
        };
        let (whole, part) = text.split_at(text.len() - incomplete(text));
        self.parser.advance(&mut self.row, whole);
        self.carry.extend(part);
    }

    /// Gives up an escape sequence or a character that has not ended.
    fn cancel(&mut self) {
        self.parser.advance(&mut self.row, &self.carry);
        self.carry.clear();
        self.parser.advance(&mut self.row, CANCEL);
        self.run = 0;
    }

    fn end(&mut self, stream: Stream, sink: &mut impl FnMut(LineEdit)) {
        if let Some(line) = self.row.end(stream) {
            self.give(line, sink);
        }
    }

    fn give(&mut self, mut line: Line, sink: &mut impl FnMut(LineEdit)) {
        // A ring drops the stream's live line with the line that ends it.
        self.shown = false;
        let at = line
            .bar
            .as_ref()
            .filter(|b| !b.folds())
            .and_then(|_| glued(&line.text()));
        let record = at.map(|at| line.split_off(at));
        sink(LineEdit::Push(line));
        if let Some(record) = record {
            sink(LineEdit::Push(record));
        }
    }

    fn show(&mut self, stream: Stream, sink: &mut impl FnMut(LineEdit)) {
        let live = self.row.live(stream);
        if live.is_some() || self.shown {
            self.shown = live.is_some();
            sink(LineEdit::Live(stream, live));
        }
    }
}

/// How many bytes at the end begin a character that is not complete.
fn incomplete(text: &[u8]) -> usize {
    let begins = |n: &usize| {
        let tail = text.len().checked_sub(*n).and_then(|from| text.get(from..));
        let error = tail.and_then(|t| std::str::from_utf8(t).err());
        error.is_some_and(|e| e.valid_up_to() == 0 && e.error_len().is_none())
    };
    (1..4).find(begins).unwrap_or(0)
}
