//! The way of every event into the one queue.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use tokio::sync::mpsc;

use crate::domain::event::{Event, EventKind};
use crate::domain::time::millis;
use crate::domain::{Now, RunId, Source, Stamp, Wall};

/// Events that wait for the loop. Who sends a transition waits for room; who sends something that a newer one replaces does not.
pub const QUEUE: usize = 1024;

/// First run id of the actors' own commands; the model counts its own from zero.
const ACTOR_RUNS: u64 = 1 << 32;

/// The console's clock. Only shells hold one.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    base: Instant,
    wall: Wall,
}

impl Clock {
    /// Starts now.
    #[must_use]
    pub fn start() -> Self {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, millis);
        Self {
            base: Instant::now(),
            wall: Wall(wall),
        }
    }

    /// The time now. The wall clock is the start's plus what has passed: a stepped clock does not reorder events.
    #[must_use]
    pub fn now(&self) -> Now {
        let passed = self.base.elapsed();
        Now {
            stamp: Stamp::START.plus(passed),
            wall: Wall(self.wall.0.saturating_add(millis(passed))),
        }
    }
}

/// Sends events; cheap to clone.
#[derive(Debug, Clone)]
pub struct Feed {
    queue: mpsc::Sender<Event>,
    clock: Clock,
    runs: Arc<AtomicU64>,
}

impl Feed {
    /// A feed and the receiving end of its queue.
    #[must_use]
    pub fn new(clock: Clock) -> (Self, mpsc::Receiver<Event>) {
        let (queue, events) = mpsc::channel(QUEUE);
        (
            Self {
                queue,
                clock,
                runs: Arc::new(AtomicU64::new(ACTOR_RUNS)),
            },
            events,
        )
    }

    /// The time now.
    #[must_use]
    pub fn now(&self) -> Now {
        self.clock.now()
    }

    /// A run id that no other command has.
    #[must_use]
    pub fn next_run(&self) -> RunId {
        RunId(self.runs.fetch_add(1, Ordering::Relaxed))
    }

    /// Queues an event, waiting for room. When the loop has ended there is nobody to tell.
    pub async fn send(&self, source: Source, kind: EventKind) {
        self.send_at(source, self.now(), kind).await;
    }

    /// As [`Feed::send`], for something that was so at `at`: a probe's facts are as old as the question.
    pub async fn send_at(&self, source: Source, at: Now, kind: EventKind) {
        let _ended = self.queue.send(Event { source, at, kind }).await;
    }

    /// Queues an event if there is room; for what the next one of its kind replaces. Says whether it went in.
    pub fn offer(&self, source: Source, kind: EventKind) -> bool {
        self.queue
            .try_send(Event {
                source,
                at: self.now(),
                kind,
            })
            .is_ok()
    }
}
