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

/// The number as its source wrote it: 76.36 W stay 76.36, where the plain widening shows digits that nobody measured.
pub(super) fn decimal(number: f32) -> f64 {
    number.to_string().parse().unwrap_or(f64::from(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_of_a_tool_keeps_its_own_digits() {
        for (number, text) in [
            (76.36_f32, "76.36"),
            (0.07, "0.07"),
            (36.0, "36.0"),
            (0.0, "0.0"),
            (692.12, "692.12"),
        ] {
            assert_eq!(json!(decimal(number)).to_string(), text);
        }
    }
}
