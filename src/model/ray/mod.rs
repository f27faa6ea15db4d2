//! Ray's membership: where it is read from, and since when each of Ray's nodes is as it is.
//!
//! Three sources tell of it, the best one first: the dashboard, a Python in the head's container, and `ray status`, which counts nodes and can't name
//! them. A source that fails is asked again later and later, up to a limit, and the next one is asked meanwhile.

pub mod members;
pub mod ranks;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use crate::domain::ray::{RayFacts, RayStatus, RayVia};
use crate::domain::{Reading, Stamp};

/// Waits before a source that failed is asked again: the first, and the longest. The dashboard's refusal costs nobody anything; a Python's start and
/// `ray status` cost the head seconds of a core.
fn again(via: RayVia) -> (Duration, Duration) {
    let (first, longest) = match via {
        RayVia::Dashboard => (3, 15),
        RayVia::Container => (5, 60),
        RayVia::Status => (60, 300),
    };
    (Duration::from_secs(first), Duration::from_secs(longest))
}

/// Failures in a row that are counted: the wait is at its longest long before.
const MAX_TRIES: u32 = 30;

/// One source of the membership.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct RaySource {
    /// When it answered last.
    pub answered: Option<Stamp>,
    /// How it fails, while it does.
    pub failure: Option<SourceFailure>,
}

/// How a source fails.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SourceFailure {
    /// Why, as a fragment: the latest reason.
    pub why: String,
    /// Since when.
    pub since: Stamp,
    /// When it failed last.
    pub last: Stamp,
    /// How often in a row.
    pub tries: u32,
    /// Whether it says that Ray is not there to be asked, so that another source can't know more.
    pub no_ray: bool,
}

impl RaySource {
    fn answered(&mut self, at: Stamp) {
        self.answered = Some(at);
        self.failure = None;
    }

    fn failed(&mut self, why: &str, at: Stamp, no_ray: bool) {
        let before = self.failure.take();
        self.failure = Some(SourceFailure {
            why: why.to_owned(),
            since: before.as_ref().map_or(at, |f| f.since),
            last: at,
            tries: before.map_or(1, |f| f.tries.saturating_add(1).min(MAX_TRIES)),
            no_ray,
        });
    }

    /// How long it is left alone while it fails; `None` while it does not.
    fn pause(&self, via: RayVia) -> Option<Duration> {
        let failure = self.failure.as_ref()?;
        let (first, longest) = again(via);
        let doublings = failure.tries.saturating_sub(1).min(MAX_TRIES);
        Some(first.saturating_mul(1 << doublings).min(longest))
    }
}

/// One life of a Ray node as the console has seen it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Life {
    /// Whether Ray calls it alive.
    pub alive: bool,
    /// Since when the console knows it to be so.
    pub since: Stamp,
}

/// What the console keeps of Ray beside the membership itself.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct RayView {
    /// The sources in the order of [`RayVia::ALL`].
    sources: [RaySource; 3],
    /// What `ray status` counts, where nothing better answers.
    pub status: Reading<RayStatus>,
    /// Ray's nodes by their id; as many as the latest list has.
    lives: BTreeMap<String, Life>,
    /// Since when the console has seen each placement group wait; as many as the latest list has.
    waits: BTreeMap<String, Stamp>,
}

impl RayView {
    /// A source.
    #[must_use]
    pub fn source(&self, via: RayVia) -> &RaySource {
        let [dashboard, container, status] = &self.sources;
        match via {
            RayVia::Dashboard => dashboard,
            RayVia::Container => container,
            RayVia::Status => status,
        }
    }

    fn source_mut(&mut self, via: RayVia) -> &mut RaySource {
        let [dashboard, container, status] = &mut self.sources;
        match via {
            RayVia::Dashboard => dashboard,
            RayVia::Container => container,
            RayVia::Status => status,
        }
    }

    /// Whether a source failed when it was asked last.
    #[must_use]
    pub fn fails(&self, via: RayVia) -> bool {
        self.source(via).failure.is_some()
    }

    /// How often a source is asked now: as usual, or less often while it fails.
    pub(super) fn every(&self, via: RayVia, usual: Duration) -> Duration {
        self.source(via).pause(via).unwrap_or(usual)
    }

    /// Whether `ray status` is worth its cost: the better sources fail, and not because there is no Ray.
    pub(super) fn wants_status(&self) -> bool {
        let container = self.source(RayVia::Container).failure.as_ref();
        self.fails(RayVia::Dashboard) && container.is_some_and(|f| !f.no_ray)
    }

    /// A source gave nothing.
    pub(super) fn failed(&mut self, via: RayVia, why: &str, at: Stamp, no_ray: bool) {
        self.source_mut(via).failed(why, at, no_ray);
    }

    /// What `ray status` counts.
    pub(super) fn counted(&mut self, status: RayStatus, at: Stamp) {
        self.source_mut(RayVia::Status).answered(at);
        self.status = Reading::known(status, at);
    }

    /// The head was started anew: what failed of the one before says nothing of it.
    pub(super) fn new_head(&mut self) {
        *self = Self::default();
    }

    /// Takes a list of nodes.
    fn take(&mut self, ray: &RayFacts, at: Stamp) {
        self.source_mut(ray.via).answered(at);
        let lives = ray.nodes.iter().map(|n| {
            let before = self.lives.get(&n.id).filter(|life| life.alive == n.alive);
            let since = before.map_or(at, |life| life.since);
            (n.id.clone(), Life { alive: n.alive, since })
        });
        self.lives = lives.collect();
        if ray.pending_unknown.is_none() {
            let seen = |id: &String| self.waits.get(id).copied().unwrap_or(at);
            self.waits = ray.pending.iter().map(|g| (g.id.clone(), seen(&g.id))).collect();
        }
    }

    /// Since when the console has seen a node of Ray as it is.
    #[must_use]
    pub fn life(&self, id: &str) -> Option<Life> {
        self.lives.get(id).copied()
    }

    /// Since when the console has seen a placement group wait.
    #[must_use]
    pub fn waits_since(&self, id: &str) -> Option<Stamp> {
        self.waits.get(id).copied()
    }
}

/// Takes a membership. One that was asked for earlier than what is known changes nothing.
pub(super) fn take(state: &mut super::State, ray: RayFacts, at: Stamp) {
    if state.observed.ray.at().is_some_and(|known| known > at) {
        return;
    }
    state.ray.take(&ray, at);
    state.observed.ray = Reading::known(ray, at);
}

#[cfg(test)]
mod source_tests {
    use super::*;
    use crate::domain::ray::RayNode;

    const S: fn(u64) -> Duration = Duration::from_secs;

    #[test]
    fn a_source_that_fails_is_asked_later_and_later_and_at_once_when_it_is_well() {
        let mut ray = RayView::default();
        let mut waits = Vec::new();
        for n in 0..6 {
            ray.failed(RayVia::Dashboard, "connection refused", Stamp(n * 1000), false);
            waits.push(ray.every(RayVia::Dashboard, S(1)).as_secs());
        }
        assert_eq!(waits, [3, 6, 12, 15, 15, 15]);
        let failure = ray.source(RayVia::Dashboard).failure.clone().unwrap();
        assert_eq!((failure.since, failure.last), (Stamp(0), Stamp(5000)));
        ray.take(&RayFacts::default(), Stamp(6000));
        assert_eq!(ray.every(RayVia::Dashboard, S(1)), S(1));
        assert!(!ray.fails(RayVia::Dashboard));
    }

    #[test]
    fn ray_status_is_the_last_resort_and_not_for_a_ray_that_is_not_there() {
        let mut ray = RayView::default();
        assert!(!ray.wants_status());
        ray.failed(RayVia::Dashboard, "connection refused", Stamp(0), false);
        assert!(!ray.wants_status());
        ray.failed(
            RayVia::Container,
            "Ray does not listen in the head's container",
            Stamp(0),
            true,
        );
        assert!(!ray.wants_status());
        ray.failed(RayVia::Container, "python3 is not in the container", Stamp(1), false);
        assert!(ray.wants_status());
        assert_eq!(ray.every(RayVia::Status, S(60)), S(60));
        ray.failed(RayVia::Status, "exit 1", Stamp(2), false);
        ray.failed(RayVia::Status, "exit 1", Stamp(3), false);
        assert_eq!(ray.every(RayVia::Status, S(60)), S(120));
    }

    #[test]
    fn a_node_is_as_it_is_since_the_console_saw_it_change() {
        let node = |alive| RayNode {
            id: "af92".to_owned(),
            alive,
            ..RayNode::default()
        };
        let list = |alive| RayFacts {
            nodes: vec![node(alive)],
            ..RayFacts::default()
        };
        let mut ray = RayView::default();
        for (alive, at, since) in [
            (true, 1000, 1000),
            (true, 4000, 1000),
            (false, 7000, 7000),
            (false, 9000, 7000),
        ] {
            ray.take(&list(alive), Stamp(at));
            assert_eq!(
                ray.life("af92"),
                Some(Life {
                    alive,
                    since: Stamp(since)
                })
            );
        }
        ray.take(&RayFacts::default(), Stamp(10_000));
        assert_eq!(ray.life("af92"), None);
    }
}
