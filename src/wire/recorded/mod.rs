//! Full exchanges recorded by something other than a packet capture: HAR files of browsers and
//! debugging proxies, and mitmproxy's flow files.
//!
//! Both keep whole messages with a few times each. They are told as exchanges in order of time, so
//! that what follows does not know that there were no packets. Places are the entry's number from 1.

mod base64;
mod content;
pub mod har;
pub mod mitmproxy;
mod tell;
mod tnetstring;

#[cfg(test)]
mod tests;

use crate::input::log::Grade;
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

/// Reads one recording to its end.
///
/// `next_exchange` is the next free exchange id and is moved on.
pub type Read = fn(InputId, &mut dyn BufRead, &mut u64, &mut dyn ExchangeSink, &mut Problems) -> io::Result<Counts>;

/// A format of recorded exchanges; its vantage is the wire.
pub struct RecordedFormat {
    /// Its name for `--input-format` and in reports.
    pub name: &'static str,
    /// Manual text.
    pub doc: &'static str,
    /// How sure is it that an input that begins with these bytes (up to 64 KiB, cut anywhere) is its own?
    pub grade: fn(&[u8]) -> Grade,
    /// How it is read.
    pub read: Read,
}

/// Every format of recorded exchanges.
pub static FORMATS: &[&RecordedFormat] = &[&har::FORMAT, &mitmproxy::FORMAT];
