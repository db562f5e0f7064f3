//! The reduce step: keyed sightings in, one key after the other; findings, calls and windows out.

use super::LotTotal;
use crate::analyze::logs::{Log, Sighted, row};
use crate::scan::Options;
use crate::scan::fold::Folding;
use crate::scan::lot::{Lot, log_format};
use crate::scan::result::UnitResult;
use crate::scan::sightings::{Block, Payload, Stretch, parse};
use std::collections::{BTreeMap, BTreeSet};

/// Folds one lot at a time.
pub struct Reducer<'a> {
    folding: Folding<'a>,
    key: String,
    lot: Option<Lot>,
    result: Option<UnitResult>,
    /// Blocks by input, stretch and number: a task that ran twice adds nothing.
    blocks: BTreeMap<(u32, Stretch, u64), Block>,
    done: BTreeSet<String>,
}

impl<'a> Reducer<'a> {
    /// Nothing read yet.
    pub fn new(options: &'a Options) -> Reducer<'a> {
        Reducer {
            folding: Folding::of(options),
            key: String::new(),
            lot: None,
            result: None,
            blocks: BTreeMap::new(),
            done: BTreeSet::new(),
        }
    }

    /// Takes a record; gives what came of the lot before, if this one is of another.
    ///
    /// # Errors
    /// If it is no record, or one of a lot that was folded before: the records are not grouped by key.
    pub fn take(&mut self, line: &str) -> anyhow::Result<Option<(LotTotal, UnitResult)>> {
        let (key, payload) = parse(line)?;
        let before = if key == self.key { None } else { self.finish()? };
        if key != self.key {
            anyhow::ensure!(!self.done.contains(key), "records of {key} are not together: sort them by key and time");
            self.key = key.to_owned();
        }
        match payload {
            Payload::Head(lot) => self.lot = Some(*lot),
            Payload::Result(result) => self.result = Some(*result),
            Payload::Sightings(input, block) => {
                self.blocks.insert((input, block.stretch, block.number), *block);
            }
        }
        Ok(before)
    }

    /// All records were taken: what came of the last lot.
    ///
    /// # Errors
    /// If the records of a lot do not say what it is.
    pub fn finish(&mut self) -> anyhow::Result<Option<(LotTotal, UnitResult)>> {
        if self.key.is_empty() {
            return Ok(None);
        }
        let key = std::mem::take(&mut self.key);
        let blocks = std::mem::take(&mut self.blocks);
        let result = match (self.result.take(), self.lot.take()) {
            (Some(result), _) => result,
            (None, Some(lot)) => self.fold(&lot, blocks),
            (None, None) => anyhow::bail!("{key}: there are sightings, and no record that says of what"),
        };
        self.done.insert(key.clone());
        Ok(Some((LotTotal::of(key, &result), result)))
    }

    fn fold(&self, lot: &Lot, blocks: BTreeMap<(u32, Stretch, u64), Block>) -> UnitResult {
        let mut inputs: BTreeMap<u32, Vec<Block>> = BTreeMap::new();
        for ((input, ..), block) in blocks {
            inputs.entry(input).or_default().push(block);
        }
        let (mut sighted, mut troubles) = (vec![], vec![]);
        for (input, of) in (0u32..).zip(&lot.inputs) {
            let mut all = Sighted::default();
            match log_format(&of.format) {
                Some(format) => {
                    let log = Log { input, name: &of.name, format, lines: of.lines, options: self.folding.read };
                    all.info = row(&log);
                }
                None => troubles.push(format!("{}: there is no format {} of logs", of.name, of.format)),
            }
            let mut whole = Whole { at: of.from, stretch: None, next: 0, is_good: true };
            for block in inputs.remove(&input).unwrap_or_default() {
                whole.take(&block);
                all.extend(Sighted { info: block.end.unwrap_or_default(), records: block.records });
            }
            if !whole.ends_at(of.to) {
                troubles.push(format!(
                    "{}: not all sightings of the bytes from {} to {} are there; map and reduce it again",
                    of.name, of.from, of.to
                ));
            }
            sighted.push(all);
        }
        let report = self.folding.logs(lot, sighted, false);
        let mut result = lot.result(&report);
        result.troubles.extend(troubles);
        result
    }
}

/// Checks that stretches follow each other, and that each has all its blocks: silence about a piece that was lost
/// would be a claim.
struct Whole {
    at: u64,
    stretch: Option<Stretch>,
    next: u64,
    is_good: bool,
}

impl Whole {
    fn take(&mut self, block: &Block) {
        if self.stretch.is_none() {
            self.is_good &= block.stretch.from == self.at;
            (self.stretch, self.next) = (Some(block.stretch), 0);
        }
        self.is_good &= self.stretch == Some(block.stretch) && block.number == self.next;
        self.next += 1;
        if block.end.is_some() {
            self.at = block.stretch.to;
            self.stretch = None;
        }
    }

    fn ends_at(&self, to: u64) -> bool {
        self.is_good && self.stretch.is_none() && self.at == to
    }
}
