//! Answers of vLLM 0.32 as they came, head and body.

use super::client::{Client, CompletionRequest, Endpoint};
use super::testing::{Asked, Responder};
use crate::domain::serving::{Health, MetricsOf, NoToken, ServerFacts, ServerProbe};
use std::time::Duration;

/// An answer of its uvicorn.
fn said(status: &str, kind: &str, body: &str) -> Vec<u8> {
    let kind = if kind.is_empty() {
        String::new()
    } else {
        format!("content-type: {kind}\r\n")
    };
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\ndate: Sun, 29 Nov 2026 17:14:25 GMT\r\nserver: uvicorn\r\ncontent-length: {length}\r\n{kind}vary: Origin\r\n\r\n{body}"
    )
    .into_bytes()
}

const JSON: &str = "application/json";

async fn models(bytes: Vec<u8>) -> Result<Vec<String>, String> {
    match Responder::fixed(bytes).client().ask(ServerProbe::Models, "tiny").await {
        ServerFacts::Models(models) => models,
        other => panic!("{other:?}"),
    }
}

async fn stream(client: &Client) -> String {
    let ask = CompletionRequest {
        model: "nope",
        prompt: "Hello",
        max_tokens: 8,
        endpoint: Endpoint::Chat,
        limit: Duration::from_secs(60),
    };
    client.stream_completion(ask).await.map(|_| ()).unwrap_err().to_string()
}

#[tokio::test]
async fn each_shape_of_an_error_is_told_in_the_servers_words() {
    let cases = [
        ("404 Not Found", r#"{"detail":"Not Found"}"#, "404: Not Found"),
        (
            "405 Method Not Allowed",
            r#"{"detail":"Method Not Allowed"}"#,
            "405: Method Not Allowed",
        ),
        (
            "400 Bad Request",
            r#"{"error":{"message":"1 validation error:\n  {'type': 'json_invalid', 'loc': 'body.36', 'msg': 'JSON decode error'}","type":"Bad Request","param":"body.36","code":400}}"#,
            "400: 1 validation error: {'type': 'json_invalid', 'loc': 'body.36', 'msg': 'JSON decode error'}",
        ),
        (
            "400 Bad Request",
            r#"{"error":{"message":"1 validation error:\n  {'type': 'missing', 'loc': 'body.messages', 'msg': 'Field required', 'input': '<dict of 1 items>'}","type":"Bad Request","param":"body.messages","code":400}}"#,
            "400: 1 validation error: {'type': 'missing', 'loc': 'body.messages', 'msg': 'Field required', 'input': '<dict of 1 items>'}",
        ),
        (
            "400 Bad Request",
            r#"{"error":{"message":"max_tokens=5000 cannot be greater than max_model_len=4096. Please request fewer output tokens. (parameter=max_tokens, value=5000)","type":"BadRequestError","param":"max_tokens","code":400}}"#,
            "400: max_tokens=5000 cannot be greater than max_model_len=4096. Please request fewer output tokens. (parameter=max_tokens, value=5000)",
        ),
        (
            "400 Bad Request",
            r#"{"error":{"message":"This model's maximum context length is 4096 tokens. However, your prompt contains at least 4097 input tokens. (parameter=input_tokens, value=4097)","type":"BadRequestError","param":"input_tokens","code":400}}"#,
            "400: This model's maximum context length is 4096 tokens. However, your prompt contains at least 4097 input tokens. (parameter=input_tokens, value=4097)",
        ),
        (
            "404 Not Found",
            r#"{"error":{"message":"The model `nope` does not exist. Valid aliases: tiny.","type":"NotFoundError","param":"model","code":404}}"#,
            "404: The model `nope` does not exist. Valid aliases: tiny.",
        ),
    ];
    for (status, body, want) in cases {
        let client = Responder::fixed(said(status, JSON, body)).client();
        assert_eq!(models(said(status, JSON, body)).await, Err(want.to_owned()));
        // Where a stream was asked for, an error comes as one answer of this shape too.
        assert_eq!(stream(&client).await, want);
        let ServerFacts::Token(token) = client.ask(ServerProbe::Token, "nope").await else {
            panic!("no answer of this kind");
        };
        let not_let_in = status.starts_with("401") || status.starts_with("403");
        assert_eq!(matches!(token, Err(NoToken::NotLetIn(_))), not_let_in, "{status}");
        assert_eq!(token.map_err(|none| none.why().to_owned()), Err(want.to_owned()));
    }
}

#[tokio::test]
async fn health_has_no_body_and_models_carry_much_more_than_their_names() {
    let healthy = Responder::fixed(said("200 OK", "", "")).client();
    assert_eq!(
        healthy.ask(ServerProbe::Health, "tiny").await,
        ServerFacts::Health(Health::Ok)
    );
    let body = r#"{"object":"list","data":[{"id":"tiny","object":"model","created":1795972464,"owned_by":"vllm","root":"/srv/models/tiny-qwen2","parent":null,"max_model_len":4096,"permission":[{"id":"modelperm-9126d8dabfa88c94","object":"model_permission","created":1795972464,"allow_create_engine":false,"organization":"*","group":null,"is_blocking":false}]}]}"#;
    assert_eq!(models(said("200 OK", JSON, body)).await, Ok(vec!["tiny".to_owned()]));
    // What /version, /load and /tokenize say under their 200 is no list of models.
    for other in [
        r#"{"version":"0.32.0"}"#,
        r#"{"server_load":0}"#,
        r#"{"count":2,"max_model_len":4096,"tokens":[1269,312],"token_strs":null}"#,
        "",
    ] {
        let got = models(said("200 OK", JSON, other)).await;
        assert!(
            got.as_ref().is_err_and(|why| why.starts_with("unexpected answer")),
            "{other}: {got:?}"
        );
    }
}

#[tokio::test]
async fn a_chat_in_one_answer_is_a_proof_and_its_tokens_are_those_of_its_usage() {
    let body = r#"{"id":"chatcmpl-b4831bd0f057d9f6","object":"chat.completion","created":1795972465,"model":"tiny","choices":[{"index":0,"message":{"role":"assistant","content":"slARstartution","refusal":null,"annotations":null,"audio":null,"function_call":null,"reasoning":null},"logprobs":null,"finish_reason":"length","stop_reason":null,"token_ids":null,"routed_experts":null}],"service_tier":null,"system_fingerprint":"vllm-0.32.0-33679b51","usage":{"prompt_tokens":13,"total_tokens":29,"completion_tokens":16,"prompt_tokens_details":null,"completion_tokens_details":null},"prompt_logprobs":null,"metrics":null}"#;
    let server = Responder::routes(move |asked: &Asked| match asked.line.as_str() {
        "POST /v1/chat/completions" => said("200 OK", JSON, body),
        "POST /tokenize" => said(
            "200 OK",
            JSON,
            r#"{"count":2,"max_model_len":4096,"tokens":[1269,312],"token_strs":null}"#,
        ),
        _ => said("404 Not Found", JSON, r#"{"detail":"Not Found"}"#),
    });
    let client = server.client();
    let ServerFacts::Token(Ok(proof)) = client.ask(ServerProbe::Token, "tiny").await else {
        panic!("no proof");
    };
    assert_eq!((proof.model.as_str(), proof.tokens), ("tiny", 16));
    assert_eq!(
        client.count_tokens(Endpoint::Completions, "tiny", "a b").await,
        Ok(Some(2))
    );
}

#[tokio::test]
async fn metrics_come_under_a_type_of_their_own() {
    let scrape = include_str!("../../tests/fixtures/metrics/vllm-0.32-after.txt");
    let bytes = said("200 OK", "text/plain; version=1.0.0; charset=utf-8", scrape);
    let ServerFacts::Metrics(Ok(sample)) = Responder::fixed(bytes).client().ask(ServerProbe::Metrics, "tiny").await
    else {
        panic!("no scrape");
    };
    assert_eq!((sample.of, sample.running), (Some(MetricsOf::Vllm), Some(0.0)));
    assert!(sample.generation_tokens.is_some_and(|n| n > 0.0));
}
