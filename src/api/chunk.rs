//! One event of a streamed completion.
//!
//! Shapes: vLLM, SGLang and llama.cpp. Output is under `text` (completions), `content` (chat), `reasoning` (newer vLLM) or `reasoning_content` (older
//! vLLM, SGLang, llama.cpp). A chunk that only names the role, or whose texts are empty, carries no output. The usage chunk has no choices.

use serde::Deserialize;
use serde_json::Value;

use super::answers::error_message;
use super::error::{ApiError, plain};

/// What ends a stream.
const END: &str = "[DONE]";

/// What a server counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
pub struct Usage {
    /// Tokens of the prompt.
    pub prompt_tokens: Option<u64>,
    /// Tokens generated, hidden ones too.
    pub completion_tokens: Option<u64>,
}

/// What one event of a stream carries.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Chunk {
    /// Bytes of answer text.
    pub text_len: usize,
    /// Bytes of reasoning text.
    pub reasoning_len: usize,
    /// Why the answer ended here, such as `length`.
    pub finish: Option<String>,
    /// Tokens counted so far (with continuous usage) or in all.
    pub usage: Option<Usage>,
}

impl Chunk {
    /// Whether it carries output, so that it counts for TTFT and ITL.
    #[must_use]
    pub fn has_output(&self) -> bool {
        self.text_len + self.reasoning_len > 0
    }
}

/// An event's data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Data {
    /// A chunk.
    Chunk(Chunk),
    /// The end mark.
    End,
}

#[derive(Deserialize)]
struct Wire {
    #[serde(default)]
    choices: Option<Vec<Choice>>,
    #[serde(default)]
    usage: Option<Usage>,
    #[serde(default)]
    error: Option<Value>,
    #[serde(default)]
    object: Option<String>,
}

#[derive(Deserialize)]
struct Choice {
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    delta: Option<Delta>,
    #[serde(default)]
    finish_reason: Option<String>,
}

#[derive(Deserialize, Default)]
struct Delta {
    #[serde(default)]
    content: Option<String>,
    #[serde(default)]
    reasoning: Option<String>,
    #[serde(default)]
    reasoning_content: Option<String>,
}

/// Reads an event's data.
///
/// # Errors
/// When it is an error object, or no JSON of the known shape.
pub fn parse(data: &str) -> Result<Data, ApiError> {
    if data.trim() == END {
        return Ok(Data::End);
    }
    let malformed = |e: serde_json::Error| ApiError::Malformed(plain(&e.to_string()));
    let wire: Wire = serde_json::from_str(data).map_err(malformed)?;
    if wire.error.is_some() || wire.object.as_deref() == Some("error") {
        let whole: Value = serde_json::from_str(data).map_err(malformed)?;
        let message = error_message(&whole).unwrap_or_else(|| "an error without a message".to_owned());
        return Err(ApiError::Server(message));
    }
    let mut chunk = Chunk {
        usage: wire.usage,
        ..Chunk::default()
    };
    for choice in wire.choices.unwrap_or_default() {
        let delta = choice.delta.unwrap_or_default();
        chunk.text_len += len(&choice.text) + len(&delta.content);
        // A server in between versions could send both names with the same text.
        chunk.reasoning_len += len(&delta.reasoning).max(len(&delta.reasoning_content));
        chunk.finish = choice.finish_reason.or(chunk.finish);
    }
    Ok(Data::Chunk(chunk))
}

fn len(text: &Option<String>) -> usize {
    text.as_ref().map_or(0, String::len)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(data: &str) -> Chunk {
        match parse(data) {
            Ok(Data::Chunk(chunk)) => chunk,
            other => panic!("{data}: {other:?}"),
        }
    }

    #[test]
    fn output_stands_under_many_names() {
        let cases = [
            // A completion (vLLM 0.32).
            (
                r#"{"object":"text_completion","choices":[{"index":0,"text":"NAME","finish_reason":null}]}"#,
                4,
                0,
            ),
            // The role chunk of a chat.
            (
                r#"{"choices":[{"delta":{"role":"assistant","content":""},"finish_reason":null}]}"#,
                0,
                0,
            ),
            (r#"{"choices":[{"delta":{"content":"dynamic"}}]}"#, 7, 0),
            (r#"{"choices":[{"delta":{"reasoning":"Here"}}]}"#, 0, 4),
            (
                r#"{"choices":[{"delta":{"content":null,"reasoning_content":"Hm"}}]}"#,
                0,
                2,
            ),
            (
                r#"{"choices":[{"delta":{"reasoning":"Hm","reasoning_content":"Hm"}}]}"#,
                0,
                2,
            ),
            (r#"{"choices":[{"delta":{"content":" "}}]}"#, 1, 0),
            (r#"{"choices":[]}"#, 0, 0),
            (r#"{"choices":null}"#, 0, 0),
        ];
        for (data, text, reasoning) in cases {
            let c = chunk(data);
            assert_eq!((c.text_len, c.reasoning_len), (text, reasoning), "{data}");
            assert_eq!(c.has_output(), text + reasoning > 0);
        }
    }

    #[test]
    fn finish_and_usage_are_taken_where_they_stand() {
        let last = chunk(r#"{"choices":[{"delta":{"content":""},"finish_reason":"length"}],"usage":null}"#);
        assert_eq!((last.finish.as_deref(), last.usage), (Some("length"), None));
        let usage = chunk(r#"{"choices":[],"usage":{"prompt_tokens":22,"total_tokens":46,"completion_tokens":24}}"#);
        let want = Usage {
            prompt_tokens: Some(22),
            completion_tokens: Some(24),
        };
        assert_eq!(usage.usage, Some(want));
        assert_eq!(parse(" [DONE]"), Ok(Data::End));
    }

    #[test]
    fn an_error_object_is_a_failure_in_every_shape() {
        let cases = [
            (
                r#"{"error": {"message": "EngineCore encountered an issue.", "type": "InternalServerError", "code": 500}}"#,
                "EngineCore encountered an issue.",
            ),
            (r#"{"error":"gone"}"#, "gone"),
            (r#"{"object":"error","message":"gone","code":500}"#, "gone"),
            (r#"{"object":"error"}"#, "an error without a message"),
        ];
        for (data, want) in cases {
            assert_eq!(parse(data), Err(ApiError::Server(want.to_owned())), "{data}");
        }
        assert!(parse(r#"{"error":null,"choices":[]}"#).is_ok());
        for bad in ["", "not json", "[1]", "{\"choices\":[{\"text\":5}]}"] {
            assert!(matches!(parse(bad), Err(ApiError::Malformed(_))), "{bad}");
        }
    }
}
