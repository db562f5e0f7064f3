//! The sessions of a lot that is one log are dealt into shares, which are folded first, each wherever: what is left of
//! them (lines that a rule may still want, and counts) is folded with the lines that name no session.

use super::lot_of;
use super::whole::Whole;
use crate::analyze::alone::Alone;
use crate::join::apart::{Apart, Share, Stays, is_of_all};
use crate::model::record::Record;
use crate::scan::Options;
use crate::scan::lot::Lot;
use crate::scan::sightings::{self, Block, Folded, Payload};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The shares that must see a record; none: it is of the lot.
pub fn of_record(record: &Record, shares: u32) -> Option<std::ops::Range<u32>> {
    let Record::Access(line) = record else { return None };
    if is_of_all(line) {
        return Some(0..shares);
    }
    let number = Share::of_session(line.session.as_ref()?, shares).number;
    Some(number..number + 1)
}

/// One share, as its blocks come.
#[derive(Default)]
pub struct Fold {
    blocks: Whole,
    begun: Option<(Apart, u64)>,
}

impl Fold {
    /// What the lot is made of.
    pub fn head(&mut self, lot: &Lot, number: u32, endpoint: Option<&str>) {
        let (Some(input), None) = (lot.inputs.first(), &self.begun) else { return };
        let share = Share { number, of: lot.shares };
        self.begun = Some((Apart::new(share, endpoint, lot.core), input.to));
        self.blocks.begin(input.from);
        self.pass();
    }

    /// Takes sightings.
    pub fn take(&mut self, block: Block) {
        self.blocks.take(block);
        self.pass();
    }

    fn pass(&mut self) {
        let Some((apart, _)) = &mut self.begun else { return };
        while let Some(block) = self.blocks.next() {
            add(apart, block);
        }
    }

    fn is_whole(&self) -> bool {
        self.begun.as_ref().is_some_and(|(_, to)| self.blocks.is_whole(*to))
    }

    /// No more comes.
    pub fn finish(self) -> Folded {
        let Some((mut apart, to)) = self.begun else { return Folded::default() };
        let (rest, is_whole) = self.blocks.finish(to);
        rest.into_iter().for_each(|block| add(&mut apart, block));
        let (stays, left) = apart.finish();
        Folded { is_whole, stays, left }
    }
}

fn add(apart: &mut Apart, block: Block) {
    for record in block.records {
        if let Record::Access(line) = record {
            apart.access(line);
        }
    }
}

/// The shares of a lot, where it is folded.
#[derive(Default)]
pub struct Shares {
    open: BTreeMap<u32, Fold>,
    folded: BTreeMap<u32, Folded>,
    /// Lines of all that stay, the first first; none: not all shares are folded.
    stays: Option<VecDeque<Stays>>,
}

impl Shares {
    /// The fold of one that was not folded elsewhere.
    pub fn open(&mut self, number: u32) -> &mut Fold {
        self.open.entry(number).or_default()
    }

    /// One that was folded. Of two that say the same the first counts.
    pub fn folded(&mut self, number: u32, folded: Folded) {
        self.folded.entry(number).or_insert(folded);
    }

    /// Are all `count` folded? Then what is left of them goes to `alone`, their lines by and by.
    pub fn are_folded(&mut self, count: u32, alone: &mut Alone<'_>) -> bool {
        if self.stays.is_some() {
            return true;
        }
        let whole: Vec<u32> = self.open.iter().filter(|(_, fold)| fold.is_whole()).map(|(n, _)| *n).collect();
        for number in whole {
            self.close(number);
        }
        if (0..count).any(|n| !self.folded.contains_key(&n)) {
            return false;
        }
        self.hand_over(count, alone);
        true
    }

    /// No more comes: what is there counts as folded. Is it all?
    pub fn finish(&mut self, count: u32, alone: &mut Alone<'_>) -> bool {
        for number in 0..count {
            self.close(number);
        }
        if self.stays.is_none() {
            self.hand_over(count, alone);
        }
        self.folded.values().all(|f| f.is_whole)
    }

    /// Gives `alone` the lines that stay from before `line`; none: all.
    pub fn before(&mut self, line: Option<u64>, alone: &mut Alone<'_>) {
        let Some(stays) = &mut self.stays else { return };
        let is_before = |s: &Stays| line.is_none_or(|line| s.record.place.is_some_and(|p| p.number < line));
        while stays.front().is_some_and(is_before)
            && let Some(next) = stays.pop_front()
        {
            alone.stays(next);
        }
    }

    fn close(&mut self, number: u32) {
        let fold = self.open.remove(&number).unwrap_or_default();
        self.folded.entry(number).or_insert_with(|| fold.finish());
    }

    fn hand_over(&mut self, count: u32, alone: &mut Alone<'_>) {
        let mut all = vec![];
        for (_, folded) in self.folded.range_mut(..count) {
            all.append(&mut folded.stays);
            alone.absorb(std::mem::take(&mut folded.left));
        }
        all.sort_by_key(|s| s.record.place.map(|p| p.number));
        self.stays = Some(all.into());
    }
}

/// Folds shares, one at a time, and hands all other records on.
pub struct ShareReducer<'a> {
    options: &'a Options,
    key: String,
    fold: Fold,
    done: BTreeSet<String>,
}

impl<'a> ShareReducer<'a> {
    /// Nothing read yet.
    pub fn new(options: &'a Options) -> ShareReducer<'a> {
        ShareReducer { options, key: String::new(), fold: Fold::default(), done: BTreeSet::new() }
    }

    /// Takes a record; `each` gets those that come of it.
    ///
    /// # Errors
    /// If it is no record, or of a share that was folded before; those of `each`.
    pub fn take(&mut self, line: &str, each: &mut dyn FnMut(&str) -> anyhow::Result<()>) -> anyhow::Result<()> {
        let key = line.split('\t').next().unwrap_or_default();
        let Some(number) = lot_of(key).1 else { return each(line) };
        let (key, payload) = sightings::parse(line)?;
        if key != self.key {
            self.finish(each)?;
            anyhow::ensure!(!self.done.contains(key), "records of {key} are not together: sort them by key and time");
            self.key = key.to_owned();
        }
        match payload {
            Payload::Head(lot) => self.fold.head(&lot, number, self.options.read.endpoint.as_deref()),
            Payload::Sightings(_, block) => self.fold.take(*block),
            Payload::Folded(..) | Payload::Result(_) => {}
        }
        Ok(())
    }

    /// All records were taken.
    ///
    /// # Errors
    /// Those of `each`.
    pub fn finish(&mut self, each: &mut dyn FnMut(&str) -> anyhow::Result<()>) -> anyhow::Result<()> {
        let key = std::mem::take(&mut self.key);
        if let (lot, Some(number)) = lot_of(&key) {
            let folded = std::mem::take(&mut self.fold).finish();
            // What it is is said at the head of its lot.
            each(&sightings::folded(&lot, number, &folded))?;
            self.done.insert(key);
        }
        Ok(())
    }
}
