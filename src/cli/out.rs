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

/// What becomes of a cluster when the console leaves it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cluster {
    /// It is on hosts of its own and goes on.
    Stays,
    /// It is the demo's, which lives in this program and ends with it.
    Ends,
}

/// Says what became of step commands that were in flight when the console left, and, where a job was broken off, what goes on without it.
pub(super) fn left(left: &Left, broken_off: bool, cluster: Cluster) {
    told(left, broken_off, cluster).iter().for_each(|line| say(line));
}

/// The lines of [`left`].
fn told(left: &Left, broken_off: bool, cluster: Cluster) -> Vec<String> {
    let goes_on = left.goes_on.iter().filter(|_| broken_off).cloned();
    let cut_short = left.cut_short.iter().map(|command| {
        format!("ended there as the console left; what it had started may go on, so look before you go on: {command}")
    });
    let all: Vec<String> = cut_short.chain(goes_on).collect();
    match cluster {
        Cluster::Stays => all,
        Cluster::Ends if all.is_empty() => all,
        Cluster::Ends => vec!["the demo cluster ended with this console: nothing of it goes on".to_owned()],
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
    use super::{Cluster, Left, told, visible};

    #[test]
    fn nothing_that_is_printed_acts_on_the_terminal() {
        assert_eq!(visible("a\x1b]0;b\x07\r\u{9b}2Jc\n\td"), "a]0;b2Jc\n\td");
        assert_eq!(visible("plain\ntext"), "plain\ntext");
    }

    #[test]
    fn of_a_cluster_that_ends_with_the_program_nothing_is_said_to_go_on() {
        let left = |cut_short: &[&str]| Left {
            cut_short: cut_short.iter().map(|c| (*c).to_owned()).collect(),
            mid_run: true,
            goes_on: vec!["left running on spark-1: container x".to_owned()],
        };
        let ended = ["the demo cluster ended with this console: nothing of it goes on"];
        assert_eq!(told(&left(&[]), true, Cluster::Ends), ended);
        assert_eq!(told(&left(&["docker run x on spark-1"]), false, Cluster::Ends), ended);
        assert_eq!(
            told(&left(&[]), false, Cluster::Ends),
            [""; 0],
            "nothing was broken off"
        );
        assert_eq!(
            told(&left(&[]), true, Cluster::Stays),
            ["left running on spark-1: container x"]
        );
        assert_eq!(told(&left(&["docker run x on spark-1"]), true, Cluster::Stays).len(), 2);
    }
}
