//! A line of an output as text.

/// A line without its escape sequences and control characters; a tab is a space. Nothing of another line counts, and a sequence that does not end takes the
/// rest of the line with it.
#[must_use]
pub fn plain(line: &str) -> String {
    if !line.contains(char::is_control) {
        return line.to_owned();
    }
    let mut text = Text(String::new());
    vte::Parser::new().advance(&mut text, line.as_bytes());
    text.0
}

/// What of a line is text.
struct Text(String);

impl vte::Perform for Text {
    fn print(&mut self, ch: char) {
        if !ch.is_control() {
            self.0.push(ch);
        }
    }

    fn execute(&mut self, byte: u8) {
        if byte == b'\t' {
            self.0.push(' ');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn whole_sequences_go_and_a_tab_is_a_space() {
        for (line, text) in [
            (
                "2026-11-30 17:38:36,655\tINFO scripts.py:1234 -- \x1b[37mLocal node IP\x1b[39m: \x1b[1m192.168.200.13\x1b[22m",
                "2026-11-30 17:38:36,655 INFO scripts.py:1234 -- Local node IP: 192.168.200.13",
            ),
            ("\x1b]0;title\x07a\x1b]8;;http://x\x1b\\b\x1b(B", "ab"),
            ("a\x1b[38;2;1;2;3mb\x07\u{9b}c\x7f", "abc"),
            ("a\x1b]0;title without an end", "a"),
            ("[37m is text \u{e4}\u{1f600}", "[37m is text \u{e4}\u{1f600}"),
            ("caf\u{e9}\t\u{1f600}", "caf\u{e9} \u{1f600}"),
            ("", ""),
        ] {
            assert_eq!(plain(line), text, "{line:?}");
        }
    }
}
