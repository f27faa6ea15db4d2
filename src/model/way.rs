//! How to reach the model server by hand.

use crate::config::Config;
use crate::config::types::Login;
use crate::domain::command::quote;

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
    let mut jumps = Vec::new();
    let mut via = head.via;
    // The config has no cycle; the bound makes that plain here too.
    for _ in 0..config.ssh.jump.len() {
        let Some(hop) = via.and_then(|id| config.ssh.jump.get(id.index())) else {
            break;
        };
        jumps.push(jump_word(&hop.login));
        via = hop.via;
    }
    jumps.reverse();
    let mut words = vec!["ssh".to_owned(), "-N".to_owned()];
    if !jumps.is_empty() {
        words.extend(["-J".to_owned(), jumps.join(",")]);
    }
    words.extend(["-L".to_owned(), format!("{port}:127.0.0.1:{port}")]);
    if !head.login.alias && head.login.port != 22 {
        words.extend(["-p".to_owned(), head.login.port.to_string()]);
    }
    words.push(user_at(&head.login));
    let quoted: Vec<String> = words.iter().map(|w| quote(w)).collect();
    quoted.join(" ")
}

fn user_at(login: &Login) -> String {
    match &login.user {
        Some(user) => format!("{user}@{}", login.host),
        None => login.host.clone(),
    }
}

fn jump_word(login: &Login) -> String {
    let mut word = match (&login.user, login.host.contains(':')) {
        (Some(user), true) => format!("{user}@[{}]", login.host),
        (None, true) => format!("[{}]", login.host),
        (_, false) => user_at(login),
    };
    if !login.alias && login.port != 22 {
        word.push_str(&format!(":{}", login.port));
    }
    word
}
