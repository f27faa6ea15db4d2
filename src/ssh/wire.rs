//! The bytes under one SSH connection: when the peer last said anything, and a way to end it that works while the network hangs.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// A byte stream that a connection can run on.
pub(super) trait Bytestream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Bytestream for T {}

/// What is known of a wire from outside.
#[derive(Debug)]
pub(super) struct Pulse {
    start: Instant,
    /// Signs of life so far. Counted and not timed: a clock costs more than the small packets of a busy log.
    signs: AtomicU64,
    /// `signs` at the latest look.
    seen: AtomicU64,
    /// Milliseconds from `start` to the latest look that found a new one.
    heard: AtomicU64,
    cut: CancellationToken,
    why: Mutex<Option<String>>,
}

impl Pulse {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            start: Instant::now(),
            signs: AtomicU64::new(0),
            seen: AtomicU64::new(0),
            heard: AtomicU64::new(0),
            cut: CancellationToken::new(),
            why: Mutex::default(),
        })
    }

    /// Counts as a sign of life.
    pub(super) fn touch(&self) {
        self.signs.fetch_add(1, Ordering::Relaxed);
    }

    /// Time since the peer last said anything, as far as the looks tell: it is too short by the time between two of them at most.
    pub(super) fn quiet_for(&self) -> Duration {
        let signs = self.signs.load(Ordering::Relaxed);
        if self.seen.load(Ordering::Acquire) != signs {
            let now = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX);
            // In this order: whoever looks beside this finds the new sign or its time, never the old time alone.
            self.heard.store(now, Ordering::Relaxed);
            self.seen.store(signs, Ordering::Release);
            return Duration::ZERO;
        }
        let heard = Duration::from_millis(self.heard.load(Ordering::Relaxed));
        self.start.elapsed().saturating_sub(heard)
    }

    /// Says why the connection is about to end. The first reason stays.
    pub(super) fn explain(&self, why: &str) {
        self.why
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get_or_insert_with(|| why.to_owned());
    }

    /// Ends the connection now, whatever it waits on.
    pub(super) fn cut(&self, why: &str) {
        self.explain(why);
        self.cut.cancel();
    }

    /// Why this side ended it.
    pub(super) fn why(&self) -> Option<String> {
        self.why.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Fires when it is cut.
    pub(super) fn token(&self) -> CancellationToken {
        self.cut.clone()
    }
}

/// A byte stream with a pulse.
pub(super) struct Wire {
    inner: Box<dyn Bytestream>,
    pulse: Arc<Pulse>,
    cut: Pin<Box<WaitForCancellationFutureOwned>>,
    /// Reads that gave something since it was looked whether it was cut.
    reads: u32,
}

/// A wire that always has something to read is looked at once in so many reads: the look costs as much as a small packet.
const READS_PER_LOOK: u32 = 64;

impl Wire {
    pub(super) fn new(inner: Box<dyn Bytestream>, pulse: Arc<Pulse>) -> Self {
        let cut = Box::pin(pulse.cut.clone().cancelled_owned());
        Self {
            inner,
            pulse,
            cut,
            reads: 0,
        }
    }

    fn check(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        if self.cut.as_mut().poll(cx).is_ready() {
            return Err(io::Error::new(
                io::ErrorKind::ConnectionAborted,
                "the connection was cut",
            ));
        }
        Ok(())
    }
}

impl AsyncRead for Wire {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let polled = Pin::new(&mut self.inner).poll_read(cx, buf);
        if buf.filled().len() > before {
            self.pulse.touch();
            self.reads += 1;
            if self.reads < READS_PER_LOOK {
                return polled;
            }
        }
        self.reads = 0;
        self.check(cx)?;
        polled
    }
}

impl AsyncWrite for Wire {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.check(cx)?;
        Pin::new(&mut self.inner).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check(cx)?;
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.check(cx).is_err() {
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}
