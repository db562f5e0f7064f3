//! Joins what has ended while reading goes on.

use super::beside::Beside;
use crate::join::retire::{Parts, Stays};
use crate::mcp::{Tracker, Visit};
use crate::model::limits::{PART_BYTES, PART_VISITS};
use crate::model::options::{AnalyzeOptions, ReadOptions};
use std::thread::Scope;

/// Exchanges that ended, and copies of those that had not when they were taken.
type Part = (Vec<Visit>, Vec<Visit>);

/// Where parts go.
pub(super) enum Joiner<'s> {
    /// Everything is joined at the end.
    Whole,
    /// Joined as they come, each of so many exchanges.
    Parts(Beside<'s, Parts, Part>, usize),
}

impl<'s> Joiner<'s> {
    /// A joiner of parts, of which so much stays; none: of the whole.
    pub fn new(
        scope: &'s Scope<'s, '_>,
        stays: Option<Stays>,
        read: &ReadOptions,
        keep: &AnalyzeOptions,
    ) -> Joiner<'s> {
        let Some(stays) = stays else { return Joiner::Whole };
        let beside = Beside::new(scope, read, Parts::new(stays), |parts, (ended, open)| parts.take(ended, open));
        Joiner::Parts(beside, if keep.part_visits == 0 { PART_VISITS } else { keep.part_visits })
    }

    /// Takes what has ended, once it is enough for a part.
    pub fn take(&mut self, tracker: &mut Tracker) {
        let Joiner::Parts(beside, size) = self else { return };
        let (visits, bytes) = tracker.ended();
        if visits >= *size || bytes >= PART_BYTES {
            beside.take(tracker.take_ended());
        }
    }

    /// Nothing more will end.
    pub fn finish(self) -> Parts {
        match self {
            Joiner::Whole => Parts::default(),
            Joiner::Parts(beside, _) => beside.finish(),
        }
    }
}
