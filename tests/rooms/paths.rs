//! Tokens to the paths that they name: `use` trees taken apart, and paths in expressions, types, attributes and macro calls.

use crate::lexer::Token;

/// One path, such as `crate::view::draw`, with the line of every segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path {
    /// Segments and their lines; `crate`, `self`, `super` and `*` are segments too.
    pub segments: Vec<(String, usize)>,
    /// Place of its first token, to know in which module it stands.
    pub at: usize,
    /// Whether it is a leaf of a `use`.
    pub imported: bool,
}

impl Path {
    /// The segment at a place.
    pub fn get(&self, n: usize) -> Option<&str> {
        self.segments.get(n).map(|(s, _)| s.as_str())
    }

    /// The line of a segment, or of the last one.
    pub fn line(&self, n: usize) -> usize {
        self.segments
            .get(n)
            .or(self.segments.last())
            .map_or(0, |(_, line)| *line)
    }

    /// Whether it begins with these segments.
    pub fn starts_with(&self, words: &[&str]) -> bool {
        words.iter().enumerate().all(|(n, w)| self.get(n) == Some(w))
    }

    /// The path as text.
    pub fn text(&self) -> String {
        let words: Vec<&str> = self.segments.iter().map(|(s, _)| s.as_str()).collect();
        words.join("::")
    }
}

/// All paths of a file.
pub fn paths(tokens: &[Token]) -> Vec<Path> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        // `impl Trait + use<>` is no import.
        let import = token.is_word("use") && !tokens.get(at + 1).is_some_and(|t| t.is("<"));
        if import {
            at = use_tree(tokens, at + 1, &[], &mut found);
        } else if token.word().is_some() && starts_path(tokens, at) {
            at = plain_path(tokens, at, &mut found);
        } else {
            at += 1;
        }
    }
    found
}

/// Whether the word at `at` is the first of its path.
fn starts_path(tokens: &[Token], at: usize) -> bool {
    let before = |n: usize| at.checked_sub(n).and_then(|i| tokens.get(i));
    match before(1) {
        Some(t) if t.is(".") => false,
        // A leading `::` makes a path from the outside; after a word or `>` it goes on with one.
        Some(t) if t.is("::") => !before(2).is_some_and(|t| t.word().is_some() || t.is(">")),
        _ => true,
    }
}

fn plain_path(tokens: &[Token], start: usize, found: &mut Vec<Path>) -> usize {
    let mut segments = Vec::new();
    let mut at = start;
    while let Some((word, line)) = tokens.get(at).and_then(|t| Some((t.word()?, t.line))) {
        segments.push((word.to_owned(), line));
        at += 1;
        let goes_on =
            tokens.get(at).is_some_and(|t| t.is("::")) && tokens.get(at + 1).is_some_and(|t| t.word().is_some());
        if !goes_on {
            break;
        }
        at += 1;
    }
    found.push(Path {
        segments,
        at: start,
        imported: false,
    });
    at
}

/// One branch of a `use` tree; gives the place after it.
fn use_tree(tokens: &[Token], start: usize, prefix: &[(String, usize)], found: &mut Vec<Path>) -> usize {
    let mut segments = prefix.to_vec();
    let mut at = start;
    while let Some(token) = tokens.get(at) {
        if token.is("::") {
            at += 1;
        } else if token.is("{") {
            at += 1;
            while tokens.get(at).is_some_and(|t| !t.is("}")) {
                at = use_tree(tokens, at, &segments, found);
                if tokens.get(at).is_some_and(|t| t.is(",")) {
                    at += 1;
                } else if tokens.get(at).is_some_and(|t| !t.is("}")) {
                    break;
                }
            }
            return at + 1;
        } else if token.is("*") {
            segments.push(("*".to_owned(), token.line));
            at += 1;
        } else if token.is_word("as") {
            at += 2;
        } else if let Some(word) = token.word() {
            segments.push((word.to_owned(), token.line));
            at += 1;
        } else {
            break;
        }
    }
    found.push(Path {
        segments,
        at: start,
        imported: true,
    });
    at
}
