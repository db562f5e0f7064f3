//! What the tests of formats share: a sink that keeps everything, and readers run over text.

use super::{Format, LineReader, LogContext, Reader, RecordSink};
use crate::model::options::ReadOptions;
use crate::model::place::Place;
use crate::model::problem::ProblemKind;
use crate::model::record::{AccessRecord, LogEvent, Record, When};

/// Everything that a reader told.
#[derive(Default)]
pub(crate) struct Collected {
    pub(crate) entries: Vec<Option<When>>,
    pub(crate) records: Vec<Record>,
    pub(crate) problems: Vec<(ProblemKind, u64, String)>,
}

impl RecordSink for Collected {
    fn entry(&mut self, when: Option<When>) {
        self.entries.push(when);
    }
    fn record(&mut self, record: Record) {
        self.records.push(record);
    }
    fn problem(&mut self, kind: ProblemKind, place: Place, text: &str) {
        self.problems.push((kind, place.number, text.to_owned()));
    }
}

#[allow(dead_code)]
impl Collected {
    /// The access records.
    pub(crate) fn accesses(&self) -> Vec<&AccessRecord> {
        self.records.iter().filter_map(|r| if let Record::Access(a) = r { Some(&**a) } else { None }).collect()
    }

    /// The events.
    pub(crate) fn events(&self) -> Vec<&LogEvent> {
        self.records.iter().filter_map(|r| if let Record::Event(e) = r { Some(&**e) } else { None }).collect()
    }

    /// The problems that are more than what a layout leaves out of its times.
    pub(crate) fn faults(&self) -> Vec<&(ProblemKind, u64, String)> {
        self.problems
            .iter()
            .filter(|(kind, ..)| !matches!(kind, ProblemKind::InferredTime | ProblemKind::NoTime))
            .collect()
    }
}

/// Runs `text` through a format.
pub(crate) fn read(format: &Format, text: &[u8], options: &ReadOptions) -> Collected {
    let context = LogContext { input: 0, name: "test", options, modified_ns: None };
    let mut out = Collected::default();
    match &format.reader {
        Reader::Lines(make) => read_lines(make(&context), text, &mut out),
        Reader::Bytes(read) => {
            let mut bytes = text;
            if let Err(error) = read(&context, &mut bytes, &mut out) {
                out.problem(ProblemKind::Garbage, Place::line(0, 0), &error.to_string());
            }
        }
    }
    out
}

/// Runs the lines of `text` through a reader.
pub(crate) fn read_lines(mut reader: Box<dyn LineReader>, text: &[u8], out: &mut Collected) {
    for (n, line) in text.split(|c| *c == b'\n').enumerate() {
        if !line.is_empty() {
            reader.line(line, n as u64 + 1, out);
        }
    }
    reader.finish(out);
}
