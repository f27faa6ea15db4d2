//! A control group that counts the CPU time of all that runs in it, of what has ended too.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where the groups are: version 2, or the accounting of version 1.
const ROOTS: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/cpuacct"];

/// A group, removed at its end.
pub struct Group(PathBuf);

impl Group {
    /// Makes one.
    pub fn make(name: &str) -> Self {
        let one = Path::new(ROOTS[0]).join("cgroup.controllers").exists();
        let root = Path::new(if one { ROOTS[0] } else { ROOTS[1] });
        let word: String = name.chars().filter(char::is_ascii_alphanumeric).take(20).collect();
        let path = root.join(format!("bringup-bench-{}-{word}", std::process::id()));
        fs::create_dir(&path).unwrap_or_else(|e| panic!("no control group at {}: {e}; it wants root", path.display()));
        Self(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// CPU time used so far.
    pub fn cpu(&self) -> Duration {
        if let Ok(text) = fs::read_to_string(self.0.join("cpuacct.usage")) {
            return Duration::from_nanos(text.trim().parse().unwrap());
        }
        let text = fs::read_to_string(self.0.join("cpu.stat")).unwrap();
        let used = text.lines().find_map(|l| l.strip_prefix("usage_usec "));
        Duration::from_micros(used.unwrap().parse().unwrap())
    }

    /// Ends all that runs in it.
    pub fn end(&self) {
        for _ in 0..100 {
            let pids = fs::read_to_string(self.0.join("cgroup.procs")).unwrap_or_default();
            if pids.is_empty() {
                break;
            }
            let _ = std::process::Command::new("kill")
                .args(["-s", "KILL"])
                .args(pids.lines())
                .output();
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.end();
        let _ = fs::remove_dir(&self.0);
    }
}
