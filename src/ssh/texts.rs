//! The texts from outside that this room reads, by themselves: `tests/fuzz` gives each any bytes. The console reads them in its own way, with the same
//! readers.

use std::path::Path;

use russh::keys::PublicKey;

use super::known_hosts::{Known, Verdict};
use super::ssh_config::{self, Said};
use super::tokens::{Tokens, UNQUOTED};
use super::{jumps, ssh_file};

/// What a key is for a host by the text of a known_hosts file: `known`, `unknown`, `changed` or `revoked`; `None` where the key itself is none.
#[must_use]
pub fn known_hosts(text: &str, host: &str, port: u16, key: &str) -> Option<&'static str> {
    let key: PublicKey = key.parse().ok()?;
    let mut known = Known::default();
    known.take(Path::new("known_hosts"), text, host, port);
    let _asked_first = known.algorithms();
    let _certified = known.authority(key.key_data());
    Some(match known.judge(&key) {
        Verdict::Known => "known",
        Verdict::Unknown => "unknown",
        Verdict::Changed(_) => "changed",
        Verdict::Revoked(_) => "revoked",
    })
}

/// Whether a file of revoked keys with this text takes a key back.
///
/// # Errors
/// Why the text can't be read; no key is good then.
pub fn revoked(text: &str, key: &str) -> Result<bool, String> {
    let key: PublicKey = key.parse().map_err(|_| "no key".to_owned())?;
    let mut known = Known::default();
    known.deny_text(Path::new("revoked"), text)?;
    Ok(known.revoked(key.key_data()).is_some())
}

/// What comes of what `ssh -G` prints.
#[must_use]
pub fn printed(text: &str, alias: &str) -> Came {
    came(&ssh_config::parse(text), alias)
}

/// What comes of the text of an ssh_config file, read without `ssh`.
///
/// # Errors
/// What is wrong with it.
pub fn file(text: &[u8], alias: &str) -> Result<Came, String> {
    let settings = ssh_file::query(alias, Path::new("config"), &mut &*text)?;
    Ok(came(&ssh_file::said_of(alias, settings), alias))
}

/// What comes of one alias.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Came {
    /// The host that is dialled.
    pub host: String,
    /// The hosts before it, or why there are none.
    pub jumps: Result<Vec<String>, String>,
    /// The ProxyCommand for a shell, or why there is none.
    pub command: Option<Result<String, String>>,
}

/// Whether a word means nothing but itself to a shell.
#[must_use]
pub fn plain(word: &str) -> bool {
    !word.starts_with('-') && !word.contains(|c: char| UNQUOTED.contains(c) || c.is_control())
}

fn came(said: &Said, alias: &str) -> Came {
    let host = said.host.clone().unwrap_or_else(|| alias.to_owned());
    let tokens = Tokens {
        name: alias,
        host: &host,
        port: said.port.unwrap_or(22),
        user: said.user.as_deref().unwrap_or("aurora"),
        known_as: said.known_as.as_deref().unwrap_or(alias),
        home: Some(Path::new("/home/aurora")),
    };
    for text in said.keys.iter().chain(&said.certificates).chain(&said.agent) {
        let _path = tokens.path(text);
    }
    let jumps = said.jump.as_ref().map_or(Ok(Vec::new()), |list| {
        let hosts = jumps::hosts(list, &tokens)?;
        Ok(hosts.into_iter().map(|target| target.host).collect())
    });
    let command = said.command.as_ref().map(|command| tokens.command(command));
    Came { host, jumps, command }
}
