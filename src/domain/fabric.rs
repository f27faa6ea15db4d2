//! Network interfaces and RDMA devices of a node.

use serde::Serialize;

use super::units::Bytes;

/// What a node has to talk to the others.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct FabricFacts {
    /// Interfaces with their IPv4 and IPv6 addresses (without prefix length).
    pub interfaces: Vec<Interface>,
    /// Ports of RDMA devices, from /sys/class/infiniband.
    pub rdma: Vec<RdmaPort>,
    /// Whether /dev/infiniband is there.
    pub infiniband: bool,
}

impl FabricFacts {
    /// The interface that holds this address.
    #[must_use]
    pub fn with_address(&self, address: &str) -> Option<&Interface> {
        self.interfaces
            .iter()
            .find(|i| i.addresses.iter().any(|a| a == address))
    }
}

/// A network interface.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Interface {
    /// Name, such as `enp1s0f1np1`.
    pub name: String,
    /// Addresses without prefix length.
    pub addresses: Vec<String>,
    /// The kernel's word for its state, such as `up` or `down`.
    pub state: Option<String>,
    /// Speed in Mbit/s; `None` while it is down, and for what has none.
    pub speed: Option<u32>,
    /// Largest packet in bytes.
    pub mtu: Option<u32>,
}

/// A port of an RDMA device.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct RdmaPort {
    /// Device, such as `rocep1s0f1`.
    pub device: String,
    /// Port number.
    pub port: u32,
    /// The kernel's word, such as `ACTIVE` or `DOWN`.
    pub state: Option<String>,
    /// Rate as the kernel writes it, such as `200 Gb/sec (4X HDR)`.
    pub rate: Option<String>,
    /// `Ethernet` or `InfiniBand`.
    pub layer: Option<String>,
    /// The network interface of the same port.
    pub interface: Option<String>,
    /// Sent since the driver was loaded.
    pub sent: Option<Bytes>,
    /// Received since then.
    pub received: Option<Bytes>,
    /// Times that the link went down since then.
    pub downs: Option<u64>,
}
