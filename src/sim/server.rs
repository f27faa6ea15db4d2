//! The SSH servers: the jump host, and the nodes behind it.
//!
//! A node is reached through the jump's direct-tcpip alone: that channel is the node's own connection, nothing is routed and no socket is opened. Handlers
//! never wait: whatever takes time has a task of its own.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use russh::keys::{PrivateKey, PublicKey};
use russh::server::{
    Auth, ChannelOpenHandle, Config, Handler, Msg, PublicKeyOffer, Session, VerifiedPublicKey, run_stream,
};
use russh::{Channel, ChannelId, ChannelOpenFailure, Disconnect, MethodKind, MethodSet};
use tokio::io::{AsyncRead, AsyncWrite};

use super::http;
use super::session;
use super::shared::Shared;
use super::world::server::Door;

/// Session channels of one connection, as sshd's MaxSessions has it.
const MAX_SESSIONS: usize = 10;

/// Tunnels of one connection; sshd has no such limit, a demo needs one.
const MAX_TUNNELS: usize = 256;

/// How long a connection may take to say goodbye.
const GOODBYE: Duration = Duration::from_millis(500);

/// Who logs in where.
#[derive(Clone)]
pub struct Gate {
    /// The cluster.
    pub shared: Arc<Shared>,
    /// The one key that may log in.
    pub operator: PublicKey,
    /// The jump host's SSH settings.
    pub jump: Arc<Config>,
    /// Each node's.
    pub nodes: Arc<[Arc<Config>]>,
}

/// SSH settings with a host key.
pub fn config(key: PrivateKey) -> Arc<Config> {
    let mut methods = MethodSet::empty();
    methods.push(MethodKind::PublicKey);
    Arc::new(Config {
        methods,
        auth_rejection_time: Duration::ZERO,
        auth_rejection_time_initial: Some(Duration::ZERO),
        keys: vec![key],
        inactivity_timeout: None,
        nodelay: true,
        ..Config::default()
    })
}

/// Serves one connection to the jump host, or to a node behind it, until it ends.
pub async fn connection<S>(gate: Gate, place: Place, stream: S)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let settings = match place {
        Place::Jump => Some(Arc::clone(&gate.jump)),
        Place::Node(n) => gate.nodes.get(n).cloned(),
    };
    let Some(settings) = settings else {
        return;
    };
    let cancel = gate.shared.cancel.clone();
    let handler = Connection {
        gate,
        place,
        sessions: Arc::default(),
        tunnels: Arc::default(),
        waiting: HashMap::new(),
    };
    let running = tokio::select! {
        running = run_stream(settings, stream, handler) => running,
        () = cancel.cancelled() => return,
    };
    let Ok(mut running) = running else {
        return;
    };
    let handle = running.handle();
    tokio::select! {
        _ = &mut running => {}
        () = cancel.cancelled() => {
            let _ = handle.disconnect(Disconnect::ByApplication, "the demo ends".to_owned(), String::new()).await;
            let _ = tokio::time::timeout(GOODBYE, running).await;
        }
    }
}

/// Which host a connection is to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The jump host.
    Jump,
    /// A node, by its index.
    Node(usize),
}

/// Holds one of a limited number of places for as long as it lives.
struct Slot(Arc<AtomicUsize>);

impl Slot {
    fn take(count: &Arc<AtomicUsize>, most: usize) -> Option<Self> {
        let taken = count.fetch_update(Ordering::AcqRel, Ordering::Acquire, |n| (n < most).then_some(n + 1));
        taken.is_ok().then(|| Self(Arc::clone(count)))
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// One connection.
struct Connection {
    gate: Gate,
    place: Place,
    sessions: Arc<AtomicUsize>,
    tunnels: Arc<AtomicUsize>,
    /// Session channels that have been opened and asked for nothing yet.
    waiting: HashMap<ChannelId, (Channel<Msg>, Slot)>,
}

/// What is behind a direct-tcpip request.
enum Target {
    Node(usize),
    Door(Door),
}

impl Connection {
    /// What a tunnel to this address leads to; `None`: nothing listens there.
    fn target(&self, host: &str, port: u32) -> Option<Target> {
        let port = u16::try_from(port).ok()?;
        self.gate.shared.with(|world, now| match self.place {
            Place::Jump => {
                let found = world.hosts.iter().position(|h| h.fabric == host);
                found.filter(|_| port == SSH_PORT).map(Target::Node)
            }
            Place::Node(node) => world.door(node, host, port, now).map(Target::Door),
        })
    }

    fn judge(&self, key: &PublicKey) -> Auth {
        if key.key_data() == self.gate.operator.key_data() {
            Auth::Accept
        } else {
            Auth::reject()
        }
    }
}

/// SSH's port on the nodes.
const SSH_PORT: u16 = 22;

impl Handler for Connection {
    type Error = russh::Error;

    async fn auth_publickey_offered(&mut self, _user: &str, offer: PublicKeyOffer<'_>) -> Result<Auth, Self::Error> {
        Ok(self.judge(offer.public_key))
    }

    async fn auth_publickey(&mut self, _user: &str, key: VerifiedPublicKey<'_>) -> Result<Auth, Self::Error> {
        Ok(self.judge(key.public_key))
    }

    async fn channel_open_session(
        &mut self,
        channel: Channel<Msg>,
        reply: ChannelOpenHandle,
        _session: &mut Session,
    ) -> Result<(), Self::Error> {
        match Slot::take(&self.sessions, MAX_SESSIONS) {
            Some(slot) => {
                self.waiting.insert(channel.id(), (channel, slot));
                reply.accept().await;
            }
            None => reply.reject(ChannelOpenFailure::ConnectFailed).await,
        }
        Ok(())
    }

    async fn channel_open_direct_tcpip(
        &mut self,
        channel: Channel<Msg>,
        host_to_connect: &str,
        port_to_connect: u32,
        _originator_address: &str,
        _originator_port: u32,
        reply: ChannelOpenHandle,
        _session: &mut Session,
    ) -> Result<(), Self::Error> {
        let target = self.target(host_to_connect, port_to_connect);
        let slot = Slot::take(&self.tunnels, MAX_TUNNELS);
        let (Some(target), Some(slot)) = (target, slot) else {
            reply.reject(ChannelOpenFailure::ConnectFailed).await;
            return Ok(());
        };
        reply.accept().await;
        let gate = self.gate.clone();
        self.gate.shared.tasks.spawn(async move {
            let _slot = slot;
            let stream = channel.into_stream();
            match target {
                // Boxed: a connection to a node is served inside one to the jump host.
                Target::Node(node) => Box::pin(connection(gate, Place::Node(node), stream)).await,
                Target::Door(door) => http::serve(Arc::clone(&gate.shared), door, stream).await,
            }
        });
        Ok(())
    }

    async fn exec_request(
        &mut self,
        channel: ChannelId,
        data: &[u8],
        session: &mut Session,
    ) -> Result<(), Self::Error> {
        let Some((own, slot)) = self.waiting.remove(&channel) else {
            return session.channel_failure(channel);
        };
        session.channel_success(channel)?;
        let node = match self.place {
            Place::Jump => None,
            Place::Node(n) => Some(n),
        };
        let (shared, command) = (Arc::clone(&self.gate.shared), data.to_vec());
        self.gate
            .shared
            .tasks
            .spawn(session::run(shared, node, own, command, slot));
        Ok(())
    }

    async fn shell_request(&mut self, channel: ChannelId, session: &mut Session) -> Result<(), Self::Error> {
        session.channel_failure(channel)
    }

    async fn pty_request(
        &mut self,
        channel: ChannelId,
        _term: &str,
        _col_width: u32,
        _row_height: u32,
        _pix_width: u32,
        _pix_height: u32,
        _modes: &[(russh::Pty, u32)],
        session: &mut Session,
    ) -> Result<(), Self::Error> {
        session.channel_failure(channel)
    }

    async fn channel_close(&mut self, channel: ChannelId, _session: &mut Session) -> Result<(), Self::Error> {
        self.waiting.remove(&channel);
        Ok(())
    }
}
