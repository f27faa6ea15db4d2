//! A reporter that keeps back what the connection to a hop says of itself: that it is up is not yet the login behind it, and that it is silent is told
//! by who hears the host behind.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::oneshot;

use super::settings::{Reply, Reporter};
use crate::domain::link::LinkState;
use crate::domain::question::Ask;
use crate::domain::{Source, Stamp};

pub(super) struct Held {
    inner: Arc<dyn Reporter>,
    up: AtomicBool,
}

impl Held {
    pub(super) fn new(inner: Arc<dyn Reporter>) -> Self {
        Self {
            inner,
            up: AtomicBool::new(false),
        }
    }

    /// Tells that the source is up.
    pub(super) fn release(&self, source: Source) {
        self.up.store(true, Ordering::Relaxed);
        self.inner.link(source, LinkState::Up);
    }
}

impl Reporter for Held {
    fn link(&self, source: Source, state: LinkState) {
        let released = self.up.load(Ordering::Relaxed);
        match state {
            LinkState::Up if !released => self.inner.link(source, LinkState::Connecting),
            LinkState::Up | LinkState::Silent { .. } => {}
            state @ (LinkState::Idle | LinkState::Connecting | LinkState::Asking | LinkState::Down { .. }) => {
                self.inner.link(source, state);
            }
        }
    }

    fn ask(&self, source: Source, ask: Ask) -> oneshot::Receiver<Reply> {
        self.inner.ask(source, ask)
    }

    fn now(&self) -> Stamp {
        self.inner.now()
    }
}
