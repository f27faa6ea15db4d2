//! The simulated world: containers, Ray's membership, the model server and what they cost.
//!
//! Pure but for its arguments: it is told what moment it is, reads no clock and starts nothing. What will happen is written down when it is caused (the
//! lines of a load, the end of a container) and shows when its moment comes, so that everyone who looks at the same moment sees the same.

pub mod gauges;
pub mod host;
pub mod launch;
pub mod load;
pub mod log;
pub mod ray;
pub mod script;
pub mod server;
pub mod spec;
pub mod stats;

use std::time::Duration;

use crate::sim::clock::{Calendar, Moment, Pace};

use host::{Container, End, Host, Ray};
use ray::Member;
use server::Server;

pub use load::Trouble;

/// Python's version there.
pub const PYTHON_VERSION: &str = "3.12.3";

/// Image that the nodes have.
pub const IMAGE: &str = "hellohal2064/vllm-qwen3.5-gb10:latest";

/// What `docker run` asks for.
#[derive(Debug, Default)]
pub struct Run {
    /// Name.
    pub name: String,
    /// Image reference.
    pub image: String,
    /// Labels.
    pub labels: Vec<(String, String)>,
    /// Environment.
    pub env: Vec<(String, String)>,
    /// Devices.
    pub devices: Vec<String>,
    /// Whether the container sees the GPU.
    pub gpus: bool,
    /// First process and its arguments.
    pub command: Vec<String>,
}

/// The world.
#[derive(Debug)]
pub struct World {
    /// Nodes, the head's machine first.
    pub hosts: Vec<Host>,
    /// Starts of the model server, the newest last.
    pub servers: Vec<Server>,
    /// Ray's list of nodes, for the head that runs or ran last.
    pub members: Vec<Member>,
    /// How fast things go.
    pub pace: Pace,
    /// How moments are printed.
    pub calendar: Calendar,
    /// What every load runs into.
    pub trouble: Option<Trouble>,
    starts: u64,
}

impl World {
    /// So many nodes, each with the image and nothing else.
    pub fn new(nodes: usize, pace: Pace, calendar: Calendar) -> Self {
        let hosts = (0..nodes)
            .map(|i| {
                let mut host = Host::new(
                    i + 1,
                    format!("192.168.200.{}", 12 + i),
                    format!("10.1.230.{}", 180 + i),
                );
                host.images.insert(IMAGE.to_owned(), host::image(&host.name, IMAGE));
                host
            })
            .collect();
        Self {
            hosts,
            servers: Vec::new(),
            members: Vec::new(),
            pace,
            calendar,
            trouble: None,
            starts: 0,
        }
    }

    /// A cluster that somebody brought up at the world's beginning, and whose server loads since a little later.
    pub fn begin_loaded(&mut self, model: &str) {
        const NAME: &str = "vllm-qwen35";
        let head = self.hosts.first().map_or_else(String::new, |h| h.fabric.clone());
        let addresses: Vec<String> = self.hosts.iter().map(|h| h.fabric.clone()).collect();
        let words = |text: String| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        for (node, address) in addresses.iter().enumerate() {
            let role = match node {
                0 => "--head --port 6379 --dashboard-port 8265".to_owned(),
                _ => format!("--address={head}:6379"),
            };
            let run = Run {
                name: NAME.to_owned(),
                image: IMAGE.to_owned(),
                gpus: true,
                command: words(format!("ray start --block {role} --node-ip-address {address}")),
                ..Run::default()
            };
            // The nodes are empty: there is a name and a place for each.
            let _id = self.run(node, run, self.pace.secs(if node == 0 { 0.0 } else { 3.0 }));
        }
        let tp = addresses.len();
        let serve = words(format!("{model} --port 8000 --tensor-parallel-size {tp}"));
        self.serve(0, NAME, &[], &serve, self.pace.secs(10.0));
    }

    pub(super) fn container(&self, id: &str) -> Option<&Container> {
        self.hosts.iter().flat_map(|h| &h.containers).find(|c| c.id == id)
    }

    pub(super) fn container_runs(&self, id: &str, now: Moment) -> bool {
        self.container(id).is_some_and(|c| c.runs(now))
    }

    /// `docker run -d` on a node: the new container's id.
    ///
    /// # Errors
    /// The daemon's words when the name is taken or the node holds too many containers.
    pub fn run(&mut self, node: usize, run: Run, now: Moment) -> Result<String, String> {
        let (pace, calendar) = (self.pace, self.calendar);
        let heads = self.listening_heads(now);
        let host = self.hosts.get_mut(node).ok_or("no such node")?;
        if let Some(taken) = host.find(&run.name) {
            return Err(format!(
                "Conflict. The container name \"/{}\" is already in use by container \"{}\". You have to remove (or rename) that container to be able to reuse that name.",
                run.name, taken.id
            ));
        }
        if host.containers.len() >= host::MAX_CONTAINERS {
            return Err("too many containers".to_owned());
        }
        let flag = |name: &str| flag(&run.command, name);
        let address = flag("--node-ip-address").unwrap_or_else(|| host.external.clone());
        let number = |name: &str, or: u16| flag(name).and_then(|v| v.parse().ok()).unwrap_or(or);
        let is_ray = matches!(run.command.as_slice(), [ray, start, ..] if ray.ends_with("ray") && start == "start");
        let up = now.saturating_add(pace.secs(ray::HEAD_UP));
        let ray = if is_ray && run.command.iter().any(|w| w == "--head") {
            Ray::Head {
                port: number("--port", 6379),
                dashboard: number("--dashboard-port", 8265),
                up,
            }
        } else if let (true, Some(address)) = (is_ray, flag("--address")) {
            Ray::Worker { address }
        } else {
            Ray::None
        };
        let gpus = flag("--num-gpus")
            .and_then(|v| v.parse().ok())
            .unwrap_or(u32::from(run.gpus));
        let id = host.new_id(&run.name);
        let pid = host.new_pid();
        let mut container = Container {
            id: id.clone(),
            name: run.name,
            image: run.image,
            labels: run.labels.into_iter().collect(),
            env: run.env,
            devices: run.devices.into_iter().collect(),
            command: run.command,
            started: now,
            end: None,
            pid,
            ray,
            address: address.clone(),
            gpus,
            log: log::Log::default(),
        };
        match &container.ray {
            Ray::Head { port, dashboard, .. } => {
                let (port, dashboard) = (*port, *dashboard);
                ray::say_head(&mut container, calendar, now, up, port, dashboard);
                self.members = vec![ray::member(&container, &id, true, up)];
            }
            Ray::Worker { address: at } => {
                let at = at.clone();
                match heads.iter().find(|(head, _)| *head == at) {
                    Some((_, head_up)) => {
                        let joined = now
                            .saturating_add(pace.secs(ray::JOIN))
                            .max(head_up.saturating_add(pace.secs(0.4)));
                        ray::say_worker(&mut container, calendar, now, joined);
                        self.join(ray::member(&container, &id, false, joined));
                    }
                    None => ray::give_up(&mut container, pace, calendar, now, &at),
                }
            }
            // A container without a process that stays ends at once.
            Ray::None => container.end = Some(End { at: now, code: 0 }),
        }
        if let Some(host) = self.hosts.get_mut(node) {
            host.containers.insert(0, container);
        }
        self.launch_waiting(now);
        Ok(id)
    }

    /// Ends a container's processes at a moment: what depends on it follows.
    pub fn end_container(&mut self, node: usize, name: &str, end: End, killed: bool) {
        let Some(container) = self.hosts.get_mut(node).and_then(|h| h.find_mut(name)) else {
            return;
        };
        if container.end.is_some_and(|e| e.at <= end.at) {
            return;
        }
        container.end = Some(end);
        container.log.cut_all(end.at);
        let id = container.id.clone();
        let is_head = matches!(container.ray, Ray::Head { .. });
        let own: Vec<u64> = self
            .servers
            .iter()
            .filter(|s| s.container == id && s.runs(end.at))
            .map(|s| s.number)
            .collect();
        for number in own {
            self.end_server(number, end.at);
        }
        let noticed = if killed {
            self.pace.secs(ray::DEATH_NOTICED)
        } else {
            Duration::ZERO
        };
        let why = if killed {
            "health check failed due to missing too many heartbeats"
        } else {
            "received SIGTERM"
        };
        for m in self
            .members
            .iter_mut()
            .filter(|m| m.container == id && m.dead.is_none())
        {
            m.dead = Some((end.at.saturating_add(noticed), why));
        }
        self.lose_ranks(&id, end.at);
        if is_head {
            let at = end.at.saturating_add(self.pace.secs(ray::ORPHAN));
            let joined: Vec<String> = self
                .members
                .iter()
                .filter(|m| !m.head)
                .map(|m| m.container.clone())
                .collect();
            for c in self.hosts.iter_mut().flat_map(|h| h.containers.iter_mut()) {
                if joined.contains(&c.id) && c.runs(end.at) && c.end.is_none() {
                    c.end = Some(End { at, code: 1 });
                }
            }
        }
    }

    /// Removes a container. The caller has checked that it does not run.
    pub fn remove(&mut self, node: usize, name: &str) {
        if let Some(host) = self.hosts.get_mut(node)
            && let Some((id, name, end)) = host.find(name).map(|c| (c.id.clone(), c.name.clone(), c.end))
        {
            if host.gone.len() >= host::GONE {
                host.gone.pop_front();
            }
            host.containers.retain(|c| c.id != id);
            host.gone.extend(end.map(|end| host::Gone { id, name, end }));
        }
    }
}

/// The value of a flag, in the forms `--name value` and `--name=value`.
pub fn flag(words: &[String], name: &str) -> Option<String> {
    words.iter().enumerate().find_map(|(i, w)| {
        if w == name {
            words.get(i + 1).cloned()
        } else {
            w.strip_prefix(name)
                .and_then(|rest| rest.strip_prefix('='))
                .map(str::to_owned)
        }
    })
}

#[cfg(test)]
mod tests;
