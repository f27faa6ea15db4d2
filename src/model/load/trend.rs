//! What moves on a node: memory that grows, reads, a download, a GPU that works. A load whose engine is silent shows itself in these.

mod busy;
mod one;
#[cfg(test)]
mod tests;

use std::time::Duration;

use serde::Serialize;

use crate::domain::disk::DiskFacts;
use crate::domain::gpu::GpuFacts;
use crate::domain::memory::MemoryFacts;
use crate::domain::units::Bytes;
use crate::domain::{Stamp, cadence};

pub use busy::Busy;
use one::Trend;

/// Time over which growth is looked at. A minute evens out shards that come one at a time; two looks at a folder are further apart and are compared as
/// they are.
pub const WINDOW: Duration = Duration::from_secs(60);

/// Growth of memory, of a GPU's or the host's, that counts as movement: allocators take far less by chance, a shard is far more.
pub const MEMORY_STEP: Bytes = Bytes(256 << 20);

/// Reads from disks in a minute that count as movement: what a quiet host does beside is below it, the slowest load above.
pub const READ_STEP: Bytes = Bytes(64 << 20);

/// Time over which a rate is told, of reads and of what grows: some looks at memory, so that it says what happens now.
const RATE_WINDOW: Duration = Duration::from_secs(10);

/// Growth of the model cache between two looks that counts as movement: `du` counts whole files, and a slow line still brings this much in a minute.
pub const CACHE_STEP: Bytes = Bytes(16 << 20);

/// Utilisation in percent from which a GPU works.
const BUSY: f64 = 10.0;

/// Change of a busy GPU's utilisation, in points, or of its power, as a share, within the window, that counts as work. Ranks that wait for each other spin:
/// both figures then stand still, however high.
const UTILISATION_STEP: f64 = 5.0;
const POWER_SHARE: f64 = 0.1;

/// What is said of memory that fell and grows again.
const BACK: &str = "goes up and down";

/// What a node's readings tell of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Signal {
    /// What the processes of the engine's container hold of the GPUs' memory: the load's own, also where the GPU shares the host's.
    EngineMemory,
    /// The host's memory in use.
    Memory,
    /// The GPUs' own memory in use.
    GpuMemory,
    /// The page cache.
    PageCache,
    /// Bytes read from block devices.
    DiskReads,
    /// The folder of the hub's models.
    ModelCache,
    /// Utilisation and power of the GPUs.
    Gpu,
}

impl Signal {
    /// Whether it is of all that runs on the host, and not of the load alone.
    #[must_use]
    pub fn of_host(self) -> bool {
        match self {
            Self::Memory | Self::PageCache | Self::DiskReads => true,
            Self::EngineMemory | Self::GpuMemory | Self::ModelCache | Self::Gpu => false,
        }
    }
}

/// A signal as it stands now.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    /// Which.
    pub signal: Signal,
    /// When it moved last, where it was seen to.
    pub moved_at: Option<Stamp>,
    /// Whether it grows at a rate that would count as movement, if it goes on.
    pub rises: bool,
    /// What it does, as a fragment: `grows 1.2 GiB/min`, `does not grow`.
    pub text: String,
}

/// All that moves on a node.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Trends {
    memory: Trend,
    /// The most of the host's memory that was in use since the load began: what falls and comes back is no progress.
    most: Option<f64>,
    engine: Trend,
    gpu_memory: Trend,
    cached: Trend,
    read: Trend,
    /// When the counter of reads was seen to begin anew.
    read_anew: Option<Stamp>,
    model_cache: Trend,
    utilization: Trend,
    power: Trend,
    gpu_at: Option<Stamp>,
    /// Since when the node is looked at.
    since: Option<Stamp>,
    /// When a GPU was seen to work last.
    worked_at: Option<Stamp>,
    /// What a rank held when the load began, and the most that it took beyond it.
    base: Option<f64>,
    grown: f64,
}

impl Trends {
    /// A load begins: what is held now belongs to others.
    pub fn begin(&mut self) {
        self.base = None;
        self.grown = 0.0;
        self.most = None;
    }

    /// Takes a reading of memory; says whether something moved. Growth of the page cache is all that a download without a bar shows, and reads are all
    /// that weights show where that cache is full.
    pub fn memory(&mut self, facts: &MemoryFacts, at: Stamp) -> bool {
        self.since.get_or_insert(at);
        let used = bytes(facts.used());
        // A server that was large has ended: what comes then begins from there.
        let most = self.most.filter(|most| used >= most / 2.0).unwrap_or(used);
        let mut moved = self.memory.grows_beyond(at, used, bytes(MEMORY_STEP), most);
        self.most = Some(most.max(used));
        if let Some(cached) = facts.cached {
            moved |= self.cached.grows(at, bytes(cached), bytes(MEMORY_STEP));
        }
        if let Some(read) = facts.read {
            moved |= self.reads(at, bytes(read));
        }
        if self.gpu_memory.points.is_empty() {
            self.held(used);
        }
        moved
    }

    /// A counter that is lower than it was counts from a new boot, or has come to its end: what stood before says nothing of what came since.
    fn reads(&mut self, at: Stamp, count: f64) -> bool {
        if self.read.points.back().is_some_and(|(_, last)| count < *last) {
            self.read.points.clear();
            self.read_anew = Some(at);
        }
        self.read.grows(at, count, bytes(READ_STEP))
    }

    /// Bytes a second that the node has read from its disks lately; else why that is not known.
    ///
    /// # Errors
    /// The reason, as a fragment.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rate of disks: never negative, far below the type's end"
    )]
    pub fn read_rate(&self, now: Stamp) -> Result<Bytes, &'static str> {
        let last = self.read.points.back().map(|p| p.0);
        if last.is_none() {
            return Err("the node's /proc/vmstat does not tell it");
        }
        if !fresh(last, now, cadence::MEMORY_EVERY) {
            return Err("not read lately");
        }
        match self.read.slope(now, RATE_WINDOW) {
            Some(slope) => Ok(Bytes((slope / 60.0).max(0.0) as u64)),
            None if self.read_anew.is_some() => Err("the node counts anew, and was read once since"),
            None => Err("read once so far"),
        }
    }

    /// Takes a reading of the GPUs; says whether something moved.
    pub fn gpus(&mut self, facts: &GpuFacts, at: Stamp) -> bool {
        let own = || {
            facts
                .gpus
                .iter()
                .map(|g| g.memory_used)
                .try_fold(0.0, |sum, m| Some(sum + bytes(m?)))
        };
        let mut moved = false;
        if let Some(used) = own().filter(|_| !facts.gpus.is_empty() && !facts.gpus.iter().any(|g| g.unified)) {
            moved |= self.gpu_memory.grows(at, used, bytes(MEMORY_STEP));
            self.held(used);
        }
        let busiest = facts
            .gpus
            .iter()
            .filter_map(|g| g.utilization.map(|p| f64::from(p.0)))
            .reduce(f64::max);
        let watts = facts
            .gpus
            .iter()
            .filter_map(|g| g.power.map(|w| f64::from(w.0)))
            .reduce(f64::max);
        if busiest.is_some() || watts.is_some() {
            self.gpu_at = Some(at);
        }
        let changes = busiest.is_some_and(|v| self.utilization.changes(at, v, UTILISATION_STEP));
        let draws = watts.is_some_and(|w| self.power.changes(at, w, (w * POWER_SHARE).max(1.0)));
        let works = busiest.is_some_and(|v| v >= BUSY) && (changes || draws);
        if works {
            self.worked_at = Some(at);
        }
        moved | works
    }

    /// Takes what the engine's own processes hold of the GPUs; says whether it has grown.
    pub fn engine(&mut self, held: Bytes, at: Stamp) -> bool {
        self.engine.grows(at, bytes(held), bytes(MEMORY_STEP))
    }

    /// Takes a look at the disks; says whether the model cache has grown.
    pub fn disk(&mut self, facts: &DiskFacts, at: Stamp) -> bool {
        let cache = facts.cache.as_ref();
        cache.is_some_and(|c| self.model_cache.grows(at, bytes(c.size), bytes(CACHE_STEP)))
    }

    /// The most of the host's memory that was in use lately; `None` where it was not read.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "an amount of memory: never negative, far below the type's end"
    )]
    pub fn most_used(&self, now: Stamp, lately: Duration) -> Option<Bytes> {
        let inside = self.memory.points.iter().filter(|p| now.since(p.0) <= lately);
        inside.map(|p| p.1).reduce(f64::max).map(|used| Bytes(used as u64))
    }

    /// When the cache of models was seen to grow last.
    #[must_use]
    pub fn cache_grew(&self) -> Option<Stamp> {
        self.model_cache.moved_at
    }

    /// Since when what moves on the node would have been seen.
    #[must_use]
    pub fn since(&self) -> Option<Stamp> {
        self.since
    }

    fn held(&mut self, amount: f64) {
        let base = *self.base.get_or_insert(amount);
        self.grown = self.grown.max(amount - base);
    }

    /// The most that the node took since the load began; it never goes back.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "an amount of memory: never negative, far below the type's end"
    )]
    pub fn grown(&self) -> Option<Bytes> {
        self.base.map(|_| Bytes(self.grown.max(0.0) as u64))
    }

    /// The signals that are known now: what was read too long ago says nothing. What they do is told of the load that began then, where that is known: the
    /// end of the server before it is no movement of this one.
    #[must_use]
    pub fn seen(&self, now: Stamp, began: Option<Stamp>) -> Vec<Seen> {
        let amounts = [
            (Signal::Memory, &self.memory, cadence::MEMORY_EVERY, MEMORY_STEP),
            (Signal::EngineMemory, &self.engine, cadence::GPUS_EVERY, MEMORY_STEP),
            (Signal::GpuMemory, &self.gpu_memory, cadence::GPUS_EVERY, MEMORY_STEP),
            (Signal::PageCache, &self.cached, cadence::MEMORY_EVERY, MEMORY_STEP),
            (Signal::DiskReads, &self.read, cadence::MEMORY_EVERY, READ_STEP),
            (Signal::ModelCache, &self.model_cache, cadence::DISK_EVERY, CACHE_STEP),
        ];
        let young = self.since.is_none_or(|since| now.since(since) < WINDOW);
        let mut all = Vec::new();
        for (signal, trend, every, step) in amounts {
            if !fresh(trend.points.back().map(|p| p.0), now, every) {
                continue;
            }
            // With one point alone nothing is known of its movement.
            let Some(slope) = trend.slope(now, WINDOW) else {
                continue;
            };
            let text = match signal {
                Signal::DiskReads => self.read_text(now),
                Signal::Memory if self.comes_back(now) => BACK.to_owned(),
                Signal::EngineMemory
                | Signal::Memory
                | Signal::GpuMemory
                | Signal::PageCache
                | Signal::ModelCache
                | Signal::Gpu => trend.text(now, bytes(step), began, young),
            };
            all.push(Seen {
                signal,
                moved_at: trend.moved_at,
                rises: (slope >= bytes(step) && trend.rises(now, bytes(step)))
                    || trend.grows_now(now, bytes(step), began),
                text,
            });
        }
        if fresh(self.gpu_at, now, cadence::AMD_EVERY) {
            all.extend(self.gpu());
        }
        all
    }

    /// Whether the host's memory grows, by what would count as movement, and has not come to what was in use before.
    fn comes_back(&self, now: Stamp) -> bool {
        let trend = &self.memory;
        let last = trend.points.back().map(|p| p.1);
        let below = last.zip(self.most).is_some_and(|(last, most)| last < most);
        let moves = trend.moved_at.is_some_and(|at| now.since(at) <= WINDOW);
        below
            && !moves
            && trend
                .lowest(now)
                .zip(last)
                .is_some_and(|(low, last)| last - low >= bytes(MEMORY_STEP))
    }

    /// What is read now; where that is nothing, what was read in the last minute, for that is what counts as movement.
    fn read_text(&self, now: Stamp) -> String {
        const GB: f64 = 1e9;
        let inside = self.read.points.iter().filter(|p| now.since(p.0) <= WINDOW);
        let first = inside.map(|p| p.1).next();
        let came = self.read.points.back().zip(first).map(|(last, first)| last.1 - first);
        match (self.read_rate(now), came) {
            (Ok(rate), _) if reads(rate) => format!("reads {} from disk", rate.per_second()),
            (Ok(_) | Err(_), Some(came)) if came >= bytes(READ_STEP) => {
                format!("has read {:.1} GB from disk in the last minute", came / GB)
            }
            (Ok(_) | Err(_), _) => "reads next to nothing from disk".to_owned(),
        }
    }

    fn gpu(&self) -> Option<Seen> {
        let busy = self.utilization.points.back().map(|p| p.1);
        let watts = self.power.points.back().map(|p| p.1);
        let text = match (busy, watts) {
            (Some(busy), Some(watts)) => format!("at {busy:.0} %, {watts:.0} W"),
            (Some(busy), None) => format!("at {busy:.0} %"),
            (None, Some(watts)) => format!("at {watts:.0} W"),
            (None, None) => return None,
        };
        Some(Seen {
            signal: Signal::Gpu,
            moved_at: self.worked_at,
            rises: false,
            text,
        })
    }
}

/// Whether a reading is younger than three of its periods, as everywhere.
fn fresh(at: Option<Stamp>, now: Stamp, every: Duration) -> bool {
    at.is_some_and(|at| now.since(at) <= every.saturating_mul(3))
}

/// Whether a rate of reads is one that counts as movement.
#[must_use]
pub fn reads(rate: Bytes) -> bool {
    rate.0 >= READ_STEP.0 / WINDOW.as_secs()
}

#[expect(clippy::cast_precision_loss, reason = "compared with steps of megabytes")]
fn bytes(b: Bytes) -> f64 {
    b.0 as f64
}
