//! From `vllm serve` to a load or a wait: who gets a rank, and when.

use crate::domain::serving::SERVE_MARK;
use crate::sim::clock::Moment;

use super::World;
use super::host::{FABRIC_INTERFACE, Host, Ray};
use super::load::{self, Nccl};
use super::log::Entry;
use super::ray::Member;
use super::server::{Report, Server};
use super::spec::Spec;
use super::stats::Stats;

/// Most servers that are remembered; the oldest that ended goes first.
const MAX_SERVERS: usize = 8;

/// Seconds from a server's start to its wish for GPUs.
const WISH: f64 = 6.8;

/// What a server finds around it when it starts.
#[derive(Debug, Clone)]
pub struct Found {
    /// When Ray is there.
    begin: Moment,
    /// Ray's address.
    ray: String,
    /// Whether NCCL tells what it does.
    nccl: bool,
    /// RDMA devices that NCCL can use.
    hcas: Option<String>,
}

impl World {
    /// Starts `vllm serve` in a container, detached.
    pub fn serve(&mut self, node: usize, name: &str, env: &[(String, String)], words: &[String], now: Moment) {
        let Some(container) = self.hosts.get(node).and_then(|h| h.find(name)) else {
            return;
        };
        let given = |key: &str| env.iter().rev().find(|(k, _)| k == key).map(|(_, v)| v.clone());
        let variable = |key: &str| given(key).or_else(|| container.env(key).map(str::to_owned));
        let infiniband = container.devices.iter().any(|d| d.starts_with("/dev/infiniband"));
        let found = Found {
            begin: match container.ray {
                Ray::Head { up, .. } => now.max(up),
                Ray::Worker { .. } | Ray::None => now,
            },
            ray: variable("RAY_ADDRESS").unwrap_or_else(|| "auto".to_owned()),
            nccl: variable("NCCL_DEBUG").is_some_and(|v| v == "INFO"),
            hcas: variable("NCCL_IB_HCA").filter(|_| infiniband),
        };
        let mut spec = Spec::parse(words);
        spec.api_key = spec.api_key.or_else(|| variable("VLLM_API_KEY"));
        let (mark, container) = (given(SERVE_MARK), container.id.clone());
        if self.servers.len() >= MAX_SERVERS {
            let ended = self.servers.iter().position(|s| !s.runs(now)).unwrap_or(0);
            self.servers.remove(ended);
        }
        self.starts += 1;
        let (number, begin) = (self.starts, found.begin);
        let pid = self.hosts.get_mut(node).map_or(0, Host::new_pid);
        self.servers.push(Server {
            number,
            mark,
            spec,
            container,
            node,
            ranks: Vec::new(),
            pid,
            started: now,
            marks: None,
            end: None,
            stats: Stats::default(),
            found,
            reported: Report::default(),
        });
        self.launch(number, begin);
    }

    /// Looks again at the servers that wait for GPUs, at a moment at which there may be more.
    pub(super) fn launch_waiting(&mut self, at: Moment) {
        let waiting: Vec<u64> = self
            .servers
            .iter()
            .filter(|s| s.marks.is_none() && s.runs(at))
            .map(|s| s.number)
            .collect();
        for number in waiting {
            self.launch(number, at);
        }
    }

    /// Writes down how a start goes on from a moment, as far as it is known by now: it loads when it has its GPUs, or waits.
    fn launch(&mut self, number: u64, at: Moment) {
        let (pace, calendar, trouble) = (self.pace, self.calendar, self.trouble);
        let taken = self
            .servers
            .iter()
            .any(|s| s.number != number && s.marks.is_some() && s.runs(at));
        let Some(server) = self.server(number) else {
            return;
        };
        let (spec, found) = (server.spec.clone(), server.found.clone());
        let (home, first) = (server.container.clone(), server.end.is_none());
        let own = self.hosts.get(server.node).map(|h| h.fabric.clone());
        let granted = if taken {
            None
        } else {
            self.ranks(spec.tp, server.node, at)
        };
        let around = |addresses| load::Around {
            ray: &found.ray,
            ranks: addresses,
            nccl: found.nccl.then_some(Nccl {
                hcas: found.hcas.as_deref(),
                interface: FABRIC_INTERFACE,
            }),
        };
        let (lines, marks, end, ranks) = match granted {
            Some((complete, ranks)) => {
                // It has waited since its wish; what it said before that stands.
                let start = found.begin.max(complete.saturating_sub(pace.secs(WISH)));
                let (ids, addresses): (Vec<String>, Vec<String>) = ranks.into_iter().unzip();
                let (lines, marks) = load::load(&spec, &around(&addresses), start, pace, calendar, trouble);
                (lines, Some(marks), None, ids)
            }
            None if first => {
                let own: Vec<String> = own.into_iter().collect();
                let (lines, end) = load::starve(&spec, &around(&own), found.begin, pace, calendar);
                (lines, None, Some(end), Vec::new())
            }
            None => return,
        };
        if let Some(server) = self.server_mut(number) {
            server.marks = marks;
            server.end = end;
            server.ranks = ranks;
        }
        let mut all = self.hosts.iter_mut().flat_map(|h| h.containers.iter_mut());
        if let Some(container) = all.find(|c| c.id == home) {
            if !first {
                container.log.cut(number, at);
            }
            for (when, text) in lines.into_iter().filter(|(when, _)| first || *when > at) {
                container.log.push(Entry {
                    at: when,
                    owner: number,
                    err: false,
                    text,
                });
            }
        }
    }

    /// Containers and addresses of the nodes that get a rank, the server's own first, and when the last of them is there. `None` when Ray has too few
    /// GPUs, those counted that are about to join.
    fn ranks(&self, tp: u32, node: usize, at: Moment) -> Option<(Moment, Vec<(String, String)>)> {
        let own = self.hosts.get(node).map_or("", |h| h.fabric.as_str());
        let mut members: Vec<&Member> = self
            .members
            .iter()
            .filter(|m| m.dead.is_none_or(|(dead, _)| dead > at.max(m.from)))
            .collect();
        members.sort_by_key(|m| (m.address != own, m.from));
        let wanted = usize::try_from(tp).unwrap_or(usize::MAX);
        let taken: Vec<&Member> = members
            .into_iter()
            .flat_map(|m| (0..m.gpus).map(move |_| m))
            .take(wanted)
            .collect();
        let complete = taken.iter().map(|m| m.from).max()?;
        let ranks = taken.iter().map(|m| (m.container.clone(), m.address.clone()));
        (taken.len() == wanted).then(|| (complete, ranks.collect()))
    }
}
