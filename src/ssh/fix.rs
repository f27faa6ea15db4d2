//! Commands for a person to copy.

use std::path::Path;

use super::alias::Host;
use crate::domain::command::quote;

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
        None => format!("ssh {} {}", address(host), quote(append)),
        Some((last, before)) => {
            let inner = format!("ssh {} {}", address(host), quote(append));
            format!("ssh {}{} {}", through(before), address(last), quote(&inner))
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
    format!("ssh {}{} true", through(jumps), address(host))
}

/// The command that forgets a changed host key.
pub(super) fn forget(file: &Path, host: &Host) -> String {
    let name = super::known_hosts::host_name(&host.known_as.0, host.known_as.1);
    format!("ssh-keygen -R {} -f {}", quote(&name), quote(&file.to_string_lossy()))
}

fn address(host: &Host) -> String {
    if host.port == 22 {
        quote(&host.login())
    } else {
        format!("-p {} {}", host.port, quote(&host.login()))
    }
}

fn through(jumps: &[Host]) -> String {
    if jumps.is_empty() {
        return String::new();
    }
    let list: Vec<String> = jumps.iter().map(|j| format!("{}@{}", j.user, j.address())).collect();
    format!("-J {} ", quote(&list.join(",")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(user: &str, name: &str, port: u16) -> Host {
        Host {
            name: name.into(),
            host: name.into(),
            port,
            user: user.into(),
            keys: Vec::new(),
            named: true,
            certificates: Vec::new(),
            only_named: false,
            known_as: (name.into(), port),
        }
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
            text.starts_with("ssh-keygen -y -f /nowhere/id_rsa | ssh -J 'a@one:22,b@[fe80::2]:2222' c@three "),
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
            "ssh -J a@one:22 -p 2022 d@node true"
        );
        let forget = forget(Path::new("/h/known hosts"), &host("d", "node", 2022));
        assert_eq!(
            shlex::split(&forget).unwrap(),
            ["ssh-keygen", "-R", "[node]:2022", "-f", "/h/known hosts"]
        );
    }
}
