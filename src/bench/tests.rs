//! The test as a whole against a responder in memory.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::run::run_test;
use crate::api::Client;
use crate::api::testing::{Asked, Responder, STREAM_END, STREAM_HEAD, answer, events, piece, stream};
use crate::domain::bench::{BenchEvent, BenchProfile, CHUNKS, CONCURRENCY, PromptSizing, RequestRecord, Tally};
use crate::measure::Report;

const PROFILE: BenchProfile = BenchProfile {
    requests: 6,
    concurrency: 2,
    prompt_tokens: 40,
    output_tokens: 4,
    warmup: 2,
    request_limit: Duration::from_secs(60),
};

/// All events of a test.
async fn run(client: Client, profile: BenchProfile) -> Vec<BenchEvent> {
    let (sink, mut events) = mpsc::channel(64);
    tokio::spawn(run_test(client, "tiny", profile, sink, CancellationToken::new()));
    let mut all = Vec::new();
    while let Some(event) = events.recv().await {
        all.push(event);
    }
    all
}

fn records(events: &[BenchEvent]) -> Vec<RequestRecord> {
    let record = |event: &BenchEvent| match event {
        BenchEvent::Request(record) => Some(record.clone()),
        _ => None,
    };
    events.iter().filter_map(record).collect()
}

fn prompt_event(events: &[BenchEvent]) -> (PromptSizing, u64) {
    let prompt = |event: &BenchEvent| match event {
        BenchEvent::Prompt { sizing, tokens } => Some((*sizing, *tokens)),
        _ => None,
    };
    events.iter().find_map(prompt).unwrap()
}

fn words(asked: &Asked) -> u64 {
    let text = match &asked.body["messages"][0]["content"] {
        Value::String(text) => text,
        _ => asked.body["prompt"].as_str().unwrap(),
    };
    text.split_whitespace().count() as u64
}

fn is_stream(asked: &Asked) -> bool {
    asked.body["stream"] == json!(true)
}

fn not_found() -> Vec<u8> {
    answer("404 Not Found", r#"{"detail":"Not Found"}"#)
}

/// One token, counted.
fn one(asked: &Asked) -> Vec<u8> {
    let usage = json!({"prompt_tokens": words(asked), "completion_tokens": 1});
    answer(
        "200 OK",
        &json!({"choices": [{"text": "x"}], "usage": usage}).to_string(),
    )
}

/// As many chunks as tokens were asked for, counted where `usage`.
fn many(asked: &Asked, usage: bool) -> Vec<u8> {
    let n = asked.body["max_tokens"].as_u64().unwrap();
    let texts = vec!["x"; n as usize];
    stream(&events(&texts, usage.then(|| (words(asked), n))), 4096)
}

#[tokio::test]
async fn every_request_has_a_record_and_its_tokens_are_the_servers() {
    let sent = Arc::new(AtomicU64::new(0));
    let prompts = Arc::new(Mutex::new(Vec::new()));
    let (count, seen) = (Arc::clone(&sent), Arc::clone(&prompts));
    let server = Responder::routes(move |asked| match asked.line.as_str() {
        "POST /tokenize" => answer("200 OK", &json!({"count": words(asked)}).to_string()),
        "GET /metrics" => {
            let tokens = count.load(Ordering::SeqCst);
            answer("200 OK", &format!("vllm:generation_tokens_total {tokens}.0\n"))
        }
        "POST /v1/completions" if is_stream(asked) => {
            count.fetch_add(4, Ordering::SeqCst);
            seen.lock().unwrap().push(asked.body.clone());
            many(asked, true)
        }
        "POST /v1/completions" => {
            count.fetch_add(1, Ordering::SeqCst);
            one(asked)
        }
        _ => not_found(),
    });
    let all = run(server.client(), PROFILE).await;
    assert_eq!(all[0], BenchEvent::Started(PROFILE));
    assert_eq!(prompt_event(&all), (PromptSizing::Tokenize, 40));
    let warmups: Vec<u32> = all
        .iter()
        .filter_map(|event| match event {
            BenchEvent::Warmup { done } => Some(*done),
            _ => None,
        })
        .collect();
    assert_eq!(warmups, [1, 2]);
    let records = records(&all);
    let mut indices: Vec<u32> = records.iter().map(|r| r.index).collect();
    indices.sort_unstable();
    assert_eq!(indices, [0, 1, 2, 3, 4, 5]);
    for record in &records {
        assert_eq!((record.error.as_deref(), record.chunks.len()), (None, 4));
        assert_eq!((record.output_tokens, record.prompt_tokens), (4, Some(40)));
        assert!(record.counted_by_server && record.chunks.is_sorted());
        assert!(record.sent <= record.chunks[0]);
    }
    let tally = Tally {
        server_tokens: Some(6 * 4),
        // Finding the way, and two warm-ups.
        other_tokens: 1 + 2 * 4,
    };
    assert!(all.contains(&BenchEvent::Tally(tally)));
    let Some(BenchEvent::Done { duration }) = all.last() else {
        panic!("{:?}", all.last());
    };
    assert!(records.iter().all(|r| r.chunks.iter().all(|at| at <= duration)));
    // The first token and the warm-up's two requests are the server's, not the test's.
    let report = Report::of(&records, *duration);
    assert_eq!(report.output_tokens + 9, sent.load(Ordering::SeqCst));
    let prompts = prompts.lock().unwrap();
    let starts: HashSet<&str> = prompts.iter().map(|p| &p["prompt"].as_str().unwrap()[..16]).collect();
    assert_eq!(starts.len(), 8);
    for body in prompts.iter() {
        assert_eq!((&body["max_tokens"], &body["ignore_eos"]), (&json!(4), &json!(true)));
        assert_eq!(body["stream_options"], json!({"include_usage": true}));
    }
}

#[tokio::test]
async fn without_tokenize_the_size_comes_from_usage_and_without_usage_it_is_a_guess() {
    for (usage, sizing) in [(true, PromptSizing::Usage), (false, PromptSizing::Estimate)] {
        let server = Responder::routes(move |asked| match asked.line.as_str() {
            "POST /v1/completions" if is_stream(asked) => many(asked, usage),
            "POST /v1/completions" if usage => one(asked),
            "POST /v1/completions" => answer("200 OK", r#"{"choices":[{"text":"x"}]}"#),
            _ => not_found(),
        });
        let all = run(server.client(), PROFILE).await;
        assert_eq!(prompt_event(&all), (sizing, 40));
        assert!(all.iter().any(|e| matches!(
            e,
            BenchEvent::Tally(Tally {
                server_tokens: None,
                ..
            })
        )));
        for record in records(&all) {
            assert_eq!((record.output_tokens, record.counted_by_server), (4, usage));
            assert_eq!(record.prompt_tokens, usage.then_some(40));
        }
        assert!(matches!(all.last(), Some(BenchEvent::Done { .. })));
    }
}

#[tokio::test]
async fn a_reasoning_model_that_only_chats_is_measured() {
    let server = Responder::routes(|asked| match asked.line.as_str() {
        "POST /tokenize" => answer("200 OK", &json!({"count": words(asked) + 5}).to_string()),
        "POST /v1/chat/completions" if is_stream(asked) => {
            let role = json!({"choices": [{"delta": {"role": "assistant", "content": ""}}]});
            let thought = json!({"choices": [{"delta": {"reasoning": "Hm"}}]});
            let end = json!({"choices": [{"delta": {}, "finish_reason": "length"}]});
            let usage = json!({"choices": [], "usage": {"prompt_tokens": words(asked) + 5, "completion_tokens": 8}});
            let data = [role, thought.clone(), thought, end, usage];
            let body: String = data.iter().map(|d| format!("data: {d}\n\n")).collect();
            stream(&(body + "data: [DONE]\n\n"), 4096)
        }
        "POST /v1/chat/completions" => one(asked),
        _ => not_found(),
    });
    let all = run(server.client(), PROFILE).await;
    assert_eq!(prompt_event(&all), (PromptSizing::Tokenize, 40));
    let records = records(&all);
    assert_eq!(records.len(), 6);
    for record in records {
        // Four tokens in each of two chunks; the role is no output.
        assert_eq!((record.chunks.len(), record.output_tokens), (2, 8));
        assert_eq!((record.error, record.prompt_tokens), (None, Some(40)));
    }
}

#[tokio::test]
async fn an_engine_that_dies_gives_failures_and_the_test_goes_on() {
    let number = AtomicUsize::new(0);
    let server = Responder::routes(move |asked| match asked.line.as_str() {
        "POST /v1/completions" if is_stream(asked) => match number.fetch_add(1, Ordering::SeqCst) {
            // Warm-up.
            0 | 1 => many(asked, true),
            2 => {
                let mut body = "data: {\"choices\":[{\"text\":\"x\"}]}\n\n".repeat(3);
                body.push_str("data: {\"error\":{\"message\":\"EngineCore died\"}}\n\ndata: [DONE]\n\n");
                stream(&body, 4096)
            }
            3 => answer("503 Service Unavailable", ""),
            4 => stream(&events(&[], Some((40, 4))), 4096),
            5 => stream(&events(&["x"; 200], None), 4096),
            _ => many(asked, true),
        },
        "POST /v1/completions" => one(asked),
        _ => not_found(),
    });
    let all = run(server.client(), PROFILE).await;
    let records = records(&all);
    let mut errors: Vec<&str> = records.iter().filter_map(|r| r.error.as_deref()).collect();
    errors.sort_unstable();
    let want = [
        "503: Service Unavailable",
        "more than 68 chunks: the server does not stop where it was told",
        "the answer carried no output",
        "the server says: EngineCore died",
    ];
    assert_eq!(errors, want);
    let died = records
        .iter()
        .find(|r| r.error.as_deref() == Some("the server says: EngineCore died"));
    assert_eq!(died.unwrap().chunks.len(), 3);
    assert_eq!(records.len(), 6);
    assert!(matches!(all.last(), Some(BenchEvent::Done { .. })));
}

#[tokio::test]
async fn a_server_that_cannot_complete_ends_the_test_with_its_words() {
    let body = r#"{"error":{"message":"The model `tiny` does not exist."}}"#;
    let unknown = Responder::fixed(answer("404 Not Found", body));
    let all = run(unknown.client(), PROFILE).await;
    let want = BenchEvent::Failed("404: The model `tiny` does not exist.".to_owned());
    assert_eq!(all, [BenchEvent::Started(PROFILE), want]);
    let dies = Responder::routes(|asked| {
        if is_stream(asked) {
            answer("500 x", "")
        } else {
            one(asked)
        }
    });
    let all = run(dies.client(), PROFILE).await;
    let want = BenchEvent::Failed("warm-up request: 500: Internal Server Error".to_owned());
    assert_eq!(all.last(), Some(&want));
}

#[tokio::test]
async fn tokens_that_the_server_counts_late_are_waited_for() {
    let (sent, counted) = (Arc::new(AtomicU64::new(0)), AtomicU64::new(0));
    let count = Arc::clone(&sent);
    let server = Responder::routes(move |asked| match asked.line.as_str() {
        "GET /metrics" => {
            // Each look shows what had been sent by the look before.
            let shown = counted.swap(count.load(Ordering::SeqCst), Ordering::SeqCst);
            answer("200 OK", &format!("vllm:generation_tokens_total {shown}.0\n"))
        }
        "POST /v1/completions" if is_stream(asked) => {
            count.fetch_add(4, Ordering::SeqCst);
            many(asked, true)
        }
        "POST /v1/completions" => {
            count.fetch_add(1, Ordering::SeqCst);
            one(asked)
        }
        _ => not_found(),
    });
    let all = run(server.client(), PROFILE).await;
    let tally = all.iter().find_map(|event| match event {
        BenchEvent::Tally(tally) => Some(*tally),
        _ => None,
    });
    assert_eq!(tally.and_then(|t| t.server_tokens), Some(6 * 4));
}

#[test]
fn a_counter_that_fell_or_is_unknown_gives_no_growth() {
    use super::run::grown;
    let cases = [
        (Some(10), Some(34), Some(24)),
        (Some(10), Some(10), Some(0)),
        (Some(10), Some(3), None),
        (None, Some(3), None),
        (Some(3), None, None),
    ];
    for (before, after, want) in cases {
        assert_eq!(grown(before, after), want);
    }
}

#[tokio::test]
async fn a_profile_out_of_bounds_sends_nothing() {
    let cases = [
        BenchProfile { requests: 0, ..PROFILE },
        BenchProfile {
            concurrency: 0,
            ..PROFILE
        },
        BenchProfile {
            concurrency: CONCURRENCY + 1,
            ..PROFILE
        },
        BenchProfile {
            output_tokens: 0,
            ..PROFILE
        },
        BenchProfile {
            prompt_tokens: 0,
            ..PROFILE
        },
        BenchProfile {
            requests: 1000,
            output_tokens: u32::try_from(CHUNKS / 1000).unwrap() + 1,
            ..PROFILE
        },
    ];
    for profile in cases {
        let server = Responder::fixed("");
        let all = run(server.client(), profile).await;
        assert!(matches!(all.as_slice(), [BenchEvent::Failed(_)]), "{all:?}");
        assert_eq!(server.opened.load(Ordering::SeqCst), 0);
    }
}

#[tokio::test]
async fn no_more_requests_than_workers_are_in_flight() {
    let (flying, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (now, peak) = (Arc::clone(&flying), Arc::clone(&most));
    let server = Responder::new(move |asked, mut io| {
        let (now, peak) = (Arc::clone(&now), Arc::clone(&peak));
        async move {
            let bytes = match asked.line.as_str() {
                "POST /v1/completions" if is_stream(&asked) => many(&asked, true),
                "POST /v1/completions" => one(&asked),
                _ => not_found(),
            };
            if is_stream(&asked) {
                peak.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                // Others get their turn while this one is held.
                for _ in 0..50 {
                    tokio::task::yield_now().await;
                }
                // Before the last byte: with it the worker is free to send its next.
                now.fetch_sub(1, Ordering::SeqCst);
            }
            io.write_all(&bytes).await.ok()?;
            Some(io)
        }
        .boxed()
    });
    let profile = BenchProfile {
        requests: 30,
        concurrency: 3,
        ..PROFILE
    };
    let all = run(server.client(), profile).await;
    assert_eq!(records(&all).len(), 30);
    let most = most.load(Ordering::SeqCst);
    assert!((1..=3).contains(&most), "{most}");
}

#[tokio::test]
async fn records_come_whole_through_a_narrow_queue() {
    let server = Responder::routes(|asked| match asked.line.as_str() {
        "POST /v1/completions" if is_stream(asked) => many(asked, true),
        "POST /v1/completions" => one(asked),
        _ => not_found(),
    });
    let (sink, mut events) = mpsc::channel(1);
    let profile = BenchProfile {
        requests: 40,
        concurrency: 8,
        ..PROFILE
    };
    let client = server.client();
    tokio::spawn(async move { run_test(client, "tiny", profile, sink, CancellationToken::new()).await });
    let mut all = Vec::new();
    while let Some(event) = events.recv().await {
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
        all.push(event);
    }
    assert_eq!(records(&all).len(), 40);
    assert!(matches!(all.last(), Some(BenchEvent::Done { .. })));
}

#[tokio::test]
async fn cancelling_drops_what_is_in_flight() {
    let (gone, mut gone_seen) = mpsc::unbounded_channel();
    let (started, mut started_seen) = mpsc::unbounded_channel();
    let server = Responder::new(move |asked, mut io| {
        let (gone, started) = (gone.clone(), started.clone());
        async move {
            let streams = is_stream(&asked);
            let bytes = match asked.line.as_str() {
                "POST /v1/completions" if streams => {
                    let first = piece(b"data: {\"choices\":[{\"text\":\"x\"}]}\n\n");
                    [STREAM_HEAD.as_bytes(), &first].concat()
                }
                "POST /v1/completions" => one(&asked),
                _ => not_found(),
            };
            io.write_all(&bytes).await.ok()?;
            if streams {
                started.send(()).ok()?;
                // Says nothing more; sees when the client goes.
                let end = io.read(&mut [0]).await;
                gone.send(end.is_ok_and(|n| n == 0)).ok()?;
                return None;
            }
            Some(io)
        }
        .boxed()
    });
    let (sink, mut events) = mpsc::channel(64);
    let cancel = CancellationToken::new();
    let profile = BenchProfile { warmup: 0, ..PROFILE };
    tokio::spawn(run_test(server.client(), "tiny", profile, sink, cancel.clone()));
    for _ in 0..2 {
        started_seen.recv().await.unwrap();
    }
    cancel.cancel();
    for _ in 0..2 {
        assert!(gone_seen.recv().await.unwrap());
    }
    let mut last = None;
    while let Some(event) = events.recv().await {
        last = Some(event);
    }
    assert_eq!(last, Some(BenchEvent::Failed("cancelled".to_owned())));
}

/// The server writes a chunk only after the client has stamped the one before, and stamps its own times on the same clock. So each of the client's stamps
/// must lie between two of the server's, however slow the machine is.
#[tokio::test]
async fn stamps_lie_between_the_servers_own() {
    use super::request::{Meter, run_request};
    use crate::api::{CompletionRequest, Endpoint};

    const N: u64 = 20;
    let (sink, _events) = mpsc::channel(1);
    let meter = Arc::new(Meter::start(sink));
    let server_times = Arc::new(Mutex::new(Vec::new()));
    let (clock, times) = (Arc::clone(&meter), Arc::clone(&server_times));
    let server = Responder::new(move |_, mut io| {
        let (clock, times) = (Arc::clone(&clock), Arc::clone(&times));
        async move {
            let stamp = || times.lock().unwrap().push(clock.now());
            io.write_all(STREAM_HEAD.as_bytes()).await.ok()?;
            // The role chunk is no output: nothing is stamped for it.
            let role = piece(b"data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n");
            io.write_all(&role).await.ok()?;
            stamp();
            for n in 1..=N {
                io.write_all(&piece(b"data: {\"choices\":[{\"text\":\"x\"}]}\n\n"))
                    .await
                    .ok()?;
                while clock.chunks() < n {
                    tokio::task::yield_now().await;
                }
                stamp();
            }
            io.write_all(&piece(b"data: [DONE]\n\n")).await.ok()?;
            io.write_all(STREAM_END.as_bytes()).await.ok()?;
            Some(io)
        }
        .boxed()
    });
    let ask = CompletionRequest {
        model: "tiny",
        prompt: "Hello",
        max_tokens: 20,
        endpoint: Endpoint::Completions,
        limit: Duration::from_secs(60),
    };
    let record = run_request(&server.client(), ask, 0, &meter).await;
    let times = server_times.lock().unwrap();
    assert_eq!((record.error, record.chunks.len() as u64), (None, N));
    assert!(record.sent <= times[0]);
    for (at, between) in record.chunks.iter().zip(times.windows(2)) {
        assert!(between[0] <= *at && *at <= between[1], "{at:?} not in {between:?}");
    }
}
