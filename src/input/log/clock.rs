//! The zone, year and date that a log's times leave out.

use super::LogContext;
use super::time::{Civil, SECOND_NS, days_from_civil, days_in_month};
use crate::model::time::Time;
use crate::model::zone::{Offsets, Zone};
use chrono::Datelike;

/// What had to be inferred to place a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inferred {
    /// The zone: UTC was taken.
    Zone,
    /// The year: the last one that does not lie after the file's modification.
    Year,
    /// The date: only a time of day was written.
    Date,
    /// The year, and the zone.
    YearAndZone,
    /// The date, and the zone.
    DateAndZone,
}

impl Inferred {
    /// What was assumed and how to say better.
    pub const fn text(self) -> &'static str {
        match self {
            Inferred::Zone => "local times without a zone were taken as UTC; --tz ZONE says otherwise",
            Inferred::Year => {
                "times without a year were given the last one not after the file's own date; --year N says otherwise"
            }
            Inferred::Date => {
                "times without a date were put on the day that the text names before, else on that of the file, else on \
                 1970-01-01: then only their order and distance are known"
            }
            Inferred::YearAndZone => {
                "times without a year were given the last one not after the file's own date, and taken as UTC, as no zone \
                 is written; --year N and --tz ZONE say otherwise"
            }
            Inferred::DateAndZone => {
                "times without a date were put on the day that the text names before, else on that of the file, else on \
                 1970-01-01 (then only their order and distance are known), and taken as UTC, as no zone stands on the \
                 line; --tz ZONE says otherwise"
            }
        }
    }
}

/// Places civil times on the time line: `--tz`, `--year` and the file's own date stand in for
/// what a layout leaves out.
#[derive(Clone, Debug)]
pub struct Clock {
    tz: Option<Zone>,
    year: Option<i32>,
    modified_ns: Option<i64>,
    /// Last zone look-up: quarter hour of local time and its offset in seconds.
    zone_cache: Option<(i64, i64)>,
    /// The last time written in full, ns: those without a year are near it.
    last_full_ns: Option<i64>,
    /// A written date that times without one follow, and the last such time of day, ns.
    date: Option<(i32, u8, u8)>,
    last_of_day: Option<i64>,
    days_passed: i64,
    inferred: Option<Inferred>,
}

impl Clock {
    /// A clock for one input.
    pub fn new(context: &LogContext<'_>) -> Clock {
        Clock {
            tz: context.options.tz.clone(),
            year: context.options.year,
            modified_ns: context.modified_ns,
            zone_cache: None,
            last_full_ns: None,
            date: None,
            last_of_day: None,
            days_passed: 0,
            inferred: None,
        }
    }

    /// What the last [`Clock::resolve`] had to infer, once.
    pub fn take_inferred(&mut self) -> Option<Inferred> {
        self.inferred.take()
    }

    /// Remembers a date that a text names, for times of day that follow without one.
    pub fn saw_date(&mut self, year: i32, month: u8, day: u8) {
        if self.date != Some((year, month, day)) {
            self.date = Some((year, month, day));
            self.last_of_day = None;
            self.days_passed = 0;
        }
    }

    /// Remembers a time that a text writes in full: times of day that follow go on from it, over midnight too.
    pub fn saw(&mut self, civil: &Civil) {
        if let (Some(year), Some((month, day))) = (civil.year, civil.month_day) {
            self.date = Some((year, month, day));
            self.last_of_day = Some(civil.local_ns(1970, (1, 1)));
            self.days_passed = 0;
        }
    }

    /// The instant that `civil` names; none where its fields are out of range.
    pub fn resolve(&mut self, civil: &Civil) -> Option<Time> {
        if !civil.is_valid() {
            return None;
        }
        let local = match (civil.month_day, civil.year) {
            (Some(md), Some(year)) => {
                let local = civil.local_ns(year, md);
                self.last_full_ns = Some(local);
                local
            }
            (Some(md), None) => {
                let year = match self.year {
                    Some(year) => year,
                    None => self.infer_year(civil, md),
                };
                // 29 February of a year that has none is no time.
                if md.1 > days_in_month(year, md.0) {
                    return None;
                }
                civil.local_ns(year, md)
            }
            (None, _) => self.on_running_date(civil),
        };
        let offset_s = match civil.offset_s {
            Some(offset) => i64::from(offset),
            None => self.zone_offset(local),
        };
        Some(Time::from_ns(local.saturating_sub(offset_s * SECOND_NS), civil.digits))
    }

    /// The year nearest to the last time that was written in full; without one, the last year in
    /// which the time does not lie more than a day after the file's modification (after now, for a
    /// stream).
    fn infer_year(&mut self, civil: &Civil, md: (u8, u8)) -> i32 {
        if let Some(near) = self.last_full_ns {
            let year = Time::from_ns(near, 0).utc().map_or(1970, |t| t.year());
            let distance = |y: i32| civil.local_ns(y, md).abs_diff(near);
            return [year, year - 1, year + 1].into_iter().min_by_key(|y| distance(*y)).unwrap_or(year);
        }
        self.inferred = Some(Inferred::Year);
        let latest = self
            .modified_ns
            .or_else(|| chrono::Utc::now().timestamp_nanos_opt())
            .unwrap_or(0)
            .saturating_add(86_400 * SECOND_NS);
        let mut year = Time::from_ns(latest, 0).utc().map_or(1970, |t| t.year());
        for _ in 0..8 {
            if md.1 <= days_in_month(year, md.0) && civil.local_ns(year, md) <= latest {
                break;
            }
            year -= 1;
        }
        year
    }

    /// A time of day on the date last named, else the file's, else 1970-01-01 (which says that
    /// the day is not known); a time of day that falls back by hours begins the next day.
    fn on_running_date(&mut self, civil: &Civil) -> i64 {
        self.inferred = Some(Inferred::Date);
        let (year, month, day) = self.date.unwrap_or_else(|| {
            self.modified_ns
                .and_then(|ns| Time::from_ns(ns, 0).utc())
                .map_or((1970, 1, 1), |t| (t.year(), t.month() as u8, t.day() as u8))
        });
        let of_day = civil.local_ns(1970, (1, 1));
        if let Some(last) = self.last_of_day
            && of_day.saturating_add(12 * 3600 * SECOND_NS) < last
        {
            self.days_passed += 1;
        }
        self.last_of_day = Some(of_day);
        days_from_civil(year, month, day)
            .saturating_add(self.days_passed)
            .saturating_mul(86_400 * SECOND_NS)
            .saturating_add(of_day)
    }

    /// Offset of `--tz` at a local time, seconds; UTC where there is none.
    fn zone_offset(&mut self, local_ns: i64) -> i64 {
        let Some(tz) = &self.tz else {
            self.inferred = Some(match self.inferred {
                None | Some(Inferred::Zone) => Inferred::Zone,
                Some(Inferred::Year | Inferred::YearAndZone) => Inferred::YearAndZone,
                Some(Inferred::Date | Inferred::DateAndZone) => Inferred::DateAndZone,
            });
            return 0;
        };
        // Offsets change only at whole quarter hours.
        let quarter = local_ns.div_euclid(900 * SECOND_NS);
        if let Some((cached, offset)) = self.zone_cache
            && cached == quarter
        {
            return offset;
        }
        let offset = match tz.offsets(local_ns.div_euclid(SECOND_NS)) {
            Some(Offsets::Once(offset) | Offsets::Twice(offset, _) | Offsets::Skipped(offset)) => offset,
            None => 0,
        };
        self.zone_cache = Some((quarter, offset));
        offset
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;
    use crate::input::log::time::{any_civil, time_of_day};
    use crate::model::options::ReadOptions;

    fn clock(options: &ReadOptions) -> Clock {
        Clock::new(&LogContext { input: 0, name: "x", options, modified_ns: None })
    }

    #[test]
    fn zones_years_and_dates_come_from_where_the_user_says() {
        let options = ReadOptions { tz: "America/New_York".parse().ok(), year: Some(2024), ..ReadOptions::default() };
        let mut c = clock(&options);
        let t = |c: &mut Clock, s: &str| c.resolve(&any_civil(s.as_bytes()).unwrap().0).unwrap().to_string();
        assert_eq!(t(&mut c, "Nov 29 14:50:39"), "2024-11-29T19:50:39Z");
        assert_eq!(t(&mut c, "Jul 29 14:50:39"), "2024-07-29T18:50:39Z");
        // The hour that the change of clocks skips.
        assert_eq!(t(&mut c, "Mar 10 02:30:00"), "2024-03-10T07:30:00Z");
        assert_eq!(c.take_inferred(), None);

        let options = ReadOptions::default();
        let mut c = clock(&options);
        c.saw_date(2026, 7, 19);
        let mut day = |s: &str| c.resolve(&time_of_day(s.as_bytes()).unwrap().0).unwrap().to_string();
        assert_eq!(day("23:59:58"), "2026-07-19T23:59:58Z");
        assert_eq!(day("00:00:03"), "2026-07-20T00:00:03Z");
        assert_eq!(day("00:00:02"), "2026-07-20T00:00:02Z");
        assert_eq!(c.take_inferred(), Some(Inferred::DateAndZone));
    }
}
