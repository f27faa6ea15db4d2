//! The one writer: (state, event) to effects.

use crate::domain::bench::BenchEvent;
use crate::domain::clock::{NodeClock, Written};
use crate::domain::effect::Effect;
use crate::domain::event::{Event, EventKind};
use crate::domain::link::LinkState;
use crate::domain::load::LineFact;
use crate::domain::{NodeId, Now, Reading, Source, Stamp, Wall, When};

use super::state::{NOTICES, Notice, ServingState, State, Watch};
use super::when::when;
use super::{causes, commands, facts, history, intents, life, logs, run, schedule, server, survived, why};

/// Takes one event. What must be done about it comes back in order.
pub fn update(state: &mut State, event: Event) -> Vec<Effect> {
    // Facts are as old as their question; time itself only goes on.
    if event.at.stamp >= state.now.stamp {
        state.now = event.at;
    }
    let now = event.at.stamp;
    let source = event.source;
    let mut effects = Vec::new();
    let changes = changes_cluster(&event.kind);
    match event.kind {
        EventKind::Link(link) => {
            if link != LinkState::Asking {
                intents::withdrawn(state, source, &mut effects);
            }
            take_link(state, source, link);
        }
        EventKind::Facts(found) => {
            if let Source::Node(node) = source {
                facts::take(state, node, found, now);
            }
        }
        EventKind::Pace { what, every } => {
            if let Some(view) = node_of(source).and_then(|n| state.nodes.get_mut(n.index())) {
                view.paces.insert(what, every);
            }
        }
        EventKind::ProbeFailed { probe, why } => {
            if let Source::Node(node) = source {
                facts::failed(state, node, probe, &why, now);
            }
        }
        EventKind::Problems(problems) => {
            if let Some(node) = node_of(source) {
                causes::problems(state, node, &problems);
                if let Some(view) = state.nodes.get_mut(node.index()) {
                    view.problems = problems;
                }
            }
        }
        EventKind::Server(answer) => server::take(state, answer, now),
        EventKind::CommandStarted(start) => commands::started(state, start),
        EventKind::CommandDone(done) => {
            commands::done(state, &done);
            run::command_done(state, &done, &mut effects);
        }
        EventKind::Clock(clock) => {
            if let Some(node) = node_of(source) {
                self::clock(state, node, clock, event.at);
            }
        }
        EventKind::LogAdvanced {
            seq,
            dropped,
            newest,
            spoke,
        } => {
            if let Some(node) = node_of(source) {
                let spoke = spoke.and_then(|written| written_at(state, node, written, now));
                let newest = newest.and_then(|written| written_at(state, node, written, now));
                if let Some(view) = state.nodes.get_mut(node.index()) {
                    view.log.seq = seq;
                    view.log.dropped = dropped;
                    if let Some(at) = spoke {
                        view.load.spoke(at);
                    }
                    if let Some(at) = newest {
                        view.log.at = Some(at);
                        view.log.came = Some(now);
                    }
                }
            }
        }
        EventKind::LogFlow(flow) => {
            if let Some(view) = node_of(source).and_then(|n| state.nodes.get_mut(n.index())) {
                view.log.flow = flow;
            }
        }
        EventKind::LogSource(source_now) => {
            if let Some(view) = node_of(source).and_then(|n| state.nodes.get_mut(n.index())) {
                let before = view.log.source.as_ref().map(|(before, _)| before.what());
                if before != Some(source_now.what()) {
                    // The lines of another log have an order of their own.
                    (view.log.at, view.log.came, view.log.last) = (None, None, None);
                }
                // The first word of a connection finds what is so already.
                let last = view.log.source.as_ref().map(|(_, at)| *at);
                let first = last.is_none_or(|at| view.linked_at.is_some_and(|linked| at < linked));
                view.log.found = first && source_now.missing().is_some();
                view.log.source = Some((source_now, now));
            }
        }
        EventKind::ContainerEnded(end) => {
            if let Some(node) = node_of(source) {
                logs::ended(state, node, end, now);
            }
        }
        EventKind::Line(fact, written) => {
            if let Some(node) = node_of(source)
                && let Some(at) = written_at(state, node, written, now)
            {
                line(state, node, fact, at, written.by_node);
            }
        }
        EventKind::Sign(sign) => {
            if let Some(node) = node_of(source) {
                causes::take(state, node, sign, event.at);
            }
        }
        EventKind::Question(question) => intents::asked(state, question, &mut effects),
        EventKind::Bench(news) => bench(state, source, news),
        EventKind::Intent(intent) => intents::take(state, intent, &mut effects),
        EventKind::Tick => schedule::due(state, now, &mut effects),
        EventKind::EarlierLoads(loads) => history::know(state, loads),
        EventKind::Notice(text) => notice(state, source, text),
    }
    life::settle(state, state.now.stamp);
    let loaded = state.server.state == ServingState::Loading;
    server::settle(state, state.now.stamp, &mut effects);
    if state.server.state == ServingState::Loading && !loaded {
        // Other consoles may have seen loads to their end since this one has looked.
        effects.push(Effect::ReadLoads);
    }
    if changes {
        causes::settle(state);
        run::look_back(state);
        logs::settle(state, state.now.stamp, &mut effects);
    }
    run::advance(state, &mut effects);
    effects
}

/// Whether an event may change what is judged of the cluster. Lines of logs, of which there may be many, do not.
fn changes_cluster(kind: &EventKind) -> bool {
    match kind {
        EventKind::Link(_) | EventKind::Facts(_) | EventKind::Server(_) | EventKind::Tick => true,
        EventKind::Pace { .. }
        | EventKind::ProbeFailed { .. }
        | EventKind::Problems(_)
        | EventKind::CommandStarted(_)
        | EventKind::CommandDone(_)
        | EventKind::Clock(_)
        | EventKind::LogAdvanced { .. }
        | EventKind::LogFlow(_)
        | EventKind::LogSource(_)
        | EventKind::ContainerEnded(_)
        | EventKind::Line(..)
        | EventKind::Sign(_)
        | EventKind::Question(_)
        | EventKind::Bench(_)
        | EventKind::Intent(_)
        | EventKind::EarlierLoads(_)
        | EventKind::Notice(_) => false,
    }
}

/// Takes what the throughput test tells. What went wrong is news when the test ends, for its pane may be out of sight.
fn bench(state: &mut State, source: Source, news: BenchEvent) {
    let Some(bench) = &mut state.bench else { return };
    let ran = bench.running();
    let unsaved = match &news {
        BenchEvent::Unsaved(why) => Some(why.clone()),
        BenchEvent::Started(_)
        | BenchEvent::Prompt { .. }
        | BenchEvent::Warmup { .. }
        | BenchEvent::Token { .. }
        | BenchEvent::Request(_)
        | BenchEvent::Tally(_)
        | BenchEvent::Done { .. }
        | BenchEvent::Saved(_)
        | BenchEvent::Failed(_) => None,
    };
    bench.take(news);
    let ended = bench.trouble().filter(|_| ran);
    for text in [unsaved, ended].into_iter().flatten() {
        notice(state, source, text);
    }
}

/// Adds a notice; the oldest goes first.
pub(super) fn notice(state: &mut State, source: Source, text: String) {
    if state.notices.len() == NOTICES {
        state.notices.pop_front();
    }
    state.notices.push_back(Notice {
        at: state.now,
        source,
        text,
    });
}

/// Takes what a node's own clock shows, or why that is not known. What it showed before stays, with its age.
fn clock(state: &mut State, node: NodeId, clock: Result<NodeClock, String>, at: Now) {
    let Some(seen) = state.observed.nodes.get_mut(node.index()) else {
        return;
    };
    let clock = match clock {
        Ok(clock) => clock,
        Err(why) => {
            if seen.clock.value().is_none() {
                seen.clock = Reading::absent(why);
            }
            return;
        }
    };
    // A look that was asked for may be answered before one that began earlier.
    if seen.clock.at().is_none_or(|known| known <= at.stamp) {
        seen.clock = Reading::known(clock, at.stamp);
        state.evidence.clock(node, clock.shows, at.wall);
    }
}

/// When a line of a node's log was written that is read now.
fn written_at(state: &mut State, node: NodeId, written: Written, now: Stamp) -> Option<When> {
    let clock = &state.observed.node(node)?.clock;
    let log = &mut state.nodes.get_mut(node.index())?.log;
    let at = when(clock, log.last, written, now);
    log.last = at.sure().or(log.last);
    Some(at)
}

/// Takes what a line says of a load that was written then, by its node's own clock `by_node`.
fn line(state: &mut State, node: NodeId, fact: LineFact, now: When, by_node: Option<Wall>) {
    if fact == LineFact::NewStart
        && let Some(view) = state.nodes.get_mut(node.index())
    {
        let again = by_node.is_some() && view.banner == by_node && view.load.begun();
        view.banner = by_node;
        if again {
            return;
        }
    }
    if let LineFact::Outlived(text) = &fact {
        state.evidence.outlived(node, text);
    }
    if survived::over(state, &fact, now) {
        return;
    }
    if fact == LineFact::NewStart && node == state.config.head() {
        // What the nodes held until now is not of this load.
        state.nodes.iter_mut().for_each(|view| view.trends.begin());
        state.served.clear();
    }
    if let Some(view) = state.nodes.get_mut(node.index()) {
        view.load.line(fact, now);
    }
}

fn node_of(source: Source) -> Option<NodeId> {
    match source {
        Source::Node(n) => Some(n),
        Source::Hop(_) | Source::Server | Source::Bench | Source::Operator | Source::Clock => None,
    }
}

/// A link changed. Readings stay as they are: their age tells.
fn take_link(state: &mut State, source: Source, link: LinkState) {
    let now = state.now.stamp;
    match source {
        Source::Hop(hop) => {
            if let (Some(slot), Some(last), Some(tried)) = (
                state.hops.get_mut(hop.index()),
                state.hop_errors.get_mut(hop.index()),
                state.hop_tried.get_mut(hop.index()),
            ) {
                *tried = why::tried(*tried, slot, &link, now);
                *last = why::last_error(last.take(), *tried, &link, now);
                *slot = link;
            }
        }
        Source::Node(node) => {
            let (Some(seen), Some(view)) = (
                state.observed.nodes.get_mut(node.index()),
                state.nodes.get_mut(node.index()),
            ) else {
                return;
            };
            view.tried = why::tried(view.tried, &seen.link, &link, now);
            view.last_error = why::last_error(view.last_error.take(), view.tried, &link, now);
            view.linked_at = linked_at(view.linked_at, &link, now);
            let usable = link.usable();
            match (usable, view.watch) {
                (true, Watch::None) => view.watch = Watch::Ended(now),
                (true, Watch::Runs(_) | Watch::Ended(_)) => {}
                (false, _) => {
                    view.watch = Watch::None;
                    view.paces.clear();
                    view.unread.clear();
                }
            }
            seen.link = link;
            // The readings of the stream are asked for with the connection.
            seen.memory.asking(usable);
            seen.gpus.asking(usable);
            seen.containers.asking(usable);
            seen.sockets.asking(usable);
            seen.fabric.asking(usable);
            seen.disk.asking(usable);
            if !usable {
                commands::cut(state, node);
            }
            if node == state.config.head() && !usable {
                server::head_lost(state);
            }
        }
        Source::Server | Source::Bench | Source::Operator | Source::Clock => {}
    }
}

fn linked_at(before: Option<Stamp>, link: &LinkState, now: Stamp) -> Option<Stamp> {
    if link.usable() { before.or(Some(now)) } else { None }
}
