//! Causes in a few lines for a person.

use std::time::Duration;

use crate::diagnose::{Cause, Confidence, Kind};
use crate::domain::NodeId;
use crate::domain::time::human;
use crate::model::State;

/// All causes, the first one with all that is known of it.
pub(super) fn text(state: &State) -> Vec<String> {
    let mut lines = Vec::new();
    let causes = state.causes();
    let mut first = true;
    for cause in &causes {
        let word = match (cause.kind, first) {
            (Kind::Warning, _) => "warning",
            (Kind::Cause | Kind::Echo | Kind::Pointer | Kind::Quiet, true) => "first cause",
            (Kind::Cause | Kind::Echo | Kind::Pointer | Kind::Quiet, false) => "then",
        };
        lines.push(format!("{word}: {}", headline(state, cause)));
        if cause.kind != Kind::Warning && std::mem::take(&mut first) {
            lines.extend(details(state, cause).into_iter().map(|l| format!("  {l}")));
        }
    }
    lines
}

/// The cause of one failure, with all that is known of it.
pub(super) fn of(state: &State, cause: &Cause) -> Vec<String> {
    let mut lines = vec![format!("cause: {}", headline(state, cause))];
    lines.extend(details(state, cause).into_iter().map(|l| format!("  {l}")));
    lines
}

fn headline(state: &State, cause: &Cause) -> String {
    let now = state.now.wall.0;
    let ago = human(Duration::from_millis(now.saturating_sub(cause.at.0)));
    let when = if cause.found {
        format!("found {ago} ago")
    } else {
        format!("{ago} ago")
    };
    let node = cause.node.map_or("the cluster", |n| state.config.node_name(n));
    let sure = match (cause.kind, cause.confidence) {
        (_, Confidence::Quoted) => ", a line that no rule knows",
        (Kind::Echo, _) => ", follows from something that was not seen",
        (_, Confidence::Likely) => ", likely",
        (_, Confidence::Known) => "",
    };
    format!("{} ({node}, {when}{sure})", cause.text)
}

fn details(state: &State, cause: &Cause) -> Vec<String> {
    let name = |node: Option<NodeId>| node.map_or("the cluster", |n| state.config.node_name(n));
    let mut lines = Vec::new();
    lines.extend(cause.note.iter().cloned());
    lines.extend(cause.evidence.iter().map(|l| format!("| {}: {}", name(l.node), l.text)));
    lines.extend(
        cause
            .echoes
            .iter()
            .map(|e| format!("from it follows: {} ({})", e.text, name(e.node))),
    );
    lines.extend(cause.fix.iter().map(|fix| format!("fix: {fix}")));
    lines.extend(
        cause
            .command
            .iter()
            .map(|(node, line)| format!("on {}: {line}", name(Some(*node)))),
    );
    lines
}
