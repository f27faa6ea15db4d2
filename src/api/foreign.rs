//! What other rooms read from an answer's bytes, in one place.

use crate::domain::ray::RayFacts;
use crate::domain::serving::MetricsSample;

/// A scrape of /metrics.
pub(super) fn metrics(_text: &str) -> MetricsSample {
    MetricsSample::default()
}

/// The dashboard's list of nodes.
pub(super) fn nodes(_body: &[u8]) -> Result<RayFacts, String> {
    Err("not read yet".to_owned())
}
