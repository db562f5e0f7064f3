//! Which sources' clocks are known against each other's. Two may have nothing in common and each something with
//! a third, so that the order in which they come must not decide.

use super::clock::{self, Tick};
use super::drift::Offset;
use crate::model::options::GivenClock;
use crate::model::place::InputId;
use crate::model::time::Time;
use rustc_hash::FxHashMap;

/// An offset below this is taken for none: it is within what response times explain, ns.
const NOTHING_NS: i64 = 400_000_000;
/// Time zones differ by whole quarters of an hour, ns.
const QUARTER_NS: i64 = 900 * 1_000_000_000;
/// From the earliest to the latest, ns.
const ZONES_NS: i64 = 26 * 4 * QUARTER_NS;

/// A source and its moments.
#[derive(Clone)]
pub struct Source {
    /// Which.
    pub input: InputId,
    /// On its own clock.
    pub ticks: Vec<Tick>,
}

impl Source {
    fn middle(&self) -> Option<Time> {
        let first = self.ticks.iter().map(|t| t.at).min()?;
        let last = self.ticks.iter().map(|t| t.at).max()?;
        Some(first.plus_ns(last.since(first) / 2))
    }
}

/// Sources on one clock.
#[derive(Default)]
struct Island {
    ticks: Vec<Tick>,
    offsets: Vec<(InputId, Offset)>,
}

impl Island {
    /// Takes in all that have anything in common with it, through whichever of its sources; gives the others.
    fn gather(&mut self, sources: Vec<Source>) -> Vec<Source> {
        // With how many were in when it was last tried: it is not tried with the same ones again.
        let mut left: Vec<(Source, Option<usize>)> = sources.into_iter().map(|s| (s, None)).collect();
        loop {
            let before = left.len();
            left.retain_mut(|(source, tried)| {
                let is_new = tried.replace(self.offsets.len()) != Some(self.offsets.len());
                !(is_new && self.take(source))
            });
            if left.len() == before || left.is_empty() {
                return left.into_iter().map(|(source, _)| source).collect();
            }
        }
    }

    /// Takes in a source whose clock was told elsewhere. What it shows here stands against that where it is as exact,
    /// or the two cannot both be right: clocks are set anew.
    fn take_given(&mut self, source: &Source, given: GivenClock) {
        let at = source.middle().unwrap_or(Time::from_ns(given.at_ns, 9));
        let given = Offset::given(given, at);
        let is_better = |seen: &Offset| {
            let within = seen.error_ns.saturating_add(given.error_ns).saturating_add(NOTHING_NS);
            seen.error_ns <= given.error_ns || seen.at(at).saturating_sub(given.at(at)).saturating_abs() > within
        };
        let seen = clock::offset(&self.ticks, &source.ticks).map(in_zones).filter(is_better);
        self.add(source, seen.unwrap_or(given));
    }

    fn take(&mut self, source: &Source) -> bool {
        let found =
            if self.ticks.is_empty() { Some(Offset::none(0)) } else { clock::offset(&self.ticks, &source.ticks) };
        let Some(offset) = found.map(in_zones) else { return false };
        self.add(source, offset);
        true
    }

    fn add(&mut self, source: &Source, offset: Offset) {
        self.ticks.extend(source.ticks.iter().map(|t| Tick { at: offset.apply(t.at), ..t.clone() }));
        self.offsets.push((source.input, offset));
    }
}

/// The offset of each of `sources`, in their order, to the captures' clock (`wire`), else to that of the first of
/// those that most have in common; none: nothing to align it by. Where clocks are `given`, it is the one that these
/// are told by.
pub fn offsets(
    wire: Vec<Tick>,
    sources: Vec<Source>,
    given: &FxHashMap<InputId, GivenClock>,
) -> Vec<(InputId, Option<Offset>)> {
    let mut island = Island { ticks: wire, offsets: vec![] };
    let mut left = vec![];
    for source in &sources {
        match given.get(&source.input) {
            Some(clock) => island.take_given(source, *clock),
            None => left.push(source.clone()),
        }
    }
    let is_fixed = !island.ticks.is_empty() || !island.offsets.is_empty();
    let mut left = island.gather(left);
    while !is_fixed && left.len() > island.offsets.len() {
        let mut other = Island::default();
        left = other.gather(left);
        if other.offsets.len() > island.offsets.len() {
            island = other;
        }
    }
    let of = |input| island.offsets.iter().find(|(i, _)| *i == input).map(|(_, offset)| *offset);
    sources.iter().map(|s| (s.input, of(s.input))).collect()
}

/// What is as near to no offset, or to that between two time zones, as response times explain, is just that: a clock
/// that was read in the wrong zone is right otherwise.
fn in_zones(found: Offset) -> Offset {
    let quarters = found.ns.saturating_add(QUARTER_NS / 2).div_euclid(QUARTER_NS);
    let zone = quarters.saturating_mul(QUARTER_NS);
    let is_zone = zone.abs() <= ZONES_NS && found.ns.abs_diff(zone) <= found.error_ns.saturating_add(NOTHING_NS) as u64;
    if found.drift.is_none() && is_zone { Offset { ns: zone, ..found } } else { found }
}

#[cfg(test)]
mod tests {
    use super::super::clock::Exact;
    use super::*;

    /// Moments `(key, second)` of a source.
    fn source(input: InputId, moments: &[(u64, i64)]) -> Source {
        let tick = |(key, second): &(u64, i64)| Tick {
            input,
            at: Time::from_ns(second * 1_000_000_000, 3),
            error_ns: 1_000_000,
            key: *key,
            exact: Some(Exact::Created),
            whose: 0,
        };
        Source { input, ticks: moments.iter().map(tick).collect() }
    }

    fn seconds(sources: &[Source]) -> Vec<Option<i64>> {
        known(sources, &[])
    }

    /// Seconds, where clocks are given.
    fn known(sources: &[Source], given: &[(InputId, GivenClock)]) -> Vec<Option<i64>> {
        let given = given.iter().copied().collect();
        offsets(vec![], sources.to_vec(), &given).iter().map(|(_, o)| o.map(|o| o.ns / 1_000_000_000)).collect()
    }

    #[test]
    fn a_third_source_tells_of_two_that_have_nothing_in_common() {
        let sources = [source(0, &[(1, 10)]), source(1, &[(2, 90)]), source(2, &[(1, 15), (2, 25)])];
        assert_eq!(seconds(&sources), [Some(0), Some(-70), Some(-5)]);
    }

    #[test]
    fn a_given_clock_stands_unless_what_is_seen_contradicts_it() {
        let second = |s: i64| Offset { ns: s * 1_000_000_000, ..Offset::none(0) }.to_give(Time::from_ns(0, 9));
        let apart = [source(0, &[(1, 10)]), source(1, &[(2, 90)])];
        assert_eq!(seconds(&apart), [Some(0), None]);
        assert_eq!(known(&apart, &[(0, second(0)), (1, second(-70))]), [Some(0), Some(-70)]);
        // One that is not given is found beside those that are.
        let third = [apart[0].clone(), apart[1].clone(), source(2, &[(2, 25)])];
        assert_eq!(known(&third, &[(0, second(0)), (1, second(-70))]), [Some(0), Some(-70), Some(-5)]);
        // Alone it is still on the clock of all.
        assert_eq!(known(&apart[1..], &[(1, second(-70))]), [Some(-70)]);
        let set = [source(0, &[(1, 10)]), source(1, &[(1, 15)])];
        assert_eq!(known(&set, &[(0, second(0)), (1, second(-70))]), [Some(0), Some(-5)]);
    }

    #[test]
    fn what_is_nearly_between_two_zones_is_that() {
        let offset = |ns, error_ns| in_zones(Offset { ns, ..Offset::none(error_ns) }).ns;
        let hours = 11 * 1800 * 1_000_000_000;
        assert_eq!([offset(hours + 166_000_000, 502_000_000), offset(-hours - 399_000_000, 0)], [hours, -hours]);
        assert_eq!([offset(-380_000_000, 1), offset(2_833_000_000, 502_000_000)], [0, 2_833_000_000]);
        let days = 30 * 24 * 3600 * 1_000_000_000;
        assert_eq!([offset(hours + 401_000_000, 0), offset(days + 1, 0)], [hours + 401_000_000, days + 1]);
    }

    #[test]
    fn the_clock_is_that_of_the_most() {
        let sources = [source(0, &[(9, 10)]), source(1, &[(1, 100)]), source(2, &[(1, 107)])];
        assert_eq!(seconds(&sources), [None, Some(0), Some(-7)]);
        // Of as many, that of the first.
        assert_eq!(seconds(&sources[..2]), [Some(0), None]);
    }
}
