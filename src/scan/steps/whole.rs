//! The blocks of one input, in the order of the log: stretches follow each other, and each has all its blocks.
//! Silence about a piece that was lost would be a claim.

use crate::scan::sightings::{Block, Stretch};
use std::collections::{BTreeMap, BTreeSet};

/// Blocks as they come, those that come early held back. A task that ran twice adds nothing.
#[derive(Default)]
pub struct Whole {
    /// Where the next stretch begins; none: not known yet.
    at: Option<u64>,
    /// The stretch that has begun, and the number of its next block.
    within: Option<(Stretch, u64)>,
    held: BTreeMap<(Stretch, u64), Block>,
    done: BTreeSet<Stretch>,
}

impl Whole {
    /// The first stretch begins here.
    pub fn begin(&mut self, from: u64) {
        self.at = Some(from);
    }

    /// Takes a block.
    pub fn take(&mut self, block: Block) {
        let key = (block.stretch, block.number);
        let begun = self.within.is_some_and(|(stretch, next)| key.0 == stretch && key.1 < next);
        if !begun && !self.done.contains(&key.0) {
            self.held.insert(key, block);
        }
    }

    /// The block that follows the last one, if it has come.
    pub fn next(&mut self) -> Option<Block> {
        let first = self.held.first_entry()?;
        let &(stretch, number) = first.key();
        let follows = match self.within {
            Some(next) => next == (stretch, number),
            None => Some(stretch.from) == self.at && number == 0,
        };
        if !follows {
            return None;
        }
        let block = first.remove();
        match block.end {
            Some(_) => {
                (self.at, self.within) = (Some(stretch.to), None);
                self.done.insert(stretch);
            }
            None => self.within = Some((stretch, number + 1)),
        }
        Some(block)
    }

    /// Were all given, up to `to`?
    pub fn is_whole(&self, to: u64) -> bool {
        self.held.is_empty() && self.within.is_none() && self.at == Some(to)
    }

    /// All have come: those not given yet, in order, and whether they are the whole up to `to`.
    pub fn finish(mut self, to: u64) -> (Vec<Block>, bool) {
        let mut rest = vec![];
        while let Some(block) = self.next() {
            rest.push(block);
        }
        let is_whole = self.is_whole(to);
        rest.extend(self.held.into_values());
        (rest, is_whole)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::Whole;
    use crate::model::report::InputInfo;
    use crate::scan::sightings::{Block, Stretch};

    fn block((from, to): (u64, u64), number: u64, is_last: bool) -> Block {
        let end = is_last.then(InputInfo::default);
        Block { stretch: Stretch { from, to }, number, records: vec![], end }
    }

    /// What is given in which order, and is it the whole from 0 to 20?
    fn given(blocks: Vec<Block>) -> (Vec<(u64, u64)>, bool) {
        let mut whole = Whole::default();
        let mut out = vec![];
        let mut blocks = blocks.into_iter();
        blocks.by_ref().take(1).for_each(|b| whole.take(b));
        whole.begin(0);
        let place = |b: Block| (b.stretch.from, b.number);
        for b in blocks {
            whole.take(b);
            out.extend(std::iter::from_fn(|| whole.next()).map(place));
        }
        let (rest, is_whole) = whole.finish(20);
        out.extend(rest.into_iter().map(place));
        (out, is_whole)
    }

    #[test]
    fn blocks_are_given_in_their_order_once_and_what_is_missing_is_seen() {
        let all = || vec![block((0, 10), 0, false), block((0, 10), 1, true), block((10, 20), 0, true)];
        let order = vec![(0, 0), (0, 1), (10, 0)];
        assert_eq!(given(all()), (order.clone(), true));
        assert_eq!(given(all().into_iter().rev().collect()), (order.clone(), true));
        assert_eq!(given(all().into_iter().chain(all()).collect()), (order, true));
        for lost in 0..3 {
            let mut some = all();
            some.remove(lost);
            let (out, is_whole) = given(some);
            assert_eq!((out.len(), is_whole), (2, false));
        }
        // Two that do not fit together.
        assert!(!given(all().into_iter().chain([block((5, 20), 0, true)]).collect()).1);
    }
}
