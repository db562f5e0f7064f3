//! Work that is done on several threads, and noted in the checkpoint as it comes.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Does `each` of `todo`, so many of them at once as there are `jobs`; `done` takes what comes of them, one after the
/// other, in no order. What comes of one when `stop` is set, or after an error, is dropped.
///
/// # Errors
/// The first of `done`, after which no more is begun.
pub fn aside<T>(
    jobs: usize,
    todo: &[usize],
    stop: &(dyn Fn() -> bool + Sync),
    each: &(dyn Fn(usize) -> T + Sync),
    done: &mut (dyn FnMut(usize, T) -> anyhow::Result<()> + Send),
) -> anyhow::Result<()> {
    let next = AtomicUsize::new(0);
    let shared = Mutex::new((done, None));
    std::thread::scope(|scope| {
        for _ in 0..jobs.min(todo.len()) {
            scope.spawn(|| {
                while let Some(n) = todo.get(next.fetch_add(1, Ordering::Relaxed)).copied() {
                    let found = each(n);
                    let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
                    let (done, error) = &mut *shared;
                    if stop() || error.is_some() {
                        break;
                    }
                    *error = done(n, found).err();
                }
            });
        }
    });
    let (_, error) = shared.into_inner().unwrap_or_else(PoisonError::into_inner);
    error.map_or(Ok(()), Err)
}
