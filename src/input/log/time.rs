//! Times and durations as logs write them, read without a date library on the way.

use crate::model::time::Time;

/// Nanoseconds of a second.
pub const SECOND_NS: i64 = 1_000_000_000;

/// A time of day on a date as written: what a layout leaves out is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Civil {
    /// Year, where written.
    pub year: Option<i32>,
    /// Month 1–12 and day 1–31, where written.
    pub month_day: Option<(u8, u8)>,
    /// Hour, 0–23.
    pub hour: u8,
    /// Minute, 0–59.
    pub minute: u8,
    /// Second, 0–60 (a leap second is the next second's first instant).
    pub second: u8,
    /// Fraction of the second, ns.
    pub nanos: u32,
    /// Fractional digits that were written.
    pub digits: u8,
    /// Offset from UTC in seconds, where written.
    pub offset_s: Option<i32>,
}

impl Civil {
    /// Nanoseconds since the epoch of the local civil time, for the year and date given.
    pub(super) fn local_ns(&self, year: i32, (month, day): (u8, u8)) -> i64 {
        let seconds = i64::from(self.hour) * 3600 + i64::from(self.minute) * 60 + i64::from(self.second);
        (days_from_civil(year, month, day) * 86_400 + seconds)
            .saturating_mul(SECOND_NS)
            .saturating_add(i64::from(self.nanos))
    }

    /// Are the fields within their ranges?
    pub fn is_valid(&self) -> bool {
        self.hour < 24
            && self.minute < 60
            && self.second <= 60
            && self.nanos < 1_000_000_000
            && self.offset_s.is_none_or(|o| o.abs() <= 18 * 3600)
            && self.year.is_none_or(|y| (1970..=2261).contains(&y))
            && self.month_day.is_none_or(|(m, d)| d >= 1 && d <= days_in_month(self.year.unwrap_or(2000), m))
    }
}

/// Days since 1970-01-01 of a date in the proleptic Gregorian calendar (H. Hinnant,
/// "chrono-Compatible Low-Level Date Algorithms", `days_from_civil`).
pub const fn days_from_civil(year: i32, month: u8, day: u8) -> i64 {
    let y = if month <= 2 { year as i64 - 1 } else { year as i64 };
    let era = y.div_euclid(400);
    let year_of_era = y.rem_euclid(400);
    let shifted = (month as i64 + 9) % 12;
    let day_of_year = (153 * shifted + 2) / 5 + day as i64 - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

pub(super) const fn days_in_month(year: i32, month: u8) -> u8 {
    match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        _ => 0,
    }
}

/// A run of exactly `n` digits at `at`.
fn digits(b: &[u8], at: usize, n: usize) -> Option<u32> {
    b.get(at..at + n)?
        .iter()
        .try_fold(0u32, |v, c| c.is_ascii_digit().then(|| v.wrapping_mul(10).wrapping_add(u32::from(c - b'0'))))
}

/// `HH:MM:SS` with a fraction after `.` or `,`, at the beginning of `b`: the fields and the length.
pub fn time_of_day(b: &[u8]) -> Option<(Civil, usize)> {
    let (hour, minute, second) = (digits(b, 0, 2)?, digits(b, 3, 2)?, digits(b, 6, 2)?);
    if b.get(2) != Some(&b':') || b.get(5) != Some(&b':') {
        return None;
    }
    let mut civil = Civil { hour: hour as u8, minute: minute as u8, second: second as u8, ..Civil::default() };
    let mut at = 8;
    if matches!(b.get(8), Some(b'.' | b',')) && b.get(9).is_some_and(u8::is_ascii_digit) {
        at = 9 + fraction(b.get(9..)?, &mut civil);
    }
    Some((civil, at))
}

/// Reads fractional digits into `civil`, and says how many there were.
pub fn fraction(b: &[u8], civil: &mut Civil) -> usize {
    let n = b.iter().take_while(|c| c.is_ascii_digit()).count();
    let mut nanos = 0u32;
    for i in 0..9 {
        let d = if i < n { b.get(i).map_or(0, |c| u32::from(c - b'0')) } else { 0 };
        nanos = nanos * 10 + d;
    }
    civil.nanos = nanos;
    civil.digits = n.min(9) as u8;
    n
}

/// `Z`, `±HH:MM`, `±HHMM`, `±HH` at the beginning of `b`: seconds and length.
pub fn offset(b: &[u8]) -> Option<(i32, usize)> {
    let sign = match b.first()? {
        b'Z' | b'z' => return Some((0, 1)),
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let hours = digits(b, 1, 2)? as i32;
    let (minutes, len) = match b.get(3) {
        Some(b':') => (digits(b, 4, 2)? as i32, 6),
        Some(c) if c.is_ascii_digit() => (digits(b, 3, 2)? as i32, 5),
        _ => (0, 3),
    };
    (hours <= 18 && minutes < 60).then_some((sign * (hours * 3600 + minutes * 60), len))
}

/// Month by its English three letters.
pub fn month(b: &[u8]) -> Option<u8> {
    let [a, b, c] = *b.first_chunk::<3>()?;
    Some(match &[a | 0x20, b | 0x20, c | 0x20] {
        b"jan" => 1,
        b"feb" => 2,
        b"mar" => 3,
        b"apr" => 4,
        b"may" => 5,
        b"jun" => 6,
        b"jul" => 7,
        b"aug" => 8,
        b"sep" => 9,
        b"oct" => 10,
        b"nov" => 11,
        b"dec" => 12,
        _ => return None,
    })
}

/// `29/Nov/2026:19:38:38 +0000`, also with a fraction and without a zone (CLF; HAProxy).
pub fn clf(b: &[u8]) -> Option<(Civil, usize)> {
    let (day, year) = (digits(b, 0, 2)?, digits(b, 7, 4)?);
    if b.get(2) != Some(&b'/') || b.get(6) != Some(&b'/') || b.get(11) != Some(&b':') {
        return None;
    }
    let month = month(b.get(3..6)?)?;
    let (mut civil, len) = time_of_day(b.get(12..)?)?;
    civil.year = Some(year as i32);
    civil.month_day = Some((month, day as u8));
    Some(with_offset(b, civil, 12 + len))
}

/// `2026-11-29T19:38:38.123+00:00`; `T` may be a space or `_`, the zone may be missing or stand
/// after a space (RFC 3339, ISO 8601 extended, and what people make of them).
pub fn iso8601(b: &[u8]) -> Option<(Civil, usize)> {
    let (year, month, day) = iso_date(b, b'-')?;
    if !matches!(b.get(10), Some(b'T' | b't' | b' ' | b'_')) {
        return None;
    }
    let (mut civil, len) = time_of_day(b.get(11..)?)?;
    civil.year = Some(year);
    civil.month_day = Some((month, day));
    Some(with_offset(b, civil, 11 + len))
}

/// `2026/11/29 19:38:38` (nginx error log, Go's `log`).
pub fn slashed(b: &[u8]) -> Option<(Civil, usize)> {
    let (year, month, day) = iso_date(b, b'/')?;
    let (mut civil, len) = time_of_day(b.get(11..).filter(|_| b.get(10) == Some(&b' '))?)?;
    civil.year = Some(year);
    civil.month_day = Some((month, day));
    Some(with_offset(b, civil, 11 + len))
}

/// `2026-11-29` with the separator given: year, month, day.
pub fn iso_date(b: &[u8], separator: u8) -> Option<(i32, u8, u8)> {
    let (year, month, day) = (digits(b, 0, 4)?, digits(b, 5, 2)?, digits(b, 8, 2)?);
    let sane = b.get(4) == Some(&separator)
        && b.get(7) == Some(&separator)
        && day >= 1
        && day <= u32::from(days_in_month(year as i32, month as u8));
    sane.then_some((year as i32, month as u8, day as u8))
}

/// `Nov 29 19:50:42`, `Nov  9 19:50:42.123`, `Nov 29 2026 19:50:42` (RFC 3164, journalctl short).
pub fn syslog(b: &[u8]) -> Option<(Civil, usize)> {
    let month = month(b)?;
    let (day, mut at) = match (b.get(3)?, b.get(4)?) {
        (b' ', b' ') => (digits(b, 5, 1)?, 6),
        (b' ', _) => match digits(b, 4, 2) {
            Some(day) => (day, 6),
            None => (digits(b, 4, 1)?, 5),
        },
        _ => return None,
    };
    let mut year = None;
    if let Some(y) = digits(b, at + 1, 4)
        && b.get(at) == Some(&b' ')
        && b.get(at + 5) == Some(&b' ')
    {
        year = Some(y as i32);
        at += 5;
    }
    if b.get(at) != Some(&b' ') {
        return None;
    }
    let (mut civil, len) = time_of_day(b.get(at + 1..)?)?;
    civil.year = year;
    civil.month_day = Some((month, day as u8));
    Some((civil, at + 1 + len))
}

/// `Sun Nov 29 19:55:24.512077 2026` (`ctime`; Apache error log).
pub fn ctime(b: &[u8]) -> Option<(Civil, usize)> {
    if b.get(3) != Some(&b' ') || !b.get(..3)?.iter().all(u8::is_ascii_alphabetic) {
        return None;
    }
    let (mut civil, len) = syslog(b.get(4..)?)?;
    let at = 4 + len;
    if civil.year.is_some() {
        return Some((civil, at));
    }
    if b.get(at) != Some(&b' ') {
        return None;
    }
    civil.year = Some(digits(b, at + 1, 4)? as i32);
    Some((civil, at + 5))
}

/// Takes a zone that follows at `at`, directly or after one space.
fn with_offset(b: &[u8], mut civil: Civil, at: usize) -> (Civil, usize) {
    let rest = b.get(at..).unwrap_or_default();
    let (space, zone) = match rest.split_first() {
        // "19:38:38 - 2" and the like: a sign after a space needs its digits to be a zone.
        Some((b' ', after)) if matches!(after.first(), Some(b'+' | b'-' | b'Z')) => (1, after),
        _ => (0, rest),
    };
    let ends = |len: usize| zone.get(len).is_none_or(|c| !c.is_ascii_alphanumeric());
    match offset(zone) {
        Some((seconds, len)) if ends(len) => {
            civil.offset_s = Some(seconds);
            (civil, at + space + len)
        }
        _ => match rest.get(..4) {
            Some(b" UTC" | b" GMT") if rest.get(4).is_none_or(|c| !c.is_ascii_alphanumeric()) => {
                civil.offset_s = Some(0);
                (civil, at + 4)
            }
            _ => (civil, at),
        },
    }
}

/// Any civil layout of this module at the beginning of `b`.
pub fn any_civil(b: &[u8]) -> Option<(Civil, usize)> {
    match b.first()? {
        c if c.is_ascii_digit() => iso8601(b).or_else(|| clf(b)).or_else(|| slashed(b)),
        c if c.is_ascii_alphabetic() => ctime(b).or_else(|| syslog(b)),
        _ => None,
    }
}

/// A decimal number in units of `unit_ns` nanoseconds: its value and its resolution in
/// nanoseconds. None for `-`, an empty text, or anything else that is no number.
pub fn decimal(b: &[u8], unit_ns: i64) -> Option<(i64, i64)> {
    let (negative, b) = match b.split_first()? {
        (b'-', rest) => (true, rest),
        (b'+', rest) => (false, rest),
        _ => (false, b),
    };
    let (mut at, mut whole) = (0, 0i64);
    while let Some(c) = b.get(at).filter(|c| c.is_ascii_digit()) {
        whole = whole.checked_mul(10)?.checked_add(i64::from(c - b'0'))?;
        at += 1;
    }
    if at == 0 || at > 19 {
        return None;
    }
    let (mut value, mut resolution) = (whole.checked_mul(unit_ns)?, unit_ns);
    match b.get(at..) {
        None | Some([]) => {}
        Some([b'.', fraction @ ..]) => {
            for c in fraction {
                match c {
                    b'0'..=b'9' => {
                        resolution /= 10;
                        value = value.checked_add(i64::from(c - b'0') * resolution)?;
                    }
                    b'e' | b'E' => return scientific(b, unit_ns, negative),
                    _ => return None,
                }
            }
            resolution = resolution.max(1);
        }
        Some([b'e' | b'E', ..]) => return scientific(b, unit_ns, negative),
        Some(_) => return None,
    }
    Some((if negative { -value } else { value }, resolution))
}

/// `2.3e-05`, as JSON encoders write small floats.
fn scientific(b: &[u8], unit_ns: i64, negative: bool) -> Option<(i64, i64)> {
    let value: f64 = std::str::from_utf8(b).ok()?.parse().ok()?;
    let ns = value * unit_ns as f64;
    (ns.is_finite() && ns.abs() < 9.0e18).then(|| (if negative { -(ns as i64) } else { ns as i64 }, 1))
}

/// Seconds, milli-, micro- or nanoseconds since the epoch, told apart by their size: the time.
/// Sizes that would lie before 1973 in their unit are no times.
pub fn epoch(b: &[u8]) -> Option<Time> {
    let whole = b.iter().take_while(|c| c.is_ascii_digit()).count();
    let unit_ns = match whole {
        9..=10 => SECOND_NS,
        12..=13 => 1_000_000,
        15..=16 => 1_000,
        18..=19 => 1,
        _ => return None,
    };
    let (ns, resolution) = decimal(b, unit_ns)?;
    Some(Time::from_ns(ns, digits_of(resolution)))
}

/// Fractional digits of a second that a resolution stands for.
pub const fn digits_of(resolution_ns: i64) -> u8 {
    let mut digits = 0;
    let mut unit = SECOND_NS;
    while unit > resolution_ns && digits < 9 {
        unit /= 10;
        digits += 1;
    }
    digits
}

/// Resolution in nanoseconds of a time with that many fractional digits.
pub const fn resolution_of(digits: u8) -> i64 {
    let mut unit = SECOND_NS;
    let mut n = 0;
    while n < digits && n < 9 {
        unit /= 10;
        n += 1;
    }
    unit
}

/// A duration with its unit behind it: `5ms`, `1.5s`, `812µs`, `1m2.3s` (Go), `2 seconds`.
/// Value and resolution, ns.
pub fn duration(b: &[u8]) -> Option<(i64, i64)> {
    let (mut total, mut finest, mut rest) = (0i64, i64::MAX, b);
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let number = rest.iter().take_while(|c| c.is_ascii_digit() || **c == b'.').count();
        let after = rest.get(number..)?.trim_ascii_start();
        let unit_len = after.iter().take_while(|c| !c.is_ascii_digit() && **c != b' ').count();
        let unit_ns = match after.get(..unit_len)? {
            b"ns" => 1,
            // "µs" with U+00B5 or U+03BC.
            b"us" | b"\xc2\xb5s" | b"\xce\xbcs" => 1_000,
            b"ms" | b"msec" | b"msecs" | b"millis" | b"milliseconds" => 1_000_000,
            b"s" | b"sec" | b"secs" | b"second" | b"seconds" => SECOND_NS,
            b"m" | b"min" | b"mins" => 60 * SECOND_NS,
            b"h" => 3600 * SECOND_NS,
            _ => return None,
        };
        let (value, resolution) = decimal(rest.get(..number)?, unit_ns)?;
        total = total.checked_add(value)?;
        finest = finest.min(resolution);
        rest = after.get(unit_len..)?.trim_ascii_start();
    }
    Some((total, finest))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::super::LogContext;
    use super::super::clock::Clock;
    use super::*;
    use crate::model::options::ReadOptions;
    use chrono::Datelike;
    use proptest::prelude::*;

    fn clock(options: &ReadOptions, modified: Option<&str>) -> Clock {
        let modified_ns = modified.map(at);
        Clock::new(&LogContext { input: 0, name: "x", options, modified_ns })
    }

    fn at(text: &str) -> i64 {
        chrono::DateTime::parse_from_rfc3339(text).unwrap().timestamp_nanos_opt().unwrap()
    }

    #[test]
    fn every_layout_is_read() {
        let options = ReadOptions::default();
        let mut c = clock(&options, Some("2026-11-30T00:00:00Z"));
        for (text, expected) in [
            ("29/Nov/2026:19:38:38 +0000] x", "2026-11-29T19:38:38Z"),
            ("29/Nov/2026:14:38:38 -0500", "2026-11-29T19:38:38Z"),
            ("29/Nov/2026:19:50:39.518] f", "2026-11-29T19:50:39.518Z"),
            ("2026-11-29T19:38:38+00:00 127.0.0.1", "2026-11-29T19:38:38Z"),
            ("2026-11-29 14:50:39,123 -0500", "2026-11-29T19:50:39.123Z"),
            ("2026-11-29 19:50:39.123456 UTC", "2026-11-29T19:50:39.123456Z"),
            ("2026-11-29T19:50:39.604364000Z stderr", "2026-11-29T19:50:39.604364000Z"),
            ("2026/11/29 20:03:25 [error]", "2026-11-29T20:03:25Z"),
            ("Nov 29 19:50:42 edge-1", "2026-11-29T19:50:42Z"),
            ("Nov  9 19:50:42 edge-1", "2026-11-09T19:50:42Z"),
            ("Sun Nov 29 19:55:24.512077 2026] [x", "2026-11-29T19:55:24.512077Z"),
        ] {
            let (civil, len) = any_civil(text.as_bytes()).unwrap_or_else(|| panic!("{text}"));
            assert!(len <= text.len());
            assert_eq!(c.resolve(&civil).unwrap().to_string(), expected, "{text}");
        }
        let mut fresh = clock(&options, Some("2026-11-30T00:00:00Z"));
        let december = any_civil(b"Dec  9 19:50:42 edge-1").unwrap().0;
        assert_eq!(fresh.resolve(&december).unwrap().to_string(), "2025-12-09T19:50:42Z");
        // A time written in full says which year the others are of.
        assert_eq!(c.resolve(&december).unwrap().to_string(), "2026-12-09T19:50:42Z");
        for text in ["2026-13-29T19:38:38", "99/Nov/2026:19:38:38 +0000", "Nov 31 19:50:42", "29/Nov/2026:25:38:38"] {
            assert!(any_civil(text.as_bytes()).is_none_or(|(civil, _)| c.resolve(&civil).is_none()), "{text}");
        }
        assert!(any_civil(b"2026-11-29").is_none());
    }

    #[test]
    fn numbers_keep_their_resolution() {
        assert_eq!(decimal(b"0.005", SECOND_NS), Some((5_000_000, 1_000_000)));
        assert_eq!(decimal(b"2700620", 1000), Some((2_700_620_000, 1000)));
        assert_eq!(decimal(b"2.701e-06", SECOND_NS), Some((2701, 1)));
        assert_eq!(decimal(b"-1", 1_000_000), Some((-1_000_000, 1_000_000)));
        assert_eq!(decimal(b"-", SECOND_NS), None);
        assert_eq!(decimal(b"1x", SECOND_NS), None);
        assert_eq!(epoch(b"1795981118.589").unwrap().to_string(), "2026-11-29T19:38:38.589Z");
        assert_eq!(epoch(b"1795981836.4404132").unwrap().to_string(), "2026-11-29T19:50:36.4404132Z");
        assert_eq!(epoch(b"1795981981147").unwrap().to_string(), "2026-11-29T19:53:01.147Z");
        assert_eq!(epoch(b"404"), None);
        assert_eq!(duration(b"42ms"), Some((42_000_000, 1_000_000)));
        assert_eq!(duration(b"1m2.5s"), Some((62_500_000_000, 100_000_000)));
        assert_eq!(duration("812\u{b5}s".as_bytes()), Some((812_000, 1000)));
        assert_eq!(duration(b"x"), None);
    }

    proptest! {
        #[test]
        fn days_agree_with_chrono(days in 0i64..106_000) {
            let date = chrono::DateTime::from_timestamp(days * 86_400, 0).unwrap();
            prop_assert_eq!(days_from_civil(date.year(), date.month() as u8, date.day() as u8), days);
        }

        #[test]
        fn no_bytes_upset_a_parser(b in proptest::collection::vec(any::<u8>(), 0..40)) {
            let _ = (any_civil(&b), epoch(&b), decimal(&b, 1000), duration(&b), offset(&b), time_of_day(&b));
        }

        #[test]
        fn near_misses_do_not_upset_a_parser(b in "[0-9/:. TZ+A-Za-z,-]{0,40}") {
            let options = ReadOptions::default();
            let mut c = clock(&options, None);
            if let Some((civil, len)) = any_civil(b.as_bytes()) {
                prop_assert!(len <= b.len());
                let _ = c.resolve(&civil);
            }
        }
    }
}
