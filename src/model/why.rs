//! Why something is not known, as far as the connections tell.

use std::borrow::Cow;
use std::time::Duration;

use crate::domain::link::{LinkErrorKind, LinkState};
use crate::domain::reading::NOT_ASKED;
use crate::domain::serving::{Health, NoToken};
use crate::domain::{HopId, NodeId, Reading, Stamp, When};

use super::given_up;
use super::ray::members::silent;
use super::schedule::HEALTH_EVERY;
use super::server::PORT_REFUSES;
use super::state::{LastError, ServingState, State};

impl State {
    /// Why a reading that comes from a node is not known: one that was never asked for, since the node can't be reached, says so.
    #[must_use]
    pub fn why_absent<'a, T>(&'a self, node: NodeId, reading: &'a Reading<T>) -> Cow<'a, str> {
        if !reading.asked() && self.lost(node) {
            return Cow::Owned(format!("{} can't be reached", self.config.node_name(node)));
        }
        Cow::Borrowed(reading.reason().unwrap_or_default())
    }

    /// Whether a node is out of reach: down, or tried again after it was.
    #[must_use]
    pub fn lost(&self, node: NodeId) -> bool {
        let seen = self.observed.node(node);
        let failed = self.nodes.get(node.index()).is_some_and(|n| n.last_error.is_some());
        seen.is_some_and(|n| n.link.is_down() || (failed && !n.link.usable()))
    }

    /// Why the model server is not as it should be, why nobody knows how it is, or why no token can prove it.
    #[must_use]
    pub fn server_why(&self) -> Option<Cow<'_, str>> {
        match &self.server.state {
            ServingState::Degraded(why) | ServingState::Failed(why) => Some(why.into()),
            ServingState::Unknown => Some(self.why_unknown()),
            // No token is asked for before the server has named its model.
            ServingState::Answering => {
                if let Some(NoToken::NotLetIn(why)) = &self.token_failed {
                    return Some(why.into());
                }
                let unasked = [NOT_ASKED, PORT_REFUSES];
                let why = self
                    .observed
                    .server
                    .models
                    .reason()
                    .filter(|why| !unasked.contains(why))?;
                Some(Cow::Owned(format!("/v1/models: {why}")))
            }
            ServingState::Loading => given_up::doubt(self, self.now.stamp).map(Cow::Owned),
            ServingState::Stopping if given_up::shuts_down(self) => {
                Some("its log says that it shuts down, and its process is still there".into())
            }
            ServingState::Stopping => Some("it has closed its port, and its process is still there".into()),
            ServingState::Down | ServingState::Ready => None,
        }
    }

    /// Why nobody knows how the model server is.
    fn why_unknown(&self) -> Cow<'_, str> {
        let (head, health) = (self.config.head(), &self.observed.server.health);
        let Some(node) = self.observed.node(head) else {
            return "there is no head".into();
        };
        match health.value() {
            None => return self.why_absent(head, health),
            Some(_) if !node.link.usable() => return "there is no connection to the head".into(),
            Some(_) if health.stale(self.now.stamp, HEALTH_EVERY) => {
                return "the head has not answered for a while".into();
            }
            Some(Health::Unreachable(why)) => return why.into(),
            Some(Health::Ok | Health::Refused | Health::Status(_)) => {}
        }
        let (what, why) = match node.containers.value() {
            None => ("containers", self.why_absent(head, &node.containers)),
            Some(_) => ("processes in the container", self.why_absent(head, &node.serve)),
        };
        Cow::Owned(format!(
            "the port refuses, and the {what} on the head are not known: {why}"
        ))
    }
}

/// Since when there has been no connection, after it changed from `old` to `link`: `None` while there is one, or none was tried.
pub(super) fn tried(before: Option<When>, old: &LinkState, link: &LinkState, now: Stamp) -> Option<When> {
    match link {
        LinkState::Up | LinkState::Silent { .. } => None,
        LinkState::Idle if !old.usable() => before,
        LinkState::Idle | LinkState::Connecting | LinkState::Asking | LinkState::Down { .. } => {
            before.or(Some(match (old, link) {
                // It was lost with its last sign of life, and not when that was sure.
                (LinkState::Silent { since }, _) | (LinkState::Up, LinkState::Down { since, .. }) => When::at(*since),
                (LinkState::Up, LinkState::Idle | LinkState::Connecting | LinkState::Asking) => When::at(now),
                // Nobody had asked before: how long it has been so is not known.
                (_, LinkState::Down { since, .. }) => When::found(*since),
                (_, _) => When::found(now),
            }))
        }
    }
}

/// Why a connection was down last, after it changed to `link`; `tried` is since when there has been none.
pub(super) fn last_error(
    before: Option<LastError>,
    tried: Option<When>,
    link: &LinkState,
    now: Stamp,
) -> Option<LastError> {
    match link {
        LinkState::Up | LinkState::Silent { .. } => None,
        LinkState::Idle | LinkState::Connecting | LinkState::Asking => before,
        LinkState::Down { error, since, .. } => Some(LastError {
            error: error.clone(),
            at: now,
            since: tried.unwrap_or(When::found(*since)),
        }),
    }
}

/// Since when there is no connection to a node that was or should be there; `None` while it is up, or was not tried to its end yet.
#[must_use]
pub fn lost_since(state: &State, node: NodeId) -> Option<When> {
    let last = state.nodes.get(node.index()).and_then(|n| n.last_error.as_ref());
    match &state.observed.node(node)?.link {
        LinkState::Up => None,
        LinkState::Silent { since } => Some(When::at(*since)),
        LinkState::Down { since, .. } => Some(last.map_or(When::found(*since), |l| l.since)),
        // Where it is tried again, nothing says yet that it answers.
        LinkState::Idle | LinkState::Connecting | LinkState::Asking => last.map(|l| l.since),
    }
}

/// What the last signs of life of a jump host and of a node behind it may differ by when both are lost in the same moment: they are heard at different times.
const TOGETHER: Duration = Duration::from_secs(3);

/// Whether a jump host before a silent node fell silent with it, or before: then nobody knows how the node is.
pub(super) fn silent_with_its_hop(state: &State, node: NodeId) -> bool {
    let Some(LinkState::Silent { since }) = state.observed.node(node).map(|seen| &seen.link) else {
        return false;
    };
    way_to(state, node).any(|hop| {
        let hop = state.hops.get(hop.index());
        matches!(hop, Some(LinkState::Silent { since: hop }) if *hop <= since.plus(TOGETHER))
    })
}

/// Whether a node tells now what is known of it: it is connected, and its readings go on.
#[must_use]
pub fn tells(state: &State, node: NodeId) -> bool {
    connected(state, node) && silent(state, node).is_none()
}

/// Whether a node is connected and has given a sign of life just now.
#[must_use]
pub fn connected(state: &State, node: NodeId) -> bool {
    state.observed.node(node).is_some_and(|seen| seen.link == LinkState::Up)
}

/// Up to when what the readings of a node tell is known to be so: now while it tells, else its last sign of life. What goes on by itself is counted up to
/// then.
#[must_use]
pub fn told_until(state: &State, node: NodeId, now: Stamp) -> Stamp {
    let read = || state.observed.node(node)?.memory.at();
    let last = || silent(state, node).map(|silent| silent.since.stamp).or_else(read);
    if tells(state, node) { None } else { last() }.map_or(now, |at| at.min(now))
}

/// The same of what comes by streams of their own, such as a log: they go on while the connection does, also where the readings stand still.
#[must_use]
pub fn heard_until(state: &State, node: NodeId, now: Stamp) -> Stamp {
    if connected(state, node) {
        now
    } else {
        told_until(state, node, now)
    }
}

/// The jump host that keeps a node from being reached: the first on the way to it that is down. `None` where it is not the way.
#[must_use]
pub fn held_up_by(state: &State, node: NodeId) -> Option<HopId> {
    let last = state.nodes.get(node.index()).and_then(|n| n.last_error.as_ref());
    let error = match &state.observed.node(node)?.link {
        LinkState::Up | LinkState::Silent { .. } => None,
        LinkState::Down { error, .. } => Some(error),
        LinkState::Idle | LinkState::Connecting | LinkState::Asking => last.map(|l| &l.error),
    };
    error.filter(|error| error.kind == LinkErrorKind::ViaDown)?;
    let down = |hop: &HopId| state.hop_errors.get(hop.index()).is_some_and(Option::is_some);
    way_to(state, node).filter(down).last()
}

/// The jump hosts on the way to a node, the nearest to it first.
fn way_to(state: &State, node: NodeId) -> impl Iterator<Item = HopId> + '_ {
    let jump = &state.config.ssh.jump;
    let nearest = state.config.node(node).and_then(|node| node.via);
    std::iter::successors(nearest, |hop| jump.get(hop.index())?.via).take(jump.len())
}

/// The nodes that a jump host keeps from being reached, by their names.
#[must_use]
pub fn held_up(state: &State, hop: HopId) -> Vec<&str> {
    let behind = state.config.node_ids().filter(|id| held_up_by(state, *id) == Some(hop));
    behind.map(|id| state.config.node_name(id)).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::config::{self, EXAMPLE};
    use crate::domain::event::{Event, EventKind};
    use crate::domain::link::LinkError;
    use crate::domain::{Now, Source, Wall};
    use crate::model::{Options, update};

    use super::*;

    const HEAD: NodeId = NodeId(0);

    #[test]
    fn an_unknown_server_says_what_is_not_known_of_it() {
        let config = config::parse(EXAMPLE, "config.example.toml").unwrap();
        let mut state = State::new(Arc::new(config), Options::default(), Now::default());
        let why = |state: &State| state.server_why().unwrap().into_owned();
        assert_eq!(why(&state), "not asked yet");
        state.observed.server.health = Reading::known(Health::Refused, Stamp(0));
        assert_eq!(why(&state), "there is no connection to the head");
        state.observed.nodes[0].link = LinkState::Up;
        state.observed.nodes[0].containers = Reading::absent("Docker's daemon does not answer");
        assert_eq!(
            why(&state),
            "the port refuses, and the containers on the head are not known: Docker's daemon does not answer"
        );
        state.observed.server.health = Reading::known(Health::Unreachable("no channel".to_owned()), Stamp(0));
        assert_eq!(why(&state), "no channel");
        state.now.stamp = Stamp(60_000);
        assert_eq!(why(&state), "the head has not answered for a while");
    }

    #[test]
    fn a_cause_stays_until_the_connection_is_up() {
        let config = config::parse(EXAMPLE, "config.example.toml").unwrap();
        let mut state = State::new(Arc::new(config), Options::default(), Now::default());
        let down = |since| LinkState::Down {
            error: LinkError {
                kind: LinkErrorKind::Unreachable,
                text: "it is silent".into(),
                fix: None,
            },
            since: Stamp(since),
            retry_at: None,
        };
        let mut stands = |source, stamp, link| {
            let at = Now {
                stamp: Stamp(stamp),
                wall: Wall(stamp),
            };
            let kind = EventKind::Link(link);
            update(&mut state, Event { source, at, kind });
            let last = match source {
                Source::Hop(_) => &state.hop_errors[0],
                _ => &state.nodes[0].last_error,
            };
            let why = state.why_absent(HEAD, &state.observed.ray).into_owned();
            (last.as_ref().map(|l| (l.at, l.since)), why)
        };
        let (never, lost) = ("not asked yet".to_owned(), "spark-1 can't be reached".to_owned());
        for (source, why, from) in [(Source::Node(HEAD), &lost, 0), (Source::Hop(HopId(0)), &never, 100)] {
            let mut next = |after, link| stands(source, from + after, link);
            let first = When::found(Stamp(from + 1));
            let failed = Some((Stamp(from + 10), first));
            let again = Some((Stamp(from + 25), first));
            assert_eq!(next(1, LinkState::Connecting), (None, never.clone()));
            assert_eq!(next(10, down(10)), (failed, why.clone()));
            assert_eq!(next(20, LinkState::Connecting), (failed, why.clone()));
            assert_eq!(next(25, down(25)), (again, why.clone()), "since the first try");
            assert_eq!(next(30, LinkState::Up), (None, never.clone()));
            assert_eq!(next(40, LinkState::Connecting), (None, never.clone()));
            let lost = Some((Stamp(from + 50), When::at(Stamp(from + 40))));
            assert_eq!(next(50, down(from + 50)).0, lost, "it was up until it was tried anew");
            assert_eq!(next(60, LinkState::Up), (None, never.clone()));
        }
    }
}
