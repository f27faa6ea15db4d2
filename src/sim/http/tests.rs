//! Requests over an in-memory connection, read as bytes.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};

use super::*;
use crate::sim::clock::Pace;
use crate::sim::world::Run;

fn words(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

/// A cluster of one node whose server answers, and the server's number.
async fn serving(extra: &str) -> (Arc<Shared>, u64) {
    let shared = Shared::new(1, Pace::new(1000.0), Duration::ZERO);
    let run = Run {
        name: "v".into(),
        gpus: true,
        command: words("ray start --block --head --node-ip-address 192.168.200.12"),
        ..Run::default()
    };
    shared.change(|w, now| w.run(0, run, now)).unwrap();
    let mut changes = shared.changes();
    while shared.with(|w, now| w.ray_nodes(now).is_empty()) {
        shared
            .until(Some(shared.clock.now() + Duration::from_millis(1)), &mut changes)
            .await;
    }
    let serve = words(&format!("m --max-model-len 20000 {extra}"));
    shared.change(|w, now| w.serve(0, "v", &[], &serve, now));
    let ready = shared.with(|w, _| w.servers[0].marks.unwrap().ready);
    while !shared.with(|w, now| w.servers[0].serves(now)) {
        shared.until(Some(ready), &mut changes).await;
    }
    (shared, 1)
}

fn connect(shared: &Arc<Shared>, number: u64) -> DuplexStream {
    let (client, server) = tokio::io::duplex(1 << 16);
    tokio::spawn(serve(Arc::clone(shared), Door::Model(number), server));
    client
}

async fn send(client: &mut DuplexStream, method: &str, path: &str, headers: &str, body: &str) {
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: x\r\n{headers}content-length: {}\r\n\r\n{body}",
        body.len()
    );
    client.write_all(head.as_bytes()).await.unwrap();
}

/// Sends one request and reads until the connection closes.
async fn ask(shared: &Arc<Shared>, number: u64, path: &str, headers: &str, body: &Value) -> (u16, String) {
    let mut client = connect(shared, number);
    let method = if body.is_null() { "GET" } else { "POST" };
    let body = if body.is_null() {
        String::new()
    } else {
        body.to_string()
    };
    send(
        &mut client,
        method,
        path,
        &format!("connection: close\r\n{headers}"),
        &body,
    )
    .await;
    let mut answer = Vec::new();
    tokio::time::timeout(Duration::from_secs(60), client.read_to_end(&mut answer))
        .await
        .unwrap()
        .unwrap();
    let answer = String::from_utf8(answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

/// The values of a stream's events, whatever the transfer's own framing between them.
fn events(body: &str) -> Vec<Value> {
    let lines = body.lines().filter_map(|l| l.strip_prefix("data: "));
    lines
        .filter(|d| *d != "[DONE]")
        .map(|d| serde_json::from_str(d).unwrap())
        .collect()
}

#[tokio::test]
async fn a_chat_streams_its_role_its_reasoning_its_answer_and_its_usage() {
    let (shared, number) = serving("").await;
    let chat = json!({
        "model": "m", "messages": [{"role": "user", "content": "hello there"}], "stream": true, "max_tokens": 100, "ignore_eos": true,
        "stream_options": {"include_usage": true, "continuous_usage_stats": true},
    });
    let (status, body) = ask(&shared, number, "/v1/chat/completions", "", &chat).await;
    assert_eq!(status, 200);
    assert!(body.trim_end().contains("data: [DONE]"));
    let events = events(&body);
    assert_eq!(
        events[0]["choices"][0]["delta"],
        json!({"role": "assistant", "content": ""})
    );
    let of = |key: &str| {
        events[1..]
            .iter()
            .filter(|e| e["choices"][0]["delta"][key].is_string())
            .count()
    };
    assert_eq!(of("reasoning") + of("content"), 100);
    assert!(of("reasoning") >= 24 && of("content") > 0);
    assert_eq!(events[100]["choices"][0]["finish_reason"], "length");
    assert_eq!(events[50]["usage"]["completion_tokens"], 50);
    assert_eq!(events[101]["choices"], json!([]));
    assert_eq!(events[101]["usage"]["completion_tokens"], 100);
}

#[tokio::test]
async fn a_client_that_goes_is_counted_as_aborted_and_frees_its_place() {
    let (shared, number) = serving("--max-num-seqs 1").await;
    let long = json!({"model": "m", "prompt": "a b c", "stream": true, "max_tokens": 15000, "ignore_eos": true});
    let mut client = connect(&shared, number);
    send(&mut client, "POST", "/v1/completions", "", &long.to_string()).await;
    let mut some = [0; 1000];
    client.read_exact(&mut some).await.unwrap();
    let stats = |shared: &Shared| shared.with(|w, _| w.server(number).unwrap().stats.clone());
    assert_eq!((stats(&shared).running, stats(&shared).waiting), (1, 0));
    drop(client);
    let short = json!({"model": "m", "prompt": "a", "max_tokens": 5, "ignore_eos": true});
    let (status, body) = ask(&shared, number, "/v1/completions", "", &short).await;
    assert_eq!(
        (
            status,
            serde_json::from_str::<Value>(&body).unwrap()["usage"]["completion_tokens"].clone()
        ),
        (200, json!(5))
    );
    let (_, metrics) = ask(&shared, number, "/metrics", "", &Value::Null).await;
    for count in [
        "finished_reason=\"abort\",model_name=\"m\"} 1.0",
        "finished_reason=\"length\",model_name=\"m\"} 1.0",
    ] {
        assert!(metrics.contains(count), "{metrics}");
    }
    assert_eq!((stats(&shared).running, stats(&shared).cached_tokens), (0, 0));
}

#[tokio::test]
async fn a_server_that_dies_in_mid_stream_says_so_under_its_200() {
    let (shared, number) = serving("").await;
    let long = json!({"model": "m", "prompt": "a b c", "stream": true, "max_tokens": 15000, "ignore_eos": true});
    let mut client = connect(&shared, number);
    send(&mut client, "POST", "/v1/completions", "", &long.to_string()).await;
    let mut some = [0; 1000];
    client.read_exact(&mut some).await.unwrap();
    let container = shared.with(|w, _| w.server(number).unwrap().container.clone());
    shared.change(|w, now| w.stop_servers(&container, true, now));
    let mut rest = Vec::new();
    tokio::time::timeout(Duration::from_secs(60), client.read_to_end(&mut rest))
        .await
        .unwrap()
        .unwrap();
    let rest = String::from_utf8_lossy(&rest);
    assert!(rest.contains("\"code\":500") && rest.contains("data: [DONE]"), "{rest}");
}

#[tokio::test]
async fn a_key_is_asked_for_where_one_is_set() {
    let (shared, number) = serving("--api-key s3").await;
    assert_eq!(
        ask(&shared, number, "/v1/models", "", &Value::Null).await,
        (401, "{\"error\":\"Unauthorized\"}".into())
    );
    assert_eq!(
        ask(
            &shared,
            number,
            "/v1/models",
            "authorization: Bearer s3\r\n",
            &Value::Null
        )
        .await
        .0,
        200
    );
    assert_eq!(ask(&shared, number, "/health", "", &Value::Null).await.0, 200);
}
