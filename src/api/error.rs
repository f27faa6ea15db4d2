//! Why a request gave no answer of use, in words for the screen.

use std::error::Error as _;
use std::time::Duration;

use thiserror::Error;

use crate::domain::time::human;

use super::connect::ConnectError;

/// Characters kept of a text that a server sent.
const TEXT: usize = 300;

/// Why a request failed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ApiError {
    /// The port refuses: nothing listens.
    #[error("connection refused")]
    Refused,
    /// The tunnel is down.
    #[error("{0}")]
    Unreachable(String),
    /// No whole answer within this time.
    #[error("no answer within {}", human(*.0))]
    TimedOut(Duration),
    /// The connection ended before the answer was whole.
    #[error("the connection broke: {0}")]
    Broken(String),
    /// 401 or 403.
    #[error("{code}: {}", if *.key_sent { "the server refuses the API key" } else { "the server wants an API key; name where it is in [secrets]" })]
    Unauthorized {
        /// 401 or 403.
        code: u16,
        /// Whether a key was sent.
        key_sent: bool,
    },
    /// Another status than success, and what the body said.
    #[error("{code}{}", .message.as_deref().map(|m| format!(": {m}")).unwrap_or_default())]
    Status {
        /// HTTP status.
        code: u16,
        /// The error's message, or the start of the body.
        message: Option<String>,
    },
    /// An error object under a successful status, or in a stream.
    #[error("the server says: {0}")]
    Server(String),
    /// The answer is longer than allowed, in bytes.
    #[error("the answer is longer than {0} bytes")]
    TooLong(usize),
    /// A stream has more chunks than tokens were asked for.
    #[error("more than {0} chunks: the server does not stop where it was told")]
    TooManyChunks(usize),
    /// The answer is not what was asked for.
    #[error("unexpected answer: {0}")]
    Malformed(String),
    /// A stream ended without a finish reason and without its end mark.
    #[error("the stream ended before it was finished")]
    Unfinished,
    /// Nothing was sent: the private socket could not be made.
    #[error("no private socket: {0}")]
    Socket(String),
}

impl ApiError {
    /// What became of a request that took at most `limit`.
    pub(super) fn of(error: reqwest::Error, limit: Duration) -> Self {
        if error.is_timeout() {
            return Self::TimedOut(limit);
        }
        // The outer errors only say that a request failed, and name the placeholder URL.
        let error = error.without_url();
        let mut cause = error.source();
        while let Some(deeper) = cause.and_then(std::error::Error::source) {
            cause = Some(deeper);
        }
        Self::Broken(cause.map_or_else(|| plain(&error.to_string()), |c| plain(&c.to_string())))
    }

    /// Whether the server does not offer what was asked, so that another way can be tried.
    #[must_use]
    pub fn not_offered(&self) -> bool {
        matches!(
            self,
            Self::Status {
                code: 400 | 404 | 405 | 501,
                ..
            }
        )
    }
}

impl From<ConnectError> for ApiError {
    fn from(error: ConnectError) -> Self {
        match error {
            ConnectError::Refused => Self::Refused,
            ConnectError::Unreachable(why) => Self::Unreachable(why),
        }
    }
}

/// A text from outside as one bounded line: control characters and runs of blanks become one blank.
#[must_use]
pub fn plain(text: &str) -> String {
    let blank = |c: char| c.is_control() || c.is_whitespace();
    let words = text.split(blank).filter(|word| !word.is_empty());
    let mut line = String::new();
    let mut left = TEXT;
    for word in words {
        if !line.is_empty() {
            line.push(' ');
        }
        for c in word.chars() {
            if left == 0 {
                line.push('…');
                return line;
            }
            line.push(c);
            left -= 1;
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_from_outside_become_one_harmless_line() {
        let cases = [
            ("", ""),
            ("plain", "plain"),
            (" two\r\n  lines\t ", "two lines"),
            ("\u{1b}[31mred\u{9b}2J", "[31mred 2J"),
            ("nul\0byte", "nul byte"),
        ];
        for (text, want) in cases {
            assert_eq!(plain(text), want);
        }
        let long = plain(&"é".repeat(TEXT + 1));
        assert_eq!(long.chars().count(), TEXT + 1);
        assert!(long.ends_with('…'));
    }

    #[test]
    fn errors_say_what_to_do() {
        let error = |key_sent| ApiError::Unauthorized { code: 401, key_sent }.to_string();
        assert_eq!(error(true), "401: the server refuses the API key");
        assert!(error(false).contains("[secrets]"));
        let status = |message: Option<&str>| {
            let message = message.map(str::to_owned);
            ApiError::Status { code: 500, message }.to_string()
        };
        assert_eq!(status(None), "500");
        assert_eq!(status(Some("engine died")), "500: engine died");
    }
}
