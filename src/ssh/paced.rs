//! Reading a busy TCP connection in few large pieces.
//!
//! A log that is printed line by line comes as one small packet a line, and waking up for each of them costs far more than what is done with it. So a
//! connection that keeps bringing small pieces is watched no more: it is looked at every few milliseconds, and what has come meanwhile is read at once.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep};

/// The rest between two looks. It comes on top of the answer to what is asked while the connection is busy.
const REST: Duration = Duration::from_millis(2);

/// Behind a piece of this size the next one is read at once.
const LARGE: usize = 64 << 10;

/// A look that finds less than this ends the busy time.
const SMALL: usize = 1 << 10;

/// So many pieces within [`SPAN`] that are not [`LARGE`] make a connection a busy one.
const MANY: u32 = 20;

/// See [`MANY`].
const SPAN: Duration = Duration::from_millis(10);

/// When a connection is busy.
#[derive(Debug)]
struct Pace {
    busy: bool,
    /// Pieces that are not large since `since`.
    pieces: u32,
    since: Instant,
}

impl Pace {
    fn new(now: Instant) -> Self {
        Self {
            busy: false,
            pieces: 0,
            since: now,
        }
    }

    /// So many bytes were read, after a rest or not. Says whether the next read is to rest.
    fn rests_after(&mut self, bytes: usize, rested: bool, now: impl FnOnce() -> Instant) -> bool {
        let over = self.busy && rested && bytes < SMALL;
        if bytes >= LARGE {
            return false;
        }
        if over || !self.busy {
            let now = now();
            if over {
                *self = Self::new(now);
            }
            if now.duration_since(self.since) > SPAN {
                *self = Self::new(now);
            }
            self.pieces += 1;
            self.busy = self.pieces > MANY;
        }
        self.busy
    }
}

/// The socket, and who tells what happens on it.
enum Socket {
    /// The runtime, at once.
    Watched(TcpStream),
    /// Nobody: it is looked at now and then.
    Unwatched(std::net::TcpStream),
    /// It could not be handed over.
    Lost,
}

/// A TCP connection that is read in large pieces while it is busy.
pub(super) struct Paced {
    socket: Socket,
    pace: Pace,
    /// Whether the next look waits for `rest`.
    resting: bool,
    rest: Pin<Box<Sleep>>,
    /// Ends the wait for room to write, while nobody watches.
    room: Pin<Box<Sleep>>,
}

impl Paced {
    pub(super) fn new(stream: TcpStream) -> Self {
        Self {
            socket: Socket::Watched(stream),
            pace: Pace::new(Instant::now()),
            resting: false,
            rest: Box::pin(tokio::time::sleep(Duration::ZERO)),
            room: Box::pin(tokio::time::sleep(Duration::ZERO)),
        }
    }

    fn unwatch(&mut self) -> io::Result<()> {
        self.socket = match std::mem::replace(&mut self.socket, Socket::Lost) {
            Socket::Watched(stream) => Socket::Unwatched(stream.into_std()?),
            other => other,
        };
        Ok(())
    }

    fn watch(&mut self) -> io::Result<()> {
        self.socket = match std::mem::replace(&mut self.socket, Socket::Lost) {
            Socket::Unwatched(stream) => Socket::Watched(TcpStream::from_std(stream)?),
            other => other,
        };
        Ok(())
    }
}

fn lost<T>() -> Poll<io::Result<T>> {
    Poll::Ready(Err(io::ErrorKind::NotConnected.into()))
}

impl AsyncRead for Paced {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let rested = std::mem::take(&mut this.resting);
        if rested && this.rest.as_mut().poll(cx).is_pending() {
            this.resting = true;
            return Poll::Pending;
        }
        let before = buf.filled().len();
        if let Socket::Unwatched(socket) = &mut this.socket {
            let read = loop {
                match socket.read(buf.initialize_unfilled()) {
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                    read => break read,
                }
            };
            match read {
                Ok(n) => buf.advance(n),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    // Whoever waits to write must wait with the runtime again.
                    cx.waker().wake_by_ref();
                    this.watch()?;
                    this.pace = Pace::new(Instant::now());
                }
                Err(e) => return Poll::Ready(Err(e)),
            }
        }
        match &mut this.socket {
            Socket::Watched(stream) => ready!(Pin::new(stream).poll_read(cx, buf))?,
            Socket::Unwatched(_) => {}
            Socket::Lost => return lost(),
        }
        let bytes = buf.filled().len().saturating_sub(before);
        if bytes > 0 && this.pace.rests_after(bytes, rested, Instant::now) {
            this.unwatch()?;
            this.resting = true;
            this.rest.as_mut().reset(Instant::now() + REST);
        } else if !this.pace.busy {
            this.watch()?;
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Paced {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        match &mut this.socket {
            Socket::Watched(stream) => Pin::new(stream).poll_write(cx, buf),
            Socket::Unwatched(socket) => loop {
                match socket.write(buf) {
                    Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                    Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                        this.room.as_mut().reset(Instant::now() + REST);
                        // A timer that is over by now has no waker yet.
                        ready!(this.room.as_mut().poll(cx));
                    }
                    written => return Poll::Ready(written),
                }
            },
            Socket::Lost => lost(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.socket {
            Socket::Watched(stream) => Pin::new(stream).poll_shutdown(cx),
            Socket::Unwatched(socket) => Poll::Ready(socket.shutdown(Shutdown::Write)),
            Socket::Lost => lost(),
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    #[test]
    fn small_pieces_one_after_the_other_make_it_busy_and_few_bytes_end_that() {
        let start = Instant::now();
        let now = || start;
        let mut pace = Pace::new(start);
        for _ in 0..MANY {
            assert!(!pace.rests_after(100, false, now));
        }
        assert!(pace.rests_after(100, false, now));
        assert!(pace.rests_after(SMALL, true, now), "there was much to read");
        assert!(!pace.rests_after(LARGE, true, now), "there is more to read");
        assert!(pace.rests_after(100, false, now), "that was the rest of it");
        assert!(!pace.rests_after(SMALL - 1, true, now), "a look found little");
        assert!(!pace.busy);
    }

    #[test]
    fn what_comes_now_and_then_or_in_large_pieces_never_rests() {
        let start = Instant::now();
        let mut pace = Pace::new(start);
        for n in 0..100 {
            assert!(!pace.rests_after(100, false, || start + Duration::from_millis(n)));
        }
        for _ in 0..1000 {
            assert!(!pace.rests_after(LARGE, false, || start));
        }
    }

    async fn pair() -> (Paced, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        (Paced::new(stream), listener.accept().await.unwrap().0)
    }

    /// Reads until so much has come, and says whether nobody watched it at any time.
    async fn read(paced: &mut Paced, all: usize) -> (Vec<u8>, bool) {
        let (mut got, mut unwatched) = (Vec::new(), false);
        let mut piece = vec![0; 512];
        while got.len() < all {
            let n = paced.read(&mut piece).await.unwrap();
            assert!(n > 0, "the end after {} bytes", got.len());
            got.extend_from_slice(&piece[..n]);
            unwatched |= matches!(paced.socket, Socket::Unwatched(_));
        }
        (got, unwatched)
    }

    #[tokio::test]
    async fn no_byte_is_lost_while_it_is_watched_and_while_it_is_not() {
        let (mut paced, mut far) = pair().await;
        let text: Vec<u8> = (0..300_000_u32).map(|n| u8::try_from(n % 251).unwrap()).collect();
        far.write_all(&text).await.unwrap();
        let (got, unwatched) = read(&mut paced, text.len()).await;
        assert_eq!(got, text);
        assert!(unwatched, "small pieces without a pause");
        // It calms down: the next word is not waited for by looking.
        far.write_all(b"word").await.unwrap();
        assert_eq!(read(&mut paced, 4).await.0, b"word");
        assert!(matches!(paced.socket, Socket::Watched(_)));
        drop(far);
        assert_eq!(paced.read(&mut [0; 8]).await.unwrap(), 0);
    }

    #[tokio::test]
    async fn a_busy_connection_writes_more_than_there_is_room_for() {
        let (mut paced, mut far) = pair().await;
        far.write_all(&[b'x'; 20_000]).await.unwrap();
        while !matches!(paced.socket, Socket::Unwatched(_)) {
            read(&mut paced, 1).await;
        }
        let text = vec![b'y'; 8 << 20];
        let reading = async {
            let mut got = vec![0; text.len()];
            far.read_exact(&mut got).await.unwrap();
            got
        };
        let (written, got) = tokio::join!(paced.write_all(&text), reading);
        written.unwrap();
        assert!(got == text);
        paced.shutdown().await.unwrap();
        assert_eq!(far.read(&mut [0; 8]).await.unwrap(), 0);
    }
}
