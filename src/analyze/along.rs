//! Joins the lines of a log while it is read.

use super::beside::Beside;
use crate::join::lines::Lines;
use crate::join::retire::Parts;
use crate::model::options::ReadOptions;
use crate::model::record::{AccessRecord, LogEvent};
use std::collections::BTreeMap;
use std::thread::Scope;

/// Records handed over together.
const BATCH: usize = 512;

/// What a line said.
enum Said {
    Access(Box<AccessRecord>),
    Event(Box<LogEvent>),
}

/// Where the records of a log go.
pub(super) struct Along<'s> {
    beside: Beside<'s, Lines, Vec<Said>>,
    batch: Vec<Said>,
    /// Events that are only counted.
    passed: BTreeMap<&'static str, u64>,
}

impl<'s> Along<'s> {
    /// They go to `lines`.
    pub(super) fn new(scope: &'s Scope<'s, '_>, lines: Lines, read: &ReadOptions) -> Along<'s> {
        let beside = Beside::new(scope, read, lines, |lines, batch: Vec<Said>| {
            batch.into_iter().for_each(|said| match said {
                Said::Access(record) => lines.access(record),
                Said::Event(event) => lines.event(*event),
            });
        });
        Along { beside, batch: vec![], passed: BTreeMap::new() }
    }

    /// Takes a line of an access log.
    pub(super) fn access(&mut self, record: Box<AccessRecord>) {
        self.take(Said::Access(record));
    }

    /// Takes what the server says between the lines, and gives what the rules may want at the end.
    pub(super) fn event(&mut self, event: Box<LogEvent>) -> Option<Box<LogEvent>> {
        if Lines::wants(&event) {
            self.take(Said::Event(event.clone()));
        }
        if Lines::outlives(event.kind) {
            return Some(event);
        }
        *self.passed.entry(event.kind.name()).or_default() += 1;
        None
    }

    fn take(&mut self, said: Said) {
        self.batch.push(said);
        if self.batch.len() >= BATCH {
            self.beside.take(std::mem::replace(&mut self.batch, Vec::with_capacity(BATCH)));
        }
    }

    /// The log has ended.
    pub(super) fn finish(mut self) -> Parts {
        self.beside.take(self.batch);
        self.beside.finish().finish(self.passed)
    }
}
