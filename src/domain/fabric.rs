//! Network interfaces and RDMA devices of a node.

use serde::Serialize;

/// What a node has to talk to the others.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct FabricFacts {
    /// Interfaces with their IPv4 and IPv6 addresses (without prefix length).
    pub interfaces: Vec<Interface>,
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Interface {
    /// Name, such as `enp1s0f1np1`.
    pub name: String,
    /// Addresses without prefix length.
    pub addresses: Vec<String>,
}
