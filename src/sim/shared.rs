//! What every task of the cluster holds: the world under its lock, the clock, and the news that something changed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::clock::{Clock, Moment, Pace};
use super::world::World;

/// The cluster as its tasks see it.
pub struct Shared {
    /// The clock.
    pub clock: Clock,
    /// How fast things go.
    pub pace: Pace,
    /// Ends every task.
    pub cancel: CancellationToken,
    /// Counts every task.
    pub tasks: TaskTracker,
    world: Mutex<World>,
    changed: watch::Sender<u64>,
    queues: Mutex<BTreeMap<u64, Arc<Queue>>>,
}

/// Where the requests of one start of the server wait.
pub struct Queue {
    /// Requests that may generate at a time.
    pub places: Semaphore,
    /// When the prompts that came before are read; prompts are read one after the other.
    pub prefill_free: tokio::sync::Mutex<Moment>,
}

impl Shared {
    /// A world of so many nodes that has begun so long ago.
    pub fn new(nodes: usize, pace: Pace, ago: Duration) -> Arc<Self> {
        let clock = Clock::start(ago);
        Arc::new(Self {
            clock,
            pace,
            cancel: CancellationToken::new(),
            tasks: TaskTracker::new(),
            world: Mutex::new(World::new(nodes, pace, clock.calendar())),
            changed: watch::Sender::new(0),
            queues: Mutex::new(BTreeMap::new()),
        })
    }

    /// Looks at the world or changes it, at the moment it is. The lock is held for that alone.
    pub fn with<R>(&self, act: impl FnOnce(&mut World, Moment) -> R) -> R {
        let mut world = self.world.lock().unwrap_or_else(PoisonError::into_inner);
        // Read under the lock, so that time never runs backwards between two who look.
        let now = self.clock.now();
        act(&mut world, now)
    }

    /// The same for a change that others wait for: it wakes them.
    pub fn change<R>(&self, act: impl FnOnce(&mut World, Moment) -> R) -> R {
        let result = self.with(act);
        self.changed.send_modify(|n| *n = n.wrapping_add(1));
        result
    }

    /// Tells of changes.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Waits until a moment comes, or something changes, or the cluster ends.
    pub async fn until(&self, at: Option<Moment>, changes: &mut watch::Receiver<u64>) {
        let timer = async {
            match at {
                Some(at) => tokio::time::sleep_until(self.clock.instant(at)).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = timer => {}
            _ = changes.changed() => {}
            () = self.cancel.cancelled() => {}
        }
    }

    /// The queue of a start of the server, with so many places.
    pub fn queue(&self, number: u64, places: u32) -> Arc<Queue> {
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        // Only the newest start can take requests; what is left of others belongs to requests that hold it.
        queues.retain(|n, _| *n >= number);
        let queue = queues.entry(number).or_insert_with(|| {
            Arc::new(Queue {
                places: Semaphore::new(usize::try_from(places).unwrap_or(1)),
                prefill_free: tokio::sync::Mutex::new(Moment::ZERO),
            })
        });
        Arc::clone(queue)
    }
}
