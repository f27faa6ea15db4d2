//! What Ray's membership means for each node of the config.

use std::time::Duration;

use crate::domain::cadence;
use crate::domain::container::ContainerState;
use crate::domain::count::{amount, things};
use crate::domain::event::Subject;
use crate::domain::link::LinkState;
use crate::domain::ray::{PlacementGroup, RayFacts, RayNode};
use crate::domain::time::{human, millis};
use crate::domain::{NodeId, Now, Stamp, Wall, When};
use crate::model::schedule::{RAY_EVERY, every, ray_every};
use crate::model::{State, connected, ends, lost_since};
use crate::plan::stray_of;

/// A node of the config in Ray.
#[derive(Debug, Clone, PartialEq)]
pub struct Member<'a> {
    /// Which.
    pub id: NodeId,
    /// How Ray knows it.
    pub standing: Standing<'a>,
    /// Earlier lives at its address that Ray still lists as dead.
    pub earlier: usize,
    /// Since when it does not answer, whatever Ray says.
    pub silent: Option<Silent>,
    /// Whether its container has ended, which Ray learns of later than Docker.
    pub ended: bool,
    /// What is wrong with what Ray counts there.
    pub wrong: Vec<String>,
}

/// How Ray knows a node.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Standing<'a> {
    /// Alive at its fabric address.
    Alive(&'a RayNode),
    /// Alive at another address.
    Elsewhere(&'a RayNode),
    /// Dead: its latest life.
    Dead(&'a RayNode),
    /// Not in Ray's list.
    Absent,
}

/// A node that does not answer the console.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Silent {
    /// Since when; one that was never reached was found so with the first try.
    pub since: When,
    /// Who knows.
    pub by: SilentBy,
}

impl Silent {
    /// What is so, and for how long: `not answering for 12 s`. One that was found so just now may have been so for long.
    #[must_use]
    pub fn text(self, now: Stamp) -> String {
        let says = self.by.says();
        let age = self.since.age(now);
        match (self.since.found, age < Duration::from_secs(1)) {
            (true, true) => says.to_owned(),
            (true, false) => format!("{says} for over {}", human(age)),
            (false, true) => format!("{says} for 0 s"),
            (false, false) => format!("{says} for {}", human(age)),
        }
    }
}

/// Who knows that a node does not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SilentBy {
    /// The SSH connection: keepalives go unanswered, or it is down.
    Ssh,
    /// The stream of readings stands still while the connection lives.
    Readings,
}

impl SilentBy {
    /// The word in JSON.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Ssh => "ssh",
            Self::Readings => "readings",
        }
    }

    /// What is so since then. A node that is short of memory or busy may tell nothing for a while and still answer.
    #[must_use]
    pub fn says(self) -> &'static str {
        match self {
            Self::Ssh => "not answering",
            Self::Readings => "no readings",
        }
    }
}

impl<'a> Standing<'a> {
    /// The life of the node in Ray that it comes from.
    #[must_use]
    pub fn node(self) -> Option<&'a RayNode> {
        match self {
            Self::Alive(n) | Self::Elsewhere(n) | Self::Dead(n) => Some(n),
            Self::Absent => None,
        }
    }

    /// The word in JSON.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Alive(_) => "alive",
            Self::Elsewhere(_) => "wrong-address",
            Self::Dead(_) => "dead",
            Self::Absent => "absent",
        }
    }
}

impl Member<'_> {
    /// Whether Ray calls it alive and something else speaks against that.
    #[must_use]
    pub fn doubted(&self) -> bool {
        self.said_alive().is_some() && (self.ended || self.silent.is_some())
    }

    /// Its life in Ray, where Ray calls it alive at the address that it should have.
    #[must_use]
    pub fn said_alive(&self) -> Option<&RayNode> {
        match self.standing {
            Standing::Alive(node) => Some(node),
            Standing::Elsewhere(_) | Standing::Dead(_) | Standing::Absent => None,
        }
    }

    /// Whether all is as it should be.
    #[must_use]
    pub fn well(&self) -> bool {
        self.said_alive().is_some() && self.silent.is_none() && self.wrong.is_empty()
    }
}

/// Each node of the config; `None` while nothing is known of the membership.
#[must_use]
pub fn members(state: &State) -> Option<Vec<Member<'_>>> {
    let ray = state.observed.ray.value()?;
    let one = |id| {
        let node = state.config.node(id)?;
        let dead = ray.dead_at(&node.fabric_address);
        let alive = ray.alive_at(&node.fabric_address);
        let stray = stray_of(&state.observed, &state.config, ray, id);
        let (standing, earlier) = match (alive, stray, dead.split_first()) {
            (Some(n), ..) => (Standing::Alive(n), dead.len()),
            (None, Some(n), _) => (Standing::Elsewhere(n), dead.len()),
            (None, None, Some((n, rest))) => (Standing::Dead(n), rest.len()),
            (None, None, None) => (Standing::Absent, 0),
        };
        let ended = ended(state, id);
        let wrong = match standing {
            Standing::Alive(n) | Standing::Elsewhere(n) => {
                let mut wrong: Vec<String> = ended.iter().cloned().collect();
                wrong.extend(miscounted(state, id, n, node.gpus));
                wrong.extend(twice(ray, n));
                wrong
            }
            Standing::Dead(_) | Standing::Absent => Vec::new(),
        };
        Some(Member {
            id,
            standing,
            earlier,
            silent: silent(state, id),
            ended: ended.is_some(),
            wrong,
        })
    };
    Some(state.config.node_ids().filter_map(one).collect())
}

/// That Ray calls a node alive whose container has ended or is gone: it learns of that later than Docker.
fn ended(state: &State, id: NodeId) -> Option<String> {
    let seen = &state.observed.node(id)?.containers;
    let fresh = !seen.stale(state.now.stamp, every(state, id, Subject::Containers));
    let Some(own) = seen.value().filter(|_| fresh)?.named(&state.config.container.name) else {
        let gone = ends::standing(state, id)??;
        return Some(format!("its container has gone ({gone}): Ray has not noticed yet"));
    };
    match &own.state {
        ContainerState::Exited { code, .. } => Some(format!(
            "its container has ended with exit code {code}: Ray has not noticed yet"
        )),
        ContainerState::Created
        | ContainerState::Running
        | ContainerState::Paused
        | ContainerState::Restarting
        | ContainerState::Other(_) => None,
    }
}

/// Digits of Ray's ids that a person needs to tell two of them apart.
const SHORT_ID: usize = 8;

/// That Ray calls several lives at a node's address alive, and what it then counts.
fn twice(ray: &RayFacts, counted: &RayNode) -> Option<String> {
    let lives = ray.lives_at(&counted.address);
    if lives.len() < 2 {
        return None;
    }
    let gpus = lives.iter().fold(0.0, |sum, n| sum + n.gpus);
    let id: String = counted.id.chars().take(SHORT_ID).collect();
    Some(format!(
        "registered {} times: Ray calls them all alive, {} together; {id} came last and is the one that counts here",
        lives.len(),
        amount(gpus, "GPU")
    ))
}

/// What is wrong with what Ray counts on a node.
fn miscounted(state: &State, id: NodeId, node: &RayNode, expected: u32) -> Vec<String> {
    let mut wrong = Vec::new();
    if !node.has_gpus(expected) {
        let instead = match node.counted_as().as_str() {
            "" => String::new(),
            devices => format!(" and {devices}"),
        };
        wrong.push(format!(
            "Ray counts {}{instead}, expected {}",
            amount(node.gpus, "GPU"),
            things(expected, "GPU")
        ));
    } else if !node.devices.is_empty() {
        wrong.push(format!("Ray counts {} beside the GPUs", node.counted_as()));
    }
    // A number that somebody gave Ray is no device.
    let gpus = state.observed.node(id).and_then(|n| n.gpus.value());
    if let Some(gpus) = gpus {
        let seen: usize = gpus.gpus.iter().map(|g| g.slices.len().max(1)).sum();
        let seen = u32::try_from(seen).unwrap_or(u32::MAX);
        if node.gpus > f64::from(seen) + 0.5 {
            wrong.push(format!(
                "Ray counts {}, the driver lists {seen}",
                amount(node.gpus, "GPU")
            ));
        }
    }
    wrong
}

/// Since when a node does not answer. Ray itself notices a lost host after many seconds.
#[must_use]
pub fn silent(state: &State, id: NodeId) -> Option<Silent> {
    let seen = state.observed.node(id)?;
    let ssh = |since| {
        Some(Silent {
            since,
            by: SilentBy::Ssh,
        })
    };
    match &seen.link {
        LinkState::Silent { .. }
        | LinkState::Down { .. }
        | LinkState::Idle
        | LinkState::Connecting
        | LinkState::Asking => ssh(lost_since(state, id)?),
        LinkState::Up => {
            let stale = seen.memory.stale(state.now.stamp, cadence::MEMORY_EVERY);
            let since = seen.memory.at().filter(|_| stale)?;
            Some(Silent {
                since: When::at(since),
                by: SilentBy::Readings,
            })
        }
    }
}

/// Nodes of Ray that are no node of the config, at whatever address.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Strangers<'a> {
    /// Those that are alive.
    pub alive: Vec<&'a RayNode>,
    /// How many dead ones there are.
    pub dead: usize,
}

/// Nodes of Ray that are none of the config.
#[must_use]
pub fn strangers(state: &State) -> Strangers<'_> {
    let Some(ray) = state.observed.ray.value() else {
        return Strangers::default();
    };
    let own: Vec<&str> = members(state)
        .unwrap_or_default()
        .iter()
        .filter_map(|m| m.standing.node())
        .map(|n| n.id.as_str())
        .collect();
    let expected = |n: &RayNode| state.config.nodes.iter().any(|c| c.fabric_address == n.address);
    let foreign = ray
        .nodes
        .iter()
        .filter(|n| !expected(n) && !own.contains(&n.id.as_str()));
    let (alive, dead): (Vec<&RayNode>, Vec<&RayNode>) = foreign.partition(|n| n.alive);
    Strangers {
        alive,
        dead: dead.len(),
    }
}

/// Since when something is so, and who says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Since {
    /// How long ago.
    pub ago: Duration,
    /// Whether Ray says so; else it is since the console first saw it.
    pub by_ray: bool,
}

/// Whether what is known of the membership is so now: its last reading is young, and the head, through which it comes, is connected.
#[must_use]
pub fn current(state: &State, now: Stamp) -> bool {
    let ray = &state.observed.ray;
    let every = ray.value().map_or(RAY_EVERY, |facts| ray_every(facts.via));
    connected(state, state.config.head()) && !ray.stale(now, every)
}

/// Up to when the membership is known to be as it is: now, or when it was read where nobody can tell what it is now.
fn until(state: &State, now: Now) -> Now {
    let age = state.observed.ray.age(now.stamp).filter(|_| !current(state, now.stamp));
    let age = age.unwrap_or_default();
    Now {
        stamp: now.stamp.minus(age),
        wall: Wall(now.wall.0.saturating_sub(millis(age))),
    }
}

/// Since when a node of Ray is as it is, counted up to when that was read where it is not known to be so now.
#[must_use]
pub fn since(state: &State, node: &RayNode, now: Now) -> Option<Since> {
    let now = until(state, now);
    let told = if node.alive { node.started_ms } else { node.ended_ms };
    by_ray(told, now).or_else(|| Some(by_console(state.ray.life(&node.id)?.since, now)))
}

/// A moment by Ray's clock. A clock that is ahead of the console's makes it no future.
fn by_ray(ms: Option<u64>, now: Now) -> Option<Since> {
    let ago = Duration::from_millis(now.wall.0.saturating_sub(ms?));
    Some(Since { ago, by_ray: true })
}

fn by_console(since: Stamp, now: Now) -> Since {
    Since {
        ago: now.stamp.since(since),
        by_ray: false,
    }
}

/// A placement group that waits.
#[derive(Debug, Clone, PartialEq)]
pub struct Wait<'a> {
    /// Which.
    pub group: &'a PlacementGroup,
    /// Since when.
    pub since: Option<Since>,
    /// Addresses that it is pinned to and that no alive node has.
    pub nowhere: Vec<&'a str>,
}

/// Placement groups that wait, or did when they were read last.
#[must_use]
pub fn waits(state: &State, now: Now) -> Vec<Wait<'_>> {
    let Some(ray) = state.observed.ray.value() else {
        return Vec::new();
    };
    let now = until(state, now);
    fn wait<'a>(state: &State, ray: &RayFacts, group: &'a PlacementGroup, now: Now) -> Wait<'a> {
        let seen = || Some(by_console(state.ray.waits_since(&group.id)?, now));
        Wait {
            group,
            since: by_ray(group.asked_ms, now).or_else(seen),
            nowhere: group.pinned().filter(|a| ray.alive_at(a).is_none()).collect(),
        }
    }
    ray.pending.iter().map(|group| wait(state, ray, group, now)).collect()
}

/// Versions of Ray and Python on a node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Versions<'a> {
    /// Ray's.
    pub ray: Option<&'a str>,
    /// Python's.
    pub python: Option<&'a str>,
}

/// The versions on a node: of its container while one runs, else of its image; of the head also as Ray tells.
#[must_use]
pub fn versions(state: &State, id: NodeId) -> Versions<'_> {
    let Some(seen) = state.observed.node(id) else {
        return Versions::default();
    };
    let head = state.observed.ray.value().filter(|_| id == state.config.head());
    let (inside, image) = (seen.inside.value(), seen.versions.value());
    let ray = inside
        .and_then(|f| f.ray.as_deref())
        .or(head.and_then(|r| r.version.as_deref()));
    let python = inside
        .and_then(|f| f.python.as_deref())
        .or(head.and_then(|r| r.python.as_deref()));
    Versions {
        ray: ray.or(image.and_then(|f| f.ray.as_deref())),
        python: python.or(image.and_then(|f| f.python.as_deref())),
    }
}

/// What differs between the nodes, a line each: Ray joins only its own version, and one Python.
#[must_use]
pub fn differences(state: &State) -> Vec<String> {
    type Pick = for<'a> fn(&Versions<'a>) -> Option<&'a str>;
    let picks: [(&str, Pick); 2] = [("Ray", |v| v.ray), ("Python", |v| v.python)];
    let mut found = Vec::new();
    for (what, pick) in picks {
        let all: Vec<(&str, &str)> = state
            .config
            .node_ids()
            .filter_map(|id| Some((state.config.node_name(id), pick(&versions(state, id))?)))
            .collect();
        let Some(((name, first), rest)) = all.split_first() else {
            continue;
        };
        if let Some((other, version)) = rest.iter().find(|(_, v)| !same(first, v)) {
            found.push(format!("{what} is {first} on {name} and {version} on {other}"));
        }
    }
    found
}

/// Whether two versions are equal as far as both tell: the dashboard says `3.12` where a container says `3.12.3`.
fn same(a: &str, b: &str) -> bool {
    let begins = |long: &str, short: &str| long.strip_prefix(short).is_some_and(|rest| rest.starts_with('.'));
    a == b || begins(a, b) || begins(b, a)
}

#[cfg(test)]
mod tests {
    use super::same;

    #[test]
    fn a_version_is_the_same_as_far_as_it_is_told() {
        assert!(same("3.12", "3.12.3") && same("3.12.3", "3.12.3"));
        assert!(!same("3.12.3", "3.12.4") && !same("3.1", "3.12") && !same("2.43.0", "2.44.1"));
    }
}
