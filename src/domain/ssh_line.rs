//! `ssh` command lines that reach a host as bringup does, for a person to copy.

use super::command::quote;

/// A host as an `ssh` command line names it, with what ssh's defaults and files don't say of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SshHost {
    /// User; `None` leaves it to ssh.
    pub user: Option<String>,
    /// Name, address or alias.
    pub host: String,
    /// Port; `None` leaves it to ssh.
    pub port: Option<u16>,
    /// `-F`.
    pub config: Option<String>,
    /// Whether a ProxyJump and a ProxyCommand of ssh_config are left out.
    pub direct: bool,
    /// `-i`, in order.
    pub keys: Vec<String>,
    /// `-o UserKnownHostsFile`.
    pub known_hosts: Vec<String>,
    /// Whether a person is to be asked for an unknown key that ssh_config would refuse or take.
    pub ask: bool,
}

/// The line: `ssh`, these words, the way through the jump hosts, more words, what the host wants, where to, and the rest.
#[must_use]
pub fn line(first: &[&str], jumps: &[SshHost], then: &[String], host: &SshHost, rest: &[&str]) -> String {
    let mut words = vec!["ssh".to_owned()];
    words.extend(first.iter().map(|w| (*w).to_owned()));
    words.extend(way(jumps));
    words.extend(then.iter().cloned());
    words.extend(options(host));
    words.push(destination(host));
    words.extend(rest.iter().map(|w| (*w).to_owned()));
    join(&words)
}

/// `USER@HOST`, or the host alone.
fn destination(host: &SshHost) -> String {
    match &host.user {
        Some(user) => format!("{user}@{}", host.host),
        None => host.host.clone(),
    }
}

/// Words for a shell. A home directory stays the shell's to fill in: `-F` knows none.
fn join(words: &[String]) -> String {
    let quoted: Vec<String> = words
        .iter()
        .map(|word| match word.strip_prefix("~/") {
            Some(rest) => format!("~/{}", quote(rest)),
            None => quote(word),
        })
        .collect();
    quoted.join(" ")
}

fn options(host: &SshHost) -> Vec<String> {
    let mut words = Vec::new();
    if let Some(file) = &host.config {
        words.extend(["-F".to_owned(), file.clone()]);
    }
    if host.direct {
        // It also keeps a ProxyJump out.
        words.extend(["-o".to_owned(), "ProxyCommand=none".to_owned()]);
    }
    for key in &host.keys {
        words.extend(["-i".to_owned(), literal(key)]);
    }
    if !host.known_hosts.is_empty() {
        let files: Vec<String> = host.known_hosts.iter().map(|f| list_word(&literal(f))).collect();
        words.extend(["-o".to_owned(), format!("UserKnownHostsFile={}", files.join(" "))]);
    }
    if host.ask {
        words.extend(["-o".to_owned(), "StrictHostKeyChecking=ask".to_owned()]);
    }
    if let Some(port) = host.port {
        words.extend(["-p".to_owned(), port.to_string()]);
    }
    words
}

/// A path for an option in which ssh fills in percent signs.
fn literal(path: &str) -> String {
    path.replace('%', "%%")
}

/// A word of an option that takes several.
fn list_word(text: &str) -> String {
    if text.contains(char::is_whitespace) {
        format!("\"{text}\"")
    } else {
        text.to_owned()
    }
}

/// The words that lead through the jump hosts.
fn way(jumps: &[SshHost]) -> Vec<String> {
    let simple = |j: &SshHost| j.keys.is_empty() && j.known_hosts.is_empty() && !j.ask;
    if jumps.is_empty() {
        Vec::new()
    } else if jumps.iter().all(simple) {
        let list: Vec<String> = jumps.iter().map(jump_word).collect();
        vec!["-J".to_owned(), list.join(",")]
    } else {
        // The options of a command line count for its last host alone: -J would leave out the keys and files of those before it.
        vec!["-o".to_owned(), format!("ProxyCommand={}", proxy(jumps))]
    }
}

/// A ProxyCommand that goes through these hosts.
fn proxy(jumps: &[SshHost]) -> String {
    let Some((last, before)) = jumps.split_last() else {
        return String::new();
    };
    // What is meant for an inner ssh must outlive the filling in of the outer one.
    let inner = line(&[], before, &[], last, &[]).replace('%', "%%");
    format!("{inner} -W '[%h]:%p'")
}

/// A hop as -J takes it. An address with colons stands in brackets, port or not: `ssh` would take its end for a port.
fn jump_word(jump: &SshHost) -> String {
    let user = jump.user.as_ref().map(|u| format!("{u}@")).unwrap_or_default();
    let port = jump.port.map(|p| format!(":{p}")).unwrap_or_default();
    match jump.host.contains(':') {
        true => format!("{user}[{}]{port}", jump.host),
        false => format!("{user}{}{port}", jump.host),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_under_the_home_directory_are_left_to_the_shell() {
        let host = |name: &str| SshHost {
            host: name.to_owned(),
            config: Some("~/my ssh/config".to_owned()),
            known_hosts: vec!["~/.ssh/known sparks".to_owned(), "/etc/k".to_owned()],
            ..SshHost::default()
        };
        assert_eq!(
            line(&["-n"], &[], &[], &host("node"), &[]),
            "ssh -n -F ~/'my ssh/config' -o 'UserKnownHostsFile=\"~/.ssh/known sparks\" /etc/k' node"
        );
        // A hop with files of its own is reached by a command, in which a shell fills them in too.
        let through = line(&[], &[host("gate")], &[], &host("node"), &["true"]);
        let words = shlex::split(&through).unwrap();
        let proxy = words[2].strip_prefix("ProxyCommand=").unwrap();
        assert!(proxy.starts_with("ssh -F ~/'my ssh/config' -o "), "{proxy}");
        assert!(proxy.ends_with(" gate -W '[%h]:%p'"), "{proxy}");
    }
}
