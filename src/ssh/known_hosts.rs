//! known_hosts files: what they say of a host, and how an accepted key gets into one.
//!
//! Read as OpenSSH reads them: several files, hashed names, `[host]:port`, wildcards and negation, `@revoked`, `@cert-authority`. A host with any other
//! key on file is changed, not new; one whose name an authority may certify is not changed by that.

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

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJdD7y3aLq454yWBdwLWbieU1ebz9/cu7/QEXn9OIeZJ";
    const OTHER: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA6rWI3G1sz07DnfFlrouTcysQlj2P+jpNSOEWD9OJ3X";
    /// `example.com`, hashed by ssh-keygen, with the key below.
    const HASHED: &str = "|1|O33ESRMWPVkMYIwJ1Uw+n877jTo=|nuuC5vEqXlEZ/8BXQR7m619W6Ak=";
    const ECDSA: &str = "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBEmKSENjQEezOmxkZMy7opKgwFB9nkt5YRrYMjNuG5N87uRgg6CLrbo5wAdT/y6v0mKV0U2w0WZ2YB/++Tpockg=";

    fn word(verdict: &Verdict) -> &'static str {
        match verdict {
            Verdict::Known => "known",
            Verdict::Unknown => "unknown",
            Verdict::Changed(_) => "changed",
            Verdict::Revoked(_) => "revoked",
        }
    }

    #[test]
    fn lines_are_read_as_openssh_reads_them() {
        let key: PublicKey = KEY.parse().unwrap();
        // Each case: the file with K and O for the keys, the host, the port, the verdict on K.
        let cases = [
            ("", "a", 22, "unknown"),
            ("a K", "a", 22, "known"),
            ("A K", "a", 22, "known"),
            ("a K", "A", 22, "known"),
            ("a\tK", "a", 22, "known"),
            ("  a   K comment", "a", 22, "known"),
            ("# a K", "a", 22, "unknown"),
            ("b,a K", "a", 22, "known"),
            ("b K", "a", 22, "unknown"),
            ("a O", "a", 22, "changed"),
            ("a O\na K", "a", 22, "known"),
            ("a E", "a", 22, "changed"),
            ("[a]:2222 K", "a", 2222, "known"),
            ("[a]:2222 O", "a", 2222, "changed"),
            ("[a]:2222 K", "a", 22, "unknown"),
            ("a K", "a", 2222, "known"),
            ("a O", "a", 2222, "unknown"),
            ("*.lab K", "n1.lab", 22, "known"),
            ("n?.lab O", "n1.lab", 22, "changed"),
            ("*.lab,!n1.lab O", "n1.lab", 22, "unknown"),
            ("[*.lab]:2222 K", "n1.lab", 2222, "known"),
            ("@revoked a K", "a", 22, "revoked"),
            ("a K\n@revoked * K", "a", 22, "revoked"),
            ("@revoked a O", "a", 22, "unknown"),
            ("@cert-authority * K", "a", 22, "unknown"),
            ("H K", "example.com", 22, "known"),
            ("H O", "example.com", 22, "changed"),
            ("H K", "example.org", 22, "unknown"),
            ("@revoked H K", "example.com", 22, "revoked"),
            ("nonsense\na K", "a", 22, "known"),
        ];
        for (text, host, port, expected) in cases {
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join("known_hosts");
            let text = text.replace('E', ECDSA).replace("H ", &format!("{HASHED} "));
            let text = text
                .replace(" K", &format!(" {KEY}"))
                .replace("\tK", &format!("\t{KEY}"))
                .replace(" O", &format!(" {OTHER}"));
            std::fs::write(&file, &text).unwrap();
            let verdict = Known::read(&[file], host, port).judge(&key);
            assert_eq!(word(&verdict), expected, "{text} for {host}:{port}");
        }
    }

    #[test]
    fn several_files_count_and_a_change_names_file_and_line() {
        let folder = tempfile::tempdir().unwrap();
        let (one, two) = (folder.path().join("one"), folder.path().join("two"));
        std::fs::write(&two, format!("# comment\n\na {OTHER}\n")).unwrap();
        let files = [one, two.clone()];
        let key: PublicKey = KEY.parse().unwrap();
        let Verdict::Changed(others) = Known::read(&files, "a", 22).judge(&key) else {
            panic!("not changed")
        };
        let described: Vec<String> = others.iter().map(OnFile::describe).collect();
        let other: PublicKey = OTHER.parse().unwrap();
        assert_eq!(
            described,
            [format!(
                "ssh-ed25519 {} ({}, line 3)",
                fingerprint(&other),
                two.display()
            )]
        );
        assert_eq!(Known::read(&files, "a", 22).algorithms(), [Algorithm::Ed25519]);
    }

    #[test]
    fn an_appended_key_is_known_afterwards_and_tears_no_line() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("new/known_hosts");
        let (key, other): (PublicKey, PublicKey) = (KEY.parse().unwrap(), OTHER.parse().unwrap());
        append(&file, "a", 22, &key).unwrap();
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::write(&file, text.trim_end()).unwrap();
        append(&file, "B", 2222, &other).unwrap();
        assert_eq!(
            std::fs::read_to_string(&file).unwrap(),
            format!("a {KEY}\n[b]:2222 {OTHER}\n")
        );
        assert_eq!(
            word(&Known::read(std::slice::from_ref(&file), "b", 2222).judge(&other)),
            "known"
        );
        #[cfg(unix)]
        {
            let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&file).unwrap().permissions());
            assert_eq!(mode & 0o777, 0o600);
        }
    }

    #[test]
    fn keys_of_a_list_of_revoked_ones_are_revoked_for_every_host() {
        let folder = tempfile::tempdir().unwrap();
        let (file, list) = (folder.path().join("known_hosts"), folder.path().join("revoked"));
        std::fs::write(&file, format!("a {KEY}\n")).unwrap();
        std::fs::write(&list, format!("# old\n{KEY}\n")).unwrap();
        let key: PublicKey = KEY.parse().unwrap();
        let mut known = Known::read(&[file], "a", 22);
        assert_eq!(word(&known.judge(&key)), "known");
        known.deny(&list).unwrap();
        assert_eq!(word(&known.judge(&key)), "revoked");
        std::fs::write(&list, "SSHKRL\n\0\0\0\0\x01").unwrap();
        assert!(known.deny(&list).unwrap_err().contains("binary list"));
        assert!(
            known
                .deny(&folder.path().join("none"))
                .unwrap_err()
                .contains("can't be read")
        );
    }

    #[test]
    fn an_authority_counts_for_the_hosts_of_its_line() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("known_hosts");
        std::fs::write(
            &file,
            format!("@cert-authority *.lab,!x.lab {KEY}\n@revoked * {OTHER}\n"),
        )
        .unwrap();
        let files = [file];
        let (key, other): (PublicKey, PublicKey) = (KEY.parse().unwrap(), OTHER.parse().unwrap());
        for (host, port, expected) in [
            ("n.lab", 22, true),
            ("N.lab", 2222, true),
            ("x.lab", 22, false),
            ("n", 22, false),
        ] {
            let known = Known::read(&files, host, port);
            assert_eq!(known.has_authority(), expected, "{host}");
            assert_eq!(known.authority(key.key_data()).is_some(), expected, "{host}");
            assert!(known.authority(other.key_data()).is_none() && known.revoked(other.key_data()).is_some());
        }
    }

    #[test]
    fn a_list_of_revoked_keys_is_read_whole_or_refuses() {
        let key: PublicKey = KEY.parse().unwrap();
        // Each case: the file with <K> and <O> for the keys, and whether K is revoked; `None` where nothing may be trusted.
        let cases = [
            ("", Some(false)),
            ("# <K>", Some(false)),
            ("<K>", Some(true)),
            ("<K> of somebody", Some(true)),
            ("\t <K>\r\n", Some(true)),
            ("<K with spaces>", Some(true)),
            ("<K with a tab>", Some(true)),
            ("<O>\n\n<K>", Some(true)),
            ("<O>", Some(false)),
            ("<O>\nnonsense\n<K>", None),
            ("restrict <K>", None),
            ("ssh-ed25519", None),
        ];
        for (text, expected) in cases {
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join("revoked");
            let text = text
                .replace("<K>", KEY)
                .replace("<O>", OTHER)
                .replace("<K with spaces>", &KEY.replace(' ', "   "))
                .replace("<K with a tab>", &KEY.replace(' ', "\t"));
            std::fs::write(&file, &text).unwrap();
            let mut known = Known::default();
            let revoked = known
                .deny(&file)
                .ok()
                .map(|()| matches!(known.judge(&key), Verdict::Revoked(_)));
            assert_eq!(revoked, expected, "{text}");
        }
    }

    #[test]
    fn a_list_of_revoked_keys_that_is_too_long_or_missing_refuses() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("revoked");
        let mut known = Known::default();
        assert!(known.deny(&file).unwrap_err().contains("can't be read"));
        File::create(&file).unwrap().set_len(MAX_FILE).unwrap();
        let why = known.deny(&file).unwrap_err();
        assert!(why.contains("larger than 16 MiB"), "{why}");
    }

    #[test]
    fn a_lock_that_somebody_keeps_holds_nobody_up() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("known_hosts");
        let keeper = File::create(&file).unwrap();
        keeper.lock().unwrap();
        append(&file, "a", 22, &KEY.parse().unwrap()).unwrap();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), format!("a {KEY}\n"));
    }

    #[test]
    fn many_writers_leave_whole_lines() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("known_hosts");
        let key: PublicKey = KEY.parse().unwrap();
        // Without a newline at its end.
        std::fs::write(&file, format!("a {KEY}")).unwrap();
        std::thread::scope(|scope| {
            for writer in 0..8 {
                let (file, key) = (&file, &key);
                scope.spawn(move || {
                    for n in 0..20 {
                        append(file, &format!("h{writer}-{n}"), 22, key).unwrap();
                    }
                });
            }
        });
        let text = std::fs::read_to_string(&file).unwrap();
        assert_eq!(text.lines().count(), 161);
        assert!(text.lines().all(|l| parse(l).is_some()));
    }
}
