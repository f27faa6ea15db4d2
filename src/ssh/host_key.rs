//! What a connection answers its server: whether its key is trusted, and what becomes of it when it ends.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use russh::client::{DisconnectReason, Handler, Session};
use russh::keys::{PublicKey, PublicKeyOrCertificate};
use russh::{ChannelId, ChannelOpenFailure};
use tokio::sync::oneshot;

use super::alias::Host;
use super::errors::{fragment, link_error, printable};
use super::fix;
use super::keyring::Keyring;
use super::known_hosts::{Known, Verdict, append, describe, fingerprint};
use super::settings::{Asker, Reply};
use crate::domain::link::{LinkError, LinkErrorKind};
use crate::domain::question::Ask;

/// Judges the key of one host.
pub(super) struct Judge {
    pub(super) host: Host,
    /// The hops before it, the first first.
    pub(super) jumps: Vec<Host>,
    /// `NAME (user@host:port via …)`.
    pub(super) label: String,
    pub(super) files: Vec<PathBuf>,
    pub(super) keyring: Keyring,
    pub(super) asker: Asker,
}

impl Judge {
    async fn judge(&self, key: &PublicKey) -> Verdict {
        let (files, (name, port), key) = (self.files.clone(), self.host.known_as.clone(), key.clone());
        let work = move || Known::read(&files, &name, port).judge(&key);
        tokio::task::spawn_blocking(work).await.unwrap_or(Verdict::Unknown)
    }

    /// Whether the key is trusted; asks when nothing is on file.
    async fn check(&self, key: &PublicKey) -> Result<(), LinkError> {
        match self.judge(key).await {
            Verdict::Known => Ok(()),
            Verdict::Changed(others) => {
                let on_file: Vec<String> = others.iter().map(|k| k.describe()).collect();
                let text = format!(
                    "{}: the host key has changed: it shows {}, on file is {}; somebody may be in between",
                    self.label,
                    describe(key),
                    on_file.join(", ")
                );
                let forget = others.first().map(|k| {
                    format!(
                        "if the host was set up anew, forget its old key:\n{}",
                        fix::forget(&k.file, &self.host)
                    )
                });
                Err(LinkError {
                    kind: LinkErrorKind::HostKeyChanged,
                    text,
                    fix: forget,
                })
            }
            Verdict::Revoked(entry) => {
                let text = format!(
                    "{}: the host key is marked as revoked: {}",
                    self.label,
                    entry.describe()
                );
                Err(link_error(LinkErrorKind::HostKeyChanged, text))
            }
            Verdict::Unknown => self.ask(key).await,
        }
    }

    async fn ask(&self, key: &PublicKey) -> Result<(), LinkError> {
        let unknown = |what: &str| LinkError {
            kind: LinkErrorKind::HostKeyUnknown,
            text: format!(
                "{}: the host key {} is not on file, and {what}",
                self.label,
                describe(key)
            ),
            fix: Some(format!(
                "answer the question on the screen, or log in once by hand:\n{}",
                fix::learn(&self.jumps, &self.host)
            )),
        };
        let Some(file) = self.files.first().cloned() else {
            return Err(link_error(
                LinkErrorKind::Local,
                format!("{}: no known_hosts file is named", self.label),
            ));
        };
        if !self.asker.interactive() {
            return Err(unknown("nobody can be asked"));
        }
        let _pause = self.asker.pause();
        let _turn = self.keyring.host_question.lock().await;
        // Another connection may have learnt it while this one waited for its turn.
        if matches!(self.judge(key).await, Verdict::Known) {
            return Ok(());
        }
        let ask = Ask::HostKey {
            host: self.host.address(),
            algorithm: key.algorithm().to_string(),
            fingerprint: fingerprint(key),
            file: file.display().to_string(),
        };
        let Reply::Yes = self.asker.ask(ask).await else {
            return Err(unknown("it was not accepted"));
        };
        let ((name, port), key, to) = (self.host.known_as.clone(), key.clone(), file.clone());
        let written = tokio::task::spawn_blocking(move || append(&to, &name, port, &key)).await;
        match written {
            Ok(Ok(())) => Ok(()),
            Ok(Err(e)) => Err(self.not_written(&file, &e.to_string())),
            Err(e) => Err(self.not_written(&file, &e.to_string())),
        }
    }

    fn not_written(&self, file: &std::path::Path, why: &str) -> LinkError {
        let text = format!(
            "{}: the accepted host key could not be written to {}: {why}",
            self.label,
            file.display()
        );
        link_error(LinkErrorKind::Local, text)
    }
}

/// How sshd's goodbye begins when it ends a login after too many refused keys; others say attempts instead of failures.
const TOO_MANY: &str = "too many authentication";

/// What the connection's owner shares with the handler that russh owns.
#[derive(Debug, Default, Clone)]
pub(super) struct Shared {
    /// Why the host key was refused.
    pub(super) refused: Arc<Mutex<Option<LinkError>>>,
    /// What the server said to the last channel that it refused.
    pub(super) channel_refusal: Arc<Mutex<Option<String>>>,
    /// Whether the server ended the connection because it took none of the keys.
    pub(super) keys_refused: Arc<AtomicBool>,
}

/// russh's handler of one connection.
pub(super) struct Client {
    pub(super) judge: Judge,
    pub(super) shared: Shared,
    /// Told why the connection ended; dropped when the connection is.
    pub(super) gone: Option<oneshot::Sender<String>>,
}

impl Handler for Client {
    type Error = russh::Error;

    async fn check_server_key(&mut self, shown: &PublicKeyOrCertificate) -> Result<bool, Self::Error> {
        match self.judge.check(&shown.public_key()).await {
            Ok(()) => Ok(true),
            Err(refused) => {
                *self.shared.refused.lock().unwrap_or_else(PoisonError::into_inner) = Some(refused);
                Ok(false)
            }
        }
    }

    async fn channel_open_failure(
        &mut self,
        _channel: ChannelId,
        _reason: ChannelOpenFailure,
        description: &str,
        _language: &str,
        _session: &mut Session,
    ) -> Result<(), Self::Error> {
        *self
            .shared
            .channel_refusal
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some(printable(description));
        Ok(())
    }

    async fn disconnected(&mut self, reason: DisconnectReason<Self::Error>) -> Result<(), Self::Error> {
        let why = match &reason {
            DisconnectReason::ReceivedDisconnect(info) => {
                format!("the server said goodbye: {}", printable(&info.message))
            }
            DisconnectReason::Error(russh::Error::HUP | russh::Error::Disconnect) => {
                "the server closed the connection".to_owned()
            }
            DisconnectReason::Error(error) => fragment(error),
        };
        let keys_refused = match &reason {
            DisconnectReason::ReceivedDisconnect(info) => info.message.to_lowercase().contains(TOO_MANY),
            DisconnectReason::Error(error) => matches!(error, russh::Error::NoAuthMethod),
        };
        self.shared.keys_refused.store(keys_refused, Ordering::Relaxed);
        if let Some(gone) = self.gone.take() {
            let _ = gone.send(why);
        }
        match reason {
            DisconnectReason::ReceivedDisconnect(_) => Ok(()),
            DisconnectReason::Error(error) => Err(error),
        }
    }
}
