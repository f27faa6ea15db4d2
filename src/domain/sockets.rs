//! Listening TCP sockets of a node.

use serde::Serialize;

/// Listening TCP sockets.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct SocketFacts {
    /// One entry a listener.
    pub listeners: Vec<Listener>,
}

impl SocketFacts {
    /// Listeners on a port, whatever the address.
    pub fn on_port(&self, port: u16) -> impl Iterator<Item = &Listener> {
        self.listeners.iter().filter(move |l| l.port == port)
    }
}

/// A listening socket, from /proc/net/tcp and tcp6 (state `0A`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Listener {
    /// Address it is bound to; `*` for every address.
    pub address: String,
    /// Port.
    pub port: u16,
    /// Process id, where the login may see it.
    pub pid: Option<u32>,
    /// Container id of that process, where known.
    pub container: Option<String>,
}

impl Listener {
    /// Whether a connection to `address` reaches it.
    #[must_use]
    pub fn answers(&self, address: &str) -> bool {
        self.address == "*" || self.address == address
    }
}
