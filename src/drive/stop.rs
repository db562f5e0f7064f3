//! The wish to stop, shared by all threads of a run.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How often a thread that waits looks whether it should stop.
pub(crate) const TICK: Duration = Duration::from_millis(20);

/// Set once, by a signal or by the run itself; what was done until then stays valid.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// One that SIGINT and SIGTERM set. A second signal ends the process at once.
    ///
    /// # Errors
    /// If the signals cannot be caught.
    pub fn on_signals() -> io::Result<Stop> {
        use signal_hook::consts::{SIGINT, SIGTERM};
        let stop = Stop::default();
        for signal in [SIGINT, SIGTERM] {
            signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, stop.0.clone())?;
            signal_hook::flag::register(signal, stop.0.clone())?;
        }
        Ok(stop)
    }

    /// Asks everyone to stop.
    pub fn set(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    /// Asks everyone to stop after this time.
    pub fn set_after(&self, time: Duration) {
        let stop = self.clone();
        let until = Instant::now() + time;
        std::thread::spawn(move || {
            stop.sleep_until(until);
            stop.set();
        });
    }

    /// Is everyone asked to stop?
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    /// Sleeps up to `until`; false if it was cut short.
    pub fn sleep_until(&self, until: Instant) -> bool {
        loop {
            if self.is_set() {
                return false;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            std::thread::sleep(left.min(TICK));
        }
    }
}
