//! Conditions on Ray's membership: who is alive, at which address, with how many GPUs.

use crate::config::Config;
use crate::domain::NodeId;
use crate::domain::container::ContainerState;
use crate::domain::count::amount;
use crate::domain::observed::Observed;
use crate::domain::problem::Verdict;
use crate::domain::ray::{RayFacts, RayNode};

use super::super::condition::gpus;
use super::{Answer, Ctx, fails};

impl<'a> Ctx<'a> {
    fn ray(&self) -> Result<&'a RayFacts, String> {
        self.fresh(&self.observed.ray, "Ray's membership")
    }

    fn expected_address(&self, node: NodeId) -> String {
        format!("{} (fabric_address of {})", self.address(node), self.name(node))
    }

    /// Why Ray cannot run at all, when the head's container says so.
    fn no_ray(&self) -> Result<Option<String>, String> {
        match self.running(self.config.head())? {
            Some(_) => Ok(None),
            None => self.no_container(self.config.head()).map(Some),
        }
    }

    pub(super) fn ray_member(&self, node: NodeId) -> Answer {
        let expected = self.expected_address(node);
        if let Some(why) = self.no_ray()? {
            return Ok(fails(why, expected));
        }
        let ray = self.ray()?;
        Ok(match self.member(ray, node) {
            None => Verdict::Holds,
            Some(seen) => {
                let wrong_gpus = ray.alive_at(self.address(node)).is_some();
                let expected = if wrong_gpus {
                    format!("{} at {expected}", gpus(self.config, node))
                } else {
                    expected
                };
                fails(seen, expected)
            }
        })
    }

    /// What is wrong with a node's membership; `None` when nothing is.
    fn member(&self, ray: &RayFacts, node: NodeId) -> Option<String> {
        let address = self.address(node);
        let name = self.name(node);
        if let Some(found) = ray.alive_at(address) {
            let expected = self.config.node(node).map_or(0, |n| n.gpus);
            return (!found.has_gpus(expected))
                .then(|| format!("{name} has {} at {address}", amount(found.gpus, "GPU")));
        }
        if let Some(stray) = stray_of(self.observed, self.config, ray, node) {
            return Some(format!("{name} registered at {}", stray.address));
        }
        if let Some(dead) = ray.nodes.iter().find(|n| n.address == address) {
            let why = dead.message.as_deref().map(|m| format!(": {m}")).unwrap_or_default();
            return Some(format!("Ray calls {name} at {address} dead{why}"));
        }
        let alive: Vec<&str> = ray.alive().map(|n| n.address.as_str()).collect();
        Some(if alive.is_empty() {
            "Ray has no node alive".to_owned()
        } else {
            format!("{name} is not there; alive: {}", alive.join(", "))
        })
    }

    pub(super) fn wrong_address(&self, node: NodeId) -> Answer {
        if let Some(why) = self.no_ray()? {
            return Ok(fails(why, "another address"));
        }
        let ray = self.ray()?;
        let right = ray.alive_at(self.address(node)).is_some();
        let stray = stray_of(self.observed, self.config, ray, node).filter(|_| !right);
        Ok(match stray {
            Some(_) => Verdict::Holds,
            None => fails("no other address", "another address"),
        })
    }

    pub(super) fn ray_complete(&self) -> Answer {
        let wanted: Vec<String> = self.config.node_ids().map(|n| self.expected_address(n)).collect();
        let expected = wanted.join(", ");
        if let Some(why) = self.no_ray()? {
            return Ok(fails(why, expected));
        }
        let ray = self.ray()?;
        let mut wrong: Vec<String> = self.config.node_ids().filter_map(|n| self.member(ray, n)).collect();
        if wrong.is_empty() {
            wrong = strangers(self.config, ray)
                .map(|n| format!("a node at {} that is not in the config", n.address))
                .collect();
        }
        if wrong.is_empty() {
            Ok(Verdict::Holds)
        } else {
            Ok(fails(wrong.join("; "), expected))
        }
    }
}

/// Alive Ray nodes at addresses that no configured node has.
fn strangers<'r>(config: &Config, ray: &'r RayFacts) -> impl Iterator<Item = &'r RayNode> {
    let known: Vec<String> = config.nodes.iter().map(|n| n.fabric_address.clone()).collect();
    ray.alive().filter(move |n| !known.contains(&n.address))
}

/// Whether the container runs on a node, or nobody knows: Ray can't have a node whose container is seen not to run.
fn may_run(observed: &Observed, config: &Config, node: NodeId) -> bool {
    let containers = observed.node(node).and_then(|n| n.containers.value());
    containers.is_none_or(|all| {
        all.named(&config.container.name)
            .is_some_and(|c| c.state == ContainerState::Running)
    })
}

/// The Ray node that is this node under another address than its fabric address, as far as can be told: Ray's own word for the head, the node's
/// interfaces and login address for the others, and where only one worker is missing and may be running, whoever is left over.
pub(crate) fn stray_of<'r>(
    observed: &Observed,
    config: &Config,
    ray: &'r RayFacts,
    node: NodeId,
) -> Option<&'r RayNode> {
    let has = |id: NodeId, address: &str| {
        let dialled = config.node(id).is_some_and(|n| n.login.host == address);
        let facts = observed.node(id).and_then(|n| n.fabric.value());
        dialled || facts.is_some_and(|f| f.with_address(address).is_some())
    };
    let missing: Vec<NodeId> = config
        .workers()
        .filter(|w| {
            config
                .node(*w)
                .is_some_and(|n| ray.alive_at(&n.fabric_address).is_none())
        })
        .collect();
    strangers(config, ray).find(|stranger| {
        if stranger.head {
            return node == config.head();
        }
        // A loopback address is on every host and tells nothing.
        let owner = config
            .node_ids()
            .find(|id| !stranger.address.starts_with("127.") && has(*id, &stranger.address));
        match owner {
            Some(owner) => owner == node,
            None => missing == [node] && may_run(observed, config, node),
        }
    })
}
