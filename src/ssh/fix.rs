//! Commands for a person to copy.

use std::path::{Path, PathBuf};

use super::alias::{Host, PORT};
use crate::domain::command::quote;
use crate::domain::link::HostKeys;
use crate::domain::ssh_line::{self, SshHost};

/// Where a public key comes from in a command.
pub(super) enum PublicKeySource<'a> {
    /// A private key's file.
    File(&'a Path),
    /// The text of a key that only an agent holds.
    Text(String),
}

/// The command that adds a public key to a host's authorized keys: through its jump hosts with the login that works there today, which is
/// the last jump host's own.
pub(super) fn add_key(key: &PublicKeySource<'_>, jumps: &[Host], host: &Host) -> String {
    let append =
        "mkdir -p ~/.ssh && chmod 700 ~/.ssh && cat >> ~/.ssh/authorized_keys && chmod 600 ~/.ssh/authorized_keys";
    let ssh = match jumps.split_last() {
        None => ssh(&[], host, &[append]),
        Some((last, before)) => {
            // The jump host's own ssh knows nothing of this machine's files.
            let inner = format!("ssh {} {}", far_address(host), quote(append));
            ssh(before, last, &[&inner])
        }
    };
    match key {
        PublicKeySource::File(path) => {
            let mut beside = path.as_os_str().to_owned();
            beside.push(".pub");
            let public = Path::new(&beside);
            if public.exists() {
                format!("{ssh} < {}", quote(&public.to_string_lossy()))
            } else {
                format!("ssh-keygen -y -f {} | {ssh}", quote(&path.to_string_lossy()))
            }
        }
        PublicKeySource::Text(text) => format!("printf '%s\\n' {} | {ssh}", quote(text)),
    }
}

/// The command that asks about an unknown host key in OpenSSH's own way.
pub(super) fn learn(jumps: &[Host], host: &Host) -> String {
    ssh(jumps, host, &["true"])
}

/// The command that forgets a changed host key.
pub(super) fn forget(file: &Path, host: &Host) -> String {
    let name = super::known_hosts::host_name(&host.known_as.0, host.known_as.1);
    format!("ssh-keygen -R {} -f {}", quote(&name), quote(&file.to_string_lossy()))
}

/// A command line that reaches a host as bringup does.
fn ssh(jumps: &[Host], host: &Host, rest: &[&str]) -> String {
    let jumps: Vec<SshHost> = jumps.iter().map(ssh_host).collect();
    ssh_line::line(&[], &jumps, &[], &ssh_host(host), rest)
}

/// What ssh's defaults and files don't say of a host.
fn ssh_host(host: &Host) -> SshHost {
    let line = &host.line;
    let text = |path: &PathBuf| path.to_string_lossy().into_owned();
    let (user, name, port) = match &line.alias {
        Some(alias) => (line.user.clone(), alias.clone(), line.port),
        None => {
            let port = Some(host.port).filter(|port| *port != PORT);
            (Some(host.user.clone()), host.host.clone(), port)
        }
    };
    SshHost {
        user,
        host: name,
        port,
        config: line.config.as_ref().map(text),
        direct: line.direct,
        keys: line.keys.iter().map(text).collect(),
        known_hosts: line.known_hosts.iter().map(text).collect(),
        // A person compares the key and decides.
        ask: host.host_keys == HostKeys::Strict,
    }
}

/// The host as the last jump host's own ssh takes it.
fn far_address(host: &Host) -> String {
    if host.port == PORT {
        quote(&host.login())
    } else {
        format!("-p {} {}", host.port, quote(&host.login()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ssh::alias::Line;

    fn host(user: &str, name: &str, port: u16) -> Host {
        Host::plain(user, name, port)
    }

    fn with(host: Host, change: impl FnOnce(&mut Line)) -> Host {
        let mut host = host;
        change(&mut host.line);
        host
    }
    #[test]
    fn a_key_goes_to_a_node_through_its_jump_host() {
        let folder = tempfile::tempdir().unwrap();
        let key = folder.path().join("id ed");
        std::fs::write(folder.path().join("id ed.pub"), "").unwrap();
        let jump = host("aurora", "10.1.230.180", 2200);
        let text = add_key(
            &PublicKeySource::File(&key),
            &[jump],
            &host("aurora", "192.168.200.13", 22),
        );
        let (command, file) = text.split_once(" < ").unwrap();
        assert_eq!(shlex::split(file).unwrap(), [format!("{}.pub", key.display())]);
        let outer = shlex::split(command).unwrap();
        assert_eq!(outer[..4], ["ssh", "-p", "2200", "aurora@10.1.230.180"]);
        // The jump host's shell reads the one remaining word, and the node's shell what is quoted within it.
        assert_eq!(outer.len(), 5);
        let inner = shlex::split(&outer[4]).unwrap();
        assert_eq!(inner[..2], ["ssh", "aurora@192.168.200.13"]);
        assert_eq!(inner.len(), 3);
        assert!(
            inner[2].starts_with("mkdir -p ~/.ssh && ") && inner[2].contains("cat >> ~/.ssh/authorized_keys"),
            "{}",
            inner[2]
        );
    }

    #[test]
    fn longer_chains_direct_hosts_and_agent_keys_have_their_own_forms() {
        let chain = [host("a", "one", 22), host("b", "fe80::2", 2222), host("c", "three", 22)];
        let key = Path::new("/nowhere/id_rsa");
        let text = add_key(&PublicKeySource::File(key), &chain, &host("d", "node", 22));
        assert!(
            text.starts_with("ssh-keygen -y -f /nowhere/id_rsa | ssh -J 'a@one,b@[fe80::2]:2222' c@three "),
            "{text}"
        );
        let text = add_key(
            &PublicKeySource::Text("ssh-ed25519 AAAA me".into()),
            &[],
            &host("d", "node", 22),
        );
        assert!(
            text.starts_with("printf '%s\\n' 'ssh-ed25519 AAAA me' | ssh d@node "),
            "{text}"
        );
        assert_eq!(
            learn(&chain[..1], &host("d", "node", 2022)),
            "ssh -J a@one -p 2022 d@node true"
        );
        let forget = forget(Path::new("/h/known hosts"), &host("d", "node", 2022));
        assert_eq!(
            shlex::split(&forget).unwrap(),
            ["ssh-keygen", "-R", "[node]:2022", "-f", "/h/known hosts"]
        );
    }
    #[test]
    fn keys_and_files_of_a_direct_host_stand_in_the_line() {
        let node = with(host("d", "node", 2022), |line| {
            line.config = Some("/c d".into());
            line.keys = vec!["/k/100%".into()];
            line.known_hosts = vec!["/h/known hosts".into(), "/h/more".into()];
        });
        let words = shlex::split(&learn(&[], &node)).unwrap();
        let expected = [
            "ssh",
            "-F",
            "/c d",
            "-i",
            "/k/100%%",
            "-o",
            "UserKnownHostsFile=\"/h/known hosts\" /h/more",
            "-p",
            "2022",
            "d@node",
            "true",
        ];
        assert_eq!(words, expected);
    }

    #[test]
    fn an_alias_brings_its_own_settings() {
        let alias = |name: &str| {
            with(host("aurora", "10.0.0.9", 2222), |line| {
                line.alias = Some(name.to_owned())
            })
        };
        assert_eq!(learn(&[alias("gate")], &alias("spark")), "ssh -J gate spark true");
        let named = with(alias("spark"), |line| {
            line.user = Some("root".into());
            line.port = Some(22);
            line.direct = true;
        });
        let words = shlex::split(&learn(&[], &named)).unwrap();
        assert_eq!(
            words,
            ["ssh", "-o", "ProxyCommand=none", "-p", "22", "root@spark", "true"]
        );
        assert_eq!(learn(&[named], &alias("x")), "ssh -J root@spark:22 x true");
        let mut strict = alias("spark");
        strict.host_keys = HostKeys::Strict;
        let words = shlex::split(&learn(&[], &strict)).unwrap();
        assert_eq!(words, ["ssh", "-o", "StrictHostKeyChecking=ask", "spark", "true"]);
    }

    #[test]
    fn jump_hosts_with_keys_of_their_own_are_reached_with_them() {
        let jump = |name: &str| {
            with(host("a", name, 22), |line| {
                line.keys = vec![format!("/k/{name} %").into()]
            })
        };
        let words = shlex::split(&learn(&[jump("one"), jump("two")], &host("d", "node", 22))).unwrap();
        assert_eq!(
            (words[0].as_str(), words[1].as_str(), &words[3..]),
            ("ssh", "-o", &["d@node".to_owned(), "true".to_owned()][..])
        );
        // What the ssh of the machine makes of it: fills in the percent signs, and has a shell split it.
        let outer = words[2].strip_prefix("ProxyCommand=").unwrap();
        let run = |text: &str, host: &str| {
            let filled = text
                .replace("%%", "\0")
                .replace("%h", host)
                .replace("%p", "22")
                .replace('\0', "%");
            shlex::split(&filled).unwrap()
        };
        let second = run(outer, "node");
        assert_eq!(second[..2], ["ssh", "-o"]);
        assert_eq!(second[3..], ["-i", "/k/two %%", "a@two", "-W", "[node]:22"]);
        let first = run(second[2].strip_prefix("ProxyCommand=").unwrap(), "two");
        assert_eq!(first, ["ssh", "-i", "/k/one %%", "a@one", "-W", "[two]:22"]);
    }
}
