//! A streamed completion, chunk by chunk.

use std::time::Duration;

use bytes::Bytes;
use eventsource_stream::{Event, EventStreamError, Eventsource};
use futures_util::future::ready;
use futures_util::stream::{self, BoxStream};
use futures_util::{Stream, StreamExt};
use reqwest::Response;

use super::chunk::{self, Chunk, Data};
use super::error::ApiError;

/// Longest line of a stream, in bytes. It bounds what is kept of a line that does not end.
const LINE: usize = 1 << 20;

/// Longest stream, in bytes: more than any test's output with all its JSON around it.
const STREAM: usize = 256 << 20;

/// Longest wait for the body's end after the end mark, so that its connection can be used again.
const DRAIN_LIMIT: Duration = Duration::from_millis(250);

/// A byte-order mark, which a stream may begin with.
const BOM: [u8; 3] = [0xEF, 0xBB, 0xBF];

/// An empty comment. eventsource-stream panics on a byte-order mark in what comes first, so this comes first.
const COMMENT: &[u8] = b":\n";

/// A completion that streams. It must be read to its end or dropped: one left unread would stall its SSH connection.
pub struct Completion {
    events: BoxStream<'static, Result<Event, EventStreamError<ApiError>>>,
    finished: bool,
    over: bool,
}

impl Completion {
    /// Reads the body of a response whose status was good; `limit` is the request's, for the words of a time-out.
    pub(super) fn new(response: Response, limit: Duration) -> Self {
        let pieces = response.bytes_stream();
        Self::of(pieces.map(move |piece| piece.map_err(|error| ApiError::of(error, limit))))
    }

    /// Reads a stream of events from pieces of its bytes.
    pub fn of(pieces: impl Stream<Item = Result<Bytes, ApiError>> + Send + 'static) -> Self {
        let mut guard = Guard::default();
        let guarded = pieces.map(move |piece| guard.pass(piece?));
        let begun = stream::once(ready(Ok(Bytes::from_static(COMMENT))));
        Self {
            events: begun.chain(guarded).eventsource().boxed(),
            finished: false,
            over: false,
        }
    }

    /// The next chunk, or `None` after a proper end: the end mark, or the end of the body after a finish reason.
    ///
    /// # Errors
    /// When the server sends an error object, the connection breaks, time is up, a bound is passed, or the body ends too early. Nothing more comes
    /// after an error.
    pub async fn next(&mut self) -> Result<Option<Chunk>, ApiError> {
        if self.over {
            return Ok(None);
        }
        let read = self.read().await;
        self.over = !matches!(read, Ok(Some(_)));
        read
    }

    async fn read(&mut self) -> Result<Option<Chunk>, ApiError> {
        let Some(event) = self.events.next().await else {
            return if self.finished {
                Ok(None)
            } else {
                Err(ApiError::Unfinished)
            };
        };
        let event = event.map_err(|error| match error {
            EventStreamError::Transport(error) => error,
            EventStreamError::Utf8(_) => not_utf8(),
            EventStreamError::Parser(_) => ApiError::Malformed("the stream holds no events".to_owned()),
        })?;
        match chunk::parse(&event.data)? {
            Data::Chunk(chunk) => {
                self.finished |= chunk.finish.is_some();
                Ok(Some(chunk))
            }
            Data::End => {
                self.drain().await;
                Ok(None)
            }
        }
    }

    async fn drain(&mut self) {
        let rest = async { while let Some(Ok(_)) = self.events.next().await {} };
        // A connection that is not drained in time is closed with the body; that is no failure.
        let _ = tokio::time::timeout(DRAIN_LIMIT, rest).await;
    }
}

/// Keeps from the reader of events what it does not take well.
#[derive(Default)]
struct Guard {
    line: usize,
    all: usize,
    /// Bytes of a character that the end of a piece cut.
    partial: Vec<u8>,
}

impl Guard {
    fn pass(&mut self, mut bytes: Bytes) -> Result<Bytes, ApiError> {
        while let Some(mark) = BOM.get(self.all)
            && bytes.first() == Some(mark)
        {
            self.all += 1;
            bytes = bytes.slice(1..);
        }
        self.all = self.all.saturating_add(bytes.len());
        self.line = match bytes.iter().rposition(|b| *b == b'\n') {
            Some(end) => bytes.len() - end - 1,
            None => self.line.saturating_add(bytes.len()),
        };
        if self.line > LINE {
            return Err(ApiError::TooLong(LINE));
        }
        if self.all > STREAM {
            return Err(ApiError::TooLong(STREAM));
        }
        self.check_utf8(&bytes)?;
        Ok(bytes)
    }

    /// eventsource-stream keeps everything after a wrong byte to itself until the stream ends.
    fn check_utf8(&mut self, bytes: &[u8]) -> Result<(), ApiError> {
        self.partial.extend_from_slice(bytes);
        match std::str::from_utf8(&self.partial) {
            Ok(_) => self.partial.clear(),
            Err(error) if error.error_len().is_none() => {
                self.partial.drain(..error.valid_up_to());
            }
            Err(_) => return Err(not_utf8()),
        }
        Ok(())
    }
}

fn not_utf8() -> ApiError {
    ApiError::Malformed("the stream is not UTF-8".to_owned())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::Ordering;

    use futures_util::FutureExt;
    use proptest::prelude::*;
    use tokio::io::AsyncWriteExt;

    use super::*;
    use crate::api::client::{Client, CompletionRequest, Endpoint};
    use crate::api::testing::{Responder, STREAM_HEAD, answer, events, piece, stream};

    const ASK: CompletionRequest<'static> = CompletionRequest {
        model: "tiny",
        prompt: "Hello",
        max_tokens: 8,
        endpoint: Endpoint::Chat,
        limit: Duration::from_secs(60),
    };

    /// All chunks, and how it ended.
    async fn read(client: &Client) -> (Vec<Chunk>, Result<(), ApiError>) {
        read_within(client, ASK.limit).await
    }

    async fn read_within(client: &Client, limit: Duration) -> (Vec<Chunk>, Result<(), ApiError>) {
        let mut chunks = Vec::new();
        let mut completion = match client.stream_completion(CompletionRequest { limit, ..ASK }).await {
            Ok(completion) => completion,
            Err(error) => return (chunks, Err(error)),
        };
        let end = loop {
            match completion.next().await {
                Ok(Some(chunk)) => chunks.push(chunk),
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        assert_eq!(completion.next().await, Ok(None));
        (chunks, end)
    }

    async fn read_bytes(bytes: Vec<u8>) -> (Vec<Chunk>, Result<(), ApiError>) {
        read(&Responder::fixed(bytes).client()).await
    }

    fn outputs(chunks: &[Chunk]) -> usize {
        chunks.iter().filter(|c| c.has_output()).count()
    }

    fn completion_tokens(chunks: &[Chunk]) -> Option<u64> {
        chunks.iter().rev().find_map(|c| c.usage)?.completion_tokens
    }

    /// Streams of a real server (vLLM), shortened in the middle, so fewer chunks than tokens.
    #[tokio::test]
    async fn real_streams_read_the_same_however_they_are_cut() {
        let cases = [
            (
                include_str!("../../tests/fixtures/api/vllm-0.32-chat-usage.sse"),
                5,
                Some(24),
            ),
            (
                include_str!("../../tests/fixtures/api/vllm-0.32-chat-no-usage.sse"),
                5,
                None,
            ),
            (
                include_str!("../../tests/fixtures/api/vllm-0.32-chat-continuous-usage.sse"),
                5,
                Some(24),
            ),
            (
                include_str!("../../tests/fixtures/api/vllm-0.32-completions-usage.sse"),
                6,
                Some(16),
            ),
        ];
        for (body, want, tokens) in cases {
            for len in [1, 7, 64, 1 << 16] {
                let (chunks, end) = read_bytes(stream(body, len)).await;
                assert_eq!(end, Ok(()));
                assert_eq!((outputs(&chunks), completion_tokens(&chunks)), (want, tokens), "{body}");
                assert!(chunks.iter().any(|c| c.finish.as_deref() == Some("length")));
            }
        }
    }

    #[tokio::test]
    async fn characters_cut_between_pieces_stay_whole() {
        let text = "█é漢🦀";
        for len in 1..8 {
            let (chunks, end) = read_bytes(stream(&events(&[text], None), len)).await;
            assert_eq!((end, chunks[0].text_len), (Ok(()), text.len()));
        }
    }

    #[tokio::test]
    async fn line_ends_comments_and_a_byte_order_mark_do_no_harm() {
        let body =
            "\u{feff}: hello\r\n\r\ndata: {\"choices\":[{\"text\":\"a\"}]}\r\n\r\nevent: x\r\ndata: [DONE]\r\n\r\n";
        for len in [1, 2, 4096] {
            let (chunks, end) = read_bytes(stream(body, len)).await;
            assert_eq!((end, outputs(&chunks)), (Ok(()), 1));
        }
    }

    #[tokio::test]
    async fn an_error_object_in_a_stream_is_a_failure() {
        let head = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n".repeat(3);
        let body = format!(
            "{head}data: {{\"error\": {{\"message\": \"EngineCore encountered an issue.\", \"code\": 500}}}}\n\ndata: [DONE]\n\n"
        );
        let (chunks, end) = read_bytes(stream(&body, 4096)).await;
        assert_eq!(outputs(&chunks), 3);
        assert_eq!(
            end,
            Err(ApiError::Server("EngineCore encountered an issue.".to_owned()))
        );
    }

    #[tokio::test]
    async fn a_stream_of_reasoning_alone_is_output() {
        let body = "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n\
            data: {\"choices\":[{\"delta\":{\"reasoning\":\"Here\"}}]}\n\n\
            data: {\"choices\":[{\"delta\":{\"reasoning_content\":\"Hm\"},\"finish_reason\":\"length\"}]}\n\n\
            data: [DONE]\n\n";
        let (chunks, end) = read_bytes(stream(body, 4096)).await;
        assert_eq!((end, outputs(&chunks)), (Ok(()), 2));
        assert_eq!(chunks.iter().map(|c| c.reasoning_len).sum::<usize>(), 6);
    }

    #[tokio::test]
    async fn a_stream_that_ends_early_is_a_failure() {
        let open = "data: {\"choices\":[{\"text\":\"a\"}]}\n\n";
        let finished = "data: {\"choices\":[{\"text\":\"b\",\"finish_reason\":\"stop\"}]}\n\n";
        let end = |body: String| async move { read_bytes(stream(&body, 4096)).await.1 };
        assert_eq!(end(String::new()).await, Err(ApiError::Unfinished));
        assert_eq!(end(open.to_owned()).await, Err(ApiError::Unfinished));
        // An event without its final blank line never happened.
        assert_eq!(end(format!("{open}data: [DONE]")).await, Err(ApiError::Unfinished));
        assert_eq!(end(format!("{open}{finished}")).await, Ok(()));
        assert_eq!(end(format!("{open}data: [DONE]\n\n")).await, Ok(()));
        // The body itself is cut.
        let mut cut = STREAM_HEAD.as_bytes().to_vec();
        cut.extend(piece(finished.as_bytes()));
        let broken = read_bytes(cut).await.1;
        assert!(matches!(broken, Err(ApiError::Broken(_))), "{broken:?}");
    }

    #[tokio::test]
    async fn an_answer_that_is_no_stream_is_a_failure() {
        let cases = [
            (
                answer("200 OK", r#"{"error":{"message":"engine died"}}"#),
                ApiError::Server("engine died".to_owned()),
            ),
            (
                answer("200 OK", r#"{"choices":[{"text":"a"}]}"#),
                ApiError::Malformed("one JSON answer where a stream was asked".to_owned()),
            ),
            (
                answer("400 Bad Request", r#"{"error":{"message":"too long"}}"#),
                ApiError::Status {
                    code: 400,
                    message: Some("too long".to_owned()),
                },
            ),
            (
                answer("401 Unauthorized", "{}"),
                ApiError::Unauthorized {
                    code: 401,
                    key_sent: false,
                },
            ),
        ];
        for (bytes, want) in cases {
            assert_eq!(read_bytes(bytes).await, (vec![], Err(want)));
        }
        let (_, end) = read_bytes(stream("data: {\"choices\":[\n\n", 4096)).await;
        assert!(matches!(end, Err(ApiError::Malformed(_))), "{end:?}");
        let mut not_utf8 = STREAM_HEAD.as_bytes().to_vec();
        not_utf8.extend(piece(b"data: \xff\xfe\n\n"));
        assert_eq!(read_bytes(not_utf8).await.1, Err(super::not_utf8()));
    }

    #[tokio::test]
    async fn a_line_without_end_is_cut() {
        let endless = Responder::new(|_, mut io| {
            async move {
                io.write_all(STREAM_HEAD.as_bytes()).await.ok()?;
                loop {
                    io.write_all(&piece(&[b'x'; 4096])).await.ok()?;
                }
            }
            .boxed()
        });
        assert_eq!(read(&endless.client()).await, (vec![], Err(ApiError::TooLong(LINE))));
    }

    #[tokio::test]
    async fn a_stream_that_stalls_is_given_up() {
        let stalls = Responder::new(|_, mut io| {
            async move {
                io.write_all(STREAM_HEAD.as_bytes()).await.ok()?;
                std::future::pending::<()>().await;
                Some(io)
            }
            .boxed()
        });
        // However slow the machine, it ends in this and in nothing else.
        let limit = Duration::from_millis(50);
        let want = (vec![], Err(ApiError::TimedOut(limit)));
        assert_eq!(read_within(&stalls.client(), limit).await, want);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic_or_hang(pieces in prop::collection::vec(prop_oneof![
            prop::collection::vec(any::<u8>(), 0..20),
            Just(b"data: ".to_vec()),
            Just(b"\n\n".to_vec()),
            Just(b"\xef\xbb\xbf".to_vec()),
            Just(b"data: {\"choices\":[{\"text\":\"\xe6\xbc\xa2\"}]}\r\n\r\n".to_vec()),
            Just(b"data: [DONE]\n\n".to_vec()),
        ], 0..20)) {
            let count = pieces.len();
            let pieces = pieces.into_iter().map(|piece| Ok(Bytes::from(piece)));
            let mut completion = Completion::of(futures_util::stream::iter(pieces));
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
            runtime.block_on(async {
                let mut chunks = 0;
                while let Ok(Some(_)) = completion.next().await {
                    chunks += 1;
                }
                assert!(chunks <= count);
            });
        }
    }

    #[tokio::test]
    async fn a_finished_stream_gives_its_connection_back() {
        let responder = Responder::routes(|_| stream(&events(&["a", "b"], Some((3, 2))), 50));
        let client = responder.client();
        for _ in 0..4 {
            let (chunks, end) = read(&client).await;
            assert_eq!(
                (end, outputs(&chunks), completion_tokens(&chunks)),
                (Ok(()), 2, Some(2))
            );
        }
        assert_eq!(Arc::clone(&responder).opened.load(Ordering::SeqCst), 1);
    }
}
