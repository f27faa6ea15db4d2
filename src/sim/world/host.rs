//! One simulated node: its images and its containers.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use sha2::{Digest as _, Sha256};

use crate::sim::clock::Moment;

use super::log::Log;

/// Most containers of a node; `docker run` refuses more.
pub const MAX_CONTAINERS: usize = 64;

/// A container image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// `sha256:…`; another one on each host, as with real stores.
    pub id: String,
    /// `RootFS.Layers`, equal on every host.
    pub layers: Vec<String>,
}

/// Which part of Ray a container's first process is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ray {
    /// `ray start --head`.
    Head {
        /// Port of the GCS.
        port: u16,
        /// Port of the dashboard, on 127.0.0.1.
        dashboard: u16,
        /// When both listen.
        up: Moment,
    },
    /// `ray start --address`.
    Worker {
        /// The head's address and port.
        address: String,
    },
    /// Something else, or nothing of Ray.
    None,
}

/// How a container ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct End {
    /// When.
    pub at: Moment,
    /// Exit code.
    pub code: i32,
}

/// A container.
#[derive(Debug)]
pub struct Container {
    /// 64 hexadecimal digits.
    pub id: String,
    /// Name without a slash.
    pub name: String,
    /// Image reference.
    pub image: String,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Environment as `docker run -e` set it.
    pub env: Vec<(String, String)>,
    /// Devices as `docker run --device` gave them.
    pub devices: BTreeSet<String>,
    /// First process and its arguments.
    pub command: Vec<String>,
    /// When it was made and started.
    pub started: Moment,
    /// When it ends, once that is known; may lie in the future.
    pub end: Option<End>,
    /// Process id of its first process on the host.
    pub pid: u32,
    /// Its part in Ray.
    pub ray: Ray,
    /// Address under which Ray registers it.
    pub address: String,
    /// GPUs that Ray sees in it.
    pub gpus: u32,
    /// What `docker logs` shows.
    pub log: Log,
}

impl Container {
    /// Whether it runs at a moment.
    pub fn runs(&self, now: Moment) -> bool {
        self.started <= now && self.end.is_none_or(|e| e.at > now)
    }

    /// A variable of its environment.
    pub fn env(&self, name: &str) -> Option<&str> {
        self.env.iter().rev().find(|(k, _)| k == name).map(|(_, v)| v.as_str())
    }
}

/// What is remembered of a container that was removed.
#[derive(Debug, Clone)]
pub struct Gone {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// When and how it ended.
    pub end: End,
}

/// One node.
#[derive(Debug)]
pub struct Host {
    /// Name, such as `spark-1`.
    pub name: String,
    /// Address on the fabric.
    pub fabric: String,
    /// Address on the other network.
    pub external: String,
    /// Images by reference.
    pub images: BTreeMap<String, Image>,
    /// Containers, the newest first, as `docker ps` lists them.
    pub containers: Vec<Container>,
    /// Containers that were removed, the latest last, whose ends the engine remembers among its events.
    pub gone: VecDeque<Gone>,
    /// Temperature of the GPU in degrees, and when it was that.
    pub heat: (f64, Moment),
    /// What it has read from its disk since its boot.
    pub read: DiskReads,
    pids: u32,
}

/// What a node has read from its disk.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct DiskReads {
    /// GiB since the boot, those of the present server's weights left out.
    pub before: f64,
    /// GiB that a rank of the present server has read.
    pub server: f64,
}

/// Ends of removed containers that are remembered: as many as the engine keeps events.
pub const GONE: usize = 256;

/// Interface of the fabric, as on the story's machines.
pub const FABRIC_INTERFACE: &str = "enp1s0f1np1";

/// Interface of the other network.
pub const EXTERNAL_INTERFACE: &str = "enP7s7";

/// RDMA devices.
pub const HCAS: [&str; 2] = ["rocep1s0f1", "roceP2p1s0f1"];

/// GiB that a node has read to boot and to start its services.
const BOOT_GIB: f64 = 6.2;

/// Temperature of an idle GPU in degrees.
pub const COOL: f64 = 36.0;

impl Host {
    /// A node without containers.
    pub fn new(number: usize, fabric: String, external: String) -> Self {
        Self {
            name: format!("spark-{number}"),
            fabric,
            external,
            images: BTreeMap::new(),
            containers: Vec::new(),
            gone: VecDeque::new(),
            heat: (COOL, Moment::ZERO),
            read: DiskReads {
                before: BOOT_GIB,
                server: 0.0,
            },
            pids: 3200,
        }
    }

    /// A process id that no other process of the node has.
    pub fn new_pid(&mut self) -> u32 {
        self.pids = self.pids.saturating_add(37);
        self.pids
    }

    /// A new container id.
    pub fn new_id(&mut self, name: &str) -> String {
        hex(&format!("{} {name} {}", self.name, self.pids), 64)
    }

    /// When and how the container of this id ended, also where it was removed since.
    pub fn end(&self, id: &str) -> Option<End> {
        let here = self.containers.iter().find(|c| c.id == id).and_then(|c| c.end);
        here.or_else(|| self.gone.iter().find(|gone| gone.id == id).map(|gone| gone.end))
    }

    /// Ids and ends of the containers that had this name, the earliest first.
    pub fn ends(&self, name: &str) -> Vec<(&str, End)> {
        let gone = self.gone.iter().filter(|g| g.name == name);
        let gone = gone.map(|g| (g.id.as_str(), g.end));
        let here = self.containers.iter().filter(|c| c.name == name);
        gone.chain(here.filter_map(|c| Some((c.id.as_str(), c.end?)))).collect()
    }

    /// The container of this name or id (a prefix of at least twelve digits will do).
    pub fn find(&self, name: &str) -> Option<&Container> {
        self.containers.iter().find(|c| names(c, name))
    }

    /// The same, to be changed.
    pub fn find_mut(&mut self, name: &str) -> Option<&mut Container> {
        self.containers.iter_mut().find(|c| names(c, name))
    }
}

fn names(container: &Container, name: &str) -> bool {
    let name = name.trim_start_matches('/');
    container.name == name || (name.len() >= 12 && container.id.starts_with(name))
}

/// Hexadecimal digits that follow from a seed.
pub fn hex(seed: &str, digits: usize) -> String {
    let mut out = String::new();
    let mut round = 0;
    while out.len() < digits {
        let hash = Sha256::digest(format!("{seed} {round}").as_bytes());
        out.extend(hash.iter().map(|b| format!("{b:02x}")));
        round += 1;
    }
    out.truncate(digits);
    out
}

/// The image of the story on a host.
pub fn image(host: &str, reference: &str) -> Image {
    Image {
        id: format!("sha256:{}", hex(&format!("{host} {reference}"), 64)),
        layers: (0..12)
            .map(|n| format!("sha256:{}", hex(&format!("{reference} layer {n}"), 64)))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_content_has_equal_layers_and_another_id_on_each_host() {
        let (a, b) = (image("spark-1", "x"), image("spark-2", "x"));
        assert_eq!(a.layers, b.layers);
        assert_ne!(a.id, b.id);
        assert_eq!(hex("seed", 64).len(), 64);
    }
}
