//! The verb probe: the script engine's detached verb and the end of its output.
//!
//! The engine leaves `verb`, `pid`, `out` and `code` in `$HOME/.cache/bringup/CLUSTER/verb/` on the node. A verb runs while its process is there and
//! has left no code.

use std::time::Duration;

use crate::domain::command::{Command, Output};
use crate::domain::event::{Facts, Subject};
use crate::domain::observed::VerbFacts;
use crate::domain::problem::Problem;
use crate::log::{Decoder, LineEdit, Masker, Ring, Stream};

use super::sections::Sections;
use super::{Found, absent, failure, short};

/// Id of the script.
pub const ID: &str = "probe.verb";

/// Lines of output kept.
pub const TAIL_LINES: usize = 40;

/// Memory for the output while it is decoded.
const TAIL_BYTES: usize = 1 << 20;

/// Code given for a verb that is gone and left none: it was killed, or the node restarted.
pub const LOST_CODE: i32 = -1;

/// Asks a node for the cluster's verb.
#[must_use]
pub fn command(cluster: &str, limit: Duration) -> Command {
    Command::script(ID, include_str!("verb.sh"), vec![cluster.to_owned()], limit)
}

/// Reads the answer.
#[must_use]
pub fn parse(output: &Output) -> Found {
    let text = output.text();
    let (head, tail) = text.split_once("@@ output\n").unwrap_or((&text, ""));
    let sections = Sections::read(head);
    if sections.get("none").is_some() {
        return (vec![Facts::Verb(VerbFacts::None)], Vec::new());
    }
    let line = |name: &str| sections.get(name).and_then(|s| s.lines.first().copied());
    let (Some(verb), Some(state)) = (line("verb").map(short), line("state")) else {
        let why = failure(output).unwrap_or_else(|| "no answer that can be read".to_owned());
        return absent(Subject::Verb, Problem::error(why));
    };
    let mut tail = lines(tail);
    let facts = match state
        .split_once(' ')
        .map_or((state, None), |(word, code)| (word, code.trim().parse().ok()))
    {
        ("running", _) => VerbFacts::Running { verb, tail },
        ("ended", Some(code)) => VerbFacts::Ended { verb, code, tail },
        _ => {
            tail.push("(it is gone and left no exit code: it was killed, or the node restarted)".to_owned());
            VerbFacts::Ended {
                verb,
                code: LOST_CODE,
                tail,
            }
        }
    };
    (vec![Facts::Verb(facts)], Vec::new())
}

/// The last lines of an output, safe to draw.
fn lines(text: &str) -> Vec<String> {
    let mut ring = Ring::new(TAIL_BYTES);
    let mut decoder = Decoder::new();
    let mut take = |edit: LineEdit| ring.apply(edit);
    decoder.feed(Stream::Out, text.as_bytes(), &mut take);
    decoder.finish(Stream::Out, &mut take);
    let masker = Masker::default();
    ring.last(TAIL_LINES)
        .map(|line| masker.text(&line.plain()).into_owned())
        .collect()
}
