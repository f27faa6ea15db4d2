//! The requests: probes of the server and of Ray's dashboard, and what a throughput test needs.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{join, join_all};
use reqwest::header::{CONTENT_TYPE, SERVER};
use reqwest::{RequestBuilder, Response};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::domain::count::things;
use crate::domain::ray::RayFacts;
use crate::domain::serving::{Health, MetricsSample, NoToken, ServerFacts, ServerProbe, TokenProof};
use crate::engine::metrics;
use crate::probe::dashboard;
use crate::record::Folder;

use super::answers::{self, Answer};
use super::connect::Connect;
use super::error::ApiError;
use super::peer::{BODY, ERROR_BODY, Peer, body, good};
use super::stream::Completion;
use super::tunnel::{CONNECTIONS, private_directory};

/// Longest wait for the answer to a probe.
pub const PROBE_LIMIT: Duration = Duration::from_secs(5);

/// Longest wait for one asked token: an engine may still compile for its first request.
pub const TOKEN_LIMIT: Duration = Duration::from_secs(120);

/// Longest wait for a count of tokens.
pub const COUNT_LIMIT: Duration = Duration::from_secs(60);

/// Prompt of the one asked token.
const HELLO: &str = "Hello";

/// Where the server and the dashboard listen, as the head sees them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Host of both; the head's own loopback address for a server that listens at every address.
    pub host: String,
    /// The model server's port.
    pub port: u16,
    /// The port of Ray's dashboard.
    pub dashboard_port: u16,
}

/// Which of the two ways to complete a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Endpoint {
    /// POST /v1/completions: the prompt as it is.
    Completions,
    /// POST /v1/chat/completions: the prompt as a user's message, in the model's template.
    Chat,
}

impl Endpoint {
    fn path(self) -> &'static str {
        match self {
            Self::Completions => "/v1/completions",
            Self::Chat => "/v1/chat/completions",
        }
    }

    fn body(self, model: &str, prompt: &str) -> Value {
        match self {
            Self::Completions => json!({"model": model, "prompt": prompt}),
            Self::Chat => json!({"model": model, "messages": [{"role": "user", "content": prompt}]}),
        }
    }
}

/// A completion to ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompletionRequest<'a> {
    /// The served model's name.
    pub model: &'a str,
    /// The prompt.
    pub prompt: &'a str,
    /// Output tokens, exactly: the end-of-sequence token is ignored.
    pub max_tokens: u32,
    /// Which way.
    pub endpoint: Endpoint,
    /// Longest time for the whole answer.
    pub limit: Duration,
}

/// The client of one cluster's server. Clones share connections.
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

struct Inner {
    server: Peer,
    dashboard: Peer,
    key: Option<SecretString>,
    probe_limit: Duration,
    _sockets: Folder,
}

impl Client {
    /// A client that reaches `place` through `connector`. Opens no connection yet. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// When the private sockets cannot be made.
    pub fn open(connector: Arc<dyn Connect>, place: &Place, key: Option<SecretString>) -> Result<Self, ApiError> {
        Self::open_with(connector, place, key, PROBE_LIMIT)
    }

    pub(super) fn open_with(
        connector: Arc<dyn Connect>,
        place: &Place,
        key: Option<SecretString>,
        probe_limit: Duration,
    ) -> Result<Self, ApiError> {
        let sockets = private_directory().map_err(|e| ApiError::Socket(e.to_string()))?;
        let peer = |port| Peer::open(sockets.path(), Arc::clone(&connector), &place.host, port);
        let inner = Inner {
            server: peer(place.port)?,
            dashboard: peer(place.dashboard_port)?,
            key,
            probe_limit,
            _sockets: sockets,
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Asks a question; never fails as a whole.
    pub async fn ask(&self, probe: ServerProbe, model: &str) -> ServerFacts {
        let words = |error: ApiError| error.to_string();
        match probe {
            ServerProbe::Health => ServerFacts::Health(self.health().await),
            ServerProbe::Models => ServerFacts::Models(self.models().await.map_err(words)),
            ServerProbe::Metrics => ServerFacts::Metrics(self.metrics().await.map(Box::new).map_err(words)),
            ServerProbe::Token => ServerFacts::Token(self.token(model).await.map_err(|error| match error {
                ApiError::Unauthorized { .. } => NoToken::NotLetIn(words(error)),
                error => NoToken::Failed(words(error)),
            })),
            ServerProbe::Ray => ServerFacts::Ray(self.ray().await.map_err(words)),
        }
    }

    async fn health(&self) -> Health {
        let request = self.server_get("/health");
        match self.inner.server.send(request, self.inner.probe_limit).await {
            Ok(mut answer) => {
                let status = answer.status();
                // Read to its end only so that the connection can be used again.
                let _ = body(&mut answer, ERROR_BODY, self.inner.probe_limit).await;
                if status.as_u16() == 200 {
                    Health::Ok
                } else {
                    Health::Status(status.as_u16())
                }
            }
            Err(ApiError::Refused) => Health::Refused,
            Err(error) => Health::Unreachable(error.to_string()),
        }
    }

    async fn models(&self) -> Result<Vec<String>, ApiError> {
        answers::models(&self.get("/v1/models").await?)
    }

    /// A scrape of /metrics.
    ///
    /// # Errors
    /// When there is none, or it holds nothing of a model server.
    pub async fn metrics(&self) -> Result<MetricsSample, ApiError> {
        let body = self.get("/metrics").await?;
        let sample = metrics::sample(&String::from_utf8_lossy(&body));
        if sample.of.is_none() {
            let why = "metrics without those of a model server: they are off there, or it is not ready";
            return Err(ApiError::Malformed(why.to_owned()));
        }
        Ok(sample)
    }

    async fn token(&self, model: &str) -> Result<TokenProof, ApiError> {
        let asked = Instant::now();
        let answer = match self.complete(Endpoint::Completions, model, HELLO, TOKEN_LIMIT).await {
            // A model that only chats.
            Err(first) if first.not_offered() => match self.complete(Endpoint::Chat, model, HELLO, TOKEN_LIMIT).await {
                Err(second) if second.not_offered() => return Err(first),
                other => other?,
            },
            other => other?,
        };
        let tokens = answer.usage.completion_tokens.unwrap_or(0);
        if answer.choices == 0 || tokens == 0 {
            return Err(ApiError::Malformed(format!(
                "an answer without a token ({}, {} counted)",
                things(answer.choices, "choice"),
                things(tokens, "token")
            )));
        }
        Ok(TokenProof {
            model: answer.model.unwrap_or_else(|| model.to_owned()),
            tokens,
            took: asked.elapsed(),
        })
    }

    async fn ray(&self) -> Result<RayFacts, ApiError> {
        let peer = &self.inner.dashboard;
        let limit = self.inner.probe_limit;
        let mut answer = good(peer.send(peer.get(dashboard::NODES), limit).await?).await?;
        let server = answer.headers().get(SERVER).and_then(|v| v.to_str().ok());
        let python = server.and_then(dashboard::python);
        let nodes = body(&mut answer, BODY, limit).await?;
        let mut facts = dashboard::parse(&nodes).map_err(ApiError::Malformed)?;
        facts.python = python;
        // What is asked beside the membership does not take it away when it fails.
        let (groups, version) = join(
            self.dashboard_get(dashboard::GROUPS),
            self.dashboard_get(dashboard::VERSION),
        )
        .await;
        facts.version = version.ok().and_then(|body| dashboard::version(&body));
        let groups = groups.map_err(|e| e.to_string());
        match groups.and_then(|body| dashboard::groups(&body)) {
            Ok(pending) => facts.pending = pending,
            Err(why) => facts.pending_unknown = Some(why),
        }
        Ok(facts)
    }

    async fn dashboard_get(&self, path: &str) -> Result<Vec<u8>, ApiError> {
        let (peer, limit) = (&self.inner.dashboard, self.inner.probe_limit);
        let answer = peer.send(peer.get(path), limit).await?;
        body(&mut good(answer).await?, BODY, limit).await
    }

    /// One token of output, not streamed: what the server counted for this prompt.
    ///
    /// # Errors
    /// When there is no answer, or it is an error.
    pub async fn complete(
        &self,
        endpoint: Endpoint,
        model: &str,
        prompt: &str,
        limit: Duration,
    ) -> Result<Answer, ApiError> {
        let mut body = endpoint.body(model, prompt);
        set(&mut body, "max_tokens", json!(1));
        answers::completion(&self.post(endpoint.path(), &body, limit).await?)
    }

    /// Tokens of a prompt by the server's own /tokenize, as `endpoint` would send it; `None` when the server does not offer that.
    ///
    /// # Errors
    /// When there is no answer, or it is another error.
    pub async fn count_tokens(&self, endpoint: Endpoint, model: &str, prompt: &str) -> Result<Option<u64>, ApiError> {
        let body = endpoint.body(model, prompt);
        match self.post("/tokenize", &body, COUNT_LIMIT).await {
            Ok(answer) => answers::token_count(&answer),
            Err(error) if error.not_offered() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Starts a streamed completion. Sampling is the server's default.
    ///
    /// # Errors
    /// When no stream starts. Errors within the stream come from [`Completion::next`].
    pub async fn stream_completion(&self, ask: CompletionRequest<'_>) -> Result<Completion, ApiError> {
        let mut body = ask.endpoint.body(ask.model, ask.prompt);
        set(&mut body, "max_tokens", json!(ask.max_tokens));
        set(&mut body, "ignore_eos", json!(true));
        set(&mut body, "stream", json!(true));
        set(&mut body, "stream_options", json!({"include_usage": true}));
        let request = self.server_post(ask.endpoint.path(), &body);
        let mut answer = self.good(self.inner.server.send(request, ask.limit).await?).await?;
        let kind = answer.headers().get(CONTENT_TYPE).and_then(|v| v.to_str().ok());
        if kind.is_some_and(|kind| kind.starts_with("application/json")) {
            answers::json(&self::body(&mut answer, BODY, ask.limit).await?)?;
            return Err(ApiError::Malformed(
                "one JSON answer where a stream was asked".to_owned(),
            ));
        }
        Ok(Completion::new(answer, ask.limit))
    }

    /// Opens connections to the server ahead of use, at most as many as a tunnel takes, so that the first requests of a test do not wait for them.
    /// What fails is left out.
    pub async fn open_connections(&self, count: usize) {
        let peer = &self.inner.server;
        let asks =
            (0..count.min(CONNECTIONS)).map(|_| peer.send(self.server_get("/v1/models"), self.inner.probe_limit));
        // An answer that is not read yet holds its connection, so each request needs one of its own.
        let answers = join_all(asks).await;
        for mut answer in answers.into_iter().flatten() {
            let _ = body(&mut answer, BODY, self.inner.probe_limit).await;
        }
    }

    async fn get(&self, path: &str) -> Result<Vec<u8>, ApiError> {
        let limit = self.inner.probe_limit;
        let answer = self.inner.server.send(self.server_get(path), limit).await?;
        body(&mut self.good(answer).await?, BODY, limit).await
    }

    async fn post(&self, path: &str, value: &Value, limit: Duration) -> Result<Vec<u8>, ApiError> {
        let answer = self.inner.server.send(self.server_post(path, value), limit).await?;
        body(&mut self.good(answer).await?, BODY, limit).await
    }

    fn server_get(&self, path: &str) -> RequestBuilder {
        self.with_key(self.inner.server.get(path))
    }

    fn server_post(&self, path: &str, value: &Value) -> RequestBuilder {
        self.with_key(self.inner.server.post(path)).json(value)
    }

    fn with_key(&self, request: RequestBuilder) -> RequestBuilder {
        match &self.inner.key {
            Some(key) => request.bearer_auth(key.expose_secret()),
            None => request,
        }
    }

    async fn good(&self, answer: Response) -> Result<Response, ApiError> {
        let code = answer.status().as_u16();
        if code == 401 || code == 403 {
            let key_sent = self.inner.key.is_some();
            return Err(ApiError::Unauthorized { code, key_sent });
        }
        good(answer).await
    }
}

fn set(body: &mut Value, key: &str, value: Value) {
    if let Some(object) = body.as_object_mut() {
        object.insert(key.to_owned(), value);
    }
}
