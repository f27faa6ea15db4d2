//! A jump host: one actor that keeps its connection, and the handle by which others reach hosts behind it.

use std::sync::Arc;

use futures_util::FutureExt;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, watch};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::again::Pauses;
use super::alias::Host;
use super::dial::{Dialled, dial, dial_among};
use super::errors::{FORWARDING, link_error, refusal};
use super::keyring::Keyring;
use super::link::{Link, NoChannel};
use super::settings::{Reporter, Settings, Target};
use super::tunnel::{HOP_BUFFER, Tunnel};
use crate::domain::Source;
use crate::domain::link::{LinkError, LinkErrorKind, LinkState};

/// Handshakes in flight through one hop: below sshd's MaxStartups, which drops connections from ten on.
const HANDSHAKES: usize = 8;

/// A jump host that others go through. Clones share the connection; it ends with the last of them.
#[derive(Clone)]
pub struct HopHandle {
    inner: Arc<Inner>,
}

struct Inner {
    name: String,
    /// For further connections to the same host.
    target: Target,
    via: Option<HopHandle>,
    settings: Settings,
    state: watch::Receiver<State>,
    handshakes: Arc<Semaphore>,
    again: Arc<Notify>,
    keyring: Keyring,
    stop: CancellationToken,
    _end: DropGuard,
}

#[derive(Clone)]
enum State {
    /// A try is under way.
    Trying,
    Up {
        link: Arc<Link>,
        path: Vec<Host>,
    },
    Down(LinkError),
}

impl HopHandle {
    /// Starts the actor. It dials at once, through `via` if there is one, and keeps dialling with growing pauses; it reports every change of the
    /// link under `source`.
    #[must_use]
    pub fn start(
        target: Target,
        via: Option<Self>,
        settings: Settings,
        reporter: Arc<dyn Reporter>,
        source: Source,
    ) -> Self {
        let (state, receiver) = watch::channel(State::Trying);
        let again = Arc::new(Notify::new());
        let stop = CancellationToken::new();
        let inner = Inner {
            name: target.name.clone(),
            target: target.clone(),
            via: via.clone(),
            settings: settings.clone(),
            state: receiver,
            handshakes: Arc::new(Semaphore::new(HANDSHAKES)),
            again: Arc::clone(&again),
            keyring: settings.keyring.clone(),
            stop: stop.clone(),
            _end: stop.clone().drop_guard(),
        };
        let actor = Actor {
            target,
            via,
            settings,
            reporter,
            source,
            state,
            again,
        };
        tokio::spawn(async move {
            tokio::select! {
                () = actor.run() => {}
                () = stop.cancelled() => {}
            }
        });
        Self { inner: Arc::new(inner) }
    }

    /// Whether a person can be asked.
    pub(super) fn interactive(&self) -> bool {
        self.inner.settings.interactive
    }

    /// Its name in messages.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Tries again now instead of at the end of the pause; also after an answer of No, which no try follows by itself. Dismissed questions are
    /// asked again.
    pub fn retry(&self) {
        self.inner.keyring.ask_again();
        self.inner.again.notify_one();
    }

    /// Says goodbye and ends the actor.
    pub async fn close(&self) {
        let link = match &*self.inner.state.borrow() {
            State::Up { link, .. } => Some(Arc::clone(link)),
            State::Trying | State::Down(_) => None,
        };
        self.inner.stop.cancel();
        if let Some(link) = link {
            link.close().await;
        }
    }

    /// Waits until it is up, without a limit: for those who try again as soon as it makes sense. Never resolves on one that was closed.
    pub async fn until_up(&self) {
        let mut state = self.inner.state.clone();
        let up = |s: &State| matches!(s, State::Up { link, .. } if link.gone().is_none());
        if state.wait_for(up).await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Opens a TCP connection from this host to another.
    ///
    /// # Errors
    /// When this hop is down, or the other host can't be reached from it.
    pub async fn open(&self, host: &str, port: u16) -> Result<Tunnel, LinkError> {
        self.open_for(host, port, &format!("{host}:{port} via {}", self.name()))
            .await
    }

    /// As [`Self::open`], with a name for what is behind it.
    pub(super) async fn open_for(&self, host: &str, port: u16, label: &str) -> Result<Tunnel, LinkError> {
        let (link, _) = self.wait_up().await?;
        match link.open_direct(host, port).await {
            Ok(channel) => Ok(Tunnel::start(channel, link, HOP_BUFFER)),
            Err(NoChannel::Refused(reason, said)) => {
                let said = said.map(|s| format!(" ({s})")).unwrap_or_default();
                let look = match reason {
                    russh::ChannelOpenFailure::AdministrativelyProhibited => format!("; {FORWARDING}"),
                    _ => String::new(),
                };
                let text = format!(
                    "{label}: {} refused the way to it: {}{said}{look}",
                    self.name(),
                    refusal(&reason)
                );
                Err(link_error(LinkErrorKind::Unreachable, text))
            }
            Err(NoChannel::NoAnswer) => {
                let text = format!("{label}: {} got no connection to it in time", self.name());
                Err(link_error(LinkErrorKind::Unreachable, text))
            }
            Err(NoChannel::Gone) => {
                let text = format!("{label}: the connection to {} was lost", self.name());
                Err(link_error(LinkErrorKind::ViaDown, text))
            }
        }
    }

    /// Waits for the try under way; gives the resolved hosts down to this one.
    pub(super) async fn up(&self) -> Result<Vec<Host>, LinkError> {
        self.wait_up().await.map(|(_, path)| path)
    }

    async fn wait_up(&self) -> Result<(Arc<Link>, Vec<Host>), LinkError> {
        let mut state = self.inner.state.clone();
        let settled = state.wait_for(|s| !matches!(s, State::Trying)).await;
        let down = |why: &str| link_error(LinkErrorKind::ViaDown, format!("{} is down: {why}", self.name()));
        match settled.as_deref() {
            Ok(State::Up { link, path }) => match link.gone() {
                None => Ok((Arc::clone(link), path.clone())),
                Some(why) => Err(down(&why)),
            },
            // The cause is its own; who waits behind it has nothing to cure.
            Ok(State::Down(error)) => Err(down(&error.text)),
            Ok(State::Trying) | Err(_) => Err(down("it was closed")),
        }
    }

    /// A further connection to this host, for what needs sessions of its own there. Its questions are asked by the first one, which is waited for.
    pub(super) async fn another(&self, reporter: Arc<dyn Reporter>, source: Source) -> Result<Arc<Link>, LinkError> {
        self.wait_up().await?;
        let inner = &self.inner;
        let (target, via) = (&inner.target, inner.via.as_ref());
        let dialled = dial_among(Some(self), target, via, &inner.settings, reporter, source).await?;
        Ok(dialled.link)
    }

    /// A place among the handshakes through this hop.
    pub(super) async fn handshake_place(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.inner.handshakes).acquire_owned().await.ok()
    }
}

struct Actor {
    target: Target,
    via: Option<HopHandle>,
    settings: Settings,
    reporter: Arc<dyn Reporter>,
    source: Source,
    state: watch::Sender<State>,
    again: Arc<Notify>,
}

impl Actor {
    async fn run(self) {
        let mut pauses = Pauses::default();
        loop {
            self.state.send_replace(State::Trying);
            let dialled = dial(
                &self.target,
                self.via.as_ref(),
                &self.settings,
                Arc::clone(&self.reporter),
                self.source,
            )
            .await;
            let error = match dialled {
                Ok(Dialled { link, path }) => {
                    pauses = Pauses::default();
                    self.state.send_replace(State::Up {
                        link: Arc::clone(&link),
                        path,
                    });
                    let why = link.closed().await;
                    // Who asked for another try while it was up has one that is over.
                    let _asked = self.again.notified().now_or_never();
                    link_error(LinkErrorKind::Lost, format!("{}: {why}", self.target.name))
                }
                Err(error) => error,
            };
            self.wait(error, &mut pauses).await;
        }
    }

    /// Tells that the link is down and waits for the next try.
    async fn wait(&self, error: LinkError, pauses: &mut Pauses) {
        let next = pauses.after(error.kind);
        let now = self.reporter.now();
        let via_down = error.kind == LinkErrorKind::ViaDown;
        let retry_at = next.map(|next| now.plus(next));
        self.reporter.link(
            self.source,
            LinkState::Down {
                error: error.clone(),
                since: now,
                retry_at,
            },
        );
        self.state.send_replace(State::Down(error));
        let sleep = async {
            match next {
                Some(next) => tokio::time::sleep(next).await,
                None => std::future::pending().await,
            }
        };
        let before = async {
            match &self.via {
                Some(hop) if via_down => hop.until_up().await,
                _ => std::future::pending().await,
            }
        };
        tokio::select! {
            () = sleep => {}
            () = before => {}
            () = self.again.notified() => {}
        }
    }
}
