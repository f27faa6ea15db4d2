//! What a node is asked, and how its answers are read.
//!
//! Owns one file per probe, with the command and the reader of its output side by side so that they cannot drift apart; how Docker's and NVIDIA's
//! refusals read; the reader of Ray's dashboard and of Prometheus text; and the commands that follow a log. Never runs anything, never decides when
//! to ask.
//!
//! Invariants: a reader never fails as a whole and never panics: it gives facts for what it understood, [`Facts::Absent`] with a reason for what it
//! did not, and problems. What is unknown is never zero. A probe changes nothing on a node.

#![warn(clippy::indexing_slicing, clippy::wildcard_enum_match_arm)]

pub mod dashboard;
pub mod docker;
pub mod ends;
pub mod image;
pub mod inside;
pub mod logs;
mod members;
pub mod node;
pub mod prometheus;
pub mod ray;
pub mod ray_logs;
pub mod ray_status;
mod sections;
pub mod serve;
pub mod verb;
pub mod versions;

use std::borrow::Cow;

use crate::domain::command::{Exit, Output};
use crate::domain::event::{Facts, ProbeId, Subject};
use crate::domain::problem::Problem;
use crate::log::{Decoder, LineEdit, Stream};

/// What a reader makes of an output.
pub type Found = (Vec<Facts>, Vec<Problem>);

/// Reads the output of a probe's command.
#[must_use]
pub fn parse(probe: ProbeId, output: &Output) -> Found {
    match probe {
        ProbeId::Node => node::parse(output),
        ProbeId::Image => image::parse(output),
        ProbeId::Versions => versions::parse(output),
        ProbeId::Inside => inside::parse(output),
        ProbeId::Ray => ray::parse(output),
        ProbeId::RayStatus => ray_status::parse(output),
        ProbeId::Serve => serve::parse(output),
        ProbeId::Verb => verb::parse(output),
    }
}

/// Nothing known of a subject, with the problem that is the reason.
fn absent(what: Subject, problem: Problem) -> Found {
    let why = problem.text.clone();
    (vec![Facts::Absent { what, why }], vec![problem])
}

/// Nothing known of a subject, for a reason that is no problem.
fn not_there(what: Subject, why: &str) -> Found {
    let why = why.to_owned();
    (vec![Facts::Absent { what, why }], Vec::new())
}

/// Why an output is not an answer, as a fragment; `None` when the command ended with code 0.
fn failure(output: &Output) -> Option<String> {
    match &output.exit {
        Exit::Code(0) => None,
        Exit::Code(code) => Some(match said(output) {
            Some(line) => format!("exit {code}: {line}"),
            None => format!("exit {code}"),
        }),
        Exit::Signal(name) => Some(format!("ended by signal {name}")),
        Exit::TimedOut => Some("no answer in time".to_owned()),
        Exit::NotStarted(why) => Some(format!("could not be asked: {why}")),
        Exit::Unknown(why) => Some(format!("connection lost while asking: {why}")),
    }
}

/// The last line that is not empty on stderr, else on stdout: tools put the reason last.
fn said(output: &Output) -> Option<String> {
    let last = |text: &str| text.lines().map(str::trim).rfind(|l| !l.is_empty()).map(short);
    last(&output.error_text()).or_else(|| last(&output.text()))
}

/// Longest reason shown, in characters.
const REASON_CHARS: usize = 200;

/// A line for a person: without control characters, cut at [`REASON_CHARS`].
fn short(line: &str) -> String {
    line.chars().filter(|c| !c.is_control()).take(REASON_CHARS).collect()
}

/// Standard output as text without escape sequences: some tools colour even what goes to a pipe.
fn plain(output: &Output) -> Cow<'_, str> {
    plain_text(output.text())
}

/// Text without escape sequences.
fn plain_text(text: Cow<'_, str>) -> Cow<'_, str> {
    if !text.contains('\x1b') {
        return text;
    }
    let mut lines = String::new();
    let mut take = |edit: LineEdit| match edit {
        LineEdit::Push(line) => {
            lines.push_str(&line.plain());
            lines.push('\n');
        }
        LineEdit::Live(..) => {}
    };
    Decoder::new().feed(Stream::Out, text.as_bytes(), &mut take);
    Cow::Owned(lines)
}

/// The exit code, when there is one.
fn code(output: &Output) -> Option<u32> {
    match output.exit {
        Exit::Code(code) => Some(code),
        Exit::Signal(_) | Exit::TimedOut | Exit::NotStarted(_) | Exit::Unknown(_) => None,
    }
}

/// The first line that is a JSON object of this shape: libraries print warnings before it.
fn json_line<T: serde::de::DeserializeOwned>(text: &str) -> Option<T> {
    text.lines()
        .filter(|l| l.trim_start().starts_with('{'))
        .find_map(|line| serde_json::from_str(line).ok())
}
