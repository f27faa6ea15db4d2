//! What others hold of a node's connection: commands, followed commands, tunnels.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use secrecy::SecretString;
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::channel::Stop;
use super::command::{Ending, converse};
use super::dial::{Dialled, dial};
use super::door::Door;
use super::errors::{FORWARDING, refusal};
use super::hearing::Ear;
use super::held::Held;
use super::hop::HopHandle;
use super::link::{NoChannel, SILENT_AFTER};
use super::pipe::{Inlet, Loss};
use super::relay::Relay;
use super::settings::{Reporter, Settings, Target};
use super::tunnel::{SERVER_BUFFER, Tunnel, TunnelError};
use crate::domain::Source;
use crate::domain::command::{Command, Exit, Output};
use crate::domain::count::things;
use crate::domain::link::LinkError;

/// One login on a node. Clones share it.
#[derive(Clone)]
pub struct Session {
    door: Arc<Door>,
    /// Where the key of the hop before it logs in.
    relay: Option<Arc<Relay>>,
    /// Whether a channel is kept ready: a command without the screen is over before it would be used.
    stays: bool,
    /// Keeps the hop's actor at work for as long as something runs through it.
    _via: Option<HopHandle>,
}

/// Which output bytes came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stream {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
}

/// Bytes of a followed command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// Where they came from.
    pub stream: Stream,
    /// The bytes; lines and characters may be cut anywhere.
    pub bytes: Bytes,
    /// Bytes of either output that were dropped just before these, as nobody took them.
    pub dropped: u64,
}

impl Session {
    /// Connects and logs in. Reports [`Connecting`](crate::domain::link::LinkState::Connecting), `Asking`, `Up` and, for as long as the connection
    /// lives, `Silent` and `Up` again. It never reports `Down`: the caller does, who knows when the next try is.
    ///
    /// # Errors
    /// Names the hop, the stage and what was tried.
    pub async fn connect(
        target: &Target,
        via: Option<HopHandle>,
        settings: &Settings,
        reporter: Arc<dyn Reporter>,
        source: Source,
    ) -> Result<Self, LinkError> {
        let Dialled { link, .. } = dial(target, via.as_ref(), settings, reporter, source).await?;
        Ok(Self {
            door: Arc::new(Door::to(link)),
            relay: None,
            stays: settings.interactive,
            _via: via,
        })
    }

    /// As [`Self::connect`], for a host that only the hop's own key opens: a connection of its own to the hop, and from there the hop's `ssh`.
    ///
    /// # Errors
    /// Names the hop, the stage and what was tried.
    pub async fn relayed(
        target: &Target,
        via: HopHandle,
        limit: Duration,
        reporter: Arc<dyn Reporter>,
        source: Source,
    ) -> Result<Self, LinkError> {
        let held = Arc::new(Held::new(reporter));
        let link = via.another(Arc::clone(&held) as Arc<dyn Reporter>, source).await?;
        let (relay, door) = Relay::start(Arc::new(Door::to(link)), target, limit).await?;
        held.release(source);
        Ok(Self {
            door,
            relay: Some(relay),
            stays: via.interactive(),
            _via: Some(via),
        })
    }

    /// Runs a command and gives what it said, within its limits of time and bytes. What goes over the time is ended on the node as well; so is a
    /// command whose caller goes away.
    pub async fn exec(&self, command: &Command, secret: Option<SecretString>) -> Output {
        let output = exec(&self.door, command, secret).await;
        match output.exit {
            Exit::Code(_) if self.stays => self.door.prepare(),
            Exit::Code(_) | Exit::Signal(_) | Exit::TimedOut | Exit::NotStarted(_) | Exit::Unknown(_) => {}
        }
        output
    }

    /// Starts a command that goes on, and writes what it says to `inlet`. Where its reader falls behind the command is held on the node; bytes that find
    /// no room all the same are dropped and counted. It ends with the [`Follow`].
    ///
    /// # Errors
    /// How it ended, when its script did not begin within the command's time limit.
    pub async fn follow(&self, command: &Command, inlet: Inlet) -> Result<Follow, Exit> {
        follow(&self.door, command, inlet, Some(BESIDE_COMMANDS)).await
    }

    /// As [`Self::follow`], for a stream that yields to one more: where a server allows few session channels at a time, commands come first, then what
    /// [`Self::follow`] follows, then this.
    ///
    /// # Errors
    /// As [`Self::follow`].
    pub async fn follow_last(&self, command: &Command, inlet: Inlet) -> Result<Follow, Exit> {
        follow(&self.door, command, inlet, Some(BESIDE_A_STREAM)).await
    }

    /// A TCP connection made by the node.
    ///
    /// # Errors
    /// Whether the far port refused, the SSH server forbids it or opens no channel, or the connection is gone.
    pub async fn tunnel(&self, host: &str, port: u16) -> Result<Tunnel, TunnelError> {
        let link = &self.door.link;
        let opened = match &self.relay {
            None => link.open_direct(host, port).await,
            Some(relay) => link.open_socket(&relay.socket(host, port).await?).await,
        };
        match opened {
            Ok(channel) => {
                let tunnel = Tunnel::start(channel, Arc::clone(link), SERVER_BUFFER);
                Ok(match &self.relay {
                    None => tunnel,
                    Some(relay) => tunnel.through(Arc::clone(relay)),
                })
            }
            Err(NoChannel::Refused(russh::ChannelOpenFailure::AdministrativelyProhibited, said)) => {
                let said = said.map(|s| format!(" ({s})")).unwrap_or_default();
                Err(TunnelError::Forbidden(format!("{FORWARDING}{said}")))
            }
            Err(NoChannel::Refused(reason, said)) => {
                let said = said.unwrap_or_else(|| refusal(&reason).to_owned());
                Err(match reason {
                    russh::ChannelOpenFailure::ConnectFailed => TunnelError::Refused(said),
                    _ => TunnelError::NoChannel(said),
                })
            }
            Err(NoChannel::NoAnswer) => Err(TunnelError::TimedOut),
            Err(NoChannel::Gone) => Err(TunnelError::Lost(link.closed().await)),
        }
    }

    /// Resolves when the connection is gone, with why.
    pub async fn closed(&self) -> String {
        match &self.relay {
            None => self.door.link.closed().await,
            Some(relay) => tokio::select! {
                why = self.door.link.closed() => why,
                why = relay.closed() => why,
            },
        }
    }

    /// Time since the peer last said anything. It answers every few seconds, asked or not.
    #[must_use]
    pub fn quiet_for(&self) -> Duration {
        self.door.quiet_for()
    }

    /// Says goodbye and ends the connection; what runs on it ends on the node.
    pub async fn close(&self) {
        self.door.link.close().await;
    }
}

/// See [`Session::exec`].
pub(super) async fn exec(door: &Arc<Door>, command: &Command, secret: Option<SecretString>) -> Output {
    let start = Instant::now();
    let (door, command) = (Arc::clone(door), command.clone());
    let unwanted = CancellationToken::new();
    let _caller = unwanted.clone().drop_guard();
    let (tell, told) = oneshot::channel();
    tokio::spawn(async move {
        let mut kept = Kept::new(command.limit.bytes);
        let stop = Stop {
            deadline: Some(start + command.limit.time),
            unwanted: &unwanted,
        };
        let Ending { exit, rest } = converse(&door, &command, secret, &mut kept, stop).await;
        let _ = tell.send(kept.output(exit, start.elapsed()));
        if let Some(rest) = rest {
            rest.end().await;
        }
    });
    match told.await {
        Ok(output) => output,
        Err(_) => Kept::new(0).output(Exit::Unknown("the console is ending".to_owned()), start.elapsed()),
    }
}

/// Session channels that a server must allow at a time for a stream that leaves one to commands.
const BESIDE_COMMANDS: usize = 2;

/// The same for one that leaves another to a stream.
const BESIDE_A_STREAM: usize = 3;

/// See [`Session::follow`]. `needs`: how many session channels the server must allow for it; `None` for a stream on which others rest.
pub(super) async fn follow(
    door: &Arc<Door>,
    command: &Command,
    inlet: Inlet,
    needs: Option<usize>,
) -> Result<Follow, Exit> {
    let yielding = needs.map(|needs| door.link.yielding(needs));
    let limit = command.limit.time;
    let unwanted = yielding
        .as_ref()
        .map_or_else(CancellationToken::new, |y| y.over.child_token());
    let (tell, exit) = watch::channel(None);
    let (began, mut begun) = oneshot::channel();
    let mut follow = Follow {
        exit,
        loss: inlet.loss(),
        end: unwanted.clone().drop_guard(),
    };
    let (way, command) = (Arc::clone(door), command.clone());
    tokio::spawn(async move {
        let mut pipe = inlet.hear(began);
        let stop = Stop {
            deadline: None,
            unwanted: &unwanted,
        };
        let Ending { exit, rest } = converse(&way, &command, None, &mut pipe, stop).await;
        drop(pipe);
        let exit = match rest {
            Some(rest) => rest.end().await.unwrap_or(exit),
            None => exit,
        };
        let yielded = yielding.is_some_and(|y| y.over.is_cancelled());
        let exit = if yielded { too_few(&way) } else { exit };
        tell.send_replace(Some(exit));
    });
    loop {
        match tokio::time::timeout(limit, &mut begun).await {
            Ok(Ok(())) => return Ok(follow),
            // The pipe went without a beginning.
            Ok(Err(_)) => return Err(follow.wait().await),
            // That is no fault of the command's. A peer that stays silent is given up, which ends this.
            Err(_) if door.quiet_for() > SILENT_AFTER => {}
            Err(_) => {
                let why = "the login shell did not run it in time";
                return Err(Exit::NotStarted(format!("{}: {why}", door.name)));
            }
        }
    }
}

/// Why a stream does not run.
fn too_few(door: &Door) -> Exit {
    let allowed = door.link.slots().allowed();
    Exit::NotStarted(format!(
        "{}: its sshd allows {} at a time, and commands come first: see MaxSessions in its sshd_config",
        door.name,
        things(allowed, "session channel")
    ))
}

/// A followed command. It is ended on the node when this goes.
pub struct Follow {
    exit: watch::Receiver<Option<Exit>>,
    loss: Loss,
    end: DropGuard,
}

impl Follow {
    /// Ends the command on the node and waits for its end, at most some seconds.
    pub async fn stop(self) -> Exit {
        let Self { exit, end, .. } = self;
        drop(end);
        ended(exit).await
    }

    /// Waits for the command's own end.
    pub async fn wait(&mut self) -> Exit {
        ended(self.exit.clone()).await
    }

    /// Bytes dropped so far, as nobody took them.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.loss.bytes()
    }
}

async fn ended(mut exit: watch::Receiver<Option<Exit>>) -> Exit {
    let exit = exit.wait_for(Option::is_some).await.ok().and_then(|exit| exit.clone());
    exit.unwrap_or_else(|| Exit::Unknown("the console is ending".to_owned()))
}

/// The first bytes of each output.
struct Kept {
    limit: usize,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    dropped: u64,
}

impl Kept {
    fn new(limit: usize) -> Self {
        Self {
            limit,
            stdout: Vec::new(),
            stderr: Vec::new(),
            dropped: 0,
        }
    }

    fn output(self, exit: Exit, took: Duration) -> Output {
        Output {
            stdout: self.stdout,
            stderr: self.stderr,
            dropped: self.dropped,
            exit,
            took,
        }
    }
}

impl Ear for Kept {
    fn take(&mut self, stream: Stream, bytes: Bytes) {
        let kept = match stream {
            Stream::Out => &mut self.stdout,
            Stream::Err => &mut self.stderr,
        };
        let (keep, drop) = bytes.split_at(bytes.len().min(self.limit.saturating_sub(kept.len())));
        kept.extend_from_slice(keep);
        self.dropped = self.dropped.saturating_add(drop.len() as u64);
    }
}
