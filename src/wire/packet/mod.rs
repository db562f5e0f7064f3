//! A captured frame to the TCP segment in it: link layer, tags and tunnels, IP, fragments.
//!
//! This runs for each packet of a capture: headers are read in place, and nothing is copied but
//! fragments.

mod checksum;
mod fragments;
mod ip;
mod link;
#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests;
mod transport;
mod tunnel;

use super::Segment;
use crate::input::capture::Frame;
use crate::model::exchange::Mark;
use crate::model::problem::{ProblemKind, Problems};
use fragments::{Fragments, Rebuilt};
use rustc_hash::FxHashSet;

/// Headers of links, networks and tunnels that are followed into each other.
const LAYERS: u8 = 16;

/// Finds the TCP segments in the frames of one input. Each input needs its own, as the same
/// fragments may have been captured in several.
#[derive(Debug, Default)]
pub struct Decoder {
    state: State,
    /// The last datagram put together from fragments; segments borrow from it.
    rebuilt: Vec<u8>,
}

#[derive(Debug, Default)]
struct State {
    fragments: Fragments,
    /// Flows (hashes of both ends) that were told as QUIC.
    quic: FxHashSet<u64>,
    /// Packets that carry nothing of interest: ARP, ICMP, plain UDP.
    ignored: u64,
}

/// Bytes as far as captured, and their length on the wire.
#[derive(Clone, Copy, Debug)]
struct Bytes<'a> {
    data: &'a [u8],
    /// Never less than `data.len()`.
    wire: u32,
}

impl<'a> Bytes<'a> {
    /// What follows the first `length` bytes; if not even these were captured, nothing of it.
    #[inline]
    fn after(self, length: usize) -> Bytes<'a> {
        Bytes {
            data: self.data.get(length..).unwrap_or_default(),
            wire: self.wire.saturating_sub(u32::try_from(length).unwrap_or(u32::MAX)),
        }
    }

    /// The first `wire` bytes, of which more may have been captured (padding) or fewer (a cut).
    #[inline]
    fn trimmed(self, wire: u32) -> Bytes<'a> {
        let data = self.data.get(..wire as usize).unwrap_or(self.data);
        Bytes { data, wire }
    }

    #[inline]
    fn u8(self, at: usize) -> Option<u8> {
        self.data.get(at).copied()
    }

    #[inline]
    fn u16(self, at: usize) -> Option<u16> {
        self.data.get(at..).and_then(|b| b.first_chunk()).map(|b| u16::from_be_bytes(*b))
    }

    #[inline]
    fn u32(self, at: usize) -> Option<u32> {
        self.data.get(at..).and_then(|b| b.first_chunk()).map(|b| u32::from_be_bytes(*b))
    }
}

/// What is known about the frame at hand while its layers are taken off.
struct Context<'p> {
    mark: Mark,
    interface: u32,
    /// VLANs and tunnels passed through, see [`Segment::scope`].
    scope: u64,
    layers: u8,
    problems: &'p mut Problems,
}

impl Context<'_> {
    /// Goes one header deeper; false if there are too many.
    fn enter(&mut self) -> bool {
        self.layers += 1;
        if self.layers > LAYERS {
            self.problem(ProblemKind::Tunnel, || format!("more than {LAYERS} headers inside each other"));
        }
        self.layers <= LAYERS
    }

    /// Adds a VLAN (12 bits) or virtual network (24 bits) to the scope.
    fn enter_network(&mut self, bits: u32, id: u32) {
        self.scope = self.scope.rotate_left(bits) ^ u64::from(id);
    }

    #[cold]
    fn problem(&mut self, kind: ProblemKind, text: impl FnOnce() -> String) {
        let frame = self.mark.place.number;
        self.problems.add(kind, || format!("frame {frame}"), text);
    }

    /// A header does not parse because it is not whole: cut off, or wrong.
    #[cold]
    fn short(&mut self, bytes: Bytes<'_>, what: &'static str, need: usize) {
        if bytes.wire as usize >= need {
            self.problem(ProblemKind::CutFrame, || {
                format!("the capture's snap length cut the packet inside its {what} header; capture with a larger one (tcpdump -s 0)")
            });
        } else {
            self.problem(ProblemKind::BadPacket, || {
                format!("{} bytes where a {what} header has at least {need}", bytes.wire)
            });
        }
    }
}

impl Decoder {
    /// A decoder for one input.
    pub fn new() -> Decoder {
        Decoder::default()
    }

    /// The TCP segment in `frame`, if there is one. A fragment gives none until the last one of
    /// its datagram came, whose frame then counts as the segment's.
    #[inline]
    pub fn segment<'a>(&'a mut self, frame: &Frame<'a>, problems: &mut Problems) -> Option<Segment<'a>> {
        let mark = Mark { place: frame.place, at: frame.at };
        let mut context = Context { mark, interface: frame.interface, scope: 0, layers: 0, problems };
        let bytes = Bytes { data: frame.data, wire: frame.wire_len.max(frame.data.len() as u32) };
        let segment = self.state.link(frame.link_type, bytes, &mut context);
        if segment.is_some() || !self.state.fragments.has_rebuilt() {
            return segment;
        }
        self.reassembled(context)
    }

    #[cold]
    fn reassembled<'a>(&'a mut self, mut context: Context<'_>) -> Option<Segment<'a>> {
        let Rebuilt { bytes, wire, ends, protocol, scope } = self.state.fragments.take_rebuilt()?;
        self.rebuilt = bytes;
        context.scope = scope;
        let segment = self.state.payload(protocol, ends, Bytes { data: &self.rebuilt, wire }, &mut context);
        if self.state.fragments.take_rebuilt().is_some() {
            context.problem(ProblemKind::Tunnel, || "fragments inside of fragments are not read".to_owned());
        }
        segment
    }

    /// The input has ended: counts what was left incomplete.
    pub fn finish(&mut self, problems: &mut Problems) {
        self.state.fragments.finish(problems);
    }

    /// Packets so far that carry nothing of interest (ARP, ICMP, plain UDP); they are no problem.
    pub fn ignored(&self) -> u64 {
        self.state.ignored
    }
}
