//! TCP (RFC 9293 §3.1) and UDP (RFC 768).

use super::ip::Ends;
use super::link::short;
use super::{Bytes, Context, State, checksum};
use crate::model::problem::ProblemKind;
use crate::wire::{Checksum, Segment, flags};
use std::hash::{BuildHasher, BuildHasherDefault};
use std::net::SocketAddr;

/// Flows that are told apart when QUIC is counted; more are not counted.
const QUIC_FLOWS: usize = 65_536;
/// A QUIC packet is at least this long (RFC 9000 §10.3: 21 bytes for a short header).
const QUIC_BYTES: usize = 21;

impl State {
    #[inline]
    pub(super) fn tcp<'a>(&mut self, ends: Ends, bytes: Bytes<'a>, context: &mut Context<'_>) -> Option<Segment<'a>> {
        let Some(head) = bytes.data.first_chunk::<20>() else { return short(bytes, "TCP", 20, context) };
        let header = usize::from(head[12] >> 4) * 4;
        if header < 20 || header > bytes.wire as usize {
            context.problem(ProblemKind::BadPacket, || format!("a TCP header of {header} bytes"));
            return None;
        }
        let payload = bytes.after(header);
        let is_cut = (bytes.data.len() as u32) < bytes.wire;
        if is_cut {
            cut(payload, context);
        }
        let set = head[13];
        Some(Segment {
            mark: context.mark,
            src: SocketAddr::new(ends.0, u16::from_be_bytes([head[0], head[1]])),
            dst: SocketAddr::new(ends.1, u16::from_be_bytes([head[2], head[3]])),
            scope: context.scope,
            seq: u32::from_be_bytes([head[4], head[5], head[6], head[7]]),
            ack: (set & flags::ACK != 0).then(|| u32::from_be_bytes([head[8], head[9], head[10], head[11]])),
            flags: set,
            payload: payload.data,
            wire_len: payload.wire,
            checksum: if is_cut { Checksum::Unknown } else { checksum::tcp(ends, bytes.data) },
        })
    }

    pub(super) fn udp<'a>(&mut self, ends: Ends, bytes: Bytes<'a>, context: &mut Context<'_>) -> Option<Segment<'a>> {
        let (Some(from), Some(to), Some(length), Some(_)) = (bytes.u16(0), bytes.u16(2), bytes.u16(4), bytes.u16(6))
        else {
            return short(bytes, "UDP", 8, context);
        };
        // 0 is a jumbogram or left to the network card.
        let whole = if length < 8 { bytes } else { bytes.trimmed(u32::from(length).min(bytes.wire)) };
        let payload = whole.after(8);
        if let Some(inner) = self.udp_tunnel(from, to, payload, context) {
            return inner;
        }
        if is_quic(from, to, payload.data) {
            self.quic(SocketAddr::new(ends.0, from), SocketAddr::new(ends.1, to), context);
        }
        self.nothing()
    }

    /// Counts QUIC once a flow.
    #[cold]
    fn quic(&mut self, from: SocketAddr, to: SocketAddr, context: &mut Context<'_>) {
        let hasher = BuildHasherDefault::<rustc_hash::FxHasher>::default();
        let flow = hasher.hash_one((from.min(to), from.max(to)));
        if self.quic.len() < QUIC_FLOWS && self.quic.insert(flow) {
            context.problem(ProblemKind::Quic, || {
                format!("a QUIC flow between {from} and {to}; QUIC (HTTP/3) is not read")
            });
        }
    }
}

#[cold]
fn cut(payload: Bytes<'_>, context: &mut Context<'_>) {
    let (have, wire) = (payload.data.len(), payload.wire);
    context.problem(ProblemKind::CutFrame, || {
        format!("only {have} of {wire} TCP payload bytes were captured (snap length); capture with a larger one (tcpdump -s 0)")
    });
}

/// Is it QUIC (RFC 9000 §17, RFC 9369 §3.1)? Long headers carry a version; short ones only look
/// random and are believed on port 443.
fn is_quic(from: u16, to: u16, payload: &[u8]) -> bool {
    if payload.len() < QUIC_BYTES {
        return false;
    }
    match payload {
        [first, version @ ..] if first & 0xc0 == 0xc0 => matches!(
            version,
            [0, 0, 0, 1, ..] | [0x6b, 0x33, 0x43, 0xcf, ..] | [0xff, 0, 0, _, ..] | [b'Q', b'0', _, _, ..]
        ),
        [first, ..] => (from == 443 || to == 443) && first & 0xc0 == 0x40,
        [] => false,
    }
}
