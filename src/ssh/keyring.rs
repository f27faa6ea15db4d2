//! What a person gave for this console's logins: passphrases as the keys that they open, and passwords. Asked once for all connections, kept in memory only.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use russh::keys::{PrivateKey, decode_secret_key};
use secrecy::{ExposeSecret, SecretString};

use super::keys::{KeyFile, KeyState};
use super::settings::{Asker, Reply};
use crate::domain::question::Ask;

/// How often a passphrase is asked for before the key is passed over.
const PASSPHRASE_TRIES: usize = 3;

/// How long a dismissed question stays dismissed, so that a connection that is tried again does not ask again at once.
const DISMISSED_FOR: Duration = Duration::from_secs(300);

/// Decrypted keys and passwords of this console, and its questions about them. Clones share them.
#[derive(Clone, Default)]
pub struct Keyring {
    slots: Slots<PathBuf, Slot>,
    accounts: Slots<String, Account>,
    /// Held while a person is asked about a host key: two connections to one host must not both ask.
    pub(super) host_question: Arc<tokio::sync::Mutex<()>>,
}

/// One lock an entry, so that two connections do not ask for the same.
type Slots<K, V> = Arc<Mutex<HashMap<K, Arc<tokio::sync::Mutex<V>>>>>;

#[derive(Default)]
struct Slot {
    key: Option<Arc<PrivateKey>>,
    dismissed: Dismissed,
}

/// What is known of one login at one host. Locked while a person is asked for it.
#[derive(Default)]
pub(super) struct Account {
    /// A password that was accepted before.
    pub(super) password: Option<SecretString>,
    /// Whether it was put back after a login in which it got no answer.
    pub(super) put_back: bool,
    pub(super) dismissed: Dismissed,
}

/// When a person last did not want to answer.
#[derive(Debug, Default)]
pub(super) struct Dismissed(Option<Instant>);

impl Dismissed {
    pub(super) fn now(&mut self) {
        self.0 = Some(Instant::now());
    }

    pub(super) fn still(&self) -> bool {
        self.0.is_some_and(|at| at.elapsed() < DISMISSED_FOR)
    }
}

impl fmt::Debug for Keyring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Keyring")
    }
}

impl Keyring {
    /// Forgets which questions were dismissed: somebody wants another try.
    pub fn ask_again(&self) {
        let slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        for slot in slots.values() {
            // One that is locked is being asked about now.
            if let Ok(mut slot) = slot.try_lock() {
                slot.dismissed = Dismissed::default();
            }
        }
        let accounts = self.accounts.lock().unwrap_or_else(PoisonError::into_inner);
        for account in accounts.values() {
            if let Ok(mut account) = account.try_lock() {
                account.dismissed = Dismissed::default();
            }
        }
    }

    /// What is known of the login that goes by this name.
    pub(super) fn account(&self, name: &str) -> Arc<tokio::sync::Mutex<Account>> {
        entry(&self.accounts, name.to_owned())
    }

    /// The key itself, if it can be had without asking.
    pub(super) async fn open(&self, file: &KeyFile) -> Option<Arc<PrivateKey>> {
        match &file.state {
            KeyState::Open(key) => Some(Arc::clone(key)),
            // Somebody else's question about it is not waited for.
            KeyState::Encrypted(_) => self.slot(&file.path).try_lock().ok()?.key.clone(),
            KeyState::AgentOnly(_) => None,
        }
    }

    /// The key itself, after asking for its passphrase if need be. The error is a fragment.
    pub(super) async fn unlock(&self, file: &KeyFile, asker: &Asker) -> Result<Arc<PrivateKey>, String> {
        let text = match &file.state {
            KeyState::Open(key) => return Ok(Arc::clone(key)),
            KeyState::Encrypted(text) => text,
            KeyState::AgentOnly(why) => return Err((*why).to_owned()),
        };
        // Whoever waits here waits for a person.
        let _pause = asker.pause();
        let slot = self.slot(&file.path);
        let ended = || "the connection ended before its passphrase was given".to_owned();
        let mut slot = asker.while_up(slot.lock()).await.ok_or_else(ended)?;
        if let Some(key) = &slot.key {
            return Ok(Arc::clone(key));
        }
        if !asker.interactive() {
            return Err(
                "it is encrypted, and nobody can be asked for its passphrase; add it to an ssh-agent".to_owned(),
            );
        }
        if slot.dismissed.still() {
            return Err("its passphrase was not given".to_owned());
        }
        for attempt in 0..PASSPHRASE_TRIES {
            let ask = Ask::Passphrase {
                key: file.path.display().to_string(),
                again: attempt > 0,
            };
            // A question that was withdrawn is none that a person has dismissed.
            let Reply::Secret(passphrase) = asker.ask(ask).await.ok_or_else(ended)? else {
                slot.dismissed.now();
                return Err("its passphrase was not given".to_owned());
            };
            if let Some(key) = decrypt(text.clone(), passphrase).await {
                let key = Arc::new(key);
                slot.key = Some(Arc::clone(&key));
                return Ok(key);
            }
        }
        slot.dismissed.now();
        Err(format!("its passphrase was wrong {PASSPHRASE_TRIES} times"))
    }

    fn slot(&self, path: &Path) -> Arc<tokio::sync::Mutex<Slot>> {
        entry(&self.slots, path.to_owned())
    }
}

fn entry<K: Eq + std::hash::Hash, V: Default>(slots: &Slots<K, V>, key: K) -> Arc<tokio::sync::Mutex<V>> {
    let mut slots = slots.lock().unwrap_or_else(PoisonError::into_inner);
    Arc::clone(slots.entry(key).or_default())
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
    fn a_keyring_shows_nothing() {
        assert_eq!(format!("{:?}", Keyring::default()), "Keyring");
    }
}
