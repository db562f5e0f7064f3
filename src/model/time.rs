//! Points in time as nanoseconds since the Unix epoch, with the resolution they came in.

use chrono::{DateTime, SecondsFormat, Utc};
use std::cmp::Ordering;
use std::fmt;

/// A point in time: nanoseconds since 1970-01-01T00:00:00Z and the number of fractional
/// digits (0–9) that the input really had.
///
/// Order and equality look at the nanoseconds alone.
#[derive(Clone, Copy, Debug)]
pub struct Time {
    ns: i64,
    digits: u8,
}

impl Time {
    /// A time from nanoseconds since the epoch, known to `digits` decimal places of a second.
    pub const fn from_ns(ns: i64, digits: u8) -> Time {
        Time { ns, digits: if digits > 9 { 9 } else { digits } }
    }

    /// A time from microseconds since the epoch, the usual resolution of captures and journals.
    pub const fn from_us(us: i64) -> Time {
        Time { ns: us.saturating_mul(1000), digits: 6 }
    }

    /// Nanoseconds since the epoch.
    #[inline]
    pub const fn ns(self) -> i64 {
        self.ns
    }

    /// Fractional digits of a second that the input had.
    pub const fn digits(self) -> u8 {
        self.digits
    }

    /// This time moved by `ns` nanoseconds (negative: earlier), saturating.
    #[inline]
    pub const fn plus_ns(self, ns: i64) -> Time {
        Time { ns: self.ns.saturating_add(ns), digits: self.digits }
    }

    /// Nanoseconds from `earlier` to this time (negative when it is in fact later), saturating.
    #[inline]
    pub const fn since(self, earlier: Time) -> i64 {
        self.ns.saturating_sub(earlier.ns)
    }

    /// The same instant at no finer resolution than `digits`.
    pub const fn coarsened(self, digits: u8) -> Time {
        Time { ns: self.ns, digits: if digits < self.digits { digits } else { self.digits } }
    }

    /// `HH:MM:SS` of the instant in UTC, as people write sequences in reports.
    pub fn clock(self) -> String {
        self.utc().map_or_else(|| self.to_string(), |t| t.format("%H:%M:%S").to_string())
    }

    /// The instant as a chrono value, where chrono can represent it.
    pub fn utc(self) -> Option<DateTime<Utc>> {
        let (s, n) = (self.ns.div_euclid(1_000_000_000), self.ns.rem_euclid(1_000_000_000));
        DateTime::from_timestamp(s, n as u32)
    }
}

impl PartialEq for Time {
    #[inline]
    fn eq(&self, other: &Time) -> bool {
        self.ns == other.ns
    }
}
impl Eq for Time {}
impl PartialOrd for Time {
    #[inline]
    fn partial_cmp(&self, other: &Time) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Time {
    #[inline]
    fn cmp(&self, other: &Time) -> Ordering {
        self.ns.cmp(&other.ns)
    }
}
impl std::hash::Hash for Time {
    #[inline]
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.ns.hash(state);
    }
}

impl fmt::Display for Time {
    /// RFC 3339 in UTC with `Z`, with as many fractional digits as the input had.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(t) = self.utc() else {
            return write!(f, "{} ns", self.ns);
        };
        let whole = t.to_rfc3339_opts(SecondsFormat::Nanos, true);
        // "2026-11-29T19:41:55.562000000Z": 20 characters up to and including the dot.
        match self.digits {
            0 => write!(f, "{}Z", &whole[..whole.len() - 11]),
            d => write!(f, "{}Z", &whole[..whole.len() - 10 + usize::from(d)]),
        }
    }
}

impl serde::Serialize for Time {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::Time;

    #[test]
    fn shows_the_digits_it_was_given() {
        let t = 1_795_981_315_562_000_000;
        assert_eq!(Time::from_ns(t, 3).to_string(), "2026-11-29T19:41:55.562Z");
        assert_eq!(Time::from_ns(t, 0).to_string(), "2026-11-29T19:41:55Z");
        assert_eq!(Time::from_ns(t, 9).to_string(), "2026-11-29T19:41:55.562000000Z");
        assert_eq!(Time::from_ns(-1, 9).to_string(), "1969-12-31T23:59:59.999999999Z");
    }
}
