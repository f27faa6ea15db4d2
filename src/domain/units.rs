//! Quantities that carry their unit in their type.

use serde::Serialize;

/// Bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize)]
pub struct Bytes(pub u64);

impl Bytes {
    /// From kibibytes, as /proc/meminfo gives them under the name kB.
    #[must_use]
    pub fn from_kib(n: u64) -> Self {
        Self(n.saturating_mul(1024))
    }

    /// From mebibytes, as nvidia-smi gives them.
    #[must_use]
    pub fn from_mib(n: u64) -> Self {
        Self(n.saturating_mul(1 << 20))
    }

    /// From gibibytes, as a person writes them, to the byte. What is no amount is none.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a cast of what is below zero or no number gives zero"
    )]
    pub fn from_gib(n: f64) -> Self {
        Self((n * f64::from(1u32 << 30)).round() as u64)
    }

    /// In gibibytes, for a person: whole ones without a fraction.
    #[must_use]
    pub fn words(self) -> String {
        let tenth = (self.gib() * 10.0).round() / 10.0;
        format!("{tenth} GiB")
    }

    /// In gibibytes.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "shown with one decimal")]
    pub fn gib(self) -> f64 {
        self.0 as f64 / f64::from(1u32 << 30)
    }

    /// As a rate of disks and networks, in powers of ten as their makers count: `1.2 GB/s`, `240 MB/s`.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "shown with one decimal")]
    pub fn per_second(self) -> String {
        match self.0 as f64 {
            n if n >= 999.5e6 => format!("{:.1} GB/s", n / 1e9),
            n => format!("{:.0} MB/s", n / 1e6),
        }
    }

    /// `self - other`, zero when that is below zero.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

/// A share in percent, 0 to 100.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize)]
pub struct Percent(pub f32);

/// Electric power in watts.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize)]
pub struct Watts(pub f32);

/// Temperature in degrees Celsius.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize)]
pub struct Celsius(pub f32);
