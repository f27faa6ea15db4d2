//! Memory of a host, from /proc/meminfo.

use serde::Serialize;

use super::units::Bytes;

/// What /proc/meminfo says. On unified memory (GB10) this is the GPU's memory too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct MemoryFacts {
    /// `MemTotal`.
    pub total: Bytes,
    /// `MemAvailable`: what can be had without swapping; page cache counts as available.
    pub available: Bytes,
    /// `MemFree`.
    pub free: Option<Bytes>,
    /// `Cached`: the page cache.
    pub cached: Option<Bytes>,
    /// `SwapTotal` minus `SwapFree`.
    pub swap_used: Option<Bytes>,
}

impl MemoryFacts {
    /// Total minus available: what will bring the host to its limit.
    #[must_use]
    pub fn used(&self) -> Bytes {
        self.total.minus(self.available)
    }
}
