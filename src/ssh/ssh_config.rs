//! What the operator's ssh_config says of a host: `ssh -G` is its reader, so that Include, Match and the order of blocks are OpenSSH's own. Only where
//! there is no ssh a library reads the file.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

use super::errors::printable;
use super::settings::{Settings, Target};
use crate::domain::link::HostKeys;

/// Longest wait for `ssh -G`; a `Match exec` in the file runs programs of the operator's.
const SSH_G_LIMIT: Duration = Duration::from_secs(10);

/// What ssh_config says of an alias, as far as it is used here. Nothing in it is expanded yet.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Said {
    pub(super) host: Option<String>,
    pub(super) port: Option<u16>,
    pub(super) user: Option<String>,
    pub(super) keys: Vec<String>,
    pub(super) only_named: bool,
    pub(super) certificates: Vec<String>,
    /// `none`, `SSH_AUTH_SOCK`, `$VARIABLE` or a path.
    pub(super) agent: Option<String>,
    pub(super) known_as: Option<String>,
    pub(super) user_files: Option<Vec<String>>,
    pub(super) global_files: Option<Vec<String>>,
    pub(super) host_keys: Option<HostKeys>,
    /// Whether unknown and changed keys would be taken: `StrictHostKeyChecking no`.
    pub(super) lax: bool,
    /// File with keys that must not be accepted.
    pub(super) revoked: Option<String>,
    pub(super) connect_timeout: Option<Duration>,
    pub(super) alive_interval: Option<Duration>,
    pub(super) alive_count: Option<u32>,
    pub(super) jump: Option<String>,
    pub(super) command: Option<String>,
    /// What is set and can't be done here.
    pub(super) refused: Option<&'static str>,
}

/// Reads what ssh_config says of a target.
///
/// # Errors
/// A fragment.
pub(super) async fn read(target: &Target, settings: &Settings) -> Result<Said, String> {
    let mut command = tokio::process::Command::new("ssh");
    command.args(arguments(target, settings.ssh_config.as_deref()));
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    // A `Match exec` may hang in a program of its own: the group ends with it.
    command.process_group(0).kill_on_drop(true);
    let run = async {
        let child = command.spawn()?;
        let mut group = EndsGroup(child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)));
        let output = child.wait_with_output().await;
        group.0 = None;
        output
    };
    let output = match tokio::time::timeout(SSH_G_LIMIT, run).await {
        Err(_) => return Err("`ssh -G` did not answer in time".to_owned()),
        Ok(Err(e)) if e.kind() == std::io::ErrorKind::NotFound => return without_ssh(target, settings).await,
        Ok(Err(e)) => {
            return Err(format!(
                "{} is an ssh_config alias, and `ssh -G` could not be run: {e}",
                target.host
            ));
        }
        Ok(Ok(output)) => output,
    };
    if !output.status.success() {
        let text = printable(&String::from_utf8_lossy(&output.stderr));
        return Err(format!("`ssh -G {}` failed: {text}", target.host));
    }
    Ok(parse(&String::from_utf8_lossy(&output.stdout)))
}

/// Ends a process group, unless it is gone by then.
struct EndsGroup(Option<Pid>);

impl Drop for EndsGroup {
    fn drop(&mut self) {
        if let Some(id) = self.0 {
            let _ = kill_process_group(id, Signal::KILL);
        }
    }
}

async fn without_ssh(target: &Target, settings: &Settings) -> Result<Said, String> {
    let (alias, file) = (target.host.clone(), settings.ssh_config.clone());
    let work = move || super::ssh_file::read(&alias, file.as_deref());
    tokio::task::spawn_blocking(work).await.map_err(|e| e.to_string())?
}

/// What bringup's config says goes along, so that a `Match user` sees it.
fn arguments(target: &Target, file: Option<&Path>) -> Vec<std::ffi::OsString> {
    // Without -T it complains that there is no terminal.
    let mut words: Vec<std::ffi::OsString> = vec!["-G".into(), "-T".into()];
    if let Some(file) = file {
        words.extend(["-F".into(), file.into()]);
    }
    if let Some(user) = &target.user {
        words.extend(["-l".into(), user.into()]);
    }
    if let Some(port) = target.port {
        words.extend(["-p".into(), port.to_string().into()]);
    }
    words.extend(["--".into(), target.host.as_str().into()]);
    words
}

/// Lines `key value`, keys in lower case.
pub(super) fn parse(text: &str) -> Said {
    let mut said = Said::default();
    for (key, value) in text.lines().filter_map(|l| l.split_once(' ')) {
        said.take(key, value.trim());
    }
    said
}

impl Said {
    /// Takes one setting, the key in lower case.
    pub(super) fn take(&mut self, key: &str, value: &str) {
        let text = || Some(value.to_owned());
        let some = || text().filter(|v| v != "none");
        let seconds = || value.parse().ok().map(Duration::from_secs).filter(|d| !d.is_zero());
        match key {
            "hostname" => self.host = text(),
            "port" => self.port = value.parse().ok(),
            "user" => self.user = text(),
            "identityfile" => self.keys.extend(some()),
            "identitiesonly" => self.only_named = value == "yes",
            "certificatefile" => self.certificates.extend(some()),
            "identityagent" => self.agent = text(),
            "hostkeyalias" => self.known_as = some(),
            "userknownhostsfile" => self.user_files = Some(files(value)),
            "globalknownhostsfile" => self.global_files = Some(files(value)),
            "stricthostkeychecking" => (self.host_keys, self.lax) = policy(value),
            "revokedhostkeys" => self.revoked = some(),
            "connecttimeout" => self.connect_timeout = seconds(),
            "serveraliveinterval" => self.alive_interval = seconds(),
            "serveralivecountmax" => self.alive_count = value.parse().ok(),
            "proxyjump" => self.jump = some(),
            "proxycommand" => self.command = some(),
            "proxyusefdpass" if value == "yes" => {
                self.refused = Some("ProxyUseFdpass is set, and bringup takes no connection from another program");
            }
            "knownhostscommand" if value != "none" => {
                self.refused = Some("KnownHostsCommand is set, and bringup reads host keys from files alone");
            }
            _ => {}
        }
    }
}

/// The policy, and whether it is laxer than any of ours.
fn policy(value: &str) -> (Option<HostKeys>, bool) {
    match value {
        "yes" | "true" => (Some(HostKeys::Strict), false),
        "accept-new" => (Some(HostKeys::AcceptNew), false),
        "no" | "off" | "false" => (Some(HostKeys::AcceptNew), true),
        _ => (Some(HostKeys::Ask), false),
    }
}

/// A list of files without quotes: a word that cannot begin a path belongs to the one before it, when that one is a whole path.
fn files(value: &str) -> Vec<String> {
    let begins = |word: &str| word.starts_with(['/', '~', '%', '$']);
    let mut files: Vec<String> = Vec::new();
    for word in value.split(' ') {
        match files.last_mut() {
            Some(last) if begins(last) && !begins(word) => {
                last.push(' ');
                last.push_str(word);
            }
            _ => files.push(word.to_owned()),
        }
    }
    files.retain(|f| f != "none" && !f.is_empty());
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ssh_says_is_read_line_by_line() {
        let text = "host spark\nuser aurora\nhostname 10.1.230.180\nport 2222\nidentitiesonly yes\nidentityfile ~/.ssh/a b\nidentityfile ~/.ssh/id_rsa\n\
                    certificatefile /c d-cert.pub\nidentityagent $AGENT\nhostkeyalias sparks\nuserknownhostsfile /h/known_hosts /a b/known\n\
                    globalknownhostsfile /etc/one /etc/two\nstricthostkeychecking true\nconnecttimeout 7\nserveraliveinterval 4\nserveralivecountmax 3\n\
                    proxyjump ops@a:2200,[fe80::1]:22\nproxyusefdpass no\nrevokedhostkeys /etc/revoked\nforwardagent yes\n";
        let expected = Said {
            host: Some("10.1.230.180".into()),
            port: Some(2222),
            user: Some("aurora".into()),
            keys: vec!["~/.ssh/a b".into(), "~/.ssh/id_rsa".into()],
            only_named: true,
            certificates: vec!["/c d-cert.pub".into()],
            agent: Some("$AGENT".into()),
            known_as: Some("sparks".into()),
            user_files: Some(vec!["/h/known_hosts".into(), "/a b/known".into()]),
            global_files: Some(vec!["/etc/one".into(), "/etc/two".into()]),
            host_keys: Some(HostKeys::Strict),
            lax: false,
            revoked: Some("/etc/revoked".into()),
            connect_timeout: Some(Duration::from_secs(7)),
            alive_interval: Some(Duration::from_secs(4)),
            alive_count: Some(3),
            jump: Some("ops@a:2200,[fe80::1]:22".into()),
            command: None,
            refused: None,
        };
        assert_eq!(parse(text), expected);
    }

    #[test]
    fn none_is_nothing_and_what_cannot_be_done_is_told() {
        let text = "proxyjump none\nconnecttimeout none\nserveraliveinterval 0\nuserknownhostsfile none\nidentityfile none\nrevokedhostkeys none\n";
        let expected = Said {
            user_files: Some(Vec::new()),
            ..Said::default()
        };
        assert_eq!(parse(text), expected);
        assert!(
            parse("proxyusefdpass yes")
                .refused
                .unwrap()
                .starts_with("ProxyUseFdpass")
        );
        assert!(
            parse("knownhostscommand /bin/x")
                .refused
                .unwrap()
                .starts_with("KnownHostsCommand")
        );
    }

    #[test]
    fn strict_host_key_checking_becomes_a_policy_of_ours() {
        let cases = [
            ("yes", HostKeys::Strict, false),
            ("true", HostKeys::Strict, false),
            ("ask", HostKeys::Ask, false),
            ("accept-new", HostKeys::AcceptNew, false),
            ("no", HostKeys::AcceptNew, true),
            ("off", HostKeys::AcceptNew, true),
            ("false", HostKeys::AcceptNew, true),
        ];
        for (word, expected, lax) in cases {
            assert_eq!(policy(word), (Some(expected), lax), "{word}");
        }
    }

    #[test]
    fn what_the_config_names_goes_along() {
        let target = Target {
            name: "node".into(),
            host: "spark".into(),
            port: Some(22),
            user: Some("aurora".into()),
            keys: Vec::new(),
            alias: true,
            direct: false,
        };
        let words = arguments(&target, Some(Path::new("/a b")));
        assert_eq!(
            words,
            ["-G", "-T", "-F", "/a b", "-l", "aurora", "-p", "22", "--", "spark"]
        );
    }
}
