//! The JSON bodies of plain (not streamed) answers.

use serde::Deserialize;
use serde_json::Value;

use super::chunk::Usage;
use super::error::{ApiError, plain};

/// Names kept of one list of models.
const NAMES: usize = 1000;

/// The message of an error body in the shapes seen: `{"error": {"message": …}}` and `{"error": "…"}` (vLLM, SGLang, llama.cpp),
/// `{"object": "error", "message": …}` (older vLLM), `{"detail": …}` (FastAPI). `None` when the body is none of these.
#[must_use]
pub fn error_message(body: &Value) -> Option<String> {
    let error = body.get("error").filter(|e| !e.is_null());
    let old = (body.get("object").and_then(Value::as_str) == Some("error")).then(|| body.get("message"));
    let found = match error {
        Some(object) => object.get("message").unwrap_or(object),
        None => old.flatten().or_else(|| body.get("detail"))?,
    };
    let text = found.as_str().map_or_else(|| found.to_string(), str::to_owned);
    let text = plain(&text);
    Some(if text.is_empty() {
        "an error without a message".to_owned()
    } else {
        text
    })
}

/// What a body beside an error status says: the error's message, else its text. `None` when it is empty.
#[must_use]
pub fn error_text(body: &[u8]) -> Option<String> {
    let json = serde_json::from_slice::<Value>(body).ok();
    let text = json
        .as_ref()
        .and_then(error_message)
        .unwrap_or_else(|| plain(&String::from_utf8_lossy(body)));
    (!text.is_empty()).then_some(text)
}

/// A JSON answer under a successful status.
///
/// # Errors
/// When it is no JSON, or an error object.
pub fn json(body: &[u8]) -> Result<Value, ApiError> {
    let value: Value = serde_json::from_slice(body).map_err(|e| ApiError::Malformed(plain(&e.to_string())))?;
    // A `detail` is an error beside an error status only.
    let failed = value.get("error").is_some_and(|e| !e.is_null())
        || value.get("object").and_then(Value::as_str) == Some("error");
    match error_message(&value) {
        Some(message) if failed => Err(ApiError::Server(message)),
        Some(_) | None => Ok(value),
    }
}

/// The names in GET /v1/models.
///
/// # Errors
/// When the answer is no list of models.
pub fn models(body: &[u8]) -> Result<Vec<String>, ApiError> {
    let value = json(body)?;
    let Some(list) = value.get("data").and_then(Value::as_array) else {
        return Err(ApiError::Malformed("no list of models".to_owned()));
    };
    let names = list.iter().filter_map(|m| m.get("id").and_then(Value::as_str));
    Ok(names.take(NAMES).map(plain).collect())
}

/// A completion that was not streamed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Model that answered, when it says so.
    pub model: Option<String>,
    /// Answers to choose from.
    pub choices: usize,
    /// What the server counted.
    pub usage: Usage,
}

/// The answer of POST /v1/completions or /v1/chat/completions.
///
/// # Errors
/// When it is no completion, or an error object.
pub fn completion(body: &[u8]) -> Result<Answer, ApiError> {
    #[derive(Deserialize)]
    struct Wire {
        model: Option<String>,
        choices: Option<Vec<Value>>,
        usage: Option<Usage>,
    }
    let wire: Wire = serde_json::from_value(json(body)?).map_err(|e| ApiError::Malformed(plain(&e.to_string())))?;
    Ok(Answer {
        model: wire.model.as_deref().map(plain),
        choices: wire.choices.map_or(0, |c| c.len()),
        usage: wire.usage.unwrap_or_default(),
    })
}

/// The count in the answer of POST /tokenize; `None` when there is none (other servers have other shapes under this path).
///
/// # Errors
/// When it is no JSON, or an error object.
pub fn token_count(body: &[u8]) -> Result<Option<u64>, ApiError> {
    Ok(json(body)?.get("count").and_then(Value::as_u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_bodies_of_many_shapes_give_their_message() {
        let cases = [
            (
                // vLLM 0.32, an unknown model.
                r#"{"error":{"message":"The model `nope` does not exist. Valid aliases: tiny.","type":"NotFoundError","param":"model","code":404}}"#,
                Some("The model `nope` does not exist. Valid aliases: tiny."),
            ),
            (r#"{"error":"no slot available"}"#, Some("no slot available")),
            (r#"{"error":{"code":500}}"#, Some(r#"{"code":500}"#)),
            (r#"{"error":{"message":""}}"#, Some("an error without a message")),
            (r#"{"object":"error","message":"bad","code":400}"#, Some("bad")),
            (r#"{"detail":"Not Found"}"#, Some("Not Found")),
            (
                r#"{"detail":[{"loc":["body"],"msg":"missing"}]}"#,
                Some(r#"[{"loc":["body"],"msg":"missing"}]"#),
            ),
            (
                r#"{"error":{"message":"1 validation error:\n  {'type': 'json_invalid'}"}}"#,
                Some("1 validation error: {'type': 'json_invalid'}"),
            ),
            ("Internal Server Error", Some("Internal Server Error")),
            ("", None),
        ];
        for (body, want) in cases {
            assert_eq!(error_text(body.as_bytes()).as_deref(), want, "{body}");
        }
    }

    #[test]
    fn an_error_object_under_200_is_an_error() {
        for body in [
            r#"{"error":{"message":"EngineCore encountered an issue","code":500}}"#,
            r#"{"object":"error","message":"EngineCore encountered an issue"}"#,
        ] {
            let want = ApiError::Server("EngineCore encountered an issue".to_owned());
            assert_eq!(json(body.as_bytes()), Err(want.clone()));
            assert_eq!(completion(body.as_bytes()), Err(want.clone()));
            assert_eq!(models(body.as_bytes()), Err(want));
        }
        assert!(json(br#"{"error":null,"object":"list"}"#).is_ok());
        assert!(matches!(json(b"<html>"), Err(ApiError::Malformed(_))));
    }

    #[test]
    fn models_are_listed_by_id() {
        // vLLM 0.32, shortened.
        let body = br#"{"object":"list","data":[{"id":"tiny","object":"model","max_model_len":4096},{"no":"id"}]}"#;
        assert_eq!(models(body), Ok(vec!["tiny".to_owned()]));
        assert!(matches!(models(br#"{"detail":"x"}"#), Err(ApiError::Malformed(_))));
    }

    #[test]
    fn a_completion_has_choices_and_usage_or_not() {
        // vLLM 0.32 chat, shortened.
        let body = br#"{"model":"tiny","choices":[{"index":0,"message":{"role":"assistant","content":"sl","reasoning":null},"finish_reason":"length"}],
            "usage":{"prompt_tokens":13,"total_tokens":29,"completion_tokens":16,"prompt_tokens_details":null}}"#;
        let answer = completion(body).unwrap();
        assert_eq!((answer.model.as_deref(), answer.choices), (Some("tiny"), 1));
        assert_eq!(
            (answer.usage.prompt_tokens, answer.usage.completion_tokens),
            (Some(13), Some(16))
        );
        let empty = completion(b"{}").unwrap();
        assert_eq!((empty.choices, empty.usage), (0, Usage::default()));
    }

    #[test]
    fn a_token_count_is_taken_where_there_is_one() {
        let vllm = br#"{"count":2,"max_model_len":4096,"tokens":[1269,312],"token_strs":null}"#;
        assert_eq!(token_count(vllm), Ok(Some(2)));
        assert_eq!(token_count(br#"{"tokens":[]}"#), Ok(None));
    }
}
