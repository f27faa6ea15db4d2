//! /proc/meminfo.

use crate::domain::event::{Facts, Subject};
use crate::domain::memory::MemoryFacts;
use crate::domain::problem::Problem;
use crate::domain::units::Bytes;

use super::super::absent;
use super::super::sections::Sections;
use super::{Part, known};

/// Reads `@@ memory`.
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
    })))
}
