//! Deals what a stretch of a log shows: to the lot, and to the shares of its sessions.

use super::shares::of_record;
use crate::input::log::RecordSink;
use crate::model::place::Place;
use crate::model::problem::{ProblemKind, Problems};
use crate::model::record::{Record, When};
use crate::scan::sightings::{BlockWriter, Stretch};

/// Who takes blocks: gets the share (none: the lot), the time, and the text behind the number of the input.
pub type Each<'a> = dyn FnMut(Option<u32>, i64, &str) + 'a;

/// What a stretch shows, as blocks. What is counted is the lot's.
pub struct Dealt<'a> {
    lot: BlockWriter,
    shares: Vec<BlockWriter>,
    alone: bool,
    each: &'a mut Each<'a>,
}

impl<'a> Dealt<'a> {
    /// Nothing read yet. `alone`: what only tells the lines of several logs together is left out.
    pub fn new(stretch: Stretch, alone: bool, shares: u32, each: &'a mut Each<'a>) -> Dealt<'a> {
        let shares = (0..shares).map(|_| BlockWriter::new(stretch)).collect();
        Dealt { lot: BlockWriter::new(stretch), shares, alone, each }
    }

    /// The stretch has ended; `problems` kept it from being read to its end.
    pub fn finish(self, problems: &Problems) {
        let Dealt { lot, shares, alone: _, each } = self;
        lot.finish(problems, &mut |ns, code| each(None, ns, code));
        for (n, blocks) in (0u32..).zip(shares) {
            blocks.finish(&Problems::default(), &mut |ns, code| each(Some(n), ns, code));
        }
    }
}

impl RecordSink for Dealt<'_> {
    fn entry(&mut self, when: Option<When>) {
        self.lot.entry(when);
    }

    fn record(&mut self, mut record: Record) {
        // A number that no other line has is a quarter of what a line becomes.
        if let (Record::Access(line), true) = (&mut record, self.alone) {
            line.request_id = None;
        }
        let each = &mut *self.each;
        match of_record(&record, self.shares.len() as u32).filter(|_| !self.shares.is_empty()) {
            None => self.lot.record(&record, &mut |ns, code| each(None, ns, code)),
            Some(shares) => {
                for n in shares {
                    if let Some(blocks) = self.shares.get_mut(n as usize) {
                        blocks.record(&record, &mut |ns, code| each(Some(n), ns, code));
                    }
                }
            }
        }
    }

    fn problem(&mut self, kind: ProblemKind, place: Place, text: &str) {
        self.lot.problem(kind, place, text);
    }
}
