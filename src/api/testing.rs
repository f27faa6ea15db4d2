//! A small HTTP responder for tests, reached through streams in memory: it writes exactly the bytes that a test wants, when the test wants.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

use super::client::{Client, PROBE_LIMIT, Place};
use super::connect::{ByteStream, Connect, ConnectError};

/// What a client asked.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    /// Method and path, such as `GET /health`.
    pub(crate) line: String,
    /// The head as it came.
    pub(crate) head: String,
    /// The body, or null.
    pub(crate) body: Value,
}

/// Answers a request by writing to the stream; gives it back to take the next request, or drops it to close.
pub(crate) type Answer = BoxFuture<'static, Option<DuplexStream>>;

type Handler = dyn Fn(Asked, DuplexStream) -> Answer + Send + Sync;

/// The responder, or a way that fails.
pub(crate) struct Responder {
    handler: Arc<Handler>,
    fails: Mutex<Option<ConnectError>>,
    /// Streams opened so far.
    pub(crate) opened: AtomicUsize,
}

impl Responder {
    pub(crate) fn new(handler: impl Fn(Asked, DuplexStream) -> Answer + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self {
            handler: Arc::new(handler),
            fails: Mutex::new(None),
            opened: AtomicUsize::new(0),
        })
    }

    /// Answers every request with these bytes and closes.
    pub(crate) fn fixed(bytes: impl Into<Vec<u8>>) -> Arc<Self> {
        let bytes = bytes.into();
        Self::new(move |_, mut io| {
            let bytes = bytes.clone();
            async move {
                let _ = io.write_all(&bytes).await;
                None
            }
            .boxed()
        })
    }

    /// Answers by the request's line and body, and keeps the connection.
    pub(crate) fn routes(route: impl Fn(&Asked) -> Vec<u8> + Send + Sync + 'static) -> Arc<Self> {
        Self::new(move |asked, mut io| {
            let bytes = route(&asked);
            async move {
                io.write_all(&bytes).await.ok()?;
                Some(io)
            }
            .boxed()
        })
    }

    /// From now on no stream opens.
    pub(crate) fn fail(&self, error: ConnectError) {
        *self.fails.lock().unwrap() = Some(error);
    }

    pub(crate) fn client(self: &Arc<Self>) -> Client {
        self.client_with_key(None)
    }

    pub(crate) fn client_with_key(self: &Arc<Self>, key: Option<&str>) -> Client {
        self.client_with(key, PROBE_LIMIT)
    }

    pub(crate) fn client_with(self: &Arc<Self>, key: Option<&str>, probe_limit: Duration) -> Client {
        let place = Place {
            host: "127.0.0.1".to_owned(),
            port: 8000,
            dashboard_port: 8265,
        };
        let connector: Arc<dyn Connect> = Arc::clone(self) as _;
        Client::open_with(connector, &place, key.map(Into::into), probe_limit).unwrap()
    }
}

impl Connect for Responder {
    fn open<'a>(&'a self, _: &'a str, _: u16) -> BoxFuture<'a, Result<Box<dyn ByteStream>, ConnectError>> {
        self.opened.fetch_add(1, Ordering::SeqCst);
        let fails = self.fails.lock().unwrap().clone();
        let handler = Arc::clone(&self.handler);
        async move {
            if let Some(error) = fails {
                return Err(error);
            }
            let (near, far) = tokio::io::duplex(64 << 10);
            tokio::spawn(serve(far, handler));
            Ok(Box::new(near) as Box<dyn ByteStream>)
        }
        .boxed()
    }
}

async fn serve(mut io: DuplexStream, handler: Arc<Handler>) {
    let mut seen = Vec::new();
    while let Some(asked) = take(&mut io, &mut seen).await {
        let Some(back) = handler(asked, io).await else { return };
        io = back;
    }
}

/// The next request; `None` at the end of the stream.
async fn take(io: &mut DuplexStream, seen: &mut Vec<u8>) -> Option<Asked> {
    let end = loop {
        if let Some(at) = seen.windows(4).position(|w| w == b"\r\n\r\n") {
            break at + 4;
        }
        if io.read_buf(seen).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8_lossy(&seen[..end]).to_lowercase();
    let length = head.lines().find_map(|l| l.strip_prefix("content-length: "));
    let length: usize = length.map_or(0, |n| n.trim().parse().unwrap());
    while seen.len() < end + length {
        if io.read_buf(seen).await.ok()? == 0 {
            return None;
        }
    }
    let text = String::from_utf8_lossy(&seen[..end]).into_owned();
    let body = serde_json::from_slice(&seen[end..end + length]).unwrap_or(Value::Null);
    seen.drain(..end + length);
    let line = text.lines().next().unwrap_or_default();
    let line = line.strip_suffix(" HTTP/1.1").unwrap_or(line).to_owned();
    Some(Asked { line, head: text, body })
}

/// A whole answer.
pub(crate) fn answer(status: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}")
        .into_bytes()
}

/// The head of a streamed answer.
pub(crate) const STREAM_HEAD: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n";

/// The end of a streamed answer's body.
pub(crate) const STREAM_END: &str = "0\r\n\r\n";

/// A piece of a streamed answer's body.
pub(crate) fn piece(bytes: &[u8]) -> Vec<u8> {
    let mut all = format!("{:x}\r\n", bytes.len()).into_bytes();
    all.extend_from_slice(bytes);
    all.extend_from_slice(b"\r\n");
    all
}

/// A whole streamed answer, cut into pieces at these bytes.
pub(crate) fn stream(body: &str, piece_len: usize) -> Vec<u8> {
    let pieces = body.as_bytes().chunks(piece_len.max(1)).flat_map(piece);
    let head = STREAM_HEAD.bytes();
    head.chain(pieces).chain(STREAM_END.bytes()).collect()
}

/// Events of a completion with these texts, its finish reason, its usage and the end mark.
pub(crate) fn events(texts: &[&str], usage: Option<(u64, u64)>) -> String {
    let mut all = String::new();
    let mut push = |data: Value| all.push_str(&format!("data: {data}\n\n"));
    for text in texts {
        push(serde_json::json!({"choices": [{"index": 0, "text": text, "finish_reason": null}]}));
    }
    push(serde_json::json!({"choices": [{"index": 0, "text": "", "finish_reason": "length"}]}));
    if let Some((prompt, completion)) = usage {
        push(serde_json::json!({"choices": [], "usage": {"prompt_tokens": prompt, "completion_tokens": completion}}));
    }
    all.push_str("data: [DONE]\n\n");
    all
}
