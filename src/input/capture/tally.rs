//! What a capture reader counts on its way.

use super::Current;
use crate::model::problem::{ProblemKind, Problems};
use crate::model::time::Time;

/// A record this much earlier than the one before it on the same interface is out of order, ns.
/// Several queues of one network card disagree by microseconds, which says nothing.
const DISORDER_NS: i64 = 1_000_000;

/// Counts, times and problems of one capture.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// Records so far: the number of the newest, as Wireshark numbers frames.
    pub(super) records: u64,
    pub(super) first: Option<Time>,
    pub(super) last: Option<Time>,
    pub(super) problems: Problems,
    /// TLS key log lines from decryption secrets blocks, not yet fetched.
    pub(super) secrets: Vec<Vec<u8>>,
    /// Time of the newest record of each interface, ns.
    newest: Vec<Option<i64>>,
    /// Time of the newest record, ns.
    latest: Option<i64>,
}

impl Tally {
    /// Counts a packet that is delivered.
    #[inline]
    pub(super) fn packet(&mut self, packet: &Current) {
        self.records += 1;
        let at = packet.at;
        if self.first.is_none_or(|first| at < first) {
            self.first = Some(at);
        }
        if self.last.is_none_or(|last| at > last) {
            self.last = Some(at);
        }
        self.latest = Some(at.ns());
        let interface = packet.interface as usize;
        if interface >= self.newest.len() {
            self.newest.resize(interface + 1, None);
        }
        let Some(newest) = self.newest.get_mut(interface) else { return };
        if let Some(before) = newest.replace(at.ns())
            && before.saturating_sub(at.ns()) > DISORDER_NS
        {
            self.disorder(before, at);
        }
    }

    #[cold]
    fn disorder(&mut self, before: i64, at: Time) {
        let back_ms = before.saturating_sub(at.ns()) / 1_000_000;
        self.problem(ProblemKind::TimeOrder, || {
            format!("a packet is {back_ms} ms earlier than the one before it; packets are taken in file order")
        });
    }

    /// Counts a record that occupies a frame number and is no packet.
    pub(super) fn other_record(&mut self) {
        self.records += 1;
    }

    /// A problem with the newest record.
    pub(super) fn problem(&mut self, kind: ProblemKind, text: impl FnOnce() -> String) {
        let frame = self.records;
        self.problems.add(kind, || format!("frame {frame}"), text);
    }

    /// A problem with what should be the next record.
    pub(super) fn problem_next(&mut self, kind: ProblemKind, text: impl FnOnce() -> String) {
        let frame = self.records + 1;
        self.problems.add(kind, || format!("frame {frame}"), text);
    }

    /// The input ends inside a record.
    pub(super) fn truncated(&mut self, have: u64, want: u64, offset: u64) {
        self.problem_next(ProblemKind::TruncatedRecord, || {
            format!("the file ends {have} bytes into a record of {want} bytes at byte {offset}; the packets before it were read")
        });
    }

    /// Bytes were passed over until the next record could be proved.
    pub(super) fn garbage(&mut self, offset: u64, skipped: u64) {
        self.problem_next(ProblemKind::Garbage, || {
            format!("{skipped} bytes at byte {offset} are no packet record; reading went on behind them, frame numbers from here on are ours")
        });
    }

    /// Bytes that are no record, and none could be proved behind them.
    pub(super) fn garbage_to_end(&mut self, offset: u64, skipped: u64) {
        self.problem_next(ProblemKind::Garbage, || {
            format!(
                "{skipped} bytes from byte {offset} to the end hold no packet record; the packets before them were read"
            )
        });
    }

    /// Another file begins, whose times need not go on from this one's.
    pub(super) fn forget_times(&mut self) {
        self.newest.clear();
        self.latest = None;
    }

    /// When the packet before was captured, ns.
    pub(super) fn latest_ns(&self) -> Option<i64> {
        self.latest
    }
}
