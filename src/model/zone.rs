//! Time zones of the IANA database, for local times that name none.

use jiff::tz::{AmbiguousOffset, Offset, TimeZone};
use jiff::{Timestamp, tz};
use std::str::FromStr;

/// A time zone. Its rules are read when it is asked for: tables of all zones that the program has to relocate
/// before it begins took half of its start.
#[derive(Clone, Debug)]
pub struct Zone(TimeZone);

/// How far a zone's clock was ahead of UTC at a local time, seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offsets {
    /// The clock showed it once.
    Once(i64),
    /// Set back, it showed it twice.
    Twice(i64, i64),
    /// Set forward, it did not show it: what it was before.
    Skipped(i64),
}

impl Zone {
    /// The zone's name in the database.
    pub fn name(&self) -> &str {
        self.0.iana_name().unwrap_or("UTC")
    }

    /// The offsets when a local clock showed `local_s`, seconds since 1970-01-01T00:00:00 of that clock; none
    /// for a year of more than four digits.
    pub fn offsets(&self, local_s: i64) -> Option<Offsets> {
        let shown = Offset::UTC.to_datetime(Timestamp::from_second(local_s).ok()?);
        let seconds = |offset: Offset| i64::from(offset.seconds());
        Some(match self.0.to_ambiguous_timestamp(shown).offset() {
            AmbiguousOffset::Unambiguous { offset } => Offsets::Once(seconds(offset)),
            AmbiguousOffset::Fold { before, after } => Offsets::Twice(seconds(before), seconds(after)),
            AmbiguousOffset::Gap { before, .. } => Offsets::Skipped(seconds(before)),
        })
    }
}

impl FromStr for Zone {
    type Err = jiff::Error;

    fn from_str(name: &str) -> Result<Zone, jiff::Error> {
        tz::db().get(name).map(Zone)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_set_shows_times_once_twice_or_never() {
        let berlin: Zone = "Europe/Berlin".parse().unwrap();
        let at = |text: &str| {
            let shown: jiff::civil::DateTime = text.parse().unwrap();
            berlin.offsets(Offset::UTC.to_timestamp(shown).unwrap().as_second()).unwrap()
        };
        assert_eq!(berlin.name(), "Europe/Berlin");
        assert_eq!(at("2026-01-10T12:00:00"), Offsets::Once(3600));
        assert_eq!(at("2026-10-25T02:30:00"), Offsets::Twice(7200, 3600));
        assert_eq!(at("2026-03-29T02:30:00"), Offsets::Skipped(3600));
        assert!(berlin.offsets(i64::MAX).is_none());
        assert!("Europe/Nowhere".parse::<Zone>().is_err());
    }
}
