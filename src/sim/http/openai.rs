//! vLLM's OpenAI-compatible answers: models, tokenize, completions and chat, plain and streamed, and its error shapes.

use std::hash::{DefaultHasher, Hasher as _};
use std::sync::Arc;

use hyper::{Response, StatusCode};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::sim::shared::Shared;
use crate::sim::world::spec::Spec;
use crate::sim::world::stats::Finish;

use super::generate::{self, Job, Token};
use super::{Body, text, unix};

/// Tokens of a completion when the request does not say.
const DEFAULT_TOKENS: u64 = 16;

/// Tokens that the chat template adds to a prompt, and to each message.
const TEMPLATE: [u64; 2] = [5, 4];

/// Shortest natural answer, and how much longer another one may be.
const ANSWER: [u64; 2] = [60, 200];

/// Shortest reasoning before it, and how much longer another one may be.
const REASONING: [u64; 2] = [24, 40];

/// GET /v1/models.
pub fn models(spec: &Spec, now: u64) -> Value {
    json!({"object": "list", "data": [{
        "id": spec.served, "object": "model", "created": now, "owned_by": "vllm", "root": spec.model, "parent": null, "max_model_len": spec.max_len,
        "permission": [{
            "id": "modelperm-9126d8dabfa88c94", "object": "model_permission", "created": now, "allow_create_engine": false, "allow_sampling": true,
            "allow_logprobs": true, "allow_search_indices": false, "allow_view": true, "allow_fine_tuning": false, "organization": "*", "group": null,
            "is_blocking": false
        }]
    }]})
}

/// An error as vLLM words it.
fn error(status: StatusCode, kind: &str, param: Option<&str>, message: &str) -> Response<Body> {
    text::body(
        status,
        &json!({"error": {"message": message, "type": kind, "param": param, "code": status.as_u16()}}),
    )
}

fn missing(field: &str, fields: usize) -> Response<Body> {
    let message = format!(
        "1 validation error:\n  {{'type': 'missing', 'loc': 'body.{field}', 'msg': 'Field required', 'input': '<dict of {fields} items>'}}"
    );
    error(
        StatusCode::BAD_REQUEST,
        "Bad Request",
        Some(&format!("body.{field}")),
        &message,
    )
}

/// The POST requests.
pub async fn answer(shared: &Arc<Shared>, number: u64, spec: &Spec, path: &str, body: &[u8]) -> Response<Body> {
    let request = match serde_json::from_slice::<Value>(body) {
        Ok(value @ Value::Object(_)) => value,
        Ok(_) | Err(_) => {
            let place = format!("body.{}", body.len().saturating_sub(1));
            let message = format!(
                "1 validation error:\n  {{'type': 'json_invalid', 'loc': '{place}', 'msg': 'JSON decode error', 'input': '<dict of 0 items>', 'ctx': {{'error': 'Expecting value'}}}}"
            );
            return error(StatusCode::BAD_REQUEST, "Bad Request", Some(&place), &message);
        }
    };
    if let Some(model) = request.get("model").and_then(Value::as_str)
        && model != spec.served
    {
        let message = format!("The model `{model}` does not exist. Valid aliases: {}.", spec.served);
        return error(StatusCode::NOT_FOUND, "NotFoundError", Some("model"), &message);
    }
    let chat = path == "/v1/chat/completions";
    let fields = request.as_object().map_or(0, serde_json::Map::len);
    let Some(prompt) = prompt_tokens(
        &request,
        chat || (path == "/tokenize" && request.get("messages").is_some()),
    ) else {
        return missing(if chat { "messages" } else { "prompt" }, fields);
    };
    if path == "/tokenize" {
        let ids: Vec<u64> = (0..prompt).map(|n| 1000 + n * 7 % 9000).collect();
        return text::body(
            StatusCode::OK,
            &json!({"count": prompt, "max_model_len": spec.max_len, "tokens": ids, "token_strs": null}),
        );
    }
    let wanted = match Wanted::read(&request, spec, prompt, chat) {
        Ok(wanted) => wanted,
        Err(response) => return *response,
    };
    let job = Job {
        number,
        places: spec.max_seqs,
        prompt,
        tokens: wanted.tokens,
        finish: wanted.finish,
    };
    let answer = Answer {
        id: format!(
            "{}-{:016x}",
            if chat { "chatcmpl" } else { "cmpl" },
            hash(&(body, unix(shared), shared.clock.now()))
        ),
        created: unix(shared),
        model: spec.served.clone(),
        chat,
        prompt,
        wanted,
    };
    let tokens = generate::start(shared, job);
    if answer.wanted.stream {
        let (out, events) = mpsc::channel(text::EVENTS);
        shared.tasks.spawn(answer.stream(tokens, out));
        text::events(events)
    } else {
        answer.whole(tokens).await
    }
}

/// Prompt tokens of a request; `None` when it has no prompt.
fn prompt_tokens(request: &Value, chat: bool) -> Option<u64> {
    if chat {
        let [base, each] = TEMPLATE;
        let messages = request.get("messages")?.as_array()?;
        let said = messages.iter().map(|m| match m.get("content") {
            Some(Value::String(s)) => text::count(s) + each,
            Some(Value::Array(parts)) => {
                let texts = parts.iter().filter_map(|p| p.get("text").and_then(Value::as_str));
                texts.map(text::count).sum::<u64>() + each
            }
            _ => each,
        });
        return Some(base + said.sum::<u64>());
    }
    match request.get("prompt")? {
        Value::String(s) => Some(text::count(s)),
        Value::Array(items) => {
            if items.iter().all(Value::is_number) {
                return u64::try_from(items.len()).ok();
            }
            // A list of prompts: this server reads the first.
            match items.first()? {
                Value::String(s) => Some(text::count(s)),
                Value::Array(ids) => u64::try_from(ids.len()).ok(),
                _ => None,
            }
        }
        _ => None,
    }
}

/// What a request wants.
struct Wanted {
    stream: bool,
    usage: bool,
    usage_in_each: bool,
    tokens: u64,
    reasoning: u64,
    finish: Finish,
}

impl Wanted {
    fn read(request: &Value, spec: &Spec, prompt: u64, chat: bool) -> Result<Self, Box<Response<Body>>> {
        let flag = |name: &str| request.get(name).and_then(Value::as_bool).unwrap_or(false);
        let option = |name: &str| {
            request
                .get("stream_options")
                .and_then(|o| o.get(name))
                .and_then(Value::as_bool)
                .unwrap_or(false)
        };
        let number = |name: &str| request.get(name).and_then(Value::as_u64);
        if prompt > spec.max_len {
            let message = format!(
                "This model's maximum context length is {} tokens. However, your prompt contains at least {prompt} input tokens, which exceeds this limit even without any output tokens. Please reduce the length of the input prompt. (parameter=input_tokens, value={prompt})",
                spec.max_len
            );
            return Err(Box::new(error(
                StatusCode::BAD_REQUEST,
                "BadRequestError",
                Some("input_tokens"),
                &message,
            )));
        }
        let room = (spec.max_len - prompt).max(1);
        let asked = number("max_completion_tokens").or(number("max_tokens"));
        if let Some(n) = asked.filter(|n| *n > spec.max_len) {
            let message = format!(
                "max_tokens={n} cannot be greater than max_model_len={}. Please request fewer output tokens. (parameter=max_tokens, value={n})",
                spec.max_len
            );
            return Err(Box::new(error(
                StatusCode::BAD_REQUEST,
                "BadRequestError",
                Some("max_tokens"),
                &message,
            )));
        }
        let most = asked.unwrap_or(if chat { room } else { DEFAULT_TOKENS }).clamp(1, room);
        let seed = hash(&request.to_string());
        let [thought, more_thought] = REASONING;
        let [shortest, more] = ANSWER;
        let reasoning = if chat { thought + seed % more_thought } else { 0 };
        let natural = (reasoning + shortest + seed % more).max(number("min_tokens").unwrap_or(0));
        let ends_itself = !flag("ignore_eos") && natural <= most;
        let tokens = if ends_itself { natural } else { most };
        Ok(Self {
            stream: flag("stream"),
            usage: option("include_usage"),
            usage_in_each: option("continuous_usage_stats"),
            tokens,
            reasoning: reasoning.min(tokens),
            finish: if ends_itself { Finish::Stop } else { Finish::Length },
        })
    }
}

/// The same value for the same request, so that an answer repeats.
fn hash(value: &impl std::hash::Hash) -> u64 {
    let mut h = DefaultHasher::new();
    value.hash(&mut h);
    h.finish()
}

/// An answer that is being given.
struct Answer {
    id: String,
    created: u64,
    model: String,
    chat: bool,
    prompt: u64,
    wanted: Wanted,
}

/// What a stream says when its engine dies: HTTP 200 went out long before.
fn dead() -> Value {
    json!({"error": {
        "message": "EngineCore encountered an issue. See stack trace (above) for the root cause.", "type": "InternalServerError", "param": null, "code": 500
    }})
}

impl Answer {
    fn usage(&self, tokens: u64) -> Value {
        json!({"prompt_tokens": self.prompt, "total_tokens": self.prompt + tokens, "completion_tokens": tokens})
    }

    fn chunk(&self, choices: &Value) -> Value {
        let object = if self.chat {
            "chat.completion.chunk"
        } else {
            "text_completion"
        };
        json!({"id": self.id, "object": object, "created": self.created, "model": self.model, "choices": choices})
    }

    /// The chunk of the n-th token, counted from 0.
    fn token(&self, n: u64, finish: Option<Finish>) -> Value {
        let finish = finish.map(Finish::word);
        if !self.chat {
            return self.chunk(&json!([{
                "index": 0, "text": text::word(n), "logprobs": null, "finish_reason": finish, "stop_reason": null, "prompt_token_ids": null,
                "token_ids": null
            }]));
        }
        let delta = if n < self.wanted.reasoning {
            json!({"reasoning": text::thought(n)})
        } else {
            json!({"content": text::word(n - self.wanted.reasoning)})
        };
        let mut choice =
            json!({"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish, "token_ids": null});
        if let (Value::Object(map), Some(_)) = (&mut choice, finish) {
            map.insert("stop_reason".to_owned(), Value::Null);
        }
        self.chunk(&json!([choice]))
    }

    /// Sends the answer as events. Ends when the client has gone.
    async fn stream(self, mut tokens: mpsc::Receiver<Token>, out: mpsc::Sender<String>) {
        let with_usage = |mut chunk: Value, n: u64| {
            if let (true, Value::Object(map)) = (self.wanted.usage_in_each, &mut chunk) {
                map.insert("usage".to_owned(), self.usage(n));
            }
            chunk.to_string()
        };
        let mut sent = 0;
        while let Some(token) = tokens.recv().await {
            if sent == 0 && self.chat && token != Token::Dead {
                let role = self.chunk(&json!([{"index": 0, "delta": {"role": "assistant", "content": ""}, "logprobs": null, "finish_reason": null}]));
                if out.send(with_usage(role, 0)).await.is_err() {
                    return;
                }
            }
            let text = match token {
                Token::Next(finish) => {
                    let chunk = self.token(sent, finish);
                    sent += 1;
                    with_usage(chunk, sent)
                }
                Token::Dead => dead().to_string(),
            };
            if out.send(text).await.is_err() {
                return;
            }
            if token == Token::Dead {
                let _ = out.send("[DONE]".to_owned()).await;
                return;
            }
        }
        if sent < self.wanted.tokens {
            return;
        }
        if self.wanted.usage {
            let mut last = self.chunk(&json!([]));
            if let Value::Object(map) = &mut last {
                map.insert("usage".to_owned(), self.usage(sent));
            }
            if out.send(last.to_string()).await.is_err() {
                return;
            }
        }
        let _ = out.send("[DONE]".to_owned()).await;
    }

    /// The whole answer at once.
    async fn whole(self, mut tokens: mpsc::Receiver<Token>) -> Response<Body> {
        let (mut reasoning, mut content, mut sent) = (String::new(), String::new(), 0);
        let mut finish = None;
        while let Some(token) = tokens.recv().await {
            match token {
                Token::Next(how) => {
                    if sent < self.wanted.reasoning {
                        reasoning.push_str(text::thought(sent));
                    } else {
                        content.push_str(text::word(sent - self.wanted.reasoning));
                    }
                    sent += 1;
                    finish = how;
                }
                Token::Dead => return text::body(StatusCode::INTERNAL_SERVER_ERROR, &dead()),
            }
        }
        let finish = finish.map(Finish::word);
        let (object, choice) = if self.chat {
            let content = if content.is_empty() {
                Value::Null
            } else {
                json!(content)
            };
            let message = json!({
                "role": "assistant", "content": content, "refusal": null, "annotations": null, "audio": null, "function_call": null,
                "reasoning": reasoning
            });
            (
                "chat.completion",
                json!({"index": 0, "message": message, "logprobs": null, "finish_reason": finish, "stop_reason": null, "token_ids": null}),
            )
        } else {
            (
                "text_completion",
                json!({"index": 0, "text": content, "logprobs": null, "finish_reason": finish, "stop_reason": null, "token_ids": null}),
            )
        };
        text::body(
            StatusCode::OK,
            &json!({
                "id": self.id, "object": object, "created": self.created, "model": self.model, "choices": [choice], "usage": self.usage(sent)
            }),
        )
    }
}
