//! One authenticated connection, and the guard that watches it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use russh::client::{Handle, Msg};
use russh::{Channel, ChannelMsg, Disconnect};
use tokio::sync::{oneshot, watch};
use tokio_util::sync::CancellationToken;

use super::host_key::{Client, Shared};
use super::settings::Reporter;
use super::slots::{Slot, Slots};
use super::wire::Pulse;
use crate::domain::Source;
use crate::domain::link::LinkState;
use crate::domain::time::human;

/// Pace of the questions that a peer must answer while nothing else is said.
pub(super) const KEEPALIVE: Duration = Duration::from_secs(2);

/// Silence after which a peer is shown as silent.
pub const SILENT_AFTER: Duration = Duration::from_millis(3400);

/// Silence after which a connection is given up. A host short of memory answers late, and a new handshake is the last thing it needs.
pub const GIVE_UP_AFTER: Duration = Duration::from_secs(15);

/// How often the guard looks.
const LOOK: Duration = Duration::from_millis(200);

/// A look that comes this late means that this process itself stood still: the peer's silence then proves nothing.
const STOOD_STILL: Duration = Duration::from_secs(2);

/// Longest wait for a channel to be opened.
pub(super) const OPEN_LIMIT: Duration = Duration::from_secs(10);

/// How much longer than its caller a request for a channel lives, to close what the server confirms too late.
const LATE_LIMIT: Duration = Duration::from_secs(120);

/// Longest wait for the first, empty command on a connection.
const PRIME_LIMIT: Duration = Duration::from_secs(5);

/// How long a polite end may take.
const GOODBYE_LIMIT: Duration = Duration::from_secs(1);

/// One authenticated connection.
pub(super) struct Link {
    /// The host's name in messages.
    pub(super) name: String,
    handle: Handle<Client>,
    pulse: Arc<Pulse>,
    shared: Shared,
    slots: Arc<Slots>,
    /// Channel requests in flight: what the server says of a refusal can be told apart only when there is one.
    opening: AtomicUsize,
    closed: watch::Receiver<Option<String>>,
    /// Streams that end where a server allows too few session channels for them.
    yielding: Mutex<Vec<Weak<Yielding>>>,
}

/// A stream that goes on for as long as the server allows so many session channels at a time.
pub(super) struct Yielding {
    needs: usize,
    pub(super) over: CancellationToken,
}

/// What a login leaves.
pub(super) struct LoggedIn {
    pub(super) handle: Handle<Client>,
    pub(super) pulse: Arc<Pulse>,
    pub(super) shared: Shared,
    /// Told why the connection ended.
    pub(super) gone: oneshot::Receiver<String>,
    /// A silence after which the peer is given up, where that is shorter than [`GIVE_UP_AFTER`].
    pub(super) give_up: Option<Duration>,
}

/// Kinds of channel.
enum Way {
    Session,
    Direct(String, u16),
    Socket(String),
}

/// Why no channel was opened.
#[derive(Debug)]
pub(super) enum NoChannel {
    /// The server said no, with its reason and its own words when they are certainly meant for this request.
    Refused(russh::ChannelOpenFailure, Option<String>),
    /// It said nothing in time.
    NoAnswer,
    /// The connection is gone.
    Gone,
}

impl Link {
    /// Takes over a connection after its login, and starts its guard and its first, empty command.
    pub(super) fn start(name: String, done: LoggedIn, reporter: Arc<dyn Reporter>, source: Source) -> Arc<Self> {
        let LoggedIn {
            handle,
            pulse,
            shared,
            gone,
            give_up,
        } = done;
        let (tell, closed) = watch::channel(None);
        pulse.touch();
        reporter.link(source, LinkState::Up);
        let give_up = give_up.unwrap_or(GIVE_UP_AFTER).clamp(SILENT_AFTER, GIVE_UP_AFTER);
        tokio::spawn(guard(Arc::clone(&pulse), gone, reporter, source, tell, give_up));
        let link = Arc::new(Self {
            name,
            handle,
            pulse,
            shared,
            slots: Arc::default(),
            opening: AtomicUsize::new(0),
            closed,
            yielding: Mutex::default(),
        });
        tokio::spawn(prime(Arc::clone(&link)));
        link
    }

    /// The places of its session channels.
    pub(super) fn slots(&self) -> &Arc<Slots> {
        &self.slots
    }

    /// A stream begins that yields where fewer session channels than this are allowed at a time; it is over when its token says so.
    pub(super) fn yielding(&self, needs: usize) -> Arc<Yielding> {
        let over = CancellationToken::new();
        let stream = Arc::new(Yielding { needs, over });
        let mut streams = self.yielding.lock().unwrap_or_else(PoisonError::into_inner);
        streams.retain(|s| s.strong_count() > 0);
        streams.push(Arc::downgrade(&stream));
        drop(streams);
        self.end_streams();
        stream
    }

    /// Ends the streams that need more session channels than the server allows at a time.
    pub(super) fn end_streams(&self) {
        let allowed = self.slots.allowed();
        let streams = self.yielding.lock().unwrap_or_else(PoisonError::into_inner);
        let too_many = streams.iter().filter_map(Weak::upgrade).filter(|s| s.needs > allowed);
        too_many.for_each(|s| s.over.cancel());
    }

    /// Opens a session channel. The place comes back with it.
    pub(super) async fn open_session(self: &Arc<Self>, slot: Slot) -> Result<(Channel<Msg>, Slot), NoChannel> {
        let (channel, slot) = self.open(Way::Session, Some(slot)).await?;
        slot.map(|slot| (channel, slot)).ok_or(NoChannel::Gone)
    }

    /// Opens a channel that the server joins to a TCP connection of its own.
    pub(super) async fn open_direct(self: &Arc<Self>, host: &str, port: u16) -> Result<Channel<Msg>, NoChannel> {
        let way = Way::Direct(host.to_owned(), port);
        self.open(way, None).await.map(|(channel, _)| channel)
    }

    /// Opens a channel that the server joins to a Unix socket of its own (OpenSSH's PROTOCOL, direct-streamlocal).
    pub(super) async fn open_socket(self: &Arc<Self>, path: &str) -> Result<Channel<Msg>, NoChannel> {
        let way = Way::Socket(path.to_owned());
        self.open(way, None).await.map(|(channel, _)| channel)
    }

    /// Opens a channel in a task of its own: one that the server confirms when nobody waits for it any more must be closed, or it counts against the
    /// server's limit for as long as the connection lives. The place is free only then.
    async fn open(self: &Arc<Self>, way: Way, slot: Option<Slot>) -> Result<(Channel<Msg>, Option<Slot>), NoChannel> {
        let (mut tell, told) = oneshot::channel();
        let link = Arc::clone(self);
        tokio::spawn(async move {
            let late = async {
                tell.closed().await;
                tokio::time::sleep(LATE_LIMIT).await;
            };
            let opened = tokio::select! {
                opened = link.opened(&way) => opened,
                () = late => return,
            };
            let opened = opened.map(|channel| {
                let slot = slot.map(Slot::opened);
                (channel, slot)
            });
            if let Err(Ok((channel, slot))) = tell.send(opened) {
                let (read, write) = channel.split();
                drop(read);
                let _ = write.close().await;
                // Nothing was run on it.
                drop(slot.map(Slot::told));
            }
        });
        match tokio::time::timeout(OPEN_LIMIT, told).await {
            Err(_) => Err(NoChannel::NoAnswer),
            Ok(Err(_)) => Err(NoChannel::Gone),
            Ok(Ok(opened)) => opened,
        }
    }

    async fn opened(&self, way: &Way) -> Result<Channel<Msg>, NoChannel> {
        let alone = self.opening.fetch_add(1, Ordering::Relaxed) == 0;
        let opened = match way {
            Way::Session => self.handle.channel_open_session().await,
            Way::Direct(host, port) => {
                let port = (*port).into();
                self.handle.channel_open_direct_tcpip(host, port, "127.0.0.1", 0).await
            }
            Way::Socket(path) => self.handle.channel_open_direct_streamlocal(path).await,
        };
        let alone = self.opening.fetch_sub(1, Ordering::Relaxed) == 1 && alone;
        match opened {
            Ok(channel) => Ok(channel),
            Err(russh::Error::ChannelOpenFailure(reason)) => {
                let said = self
                    .shared
                    .channel_refusal
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .take();
                Err(NoChannel::Refused(reason, said.filter(|s| alone && !s.is_empty())))
            }
            Err(_) => Err(NoChannel::Gone),
        }
    }

    /// Resolves when the connection is gone, with why.
    pub(super) async fn closed(&self) -> String {
        let mut closed = self.closed.clone();
        let why = closed.wait_for(Option::is_some).await.ok().and_then(|why| why.clone());
        why.unwrap_or_else(|| "the connection ended".to_owned())
    }

    /// Why the connection is gone, if it is.
    pub(super) fn gone(&self) -> Option<String> {
        self.closed.borrow().clone()
    }

    pub(super) fn quiet_for(&self) -> Duration {
        self.pulse.quiet_for()
    }

    /// Says goodbye and ends the connection.
    pub(super) async fn close(&self) {
        self.pulse.explain("closed by bringup");
        let bye = self.handle.disconnect(Disconnect::ByApplication, "", "");
        if let Ok(Ok(())) = tokio::time::timeout(GOODBYE_LIMIT, bye).await {
            let _ = tokio::time::timeout(GOODBYE_LIMIT, self.closed()).await;
        }
        self.pulse.cut("closed by bringup");
        let _ = tokio::time::timeout(GOODBYE_LIMIT, self.closed()).await;
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.pulse.cut("closed by bringup");
    }
}

/// Shows silence, gives up on a peer that stays silent, and tells the end last of all: nothing is reported after it.
async fn guard(
    pulse: Arc<Pulse>,
    mut gone: oneshot::Receiver<String>,
    reporter: Arc<dyn Reporter>,
    source: Source,
    tell: watch::Sender<Option<String>>,
    give_up: Duration,
) {
    let mut silent = false;
    let mut last_look = Instant::now();
    let why = loop {
        tokio::select! {
            why = &mut gone => break pulse.why().or(why.ok()),
            () = tokio::time::sleep(LOOK) => {}
        }
        if last_look.elapsed() > STOOD_STILL {
            pulse.touch();
        }
        last_look = Instant::now();
        let quiet = pulse.quiet_for();
        if quiet > give_up {
            pulse.cut(&format!("the peer said nothing for {}", human(give_up)));
        } else if !silent && quiet > SILENT_AFTER {
            silent = true;
            let now = reporter.now();
            let since = now.minus(quiet);
            reporter.link(source, LinkState::Silent { since });
        } else if silent && quiet < SILENT_AFTER {
            silent = false;
            reporter.link(source, LinkState::Up);
        }
    };
    tell.send_replace(Some(why.unwrap_or_else(|| "the connection ended".to_owned())));
}

/// Runs one empty command: sshd sends without delay only after the first session on a connection, and until then each answer through a jump host
/// waits some 40 ms. A bastion that allows no sessions refuses it, which does no harm.
async fn prime(link: Arc<Link>) {
    let run = async {
        let Some(slot) = link.slots.take().await else {
            return;
        };
        let Ok((channel, mut slot)) = link.open_session(slot).await else {
            return;
        };
        let (mut read, write) = channel.split();
        if write.exec(true, "true").await.is_ok() {
            while let Some(message) = read.wait().await {
                match message {
                    ChannelMsg::Success => {
                        let _ = write.eof().await;
                    }
                    ChannelMsg::ExitStatus { .. } => slot = slot.told(),
                    _ => {}
                }
            }
        }
        drop(read);
        let _ = write.close().await;
        drop(slot);
    };
    let _ = tokio::time::timeout(PRIME_LIMIT, run).await;
}
