//! Work that goes on beside the reading, on a thread of its own where there is one to spare.

use crate::model::options::ReadOptions;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{Scope, ScopedJoinHandle};

/// Items that wait to be worked on: another is being worked on, and another made.
const WAITING: usize = 1;

/// Where items go.
pub(super) enum Beside<'s, W, T> {
    /// They are worked on where they are read.
    Here(Box<W>, fn(&mut W, T)),
    /// By another thread.
    There(SyncSender<T>, ScopedJoinHandle<'s, W>),
}

impl<'s, W: Send + 's, T: Send + 's> Beside<'s, W, T> {
    /// `work` takes each item with `take`.
    pub(super) fn new(scope: &'s Scope<'s, '_>, read: &ReadOptions, mut work: W, take: fn(&mut W, T)) -> Self {
        if read.threads() == 1 {
            return Beside::Here(Box::new(work), take);
        }
        let (sender, receiver) = sync_channel(WAITING);
        let worker = scope.spawn(move || {
            receiver.into_iter().for_each(|item| take(&mut work, item));
            work
        });
        Beside::There(sender, worker)
    }

    pub(super) fn take(&mut self, item: T) {
        match self {
            Beside::Here(work, take) => take(work, item),
            // A worker that is gone has panicked, and says so when it is waited for.
            Beside::There(sender, _) => drop(sender.send(item)),
        }
    }

    /// All items were taken: what was made of them.
    pub(super) fn finish(self) -> W {
        match self {
            Beside::Here(work, _) => *work,
            Beside::There(sender, worker) => {
                drop(sender);
                worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            }
        }
    }
}

/// Does both, the second on a thread of its own where there is one to spare.
pub(super) fn both<A, B: Send>(read: &ReadOptions, a: impl FnOnce() -> A, b: impl FnOnce() -> B + Send) -> (A, B) {
    if read.threads() == 1 {
        return (a(), b());
    }
    std::thread::scope(|scope| {
        let b = scope.spawn(b);
        (a(), b.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}
