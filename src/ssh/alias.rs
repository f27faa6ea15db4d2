//! From what the config says of a host to what is dialled. `ssh -G` is the one reader of the operator's ssh_config.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use super::errors::link_error;
use super::settings::Target;
use crate::domain::link::{LinkError, LinkErrorKind};

/// Longest wait for `ssh -G`; a `Match exec` in the file runs programs of the operator's.
const SSH_G_LIMIT: Duration = Duration::from_secs(10);

/// Key files that are tried where none is named, in ~/.ssh.
const USUAL_KEYS: [&str; 3] = ["id_ed25519", "id_ecdsa", "id_rsa"];

/// Key files that `ssh -G` lists where the operator's ssh_config names none, beside [`USUAL_KEYS`].
const LISTED_KEYS: [&str; 4] = ["id_ecdsa_sk", "id_ed25519_sk", "id_xmss", "id_dsa"];

/// A host, ready to be dialled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Host {
    pub(super) name: String,
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) user: String,
    pub(super) keys: Vec<PathBuf>,
    /// Whether somebody named these keys; otherwise they are the usual ones, and missing files are no news.
    pub(super) named: bool,
    /// User certificates that were named apart from the keys (`CertificateFile`), in order; those beside the keys are found there.
    pub(super) certificates: Vec<PathBuf>,
    /// Whether no other key of the agent may be tried.
    pub(super) only_named: bool,
    /// Name and port under which known_hosts files hold its key.
    pub(super) known_as: (String, u16),
}

impl Host {
    /// `host:port`, with brackets where the host has colons.
    pub(super) fn address(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }

    /// `user@host`, as ssh takes it.
    pub(super) fn login(&self) -> String {
        format!("{}@{}", self.user, self.host)
    }
}

/// Resolves a target; asks `ssh -G` when it is an alias.
pub(super) async fn resolve(target: &Target, has_via: bool) -> Result<Host, LinkError> {
    let said = if target.alias {
        ask_ssh(&target.host).await.map_err(|why| local(target, &why))?
    } else {
        Said::default()
    };
    if let Some(proxy) = said.proxy.filter(|_| !has_via) {
        return Err(local(
            target,
            &format!(
                "ssh_config reaches {} through `{proxy}`: name that host as a jump host in bringup's config",
                target.host
            ),
        ));
    }
    let user = target.user.clone().or(said.user).or_else(local_user);
    let user = user.ok_or_else(|| local(target, "no user is set, and $USER is empty"))?;
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let named: Vec<String> = if target.keys.is_empty() {
        said.keys
    } else {
        target.keys.clone()
    };
    let usual = || USUAL_KEYS.iter().map(|k| format!("~/.ssh/{k}")).collect();
    let keys: Vec<String> = if named.is_empty() { usual() } else { named.clone() };
    let host = said.host.unwrap_or_else(|| target.host.clone());
    let port = if target.port == 22 {
        said.port.unwrap_or(22)
    } else {
        target.port
    };
    let known_as = said.known_as.map_or_else(|| (host.clone(), port), |alias| (alias, 22));
    Ok(Host {
        name: target.name.clone(),
        host,
        port,
        user,
        keys: keys.iter().map(|k| expand(k, home.as_deref())).collect(),
        named: named.iter().any(|key| !target.keys.is_empty() || !is_listed(key)),
        certificates: Vec::new(),
        only_named: said.only_named,
        known_as,
    })
}

fn local(target: &Target, why: &str) -> LinkError {
    link_error(LinkErrorKind::Local, format!("{}: {why}", target.name))
}

fn local_user() -> Option<String> {
    ["USER", "LOGNAME"]
        .iter()
        .filter_map(|name| std::env::var(name).ok())
        .find(|user| !user.is_empty())
}

/// Whether `ssh -G` names this key although nobody does.
fn is_listed(key: &str) -> bool {
    let mut usual = USUAL_KEYS.iter().chain(&LISTED_KEYS);
    key.strip_prefix("~/.ssh/")
        .is_some_and(|name| usual.any(|u| *u == name))
}

/// `~/` and `~` alone become the home directory.
fn expand(path: &str, home: Option<&Path>) -> PathBuf {
    match (path.strip_prefix('~'), home) {
        (Some(""), Some(home)) => home.to_owned(),
        (Some(rest), Some(home)) if rest.starts_with('/') => home.join(rest.trim_start_matches('/')),
        _ => PathBuf::from(path),
    }
}

/// What `ssh -G` says of an alias, as far as it is used here.
#[derive(Debug, Default, PartialEq, Eq)]
struct Said {
    host: Option<String>,
    port: Option<u16>,
    user: Option<String>,
    keys: Vec<String>,
    only_named: bool,
    known_as: Option<String>,
    proxy: Option<String>,
}

async fn ask_ssh(alias: &str) -> Result<Said, String> {
    let run = tokio::process::Command::new("ssh")
        .args(["-G", "--", alias])
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = match tokio::time::timeout(SSH_G_LIMIT, run).await {
        Err(_) => return Err("`ssh -G` did not answer in time".to_owned()),
        Ok(Err(e)) => {
            return Err(format!(
                "{alias} is an ssh_config alias, and `ssh -G` could not be run: {e}"
            ));
        }
        Ok(Ok(output)) => output,
    };
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        return Err(format!("`ssh -G {alias}` failed: {}", text.trim()));
    }
    Ok(parse(&String::from_utf8_lossy(&output.stdout)))
}

/// Lines `key value`, keys in lower case.
fn parse(text: &str) -> Said {
    let mut said = Said::default();
    for (key, value) in text.lines().filter_map(|l| l.split_once(' ')) {
        let value = value.trim();
        match key {
            "hostname" => said.host = Some(value.to_owned()),
            "port" => said.port = value.parse().ok(),
            "user" => said.user = Some(value.to_owned()),
            "identityfile" => said.keys.push(value.to_owned()),
            "identitiesonly" => said.only_named = value == "yes",
            "hostkeyalias" if value != "none" => said.known_as = Some(value.to_owned()),
            "proxyjump" | "proxycommand" if value != "none" => said.proxy = Some(format!("{key} {value}")),
            _ => {}
        }
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(host: &str) -> Target {
        Target {
            name: "node".into(),
            host: host.into(),
            port: 22,
            user: Some("aurora".into()),
            keys: vec!["/k/one".into()],
            alias: false,
        }
    }

    #[test]
    fn what_ssh_says_is_read_line_by_line() {
        let text = "host spark\nuser aurora\nhostname 10.1.230.180\nport 2222\nidentitiesonly yes\nidentityfile ~/.ssh/a b\nidentityfile ~/.ssh/id_rsa\nhostkeyalias sparks\nproxyjump bastion\nforwardagent yes\n";
        let expected = Said {
            host: Some("10.1.230.180".into()),
            port: Some(2222),
            user: Some("aurora".into()),
            keys: vec!["~/.ssh/a b".into(), "~/.ssh/id_rsa".into()],
            only_named: true,
            known_as: Some("sparks".into()),
            proxy: Some("proxyjump bastion".into()),
        };
        assert_eq!(parse(text), expected);
    }

    #[test]
    fn the_home_directory_is_filled_in() {
        let home = Some(Path::new("/home/a"));
        let cases = [
            ("~/.ssh/k", "/home/a/.ssh/k"),
            ("~", "/home/a"),
            ("~b/k", "~b/k"),
            ("/k", "/k"),
        ];
        for (path, expected) in cases {
            assert_eq!(expand(path, home), PathBuf::from(expected), "{path}");
        }
    }

    #[tokio::test]
    async fn what_the_config_says_wins_and_an_address_is_written_as_ssh_does() {
        let host = resolve(&target("fe80::1"), false).await.unwrap();
        assert_eq!(
            (host.address().as_str(), host.login().as_str()),
            ("[fe80::1]:22", "aurora@fe80::1")
        );
        assert_eq!((host.keys, host.named), (vec![PathBuf::from("/k/one")], true));
    }

    #[tokio::test]
    async fn an_alias_goes_through_ssh() {
        if !Path::new("/usr/bin/ssh").exists() {
            eprintln!("left out: no /usr/bin/ssh");
            return;
        }
        // No ssh_config names it, so that it stands for itself.
        let alias = Target {
            alias: true,
            ..target("bringup-no-such-alias.invalid")
        };
        let host = resolve(&alias, false).await.unwrap();
        assert_eq!(host.address(), "bringup-no-such-alias.invalid:22");
        assert_eq!(host.user, "aurora");
        let unnamed = Target {
            keys: Vec::new(),
            ..alias
        };
        assert!(!resolve(&unnamed, false).await.unwrap().named);
    }
}
