//! A node's pane: what it is, its readings, and its log under them.

pub(super) mod container;
mod gpu;
mod link;
pub(super) mod load;
mod log;
mod memory;
mod readings;
pub(super) mod table;

use ratatui::layout::Rect;

use crate::domain::NodeId;
use crate::domain::event::Subject;
use crate::domain::intent::Pane;
use crate::model::schedule::every;

use super::Scene;
use super::age::Age;
use super::canvas::Canvas;
use super::regions::Regions;
use super::standing;
use super::widgets::boxes::{Border, divide, frame};
use super::widgets::row::Row;

/// Rows that the log keeps before readings take them.
const LOG_ROWS: u16 = 3;

/// Height from which a line parts the readings from the log.
const DIVIDED: u16 = 9;

/// Draws a node's pane.
pub(super) fn draw(scene: &Scene<'_>, canvas: &mut Canvas<'_>, area: Rect, id: NodeId, regions: &mut Regions) {
    let pane = Pane::Node(id.0);
    let border = scene.border(pane);
    let zoomed = scene.state.screen.zoom;
    let inner = frame(canvas, area, border, title(scene, id, zoomed), log::foot(scene, id));
    regions.panes.push((pane, area));
    if inner.height == 0 {
        return;
    }
    let log_area = head(scene, canvas, area, inner, border, id);
    regions.logs.push(log::draw(scene, canvas, log_area, id, zoomed));
}

/// Draws the readings and gives the rectangle that is left for the log.
fn head(scene: &Scene<'_>, canvas: &mut Canvas<'_>, area: Rect, inner: Rect, border: Border, id: NodeId) -> Rect {
    let dense = inner.height < super::DENSE || inner.width < super::NARROW;
    let rows = readings::rows(scene, id, inner.width.saturating_sub(2), dense);
    let room = inner.height.saturating_sub(LOG_ROWS).max(1);
    let mut y = inner.y;
    for row in rows.into_iter().take(usize::from(room)) {
        row.draw(canvas, inner.x + 1, y, inner.width.saturating_sub(2));
        y += 1;
    }
    if inner.height >= DIVIDED {
        divide(canvas, area, y, border);
        y += 1;
    }
    Rect::new(inner.x, y, inner.width, inner.bottom().saturating_sub(y))
}

fn title<'a>(scene: &Scene<'a>, id: NodeId, zoomed: bool) -> Row<'a> {
    let (state, look) = (scene.state, scene.look);
    let mut row = Row::new();
    let Some(node) = state.config.node(id) else { return row };
    row.spans(0, scene.title(Pane::Node(id.0), &node.name));
    let seen = state.observed.node(id);
    if let Some(seen) = seen {
        let mark = standing::link(&seen.link);
        row.put(1, format!("ssh {}", mark.glyph()), mark.style(look));
    }
    row.put(3, node.role.word(), look.text());
    row.put(2, node.fabric_address.as_str(), look.text());
    let via = node.via.and_then(|h| state.config.ssh.jump.get(h.index()));
    if let Some(hop) = via {
        if node.relayed {
            // Whose key opens the node is worth more room than the way to it.
            row.put(2, format!("by {}'s key", hop.name), look.text());
        } else {
            row.put(5, format!("via {}", hop.name), look.dim());
        }
    }
    let age = seen.map_or(Age::None, |s| {
        Age::of(&s.memory, every(state, id, Subject::Memory), scene.now.stamp)
    });
    age.title(look, &mut row);
    if zoomed {
        row.put(4, "z gives the others back", look.dim()).right();
    }
    row.over_border()
}
