//! Joins the lines of a log while it is read.

use super::beside::Beside;
use crate::join::lines::Lines;
use crate::join::retire::Parts;
use crate::model::options::ReadOptions;
use crate::model::record::{AccessRecord, BoxedRecords, LogEvent};
use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::Scope;

/// Records handed over together.
const BATCH: usize = 512;

/// What a line said.
enum Said {
    Access(Box<AccessRecord>),
    Event(Box<LogEvent>),
}

/// Who joins them.
struct Work {
    lines: Lines,
    /// Where spent records go: the thread that made them uses their room again, and their texts stay its own, whose
    /// counters two cores would fight for.
    spent: Sender<BoxedRecords>,
}

/// Where the records of a log go.
pub(super) struct Along<'s> {
    beside: Beside<'s, Work, Vec<Said>>,
    spent: Receiver<BoxedRecords>,
    batch: Vec<Said>,
    /// Events that are only counted.
    passed: BTreeMap<&'static str, u64>,
}

impl<'s> Along<'s> {
    /// They go to `lines`.
    pub(super) fn new(scope: &'s Scope<'s, '_>, lines: Lines, read: &ReadOptions) -> Along<'s> {
        let (sender, spent) = channel();
        let beside = Beside::new(scope, read, Work { lines, spent: sender }, |work, batch: Vec<Said>| {
            batch.into_iter().for_each(|said| match said {
                Said::Access(record) => work.lines.access(record),
                Said::Event(event) => work.lines.event(*event),
            });
            let spent = work.lines.spent();
            if !spent.is_empty() {
                // Nobody reads any more: they are let go here.
                drop(work.spent.send(spent));
            }
        });
        Along { beside, spent, batch: vec![], passed: BTreeMap::new() }
    }

    /// Records that were joined, for others in their place.
    pub(super) fn spent(&self) -> BoxedRecords {
        self.spent.try_recv().unwrap_or_default()
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
        self.beside.finish().lines.finish(self.passed)
    }
}
