//! JSON and event streams as HTTP answers, and the words that the simulated model says.

use bytes::Bytes;
use http_body_util::BodyExt as _;
use http_body_util::StreamBody;
use hyper::body::Frame;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};
use serde_json::Value;
use tokio::sync::mpsc;

use super::{Body, full};

/// Events that may stand between the one who makes them and the connection; more, and the maker waits.
pub const EVENTS: usize = 16;

/// A JSON answer.
pub fn body(status: StatusCode, value: &Value) -> Response<Body> {
    let mut response = Response::new(full(value.to_string()));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// An answer of server-sent events, one for each value that comes.
pub fn events(receiver: mpsc::Receiver<String>) -> Response<Body> {
    let stream = futures_util::stream::unfold(receiver, async |mut receiver| {
        let data = receiver.recv().await?;
        let frame = Frame::data(Bytes::from(format!("data: {data}\n\n")));
        Some((Ok(frame), receiver))
    });
    let mut response = Response::new(StreamBody::new(stream).boxed_unsync());
    let kind = HeaderValue::from_static("text/event-stream; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

/// What the model says, a token each, over and over.
const WORDS: [&str; 40] = [
    "The", " two", " nodes", " share", " one", " model", ":", " each", " holds", " half", " of", " every", " layer",
    ",", " and", " after", " each", " step", " they", " add", " up", " what", " they", " have", " over", " the",
    " fabric", ".", " A", " slow", " link", " shows", " at", " once", " in", " the", " time", " per", " token", ".",
];

/// What it thinks before, likewise.
const THOUGHTS: [&str; 16] = [
    "The",
    " question",
    " is",
    " short",
    ",",
    " so",
    " the",
    " answer",
    " should",
    " be",
    " short",
    " too",
    ".",
    " First",
    ",",
    " recall",
];

/// The text of a token of the answer.
pub fn word(n: u64) -> &'static str {
    pick(&WORDS, n)
}

/// The text of a token of the reasoning.
pub fn thought(n: u64) -> &'static str {
    pick(&THOUGHTS, n)
}

fn pick(words: &[&'static str], n: u64) -> &'static str {
    let place = usize::try_from(n).unwrap_or(0) % words.len().max(1);
    words.get(place).copied().unwrap_or("")
}

/// Characters that one token of a long word holds.
const TOKEN_CHARS: usize = 6;

/// How many tokens a text has for the simulated tokenizer: a word is one for every six letters, a sign is one, white space belongs to what follows.
pub fn count(text: &str) -> u64 {
    let mut tokens = 0;
    let mut letters = 0;
    for c in text.chars() {
        if c.is_alphanumeric() {
            if letters == 0 {
                tokens += 1;
            }
            letters = (letters + 1) % TOKEN_CHARS;
        } else {
            letters = 0;
            if !c.is_whitespace() {
                tokens += 1;
            }
        }
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longer_texts_have_more_tokens_in_proportion() {
        assert_eq!(count(""), 0);
        assert_eq!(count("Hello, world!"), 4);
        assert_eq!(count("extraordinarily"), 3);
        assert_eq!(count(&"word ".repeat(100)), 100);
    }
}
