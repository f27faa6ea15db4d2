//! A decoded line: spans of plain text with styles of our own.

use std::borrow::Cow;

use super::bar::Bar;

/// Which of a command's two outputs a line came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum Stream {
    /// Standard output.
    #[default]
    Out,
    /// Standard error.
    Err,
}

impl Stream {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Out, Self::Err];
}

/// A line of a log.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Line {
    /// Where it came from.
    pub stream: Stream,
    /// The time that `docker logs --timestamps` put before it, as written there.
    pub time: Option<String>,
    /// The text, without trailing spaces. No span is empty.
    pub spans: Vec<Span>,
    /// What progress bar the line is, if it is one.
    pub bar: Option<Bar>,
    /// Whether it has not ended yet and may still be rewritten.
    pub live: bool,
    /// Lines of its kind whose place it took: polls that went well, news of NCCL's.
    pub folded: u32,
    /// Whether it was longer than a line may be and its end is missing.
    pub cut: bool,
}

impl Line {
    /// A line of unstyled text; the text must be free of control characters already.
    #[must_use]
    pub fn of(stream: Stream, text: impl Into<String>) -> Self {
        let span = Span {
            text: text.into(),
            style: Style::default(),
        };
        Self {
            stream,
            spans: if span.text.is_empty() { Vec::new() } else { vec![span] },
            ..Self::default()
        }
    }

    /// The text without styles.
    #[must_use]
    pub fn plain(&self) -> String {
        self.text().into_owned()
    }

    /// The text without styles, as it is where one style is all there is.
    #[must_use]
    pub fn text(&self) -> Cow<'_, str> {
        match self.spans.as_slice() {
            [] => Cow::Borrowed(""),
            [span] => Cow::Borrowed(&span.text),
            spans => spans.iter().map(|s| s.text.as_str()).collect(),
        }
    }

    /// Parts the line so many bytes into its text; the second part is no bar.
    pub(super) fn split_off(&mut self, at: usize) -> Self {
        let mut left = at;
        let mut rest = Self {
            stream: self.stream,
            time: self.time.clone(),
            cut: std::mem::take(&mut self.cut),
            ..Self::default()
        };
        let mut kept = Vec::new();
        for mut span in std::mem::take(&mut self.spans) {
            if span.text.len() <= left {
                left -= span.text.len();
                kept.push(span);
                continue;
            }
            if left > 0 && span.text.is_char_boundary(left) {
                let text = span.text.split_off(left);
                let style = span.style;
                kept.push(span);
                span = Span { text, style };
            }
            left = 0;
            rest.spans.push(span);
        }
        self.spans = kept;
        rest
    }

    /// What it costs in memory, with what an allocator takes beside each piece.
    #[must_use]
    pub fn size(&self) -> usize {
        let text: usize = self.spans.iter().map(|s| allocated(s.text.capacity())).sum();
        let spans = allocated(self.spans.capacity() * size_of::<Span>());
        let time = self.time.as_ref().map_or(0, |t| allocated(t.capacity()));
        let bar = self.bar.as_ref().map_or(0, |b| allocated(b.size()));
        size_of::<Self>() + text + spans + time + bar
    }
}

/// What an allocation of so many bytes takes, as the usual allocators round it: a word more, in steps of two words.
fn allocated(bytes: usize) -> usize {
    const WORD: usize = size_of::<usize>();
    match bytes {
        0 => 0,
        n => (n + WORD).next_multiple_of(2 * WORD),
    }
}

/// A run of characters in one style.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Span {
    /// Visible characters only.
    pub text: String,
    /// How they look.
    pub style: Style,
}

/// What is kept of a log's own colours. Backgrounds, and black and white as foregrounds, are not: one of them is unreadable on every terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Style {
    /// Foreground; `None` is the terminal's own.
    pub fg: Option<Color>,
    /// Bold.
    pub bold: bool,
    /// Dim.
    pub dim: bool,
    /// Underlined.
    pub underline: bool,
}

/// The ANSI colours that are readable on dark and on light backgrounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Color {
    /// Colour 1.
    Red,
    /// Colour 2.
    Green,
    /// Colour 3.
    Yellow,
    /// Colour 4.
    Blue,
    /// Colour 5.
    Magenta,
    /// Colour 6.
    Cyan,
    /// Colour 8, "bright black".
    Gray,
    /// Colour 9.
    BrightRed,
    /// Colour 10.
    BrightGreen,
    /// Colour 11.
    BrightYellow,
    /// Colour 12.
    BrightBlue,
    /// Colour 13.
    BrightMagenta,
    /// Colour 14.
    BrightCyan,
}
