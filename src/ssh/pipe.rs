//! The bytes of a followed command on their way to whoever reads them.
//!
//! The connection never waits for a reader: a node's readings and commands share it, and the SSH library opens a channel's window as soon as its bytes
//! have come. So the reader's end says when enough is waiting, the command is held on the node until most of that was read, and what comes while the
//! hold takes effect still finds room. Only what does not is dropped, and counted.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::{Bytes, BytesMut};
use tokio::sync::{Notify, oneshot, watch};

use super::hearing::Ear;
use super::session::{Chunk, Stream};

/// Bytes that wait from which on the command is held on the node.
pub const HOLD_AT: usize = 1 << 20;

/// Bytes that wait at which it goes on.
const GO_AT: usize = 256 << 10;

/// Most bytes that wait. From [`HOLD_AT`] to here there is room for the two mebibytes that a channel's window lets under way, and for what is printed
/// before the node has heard of the hold.
pub const MOST: usize = 8 << 20;

/// Small pieces of one output are joined up to this many bytes; larger ones are handed on as they came.
const JOINED: usize = 16 << 10;

/// A pipe for one followed command: the end that its connection writes to, and the one to read.
#[must_use]
pub fn pipe() -> (Inlet, Chunks) {
    let shared = Arc::new(Shared {
        state: Mutex::default(),
        more: Notify::new(),
        held: watch::Sender::new(false),
    });
    (Inlet(Arc::clone(&shared)), Chunks(shared))
}

/// The end that a connection writes to.
pub struct Inlet(Arc<Shared>);

/// The end to read.
pub struct Chunks(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    more: Notify,
    /// Whether the command is to be held.
    held: watch::Sender<bool>,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Piece>,
    /// What they take, with what each costs beside its bytes.
    cost: usize,
    /// Bytes dropped since the last piece that found room.
    gap: u64,
    /// Bytes dropped in all.
    dropped: u64,
    no_writer: bool,
    no_reader: bool,
}

struct Piece {
    stream: Stream,
    dropped: u64,
    bytes: Held,
}

enum Held {
    /// As it came.
    Whole(Bytes),
    /// Small ones, joined.
    Joined(BytesMut),
}

impl Piece {
    fn new(stream: Stream, bytes: Bytes, dropped: u64) -> Self {
        let bytes = match bytes.len() > JOINED / 2 {
            true => Held::Whole(bytes),
            false => Held::Joined(BytesMut::from(bytes.as_ref())),
        };
        Self { stream, dropped, bytes }
    }

    /// Takes these bytes too, where they are of the same output and few.
    fn join(&mut self, stream: Stream, bytes: &[u8]) -> bool {
        match &mut self.bytes {
            Held::Joined(joined) if self.stream == stream && joined.len() + bytes.len() <= JOINED => {
                joined.extend_from_slice(bytes);
                true
            }
            Held::Joined(_) | Held::Whole(_) => false,
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes dropped in all.
    pub(super) fn dropped(&self) -> u64 {
        self.state().dropped
    }

    fn hold(&self, held: bool) {
        self.held.send_if_modified(|was| std::mem::replace(was, held) != held);
    }
}

impl Inlet {
    /// Tells later how many bytes were dropped.
    pub(super) fn loss(&self) -> Loss {
        Loss(Arc::clone(&self.0))
    }

    /// Takes what a command says; `began` is told when its script begins.
    pub(super) fn hear(self, began: oneshot::Sender<()>) -> Pipe {
        Pipe {
            inlet: self,
            began: Some(began),
            fresh: false,
        }
    }

    fn take(&self, stream: Stream, bytes: Bytes) {
        let mut state = self.0.state();
        let cost = bytes.len() + size_of::<Piece>();
        if state.no_reader || state.cost + cost > MOST {
            let lost = bytes.len() as u64;
            state.gap = state.gap.saturating_add(lost);
            state.dropped = state.dropped.saturating_add(lost);
            return;
        }
        let dropped = std::mem::take(&mut state.gap);
        let last = state.waiting.back_mut().filter(|_| dropped == 0);
        if last.is_some_and(|last| last.join(stream, &bytes)) {
            state.cost += bytes.len();
        } else {
            state.cost += cost;
            state.waiting.push_back(Piece::new(stream, bytes, dropped));
        }
        if state.cost >= HOLD_AT {
            self.0.hold(true);
        }
    }
}

impl Drop for Inlet {
    fn drop(&mut self) {
        self.0.state().no_writer = true;
        self.0.more.notify_one();
    }
}

/// Tells how many bytes were dropped.
pub(super) struct Loss(Arc<Shared>);

impl Loss {
    pub(super) fn bytes(&self) -> u64 {
        self.0.dropped()
    }
}

impl Chunks {
    /// The next bytes; `None` when the command has ended and all was read. Nothing is lost where the future is dropped.
    pub async fn recv(&mut self) -> Option<Chunk> {
        // A log that floods always has something waiting: others of the same task get their turn all the same.
        tokio::task::consume_budget().await;
        loop {
            if let Some(chunk) = self.try_recv() {
                return Some(chunk);
            }
            if self.0.state().no_writer {
                return self.try_recv();
            }
            self.0.more.notified().await;
        }
    }

    /// What waits, if anything does.
    pub fn try_recv(&mut self) -> Option<Chunk> {
        let mut state = self.0.state();
        let Piece { stream, dropped, bytes } = state.waiting.pop_front()?;
        let bytes = match bytes {
            Held::Whole(bytes) => bytes,
            Held::Joined(bytes) => bytes.freeze(),
        };
        state.cost = state.cost.saturating_sub(bytes.len() + size_of::<Piece>());
        if state.cost <= GO_AT {
            self.0.hold(false);
        }
        Some(Chunk { stream, bytes, dropped })
    }

    /// Whether the command is held on the node until more was read.
    #[must_use]
    pub fn held(&self) -> bool {
        *self.0.held.borrow()
    }

    /// Bytes that wait here, with what keeping them costs; at most [`MOST`].
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.0.state().cost
    }
}

impl Drop for Chunks {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.no_reader = true;
        state.waiting.clear();
        state.cost = 0;
        drop(state);
        self.0.hold(false);
    }
}

/// Hands on what a command says.
pub(super) struct Pipe {
    inlet: Inlet,
    began: Option<oneshot::Sender<()>>,
    /// Something came of which the reader was not told.
    fresh: bool,
}

impl Ear for Pipe {
    fn began(&mut self) {
        if let Some(began) = self.began.take() {
            let _ = began.send(());
        }
    }

    fn take(&mut self, stream: Stream, bytes: Bytes) {
        if !bytes.is_empty() {
            self.inlet.take(stream, bytes);
            self.fresh = true;
        }
    }

    fn pause(&mut self) {
        if std::mem::take(&mut self.fresh) {
            self.inlet.0.more.notify_one();
        }
    }

    fn hold(&self) -> Option<watch::Receiver<bool>> {
        Some(self.inlet.0.held.subscribe())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drain(chunks: &mut Chunks) -> Vec<Chunk> {
        std::iter::from_fn(|| chunks.try_recv()).collect()
    }

    #[test]
    fn small_pieces_are_joined_and_none_overtakes_another() {
        let (inlet, mut chunks) = pipe();
        let mut said: Vec<(Stream, Vec<u8>)> = Vec::new();
        for (n, length) in [1, 100, JOINED, 3, JOINED / 2, JOINED / 2, 7, JOINED / 2 + 1, 2]
            .into_iter()
            .enumerate()
        {
            for stream in [Stream::Out, Stream::Out, Stream::Err] {
                let piece = vec![b'a' + u8::try_from(n).unwrap(); length];
                inlet.take(stream, piece.clone().into());
                match said.last_mut() {
                    Some((last, text)) if *last == stream => text.extend(piece),
                    _ => said.push((stream, piece)),
                }
            }
        }
        let heard = drain(&mut chunks);
        assert!(heard.len() < 30, "{} chunks", heard.len());
        let mut joined: Vec<(Stream, Vec<u8>)> = Vec::new();
        for chunk in heard {
            assert!(chunk.bytes.len() <= JOINED, "{}", chunk.bytes.len());
            match joined.last_mut() {
                Some((last, text)) if *last == chunk.stream => text.extend(&chunk.bytes),
                _ => joined.push((chunk.stream, chunk.bytes.to_vec())),
            }
        }
        assert_eq!(joined, said);
        assert_eq!(chunks.waiting(), 0);
    }

    #[test]
    fn a_command_is_held_while_much_waits_and_only_what_finds_no_room_is_dropped() {
        let (inlet, mut chunks) = pipe();
        let loss = inlet.loss();
        let piece = Bytes::from(vec![b'x'; 32 << 10]);
        let mut taken = 0;
        while loss.bytes() == 0 {
            assert_eq!(chunks.held(), chunks.waiting() >= HOLD_AT);
            inlet.take(Stream::Out, piece.clone());
            assert!(chunks.waiting() <= MOST);
            taken += 1;
        }
        inlet.take(Stream::Err, piece.clone());
        assert_eq!(loss.bytes(), 64 << 10);
        // What comes after it tells of it, and is not joined to what came before.
        assert_eq!(chunks.try_recv().unwrap().dropped, 0);
        inlet.take(Stream::Out, Bytes::from_static(b"after"));
        let mut rest = Vec::new();
        while let Some(chunk) = chunks.try_recv() {
            assert_eq!(chunks.held(), chunks.waiting() > GO_AT);
            rest.push(chunk);
        }
        let last = rest.pop().unwrap();
        assert_eq!((last.bytes.as_ref(), last.dropped), (b"after".as_ref(), 64 << 10));
        assert_eq!(rest.len(), taken - 2);
        assert!(rest.iter().all(|c| c.dropped == 0));
    }

    #[tokio::test]
    async fn the_reader_is_told_what_came_and_of_the_end() {
        let (inlet, mut chunks) = pipe();
        let mut pipe = inlet.hear(oneshot::channel().0);
        let speak = async {
            pipe.take(Stream::Out, Bytes::from_static(b"one"));
            pipe.pause();
            tokio::task::yield_now().await;
            pipe.take(Stream::Err, Bytes::from_static(b"two"));
            drop(pipe);
        };
        let hear = async {
            let mut heard = Vec::new();
            while let Some(chunk) = chunks.recv().await {
                heard.push(chunk.bytes);
            }
            heard
        };
        assert_eq!(tokio::join!(speak, hear).1, ["one", "two"]);
    }

    #[test]
    fn what_nobody_reads_any_more_is_dropped_and_holds_nothing() {
        let (inlet, chunks) = pipe();
        let held = inlet.0.held.subscribe();
        let loss = inlet.loss();
        inlet.take(Stream::Out, vec![b'x'; HOLD_AT].into());
        assert!(*held.borrow());
        drop(chunks);
        assert!(!*held.borrow());
        inlet.take(Stream::Out, vec![b'x'; HOLD_AT].into());
        assert!(!*held.borrow());
        assert_eq!(loss.bytes(), HOLD_AT as u64);
    }
}
