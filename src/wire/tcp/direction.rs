//! What is known of one direction of a connection.

use super::copies::Copies;
use super::held::{HeldRuns, Origin};
use crate::model::exchange::Mark;
use crate::model::time::Time;

/// Jumps of the sequence or acknowledgment number beyond this are another connection or garbage.
pub(super) const WINDOW: u64 = 1 << 30;

/// A FIN or RST that waits for the bytes before it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ending {
    /// Sequence number behind the last byte.
    pub seq: u64,
    /// Acknowledgment number it carried, in the other direction's sequence.
    pub ack: Option<u64>,
    /// Its frame.
    pub mark: Mark,
    /// Number of the segment.
    pub arrived: u64,
}

/// One direction. Sequence numbers are unwrapped to 64 bits.
#[derive(Debug, Default)]
pub(super) struct Direction {
    /// The next byte to deliver, once `started`; before, a number to unwrap others by.
    pub next: u64,
    /// The first byte; offsets count from it.
    pub start: u64,
    /// Is it known where to begin?
    pub started: bool,
    /// Initial sequence number, if a SYN told it.
    pub isn: Option<u32>,
    /// `next` means something.
    pub known: bool,
    /// A segment of this direction was captured.
    pub seen: bool,
    /// Lowest first byte among captured segments.
    pub low: Option<u64>,
    /// Behind the last byte of any captured segment, cut parts included.
    pub high: u64,
    /// Highest acknowledgment by the peer.
    pub acked: u64,
    /// Highest acknowledgment that this direction carried up to `next`, in the other's sequence.
    pub heard: u64,
    /// Lowest acknowledgment by the peer.
    pub low_ack: Option<u64>,
    /// Since when `acked` is beyond `next`.
    pub ack_since: Option<(Mark, u64)>,
    /// The last segment of which only a part was captured.
    pub cut: Option<(Mark, u64)>,
    /// Where the FIN stands.
    pub fin: Option<Ending>,
    /// Where the RST stands.
    pub rst: Option<Ending>,
    /// Nothing that the peer sent before the FIN can still come.
    pub fin_settled: bool,
    /// Latest time at which this direction was captured in sequence.
    pub spoke: Option<Time>,
    /// A FIN that the capture lacks was acknowledged.
    pub fin_assumed: bool,
    /// Nothing more will be delivered.
    pub closed: bool,
    /// Not captured at all, as far as can be told: its holes are not waited for.
    pub absent: bool,
    /// A checksum fitted.
    pub good: bool,
    /// What waits.
    pub held: HeldRuns,
    /// What was delivered.
    pub copies: Copies,
}

/// Bytes that are missing, as far as is known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hole {
    /// Behind its last byte.
    pub end: u64,
    /// Since when it is known.
    pub at: Time,
    /// How many segments had been read then.
    pub arrived: u64,
    /// Where that was seen.
    pub mark: Mark,
    /// The peer has received these bytes: no copy needs to come any more.
    pub acked: bool,
    /// The bytes are there, but suspect.
    pub suspect: bool,
}

impl Direction {
    /// A 32-bit sequence number as the 64-bit one nearest to what is expected.
    pub fn unwrap(&mut self, seq: u32) -> u64 {
        if !self.known {
            self.known = true;
            self.next = (1 << 32) | u64::from(seq);
        }
        self.near(seq)
    }

    /// As [`Direction::unwrap`], without learning.
    pub fn near(&self, seq: u32) -> u64 {
        let ahead = seq.wrapping_sub(self.next as u32).cast_signed();
        self.next.saturating_add_signed(i64::from(ahead))
    }

    /// The first byte is `at`.
    pub fn begin(&mut self, at: u64) {
        self.started = true;
        self.start = at;
        self.next = at;
        self.high = self.high.max(at);
    }

    /// Behind the last number the peer can acknowledge after what was delivered.
    pub fn delivered(&self) -> u64 {
        self.next + u64::from(self.closed || self.fin_assumed)
    }

    /// The same, with a FIN that is known and waits.
    pub fn acknowledgeable(&self) -> u64 {
        self.delivered().max(self.next + u64::from(self.fin.is_some_and(|fin| fin.seq == self.next)))
    }

    /// The FIN or RST that comes next.
    pub fn ending(&self) -> Option<Ending> {
        let is_next = |ending: &Ending| ending.seq <= self.delivered();
        self.fin.filter(is_next).or(self.rst.filter(is_next))
    }

    /// Drops what lies before `next` of the runs that wait; true if the first then begins there.
    pub fn ready(&mut self) -> bool {
        while let Some((start, held)) = self.held.first() {
            if start >= self.next {
                return start == self.next;
            }
            let (end, origin) = (start + held.bytes.len() as u64, held.origin);
            let Some((start, held)) = self.held.pop() else { return false };
            if end > self.next
                && let Some(rest) = held.bytes.get((self.next - start) as usize..)
            {
                self.held.insert(self.next, rest, origin);
            }
        }
        false
    }

    /// The first hole, if bytes are known to be missing at `next`.
    pub fn hole(&self) -> Option<Hole> {
        if !self.started || self.closed {
            return None;
        }
        let acked = self.acked > self.acknowledgeable();
        let ending = self.fin.or(self.rst).filter(|ending| ending.seq > self.next);
        if let Some((start, held)) = self.held.first() {
            let suspect = start <= self.next;
            let end = match (suspect, acked) {
                (true, _) => start + held.bytes.len() as u64,
                // What the peer has not received yet may still be sent again.
                (false, true) => start.min(self.acked),
                (false, false) => start,
            };
            let Origin { mark, arrived, .. } = held.origin;
            return Some(Hole { end, at: mark.at, arrived, mark, acked, suspect });
        }
        let (end, (mark, arrived)) = if acked {
            // A FIN that was acknowledged takes a number of its own.
            let end = self.fin.map_or(self.acked, |fin| self.acked.min(fin.seq));
            (end, self.ack_since?)
        } else if let Some(ending) = ending {
            (ending.seq, (ending.mark, ending.arrived))
        } else {
            (self.high, self.cut?)
        };
        (end > self.next).then_some(Hole { end, at: mark.at, arrived, mark, acked, suspect: false })
    }
}
