//! Memory of a host, from /proc/meminfo, and what it has read from its disks, which comes from the same look.

use serde::Serialize;

use super::units::{Bytes, Percent};

/// Part of all memory from which an unaccounted amount is told.
const UNACCOUNTED: u64 = 30;

/// What /proc/meminfo says. On unified memory (GB10) this is the GPU's memory too.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
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
    /// What programs and the kernel hold that is no page cache: `AnonPages`, `Shmem`, `SUnreclaim`, `KernelStack` and `PageTables`. A GPU's driver
    /// takes its memory past all of these.
    pub held: Option<Bytes>,
    /// Bytes read from block devices since the boot (`pgpgin` of /proc/vmstat), page cache or not; what comes over a network file system is not in it.
    pub read: Option<Bytes>,
    /// Share of the last ten seconds in which something waited for memory (`some avg10` of /proc/pressure/memory).
    pub pressure: Option<Percent>,
    /// Mean number of processes that ran or waited in the last minute.
    pub load: Option<f32>,
}

impl MemoryFacts {
    /// Total minus available: what will bring the host to its limit.
    #[must_use]
    pub fn used(&self) -> Bytes {
        self.total.minus(self.available)
    }

    /// What is used and that neither a program, nor the kernel, nor a process on the GPU accounts for. On unified memory a large one is memory that the
    /// driver still holds for a process that is gone. Below a thirtieth of all memory it is no news: the kernel keeps reserves.
    #[must_use]
    pub fn unaccounted(&self, on_gpu: Option<Bytes>) -> Option<Bytes> {
        let rest = self.used().minus(self.held?).minus(on_gpu?);
        (rest.0 >= self.total.0 / UNACCOUNTED).then_some(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_nobody_accounts_for_is_told_when_it_is_much() {
        let gib = |n: u64| Bytes(n << 30);
        let memory = MemoryFacts {
            total: gib(120),
            available: gib(60),
            held: Some(gib(5)),
            ..MemoryFacts::default()
        };
        assert_eq!(memory.unaccounted(Some(gib(22))), Some(gib(33)));
        assert_eq!(memory.unaccounted(Some(gib(54))), None, "the kernel's reserves");
        assert_eq!(memory.unaccounted(Some(gib(80))), None, "they need not add up");
        assert_eq!(memory.unaccounted(None), None, "not known is not zero");
        let unknown = MemoryFacts { held: None, ..memory };
        assert_eq!(unknown.unaccounted(Some(gib(0))), None);
    }
}
