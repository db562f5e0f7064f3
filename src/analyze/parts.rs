//! Joins what has ended while reading goes on, on a thread of its own where there is one to spare.

use crate::join::retire::Parts;
use crate::mcp::{Tracker, Visit};
use crate::model::limits::{PART_BYTES, PART_VISITS};
use crate::model::options::{AnalyzeOptions, ReadOptions};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::Scope;

/// Parts that wait to be joined: with one being made and one being joined, memory is that of four.
const WAITING: usize = 2;

/// Exchanges that ended, and copies of those that had not when they were taken.
type Part = (Vec<Visit>, Vec<Visit>);

/// Where parts go.
pub enum Joiner {
    /// Everything is joined at the end.
    Whole,
    /// Joined where they are read.
    Here(Box<Parts>, usize),
    /// Joined by another thread.
    There(SyncSender<Part>, usize),
}

/// Gives the parts back, once the joiner is done.
pub type Done<'s> = Box<dyn FnOnce(Joiner) -> Parts + 's>;

impl Joiner {
    /// A joiner of parts, if `in_parts`, and what ends its work.
    pub fn new<'s>(
        scope: &'s Scope<'s, '_>,
        in_parts: bool,
        read: &ReadOptions,
        keep: &AnalyzeOptions,
    ) -> (Joiner, Done<'s>) {
        let size = if keep.part_visits == 0 { PART_VISITS } else { keep.part_visits };
        if !in_parts {
            return (Joiner::Whole, Box::new(|_| Parts::default()));
        }
        let parts = Parts::new(keep.bodies || keep.details);
        if is_alone(read) {
            let done = |joiner| match joiner {
                Joiner::Here(parts, _) => *parts,
                _ => Parts::default(),
            };
            return (Joiner::Here(Box::new(parts), size), Box::new(done));
        }
        let (sender, receiver) = sync_channel::<Part>(WAITING);
        let worker = scope.spawn(move || {
            let mut parts = parts;
            receiver.into_iter().for_each(|(ended, open)| parts.take(ended, open));
            parts
        });
        let done = move |joiner: Joiner| {
            drop(joiner);
            worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        (Joiner::There(sender, size), Box::new(done))
    }

    /// Takes what has ended, once it is enough for a part.
    pub fn take(&mut self, tracker: &mut Tracker) {
        let size = match self {
            Joiner::Whole => return,
            Joiner::Here(_, size) | Joiner::There(_, size) => *size,
        };
        let (visits, bytes) = tracker.ended();
        if visits < size && bytes < PART_BYTES {
            return;
        }
        let part = tracker.take_ended();
        match self {
            Joiner::Whole => {}
            Joiner::Here(parts, _) => parts.take(part.0, part.1),
            // A worker that is gone has panicked, and says so when it is waited for.
            Joiner::There(sender, _) => drop(sender.send(part)),
        }
    }
}

/// Is there but one thread to work on?
pub(super) fn is_alone(read: &ReadOptions) -> bool {
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    read.jobs == 1 || read.jobs == 0 && cores() == 1
}
