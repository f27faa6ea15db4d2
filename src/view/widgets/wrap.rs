//! Breaks a line that is too long.

use ratatui::style::Style;
use ratatui::text::Span;
use unicode_width::UnicodeWidthChar;

/// The text in pieces of at most `width` cells, broken at spaces where that leaves no more than half a line empty. Never empty. A width of 0 gives
/// the text whole.
#[must_use]
pub(in crate::view) fn wrap(text: &str, width: u16) -> Vec<String> {
    if width == 0 {
        return vec![text.to_owned()];
    }
    let lines = broken(text.chars().map(|c| (c, ())), usize::from(width), 0, usize::MAX);
    lines
        .iter()
        .map(|line| line.iter().map(|(c, ())| *c).collect())
        .collect()
}

/// Spans in lines of at most `width` cells, as [`wrap`] breaks them, and at most `most` lines. Lines after the first begin with `indent` blanks,
/// where there is room for them. Never empty. The flag says whether something was left out.
#[must_use]
pub(in crate::view) fn wrap_spans<'a>(
    spans: impl IntoIterator<Item = Span<'a>>,
    width: u16,
    indent: u16,
    most: usize,
) -> (Vec<Vec<Span<'static>>>, bool) {
    let width = usize::from(width.max(1));
    let indent = Some(usize::from(indent)).filter(|i| i * 4 <= width).unwrap_or(0);
    let chars = spans.into_iter().flat_map(|s| {
        let cells: Vec<(char, Style)> = s.content.chars().map(|c| (c, s.style)).collect();
        cells
    });
    // One line more than wanted says whether there is more; no line is read further than that.
    let mut lines = broken(chars, width, indent, most.saturating_add(1));
    let more = lines.len() > most;
    lines.truncate(most.max(1));
    let rows = lines.iter().enumerate().map(|(i, line)| {
        let blanks = (i > 0 && indent > 0).then(|| Span::raw(" ".repeat(indent)));
        blanks.into_iter().chain(runs(line)).collect()
    });
    (rows.collect(), more)
}

/// Characters with something attached, in lines; at most `most` of them are made. Lines after the first are narrower by `indent`.
fn broken<T: Copy>(
    chars: impl Iterator<Item = (char, T)>,
    width: usize,
    indent: usize,
    most: usize,
) -> Vec<Vec<(char, T)>> {
    let mut lines = Vec::new();
    let mut line = Vec::new();
    let mut cells = 0;
    // Where the line could be broken: characters up to and with the space, and their cells.
    let mut space: Option<(usize, usize)> = None;
    for (c, with) in chars {
        let room = if lines.is_empty() { width } else { width - indent };
        let w = c.width().unwrap_or(0);
        if cells + w > room && !line.is_empty() {
            let rest = match space {
                Some((at, used)) if used * 2 >= room => line.split_off(at),
                Some(_) | None => Vec::new(),
            };
            while line.last().is_some_and(|(c, _)| *c == ' ') {
                line.pop();
            }
            lines.push(std::mem::replace(&mut line, rest));
            if lines.len() >= most {
                return lines;
            }
            cells = line.iter().filter_map(|(c, _)| c.width()).sum();
            space = None;
            if c == ' ' && line.is_empty() {
                continue;
            }
        }
        line.push((c, with));
        cells += w;
        if c == ' ' {
            space = Some((line.len(), cells));
        }
    }
    lines.push(line);
    lines
}

/// Neighbours of one style as one span.
fn runs(line: &[(char, Style)]) -> Vec<Span<'static>> {
    line.chunk_by(|a, b| a.1 == b.1)
        .map(|run| {
            let text: String = run.iter().map(|(c, _)| *c).collect();
            Span::styled(text, run.first().map_or_else(Style::default, |(_, style)| *style))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn breaks_at_spaces_where_that_is_near_enough() {
        let cases: [(&str, u16, &[&str]); 8] = [
            ("", 5, &[""]),
            ("abc def", 7, &["abc def"]),
            ("abc def", 5, &["abc", "def"]),
            ("abcdefgh", 3, &["abc", "def", "gh"]),
            ("a bcdefghij", 6, &["a bcde", "fghij"]),
            ("日本語", 4, &["日本", "語"]),
            ("日本", 1, &["日", "本"]),
            ("abc", 0, &["abc"]),
        ];
        for (text, width, lines) in cases {
            assert_eq!(wrap(text, width), lines, "{text} {width}");
        }
    }

    #[test]
    fn spans_keep_their_styles_over_a_break() {
        let red = Style::new().red();
        let (lines, more) = wrap_spans([Span::raw("abc"), Span::styled("defg", red)], 4, 0, 9);
        let want = vec![
            vec![Span::raw("abc"), Span::styled("d", red)],
            vec![Span::styled("efg", red)],
        ];
        assert_eq!((lines, more), (want, false));
        assert_eq!(wrap_spans([], 4, 0, 9), (vec![Vec::new()], false));
    }

    #[test]
    fn later_lines_are_indented_and_the_rest_is_counted_as_left_out() {
        let (lines, more) = wrap_spans([Span::raw("abcdefghijklmnop")], 8, 2, 2);
        let want = vec![vec![Span::raw("abcdefgh")], vec![Span::raw("  "), Span::raw("ijklmn")]];
        assert_eq!((lines, more), (want, true));
    }
}
