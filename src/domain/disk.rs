//! Disks of a node and the size of its model cache.

use serde::Serialize;

use super::units::Bytes;

/// What `df` and `du` say.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct DiskFacts {
    /// The root's file system and the cache's, where that is another.
    pub disks: Vec<Disk>,
    /// The folder in which the hub keeps models; growth of it is a download.
    pub cache: Option<Cache>,
    /// Why nothing is known of the cache, where that is so.
    pub cache_unknown: Option<String>,
}

/// A file system.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Disk {
    /// Where it is mounted.
    pub mount: String,
    /// Its size.
    pub total: Bytes,
    /// What an ordinary login may still write.
    pub available: Bytes,
}

/// The model cache.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Cache {
    /// The folder.
    pub path: String,
    /// Blocks that its files take.
    pub size: Bytes,
}
