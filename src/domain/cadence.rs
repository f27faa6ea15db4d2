//! How often a node's stream looks at what: the paces that a node's script is given, and from which a reading's age is judged.

use std::time::Duration;

use super::event::Subject;

/// Memory, its pressure and the load: read by the shell alone, which costs a node next to nothing.
pub const MEMORY_EVERY: Duration = Duration::from_secs(2);
/// GPUs and the processes that hold them, from an nvidia-smi that goes on.
pub const GPUS_EVERY: Duration = Duration::from_secs(2);
/// AMD's tools, where nvidia-smi is not there: each look is a start of Python.
pub const AMD_EVERY: Duration = Duration::from_secs(20);
/// Docker itself. Its client is the dearest program of all, so it is asked when the kernel has something new, and this often in any case.
pub const DOCKER_EVERY: Duration = Duration::from_secs(20);
/// What the kernel knows of containers: control groups and first processes. Where it can't tell, Docker is asked at this pace; and at this pace what Docker
/// said grows old where a node does not tell that nothing has changed.
pub const CONTAINERS_EVERY: Duration = Duration::from_secs(5);
/// Listening sockets.
pub const SOCKETS_EVERY: Duration = Duration::from_secs(5);
/// Interfaces and RDMA devices.
pub const FABRIC_EVERY: Duration = Duration::from_secs(10);
/// Disks and the size of the model cache.
pub const DISK_EVERY: Duration = Duration::from_secs(60);
/// A tool that failed or is not there is tried again.
pub const AGAIN_EVERY: Duration = Duration::from_secs(15);

/// How often a subject of the stream is read, unless the node says otherwise; `None` for what the stream does not read.
#[must_use]
pub fn every(subject: Subject) -> Option<Duration> {
    match subject {
        Subject::Memory => Some(MEMORY_EVERY),
        Subject::Gpus => Some(GPUS_EVERY),
        Subject::Containers => Some(CONTAINERS_EVERY),
        Subject::Sockets => Some(SOCKETS_EVERY),
        Subject::Fabric => Some(FABRIC_EVERY),
        Subject::Disk => Some(DISK_EVERY),
        Subject::Image
        | Subject::Versions
        | Subject::Inside
        | Subject::Ray
        | Subject::RayStatus
        | Subject::Serve
        | Subject::Verb => None,
    }
}
