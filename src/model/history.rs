//! How long a load took, once it is over.

use std::time::Duration;

use crate::domain::intent::Action;
use crate::domain::load::{self, EarlierLoad, Stage};
use crate::domain::time::millis;
use crate::domain::{Stamp, Wall, When};
use crate::plan::StepKind;

use super::state::{EARLIER, State};

/// Time from the start of a server's process to its first line: imports, on a slow disk. A line without a time that is read later than this was there before
/// it could be read, so that nobody knows when its stage began.
const FIRST_LINE: Duration = Duration::from_secs(90);

/// A first stage that is over sooner was read in one gulp with the next.
const GULP: Duration = Duration::from_secs(2);

/// The load that has just come to its end, when it was followed from its beginning; it is remembered.
pub(super) fn finished(state: &mut State, now: Stamp, wall: Wall) -> Option<EarlierLoad> {
    let load = &state.nodes.get(state.config.head().index())?.load;
    let started = load.started?;
    // The log's own times are as good as those of who has watched it.
    let sure = !started.found && load.entered.iter().all(|(_, at)| !at.found);
    if !(sure || started_here(state, started.stamp) || seen_from_the_start(state, started.stamp)) {
        return None;
    }
    let ends = load.entered.iter().skip(1).map(|(_, at)| at.stamp).chain([now]);
    let took = |((stage, from), to): (&(Stage, When), Stamp)| {
        let took = Duration::from_millis(millis(from.age(to)));
        (*stage, took)
    };
    let finished = EarlierLoad {
        key: state.config.load_key(),
        model: state.config.serve.model.clone(),
        ended: wall,
        stages: load.entered.iter().zip(ends).map(took).collect(),
    };
    know(state, vec![finished.clone()]);
    Some(finished)
}

/// Remembers earlier loads beside those that are known: the latest ones of all of them.
pub(super) fn know(state: &mut State, loads: Vec<EarlierLoad>) {
    for load in loads {
        load::add(&mut state.earlier, load);
    }
    let old = state.earlier.len().saturating_sub(EARLIER);
    state.earlier.drain(..old);
}

/// Whether this console has started the server.
fn started_here(state: &State, started: Stamp) -> bool {
    let Some(run) = &state.run else { return false };
    let serves = match run.plan().action {
        Action::Serve | Action::Up => true,
        Action::Head | Action::Workers | Action::StopServe | Action::StopAll => false,
    };
    let step = run
        .plan()
        .steps
        .iter()
        .zip(run.steps())
        .find(|(step, _)| step.kind == StepKind::Serve);
    serves
        && step
            .and_then(|(_, status)| status.started)
            .is_some_and(|at| at <= started)
}

/// Whether the server's process was young when its first line was read.
fn seen_from_the_start(state: &State, started: Stamp) -> bool {
    let Some(head) = state.observed.node(state.config.head()) else {
        return false;
    };
    let (Some(facts), Some(at)) = (head.serve.value(), head.serve.at()) else {
        return false;
    };
    let Some(up) = facts.processes.first().and_then(|p| p.up_seconds) else {
        return false;
    };
    let age = Duration::from_secs(up).saturating_sub(at.since(started));
    let load = state.nodes.get(state.config.head().index()).map(|view| &view.load);
    let first = load
        .and_then(|l| l.entered.get(1))
        .map(|(_, next)| next.stamp.since(started));
    age <= FIRST_LINE && first.is_some_and(|took| took >= GULP)
}
