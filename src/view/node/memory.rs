//! Memory: the GPU's own, or the host's where the GPU has none (GB10).

use ratatui::style::Style;

use crate::domain::NodeId;
use crate::domain::event::Subject;
use crate::domain::gpu::GpuFacts;
use crate::domain::memory::MemoryFacts;
use crate::domain::observed::NodeObserved;
use crate::domain::units::Bytes;
use crate::model::facts::memory_alarm;
use crate::model::load::trend::reads;
use crate::model::schedule::every;
use crate::view::Scene;
use crate::view::age::Age;
use crate::view::look::Look;
use crate::view::widgets::row::Row;
use crate::view::words::{NOTHING, gib, unknown};

use super::readings::label;

/// Share in use from which memory is worth a warning. On unified memory, less than 10 % left is where a host starts to answer late.
const HIGH: f64 = 0.90;

/// Share in use from which the host may be lost: Ray's memory monitor kills at 95 %, and a Spark without free memory no longer answers.
const FULL: f64 = 0.95;

/// Share of the time waited for memory that is worth a word.
const PRESSED: f32 = 1.0;

/// Width in which all numbers stand in one row.
const WHOLE: u16 = 76;

/// Width from which the bar is worth more than what stands behind it.
const ROOM: u16 = 44;

/// Rows of memory. GPUs with memory of their own show it in their own rows; the host's is then said beside it, where there is room.
pub(super) fn rows<'a>(scene: &Scene<'a>, id: NodeId, width: u16, dense: bool) -> Vec<Row<'a>> {
    let Some(seen) = scene.state.observed.node(id) else {
        return Vec::new();
    };
    let unified = seen.gpus.value().is_some_and(GpuFacts::all_unified);
    let dedicated = seen.gpus.value().is_some_and(|g| g.gpus.iter().any(|gpu| !gpu.unified));
    let alarm = alarm(scene, id);
    if dedicated && dense {
        return alarm.into_iter().collect();
    }
    let narrowest = if width < ROOM { 5 } else { 8 };
    let age = Age::of(&seen.memory, every(scene.state, id, Subject::Memory), scene.now.stamp);
    let mut rows = vec![host(scene, seen, unified, dense, narrowest, age)];
    if let (Some(m), Some(row)) = (seen.memory.value(), rows.last_mut()) {
        let second = !dense && width < WHOLE;
        let mut more = Row::new();
        let rest = if second { &mut more } else { row };
        if second {
            rest.put(0, label("", dense), scene.look.label());
        }
        let gpus = seen.gpus.value().filter(|_| unified);
        if let Some(amount) = gpus.and_then(|g| m.unaccounted(g.held())) {
            rest.put(2, format!("unaccounted {}", gib(amount)), scene.look.warn());
        }
        details(scene.look, m, rest);
        if let Some(rate) = reading_rate(scene, id) {
            rest.put(6, rate, scene.look.text());
        }
        rest.put(6, if unified { "unified" } else { "host" }, scene.look.dim());
        if second {
            rows.push(more);
        }
    }
    if let Some(row) = rows.first_mut() {
        age.note(scene.look, row);
    }
    rows.extend(alarm);
    rows
}

/// Too little is left. It stays when the node no longer answers: then it is the likeliest reason.
fn alarm<'a>(scene: &Scene<'a>, id: NodeId) -> Option<Row<'a>> {
    let mut row = Row::new();
    row.put(0, format!("! {}", memory_alarm(scene.state, id)?), scene.look.bad());
    Some(row)
}

fn host<'a>(scene: &Scene<'a>, seen: &NodeObserved, unified: bool, dense: bool, narrowest: u16, age: Age) -> Row<'a> {
    let look = scene.look;
    let mut row = Row::new();
    row.put(0, label("memory", dense), look.label());
    let Some(m) = seen.memory.value() else {
        row.put(0, unknown(&seen.memory), look.dim());
        return row;
    };
    let share = share(m.used(), m.total);
    row.bar(1, share, age.tone(look, level(look, share)), (narrowest, 26));
    let size = format!("{}/{}{}", gib(m.used()), gib(m.total), if dense { "G" } else { " GiB" });
    if !dense {
        row.put(5, "used", look.dim());
    }
    row.put(0, size, age.tone(look, look.strong()));
    if let (true, Some(gpus)) = (unified, seen.gpus.value()) {
        held(look, gpus, dense, &mut row);
    }
    row
}

/// What the GPU's processes hold: on unified memory the second of its two truths.
fn held(look: &Look, gpus: &GpuFacts, dense: bool, row: &mut Row<'_>) {
    let name = if dense { "held" } else { "gpu-held" };
    let (text, style) = match gpus.held() {
        Some(held) => (gib(held), look.text()),
        None => (NOTHING.to_owned(), look.dim()),
    };
    row.put(3, format!("{name} {text}"), style);
}

/// Page cache and free memory, named: with what is used and what the GPU holds they are four numbers, and they need not add up. The unit is the first's.
fn details(look: &Look, m: &MemoryFacts, row: &mut Row<'_>) {
    if let Some(cached) = m.cached {
        row.put(4, format!("cache {}", gib(cached)), look.dim());
    }
    if let Some(free) = m.free {
        row.put(4, format!("free {}", gib(free)), look.dim());
    }
    if let Some(swap) = m.swap_used.filter(|s| s.0 > 0) {
        row.put(5, format!("swap {}", gib(swap)), look.warn());
    }
    if let Some(waits) = m.pressure.filter(|p| p.0 >= PRESSED) {
        row.put(4, format!("waits {:.0} %", waits.0), look.warn());
    }
}

/// What the node reads from its disks, where that is enough to tell of a load.
fn reading_rate(scene: &Scene<'_>, id: NodeId) -> Option<String> {
    let view = scene.state.nodes.get(id.index())?;
    let rate = view
        .trends
        .read_rate(scene.now.stamp)
        .ok()
        .filter(|rate| reads(*rate))?;
    Some(format!("reads {}", rate.per_second()))
}

/// The share of a whole; 0 when there is no whole.
#[expect(clippy::cast_precision_loss, reason = "a share for a bar")]
pub(super) fn share(part: Bytes, whole: Bytes) -> f64 {
    if whole.0 == 0 {
        0.0
    } else {
        part.0 as f64 / whole.0 as f64
    }
}

/// The style of a bar of memory.
fn level(look: &Look, share: f64) -> Style {
    match share {
        s if s >= FULL => look.bad(),
        s if s >= HIGH => look.warn(),
        _ => look.bar(),
    }
}
