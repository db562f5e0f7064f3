//! Full exchanges recorded by something other than a packet capture: HAR files of browsers and
//! debugging proxies, and mitmproxy's flow files.
//!
//! Both keep whole messages with a few times each. They are told as exchanges in order of time, so
//! that what follows does not know that there were no packets. Places are the entry's number from 1.

mod base64;
pub mod har;
pub mod mitmproxy;
mod tell;
mod tnetstring;

#[cfg(test)]
mod tests;

use crate::input::recorded::RecordedKind;
use crate::model::exchange::ExchangeSink;
use crate::model::place::InputId;
use crate::model::problem::Problems;
use crate::model::time::Time;
use std::io::{self, BufRead};

/// How much of a recording was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Entries, unreadable ones and those of other protocols too.
    pub records: u64,
    /// Earliest time in it.
    pub first: Option<Time>,
    /// Latest time in it.
    pub last: Option<Time>,
}

impl Counts {
    fn saw(&mut self, at: Time) {
        self.first = Some(self.first.map_or(at, |f| f.min(at)));
        self.last = Some(self.last.map_or(at, |l| l.max(at)));
    }
}

/// The first exchange id for recordings in a run: those of captures count from 0.
pub const FIRST_EXCHANGE: u64 = 1 << 62;

/// Reads one recording of that kind to its end. `next_exchange` is the next free exchange id and is
/// moved on. What stands before a fault is kept; the fault is a problem.
///
/// # Errors
/// Only those of reading `bytes`.
pub fn read(
    kind: RecordedKind,
    input: InputId,
    bytes: &mut dyn BufRead,
    next_exchange: &mut u64,
    sink: &mut dyn ExchangeSink,
    problems: &mut Problems,
) -> io::Result<Counts> {
    let read = match kind {
        RecordedKind::Har => har::read_har,
        RecordedKind::Mitmproxy => mitmproxy::read_mitmproxy,
    };
    read(input, bytes, next_exchange, sink, problems)
}
