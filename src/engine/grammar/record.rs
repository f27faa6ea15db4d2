//! From a raw line to its message: colours, owner prefixes, level, time and place stripped.

use std::borrow::Cow;

use crate::log::prefix_len;

/// Levels with which a record of Python's logging begins.
const LEVELS: [&str; 6] = ["INFO", "WARNING", "ERROR", "DEBUG", "CRITICAL", "SUCC"];

/// Longest colour sequence without its escape byte, such as `[38;5;208m`.
const COLOUR: usize = 16;

/// The line without colour sequences, also where the escape byte itself was lost on the way.
pub(super) fn plain(line: &str) -> Cow<'_, str> {
    if !line.contains(['\u{1b}', '[']) {
        return Cow::Borrowed(line);
    }
    let mut text = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find(['\u{1b}', '[']) {
        let (before, from) = rest.split_at(at);
        text.push_str(before);
        match after_colour(from) {
            Some(after) => rest = after,
            None => {
                let mut chars = from.chars();
                text.extend(chars.next().filter(|c| *c != '\u{1b}'));
                rest = chars.as_str();
            }
        }
    }
    text.push_str(rest);
    Cow::Owned(text)
}

/// What follows a colour sequence (SGR) at the start of the text.
fn after_colour(text: &str) -> Option<&str> {
    let inner = text.strip_prefix('\u{1b}').unwrap_or(text).strip_prefix('[')?;
    let end = inner.find('m').filter(|end| *end <= COLOUR)?;
    let digits = inner.get(..end)?;
    let sound = digits.chars().all(|c| c.is_ascii_digit() || c == ';');
    // `[m` without its escape byte could be anything.
    let sure = text.starts_with('\u{1b}') || !digits.is_empty();
    (sound && sure).then(|| inner.get(end + 1..)).flatten()
}

/// Levels of records that tell no failure.
const MILD: [&str; 3] = ["INFO", "WARNING", "DEBUG"];

/// Whether a line is a record that only informs or warns, as far as its level tells. Each line of a record of vLLM's has it.
pub(super) fn is_mild(line: &str) -> bool {
    let text = after_owners(line);
    let own = MILD.iter().any(|level| {
        text.strip_prefix(level)
            .is_some_and(|rest| rest.starts_with(':') || after_place(rest).is_some())
    });
    own || ray_level(text).is_some_and(|level| MILD.contains(&level))
}

/// Whether a text without its owner prefixes is a record of an engine's own, with its level, time and place. uvicorn's have no more than a level.
pub(super) fn placed(text: &str) -> bool {
    LEVELS.iter().any(|level| {
        text.strip_prefix(level)
            .is_some_and(|rest| rest.starts_with(' ') && after_place(rest).is_some())
    })
}

/// The level of a record of Ray's own.
fn ray_level(text: &str) -> Option<&str> {
    text.split_once(" -- ")?.0.split_whitespace().nth(2)
}

/// A line's owner prefixes, without the time that may stand before them, and what follows them.
pub(super) fn owned(line: &str) -> (&str, &str) {
    let text = undated(line);
    let rest = after_owners(text);
    (
        text.get(..text.len().saturating_sub(rest.len())).unwrap_or("").trim(),
        rest,
    )
}

/// The message of a line.
pub(super) fn message(line: &str) -> &str {
    after_head(after_owners(line)).trim()
}

/// What follows the owner prefixes of a line.
fn after_owners(line: &str) -> &str {
    let mut text = after_docker_time(line.trim_start());
    // vLLM's own prefixes come before and after Ray's, in any number.
    loop {
        let rest = text.get(prefix_len(text)..).unwrap_or("").trim_start();
        if rest.len() == text.len() {
            break;
        }
        text = rest;
    }
    text
}

/// The line without the time that `docker logs --timestamps` puts first.
pub(super) fn undated(line: &str) -> &str {
    after_docker_time(line.trim_start())
}

/// What stands in the brackets of the owner prefixes with which a text begins.
pub(super) fn groups(text: &str) -> impl Iterator<Item = &str> {
    let prefixes = text.get(..prefix_len(text)).unwrap_or("");
    prefixes
        .split('(')
        .filter_map(|part| part.split_once(')'))
        .map(|(group, _)| group)
}

/// What follows the time that `docker logs --timestamps` puts first.
fn after_docker_time(text: &str) -> &str {
    let Some((word, rest)) = text.split_once(' ') else {
        return text;
    };
    let time = word.len() >= 20 && word.starts_with("20") && word.contains('T') && word.ends_with('Z');
    if time { rest } else { text }
}

/// What follows the head of a record. Seen: `INFO 11-29 18:59:08 [core.py:133] …`, `INFO 04-01 02:46:00 ray_utils.py:214] …`, uvicorn's `INFO:     …`, Ray's
/// `2026-11-29 18:59:36,893<TAB>INFO worker.py:1841 -- …`, SGLang's `[2025-03-27 21:33:30 TP0] …`.
fn after_head(text: &str) -> &str {
    if let Some(rest) = text.strip_prefix("[20") {
        return rest.split_once("] ").map_or(text, |(_, message)| message);
    }
    let level = LEVELS.iter().find_map(|l| text.strip_prefix(l));
    match level {
        Some(rest) if rest.starts_with(':') => rest.get(1..).unwrap_or("").trim_start(),
        Some(rest) if rest.starts_with(' ') => after_place(rest).unwrap_or(text),
        Some(_) | None => after_ray_head(text).unwrap_or(text),
    }
}

/// What follows ` 11-29 18:59:08 [core.py:133] `; the message may be indented.
fn after_place(rest: &str) -> Option<&str> {
    let (head, message) = rest.split_once(']')?;
    let place = head.rsplit([' ', '[']).next()?;
    let line = place.rsplit_once(':')?.1;
    let sound = !line.is_empty() && line.chars().all(|c| c.is_ascii_digit());
    sound.then_some(message)
}

/// What follows `2026-11-29 18:59:36,893<TAB>INFO worker.py:1841 -- `. The tab has become blanks by the time a line is read: one alone where it stood
/// just before its stop.
fn after_ray_head(text: &str) -> Option<&str> {
    let (head, message) = text.split_once(" -- ")?;
    let level = head.split_whitespace().nth(2)?;
    let sound = head.starts_with("20") && LEVELS.contains(&level);
    sound.then_some(message)
}
