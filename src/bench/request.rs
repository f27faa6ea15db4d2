//! One request: sends it, stamps its chunks, and makes its record.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::api::{ApiError, Client, CompletionRequest};
use crate::domain::bench::{BenchEvent, RequestRecord};
use crate::domain::time::millis;

/// Shortest time between two token events, apart from first tokens.
const PACE: Duration = Duration::from_millis(50);

/// Chunks that a request may have beyond the tokens asked for; a server that sends more does not stop where it was told.
const SLACK: usize = 64;

/// The test's clock and its count of chunks, shared by all workers.
pub(super) struct Meter {
    zero: Instant,
    chunks: AtomicU64,
    /// When the last token event was sent, in milliseconds since zero.
    told: AtomicU64,
    sink: mpsc::Sender<BenchEvent>,
}

impl Meter {
    /// Starts the clock.
    pub(super) fn start(sink: mpsc::Sender<BenchEvent>) -> Self {
        Self {
            zero: Instant::now(),
            chunks: AtomicU64::new(0),
            told: AtomicU64::new(0),
            sink,
        }
    }

    /// Time since the test's start.
    pub(super) fn now(&self) -> Duration {
        self.zero.elapsed()
    }

    /// Chunks so far.
    #[cfg(test)]
    pub(super) fn chunks(&self) -> u64 {
        self.chunks.load(Ordering::Acquire)
    }

    /// Counts a chunk and, from time to time, tells so. Never waits: a full queue would bend the stamps, and the next event has the whole count.
    fn chunk(&self, at: Duration, ttft: Option<Duration>) {
        let chunks = self.chunks.fetch_add(1, Ordering::AcqRel) + 1;
        let told = self.told.load(Ordering::Relaxed);
        let due = millis(at) >= told.saturating_add(millis(PACE));
        if ttft.is_some() || due {
            self.told.store(millis(at), Ordering::Relaxed);
            let _ = self.sink.try_send(BenchEvent::Token { at, chunks, ttft });
        }
    }
}

/// Runs one request to its end. What goes wrong is in the record.
pub(super) async fn run_request(
    client: &Client,
    ask: CompletionRequest<'_>,
    index: u32,
    meter: &Meter,
) -> RequestRecord {
    let mut record = RequestRecord {
        index,
        sent: meter.now(),
        chunks: Vec::new(),
        output_tokens: 0,
        counted_by_server: false,
        prompt_tokens: None,
        error: None,
    };
    let outcome = follow(client, ask, &mut record, meter).await;
    if !record.counted_by_server {
        record.output_tokens = record.chunks.len() as u64;
    }
    record.error = match outcome {
        Err(error) => Some(error.to_string()),
        Ok(()) if record.chunks.is_empty() => Some("the answer carried no output".to_owned()),
        Ok(()) => None,
    };
    record
}

async fn follow(
    client: &Client,
    ask: CompletionRequest<'_>,
    record: &mut RequestRecord,
    meter: &Meter,
) -> Result<(), ApiError> {
    let most = usize::try_from(ask.max_tokens)
        .unwrap_or(usize::MAX)
        .saturating_add(SLACK);
    let mut completion = client.stream_completion(ask).await?;
    while let Some(chunk) = completion.next().await? {
        if chunk.has_output() {
            let at = meter.now();
            let ttft = record.chunks.is_empty().then(|| at.saturating_sub(record.sent));
            record.chunks.push(at);
            meter.chunk(at, ttft);
        }
        if let Some(usage) = chunk.usage {
            record.prompt_tokens = usage.prompt_tokens.or(record.prompt_tokens);
            // With continuous usage the count grows; the last one holds.
            if let Some(tokens) = usage.completion_tokens {
                record.output_tokens = tokens;
                record.counted_by_server = true;
            }
        }
        if record.chunks.len() > most {
            return Err(ApiError::TooManyChunks(most));
        }
    }
    Ok(())
}
