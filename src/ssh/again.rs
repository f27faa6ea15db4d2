//! When a connection that failed is tried again: one rule for hops and nodes.

use std::time::Duration;

use super::dial::jittered;
use crate::domain::link::LinkErrorKind;

/// Pause before the first new try after a loss; doubled up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// Longest pause between two tries.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Pause after a refusal that a person must cure: hosts ban addresses that fail too often.
const REFUSED_PAUSE: Duration = Duration::from_secs(60);

/// The pauses between the tries of one connection.
#[derive(Debug)]
pub struct Pauses {
    next: Duration,
}

impl Default for Pauses {
    fn default() -> Self {
        Self { next: FIRST_PAUSE }
    }
}

impl Pauses {
    /// The pause after a failure of this kind; `None` where no try follows by itself.
    pub fn after(&mut self, kind: LinkErrorKind) -> Option<Duration> {
        match kind {
            LinkErrorKind::Unreachable | LinkErrorKind::ViaDown | LinkErrorKind::Lost => {
                let pause = jittered(self.next);
                self.next = (self.next * 2).min(LONGEST_PAUSE);
                Some(pause)
            }
            LinkErrorKind::HostKeyChanged | LinkErrorKind::Refused | LinkErrorKind::Local => Some(REFUSED_PAUSE),
            // It would ask the same question again.
            LinkErrorKind::HostKeyUnknown => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_mends_itself_is_tried_soon_and_what_a_person_must_mend_once_a_minute() {
        let mut pauses = Pauses::default();
        for most in [1, 2, 4, 8, 16, 30, 30] {
            let pause = pauses.after(LinkErrorKind::Lost).unwrap().as_secs_f64();
            assert!((f64::from(most) / 2.0..=f64::from(most)).contains(&pause), "{pause}");
        }
        for kind in [
            LinkErrorKind::Refused,
            LinkErrorKind::HostKeyChanged,
            LinkErrorKind::Local,
        ] {
            assert_eq!(pauses.after(kind), Some(REFUSED_PAUSE));
        }
        assert_eq!(pauses.after(LinkErrorKind::HostKeyUnknown), None);
    }
}
