//! Quantities that carry their unit in the type, so that pages are never added to bytes.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::iter::Sum;
use std::ops::{Add, Sub};
use std::time::Duration;

/// A number of bytes.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Default,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(transparent)]
pub struct Bytes(pub u64);

impl Bytes {
    /// 4 KiB: the base page of x86-64 and of most arm64 kernels.
    pub const KIB_4: Self = Self(4 << 10);
    /// 2 MiB: the x86-64 huge page.
    pub const MIB_2: Self = Self(2 << 20);
    /// 1 GiB: the x86-64 gigantic page.
    pub const GIB_1: Self = Self(1 << 30);

    /// From kibibytes, as `/proc` prints them; saturates instead of wrapping.
    pub const fn from_kib(kib: u64) -> Self {
        Self(kib.saturating_mul(1024))
    }

    /// From mebibytes; saturates instead of wrapping.
    pub const fn from_mib(mib: u64) -> Self {
        Self(mib.saturating_mul(1 << 20))
    }

    /// How many pages of `page` hold these bytes, rounded up; `None` for a page of zero bytes.
    pub const fn pages_of(self, page: Self) -> Option<u64> {
        if page.0 == 0 { None } else { Some(self.0.div_ceil(page.0)) }
    }
}

impl Add for Bytes {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sub for Bytes {
    type Output = Self;
    /// Saturates: a size is never negative.
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Sum for Bytes {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self(0), Add::add)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
        if self.0 < 1024 {
            return write!(f, "{} B", self.0);
        }
        let mut value = self.0 as f64 / 1024.0;
        let mut unit = UNITS[0];
        for next in &UNITS[1..] {
            if value < 1024.0 {
                break;
            }
            value /= 1024.0;
            unit = next;
        }
        let decimals = usize::from(value < 10.0 && value.fract() > 0.05);
        write!(f, "{value:.decimals$} {unit}")
    }
}

/// A duration in seconds.
#[derive(
    Debug, Clone, Copy, PartialEq, PartialOrd, Default, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(transparent)]
pub struct Seconds(pub f64);

impl Seconds {
    /// From nanoseconds, as schedstat counts them.
    pub fn from_ns(ns: u64) -> Self {
        Self(ns as f64 / 1e9)
    }
}

impl Add for Seconds {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl Sub for Seconds {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let s = self.0;
        match s.abs() {
            a if a >= 1.0 || a == 0.0 => write!(f, "{s:.2} s"),
            a if a >= 1e-3 => write!(f, "{:.1} ms", s * 1e3),
            a if a >= 1e-6 => write!(f, "{:.1} us", s * 1e6),
            _ => write!(f, "{:.0} ns", s * 1e9),
        }
    }
}

/// A length of time as people write it, such as `10s`, `500ms` or `1.5m`.
pub fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text} is not a time such as 10s, 500ms or 2m");
    let split = text.find(|c: char| c.is_ascii_alphabetic()).ok_or_else(wrong)?;
    let (number, unit) = text.split_at(split);
    let seconds_each = match unit {
        "ms" => 0.001,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err(wrong()),
    };
    let seconds = number.parse::<f64>().map_err(|_| wrong())? * seconds_each;
    Duration::try_from_secs_f64(seconds).map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        assert_eq!(duration("10s"), Ok(Duration::from_secs(10)));
        assert_eq!(duration("1.5m"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("0s"), Ok(Duration::ZERO));
        for wrong in ["10", "s", "-1s", "1y", "", "1e999s"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn bytes_read_well() {
        let shown = [0, 1023, 4096, 1536, 2 << 20, 522 << 20, 6 << 30, u64::MAX]
            .map(|n| Bytes(n).to_string());
        let expected =
            ["0 B", "1023 B", "4 KiB", "1.5 KiB", "2 MiB", "522 MiB", "6 GiB", "16384 PiB"];
        assert_eq!(shown, expected);
    }

    #[test]
    fn pages_round_up() {
        assert_eq!(Bytes(1).pages_of(Bytes::MIB_2), Some(1));
        assert_eq!(Bytes(0).pages_of(Bytes::MIB_2), Some(0));
        assert_eq!(Bytes(1).pages_of(Bytes(0)), None);
    }
}
