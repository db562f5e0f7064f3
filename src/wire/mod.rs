//! Packets to HTTP exchanges.
//!
//! [`packet`] turns a captured frame into a TCP [`Segment`]; `tcp` puts the segments of each
//! connection in order; what a connection carries is probed and handed to a [`StreamParser`]
//! (`http1`, `http2`, `tls`, …), which tells an [`ExchangeSink`](crate::model::exchange::ExchangeSink) of exchanges.

pub mod body;
pub mod captures;
mod driver;
pub mod hpack;
pub mod http1;
pub mod http2;
pub mod packet;
pub mod probe;
pub mod recorded;
pub mod sse;
mod tcp;
#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
mod tests;
pub mod tls;
pub mod write;

pub use driver::{Wire, WireOptions};

use crate::model::exchange::{ExchangeSink, Mark, Peer};
use crate::model::problem::Problems;
use std::net::SocketAddr;

/// Whether a segment's TCP checksum fits. A bad one alone never discards a segment: checksums of
/// packets captured on the sending host are not valid yet (offload).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checksum {
    /// It fits.
    Good,
    /// It does not fit.
    Bad,
    /// It could not be computed: the frame is cut, or it was not looked at.
    Unknown,
}

/// TCP flag bits as in the header (RFC 9293 §3.1).
pub mod flags {
    /// No more data from sender.
    pub const FIN: u8 = 0x01;
    /// Synchronize sequence numbers.
    pub const SYN: u8 = 0x02;
    /// Reset the connection.
    pub const RST: u8 = 0x04;
    /// Push.
    pub const PSH: u8 = 0x08;
    /// Acknowledgment field is significant.
    pub const ACK: u8 = 0x10;
}

/// One TCP segment of one packet.
#[derive(Clone, Copy, Debug)]
pub struct Segment<'a> {
    /// Its frame and time.
    pub mark: Mark,
    /// Sender.
    pub src: SocketAddr,
    /// Receiver.
    pub dst: SocketAddr,
    /// Separates equal address pairs that are different networks (VLAN tags, tunnel ids); 0 for none.
    /// Interfaces do not count: the same packet may be seen on several.
    pub scope: u64,
    /// Sequence number of the first payload byte (of the SYN, if it is one).
    pub seq: u32,
    /// Acknowledgment number, where the ACK flag is set.
    pub ack: Option<u32>,
    /// Flag bits, see [`flags`].
    pub flags: u8,
    /// Payload as far as captured.
    pub payload: &'a [u8],
    /// Payload length on the wire, bytes; more than `payload.len()` if the frame was cut.
    pub wire_len: u32,
    /// Does the checksum fit?
    pub checksum: Checksum,
}

/// How one direction of a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Close {
    /// FIN.
    Fin,
    /// RST, sent by the end named.
    Reset,
    /// The input ended, or the connection was given up for a limit.
    InputEnded,
}

/// What a parser may tell while it works.
pub struct Context<'a> {
    /// Receives exchanges.
    pub sink: &'a mut dyn ExchangeSink,
    /// Receives what could not be read, for the input at hand.
    pub problems: &'a mut Problems,
    /// The next free exchange id; a parser that opens an exchange takes it and adds one.
    pub next_exchange: &'a mut u64,
}

/// Facts about a connection that parsers copy into exchanges.
#[derive(Clone, Copy, Debug)]
pub struct Connection {
    /// Input of its first frame.
    pub input: u32,
    /// Stream number as Wireshark gives it (per input, from 0).
    pub stream: u64,
    /// The requesting end.
    pub client: SocketAddr,
    /// The answering end.
    pub server: SocketAddr,
    /// When its SYN was seen; none: the capture began later.
    pub connected: Option<crate::model::time::Time>,
    /// Only one direction has been captured.
    pub one_direction: bool,
    /// Bytes that the end now heard had sent before (delivered or told as gaps), counted from its
    /// SYN, else from the first that was captured.
    pub offset: u64,
    /// Bytes of the other end that it had received when it sent this, counted alike; `u64::MAX`
    /// if it does not tell; for a gap, what it had received before. What it acknowledges was always delivered before.
    pub acked: u64,
}

/// Reads the ordered bytes of both directions of one connection.
pub trait StreamParser {
    /// Bytes in order from one end. One call never spans frames: `mark` holds for all of `bytes`.
    fn data(&mut self, connection: &Connection, from: Peer, bytes: &[u8], mark: Mark, context: &mut Context<'_>);
    /// `bytes` bytes from one end are missing here (never captured, or cut); none: unknown how many.
    fn gap(&mut self, connection: &Connection, from: Peer, bytes: Option<u64>, mark: Mark, context: &mut Context<'_>);
    /// One end will send no more. `Close::Reset` and `InputEnded` end both directions.
    fn close(&mut self, connection: &Connection, from: Peer, close: Close, mark: Mark, context: &mut Context<'_>);
}
