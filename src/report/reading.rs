//! One reading as JSON.

use serde::Serialize;
use serde_json::{Value, json};

use crate::domain::time::millis;
use crate::domain::{Reading, Stamp};

/// `{"value": …, "age_s": …}`, or `{"value": null, "reason": …}`.
pub(super) fn reading<T, J: Serialize>(r: &Reading<T>, now: Stamp, show: impl FnOnce(&T) -> J) -> Value {
    match r {
        Reading::Known { value, at } => json!({ "value": show(value), "age_s": seconds(now, *at) }),
        Reading::Absent(why) => json!({ "value": null, "reason": why.0 }),
    }
}

/// Seconds from `at` to `now`, with milliseconds.
pub(super) fn seconds(now: Stamp, at: Stamp) -> f64 {
    // By a division: a sum of seconds and nanoseconds shows more digits than there are milliseconds.
    millis(now.since(at)) as f64 / 1000.0
}

/// A value, or null with the reason.
pub(super) fn known_or<T: Serialize>(value: Option<T>, why: &str) -> Value {
    value.map_or_else(|| json!({ "value": null, "reason": why }), |v| json!({ "value": v }))
}
