//! The node's side: a container that waits, then prints numbered lines.

use std::process::Command;
use std::time::{Duration, Instant};

/// The container.
pub const NAME: &str = "bringup-bench-logs";

/// Prints lines `from` to `to`, as long as a model server's usual ones.
const PRINT: &str =
    r#"print() { awk -v a="$1" -v b="$2" 'BEGIN { for (n = a; n <= b; n++) printf "%10d %082d\n", n, 0 }'; }"#;

/// How the container prints.
#[derive(Clone, Copy)]
pub enum Flood {
    /// A thousand lines every tenth of a second, for 30 s.
    Steady,
    /// All at once.
    Fast,
}

/// A node of the lab, beside its sshd.
pub struct Node;

impl Node {
    pub fn of_the_lab() -> Self {
        Self
    }

    /// Starts the container, which waits for its word.
    pub fn prepare(&self) {
        self.remove();
        let fast = format!("print 1 {}", super::MANY);
        let steady = "i=0; while [ $i -lt 300 ]; do sleep 0.1 & print $((i * 1000 + 1)) $((i * 1000 + 1000)); wait; i=$((i + 1)); done";
        let wait = "until [ -e /fast ] || [ -e /steady ]; do sleep 0.05; done";
        let body = format!("{PRINT}; {wait}; if [ -e /fast ]; then {fast}; else {steady}; fi; sleep 600");
        let quoted = body.replace('\'', r"'\''");
        self.on(&format!("docker run -d --name {NAME} lab/busybox:1 sh -c '{quoted}'"));
    }

    /// Lets it print.
    pub fn release(&self, flood: Flood) {
        let file = match flood {
            Flood::Steady => "/steady",
            Flood::Fast => "/fast",
        };
        self.on(&format!("docker exec {NAME} touch {file}"));
    }

    /// Waits until Docker has taken the last line.
    pub fn until_printed(&self, lines: u64, patience: Duration) {
        let end = Instant::now() + patience;
        while self
            .on(&format!("docker logs --tail 1 {NAME}"))
            .split_whitespace()
            .next()
            .and_then(|n| n.parse::<u64>().ok())
            != Some(lines)
        {
            assert!(Instant::now() < end, "the container has not printed all");
            std::thread::sleep(Duration::from_millis(200));
        }
    }

    pub fn remove(&self) {
        self.on(&format!("docker rm -f {NAME} >/dev/null 2>&1 || true"));
    }

    fn on(&self, line: &str) -> String {
        let keys = super::console::keys();
        let output = Command::new("ssh")
            .arg("-F")
            .arg(keys.join("ssh_config"))
            .args(["-J", "spark@10.1.230.180", "spark@192.168.200.13", line])
            .output()
            .expect("ssh");
        assert!(
            output.status.success(),
            "{line}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}
