//! Logging in: which keys are offered, in which order, and what is said when none is taken.
//!
//! Keys that were named come first, one that the agent holds through the agent. A key is offered before it is decrypted, so that a passphrase is asked
//! for only when the server would take the key.

use std::path::Path;
use std::time::Duration;

use russh::client::{AuthResult, Handle};
use russh::keys::agent::AgentIdentity;
use russh::keys::agent::client::AgentClient;
use russh::keys::{Certificate, HashAlg, PrivateKeyWithHashAlg, PublicKey};
use russh::{MethodKind, MethodSet};
use tokio::net::UnixStream;

use super::alias::Host;
use super::fix::PublicKeySource;
use super::host_key::Client;
use super::keys::{KeyFile, KeyProblem, Keyring};
use super::known_hosts::fingerprint;
use super::settings::Asker;
use crate::domain::time::human;

/// Keys offered at most: sshd hangs up at its MaxAuthTries, six unless configured otherwise.
pub(super) const MAX_TRIES: usize = 6;

/// Longest wait for an agent's list of keys.
const AGENT_LIMIT: Duration = Duration::from_secs(5);

/// Longest wait for an agent's signature: it may ask its person for a touch or a word.
const SIGN_LIMIT: Duration = Duration::from_secs(120);

/// Why nobody was let in.
#[derive(Debug, Default)]
pub(super) struct Refusal {
    /// Keys that were offered and refused.
    pub(super) tried: Vec<String>,
    /// Keys that were not offered, and why.
    pub(super) notes: Vec<String>,
    /// What the server would take.
    pub(super) methods: Vec<&'static str>,
    /// Whether the connection ended while keys were offered.
    pub(super) hung_up: bool,
    /// The key that was offered when it ended, and got no answer.
    pub(super) unanswered: Option<String>,
    /// The key that a person most likely means, for a command to copy.
    key: Option<Offered>,
}

#[derive(Debug)]
enum Offered {
    File(std::path::PathBuf),
    Agent(String),
}

impl Refusal {
    /// Where the public key for a command comes from.
    pub(super) fn key(&self) -> Option<PublicKeySource<'_>> {
        match self.key.as_ref()? {
            Offered::File(path) => Some(PublicKeySource::File(path)),
            Offered::Agent(text) => Some(PublicKeySource::Text(text.clone())),
        }
    }
}

/// One key to offer.
enum Candidate {
    File(KeyFile),
    Agent(PublicKey, String),
    AgentCertificate(Box<Certificate>, String),
}

/// Logs in with the first key that the server takes.
pub(super) async fn log_in(
    handle: &mut Handle<Client>,
    host: &Host,
    agent: Option<&Path>,
    keyring: &Keyring,
    asker: &Asker,
) -> Result<(), Refusal> {
    let mut refusal = Refusal::default();
    let mut agent = match agent {
        None => None,
        Some(socket) => match tokio::time::timeout(AGENT_LIMIT, Agent::open(socket)).await {
            Ok(Ok(agent)) => Some(agent),
            Ok(Err(why)) => {
                refusal.notes.push(format!("ssh-agent: {why}"));
                None
            }
            Err(_) => {
                refusal.notes.push("ssh-agent: no answer".to_owned());
                None
            }
        },
    };
    let candidates = candidates(host, agent.as_ref(), &mut refusal);
    let mut rsa_hash = RsaHash::default();
    for candidate in candidates {
        if refusal.tried.len() == MAX_TRIES {
            refusal.notes.push(format!(
                "no more than {MAX_TRIES} keys are offered; name the right one in the config"
            ));
            break;
        }
        let outcome = offer(
            handle,
            &host.user,
            &candidate,
            agent.as_mut(),
            keyring,
            asker,
            &mut rsa_hash,
        )
        .await;
        let label = candidate.label();
        match outcome {
            Ok(AuthResult::Success) => return Ok(()),
            // A server that refuses a key names what it would take: this is how russh tells that the connection ended.
            Ok(AuthResult::Failure { remaining_methods, .. }) if remaining_methods.is_empty() => {
                refusal.key.get_or_insert_with(|| candidate.offered());
                refusal.unanswered = Some(label);
                refusal.hung_up = true;
                break;
            }
            Ok(AuthResult::Failure {
                remaining_methods,
                partial_success,
            }) => {
                refusal.key.get_or_insert_with(|| candidate.offered());
                refusal.tried.push(label);
                refusal.methods = methods(&remaining_methods);
                if partial_success {
                    refusal
                        .notes
                        .push("it took the key and wants something more".to_owned());
                }
            }
            Err(why) => refusal.notes.push(format!("{label}: {why}")),
        }
        if handle.is_closed() {
            refusal.hung_up = true;
            break;
        }
    }
    Err(refusal)
}

/// The keys to offer, in order.
fn candidates(host: &Host, agent: Option<&Agent>, refusal: &mut Refusal) -> Vec<Candidate> {
    let held = agent.map_or(&[][..], |a| a.identities.as_slice());
    let mut files = Vec::new();
    for path in &host.keys {
        match KeyFile::load(path) {
            Ok(file) => files.push(file),
            Err(KeyProblem::Missing) if !host.named => {}
            Err(KeyProblem::Missing) => refusal.notes.push(format!("{}: there is no such file", path.display())),
            Err(KeyProblem::Unusable(why)) => refusal.notes.push(format!("{}: {why}", path.display())),
        }
    }
    let mut from_agent: Vec<Candidate> = Vec::new();
    for identity in held {
        match identity {
            AgentIdentity::PublicKey { key, comment } => {
                from_agent.push(Candidate::Agent(key.clone(), comment.clone()))
            }
            AgentIdentity::Certificate { certificate, comment } => {
                from_agent.push(Candidate::AgentCertificate(
                    Box::new(certificate.clone()),
                    comment.clone(),
                ));
            }
        }
    }
    // A named key stands where it was named, through the agent if that holds it: no passphrase is needed then.
    let mut named = Vec::new();
    for file in files {
        let same = |c: &Candidate| matches!((c, &file.public), (Candidate::Agent(a, _), Some(b)) if a.key_data() == b.key_data());
        match from_agent.iter().position(same) {
            Some(at) => named.push(from_agent.remove(at)),
            None => named.push(Candidate::File(file)),
        }
    }
    if host.only_named {
        return named;
    }
    if host.named {
        named.append(&mut from_agent);
        named
    } else {
        from_agent.append(&mut named);
        from_agent
    }
}

impl Candidate {
    fn label(&self) -> String {
        match self {
            Self::File(file) => match &file.public {
                Some(key) => format!("{} ({} {})", file.path.display(), key.algorithm(), fingerprint(key)),
                None => file.path.display().to_string(),
            },
            Self::Agent(key, comment) => format!("{comment} of the agent ({} {})", key.algorithm(), fingerprint(key)),
            Self::AgentCertificate(certificate, comment) => {
                format!("{comment} of the agent (certificate {})", certificate.key_id())
            }
        }
    }

    fn offered(&self) -> Offered {
        match self {
            Self::File(file) => Offered::File(file.path.clone()),
            Self::Agent(key, _) => Offered::Agent(key.to_openssh().unwrap_or_default()),
            Self::AgentCertificate(certificate, _) => Offered::Agent(
                PublicKey::from(certificate.public_key().clone())
                    .to_openssh()
                    .unwrap_or_default(),
            ),
        }
    }
}

/// Offers one key. The error is a fragment that says why it could not be offered.
async fn offer(
    handle: &mut Handle<Client>,
    user: &str,
    candidate: &Candidate,
    agent: Option<&mut Agent>,
    keyring: &Keyring,
    asker: &Asker,
    rsa_hash: &mut RsaHash,
) -> Result<AuthResult, String> {
    match (candidate, agent) {
        (Candidate::File(file), _) => offer_file(handle, user, file, keyring, asker, rsa_hash).await,
        (Candidate::Agent(key, _), Some(agent)) => {
            let hash = rsa_hash.of(handle, key).await?;
            let mut signer = Signing { agent, asker };
            let done = handle
                .authenticate_publickey_with(user, key.clone(), hash, &mut signer)
                .await;
            done.map_err(|e| e.to_string())
        }
        (Candidate::AgentCertificate(certificate, _), Some(agent)) => {
            let hash = rsa_hash
                .of(handle, &PublicKey::from(certificate.public_key().clone()))
                .await?;
            let mut signer = Signing { agent, asker };
            let done = handle
                .authenticate_certificate_with(user, (**certificate).clone(), hash, &mut signer)
                .await;
            done.map_err(|e| e.to_string())
        }
        (Candidate::Agent(..) | Candidate::AgentCertificate(..), None) => Err("the agent is gone".to_owned()),
    }
}

async fn offer_file(
    handle: &mut Handle<Client>,
    user: &str,
    file: &KeyFile,
    keyring: &Keyring,
    asker: &Asker,
    rsa_hash: &mut RsaHash,
) -> Result<AuthResult, String> {
    let key = match (keyring.open(file).await, &file.public) {
        (Some(key), _) => key,
        (None, Some(public)) => {
            let hash = rsa_hash.of(handle, public).await?;
            match handle
                .authenticate_publickey_with(user, public.clone(), hash, &mut Wanted)
                .await
            {
                Ok(refused) => return Ok(refused),
                Err(NotSigned::Wanted) => keyring.unlock(file, asker).await?,
                Err(NotSigned::Lost) => return Err("the connection was lost".to_owned()),
            }
        }
        (None, None) => keyring.unlock(file, asker).await?,
    };
    let hash = rsa_hash.of(handle, key.public_key()).await?;
    let key = PrivateKeyWithHashAlg::new(key, hash);
    handle
        .authenticate_publickey(user, key)
        .await
        .map_err(|_| "the connection was lost".to_owned())
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

/// Signs through the agent. What that takes is not the host's silence.
struct Signing<'a> {
    agent: &'a mut Agent,
    asker: &'a Asker,
}

/// Why there is no signature of the agent's.
#[derive(Debug, thiserror::Error)]
enum AgentError {
    #[error("the agent did not sign: {0}")]
    Refused(String),
    #[error("the agent did not sign within {}; is it waiting for you?", human(SIGN_LIMIT))]
    Late,
    #[error("the connection was lost")]
    Lost,
}

impl From<russh::SendError> for AgentError {
    fn from(_: russh::SendError) -> Self {
        Self::Lost
    }
}

impl russh::Signer for Signing<'_> {
    type Error = AgentError;

    async fn auth_sign(
        &mut self,
        key: &AgentIdentity,
        hash: Option<HashAlg>,
        data: Vec<u8>,
    ) -> Result<Vec<u8>, AgentError> {
        let _pause = self.asker.pause();
        match tokio::time::timeout(SIGN_LIMIT, self.agent.client.auth_sign(key, hash, data)).await {
            Ok(Ok(signature)) => Ok(signature),
            Ok(Err(error)) => Err(AgentError::Refused(error.to_string().to_lowercase())),
            Err(_) => Err(AgentError::Late),
        }
    }
}

/// Which hash the server wants RSA signatures with; asked once, as the answer may take a second to come.
#[derive(Default)]
struct RsaHash(Option<Option<HashAlg>>);

impl RsaHash {
    async fn of(&mut self, handle: &Handle<Client>, key: &PublicKey) -> Result<Option<HashAlg>, String> {
        if !key.algorithm().is_rsa() {
            return Ok(None);
        }
        if self.0.is_none() {
            let said = handle
                .best_supported_rsa_hash()
                .await
                .map_err(|_| "the connection was lost".to_owned())?;
            // A server that says nothing still takes SHA-2 unless it is very old.
            self.0 = Some(said.unwrap_or(Some(HashAlg::Sha256)));
        }
        Ok(self.0.flatten())
    }
}

/// An agent and what it holds.
struct Agent {
    client: AgentClient<UnixStream>,
    identities: Vec<AgentIdentity>,
}

impl Agent {
    async fn open(socket: &Path) -> Result<Self, String> {
        let why = |e: &dyn std::fmt::Display| format!("{}: {}", socket.display(), e.to_string().to_lowercase());
        let mut client = AgentClient::connect_uds(socket).await.map_err(|e| why(&e))?;
        let identities = client.request_identities().await.map_err(|e| why(&e))?;
        Ok(Self { client, identities })
    }
}

fn methods(set: &MethodSet) -> Vec<&'static str> {
    let of_interest = |m: &&MethodKind| !matches!(m, MethodKind::None);
    set.iter().filter(of_interest).map(<&'static str>::from).collect()
}
