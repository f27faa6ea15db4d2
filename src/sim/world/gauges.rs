//! What the machines feel: memory, GPU, power and temperature as they follow from what runs.

use crate::sim::clock::Moment;

use super::World;
use super::host::{COOL, Host, Ray};
use super::load::Trouble;
use super::server::{LET_GO, Server};
use super::spec::TOTAL_GIB;

/// /proc/meminfo of a node, in kB.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Meminfo {
    /// MemTotal.
    pub total: u64,
    /// MemFree.
    pub free: u64,
    /// MemAvailable.
    pub available: u64,
    /// Cached.
    pub cached: u64,
    /// pgpgin of /proc/vmstat.
    pub read: u64,
}

/// What nvidia-smi tells of a GPU.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gpu {
    /// Percent.
    pub utilization: u32,
    /// Watts.
    pub watts: f64,
    /// Degrees Celsius.
    pub degrees: u32,
}

/// A process that holds GPU memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct App {
    /// Process id on the host.
    pub pid: u32,
    /// Name as nvidia-smi prints it.
    pub name: &'static str,
    /// MiB.
    pub mib: u64,
    /// Its container.
    pub container: String,
}

/// GiB that a node uses before anything of ours runs.
const HOST_GIB: f64 = 5.3;

/// GiB of page cache then.
const CACHE_GIB: f64 = 3.9;

/// GiB that a head's Ray takes, and a worker's.
const RAY_GIB: [f64; 2] = [2.1, 1.4];

/// GiB of ordinary memory that the server takes beside a rank, and a rank.
const SERVER_GIB: [f64; 2] = [3.2, 1.9];

/// GiB that stay out of the page cache's reach.
const FREE_FLOOR_GIB: f64 = 1.8;

/// Seconds in which a GPU comes two thirds of the way to its new temperature.
const HEAT_SECONDS: f64 = 25.0;

const KIB_PER_GIB: f64 = 1024.0 * 1024.0;

/// KiB of models in the hub's folder with the story's model, and without it.
const MODEL_CACHE_KIB: u64 = 131_482_624;
const OTHER_MODELS_KIB: u64 = 7_854_080;

/// What a rank does at a moment.
enum Work {
    Idle,
    Weights,
    Compile,
    Graphs,
    Ready { running: u64 },
}

impl World {
    /// The server of which a rank runs on a node, and whether that rank is the first.
    fn rank_on(&self, host: &Host, now: Moment) -> Option<(&Server, bool)> {
        self.servers.iter().rev().find_map(|s| {
            let released = s.end.map(|e| e.saturating_add(self.pace.secs(LET_GO)));
            if s.marks.is_none() || s.started > now || released.is_some_and(|e| e <= now) {
                return None;
            }
            let at = s
                .ranks
                .iter()
                .position(|r| host.containers.iter().any(|c| c.id == *r))?;
            Some((s, at == 0))
        })
    }

    fn work(&self, host: &Host, now: Moment) -> Work {
        match self.rank_on(host, now) {
            Some((s, _)) if s.marks.is_some_and(|m| m.reached(now) < now) && s.runs(now) => Work::Idle,
            Some((s, _)) if s.runs(now) => match s.marks {
                Some(m) if now >= m.ready => Work::Ready {
                    running: s.stats.running,
                },
                Some(m) if now >= m.cached => Work::Graphs,
                Some(m) if now >= m.loaded => Work::Compile,
                Some(m) if now >= m.weights => Work::Weights,
                Some(_) | None => Work::Idle,
            },
            _ => Work::Idle,
        }
    }

    /// GiB of GPU memory held on a node. What a server held when it ended falls to nothing in a moment.
    fn held_gib(&self, host: &Host, now: Moment) -> f64 {
        let Some((server, _)) = self.rank_on(host, now) else {
            return 0.0;
        };
        let Some(marks) = server.marks else {
            return 0.0;
        };
        let seen = server.end.map_or(now, |e| e.min(now));
        marks.held_gib(&server.spec, seen)
    }

    /// Memory of a node.
    pub fn memory(&self, node: usize, now: Moment) -> Option<Meminfo> {
        let host = self.hosts.get(node)?;
        let mut used = HOST_GIB + self.held_gib(host, now);
        for c in host.containers.iter().filter(|c| c.runs(now)) {
            let [head, worker] = RAY_GIB;
            used += match c.ray {
                Ray::Head { .. } => head,
                Ray::Worker { .. } => worker,
                Ray::None => 0.0,
            };
        }
        let [server_gib, rank_gib] = SERVER_GIB;
        if let Some((server, first)) = self.rank_on(host, now)
            && server.marks.is_some()
            && server.runs(now)
        {
            used += if first { server_gib + rank_gib } else { rank_gib };
        }
        let read = self.weights_read_gib(host, now);
        used += 0.04 * wave(node, now, 7.0);
        let room = (TOTAL_GIB - used - FREE_FLOOR_GIB).max(0.2);
        let cached = (CACHE_GIB + read + self.downloaded_gib(host, now)).min(room);
        let free = (TOTAL_GIB - used - cached).max(0.0);
        let kib = |gib: f64| whole(gib * KIB_PER_GIB);
        Some(Meminfo {
            total: kib(TOTAL_GIB),
            free: kib(free),
            available: kib((free + cached * 0.97).max(0.0)),
            cached: kib(cached),
            read: kib(host.read.before + host.read.server.max(read)),
        })
    }

    /// GiB of the model's files that have come from the hub to a node, where they were not there.
    fn downloaded_gib(&self, host: &Host, now: Moment) -> f64 {
        self.rank_on(host, now)
            .and_then(|(server, _)| Some((server, server.marks?)))
            .map_or(0.0, |(server, marks)| {
                server.spec.weights_gib() * f64::from(server.spec.tp) * marks.downloaded_share(now)
            })
    }

    /// KiB in the hub's folder of a node.
    pub fn model_cache_kib(&self, node: usize, now: Moment) -> u64 {
        let Some(host) = self.hosts.get(node) else { return 0 };
        let missing = match self.trouble {
            Some(Trouble::SilentDownload) => MODEL_CACHE_KIB - OTHER_MODELS_KIB,
            Some(Trouble::Stalls) | None => 0,
        };
        let came = whole(self.downloaded_gib(host, now) * KIB_PER_GIB);
        MODEL_CACHE_KIB.saturating_sub(missing).saturating_add(came)
    }

    /// GiB of the model's files that a rank on a node has read: each rank reads them whole.
    fn weights_read_gib(&self, host: &Host, now: Moment) -> f64 {
        let running = self.rank_on(host, now).filter(|(server, _)| server.runs(now));
        running
            .and_then(|(server, _)| Some((server, server.marks?)))
            .map_or(0.0, |(server, marks)| {
                server.spec.weights_gib() * f64::from(server.spec.tp) * marks.weights_share(now)
            })
    }

    /// Keeps what every node has read: a counter never goes back when a server ends.
    pub(super) fn count_reads(&mut self, now: Moment) {
        let reads: Vec<f64> = self.hosts.iter().map(|h| self.weights_read_gib(h, now)).collect();
        for (host, server) in self.hosts.iter_mut().zip(reads) {
            if server < host.read.server {
                host.read.before += host.read.server;
            }
            host.read.server = server;
        }
    }

    /// The GPU of a node.
    pub fn gpu(&self, node: usize, now: Moment) -> Option<Gpu> {
        let host = self.hosts.get(node)?;
        let (utilization, watts) = load_of(&self.work(host, now));
        let wobble = wave(node, now, 3.0);
        let utilization = if utilization > 0.0 {
            (utilization + 2.0 * wobble).clamp(0.0, 100.0)
        } else {
            0.0
        };
        let degrees = u32::try_from(whole(host.heat.0.round())).unwrap_or(0);
        Some(Gpu {
            utilization: u32::try_from(whole(utilization.round())).unwrap_or(0),
            watts: watts + 0.35 * (wobble + 1.0),
            degrees,
        })
    }

    /// Processes that hold the GPU of a node.
    pub fn apps(&self, node: usize, now: Moment) -> Vec<App> {
        let Some(host) = self.hosts.get(node) else {
            return Vec::new();
        };
        let Some((server, first)) = self.rank_on(host, now) else {
            return Vec::new();
        };
        let mib = whole(self.held_gib(host, now) * 1024.0);
        if mib == 0 {
            return Vec::new();
        }
        let container = host
            .containers
            .iter()
            .find(|c| server.ranks.contains(&c.id))
            .map(|c| (c.id.clone(), c.pid));
        let Some((id, pid)) = container else {
            return Vec::new();
        };
        let mut apps = vec![App {
            pid: pid + 21,
            name: "ray::RayWorkerWrapper.execute_method",
            mib,
            container: id,
        }];
        if first {
            apps.push(App {
                pid: server.pid + 5,
                name: "VLLM::EngineCore",
                mib: 254,
                container: server.container.clone(),
            });
        }
        apps
    }

    /// Brings the temperature of every GPU nearer to where its work takes it.
    pub(super) fn warm_gpus(&mut self, now: Moment) {
        let targets: Vec<f64> = self
            .hosts
            .iter()
            .map(|h| COOL + 0.55 * (load_of(&self.work(h, now)).1 - IDLE_WATTS))
            .collect();
        for (host, target) in self.hosts.iter_mut().zip(targets) {
            let (degrees, at) = host.heat;
            let passed = self.pace.scaled(now.saturating_sub(at));
            let share = 1.0 - (-passed / HEAT_SECONDS).exp();
            host.heat = (degrees + (target - degrees) * share, now);
        }
    }
}

/// Watts of an idle GPU.
const IDLE_WATTS: f64 = 4.1;

/// Utilisation in percent and watts of a kind of work.
fn load_of(work: &Work) -> (f64, f64) {
    match work {
        Work::Idle => (0.0, IDLE_WATTS),
        Work::Weights => (6.0, 15.0),
        Work::Compile => (34.0, 24.0),
        Work::Graphs => (71.0, 33.0),
        Work::Ready { running: 0 } => (0.0, 11.2),
        Work::Ready { running } => {
            let batch = f64::from(u32::try_from(*running).unwrap_or(u32::MAX)).ln_1p();
            (95.0, 41.0 + 5.0 * batch.min(6.0))
        }
    }
}

/// A slow movement between -1 and 1 that differs by node, so that the figures are not frozen.
fn wave(node: usize, now: Moment, seconds: f64) -> f64 {
    let phase = f64::from(u32::try_from(node).unwrap_or(0)) * 1.9;
    (now.as_secs_f64() / seconds + phase).sin()
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "figures of a machine: never negative, far below 2^63"
)]
fn whole(v: f64) -> u64 {
    v.max(0.0) as u64
}
