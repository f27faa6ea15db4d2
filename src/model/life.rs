//! The life of the server's process, which bounds what its log can say of it.
//!
//! A process's age is counted by its node's kernel, so that no clock that was set changes it. Lines that seem to be older than the process that wrote them
//! are either of a server before it, which is silent until it draws its banner, or the node's clock was set since they were written.

use std::time::Duration;

use crate::domain::load::Stage;
use crate::domain::serving::{ServeFacts, ServeProcess};
use crate::domain::{Stamp, When};

use super::load::verdict::patience;
use super::state::State;

/// What a line may seem to be older than its process by rounding and by the error of the node's clock.
const SLACK: Duration = Duration::from_secs(5);

/// When the server that runs began, by the age of its process: the youngest, where there are several. `None` where none runs, or nobody knows.
pub(super) fn began(state: &State) -> Option<Stamp> {
    let serve = &state.observed.node(state.config.head())?.serve;
    let (facts, read) = (serve.value()?, serve.at()?);
    let ups = facts.processes.iter().map(|p| p.up_seconds);
    let up = ups.reduce(|a, b| Some(a?.min(b?)))??;
    Some(read.minus(Duration::from_secs(up)))
}

/// Whether one of the processes that were read then is among those that were read later. A number is given again, and what has it now began after that.
pub(super) fn same(before: (&ServeFacts, Stamp), now: (&ServeFacts, Stamp)) -> bool {
    let is = |was: &ServeProcess, runs: &ServeProcess| {
        let up = runs.up_seconds.unwrap_or(0).saturating_mul(1000);
        was.pid == runs.pid && now.1.0.saturating_sub(up) < before.1.0
    };
    let mut were = before.0.processes.iter();
    were.any(|was| now.0.processes.iter().any(|runs| is(was, runs)))
}

/// Takes from the head's load what can't be of the server that runs: the load of one before it, or else the ages that a clock gave which was set since.
pub(super) fn settle(state: &mut State, now: Stamp) {
    let Some(began) = began(state) else { return };
    let head = state.config.head();
    let Some(view) = state.nodes.get_mut(head.index()) else {
        return;
    };
    let older = |when: &When| when.sure().is_some_and(|at| at.plus(SLACK) < began);
    if !view.load.times().any(older) {
        return;
    }
    // Nothing was said since, and a server is silent for as long as this before its banner.
    let silent = view.load.times().all(older);
    if silent && now.since(began) <= patience(Stage::Starting) {
        view.load.gone();
        return;
    }
    let read = When::found(view.log.came.unwrap_or(now));
    for when in view.load.times_mut() {
        if older(when) {
            *when = read;
        }
    }
}
