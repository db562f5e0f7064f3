//! Values on the command line: lengths of time, sizes, points in time, bound names.

use crate::model::glob::glob;
use crate::model::report::{CallKey, Confidence};
use crate::model::time::Time;
use crate::model::zone::Zone;
use crate::report::filter::TimeBound;
use crate::rules::RULES;
use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime, Timelike};

/// A length of time such as `300s`, `5m`, `1.5h`, `250ms`; a bare number is seconds. Nanoseconds.
///
/// # Errors
/// A sentence that says what is accepted.
pub fn duration_ns(text: &str) -> Result<i64, String> {
    const UNITS: &[(&str, f64)] = &[
        ("ms", 1e6),
        ("us", 1e3),
        ("ns", 1.0),
        ("s", 1e9),
        ("m", 60e9),
        ("min", 60e9),
        ("h", 3600e9),
        ("d", 86_400e9),
    ];
    let (number, unit) = split_number(text);
    let scale = if unit.is_empty() { Some(1e9) } else { UNITS.iter().find(|(u, _)| *u == unit).map(|(_, s)| *s) };
    match (number.parse::<f64>(), scale) {
        (Ok(n), Some(scale)) if n >= 0.0 && n * scale < i64::MAX as f64 => Ok((n * scale) as i64),
        _ => Err("expected a length of time such as 300s, 5m, 1.5h or 250ms".into()),
    }
}

/// A call's key in the report, such as `c9`.
///
/// # Errors
/// A sentence that says what is accepted.
pub fn call_key(text: &str) -> Result<CallKey, String> {
    let number = text.strip_prefix('c').and_then(|n| n.parse().ok());
    number.map(CallKey).ok_or_else(|| "expected a call's key in the report, such as c9".into())
}

/// A size such as `512MiB`, `2G`, `1048576`, in bytes. `K`, `M`, `G` are powers of 1024, `kB`, `MB`, `GB` of 1000.
///
/// # Errors
/// A sentence that says what is accepted.
pub fn size_bytes(text: &str) -> Result<u64, String> {
    const UNITS: &[(&str, u64)] = &[
        ("", 1),
        ("b", 1),
        ("k", 1 << 10),
        ("kib", 1 << 10),
        ("kb", 1000),
        ("m", 1 << 20),
        ("mib", 1 << 20),
        ("mb", 1_000_000),
        ("g", 1 << 30),
        ("gib", 1 << 30),
        ("gb", 1_000_000_000),
        ("t", 1 << 40),
        ("tib", 1 << 40),
    ];
    let (number, unit) = split_number(text);
    let unit = unit.to_ascii_lowercase();
    match (number.parse::<f64>(), UNITS.iter().find(|(u, _)| *u == unit)) {
        (Ok(n), Some((_, scale))) if n > 0.0 && n * (*scale as f64) < 1e18 => Ok((n * *scale as f64) as u64),
        _ => Err("expected a size such as 512MiB, 2G or 1048576".into()),
    }
}

/// A whole number within these bounds.
///
/// # Errors
/// A sentence that says what is accepted.
pub fn whole<T: TryFrom<i64>, const LEAST: i64, const MOST: i64>(text: &str) -> Result<T, String> {
    let number = text.trim().parse::<i64>().ok().filter(|n| (LEAST..=MOST).contains(n));
    number.and_then(|n| T::try_from(n).ok()).ok_or_else(|| format!("expected a whole number from {LEAST} to {MOST}"))
}

fn split_number(text: &str) -> (&str, &str) {
    let text = text.trim();
    let cut = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(cut);
    (number, unit.trim_start())
}

/// A point in time: RFC 3339 (`2026-11-29T19:38:46Z`, any offset; without one UTC), a date, or a
/// time of day in UTC (`19:38:46`).
///
/// # Errors
/// A sentence that says what is accepted.
pub fn time_bound(text: &str) -> Result<TimeBound, String> {
    let text = text.trim();
    let digits = fraction_digits(text);
    let at = |ns: Option<i64>| ns.map(|ns| TimeBound::At(Time::from_ns(ns, digits)));
    let found = DateTime::parse_from_rfc3339(&text.replacen(' ', "T", 1))
        .ok()
        .and_then(|t| at(t.timestamp_nanos_opt()))
        .or_else(|| naive(text).and_then(|t| at(t.and_utc().timestamp_nanos_opt())))
        .or_else(|| {
            let day = NaiveDate::parse_from_str(text, "%Y-%m-%d").ok()?.and_time(NaiveTime::MIN);
            at(day.and_utc().timestamp_nanos_opt())
        })
        .or_else(|| clock_ns(text.trim_end_matches('Z')).map(TimeBound::Clock));
    found.ok_or_else(|| "expected a time such as 2026-11-29T19:38:46Z, or a time of day in UTC such as 19:38:46".into())
}

fn naive(text: &str) -> Option<NaiveDateTime> {
    ["%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%dT%H:%M"]
        .iter()
        .find_map(|f| NaiveDateTime::parse_from_str(&text.replacen(' ', "T", 1), f).ok())
}

fn clock_ns(text: &str) -> Option<i64> {
    let time = ["%H:%M:%S%.f", "%H:%M"].iter().find_map(|f| NaiveTime::parse_from_str(text, f).ok())?;
    Some(i64::from(time.num_seconds_from_midnight()) * 1_000_000_000 + i64::from(time.nanosecond()))
}

fn fraction_digits(text: &str) -> u8 {
    let fraction = text.split_once('.').map_or("", |(_, f)| f);
    fraction.bytes().take_while(u8::is_ascii_digit).count().min(9) as u8
}

/// A pattern of names of rules. One that fits none would find nothing, and look like a clean report.
///
/// # Errors
/// A sentence that says what is accepted.
pub fn rule_pattern(text: &str) -> Result<String, String> {
    let is_there = RULES.iter().any(|rule| glob(text, rule.name));
    is_there.then(|| text.to_owned()).ok_or_else(|| "no rule is named so; `crosswire rules` lists them".into())
}

/// `possible`, `probable` or `certain`.
///
/// # Errors
/// A sentence that says what is accepted.
pub fn confidence(text: &str) -> Result<Confidence, String> {
    match text {
        "possible" => Ok(Confidence::Possible),
        "probable" => Ok(Confidence::Probable),
        "certain" => Ok(Confidence::Certain),
        _ => Err("expected possible, probable or certain".into()),
    }
}

/// A share in percent, `0` to `100`, with or without `%`.
///
/// # Errors
/// A sentence that says what is accepted.
pub fn percent(text: &str) -> Result<f64, String> {
    match text.trim_end_matches('%').parse::<f64>() {
        Ok(n) if (0.0..=100.0).contains(&n) => Ok(n),
        _ => Err("expected a percentage from 0 to 100".into()),
    }
}

/// A time zone by its name in the IANA database.
///
/// # Errors
/// A sentence that says what is accepted.
pub fn zone(text: &str) -> Result<Zone, String> {
    text.parse().map_err(|_| "expected a time zone of the IANA database such as UTC or Europe/Berlin".into())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time() {
        for (text, ns) in [
            ("300s", 300_000_000_000),
            ("5m", 300_000_000_000),
            ("1.5h", 5_400_000_000_000),
            ("250ms", 250_000_000),
            ("7", 7_000_000_000),
        ] {
            assert_eq!(duration_ns(text), Ok(ns), "{text}");
        }
        for text in ["", "m", "5 parsecs", "-1s", "1e99s"] {
            assert!(duration_ns(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sizes() {
        assert_eq!(size_bytes("512MiB"), Ok(512 << 20));
        assert_eq!(size_bytes("2G"), Ok(2 << 30));
        assert_eq!(size_bytes("1.5 kB"), Ok(1500));
        assert!(size_bytes("0").is_err() && size_bytes("many").is_err());
    }

    #[test]
    fn whole_numbers() {
        assert_eq!(whole::<u16, 40, 65535>("80"), Ok(80));
        for text in ["", "wide", "39", "65536", "80.5", "-80"] {
            assert_eq!(whole::<u16, 40, 65535>(text), Err("expected a whole number from 40 to 65535".into()), "{text}");
        }
    }

    #[test]
    fn points_in_time() {
        let at = |text: &str| match time_bound(text).unwrap() {
            TimeBound::At(t) => t.to_string(),
            TimeBound::Clock(ns) => format!("clock {ns}"),
        };
        assert_eq!(at("2026-11-29T19:38:46.5Z"), "2026-11-29T19:38:46.5Z");
        assert_eq!(at("2026-11-29T14:38:46-05:00"), "2026-11-29T19:38:46Z");
        assert_eq!(at("2026-11-29 19:38:46"), "2026-11-29T19:38:46Z");
        assert_eq!(at("2026-11-29"), "2026-11-29T00:00:00Z");
        assert_eq!(at("00:01:02.5"), "clock 62500000000");
        assert_eq!(at("00:01"), "clock 60000000000");
        assert!(time_bound("yesterday").is_err());
    }
}
