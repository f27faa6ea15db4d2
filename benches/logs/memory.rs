//! What `/proc` says of this process.

/// Starts the count of the most memory anew (proc(5), `clear_refs`).
pub fn forget_peak() {
    std::fs::write("/proc/self/clear_refs", "5").expect("Linux, and root");
}

/// Resident memory now, in KiB.
pub fn now() -> u64 {
    field("VmRSS:")
}

/// Most resident memory since [`forget_peak`], in KiB.
pub fn peak() -> u64 {
    field("VmHWM:")
}

fn field(name: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = text.lines().find(|l| l.starts_with(name)).expect("a field");
    let words = line.split_whitespace().nth(1);
    words.and_then(|n| n.parse().ok()).expect("a number")
}
