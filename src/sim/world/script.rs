//! The output of a start, written ahead: prefixes of its processes, dates, progress bars.

use crate::sim::clock::{Calendar, Moment, Pace};

/// Shards of its checkpoint.
pub(super) const SHARDS: u32 = 41;

/// Process ids as the log shows them: those inside the containers.
pub mod pid {
    /// `vllm serve`.
    pub const API: u32 = 415;
    /// The engine's core.
    pub const CORE: u32 = 459;
    /// Rank 0.
    pub const RANK0: u32 = 490;
    /// Other ranks.
    pub const RANK: u32 = 117;
}

/// A line of the server's output.
pub type Line = (Moment, String);

/// Writes lines with the prefixes of the processes.
pub(super) struct Script {
    pub(super) start: Moment,
    pub(super) pace: Pace,
    pub(super) calendar: Calendar,
    pub(super) lines: Vec<Line>,
}

impl Script {
    pub(super) fn at(&self, second: f64) -> Moment {
        self.start.saturating_add(self.pace.secs(second))
    }

    pub(super) fn raw(&mut self, second: f64, text: impl Into<String>) {
        self.lines.push((self.at(second), text.into()));
    }

    pub(super) fn vllm(&mut self, second: f64, prefix: &str, level: &str, place: &str, text: &str) {
        let date = self.calendar.vllm(self.at(second));
        self.raw(second, format!("{prefix} {level} {date} [{place}] {text}"));
    }

    pub(super) fn api(&mut self, second: f64, place: &str, text: &str) {
        self.vllm(second, &format!("(APIServer pid={})", pid::API), "INFO", place, text);
    }

    pub(super) fn core(&mut self, second: f64, place: &str, text: &str) {
        self.vllm(second, &core_prefix(), "INFO", place, text);
    }

    pub(super) fn rank(&mut self, second: f64, rank: &str, place: &str, text: &str) {
        self.vllm(second, &format!("{} {rank}", core_prefix()), "INFO", place, text);
    }
}

pub(super) fn core_prefix() -> String {
    format!("(EngineCore_DP0 pid={})", pid::CORE)
}

/// Ray's coloured prefix of a rank.
pub(super) fn rank_prefix(rank: usize, address: &str) -> String {
    if rank == 0 {
        format!("\u{1b}[36m(RayWorkerWrapper pid={})\u{1b}[0m", pid::RANK0)
    } else {
        format!("\u{1b}[36m(RayWorkerWrapper pid={}, ip={address})\u{1b}[0m", pid::RANK)
    }
}

/// The bar of the weights, each step on a line of its own, as vLLM prints it.
pub(super) fn shard_bar(done: u32, seconds: f64) -> String {
    let percent = done * 100 / SHARDS;
    if done == 0 {
        return format!("Loading safetensors checkpoint shards:   0% Completed | 0/{SHARDS} [00:00<?, ?it/s]");
    }
    let each = (seconds / f64::from(done)).max(1e-4);
    let left = each * f64::from(SHARDS - done);
    let rate = if each > 1.0 {
        format!("{each:5.2}s/it")
    } else {
        format!("{:5.2}it/s", 1.0 / each)
    };
    format!(
        "Loading safetensors checkpoint shards: {percent:>3}% Completed | {done}/{SHARDS} [{}<{}, {rate}]",
        minutes(seconds),
        minutes(left)
    )
}

/// Seconds as a progress bar shows them.
fn minutes(seconds: f64) -> String {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a load takes at most hours"
    )]
    let whole = seconds.max(0.0) as u64;
    format!("{:02}:{:02}", whole / 60, whole % 60)
}

/// The bar of the graphs, rewritten in place. As in a real log the owner's prefix stands before the first carriage return, and once.
pub(super) fn graph_bar(what: &str, total: u32, seconds: f64) -> String {
    let steps: Vec<String> = [0, total / 3, 2 * total / 3, total]
        .into_iter()
        .map(|done| {
            let percent = done * 100 / total;
            let cells = usize::try_from(done * 10 / total).unwrap_or(0);
            let bar = "█".repeat(cells) + &" ".repeat(10 - cells.min(10));
            let spent = seconds * f64::from(done) / f64::from(total);
            let rate = f64::from(total) / seconds.max(1e-4);
            format!(
                "\rCapturing CUDA graphs ({what}): {percent:>3}%|{bar}| {done}/{total} [{}<{}, {rate:.2}it/s]",
                minutes(spent),
                minutes(seconds - spent)
            )
        })
        .collect();
    steps.concat()
}

/// A number with commas.
pub(super) fn thousands(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::new();
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_counts_up_to_all_shards() {
        assert_eq!(
            shard_bar(25, 16.0),
            "Loading safetensors checkpoint shards:  60% Completed | 25/41 [00:16<00:10,  1.56it/s]"
        );
        assert!(shard_bar(41, 26.0).contains("100% Completed | 41/41 [00:26<00:00"));
    }
}
