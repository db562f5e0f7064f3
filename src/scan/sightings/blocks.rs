//! Sightings of one stretch of a log in blocks, so that a line is of a size that pipes and shuffles like.

use super::pack::{Last, Pack, Reader, Writer};
use super::records::time_of;
use super::{NO_TIME, VERSION, coded};
use crate::analyze::logs::{blame, note};
use crate::model::place::Place;
use crate::model::problem::{ProblemKind, Problems};
use crate::model::record::{Record, When};
use crate::model::report::InputInfo;
use crate::model::time::Time;

/// Records of one block.
const RECORDS: usize = 8192;
/// A block is closed where its bytes, before they are compressed, are more.
const BYTES: usize = 4 << 20;

/// Plain bytes of a source that were read at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stretch {
    /// From here.
    pub from: u64,
    /// Up to here.
    pub to: u64,
}

/// Some sightings of a stretch.
#[derive(Debug)]
pub struct Block {
    /// The stretch.
    pub stretch: Stretch,
    /// Which of its blocks this is, from 0.
    pub number: u64,
    /// What its lines say.
    pub records: Vec<Record>,
    /// Counts over the whole stretch: it is the last block.
    pub end: Option<InputInfo>,
}

impl Block {
    /// Reads it back; places get the number of the input.
    pub fn read(plain: &[u8], input: u32) -> Option<Block> {
        let r = &mut Reader::new(plain, input);
        let stretch = Stretch { from: r.number()?, to: r.number()? };
        let number = r.number()?;
        let end = if bool::get(r)? { Some(info(r)?) } else { None };
        let count = r.number()?;
        r.last = Last { input, ..Last::default() };
        let mut records = vec![];
        for _ in 0..count {
            records.push(Record::get(r)?);
        }
        r.is_done().then_some(Block { stretch, number, records, end })
    }
}

fn info(r: &mut Reader<'_>) -> Option<InputInfo> {
    Some(InputInfo {
        records: r.number()?,
        first: Option::<Time>::get(r)?,
        last: Option::<Time>::get(r)?,
        problems: serde_json::from_slice::<Problems>(r.blob()?).ok()?,
        ..InputInfo::default()
    })
}

/// Who takes blocks: gets the time of each, and the text that stands behind the number of the input.
pub type Each<'a> = dyn FnMut(i64, &str) + 'a;

/// Takes what a stretch of a log shows, and hands it on block by block.
pub struct BlockWriter {
    stretch: Stretch,
    number: u64,
    info: InputInfo,
    packed: Writer,
    count: usize,
    ns: i64,
}

impl BlockWriter {
    /// No sighting yet.
    pub fn new(stretch: Stretch) -> BlockWriter {
        let (info, packed) = (InputInfo::default(), Writer::default());
        BlockWriter { stretch, number: 0, info, packed, count: 0, ns: NO_TIME }
    }

    /// The stretch has ended; `problems` kept it from being read to its end.
    pub fn finish(mut self, problems: &Problems, each: &mut Each<'_>) {
        self.info.problems.merge(problems);
        self.flush(true, each);
    }

    fn flush(&mut self, is_last: bool, each: &mut Each<'_>) {
        let mut w = Writer::default();
        w.number(self.stretch.from);
        w.number(self.stretch.to);
        w.number(self.number);
        is_last.put(&mut w);
        if is_last {
            w.number(self.info.records);
            self.info.first.put(&mut w);
            self.info.last.put(&mut w);
            w.blob(&serde_json::to_vec(&self.info.problems).unwrap_or_default());
        }
        w.number(self.count as u64);
        let mut plain = w.bytes;
        // Its records tell times and lines from the beginning of the block on.
        plain.append(&mut std::mem::take(&mut self.packed).bytes);
        each(self.ns, &coded(&plain));
        self.number += 1;
        self.count = 0;
    }
}

/// The payload of a block for an input of this number.
pub fn payload(input: u32, code: &str) -> String {
    format!("{VERSION}s{input}.{code}")
}

impl BlockWriter {
    /// Counts an entry.
    pub fn entry(&mut self, when: Option<When>) {
        note(&mut self.info, when);
    }

    /// Takes what a line says.
    pub fn record(&mut self, record: &Record, each: &mut Each<'_>) {
        if self.count == 0 {
            self.ns = time_of(record).unwrap_or(self.ns);
        }
        record.put(&mut self.packed);
        self.count += 1;
        if self.count >= RECORDS || self.packed.bytes.len() >= BYTES {
            self.flush(false, each);
        }
    }

    /// Counts what could not be read.
    pub fn problem(&mut self, kind: ProblemKind, place: Place, text: &str) {
        blame(&mut self.info, kind, place, text);
    }
}
