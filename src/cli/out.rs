//! The two streams of a headless command.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;
use tokio::sync::oneshot;

use crate::drive::Left;

/// Whether a result could not be written.
static LOST: AtomicBool = AtomicBool::new(false);

/// Prints a line of result.
pub(super) fn line(text: &str) {
    let mut out = io::stdout().lock();
    match writeln!(out, "{}", visible(text)).and_then(|()| out.flush()) {
        Ok(()) => {}
        // Nobody reads any more, which is no loss to anybody.
        Err(why) if why.kind() == io::ErrorKind::BrokenPipe => {}
        Err(why) => {
            if !LOST.swap(true, Ordering::Relaxed) {
                error(&format!("standard output could not be written: {why}"));
            }
        }
    }
}

/// Whether a result was lost on its way to standard output.
pub(super) fn lost() -> bool {
    LOST.load(Ordering::Relaxed)
}

/// Prints one JSON object on a line.
pub(super) fn json(value: &Value) {
    line(&value.to_string());
}

/// Prints a line for a person on standard error.
pub(super) fn say(text: &str) {
    let _closed = writeln!(io::stderr().lock(), "{}", visible(text));
}

/// Prints an error.
pub(super) fn error(text: &str) {
    say(&format!("bringup: {text}"));
}

/// Says what became of step commands that were in flight when the console left, and, where a job was broken off, what goes on without it.
pub(super) fn left(left: &Left, broken_off: bool) {
    for command in &left.cut_short {
        say(&format!(
            "ended there as the console left; what it had started may go on, so look before you go on: {command}"
        ));
    }
    if broken_off {
        left.goes_on.iter().for_each(|line| say(line));
    }
}

/// Whether a person can answer.
pub(super) fn has_person() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks a person for yes or no; no without an answer. The answer is waited for in a thread of its own: a read of the terminal can't be cancelled, and
/// the program may end meanwhile.
pub(super) fn confirm(question: &str) -> oneshot::Receiver<bool> {
    let _closed = write!(io::stderr().lock(), "{} [y/N] ", visible(question));
    let (tell, told) = oneshot::channel();
    std::thread::spawn(move || {
        let mut answer = String::new();
        let read = io::stdin().read_line(&mut answer);
        let _gone = tell.send(read.is_ok() && matches!(answer.trim(), "y" | "Y" | "yes"));
    });
    told
}

/// The text without what a terminal would carry out: some of it was said by hosts that nobody has vouched for.
fn visible(text: &str) -> Cow<'_, str> {
    let acts = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    if text.contains(acts) {
        Cow::Owned(text.replace(acts, ""))
    } else {
        Cow::Borrowed(text)
    }
}

#[cfg(test)]
mod tests {
    use super::visible;

    #[test]
    fn nothing_that_is_printed_acts_on_the_terminal() {
        assert_eq!(visible("a\x1b]0;b\x07\r\u{9b}2Jc\n\td"), "a]0;b2Jc\n\td");
        assert_eq!(visible("plain\ntext"), "plain\ntext");
    }
}
