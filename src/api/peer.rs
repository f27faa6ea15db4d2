//! One port of the head as an HTTP client sees it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use reqwest::{RequestBuilder, Response};

use super::answers;
use super::connect::Connect;
use super::error::ApiError;
use super::tunnel::{CONNECTIONS, Tunnel};

/// Longest body that is read as a whole, in bytes. /metrics of a server with many ranks is the largest.
pub(super) const BODY: usize = 8 << 20;

/// Longest body that is read beside an error status, in bytes.
pub(super) const ERROR_BODY: usize = 64 << 10;

/// How long an idle connection is kept. Less than the 5 s after which uvicorn closes one, so that no request meets a connection that is just closing.
const IDLE: Duration = Duration::from_secs(3);

/// One port behind a tunnel.
pub(super) struct Peer {
    http: reqwest::Client,
    base: String,
    tunnel: Tunnel,
}

impl Peer {
    pub(super) fn open(sockets: &Path, connector: Arc<dyn Connect>, host: &str, port: u16) -> Result<Self, ApiError> {
        let tunnel = Tunnel::open(sockets, connector, host, port).map_err(|e| ApiError::Socket(e.to_string()))?;
        let http = reqwest::Client::builder()
            .unix_socket(tunnel.path())
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("bringup/", env!("CARGO_PKG_VERSION")))
            .pool_max_idle_per_host(CONNECTIONS)
            .pool_idle_timeout(IDLE)
            .build()
            .map_err(|e| ApiError::Socket(e.to_string()))?;
        let host = if host.contains(':') {
            format!("[{host}]")
        } else {
            host.to_owned()
        };
        let base = format!("http://{host}:{port}");
        Ok(Self { http, base, tunnel })
    }

    pub(super) fn get(&self, path: &str) -> RequestBuilder {
        self.http.get(format!("{}{path}", self.base))
    }

    pub(super) fn post(&self, path: &str) -> RequestBuilder {
        self.http.post(format!("{}{path}", self.base))
    }

    /// Sends a request that must be answered in whole within `limit`, and waits for the head of its answer.
    pub(super) async fn send(&self, request: RequestBuilder, limit: Duration) -> Result<Response, ApiError> {
        let mark = self.tunnel.mark();
        let sent = request.timeout(limit).send().await;
        sent.map_err(|error| match self.tunnel.failure_since(mark) {
            Some(failure) if !error.is_timeout() => failure.into(),
            Some(_) | None => ApiError::of(error, limit),
        })
    }
}

/// An answer with a good status, or what the other status and its body say.
pub(super) async fn good(mut answer: Response) -> Result<Response, ApiError> {
    let status = answer.status();
    if status.is_success() {
        return Ok(answer);
    }
    // The status is the failure; a body that breaks off adds nothing.
    let text = body(&mut answer, ERROR_BODY, Duration::ZERO).await.unwrap_or_default();
    let message = answers::error_text(&text).or_else(|| status.canonical_reason().map(str::to_owned));
    Err(ApiError::Status {
        code: status.as_u16(),
        message,
    })
}

/// The whole body, when it is not longer than `most` bytes; `limit` is the request's, for the words of a time-out.
pub(super) async fn body(answer: &mut Response, most: usize, limit: Duration) -> Result<Vec<u8>, ApiError> {
    let mut all = Vec::new();
    while let Some(piece) = answer.chunk().await.map_err(|e| ApiError::of(e, limit))? {
        if all.len() + piece.len() > most {
            return Err(ApiError::TooLong(most));
        }
        all.extend_from_slice(&piece);
    }
    Ok(all)
}
