//! Application lines inside a proxy's log or a person's text.

use super::app::{Interpreter, Origin};
use super::{LogContext, RecordSink};
use crate::model::place::Place;
use crate::model::problem::ProblemKind;
use crate::model::record::{LogEventKind, Record, When};

/// Reads them, and refuses lines that say nothing: a broken line of the log's own layout must not
/// pass for a quiet one of some application.
pub(super) struct AppLines {
    interpreter: Interpreter,
}

impl AppLines {
    pub(super) fn new(context: &LogContext<'_>) -> AppLines {
        AppLines { interpreter: Interpreter::new(context) }
    }

    /// Reads a line; false: it says nothing, and `out` was told nothing.
    pub(super) fn read(&mut self, line: &[u8], place: Place, out: &mut dyn RecordSink) -> bool {
        let mut held = Held::default();
        self.interpreter.entry(line, &Origin::at(place), &mut held);
        let says = held.records.iter().any(|r| match r {
            Record::Event(event) => event.kind != LogEventKind::Other && event.kind != LogEventKind::Error,
            _ => true,
        });
        if says {
            held.when.into_iter().for_each(|when| out.entry(when));
            held.problems.into_iter().for_each(|(kind, place, text)| out.problem(kind, place, &text));
            held.records.into_iter().for_each(|record| out.record(record));
        }
        says
    }

    /// Nothing follows.
    pub(super) fn finish(&mut self, out: &mut dyn RecordSink) {
        self.interpreter.finish(out);
    }
}

/// What one line told, until it is known whether it counts.
#[derive(Default)]
struct Held {
    when: Option<Option<When>>,
    records: Vec<Record>,
    problems: Vec<(ProblemKind, Place, String)>,
}

impl RecordSink for Held {
    fn entry(&mut self, when: Option<When>) {
        self.when = Some(when);
    }
    fn record(&mut self, record: Record) {
        self.records.push(record);
    }
    fn problem(&mut self, kind: ProblemKind, place: Place, text: &str) {
        self.problems.push((kind, place, text.to_owned()));
    }
}
