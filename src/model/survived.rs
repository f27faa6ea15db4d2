//! What a server has survived: failure lines that kept it from nothing.
//!
//! A load prints failures that its engine gets over: a kernel that is not there, a try that is made again. Once a token has come back they were none of this
//! start: they are not drawn as such, and are not the reason when it fails later. What a ready server says may be its end, also when it seems ready again for a
//! moment before that: it counts until the server was ready for a while after it, or has counted tokens for as long.

use std::time::Duration;

use crate::domain::load::LineFact;
use crate::domain::time::millis;
use crate::domain::{Stamp, Wall, When};

use super::state::{ServingState, State};

/// Time after which a server that is ready has survived what was said before: one that dies of it is seen to be gone by then.
const HELD: Duration = Duration::from_secs(60);

/// The server has become ready. What was said before is over, as far as that shows.
pub(super) fn ready(state: &mut State, before: &ServingState) {
    match before {
        ServingState::Down | ServingState::Loading | ServingState::Answering => {
            let proof = proof(state).unwrap_or(state.now.stamp);
            until(state, proof);
        }
        // It was found so: of what was said long before it has not died.
        ServingState::Unknown => until(state, state.now.stamp.minus(HELD)),
        // A loss that seems to be over may be the beginning of the end.
        ServingState::Ready | ServingState::Degraded(_) | ServingState::Stopping | ServingState::Failed(_) => {}
    }
}

/// Time goes on for a server that is ready, or not.
pub(super) fn settle(state: &mut State, now: Stamp) {
    let view = &state.server;
    if view.state != ServingState::Ready {
        return;
    }
    let held = (now.since(view.since) >= HELD).then_some(view.since);
    let counted = view.counted.map(|at| at.minus(HELD));
    if let Some(at) = held.max(counted) {
        until(state, at);
    }
}

/// Whether what a line says failed is over: it was written before, or was there, nobody knows since when, when the server was ready.
pub(super) fn over(state: &State, fact: &LineFact, said: When) -> bool {
    let failure = matches!(fact, LineFact::Failure(_) | LineFact::GaveUp { .. });
    let ready = state.server.state == ServingState::Ready;
    failure && (state.survived.is_some_and(|at| said.stamp < at) || (said.found && ready))
}

/// When the token came back that proves the server.
fn proof(state: &State) -> Option<Stamp> {
    let seen = &state.observed.server;
    seen.token.at().or(seen.metrics.at())
}

/// What was said before then has kept nothing from coming true.
fn until(state: &mut State, at: Stamp) {
    if state.survived.is_some_and(|known| known >= at) {
        return;
    }
    state.survived = Some(at);
    for view in &mut state.nodes {
        view.load.survived(at);
    }
    let ago = millis(state.now.stamp.since(at));
    state.evidence.came_true(Wall(state.now.wall.0.saturating_sub(ago)));
}
