//! Times as clients write them.

use crate::input::log::clock::Clock;
use crate::input::log::time::{self, SECOND_NS, days_from_civil, resolution_of};
use crate::input::log::{LogContext, RecordSink};
use crate::model::place::Place;
use crate::model::problem::ProblemKind;
use crate::model::record::When;
use crate::model::time::Time;

/// An RFC 3339 time with its zone. Its error is one unit of its last digit: clocks are cut, not
/// rounded.
pub(crate) fn rfc3339(text: &str) -> Option<When> {
    let text = text.trim();
    let (civil, length) = time::iso8601(text.as_bytes())?;
    let (year, (month, day), offset) = (civil.year?, civil.month_day?, civil.offset_s?);
    if length != text.len() || !civil.is_valid() {
        return None;
    }
    let clock = i64::from(civil.hour) * 3600 + i64::from(civil.minute) * 60 + i64::from(civil.second);
    let seconds = days_from_civil(year, month, day) * 86_400 + clock - i64::from(offset);
    let ns = seconds.checked_mul(SECOND_NS)?.checked_add(i64::from(civil.nanos))?;
    Some(exact(Time::from_ns(ns, civil.digits)))
}

/// Times without a zone, of `--tz` or else taken as UTC, which is said once.
pub(super) struct LocalTimes(Clock);

impl LocalTimes {
    pub(super) fn new(context: &LogContext<'_>) -> LocalTimes {
        LocalTimes(Clock::new(context))
    }

    /// The instant of `YYYY-MM-DD HH:MM:SS[.fff]`.
    pub(super) fn read(&mut self, text: &str, place: Place, out: &mut dyn RecordSink) -> Option<When> {
        let (civil, _) = time::iso8601(text.as_bytes())?;
        let at = self.0.resolve(&civil)?;
        if let Some(inferred) = self.0.take_inferred() {
            out.problem(ProblemKind::InferredTime, place, inferred.text());
        }
        Some(exact(at))
    }
}

/// A time known to its last digit.
fn exact(at: Time) -> When {
    When { at, error_ns: resolution_of(at.digits()) }
}

/// Moves a time by `ns` and widens its error by `error_ns`.
pub(super) fn moved(when: When, ns: i64, error_ns: i64) -> When {
    When { at: when.at.plus_ns(ns), error_ns: when.error_ns.saturating_add(error_ns) }
}

/// `812ms`, `30s`, `2m 5s`: nanoseconds, and the size of the last unit (what was cut off).
pub(super) fn duration(text: &str) -> Option<(i64, i64)> {
    time::duration(text.trim().as_bytes())
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
        assert!(rfc3339("2026-11-29T19:41:55").is_none());
        assert!(rfc3339("2026-02-30T19:41:55Z").is_none());
    }

    #[test]
    fn durations() {
        assert_eq!(duration("812ms"), Some((812_000_000, 1_000_000)));
        assert_eq!(duration("2m 5s"), Some((125_000_000_000, 1_000_000_000)));
        assert_eq!(duration("soon"), None);
        assert_eq!(duration(""), None);
    }
}
