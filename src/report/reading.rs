//! One reading as JSON: a value with its age and its source, or the reason why there is none.

use std::time::Duration;

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::domain::time::millis;
use crate::domain::{Reading, Stamp, When};

/// Where readings come from. The words are those of `$defs/source` in `assets/status.schema.json`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Source {
    /// /proc of the node.
    Proc,
    /// nvidia-smi.
    NvidiaSmi,
    /// AMD's rocm-smi.
    RocmSmi,
    /// AMD's amd-smi.
    AmdSmi,
    /// A tool for GPUs, when none has told anything yet.
    GpuTool,
    /// Docker on the node.
    Docker,
    /// Interfaces and RDMA devices in /sys, addresses from `ip`.
    Sys,
    /// `df` and `du`.
    Disk,
    /// The image's own Python.
    Image,
    /// Ray's dashboard.
    RayDashboard,
    /// Ray, asked in the head's container.
    RayContainer,
    /// `ray status` in the head's container.
    RayStatus,
    /// Ray, when it was not read yet.
    Ray,
    /// GET /health.
    Health,
    /// GET /v1/models.
    Models,
    /// GET /metrics.
    Metrics,
    /// One generated token.
    Completions,
    /// A verb of the script engine.
    Verb,
}

/// Where a reading comes from and how often it is read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Origin {
    /// Where from.
    pub source: Source,
    /// How often; `None` for what stays true as it was read.
    pub every: Option<Duration>,
}

impl Origin {
    /// What is read on a cadence.
    pub fn each(source: Source, every: Duration) -> Self {
        Self {
            source,
            every: Some(every),
        }
    }

    /// What is read once and stays so.
    pub fn once(source: Source) -> Self {
        Self { source, every: None }
    }
}

/// `{"value": …, "age_s": …, "stale": …, "source": …}`, or `{"value": null, "reason": …, "stale": false, "source": …}`.
pub(super) fn reading<T, J: Serialize>(r: &Reading<T>, now: Stamp, of: Origin, show: impl FnOnce(&T) -> J) -> Value {
    match r {
        Reading::Known { value, at } => json!({
            "value": show(value),
            "age_s": seconds(now, *at),
            "stale": of.every.is_some_and(|every| r.stale(now, every)),
            "source": of.source,
        }),
        Reading::Absent(why) => json!({ "value": null, "reason": why.0, "stale": false, "source": of.source }),
    }
}

/// A part of a reading: as old as the whole. Where the whole has no such part, `why` is the reason.
pub(super) fn part<T, J: Serialize>(
    r: &Reading<T>,
    now: Stamp,
    of: Origin,
    why: &'static str,
    get: impl FnOnce(&T) -> Option<J>,
) -> Value {
    let part = match r {
        Reading::Known { value, at } => get(value).map_or(Reading::absent(why), |part| Reading::known(part, *at)),
        Reading::Absent(why) => Reading::Absent(why.clone()),
    };
    reading(&part, now, of, |part| json!(part))
}

/// An object of which some values may not be known: such a value is null, and `absent` says why, by its key.
pub(super) struct Fields {
    all: Map<String, Value>,
    absent: Vec<Value>,
}

impl Fields {
    /// What is always known: an object.
    pub fn of(all: Value) -> Self {
        let all = match all {
            Value::Object(all) => all,
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => Map::new(),
        };
        let absent = Vec::new();
        Self { all, absent }
    }

    /// Adds a value, or the reason why there is none.
    pub fn put<J: Serialize, W: Serialize>(mut self, key: &str, value: Result<J, W>) -> Self {
        let value = match value {
            Ok(value) => json!(value),
            Err(why) => {
                self.absent.push(json!({ "key": key, "why": why }));
                Value::Null
            }
        };
        self.all.insert(key.to_owned(), value);
        self
    }

    /// The whole.
    pub fn done(mut self) -> Value {
        self.all.insert("absent".to_owned(), Value::Array(self.absent));
        Value::Object(self.all)
    }
}

/// An object of which any value may be null: `absent` says why, by its key, as [`Fields`] does. A `…_reason` that is null is no value without a reason.
pub(super) fn explained(value: Value, why: impl Fn(&str) -> String) -> Value {
    let Value::Object(mut all) = value else {
        return value;
    };
    let null = all
        .iter()
        .filter(|(key, value)| value.is_null() && !key.ends_with("_reason"));
    let absent = null.map(|(key, _)| json!({ "key": key, "why": why(key) })).collect();
    all.insert("absent".to_owned(), Value::Array(absent));
    Value::Object(all)
}

/// Seconds from `at` to `now`, with milliseconds.
pub(super) fn seconds(now: Stamp, at: Stamp) -> f64 {
    // By a division: a sum of seconds and nanoseconds shows more digits than there are milliseconds.
    millis(now.since(at)) as f64 / 1000.0
}

/// Seconds since something, where it is known when it was.
pub(super) fn sure(now: Stamp, when: When) -> Option<f64> {
    when.sure().map(|at| seconds(now, at))
}

/// Seconds since something was found so: it was so for that long at least, and nobody knows since when. `None` where it is known.
pub(super) fn at_least(now: Stamp, when: When) -> Option<f64> {
    when.found.then(|| seconds(now, when.stamp))
}

/// The number as its source wrote it: 76.36 W stay 76.36, where the plain widening shows digits that nobody measured.
pub(super) fn decimal(number: f32) -> f64 {
    number.to_string().parse().unwrap_or(f64::from(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_has_its_age_and_its_source_and_what_is_old_says_so() {
        let of = Origin::each(Source::Metrics, Duration::from_secs(1));
        let seen = Reading::known(2, Stamp(1000));
        let said = json!({ "value": 2, "age_s": 3.0, "stale": false, "source": "metrics" });
        assert_eq!(reading(&seen, Stamp(4000), of, |n| *n), said);
        let said = json!({ "value": 2, "age_s": 3.001, "stale": true, "source": "metrics" });
        assert_eq!(reading(&seen, Stamp(4001), of, |n| *n), said);
        let once = Origin::once(Source::Completions);
        assert_eq!(reading(&seen, Stamp(999_000), once, |n| *n)["stale"], false);
    }

    #[test]
    fn what_a_reading_lacks_has_a_reason_of_its_own_and_an_absent_reading_gives_its_reason_to_its_parts() {
        let of = Origin::each(Source::Proc, Duration::from_secs(1));
        let whole = Reading::known((Some(7), None::<u8>), Stamp(0));
        let said = json!({ "value": 7, "age_s": 0.5, "stale": false, "source": "proc" });
        assert_eq!(part(&whole, Stamp(500), of, "not exported", |w| w.0), said);
        let said = json!({ "value": null, "reason": "not exported", "stale": false, "source": "proc" });
        assert_eq!(part(&whole, Stamp(500), of, "not exported", |w| w.1), said);
        let none = Reading::<u8>::absent("not asked yet");
        assert_eq!(
            part(&none, Stamp(0), of, "not exported", |n| Some(*n))["reason"],
            "not asked yet"
        );
    }

    #[test]
    fn each_null_has_its_reason_and_nothing_else_has_one() {
        let said = explained(json!({ "a": 1, "b": null, "b_reason": null, "c": 0 }), |key| {
            format!("no {key}")
        });
        let absent = json!([{ "key": "b", "why": "no b" }]);
        assert_eq!(
            said,
            json!({ "a": 1, "b": null, "b_reason": null, "c": 0, "absent": absent })
        );
    }

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
