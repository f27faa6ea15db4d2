//! A cause as lines: beside the step that failed, and in the server's pane.

use std::time::Duration;

use crate::diagnose::{Cause, Confidence, Kind};
use crate::domain::{Now, Wall};
use crate::model::State;

use super::words::seconds;

/// Lines of evidence that are shown; the logs have the rest.
const EVIDENCE: usize = 3;

/// The clause, where and when it was seen, and how sure it is.
#[must_use]
pub fn headline(state: &State, cause: &Cause, now: Now) -> String {
    let text = match cause.kind {
        Kind::Cause | Kind::Warning => cause.text.clone(),
        Kind::Echo if cause.confidence == Confidence::Quoted => format!("{} (no rule knows this line)", cause.text),
        Kind::Echo | Kind::Pointer | Kind::Quiet => format!("not seen; what follows from it: {}", cause.text),
    };
    let node = cause.node.map_or("the cluster", |n| state.config.node_name(n));
    // Said once.
    let node = if names(&text, node) {
        String::new()
    } else {
        format!("{node}, ")
    };
    let at = ago(now, cause.at);
    let when = if cause.found {
        format!("found {at} ago")
    } else {
        format!("{at} ago")
    };
    // First, for what comes last may be cut.
    let over = cause
        .over
        .map(|at| format!("until {} ago: ", ago(now, at)))
        .unwrap_or_default();
    let sure = match cause.confidence {
        Confidence::Known | Confidence::Quoted => "",
        Confidence::Likely => ", likely",
    };
    format!("{over}{text} ({node}{when}{sure})")
}

/// Whether a text names a node: as a word of its own, for `spark-1` is no `spark-12`.
#[must_use]
pub fn names(text: &str, node: &str) -> bool {
    let part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '.'));
    text.match_indices(node).any(|(at, _)| {
        let (before, after) = (text.get(..at).unwrap_or_default(), text.get(at..).unwrap_or_default());
        let after = after.strip_prefix(node).unwrap_or_default();
        // A sentence may end behind it.
        let after = after.trim_end_matches('.');
        !node.is_empty() && !part(before.chars().next_back()) && !part(after.chars().next())
    })
}

fn ago(now: Now, at: Wall) -> String {
    seconds(Duration::from_millis(now.wall.0.saturating_sub(at.0)))
}

/// The first lines that say so, each with its node.
pub(super) fn evidence(state: &State, cause: &Cause) -> Vec<String> {
    // A quoted line is its own evidence.
    let own = |text: &String| cause.rule.is_none() && *text == cause.text;
    let lines = cause.evidence.iter().filter(|line| !own(&line.text));
    lines
        .take(EVIDENCE)
        .map(|line| match line.node {
            Some(node) => format!("{}: {}", state.config.node_name(node), line.text),
            None => line.text.clone(),
        })
        .collect()
}

/// What follows from it, in one line.
pub(super) fn echoes(cause: &Cause) -> Option<String> {
    let first = cause.echoes.first()?;
    let more = cause.echoes.len() - 1;
    Some(if more == 0 {
        format!("from it follows: {}", first.text)
    } else {
        format!("from it follows: {}; and {more} more", first.text)
    })
}

/// What to run, and where.
pub(super) fn command(state: &State, cause: &Cause) -> Option<String> {
    let (node, line) = cause.command.as_ref()?;
    Some(format!("on {}: {line}", state.config.node_name(*node)))
}

#[cfg(test)]
mod tests {
    use super::names;

    #[test]
    fn a_node_is_named_by_a_word_of_its_own() {
        for (text, named) in [
            ("NCCL on spark-1 may not pin memory", true),
            ("spark-1: no answer", true),
            ("it is spark-1.", true),
            ("NCCL failed on spark-12", false),
            ("no container of myspark-1", false),
            ("nothing of it", false),
        ] {
            assert_eq!(names(text, "spark-1"), named, "{text}");
        }
        assert!(!names("anything", ""));
    }
}
