//! The last lines of a log, bounded in bytes, and the part of them that a frame shows.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use super::bar::Bar;
use super::decoder::LineEdit;
use super::line::{Line, Stream};
use crate::domain::NodeId;

/// How far back a progress bar is looked for, in lines, so that its next state takes its place. Further up it would be out of sight.
const BAR_REACH: usize = 8;

/// The last lines of one source. Lines are numbered from 0; a number never changes its line's place.
#[derive(Debug)]
pub struct Ring {
    lines: VecDeque<Line>,
    /// What `lines` cost.
    bytes: usize,
    max_bytes: usize,
    first_seq: u64,
    live_out: Option<Line>,
    live_err: Option<Line>,
}

impl Ring {
    /// An empty ring that holds about so many bytes; always at least one line.
    #[must_use]
    pub fn new(max_bytes: usize) -> Self {
        Self {
            lines: VecDeque::new(),
            bytes: 0,
            max_bytes,
            first_seq: 0,
            live_out: None,
            live_err: None,
        }
    }

    /// Takes what a decoder gave.
    pub fn apply(&mut self, edit: LineEdit) {
        match edit {
            LineEdit::Push(line) => self.push(line),
            LineEdit::Live(stream, line) => *self.live_mut(stream) = line,
        }
    }

    /// Adds a line, or puts it in the place of the earlier state of the same progress bar. The oldest lines go when there is no room.
    pub fn push(&mut self, mut line: Line) {
        *self.live_mut(line.stream) = None;
        self.bytes += line.size();
        match self.earlier_state(&line) {
            Some(old) => {
                if line.bar.as_ref().is_some_and(Bar::folds) {
                    line.folded = old.folded.saturating_add(1);
                }
                let old = std::mem::replace(old, line);
                self.bytes -= old.size();
            }
            None => self.lines.push_back(line),
        }
        while self.bytes > self.max_bytes && self.lines.len() > 1 {
            if let Some(gone) = self.lines.pop_front() {
                self.bytes -= gone.size();
                self.first_seq += 1;
            }
        }
    }

    /// How many lines it holds, without the live ones.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// Whether it holds no line.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Number of the oldest line that it holds. As many lines were dropped.
    #[must_use]
    pub fn first_seq(&self) -> u64 {
        self.first_seq
    }

    /// Number that the next line gets: lines seen in all.
    #[must_use]
    pub fn next_seq(&self) -> u64 {
        self.first_seq + self.lines.len() as u64
    }

    /// Lines that it had no room for any more.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.first_seq
    }

    /// The lines of `range` that it still holds, oldest first.
    pub fn get(&self, range: Range<u64>) -> impl DoubleEndedIterator<Item = &Line> {
        let place = |seq: u64| {
            usize::try_from(seq.saturating_sub(self.first_seq)).map_or(self.lines.len(), |n| n.min(self.lines.len()))
        };
        let (from, to) = (place(range.start), place(range.end));
        self.lines.range(from.min(to)..to)
    }

    /// The last `n` lines, oldest first.
    pub fn last(&self, n: usize) -> impl DoubleEndedIterator<Item = &Line> {
        self.lines.range(self.lines.len().saturating_sub(n)..)
    }

    /// A copy of at most `n` lines from line `from` on; with the live lines when it comes to the end.
    #[must_use]
    pub fn window(&self, from: u64, n: usize) -> Window {
        let from = from.clamp(self.first_seq, self.next_seq());
        let to = from.saturating_add(n as u64);
        let mut lines: Vec<Line> = self.get(from..to).cloned().collect();
        if to >= self.next_seq() {
            lines.extend(self.live_out.iter().chain(&self.live_err).cloned());
        }
        Window {
            lines,
            first_seq: from,
            next_seq: self.next_seq(),
            dropped: self.dropped(),
        }
    }

    /// A copy of the last `n` lines and the live ones.
    #[must_use]
    pub fn tail(&self, n: usize) -> Window {
        self.window(self.next_seq().saturating_sub(n as u64), n)
    }

    fn live_mut(&mut self, stream: Stream) -> &mut Option<Line> {
        match stream {
            Stream::Out => &mut self.live_out,
            Stream::Err => &mut self.live_err,
        }
    }

    fn earlier_state(&mut self, line: &Line) -> Option<&mut Line> {
        let bar = line.bar.as_ref()?;
        self.lines
            .iter_mut()
            .rev()
            .take(BAR_REACH)
            .find(|old| old.stream == line.stream && old.bar.as_ref().is_some_and(|earlier| bar.follows(earlier)))
    }
}

/// A copy of some lines of a ring.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Window {
    /// Oldest first. Lines with `live` set stand last and have no number yet.
    pub lines: Vec<Line>,
    /// Number of the first of `lines`.
    pub first_seq: u64,
    /// Number that the log's next line will get.
    pub next_seq: u64,
    /// Lines that the ring dropped since the start.
    pub dropped: u64,
}

/// What a frame may show of each node's log.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LogWindows(pub BTreeMap<NodeId, Window>);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::Decoder;

    fn fill(ring: &mut Ring, bytes: &[u8]) {
        Decoder::new().feed(Stream::Err, bytes, &mut |e| ring.apply(e));
    }

    fn texts(window: &Window) -> Vec<String> {
        window.lines.iter().map(Line::plain).collect()
    }

    #[test]
    fn the_oldest_lines_go_and_are_counted() {
        let line = Line::of(Stream::Out, "0123456789");
        let mut ring = Ring::new(line.size() * 3);
        for n in 0..10 {
            ring.push(Line::of(Stream::Out, format!("012345678{n}")));
        }
        assert_eq!(
            (ring.len(), ring.first_seq(), ring.next_seq(), ring.dropped()),
            (3, 7, 10, 7)
        );
        assert_eq!(texts(&ring.tail(2)), ["0123456788", "0123456789"]);
        assert_eq!(texts(&ring.window(0, 2)), ["0123456787", "0123456788"]);
        assert_eq!(ring.window(0, 2).first_seq, 7);
        assert_eq!(ring.get(9..100).count(), 1);
        assert_eq!(ring.get(0..3).count(), 0);
        assert_eq!(ring.last(100).count(), 3);
    }

    #[test]
    fn a_line_larger_than_the_ring_is_kept_until_the_next() {
        let mut ring = Ring::new(1);
        ring.push(Line::of(Stream::Out, "a"));
        ring.push(Line::of(Stream::Out, "b"));
        assert_eq!(texts(&ring.tail(9)), ["b"]);
    }

    #[test]
    fn a_bar_takes_its_earlier_place_though_other_lines_came_between() {
        let mut ring = Ring::new(1 << 20);
        fill(
            &mut ring,
            b"x:   0%|  | 0/4 [\n(note)\n\rx:  50%|  | 2/4 [\n\rx:  75%|  | 3/4 [",
        );
        assert_eq!(
            texts(&ring.tail(9)),
            ["x:  50%|  | 2/4 [", "(note)", "x:  75%|  | 3/4 ["]
        );
        assert_eq!(ring.next_seq(), 2);
        assert!(ring.tail(9).lines.last().unwrap().live);
    }

    #[test]
    fn polls_do_not_push_what_matters_out_of_sight() {
        let mut ring = Ring::new(1 << 20);
        fill(&mut ring, b"ready\n");
        for port in 0..50 {
            for path in ["health", "metrics"] {
                let line = format!("INFO:     127.0.0.1:{port} - \"GET /{path} HTTP/1.1\" 200 OK\n");
                fill(&mut ring, line.as_bytes());
            }
        }
        assert_eq!(ring.last(1).map(|l| l.folded).collect::<Vec<_>>(), [49]);
        let newest = |path: &str| format!("INFO:     127.0.0.1:49 - \"GET /{path} HTTP/1.1\" 200 OK");
        assert_eq!(texts(&ring.tail(9)), ["ready", &newest("health"), &newest("metrics")]);
    }

    #[test]
    fn a_run_of_nccls_news_is_one_line_a_process_and_says_how_many_it_was() {
        let mut ring = Ring::new(1 << 20);
        for n in 0..200 {
            for pid in [2528, 2529] {
                let line = format!("(Worker pid={pid}) spark:{pid}:{n} [0] NCCL INFO Channel {n:02}/16 : 0 1\n");
                fill(&mut ring, line.as_bytes());
            }
        }
        fill(&mut ring, b"(Worker pid=2528) spark:2528:1 [0] NCCL WARN socket\n");
        let seen: Vec<_> = ring.last(9).map(|l| (l.plain(), l.folded)).collect();
        let newest = |pid: u32| format!("(Worker pid={pid}) spark:{pid}:199 [0] NCCL INFO Channel 199/16 : 0 1");
        let warning = "(Worker pid=2528) spark:2528:1 [0] NCCL WARN socket".to_owned();
        assert_eq!(seen, [(newest(2528), 199), (newest(2529), 199), (warning, 0)]);
    }

    #[test]
    fn bars_of_other_owners_and_a_second_run_have_lines_of_their_own() {
        let mut ring = Ring::new(1 << 20);
        fill(
            &mut ring,
            b"(W pid=1) \rx:  50%| | 2/4 [\n(W pid=2) \rx:  25%| | 1/4 [\n(W pid=1) \rx: 100%| | 4/4 [\n(W pid=1) \rx:   0%| | 0/4 [\n",
        );
        assert_eq!(
            texts(&ring.tail(9)),
            [
                "(W pid=1) x: 100%| | 4/4 [",
                "(W pid=2) x:  25%| | 1/4 [",
                "(W pid=1) x:   0%| | 0/4 ["
            ]
        );
    }

    #[test]
    fn a_live_line_goes_with_the_line_that_ends_it() {
        let mut ring = Ring::new(1 << 20);
        let mut decoder = Decoder::new();
        let mut feed = |ring: &mut Ring, bytes: &[u8]| decoder.feed(Stream::Err, bytes, &mut |e| ring.apply(e));
        feed(&mut ring, b"Password");
        assert_eq!(texts(&ring.tail(9)), ["Password"]);
        assert_eq!(ring.len(), 0);
        feed(&mut ring, b": \n");
        assert_eq!(texts(&ring.tail(9)), ["Password:"]);
        feed(&mut ring, b"busy");
        feed(&mut ring, b"\r\x1b[K");
        assert_eq!(texts(&ring.tail(9)), ["Password:"]);
    }

    #[test]
    fn a_window_in_the_middle_has_no_live_line() {
        let mut ring = Ring::new(1 << 20);
        fill(&mut ring, b"a\nb\nc\nlive");
        assert_eq!(texts(&ring.window(0, 2)), ["a", "b"]);
        assert_eq!(texts(&ring.window(1, 2)), ["b", "c", "live"]);
        assert_eq!(texts(&ring.window(99, 2)), ["live"]);
    }
}
