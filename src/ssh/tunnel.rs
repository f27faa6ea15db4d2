//! A TCP connection made by the far side, as a byte stream.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use russh::client::Msg;
use russh::{Channel, ChannelMsg, ChannelReadHalf, ChannelWriteHalf};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::link::Link;
use super::relay::Relay;

/// Bytes held for the reader of a tunnel to a server. One that falls behind by more loses the tunnel: it would stall the whole connection.
pub(super) const SERVER_BUFFER: usize = 8 << 20;

/// Bytes held for a connection that runs through a hop. Its peers send no more than their channels' windows, so an honest one never fills it.
pub(super) const HOP_BUFFER: usize = 64 << 20;

/// Why there is no tunnel.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TunnelError {
    /// The far side could not connect: nothing listens there, or no route leads to it.
    #[error("refused: {0}")]
    Refused(String),
    /// The SSH server's policy forbids it.
    #[error("the SSH server forbids forwarding: {0}")]
    Forbidden(String),
    /// The SSH server opened no channel, for a reason of its own: it never tried to connect.
    #[error("the SSH server opened no channel: {0}")]
    NoChannel(String),
    /// No answer in time.
    #[error("no connection in time")]
    TimedOut,
    /// The SSH connection is gone.
    #[error("the SSH connection is gone: {0}")]
    Lost(String),
}

/// A byte stream to a port behind a host. It keeps its SSH connection.
pub struct Tunnel {
    incoming: mpsc::UnboundedReceiver<Bytes>,
    current: Bytes,
    /// Bytes in `incoming`: it is bounded by these.
    held: Arc<AtomicUsize>,
    overrun: Arc<AtomicBool>,
    /// The `ssh` in between, until the first byte came: while it lives, an end without a byte means that nobody listens.
    unheard: Option<Arc<Relay>>,
    writer: Pin<Box<dyn AsyncWrite + Send + Sync>>,
    _end: DropGuard,
}

impl Tunnel {
    pub(super) fn start(channel: Channel<Msg>, link: Arc<Link>, limit: usize) -> Self {
        let (read, write) = channel.split();
        let (sender, incoming) = mpsc::unbounded_channel();
        let (held, overrun) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let end = CancellationToken::new();
        let writer = Box::pin(write.make_writer());
        let pump = Pump {
            sender,
            held: Arc::clone(&held),
            overrun: Arc::clone(&overrun),
            limit,
            _link: link,
        };
        tokio::spawn(pump.run(read, write, end.clone()));
        Self {
            incoming,
            current: Bytes::new(),
            held,
            overrun,
            unheard: None,
            writer,
            _end: end.drop_guard(),
        }
    }

    /// A tunnel through the hop's `ssh`, which takes every connection and closes those that it can't pass on: an end before the first byte is
    /// [`io::ErrorKind::ConnectionRefused`].
    pub(super) fn through(mut self, relay: Arc<Relay>) -> Self {
        self.unheard = Some(relay);
        self
    }
}

/// Reads the channel without pause.
struct Pump {
    sender: mpsc::UnboundedSender<Bytes>,
    held: Arc<AtomicUsize>,
    overrun: Arc<AtomicBool>,
    limit: usize,
    _link: Arc<Link>,
}

impl Pump {
    async fn run(self, mut read: ChannelReadHalf, write: ChannelWriteHalf<Msg>, end: CancellationToken) {
        loop {
            let message = tokio::select! {
                message = read.wait() => message,
                () = end.cancelled() => break,
            };
            match message {
                // An empty read would look like the end to the reader.
                Some(ChannelMsg::Data { data }) if data.is_empty() => {}
                Some(ChannelMsg::Data { data }) => {
                    if self.held.fetch_add(data.len(), Ordering::Relaxed) + data.len() > self.limit {
                        self.overrun.store(true, Ordering::Relaxed);
                        break;
                    }
                    if self.sender.send(data).is_err() {
                        break;
                    }
                }
                Some(ChannelMsg::Eof) => {
                    // The reader sees the end; the writer may still have something to say.
                    drop(self.sender);
                    drain(&mut read, &end).await;
                    break;
                }
                Some(ChannelMsg::Close) | None => break,
                Some(_) => {}
            }
        }
        // The connection's loop waits for a reader that is there and does not read.
        drop(read);
        let _ = write.close().await;
    }
}

async fn drain(read: &mut ChannelReadHalf, end: &CancellationToken) {
    loop {
        tokio::select! {
            message = read.wait() => if matches!(message, Some(ChannelMsg::Close) | None) { return },
            () = end.cancelled() => return,
        }
    }
}

impl AsyncRead for Tunnel {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.current.is_empty() {
            match ready!(self.incoming.poll_recv(cx)) {
                Some(bytes) => {
                    self.held.fetch_sub(bytes.len(), Ordering::Relaxed);
                    self.current = bytes;
                    self.unheard = None;
                }
                None if self.overrun.load(Ordering::Relaxed) => {
                    return Poll::Ready(Err(io::Error::other("the reader of the tunnel fell too far behind")));
                }
                None => {
                    return Poll::Ready(match &self.unheard {
                        None => Ok(()),
                        Some(relay) if relay.lives() => Err(io::ErrorKind::ConnectionRefused.into()),
                        Some(_) => Err(io::Error::other("the way to the host is gone")),
                    });
                }
            }
        }
        let n = self.current.len().min(buf.remaining());
        buf.put_slice(self.current.get(..n).unwrap_or_default());
        self.current.advance(n);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Tunnel {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        if buf.is_empty() {
            return Poll::Ready(Ok(0));
        }
        self.writer.as_mut().poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.writer.as_mut().poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.writer.as_mut().poll_shutdown(cx)
    }
}
