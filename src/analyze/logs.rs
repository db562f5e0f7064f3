//! Logs: bytes to sightings. Whoever has all of a log folds what comes of it at once; whoever has a stretch of
//! it hands it on ([`crate::scan`] does), since stretches that begin and end with records add up to the whole.

use crate::input::log::{Format, LogContext, Reader, RecordSink};
use crate::input::{OpenInput, without_mark};
use crate::model::limits::LINE_BYTES;
use crate::model::options::ReadOptions;
use crate::model::place::{InputId, Place, Vantage};
use crate::model::problem::{ProblemKind, Problems};
use crate::model::record::{Record, When};
use crate::model::report::InputInfo;
use std::io::BufRead;

/// A log, or a stretch of one.
#[derive(Clone, Copy)]
pub struct Log<'a> {
    /// Number of the input.
    pub input: InputId,
    /// Its name.
    pub name: &'a str,
    /// Its format.
    pub format: &'static Format,
    /// Lines of it before the first that is read.
    pub lines: u64,
    /// How it is read.
    pub options: &'a ReadOptions,
}

/// What a log shows.
#[derive(Clone, Debug, Default)]
pub struct Sighted {
    /// Its row in the report.
    pub info: InputInfo,
    /// What its lines say.
    pub records: Vec<Record>,
}

impl Sighted {
    /// Takes over what the next stretch of the same log shows.
    pub fn extend(&mut self, next: Sighted) {
        extend(&mut self.info, &next.info);
        self.records.extend(next.records);
    }
}

/// Adds what was counted over the next stretch of the same log.
pub fn extend(info: &mut InputInfo, next: &InputInfo) {
    info.records += next.records;
    info.first = info.first.into_iter().chain(next.first).min();
    info.last = info.last.into_iter().chain(next.last).max();
    info.problems.merge(&next.problems);
}

impl RecordSink for Sighted {
    fn entry(&mut self, when: Option<When>) {
        note(&mut self.info, when);
    }
    fn record(&mut self, record: Record) {
        self.records.push(record);
    }
    fn problem(&mut self, kind: ProblemKind, place: Place, text: &str) {
        blame(&mut self.info, kind, place, text);
    }
}

/// Counts a problem with a line.
pub fn blame(info: &mut InputInfo, kind: ProblemKind, place: Place, text: &str) {
    info.problems.add(kind, || format!("line {}", place.number), || text);
}

/// Counts an entry and its time.
pub fn note(info: &mut InputInfo, when: Option<When>) {
    info.records += 1;
    if let Some(w) = when {
        info.first = Some(info.first.map_or(w.at, |t| t.min(w.at)));
        info.last = Some(info.last.map_or(w.at, |t| t.max(w.at)));
    }
}

/// The row of a log of which nothing was read yet.
pub fn row(log: &Log<'_>) -> InputInfo {
    InputInfo {
        name: log.name.to_owned(),
        format: Some(log.format.name.to_owned()),
        vantage: Some(vantage(log)),
        ..InputInfo::default()
    }
}

/// Nothing more comes of the log.
pub fn close(info: &mut InputInfo) {
    if info.records == 0 {
        info.problems.add(ProblemKind::Empty, || "", || "no record of its format");
    }
}

/// Gives `sink` all that the bytes of `log` say; what kept them from being read comes back.
pub fn sight(log: &Log<'_>, open: &mut OpenInput, sink: &mut dyn RecordSink) -> Problems {
    let context = LogContext { input: log.input, name: log.name, options: log.options, modified_ns: open.modified_ns };
    let mut problems = Problems::default();
    match log.format.reader {
        Reader::Bytes(read) => {
            if let Err(e) = read(&context, open, sink) {
                problems.add(ProblemKind::ReadError, || "", || format!("the log could not be read on: {e}"));
            }
        }
        Reader::Lines(new) => {
            let mut reader = new(&context);
            each_line(open, log, sink, |line, number, sink| reader.line(line, number, sink));
            reader.finish(sink);
        }
    }
    problems.merge(&open.problems());
    problems
}

fn vantage(log: &Log<'_>) -> Vantage {
    let said = log.options.vantages.iter().find(|(_, path)| crate::input::same_file(path, log.name));
    said.map_or(log.format.vantage, |(v, _)| *v)
}

/// Gives `each` every line with its number; the rest of one beyond the cap is passed over and counted.
fn each_line(
    open: &mut OpenInput,
    log: &Log<'_>,
    sink: &mut dyn RecordSink,
    mut each: impl FnMut(&[u8], u64, &mut dyn RecordSink),
) {
    let mut line = vec![];
    let mut number = log.lines;
    loop {
        line.clear();
        match read_line(open, &mut line) {
            Ok(0) | Err(_) => return,
            Ok(length) => {
                number += 1;
                if length > line.len() {
                    sink.problem(
                        ProblemKind::LongLine,
                        Place::line(log.input, number),
                        "a line longer than the cap: its rest was passed over",
                    );
                }
                let text = line.strip_suffix(b"\n").unwrap_or(&line);
                let text = if number == 1 { without_mark(text) } else { text };
                each(text.strip_suffix(b"\r").unwrap_or(text), number, sink);
            }
        }
    }
}

/// Reads up to and with the next line feed; keeps at most [`LINE_BYTES`], gives the whole length.
fn read_line(open: &mut OpenInput, line: &mut Vec<u8>) -> std::io::Result<usize> {
    let mut length = 0;
    loop {
        let buffer = open.fill_buf()?;
        if buffer.is_empty() {
            return Ok(length);
        }
        let end = memchr::memchr(b'\n', buffer).map(|i| i + 1);
        let part = buffer.get(..end.unwrap_or(buffer.len())).unwrap_or_default();
        let room = LINE_BYTES.saturating_sub(line.len());
        line.extend_from_slice(part.get(..room.min(part.len())).unwrap_or_default());
        let n = part.len();
        length += n;
        open.consume(n);
        if end.is_some() {
            return Ok(length);
        }
    }
}
