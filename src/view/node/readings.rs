//! The rows of readings, in the order in which a person asks for them.

use crate::domain::NodeId;
use crate::domain::observed::VerbFacts;
use crate::domain::problem::Severity;
use crate::model::{tells, told_until};
use crate::view::Scene;
use crate::view::widgets::row::Row;
use crate::view::words::{last_seen, seconds};

use super::{container, gpu, link, load, memory};

/// Problems shown by their text; the rest is counted.
const PROBLEMS: usize = 2;

/// The rows of a node. `dense` puts what belongs together into one.
pub(super) fn rows<'a>(scene: &Scene<'a>, id: NodeId, width: u16, dense: bool) -> Vec<Row<'a>> {
    let Some(seen) = scene.state.observed.node(id) else {
        return Vec::new();
    };
    let mut rows = link::rows(scene, id, width);
    let nothing = seen.memory.value().is_none() && seen.containers.value().is_none();
    if nothing && !seen.link.usable() {
        return rows;
    }
    rows.extend(memory::rows(scene, id, width, dense));
    if dense {
        let mut row = gpu::summary(scene, id);
        container::add(scene, id, &mut row, true);
        rows.push(row);
    } else {
        rows.extend(gpu::rows(scene, id));
        let mut row = Row::new();
        row.put(0, label("container", dense), scene.look.label());
        container::add(scene, id, &mut row, false);
        rows.push(row);
    }
    rows.extend(verb(scene, id));
    rows.extend(load::rows(scene, id, dense));
    rows.extend(load::failure(scene, id));
    rows.extend(problems(scene, id));
    rows
}

/// A row's name, as wide as all of them.
pub(super) fn label(name: &'static str, dense: bool) -> String {
    let short = match name {
        "memory" => "mem",
        other => other,
    };
    if dense {
        format!("{short:<4}")
    } else {
        format!("{name:<9}")
    }
}

fn problems<'a>(scene: &Scene<'a>, id: NodeId) -> Vec<Row<'a>> {
    let look = scene.look;
    let Some(node) = scene.state.nodes.get(id.index()) else {
        return Vec::new();
    };
    let more = node.problems.len().saturating_sub(PROBLEMS);
    let mut rows = Vec::new();
    for (i, problem) in node.problems.iter().take(PROBLEMS).enumerate() {
        let style = match problem.severity {
            Severity::Warning => look.warn(),
            Severity::Error => look.bad(),
        };
        let mut row = Row::new();
        row.put(0, format!("! {}", problem.text), style);
        // Where it is about something that can't be read, since when.
        if let Some(unread) = node.unread.values().find(|u| u.why == problem.text) {
            let span = told_until(scene.state, id, scene.now.stamp).since(unread.since);
            let then = last_seen(tells(scene.state, id));
            row.put(1, format!("known for {}{then}", seconds(span)), style);
        }
        if let Some(fix) = &problem.fix {
            row.put(2, fix.as_str(), look.text());
        }
        if more > 0 && i + 1 == PROBLEMS {
            row.put(1, format!("+{more} more"), style).right();
        }
        rows.push(row);
    }
    rows
}

/// The script engine's verb, when one runs or ended badly.
fn verb<'a>(scene: &Scene<'a>, id: NodeId) -> Option<Row<'a>> {
    let look = scene.look;
    let mut row = Row::new();
    match scene.state.observed.node(id)?.verb.value()? {
        VerbFacts::None => return None,
        VerbFacts::Running { verb, tail } => {
            row.put(0, format!("script {verb} runs"), look.busy());
            row.put(1, tail.last().map_or("", String::as_str), look.dim());
        }
        VerbFacts::Ended { code: 0, .. } => return None,
        VerbFacts::Ended { verb, code, tail } => {
            row.put(0, format!("✗ script {verb} ended with {code}"), look.bad());
            row.put(1, tail.last().map_or("", String::as_str), look.text());
        }
    }
    Some(row)
}
