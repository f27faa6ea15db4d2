//! A value that may be unknown, and always has an age.

use std::borrow::Cow;
use std::time::Duration;

use serde::Serialize;

use super::time::Stamp;

/// What is known of one thing. An unknown value is never zero.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum Reading<T> {
    /// Nothing is known, and why.
    Absent(Reason),
    /// Last seen value and when it was seen.
    Known {
        /// The value.
        value: T,
        /// When it was read.
        at: Stamp,
    },
}

/// Why nothing is known; a lower-case fragment, such as `not asked yet`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reason(pub Cow<'static, str>);

impl Reason {
    /// A reason known when the program was written.
    #[must_use]
    pub const fn fixed(text: &'static str) -> Self {
        Self(Cow::Borrowed(text))
    }
}

impl From<String> for Reason {
    fn from(text: String) -> Self {
        Self(Cow::Owned(text))
    }
}

/// Why nothing is known before the first question was answered.
pub const NOT_ASKED: &str = "not asked yet";

/// Why nothing is known while the first question is under way.
pub const NO_ANSWER: &str = "asked, no answer yet";

impl<T> Default for Reading<T> {
    fn default() -> Self {
        Self::Absent(Reason::fixed(NOT_ASKED))
    }
}

impl<T> Reading<T> {
    /// A value seen now.
    pub fn known(value: T, at: Stamp) -> Self {
        Self::Known { value, at }
    }

    /// Unknown, with the reason.
    pub fn absent(why: impl Into<Reason>) -> Self {
        Self::Absent(why.into())
    }

    /// The value, however old.
    pub fn value(&self) -> Option<&T> {
        match self {
            Self::Absent(_) => None,
            Self::Known { value, .. } => Some(value),
        }
    }

    /// When the value was seen.
    pub fn at(&self) -> Option<Stamp> {
        match self {
            Self::Absent(_) => None,
            Self::Known { at, .. } => Some(*at),
        }
    }

    /// The value if it was read at `after` or later.
    pub fn fresh(&self, after: Stamp) -> Option<&T> {
        match self {
            Self::Known { value, at } if *at >= after => Some(value),
            Self::Known { .. } | Self::Absent(_) => None,
        }
    }

    /// Age at `now`.
    pub fn age(&self, now: Stamp) -> Option<Duration> {
        self.at().map(|at| now.since(at))
    }

    /// Whether there is an answer, be it that nothing can be known.
    #[must_use]
    pub fn asked(&self) -> bool {
        !matches!(self.reason(), Some(NOT_ASKED | NO_ANSWER))
    }

    /// The question is under way now, or not any more. What has been answered stays.
    pub fn asking(&mut self, now: bool) {
        if !self.asked() {
            *self = Self::Absent(Reason::fixed(if now { NO_ANSWER } else { NOT_ASKED }));
        }
    }

    /// Whether the value is older than three of its periods (and so must look stale). An absent reading is not stale.
    pub fn stale(&self, now: Stamp, period: Duration) -> bool {
        self.age(now).is_some_and(|age| age > period.saturating_mul(3))
    }

    /// Why nothing is known.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Absent(why) => Some(&why.0),
            Self::Known { .. } => None,
        }
    }
}

impl From<&'static str> for Reason {
    fn from(text: &'static str) -> Self {
        Self::fixed(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reading_is_stale_after_three_periods_and_not_before() {
        let r = Reading::known(7, Stamp(1000));
        let period = Duration::from_secs(2);
        assert!(!r.stale(Stamp(7000), period));
        assert!(r.stale(Stamp(7001), period));
        assert!(!Reading::<u8>::default().stale(Stamp(99_999), period));
    }

    #[test]
    fn a_question_that_is_under_way_is_no_answer() {
        let mut reading = Reading::<u8>::default();
        reading.asking(true);
        assert_eq!((reading.reason(), reading.asked()), (Some(NO_ANSWER), false));
        reading.asking(false);
        assert_eq!(reading.reason(), Some(NOT_ASKED));
        let mut refused = Reading::<u8>::absent("no docker");
        refused.asking(true);
        assert_eq!((refused.reason(), refused.asked()), (Some("no docker"), true));
    }

    #[test]
    fn fresh_means_read_at_or_after() {
        let r = Reading::known(7, Stamp(1000));
        assert_eq!(r.fresh(Stamp(1000)), Some(&7));
        assert_eq!(r.fresh(Stamp(1001)), None);
    }
}
