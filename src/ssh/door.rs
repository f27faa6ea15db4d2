//! The way that commands take to a host.

use std::sync::Arc;

use super::link::Link;
use crate::domain::wrap::BOOTSTRAP;

/// A connection, and what is sent over it to reach a host.
pub(super) struct Door {
    /// The connection that carries it: the host's own, or one to the hop whose `ssh` goes on.
    pub(super) link: Arc<Link>,
    /// The host's name in messages.
    pub(super) name: String,
    /// What is sent as the command of an exec request.
    pub(super) exec: String,
    /// Whether another `ssh` is in between, which says with its own exit code 255 that it lost the host (ssh(1), exit status).
    pub(super) relayed: bool,
}

impl Door {
    /// To the host of this connection itself.
    pub(super) fn to(link: Arc<Link>) -> Self {
        Self {
            name: link.name.clone(),
            link,
            exec: BOOTSTRAP.to_owned(),
            relayed: false,
        }
    }
}
