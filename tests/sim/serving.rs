//! A cluster that is brought up by hand, and a server whose counters are what it sent.

use bringup::domain::command::Command;
use russh::ChannelMsg;
use serde_json::{Value, json};

use crate::client::{self, LONG, docker, finish, http, jump, node, start, until};
use crate::{HEAD, RUN, SERVE, WORKER, cluster};

fn counter(metrics: &str, name: &str) -> f64 {
    let line = metrics
        .lines()
        .find(|l| l.starts_with(name))
        .unwrap_or_else(|| panic!("no {name} in\n{metrics}"));
    line.rsplit_once(' ').unwrap().1.parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_comes_up_serves_what_it_counts_and_goes() {
    let cluster = cluster(60.0).await;
    let way_in = jump(&cluster).await;
    let head = node(&cluster, &way_in, HEAD).await;
    let worker = node(&cluster, &way_in, WORKER).await;

    let said = docker(&head, &format!("{RUN} --head --port 6379 --node-ip-address {HEAD}")).await;
    assert_eq!((said.out.trim().len(), said.err.as_str(), said.code), (64, "", Some(0)));
    let said = docker(
        &worker,
        &format!("{RUN} --address={HEAD}:6379 --node-ip-address {WORKER}"),
    )
    .await;
    assert_eq!(said.code, Some(0), "{}", said.err);
    let nodes = until("two nodes in Ray", || async {
        let (_, body) = http(&head, 8265, "GET", "/api/v0/nodes", "").await?;
        let body: Value = serde_json::from_str(&body).unwrap();
        let list = body["data"]["result"]["result"].as_array().unwrap().clone();
        (list.len() == 2).then_some(list)
    })
    .await;
    let seen: Vec<_> = nodes
        .iter()
        .map(|n| {
            (
                n["node_ip"].as_str().unwrap(),
                n["state"].as_str().unwrap(),
                &n["resources_total"]["GPU"],
            )
        })
        .collect();
    assert_eq!(seen, [(HEAD, "ALIVE", &json!(1.0)), (WORKER, "ALIVE", &json!(1.0))]);

    let follow = Command::argv(["docker", "logs", "-f", "--timestamps", "v"], LONG).follow();
    let mut log = start(&head, &follow).await;
    assert!(
        http(&head, 8000, "GET", "/health", "").await.is_none(),
        "the port refuses before the load"
    );
    assert_eq!(docker(&head, SERVE).await.code, Some(0));
    until("health", || async {
        http(&head, 8000, "GET", "/health", "")
            .await
            .filter(|(status, _)| *status == 200)
    })
    .await;
    let mut text = String::new();
    while !text.contains("Application startup complete.") {
        if let ChannelMsg::Data { data } = tokio::time::timeout(LONG, log.wait()).await.unwrap().unwrap() {
            text.push_str(&String::from_utf8_lossy(&data));
        }
    }
    for line in [
        "checkpoint shards: 100% Completed | 41/41",
        "via NET/IB/0",
        "Graph capturing finished",
        "version 0.17.0",
    ] {
        assert!(text.contains(line), "no {line} in the head's log");
    }
    log.eof().await.unwrap();
    assert_eq!(finish(log).await.code, Some(143), "a follower ends with its input");

    serves(&head).await;
    refuses(&head).await;

    assert_eq!(docker(&worker, "stop v").await.code, Some(0));
    until("the port to refuse when a rank is gone", || async {
        http(&head, 8000, "GET", "/health", "").await.is_none().then_some(())
    })
    .await;
    assert_eq!(docker(&head, "stop v").await.code, Some(0));
    assert_eq!(docker(&head, "rm v").await.code, Some(0));
    assert!(http(&head, 8265, "GET", "/api/v0/nodes", "").await.is_none());
    assert_eq!(docker(&head, "ps -a").await.out.lines().count(), 1);
    cluster.shutdown().await;
}

/// Streams and plain answers, and the counters afterwards.
async fn serves(head: &russh::client::Handle<client::Check>) {
    let (_, models) = http(head, 8000, "GET", "/v1/models", "").await.unwrap();
    assert_eq!(
        serde_json::from_str::<Value>(&models).unwrap()["data"][0]["id"],
        "org/model"
    );
    let (_, tokens) = http(
        head,
        8000,
        "POST",
        "/tokenize",
        &json!({"model": "org/model", "prompt": "one two three"}).to_string(),
    )
    .await
    .unwrap();
    assert_eq!(serde_json::from_str::<Value>(&tokens).unwrap()["count"], 3);
    let request = json!({
        "model": "org/model", "prompt": "one two three", "max_tokens": 40, "ignore_eos": true, "stream": true, "stream_options": {"include_usage": true}
    });
    let body = request.to_string();
    let streams = (0..4).map(|_| http(head, 8000, "POST", "/v1/completions", &body));
    let mut sent = 0;
    for answer in futures_util::future::join_all(streams).await {
        let (status, body) = answer.unwrap();
        assert_eq!(status, 200);
        let events: Vec<&str> = body.split("\n\n").filter(|e| !e.is_empty()).collect();
        let (done, chunks) = events.split_last().unwrap();
        assert_eq!(*done, "data: [DONE]");
        let chunks: Vec<Value> = chunks
            .iter()
            .map(|e| serde_json::from_str(e.strip_prefix("data: ").unwrap()).unwrap())
            .collect();
        let texts = chunks.iter().filter(|c| c["choices"][0]["text"].is_string()).count();
        assert_eq!(texts, 40);
        assert_eq!(chunks[39]["choices"][0]["finish_reason"], "length");
        assert_eq!(
            chunks[40]["usage"],
            json!({"prompt_tokens": 3, "total_tokens": 43, "completion_tokens": 40})
        );
        sent += texts;
    }
    let chat = json!({"model": "org/model", "messages": [{"role": "user", "content": "hello"}], "max_tokens": 2000});
    let (_, body) = http(head, 8000, "POST", "/v1/chat/completions", &chat.to_string())
        .await
        .unwrap();
    let body: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(body["choices"][0]["finish_reason"], "stop", "{body}");
    assert!(
        body["choices"][0]["message"]["reasoning"]
            .as_str()
            .unwrap()
            .starts_with("The question")
    );
    assert!(
        body["choices"][0]["message"]["content"]
            .as_str()
            .unwrap()
            .starts_with("The two nodes")
    );
    let generated = sent as f64 + body["usage"]["completion_tokens"].as_f64().unwrap();
    let prompts = 12.0 + body["usage"]["prompt_tokens"].as_f64().unwrap();
    let (_, metrics) = http(head, 8000, "GET", "/metrics", "").await.unwrap();
    assert_eq!(counter(&metrics, "vllm:generation_tokens_total{"), generated);
    assert_eq!(counter(&metrics, "vllm:prompt_tokens_total{"), prompts);
    assert_eq!(counter(&metrics, "vllm:num_requests_running{"), 0.0);
    assert_eq!(counter(&metrics, "vllm:kv_cache_usage_perc{"), 0.0);
    assert_eq!(
        counter(
            &metrics,
            "vllm:request_success_total{engine=\"0\",finished_reason=\"length\""
        ),
        4.0
    );
    assert_eq!(
        counter(
            &metrics,
            "vllm:request_success_total{engine=\"0\",finished_reason=\"stop\""
        ),
        1.0
    );
    assert_eq!(counter(&metrics, "vllm:time_to_first_token_seconds_count{"), 5.0);
}

/// vLLM's error shapes.
async fn refuses(head: &russh::client::Handle<client::Check>) {
    let chat = "/v1/chat/completions";
    let cases = [
        (
            chat,
            r#"{"model":"nope","messages":[]}"#,
            404,
            "The model `nope` does not exist. Valid aliases: org/model.",
        ),
        (chat, "{\"model\":", 400, "JSON decode error"),
        (
            chat,
            r#"{"model":"org/model"}"#,
            400,
            "'loc': 'body.messages', 'msg': 'Field required'",
        ),
        (
            chat,
            r#"{"model":"org/model","messages":[],"max_tokens":99999}"#,
            400,
            "max_tokens=99999 cannot be greater than max_model_len=32768",
        ),
        (
            "/v1/completions",
            r#"{"model":"org/model"}"#,
            400,
            "'loc': 'body.prompt'",
        ),
    ];
    for (path, body, status, text) in cases {
        let (got, answer) = http(head, 8000, "POST", path, body).await.unwrap();
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert_eq!((got, &answer["error"]["code"]), (status, &json!(status)), "{body}");
        assert!(answer["error"]["message"].as_str().unwrap().contains(text), "{answer}");
    }
    assert_eq!(http(head, 8000, "GET", "/nowhere", "").await.unwrap().0, 404);
    assert_eq!(http(head, 8000, "GET", "/v1/completions", "").await.unwrap().0, 405);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_world_outlives_those_who_look_at_it() {
    let cluster = cluster(60.0).await;
    {
        let way_in = jump(&cluster).await;
        let head = node(&cluster, &way_in, HEAD).await;
        docker(&head, &format!("{RUN} --head --num-gpus 2 --node-ip-address {HEAD}")).await;
        until("Ray", || async { http(&head, 8265, "GET", "/api/v0/nodes", "").await }).await;
        docker(&head, SERVE).await;
    }
    let way_in = jump(&cluster).await;
    let head = node(&cluster, &way_in, HEAD).await;
    let again = docker(&head, &format!("{RUN} --head --node-ip-address {HEAD}")).await;
    assert_eq!(again.code, Some(125));
    assert!(again.err.contains("is already in use by container"));
    until("health", || async {
        http(&head, 8000, "GET", "/health", "")
            .await
            .filter(|(status, _)| *status == 200)
    })
    .await;
    cluster.shutdown().await;
}
