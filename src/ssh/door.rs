//! The way that commands take to a host.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use super::link::Link;
use super::spare::Spare;
use crate::domain::wrap::BOOTSTRAP;

/// A connection, and what is sent over it to reach a host.
pub(super) struct Door {
    /// The connection that carries it: the host's own, or one to the hop whose `ssh` goes on.
    pub(super) link: Arc<Link>,
    /// The host's name in messages.
    pub(super) name: String,
    /// What is sent as the command of an exec request.
    pub(super) exec: String,
    /// Why the login of an `ssh` in between ended, where there is one: its own exit code 255 says that it lost the host (ssh(1), exit status).
    pub(super) between: Option<watch::Receiver<Option<String>>>,
    /// A channel that is open already.
    pub(super) spare: Spare,
}

impl Door {
    /// To the host of this connection itself.
    pub(super) fn to(link: Arc<Link>) -> Self {
        Self {
            name: link.name.clone(),
            link,
            exec: BOOTSTRAP.to_owned(),
            between: None,
            spare: Spare::default(),
        }
    }

    /// Sees to it that the next command finds an open channel.
    pub(super) fn prepare(&self) {
        self.spare.prepare(&self.link, &self.exec);
    }

    /// Why the `ssh` in between is gone, if it is or goes within this time.
    pub(super) async fn lost_within(&self, limit: Duration) -> Option<String> {
        let mut between = self.between.clone()?;
        let ended = tokio::time::timeout(limit, between.wait_for(Option::is_some)).await;
        ended.ok()?.ok()?.clone()
    }
}
