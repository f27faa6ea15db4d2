//! Which of a node's logs is shown, and how a container that wrote one ended.

use std::time::Duration;

use crate::domain::effect::Effect;
use crate::domain::link::LinkState;
use crate::domain::logs::{ContainerEnd, LogChoice};
use crate::domain::{NodeId, Stamp, When};

use super::server::server_since;
use super::state::State;
use super::why::lost_since;

/// Silence of the head's log, while the server loads, after which a worker shows what Ray's workers on its own node write: the driver prints what they say,
/// as long as it prints. Weights are read and graphs captured with a line every few seconds.
pub const DRIVER_SILENT: Duration = Duration::from_secs(60);

/// Time before the news of a container's end over which the least memory counts: a log that ended is asked about for some seconds.
const BEFORE_END: Duration = Duration::from_secs(15);

/// Docker has found its place in a log by then, or the line that it is asked for is gone: it took up to a minute for the largest that were seen.
const SEEKS: Duration = Duration::from_secs(120);

/// A log whose newest line came sooner ago may still be read: an old line is then not its last.
const READING: Duration = Duration::from_secs(2);

/// Keeps every worker's choice what it should be: the files of Ray's while the driver is silent, unless the operator has chosen.
pub(super) fn settle(state: &mut State, now: Stamp, effects: &mut Vec<Effect>) {
    let silent = silent_since(state, now).is_some();
    for id in state.config.clone().workers() {
        let Some(view) = state.nodes.get_mut(id.index()) else {
            continue;
        };
        let wish = if silent { LogChoice::Ray } else { LogChoice::Own };
        if view.log.wish != wish {
            view.log.wish = wish;
            // What was asked for by hand holds until what is shown by itself changes.
            view.log.asked = None;
        }
        show(state, id, effects);
    }
}

/// Since when the driver says nothing though it should; `None` while it speaks, or has no reason to.
#[must_use]
pub fn silent_since(state: &State, now: Stamp) -> Option<When> {
    let head = state.config.head();
    let (seen, view) = (state.observed.node(head)?, state.nodes.get(head.index())?);
    // A head that is tried again is as silent as before.
    if let Some(since) = lost_since(state, head) {
        return Some(since);
    }
    if seen.link != LinkState::Up {
        return None;
    }
    let loading = state.loads() && !state.server.state.answers();
    let loading_since = loading.then(|| server_since(state))?;
    let spoke = view.log.at.map_or(loading_since, |at| at.max(loading_since));
    // While Docker looks for its place in the log, nobody knows what stands there.
    let seeks = view.log.flow.seeks.filter(|seeks| seeks.again);
    if seeks.is_some_and(|seeks| now.since(seeks.since) < SEEKS) {
        return None;
    }
    let read = view.log.came.is_none_or(|came| now.since(came) >= READING);
    (read && spoke.age(now) >= DRIVER_SILENT).then_some(spoke)
}

/// The operator wants the other one of the focused worker's logs.
pub(super) fn other(state: &mut State, effects: &mut Vec<Effect>) {
    let Some(id) = state.focused_node().filter(|id| *id != state.config.head()) else {
        return;
    };
    if let Some(view) = state.nodes.get_mut(id.index()) {
        view.log.asked = Some(match view.log.choice {
            LogChoice::Own => LogChoice::Ray,
            LogChoice::Ray => LogChoice::Own,
        });
    }
    show(state, id, effects);
}

fn show(state: &mut State, id: NodeId, effects: &mut Vec<Effect>) {
    let Some(view) = state.nodes.get_mut(id.index()) else {
        return;
    };
    let choice = view.log.asked.unwrap_or(view.log.wish);
    if view.log.choice != choice {
        view.log.choice = choice;
        effects.push(Effect::ShowLog(id, choice));
    }
}

/// A container that was followed ended: what memory there was just before may be why.
pub(super) fn ended(state: &mut State, node: NodeId, mut end: ContainerEnd, now: Stamp) {
    let total = state
        .observed
        .node(node)
        .and_then(|n| n.memory.value())
        .map(|m| m.total);
    if let Some(view) = state.nodes.get_mut(node.index()) {
        // What is free when its end is known was freed by it.
        let used = view.trends.most_used(now, BEFORE_END);
        end.available = total.zip(used).map(|(total, used)| total.minus(used));
        view.ended = Some((end, now));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::config;
    use crate::domain::event::{Event, EventKind};
    use crate::domain::intent::Pane;
    use crate::domain::{Now, Source, Wall};
    use crate::model::state::{Options, ServingState};
    use crate::model::update;

    use super::*;

    const HEAD: NodeId = NodeId(0);
    const WORKER: NodeId = NodeId(1);

    fn at(ms: u64) -> Now {
        Now {
            stamp: Stamp(ms),
            wall: Wall(ms),
        }
    }

    fn tell(state: &mut State, ms: u64, source: Source, kind: EventKind) -> Vec<Effect> {
        let effects = update(
            state,
            Event {
                source,
                at: at(ms),
                kind,
            },
        );
        effects
            .into_iter()
            .filter(|e| matches!(e, Effect::ShowLog(..)))
            .collect()
    }

    fn loading() -> State {
        let config = config::parse(config::EXAMPLE, "config.example.toml").unwrap();
        let mut state = State::new(Arc::new(config), Options::default(), at(0));
        for node in [HEAD, WORKER] {
            tell(&mut state, 0, Source::Node(node), EventKind::Link(LinkState::Up));
        }
        state.server.state = ServingState::Loading;
        state.server.since = Stamp(1000);
        state
    }

    fn settled(state: &mut State, ms: u64) -> Vec<Effect> {
        let mut effects = Vec::new();
        settle(state, Stamp(ms), &mut effects);
        effects
    }

    fn line(state: &mut State, ms: u64) {
        state.nodes[0].log.at = Some(When::at(Stamp(ms)));
    }

    #[test]
    fn a_silent_drivers_worker_shows_rays_own_files_until_the_driver_speaks() {
        let mut state = loading();
        line(&mut state, 5000);
        assert_eq!(settled(&mut state, 64_999), []);
        assert_eq!(settled(&mut state, 65_000), [Effect::ShowLog(WORKER, LogChoice::Ray)]);
        assert_eq!(silent_since(&state, Stamp(66_000)), Some(When::at(Stamp(5000))));
        assert_eq!(settled(&mut state, 66_000), []);
        line(&mut state, 67_000);
        assert_eq!(settled(&mut state, 67_000), [Effect::ShowLog(WORKER, LogChoice::Own)]);
    }

    #[test]
    fn what_was_said_before_the_load_is_no_silence_in_it_and_a_ready_server_may_be_silent() {
        let mut state = loading();
        line(&mut state, 10);
        assert_eq!(settled(&mut state, 60_999), []);
        assert_eq!(settled(&mut state, 61_000).len(), 1);
        state.server.state = ServingState::Ready;
        assert_eq!(settled(&mut state, 62_000), [Effect::ShowLog(WORKER, LogChoice::Own)]);
        assert_eq!(settled(&mut state, 999_000), []);
    }

    #[test]
    fn the_operators_choice_holds_until_the_driver_changes() {
        let mut state = loading();
        line(&mut state, 5000);
        state.screen.focus = Pane::Node(1);
        let key = |state: &mut State| {
            let mut effects = Vec::new();
            other(state, &mut effects);
            effects
        };
        assert_eq!(key(&mut state), [Effect::ShowLog(WORKER, LogChoice::Ray)]);
        assert_eq!(settled(&mut state, 7000), []);
        assert_eq!(key(&mut state), [Effect::ShowLog(WORKER, LogChoice::Own)]);
        assert_eq!(settled(&mut state, 65_000), [Effect::ShowLog(WORKER, LogChoice::Ray)]);
        assert_eq!(key(&mut state), [Effect::ShowLog(WORKER, LogChoice::Own)]);
        assert_eq!(settled(&mut state, 67_000), []);
        state.screen.focus = Pane::Node(0);
        assert_eq!(key(&mut state), [], "the head's log is the driver's");
    }

    #[test]
    fn a_head_that_does_not_answer_is_silent() {
        let mut state = loading();
        line(&mut state, 5000);
        let link = LinkState::Silent { since: Stamp(6000) };
        let effects = tell(&mut state, 10_000, Source::Node(HEAD), EventKind::Link(link));
        let settled = settled(&mut state, 10_000);
        assert_eq!([effects, settled].concat(), [Effect::ShowLog(WORKER, LogChoice::Ray)]);
    }
}
