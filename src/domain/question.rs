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
    /// What a login wants to know: a question of the server's, or a password. The answer is secret.
    Login {
        /// The login that asks, as `NAME (user@host:port)`.
        account: String,
        /// What the server says beside its question, in printable characters; often empty.
        said: String,
        /// The question in the server's words, in printable characters.
        prompt: String,
        /// Whether the server lets the answer be seen while it is typed.
        echo: bool,
        /// Which question of its round this is, from 1.
        number: usize,
        /// Questions of the round.
        of: usize,
        /// Whether earlier answers were refused.
        again: bool,
    },
}

impl Ask {
    /// Whether the answer must not be queued, and not be shown unless [`Self::echo`] says so.
    #[must_use]
    pub fn secret(&self) -> bool {
        match self {
            Self::HostKey { .. } => false,
            Self::Passphrase { .. } | Self::Login { .. } => true,
        }
    }

    /// Whether the answer may be seen on the screen while it is typed.
    #[must_use]
    pub fn echo(&self) -> bool {
        match self {
            Self::HostKey { .. } | Self::Passphrase { .. } => false,
            Self::Login { echo, .. } => *echo,
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
