//! How old a reading is, and what that does to its look.

use std::time::Duration;

use ratatui::style::Style;

use crate::domain::{Reading, Stamp};

use super::look::Look;
use super::widgets::row::Row;
use super::words::seconds;

/// The age of a reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Age {
    /// There is no reading.
    None,
    /// As young as its period lets it be.
    Fresh(Duration),
    /// Older than its period: the age is shown.
    Late(Duration),
    /// Older than three of its periods: it looks stale.
    Stale(Duration),
}

impl Age {
    /// The age of a reading that comes every `period`.
    pub(super) fn of<T>(reading: &Reading<T>, period: Duration, now: Stamp) -> Self {
        match reading.age(now) {
            None => Self::None,
            Some(age) if reading.stale(now, period) => Self::Stale(age),
            // One period passes between two readings, and the answer takes a moment to come.
            Some(age) if age > period.saturating_mul(2) => Self::Late(age),
            Some(age) => Self::Fresh(age),
        }
    }

    /// The same of a reading whose source tells nothing any more: nobody knows whether it is so now, however young it is.
    pub(super) fn while_told(self, tells: bool) -> Self {
        match self {
            Self::Fresh(d) | Self::Late(d) if !tells => Self::Stale(d),
            Self::None | Self::Fresh(_) | Self::Late(_) | Self::Stale(_) => self,
        }
    }

    /// What is added to a duration that grows by itself since it was read; `None` where nobody knows whether it goes on.
    pub(super) fn of_what_goes_on(self) -> Option<Duration> {
        match self {
            Self::Fresh(d) | Self::Late(d) => Some(d),
            Self::None | Self::Stale(_) => None,
        }
    }

    /// The text where every age is shown.
    fn always(self) -> Option<String> {
        match self {
            Self::None => None,
            Self::Fresh(d) | Self::Late(d) | Self::Stale(d) => Some(format!("{} ago", seconds(d))),
        }
    }

    /// The text where only an age worth telling is shown.
    fn worth(self) -> Option<String> {
        match self {
            Self::None | Self::Fresh(_) => None,
            Self::Late(_) | Self::Stale(_) => self.always(),
        }
    }

    /// Adds the age to a title: one that is worth telling stays as long as any other piece.
    pub(super) fn title(self, look: &Look, row: &mut Row<'_>) {
        if let Some(text) = self.always() {
            let rank = if self.worth().is_some() { 1 } else { 4 };
            row.put(rank, text, self.style(look)).right();
        }
    }

    /// The style of the age itself.
    fn style(self, look: &Look) -> Style {
        match self {
            Self::None | Self::Fresh(_) => look.dim(),
            Self::Late(_) => look.warn(),
            Self::Stale(_) => look.stale(),
        }
    }

    /// Adds the age to a row of readings, when it is worth telling.
    pub(super) fn note(self, look: &Look, row: &mut Row<'_>) {
        if let Some(text) = self.worth() {
            row.put(1, text, self.style(look)).right();
        }
    }

    /// The style of a value of this age that would be `fresh` otherwise.
    pub(super) fn tone(self, look: &Look, fresh: Style) -> Style {
        match self {
            Self::None | Self::Fresh(_) | Self::Late(_) => fresh,
            Self::Stale(_) => look.stale(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_told_when_it_is_late_and_marked_when_it_is_stale() {
        let r = Reading::known(1, Stamp(0));
        let period = Duration::from_secs(2);
        let at = |ms| Age::of(&r, period, Stamp(ms));
        assert_eq!(at(4000).worth(), None);
        assert_eq!(at(4000).always().as_deref(), Some("4 s ago"));
        assert_eq!(at(5000), Age::Late(Duration::from_secs(5)));
        assert_eq!(at(6001), Age::Stale(Duration::from_millis(6001)));
        assert_eq!(Age::of(&Reading::<u8>::default(), period, Stamp(9)).always(), None);
    }
}
