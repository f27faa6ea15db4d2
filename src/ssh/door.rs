//! The way that commands take to a host.

use std::sync::Arc;
use std::time::{Duration, Instant};

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
    /// The `ssh` in between, where there is one.
    pub(super) between: Option<Between>,
    /// A channel that is open already.
    pub(super) spare: Spare,
}

/// An `ssh` on a hop that goes on to the host.
pub(super) struct Between {
    /// Why its login ended: its own exit code 255 says that it lost the host (ssh(1), exit status).
    pub(super) ended: watch::Receiver<Option<String>>,
    /// When the host behind it last gave a sign of life; `None` before the first.
    pub(super) beat: watch::Receiver<Option<Instant>>,
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

    /// Time since the host last said anything, or the hop before it, whichever is silent for longer.
    pub(super) fn quiet_for(&self) -> Duration {
        let beat = self.between.as_ref().and_then(|b| *b.beat.borrow());
        let behind = beat.map_or(Duration::ZERO, |beat| beat.elapsed());
        self.link.quiet_for().max(behind)
    }

    /// Sees to it that the next command finds an open channel.
    pub(super) fn prepare(&self) {
        self.spare.prepare(&self.link, &self.exec);
    }

    /// Why the `ssh` in between is gone, if it is or goes within this time.
    pub(super) async fn lost_within(&self, limit: Duration) -> Option<String> {
        let mut between = self.between.as_ref()?.ended.clone();
        let ended = tokio::time::timeout(limit, between.wait_for(Option::is_some)).await;
        ended.ok()?.ok()?.clone()
    }
}
