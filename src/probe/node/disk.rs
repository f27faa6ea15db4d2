//! `df -Pk` of the root and the model cache, and `du -sk` of the cache.

use crate::domain::disk::{Cache, Disk, DiskFacts};
use crate::domain::event::{Facts, Subject};
use crate::domain::problem::Problem;
use crate::domain::units::Bytes;

use super::super::sections::{Section, Sections};
use super::super::{absent, short};
use super::{Part, known};

/// Reads `@@ disk` and `@@ cache`.
pub fn parse(sections: &Sections) -> Option<Part> {
    let section = sections.get("disk")?;
    let mut disks: Vec<Disk> = Vec::new();
    for disk in section.lines.iter().filter_map(|line| disk(line)) {
        if !disks.contains(&disk) {
            disks.push(disk);
        }
    }
    let (cache, cache_unknown) = match sections.get("cache").map(cache) {
        Some(Ok(cache)) => (Some(cache), None),
        Some(Err(why)) => (None, Some(why)),
        None => (None, Some("not asked".to_owned())),
    };
    if section.code.is_none() || (disks.is_empty() && cache.is_none()) {
        return Some(absent(
            Subject::Disk,
            Problem::warning("df says nothing of the node's disks"),
        ));
    }
    Some(known(Facts::Disk(DiskFacts {
        disks,
        cache,
        cache_unknown,
    })))
}

/// File system, blocks of 1024 bytes, used, available, capacity, mount point; only the first and the last may hold blanks.
fn disk(line: &str) -> Option<Disk> {
    let (head, mount) = line.split_once("% ")?;
    let mut numbers = head.split_whitespace().rev();
    let _capacity = numbers.next()?;
    let available = numbers.next()?.parse().ok()?;
    let _used: u64 = numbers.next()?.parse().ok()?;
    let total = numbers.next()?.parse().ok()?;
    Some(Disk {
        mount: short(mount.trim()),
        total: Bytes::from_kib(total),
        available: Bytes::from_kib(available),
    })
}

fn cache(section: &Section) -> Result<Cache, String> {
    if let Some(path) = section.lines.iter().find_map(|l| l.strip_prefix("none ")) {
        return Err(format!("there is no folder {}", short(path)));
    }
    // What it may not look into it names on a line of its own, and counts the rest.
    let size = section.lines.iter().rev().find_map(|line| {
        let (kib, path) = line.split_once('\t')?;
        Some(Cache {
            path: short(path),
            size: Bytes::from_kib(kib.trim().parse().ok()?),
        })
    });
    match (size, section.code) {
        (Some(cache), Some(_)) => Ok(cache),
        (_, Some(code)) if super::ended(code) => Err("it could not be counted in time".to_owned()),
        (_, Some(code)) => Err(format!("du ended with code {code}")),
        (_, None) => Err("no answer in time".to_owned()),
    }
}
