//! Time of the simulated cluster: a monotonic clock for what happens, and the calendar that its nodes print.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use jiff::Timestamp;

/// Moments of the world are durations since its start.
pub type Moment = Duration;

/// Reads the machine's clocks. The world itself only gets moments.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    start: Instant,
    calendar: Calendar,
}

impl Clock {
    /// A world that has begun so long ago, or as long ago as the machine's clock knows.
    pub fn start(ago: Duration) -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = Instant::now();
        let start = now.checked_sub(ago).unwrap_or(now);
        Self {
            start,
            calendar: Calendar {
                epoch: since.saturating_sub(now.saturating_duration_since(start)),
            },
        }
    }

    /// The moment it is.
    pub fn now(&self) -> Moment {
        self.start.elapsed()
    }

    /// The calendar that belongs to it.
    pub fn calendar(&self) -> Calendar {
        self.calendar
    }

    /// When this moment comes, for timers.
    pub fn instant(&self, at: Moment) -> tokio::time::Instant {
        tokio::time::Instant::from_std(self.start.checked_add(at).unwrap_or(self.start))
    }
}

/// How fast things go: 1 is the pace of the demo, 60 is sixty times as fast.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pace(f64);

/// Slowest and fastest pace; beyond these the timeline has no meaning.
const PACES: std::ops::RangeInclusive<f64> = 0.01..=1000.0;

impl Pace {
    /// A pace, brought into the range that works. Not a number counts as 1.
    pub fn new(speed: f64) -> Self {
        if speed.is_finite() {
            Self(speed.clamp(*PACES.start(), *PACES.end()))
        } else {
            Self(1.0)
        }
    }

    /// What takes so many seconds at pace 1.
    pub fn secs(self, seconds: f64) -> Duration {
        Duration::from_secs_f64((seconds / self.0).max(0.0))
    }

    /// How many seconds of pace 1 pass in `d`.
    pub fn scaled(self, d: Duration) -> f64 {
        d.as_secs_f64() * self.0
    }
}

/// Turns moments into the dates that the nodes print, in UTC.
#[derive(Debug, Clone, Copy)]
pub struct Calendar {
    epoch: Duration,
}

impl Calendar {
    /// A calendar whose world began so long after 1970.
    #[cfg(test)]
    pub fn at(epoch: Duration) -> Self {
        Self { epoch }
    }

    fn stamp(self, at: Moment) -> Timestamp {
        let t = self.epoch.saturating_add(at);
        let seconds = i64::try_from(t.as_secs()).unwrap_or(0);
        let nanos = i32::try_from(t.subsec_nanos()).unwrap_or(0);
        Timestamp::new(seconds, nanos).unwrap_or_default()
    }

    fn print(self, at: Moment, format: &str) -> String {
        self.stamp(at).strftime(format).to_string()
    }

    /// As Docker prints it: RFC 3339 with nine digits and `Z`.
    pub fn docker(self, at: Moment) -> String {
        self.print(at, "%Y-%m-%dT%H:%M:%S.%9fZ")
    }

    /// As vLLM's log lines have it: `11-29 18:58:10`.
    pub fn vllm(self, at: Moment) -> String {
        self.print(at, "%m-%d %H:%M:%S")
    }

    /// As Ray's log lines have it: `2026-11-29 18:58:10,883`.
    pub fn ray(self, at: Moment) -> String {
        self.print(at, "%Y-%m-%d %H:%M:%S,%3f")
    }

    /// As Ray's session names have it: `2026-11-29_18-58-10_883000`.
    pub fn session(self, at: Moment) -> String {
        self.print(at, "%Y-%m-%d_%H-%M-%S_%6f")
    }

    /// As an HTTP `date` header has it.
    pub fn http(self, at: Moment) -> String {
        self.print(at, "%a, %d %b %Y %H:%M:%S GMT")
    }

    /// Seconds since 1970.
    pub fn unix(self, at: Moment) -> f64 {
        self.epoch.saturating_add(at).as_secs_f64()
    }

    /// As `date +%s.%N` has it.
    pub fn date(self, at: Moment) -> String {
        let t = self.epoch.saturating_add(at);
        format!("{}.{:09}", t.as_secs(), t.subsec_nanos())
    }

    /// Whole seconds since 1970.
    pub fn unix_seconds(self, at: Moment) -> u64 {
        self.epoch.saturating_add(at).as_secs()
    }

    /// The moment of a date as `docker logs --since` takes it: RFC 3339, or seconds since 1970. A date before the world began is its beginning.
    pub fn parse(self, text: &str) -> Option<Moment> {
        let since = match text.parse::<f64>() {
            Ok(seconds) if seconds.is_finite() && seconds >= 0.0 => Duration::from_secs_f64(seconds.min(1e12)),
            Ok(_) => return None,
            Err(_) => {
                let t: Timestamp = text.parse().ok()?;
                let seconds = u64::try_from(t.as_second()).ok()?;
                Duration::new(seconds, u32::try_from(t.subsec_nanosecond()).ok()?)
            }
        };
        Some(since.saturating_sub(self.epoch))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_read_as_the_programs_print_them_and_docker_reads_its_own_back() {
        let c = Calendar::at(Duration::from_secs(1_795_978_690));
        let at = Duration::from_millis(883);
        assert_eq!(c.docker(at), "2026-11-29T18:58:10.883000000Z");
        assert_eq!(c.vllm(at), "11-29 18:58:10");
        assert_eq!(c.ray(at), "2026-11-29 18:58:10,883");
        assert_eq!(c.date(at), "1795978690.883000000");
        assert_eq!(c.parse(&c.docker(at)), Some(at));
        assert_eq!(c.parse("1795978691"), Some(Duration::from_secs(1)));
        assert_eq!(c.parse("1970-01-01T00:00:00Z"), Some(Duration::ZERO));
        assert_eq!(c.parse("yesterday"), None);
    }

    #[test]
    fn a_pace_that_has_no_meaning_is_brought_into_range() {
        assert_eq!(Pace::new(f64::NAN), Pace::new(1.0));
        assert_eq!(Pace::new(60.0).secs(60.0), Duration::from_secs(1));
        assert!(Pace::new(0.0).secs(1.0) <= Duration::from_secs(100));
    }
}
