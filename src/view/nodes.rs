//! The nodes' place on the screen: side by side while each has room, else a table with the focused node under it.

use ratatui::layout::Rect;

use crate::domain::NodeId;

use super::Scene;
use super::canvas::Canvas;
use super::node::{self, table};
use super::regions::Regions;

/// Narrowest node pane beside another.
const COLUMN: u16 = 38;

/// Lowest node pane in a grid: frame, readings, a few lines of its log.
const ROW: u16 = 9;

/// Most rows of the table while a node stands under it.
const TABLE_SHARE: u16 = 2;

/// Draws the nodes.
pub(super) fn draw(scene: &Scene<'_>, canvas: &mut Canvas<'_>, area: Rect, regions: &mut Regions) {
    let count = u16::try_from(scene.state.nodes.len()).unwrap_or(u16::MAX);
    if count == 0 || area.height == 0 {
        return;
    }
    match grid(count, area) {
        Some(columns) => {
            for (i, cell) in (0..count).zip(cells(count, columns, area)) {
                node::draw(scene, canvas, cell, NodeId(i), regions);
            }
        }
        None => draw_table(scene, canvas, area, count, regions),
    }
}

/// Columns of a grid in which every pane is large enough; `None` when there is none. A lone node or a pair stays as it is at any size.
fn grid(count: u16, area: Rect) -> Option<u16> {
    if count == 1 {
        return Some(1);
    }
    let most = (area.width / COLUMN).clamp(1, count);
    let fewest_rows = count.div_ceil(most);
    // As few columns as that many rows allow, so that the panes are as wide as they can be.
    let columns = count.div_ceil(fewest_rows);
    let fits = area.height / fewest_rows >= ROW;
    (fits || (count == 2 && columns == 2)).then_some(columns)
}

/// Equal cells, the last of each row and column taking what is left over; a short last row is as wide as the others together.
fn cells(count: u16, columns: u16, area: Rect) -> Vec<Rect> {
    let rows = count.div_ceil(columns);
    let mut cells = Vec::new();
    for r in 0..rows {
        let (y, bottom) = (part(area.height, r, rows), part(area.height, r + 1, rows));
        let here = columns.min(count - r * columns);
        for c in 0..here {
            let (x, right) = (part(area.width, c, here), part(area.width, c + 1, here));
            cells.push(Rect::new(area.x + x, area.y + y, right - x, bottom - y));
        }
    }
    cells
}

/// `i` of `n` parts of a length.
fn part(length: u16, i: u16, n: u16) -> u16 {
    let at = u32::from(length) * u32::from(i) / u32::from(n.max(1));
    u16::try_from(at).unwrap_or(length)
}

fn draw_table(scene: &Scene<'_>, canvas: &mut Canvas<'_>, area: Rect, count: u16, regions: &mut Regions) {
    let height = (count + 2).min((area.height / TABLE_SHARE).max(4)).min(area.height);
    let top = Rect::new(area.x, area.y, area.width, height);
    table::draw(scene, canvas, top, regions);
    let under = Rect::new(area.x, top.bottom(), area.width, area.height - height);
    if under.height > 2 {
        node::draw(scene, canvas, under, scene.state.node_in_sight(), regions);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_stand_side_by_side_while_each_has_room() {
        let at = |count, w, h| grid(count, Rect::new(0, 0, w, h));
        assert_eq!(at(1, 10, 3), Some(1));
        assert_eq!(at(2, 80, 15), Some(2));
        assert_eq!(at(2, 120, 5), Some(2));
        assert_eq!(at(2, 60, 20), Some(1));
        assert_eq!(at(2, 60, 10), None);
        assert_eq!(at(4, 120, 30), Some(2));
        assert_eq!(at(3, 120, 30), Some(3));
        assert_eq!(at(8, 120, 30), Some(3));
        assert_eq!(at(8, 120, 26), None);
        assert_eq!(at(8, 200, 45), Some(4));
    }

    #[test]
    fn cells_cover_the_area() {
        let area = Rect::new(3, 2, 121, 31);
        for (count, columns) in [(1, 1), (2, 2), (3, 2), (8, 4), (7, 3)] {
            let cells = cells(count, columns, area);
            assert_eq!(cells.len(), usize::from(count));
            let covered: u32 = cells.iter().map(|c| c.area()).sum();
            assert_eq!(covered, area.area(), "{count} {columns}");
        }
    }
}
