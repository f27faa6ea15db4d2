//! ssh_config without the `ssh` program: a library reads the files. What it can't tell is refused, never guessed: a `Match`, above all.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, ErrorKind};
use std::path::{Path, PathBuf};

use ssh2_config::{HostParams, ParseRule, SshConfig};

use super::ssh_config::Said;

/// The files that ssh reads by itself, the first one first.
const FILES: [&str; 2] = ["~/.ssh/config", "/etc/ssh/ssh_config"];

/// Reads what the files say of an alias; `file` stands instead of all of them.
///
/// # Errors
/// A fragment that names the file.
pub(super) fn read(alias: &str, file: Option<&Path>) -> Result<Said, String> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let files: Vec<PathBuf> = match file {
        Some(file) => vec![file.to_owned()],
        None => FILES.iter().map(|f| super::tokens::tilde(f, home.as_deref())).collect(),
    };
    let mut settings: Vec<(String, String)> = Vec::new();
    for path in &files {
        let open = match std::fs::File::open(path) {
            Ok(open) => open,
            Err(e) if e.kind() == ErrorKind::NotFound && file.is_none() => continue,
            Err(e) => return Err(format!("{} can't be read: {e}", path.display())),
        };
        for (key, value) in query(alias, path, &mut BufReader::new(open))? {
            // What a file before this one says wins; keys add up.
            if key == "identityfile" || !settings.iter().any(|(k, _)| *k == key) {
                settings.push((key, value));
            }
        }
    }
    Ok(said_of(alias, settings))
}

/// What the text of one file says of an alias.
///
/// # Errors
/// See [`read`].
pub(super) fn query(alias: &str, path: &Path, text: &mut impl BufRead) -> Result<Vec<(String, String)>, String> {
    let rules = ParseRule::ALLOW_UNKNOWN_FIELDS | ParseRule::ALLOW_UNSUPPORTED_FIELDS;
    let config = SshConfig::default()
        .parse(text, rules)
        .map_err(|e| format!("{}: {e}", path.display()))?;
    // Its lines count as those of the block above it, be that for this alias or not.
    let is_match = |fields: &HashMap<String, Vec<String>>| fields.keys().any(|f| f.eq_ignore_ascii_case("match"));
    if config.get_hosts().iter().any(|h| is_match(&h.params.ignored_fields)) {
        return Err(format!(
            "{} has a Match, which only the ssh program can read, and it is not here; install OpenSSH's client",
            path.display()
        ));
    }
    Ok(settings_of(config.query(alias)))
}

/// The settings as a whole.
pub(super) fn said_of(alias: &str, settings: Vec<(String, String)>) -> Said {
    let mut said = Said::default();
    for (key, value) in settings {
        said.take(&key, &value);
    }
    // `ssh -G` fills it in; here it stands as it was written.
    said.host = said
        .host
        .map(|host| host.replace("%%", "\0").replace("%h", alias).replace('\0', "%"));
    said
}

/// The settings as `ssh -G` would name them.
fn settings_of(params: HostParams) -> Vec<(String, String)> {
    let seconds = |d: std::time::Duration| d.as_secs().to_string();
    let path = |p: &PathBuf| p.display().to_string();
    let given = [
        ("hostname", params.host_name),
        ("port", params.port.map(|p| p.to_string())),
        ("user", params.user),
        ("certificatefile", params.certificate_file.as_ref().map(path)),
        ("connecttimeout", params.connect_timeout.map(seconds)),
        ("serveraliveinterval", params.server_alive_interval.map(seconds)),
        ("proxyjump", params.proxy_jump.map(|hosts| hosts.join(","))),
    ];
    let keys = params.identity_file.unwrap_or_default();
    let mut settings: Vec<(String, String)> = Vec::new();
    settings.extend(keys.iter().map(|key| ("identityfile".to_owned(), path(key))));
    let given = given
        .into_iter()
        .filter_map(|(key, value)| Some((key.to_owned(), value?)));
    settings.extend(given);
    for (key, words) in params.unsupported_fields {
        let shell = key == "proxycommand";
        // A command keeps its quotes for the shell that runs it.
        let words: Vec<&str> = words
            .iter()
            .map(|w| if shell { w } else { w.trim_matches('"') })
            .collect();
        settings.push((key.to_lowercase(), words.join(" ")));
    }
    settings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::link::HostKeys;

    fn said(text: &str, alias: &str) -> Result<Said, String> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config");
        std::fs::write(folder.path().join("more"), "Host spark\n  Port 2222\n").unwrap();
        std::fs::write(&file, text.replace("HERE", &folder.path().display().to_string())).unwrap();
        read(alias, Some(&file))
    }

    #[test]
    fn a_file_is_read_without_ssh() {
        let text = "Include HERE/more\nHost spark !other\n  HostName %h.lab\n  User = aurora\n  IdentityFile /k/one\n  IdentityFile \"/k/t wo\"\n\
                    \x20 UserKnownHostsFile /a/b \"/c d\"\n  HostKeyAlias sparks\n  IdentityAgent none\n  IdentitiesOnly yes\n  ConnectTimeout 7\n\
                    \x20 ServerAliveInterval 5\n  ServerAliveCountMax 2\n  ProxyJump a,b\n  StrictHostKeyChecking yes\n\
                    Host *\n  User root\n  ProxyCommand nc %h \"a b\"\n  CertificateFile /c-cert.pub\n";
        let expected = Said {
            host: Some("spark.lab".into()),
            port: Some(2222),
            user: Some("aurora".into()),
            keys: vec!["/k/one".into(), "/k/t wo".into()],
            only_named: true,
            certificates: vec!["/c-cert.pub".into()],
            agent: Some("none".into()),
            known_as: Some("sparks".into()),
            user_files: Some(vec!["/a/b".into(), "/c d".into()]),
            host_keys: Some(HostKeys::Strict),
            connect_timeout: Some(std::time::Duration::from_secs(7)),
            alive_interval: Some(std::time::Duration::from_secs(5)),
            alive_count: Some(2),
            jump: Some("a,b".into()),
            command: Some("nc %h \"a b\"".into()),
            ..Said::default()
        };
        assert_eq!(said(text, "spark"), Ok(expected));
        let other = said(text, "other").unwrap();
        assert_eq!((other.host, other.user.as_deref()), (None, Some("root")));
    }

    #[test]
    fn a_match_is_refused_wherever_it_stands() {
        for text in [
            "Host a\n  Port 1\nMatch host spark\n  Port 3\n",
            "match all\n  User x\n",
        ] {
            let why = said(text, "spark").unwrap_err();
            assert!(
                why.contains("has a Match, which only the ssh program can read"),
                "{why}"
            );
        }
    }

    #[test]
    fn a_file_that_is_named_must_be_there() {
        let why = read("spark", Some(Path::new("/nowhere/config"))).unwrap_err();
        assert!(why.starts_with("/nowhere/config can't be read: "), "{why}");
        assert!(said("Host spark\n  Port many\n", "spark").is_err());
    }
}
