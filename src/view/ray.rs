//! Ray's membership against what the config expects; where the server uses no Ray, its ranks.

mod ranks;
mod sources;

use ratatui::layout::Rect;
use ratatui::style::Style;

use crate::domain::NodeId;
use crate::domain::intent::Pane;
use crate::domain::ray::{RayFacts, RayNode, RayVia, gpus_match};
use crate::model::State;
use crate::model::ray::members::{self, Member, Silent, SilentBy, Since, Standing};
use crate::model::ray::ranks::ranks;
use crate::model::schedule::ray_every;

use super::Scene;
use super::age::Age;
use super::canvas::Canvas;
use super::regions::Regions;
use super::standing::Mark;
use super::widgets::boxes::frame;
use super::widgets::row::Row;
use super::words::{amount, noun, seconds, things};

/// A row of the pane, with whether it is well.
type Line<'a> = (bool, Row<'a>);

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
    let current = members::current(scene.state, scene.now.stamp);
    Age::of(ray, ray_every(via), scene.now.stamp).while_told(current)
}

/// A word for how something is, and for how it was where nobody knows whether it still is.
fn tense(age: Age, now: &str, then: &str) -> String {
    match age {
        Age::Stale(_) => then.to_owned(),
        Age::None | Age::Fresh(_) | Age::Late(_) => now.to_owned(),
    }
}

fn title<'a>(scene: &Scene<'a>) -> Row<'a> {
    let (state, look) = (scene.state, scene.look);
    let mut row = Row::new();
    row.spans(0, scene.title(Pane::Ray, "Ray"));
    if let Some(found) = ranks(state) {
        ranks::title(scene, &found, &mut row);
        return row.over_border();
    }
    if state.observed.ray.value().is_some() {
        let age = age(scene);
        let (nodes, expected) = (state.config.nodes.len(), state.config.gpus());
        let members = members::members(state).unwrap_or_default();
        let stale = matches!(age, Age::Stale(_));
        // No more than the rows below say: who is doubted there is not counted as alive. What Ray has said once is told as that.
        let counted = |m: &&Member<'_>| m.said_alive().is_some() && (stale || !m.doubted());
        let alive = members.iter().filter(counted).count();
        let gpus: f64 = members
            .iter()
            .filter(counted)
            .filter_map(Member::said_alive)
            .map(|n| n.gpus)
            // The sum of nothing is a zero without a sign.
            .fold(0.0, |sum, gpus| sum + gpus);
        let ssh = |m: &&Member<'_>| m.silent.is_some_and(|s| s.by == SilentBy::Ssh);
        let silent = members.iter().filter(ssh).count();
        let doubted = members.iter().filter(|m| m.doubted() && !ssh(m)).count();
        let strangers = !members::strangers(state).alive.is_empty();
        let all = alive == nodes && members.iter().all(Member::well) && !strangers;
        let all = all && gpus_match(gpus, expected);
        let style = age.tone(look, if all { look.good() } else { look.warn() });
        let word = tense(age, "alive", "were alive");
        row.put(1, format!("{alive}/{nodes} {word}"), style);
        if silent > 0 {
            row.put(1, format!("{silent} not answering"), look.bad());
        }
        // Where all is old, all is in doubt, and the age beside it says so.
        if doubted > 0 && !stale {
            row.put(1, format!("{doubted} in doubt"), look.bad());
        }
        row.put(2, of_gpus(gpus, expected), style);
        age.title(look, &mut row);
    }
    row.over_border()
}

fn rows<'a>(scene: &Scene<'a>) -> Vec<Line<'a>> {
    let (state, look) = (scene.state, scene.look);
    if let Some(found) = ranks(state) {
        return ranks::rows(scene, &found);
    }
    let mut rows: Vec<Line<'a>> = Vec::new();
    match (state.observed.ray.value(), members::members(state)) {
        (Some(ray), Some(members)) => {
            for member in &members {
                expected(scene, member, &mut rows);
            }
            let strangers = members::strangers(state);
            rows.extend(strangers.alive.iter().map(|n| (false, stranger(scene, n))));
            if strangers.dead > 0 {
                let mut row = Row::new();
                let text = format!("{} at other addresses", things(strangers.dead, "dead node"));
                row.put(0, format!("  {text}"), look.dim());
                rows.push((true, row));
            }
            waits(scene, ray, &mut rows);
        }
        _ => {
            let mut row = Row::new();
            let why = state.why_absent(state.config.head(), &state.observed.ray);
            row.put(0, format!("nothing known: {why}"), look.dim());
            rows.push((false, row));
            rows.extend(state.config.node_ids().map(|id| (true, awaited(scene, id))));
        }
    }
    for text in members::differences(state) {
        rows.push((false, note(text, look.bad())));
    }
    sources::rows(scene, &mut rows);
    rows
}

/// A line of its own below what it is about.
fn note<'a>(text: String, style: Style) -> Row<'a> {
    let mut row = Row::new();
    row.put(0, format!("  {text}"), style);
    row
}

/// A node of the config while nothing is known.
fn awaited<'a>(scene: &Scene<'a>, id: NodeId) -> Row<'a> {
    let look = scene.look;
    let mut row = Row::new();
    if let Some(node) = scene.state.config.node(id) {
        row.put(0, format!("· {}", node.name), look.dim());
        row.put(1, format!("expected at {}", node.fabric_address), look.dim());
        row.put(2, things(node.gpus, "GPU"), look.dim());
    }
    row
}

fn expected<'a>(scene: &Scene<'a>, member: &Member<'a>, rows: &mut Vec<Line<'a>>) {
    let look = scene.look;
    let age = age(scene);
    let mut row = Row::new();
    let Some(node) = scene.state.config.node(member.id) else {
        return;
    };
    let address = node.fabric_address.as_str();
    let mark = match (member.standing, member.silent) {
        _ if matches!(age, Age::Stale(_)) => Mark::Unknown,
        (Standing::Alive(_), Some(_)) => Mark::Unknown,
        (Standing::Alive(_), None) if member.wrong.is_empty() => Mark::Yes,
        (Standing::Alive(_) | Standing::Elsewhere(_) | Standing::Dead(_), _) => Mark::Bad,
        (Standing::Absent, _) => Mark::No,
    };
    row.put(
        0,
        format!("{} {}", mark.glyph(), node.name),
        age.tone(look, mark.style(look)),
    );
    let silent = member.silent.map(|s| not_answering(scene, s));
    match member.standing {
        Standing::Alive(n) => {
            row.put(
                if silent.is_some() { 3 } else { 0 },
                address,
                age.tone(look, look.text()),
            );
            match silent {
                Some(text) => {
                    row.put(0, text, look.bad());
                }
                None => {
                    row.put(2, tense(age, "alive", "was alive"), age.tone(look, look.good()));
                    alive_for(scene, n, &mut row);
                }
            }
            if member.silent.is_some_and(|s| s.by == SilentBy::Ssh) {
                row.put(1, "ssh", look.dim());
            }
            let right = n.has_gpus(node.gpus);
            let style = if right { look.text() } else { look.bad() };
            row.put(1, of_gpus(n.gpus, node.gpus), age.tone(look, style));
            if n.head {
                row.put(3, "head", look.dim());
            }
            versions(scene, member.id, &mut row);
            earlier(scene, member.earlier, &mut row);
        }
        Standing::Elsewhere(n) => {
            row.put(0, format!("registered as {}", n.address), age.tone(look, look.bad()));
            row.put(1, format!("expected {address}"), age.tone(look, look.text()));
            if let Some((_, Some(name))) = owner(scene.state, &n.address) {
                row.put(3, name, look.text());
            }
            row.put(2, of_gpus(n.gpus, node.gpus), look.text());
        }
        Standing::Dead(n) => {
            row.put(3, address, age.tone(look, look.text()));
            let ago = members::since(scene.state, n, scene.now).map(lasts).unwrap_or_default();
            let word = tense(age, "dead", "was dead");
            row.put(0, format!("{word}{ago}"), age.tone(look, look.bad()));
            row.put(2, n.message.as_deref().unwrap_or("Ray does not say why"), look.dim());
            earlier(scene, member.earlier, &mut row);
        }
        Standing::Absent => {
            row.put(0, address, age.tone(look, look.text()));
            row.put(0, "absent", age.tone(look, look.warn()));
        }
    }
    rows.push((mark == Mark::Yes, row));
    if let Some(silent) = member.silent {
        let said = match member.standing {
            Standing::Alive(_) => Some(format!("Ray still says alive, {}", said(scene))),
            Standing::Elsewhere(_) | Standing::Dead(_) | Standing::Absent => Some(not_answering(scene, silent)),
        };
        rows.extend(said.map(|text| (false, note(text, look.warn()))));
    }
    rows.extend(
        member
            .wrong
            .iter()
            .map(|text| (false, note(text.clone(), age.tone(look, look.warn())))),
    );
}

/// Where and how long ago the membership was read.
fn said(scene: &Scene<'_>) -> String {
    let ray = &scene.state.observed.ray;
    let via = ray.value().map_or(RayVia::Dashboard, |r| r.via).word();
    let ago = ray
        .age(scene.now.stamp)
        .map(|d| format!("{} ago", seconds(d)))
        .unwrap_or_default();
    format!("{ago} ({via})")
}

/// Ray notices a lost host late: what the console knows is said beside it.
fn not_answering(scene: &Scene<'_>, silent: Silent) -> String {
    silent.text(scene.now.stamp)
}

fn versions<'a>(scene: &Scene<'a>, id: NodeId, row: &mut Row<'a>) {
    let found = members::versions(scene.state, id);
    if let Some(ray) = found.ray {
        row.put(5, ray, scene.look.dim());
    }
    if let Some(python) = found.python {
        row.put(6, format!("py {python}"), scene.look.dim());
    }
}

/// How long it has lived, directly after the word that it does.
fn alive_for(scene: &Scene<'_>, node: &RayNode, row: &mut Row<'_>) {
    if let Some(since) = members::since(scene.state, node, scene.now) {
        row.put(4, lasts(since), scene.look.dim()).tight();
    }
}

fn earlier<'a>(scene: &Scene<'a>, before: usize, row: &mut Row<'a>) {
    if before > 0 {
        row.put(4, format!("+{}", things(before, "earlier life")), scene.look.dim());
    }
}

/// `2/2 GPUs`: those that Ray counts, of those that are expected.
fn of_gpus(seen: f64, expected: u32) -> String {
    format!("{seen:.0}/{expected} {}", noun(expected == 1, "GPU"))
}

/// ` for 2m10s` by Ray's word, else how long the console has known it.
fn lasts(since: Since) -> String {
    let word = if since.by_ray { " for" } else { ", known for" };
    format!("{word} {}", seconds(since.ago))
}

/// What waits for resources.
fn waits<'a>(scene: &Scene<'a>, ray: &RayFacts, rows: &mut Vec<Line<'a>>) {
    let (look, age) = (scene.look, age(scene));
    for wait in members::waits(scene.state, scene.now) {
        let since = wait.since.map(lasts).unwrap_or_default();
        let word = tense(age, "waits", "waited");
        let text = format!("{word}{since}: {}", wait.group.wants());
        rows.push((false, note(text, age.tone(look, look.warn()))));
        if let Some(address) = wait.nowhere.first() {
            let text = format!("no alive node is {address}: VLLM_HOST_IP differs");
            rows.push((false, note(text, look.bad())));
        }
    }
    if let Some(why) = &ray.pending_unknown {
        rows.push((true, note(format!("placement groups not known: {why}"), look.dim())));
    }
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
    row.put(2, amount(node.gpus, "GPU"), look.text());
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
