//! The connection to a node, where it is not simply up.

use crate::domain::link::LinkState;
use crate::domain::{NodeId, When};
use crate::model::state::LastError;
use crate::model::{held_up_by, lost_since};
use crate::view::Scene;
use crate::view::standing;
use crate::view::top::{retry, tells_of};
use crate::view::widgets::row::Row;
use crate::view::widgets::wrap::wrap;
use crate::view::words::seconds;

/// Rows of an error's text, and as many of its fix.
const ERROR_ROWS: usize = 4;

/// What there is to say of the connection; nothing when it is up.
pub(super) fn rows<'a>(scene: &Scene<'a>, id: NodeId, width: u16) -> Vec<Row<'a>> {
    let look = scene.look;
    let Some(seen) = scene.state.observed.node(id) else {
        return Vec::new();
    };
    let mark = standing::link(&seen.link);
    let mut row = Row::new();
    row.put(0, format!("ssh {}", mark.glyph()), mark.style(look));
    match &seen.link {
        LinkState::Up => Vec::new(),
        LinkState::Idle => {
            row.put(0, waits_for(scene, id), look.dim());
            vec![row]
        }
        LinkState::Connecting => {
            row.put(0, format!("connecting to {}", host(scene, id)), look.busy());
            if let Some(since) = lost_since(scene.state, id) {
                row.put(
                    1,
                    format!("down for {}", seconds(since.age(scene.now.stamp))),
                    look.bad(),
                );
            }
            let mut rows = vec![row];
            if let Some(said) = above(scene, id) {
                rows.extend(text(said, width, look.dim()));
            } else if let Some(last) = scene.state.nodes.get(id.index()).and_then(|n| n.last_error.as_ref()) {
                rows.extend(text(&last_try(last, scene), width, look.dim()));
            }
            rows
        }
        LinkState::Asking => {
            row.put(0, "waits for your answer", look.warn());
            vec![row]
        }
        LinkState::Silent { since } => {
            let age = seconds(scene.now.stamp.since(*since));
            row.put(0, format!("silent for {age}; what stands here is as old"), look.warn());
            vec![row]
        }
        LinkState::Down { error, retry_at, since } => {
            let since = lost_since(scene.state, id).unwrap_or(When::found(*since));
            row.put(
                0,
                format!("down for {}", seconds(since.age(scene.now.stamp))),
                look.bad(),
            );
            row.put(1, retry(*retry_at, scene.now.stamp), look.dim()).right();
            let mut rows = vec![row];
            if let Some(said) = above(scene, id) {
                rows.extend(text(said, width, look.dim()));
                return rows;
            }
            rows.extend(text(&error.text, width, look.bad()));
            if let Some(fix) = &error.fix {
                rows.extend(text(&format!("fix: {fix}"), width, look.good()));
            }
            rows
        }
    }
}

/// That a line on top says why the node can't be reached: it is its jump host, and nothing is known of the node itself.
fn above(scene: &Scene<'_>, id: NodeId) -> Option<&'static str> {
    let hop = held_up_by(scene.state, id)?;
    tells_of(scene.state, hop).then_some("waits for its jump host, see above")
}

fn text<'a>(text: &str, width: u16, style: ratatui::style::Style) -> Vec<Row<'a>> {
    let lines = text.lines().flat_map(|l| wrap(l, width)).take(ERROR_ROWS);
    lines
        .map(|l| {
            let mut row = Row::new();
            row.put(0, l, style);
            row
        })
        .collect()
}

/// Why the try before the one under way failed, and how long ago.
fn last_try(last: &LastError, scene: &Scene<'_>) -> String {
    let age = seconds(scene.now.stamp.since(last.at));
    format!("{age} ago: {}", last.error.text)
}

fn host<'a>(scene: &Scene<'a>, id: NodeId) -> &'a str {
    scene.state.config.node(id).map_or("?", |n| n.login.host.as_str())
}

/// What an idle connection waits for.
fn waits_for(scene: &Scene<'_>, id: NodeId) -> String {
    let via = scene.state.config.node(id).and_then(|n| n.via);
    match via.and_then(|h| scene.state.config.ssh.jump.get(h.index())) {
        Some(hop) => format!("waits for the jump host {}", hop.name),
        None => "not dialled yet".to_owned(),
    }
}
