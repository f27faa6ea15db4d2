//! Where everything stands.
//!
//! ```text
//! where are we                                                clock
//! a jump host that is not up, when there is one
//! ╭ node ─────────────╮╭ node ─────────────╮   readings, then the log
//! ╰───────────────────╯╰───────────────────╯
//! ╭ Ray ──────────────╮╭ server ───────────╮
//! ╰───────────────────╯╰───────────────────╯   on a screen without room for them: how the server is, and why
//! ╭ throughput test ───────────────────────╮   once there is one
//! ╭ run ───────────────────────────────────╮   while its steps are shown
//! what happened, or what could be done next
//! keys
//! ```

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::domain::NodeId;
use crate::domain::intent::Pane;

use super::canvas::Canvas;
use super::overlay::{self, run};
use super::regions::Regions;
use super::{Scene, bench, brief, hints, news, node, nodes, ray, serving, top};

/// Rows of a pane below the nodes on a low screen, frame included.
const LOW_PANE: u16 = 5;

/// Rows of a pane below the nodes on a screen with room.
const PANE: u16 = 8;

/// Rows of the throughput test's pane on a low screen, frame included: the file of its result is among them.
const LOW_TEST: u16 = 6;

/// Screen height from which there is room.
const ROOMY: u16 = 32;

/// Screen width from which the test stands beside Ray and server.
const THREE_COLUMNS: u16 = 160;

/// Rows that the nodes keep before other panes go.
const NODES: u16 = 9;

/// Draws a frame and tells where things are.
pub fn draw(scene: &Scene<'_>, buffer: &mut Buffer, area: Rect) -> Regions {
    let area = area.intersection(buffer.area);
    let mut regions = Regions::default();
    let mut canvas = Canvas::new(buffer, scene.look.glyphs());
    canvas.clear(area, scene.look.text());
    if area.is_empty() {
        return regions;
    }
    let mut rest = area;
    let top = take_top(&mut rest, top::height(scene.state));
    top::draw(scene, &mut canvas, top);
    let keys = take_bottom(&mut rest, 1);
    hints::draw(scene, &mut canvas, keys);
    let line = take_bottom(&mut rest, u16::from(!brief::tiny(area)));
    if !line.is_empty() {
        news::draw(scene, &mut canvas, line);
    }
    if scene.state.screen.zoom {
        zoomed(scene, &mut canvas, rest, &mut regions);
    } else {
        panes(scene, &mut canvas, rest, area, &mut regions);
    }
    overlay::draw(
        scene,
        &mut canvas,
        Rect {
            height: area.height.saturating_sub(1),
            ..area
        },
        &mut regions,
    );
    regions
}

fn zoomed(scene: &Scene<'_>, canvas: &mut Canvas<'_>, mut rest: Rect, regions: &mut Regions) {
    if scene.state.screen.steps_top().is_some() {
        let (room, height) = (rest, run::height(scene, rest));
        run::draw(scene, canvas, take_bottom(&mut rest, height), room, regions);
    }
    match scene.state.screen.focus {
        Pane::Node(n) => node::draw(scene, canvas, rest, NodeId(n), regions),
        Pane::Ray => ray::draw(scene, canvas, rest, regions),
        Pane::Serving => serving::draw(scene, canvas, rest, regions),
        Pane::Bench => bench::draw(scene, canvas, rest, regions),
    }
}

fn panes(scene: &Scene<'_>, canvas: &mut Canvas<'_>, mut rest: Rect, screen: Rect, regions: &mut Regions) {
    if scene.state.screen.steps_top().is_some() {
        let (room, height) = (rest, run::height(scene, rest));
        run::draw(scene, canvas, take_bottom(&mut rest, height), room, regions);
    }
    let height = if screen.height >= ROOMY { PANE } else { LOW_PANE };
    let bench = scene.state.bench.is_some();
    let beside = screen.width >= THREE_COLUMNS;
    if bench && !beside && rest.height >= NODES + height {
        let wanted = bench::height(scene).min(if screen.height >= ROOMY { PANE } else { LOW_TEST });
        let area = take_bottom(&mut rest, wanted);
        bench::draw(scene, canvas, area, regions);
    }
    if rest.height >= NODES + height {
        let row = take_bottom(&mut rest, height);
        let columns = split(row, if bench && beside { 3 } else { 2 });
        let mut columns = columns.into_iter();
        if let Some(area) = columns.next() {
            ray::draw(scene, canvas, area, regions);
        }
        if let Some(area) = columns.next() {
            serving::draw(scene, canvas, area, regions);
        }
        if let Some(area) = columns.next() {
            bench::draw(scene, canvas, area, regions);
        }
    }
    let taken = brief::draw(scene, canvas, rest, screen);
    take_top(&mut rest, taken);
    nodes::draw(scene, canvas, rest, regions);
}

/// Equal columns; the last takes what is left over.
fn split(row: Rect, n: u16) -> Vec<Rect> {
    let width = row.width / n.max(1);
    (0..n)
        .map(|i| {
            let x = row.x + i * width;
            Rect::new(x, row.y, if i + 1 == n { row.right() - x } else { width }, row.height)
        })
        .collect()
}

fn take_top(rest: &mut Rect, height: u16) -> Rect {
    let height = height.min(rest.height);
    let taken = Rect { height, ..*rest };
    rest.y += height;
    rest.height -= height;
    taken
}

fn take_bottom(rest: &mut Rect, height: u16) -> Rect {
    let height = height.min(rest.height);
    rest.height -= height;
    Rect::new(rest.x, rest.bottom(), rest.width, height)
}
