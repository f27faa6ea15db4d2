//! One request that generates: it waits for a place, reads its prompt, and gives a token at a time at the pace of the story's cluster.
//!
//! A token is counted when it is handed to the one who sends it, so the counters are what was sent.

use std::sync::Arc;

use tokio::sync::mpsc;

use crate::sim::clock::{Moment, Pace};
use crate::sim::shared::Shared;
use crate::sim::world::server::Server;
use crate::sim::world::stats::Finish;

/// Tokens per second of a single stream, as in the story.
const TOKENS_PER_SECOND: f64 = 27.0;

/// How much of a single stream's speed each of n streams loses: the whole grows with n to the power of one minus this.
const CROWDING: f64 = 0.42;

/// Prompt tokens read per second.
const PREFILL_PER_SECOND: f64 = 2400.0;

/// Seconds that a prompt takes however short it is.
const PREFILL_SECONDS: f64 = 0.11;

/// What comes of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Token {
    /// The next token; the last one says why it is.
    Next(Option<Finish>),
    /// The engine has died.
    Dead,
}

/// A request.
#[derive(Debug, Clone, Copy)]
pub struct Job {
    /// The start of the server that it was sent to.
    pub number: u64,
    /// Requests that the server lets run at a time.
    pub places: u32,
    /// Prompt tokens.
    pub prompt: u64,
    /// Tokens to give.
    pub tokens: u64,
    /// Why it ends after these.
    pub finish: Finish,
}

/// Counts a request as waiting or running for as long as it is.
struct InFlight {
    shared: Arc<Shared>,
    number: u64,
    running: bool,
    in_cache: u64,
    since: Moment,
    ended: bool,
}

impl InFlight {
    fn waits(shared: &Arc<Shared>, number: u64) -> Self {
        let since = shared.with(|world, now| {
            if let Some(s) = world.server_mut(number) {
                s.stats.waiting += 1;
            }
            now
        });
        Self {
            shared: Arc::clone(shared),
            number,
            running: false,
            in_cache: 0,
            since,
            ended: false,
        }
    }

    fn change(&mut self, act: impl FnOnce(&mut Server, &mut Self, Moment)) {
        let shared = Arc::clone(&self.shared);
        shared.with(|world, now| {
            if let Some(s) = world.server_mut(self.number) {
                act(s, self, now);
            }
        });
    }

    fn runs(&mut self, prompt: u64) {
        self.change(|server, me, _| {
            server.stats.waiting = server.stats.waiting.saturating_sub(1);
            server.stats.running += 1;
            server.stats.cached_tokens += prompt;
            me.running = true;
            me.in_cache = prompt;
        });
    }

    fn finished(&mut self, how: Finish) {
        self.ended = true;
        self.change(|server, me, now| {
            let stats = &mut server.stats;
            stats.finish(how, now.saturating_sub(me.since));
            stats.running = stats.running.saturating_sub(1);
            stats.cached_tokens = stats.cached_tokens.saturating_sub(me.in_cache);
        });
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        if self.running && !self.ended {
            self.finished(Finish::Abort);
        } else if !self.running {
            self.change(|server, _, _| server.stats.waiting = server.stats.waiting.saturating_sub(1));
        }
    }
}

/// Runs a request; every token goes to `out`, and a receiver that is gone ends it. Starts a task of its own.
pub fn start(shared: &Arc<Shared>, job: Job) -> mpsc::Receiver<Token> {
    let (out, tokens) = mpsc::channel(super::text::EVENTS);
    let mine = Arc::clone(shared);
    shared.tasks.spawn(async move {
        let cancel = mine.cancel.clone();
        tokio::select! {
            () = run(mine, job, out) => {}
            () = cancel.cancelled() => {}
        }
    });
    tokens
}

async fn run(shared: Arc<Shared>, job: Job, out: mpsc::Sender<Token>) {
    let mut flight = InFlight::waits(&shared, job.number);
    let queue = shared.queue(job.number, job.places);
    let place = tokio::select! {
        place = queue.places.acquire() => place,
        () = out.closed() => return,
    };
    let Ok(_place) = place else {
        return;
    };
    flight.runs(job.prompt);
    let mut due = {
        let mut free = queue.prefill_free.lock().await;
        let from = (*free).max(shared.clock.now());
        *free = from.saturating_add(prefill(shared.pace, job.prompt));
        *free
    };
    let mut last = flight.since;
    for n in 1..=job.tokens {
        tokio::select! {
            () = tokio::time::sleep_until(shared.clock.instant(due)) => {}
            () = out.closed() => return,
        }
        let Some(running) = shared.with(|world, now| {
            world
                .server(job.number)
                .filter(|s| s.runs(now))
                .map(|s| s.stats.running)
        }) else {
            let _ = out.send(Token::Dead).await;
            return;
        };
        // Room first: what is counted is then surely handed on.
        let Ok(room) = out.reserve().await else {
            return;
        };
        let (prompt, since) = (job.prompt, last);
        flight.change(|server, me, now| {
            if n == 1 {
                server.stats.first_token(prompt, now.saturating_sub(me.since));
            } else {
                server.stats.next_token(now.saturating_sub(since));
            }
            me.in_cache += 1;
            last = now;
        });
        let finish = (n == job.tokens).then_some(job.finish);
        if let Some(how) = finish {
            flight.finished(how);
        }
        room.send(Token::Next(finish));
        due = next_due(shared.pace, due, shared.clock.now(), running);
    }
}

/// How long a prompt is read.
fn prefill(pace: Pace, prompt: u64) -> Moment {
    let tokens = f64::from(u32::try_from(prompt).unwrap_or(u32::MAX));
    pace.secs(PREFILL_SECONDS + tokens / PREFILL_PER_SECOND)
}

/// When the next token comes. Deadlines add up, so that a late timer is made good, but not more than a moment.
fn next_due(pace: Pace, due: Moment, now: Moment, running: u64) -> Moment {
    let n = f64::from(u32::try_from(running.max(1)).unwrap_or(u32::MAX));
    let step = pace.secs(n.powf(CROWDING) / TOKENS_PER_SECOND);
    let floor = now.saturating_sub(CATCH_UP);
    due.saturating_add(step).max(floor)
}

/// Most lateness that is made good.
const CATCH_UP: Moment = Moment::from_millis(200);

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_single_stream_runs_at_the_storys_speed_and_a_crowd_gains_less_than_its_number() {
        let step = |n| next_due(Pace::new(1.0), Duration::ZERO, Duration::ZERO, n).as_secs_f64();
        assert!((1.0 / step(1) - 27.0).abs() < 0.01);
        let four = 4.0 / step(4);
        assert!(four > 54.0 && four < 80.0, "{four}");
    }

    #[test]
    fn a_late_timer_is_made_good_only_so_far() {
        let late = Duration::from_secs(10);
        assert_eq!(next_due(Pace::new(1000.0), Duration::ZERO, late, 1), late - CATCH_UP);
    }
}
