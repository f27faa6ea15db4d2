//! Medians, what `/proc` says of processes, and the table.

use std::fmt::Write;
use std::path::Path;
use std::time::Duration;

/// What a row is held against.
pub enum Bound {
    /// Ours over theirs is at most this.
    Ratio(f64),
    /// Ours is at most this, in the row's unit.
    Most(f64),
}

/// A line of the table.
pub struct Row {
    name: String,
    unit: &'static str,
    ours: f64,
    theirs: Option<f64>,
    bound: Bound,
    well: bool,
}

impl Row {
    pub fn ratio(name: &str, unit: &'static str, ours: f64, theirs: f64, bound: Bound) -> Self {
        Self {
            name: name.to_owned(),
            unit,
            ours,
            theirs: Some(theirs),
            bound,
            well: true,
        }
    }

    /// A row without another side; `well`: whether nothing failed.
    pub fn alone(name: &str, unit: &'static str, ours: f64, bound: Bound, well: bool) -> Self {
        Self {
            name: name.to_owned(),
            unit,
            ours,
            theirs: None,
            bound,
            well,
        }
    }

    fn holds(&self) -> bool {
        self.well
            && match self.bound {
                Bound::Ratio(most) => self.theirs.is_some_and(|theirs| self.ours <= theirs * most),
                Bound::Most(most) => self.ours <= most,
            }
    }
}

/// The rows in Markdown.
pub fn table(rows: &[Row]) -> String {
    let mut text = "| what | bringup | OpenSSH | ratio | at most | holds |\n|---|---|---|---|---|---|\n".to_owned();
    for row in rows {
        let unit = row.unit;
        let value = |v: f64| {
            if v < 10.0 {
                format!("{v:.4} {unit}")
            } else {
                format!("{v:.0} {unit}")
            }
        };
        let theirs = row.theirs.map_or_else(|| "-".to_owned(), value);
        let ratio = row
            .theirs
            .map_or_else(|| "-".to_owned(), |t| format!("{:.2}", row.ours / t));
        let bound = match row.bound {
            Bound::Ratio(most) => format!("{most} x"),
            Bound::Most(most) => format!("{most} {unit}"),
        };
        let holds = if row.holds() { "yes" } else { "no" };
        writeln!(
            text,
            "| {} | {} | {theirs} | {ratio} | {bound} | {holds} |",
            row.name,
            value(row.ours)
        )
        .expect("a string takes all");
    }
    text
}

pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 {
        values[middle]
    } else {
        f64::midpoint(values[middle - 1], values[middle])
    }
}

/// CPU time of this process (`own`) or of its children that have ended (proc(5), `stat`: fields 14 to 17, in ticks of 10 ms).
pub fn cpu(own: bool) -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("Linux");
    // The name in parentheses may hold spaces.
    let (_, rest) = stat.rsplit_once(')').expect("a name");
    let ticks = |field: usize| -> u64 {
        let word = rest.split_whitespace().nth(field - 3).expect("a field");
        word.parse().expect("ticks")
    };
    let (user, system) = if own { (14, 15) } else { (16, 17) };
    Duration::from_millis((ticks(user) + ticks(system)) * 10)
}

/// Proportional set size of a process in KiB (proc(5), `smaps_rollup`).
pub fn pss(pid: u32) -> Option<f64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    let line = text.lines().find(|l| l.starts_with("Pss:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// Processes of a program whose command line names a file.
pub fn processes_with(program: &str, file: &Path) -> Vec<u32> {
    let file = file.to_string_lossy();
    let entries = std::fs::read_dir("/proc").expect("Linux").flatten();
    let pids = entries.filter_map(|e| e.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let mut words = line.split(|b| *b == 0);
        let first = words.next().unwrap_or_default();
        let name = String::from_utf8_lossy(first);
        name.rsplit('/').next() == Some(program) && words.any(|w| String::from_utf8_lossy(w) == file)
    })
    .collect()
}
