//! Rules on lines that were seen. What comes of whole logs, with the engine's own grammar, is in `tests/causes.rs`.

mod lines;
mod rules;
mod seen;

use crate::config::{self, Config, EXAMPLE};
use crate::domain::load::LineFact;
use crate::domain::sign::{Sign, SignKind};
use crate::domain::{NodeId, Now, Stamp, Wall};
use crate::log::{Line, Stream};

use super::{Matcher, Place};

pub(super) const HEAD: NodeId = NodeId(0);

/// The story's cluster: spark-1 at 192.168.200.12 and spark-2 at 192.168.200.13.
pub(super) fn config() -> Config {
    config::parse(EXAMPLE, "config.example.toml").unwrap()
}

/// A moment on both clocks, so many milliseconds after the start of 2026-11-29 17:00 UTC.
pub(super) fn now(ms: u64) -> Now {
    Now {
        stamp: Stamp(ms),
        wall: Wall(1_795_971_600_000 + ms),
    }
}

/// The text of a log as signs. In place of the engine's grammar, every line with `Error` in it says that something failed.
pub(super) fn read(matcher: &mut Matcher, log: &str) -> Vec<Sign> {
    let read = |text: &str| {
        let failure = text.contains("Error").then(|| LineFact::Failure(text.to_owned()));
        let facts: Vec<LineFact> = failure.into_iter().collect();
        matcher.read(&Line::of(Stream::Out, text), &facts, true)
    };
    log.lines().flat_map(read).collect()
}

/// The id of a rule that a sign is of; nothing for another sign.
pub(super) fn id(sign: &Sign) -> Option<&str> {
    match &sign.what {
        SignKind::Rule(id) => Some(id),
        SignKind::NewStart | SignKind::More(_) | SignKind::Unknown => None,
    }
}

/// Signs of texts at a place.
pub(super) fn signs(place: Place, text: &str) -> Vec<Sign> {
    let mut matcher = Matcher::at(&config(), place, super::builtin());
    read(&mut matcher, text)
}
