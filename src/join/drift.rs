//! How far one clock is off another, from moments that both saw: by how much, and whether it also
//! runs faster or slower.

use crate::model::options::GivenClock;
use crate::model::time::Time;

/// An offset with its error, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offset {
    /// Added to the source's times, at the moment that [`Drift::from`] names where there is a drift.
    pub ns: i64,
    /// The truth lies within this of it.
    pub error_ns: i64,
    /// How much the offset grows; none: not to be told from what was seen.
    pub drift: Option<Drift>,
}

/// A clock that runs at another speed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drift {
    /// What the offset grows by in a second of the source's clock, ns (so: parts in 10⁹).
    pub ns_per_s: i64,
    /// The truth lies within this of it.
    pub error_ns_per_s: i64,
    /// When the offset was as stated, on the source's clock.
    pub from: Time,
}

const SECOND_NS: i64 = 1_000_000_000;
/// Fewer moments than this tell an offset and no drift.
const ENOUGH: usize = 8;
/// A shorter span tells no drift, ns.
const SPAN_NS: i64 = 60 * SECOND_NS;
/// What a drift must amount to over the span before it is told from how long requests take, ns.
const AMOUNT_NS: i64 = 50_000_000;
/// No clock that anyone keeps is this wrong, ns a second: the moments are not the same ones.
const FASTEST_NS_PER_S: i64 = 5_000_000;
/// What a clock of which no drift is known may gain or lose, ns a second: what quartz does, where nothing keeps it.
const WANDER_NS_PER_S: i64 = 10_000;
/// Moments that a line is laid through.
const LOOK_AT: usize = 400;

impl Offset {
    /// A clock that is right, as far as `error_ns`.
    pub const fn none(error_ns: i64) -> Offset {
        Offset { ns: 0, error_ns, drift: None }
    }

    /// As it was given, for times about `at`: the further from where it was told, the less exactly it is known.
    pub fn given(clock: GivenClock, at: Time) -> Offset {
        let drift =
            |(ns_per_s, error_ns_per_s, from_ns)| Drift { ns_per_s, error_ns_per_s, from: Time::from_ns(from_ns, 9) };
        let (after_ns, drift) = (at.since(Time::from_ns(clock.at_ns, 9)).saturating_abs(), clock.drift.map(drift));
        let wander = grown(drift.map_or(WANDER_NS_PER_S, |d| d.error_ns_per_s), after_ns);
        Offset { ns: clock.ns, error_ns: clock.error_ns.saturating_add(wander), drift }
    }

    /// To be given to others; it was told about `at`.
    pub fn to_give(self, at: Time) -> GivenClock {
        let drift = self.drift.map(|d| (d.ns_per_s, d.error_ns_per_s, d.from.ns()));
        GivenClock { ns: self.ns, error_ns: self.error_ns, at_ns: at.ns(), drift }
    }

    /// What is added to a time of the source, ns.
    pub fn at(&self, t: Time) -> i64 {
        let grown = self.drift.map_or(0, |d| grown(d.ns_per_s, t.since(d.from)));
        self.ns.saturating_add(grown)
    }

    /// A time of the source on the reference clock.
    pub fn apply(&self, t: Time) -> Time {
        t.plus_ns(self.at(t))
    }

    /// Does it leave every time as it is?
    pub const fn is_none(&self) -> bool {
        self.ns == 0 && self.drift.is_none()
    }
}

fn grown(ns_per_s: i64, after_ns: i64) -> i64 {
    let product = i128::from(ns_per_s) * i128::from(after_ns) / i128::from(SECOND_NS);
    i64::try_from(product).unwrap_or(0)
}

/// The offset that `moments` show, each a time of the source and what has to be added to it; `error_ns`
/// is how exactly these are known. None where there are none.
pub fn fit(mut moments: Vec<(Time, i64)>, error_ns: i64) -> Option<Offset> {
    moments.sort_unstable();
    let (middle, spread) = middle(moments.iter().map(|(_, d)| *d).collect())?;
    let steady = Offset { ns: middle, error_ns: error_ns.max(spread), drift: None };
    Some(line(&moments, error_ns).filter(|o| o.error_ns < steady.error_ns).unwrap_or(steady))
}

/// The median, and the width of the inner eight tenths.
fn middle(mut values: Vec<i64>) -> Option<(i64, i64)> {
    values.sort_unstable();
    let at = |n: usize| values.get(n).copied();
    let spread = at(values.len() * 9 / 10)?.saturating_sub(at(values.len() / 10)?);
    Some((at(values.len() / 2)?, spread))
}

/// A line through the moments by the median of their slopes (Theil and Sen), which a few wrong ones do
/// not move; none where a line says no more than a constant.
fn line(moments: &[(Time, i64)], error_ns: i64) -> Option<Offset> {
    let step = moments.len().div_ceil(LOOK_AT).max(1);
    let some: Vec<(Time, i64)> = moments.iter().step_by(step).copied().collect();
    let (first, last) = (some.first()?.0, some.last()?.0);
    let span = last.since(first);
    if some.len() < ENOUGH || span < SPAN_NS {
        return None;
    }
    let mut slopes = vec![];
    for (i, (x, y)) in some.iter().enumerate() {
        for (later, z) in some.iter().skip(i + 1) {
            let apart = later.since(*x);
            if apart >= span / 3 {
                let rise = i128::from(z.saturating_sub(*y)) * i128::from(SECOND_NS) / i128::from(apart);
                slopes.push(i64::try_from(rise).ok()?);
            }
        }
    }
    if slopes.len() < ENOUGH {
        return None;
    }
    let (slope, _) = middle(slopes)?;
    let left = some.iter().map(|(x, y)| y.saturating_sub(grown(slope, x.since(first)))).collect();
    let (ns, spread) = middle(left)?;
    let amount = grown(slope, span).abs();
    let least = AMOUNT_NS.max(error_ns.saturating_mul(2)).max(spread.saturating_mul(4));
    let drift = Drift { ns_per_s: slope, error_ns_per_s: per_second(spread.max(error_ns), span), from: first };
    (amount > least && slope.abs() <= FASTEST_NS_PER_S).then_some(Offset {
        ns,
        error_ns: error_ns.max(spread),
        drift: Some(drift),
    })
}

fn per_second(ns: i64, span_ns: i64) -> i64 {
    let rate = i128::from(ns) * 2 * i128::from(SECOND_NS) / i128::from(span_ns.max(1));
    i64::try_from(rate).unwrap_or(i64::MAX)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: i64 = 1_000_000;

    fn at(ms: i64) -> Time {
        Time::from_ns(ms * MS, 3)
    }

    /// Moments every `every_s` seconds of a clock that is `off_ms` behind and loses `ppm`; `noise` of them.
    fn moments(count: i64, every_s: i64, off_ms: i64, ppm: i64) -> Vec<(Time, i64)> {
        let noise = |n: i64| (n * 7919 % 11 - 5) * MS / 5;
        (0..count).map(|n| (at(n * every_s * 1000), off_ms * MS + ppm * n * every_s * 1000 + noise(n))).collect()
    }

    #[test]
    fn a_clock_that_runs_slow_is_told_with_its_error() {
        let found = fit(moments(60, 30, 3000, 200), MS).unwrap();
        let drift = found.drift.unwrap();
        assert!((drift.ns_per_s - 200_000).abs() <= drift.error_ns_per_s, "{found:?}");
        assert!((found.ns - 3000 * MS).abs() <= found.error_ns && found.error_ns < 3 * MS, "{found:?}");
        assert!((found.at(at(1_770_000)) - (3000 * MS + 200 * 1_770_000)).abs() < 3 * MS);
    }

    #[test]
    fn too_few_or_too_short_give_the_offset_alone() {
        for few in [moments(7, 300, 3000, 200), moments(30, 1, 3000, 2000), moments(60, 30, 3000, 0)] {
            let found = fit(few, MS).unwrap();
            assert_eq!(found.drift, None);
            assert!((found.ns - 3000 * MS).abs() <= 600 * MS, "{found:?}");
        }
        assert_eq!(fit(vec![], MS), None);
    }

    #[test]
    fn a_clock_that_was_set_or_a_log_of_whole_seconds_shows_no_drift() {
        let set: Vec<(Time, i64)> = (0..60).map(|n| (at(n * 30_000), if n < 30 { 0 } else { 1000 * MS })).collect();
        let found = fit(set, MS).unwrap();
        assert_eq!((found.drift, found.error_ns), (None, 1000 * MS));
        assert_eq!(fit(moments(60, 30, 0, 100), 500 * MS).unwrap().drift, None);
    }

    proptest! {
        /// Whatever the moments, a time is moved without panic and no drift is beyond what clocks do.
        #[test]
        fn any_moments(all in prop::collection::vec((any::<i64>(), any::<i64>()), 0..40), error in 0i64..1_000_000_000) {
            let found = fit(all.iter().map(|(t, d)| (Time::from_ns(*t, 9), *d)).collect(), error);
            if let Some(o) = found {
                let _ = o.apply(Time::from_ns(i64::MAX, 9));
                prop_assert!(o.error_ns >= error);
                prop_assert!(o.drift.is_none_or(|d| d.ns_per_s.abs() <= FASTEST_NS_PER_S));
            }
        }
    }
}
