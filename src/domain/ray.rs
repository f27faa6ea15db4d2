//! Ray's membership.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

/// What Ray says of its nodes.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct RayFacts {
    /// All nodes that Ray lists, dead ones too.
    pub nodes: Vec<RayNode>,
    /// Where it was read.
    pub via: RayVia,
    /// Ray's version on the head.
    pub version: Option<String>,
    /// Python's version on the head; the dashboard tells no more than `3.12` of it.
    pub python: Option<String>,
    /// Placement groups that wait for resources.
    pub pending: Vec<PlacementGroup>,
    /// Why placement groups are not known.
    pub pending_unknown: Option<String>,
}

impl RayFacts {
    /// GPUs of the members that Ray calls alive, as Ray counts them: in fractions.
    #[must_use]
    pub fn alive_gpus(&self) -> f64 {
        // The sum of nothing is a negative zero.
        self.alive().map(|n| n.gpus).fold(0.0, |sum, gpus| sum + gpus)
    }

    /// Nodes that Ray calls alive.
    pub fn alive(&self) -> impl Iterator<Item = &RayNode> {
        self.nodes.iter().filter(|n| n.alive)
    }

    /// The alive node registered at this address. Where several lives are called alive there, the one that registered last is the one that is there: Ray
    /// notices a lost raylet late, and a new one registers beside it meanwhile.
    #[must_use]
    pub fn alive_at(&self, address: &str) -> Option<&RayNode> {
        self.lives_at(address).into_iter().next()
    }

    /// All lives at this address that Ray calls alive, the one that registered last first.
    #[must_use]
    pub fn lives_at(&self, address: &str) -> Vec<&RayNode> {
        let mut lives: Vec<&RayNode> = self.alive().filter(|n| n.address == address).collect();
        lives.sort_by_key(|n| std::cmp::Reverse(n.started_ms));
        lives
    }

    /// How many addresses have a life that Ray calls alive: a node that is registered twice is one.
    #[must_use]
    pub fn alive_addresses(&self) -> usize {
        let addresses: BTreeSet<&str> = self.alive().map(|n| n.address.as_str()).collect();
        addresses.len()
    }

    /// The dead lives of the node at this address, the latest one first. Ray lists nodes in no order: what it says of their times decides.
    #[must_use]
    pub fn dead_at(&self, address: &str) -> Vec<&RayNode> {
        let mut dead: Vec<&RayNode> = self.nodes.iter().filter(|n| !n.alive && n.address == address).collect();
        dead.sort_by_key(|n| std::cmp::Reverse((n.ended_ms, n.started_ms)));
        dead
    }
}

/// Whether Ray sees as many GPUs as the config expects, neither fewer nor more. Ray counts in fractions.
#[must_use]
pub fn gpus_match(seen: f64, expected: u32) -> bool {
    (seen - f64::from(expected)).abs() < 0.5
}

impl RayNode {
    /// Whether the node has as many GPUs as the config expects of it.
    #[must_use]
    pub fn has_gpus(&self, expected: u32) -> bool {
        gpus_match(self.gpus, expected)
    }

    /// What Ray counts where a GPU is expected, such as `1 TPU`; empty when it counts nothing of the kind.
    #[must_use]
    pub fn counted_as(&self) -> String {
        let kinds: Vec<String> = self.devices.iter().map(|(k, n)| format!("{n} {k}")).collect();
        kinds.join(", ")
    }
}

/// How membership was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RayVia {
    /// The dashboard's HTTP (`/api/v0/nodes`).
    #[default]
    Dashboard,
    /// A Python in the head's container that asks the GCS.
    Container,
    /// `ray status`: numbers, and no addresses. It says nothing of who is a member.
    Status,
}

impl RayVia {
    /// The sources, the best one first.
    pub const ALL: [Self; 3] = [Self::Dashboard, Self::Container, Self::Status];

    /// As a person calls it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Dashboard => "dashboard",
            Self::Container => "Python in the container",
            Self::Status => "ray status",
        }
    }
}

/// One life of a Ray node: a node that joins anew has another id.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct RayNode {
    /// Ray's node id, hex.
    pub id: String,
    /// Address it registered with (`NodeManagerAddress`, `node_ip`).
    pub address: String,
    /// Whether Ray calls it alive. Ray itself notices a lost host late.
    pub alive: bool,
    /// Whether it is the head.
    pub head: bool,
    /// `GPU` of its resources; 0 when Ray lists none.
    pub gpus: f64,
    /// `CPU` of its resources.
    pub cpus: f64,
    /// Devices that Ray counts under another name than `GPU`, such as `TPU`, `HPU`, `NPU` or `neuron_cores`.
    pub devices: Vec<(String, f64)>,
    /// The kind of device that Ray found (`accelerator_type:…`).
    pub accelerator: Option<String>,
    /// Why it is dead or what Ray says of its state.
    pub message: Option<String>,
    /// When it registered, by Ray's clock, in milliseconds since 1970.
    pub started_ms: Option<u64>,
    /// When Ray called it dead, by the same clock.
    pub ended_ms: Option<u64>,
}

/// Resources that must be had together, as vLLM asks for its workers'.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct PlacementGroup {
    /// Its id, hex.
    pub id: String,
    /// `PENDING`, `PREPARED` or `RESCHEDULING`.
    pub state: String,
    /// What each worker needs, by Ray's names.
    pub bundles: Vec<BTreeMap<String, f64>>,
    /// When it was asked for, by Ray's clock, in milliseconds since 1970.
    pub asked_ms: Option<u64>,
    /// Whether Ray says that no node could ever hold it, as the cluster is now.
    pub infeasible: bool,
}

/// Name of the resource that stands for a node's address.
const NODE: &str = "node:";

impl PlacementGroup {
    /// Its bundles in words: equal ones are counted, such as `2 x GPU 1` or `1 x GPU 1 on 192.168.200.12, 1 x GPU 1`.
    #[must_use]
    pub fn wants(&self) -> String {
        let mut kinds: Vec<(String, usize)> = Vec::new();
        for bundle in &self.bundles {
            let text = words(bundle);
            match kinds.iter_mut().find(|(t, _)| *t == text) {
                Some((_, n)) => *n += 1,
                None => kinds.push((text, 1)),
            }
        }
        let kinds: Vec<String> = kinds.into_iter().map(|(text, n)| format!("{n} x {text}")).collect();
        kinds.join(", ")
    }

    /// Addresses that a bundle is pinned to.
    pub fn pinned(&self) -> impl Iterator<Item = &str> {
        let names = self.bundles.iter().flat_map(BTreeMap::keys);
        names
            .filter_map(|k| k.strip_prefix(NODE))
            .filter(|a| !a.starts_with("__"))
    }
}

fn words(bundle: &BTreeMap<String, f64>) -> String {
    let what: Vec<String> = bundle
        .iter()
        .filter(|(k, _)| !k.starts_with(NODE))
        .map(|(k, n)| format!("{k} {n}"))
        .collect();
    let what = if what.is_empty() {
        "nothing".to_owned()
    } else {
        what.join(" + ")
    };
    let place = bundle
        .keys()
        .find_map(|k| k.strip_prefix(NODE))
        .filter(|a| !a.starts_with("__"));
    match place {
        Some(address) => format!("{what} on {address}"),
        None => what,
    }
}

/// What `ray status` prints: numbers, and no addresses but those of failures.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct RayStatus {
    /// Nodes that it counts as there. Some versions go on counting a dead one.
    pub nodes: usize,
    /// Nodes that it calls failed, each with the reason and, where it is told, the address.
    pub failures: Vec<StatusFailure>,
    /// GPUs in use and in all; `None` when it lists none.
    pub gpus: Option<(f64, f64)>,
    /// Devices that it counts under another name, with how many there are.
    pub devices: Vec<(String, f64)>,
    /// What is asked for and not there, a line each.
    pub demands: Vec<String>,
}

/// A node that `ray status` calls failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StatusFailure {
    /// What it says, such as `RayletUnexpectedlyDied`.
    pub text: String,
    /// The node's address, where it is told.
    pub address: Option<String>,
}

/// Whether a resource of this name is a device that may stand where a GPU is expected.
#[must_use]
pub fn is_device(name: &str) -> bool {
    // The names that Ray's own accelerator managers give (python/ray/_private/accelerators).
    const DEVICES: [&str; 7] = ["TPU", "HPU", "NPU", "neuron_cores", "RBLN", "XPU", "FPGA"];
    DEVICES.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_bundles_are_counted_and_pinned_ones_named() {
        let bundle = |words: &[(&str, f64)]| words.iter().map(|(k, n)| ((*k).to_owned(), *n)).collect();
        let group = |bundles| PlacementGroup {
            bundles,
            ..PlacementGroup::default()
        };
        let plain = group(vec![bundle(&[("GPU", 1.0)]), bundle(&[("GPU", 1.0)])]);
        assert_eq!(plain.wants(), "2 x GPU 1");
        assert_eq!(plain.pinned().count(), 0);
        let pinned = group(vec![
            bundle(&[("GPU", 1.0), ("node:192.168.50.192", 0.001)]),
            bundle(&[("GPU", 1.0)]),
        ]);
        assert_eq!(pinned.wants(), "1 x GPU 1 on 192.168.50.192, 1 x GPU 1");
        assert_eq!(pinned.pinned().collect::<Vec<_>>(), ["192.168.50.192"]);
    }

    #[test]
    fn of_earlier_lives_the_latest_comes_first() {
        let life = |id: &str, ended| RayNode {
            id: id.to_owned(),
            address: "10.0.0.2".to_owned(),
            ended_ms: Some(ended),
            ..RayNode::default()
        };
        let ray = RayFacts {
            nodes: vec![life("a", 5), life("b", 9), life("c", 7)],
            ..RayFacts::default()
        };
        let ids: Vec<&str> = ray.dead_at("10.0.0.2").iter().map(|n| n.id.as_str()).collect();
        assert_eq!(ids, ["b", "c", "a"]);
    }
}
