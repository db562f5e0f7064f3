//! Joins the lines of a log while it is read.

use super::beside::Beside;
use crate::join::lines::Lines;
use crate::join::retire::Parts;
use crate::model::options::ReadOptions;
use crate::model::record::{AccessRecord, BoxedRecords, LogEvent};
use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::Scope;

/// Records handed over together.
const BATCH: usize = 512;
/// Lists of spent records that wait to be used again.
const SPENT: usize = 2;

/// What a line said.
enum Said {
    Access(Box<AccessRecord>),
    Event(Box<LogEvent>),
}

/// What the server says between the lines of a log.
#[derive(Default)]
pub(super) struct Words {
    /// Events that are only counted, by the names of their kinds.
    pub(super) passed: BTreeMap<&'static str, u64>,
}

impl Words {
    /// Takes an event; `lines` gets it where it tells something of the lines next to it. Gives what the rules may want
    /// at the end.
    pub(super) fn take(&mut self, event: Box<LogEvent>, lines: impl FnOnce(Box<LogEvent>)) -> Option<Box<LogEvent>> {
        if Lines::wants(&event) {
            lines(event.clone());
        }
        if Lines::outlives(event.kind) {
            return Some(event);
        }
        *self.passed.entry(event.kind.name()).or_default() += 1;
        None
    }
}

/// Who joins them.
struct Work {
    lines: Lines,
    /// Where spent records go: the thread that made them uses their room again, and their texts stay its own, whose
    /// counters two cores would fight for.
    spent: SyncSender<BoxedRecords>,
}

/// Where the records of a log go.
pub(super) struct Along<'s> {
    beside: Beside<'s, Work, Vec<Said>>,
    spent: Receiver<BoxedRecords>,
    batch: Vec<Said>,
    words: Words,
}

impl<'s> Along<'s> {
    /// They go to `lines`.
    pub(super) fn new(scope: &'s Scope<'s, '_>, lines: Lines, read: &ReadOptions) -> Along<'s> {
        let (sender, spent) = sync_channel(SPENT);
        let beside = Beside::new(scope, read, Work { lines, spent: sender }, |work, batch: Vec<Said>| {
            batch.into_iter().for_each(|said| match said {
                Said::Access(record) => work.lines.access(record),
                Said::Event(event) => work.lines.event(*event),
            });
            let spent = work.lines.spent();
            if !spent.is_empty() {
                // Where nobody uses their room again they are let go here.
                drop(work.spent.try_send(spent));
            }
        });
        Along { beside, spent, batch: vec![], words: Words::default() }
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
        let mut wanted = None;
        let kept = self.words.take(event, |event| wanted = Some(event));
        wanted.into_iter().for_each(|event| self.take(Said::Event(event)));
        kept
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
        self.beside.finish().lines.finish(self.words.passed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::place::Place;
    use crate::model::record::When;
    use crate::model::time::Time;

    /// A reader that makes its records anew, as those of journals do, must not find all of them kept for it.
    #[test]
    fn what_nobody_uses_again_is_let_go() {
        for jobs in [1, 2] {
            let read = ReadOptions { jobs, ..ReadOptions::default() };
            std::thread::scope(|scope| {
                let mut along = Along::new(scope, Lines::new(None, 64), &read);
                for n in 1..50_000 {
                    let at = When { at: Time::from_ns(i64::from(n), 9), error_ns: 1 };
                    along.access(Box::new(AccessRecord {
                        place: Some(Place::line(0, n as u64)),
                        end: Some(at),
                        method: Some("POST".into()),
                        target: Some("/mcp".into()),
                        status: Some(200),
                        bytes: Some(9),
                        repeat: 1,
                        ..AccessRecord::default()
                    }));
                }
                let waiting: usize =
                    std::iter::from_fn(|| Some(along.spent()).filter(|s| !s.is_empty())).map(|s| s.len()).sum();
                assert!((1..5000).contains(&waiting), "{waiting}");
                along.finish();
            });
        }
    }
}
