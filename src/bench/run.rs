//! The test as a whole: way, prompt, warm-up, workers, end.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::api::{Client, CompletionRequest, Endpoint};
use crate::domain::bench::{
    BenchEvent, BenchProfile, CHUNKS, CONCURRENCY, PROMPT_TOKENS, REQUESTS, RequestRecord, Tally,
};

use super::prompt::Recipe;
use super::request::{Meter, run_request};
use super::size;

/// Time between two looks at the server's counter when it has not yet counted all that was sent.
const COUNT_EVERY: Duration = Duration::from_millis(100);

/// Looks at the counter before it is taken as it stands.
const COUNT_LOOKS: u32 = 50;

/// Runs a throughput test and tells of it through `sink`: `Started`, `Prompt`, `Warmup`s, then `Token`s one `Request` for each counted request, a `Tally`,
/// and at last `Done` or `Failed`. `Token` events that the queue does not take are left out; every other event waits for its place. Cancelling drops the
/// requests in flight and ends in `Failed`. Dropping the future ends all of it.
pub async fn run_test(
    client: Client,
    model: &str,
    profile: BenchProfile,
    sink: mpsc::Sender<BenchEvent>,
    cancel: CancellationToken,
) {
    let outcome = tokio::select! {
        biased;
        () = cancel.cancelled() => Err("cancelled".to_owned()),
        outcome = test(client, model, profile, &sink) => outcome,
    };
    let last = match outcome {
        Ok(duration) => BenchEvent::Done { duration },
        Err(why) => BenchEvent::Failed(why),
    };
    // Nobody listens any more: nothing to tell.
    let _ = sink.send(last).await;
}

async fn test(
    client: Client,
    model: &str,
    profile: BenchProfile,
    sink: &mpsc::Sender<BenchEvent>,
) -> Result<Duration, String> {
    check(&profile)?;
    tell(sink, BenchEvent::Started(profile.clone())).await?;
    let first = generated(&client, None).await;
    let (endpoint, asked) = size::endpoint(&client, model).await.map_err(|e| e.to_string())?;
    // Differs from run to run, so that an earlier test's prompts are in no cache.
    let start = RandomState::new().hash_one(());
    let want = u64::from(profile.prompt_tokens);
    let sized = size::size(&client, endpoint, model, want, start).await;
    let prompt = BenchEvent::Prompt {
        sizing: sized.sizing,
        tokens: sized.tokens,
    };
    tell(sink, prompt).await?;
    let sender = Arc::new(Sender {
        client,
        model: model.to_owned(),
        endpoint,
        recipe: sized.recipe,
        // Beyond the numbers that sizing used.
        first: size::NUMBERS_USED,
        start,
        max_tokens: profile.output_tokens,
        limit: profile.request_limit,
        concurrency: profile.concurrency,
    });
    let warmed = warm_up(&sender, &profile, sink).await?;
    let other_tokens = asked + sized.spent + warmed;
    let before = generated(&sender.client, first.map(|n| n + other_tokens)).await;
    sender.client.open_connections(profile.concurrency as usize).await;
    let mut records = sender.send_all(profile.requests, 0, Arc::new(Meter::start(sink.clone())));
    let (mut duration, mut tokens) = (Duration::ZERO, 0);
    while let Some(Ended { record, at }) = records.next().await {
        duration = duration.max(at);
        tokens += record.output_tokens;
        tell(sink, BenchEvent::Request(record)).await?;
    }
    let after = generated(&sender.client, before.map(|n| n + tokens)).await;
    let tally = Tally {
        server_tokens: grown(before, after),
        other_tokens,
    };
    tell(sink, BenchEvent::Tally(tally)).await?;
    Ok(duration)
}

fn check(profile: &BenchProfile) -> Result<(), String> {
    let bounds = [
        ("requests", 1, profile.requests, REQUESTS),
        ("concurrency", 1, profile.concurrency, CONCURRENCY),
        ("prompt tokens", 1, profile.prompt_tokens, PROMPT_TOKENS),
        ("output tokens", 1, profile.output_tokens, u32::MAX),
        ("warm-up requests", 0, profile.warmup, REQUESTS),
    ];
    for (name, least, value, most) in bounds {
        if value < least || value > most {
            return Err(format!("{value} {name}: must be {least} to {most}"));
        }
    }
    let chunks = u64::from(profile.requests) * u64::from(profile.output_tokens);
    if chunks > CHUNKS {
        return Err(format!("{chunks} output tokens in all requests: at most {CHUNKS}"));
    }
    Ok(())
}

/// The server's own count of generated tokens, once it is what must have been counted by now: vLLM sends a token first and counts it then. A server that
/// counts less than it sends is taken at its word after a while.
async fn generated(client: &Client, least: Option<u64>) -> Option<u64> {
    let mut count = None;
    for look in 0..COUNT_LOOKS {
        if look > 0 {
            tokio::time::sleep(COUNT_EVERY).await;
        }
        count = whole(client.metrics().await.ok()?.generation_tokens?);
        if count >= least {
            break;
        }
    }
    count
}

/// A counter's value, which is a whole number.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a whole number, not below zero"
)]
fn whole(counter: f64) -> Option<u64> {
    (counter >= 0.0).then_some(counter.round() as u64)
}

/// How far a counter grew; `None` when it is not known or another process counts now.
pub(super) fn grown(before: Option<u64>, after: Option<u64>) -> Option<u64> {
    after?.checked_sub(before?)
}

/// Sends the warm-up. Gives the output tokens that it cost.
async fn warm_up(sender: &Arc<Sender>, profile: &BenchProfile, sink: &mpsc::Sender<BenchEvent>) -> Result<u64, String> {
    // Its chunks are told to nobody.
    let (unheard, _) = mpsc::channel(1);
    let mut records = sender.send_all(profile.warmup, profile.requests, Arc::new(Meter::start(unheard)));
    let (mut done, mut tokens) = (0, 0);
    while let Some(Ended { record, .. }) = records.next().await {
        if let Some(error) = record.error {
            return Err(format!("warm-up request: {error}"));
        }
        done += 1;
        tokens += record.output_tokens;
        tell(sink, BenchEvent::Warmup { done }).await?;
    }
    Ok(tokens)
}

async fn tell(sink: &mpsc::Sender<BenchEvent>, event: BenchEvent) -> Result<(), String> {
    sink.send(event).await.map_err(|_| "nobody listens".to_owned())
}

/// A request that is over.
struct Ended {
    record: RequestRecord,
    /// When its answer ended, since the clock's start.
    at: Duration,
}

/// Records as they come. Dropping it ends the workers.
struct Records {
    receiver: mpsc::Receiver<Ended>,
    _workers: JoinSet<()>,
}

impl Records {
    async fn next(&mut self) -> Option<Ended> {
        self.receiver.recv().await
    }
}

/// What all workers share.
struct Sender {
    client: Client,
    model: String,
    endpoint: Endpoint,
    recipe: Recipe,
    start: u64,
    first: u64,
    max_tokens: u32,
    limit: Duration,
    concurrency: u32,
}

impl Sender {
    /// Sends `count` requests whose prompts have the numbers from `from` on.
    fn send_all(self: &Arc<Self>, count: u32, from: u32, meter: Arc<Meter>) -> Records {
        // Room for all, so that a slow listener never holds up a worker.
        let (sender, receiver) = mpsc::channel(count.max(1) as usize);
        let next = Arc::new(AtomicU32::new(0));
        let mut workers = JoinSet::new();
        for _ in 0..self.concurrency.min(count) {
            let (shared, next, meter, ended) =
                (Arc::clone(self), Arc::clone(&next), Arc::clone(&meter), sender.clone());
            workers.spawn(async move { shared.work(count, from, &next, &meter, &ended).await });
        }
        Records {
            receiver,
            _workers: workers,
        }
    }

    async fn work(&self, count: u32, from: u32, next: &AtomicU32, meter: &Meter, ended: &mpsc::Sender<Ended>) {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= count {
                return;
            }
            let number = self.first + u64::from(from) + u64::from(index);
            let prompt = self.recipe.prompt(self.start, number);
            let ask = CompletionRequest {
                model: &self.model,
                prompt: &prompt,
                max_tokens: self.max_tokens,
                endpoint: self.endpoint,
                limit: self.limit,
            };
            let record = run_request(&self.client, ask, index, meter).await;
            let at = meter.now();
            if ended.send(Ended { record, at }).await.is_err() {
                return;
            }
        }
    }
}
