//! The throughput test's task: its events into the queue, its result into a file.

use std::path::PathBuf;

use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::api::Client;
use crate::bench::run_test;
use crate::domain::bench::{BenchEvent, BenchProfile};
use crate::domain::event::EventKind;
use crate::domain::{Source, Wall};
use crate::node::Feed;
use crate::record::save_result;

/// Events of the test on their way to the queue.
const EVENTS: usize = 1024;

/// Starts and cancels the throughput test.
pub(super) struct BenchRunner {
    client: Client,
    feed: Feed,
    model: String,
    results: PathBuf,
    cancel: CancellationToken,
}

impl BenchRunner {
    pub(super) fn new(client: Client, feed: Feed, model: String, results: PathBuf) -> Self {
        Self {
            client,
            feed,
            model,
            results,
            cancel: CancellationToken::new(),
        }
    }

    /// Starts a test; one that runs is cancelled.
    pub(super) fn start(&mut self, profile: BenchProfile) {
        self.cancel();
        self.cancel = CancellationToken::new();
        let (sink, mut events) = mpsc::channel(EVENTS);
        let (client, model, cancel) = (self.client.clone(), self.model.clone(), self.cancel.clone());
        tokio::spawn(async move { run_test(client, &model, profile, sink, cancel).await });
        let feed = self.feed.clone();
        tokio::spawn(async move {
            while let Some(event) = events.recv().await {
                let replaced_by_the_next = matches!(event, BenchEvent::Token { .. });
                let kind = EventKind::Bench(event);
                if replaced_by_the_next {
                    feed.offer(Source::Bench, kind);
                } else {
                    feed.send(Source::Bench, kind).await;
                }
            }
        });
    }

    /// Cancels a test that runs.
    pub(super) fn cancel(&self) {
        self.cancel.cancel();
    }

    /// Writes a result and tells where.
    pub(super) fn save(&self, result: Value, ended: Wall) {
        let (feed, model, results) = (self.feed.clone(), self.model.clone(), self.results.clone());
        tokio::spawn(async move {
            let kind = match save_result(results, ended, &model, &result).await {
                Ok(path) => EventKind::Bench(BenchEvent::Saved(path.display().to_string())),
                Err(error) => {
                    let why = format!("the result could not be written: {error}");
                    EventKind::Bench(BenchEvent::Unsaved(why))
                }
            };
            feed.send(Source::Bench, kind).await;
        });
    }
}
