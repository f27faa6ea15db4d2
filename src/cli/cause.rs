//! Causes in a few lines for a person.

use crate::diagnose::{Cause, Kind};
use crate::domain::NodeId;
use crate::model::State;
use crate::view::cause::{headline, names};

/// All causes, the first one with all that is known of it, and each warning with its cure.
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
        lines.push(format!("{word}: {}", headline(state, cause, state.now)));
        let more = match cause.kind {
            Kind::Warning => cure(state, cause),
            Kind::Cause | Kind::Echo | Kind::Pointer | Kind::Quiet if std::mem::take(&mut first) => {
                details(state, cause)
            }
            Kind::Cause | Kind::Echo | Kind::Pointer | Kind::Quiet => Vec::new(),
        };
        lines.extend(more.into_iter().map(|l| format!("  {l}")));
    }
    lines
}

/// The cause of one failure, with all that is known of it.
pub(super) fn of(state: &State, cause: &Cause) -> Vec<String> {
    let mut lines = vec![format!("cause: {}", headline(state, cause, state.now))];
    lines.extend(details(state, cause).into_iter().map(|l| format!("  {l}")));
    lines
}

fn details(state: &State, cause: &Cause) -> Vec<String> {
    let name = |node: Option<NodeId>| node.map_or("the cluster", |n| state.config.node_name(n));
    let mut lines = Vec::new();
    lines.extend(cause.note.iter().cloned());
    lines.extend(cause.evidence.iter().map(|l| format!("| {}: {}", name(l.node), l.text)));
    lines.extend(cause.echoes.iter().map(|e| match name(e.node) {
        node if names(&e.text, node) => format!("from it follows: {}", e.text),
        node => format!("from it follows: {} ({node})", e.text),
    }));
    lines.extend(cure(state, cause));
    lines
}

/// What to do, and what to run for it: to be copied as it is, for it runs from here.
fn cure(state: &State, cause: &Cause) -> Vec<String> {
    let fix = cause.fix.iter().map(|fix| format!("fix: {fix}"));
    fix.chain(state.by_hand(cause).map(|line| format!("run: {line}")))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::config::{self, EXAMPLE};
    use crate::diagnose::Confidence;
    use crate::domain::{Now, Wall};
    use crate::model::Options;

    use super::*;

    #[test]
    fn what_is_over_is_not_told_as_if_it_were_so() {
        let config = config::parse(EXAMPLE, "config.example.toml").unwrap();
        let mut state = State::new(Arc::new(config), Options::default(), Now::default());
        state.now.wall = Wall(90_000);
        let cause = Cause {
            rule: Some("memory-floor".to_owned()),
            kind: Kind::Cause,
            text: "little memory is left".to_owned(),
            node: Some(NodeId(1)),
            at: Wall(30_000),
            found: false,
            over: Some(Wall(80_000)),
            confidence: Confidence::Likely,
            note: None,
            evidence: Vec::new(),
            times: 1,
            echoes: Vec::new(),
            fix: None,
            command: None,
            steps: Vec::new(),
        };
        let lines = of(&state, &cause);
        assert_eq!(
            lines,
            ["cause: until 10 s ago: little memory is left (spark-2, 1m00s ago, likely)"]
        );
    }
}
