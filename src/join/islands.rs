//! Which sources' clocks are known against each other's. Two may have nothing in common and each something with
//! a third, so that the order in which they come must not decide.

use super::clock::{self, Tick};
use super::drift::Offset;
use crate::model::place::InputId;

/// An offset below this is taken for none: it is within what response times explain, ns.
const NOTHING_NS: i64 = 400_000_000;

/// A source and its moments.
#[derive(Clone)]
pub struct Source {
    /// Which.
    pub input: InputId,
    /// On its own clock.
    pub ticks: Vec<Tick>,
}

/// Sources on one clock.
#[derive(Default)]
struct Island {
    ticks: Vec<Tick>,
    offsets: Vec<(InputId, Offset)>,
}

impl Island {
    /// Takes in all that have anything in common with it, through whichever of its sources; gives the others.
    fn gather(&mut self, mut sources: Vec<Source>) -> Vec<Source> {
        loop {
            let before = sources.len();
            sources.retain(|s| !self.take(s));
            if sources.len() == before || sources.is_empty() {
                return sources;
            }
        }
    }

    fn take(&mut self, source: &Source) -> bool {
        let found =
            if self.ticks.is_empty() { Some(Offset::none(0)) } else { clock::offset(&self.ticks, &source.ticks) };
        let Some(offset) = found.map(|o| if is_nothing(&o) { Offset::none(o.error_ns) } else { o }) else {
            return false;
        };
        self.ticks.extend(source.ticks.iter().map(|t| Tick { at: offset.apply(t.at), ..t.clone() }));
        self.offsets.push((source.input, offset));
        true
    }
}

/// The offset of each of `sources`, in their order, to the captures' clock (`wire`), else to that of the first of
/// those that most have in common; none: nothing to align it by.
pub fn offsets(wire: Vec<Tick>, sources: Vec<Source>) -> Vec<(InputId, Option<Offset>)> {
    let captured = !wire.is_empty();
    let mut island = Island { ticks: wire, offsets: vec![] };
    let mut left = island.gather(sources.clone());
    while !captured && left.len() > island.offsets.len() {
        let mut other = Island::default();
        left = other.gather(left);
        if other.offsets.len() > island.offsets.len() {
            island = other;
        }
    }
    let of = |input| island.offsets.iter().find(|(i, _)| *i == input).map(|(_, offset)| *offset);
    sources.iter().map(|s| (s.input, of(s.input))).collect()
}

fn is_nothing(o: &Offset) -> bool {
    o.drift.is_none() && o.ns.abs() <= o.error_ns + NOTHING_NS
}

#[cfg(test)]
mod tests {
    use super::super::clock::Exact;
    use super::*;
    use crate::model::time::Time;

    /// Moments `(key, second)` of a source.
    fn source(input: InputId, moments: &[(u64, i64)]) -> Source {
        let tick = |(key, second): &(u64, i64)| Tick {
            input,
            at: Time::from_ns(second * 1_000_000_000, 3),
            error_ns: 1_000_000,
            key: *key,
            exact: Some(Exact::Created),
        };
        Source { input, ticks: moments.iter().map(tick).collect() }
    }

    fn seconds(sources: &[Source]) -> Vec<Option<i64>> {
        offsets(vec![], sources.to_vec()).iter().map(|(_, o)| o.map(|o| o.ns / 1_000_000_000)).collect()
    }

    #[test]
    fn a_third_source_tells_of_two_that_have_nothing_in_common() {
        let sources = [source(0, &[(1, 10)]), source(1, &[(2, 90)]), source(2, &[(1, 15), (2, 25)])];
        assert_eq!(seconds(&sources), [Some(0), Some(-70), Some(-5)]);
    }

    #[test]
    fn the_clock_is_that_of_the_most() {
        let sources = [source(0, &[(9, 10)]), source(1, &[(1, 100)]), source(2, &[(1, 107)])];
        assert_eq!(seconds(&sources), [None, Some(0), Some(-7)]);
        // Of as many, that of the first.
        assert_eq!(seconds(&sources[..2]), [Some(0), None]);
    }
}
