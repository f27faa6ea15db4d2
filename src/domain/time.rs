//! Time as a value: pure rooms get it as an argument and never read a clock.

use std::cmp::Ordering;
use std::time::Duration;

use serde::Serialize;

/// Milliseconds of the console's monotonic clock. What was before the console started has a stamp too: its clock begins at [`Stamp::START`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize)]
pub struct Stamp(pub u64);

impl Stamp {
    /// What a console's clock shows when it starts: ten years. What was longer before that is told as ten years before.
    pub const START: Self = Self(10 * 365 * 86_400_000);

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

    /// The stamp `by` before this one; the clock's own beginning where that would be earlier.
    #[must_use]
    pub fn minus(self, by: Duration) -> Self {
        Self(self.0.saturating_sub(millis(by)))
    }
}

/// When something was, as far as it is known. Of two that name the same moment the one that is sure is the later one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub struct When {
    /// The moment.
    pub stamp: Stamp,
    /// Whether it was only found so then: it was then or at any time before.
    pub found: bool,
}

impl When {
    /// It was then.
    #[must_use]
    pub const fn at(stamp: Stamp) -> Self {
        Self { stamp, found: false }
    }

    /// It was then or before.
    #[must_use]
    pub const fn found(stamp: Stamp) -> Self {
        Self { stamp, found: true }
    }

    /// The moment where it is sure.
    #[must_use]
    pub fn sure(self) -> Option<Stamp> {
        (!self.found).then_some(self.stamp)
    }

    /// How long ago it was; at least, where it was found so.
    #[must_use]
    pub fn age(self, now: Stamp) -> Duration {
        now.since(self.stamp)
    }

    /// How long it has been so, for a person: `for 12 s`, and `known for 12 s` where it was only found so then.
    #[must_use]
    pub fn lasts(self, now: Stamp) -> String {
        let known = if self.found { "known for" } else { "for" };
        format!("{known} {}", seconds(self.age(now)))
    }

    /// The same for a person: `4m10s`, `at least 12 s`.
    #[must_use]
    pub fn ago(self, now: Stamp) -> String {
        let age = human(self.age(now));
        if self.found { format!("at least {age}") } else { age }
    }
}

impl Ord for When {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.stamp, !self.found).cmp(&(other.stamp, !other.found))
    }
}

impl PartialOrd for When {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Milliseconds since 1970-01-01 UTC: on the operator's machine for files, file names and the clock on the screen, never for arithmetic
/// between two events; or by a node's own clock, see [`super::clock`].
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

/// An age or a time left, in whole seconds: `0 s`, `12 s`, `3m04s`.
#[must_use]
pub fn seconds(d: Duration) -> String {
    if d < Duration::from_secs(1) {
        "0 s".to_owned()
    } else {
        human(d)
    }
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
    fn what_was_found_is_as_old_as_that_at_least() {
        let (sure, found) = (When::at(Stamp(5000)), When::found(Stamp(5000)));
        assert_eq!(sure.ago(Stamp(17_000)), "12 s");
        assert_eq!(found.ago(Stamp(17_000)), "at least 12 s");
        assert!(sure > found && found > When::at(Stamp(4999)));
    }

    #[test]
    fn time_never_runs_backwards() {
        assert_eq!(Stamp(5).since(Stamp(9)), Duration::ZERO);
        assert_eq!(Stamp(5).plus(Duration::MAX), Stamp(u64::MAX));
    }
}
