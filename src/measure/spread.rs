//! Many durations summed up as mean, median and percentiles.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;

/// Significant decimal digits that the histogram keeps: a percentile is right within a thousandth of its value.
const DIGITS: u8 = 3;

/// Longest duration that is told from longer ones, in microseconds (a day). It bounds the histogram's memory.
const LONGEST_US: u64 = 24 * 3600 * 1_000_000;

/// Mean, median and percentiles of a set of durations. Percentiles are by nearest rank (a value that was seen, within a thousandth); vLLM's client
/// interpolates between ranks, so the two can differ where few values were seen.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spread {
    /// How many.
    pub count: u64,
    /// Arithmetic mean, exact.
    pub mean: Duration,
    /// 50th percentile.
    pub median: Duration,
    /// 90th percentile.
    pub p90: Duration,
    /// 99th percentile.
    pub p99: Duration,
    /// The longest, exact.
    pub max: Duration,
}

/// Collects durations for a [`Spread`]. Memory does not grow with their number.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Timings {
    histogram: Option<Histogram<u64>>,
    count: u64,
    sum: Duration,
    max: Duration,
}

impl Timings {
    /// Adds a duration.
    pub fn add(&mut self, value: Duration) {
        if self.histogram.is_none() {
            self.histogram = Histogram::new_with_max(LONGEST_US, DIGITS).ok();
        }
        if let Some(histogram) = &mut self.histogram {
            histogram.saturating_record(micros(value));
            self.count += 1;
            self.sum = self.sum.saturating_add(value);
            self.max = self.max.max(value);
        }
    }

    /// The summary; `None` when nothing was added.
    #[must_use]
    pub fn spread(&self) -> Option<Spread> {
        let histogram = self.histogram.as_ref()?;
        // A bucket's upper end can lie above every value in it.
        let at = |quantile| Duration::from_micros(histogram.value_at_quantile(quantile)).min(self.max);
        Some(Spread {
            count: self.count,
            mean: mean(self.sum, self.count)?,
            median: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            max: self.max,
        })
    }
}

impl Extend<Duration> for Timings {
    fn extend<T: IntoIterator<Item = Duration>>(&mut self, values: T) {
        for value in values {
            self.add(value);
        }
    }
}

fn micros(value: Duration) -> u64 {
    u64::try_from(value.as_micros()).unwrap_or(u64::MAX)
}

fn mean(sum: Duration, count: u64) -> Option<Duration> {
    let nanos = sum.as_nanos().checked_div(u128::from(count))?;
    Some(Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn spread_of(ms: &[u64]) -> Option<Spread> {
        let mut timings = Timings::default();
        timings.extend(ms.iter().map(|v| Duration::from_millis(*v)));
        timings.spread()
    }

    #[test]
    fn of_nothing_there_is_no_spread() {
        assert_eq!(spread_of(&[]), None);
    }

    #[test]
    fn one_value_is_every_percentile() {
        let s = spread_of(&[123_457]).unwrap();
        let v = Duration::from_millis(123_457);
        assert_eq!((s.mean, s.median, s.p90, s.p99, s.max), (v, v, v, v, v));
        let zero = spread_of(&[0]).unwrap();
        assert_eq!((zero.mean, zero.p99), (Duration::ZERO, Duration::ZERO));
    }

    #[test]
    fn percentiles_are_by_nearest_rank_within_a_thousandth() {
        let values: Vec<u64> = (1..=100).rev().collect();
        let s = spread_of(&values).unwrap();
        assert_eq!(s.mean, Duration::from_micros(50_500));
        for (seen, want) in [(s.median, 50.0), (s.p90, 90.0), (s.p99, 99.0)] {
            let seen = seen.as_secs_f64() * 1000.0;
            assert!((seen - want).abs() <= want / 1000.0, "{seen} for {want}");
        }
    }

    #[test]
    fn longer_than_the_longest_still_counts() {
        let mut timings = Timings::default();
        timings.add(Duration::MAX);
        let s = timings.spread().unwrap();
        assert_eq!((s.count, s.max), (1, Duration::MAX));
    }

    proptest! {
        #[test]
        fn percentiles_rise_and_the_mean_lies_between(us in prop::collection::vec(0u64..10_000_000_000, 1..300)) {
            let mut timings = Timings::default();
            timings.extend(us.iter().map(|v| Duration::from_micros(*v)));
            let s = timings.spread().unwrap();
            let least = Duration::from_micros(*us.iter().min().unwrap());
            let most = Duration::from_micros(*us.iter().max().unwrap());
            prop_assert!(s.median <= s.p90 && s.p90 <= s.p99 && s.p99 <= s.max);
            prop_assert_eq!(s.max, most);
            prop_assert!(least <= s.mean && s.mean <= most);
            prop_assert!(s.median >= least);
            prop_assert_eq!(s.count, us.len() as u64);
        }
    }
}
