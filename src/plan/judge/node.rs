//! Conditions on one node: its connection, containers, sockets, interfaces, GPU and verb.

use crate::domain::NodeId;
use crate::domain::gpu::GpuProcess;
use crate::domain::link::LinkState;
use crate::domain::observed::VerbFacts;
use crate::domain::problem::Verdict;
use crate::domain::sockets::Listener;

use super::{Answer, Ctx, fails, ours, state_text};

/// Processes or listeners named in a message; more are counted.
const NAMED: usize = 3;

impl<'a> Ctx<'a> {
    pub(super) fn reachable(&self, node: NodeId) -> Answer {
        match &self.node(node)?.link {
            LinkState::Up | LinkState::Silent { .. } => Ok(Verdict::Holds),
            LinkState::Down { error, .. } => Ok(fails(error.text.clone(), "an SSH connection")),
            LinkState::Idle => Err(format!("{} was not tried yet", self.name(node))),
            LinkState::Connecting => Err(format!("{} is being connected", self.name(node))),
            LinkState::Asking => Err(format!("{} waits for an answer to a question", self.name(node))),
        }
    }

    pub(super) fn fabric_address(&self, node: NodeId) -> Answer {
        let what = format!("interfaces of {}", self.name(node));
        let facts = self.fresh(&self.node(node)?.fabric, &what)?;
        let address = self.address(node);
        let wanted = self.config.node(node).and_then(|n| n.fabric_interface.as_deref());
        let expected = match wanted {
            Some(interface) => format!("{address} on {interface} (fabric_address and fabric_interface)"),
            None => format!("{address} (fabric_address)"),
        };
        match (facts.with_address(address), wanted) {
            (Some(found), Some(interface)) if found.name != interface => {
                Ok(fails(format!("{address} is on {}", found.name), expected))
            }
            (Some(_), _) => Ok(Verdict::Holds),
            (None, _) => {
                let all: Vec<String> = facts
                    .interfaces
                    .iter()
                    .filter(|i| i.name != "lo" && !i.addresses.is_empty())
                    .map(|i| format!("{} {}", i.name, i.addresses.join(" ")))
                    .collect();
                let seen = if all.is_empty() {
                    "no interface with an address".to_owned()
                } else {
                    all.join(", ")
                };
                Ok(fails(seen, expected))
            }
        }
    }

    pub(super) fn port_free(&self, node: NodeId, port: u16) -> Answer {
        let holders = self.listeners(node, port)?;
        let Some(first) = holders.first() else {
            return Ok(Verdict::Holds);
        };
        let seen = format!("{} listens at {}:{port}", self.holder(node, first), first.address);
        Ok(fails(seen, format!("port {port} free")))
    }

    fn listeners(&self, node: NodeId, port: u16) -> Result<Vec<&'a Listener>, String> {
        let what = format!("sockets of {}", self.name(node));
        let facts = self.fresh(&self.node(node)?.sockets, &what)?;
        Ok(facts.on_port(port).collect())
    }

    /// Who holds a socket, as far as the login may see it.
    fn holder(&self, node: NodeId, listener: &Listener) -> String {
        if let Some(id) = &listener.container {
            let name = self
                .node(node)
                .ok()
                .and_then(|n| n.containers.value())
                .and_then(|c| c.containers.iter().find(|c| c.id == *id))
                .map_or_else(|| id.chars().take(12).collect(), |c| c.name.clone());
            return format!("container {name}");
        }
        match listener.pid {
            Some(pid) => format!("process {pid}"),
            None => "another process".to_owned(),
        }
    }

    pub(super) fn ray_listens(&self, node: NodeId) -> Answer {
        let port = self.config.engine.ray_port();
        let address = self.address(node);
        let expected = format!("{address}:{port} or *:{port}, held by {}", self.config.container.name);
        let Some(container) = self.running(node)? else {
            return Ok(fails(self.no_container(node)?, expected));
        };
        let all = self.listeners(node, port)?;
        let Some(found) = all.iter().find(|l| l.answers(address)) else {
            let seen = match all.first() {
                Some(other) => format!("it listens at {}:{port} only", other.address),
                None => format!("nothing listens on port {port}"),
            };
            return Ok(fails(seen, expected));
        };
        match &found.container {
            Some(id) if *id != container.id => {
                Ok(fails(format!("{} listens there", self.holder(node, found)), expected))
            }
            Some(_) | None => Ok(Verdict::Holds),
        }
    }

    pub(super) fn name_free(&self, node: NodeId, name: &str) -> Answer {
        let what = format!("containers of {}", self.name(node));
        let facts = self.fresh(&self.node(node)?.containers, &what)?;
        Ok(match facts.named(name) {
            None => Verdict::Holds,
            Some(c) => {
                let whose = if ours(self.config, c) { "ours" } else { "not ours" };
                let seen = format!("{name} ({whose}, from {}) {}", c.image, state_text(c));
                fails(seen, format!("no container named {name}"))
            }
        })
    }

    pub(super) fn gpu_free(&self, node: NodeId) -> Answer {
        let what = format!("GPU of {}", self.name(node));
        let facts = self.fresh(&self.node(node)?.gpus, &what)?;
        if let Some(why) = &facts.processes_unknown {
            return Err(format!("processes on the GPU of {}: {why}", self.name(node)));
        }
        let own = self.container(node).ok().flatten().filter(|c| ours(self.config, c));
        let others: Vec<&GpuProcess> = facts
            .computing()
            .filter(|p| own.is_none_or(|c| p.container.as_deref() != Some(c.id.as_str())))
            .collect();
        if others.is_empty() {
            return Ok(Verdict::Holds);
        }
        let mut named: Vec<String> = others.iter().take(NAMED).map(|p| held_by(p)).collect();
        if let Some(more) = others.len().checked_sub(NAMED).filter(|n| *n > 0) {
            named.push(format!("{more} more"));
        }
        Ok(fails(named.join(", "), "no other process on the GPU"))
    }

    /// Why the configured container does not count as running.
    pub(super) fn no_container(&self, node: NodeId) -> Result<String, String> {
        let name = &self.config.container.name;
        Ok(match self.container(node)? {
            None => format!("no container {name} is on {}", self.name(node)),
            Some(c) if !ours(self.config, c) => format!("container {name} on {} is not ours", self.name(node)),
            Some(c) => format!("container {name} on {} {}", self.name(node), state_text(c)),
        })
    }

    pub(super) fn container_runs(&self, node: NodeId) -> Answer {
        Ok(match self.running(node)? {
            Some(_) => Verdict::Holds,
            None => fails(
                self.no_container(node)?,
                format!("container {} running", self.config.container.name),
            ),
        })
    }

    pub(super) fn start_under_way(&self, node: NodeId) -> Answer {
        if self.running(node)?.is_some() || self.verb_running(node)?.is_some() {
            return Ok(Verdict::Holds);
        }
        Ok(fails(self.no_container(node)?, "a start that is under way"))
    }

    pub(super) fn start_lost(&self, node: NodeId) -> Answer {
        Ok(match self.start_under_way(node)? {
            Verdict::Holds => fails("it runs", "ended"),
            Verdict::Fails { .. } | Verdict::Unknown(_) => Verdict::Holds,
        })
    }

    pub(super) fn container_gone(&self, node: NodeId) -> Answer {
        let what = format!("containers of {}", self.name(node));
        let facts = self.fresh(&self.node(node)?.containers, &what)?;
        let left: Vec<String> = facts
            .containers
            .iter()
            .filter(|c| ours(self.config, c))
            .map(|c| format!("{} {}", c.name, state_text(c)))
            .collect();
        if left.is_empty() {
            return Ok(Verdict::Holds);
        }
        Ok(fails(left.join(", "), "no container of ours"))
    }

    /// The name of the verb that runs, where the engine has verbs and one does.
    pub(super) fn verb_running(&self, node: NodeId) -> Result<Option<&'a str>, String> {
        if !self.has_verbs() {
            return Ok(None);
        }
        Ok(match self.verb(node)? {
            VerbFacts::Running { verb, .. } => Some(verb.as_str()),
            VerbFacts::None | VerbFacts::Ended { .. } => None,
        })
    }

    fn verb(&self, node: NodeId) -> Result<&'a VerbFacts, String> {
        let what = format!("verb on {}", self.name(node));
        self.fresh(&self.node(node)?.verb, &what)
    }

    pub(super) fn verb_ended(&self, node: NodeId) -> Answer {
        Ok(match self.verb_running(node)? {
            None => Verdict::Holds,
            Some(verb) => fails(format!("the verb {verb} runs"), "no verb running"),
        })
    }

    pub(super) fn verb_failed(&self, node: NodeId) -> Answer {
        Ok(match self.verb(node)? {
            VerbFacts::Ended { code, .. } if *code != 0 => Verdict::Holds,
            VerbFacts::Ended { .. } => fails("exit code 0", "a failed verb"),
            VerbFacts::Running { verb, .. } => fails(format!("the verb {verb} runs"), "a failed verb"),
            VerbFacts::None => fails("no verb", "a failed verb"),
        })
    }
}

fn held_by(process: &GpuProcess) -> String {
    let name = process.name.rsplit('/').next().unwrap_or(&process.name);
    match process.memory {
        Some(memory) => format!("{name} (process {}, {:.1} GiB)", process.pid, memory.gib()),
        None => format!("{name} (process {})", process.pid),
    }
}
