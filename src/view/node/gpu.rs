//! GPUs: how busy, how warm, how much power; and their memory where it is their own.

use std::time::Duration;

use crate::domain::NodeId;
use crate::domain::event::Subject;
use crate::domain::gpu::{Gpu, GpuFacts};
use crate::domain::units::Bytes;
use crate::model::schedule::every;
use crate::view::Scene;
use crate::view::age::Age;
use crate::view::look::Look;
use crate::view::widgets::row::{History, Row};
use crate::view::words::{NOTHING, gib, things, unknown};

use super::memory::share;
use super::readings::label;

/// GPUs that get a row each; more of them share one.
const ROWS: usize = 4;

/// Time that the history of utilisation covers.
const HISTORY: Duration = Duration::from_secs(120);

/// Temperature from which a GPU is worth a warning: GB10 and H200 slow down a few degrees above.
const HOT: f32 = 85.0;

/// One row a GPU, or one for all of them when they are many.
pub(super) fn rows<'a>(scene: &Scene<'a>, id: NodeId) -> Vec<Row<'a>> {
    let Some(seen) = scene.state.observed.node(id) else {
        return Vec::new();
    };
    match seen.gpus.value() {
        Some(facts) if facts.gpus.len() > 1 && facts.gpus.len() <= ROWS => {
            let age = Age::of(&seen.gpus, every(scene.state, id, Subject::Gpus), scene.now.stamp);
            let name = |g: &Gpu| format!("{:<9}", format!("gpu {}", g.index));
            let mut rows: Vec<Row<'a>> = facts.gpus.iter().map(|g| one(scene.look, g, name(g), age)).collect();
            if let Some(last) = rows.last_mut() {
                fewer(scene, id, facts, last);
            }
            rows
        }
        Some(_) | None => vec![single(scene, id, false)],
    }
}

/// All GPUs in one row, without a history.
pub(super) fn summary<'a>(scene: &Scene<'a>, id: NodeId) -> Row<'a> {
    single(scene, id, true)
}

fn single<'a>(scene: &Scene<'a>, id: NodeId, dense: bool) -> Row<'a> {
    let look = scene.look;
    let mut row = Row::new();
    let name = label("gpu", dense);
    let Some(seen) = scene.state.observed.node(id) else {
        return row;
    };
    let age = Age::of(&seen.gpus, every(scene.state, id, Subject::Gpus), scene.now.stamp);
    let Some(facts) = seen.gpus.value() else {
        row.put(0, name, look.label());
        row.put(0, unknown(&seen.gpus), look.dim());
        return row;
    };
    match facts.gpus.as_slice() {
        [] => {
            row.put(0, name, look.label());
            row.put(0, "none that nvidia-smi knows", look.warn());
        }
        [gpu] => {
            row = one(look, gpu, name, age);
            fewer(scene, id, facts, &mut row);
            if !dense {
                history(scene, id, &mut row);
                row.put(7, gpu.name.as_str(), look.dim());
            }
        }
        many => {
            row.put(0, name, look.label());
            if !fewer(scene, id, facts, &mut row) {
                row.put(5, things(facts.gpus.len(), "GPU"), look.dim());
            }
            all(look, many, age, &mut row);
        }
    }
    age.note(look, &mut row);
    row
}

/// Says that the node has fewer GPUs than the configuration says, where that is so.
fn fewer(scene: &Scene<'_>, id: NodeId, facts: &GpuFacts, row: &mut Row<'_>) -> bool {
    let expected = scene.state.config.node(id).map_or(0, |node| node.gpus);
    let Some(seen) = facts.fewer_than(expected) else {
        return false;
    };
    row.put(
        2,
        format!("{seen} of {}", things(expected as usize, "GPU")),
        scene.look.warn(),
    );
    true
}

fn one<'a>(look: &Look, gpu: &Gpu, name: String, age: Age) -> Row<'a> {
    let mut row = Row::new();
    row.put(0, name, look.label());
    if let Some(total) = gpu.memory_total {
        own_memory(look, gpu.memory_used, total, age, &mut row);
    }
    let value = age.tone(look, look.text());
    row.put(
        0,
        unit(gpu.utilization.map(|p| p.0), "%"),
        age.tone(look, look.strong()),
    );
    row.put(2, unit(gpu.power.map(|w| w.0), "W"), value);
    let hot = gpu.temperature.is_some_and(|t| t.0 >= HOT);
    let warmth = if hot { age.tone(look, look.warn()) } else { value };
    row.put(3, unit(gpu.temperature.map(|t| t.0), "°C"), warmth);
    row
}

fn own_memory(look: &Look, used: Option<Bytes>, total: Bytes, age: Age, row: &mut Row<'_>) {
    let Some(used) = used else {
        row.put(1, format!("-/{} GiB", gib(total)), look.dim());
        return;
    };
    row.bar(2, share(used, total), age.tone(look, look.bar()), (6, 18));
    row.put(
        1,
        format!("{}/{} GiB", gib(used), gib(total)),
        age.tone(look, look.strong()),
    );
}

/// Several GPUs as sums, means and the warmest.
fn all(look: &Look, gpus: &[Gpu], age: Age, row: &mut Row<'_>) {
    let sum = |of: fn(&Gpu) -> Option<Bytes>| {
        gpus.iter()
            .try_fold(Bytes(0), |sum, g| Some(Bytes(sum.0.saturating_add(of(g)?.0))))
    };
    if let Some(total) = sum(|g| g.memory_total) {
        own_memory(look, sum(|g| g.memory_used), total, age, row);
    }
    let value = age.tone(look, look.text());
    let used: Vec<f32> = gpus.iter().filter_map(|g| g.utilization.map(|p| p.0)).collect();
    let (low, high) = (
        used.iter().copied().reduce(f32::min),
        used.iter().copied().reduce(f32::max),
    );
    let busy = match (low, high) {
        (Some(low), Some(high)) if high - low >= 1.0 => format!("{low:.0}-{high:.0} %"),
        _ => unit(high, "%"),
    };
    row.put(0, busy, age.tone(look, look.strong()));
    let power = gpus
        .iter()
        .map(|g| g.power.map(|w| w.0))
        .try_fold(0.0, |sum, w| Some(sum + w?));
    row.put(3, unit(power, "W"), value);
    let warmest = gpus.iter().filter_map(|g| g.temperature.map(|t| t.0)).reduce(f32::max);
    row.put(4, unit(warmest, "°C"), value);
}

fn history<'a>(scene: &Scene<'a>, id: NodeId, row: &mut Row<'a>) {
    let Some(node) = scene.state.nodes.get(id.index()) else {
        return;
    };
    let history = History {
        series: &node.utilization,
        now: scene.now.stamp,
        span: HISTORY,
        top: 100.0,
        style: scene.look.bar(),
    };
    row.spark(4, history, (8, 24));
}

/// A whole number with its unit, or a dash.
fn unit(n: Option<f32>, unit: &str) -> String {
    match n {
        Some(n) => format!("{n:.0} {unit}"),
        None => format!("{NOTHING} {unit}"),
    }
}
