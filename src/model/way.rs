//! How to reach the model server by hand.

use crate::config::Config;
use crate::domain::NodeId;
use crate::plan::way::{line, remote};

/// The server's address as seen from the jump host (or from the operator's machine, where there is none).
#[must_use]
pub fn server_url(config: &Config) -> String {
    let host = config.node(config.head()).map_or("?", |n| n.login.host.as_str());
    format!("http://{}:{}", bracketed(host), config.serve.port)
}

/// The line that runs a command on a node from the operator's machine; `None` where there is no such node.
#[must_use]
pub(super) fn command_line(config: &Config, node: NodeId, command: &str) -> Option<String> {
    // sudo may ask for a password, and only at a terminal.
    let asks = command.split_whitespace().any(|word| word == "sudo");
    let options: &[&str] = if asks { &["-t"] } else { &[] };
    Some(remote(config, options, config.node(node)?, command))
}

/// An `ssh` line that forwards the server's port to the operator's machine, through the configured jump hosts.
#[must_use]
pub fn tunnel_line(config: &Config) -> String {
    let Some(head) = config.node(config.head()) else {
        return String::new();
    };
    let hop = head.via.and_then(|id| config.ssh.jump.get(id.index()));
    // Where the operator's key does not open the head, its jump host reaches the port over the network between them.
    let (login, via, host) = match hop.filter(|_| head.relayed) {
        Some(hop) => (&hop.login, hop.via, bracketed(&head.login.host)),
        None => (&head.login, head.via, "127.0.0.1".to_owned()),
    };
    let port = config.serve.port;
    let forward = ["-L".to_owned(), format!("{port}:{host}:{port}")];
    line(config, &["-N"], via, &forward, login)
}

/// A host as it stands before a port: an address with colons in brackets.
fn bracketed(host: &str) -> String {
    if host.contains(':') {
        format!("[{host}]")
    } else {
        host.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use crate::engine::sample::sparks;

    use super::*;

    #[test]
    fn a_head_that_only_its_jump_host_opens_is_reached_from_there() {
        let mut config = sparks();
        config.ssh.known_hosts.clear();
        let port = config.serve.port;
        let address = config.nodes[0].login.host.clone();
        let own = tunnel_line(&config);
        assert!(
            own.contains(&format!("-L {port}:127.0.0.1:{port}")) && own.contains("-J "),
            "{own}"
        );
        config.nodes[0].relayed = true;
        let relayed = tunnel_line(&config);
        assert!(relayed.contains(&format!("-L {port}:{address}:{port}")), "{relayed}");
        assert!(!relayed.contains("-J "), "{relayed}");
        let hop = config.nodes[0].via.unwrap();
        assert!(relayed.ends_with(&config.ssh.jump[hop.index()].login.host), "{relayed}");
    }
}
