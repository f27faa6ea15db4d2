//! Whether a server has said itself that its start comes to nothing, though its process is still there.
//!
//! An engine whose core failed may hang for long before its process ends: a rank waits for a peer that is gone, or a library for its threads. The engine's own
//! last word is enough then. What it says must be of the process that runs now: a container's log holds what earlier servers said, and a server is silent
//! for a while before it draws its banner.

use std::time::Duration;

use crate::domain::load::Stage;
use crate::domain::time::seconds;
use crate::domain::{Stamp, When};

use super::life;
use super::load::verdict::patience;
use super::load::{LastWord, Load, failures};
use super::state::State;

/// Time that the lines which say why take to come after the last word: it is the first line of a traceback.
const TRACEBACK: Duration = Duration::from_secs(2);

/// Time for which an exception that no engine was seen to survive is a doubt only, while its process runs: one that dies of it is gone by then, or has said so.
const OUTLIVES: Duration = Duration::from_secs(60);

/// What the server failed of, in the words of a log, where one says that it gave up.
pub(super) fn why(state: &State, now: Stamp) -> Option<&str> {
    let began = began(state)?;
    let certain = |word: &&LastWord| of(word.said.0, began) && (word.sure || word.said.0.age(now) >= OUTLIVES);
    let (said, _) = &loads(state)
        .filter_map(|load| load.gave_up.as_ref())
        .find(certain)?
        .said;
    let reason = loads(state)
        .flat_map(|load| &load.failures)
        .any(|(said, _)| of(*said, began));
    // The last word alone is no reason as long as one may come.
    if !reason && said.age(now) < TRACEBACK {
        return None;
    }
    lines(state).first().map(|(_, text)| text.as_str())
}

/// What may have ended a load whose process still runs, and is not sure.
pub(super) fn doubt(state: &State, now: Stamp) -> Option<String> {
    let began = began(state)?;
    let words = loads(state).filter_map(|load| load.gave_up.as_ref());
    let (said, text) = words
        .map(|word| &word.said)
        .filter(|(said, _)| of(*said, began))
        .min_by_key(|(said, _)| *said)?;
    let ago = seconds(said.age(now));
    Some(format!("its process still runs {ago} after it printed {text}"))
}

/// The failure lines of the servers that are not over, the likely reason first; where a server runs, of that one.
pub(super) fn lines(state: &State) -> Vec<&(When, String)> {
    let all = failures(loads(state));
    match began(state) {
        Some(began) => all.into_iter().filter(|(said, _)| of(*said, began)).collect(),
        None => all,
    }
}

/// The last failure that a log tells of and that nothing followed, where nothing tells whether it is of the server that runs or of one before it: neither the
/// line's age nor how long the server has run.
pub(super) fn unsure(state: &State) -> Option<&str> {
    let began = began(state);
    let open = |said: &When| said.found && began.is_none_or(|began| !of(*said, began));
    let gave_up = loads(state).find(|load| load.gave_up.as_ref().is_some_and(|word| open(&word.said.0)))?;
    failures(std::iter::once(gave_up))
        .into_iter()
        .find(|(said, _)| open(said))
        .map(|(_, text)| text.as_str())
}

/// Whether the log of the server that runs says that it ends.
pub(super) fn shuts_down(state: &State) -> bool {
    let head = state.nodes.get(state.config.head().index());
    let said = head.and_then(|view| view.load.shuts_down);
    said.zip(began(state)).is_some_and(|(said, began)| of(said, began))
}

fn loads(state: &State) -> impl Iterator<Item = &Load> {
    state.nodes.iter().map(|n| &n.load).filter(|l| !l.over)
}

/// When the server that runs began; where its process does not tell, its banner is as good.
fn began(state: &State) -> Option<Stamp> {
    let head = state.config.head();
    let runs = state
        .observed
        .node(head)?
        .serve
        .value()
        .is_some_and(|s| !s.processes.is_empty());
    let banner = || state.nodes.get(head.index())?.load.started?.sure();
    life::began(state).or_else(|| banner().filter(|_| runs))
}

/// Whether a line is of the server that began then. A line of unknown age is where its server had drawn its own banner for long.
fn of(said: When, began: Stamp) -> bool {
    let least = if said.found {
        patience(Stage::Starting)
    } else {
        Duration::ZERO
    };
    began.plus(least) <= said.stamp
}
