//! The session channels of one connection, and how many of them the server allows at a time, as far as its refusals tell.
//!
//! A refusal is proof only when nothing of ours may still count on the server: a channel that was closed a moment ago does until the server has put it
//! away, and one that was closed over a command that still ran does until that command is gone. To take less than there is ends streams for nothing.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// Session channels of one connection: below sshd's MaxSessions of ten.
pub(super) const SESSION_CHANNELS: usize = 8;

/// How long a channel may count on the server after it was closed with no word that its command had ended.
pub(super) const UNSURE: Duration = Duration::from_secs(5);

/// The places, and what is known of them.
pub(super) struct Slots {
    free: Arc<Semaphore>,
    /// How many the server is known to allow at most.
    allowed: AtomicUsize,
    /// Requests under way, also those that pause between two tries.
    asking: AtomicUsize,
    ends: Mutex<Ends>,
}

/// A request for a channel that is under way.
pub(super) struct Asking(Arc<Slots>);

impl Drop for Asking {
    fn drop(&mut self) {
        self.0.asking.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Ends of channels so far.
#[derive(Default)]
struct Ends {
    count: u64,
    /// When one ended that may still count on the server.
    unsure: Option<Instant>,
}

/// A place among the session channels of a connection.
pub(super) struct Slot {
    slots: Arc<Slots>,
    state: State,
    _permit: OwnedSemaphorePermit,
}

/// What is known of the channel on a place.
enum State {
    /// The server has not confirmed one.
    None,
    Open,
    /// The server told how its command ended.
    Told,
}

/// The refusals of one request for a channel.
#[derive(Default)]
pub(super) struct Refusals {
    /// Ends that had been before the request that was refused last.
    last: Option<u64>,
}

/// What a refusal means.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// Nothing yet.
    Unproved,
    /// The server allows as many as are taken now. It is worth waiting for one of them.
    Full,
    /// The server opens none, though no other is open.
    Never,
}

impl Default for Slots {
    fn default() -> Self {
        Self {
            free: Arc::new(Semaphore::new(SESSION_CHANNELS)),
            allowed: AtomicUsize::new(SESSION_CHANNELS),
            asking: AtomicUsize::new(0),
            ends: Mutex::default(),
        }
    }
}

impl Slots {
    /// A place; waits for one.
    pub(super) async fn take(self: &Arc<Self>) -> Option<Slot> {
        let permit = Arc::clone(&self.free).acquire_owned().await.ok()?;
        Some(self.slot(permit))
    }

    /// A request begins; it is over when this goes.
    pub(super) fn ask(self: &Arc<Self>) -> Asking {
        self.asking.fetch_add(1, Ordering::Relaxed);
        Asking(Arc::clone(self))
    }

    /// A place, when one is free that nobody asks for: one that is kept for later would keep them waiting for as long as it is kept.
    pub(super) fn spare(self: &Arc<Self>) -> Option<Slot> {
        if self.asking.load(Ordering::Relaxed) > 0 {
            return None;
        }
        let permit = Arc::clone(&self.free).try_acquire_owned().ok()?;
        Some(self.slot(permit))
    }

    fn slot(self: &Arc<Self>, permit: OwnedSemaphorePermit) -> Slot {
        Slot {
            slots: Arc::clone(self),
            state: State::None,
            _permit: permit,
        }
    }

    /// How many there may be at a time, as far as is known.
    pub(super) fn allowed(&self) -> usize {
        self.allowed.load(Ordering::Relaxed)
    }

    /// Channels that have ended so far; to be asked before a request for one.
    pub(super) fn ended(&self) -> u64 {
        self.lock().count
    }

    /// Takes account of a refusal. `before`: what [`Self::ended`] said before the request, whose place is given back by now.
    ///
    /// Two refusals with no end of a channel since before the first of them are proof: the server answers in order, and puts away what was closed before
    /// it reads on after an answer.
    pub(super) fn refused(&self, refusals: &mut Refusals, before: u64) -> Refusal {
        let ends = self.lock();
        let still = before == ends.count;
        let again = refusals.last == Some(before);
        refusals.last = still.then_some(before);
        let sure = ends.unsure.is_none_or(|at| at.elapsed() >= UNSURE);
        if !(still && again && sure) {
            return Refusal::Unproved;
        }
        // What others have asked for counts as taken: it may be confirmed already.
        let free = self.free.available_permits();
        if free >= self.allowed() {
            return Refusal::Never;
        }
        let fewer = self.free.forget_permits(free);
        self.allowed.fetch_sub(fewer, Ordering::Relaxed);
        refusals.last = None;
        Refusal::Full
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Ends> {
        self.ends.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Slot {
    /// The server has confirmed the channel.
    pub(super) fn opened(mut self) -> Self {
        self.state = State::Open;
        self
    }

    /// The server has told how the command on the channel ended, or has been given none.
    pub(super) fn told(mut self) -> Self {
        self.state = State::Told;
        self
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut ends = self.slots.lock();
        match self.state {
            State::None => return,
            State::Open => ends.unsure = Some(Instant::now()),
            State::Told => {}
        }
        ends.count += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn open(slots: &Arc<Slots>) -> Slot {
        slots.take().await.unwrap().opened()
    }

    fn told(slot: Slot) {
        drop(slot.told());
    }

    /// A request that is refused, with what happens while it is under way.
    async fn refused(slots: &Arc<Slots>, refusals: &mut Refusals, meanwhile: impl FnOnce()) -> Refusal {
        let before = slots.ended();
        drop(slots.take().await.unwrap());
        meanwhile();
        slots.refused(refusals, before)
    }

    #[tokio::test]
    async fn two_refusals_with_no_end_between_them_tell_how_many_there_may_be() {
        let slots = Arc::new(Slots::default());
        let _held = [open(&slots).await, open(&slots).await];
        let mut refusals = Refusals::default();
        assert_eq!(refused(&slots, &mut refusals, || {}).await, Refusal::Unproved);
        assert_eq!(slots.allowed(), SESSION_CHANNELS, "one proves nothing");
        assert_eq!(refused(&slots, &mut refusals, || {}).await, Refusal::Full);
        assert_eq!(slots.allowed(), 2);
        assert!(slots.spare().is_none());
    }

    #[tokio::test]
    async fn a_channel_that_ends_makes_the_refusals_before_and_around_it_prove_nothing() {
        let slots = Arc::new(Slots::default());
        let (_stays, first, second) = (open(&slots).await, open(&slots).await, open(&slots).await);
        let mut refusals = Refusals::default();
        assert_eq!(refused(&slots, &mut refusals, || {}).await, Refusal::Unproved);
        told(first);
        assert_eq!(
            refused(&slots, &mut refusals, || {}).await,
            Refusal::Unproved,
            "between them"
        );
        let under_way = refused(&slots, &mut refusals, || told(second)).await;
        assert_eq!(under_way, Refusal::Unproved);
        assert_eq!(refused(&slots, &mut refusals, || {}).await, Refusal::Unproved);
        assert_eq!(slots.allowed(), SESSION_CHANNELS);
        assert_eq!(refused(&slots, &mut refusals, || {}).await, Refusal::Full);
        assert_eq!(slots.allowed(), 1);
    }

    #[tokio::test]
    async fn a_channel_closed_over_its_command_may_count_for_a_while() {
        let slots = Arc::new(Slots::default());
        let _stays = open(&slots).await;
        drop(open(&slots).await);
        let mut refusals = Refusals::default();
        for _ in 0..3 {
            assert_eq!(refused(&slots, &mut refusals, || {}).await, Refusal::Unproved);
        }
        slots.lock().unsure = Instant::now().checked_sub(UNSURE);
        assert_eq!(refused(&slots, &mut refusals, || {}).await, Refusal::Full);
        assert_eq!(slots.allowed(), 1);
    }

    #[tokio::test]
    async fn what_others_have_asked_for_counts_as_taken_and_the_last_place_is_never_lost() {
        let slots = Arc::new(Slots::default());
        let asked = slots.take().await.unwrap();
        let mut refusals = Refusals::default();
        assert_eq!(refused(&slots, &mut refusals, || {}).await, Refusal::Unproved);
        assert_eq!(refused(&slots, &mut refusals, || {}).await, Refusal::Full);
        assert_eq!(slots.allowed(), 1);
        drop(asked);
        for expected in [Refusal::Unproved, Refusal::Never, Refusal::Never] {
            assert_eq!(refused(&slots, &mut refusals, || {}).await, expected);
        }
        assert_eq!(slots.allowed(), 1);
    }

    #[tokio::test]
    async fn no_place_is_kept_for_later_while_somebody_asks_for_one() {
        let slots = Arc::new(Slots::default());
        let asking = slots.ask();
        assert!(slots.spare().is_none());
        drop(asking);
        assert!(slots.spare().is_some());
    }
}
