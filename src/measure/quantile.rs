//! Quantiles of a histogram.

use std::fmt;

use serde::Serialize;

use crate::domain::histogram::Histogram;

/// A quantile as far as a histogram tells it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Quantile {
    /// This value, by interpolation inside its bucket.
    At(f64),
    /// Above the largest bound that the exporter counts by.
    Above(f64),
}

/// For a person, taken as seconds: `0.8 ms`, `36.9 ms`, `412 ms`, `1.24 s`, `>80.00 s`.
impl fmt::Display for Quantile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = match self {
            Self::At(seconds) => *seconds,
            Self::Above(seconds) => {
                f.write_str(">")?;
                *seconds
            }
        };
        match seconds * 1000.0 {
            ms if ms < 99.95 => write!(f, "{ms:.1} ms"),
            ms if ms < 999.5 => write!(f, "{ms:.0} ms"),
            _ => write!(f, "{seconds:.2} s"),
        }
    }
}

/// The quantile `q` (0 to 1) of a histogram: linear inside the bucket, as Prometheus' `histogram_quantile` does. `None` when nothing was counted, or when
/// no bucket has a bound.
#[must_use]
pub fn quantile(histogram: &Histogram, q: f64) -> Option<Quantile> {
    let total = histogram.total();
    if total <= 0.0 || !(0.0..=1.0).contains(&q) {
        return None;
    }
    let rank = q * total;
    let (mut below, mut low) = (0.0_f64, None);
    for bucket in histogram.buckets() {
        // An exporter reads its buckets one after the other, so that one can be a request ahead of the next.
        let count = bucket.count.max(below);
        if count >= rank && count > below {
            if bucket.bound.is_infinite() {
                return low.map(Quantile::Above);
            }
            // Below the first bound lies zero, unless it is itself below.
            let start = low.unwrap_or_else(|| bucket.bound.min(0.0));
            let share = ((rank - below) / (count - below)).clamp(0.0, 1.0);
            return Some(Quantile::At(start + (bucket.bound - start) * share));
        }
        below = count;
        low = Some(bucket.bound).filter(|b| b.is_finite()).or(low);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::histogram::Bucket;
    use proptest::prelude::*;

    const INF: f64 = f64::INFINITY;

    fn histogram(buckets: &[(f64, f64)]) -> Histogram {
        Histogram::of(buckets.iter().map(|&(bound, count)| Bucket { bound, count }).collect()).unwrap()
    }

    fn near(seen: Option<Quantile>, want: f64) {
        assert!(
            matches!(seen, Some(Quantile::At(v)) if (v - want).abs() < 1e-9),
            "{seen:?}, not {want}"
        );
    }

    #[test]
    fn inside_a_bucket_it_is_linear() {
        let h = histogram(&[(0.1, 12.0), (0.25, 33.0), (INF, 33.0)]);
        // 16.5 of 33: 4.5 of the 21 between 0.1 and 0.25.
        near(quantile(&h, 0.5), 0.1 + 0.15 * 4.5 / 21.0);
        near(quantile(&h, 0.0), 0.0);
        near(quantile(&h, 1.0), 0.25);
        near(quantile(&h, 0.1), 0.1 * 3.3 / 12.0);
    }

    #[test]
    fn above_the_last_bound_it_says_no_more_than_that() {
        let h = histogram(&[(0.1, 1.0), (2.0, 1.0), (INF, 4.0)]);
        assert_eq!(quantile(&h, 0.5), Some(Quantile::Above(2.0)));
        near(quantile(&h, 0.25), 0.1);
        assert_eq!(quantile(&histogram(&[(INF, 4.0)]), 0.5), None);
    }

    #[test]
    fn a_person_reads_a_time_or_that_it_is_longer() {
        assert_eq!(Quantile::At(0.0221).to_string(), "22.1 ms");
        assert_eq!(Quantile::At(0.2382).to_string(), "238 ms");
        assert_eq!(Quantile::At(1.5).to_string(), "1.50 s");
        assert_eq!(Quantile::Above(80.0).to_string(), ">80.00 s");
    }

    #[test]
    fn of_nothing_there_is_none() {
        assert_eq!(quantile(&histogram(&[(0.1, 0.0), (INF, 0.0)]), 0.5), None);
        assert_eq!(quantile(&histogram(&[(0.1, 1.0), (INF, 1.0)]), 1.5), None);
        assert_eq!(quantile(&histogram(&[(0.1, 1.0), (INF, 1.0)]), f64::NAN), None);
    }

    #[test]
    fn empty_buckets_are_passed_over() {
        let h = histogram(&[(0.1, 0.0), (0.2, 0.0), (0.4, 2.0), (INF, 2.0)]);
        near(quantile(&h, 0.0), 0.2);
        near(quantile(&h, 0.5), 0.3);
    }

    proptest! {
        #[test]
        fn it_lies_in_the_bucket_of_its_rank_and_never_falls(
            counts in prop::collection::vec(0u32..1000, 2..30), q in 0.0f64..=1.0, more in 0.0f64..=1.0,
        ) {
            let mut sum = 0.0;
            let mut buckets = Vec::new();
            for (i, n) in counts.iter().enumerate() {
                sum += f64::from(*n);
                let bound = if i + 1 == counts.len() { INF } else { 0.1 * (i + 1) as f64 };
                buckets.push((bound, sum));
            }
            let h = histogram(&buckets);
            let seen = quantile(&h, q);
            prop_assert_eq!(seen.is_none(), sum == 0.0);
            if let Some(Quantile::At(v)) = seen {
                let bucket = buckets.iter().position(|(bound, _)| v <= *bound).unwrap();
                let rank = q * sum;
                prop_assert!(v >= 0.0);
                // The values up to the bucket's bound reach the rank; those up to two bounds before it do not (v may sit on the bound between).
                prop_assert!(buckets[bucket].1 + 1e-6 >= rank);
                prop_assert!(bucket < 1 || buckets[bucket - 1].1 <= rank + 1e-6 || (v - buckets[bucket - 1].0).abs() < 1e-9);
            }
            let size = |q: Option<Quantile>| match q {
                Some(Quantile::At(v)) => v,
                Some(Quantile::Above(v)) => v + 1.0,
                None => 0.0,
            };
            prop_assert!(size(quantile(&h, q.max(more))) + 1e-9 >= size(quantile(&h, q.min(more))));
        }
    }
}
