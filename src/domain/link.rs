//! State of a connection to a hop or a node.

use serde::Serialize;

use super::time::Stamp;

/// State of one SSH connection.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub enum LinkState {
    /// Not tried yet, or waiting for the hop before it.
    #[default]
    Idle,
    /// A handshake is under way.
    Connecting,
    /// A question to the operator is open (host key, passphrase).
    Asking,
    /// Up.
    Up,
    /// Up, but the peer has said nothing for a while.
    Silent {
        /// Last sign of life.
        since: Stamp,
    },
    /// Down.
    Down {
        /// Why, as a sentence for a person.
        error: LinkError,
        /// Since when.
        since: Stamp,
        /// When the next try starts; `None` when none will be made.
        retry_at: Option<Stamp>,
    },
}

impl LinkState {
    /// Whether it is known that there is no connection.
    #[must_use]
    pub fn is_down(&self) -> bool {
        matches!(self, Self::Down { .. })
    }

    /// Whether commands can run over it.
    #[must_use]
    pub fn usable(&self) -> bool {
        match self {
            Self::Up | Self::Silent { .. } => true,
            Self::Idle | Self::Connecting | Self::Asking | Self::Down { .. } => false,
        }
    }
}

/// What becomes of a host key that is in no known_hosts file. One that is on file as another, or as revoked, is refused under each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum HostKeys {
    /// A person is asked.
    Ask,
    /// It is written to the file without a question.
    AcceptNew,
    /// It is refused.
    Strict,
}

impl HostKeys {
    /// Every policy.
    pub const ALL: [Self; 3] = [Self::Ask, Self::AcceptNew, Self::Strict];

    /// The word in the config.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Ask => "ask",
            Self::AcceptNew => "accept-new",
            Self::Strict => "strict",
        }
    }
}

/// Why a link is down.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LinkError {
    /// Kind of failure.
    pub kind: LinkErrorKind,
    /// What happened, naming the hop; a sentence without a final period.
    pub text: String,
    /// What to do, when it is known; may hold a command to copy on its own line.
    pub fix: Option<String>,
}

/// Kinds of link failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LinkErrorKind {
    /// No route, refused, reset, timed out.
    Unreachable,
    /// An earlier hop is down.
    ViaDown,
    /// The host key is unknown and was not accepted.
    HostKeyUnknown,
    /// The host key is another one than on file.
    HostKeyChanged,
    /// The peer refused every key.
    Refused,
    /// The connection was up and went away.
    Lost,
    /// Something on this side: no key to read, a broken file.
    Local,
}
