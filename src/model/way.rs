//! How to reach the model server by hand.

use crate::config::Config;
use crate::domain::command::quote;
use crate::plan::way::{jumps, user_at};

/// The server's address as seen from the jump host (or from the operator's machine, where there is none).
#[must_use]
pub fn server_url(config: &Config) -> String {
    let host = config.node(config.head()).map_or("?", |n| n.login.host.as_str());
    let port = config.serve.port;
    if host.contains(':') {
        format!("http://[{host}]:{port}")
    } else {
        format!("http://{host}:{port}")
    }
}

/// An `ssh` line that forwards the server's port to the operator's machine, through the configured jump hosts.
#[must_use]
pub fn tunnel_line(config: &Config) -> String {
    let Some(head) = config.node(config.head()) else {
        return String::new();
    };
    let port = config.serve.port;
    let jumps = jumps(config, head.via);
    let mut words = vec!["ssh".to_owned(), "-N".to_owned()];
    if !jumps.is_empty() {
        words.extend(["-J".to_owned(), jumps.join(",")]);
    }
    words.extend(["-L".to_owned(), format!("{port}:127.0.0.1:{port}")]);
    if let Some(port) = head.login.ssh_port() {
        words.extend(["-p".to_owned(), port.to_string()]);
    }
    words.push(user_at(&head.login));
    let quoted: Vec<String> = words.iter().map(|w| quote(w)).collect();
    quoted.join(" ")
}
