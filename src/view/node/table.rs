//! Many nodes: a line each.

use ratatui::layout::Rect;
use ratatui::style::Style;

use crate::domain::NodeId;
use crate::domain::event::Subject;
use crate::domain::gpu::Gpu;
use crate::domain::intent::Pane;
use crate::domain::units::Bytes;
use crate::model::load::verdict::Verdict;
use crate::model::loading;
use crate::model::schedule::every;
use crate::model::state::ServingState;
use crate::view::Scene;
use crate::view::age::Age;
use crate::view::canvas::Canvas;
use crate::view::regions::Regions;
use crate::view::standing;
use crate::view::widgets::boxes::{Border, frame};
use crate::view::widgets::row::Row;
use crate::view::words::{NOTHING, gib, things};

use super::container;
use super::load::{figures, out_of_sight, tone};
use super::memory::share;

/// Longest name that keeps its column.
const NAME: usize = 16;

/// Width from which a row without a frame has room for words on what is out of sight.
const WORDS: u16 = 36;

/// Height below which the table has no frame.
const FRAMED: u16 = 5;

/// Draws the table. The focused node, or the one that was focused last, is always in sight; how many are above and below is said.
pub(in crate::view) fn draw(scene: &Scene<'_>, canvas: &mut Canvas<'_>, area: Rect, regions: &mut Regions) {
    let look = scene.look;
    let count = scene.state.nodes.len();
    let joined = scene
        .state
        .config
        .node_ids()
        .filter(|id| standing::node(scene.state, *id, scene.now.stamp) == standing::Mark::Yes);
    let mut title = Row::new();
    title.put(0, things(count, "node"), look.title());
    title.put(1, format!("{} in the cluster", joined.count()), look.text());
    let border = Border {
        style: look.border(),
        heavy: false,
        sides: true,
    };
    let framed = area.height >= FRAMED;
    let rows = usize::from(area.height).saturating_sub(if framed { 2 } else { 0 });
    let out = Out::of(count, rows, scene.state.node_in_sight().index());
    let inner = if framed {
        let mut foot = Row::new();
        if let Some(text) = out.above() {
            title.put(1, text, look.warn()).right();
        }
        if let Some(text) = out.below() {
            foot.put(0, text, look.warn()).right();
        }
        frame(canvas, area, border, title.over_border(), foot.over_border())
    } else {
        area
    };
    let names = scene.state.config.nodes.iter().map(|n| n.name.chars().count());
    let name_width = names.max().unwrap_or(0).min(NAME);
    let shown = scene.state.config.node_ids().skip(out.above).take(rows);
    for (i, (y, id)) in (inner.y..).zip(shown).enumerate() {
        let line = Rect::new(inner.x, y, inner.width, 1);
        let mut row = row(scene, id, name_width);
        // Without a frame the rows themselves have to say it.
        let (above, below) = if area.width < WORDS {
            out.arrows()
        } else {
            (out.above(), out.below())
        };
        let said = [
            above.filter(|_| !framed && i == 0),
            below.filter(|_| !framed && i + 1 == rows),
        ];
        for text in said.into_iter().flatten() {
            row.put(0, text, look.warn()).right();
        }
        row.draw(canvas, line.x, y, line.width);
        if scene.state.focused_node() == Some(id) {
            canvas.restyle(line, look.selected());
        }
        regions.panes.push((Pane::Node(id.0), line));
    }
}

/// How many nodes of a list are out of sight, on either side.
#[derive(Clone, Copy)]
struct Out {
    above: usize,
    below: usize,
}

impl Out {
    /// With `rows` of `count` in sight, `wanted` among them.
    fn of(count: usize, rows: usize, wanted: usize) -> Self {
        let hidden = count.saturating_sub(rows);
        let above = wanted.saturating_sub(rows.saturating_sub(1)).min(hidden);
        Self {
            above,
            below: hidden - above,
        }
    }

    /// The same where there is no room for words.
    fn arrows(self) -> (Option<String>, Option<String>) {
        let arrow = |n: usize, arrow| (n > 0).then(|| format!("{arrow}{n}"));
        (arrow(self.above, '↑'), arrow(self.below, '↓'))
    }

    fn above(self) -> Option<String> {
        (self.above > 0).then(|| format!("+{} above", self.above))
    }

    fn below(self) -> Option<String> {
        (self.below > 0).then(|| format!("+{} below", self.below))
    }
}

/// Every row has the same columns, each of one width, so that they stand under each other.
fn row<'a>(scene: &Scene<'a>, id: NodeId, name_width: usize) -> Row<'a> {
    let (state, look) = (scene.state, scene.look);
    let mut row = Row::new();
    let (Some(node), Some(seen)) = (state.config.node(id), state.observed.node(id)) else {
        return row;
    };
    let mark = standing::node(state, id, scene.now.stamp);
    row.put(0, format!(" {}", mark.glyph()), mark.style(look));
    row.put(0, format!("{:<3}{:<name_width$}", id.0 + 1, node.name), look.strong());
    row.put(6, format!("{:<6}", node.role.word()), look.text());
    row.put(7, format!("{:<15}", node.fabric_address), look.text());
    let link = standing::link(&seen.link);
    row.put(
        1,
        format!("ssh {} {:<10}", link.glyph(), standing::link_word(&seen.link)),
        link.style(look),
    );
    memory(scene, id, &mut row);
    gpus(scene, id, &mut row);
    let (text, style) = container::word(scene, id);
    row.put(3, format!("{text:<14}"), style);
    let (text, style) = load(scene, id);
    row.put(4, format!("{text:<24}"), style);
    row
}

/// The stage of a node's load in few words.
fn load(scene: &Scene<'_>, id: NodeId) -> (String, Style) {
    let look = scene.look;
    let Some(load) = scene.state.nodes.get(id.index()).map(|n| &n.load) else {
        return (String::new(), look.dim());
    };
    // What a load that goes on has said of a failure, it has survived so far.
    let goes_on = scene.state.server.state == ServingState::Loading || scene.state.server.state.answers();
    if !load.failures.is_empty() && !goes_on {
        return ("✗ failed".to_owned(), look.bad());
    }
    if !scene.state.loads() {
        return (NOTHING.to_owned(), look.dim());
    }
    let Some(part) = loading::part(scene.state, id) else {
        return (NOTHING.to_owned(), look.dim());
    };
    if out_of_sight(scene, &part, id).is_some() {
        return (format!("last {}", figures(&part)), look.stale());
    }
    let judged = loading::judge(scene.state, Some(id), scene.now.stamp).map(|j| j.verdict);
    let style = match &judged {
        Some(Verdict::Stalled { .. } | Verdict::Silent { .. } | Verdict::Slow) => {
            judged.as_ref().map_or(look.text(), |verdict| tone(look, verdict))
        }
        Some(Verdict::Progressing | Verdict::Early { .. } | Verdict::Waiting(_)) | None => look.text(),
    };
    let stalled = judged
        .filter(|v| matches!(v, Verdict::Stalled { .. }))
        .map(|v| v.text(scene.now.stamp));
    (stalled.unwrap_or_else(|| figures(&part)), style)
}

fn memory(scene: &Scene<'_>, id: NodeId, row: &mut Row<'_>) {
    let look = scene.look;
    let Some(seen) = scene.state.observed.node(id) else {
        return;
    };
    let age = Age::of(&seen.memory, every(scene.state, id, Subject::Memory), scene.now.stamp);
    let sum = |of: fn(&Gpu) -> Option<Bytes>| {
        let gpus = &seen.gpus.value()?.gpus;
        let add = |sum: Bytes, g: &Gpu| Some(Bytes(sum.0.saturating_add(of(g)?.0)));
        gpus.iter().try_fold(Bytes(0), add).filter(|_| !gpus.is_empty())
    };
    let own = sum(|g| g.memory_used).zip(sum(|g| g.memory_total));
    let (share, size, style) = match own.or_else(|| seen.memory.value().map(|m| (m.used(), m.total))) {
        Some((used, total)) => {
            let size = format!("{}/{} GiB", gib(used), gib(total));
            (share(used, total), size, age.tone(look, look.text()))
        }
        None => (0.0, NOTHING.to_owned(), look.dim()),
    };
    row.bar(5, share, age.tone(look, look.bar()), (10, 10));
    row.put(2, format!("{size:>17}"), style);
}

fn gpus(scene: &Scene<'_>, id: NodeId, row: &mut Row<'_>) {
    let look = scene.look;
    let Some(seen) = scene.state.observed.node(id) else {
        return;
    };
    let age = Age::of(&seen.gpus, every(scene.state, id, Subject::Gpus), scene.now.stamp);
    let gpus = seen.gpus.value().map_or(&[][..], |g| g.gpus.as_slice());
    let busiest = gpus.iter().filter_map(|g| g.utilization.map(|p| p.0)).reduce(f32::max);
    let text = busiest.map_or_else(|| format!("{NOTHING:>3} %"), |b| format!("{b:>3.0} %"));
    row.put(2, text, age.tone(look, look.text()));
}
