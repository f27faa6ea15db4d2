//! known_hosts files: what they say of a host, and how an accepted key gets into one.
//!
//! Read as OpenSSH reads them: several files, hashed names, `[host]:port`, wildcards and negation, `@revoked`, `@cert-authority`. A host with any other
//! key on file is changed, not new; one whose name an authority may certify is not changed by that.

#[cfg(test)]
mod tests;

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use hmac::{Hmac, KeyInit, Mac};
use russh::keys::ssh_key::known_hosts::{Entry, HostPatterns, Marker};
use russh::keys::ssh_key::public::KeyData;
use russh::keys::{Algorithm, HashAlg, PublicKey};
use sha1::Sha1;

use super::alias::PORT;
use super::files;

/// Longest known_hosts file that is read.
const MAX_FILE: u64 = 16 << 20;

/// Longest wait for another writer's lock on a known_hosts file.
const LOCK_LIMIT: Duration = Duration::from_secs(2);

/// How often the lock is tried meanwhile.
const LOCK_PAUSE: Duration = Duration::from_millis(20);

/// How a binary list of revoked keys begins (OpenSSH's PROTOCOL.krl).
const KRL: &str = "SSHKRL\n";

/// A key that a file holds for a host.
#[derive(Debug, Clone)]
pub(super) struct OnFile {
    pub(super) file: PathBuf,
    /// From 1.
    pub(super) line: usize,
    pub(super) key: PublicKey,
    revoked: bool,
}

impl OnFile {
    /// `ssh-ed25519 SHA256:… (FILE, line N)`.
    pub(super) fn describe(&self) -> String {
        format!("{} ({}, line {})", describe(&self.key), self.file.display(), self.line)
    }
}

/// `ssh-ed25519 SHA256:…`.
pub(super) fn describe(key: &PublicKey) -> String {
    format!("{} {}", key.algorithm(), fingerprint(key))
}

/// `SHA256:…`.
pub(super) fn fingerprint(key: &PublicKey) -> String {
    key.fingerprint(HashAlg::Sha256).to_string()
}

/// What the files say of a host's key.
#[derive(Debug)]
pub(super) enum Verdict {
    /// It is on file.
    Known,
    /// Nothing is on file.
    Unknown,
    /// Other keys are on file.
    Changed(Vec<OnFile>),
    /// It is marked as revoked.
    Revoked(OnFile),
}

/// The keys on file for one host.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// Under the name as dialled, `[host]:port` when the port is not 22.
    keys: Vec<OnFile>,
    /// Under the bare name although the port is not 22: good for a match, no proof of a change.
    bare: Vec<OnFile>,
    /// Keys that may sign the host's certificates.
    authorities: Vec<OnFile>,
    /// Keys of no host at all.
    denied: Vec<OnFile>,
}

impl Known {
    /// Reads the files. One that is missing or can't be read holds nothing.
    pub(super) fn read(files: &[PathBuf], host: &str, port: u16) -> Self {
        let mut known = Self::default();
        for file in files {
            if let Ok(text) = read_bounded(file) {
                known.take(file, &text, host, port);
            }
        }
        known
    }

    /// Takes what a file's text holds for a host.
    pub(super) fn take(&mut self, file: &Path, text: &str, host: &str, port: u16) {
        let name = host_name(host, port);
        let bare = host.to_lowercase();
        for (index, line) in text.lines().enumerate() {
            let Some(entry) = parse(line) else { continue };
            let on_file = |revoked| OnFile {
                file: file.to_owned(),
                line: index + 1,
                key: entry.public_key().clone(),
                revoked,
            };
            let revoked = match entry.marker() {
                None => false,
                Some(Marker::Revoked) => true,
                Some(Marker::CertAuthority) => {
                    let named = |n: &str| matches(entry.host_patterns(), n);
                    if named(&name) || named(&bare) {
                        self.authorities.push(on_file(false));
                    }
                    continue;
                }
            };
            if matches(entry.host_patterns(), &name) {
                self.keys.push(on_file(revoked));
            } else if port != PORT && matches(entry.host_patterns(), &bare) {
                self.bare.push(on_file(revoked));
            }
        }
    }

    /// Adds a file of keys that must not be accepted (`RevokedHostKeys`), one a line.
    ///
    /// # Errors
    /// A fragment: what can't be read can't be checked, and no key is good then.
    pub(super) fn deny(&mut self, file: &Path) -> Result<(), String> {
        let text =
            read_bounded(file).map_err(|e| format!("the revoked keys in {} can't be read: {e}", file.display()))?;
        if text.len() as u64 >= MAX_FILE {
            return Err(format!(
                "the revoked keys in {} can't be read: the file is larger than {} MiB",
                file.display(),
                MAX_FILE >> 20
            ));
        }
        self.deny_text(file, &text)
    }

    /// Adds the keys of such a file's text.
    ///
    /// # Errors
    /// See [`Known::deny`].
    pub(super) fn deny_text(&mut self, file: &Path, text: &str) -> Result<(), String> {
        if text.starts_with(KRL) {
            return Err(format!(
                "{} is a binary list of revoked keys, and bringup reads only one with a public key a line",
                file.display()
            ));
        }
        for (index, line) in text.lines().enumerate() {
            let words: Vec<&str> = line.split_whitespace().collect();
            if words.first().is_none_or(|word| word.starts_with('#')) {
                continue;
            }
            // One space between the words is all that the library takes.
            let key = words.join(" ").parse().map_err(|_| {
                format!(
                    "line {} of {} is no public key, and it might be the one that is revoked",
                    index + 1,
                    file.display()
                )
            })?;
            self.denied.push(OnFile {
                file: file.to_owned(),
                line: index + 1,
                key,
                revoked: true,
            });
        }
        Ok(())
    }

    /// Whether a certificate of the host could be checked.
    pub(super) fn has_authority(&self) -> bool {
        !self.authorities.is_empty()
    }

    /// The line that lets this key sign certificates of the host.
    pub(super) fn authority(&self, key: &KeyData) -> Option<&OnFile> {
        self.authorities.iter().find(|k| k.key.key_data() == key)
    }

    /// The line that takes this key back, be it the host's or the one that signed its certificate.
    pub(super) fn revoked(&self, key: &KeyData) -> Option<&OnFile> {
        let all = self.keys.iter().chain(&self.bare).filter(|k| k.revoked);
        all.chain(&self.denied).find(|k| k.key.key_data() == key)
    }

    /// Judges a key that the host has shown.
    pub(super) fn judge(&self, key: &PublicKey) -> Verdict {
        let same = |k: &&OnFile| k.key.key_data() == key.key_data();
        let all = || self.keys.iter().chain(&self.bare);
        if let Some(revoked) = self.revoked(key.key_data()) {
            return Verdict::Revoked(revoked.clone());
        }
        if all().filter(|k| !k.revoked).any(|k| same(&k)) {
            return Verdict::Known;
        }
        let others: Vec<OnFile> = self.keys.iter().filter(|k| !k.revoked).cloned().collect();
        if others.is_empty() {
            Verdict::Unknown
        } else {
            Verdict::Changed(others)
        }
    }

    /// The algorithms on file, which must be asked for first: a host has one key for each, and only these can be checked.
    pub(super) fn algorithms(&self) -> Vec<Algorithm> {
        let all = self.keys.iter().chain(&self.bare).filter(|k| !k.revoked);
        all.map(|k| k.key.algorithm()).collect()
    }
}

/// Adds a key to a file: made with mode 0600 where it is missing, under a lock, in one write, so that no other writer's line is torn.
///
/// # Errors
/// When the file can't be made or written.
pub(super) fn append(file: &Path, host: &str, port: u16, key: &PublicKey) -> io::Result<()> {
    if let Some(folder) = file.parent().filter(|p| !p.as_os_str().is_empty() && !p.exists()) {
        let mut builder = DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(folder)?;
    }
    let mut options = OpenOptions::new();
    options.read(true).append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut open = options.open(file)?;
    // Neither a file system without locks nor somebody who keeps one must hold the operator up; a single write is the second guard.
    let locked = lock(&open);
    let newline = if ends_in_newline(&mut open)? { "" } else { "\n" };
    let key = PublicKey::from(key.key_data().clone())
        .to_openssh()
        .map_err(io::Error::other)?;
    let line = format!("{newline}{} {}\n", host_name(host, port), key.trim_end());
    let written = open
        .write_all(line.as_bytes())
        .and_then(|()| match open.metadata()?.is_file() {
            true => open.sync_data(),
            // A device, such as /dev/null, has nothing to keep.
            false => Ok(()),
        });
    if locked {
        let _ = open.unlock();
    }
    written
}

/// Locks a file; false where that can't be had in time.
fn lock(file: &File) -> bool {
    let start = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return true,
            Err(TryLockError::WouldBlock) if start.elapsed() < LOCK_LIMIT => std::thread::sleep(LOCK_PAUSE),
            Err(TryLockError::WouldBlock | TryLockError::Error(_)) => return false,
        }
    }
}

fn ends_in_newline(file: &mut File) -> io::Result<bool> {
    if file.metadata()?.len() == 0 {
        return Ok(true);
    }
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}

fn read_bounded(file: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    files::open(file)?.take(MAX_FILE).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The name under which a host stands in a file.
pub(super) fn host_name(host: &str, port: u16) -> String {
    let host = host.to_lowercase();
    if port == PORT { host } else { format!("[{host}]:{port}") }
}

/// One line; `None` for a comment, a blank line and one that does not parse.
fn parse(line: &str) -> Option<Entry> {
    let words: Vec<&str> = line.split_whitespace().collect();
    if words.first()?.starts_with('#') {
        return None;
    }
    words.join(" ").parse().ok()
}

fn matches(patterns: &HostPatterns, name: &str) -> bool {
    match patterns {
        HostPatterns::HashedName { salt, hash } => Hmac::<Sha1>::new_from_slice(salt)
            .is_ok_and(|mac| mac.chain_update(name.as_bytes()).verify_slice(hash).is_ok()),
        HostPatterns::Patterns(patterns) => {
            let mut any = false;
            for pattern in patterns {
                let pattern = pattern.to_lowercase();
                match pattern.strip_prefix('!') {
                    Some(negated) if glob(negated.as_bytes(), name.as_bytes()) => return false,
                    Some(_) => {}
                    None => any |= glob(pattern.as_bytes(), name.as_bytes()),
                }
            }
            any
        }
    }
}

/// `*` and `?` as in OpenSSH's patterns; in time proportional to pattern times text.
fn glob(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (pattern, text);
    // Where to go on after the last star, if what follows it does not fit here.
    let mut retry: Option<(&[u8], &[u8])> = None;
    loop {
        match (p, t) {
            ([b'*', rest @ ..], _) => {
                retry = Some((rest, t));
                p = rest;
            }
            ([], []) => return true,
            ([b'?', pr @ ..], [_, tr @ ..]) => (p, t) = (pr, tr),
            ([pc, pr @ ..], [tc, tr @ ..]) if pc == tc => (p, t) = (pr, tr),
            _ => match retry {
                Some((rest, [_, later @ ..])) => {
                    retry = Some((rest, later));
                    (p, t) = (rest, later);
                }
                _ => return false,
            },
        }
    }
}
