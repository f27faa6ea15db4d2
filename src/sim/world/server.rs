//! Starts of the model server: from `vllm serve` to its end, what it says, and who reaches it.

use std::time::Duration;

use crate::sim::clock::Moment;

use super::World;
use super::host::{Container, Ray};
use super::launch::Found;
use super::load::Marks;
use super::log::Entry;
use super::script::pid;
use super::spec::Spec;
use super::stats::Stats;

/// Seconds in which a stopped server lets go of the GPU.
pub(super) const LET_GO: f64 = 1.0;

/// What uvicorn says when its process was told to end.
const SHUTDOWN: [&str; 3] = [
    "INFO:     Shutting down",
    "INFO:     Waiting for application shutdown.",
    "INFO:     Application shutdown complete.",
];

/// Period of the throughput lines, by the real clock.
const REPORT_PERIOD: Duration = Duration::from_secs(10);

/// A start of the model server.
#[derive(Debug)]
pub struct Server {
    /// Number of the start, unique in the world; also the owner of its log lines.
    pub number: u64,
    /// Value of our mark in its environment.
    pub mark: Option<String>,
    /// What was asked.
    pub spec: Spec,
    /// Id of the container it runs in, on node 0 or elsewhere.
    pub container: String,
    /// Index of the node.
    pub node: usize,
    /// Containers of its ranks.
    pub ranks: Vec<String>,
    /// Process id on the host.
    pub pid: u32,
    /// When it was started.
    pub started: Moment,
    /// Stages; `None` while it waits for GPUs.
    pub marks: Option<Marks>,
    /// When it ends, once that is known.
    pub end: Option<Moment>,
    /// Its counters.
    pub stats: Stats,
    /// What it found around it.
    pub(super) found: Found,
    /// What its last throughput line told.
    pub(super) reported: Report,
}

/// What the last throughput line told.
#[derive(Debug, Default)]
pub(super) struct Report {
    at: Moment,
    prompt: u64,
    generated: u64,
    idle: bool,
}

impl Server {
    /// Whether the process is there.
    pub fn runs(&self, now: Moment) -> bool {
        self.started <= now && self.end.is_none_or(|e| e > now)
    }

    /// Whether its port answers.
    pub fn serves(&self, now: Moment) -> bool {
        self.runs(now) && self.marks.is_some_and(|m| m.ready <= m.reached(now))
    }
}

/// What a connection to a port of a node leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Door {
    /// The model server, by the number of its start.
    Model(u64),
    /// Ray's dashboard, by the head's container.
    Dashboard(String),
}

impl World {
    /// The server that answers, or loads, or waits on a node.
    pub fn server_on(&self, node: usize, now: Moment) -> Option<&Server> {
        self.servers.iter().rev().find(|s| s.node == node && s.runs(now))
    }

    /// What answers on a port of a node, at this address of it.
    pub fn door(&self, node: usize, address: &str, port: u16, now: Moment) -> Option<Door> {
        let host = self.hosts.get(node)?;
        let loopback = matches!(address, "127.0.0.1" | "localhost");
        if !loopback && address != host.fabric && address != host.external {
            return None;
        }
        let server = self
            .servers
            .iter()
            .rev()
            .find(|s| s.node == node && s.spec.port == port && s.serves(now));
        if let Some(server) = server {
            return Some(Door::Model(server.number));
        }
        let dashboard =
            |c: &&Container| matches!(c.ray, Ray::Head { dashboard, up, .. } if dashboard == port && up <= now);
        let head = host.containers.iter().find(|c| c.runs(now) && dashboard(c));
        head.filter(|_| loopback).map(|c| Door::Dashboard(c.id.clone()))
    }

    /// The start with this number.
    pub fn server_mut(&mut self, number: u64) -> Option<&mut Server> {
        self.servers.iter_mut().find(|s| s.number == number)
    }

    /// The same, to look at.
    pub fn server(&self, number: u64) -> Option<&Server> {
        self.servers.iter().find(|s| s.number == number)
    }

    /// Ends servers in a container: those with our mark, or any. Gives their process ids inside the container.
    pub fn stop_servers(&mut self, container: &str, any: bool, at: Moment) -> usize {
        let doomed: Vec<u64> = self
            .servers
            .iter()
            .filter(|s| s.container == container && s.runs(at) && (any || s.mark.is_some()))
            .map(|s| s.number)
            .collect();
        for number in &doomed {
            self.end_server(*number, at);
            for text in SHUTDOWN {
                self.say(*number, text.to_owned(), at);
            }
        }
        // One that waits for these GPUs gets them.
        self.launch_waiting(at.saturating_add(self.pace.secs(LET_GO)));
        doomed.len()
    }

    pub(super) fn end_server(&mut self, number: u64, at: Moment) {
        let Some(server) = self.servers.iter_mut().find(|s| s.number == number) else {
            return;
        };
        server.end = Some(at);
        let container = server.container.clone();
        for c in self.hosts.iter_mut().flat_map(|h| h.containers.iter_mut()) {
            if c.id == container {
                c.log.cut(number, at);
            }
        }
    }

    /// A server that loses a rank dies with it.
    pub(super) fn lose_ranks(&mut self, container: &str, at: Moment) {
        let dying: Vec<(u64, usize)> = self
            .servers
            .iter()
            .filter(|s| s.container != container && s.runs(at) && s.ranks.iter().any(|r| r == container))
            .map(|s| (s.number, s.ranks.iter().position(|r| r == container).unwrap_or(0)))
            .collect();
        for (number, rank) in dying {
            let dies = at.saturating_add(self.pace.secs(2.5));
            self.end_server(number, at.saturating_add(self.pace.secs(1.0)));
            let Some(server) = self.servers.iter_mut().find(|s| s.number == number) else {
                continue;
            };
            server.end = Some(dies);
            let home = server.container.clone();
            let date = self.calendar.vllm(dies);
            let prefix = format!("(EngineCore_DP0 pid={}) ERROR {date}", pid::CORE);
            let lines = [
                format!(
                    "{prefix} [ray_executor.py:121] RayWorkerProc rank=[{rank}] died unexpectedly, shutting down executor."
                ),
                format!(
                    "(APIServer pid={}) ERROR {date} [async_llm.py:718] vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See stack trace (above) for the root cause.",
                    pid::API
                ),
            ];
            if let Some(c) = self
                .hosts
                .iter_mut()
                .flat_map(|h| h.containers.iter_mut())
                .find(|c| c.id == home)
            {
                for text in lines {
                    c.log.push(Entry {
                        at: dies,
                        owner: number,
                        err: false,
                        text,
                    });
                }
            }
        }
    }

    /// Writes a line of a server's into its container's log.
    pub fn say(&mut self, number: u64, text: String, now: Moment) {
        let Some(home) = self.server(number).map(|s| s.container.clone()) else {
            return;
        };
        if let Some(c) = self
            .hosts
            .iter_mut()
            .flat_map(|h| h.containers.iter_mut())
            .find(|c| c.id == home)
        {
            c.log.push(Entry {
                at: now,
                owner: number,
                err: false,
                text,
            });
        }
    }

    /// What happens with time alone: the throughput lines of servers at work, the temperature of the GPUs.
    pub fn advance(&mut self, now: Moment) {
        self.warm_gpus(now);
        self.count_reads(now);
        let mut said = Vec::new();
        for s in &mut self.servers {
            let at = s.reported.at.max(s.marks.map_or(now, |m| m.ready));
            if !s.serves(now) || now.saturating_sub(at) < REPORT_PERIOD {
                continue;
            }
            let seconds = now.saturating_sub(at).as_secs_f64();
            let rate = |count: u64, before: u64| per_second(count.saturating_sub(before), seconds);
            let (prompt, generated) = (
                rate(s.stats.prompt_tokens, s.reported.prompt),
                rate(s.stats.generation_tokens, s.reported.generated),
            );
            let idle = s.stats.running == 0 && s.stats.generation_tokens == s.reported.generated;
            // Idle twice in a row is not told.
            if !(idle && s.reported.idle) {
                let date = self.calendar.vllm(now);
                said.push((
                    s.number,
                    format!(
                        "(APIServer pid={}) INFO {date} [loggers.py:257] Engine 000: Avg prompt throughput: {prompt:.1} tokens/s, Avg generation throughput: {generated:.1} tokens/s, Running: {} reqs, Waiting: {} reqs, GPU KV cache usage: {:.1}%, Prefix cache hit rate: 0.0%",
                        pid::API,
                        s.stats.running,
                        s.stats.waiting,
                        s.stats.kv_usage(s.spec.kv_tokens()) * 100.0
                    ),
                ));
            }
            s.reported = Report {
                at: now,
                prompt: s.stats.prompt_tokens,
                generated: s.stats.generation_tokens,
                idle,
            };
        }
        for (number, text) in said {
            self.say(number, text, now);
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "printed with one decimal")]
fn per_second(count: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { count as f64 / seconds } else { 0.0 }
}
