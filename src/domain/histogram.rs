//! A histogram as a Prometheus exporter counts it.

use serde::Serialize;

/// Counts by upper bound. They are cumulative: a bucket holds all that is not above its bound, and the last one, without a bound, holds all there is.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Histogram {
    buckets: Vec<Bucket>,
}

/// One bucket.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Bucket {
    /// The label `le`: largest value counted here. Infinite in the last bucket.
    pub bound: f64,
    /// Values up to the bound.
    pub count: f64,
}

impl Histogram {
    /// Puts buckets in order and adds up those of one bound. `None` without a bucket for everything: what lies above the last bound would be missing,
    /// unseen.
    #[must_use]
    pub fn of(mut buckets: Vec<Bucket>) -> Option<Self> {
        buckets.retain(|b| !b.bound.is_nan() && b.count.is_finite() && b.count >= 0.0);
        buckets.sort_by(|a, b| a.bound.total_cmp(&b.bound));
        buckets.dedup_by(|next, kept| {
            let same = next.bound.total_cmp(&kept.bound).is_eq();
            if same {
                kept.count += next.count;
            }
            same
        });
        let whole = buckets.last().is_some_and(|b| b.bound == f64::INFINITY);
        whole.then_some(Self { buckets })
    }

    /// The buckets, by rising bound.
    #[must_use]
    pub fn buckets(&self) -> &[Bucket] {
        &self.buckets
    }

    /// How many values were counted.
    #[must_use]
    pub fn total(&self) -> f64 {
        self.buckets.last().map_or(0.0, |b| b.count)
    }

    /// What was counted since an earlier state. `None` when it does not follow on that: other bounds, or a count that fell.
    #[must_use]
    pub fn since(&self, before: &Self) -> Option<Self> {
        if self.buckets.len() != before.buckets.len() {
            return None;
        }
        let pairs = self.buckets.iter().zip(&before.buckets);
        let buckets: Option<Vec<Bucket>> = pairs
            .map(|(now, old)| {
                let follows = now.bound.total_cmp(&old.bound).is_eq() && now.count >= old.count;
                follows.then_some(Bucket {
                    bound: now.bound,
                    count: now.count - old.count,
                })
            })
            .collect();
        Some(Self { buckets: buckets? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(buckets: &[(f64, f64)]) -> Option<Histogram> {
        Histogram::of(buckets.iter().map(|&(bound, count)| Bucket { bound, count }).collect())
    }

    #[test]
    fn buckets_are_put_in_order_and_those_of_several_engines_added() {
        let h = histogram(&[(f64::INFINITY, 3.0), (0.1, 1.0), (f64::INFINITY, 4.0), (0.1, 2.0)]).unwrap();
        assert_eq!(Some(&h), histogram(&[(0.1, 3.0), (f64::INFINITY, 7.0)]).as_ref());
        assert_eq!(h.total(), 7.0);
    }

    #[test]
    fn without_a_bucket_for_everything_there_is_no_histogram() {
        assert_eq!(histogram(&[(0.1, 3.0), (0.2, 4.0)]), None);
        assert_eq!(histogram(&[]), None);
        assert_eq!(histogram(&[(f64::INFINITY, f64::NAN)]), None);
    }

    #[test]
    fn a_difference_needs_the_same_bounds_and_counts_that_never_fell() {
        let old = histogram(&[(0.1, 3.0), (f64::INFINITY, 4.0)]).unwrap();
        let new = histogram(&[(0.1, 5.0), (f64::INFINITY, 9.0)]).unwrap();
        assert_eq!(new.since(&old), histogram(&[(0.1, 2.0), (f64::INFINITY, 5.0)]));
        assert_eq!(old.since(&new), None, "it was reset");
        let other = histogram(&[(0.2, 5.0), (f64::INFINITY, 9.0)]).unwrap();
        assert_eq!(other.since(&old), None);
        assert_eq!(histogram(&[(f64::INFINITY, 9.0)]).unwrap().since(&old), None);
    }
}
