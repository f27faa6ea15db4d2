//! An SSH server in this process: a jump host or a node. What it is asked to execute runs under this machine's own /bin/sh, so that the wrapper is
//! the real one; what is behind a jump host is reached without any socket.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io;
use std::pin::Pin;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use russh::keys::{Algorithm, PrivateKey, PublicKey};
use russh::server::{
    Auth, ChannelOpenHandle, Config, Handler, Msg, PublicKeyOffer, Response, Session, VerifiedPublicKey,
};
use russh::{Channel, ChannelId, ChannelMsg, ChannelOpenFailure, MethodKind, MethodSet};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use crate::processes::MARK;

/// A fresh key.
pub fn key(algorithm: Algorithm) -> PrivateKey {
    PrivateKey::random(&mut russh::keys::key::safe_rng(), algorithm).unwrap()
}

/// How a server lets people in.
#[derive(Clone, Default)]
pub struct Door {
    /// What it names at first; a key only, where nothing is said.
    pub methods: Vec<MethodKind>,
    /// What it wants after the first method that was right.
    pub then: Vec<MethodKind>,
    /// Its questions, round by round.
    pub rounds: Vec<Round>,
    pub password: &'static str,
}

/// Questions that are asked at once.
#[derive(Clone, Default)]
pub struct Round {
    pub words: &'static str,
    /// Texts, and whether the answers may be seen.
    pub prompts: Vec<(String, bool)>,
    /// The right answers.
    pub answers: Vec<&'static str>,
}

/// A server's state; tests change it while it runs.
pub struct Server {
    pub host_keys: Vec<PrivateKey>,
    pub accepts: Vec<PublicKey>,
    /// Run by the login shell before the command.
    pub login: Mutex<String>,
    /// Session channels that may be open at a time.
    pub max_sessions: AtomicUsize,
    /// Connections to drop before the handshake.
    pub drop_first: AtomicUsize,
    /// Whether exec requests are refused.
    pub refuse_exec: AtomicBool,
    /// Hosts behind this one.
    pub behind: Mutex<HashMap<(String, u16), Arc<Self>>>,
    /// By which a test finds the processes that were started here.
    pub mark: String,
    pub connections: AtomicUsize,
    /// Lines of nothing that came on standard inputs.
    pub heartbeats: AtomicUsize,
    /// Whether only a key exchange of the last century is offered.
    pub old: AtomicBool,
    pub keys_offered: AtomicUsize,
    /// Logins to hang up on when the first key is offered.
    pub hang_up_on_offer: AtomicUsize,
    /// Whether it is too short of resources for tunnels.
    pub refuse_tunnels: AtomicBool,
    /// Refused keys after which it says goodbye.
    pub max_tries: AtomicUsize,
    pub door: Mutex<Door>,
    /// Answers and passwords that came.
    pub given: Mutex<Vec<String>>,
    /// Until this changes, channels are neither confirmed nor refused.
    pub late: Mutex<Option<watch::Receiver<()>>>,
    /// Session channels that were opened.
    pub opened: AtomicUsize,
    /// Session channels that are open.
    pub sessions: AtomicUsize,
    /// Whether a closed session channel counts until one more was refused: OpenSSH's sshd puts channels away after it has answered what came with the close.
    pub slow_to_put_away: AtomicBool,
    closed: AtomicUsize,
    plug: Mutex<Plugged>,
}

#[derive(Clone, Default)]
struct Plugged {
    drop: CancellationToken,
    hang: Arc<AtomicBool>,
}

impl Server {
    pub fn new(accepts: &[&PrivateKey]) -> Arc<Self> {
        Self::with_host_keys(accepts, vec![key(Algorithm::Ed25519)])
    }

    pub fn with_host_keys(accepts: &[&PrivateKey], host_keys: Vec<PrivateKey>) -> Arc<Self> {
        Self::build(accepts.iter().map(|k| k.public_key().clone()).collect(), host_keys)
    }

    pub fn for_keys(accepts: Vec<PublicKey>) -> Arc<Self> {
        Self::build(accepts, vec![key(Algorithm::Ed25519)])
    }

    fn build(accepts: Vec<PublicKey>, host_keys: Vec<PrivateKey>) -> Arc<Self> {
        static SERIAL: AtomicUsize = AtomicUsize::new(0);
        Arc::new(Self {
            host_keys,
            accepts,
            login: Mutex::default(),
            max_sessions: AtomicUsize::new(10),
            drop_first: AtomicUsize::new(0),
            refuse_exec: AtomicBool::new(false),
            behind: Mutex::default(),
            mark: format!(
                "server-{}-{}",
                std::process::id(),
                SERIAL.fetch_add(1, Ordering::Relaxed)
            ),
            connections: AtomicUsize::new(0),
            heartbeats: AtomicUsize::new(0),
            old: AtomicBool::new(false),
            keys_offered: AtomicUsize::new(0),
            hang_up_on_offer: AtomicUsize::new(0),
            max_tries: AtomicUsize::new(100),
            door: Mutex::default(),
            given: Mutex::default(),
            refuse_tunnels: AtomicBool::new(false),
            late: Mutex::default(),
            opened: AtomicUsize::new(0),
            sessions: AtomicUsize::new(0),
            slow_to_put_away: AtomicBool::new(false),
            closed: AtomicUsize::new(0),
            plug: Mutex::default(),
        })
    }

    pub fn host_key(&self) -> PublicKey {
        self.host_keys.first().unwrap().public_key().clone()
    }

    pub fn put_behind(&self, host: &str, port: u16, server: &Arc<Self>) {
        self.behind
            .lock()
            .unwrap()
            .insert((host.to_owned(), port), Arc::clone(server));
    }

    /// Listens on loopback; gives the port.
    pub async fn listen(self: &Arc<Self>) -> u16 {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = Arc::clone(self);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let _ = stream.set_nodelay(true);
                tokio::spawn(Arc::clone(&server).serve(stream));
            }
        });
        port
    }

    /// Drops all connections of now.
    pub fn drop_connections(&self) {
        let old = std::mem::take(&mut *self.plug.lock().unwrap());
        old.drop.cancel();
    }

    /// Answers nothing any more on the connections of now.
    pub fn hang(&self) {
        self.plug.lock().unwrap().hang.store(true, Ordering::Relaxed);
    }

    fn end_session(&self) {
        if self.slow_to_put_away.load(Ordering::Relaxed) {
            self.closed.fetch_add(1, Ordering::Relaxed);
        } else {
            self.sessions.fetch_sub(1, Ordering::Relaxed);
        }
    }

    async fn serve(self: Arc<Self>, stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static) {
        if take_one(&self.drop_first) {
            return;
        }
        self.connections.fetch_add(1, Ordering::Relaxed);
        let mut config = Config {
            keys: self.host_keys.clone(),
            auth_rejection_time: std::time::Duration::ZERO,
            auth_rejection_time_initial: Some(std::time::Duration::ZERO),
            max_auth_attempts: self.max_tries.load(Ordering::Relaxed),
            nodelay: true,
            methods: MethodSet::from(self.methods().as_slice()),
            ..Config::default()
        };
        if self.old.load(Ordering::Relaxed) {
            config.preferred.kex = vec![russh::kex::DH_G1_SHA1].into();
        }
        let plug = self.plug.lock().unwrap().clone();
        let stream = Plug {
            inner: stream,
            drop: Box::pin(plug.drop.clone().cancelled_owned()),
            hang: plug.hang,
        };
        let client = Client {
            server: self,
            gone: plug.drop.child_token(),
            round: 0,
            right: true,
            half_in: false,
        };
        if let Ok(running) = russh::server::run_stream(Arc::new(config), stream, client).await {
            let _ = running.await;
        }
    }

    fn methods(&self) -> Vec<MethodKind> {
        let methods = self.door.lock().unwrap().methods.clone();
        if methods.is_empty() {
            vec![MethodKind::PublicKey]
        } else {
            methods
        }
    }

    async fn execute(self: Arc<Self>, mut channel: Channel<Msg>) {
        let command = loop {
            match channel.wait().await {
                Some(ChannelMsg::Exec { command, .. }) => break String::from_utf8(command).unwrap(),
                Some(_) => {}
                None => return,
            }
        };
        let login = self.login.lock().unwrap().clone();
        let mut child = tokio::process::Command::new("/bin/sh")
            .args(["-c", &format!("{login}\n{command}")])
            .env(MARK, &self.mark)
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take();
        let (mut out, mut err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        let (mut read, write) = channel.split();
        let listen = async {
            while let Some(message) = read.wait().await {
                match (message, &mut stdin) {
                    (ChannelMsg::Data { data }, Some(stdin)) => {
                        if data == "\n" {
                            self.heartbeats.fetch_add(1, Ordering::Relaxed);
                        }
                        let _ = stdin.write_all(&data).await;
                    }
                    (ChannelMsg::Eof | ChannelMsg::Close, _) => stdin = None,
                    _ => {}
                }
            }
            // The connection is gone, or the channel.
            stdin = None;
            std::future::pending::<()>().await;
        };
        let speak = async {
            let stdout = async {
                let mut buffer = vec![0; 32 * 1024];
                while let Ok(n @ 1..) = out.read(&mut buffer).await {
                    if write.data(buffer.get(..n).unwrap()).await.is_err() {
                        break;
                    }
                }
            };
            let stderr = async {
                let mut buffer = vec![0; 32 * 1024];
                while let Ok(n @ 1..) = err.read(&mut buffer).await {
                    if write.extended_data(1, buffer.get(..n).unwrap()).await.is_err() {
                        break;
                    }
                }
            };
            // As sshd does: the status as soon as the process ends, the end of the channel when nobody holds its outputs any more.
            let end = async {
                let status = child.wait().await.unwrap();
                let _ = write
                    .exit_status(status.code().unwrap_or(255).try_into().unwrap_or(255))
                    .await;
            };
            tokio::join!(stdout, stderr, end);
            let _ = write.eof().await;
            let _ = write.close().await;
        };
        tokio::select! { () = listen => {}, () = speak => {} }
    }
}

/// Counts down; false at nought.
fn take_one(left: &AtomicUsize) -> bool {
    left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1))
        .is_ok()
}

/// One connection.
struct Client {
    server: Arc<Server>,
    gone: CancellationToken,
    /// Rounds of questions that were answered, and whether rightly.
    round: usize,
    right: bool,
    /// Whether the first of several methods was right.
    half_in: bool,
}

impl Client {
    /// The end of one method.
    fn judge(&mut self, right: bool) -> Auth {
        let then = self.server.door.lock().unwrap().then.clone();
        let more = right && !self.half_in && !then.is_empty();
        if right && !more {
            return Auth::Accept;
        }
        self.half_in |= more;
        let methods = if self.half_in { then } else { self.server.methods() };
        Auth::Reject {
            proceed_with_methods: Some(MethodSet::from(methods.as_slice())),
            partial_success: more,
        }
    }
}

impl Handler for Client {
    type Error = russh::Error;

    async fn auth_publickey_offered(&mut self, _user: &str, offer: PublicKeyOffer<'_>) -> Result<Auth, Self::Error> {
        self.server.keys_offered.fetch_add(1, Ordering::Relaxed);
        if take_one(&self.server.hang_up_on_offer) {
            self.server.drop_connections();
        }
        let known = self
            .server
            .accepts
            .iter()
            .any(|k| k.key_data() == offer.public_key.key_data());
        let taken = if self.half_in {
            self.server.door.lock().unwrap().then.clone()
        } else {
            self.server.methods()
        };
        Ok(if known && taken.contains(&MethodKind::PublicKey) {
            Auth::Accept
        } else {
            Auth::reject()
        })
    }

    async fn auth_publickey(&mut self, _user: &str, _key: VerifiedPublicKey<'_>) -> Result<Auth, Self::Error> {
        Ok(self.judge(true))
    }

    async fn auth_password(&mut self, _user: &str, password: &str) -> Result<Auth, Self::Error> {
        self.server.given.lock().unwrap().push(password.to_owned());
        let right = self.server.door.lock().unwrap().password == password;
        Ok(self.judge(right))
    }

    async fn auth_keyboard_interactive<'a>(
        &'a mut self,
        _user: &str,
        _submethods: &str,
        response: Option<Response<'a>>,
    ) -> Result<Auth, Self::Error> {
        let rounds = self.server.door.lock().unwrap().rounds.clone();
        match response {
            None => (self.round, self.right) = (0, !rounds.is_empty()),
            Some(response) => {
                let given: Vec<String> = response.map(|b| String::from_utf8(b.to_vec()).unwrap()).collect();
                self.right &= rounds.get(self.round).unwrap().answers == given;
                self.round += 1;
                self.server.given.lock().unwrap().extend(given);
            }
        }
        let Some(round) = rounds.get(self.round) else {
            let right = self.right;
            return Ok(self.judge(right));
        };
        let prompts = round
            .prompts
            .iter()
            .cloned()
            .map(|(text, echo)| (Cow::Owned(text), echo));
        Ok(Auth::Partial {
            name: "".into(),
            instructions: round.words.into(),
            prompts: prompts.collect(),
        })
    }

    async fn channel_open_session(
        &mut self,
        channel: Channel<Msg>,
        reply: ChannelOpenHandle,
        _session: &mut Session,
    ) -> Result<(), Self::Error> {
        let server = Arc::clone(&self.server);
        if server.sessions.fetch_add(1, Ordering::Relaxed) >= server.max_sessions.load(Ordering::Relaxed) {
            let put_away = server.closed.swap(0, Ordering::Relaxed);
            server.sessions.fetch_sub(1 + put_away, Ordering::Relaxed);
            reply.reject(ChannelOpenFailure::ConnectFailed).await;
            return Ok(());
        }
        server.opened.fetch_add(1, Ordering::Relaxed);
        let late = server.late.lock().unwrap().clone();
        if late.is_none() {
            reply.accept().await;
            tokio::spawn(async move {
                Arc::clone(&server).execute(channel).await;
                server.end_session();
            });
            return Ok(());
        }
        tokio::spawn(async move {
            if let Some(mut late) = late {
                // Whoever holds the other end lets it go on.
                let _ = late.changed().await;
            }
            reply.accept().await;
            Arc::clone(&server).execute(channel).await;
            server.end_session();
        });
        Ok(())
    }

    async fn exec_request(
        &mut self,
        channel: ChannelId,
        _data: &[u8],
        session: &mut Session,
    ) -> Result<(), Self::Error> {
        if self.server.refuse_exec.load(Ordering::Relaxed) {
            session.channel_failure(channel)
        } else {
            session.channel_success(channel)
        }
    }

    async fn channel_open_direct_tcpip(
        &mut self,
        channel: Channel<Msg>,
        host: &str,
        port: u32,
        _from: &str,
        _from_port: u32,
        reply: ChannelOpenHandle,
        _session: &mut Session,
    ) -> Result<(), Self::Error> {
        if self.server.refuse_tunnels.load(Ordering::Relaxed) {
            reply.reject(ChannelOpenFailure::ResourceShortage).await;
            return Ok(());
        }
        let port = u16::try_from(port).unwrap();
        let behind = self
            .server
            .behind
            .lock()
            .unwrap()
            .get(&(host.to_owned(), port))
            .cloned();
        if let Some(behind) = behind {
            reply.accept().await;
            tokio::spawn(behind.serve(channel.into_stream()));
            return Ok(());
        }
        let (host, gone) = (host.to_owned(), self.gone.clone());
        tokio::spawn(async move {
            match TcpStream::connect((host.as_str(), port)).await {
                Ok(stream) => {
                    reply.accept().await;
                    tokio::select! { () = join(channel, stream) => {}, () = gone.cancelled() => {} }
                }
                Err(_) => reply.reject(ChannelOpenFailure::ConnectFailed).await,
            }
        });
        Ok(())
    }
}

/// Joins a channel to a connection until both have ended or the client closes the channel.
async fn join(channel: Channel<Msg>, stream: TcpStream) {
    let (mut read, write) = channel.split();
    let (mut from, mut to) = stream.into_split();
    let out = async {
        let mut buffer = vec![0; 32 * 1024];
        while let Ok(n @ 1..) = from.read(&mut buffer).await {
            if write.data(buffer.get(..n).unwrap()).await.is_err() {
                return;
            }
        }
        let _ = write.eof().await;
        std::future::pending::<()>().await;
    };
    let back = async {
        while let Some(message) = read.wait().await {
            match message {
                ChannelMsg::Data { data } => drop(to.write_all(&data).await),
                ChannelMsg::Eof => drop(to.shutdown().await),
                ChannelMsg::Close => return,
                _ => {}
            }
        }
    };
    tokio::select! { () = out => {}, () = back => {} }
    let _ = write.close().await;
}

/// A stream that a test can pull out or let hang.
struct Plug<S> {
    inner: S,
    drop: Pin<Box<WaitForCancellationFutureOwned>>,
    hang: Arc<AtomicBool>,
}

impl<S> Plug<S> {
    fn check(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.drop.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        if self.hang.load(Ordering::Relaxed) {
            Poll::Pending
        } else {
            Poll::Ready(Ok(()))
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Plug<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        std::task::ready!(self.check(cx))?;
        Pin::new(&mut self.inner).poll_read(cx, buf)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Plug<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        std::task::ready!(self.check(cx))?;
        Pin::new(&mut self.inner).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        std::task::ready!(self.check(cx))?;
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}
