//! Where the membership comes from, where that is not as it should be.

use crate::domain::ray::{RayStatus, RayVia};
use crate::model::connected;
use crate::model::schedule::ray_every;
use crate::view::Scene;
use crate::view::words::{amount, seconds, things};

use super::{Line, note};

/// Adds what is worth telling of the sources: that a better one fails, and what the last one counts.
pub(super) fn rows<'a>(scene: &Scene<'a>, rows: &mut Vec<Line<'a>>) {
    let (state, look) = (scene.state, scene.look);
    let ray = &state.observed.ray;
    let now = scene.now.stamp;
    let current = ray.value().filter(|r| !ray.stale(now, ray_every(r.via)));
    if current.is_none()
        && let Some(status) = state.ray.status.value()
    {
        let age = state.ray.status.age(now).map(seconds).unwrap_or_default();
        rows.push((
            false,
            note(format!("ray status, {age} ago: {}", counted(status)), look.warn()),
        ));
        rows.extend(status.failures.iter().map(|f| {
            let place = f.address.as_deref().map(|a| format!(" at {a}")).unwrap_or_default();
            (false, note(format!("ray status: {}{place}", f.text), look.bad()))
        }));
        rows.extend(
            status
                .demands
                .iter()
                .map(|d| (false, note(format!("waits: {d}"), look.warn()))),
        );
    }
    if let Some(ray) = current.filter(|r| r.via != RayVia::Dashboard) {
        rows.push((true, note(format!("from {}", ray.via.word()), look.dim())));
    }
    for via in RayVia::ALL {
        let source = state.ray.source(via);
        let Some(failure) = &source.failure else { continue };
        // What is better than the source that answers is worth a line, and what is worse is not.
        if current.is_some_and(|ray| ray.via <= via) {
            continue;
        }
        // A head that is out of sight is not asked: it was so when it failed last.
        let asked = connected(state, state.config.head());
        let when = if asked {
            format!("known for {}", seconds(now.since(failure.since)))
        } else {
            format!("{} ago", seconds(now.since(failure.last)))
        };
        rows.push((
            true,
            note(format!("{}: {}, {when}", via.word(), failure.why), look.dim()),
        ));
    }
}

fn counted(status: &RayStatus) -> String {
    let gpus = status
        .gpus
        .map(|(_, all)| format!(", {}", amount(all, "GPU")))
        .unwrap_or_default();
    let devices: String = status.devices.iter().map(|(k, n)| format!(", {n} {k}")).collect();
    format!("{}{gpus}{devices}; it can't say which", things(status.nodes, "node"))
}
