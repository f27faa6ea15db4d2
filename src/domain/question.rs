//! Questions to the operator. A secret answer never enters the queue: the waiting end gets it directly, and only [`Answer::Given`] is queued.

use serde::Serialize;

use super::ids::{QuestionId, Source};

/// A question that an actor waits on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Question {
    /// Names the waiting end.
    pub id: QuestionId,
    /// Who asks.
    pub from: Source,
    /// What is asked.
    pub ask: Ask,
}

/// What can be asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Ask {
    /// Whether to trust an unknown host key.
    HostKey {
        /// Host and port as dialled.
        host: String,
        /// Key algorithm, such as `ssh-ed25519`.
        algorithm: String,
        /// `SHA256:…` fingerprint.
        fingerprint: String,
        /// File that the key would be written to.
        file: String,
    },
    /// The passphrase of a private key. The answer is secret.
    Passphrase {
        /// The key's file.
        key: String,
        /// Whether an earlier answer was wrong.
        again: bool,
    },
}

impl Ask {
    /// Whether the answer must not be shown or queued.
    #[must_use]
    pub fn secret(&self) -> bool {
        match self {
            Self::HostKey { .. } => false,
            Self::Passphrase { .. } => true,
        }
    }
}

/// An answer as the queue sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Answer {
    /// Yes.
    Yes,
    /// No, or the question was dismissed.
    No,
    /// A secret was handed to the waiting end.
    Given,
}
