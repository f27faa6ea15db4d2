//! `ssh` words that lead to a node by hand.

use crate::config::Config;
use crate::config::types::{Login, Node};
use crate::domain::HopId;
use crate::domain::command::quote;
use crate::domain::ssh_line::{self, SshHost};

/// The line that leads to a host behind its jump hosts: `ssh`, these words, the way, more words, and where to.
#[must_use]
pub fn line(config: &Config, first: &[&str], via: Option<HopId>, then: &[String], login: &Login) -> String {
    let mut hops = Vec::new();
    let mut via = via;
    // The config has no cycle; the bound makes that plain here too.
    for _ in 0..config.ssh.jump.len() {
        let Some(hop) = via.and_then(|id| config.ssh.jump.get(id.index())) else {
            break;
        };
        hops.push(ssh_host(config, &hop.login));
        via = hop.via;
    }
    hops.reverse();
    ssh_line::line(first, &hops, then, &ssh_host(config, login), &[])
}

/// The line that runs a command on a node: with `ssh` from here, or with the jump host's own `ssh` where only that one's key opens the node.
#[must_use]
pub fn remote(config: &Config, options: &[&str], node: &Node, command: &str) -> String {
    let jump = node.via.and_then(|id| config.ssh.jump.get(id.index()));
    let Some(jump) = jump.filter(|_| node.relayed) else {
        return format!(
            "{} {}",
            line(config, options, node.via, &[], &node.login),
            quote(command)
        );
    };
    let far = ssh_line::line(options, &[], &[], &named(&node.login), &[]);
    let far = format!("{far} {}", quote(command));
    format!("{} {}", line(config, options, jump.via, &[], &jump.login), quote(&far))
}

/// A host as another one's `ssh` finds it, with files of its own.
fn named(login: &Login) -> SshHost {
    SshHost {
        user: login.user.clone(),
        host: login.host.clone(),
        port: login.ssh_port(),
        ..SshHost::default()
    }
}

/// What the configuration says of a host beside ssh's own files.
fn ssh_host(config: &Config, login: &Login) -> SshHost {
    SshHost {
        user: login.user.clone(),
        host: login.host.clone(),
        port: login.ssh_port(),
        config: config.ssh.ssh_config.clone(),
        direct: login.alias && login.direct,
        keys: login.keys.clone(),
        known_hosts: config.ssh.known_hosts.clone(),
        ask: false,
    }
}

/// Where to log in: `USER@HOST`, or the host alone where the config names no user.
#[must_use]
pub fn user_at(login: &Login) -> String {
    match &login.user {
        Some(user) => format!("{user}@{}", login.host),
        None => login.host.clone(),
    }
}

#[cfg(test)]
mod tests {
    use crate::engine::sample::sparks;

    use super::*;

    #[test]
    fn an_address_with_colons_stands_in_brackets_at_every_port() {
        let mut config = sparks();
        config.ssh.known_hosts.clear();
        let (via, node) = (config.nodes[0].via, config.nodes[0].login.clone());
        let jump = |config: &Config| shlex::split(&line(config, &[], via, &[], &node)).unwrap()[2].clone();
        let hop = &mut config.ssh.jump[via.unwrap().index()];
        hop.login.host = "2001:db8::1".to_owned();
        hop.login.user = Some("ops".to_owned());
        hop.login.alias = false;
        hop.login.port = Some(22);
        assert_eq!(jump(&config), "ops@[2001:db8::1]");
        config.ssh.jump[via.unwrap().index()].login.port = Some(2222);
        assert_eq!(jump(&config), "ops@[2001:db8::1]:2222");
    }

    #[test]
    fn the_files_that_the_configuration_names_stand_in_the_line_of_every_hop() {
        let mut config = sparks();
        config.ssh.ssh_config = Some("~/cluster/ssh_config".to_owned());
        config.ssh.known_hosts = vec!["~/cluster/known_hosts".to_owned()];
        let node = config.nodes[0].clone();
        let words = shlex::split(&line(&config, &["-n"], node.via, &[], &node.login)).unwrap();
        let own = [
            "-F",
            "~/cluster/ssh_config",
            "-o",
            "UserKnownHostsFile=~/cluster/known_hosts",
        ];
        assert_eq!(words[1..3], ["-n", "-o"]);
        assert_eq!(words[4..8], own);
        let proxy = words[3].strip_prefix("ProxyCommand=").unwrap();
        assert_eq!(shlex::split(proxy).unwrap()[1..5], own);
    }

    #[test]
    fn a_command_for_a_node_that_only_its_jump_host_opens_runs_through_that_ones_ssh() {
        let mut config = sparks();
        config.ssh.known_hosts.clear();
        config.nodes[1].relayed = true;
        config.nodes[1].login.user = Some("spark".to_owned());
        config.nodes[1].login.port = Some(2222);
        let node = &config.nodes[1];
        let line = remote(&config, &["-n"], node, "printf '%s' it");
        let words = shlex::split(&line).unwrap();
        let jump = &config.ssh.jump[node.via.unwrap().index()].login;
        assert_eq!(words[words.len() - 2], user_at(jump));
        let far = shlex::split(words.last().unwrap()).unwrap();
        let place = format!("spark@{}", node.login.host);
        assert_eq!(far, ["ssh", "-n", "-p", "2222", &place, "printf '%s' it"]);
    }
}
