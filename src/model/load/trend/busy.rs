//! What a node's GPUs did since a moment, as far as their readings tell.

use std::time::Duration;

use crate::domain::{Stamp, cadence};

use super::{BUSY, POWER_SHARE, Trend, Trends, UTILISATION_STEP, WINDOW, fresh};

/// Time after the moment whose readings are left out: a reading is of the time before it, and they come a little late.
const SETTLES: Duration = cadence::GPUS_EVERY.saturating_mul(2);

/// Readings below which nothing is said: one or two may fall between two steps of an engine.
const LEAST: usize = 4;

/// What the GPUs of a node do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Busy {
    /// Their use and their power go up and down as in work.
    Works,
    /// They are busy and neither figure moves: ranks that wait for each other spin so, and a steady step may look the same.
    Even,
    /// Nothing runs on them.
    Idle,
}

impl Trends {
    /// What the GPUs did since then, within the window, and their figures now, as a fragment; `None` where the readings do not tell.
    #[must_use]
    pub fn busy(&self, since: Stamp, now: Stamp) -> Option<(Busy, String)> {
        if !fresh(self.gpu_at, now, cadence::AMD_EVERY) {
            return None;
        }
        let from = since.plus(SETTLES);
        let values = |trend: &Trend| -> Vec<f64> {
            let inside = trend
                .points
                .iter()
                .filter(|(at, _)| *at >= from && now.since(*at) <= WINDOW);
            inside.map(|p| p.1).collect()
        };
        let (used, watts) = (values(&self.utilization), values(&self.power));
        if used.len() < LEAST {
            return None;
        }
        let most = used.iter().copied().fold(0.0, f64::max);
        let moves = spread(&used) >= UTILISATION_STEP || spread(&watts) >= (top(&watts) * POWER_SHARE).max(1.0);
        let busy = match (most >= BUSY, moves) {
            (false, _) => Busy::Idle,
            (true, true) => Busy::Works,
            (true, false) => Busy::Even,
        };
        Some((busy, self.gpu()?.text))
    }
}

fn top(values: &[f64]) -> f64 {
    values.iter().copied().fold(0.0, f64::max)
}

fn spread(values: &[f64]) -> f64 {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    (top(values) - least).max(0.0)
}
