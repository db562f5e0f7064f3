//! Times as clients write them.

use crate::input::log::LogContext;
use crate::model::record::When;
use crate::model::time::Time;
use chrono::{DateTime, LocalResult, NaiveDateTime, TimeZone, Utc};

/// Nanoseconds that the last of `digits` decimal places of a second stands for.
pub(super) const fn resolution_ns(digits: u8) -> i64 {
    10_i64.pow(9_u32.saturating_sub(digits as u32))
}

/// An RFC 3339 time. Its error is one unit of its last digit: clocks are cut, not rounded.
pub(super) fn rfc3339(text: &str) -> Option<When> {
    let t = DateTime::parse_from_rfc3339(text.trim()).ok()?;
    when(t.timestamp_nanos_opt()?, digits(text))
}

/// A local time `YYYY-MM-DD HH:MM:SS[.fff]` without a zone: of `--tz`, else taken as UTC (the
/// clock offset found in joining then holds the zone as well).
pub(super) fn local(text: &str, context: &LogContext<'_>) -> Option<When> {
    let naive = NaiveDateTime::parse_from_str(text, "%Y-%m-%d %H:%M:%S%.f").ok()?;
    let utc = match context.options.tz {
        None => Utc.from_utc_datetime(&naive),
        Some(tz) => match tz.from_local_datetime(&naive) {
            // In the hour that a zone has twice the earlier one is taken.
            LocalResult::Single(t) | LocalResult::Ambiguous(t, _) => t.with_timezone(&Utc),
            LocalResult::None => return None,
        },
    };
    when(utc.timestamp_nanos_opt()?, digits(text))
}

/// Moves a time by `ns` and widens its error by `error_ns`.
pub(super) fn moved(when: When, ns: i64, error_ns: i64) -> When {
    When { at: when.at.plus_ns(ns), error_ns: when.error_ns.saturating_add(error_ns) }
}

/// `812ms`, `1.5s`, `30s`, `2m 5s`, `1h`: as nanoseconds, with the last unit's size (what was cut off).
pub(super) fn duration(text: &str) -> Option<(i64, i64)> {
    let mut total = 0_f64;
    let mut unit_ns = 0_f64;
    let mut rest = text.trim();
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !(c.is_ascii_digit() || c == '.'))?;
        let (number, tail) = rest.split_at_checked(digits)?;
        let letters = tail.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(tail.len());
        let (unit, after) = tail.split_at_checked(letters)?;
        unit_ns = match unit {
            "ms" => 1e6,
            "s" => 1e9,
            "m" => 6e10,
            "h" => 3.6e12,
            _ => return None,
        };
        total += number.parse::<f64>().ok()? * unit_ns;
        rest = after.trim_start();
    }
    Some((total as i64, unit_ns as i64))
}

fn when(ns: i64, digits: u8) -> Option<When> {
    Some(When { at: Time::from_ns(ns, digits), error_ns: resolution_ns(digits) })
}

/// Fractional digits of a second in a time's text, at most 9.
fn digits(text: &str) -> u8 {
    text.split_once('.').map_or(0, |(_, f)| f.bytes().take_while(u8::is_ascii_digit).count().min(9) as u8)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    #[test]
    fn times_keep_their_digits() {
        let t = rfc3339("2026-11-29T19:41:55.562Z").unwrap();
        assert_eq!((t.at.to_string().as_str(), t.error_ns), ("2026-11-29T19:41:55.562Z", 1_000_000));
        assert_eq!(rfc3339("2026-11-29T14:41:55-05:00").unwrap().at.to_string(), "2026-11-29T19:41:55Z");
        assert!(rfc3339("2026-11-29 yesterday").is_none());
    }

    #[test]
    fn durations() {
        assert_eq!(duration("812ms"), Some((812_000_000, 1_000_000)));
        assert_eq!(duration("1.5s"), Some((1_500_000_000, 1_000_000_000)));
        assert_eq!(duration("2m 5s"), Some((125_000_000_000, 1_000_000_000)));
        assert_eq!(duration("soon"), None);
        assert_eq!(duration(""), None);
        assert_eq!(duration("5"), None);
    }
}
