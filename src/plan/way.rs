//! `ssh` words that lead to a node by hand.

use crate::config::Config;
use crate::config::types::Login;
use crate::domain::HopId;

/// The hops to go through, the first one first, each as `-J` takes it.
#[must_use]
pub fn jumps(config: &Config, via: Option<HopId>) -> Vec<String> {
    let mut words = Vec::new();
    let mut via = via;
    // The config has no cycle; the bound makes that plain here too.
    for _ in 0..config.ssh.jump.len() {
        let Some(hop) = via.and_then(|id| config.ssh.jump.get(id.index())) else {
            break;
        };
        words.push(jump_word(&hop.login));
        via = hop.via;
    }
    words.reverse();
    words
}

/// Where to log in: `USER@HOST`, or the host alone where the config names no user.
#[must_use]
pub fn user_at(login: &Login) -> String {
    match &login.user {
        Some(user) => format!("{user}@{}", login.host),
        None => login.host.clone(),
    }
}

/// A hop. An address with colons stands in brackets, port or not: `ssh` would take its end for a port.
fn jump_word(login: &Login) -> String {
    let mut word = match (&login.user, login.host.contains(':')) {
        (Some(user), true) => format!("{user}@[{}]", login.host),
        (None, true) => format!("[{}]", login.host),
        (_, false) => user_at(login),
    };
    if let Some(port) = login.ssh_port() {
        word.push_str(&format!(":{port}"));
    }
    word
}

#[cfg(test)]
mod tests {
    use crate::engine::sample::sparks;

    use super::*;

    #[test]
    fn an_address_with_colons_stands_in_brackets_at_every_port() {
        let mut config = sparks();
        let via = config.nodes[0].via;
        let hop = &mut config.ssh.jump[via.unwrap().index()];
        hop.login.host = "2001:db8::1".to_owned();
        hop.login.user = Some("ops".to_owned());
        hop.login.alias = false;
        hop.login.port = Some(22);
        assert_eq!(jumps(&config, via), ["ops@[2001:db8::1]"]);
        config.ssh.jump[via.unwrap().index()].login.port = Some(2222);
        assert_eq!(jumps(&config, via), ["ops@[2001:db8::1]:2222"]);
    }
}
