//! A short history of one number.

use std::collections::VecDeque;

use serde::Serialize;

use crate::domain::Stamp;

/// Points kept of one series: five minutes at one a second.
pub const POINTS: usize = 300;

/// A bounded history; the oldest point goes first.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Series {
    points: VecDeque<(Stamp, f64)>,
}

impl Series {
    /// Adds a point.
    pub fn push(&mut self, at: Stamp, value: f64) {
        if self.points.len() == POINTS {
            self.points.pop_front();
        }
        self.points.push_back((at, value));
    }

    /// Points, oldest first.
    pub fn points(&self) -> impl DoubleEndedIterator<Item = (Stamp, f64)> + ExactSizeIterator + '_ {
        self.points.iter().copied()
    }

    /// Largest value.
    #[must_use]
    pub fn max(&self) -> Option<f64> {
        self.points.iter().map(|p| p.1).reduce(f64::max)
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.points.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_point_goes_first() {
        let mut s = Series::default();
        for i in 0..=POINTS as u64 {
            s.push(Stamp(i), 1.0);
        }
        assert_eq!(s.points().len(), POINTS);
        assert_eq!(s.points().next(), Some((Stamp(1), 1.0)));
    }
}
