//! Ray's part of the world: who joins whom, whom Ray lists, and what `ray start --block` prints.

use serde_json::{Value, json};

use crate::sim::clock::{Calendar, Moment, Pace};

use super::World;
use super::host::{self, Container, End, Ray};
use super::log::{Entry, FIRST_PROCESS};
use super::server::Server;

/// Ray's version in the simulated image.
pub const RAY_VERSION: &str = "2.53.0";

/// CPU cores that Ray counts on a node.
pub const CPUS: f64 = 20.0;

/// Seconds from `docker run` of the head to its listeners.
pub(super) const HEAD_UP: f64 = 2.0;

/// Seconds from `docker run` of a worker to its membership.
pub(super) const JOIN: f64 = 2.6;

/// Seconds after which a worker that finds no head gives up.
const JOIN_GIVES_UP: f64 = 60.0;

/// Seconds for which Ray still calls a killed node alive.
pub(super) const DEATH_NOTICED: f64 = 13.0;

/// Seconds after which a worker ends when its head is gone.
pub(super) const ORPHAN: f64 = 60.0;

/// A node in Ray's list.
#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    /// Ray's node id, 56 hexadecimal digits.
    pub id: String,
    /// Address it registered with.
    pub address: String,
    /// Whether it is the head.
    pub head: bool,
    /// GPUs.
    pub gpus: u32,
    /// Its container.
    pub container: String,
    /// Since when it is listed.
    pub from: Moment,
    /// Since when Ray calls it dead.
    pub dead: Option<(Moment, &'static str)>,
}

/// Seconds from the start of a model server to its asking for GPUs.
const ASKS_FOR_GPUS: f64 = 6.8;

/// Most nodes that Ray's list holds; of those that are dead, the oldest goes first.
const MAX_MEMBERS: usize = 256;

impl World {
    /// Adds a node to Ray's list.
    pub(super) fn join(&mut self, member: Member) {
        if self.members.len() >= MAX_MEMBERS
            && let Some(dead) = self.members.iter().position(|m| m.dead.is_some())
        {
            self.members.remove(dead);
        }
        self.members.push(member);
    }

    /// Ray's nodes as the dashboard lists them; empty when no head runs.
    pub fn ray_nodes(&self, now: Moment) -> Vec<&Member> {
        let head_runs = self
            .members
            .iter()
            .any(|m| m.head && self.container_runs(&m.container, now));
        self.members.iter().filter(|m| head_runs && m.from <= now).collect()
    }

    /// Placement groups that wait, as the dashboard lists them with details.
    pub fn waiting_groups(&self, now: Moment) -> Vec<Value> {
        let asked = |s: &&Server| {
            s.runs(now) && s.marks.is_none() && s.started.saturating_add(self.pace.secs(ASKS_FOR_GPUS)) <= now
        };
        self.servers
            .iter()
            .filter(asked)
            .map(|s| {
                let containers = self.hosts.iter().flat_map(|h| &h.containers);
                let own = containers.into_iter().find(|c| c.id == s.container).map(|c| c.address.clone());
                let bundles = (0..s.spec.tp).map(|rank| {
                    let mut unit = json!({"GPU": 1.0});
                    if let (0, Some(own)) = (rank, &own) {
                        unit[format!("node:{own}")] = json!(0.001);
                    }
                    json!({"bundle_id": {"bundle_index": rank}, "unit_resources": unit, "node_id": ""})
                });
                let asked = self.calendar.unix(s.started.saturating_add(self.pace.secs(ASKS_FOR_GPUS)));
                json!({
                    "placement_group_id": host::hex(&format!("group {}", s.number), 36),
                    "name": "",
                    "state": "PENDING",
                    "bundles": bundles.collect::<Vec<_>>(),
                    "stats": {"creation_request_received_ns": format!("{:.0}", asked * 1e9), "scheduling_state": "INFEASIBLE"},
                })
            })
            .collect()
    }

    /// Heads that run: the address a worker must name, and when it listens.
    pub(super) fn listening_heads(&self, now: Moment) -> Vec<(String, Moment)> {
        let running = self
            .hosts
            .iter()
            .flat_map(|h| h.containers.iter().map(move |c| (h, c)))
            .filter(|(_, c)| c.runs(now));
        running
            .flat_map(|(h, c)| match c.ray {
                Ray::Head { port, up, .. } => vec![
                    (format!("{}:{port}", h.fabric), up),
                    (format!("{}:{port}", h.external), up),
                ],
                Ray::Worker { .. } | Ray::None => Vec::new(),
            })
            .collect()
    }
}

pub(super) fn member(container: &Container, id: &str, head: bool, from: Moment) -> Member {
    Member {
        id: host::hex(id, 56),
        address: container.address.clone(),
        head,
        gpus: container.gpus,
        container: id.to_owned(),
        from,
        dead: None,
    }
}

/// Ray's lines of a container, with Ray's date.
fn ray_line(container: &mut Container, calendar: Calendar, at: Moment, err: bool, text: &str) {
    let date = calendar.ray(at);
    container.log.push(Entry {
        at,
        owner: FIRST_PROCESS,
        err,
        text: format!("{date}\t{text}"),
    });
}

fn started(container: &mut Container, calendar: Calendar, at: Moment, lines: [u32; 3]) {
    let bar = "\u{1b}[32m--------------------\u{1b}[39m";
    for (line, text) in lines
        .into_iter()
        .zip([bar, "\u{1b}[32mRay runtime started.\u{1b}[39m", bar])
    {
        ray_line(
            container,
            calendar,
            at,
            false,
            &format!("SUCC scripts.py:{line} -- {text}"),
        );
    }
}

fn blocks(container: &mut Container, calendar: Calendar, at: Moment) {
    for text in [
        "INFO scripts.py:1265 -- \u{1b}[36m\u{1b}[1m--block\u{1b}[22m\u{1b}[39m",
        "INFO scripts.py:1266 -- This command will now block forever until terminated by a signal.",
        "INFO scripts.py:1269 -- Running subprocesses are monitored and a message will be printed if any of them terminate unexpectedly. Subprocesses exit with SIGTERM will be treated as graceful, thus NOT reported.",
    ] {
        ray_line(container, calendar, at, false, text);
    }
}

pub(super) fn say_head(
    container: &mut Container,
    calendar: Calendar,
    now: Moment,
    up: Moment,
    port: u16,
    dashboard: u16,
) {
    let address = container.address.clone();
    ray_line(
        container,
        calendar,
        now,
        true,
        "INFO usage_lib.py:448 -- Usage stats collection is disabled.",
    );
    ray_line(
        container,
        calendar,
        now,
        false,
        &format!("INFO scripts.py:1043 -- \u{1b}[37mLocal node IP\u{1b}[39m: \u{1b}[1m{address}\u{1b}[22m"),
    );
    started(container, calendar, up, [1084, 1085, 1086]);
    for text in [
        "INFO scripts.py:1088 -- \u{1b}[36mNext steps\u{1b}[39m".to_owned(),
        "INFO scripts.py:1092 -- To add another node to this Ray cluster, run".to_owned(),
        format!("INFO scripts.py:1095 -- \u{1b}[1m  ray start --address='{address}:{port}'\u{1b}[22m"),
        "INFO scripts.py:1151 -- To monitor and debug Ray, view the dashboard at ".to_owned(),
        format!("INFO scripts.py:1152 --   \u{1b}[1m127.0.0.1:{dashboard}\u{1b}[22m\u{1b}[26m"),
    ] {
        ray_line(container, calendar, up, false, &text);
    }
    blocks(container, calendar, up);
    let session = calendar.session(now);
    ray_line(
        container,
        calendar,
        up,
        false,
        &format!(
            "INFO scripts.py:1274 -- Process exit logs will be saved to: \u{1b}[1m/tmp/ray/session_{session}_1/logs/ray_process_exit.log\u{1b}[22m\u{1b}[26m"
        ),
    );
}

pub(super) fn say_worker(container: &mut Container, calendar: Calendar, now: Moment, joined: Moment) {
    let address = container.address.clone();
    ray_line(
        container,
        calendar,
        now,
        false,
        &format!("INFO scripts.py:1234 -- \u{1b}[37mLocal node IP\u{1b}[39m: \u{1b}[1m{address}\u{1b}[22m"),
    );
    started(container, calendar, joined, [1250, 1251, 1252]);
    ray_line(
        container,
        calendar,
        joined,
        false,
        "INFO scripts.py:1254 -- To terminate the Ray runtime, run",
    );
    ray_line(
        container,
        calendar,
        joined,
        false,
        "INFO scripts.py:1255 -- \u{1b}[1m  ray stop\u{1b}[22m",
    );
    blocks(container, calendar, joined);
}

/// A worker that finds nobody at the head's address.
pub(super) fn give_up(container: &mut Container, pace: Pace, calendar: Calendar, now: Moment, address: &str) {
    let end = now.saturating_add(pace.secs(JOIN_GIVES_UP));
    let local = container.address.clone();
    ray_line(
        container,
        calendar,
        now,
        false,
        &format!("INFO scripts.py:1234 -- \u{1b}[37mLocal node IP\u{1b}[39m: \u{1b}[1m{local}\u{1b}[22m"),
    );
    for n in 1..=11 {
        let at = now.saturating_add(pace.secs(5.0 * f64::from(n)));
        let date = calendar.ray(at);
        container.log.push(Entry {
            at,
            owner: FIRST_PROCESS,
            err: true,
            text: format!(
                "[{date} W 1 1] gcs_rpc_client.h:151: Failed to connect to GCS at address {address} within 5 seconds."
            ),
        });
    }
    container.end = Some(End { at: end, code: 1 });
}
