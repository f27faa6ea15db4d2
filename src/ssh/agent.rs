//! The operator's ssh-agent: what it holds, and its signatures.

use std::path::Path;
use std::time::Duration;

use russh::keys::HashAlg;
use russh::keys::agent::AgentIdentity;
use russh::keys::agent::client::AgentClient;
use tokio::net::UnixStream;

use super::settings::Asker;
use crate::domain::time::human;

/// Longest wait for an agent's list of keys.
const LIST_LIMIT: Duration = Duration::from_secs(5);

/// Longest wait for an agent's signature: it may ask its person for a touch or a word.
const SIGN_LIMIT: Duration = Duration::from_secs(120);

/// An agent and what it holds.
pub(super) struct Agent {
    /// `None` after a signature that came too late: its answer would be taken for that of the next question.
    client: Option<AgentClient<UnixStream>>,
    pub(super) identities: Vec<AgentIdentity>,
}

impl Agent {
    /// Asks the agent behind this socket what it holds. The error is a fragment.
    pub(super) async fn open(socket: &Path) -> Result<Self, String> {
        let why = |e: &dyn std::fmt::Display| format!("{}: {}", socket.display(), e.to_string().to_lowercase());
        let work = async {
            let mut client = AgentClient::connect_uds(socket).await.map_err(|e| why(&e))?;
            let identities = client.request_identities().await.map_err(|e| why(&e))?;
            Ok(Self {
                client: Some(client),
                identities,
            })
        };
        match tokio::time::timeout(LIST_LIMIT, work).await {
            Ok(done) => done,
            Err(_) => Err("no answer".to_owned()),
        }
    }
}

/// Signs through the agent. What that takes is not the host's silence.
pub(super) struct AgentSigner<'a> {
    pub(super) agent: &'a mut Agent,
    /// What the agent knows the key by: a certificate in a file may certify a plain key of the agent's.
    pub(super) identity: &'a AgentIdentity,
    pub(super) asker: &'a Asker,
}

/// Why there is no signature of the agent's.
#[derive(Debug, thiserror::Error)]
pub(super) enum AgentError {
    #[error("the agent did not sign: {0}")]
    Refused(String),
    #[error("the agent did not sign within {}; is it waiting for you?", human(SIGN_LIMIT))]
    Late,
    #[error("the agent is still busy with an earlier signature")]
    Busy,
    #[error("the connection was lost")]
    Lost,
}

impl From<russh::SendError> for AgentError {
    fn from(_: russh::SendError) -> Self {
        Self::Lost
    }
}

impl russh::Signer for AgentSigner<'_> {
    type Error = AgentError;

    async fn auth_sign(
        &mut self,
        _: &AgentIdentity,
        hash: Option<HashAlg>,
        data: Vec<u8>,
    ) -> Result<Vec<u8>, AgentError> {
        let _pause = self.asker.pause();
        let Some(mut client) = self.agent.client.take() else {
            return Err(AgentError::Busy);
        };
        let signing = client.auth_sign(self.identity, hash, data);
        let signed = tokio::time::timeout(SIGN_LIMIT, signing)
            .await
            .map_err(|_| AgentError::Late)?;
        self.agent.client = Some(client);
        signed.map_err(|error| AgentError::Refused(error.to_string().to_lowercase()))
    }
}
