//! One source file as the checks see it: its room, its modules, its tests.

use crate::lexer::{Token, lex};
use crate::paths::{Path, paths};

/// A file with what was found in it.
pub struct File {
    /// Path relative to the package, with `/`.
    pub name: String,
    pub text: String,
    pub tokens: Vec<Token>,
    pub paths: Vec<Path>,
    /// Token ranges under `#[cfg(test)]`.
    tests: Vec<(usize, usize)>,
    /// Token ranges of inline modules, with their names.
    modules: Vec<(usize, usize, String)>,
}

impl File {
    pub fn new(name: &str, text: &str) -> Self {
        let tokens = lex(text);
        Self {
            name: name.to_owned(),
            text: text.to_owned(),
            paths: paths(&tokens),
            tests: test_ranges(&tokens),
            modules: module_ranges(&tokens),
            tokens,
        }
    }

    /// The room: the folder (or file) under `src`; `main` and `lib` for the two files there.
    pub fn room(&self) -> &str {
        let inside = self.name.strip_prefix("src/").unwrap_or(&self.name);
        let first = inside.split('/').next().unwrap_or(inside);
        first.strip_suffix(".rs").unwrap_or(first)
    }

    /// Module path of the file: `src/a/b.rs` is `a`, `b`; `mod.rs`, `lib.rs` and `main.rs` add nothing.
    pub fn module(&self) -> Vec<String> {
        let inside = self.name.strip_prefix("src/").unwrap_or(&self.name);
        let inside = inside.strip_suffix(".rs").unwrap_or(inside);
        inside
            .split('/')
            .filter(|s| !["mod", "lib", "main"].contains(s))
            .map(str::to_owned)
            .collect()
    }

    /// The path as seen from the package's root: `crate::…` without `crate`; `None` for a path that does not lead there by name.
    /// With it comes the place in `path.segments` of the first segment after the root.
    pub fn resolve(&self, path: &Path) -> Option<(Vec<String>, usize)> {
        let first = path.get(0)?;
        let rest = |n: usize| path.segments.iter().skip(n).map(|(s, _)| s.clone());
        if first == "crate" || first == "bringup" {
            return Some((rest(1).collect(), 1));
        }
        if first != "super" && !(first == "self" && path.get(1) == Some("super")) {
            return None;
        }
        let mut here = self.module();
        let inline = self
            .modules
            .iter()
            .filter(|(from, to, _)| (*from..*to).contains(&path.at));
        here.extend(inline.map(|(_, _, name)| name.clone()));
        let skip = usize::from(first == "self");
        let ups = path
            .segments
            .iter()
            .skip(skip)
            .take_while(|(s, _)| s == "super")
            .count();
        here.truncate(here.len().saturating_sub(ups));
        here.extend(rest(skip + ups));
        // The room's name is written only when the path climbs to the root; else the first written segment stands for it.
        Some((here, skip + ups))
    }

    /// Whether the token stands under `#[cfg(test)]`.
    pub fn in_test(&self, at: usize) -> bool {
        self.tests.iter().any(|(from, to)| (*from..*to).contains(&at))
    }

    /// Lines outside of `#[cfg(test)]` items.
    pub fn production_lines(&self) -> usize {
        let line = |at: usize| self.tokens.get(at).map_or(0, |t| t.line);
        let tests: usize = self.tests.iter().map(|(from, to)| line(to - 1) + 1 - line(*from)).sum();
        self.text.lines().count() - tests
    }

    /// Names of modules declared as `#[cfg(test)] mod NAME;`: their files are tests.
    pub fn test_files(&self) -> Vec<String> {
        let declared = |(from, to): &(usize, usize)| {
            let at = (*from..*to).find(|at| self.tokens[*at].is_word("mod"))?;
            let name = self.tokens.get(at + 1)?.word()?;
            self.tokens.get(at + 2)?.is(";").then(|| name.to_owned())
        };
        self.tests.iter().filter_map(declared).collect()
    }
}

/// The place after the bracket that closes the one at `open`.
pub fn after_group(tokens: &[Token], open: usize) -> usize {
    let mut depth = 0usize;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        if token.is("{") || token.is("(") || token.is("[") {
            depth += 1;
        } else if token.is("}") || token.is(")") || token.is("]") {
            depth = depth.saturating_sub(1);
            if depth == 0 {
                return at + 1;
            }
        }
    }
    tokens.len()
}

/// Items under `#[cfg(test)]`: from the attribute to the end of the item's block or its semicolon.
fn test_ranges(tokens: &[Token]) -> Vec<(usize, usize)> {
    let mut ranges = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let attribute = tokens[at].is("#")
            && tokens.get(at + 1).is_some_and(|t| t.is("["))
            && tokens.get(at + 2).is_some_and(|t| t.is_word("cfg"))
            && tokens.get(at + 4).is_some_and(|t| t.is_word("test"))
            && tokens.get(at + 5).is_some_and(|t| t.is(")"));
        if !attribute {
            at += 1;
            continue;
        }
        let mut end = after_group(tokens, at + 1);
        while let Some(token) = tokens.get(end) {
            if token.is("{") {
                end = after_group(tokens, end);
                break;
            }
            end = if token.is("(") || token.is("[") {
                after_group(tokens, end)
            } else {
                end + 1
            };
            if token.is(";") {
                break;
            }
        }
        ranges.push((at, end));
        at = end;
    }
    ranges
}

fn module_ranges(tokens: &[Token]) -> Vec<(usize, usize, String)> {
    let module = |at: usize| {
        let name = tokens.get(at + 1)?.word()?;
        let opens = tokens.get(at)?.is_word("mod") && tokens.get(at + 2)?.is("{");
        opens.then(|| (at, after_group(tokens, at + 2), name.to_owned()))
    };
    (0..tokens.len()).filter_map(module).collect()
}
