//! Private keys in files, and the passphrases that open them: asked once for all connections, kept in memory only.

use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use russh::keys::{Algorithm, PrivateKey, PublicKey, decode_secret_key, load_public_key};
use secrecy::{ExposeSecret, SecretString};

use super::settings::{Asker, Reply};
use crate::domain::question::Ask;

/// How often a passphrase is asked for before the key is passed over.
const PASSPHRASE_TRIES: usize = 3;

/// How long a dismissed question stays dismissed, so that a connection that is tried again does not ask again at once.
const DISMISSED_FOR: Duration = Duration::from_secs(300);

/// Longest key file that is read.
const MAX_FILE: u64 = 64 * 1024;

/// Decrypted keys of this console and its questions about them. Clones share them.
#[derive(Clone, Default)]
pub struct Keyring {
    slots: Arc<Mutex<HashMap<PathBuf, Arc<tokio::sync::Mutex<Slot>>>>>,
    /// Held while a person is asked about a host key: two connections to one host must not both ask.
    pub(super) host_question: Arc<tokio::sync::Mutex<()>>,
}

#[derive(Default)]
struct Slot {
    key: Option<Arc<PrivateKey>>,
    dismissed: Option<Instant>,
}

impl fmt::Debug for Keyring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Keyring")
    }
}

/// A key file as it can be read without a passphrase.
pub(super) struct KeyFile {
    pub(super) path: PathBuf,
    /// Absent in an encrypted file of an old format that has no `.pub` beside it.
    pub(super) public: Option<PublicKey>,
    state: KeyState,
}

enum KeyState {
    Open(Arc<PrivateKey>),
    Encrypted(SecretString),
}

/// Why a key file can't be used.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum KeyProblem {
    Missing,
    /// A fragment.
    Unusable(String),
}

impl KeyFile {
    /// Reads a file of any format that OpenSSH or OpenSSL write.
    pub(super) fn load(path: &Path) -> Result<Self, KeyProblem> {
        let text = read(path).map_err(|e| match e.kind() {
            io::ErrorKind::NotFound => KeyProblem::Missing,
            _ => KeyProblem::Unusable(e.to_string()),
        })?;
        let unusable = |e: &dyn fmt::Display| KeyProblem::Unusable(e.to_string().to_lowercase());
        let (public, state) = if text.expose_secret().contains("BEGIN OPENSSH PRIVATE KEY") {
            let key = PrivateKey::from_openssh(text.expose_secret()).map_err(|e| unusable(&e))?;
            let public = key.public_key().clone();
            if matches!(
                public.algorithm(),
                Algorithm::SkEd25519 | Algorithm::SkEcdsaSha2NistP256
            ) {
                return Err(KeyProblem::Unusable(
                    "a hardware key works only through an ssh-agent".to_owned(),
                ));
            }
            let state = if key.is_encrypted() {
                KeyState::Encrypted(text)
            } else {
                KeyState::Open(Arc::new(key))
            };
            (Some(public), state)
        } else if is_encrypted_pem(text.expose_secret()) {
            let mut beside = path.as_os_str().to_owned();
            beside.push(".pub");
            (load_public_key(Path::new(&beside)).ok(), KeyState::Encrypted(text))
        } else {
            let key = decode_secret_key(text.expose_secret(), None).map_err(|e| unusable(&e))?;
            (Some(key.public_key().clone()), KeyState::Open(Arc::new(key)))
        };
        Ok(Self {
            path: path.to_owned(),
            public,
            state,
        })
    }
}

fn is_encrypted_pem(text: &str) -> bool {
    text.contains("ENCRYPTED")
}

fn read(path: &Path) -> io::Result<SecretString> {
    let mut text = String::new();
    File::open(path)?.take(MAX_FILE).read_to_string(&mut text)?;
    Ok(SecretString::from(text))
}

impl Keyring {
    /// Forgets which questions were dismissed: somebody wants another try.
    pub fn ask_again(&self) {
        let slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        for slot in slots.values() {
            // One that is locked is being asked about now.
            if let Ok(mut slot) = slot.try_lock() {
                slot.dismissed = None;
            }
        }
    }

    /// The key itself, if it can be had without asking.
    pub(super) async fn open(&self, file: &KeyFile) -> Option<Arc<PrivateKey>> {
        match &file.state {
            KeyState::Open(key) => Some(Arc::clone(key)),
            // Somebody else's question about it is not waited for.
            KeyState::Encrypted(_) => self.slot(&file.path).try_lock().ok()?.key.clone(),
        }
    }

    /// The key itself, after asking for its passphrase if need be. The error is a fragment.
    pub(super) async fn unlock(&self, file: &KeyFile, asker: &Asker) -> Result<Arc<PrivateKey>, String> {
        let text = match &file.state {
            KeyState::Open(key) => return Ok(Arc::clone(key)),
            KeyState::Encrypted(text) => text,
        };
        // Whoever waits here waits for a person.
        let _pause = asker.pause();
        let slot = self.slot(&file.path);
        let mut slot = slot.lock().await;
        if let Some(key) = &slot.key {
            return Ok(Arc::clone(key));
        }
        if !asker.interactive() {
            return Err(
                "it is encrypted, and nobody can be asked for its passphrase; add it to an ssh-agent".to_owned(),
            );
        }
        if slot.dismissed.is_some_and(|at| at.elapsed() < DISMISSED_FOR) {
            return Err("its passphrase was not given".to_owned());
        }
        for attempt in 0..PASSPHRASE_TRIES {
            let ask = Ask::Passphrase {
                key: file.path.display().to_string(),
                again: attempt > 0,
            };
            let Reply::Secret(passphrase) = asker.ask(ask).await else {
                slot.dismissed = Some(Instant::now());
                return Err("its passphrase was not given".to_owned());
            };
            if let Some(key) = decrypt(text.clone(), passphrase).await {
                let key = Arc::new(key);
                slot.key = Some(Arc::clone(&key));
                return Ok(key);
            }
        }
        slot.dismissed = Some(Instant::now());
        Err(format!("its passphrase was wrong {PASSPHRASE_TRIES} times"))
    }

    fn slot(&self, path: &Path) -> Arc<tokio::sync::Mutex<Slot>> {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(slots.entry(path.to_owned()).or_default())
    }
}

/// Off the async threads: the key derivation is slow on purpose.
async fn decrypt(text: SecretString, passphrase: SecretString) -> Option<PrivateKey> {
    let work = move || decode_secret_key(text.expose_secret(), Some(passphrase.expose_secret())).ok();
    tokio::task::spawn_blocking(work).await.ok().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_file_is_told_from_a_broken_one() {
        let folder = tempfile::tempdir().unwrap();
        assert!(matches!(
            KeyFile::load(&folder.path().join("none")),
            Err(KeyProblem::Missing)
        ));
        let broken = folder.path().join("broken");
        std::fs::write(
            &broken,
            "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----\n",
        )
        .unwrap();
        assert!(matches!(KeyFile::load(&broken), Err(KeyProblem::Unusable(_))));
    }

    #[test]
    fn a_keyring_shows_nothing() {
        assert_eq!(format!("{:?}", Keyring::default()), "Keyring");
    }
}
