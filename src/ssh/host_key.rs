//! What a connection answers its server: whether its key is trusted, and what becomes of it when it ends.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use russh::client::{DisconnectReason, Handler, Session};
use russh::keys::{Certificate, PublicKey, PublicKeyOrCertificate};
use russh::{ChannelId, ChannelOpenFailure};
use tokio::sync::oneshot;

use super::alias::Host;
use super::authority;
use super::errors::{fragment, link_error, printable};
use super::fix;
use super::keyring::Keyring;
use super::known_hosts::{Known, OnFile, Verdict, append, describe, fingerprint};
use super::settings::{Asker, Reply};
use crate::domain::link::{HostKeys, LinkError, LinkErrorKind};
use crate::domain::question::Ask;

/// Judges the key of one host.
pub(super) struct Judge {
    pub(super) host: Host,
    /// The hops before it, the first first.
    pub(super) jumps: Vec<Host>,
    /// `NAME (user@host:port via …)`.
    pub(super) label: String,
    pub(super) keyring: Keyring,
    pub(super) asker: Asker,
}

impl Judge {
    /// What the files hold now.
    async fn known(&self) -> Result<Known, LinkError> {
        let host = self.host.clone();
        let work = move || {
            let mut known = Known::read(&host.known_hosts, &host.known_as.0, host.known_as.1);
            if let Some(file) = &host.revoked {
                known.deny(file)?;
            }
            Ok::<_, String>(known)
        };
        let read = tokio::task::spawn_blocking(work).await;
        let why = match read {
            Ok(Ok(known)) => return Ok(known),
            Ok(Err(why)) => why,
            Err(e) => e.to_string(),
        };
        Err(link_error(LinkErrorKind::Local, format!("{}: {why}", self.label)))
    }

    /// Whether what the host has shown is trusted; asks when nothing is on file.
    async fn check(&self, shown: &PublicKeyOrCertificate) -> Result<(), LinkError> {
        let known = self.known().await?;
        let key = shown.public_key();
        let bad = match shown.certificate() {
            None => None,
            Some(certificate) => match self.certified(&known, certificate) {
                Ok(true) => return Ok(()),
                // Signed by somebody whom no file names: the key counts as if it had come alone.
                Ok(false) => None,
                Err(refused) => Some(refused),
            },
        };
        let refused = match (known.judge(&key), bad) {
            (Verdict::Known, _) => return Ok(()),
            (Verdict::Unknown, None) => return self.unknown(&key).await,
            (Verdict::Unknown, Some(refused)) => refused,
            (Verdict::Changed(others), _) => self.changed(&key, &others),
            (Verdict::Revoked(entry), _) => self.revoked("the host key", &entry),
        };
        Err(refused)
    }

    /// Whether an authority on file vouches for the host.
    fn certified(&self, known: &Known, certificate: &Certificate) -> Result<bool, LinkError> {
        if let Some(entry) = known.revoked(certificate.public_key()) {
            return Err(self.revoked("the host key", entry));
        }
        if let Some(entry) = known.revoked(certificate.signature_key()) {
            return Err(self.revoked("the key that signed the host's certificate", entry));
        }
        let Some(authority) = known.authority(certificate.signature_key()) else {
            return Ok(false);
        };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
        match authority::check(certificate, &self.host.known_as.0, now) {
            Ok(()) => Ok(true),
            Err(why) => Err(link_error(
                LinkErrorKind::HostKeyChanged,
                format!(
                    "{}: the host's certificate {} is not good: {why}; it is signed by {}",
                    self.label,
                    printable(certificate.key_id()),
                    authority.describe()
                ),
            )),
        }
    }

    fn changed(&self, key: &PublicKey, others: &[OnFile]) -> LinkError {
        let on_file: Vec<String> = others.iter().map(OnFile::describe).collect();
        let mut text = format!(
            "{}: the host key has changed: it shows {}, on file is {}; somebody may be in between",
            self.label,
            describe(key),
            on_file.join(", ")
        );
        if self.host.lax {
            text.push_str("; bringup takes StrictHostKeyChecking no of ssh_config for accept-new");
        }
        let forget = others.first().map(|k| {
            format!(
                "if the host was set up anew, forget its old key:\n{}",
                fix::forget(&k.file, &self.host)
            )
        });
        LinkError {
            kind: LinkErrorKind::HostKeyChanged,
            text,
            fix: forget,
        }
    }

    fn revoked(&self, what: &str, entry: &OnFile) -> LinkError {
        let text = format!("{}: {what} is marked as revoked: {}", self.label, entry.describe());
        link_error(LinkErrorKind::HostKeyChanged, text)
    }

    /// A key that is on file nowhere: asked about, written down or refused, as the policy has it.
    async fn unknown(&self, key: &PublicKey) -> Result<(), LinkError> {
        if self.host.host_keys == HostKeys::Strict {
            return Err(self.not_accepted(key, "no new one is accepted (host_keys or StrictHostKeyChecking)"));
        }
        let Some(file) = self.host.accepted.clone() else {
            let text = format!(
                "{}: the host key {} is not on file, and ssh_config names no known_hosts file to write it to; set known_hosts in [ssh]",
                self.label,
                describe(key)
            );
            return Err(link_error(LinkErrorKind::Local, text));
        };
        let ask = self.host.host_keys == HostKeys::Ask;
        if ask && !self.asker.interactive() {
            return Err(self.not_accepted(key, "nobody can be asked"));
        }
        let _pause = self.asker.pause();
        let _turn = self.keyring.host_question.lock().await;
        // Another connection may have learnt it while this one waited for its turn.
        match self.known().await?.judge(key) {
            Verdict::Known => return Ok(()),
            Verdict::Unknown => {}
            Verdict::Changed(others) => return Err(self.changed(key, &others)),
            Verdict::Revoked(entry) => return Err(self.revoked("the host key", &entry)),
        }
        if ask {
            let ask = Ask::HostKey {
                host: self.host.address(),
                algorithm: key.algorithm().to_string(),
                fingerprint: fingerprint(key),
                file: file.display().to_string(),
            };
            let Some(Reply::Yes) = self.asker.ask(ask).await else {
                return Err(self.not_accepted(key, "it was not accepted"));
            };
        } else {
            let (host, key) = (self.host.address(), describe(key));
            tracing::info!(host, key, file = %file.display(), "new host key written down");
        }
        let ((name, port), key, to) = (self.host.known_as.clone(), key.clone(), file.clone());
        let written = tokio::task::spawn_blocking(move || append(&to, &name, port, &key)).await;
        match written {
            Ok(Ok(())) => Ok(()),
            Ok(Err(e)) => Err(self.not_written(&file, &e.to_string())),
            Err(e) => Err(self.not_written(&file, &e.to_string())),
        }
    }

    fn not_accepted(&self, key: &PublicKey, why: &str) -> LinkError {
        let by_hand = match (self.host.host_keys, self.asker.interactive()) {
            (HostKeys::Ask, true) => "answer the question on the screen, or log in once by hand",
            (HostKeys::Ask, false) | (HostKeys::AcceptNew | HostKeys::Strict, _) => "log in once by hand",
        };
        LinkError {
            kind: LinkErrorKind::HostKeyUnknown,
            text: format!(
                "{}: the host key {} is not on file, and {why}",
                self.label,
                describe(key)
            ),
            fix: Some(format!("{by_hand}:\n{}", fix::learn(&self.jumps, &self.host))),
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

/// How a connection ended, as far as a login cares.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// Without a word.
    #[default]
    Lost,
    /// The server said goodbye.
    Goodbye,
    /// It said that too much was tried.
    TooMany,
    /// It left no method to go on with.
    NoMethod,
}

impl Ending {
    fn of(reason: &DisconnectReason<russh::Error>) -> Self {
        match reason {
            DisconnectReason::ReceivedDisconnect(info) if info.message.to_lowercase().contains(TOO_MANY) => {
                Self::TooMany
            }
            DisconnectReason::ReceivedDisconnect(_) => Self::Goodbye,
            DisconnectReason::Error(russh::Error::NoAuthMethod) => Self::NoMethod,
            DisconnectReason::Error(_) => Self::Lost,
        }
    }
}

/// What the connection's owner shares with the handler that russh owns.
#[derive(Debug, Default, Clone)]
pub(super) struct Shared {
    /// Why the host key was refused.
    pub(super) refused: Arc<Mutex<Option<LinkError>>>,
    /// What the server said to the last channel that it refused.
    pub(super) channel_refusal: Arc<Mutex<Option<String>>>,
    pub(super) ending: Arc<Mutex<Ending>>,
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
        match self.judge.check(shown).await {
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
        // A question of this connection has nobody to answer to any more.
        self.judge.asker.end();
        let why = match &reason {
            DisconnectReason::ReceivedDisconnect(info) => {
                format!("the server said goodbye: {}", printable(&info.message))
            }
            DisconnectReason::Error(russh::Error::HUP | russh::Error::Disconnect) => {
                "the server closed the connection".to_owned()
            }
            DisconnectReason::Error(error) => fragment(error),
        };
        *self.shared.ending.lock().unwrap_or_else(PoisonError::into_inner) = Ending::of(&reason);
        if let Some(gone) = self.gone.take() {
            let _ = gone.send(why);
        }
        match reason {
            DisconnectReason::ReceivedDisconnect(_) => Ok(()),
            DisconnectReason::Error(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::domain::link::LinkState;
    use crate::domain::{Source, Stamp};
    use crate::ssh::settings::Reporter;

    const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJdD7y3aLq454yWBdwLWbieU1ebz9/cu7/QEXn9OIeZJ";
    const OTHER: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA6rWI3G1sz07DnfFlrouTcysQlj2P+jpNSOEWD9OJ3X";

    /// Says yes to everything.
    struct Yes;

    impl Reporter for Yes {
        fn link(&self, _: Source, _: LinkState) {}
        fn ask(&self, _: Source, _: Ask) -> oneshot::Receiver<Reply> {
            let (sender, receiver) = oneshot::channel();
            let _ = sender.send(Reply::Yes);
            receiver
        }
        fn now(&self) -> Stamp {
            Stamp(0)
        }
    }

    fn judge(file: &Path, policy: HostKeys) -> Judge {
        let mut host = Host::plain("aurora", "a", 22);
        host.known_hosts = vec![file.to_owned()];
        host.accepted = Some(file.to_owned());
        host.host_keys = policy;
        Judge {
            host,
            jumps: Vec::new(),
            label: "node".into(),
            keyring: Keyring::default(),
            asker: Asker::new(
                Arc::new(Yes),
                Source::Operator,
                true,
                CancellationToken::new(),
                &Arc::default(),
            ),
        }
    }

    #[tokio::test]
    async fn what_was_written_while_it_waited_for_its_turn_counts() {
        // Each case: what another one wrote meanwhile with <K> and <O> for the keys, and the outcome for K.
        let cases = [
            ("", Ok(())),
            ("a <K>\n", Ok(())),
            ("b <O>\n", Ok(())),
            ("a <O>\n", Err(LinkErrorKind::HostKeyChanged)),
            ("@revoked * <K>\n", Err(LinkErrorKind::HostKeyChanged)),
            ("a <K>\n@revoked a <K>\n", Err(LinkErrorKind::HostKeyChanged)),
        ];
        for policy in [HostKeys::Ask, HostKeys::AcceptNew] {
            for (text, expected) in &cases {
                let folder = tempfile::tempdir().unwrap();
                let file = folder.path().join("known_hosts");
                let text = text.replace("<K>", KEY).replace("<O>", OTHER);
                std::fs::write(&file, &text).unwrap();
                let told = judge(&file, policy).unknown(&KEY.parse().unwrap()).await;
                assert_eq!(told.map_err(|e| e.kind), *expected, "{policy:?} {text}");
                let after = std::fs::read_to_string(&file).unwrap();
                let wanted = match expected {
                    Ok(()) if !text.contains(KEY) => format!("{text}a {KEY}\n"),
                    Ok(()) | Err(_) => text,
                };
                assert_eq!(after, wanted, "{policy:?}");
            }
        }
    }
}
