//! Clock readings as log lines carry them, and what it takes to make instants of them.
//!
//! A reading may lack its zone, its year or its whole date. [`LocalClock`] fills these in from
//! `--tz` and `--year`, else from what it was told of the neighbourhood, and says when it had to.

use crate::model::options::ReadOptions;
use crate::model::record::When;
use crate::model::time::Time;
use crate::model::zone::{Offsets, Zone};

/// Nanoseconds of a second.
pub(super) const SECOND_NS: i64 = 1_000_000_000;
/// Nanoseconds of a day.
pub(super) const DAY_NS: i64 = 86_400 * SECOND_NS;

/// What a reading says of its date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Date {
    /// Days since 1970-01-01.
    Full(i64),
    /// Month and day without a year.
    MonthDay(u8, u8),
    /// A time of day alone.
    None,
}

/// A clock reading before its missing parts are filled in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reading {
    /// The date.
    pub date: Date,
    /// Nanoseconds since midnight.
    pub day_ns: i64,
    /// Fractional digits of a second.
    pub digits: u8,
    /// Seconds east of UTC; none: local time of an unnamed zone.
    pub offset_s: Option<i32>,
}

impl Reading {
    /// A reading of an instant in UTC, ns since the epoch.
    pub fn utc(ns: i64, digits: u8) -> Reading {
        Reading { date: Date::Full(ns.div_euclid(DAY_NS)), day_ns: ns.rem_euclid(DAY_NS), digits, offset_s: Some(0) }
    }
}

/// Days since 1970-01-01 of a date of the proleptic Gregorian calendar.
pub(super) fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let y = if month <= 2 { year - 1 } else { year };
    let era = y.div_euclid(400);
    let yoe = y.rem_euclid(400);
    let doy = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let doe = yoe * 365 + yoe / 4 - yoe / 100 + doy;
    era * 146_097 + doe - 719_468
}

/// Year, month and day of days since 1970-01-01.
pub(super) fn civil_from_days(days: i64) -> (i64, u8, u8) {
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let doe = z.rem_euclid(146_097);
    let yoe = (doe - doe / 1460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let day = doy - (153 * mp + 2) / 5 + 1;
    let month = if mp < 10 { mp + 3 } else { mp - 9 };
    (yoe + era * 400 + i64::from(month <= 2), month as u8, day as u8)
}

/// Years whose instants a count of nanoseconds can hold.
const YEARS: std::ops::RangeInclusive<i64> = 1970..=2261;

fn number(bytes: &[u8]) -> Option<i64> {
    let mut n = 0i64;
    for b in bytes {
        n = n.checked_mul(10)?.checked_add(i64::from(digit(*b)?))?;
    }
    Some(n)
}

fn digit(b: u8) -> Option<u8> {
    b.is_ascii_digit().then(|| b - b'0')
}

/// Month 1–12 of its English three letters.
pub(super) fn month(name: &[u8]) -> Option<u8> {
    const NAMES: &[u8] = b"JanFebMarAprMayJunJulAugSepOctNovDec";
    NAMES.chunks(3).position(|m| Some(m) == name.get(..3)).map(|i| i as u8 + 1)
}

/// `hh:mm:ss` with an optional fraction after `.` or `,`: ns since midnight, digits, length.
pub(super) fn time_of_day(s: &[u8]) -> Option<(i64, u8, usize)> {
    if s.len() < 8 || s.get(2) != Some(&b':') || s.get(5) != Some(&b':') {
        return None;
    }
    let (h, m, sec) = (number(s.get(0..2)?)?, number(s.get(3..5)?)?, number(s.get(6..8)?)?);
    if h > 23 || m > 59 || sec > 60 {
        return None;
    }
    let mut ns = ((h * 60 + m) * 60 + sec) * SECOND_NS;
    let (mut at, mut digits) = (8, 0u8);
    if matches!(s.get(8), Some(b'.' | b',')) && s.get(9).is_some_and(u8::is_ascii_digit) {
        at = 9;
        let mut unit = SECOND_NS / 10;
        while let Some(d) = s.get(at).copied().and_then(digit) {
            if digits < 9 {
                ns += i64::from(d) * unit;
                unit /= 10;
                digits += 1;
            }
            at += 1;
        }
    }
    Some((ns, digits, at))
}

/// A numeric zone (`Z`, `+hh:mm`, `-hhmm`, `+hh`): seconds east of UTC and its length.
pub(super) fn zone(s: &[u8]) -> Option<(i32, usize)> {
    let sign = match s.first()? {
        b'Z' => return Some((0, 1)),
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let h = number(s.get(1..3)?)?;
    let (m, len) = match s.get(3) {
        Some(b':') => (number(s.get(4..6)?)?, 6),
        Some(b) if b.is_ascii_digit() => (number(s.get(3..5)?)?, 5),
        _ => (0, 3),
    };
    (h <= 18 && m <= 59).then_some((sign * (h as i32 * 3600 + m as i32 * 60), len))
}

/// Seconds east of UTC of a zone abbreviation that means one thing in logs. Those that mean
/// several (`IST`, `CST` in China) are read as the reading most logs mean, or not at all.
pub(super) fn zone_name(name: &[u8]) -> Option<i32> {
    Some(match name {
        b"UTC" | b"GMT" | b"WET" | b"UCT" => 0,
        b"CET" | b"BST" | b"WEST" | b"MEZ" => 3600,
        b"CEST" | b"EET" | b"MESZ" | b"SAST" => 7200,
        b"EEST" | b"MSK" => 10_800,
        b"EST" | b"CDT" => -5 * 3600,
        b"EDT" => -4 * 3600,
        b"CST" | b"MDT" => -6 * 3600,
        b"MST" | b"PDT" => -7 * 3600,
        b"PST" | b"AKDT" => -8 * 3600,
        b"AKST" => -9 * 3600,
        b"HST" => -10 * 3600,
        b"JST" | b"KST" => 9 * 3600,
        b"AEST" => 10 * 3600,
        b"AEDT" => 11 * 3600,
        b"NZST" => 12 * 3600,
        b"NZDT" => 13 * 3600,
        _ => return zone(name).filter(|(_, n)| *n == name.len()).map(|(s, _)| s),
    })
}

/// `2026-11-29T14:50:39.123+01:00` and its kin: `/` in dates, space for `T`, comma for the
/// point, the zone absent, apart, or `UTC`. The reading and its length.
pub(super) fn iso(s: &[u8]) -> Option<(Reading, usize)> {
    let sep = *s.get(4)?;
    if (sep != b'-' && sep != b'/') || s.get(7) != Some(&sep) || !matches!(s.get(10)?, b'T' | b't' | b' ' | b'_') {
        return None;
    }
    let (y, mo, d) = (number(s.get(0..4)?)?, number(s.get(5..7)?)?, number(s.get(8..10)?)?);
    if !YEARS.contains(&y) || !(1..=12).contains(&mo) || !(1..=31).contains(&d) {
        return None;
    }
    let (day_ns, digits, len) = time_of_day(s.get(11..)?)?;
    let mut end = 11 + len;
    let rest = s.get(end..).unwrap_or_default();
    let mut offset_s = None;
    if let Some((o, n)) = zone(rest) {
        (offset_s, end) = (Some(o), end + n);
    } else if rest.first() == Some(&b' ') {
        let apart = rest.get(1..).unwrap_or_default();
        match zone(apart).filter(|(_, n)| *n >= 5) {
            Some((o, n)) => (offset_s, end) = (Some(o), end + 1 + n),
            None if apart.starts_with(b"UTC") || apart.starts_with(b"GMT") => (offset_s, end) = (Some(0), end + 4),
            None => {}
        }
    }
    Some((Reading { date: Date::Full(days_from_civil(y, mo, d)), day_ns, digits, offset_s }, end))
}

/// `Nov 29 14:50:39.123456`, the day padded with a space or zero. The reading and its length.
pub(super) fn month_day(s: &[u8]) -> Option<(Reading, usize)> {
    let m = month(s)?;
    if s.get(3) != Some(&b' ') || s.get(6) != Some(&b' ') {
        return None;
    }
    let tens = match s.get(4)? {
        b' ' => 0,
        b => digit(*b)?,
    };
    let d = tens * 10 + digit(*s.get(5)?)?;
    let (day_ns, digits, len) = time_of_day(s.get(7..)?)?;
    (1..=31).contains(&d).then_some((Reading { date: Date::MonthDay(m, d), day_ns, digits, offset_s: None }, 7 + len))
}

/// `11/29/26 19:33:32`, Rich's date in the C locale. The reading and its length.
pub(super) fn us_date(s: &[u8]) -> Option<(Reading, usize)> {
    if s.get(2) != Some(&b'/') || s.get(5) != Some(&b'/') || s.get(8) != Some(&b' ') {
        return None;
    }
    let (m, d, y) = (number(s.get(0..2)?)?, number(s.get(3..5)?)?, number(s.get(6..8)?)?);
    if !(1..=12).contains(&m) || !(1..=31).contains(&d) {
        return None;
    }
    let (day_ns, digits, len) = time_of_day(s.get(9..)?)?;
    let date = Date::Full(days_from_civil(2000 + y, m, d));
    Some((Reading { date, day_ns, digits, offset_s: None }, 9 + len))
}

/// `29/Nov/2026:19:55:19 +0000`, the Common Log Format's. The reading and its length.
pub(super) fn clf(s: &[u8]) -> Option<(Reading, usize)> {
    if s.get(2) != Some(&b'/') || s.get(6) != Some(&b'/') || s.get(11) != Some(&b':') {
        return None;
    }
    let (d, m, y) = (number(s.get(0..2)?)?, month(s.get(3..6)?)?, number(s.get(7..11)?)?);
    let (day_ns, digits, len) = time_of_day(s.get(12..)?)?;
    let mut end = 12 + len;
    let offset = s.get(end + 1..).and_then(zone);
    if let Some((_, n)) = offset {
        end += 1 + n;
    }
    let date = Date::Full(days_from_civil(y, i64::from(m), d));
    let sane = (1..=31).contains(&d) && YEARS.contains(&y);
    sane.then_some((Reading { date, day_ns, digits, offset_s: offset.map(|o| o.0) }, end))
}

/// Seconds, ms, µs or ns since the epoch, told apart by their size, with an optional fraction.
/// Only readings after 2001 and before 2286 are taken for one. The reading and its length.
pub(super) fn epoch(s: &[u8]) -> Option<(Reading, usize)> {
    let whole = s.iter().take_while(|b| b.is_ascii_digit()).count();
    let n = number(s.get(..whole).filter(|w| matches!(w.len(), 10 | 13 | 16 | 19))?)?;
    let (unit, mut digits) = match whole {
        10 => (SECOND_NS, 0),
        13 => (1_000_000, 3),
        16 => (1000, 6),
        _ => (1, 9),
    };
    let mut ns = n.checked_mul(unit)?;
    let mut end = whole;
    if s.get(end) == Some(&b'.') && s.get(end + 1).is_some_and(u8::is_ascii_digit) {
        end += 1;
        let mut u = unit / 10;
        while let Some(d) = s.get(end).copied().and_then(digit) {
            if u > 0 {
                ns = ns.checked_add(i64::from(d) * u)?;
                u /= 10;
                digits += 1;
            }
            end += 1;
        }
    }
    (ns > 978_307_200 * SECOND_NS).then_some((Reading::utc(ns, digits.min(9)), end))
}

/// The first full date and time anywhere in `text`, to place readings that lack their year.
pub(super) fn find_full(text: &[u8]) -> Option<Reading> {
    memchr::memchr_iter(b':', text).find_map(|colon| {
        // "2026-11-29T14:" and "11/29/26 14:" end in the first colon of the time
        let iso_at = colon.checked_sub(13).and_then(|at| text.get(at..)).and_then(iso);
        iso_at.or_else(|| colon.checked_sub(11).and_then(|at| text.get(at..)).and_then(us_date)).map(|(r, _)| r)
    })
}

/// An instant made of a reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Instant {
    /// The middle of the interval that the reading's resolution leaves open.
    pub when: When,
    /// A zone, year or date had to be inferred.
    pub inferred: bool,
}

/// Fills in what readings lack.
#[derive(Clone, Debug)]
pub(super) struct LocalClock {
    tz: Option<Zone>,
    /// An offset inferred from readings that carry their zone.
    assumed_s: Option<i32>,
    year: Option<i64>,
    year_is_given: bool,
    modified_ns: Option<i64>,
    last_month: u8,
    /// The last instant resolved, ns.
    last_ns: Option<i64>,
    /// Hour (of local wall time) and its offset from UTC, ns.
    hour: Option<(i64, i64)>,
}

impl LocalClock {
    /// A clock for one input.
    pub fn new(options: &ReadOptions, modified_ns: Option<i64>) -> LocalClock {
        LocalClock {
            tz: options.tz.clone(),
            assumed_s: None,
            year: options.year.map(i64::from),
            year_is_given: options.year.is_some(),
            modified_ns,
            last_month: 0,
            last_ns: None,
            hour: None,
        }
    }

    /// Would a reading without a year have to be guessed?
    pub fn lacks_year(&self) -> bool {
        self.year.is_none()
    }

    /// Would a local reading have to be guessed?
    pub fn lacks_zone(&self) -> bool {
        self.tz.is_none() && self.assumed_s.is_none()
    }

    /// A neighbouring reading shows the year (and, with a zone of its own, the offset) in which
    /// `reading` must be understood.
    pub fn learn(&mut self, reading: &Reading, neighbour: &Reading) {
        let Date::Full(days) = neighbour.date else { return };
        let near_utc = days * DAY_NS + neighbour.day_ns - i64::from(neighbour.offset_s.unwrap_or(0)) * SECOND_NS;
        if let (Date::MonthDay(m, d), true) = (reading.date, self.lacks_year()) {
            let (y, _, _) = civil_from_days(days);
            let gap = |y: i64| (days_from_civil(y, i64::from(m), i64::from(d)) - days).abs();
            self.year = [y - 1, y, y + 1].into_iter().min_by_key(|y| gap(*y)).filter(|y| gap(*y) <= 2);
        }
        if self.lacks_zone() && neighbour.offset_s.is_some() && reading.offset_s.is_none() {
            let days = match (reading.date, self.year) {
                (Date::Full(d), _) => d,
                (Date::MonthDay(m, d), Some(y)) => days_from_civil(y, i64::from(m), i64::from(d)),
                _ => return,
            };
            const QUARTER_NS: i64 = 900 * SECOND_NS;
            let apart = days * DAY_NS + reading.day_ns - near_utc;
            let quarters = (apart + QUARTER_NS / 2).div_euclid(QUARTER_NS);
            if (apart - quarters * QUARTER_NS).abs() <= 120 * SECOND_NS && quarters.abs() <= 14 * 4 {
                self.assumed_s = Some(quarters as i32 * 900);
            }
        }
    }

    /// The instant of a reading; none where even its date cannot be inferred.
    pub fn resolve(&mut self, r: &Reading) -> Option<Instant> {
        let mut inferred = false;
        let days = match r.date {
            Date::Full(days) => days,
            Date::MonthDay(m, d) => {
                inferred |= !self.year_is_given;
                days_from_civil(self.year_of(m, d, r.day_ns), i64::from(m), i64::from(d))
            }
            Date::None => {
                inferred = true;
                self.day_of(r.day_ns)?
            }
        };
        let wall_ns = days.checked_mul(DAY_NS)?.checked_add(r.day_ns)?;
        let ns = match r.offset_s {
            Some(s) => wall_ns.saturating_sub(i64::from(s) * SECOND_NS),
            None => {
                inferred |= self.tz.is_none();
                wall_ns.saturating_sub(self.offset_ns(wall_ns))
            }
        };
        self.last_ns = Some(ns);
        // microseconds are exact enough, and journals write them in several ways
        let half = if r.digits >= 6 { 0 } else { 10i64.pow(9 - u32::from(r.digits)) / 2 };
        let when = When { at: Time::from_ns(ns.saturating_add(half), r.digits), error_ns: half.max(1000) };
        Some(Instant { when, inferred })
    }

    /// The year of a month and day: the one given or learnt, moved on when December turns into
    /// January; else the last in which it is not after the file's modification (or now).
    fn year_of(&mut self, m: u8, d: u8, day_ns: i64) -> i64 {
        let year = match self.year {
            Some(y) if self.last_month >= 11 && m <= 2 => y + 1,
            Some(y) if self.last_month <= 2 && self.last_month > 0 && m >= 11 => y - 1,
            Some(y) => y,
            None => {
                let end = self.modified_ns.unwrap_or_else(|| chrono::Utc::now().timestamp_nanos_opt().unwrap_or(0));
                let (y, _, _) = civil_from_days(end.div_euclid(DAY_NS));
                let at = days_from_civil(y, i64::from(m), i64::from(d)) * DAY_NS + day_ns;
                if at > end + DAY_NS { y - 1 } else { y }
            }
        };
        self.year = Some(year);
        self.last_month = m;
        year
    }

    /// The day of a time of day: the one nearest to the last instant, else to the modification.
    fn day_of(&mut self, day_ns: i64) -> Option<i64> {
        let near_utc = self.last_ns.or(self.modified_ns)?;
        let near = near_utc + self.offset_ns(near_utc);
        let day = near.div_euclid(DAY_NS);
        [day - 1, day, day + 1].into_iter().min_by_key(|d| (d * DAY_NS + day_ns - near).abs())
    }

    fn offset_ns(&mut self, wall_ns: i64) -> i64 {
        let Some(tz) = &self.tz else {
            return i64::from(self.assumed_s.unwrap_or(0)) * SECOND_NS;
        };
        let hour = wall_ns.div_euclid(3600 * SECOND_NS);
        if let Some((h, o)) = self.hour
            && h == hour
        {
            return o;
        }
        match tz.offsets(wall_ns.div_euclid(SECOND_NS)) {
            Some(Offsets::Once(offset)) => {
                let offset = offset * SECOND_NS;
                self.hour = Some((hour, offset));
                offset
            }
            // an hour that the clock went through twice: the second time where the first would run backwards
            Some(Offsets::Twice(first, second)) => match self.last_ns {
                Some(last) if wall_ns - first * SECOND_NS < last => second * SECOND_NS,
                _ => first * SECOND_NS,
            },
            Some(Offsets::Skipped(before)) => before * SECOND_NS,
            None => 0,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    fn show(clock: &mut LocalClock, r: Option<(Reading, usize)>) -> String {
        clock.resolve(&r.unwrap().0).unwrap().when.at.to_string()
    }

    #[test]
    fn dates_go_there_and_back() {
        for days in (-800_000..800_000).step_by(97) {
            let (y, m, d) = civil_from_days(days);
            assert_eq!(days_from_civil(y, i64::from(m), i64::from(d)), days);
        }
    }

    #[test]
    fn readings_of_every_layout() {
        let mut c = LocalClock::new(&ReadOptions { year: Some(2026), ..ReadOptions::default() }, None);
        assert_eq!(show(&mut c, iso(b"2026-11-29T14:50:39.484364-0500 x")), "2026-11-29T19:50:39.484364Z");
        assert_eq!(show(&mut c, iso(b"2026-11-29 14:50:39,123 - x")), "2026-11-29T14:50:39.123Z");
        assert_eq!(show(&mut c, iso(b"2026-11-29 19:50:39 +0100] x")), "2026-11-29T18:50:39Z");
        assert_eq!(show(&mut c, iso(b"2026/11/29 14:50:39 x")), "2026-11-29T14:50:39Z");
        assert_eq!(show(&mut c, month_day(b"Nov  3 09:47:02 veridian")), "2026-11-03T09:47:02Z");
        assert_eq!(show(&mut c, us_date(b"11/29/26 19:33:32]")), "2026-11-29T19:33:32Z");
        assert_eq!(show(&mut c, clf(b"29/Nov/2026:19:55:19 -0100]")), "2026-11-29T20:55:19Z");
        assert_eq!(show(&mut c, epoch(b"1795981839.484364 h")), "2026-11-29T19:50:39.484364Z");
        assert_eq!(show(&mut c, epoch(b"1795981839484364 h")), "2026-11-29T19:50:39.484364Z");
        for not in [&b"2026-13-29T14:50:39"[..], b"2026-11-29T24:50:39", b"2026-11-29", b"26-11-29T14:50:39Z"] {
            assert_eq!(iso(not), None);
        }
        assert_eq!(epoch(b"12345678 x"), None);
    }

    #[test]
    fn the_hour_that_comes_twice_and_the_year_that_turns() {
        let options = ReadOptions { tz: "America/New_York".parse().ok(), year: Some(2024), ..ReadOptions::default() };
        let mut c = LocalClock::new(&options, None);
        assert_eq!(show(&mut c, month_day(b"Nov  3 01:59:14 h")), "2024-11-03T05:59:14Z");
        assert_eq!(show(&mut c, month_day(b"Nov  3 01:24:56 h")), "2024-11-03T06:24:56Z");
        assert_eq!(show(&mut c, month_day(b"Dec 31 23:59:59 h")), "2025-01-01T04:59:59Z");
        assert_eq!(show(&mut c, month_day(b"Jan  1 00:00:01 h")), "2025-01-01T05:00:01Z");
    }

    #[test]
    fn year_and_zone_are_learnt_from_neighbours() {
        let mut c = LocalClock::new(&ReadOptions::default(), None);
        let outer = month_day(b"Nov 29 14:50:39 h").unwrap().0;
        c.learn(&outer, &find_full(b"x 2026-11-29T19:50:39.604Z INFO").unwrap());
        let i = c.resolve(&outer).unwrap();
        assert_eq!((i.when.at.to_string().as_str(), i.inferred), ("2026-11-29T19:50:39Z", true));
        let mut c = LocalClock::new(&ReadOptions::default(), Some(1_770_000_000 * SECOND_NS)); // 2026-02-02
        assert_eq!(show(&mut c, month_day(b"Nov 29 14:50:39 h")), "2025-11-29T14:50:39Z");
    }
}
