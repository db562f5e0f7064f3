//! Joins the lines of a log while it is read, on a thread of its own where there is one to spare.

use super::parts::is_alone;
use crate::join::lines::Lines;
use crate::join::retire::Parts;
use crate::model::options::ReadOptions;
use crate::model::record::{AccessRecord, LogEvent};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::Scope;

/// Records handed over together.
const BATCH: usize = 512;
/// Batches that wait to be joined.
const WAITING: usize = 4;

/// What a line said.
pub(super) enum Said {
    Access(Box<AccessRecord>),
    Event(Box<LogEvent>),
}

/// Where the records of a log go.
pub(super) enum Along {
    /// Joined where they are read.
    Here(Box<Lines>),
    /// Joined by another thread.
    There(SyncSender<Vec<Said>>, Vec<Said>),
}

/// Gives the parts back, once all is joined.
pub(super) type Done<'s> = Box<dyn FnOnce(Along) -> Parts + 's>;

impl Along {
    /// Where `lines` are joined, and what ends that.
    pub(super) fn new<'s>(scope: &'s Scope<'s, '_>, lines: Lines, read: &ReadOptions) -> (Along, Done<'s>) {
        if is_alone(read) {
            let done = |along| match along {
                Along::Here(lines) => lines.finish(),
                Along::There(..) => Parts::default(),
            };
            return (Along::Here(Box::new(lines)), Box::new(done));
        }
        let (sender, receiver) = sync_channel::<Vec<Said>>(WAITING);
        let worker = scope.spawn(move || {
            let mut lines = lines;
            receiver.into_iter().flatten().for_each(|said| take(&mut lines, said));
            lines.finish()
        });
        let done = move |mut along: Along| {
            along.hand_over();
            drop(along);
            worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        (Along::There(sender, vec![]), Box::new(done))
    }

    /// Takes a line of an access log.
    pub(super) fn access(&mut self, record: Box<AccessRecord>) {
        self.take(Said::Access(record));
    }

    /// Takes what the server says between the lines.
    pub(super) fn event(&mut self, event: &LogEvent) {
        if Lines::wants(event) {
            self.take(Said::Event(Box::new(event.clone())));
        }
    }

    fn take(&mut self, said: Said) {
        match self {
            Along::Here(lines) => take(lines, said),
            Along::There(_, batch) => {
                batch.push(said);
                if batch.len() >= BATCH {
                    self.hand_over();
                }
            }
        }
    }

    fn hand_over(&mut self) {
        if let Along::There(sender, batch) = self {
            // A worker that is gone has panicked, and says so when it is waited for.
            drop(sender.send(std::mem::replace(batch, Vec::with_capacity(BATCH))));
        }
    }
}

fn take(lines: &mut Lines, said: Said) {
    match said {
        Said::Access(record) => lines.access(record),
        Said::Event(event) => lines.event(*event),
    }
}
