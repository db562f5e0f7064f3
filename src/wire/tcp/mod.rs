//! Puts the segments of one TCP connection in order (RFC 9293 §3.4, §3.10.7.4), from what a
//! capture holds: copies, holes and packets out of order included.
//!
//! Two rules go beyond a receiver's:
//! - **Order between the directions.** A segment is delivered only after the bytes that it
//!   acknowledges, so that a request is known before its answer, whatever the order of packets.
//! - **Holes are values.** Bytes that the peer acknowledged and the capture lacks are told as a
//!   gap of known length once their packet had time to turn up.

mod connection;
mod copies;
mod direction;
mod held;
mod late;

pub(crate) use connection::Reassembler;
pub(crate) use late::Clock;

use super::Close;
use crate::model::exchange::Mark;
use crate::model::problem::ProblemKind;

/// One of the two ends of a connection, as it stands in the connection table; which of them is
/// the client is not TCP's business.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// The end with the lower address and port.
    A,
    /// The other.
    B,
}

impl Side {
    /// The peer.
    pub(crate) fn other(self) -> Side {
        match self {
            Side::A => Side::B,
            Side::B => Side::A,
        }
    }
}

/// Where a delivered run of bytes lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct At {
    /// Bytes of this direction before it (delivered or told as gaps) since the start.
    pub offset: u64,
    /// Bytes of the other direction that the sender had received when it sent this; for a gap, what
    /// it had received before.
    pub acked: u64,
    /// Frame and time.
    pub mark: Mark,
}

/// Receives the ordered bytes of both directions.
pub(crate) trait Output {
    /// The next bytes from one end.
    fn data(&mut self, from: Side, bytes: &[u8], at: At);
    /// `bytes` bytes from one end are missing here; none: unknown how many.
    fn gap(&mut self, from: Side, bytes: Option<u64>, at: At);
    /// One end sends no more.
    fn close(&mut self, from: Side, close: Close, at: At);
    /// The beginning was not captured; `held` are the first segments, in sequence. Called once,
    /// before anything else is delivered.
    fn midstream(&mut self, held: &mut dyn Iterator<Item = (Side, &[u8])>, mark: Mark);
    /// Something is wrong with the segment of `mark`.
    fn problem(&mut self, kind: ProblemKind, mark: Mark, text: &'static str);
}
