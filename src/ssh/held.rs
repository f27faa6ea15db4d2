//! A reporter that keeps back that a connection is up: the one to the hop is, and the login behind it is not yet.

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

    /// Tells that the source is up, and keeps nothing back from now on.
    pub(super) fn release(&self, source: Source) {
        self.up.store(true, Ordering::Relaxed);
        self.inner.link(source, LinkState::Up);
    }
}

impl Reporter for Held {
    fn link(&self, source: Source, state: LinkState) {
        if state == LinkState::Up && !self.up.load(Ordering::Relaxed) {
            self.inner.link(source, LinkState::Connecting);
        } else {
            self.inner.link(source, state);
        }
    }

    fn ask(&self, source: Source, ask: Ask) -> oneshot::Receiver<Reply> {
        self.inner.ask(source, ask)
    }

    fn now(&self) -> Stamp {
        self.inner.now()
    }
}
