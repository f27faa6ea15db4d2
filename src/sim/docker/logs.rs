//! `docker logs`, and a container's log as others read it.

use super::absent;
use crate::sim::answer::{Answer, Tail};
use crate::sim::clock::Moment;
use crate::sim::world::{World, flag};

pub(super) fn logs(world: &World, node: usize, words: &[String], now: Moment) -> Answer {
    let switches = ["-f", "--follow", "-t", "--timestamps", "--details"];
    let has = |names: &[&str]| words.iter().any(|w| names.contains(&w.as_str()));
    let valued = ["--since", "--tail", "-n", "--until"];
    let mut name = None;
    let mut skip = false;
    for word in words {
        if skip {
            skip = false;
        } else if valued.contains(&word.as_str()) {
            skip = true;
        } else if !word.starts_with('-') {
            name = Some(word.as_str());
        } else if !switches.contains(&word.as_str()) && !word.contains('=') {
            return Answer::now("", format!("unknown flag: {word}\nSee 'docker logs --help'.\n"), 125);
        }
    }
    let asked = LogWish {
        follow: has(&["-f", "--follow"]),
        dates: has(&["-t", "--timestamps"]),
        since: flag(words, "--since"),
        tail: flag(words, "--tail").or_else(|| flag(words, "-n")),
        merged: false,
    };
    tail(world, node, name.unwrap_or(""), &asked, now)
}

/// What is asked of a log.
pub struct LogWish {
    /// Goes on as lines come.
    pub follow: bool,
    /// Each line begins with its date.
    pub dates: bool,
    /// Only lines from this date on.
    pub since: Option<String>,
    /// Only so many last lines.
    pub tail: Option<String>,
    /// stderr goes to stdout.
    pub merged: bool,
}

/// A container's log.
pub fn tail(world: &World, node: usize, name: &str, asked: &LogWish, now: Moment) -> Answer {
    let Some(container) = world.hosts.get(node).and_then(|h| h.find(name)) else {
        return absent(name);
    };
    let end = container.log.end(now);
    let mut from = 0;
    if let Some(n) = asked.tail.as_deref().and_then(|t| t.parse::<u64>().ok()) {
        from = end.saturating_sub(n);
    }
    if let Some(since) = asked.since.as_deref() {
        let Some(since) = world.calendar.parse(since) else {
            return Answer::now(
                "",
                format!(
                    "Error response from daemon: invalid value for \"since\": failed to parse value as time or duration: \"{since}\"\n"
                ),
                1,
            );
        };
        from = from.max(container.log.since(since.min(now)));
    }
    Answer::Log(Tail {
        container: container.id.clone(),
        from,
        follow: asked.follow,
        dates: asked.dates,
        merged: asked.merged,
    })
}
