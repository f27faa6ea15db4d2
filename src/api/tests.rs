//! The client's questions against a responder in memory.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt;
use serde_json::json;
use tokio::io::AsyncWriteExt;

use super::client::{Client, Endpoint};
use super::connect::ConnectError;
use super::testing::{Asked, Responder, answer};
use crate::domain::serving::{Health, ServerFacts, ServerProbe, TokenProof};

async fn health(client: &Client) -> Health {
    match client.ask(ServerProbe::Health, "tiny").await {
        ServerFacts::Health(health) => health,
        other => panic!("{other:?}"),
    }
}

async fn token(responder: &Arc<Responder>) -> Result<TokenProof, String> {
    match responder.client().ask(ServerProbe::Token, "tiny").await {
        ServerFacts::Token(token) => token.map_err(|none| none.why().to_owned()),
        other => panic!("{other:?}"),
    }
}

async fn models(client: &Client) -> Result<Vec<String>, String> {
    match client.ask(ServerProbe::Models, "tiny").await {
        ServerFacts::Models(models) => models,
        other => panic!("{other:?}"),
    }
}

async fn metrics(bytes: Vec<u8>) -> Result<crate::domain::serving::MetricsSample, String> {
    match Responder::fixed(bytes).client().ask(ServerProbe::Metrics, "tiny").await {
        ServerFacts::Metrics(metrics) => metrics.map(|m| *m),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_status_a_refusal_and_a_lost_tunnel_are_different_answers() {
    assert_eq!(
        health(&Responder::fixed(answer("200 OK", "")).client()).await,
        Health::Ok
    );
    let dead = Responder::fixed(answer("503 Service Unavailable", ""));
    assert_eq!(health(&dead.client()).await, Health::Status(503));
    dead.fail(ConnectError::Refused);
    assert_eq!(health(&dead.client()).await, Health::Refused);
    dead.fail(ConnectError::Unreachable("spark-1 is not connected".to_owned()));
    let lost = Health::Unreachable("spark-1 is not connected".to_owned());
    assert_eq!(health(&dead.client()).await, lost);
    // Closed without a byte, as a server that is just dying does.
    let closed = health(&Responder::fixed("").client()).await;
    assert!(
        matches!(&closed, Health::Unreachable(why) if why.starts_with("the connection broke")),
        "{closed:?}"
    );
}

#[tokio::test]
async fn a_refusal_is_seen_on_a_client_that_had_answers() {
    let responder = Responder::fixed(answer("200 OK", ""));
    let client = responder.client();
    assert_eq!(health(&client).await, Health::Ok);
    responder.fail(ConnectError::Refused);
    assert_eq!(health(&client).await, Health::Refused);
}

#[tokio::test]
async fn a_server_that_hangs_is_given_up() {
    let hangs = Responder::new(|_, io| {
        async move {
            std::future::pending::<()>().await;
            Some(io)
        }
        .boxed()
    });
    // However slow the machine, it ends in this and in nothing else.
    let client = hangs.client_with(None, Duration::from_millis(50));
    let why = "no answer within 50 ms".to_owned();
    assert_eq!(health(&client).await, Health::Unreachable(why.clone()));
    assert_eq!(models(&client).await, Err(why));
}

#[tokio::test]
async fn a_key_is_sent_to_the_server_alone_and_its_lack_is_named() {
    let heads = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&heads);
    let guarded = Responder::routes(move |asked: &Asked| {
        seen.lock().unwrap().push((asked.line.clone(), asked.head.clone()));
        if asked.line != "GET /v1/models" || asked.head.contains("authorization: Bearer s3cret\r\n") {
            return answer("200 OK", r#"{"object":"list","data":[{"id":"tiny"}]}"#);
        }
        answer("401 Unauthorized", r#"{"error":"Unauthorized"}"#)
    });
    let client = guarded.client_with_key(Some("s3cret"));
    assert_eq!(models(&client).await, Ok(vec!["tiny".to_owned()]));
    client.ask(ServerProbe::Ray, "tiny").await;
    for (line, head) in heads.lock().unwrap().iter() {
        assert_eq!(head.contains("s3cret"), line == "GET /v1/models", "{line}");
    }
    let missing = models(&guarded.client()).await.unwrap_err();
    assert!(missing.contains("401") && missing.contains("[secrets]"), "{missing}");
    let wrong = models(&guarded.client_with_key(Some("0ther"))).await.unwrap_err();
    assert_eq!(wrong, "401: the server refuses the API key");
}

#[tokio::test]
async fn errors_of_the_server_are_told_in_its_words() {
    let cases = [
        (
            answer("500 Internal Server Error", "Internal Server Error"),
            "500: Internal Server Error",
        ),
        (answer("404 Not Found", r#"{"detail":"Not Found"}"#), "404: Not Found"),
        (answer("502 Bad Gateway", ""), "502: Bad Gateway"),
        (
            answer("200 OK", r#"{"error":{"message":"engine \u001b[31mdied"}}"#),
            "the server says: engine [31mdied",
        ),
        (
            answer("200 OK", "<html>"),
            "unexpected answer: expected value at line 1 column 1",
        ),
        (answer("302 Found", ""), "302: Found"),
    ];
    for (bytes, want) in cases {
        let got = models(&Responder::fixed(bytes).client()).await;
        assert_eq!(got, Err(want.to_owned()));
    }
}

#[tokio::test]
async fn a_huge_body_is_cut() {
    // Without a length it would never end.
    let endless = Responder::new(|_, mut io| {
        async move {
            io.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.ok()?;
            loop {
                io.write_all(&[b' '; 4096]).await.ok()?;
            }
        }
        .boxed()
    });
    let got = models(&endless.client()).await;
    assert_eq!(got, Err("the answer is longer than 8388608 bytes".to_owned()));
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_no_answer() {
    let cut = "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"data\":[]}";
    let got = models(&Responder::fixed(cut).client()).await.unwrap_err();
    assert!(got.starts_with("the connection broke"), "{got}");
}

#[tokio::test]
async fn only_a_counted_token_and_a_choice_prove_that_a_model_answers() {
    let proof = r#"{"model":"tiny","choices":[{"text":"x"}],"usage":{"prompt_tokens":1,"completion_tokens":1}}"#;
    let ready = Responder::routes(move |asked: &Asked| {
        assert_eq!(asked.line, "POST /v1/completions");
        assert_eq!(asked.body, json!({"model": "tiny", "prompt": "Hello", "max_tokens": 1}));
        answer("200 OK", proof)
    });
    let token_of = token(&ready).await.unwrap();
    assert_eq!((token_of.model.as_str(), token_of.tokens), ("tiny", 1));
    let no_proof = [
        // /health is fine and the engine is dead.
        r#"{"error":{"message":"EngineCore encountered an issue","code":500}}"#,
        r#"{"model":"tiny","choices":[],"usage":{"completion_tokens":1}}"#,
        r#"{"model":"tiny","choices":[{"text":""}],"usage":{"completion_tokens":0}}"#,
        r#"{"model":"tiny","choices":[{"text":"x"}]}"#,
    ];
    for body in no_proof {
        assert!(
            token(&Responder::fixed(answer("200 OK", body))).await.is_err(),
            "{body}"
        );
    }
}

#[tokio::test]
async fn a_model_that_only_chats_is_asked_to_chat() {
    let proof =
        r#"{"model":"tiny","choices":[{"message":{"content":null,"reasoning":"H"}}],"usage":{"completion_tokens":1}}"#;
    for status in ["404 Not Found", "400 Bad Request"] {
        let chat_only = Responder::routes(move |asked: &Asked| match asked.line.as_str() {
            "POST /v1/chat/completions" => {
                assert_eq!(asked.body["messages"], json!([{"role": "user", "content": "Hello"}]));
                answer("200 OK", proof)
            }
            _ => answer(status, r#"{"error":{"message":"not supported"}}"#),
        });
        assert_eq!(token(&chat_only).await.unwrap().tokens, 1);
    }
    let neither = Responder::routes(|asked: &Asked| {
        let text = if asked.line.contains("chat") {
            "second"
        } else {
            "no such model"
        };
        answer("404 Not Found", &json!({"error": {"message": text}}).to_string())
    });
    assert_eq!(token(&neither).await, Err("404: no such model".to_owned()));
}

#[tokio::test]
async fn connections_are_used_again_and_can_be_opened_ahead() {
    let responder = Responder::routes(|_| answer("200 OK", r#"{"data":[]}"#));
    let client = responder.client();
    for _ in 0..5 {
        assert_eq!(health(&client).await, Health::Ok);
    }
    assert_eq!(responder.opened.load(Ordering::SeqCst), 1);
    client.open_connections(8).await;
    assert_eq!(responder.opened.load(Ordering::SeqCst), 8);
}

#[tokio::test]
async fn tokens_are_counted_where_the_server_can() {
    let responder = Responder::routes(|asked: &Asked| {
        assert_eq!(asked.line, "POST /tokenize");
        let chat = asked.body.get("messages").is_some();
        answer("200 OK", &json!({"count": if chat { 9 } else { 2 }}).to_string())
    });
    let client = responder.client();
    assert_eq!(
        client.count_tokens(Endpoint::Completions, "tiny", "a b").await,
        Ok(Some(2))
    );
    assert_eq!(client.count_tokens(Endpoint::Chat, "tiny", "a b").await, Ok(Some(9)));
    let without = Responder::fixed(answer("404 Not Found", r#"{"detail":"Not Found"}"#)).client();
    assert_eq!(without.count_tokens(Endpoint::Completions, "tiny", "a").await, Ok(None));
}

#[tokio::test]
async fn metrics_that_cannot_be_had_are_an_error_and_never_zero() {
    let python_only = "python_gc_objects_collected_total{generation=\"0\"} 9178.0\n";
    assert_eq!(
        metrics(answer("200 OK", python_only)).await,
        Err(
            "unexpected answer: metrics without those of a model server: they are off there, or it is not ready"
                .to_owned()
        )
    );
    let vllm = "vllm:generation_tokens_total{engine=\"0\"} 5.0\nvllm:generation_tokens_total{engine=\"1\"} 2.0\n";
    let sample = metrics(answer("200 OK", vllm)).await.unwrap();
    assert_eq!((sample.generation_tokens, sample.running), (Some(7.0), None));
    let broken = metrics(answer("500 Internal Server Error", "Internal Server Error")).await;
    assert_eq!(broken, Err("500: Internal Server Error".to_owned()));
}

#[tokio::test]
async fn rays_nodes_come_from_the_dashboard() {
    let body = r#"{"result": true, "msg": "", "data": {"result": {"total": 1, "result": [{"node_id": "af92", "node_ip": "10.77.0.1",
        "is_head_node": true, "state": "ALIVE", "resources_total": {"CPU": 2.0, "GPU": 1.0}}]}}}"#;
    let responder = Responder::routes(move |asked: &Asked| {
        assert!(asked.head.contains("host: 127.0.0.1:8265\r\n"), "{}", asked.head);
        match asked.line.as_str() {
            "GET /api/v0/nodes?detail=true&limit=1000" => answer("200 OK", body),
            "GET /api/version" => answer("200 OK", r#"{"version": "4", "ray_version": "2.60.0"}"#),
            "GET /api/v0/placement_groups?detail=true&limit=1000" => answer("500 Internal Server Error", "boom"),
            other => panic!("{other}"),
        }
    });
    let client = responder.client();
    let ServerFacts::Ray(Ok(ray)) = client.ask(ServerProbe::Ray, "tiny").await else {
        panic!("no nodes");
    };
    let node = ray.alive_at("10.77.0.1").unwrap();
    assert!(node.head && (node.gpus - 1.0).abs() < f64::EPSILON);
    assert_eq!(ray.version.as_deref(), Some("2.60.0"));
    // What is asked beside the membership does not take it away.
    assert_eq!(ray.pending_unknown.as_deref(), Some("500: boom"));
    let none = Responder::fixed("");
    none.fail(ConnectError::Refused);
    let refused = none.client().ask(ServerProbe::Ray, "tiny").await;
    assert_eq!(refused, ServerFacts::Ray(Err("connection refused".to_owned())));
}
