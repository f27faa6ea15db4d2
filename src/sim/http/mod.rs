//! HTTP on a tunnel into a node: the model server and Ray's dashboard.
//!
//! One connection a tunnel, HTTP/1.1, no socket. Answers have the shapes of the real programs (captured answers).

mod dashboard;
mod generate;
mod openai;
#[cfg(test)]
mod tests;
mod text;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::header::{ALLOW, CONTENT_TYPE, DATE, HeaderValue, SERVER};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::json;
use tokio::io::{AsyncRead, AsyncWrite};

use super::clock::Moment;
use super::shared::Shared;
use super::world::load::VLLM_VERSION;
use super::world::server::Door;
use super::world::stats::Exported;

/// The body of every answer.
type Body = UnsyncBoxBody<Bytes, Infallible>;

/// Longest request body in bytes.
const MAX_BODY: usize = 8 << 20;

/// How long a connection may go on after its server has ended, to send what it has to say.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// Serves one connection until either end goes, or what stands behind the door does.
pub async fn serve<S>(shared: Arc<Shared>, door: Door, stream: S)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(|request: Request<Incoming>| {
        let (shared, door) = (Arc::clone(&shared), door.clone());
        async move {
            Ok::<_, Infallible>(match door {
                Door::Model(number) => model(shared, number, request).await,
                Door::Dashboard(_) => dashboard::answer(&shared, &request),
            })
        }
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(None)
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    tokio::select! {
        // An error of the connection is the client's going; nobody is left to be told.
        _ = &mut connection => return,
        () = closed(&shared, &door) => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ = tokio::time::timeout(LAST_WORDS, connection).await;
}

/// Resolves when what stands behind the door has gone.
async fn closed(shared: &Shared, door: &Door) {
    let mut changes = shared.changes();
    loop {
        let end = shared.with(|world, now| {
            let end: Option<Option<Moment>> = match door {
                Door::Model(number) => world.server(*number).map(|s| s.end),
                Door::Dashboard(id) => {
                    let all = world.hosts.iter().flat_map(|h| &h.containers);
                    all.into_iter().find(|c| c.id == *id).map(|c| c.end.map(|e| e.at))
                }
            };
            match end {
                None => Some(now),
                Some(end) => end,
            }
            .map(|end| (end <= now, end))
        });
        match end {
            Some((true, _)) => return,
            Some((false, at)) => shared.until(Some(at), &mut changes).await,
            None => shared.until(None, &mut changes).await,
        }
        if shared.cancel.is_cancelled() {
            return;
        }
    }
}

/// One request to the model server.
async fn model(shared: Arc<Shared>, number: u64, request: Request<Incoming>) -> Response<Body> {
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let response = route(&shared, number, request).await;
    shared.change(|world, now| {
        let quiet = world.server(number).is_none_or(|s| s.spec.quiet_paths.contains(&path));
        if !quiet {
            let status = response.status();
            let reason = status.canonical_reason().unwrap_or("");
            let port = 40_000 + now.as_millis() % 20_000;
            let line = format!(
                "INFO:     127.0.0.1:{port} - \"{method} {path} HTTP/1.1\" {} {reason}",
                status.as_u16()
            );
            world.say(number, line, now);
        }
    });
    stamped(&shared, response, "uvicorn")
}

async fn route(shared: &Arc<Shared>, number: u64, request: Request<Incoming>) -> Response<Body> {
    let path = request.uri().path().to_owned();
    let wanted = match path.as_str() {
        "/health" | "/version" | "/metrics" | "/v1/models" | "/load" => Method::GET,
        "/ping" => request.method().clone(),
        "/tokenize" | "/v1/completions" | "/v1/chat/completions" => Method::POST,
        _ => return detail(StatusCode::NOT_FOUND, "Not Found"),
    };
    if *request.method() != wanted {
        let mut response = detail(StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed");
        if let Ok(value) = HeaderValue::from_str(wanted.as_str()) {
            response.headers_mut().insert(ALLOW, value);
        }
        return response;
    }
    let Some(spec) = shared.with(|world, now| world.server(number).filter(|s| s.serves(now)).map(|s| s.spec.clone()))
    else {
        return empty(StatusCode::SERVICE_UNAVAILABLE);
    };
    if path.starts_with("/v1") && !authorised(&request, spec.api_key.as_deref()) {
        return text::body(StatusCode::UNAUTHORIZED, &json!({"error": "Unauthorized"}));
    }
    match path.as_str() {
        "/health" | "/ping" => empty(StatusCode::OK),
        "/load" => {
            let running = shared.with(|w, _| w.server(number).map_or(0, |s| s.stats.running + s.stats.waiting));
            text::body(StatusCode::OK, &json!({ "server_load": running }))
        }
        "/version" => text::body(StatusCode::OK, &json!({ "version": VLLM_VERSION })),
        "/v1/models" => text::body(StatusCode::OK, &openai::models(&spec, unix(shared))),
        "/metrics" => metrics(shared, number),
        _ => {
            let body = match Limited::new(request.into_body(), MAX_BODY).collect().await {
                Ok(all) => all.to_bytes(),
                Err(_) => return detail(StatusCode::PAYLOAD_TOO_LARGE, "Request Entity Too Large"),
            };
            openai::answer(shared, number, &spec, &path, &body).await
        }
    }
}

fn authorised(request: &Request<Incoming>, key: Option<&str>) -> bool {
    let Some(key) = key else {
        return true;
    };
    let given = request
        .headers()
        .get(hyper::header::AUTHORIZATION)
        .and_then(|v| v.to_str().ok());
    given.and_then(|v| v.strip_prefix("Bearer ")) == Some(key)
}

fn metrics(shared: &Shared, number: u64) -> Response<Body> {
    let text = shared.with(|world, now| {
        let calendar = world.calendar;
        world.server(number).map(|s| {
            s.stats.exposition(&Exported {
                model: &s.spec.served,
                started: calendar.unix(s.started),
                cpu_seconds: now.saturating_sub(s.started).as_secs_f64() * 0.2,
                kv_tokens: s.spec.kv_tokens(),
            })
        })
    });
    let mut response = Response::new(full(text.unwrap_or_default()));
    let kind = HeaderValue::from_static("text/plain; version=1.0.0; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

/// Seconds since 1970.
fn unix(shared: &Shared) -> u64 {
    shared.clock.calendar().unix_seconds(shared.clock.now())
}

fn full(text: impl Into<Bytes>) -> Body {
    Full::new(text.into()).boxed_unsync()
}

fn empty(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(full(Bytes::new()));
    *response.status_mut() = status;
    response
}

fn detail(status: StatusCode, text: &str) -> Response<Body> {
    text::body(status, &json!({ "detail": text }))
}

/// The headers that every answer carries.
fn stamped(shared: &Shared, mut response: Response<Body>, server: &'static str) -> Response<Body> {
    let date = shared.clock.calendar().http(shared.clock.now());
    if let Ok(date) = HeaderValue::from_str(&date) {
        response.headers_mut().insert(DATE, date);
    }
    response.headers_mut().insert(SERVER, HeaderValue::from_static(server));
    response
}
