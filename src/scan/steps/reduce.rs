//! The reduce step: keyed sightings in, one key after the other; findings, calls and windows out.

use super::shares::Shares;
use super::whole::Whole;
use super::{LotTotal, lot_of};
use crate::analyze::alone::Alone;
use crate::analyze::logs::{Log, Sighted, row};
use crate::input::log::RecordSink;
use crate::model::report::{InputInfo, Report};
use crate::scan::Options;
use crate::scan::fold::Folding;
use crate::scan::lot::{Lot, log_format};
use crate::scan::result::UnitResult;
use crate::scan::sightings::{Block, Payload, parse};
use std::collections::{BTreeMap, BTreeSet};

/// Folds one lot at a time.
pub struct Reducer<'a> {
    folding: Folding<'a>,
    key: String,
    open: Open<'a>,
    done: BTreeSet<String>,
}

/// The lot whose records come.
#[derive(Default)]
struct Open<'a> {
    lot: Option<Box<Lot>>,
    result: Option<UnitResult>,
    /// By number.
    inputs: BTreeMap<u32, Whole>,
    /// The only input, folded as its blocks come.
    alone: Option<Alone<'a>>,
    shares: Shares,
}

impl<'a> Reducer<'a> {
    /// Nothing read yet.
    pub fn new(options: &'a Options) -> Reducer<'a> {
        Reducer { folding: Folding::of(options), key: String::new(), open: Open::default(), done: BTreeSet::new() }
    }

    /// Takes a record; gives what came of the lot before, if this one is of another.
    ///
    /// # Errors
    /// If it is no record, or one of a lot that was folded before: the records are not grouped by key.
    pub fn take(&mut self, line: &str) -> anyhow::Result<Option<(LotTotal, UnitResult)>> {
        let (key, payload) = parse(line)?;
        let (key, share) = lot_of(key);
        let key = &*key;
        let before = if key == self.key { None } else { self.finish()? };
        if key != self.key {
            anyhow::ensure!(!self.done.contains(key), "records of {key} are not together: sort them by key and time");
            self.key = key.to_owned();
        }
        let open = &mut self.open;
        match (payload, share) {
            (Payload::Head(lot), Some(share)) => {
                open.shares.open(share).head(&lot, share, self.folding.read.endpoint.as_deref());
            }
            (Payload::Sightings(_, block), Some(share)) => open.shares.open(share).take(*block),
            (Payload::Head(lot), None) => open.head(lot, &self.folding),
            (Payload::Sightings(input, block), None) => open.take(input, *block),
            (Payload::Folded(share, folded), _) => open.shares.folded(share, *folded),
            (Payload::Result(result), _) => open.result = Some(*result),
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
        let mut open = std::mem::take(&mut self.open);
        let result = match (open.result.take(), open.lot.take()) {
            (Some(result), _) => result,
            (None, Some(lot)) => open.fold(&lot, &self.folding),
            (None, None) => anyhow::bail!("{key}: there are sightings, and no record that says of what"),
        };
        self.done.insert(key.clone());
        Ok(Some((LotTotal::of(key, &result), result)))
    }
}

impl<'a> Open<'a> {
    fn head(&mut self, lot: Box<Lot>, folding: &Folding<'a>) {
        if self.lot.is_some() {
            return;
        }
        for (input, of) in (0u32..).zip(&lot.inputs) {
            self.inputs.entry(input).or_default().begin(of.from);
        }
        if let [one] = lot.inputs.as_slice() {
            self.alone = folding.alone(&lot, info(one, 0, folding).unwrap_or_default(), false);
        }
        self.lot = Some(lot);
        self.pass();
    }

    fn take(&mut self, input: u32, block: Block) {
        self.inputs.entry(input).or_default().take(block);
        self.pass();
    }

    /// Folds the blocks that follow those before them.
    fn pass(&mut self) {
        let (Some(alone), Some(blocks)) = (&mut self.alone, self.inputs.get_mut(&0)) else { return };
        let shares = self.lot.as_ref().map_or(0, |lot| lot.shares);
        if shares > 0 && !self.shares.are_folded(shares, alone) {
            return;
        }
        while let Some(block) = blocks.next() {
            add(alone, block, &mut self.shares);
        }
    }

    fn fold(mut self, lot: &Lot, folding: &Folding<'a>) -> UnitResult {
        let (mut sighted, mut troubles) = (vec![], vec![]);
        let are_whole = match &mut self.alone {
            Some(alone) if lot.shares > 0 => self.shares.finish(lot.shares, alone),
            _ => lot.shares == 0,
        };
        for (input, of) in (0u32..).zip(&lot.inputs) {
            let mut all = Sighted::default();
            match info(of, input, folding) {
                Some(info) => all.info = info,
                None => troubles.push(format!("{}: there is no format {} of logs", of.name, of.format)),
            }
            let (blocks, is_whole) = self.inputs.remove(&input).unwrap_or_default().finish(of.to);
            for block in blocks {
                match &mut self.alone {
                    Some(alone) => add(alone, block, &mut self.shares),
                    None => all.extend(Sighted { info: block.end.unwrap_or_default(), records: block.records }),
                }
            }
            if !is_whole || !are_whole {
                troubles.push(format!(
                    "{}: not all sightings of the bytes from {} to {} are there; map and reduce it again",
                    of.name, of.from, of.to
                ));
            }
            sighted.push(all);
        }
        let report: Report = match self.alone {
            Some(mut alone) => {
                self.shares.before(None, &mut alone);
                folding.own(lot, alone.conclude())
            }
            None => folding.logs(lot, sighted, false),
        };
        let mut result = lot.result(&report);
        result.troubles.extend(troubles);
        result
    }
}

fn add(alone: &mut Alone<'_>, block: Block, shares: &mut Shares) {
    for record in block.records {
        if let Some(place) = record.place() {
            shares.before(Some(place.number), alone);
        }
        alone.record(record);
    }
    if let Some(end) = block.end {
        alone.extend(&end);
    }
}

/// The row of an input of which nothing was read yet.
fn info(of: &crate::scan::lot::LotInput, input: u32, folding: &Folding<'_>) -> Option<InputInfo> {
    let format = log_format(&of.format)?;
    Some(row(&Log { input, name: &of.name, format, lines: of.lines, options: folding.read }))
}
