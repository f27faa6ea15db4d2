//! Ray's membership against what the config expects.

use ratatui::layout::Rect;

use crate::domain::NodeId;
use crate::domain::intent::Pane;
use crate::domain::ray::{RayFacts, RayNode, RayVia, gpus_match};
use crate::model::State;
use crate::model::schedule::ray_every;

use super::Scene;
use super::age::Age;
use super::canvas::Canvas;
use super::regions::Regions;
use super::standing::Mark;
use super::widgets::boxes::frame;
use super::widgets::row::Row;
use super::words::{plural, seconds};

/// Draws the pane.
pub(super) fn draw(scene: &Scene<'_>, canvas: &mut Canvas<'_>, area: Rect, regions: &mut Regions) {
    let inner = frame(canvas, area, scene.border(Pane::Ray), title(scene), Row::new());
    regions.panes.push((Pane::Ray, area));
    let mut rows = rows(scene);
    let room = usize::from(inner.height);
    let hidden = rows.len().saturating_sub(room);
    if hidden > 0 {
        // What is wrong must not be among what is hidden.
        rows.sort_by_key(|(well, _)| *well);
    }
    for (y, (_, row)) in (inner.y..).zip(rows.into_iter().take(room)) {
        row.draw(canvas, inner.x + 1, y, inner.width.saturating_sub(2));
    }
    let text = format!(" +{hidden} more, z ");
    let width = u16::try_from(text.len()).unwrap_or(u16::MAX);
    if hidden > 0 && inner.height > 0 && inner.width > width {
        canvas.text(
            inner.right() - width,
            area.bottom() - 1,
            width,
            &text,
            scene.look.warn(),
        );
    }
}

fn age(scene: &Scene<'_>) -> Age {
    let ray = &scene.state.observed.ray;
    let via = ray.value().map_or(RayVia::Dashboard, |r| r.via);
    Age::of(ray, ray_every(via), scene.now.stamp)
}

fn title<'a>(scene: &Scene<'a>) -> Row<'a> {
    let (state, look) = (scene.state, scene.look);
    let mut row = Row::new();
    row.spans(0, scene.title(Pane::Ray, "Ray"));
    if let Some(ray) = state.observed.ray.value() {
        let age = age(scene);
        let alive = ray.alive().count();
        let gpus: f64 = ray.alive().map(|n| n.gpus).sum();
        let all = alive == state.config.nodes.len() && strangers(state, ray).next().is_none();
        let all = all && gpus_match(gpus, state.config.gpus());
        let style = age.tone(look, if all { look.good() } else { look.warn() });
        row.put(1, format!("{alive}/{} alive", state.config.nodes.len()), style);
        row.put(2, format!("{gpus:.0}/{} GPU", state.config.gpus()), style);
        age.title(look, &mut row);
    }
    row.over_border()
}

/// The rows, each with whether it is well.
fn rows<'a>(scene: &Scene<'a>) -> Vec<(bool, Row<'a>)> {
    let (state, look) = (scene.state, scene.look);
    let Some(ray) = state.observed.ray.value() else {
        let mut row = Row::new();
        let why = state.why_absent(state.config.head(), &state.observed.ray);
        row.put(0, format!("nothing known: {why}"), look.dim());
        let mut rows = vec![(false, row)];
        rows.extend(state.config.node_ids().map(|id| (true, awaited(scene, id))));
        return rows;
    };
    let mut rows: Vec<_> = state.config.node_ids().map(|id| expected(scene, ray, id)).collect();
    rows.extend(strangers(state, ray).map(|n| (false, stranger(scene, n))));
    rows
}

/// A node of the config while nothing is known.
fn awaited<'a>(scene: &Scene<'a>, id: NodeId) -> Row<'a> {
    let look = scene.look;
    let mut row = Row::new();
    if let Some(node) = scene.state.config.node(id) {
        row.put(0, format!("· {}", node.name), look.dim());
        row.put(1, format!("expected at {}", node.fabric_address), look.dim());
        row.put(
            2,
            plural(usize::try_from(node.gpus).unwrap_or_default(), "GPU"),
            look.dim(),
        );
    }
    row
}

fn expected<'a>(scene: &Scene<'a>, ray: &'a RayFacts, id: NodeId) -> (bool, Row<'a>) {
    let look = scene.look;
    let age = age(scene);
    let mut row = Row::new();
    let Some(node) = scene.state.config.node(id) else {
        return (true, row);
    };
    let address = node.fabric_address.as_str();
    let alive = ray.alive_at(address);
    let dead = ray.nodes.iter().find(|n| !n.alive && n.address == address);
    let right = |n: &RayNode| n.has_gpus(node.gpus);
    let mark = match (alive, dead) {
        _ if matches!(age, Age::Stale(_)) => Mark::Unknown,
        (Some(n), _) if right(n) => Mark::Yes,
        (Some(_), _) | (None, Some(_)) => Mark::Bad,
        (None, None) => Mark::No,
    };
    row.put(
        0,
        format!("{} {}", mark.glyph(), node.name),
        age.tone(look, mark.style(look)),
    );
    row.put(0, address, age.tone(look, look.text()));
    match (alive, dead) {
        (Some(n), _) => {
            row.put(2, "alive", age.tone(look, look.good()));
            let style = if right(n) { look.text() } else { look.bad() };
            row.put(0, format!("{:.0}/{} GPU", n.gpus, node.gpus), age.tone(look, style));
            if n.head {
                row.put(3, "head", look.dim());
            }
        }
        (None, Some(n)) => {
            row.put(0, "gone", age.tone(look, look.bad()));
            row.put(2, n.message.as_deref().unwrap_or("Ray does not say why"), look.dim());
        }
        (None, None) => {
            row.put(0, "absent", age.tone(look, look.warn()));
        }
    }
    if let Some(silent) = silence(scene, id) {
        row.put(1, silent, look.warn()).right();
    }
    (mark == Mark::Yes, row)
}

/// Ray notices a lost host late: what SSH knows is said beside it.
fn silence(scene: &Scene<'_>, id: NodeId) -> Option<String> {
    use crate::domain::link::LinkState;
    match &scene.state.observed.node(id)?.link {
        LinkState::Down { since, .. } => Some(format!("no ssh for {}", seconds(scene.now.stamp.since(*since)))),
        LinkState::Silent { .. } => Some("ssh silent".to_owned()),
        LinkState::Idle | LinkState::Connecting | LinkState::Asking | LinkState::Up => None,
    }
}

/// Alive members at addresses that the config does not name.
fn strangers<'a>(state: &'a State, ray: &'a RayFacts) -> impl Iterator<Item = &'a RayNode> {
    ray.alive()
        .filter(|n| !state.config.nodes.iter().any(|c| c.fabric_address == n.address))
}

fn stranger<'a>(scene: &Scene<'a>, node: &'a RayNode) -> Row<'a> {
    let look = scene.look;
    let mut row = Row::new();
    row.put(0, format!("! {}", node.address), look.bad());
    match owner(scene.state, &node.address) {
        Some((id, interface)) => {
            row.put(0, format!("is {}", scene.state.config.node_name(id)), look.warn());
            row.put(1, "at another address", look.warn());
            if let Some(name) = interface {
                row.put(3, name, look.text());
            }
        }
        None => {
            row.put(0, "not in the config", look.warn());
        }
    }
    row.put(2, format!("{:.0} GPU", node.gpus), look.text());
    row
}

/// The node of the config that holds an address outside the fabric, and on which interface.
fn owner<'a>(state: &'a State, address: &str) -> Option<(NodeId, Option<&'a str>)> {
    state.config.node_ids().find_map(|id| {
        let seen = state.observed.node(id).and_then(|n| n.fabric.value());
        let interface = seen.and_then(|f| f.with_address(address)).map(|i| i.name.as_str());
        let dialled = state.config.node(id).is_some_and(|n| n.login.host == address);
        (interface.is_some() || dialled).then_some((id, interface))
    })
}
