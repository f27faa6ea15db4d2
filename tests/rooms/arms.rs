//! Catch-all arms in a `match` on an enum of our own: a new variant would pass by them unseen.
//!
//! Told from the patterns beside it: a `match` in which some arm names a variant of an enum defined in this package has no arm that takes
//! everything. Approximate on purpose: a catch-all inside a tuple or another pattern is not looked at.

use std::collections::BTreeSet;

use crate::file::after_group;
use crate::lexer::Token;

/// Names of the enums that these tokens define.
pub fn enums(tokens: &[Token]) -> BTreeSet<String> {
    let pairs = tokens.iter().zip(tokens.iter().skip(1));
    pairs
        .filter(|(first, _)| first.is_word("enum"))
        .filter_map(|(_, name)| name.word().map(str::to_owned))
        .collect()
}

/// Places of catch-all arms in matches on one of `enums`.
pub fn catch_alls(tokens: &[Token], enums: &BTreeSet<String>) -> Vec<usize> {
    let mut found = Vec::new();
    for at in 0..tokens.len() {
        let is_match = tokens[at].is_word("match") && !at.checked_sub(1).is_some_and(|i| tokens[i].is("."));
        if !is_match {
            continue;
        }
        let Some(open) = block_start(tokens, at + 1) else {
            continue;
        };
        let patterns = patterns(tokens, open);
        let ours = |(from, to): &(usize, usize)| names_variant(&tokens[*from..*to], enums);
        if patterns.iter().any(ours) {
            let all = patterns.iter().filter(|(from, to)| takes_all(&tokens[*from..*to]));
            found.extend(all.map(|(from, _)| *from));
        }
    }
    found
}

/// The `{` that opens the arms.
fn block_start(tokens: &[Token], mut at: usize) -> Option<usize> {
    loop {
        let token = tokens.get(at)?;
        if token.is("{") {
            return Some(at);
        }
        at = if token.is("(") || token.is("[") {
            after_group(tokens, at)
        } else {
            at + 1
        };
    }
}

/// Token ranges of the arms' patterns, with their guards.
fn patterns(tokens: &[Token], open: usize) -> Vec<(usize, usize)> {
    let end = after_group(tokens, open) - 1;
    let mut found = Vec::new();
    let mut at = open + 1;
    while at < end {
        let start = at;
        while at < end && !tokens[at].is("=>") {
            at = skip(tokens, at);
        }
        found.push((start, at));
        at += 1;
        if tokens.get(at).is_some_and(|t| t.is("{")) {
            at = after_group(tokens, at);
            if tokens.get(at).is_some_and(|t| t.is(",")) {
                at += 1;
            }
            continue;
        }
        while at < end && !tokens[at].is(",") {
            at = skip(tokens, at);
        }
        at += 1;
    }
    found
}

fn skip(tokens: &[Token], at: usize) -> usize {
    let opens = ["{", "(", "["].iter().any(|p| tokens[at].is(p));
    if opens { after_group(tokens, at) } else { at + 1 }
}

fn names_variant(pattern: &[Token], enums: &BTreeSet<String>) -> bool {
    pattern.windows(2).any(|pair| {
        let own = pair[0].word().is_some_and(|w| w == "Self" || enums.contains(w));
        own && pair[1].is("::")
    })
}

/// `_`, or a lone lower-case name, with or without a guard after `_`.
fn takes_all(pattern: &[Token]) -> bool {
    match pattern {
        [one] => {
            one.is("_")
                || one
                    .word()
                    .is_some_and(|w| w.starts_with(char::is_lowercase) && w != "true" && w != "false")
        }
        _ => false,
    }
}
