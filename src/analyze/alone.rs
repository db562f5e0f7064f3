//! A log that is read alone, folded line by line: what no rule can still need leaves memory as the lines pass.

use super::along::Words;
use super::{conclude, logs, read};
use crate::input::log::RecordSink;
use crate::join::apart::Stays;
use crate::join::lines::Lines;
use crate::join::past::Left;
use crate::model::options::{AnalyzeOptions, ReadOptions};
use crate::model::place::Place;
use crate::model::problem::ProblemKind;
use crate::model::record::{BoxedRecords, Record, When};
use crate::model::report::{InputInfo, Report};

/// What the lines of one log left so far.
pub struct Alone<'a> {
    /// Its row in the report.
    pub info: InputInfo,
    options: &'a ReadOptions,
    keep: AnalyzeOptions,
    lines: Lines,
    records: Vec<Record>,
    words: Words,
    seen: read::Vantages,
}

impl<'a> Alone<'a> {
    /// Nothing read yet of the log whose row is `info`. Of the calls those stay that are cited.
    pub fn new(info: InputInfo, options: &'a ReadOptions, keep: AnalyzeOptions) -> Alone<'a> {
        let keep = AnalyzeOptions { cited_calls_only: true, exchanges: false, ..keep };
        let lines = Lines::of_slice(options.endpoint.as_deref(), keep.core);
        let (records, words, seen) = (vec![], Words::default(), read::Vantages::default());
        Alone { info, options, keep, lines, records, words, seen }
    }

    /// Adds what was counted over a stretch whose records were taken.
    pub fn extend(&mut self, stretch: &InputInfo) {
        logs::extend(&mut self.info, stretch);
    }

    /// Takes a line that stays, as was found apart.
    pub fn stays(&mut self, line: Stays) {
        self.seen.line(&line.record);
        self.lines.stays(line);
    }

    /// Adds what is left of lines that do not come, as was found apart.
    pub fn absorb(&mut self, left: Left) {
        self.lines.absorb(left);
    }

    /// Nothing more comes: checks the rules.
    pub fn conclude(self) -> Report {
        let Alone { mut info, options, keep, lines, records, words, seen } = self;
        seen.tell(&mut info);
        logs::close(&mut info);
        let parts = lines.finish(words.passed);
        let gathered = read::Gathered { inputs: vec![info], records, parts, ..read::Gathered::default() };
        conclude(gathered, options, &keep)
    }
}

impl RecordSink for Alone<'_> {
    fn entry(&mut self, when: Option<When>) {
        logs::note(&mut self.info, when);
    }

    fn record(&mut self, record: Record) {
        self.seen.add(&record);
        match record {
            Record::Access(record) => self.lines.access(record),
            Record::Event(event) => {
                let kept = self.words.take(event, |event| self.lines.event(*event));
                self.records.extend(kept.map(Record::Event));
            }
            other => self.records.push(other),
        }
    }

    fn spent(&mut self) -> BoxedRecords {
        self.lines.spent()
    }

    fn problem(&mut self, kind: ProblemKind, place: Place, text: &str) {
        logs::blame(&mut self.info, kind, place, text);
    }
}
