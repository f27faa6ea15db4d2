//! One key or certificate offered to a server. It is offered before it is decrypted, so that a passphrase is asked for only when the server would take it.

use std::sync::Arc;

use russh::client::{AuthResult, Handle};
use russh::keys::agent::AgentIdentity;
use russh::keys::signature::Signer as _;
use russh::keys::ssh_encoding::Encode;
use russh::keys::ssh_key::Signature;
use russh::keys::ssh_key::private::KeypairData;
use russh::keys::{Certificate, HashAlg, PrivateKey, PrivateKeyWithHashAlg, PublicKey};

use super::agent::{Agent, AgentSigner};
use super::candidates::{Candidate, Holder, Shown};
use super::host_key::Client;
use super::keyring::Keyring;
use super::keys::KeyFile;
use super::settings::Asker;

pub(super) const LOST: &str = "the connection was lost";

/// What offering takes.
pub(super) struct Offering<'a> {
    pub(super) handle: &'a mut Handle<Client>,
    pub(super) user: &'a str,
    pub(super) agent: Option<&'a mut Agent>,
    pub(super) keyring: &'a Keyring,
    pub(super) asker: &'a Asker,
    pub(super) rsa_hash: &'a mut RsaHash,
}

impl Offering<'_> {
    /// Offers it. The error is a fragment that says why it could not be offered.
    pub(super) async fn offer(mut self, candidate: &Candidate) -> Result<AuthResult, String> {
        match (&candidate.shown, &candidate.holder) {
            (Shown::Key(public), Holder::File(file)) => self.key_file(public.as_ref(), file).await,
            (Shown::Certificate(certificate), Holder::File(file)) => self.certificate_file(certificate, file).await,
            (Shown::Certificate(certificate), Holder::Agent(identity)) => {
                let hash = self.hash(&certified(certificate)).await?;
                let agent = self.agent.ok_or("the agent is gone")?;
                let mut signer = AgentSigner {
                    agent,
                    identity,
                    asker: self.asker,
                };
                let certificate = (**certificate).clone();
                let done = self
                    .handle
                    .authenticate_certificate_with(self.user, certificate, hash, &mut signer);
                done.await.map_err(|e| e.to_string())
            }
            (Shown::Key(_), Holder::Agent(identity)) => {
                let key = identity.public_key().into_owned();
                let hash = self.hash(&key).await?;
                let agent = self.agent.ok_or("the agent is gone")?;
                let mut signer = AgentSigner {
                    agent,
                    identity,
                    asker: self.asker,
                };
                let done = self
                    .handle
                    .authenticate_publickey_with(self.user, key, hash, &mut signer);
                done.await.map_err(|e| e.to_string())
            }
        }
    }

    async fn key_file(&mut self, public: Option<&PublicKey>, file: &KeyFile) -> Result<AuthResult, String> {
        let key = match (self.keyring.open(file).await, public) {
            (Some(key), _) => key,
            (None, Some(public)) => {
                let hash = self.hash(public).await?;
                let mut wanted = Wanted;
                let asked = self
                    .handle
                    .authenticate_publickey_with(self.user, public.clone(), hash, &mut wanted);
                match asked.await {
                    Ok(refused) => return Ok(refused),
                    Err(NotSigned::Wanted) => self.keyring.unlock(file, self.asker).await?,
                    Err(NotSigned::Lost) => return Err(LOST.to_owned()),
                }
            }
            (None, None) => self.keyring.unlock(file, self.asker).await?,
        };
        let hash = self.hash(key.public_key()).await?;
        let key = PrivateKeyWithHashAlg::new(key, hash);
        let done = self.handle.authenticate_publickey(self.user, key);
        done.await.map_err(|_| LOST.to_owned())
    }

    async fn certificate_file(&mut self, certificate: &Certificate, file: &KeyFile) -> Result<AuthResult, String> {
        let hash = self.hash(&certified(certificate)).await?;
        let key = match self.keyring.open(file).await {
            Some(key) => key,
            None => {
                let mut wanted = Wanted;
                let asked =
                    self.handle
                        .authenticate_certificate_with(self.user, certificate.clone(), hash, &mut wanted);
                match asked.await {
                    Ok(refused) => return Ok(refused),
                    Err(NotSigned::Wanted) => self.keyring.unlock(file, self.asker).await?,
                    Err(NotSigned::Lost) => return Err(LOST.to_owned()),
                }
            }
        };
        let mut signer = KeySigner(key);
        let done = self
            .handle
            .authenticate_certificate_with(self.user, certificate.clone(), hash, &mut signer);
        done.await.map_err(|e| e.to_string())
    }

    async fn hash(&mut self, key: &PublicKey) -> Result<Option<HashAlg>, String> {
        self.rsa_hash.of(self.handle, key).await
    }
}

fn certified(certificate: &Certificate) -> PublicKey {
    PublicKey::from(certificate.public_key().clone())
}

/// A signer that signs nothing: being asked is all that is wanted of it.
struct Wanted;

enum NotSigned {
    /// The server would take the key.
    Wanted,
    Lost,
}

impl From<russh::SendError> for NotSigned {
    fn from(_: russh::SendError) -> Self {
        Self::Lost
    }
}

impl russh::Signer for Wanted {
    type Error = NotSigned;

    async fn auth_sign(&mut self, _: &AgentIdentity, _: Option<HashAlg>, _: Vec<u8>) -> Result<Vec<u8>, NotSigned> {
        Err(NotSigned::Wanted)
    }
}

/// Signs with the key that a certificate in a file certifies: the library's own way knows no SHA-2 for RSA certificates.
struct KeySigner(Arc<PrivateKey>);

#[derive(Debug, thiserror::Error)]
enum SignError {
    #[error("the key did not sign: {0}")]
    Failed(String),
    #[error("{}", LOST)]
    Lost,
}

impl From<russh::SendError> for SignError {
    fn from(_: russh::SendError) -> Self {
        Self::Lost
    }
}

impl russh::Signer for KeySigner {
    type Error = SignError;

    async fn auth_sign(
        &mut self,
        _: &AgentIdentity,
        hash: Option<HashAlg>,
        mut data: Vec<u8>,
    ) -> Result<Vec<u8>, SignError> {
        let failed = |e: &dyn std::fmt::Display| SignError::Failed(e.to_string().to_lowercase());
        let signature: Signature = match self.0.key_data() {
            KeypairData::Rsa(pair) => (pair, hash).try_sign(&data).map_err(|e| failed(&e))?,
            _ => self.0.try_sign(&data).map_err(|e| failed(&e))?,
        };
        let mut blob = Vec::new();
        signature.encode(&mut blob).map_err(|e| failed(&e))?;
        blob.encode(&mut data).map_err(|e| failed(&e))?;
        Ok(data)
    }
}

/// Which hash the server wants RSA signatures with; asked once, as the answer may take a second to come.
#[derive(Default)]
pub(super) struct RsaHash(Option<Option<HashAlg>>);

impl RsaHash {
    async fn of(&mut self, handle: &Handle<Client>, key: &PublicKey) -> Result<Option<HashAlg>, String> {
        if !key.algorithm().is_rsa() {
            return Ok(None);
        }
        if self.0.is_none() {
            let said = handle.best_supported_rsa_hash().await.map_err(|_| LOST.to_owned())?;
            // A server that says nothing still takes SHA-2 unless it is very old.
            self.0 = Some(said.unwrap_or(Some(HashAlg::Sha256)));
        }
        Ok(self.0.flatten())
    }
}
