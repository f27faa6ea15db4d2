//! Takes secrets out of text: values that are known, and what looks like one.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::{Arc, LazyLock};

use aho_corasick::{AhoCorasick, AhoCorasickKind};

use super::line::{Line, Span};

/// What stands in place of a secret.
const MASK: &str = "***";

/// Shortest known value that is masked: shorter ones would be found in words that are no secret.
const MIN_VALUE: usize = 6;

/// Fewest characters after a token's mark (`hf_`) that make it a token.
const MIN_TOKEN: usize = 8;

/// Ends of the names whose values are secrets, in lower case with `-` for `_`: vLLM prints its `api_key` in its log (`non-default args: {… 'api_key': ['…']}`).
const NAMES: &[&str] = &[
    "api-key",
    "apikey",
    "hf-token",
    "hub-token",
    "access-token",
    "auth-token",
    "password",
    "passwd",
    "secret-key",
];

/// Marks that begin a token wherever it stands.
const MARKS: &[&str] = &["hf_", "sk-", "nvapi-", "ghp_"];

/// What stands before a token in a header.
const BEARER: &str = "Bearer ";

/// Masks secrets.
#[derive(Clone)]
pub struct Masker {
    values: Vec<String>,
    /// Finds whether anything of what secrets are known by is there: in most lines nothing is. `None` where the search can't be made.
    any: Option<Arc<AhoCorasick>>,
}

impl Default for Masker {
    fn default() -> Self {
        static NO_VALUES: LazyLock<Masker> = LazyLock::new(|| Masker::new([]));
        NO_VALUES.clone()
    }
}

impl std::fmt::Debug for Masker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Masker").field("values", &self.values.len()).finish()
    }
}

impl Masker {
    /// Masks these values beside what looks like a secret.
    pub fn new(values: impl IntoIterator<Item = String>) -> Self {
        let values: Vec<String> = values.into_iter().filter(|v| v.len() >= MIN_VALUE).collect();
        let names = NAMES.iter().flat_map(|n| [(*n).to_owned(), n.replace('-', "_")]);
        let marks = MARKS.iter().chain([&BEARER]).map(|m| (*m).to_owned());
        let any = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .kind(Some(AhoCorasickKind::DFA))
            .build(names.chain(marks).chain(values.iter().cloned()));
        Self {
            values,
            any: any.ok().map(Arc::new),
        }
    }

    /// The text without its secrets.
    #[must_use]
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let secrets = self.secrets(text);
        if secrets.is_empty() {
            return Cow::Borrowed(text);
        }
        let mut out = String::with_capacity(text.len());
        let mut done = 0;
        for secret in secrets {
            out.push_str(text.get(done..secret.start).unwrap_or_default());
            out.push_str(MASK);
            done = secret.end;
        }
        out.push_str(text.get(done..).unwrap_or_default());
        Cow::Owned(out)
    }

    /// The line without its secrets, also where one runs over a change of colour.
    #[must_use]
    pub fn line(&self, mut line: Line) -> Line {
        let secrets = self.secrets(&line.text());
        if secrets.is_empty() {
            return line;
        }
        let plain = line.plain();
        let mut start = 0;
        for span in &mut line.spans {
            let end = start + span.text.len();
            span.text = cut(&plain, start..end, &secrets);
            start = end;
        }
        line.spans.retain(|span: &Span| !span.text.is_empty());
        line.bar = None;
        line
    }

    /// Where secrets stand: sorted, none overlaps another.
    fn secrets(&self, text: &str) -> Vec<Range<usize>> {
        let mut found: Vec<Range<usize>> = Vec::new();
        if self.any.as_ref().is_some_and(|any| !any.is_match(text)) {
            return found;
        }
        for value in &self.values {
            found.extend(text.match_indices(value.as_str()).map(|(at, v)| at..at + v.len()));
        }
        for mark in MARKS {
            found.extend(text.match_indices(mark).filter_map(|(at, _)| token(text, at, mark)));
        }
        found.extend(text.match_indices(BEARER).filter_map(|(at, mark)| {
            let start = at + mark.len();
            let end = start + token_len(text.get(start..)?);
            (end - start >= MIN_VALUE).then_some(start..end)
        }));
        if text.contains(['=', ':']) || text.contains("--") {
            named(text, &mut found);
        }
        found.sort_by_key(|r| r.start);
        found.dedup_by(|later, earlier| {
            let overlaps = later.start <= earlier.end;
            if overlaps {
                earlier.end = earlier.end.max(later.end);
            }
            overlaps
        });
        found
    }
}

/// What is left of `part` of the text; a secret is shown once, in the part where it starts.
fn cut(text: &str, part: Range<usize>, secrets: &[Range<usize>]) -> String {
    let mut out = String::new();
    let mut done = part.start;
    for secret in secrets.iter().filter(|s| s.start < part.end && s.end > part.start) {
        out.push_str(text.get(done..secret.start).unwrap_or_default());
        if secret.start >= part.start {
            out.push_str(MASK);
        }
        done = secret.end.min(part.end).max(done);
    }
    out.push_str(text.get(done..part.end).unwrap_or_default());
    out
}

fn token_len(text: &str) -> usize {
    text.find(|c: char| !(c.is_ascii_alphanumeric() || "_-.~+/=".contains(c)))
        .unwrap_or(text.len())
}

/// The token that begins at `at` with `mark`, when it begins a word and is long enough.
fn token(text: &str, at: usize, mark: &str) -> Option<Range<usize>> {
    let before = text.get(..at)?.chars().next_back();
    if before.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-') {
        return None;
    }
    let rest = text.get(at + mark.len()..)?;
    let len = rest
        .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '-'))
        .unwrap_or(rest.len());
    (len >= MIN_TOKEN).then(|| at..at + mark.len() + len)
}

/// Values that stand after a secret's name: `api_key='…'`, `"api_key": ["…"]`, `--api-key …`, `HF_TOKEN=…`.
fn named(text: &str, found: &mut Vec<Range<usize>>) {
    let lower = text.to_ascii_lowercase().replace('_', "-");
    for name in NAMES {
        for (at, _) in lower.match_indices(name) {
            let end = at + name.len();
            let flag = lower.get(..at).is_some_and(|b| {
                let word = b.rsplit(|c: char| !(c.is_ascii_alphanumeric() || c == '-')).next();
                word.is_some_and(|w| w.starts_with("--"))
            });
            if let Some(rest) = text.get(end..) {
                values(rest, flag, |r| found.push(end + r.start..end + r.end));
            }
        }
    }
}

/// Values after a name: `rest` begins right behind it.
fn values(rest: &str, flag: bool, mut found: impl FnMut(Range<usize>)) {
    let quote = |c: char| c == '\'' || c == '"';
    let after_name = rest.trim_start_matches(quote);
    let spaced = after_name.trim_start_matches(' ');
    let mut tail = match spaced.strip_prefix(['=', ':']) {
        Some(tail) => tail.trim_start_matches(' '),
        None if flag && spaced.len() < after_name.len() => spaced,
        None => return,
    };
    let list = tail.starts_with(['[', '(']);
    tail = tail.trim_start_matches(['[', '(']);
    loop {
        let start = rest.len() - tail.len();
        let len = match tail.chars().next().filter(|c| quote(*c)) {
            // An escaped quote does not end the value.
            Some(q) => {
                let mut escaped = false;
                let inner = tail.get(1..).unwrap_or_default();
                let end = inner.find(|c: char| {
                    let ends = c == q && !escaped;
                    escaped = c == '\\' && !escaped;
                    ends
                });
                end.map_or(tail.len(), |n| n + 2)
            }
            None => tail
                .find(|c: char| c.is_whitespace() || ",;&)]}\"'".contains(c))
                .unwrap_or(tail.len()),
        };
        let value = tail.get(..len).unwrap_or_default().trim_matches(quote);
        if !matches!(value, "" | "None" | "null" | "True" | "False" | "***") {
            let quoted = tail.starts_with(quote);
            let inner = start + usize::from(quoted);
            found(inner..inner + value.len());
        }
        tail = tail.get(len..).unwrap_or_default();
        match tail.trim_start().strip_prefix(',') {
            Some(next) if list && len > 0 => tail = next.trim_start(),
            _ => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::{Decoder, LineEdit, Stream};

    proptest::proptest! {
        /// The one look at a line that has nothing of a secret in it finds as much as all the others.
        #[test]
        fn a_line_is_masked_alike_with_and_without_the_first_look(
            pieces in proptest::collection::vec(
                proptest::sample::select(&[
                    "api_key", "API-KEY", "apikey", "Password", "passwd", "HF_TOKEN", "hub-token", "access_token", "auth-token", "secret_KEY",
                    "=", ": ", " ", "--", "'", "[", "]", "\"", "hf_", "sk-", "nvapi-", "ghp_", "Bearer ", "s3cretvalue", "S3CRETVALUE", "abcdef123",
                    "INFO 11-29 12:31:02 [weight_utils.py:304] words", "é",
                ][..]),
                0..12,
            ),
        ) {
            let quick = Masker::new(["s3cretvalue".to_owned()]);
            let slow = Masker { any: None, ..quick.clone() };
            proptest::prop_assert!(quick.any.is_some());
            let text = pieces.concat();
            proptest::prop_assert_eq!(quick.text(&text), slow.text(&text));
        }
    }

    #[test]
    fn secrets_go_and_the_rest_stays() {
        let masker = Masker::new(["s3cretvalue".to_owned(), "ab".to_owned()]);
        let cases = [
            ("x s3cretvalue y s3cretvalue", "x *** y ***"),
            ("token hf_abcdEFGH12345678 used", "token *** used"),
            ("shelf_life and hf_x stay", "shelf_life and hf_x stay"),
            ("Authorization: Bearer abc.def-ghi", "Authorization: Bearer ***"),
            (
                "curl -H 'Authorization: Bearer abcdef' x",
                "curl -H 'Authorization: Bearer ***' x",
            ),
            (
                "vllm serve m --api-key abc123 --port 8000",
                "vllm serve m --api-key *** --port 8000",
            ),
            ("vllm serve m --api-key=abc123", "vllm serve m --api-key=***"),
            (
                "non-default args: {'api_key': ['one', 'two'], 'port': 8003}",
                "non-default args: {'api_key': ['***', '***'], 'port': 8003}",
            ),
            ("config api_key='a\\'b', model='m'", "config api_key='***', model='m'"),
            ("\"api_key\": null, \"x\": 1", "\"api_key\": null, \"x\": 1"),
            ("api_key=None, max_tokens=5", "api_key=None, max_tokens=5"),
            (
                "export HF_TOKEN=abc VLLM_API_KEY=\"d e\" z",
                "export HF_TOKEN=*** VLLM_API_KEY=\"***\" z",
            ),
            ("#token: 768, token usage: 0.00", "#token: 768, token usage: 0.00"),
            ("the api key is not shown: none", "the api key is not shown: none"),
            ("", ""),
        ];
        for (text, expected) in cases {
            assert_eq!(masker.text(text), expected);
            assert_eq!(masker.text(expected), expected, "masking twice");
        }
    }

    #[test]
    fn a_secret_in_two_colours_is_masked_once() {
        let mut line = None;
        Decoder::new().feed(
            Stream::Out,
            b"a --api-key \x1b[31mabc\x1b[32mdef\x1b[0m z\n",
            &mut |e| {
                if let LineEdit::Push(l) = e {
                    line = Some(l);
                }
            },
        );
        let line = Masker::default().line(line.unwrap());
        assert_eq!(line.plain(), "a --api-key *** z");
        assert_eq!(line.spans.len(), 3);
    }

    #[test]
    fn a_masker_does_not_print_its_values() {
        assert_eq!(
            format!("{:?}", Masker::new(["s3cretvalue".to_owned()])),
            "Masker { values: 1 }"
        );
    }
}
