//! The clock of a node, held against the console's, and when a line of a log was written by it.

use std::time::Duration;

use serde::Serialize;

use super::time::{Stamp, Wall, millis};

/// What a clock may have gained since it was looked at, on top of the error of the look. A clock that is set by the network moves by less.
const SLACK: Duration = Duration::from_secs(2);

/// What a node's own clock showed at a moment of the console's, which stands beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct NodeClock {
    /// What it showed.
    pub shows: Wall,
    /// How far that may be off: the way of the question and the answer, and the fineness of the clock.
    pub within: Duration,
}

impl NodeClock {
    /// The console's stamp of a moment by this clock, which showed what it did at `at`.
    #[must_use]
    pub fn stamp(&self, at: Stamp, moment: Wall) -> Stamp {
        let stamp = i128::from(at.0) + i128::from(moment.0) - i128::from(self.shows.0);
        Stamp(u64::try_from(stamp.max(0)).unwrap_or(u64::MAX))
    }

    /// How far it is ahead of the console's wall clock, in milliseconds; `by_console` is what that showed at the same moment.
    #[must_use]
    pub fn ahead_ms(&self, by_console: Wall) -> i64 {
        let ahead = i128::from(self.shows.0) - i128::from(by_console.0);
        i64::try_from(ahead).unwrap_or(if ahead < 0 { i64::MIN } else { i64::MAX })
    }

    /// The latest moment by the console's clock that this one may call now: what lies after it can't be true.
    #[must_use]
    pub fn latest(&self, now: Stamp) -> Stamp {
        now.plus(self.within.saturating_add(SLACK))
    }
}

/// What tells when a line of a log was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Written {
    /// By the node's own clock; `None` where the log carries no times that can be read.
    pub by_node: Option<Wall>,
    /// Whether the line was there before it could be followed: that it was read now says nothing of when it was written.
    pub backlog: bool,
}

impl Written {
    /// A line without a time that was read as it was written.
    pub const LIVE: Self = Self {
        by_node: None,
        backlog: false,
    };
}

/// The last second of the year 9999: what a clock shows beyond it is no time.
const LATEST: u64 = 253_402_300_799;

/// A time as `date +%s.%N` prints it, or without the fraction where the tool knows none, and how far it may be off for its fineness.
#[must_use]
pub fn read(text: &str) -> Option<(Wall, Duration)> {
    let (seconds, fraction) = text.trim().split_once('.').unwrap_or((text.trim(), ""));
    let ms = seconds.parse().ok().filter(|s: &u64| *s <= LATEST)?.checked_mul(1000)?;
    let digits: String = fraction.chars().take(3).collect();
    if digits.len() == 3
        && let Ok(fraction) = digits.parse::<u64>()
    {
        return Some((Wall(ms.checked_add(fraction)?), Duration::from_millis(1)));
    }
    // A whole second: it is the middle of it, half a second off at most.
    let half = Duration::from_millis(500);
    Some((Wall(ms.checked_add(millis(half))?), half))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_of_a_clock_that_is_wrong_is_put_where_it_was() {
        // An hour ahead.
        let clock = NodeClock {
            shows: Wall(1_000_000_000 + 3_600_000),
            within: Duration::from_millis(40),
        };
        let at = Stamp::START.plus(Duration::from_secs(5));
        let ten_minutes_before = Wall(clock.shows.0 - 600_000);
        assert_eq!(clock.stamp(at, clock.shows), at);
        assert_eq!(at.since(clock.stamp(at, ten_minutes_before)), Duration::from_secs(600));
        assert_eq!(clock.ahead_ms(Wall(1_000_000_000)), 3_600_000);
        assert_eq!(clock.stamp(Stamp(5), Wall(0)), Stamp(0));
        assert_eq!(clock.stamp(at, Wall(u64::MAX)), Stamp(u64::MAX));
    }

    #[test]
    fn a_clock_is_as_fine_as_the_tool_prints_it() {
        let ms = Duration::from_millis;
        for (text, read_as) in [
            ("1700000000.123456789", Some((1_700_000_000_123, ms(1)))),
            ("1700000000", Some((1_700_000_000_500, ms(500)))),
            ("1700000000.%N", Some((1_700_000_000_500, ms(500)))),
            ("1700000000.", Some((1_700_000_000_500, ms(500)))),
            ("", None),
            ("-5", None),
            ("253402300799.0", Some((253_402_300_799_500, ms(500)))),
            ("253402300800", None),
            ("99999999999999999999", None),
        ] {
            assert_eq!(read(text), read_as.map(|(wall, off)| (Wall(wall), off)), "{text}");
        }
    }
}
