//! Time as a value: pure rooms get it as an argument and never read a clock.

use std::time::Duration;

use serde::Serialize;

/// Milliseconds since this console started, from a monotonic clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize)]
pub struct Stamp(pub u64);

impl Stamp {
    /// Time from `earlier` to `self`; zero when `earlier` is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }

    /// The stamp `by` after this one.
    #[must_use]
    pub fn plus(self, by: Duration) -> Self {
        Self(self.0.saturating_add(millis(by)))
    }
}

/// Milliseconds since 1970-01-01 UTC on the operator's machine: for files, file names and the clock on the screen, never for arithmetic
/// between two events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize)]
pub struct Wall(pub u64);

/// A moment in both clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Now {
    /// Monotonic.
    pub stamp: Stamp,
    /// Wall clock.
    pub wall: Wall,
}

/// Whole milliseconds of a duration, saturating.
#[must_use]
pub fn millis(d: Duration) -> u64 {
    u64::try_from(d.as_millis()).unwrap_or(u64::MAX)
}

/// A duration for a person: `850 ms`, `12 s`, `3m04s`, `2h05m`, `3d04h`.
#[must_use]
pub fn human(d: Duration) -> String {
    let s = d.as_secs();
    if s == 0 {
        return format!("{} ms", d.as_millis());
    }
    match s {
        0..60 => format!("{s} s"),
        60..3600 => format!("{}m{:02}s", s / 60, s % 60),
        3600..86_400 => format!("{}h{:02}m", s / 3600, s / 60 % 60),
        _ => format!("{}d{:02}h", s / 86_400, s / 3600 % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_as_a_person_says_them() {
        let cases = [
            (850, "850 ms"),
            (12_000, "12 s"),
            (184_000, "3m04s"),
            (7_500_000, "2h05m"),
            (273_600_000, "3d04h"),
        ];
        for (ms, text) in cases {
            assert_eq!(human(Duration::from_millis(ms)), text);
        }
    }

    #[test]
    fn time_never_runs_backwards() {
        assert_eq!(Stamp(5).since(Stamp(9)), Duration::ZERO);
        assert_eq!(Stamp(5).plus(Duration::MAX), Stamp(u64::MAX));
    }
}
