//! /proc/meminfo, and of /proc/vmstat what was read from disks.

use crate::domain::event::{Facts, Subject};
use crate::domain::memory::MemoryFacts;
use crate::domain::problem::Problem;
use crate::domain::units::{Bytes, Percent};

use super::super::absent;
use super::super::sections::{Section, Sections};
use super::{Part, known};

/// What programs and the kernel hold that is no page cache.
const HELD: [&str; 5] = ["AnonPages", "Shmem", "SUnreclaim", "KernelStack", "PageTables"];

/// Reads `@@ memory`, `@@ vmstat`, `@@ pressure` and `@@ load`.
pub fn parse(sections: &Sections) -> Option<Part> {
    let section = sections.get("memory")?;
    let read = |name: &str| {
        section.lines.iter().find_map(|line| {
            let (key, rest) = line.split_once(':')?;
            let mut words = rest.split_whitespace();
            let kib: u64 = words.next()?.parse().ok()?;
            (key == name && words.next() == Some("kB")).then(|| Bytes::from_kib(kib))
        })
    };
    let (Some(total), Some(available)) = (read("MemTotal"), read("MemAvailable")) else {
        return Some(absent(
            Subject::Memory,
            Problem::warning("/proc/meminfo has no MemTotal or no MemAvailable"),
        ));
    };
    Some(known(Facts::Memory(MemoryFacts {
        total,
        available,
        free: read("MemFree"),
        cached: read("Cached"),
        swap_used: read("SwapTotal")
            .zip(read("SwapFree"))
            .map(|(total, free)| total.minus(free)),
        held: HELD
            .iter()
            .map(|name| read(name))
            .try_fold(Bytes(0), |sum, part| Some(Bytes(sum.0.saturating_add(part?.0)))),
        read: sections.get("vmstat").and_then(read_from_disks),
        pressure: sections.get("pressure").and_then(pressure),
        load: sections.get("load").and_then(load),
    })))
}

/// `pgpgin N`: what was asked of block devices since the boot. The kernel counts sectors as it hands requests on (`submit_bio`) and prints them in KiB. So
/// reads past the page cache count too, those over NFS do not, and those through a loop device count twice.
fn read_from_disks(section: &Section) -> Option<Bytes> {
    let count = section.lines.iter().find_map(|l| l.strip_prefix("pgpgin "))?;
    count.trim().parse().ok().map(Bytes::from_kib)
}

/// `some avg10=0.00 avg60=… avg300=… total=…` of /proc/pressure/memory, which a kernel without PSI lacks.
fn pressure(section: &Section) -> Option<Percent> {
    let some = section.lines.iter().find_map(|l| l.strip_prefix("some "))?;
    let ten = some.split_whitespace().find_map(|w| w.strip_prefix("avg10="))?;
    finite(ten).map(Percent)
}

/// The first number of /proc/loadavg.
fn load(section: &Section) -> Option<f32> {
    section.lines.first()?.split_whitespace().next().and_then(finite)
}

fn finite(word: &str) -> Option<f32> {
    word.parse().ok().filter(|n: &f32| n.is_finite())
}
