//! GPUs of a node, as nvidia-smi or AMD's tools tell.

use serde::Serialize;

use super::units::{Bytes, Celsius, Percent, Watts};

/// All GPUs of a node and what holds them.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct GpuFacts {
    /// One entry a GPU, in the tool's order.
    pub gpus: Vec<Gpu>,
    /// Processes that hold a GPU; empty when none does. One that holds several stands once for each.
    pub processes: Vec<GpuProcess>,
    /// Why there is no reading of the processes, when there is none.
    pub processes_unknown: Option<String>,
    /// Which tool tells.
    pub tool: GpuTool,
}

/// A tool that tells of GPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum GpuTool {
    /// NVIDIA's.
    #[default]
    NvidiaSmi,
    /// AMD's older one.
    RocmSmi,
    /// AMD's.
    AmdSmi,
}

impl GpuFacts {
    /// Sum of what the processes hold. `None` when no list could be read or one of them has no number.
    #[must_use]
    pub fn held(&self) -> Option<Bytes> {
        if self.processes_unknown.is_some() {
            return None;
        }
        self.processes
            .iter()
            .map(|p| p.memory)
            .try_fold(Bytes(0), |sum, m| Some(Bytes(sum.0.saturating_add(m?.0))))
    }

    /// Sum of what the processes of a container hold. `None` when it is not known, or none of them holds a GPU.
    #[must_use]
    pub fn held_in(&self, container: &str) -> Option<Bytes> {
        let mut all = self
            .processes
            .iter()
            .filter(|p| p.container.as_deref() == Some(container));
        let first = all.next()?.memory?;
        all.try_fold(first, |sum, p| Some(Bytes(sum.0.saturating_add(p.memory?.0))))
    }

    /// Whether there are GPUs and all of them use the host's memory.
    #[must_use]
    pub fn all_unified(&self) -> bool {
        !self.gpus.is_empty() && self.gpus.iter().all(|gpu| gpu.unified)
    }

    /// How many GPUs there are, when that is fewer than expected. `None` as well where one is split (MIG): nothing tells what counts as a GPU then.
    #[must_use]
    pub fn fewer_than(&self, expected: u32) -> Option<usize> {
        let whole = self.gpus.iter().all(|gpu| gpu.slices.is_empty());
        let all = self.gpus.len();
        (whole && u32::try_from(all).is_ok_and(|n| n < expected)).then_some(all)
    }

    /// The processes that compute; what only draws a screen is left out.
    pub fn computing(&self) -> impl Iterator<Item = &GpuProcess> {
        self.processes.iter().filter(|p| !p.draws)
    }
}

/// One GPU. Each field is `None` where the tool prints `[N/A]` or another word for unknown.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Gpu {
    /// Index as the tool numbers them.
    pub index: u32,
    /// Product name, such as `NVIDIA GB10`.
    pub name: String,
    /// Share of time in which a kernel ran.
    pub utilization: Option<Percent>,
    /// Memory of its own in use. `None` on unified memory (GB10).
    pub memory_used: Option<Bytes>,
    /// Memory of its own. `None` on unified memory (GB10).
    pub memory_total: Option<Bytes>,
    /// Whether it has no memory of its own and uses the host's: the driver has none to report, or knows the chip for one.
    pub unified: bool,
    /// Power draw.
    pub power: Option<Watts>,
    /// Core temperature.
    pub temperature: Option<Celsius>,
    /// The parts that it is split into, where it is (MIG), such as `3g.71gb`.
    pub slices: Vec<String>,
}

/// A process that holds a GPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GpuProcess {
    /// Process id on the host.
    pub pid: u32,
    /// Program name as nvidia-smi prints it.
    pub name: String,
    /// GPU memory it holds.
    pub memory: Option<Bytes>,
    /// Id of the container it runs in (64 hex digits), when /proc tells.
    pub container: Option<String>,
    /// Whether it only draws: a desktop holds some memory and is in nobody's way.
    pub draws: bool,
}
