//! Lines that fail in so many words.

use super::Seen;
use crate::diagnose::Place;

pub(super) const LINES: &[Seen] = &[(
    Place::WorkerLog,
    "Fatal Python error: Segmentation fault",
    "process-crashed",
    "a process on spark-1 crashed",
)];
