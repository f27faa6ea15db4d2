//! Finding what a test has started, by a mark in the environment.

use std::path::Path;
use std::time::Duration;

/// Name of the variable that carries the mark.
pub const MARK: &str = "BRINGUP_TEST_MARK";

/// Longest wait for anything in these tests; a bound, not a measure.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Processes that carry the mark, with their command lines. Where there is no /proc there is nothing to see.
pub fn left(mark: &str) -> Vec<String> {
    let wanted = format!("{MARK}={mark}");
    let mut found = Vec::new();
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return found;
    };
    for entry in entries.flatten() {
        let environ = std::fs::read(entry.path().join("environ")).unwrap_or_default();
        if environ.split(|b| *b == 0).any(|word| word == wanted.as_bytes()) {
            let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            found.push(String::from_utf8_lossy(&line).replace('\0', " "));
        }
    }
    found
}

/// Whether a process with the mark and this in its command line is stopped (proc(5), the state in `stat`).
pub fn stopped(mark: &str, line: &str) -> bool {
    let wanted = format!("{MARK}={mark}");
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return false;
    };
    let read = |path: &Path, file: &str| {
        let bytes = std::fs::read(path.join(file)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).replace('\0', " ")
    };
    entries.flatten().map(|e| e.path()).any(|path| {
        read(&path, "environ").contains(&wanted)
            && read(&path, "cmdline").contains(line)
            && read(&path, "stat")
                .rsplit_once(") ")
                .is_some_and(|(_, rest)| rest.starts_with('T'))
    })
}

/// Kills every process that carries the mark and has this in its command line; tells how many.
pub fn end_all(mark: &str, line: &str) -> usize {
    let wanted = format!("{MARK}={mark}");
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return 0;
    };
    let has = |path: &Path, file: &str, text: &str| {
        let bytes = std::fs::read(path.join(file)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).replace('\0', " ").contains(text)
    };
    let ids = entries
        .flatten()
        .filter(|e| has(&e.path(), "environ", &wanted) && has(&e.path(), "cmdline", line))
        .filter_map(|e| e.file_name().into_string().ok());
    ids.filter(|id| {
        let kill = std::process::Command::new("kill").args(["-KILL", id]).status();
        kill.is_ok_and(|status| status.success())
    })
    .count()
}

/// Waits until no process carries the mark.
pub async fn gone(mark: &str) {
    until(&format!("nothing left of {mark}"), || left(mark).is_empty()).await;
}

/// Waits until a process with the mark has this in its command line.
pub async fn running(mark: &str, line: &str) {
    if Path::new("/proc/self/environ").exists() {
        until(&format!("{line} runs"), || left(mark).iter().any(|l| l.contains(line))).await;
    }
}

/// Waits until something is true.
pub async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let wait = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    assert!(tokio::time::timeout(PATIENCE, wait).await.is_ok(), "never: {what}");
}
