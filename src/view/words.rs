//! Numbers and names as a person reads them.

use std::time::Duration;

pub(super) use crate::domain::count::{amount, grouped as count, noun, things};
use crate::domain::event::{ProbeId, Purpose};
use crate::domain::intent::Action;
pub(super) use crate::domain::time::seconds;
use crate::domain::units::Bytes;
use crate::domain::{Reading, Source, Stamp, Wall, When};
use crate::model::State;

/// What stands for an unknown value.
pub(super) const NOTHING: &str = "-";

/// A dash for a value that is not known, with the reason.
pub(super) fn unknown<T>(reading: &Reading<T>) -> String {
    format!("{NOTHING} {}", reason(reading))
}

/// Why a value is not known.
pub(super) fn reason<T>(reading: &Reading<T>) -> &str {
    reading.reason().unwrap_or_default()
}

/// `98.7`, without a unit.
pub(super) fn gib(bytes: Bytes) -> String {
    format!("{:.1}", bytes.gib())
}

/// A rate or another number for a person: `0`, `0.4`, `27.1`, `812`, `1.2k`, `34k`.
pub(super) fn number(n: f64) -> String {
    match n {
        n if !n.is_finite() => NOTHING.to_owned(),
        0.0 => "0".to_owned(),
        n if n < 0.1 => "<0.1".to_owned(),
        n if n < 99.95 => format!("{n:.1}"),
        n if n < 999.5 => format!("{n:.0}"),
        n if n < 9_950.0 => format!("{:.1}k", n / 1000.0),
        n if n < 999_500.0 => format!("{:.0}k", n / 1000.0),
        n => format!("{:.1}M", n / 1_000_000.0),
    }
}

/// A latency: `0.8 ms`, `36.9 ms`, `412 ms`, `1.24 s`.
pub(super) fn latency(d: Duration) -> String {
    let ms = d.as_secs_f64() * 1000.0;
    match ms {
        ms if ms < 99.95 => format!("{ms:.1} ms"),
        ms if ms < 999.5 => format!("{ms:.0} ms"),
        ms => format!("{:.2} s", ms / 1000.0),
    }
}

/// How long ago something was, in whole seconds: `12 s`, and `over 12 s` where it was only found so then.
pub(super) fn ago(when: When, now: Stamp) -> String {
    let age = seconds(when.age(now));
    if when.found { format!("over {age}") } else { age }
}

/// What is added to a duration that is counted up to when its source was seen last, where it is not seen now.
pub(super) fn last_seen(seen: bool) -> &'static str {
    if seen { "" } else { " when last seen" }
}

/// `12:31:07` at an offset from UTC in seconds.
pub(super) fn clock(wall: Wall, utc_offset: i32) -> String {
    let s = i64::try_from(wall.0 / 1000).unwrap_or(0) + i64::from(utc_offset);
    let day = s.rem_euclid(86_400);
    format!("{:02}:{:02}:{:02}", day / 3600, day / 60 % 60, day % 60)
}

/// An action as a title.
pub(super) fn action(action: Action) -> &'static str {
    match action {
        Action::Head => "start the head",
        Action::Workers => "join the workers",
        Action::Serve => "serve the model",
        Action::Up => "bring everything up",
        Action::StopServe => "stop the model server",
        Action::StopAll => "stop everything",
    }
}

/// What a command was for.
pub(super) fn purpose(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Probe(ProbeId::Node) => "node",
        Purpose::Probe(ProbeId::Image) => "image",
        Purpose::Probe(ProbeId::Versions) => "versions",
        Purpose::Probe(ProbeId::Inside) => "in the container",
        Purpose::Probe(ProbeId::Ray) => "Ray",
        Purpose::Probe(ProbeId::RayStatus) => "ray status",
        Purpose::Probe(ProbeId::Serve) => "server",
        Purpose::Probe(ProbeId::Verb) => "script",
        Purpose::Watch => "readings",
        Purpose::Step => "step",
        Purpose::Log => "log",
        Purpose::Server => "token",
    }
}

/// Who says something.
pub(super) fn source(state: &State, source: Source) -> &str {
    match source {
        Source::Hop(h) => state
            .config
            .ssh
            .jump
            .get(h.index())
            .map_or("jump host", |h| h.name.as_str()),
        Source::Node(n) => state.config.node_name(n),
        Source::Server => "server",
        Source::Bench => "test",
        Source::Operator | Source::Clock => "bringup",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_three_figures() {
        let cases = [
            (0.0, "0"),
            (0.04, "<0.1"),
            (27.12, "27.1"),
            (99.97, "100"),
            (812.4, "812"),
            (999.7, "1.0k"),
            (1234.0, "1.2k"),
            (34_000.0, "34k"),
            (2_300_000.0, "2.3M"),
            (f64::NAN, "-"),
        ];
        for (n, text) in cases {
            assert_eq!(number(n), text);
        }
    }

    #[test]
    fn the_clock_knows_offsets_in_both_directions() {
        let noon = Wall(12 * 3_600_000);
        assert_eq!(clock(noon, 0), "12:00:00");
        assert_eq!(clock(noon, 3600), "13:00:00");
        assert_eq!(clock(Wall(0), -1), "23:59:59");
    }

    #[test]
    fn latencies_change_their_unit() {
        for (us, text) in [
            (840, "0.8 ms"),
            (36_900, "36.9 ms"),
            (412_300, "412 ms"),
            (1_240_000, "1.24 s"),
        ] {
            assert_eq!(latency(Duration::from_micros(us)), text);
        }
    }
}
