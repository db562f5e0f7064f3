//! IPv4 (RFC 791) and IPv6 (RFC 8200): headers, extension headers, fragments.
//!
//! Own code rather than `etherparse`, whose lax iterator over IPv6 extension headers (0.21) reads
//! outside of its slice where a hop-by-hop header is out of place and the packet ends; it makes
//! packets for the tests.

use super::fragments::{Fragment, Key};
use super::link::short;
use super::{Bytes, Context, State};
use crate::model::problem::ProblemKind;
use crate::wire::Segment;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Protocol numbers (IANA).
pub(super) mod protocol {
    pub(crate) const HOP_BY_HOP: u8 = 0;
    pub(crate) const IPV4: u8 = 4;
    pub(crate) const TCP: u8 = 6;
    pub(crate) const UDP: u8 = 17;
    pub(crate) const IPV6: u8 = 41;
    pub(crate) const ROUTING: u8 = 43;
    pub(crate) const FRAGMENT: u8 = 44;
    pub(crate) const GRE: u8 = 47;
    pub(crate) const ESP: u8 = 50;
    pub(crate) const AUTHENTICATION: u8 = 51;
    pub(crate) const DESTINATION_OPTIONS: u8 = 60;
    pub(crate) const ETHERIP: u8 = 97;
    pub(crate) const IPCOMP: u8 = 108;
    pub(crate) const L2TP: u8 = 115;
    pub(crate) const MOBILITY: u8 = 135;
    pub(crate) const MPLS: u8 = 137;
    pub(crate) const HIP: u8 = 139;
    pub(crate) const SHIM6: u8 = 140;
    pub(crate) const ETHERNET: u8 = 143;
}

/// Length of an IPv6 header.
const IPV6_HEADER: usize = 40;

/// Sender and receiver.
pub(super) type Ends = (IpAddr, IpAddr);

impl State {
    /// An IP packet of either version, as its first bits say.
    #[inline]
    pub(super) fn ip<'a>(&mut self, bytes: Bytes<'a>, context: &mut Context<'_>) -> Option<Segment<'a>> {
        match bytes.u8(0).map(|first| first >> 4) {
            Some(4) => self.ipv4(bytes, context),
            Some(6) => self.ipv6(bytes, context),
            Some(other) => {
                context.problem(ProblemKind::BadPacket, || format!("IP version {other}"));
                None
            }
            None => short(bytes, "IP", 20, context),
        }
    }

    #[inline]
    fn ipv4<'a>(&mut self, bytes: Bytes<'a>, context: &mut Context<'_>) -> Option<Segment<'a>> {
        let Some(head) = bytes.data.first_chunk::<20>() else { return short(bytes, "IPv4", 20, context) };
        let header = usize::from(head[0] & 0xf) * 4;
        let total = u32::from(u16::from_be_bytes([head[2], head[3]]));
        if header < 20 {
            context.problem(ProblemKind::BadPacket, || format!("an IPv4 header of {header} bytes"));
            return None;
        }
        // 0 is written for packets that the network card will segment (TSO), or that are larger
        // than the field can say: then all of the frame belongs to it.
        let packet = if total == 0 { bytes } else { bytes.trimmed(total) };
        if (packet.wire as usize) < header {
            context
                .problem(ProblemKind::BadPacket, || format!("an IPv4 packet of {total} bytes, less than its header"));
            return None;
        }
        let payload = packet.after(header);
        let ends = (
            IpAddr::V4(Ipv4Addr::new(head[12], head[13], head[14], head[15])),
            IpAddr::V4(Ipv4Addr::new(head[16], head[17], head[18], head[19])),
        );
        // More fragments, or an offset in units of 8 bytes.
        let fragment = u16::from_be_bytes([head[6], head[7]]);
        if fragment & 0x3fff != 0 {
            let id = u32::from(u16::from_be_bytes([head[4], head[5]]));
            let piece = Fragment {
                key: Key { ends, id, protocol: head[9], interface: context.interface, scope: context.scope },
                offset: u32::from(fragment & 0x1fff) * 8,
                more: fragment & 0x2000 != 0,
                bytes: payload,
            };
            self.fragments.add(&piece, context);
            return None;
        }
        if head[9] == protocol::TCP {
            return self.tcp(ends, payload, context);
        }
        self.payload(head[9], ends, payload, context)
    }

    fn ipv6<'a>(&mut self, bytes: Bytes<'a>, context: &mut Context<'_>) -> Option<Segment<'a>> {
        let Some(head) = bytes.data.first_chunk::<IPV6_HEADER>() else {
            return short(bytes, "IPv6", IPV6_HEADER, context);
        };
        let address = |at: usize| -> IpAddr {
            let octets = head.get(at..).and_then(|b| b.first_chunk::<16>()).copied().unwrap_or_default();
            IpAddr::V6(Ipv6Addr::from(octets))
        };
        let ends = (address(8), address(24));
        let length = u32::from(u16::from_be_bytes([head[4], head[5]]));
        // 0 is a jumbogram (RFC 2675) or left to the network card: all of the frame belongs to it.
        let payload = match length {
            0 => bytes.after(IPV6_HEADER),
            n => bytes.after(IPV6_HEADER).trimmed(n),
        };
        if head[6] == protocol::TCP {
            return self.tcp(ends, payload, context);
        }
        self.payload(head[6], ends, payload, context)
    }

    /// What an IP header, or a datagram put together from fragments, carries.
    pub(super) fn payload<'a>(
        &mut self,
        carries: u8,
        ends: Ends,
        bytes: Bytes<'a>,
        context: &mut Context<'_>,
    ) -> Option<Segment<'a>> {
        match carries {
            protocol::TCP => self.tcp(ends, bytes, context),
            protocol::UDP => self.udp(ends, bytes, context),
            protocol::HOP_BY_HOP
            | protocol::ROUTING
            | protocol::FRAGMENT
            | protocol::AUTHENTICATION
            | protocol::DESTINATION_OPTIONS
            | protocol::MOBILITY
            | protocol::HIP
            | protocol::SHIM6 => self.extension(carries, ends, bytes, context),
            other => self.tunnel(other, bytes, context),
        }
    }

    /// One extension header (RFC 8200 §4; RFC 4302 §2 for authentication, also in IPv4).
    #[cold]
    fn extension<'a>(
        &mut self,
        kind: u8,
        ends: Ends,
        bytes: Bytes<'a>,
        context: &mut Context<'_>,
    ) -> Option<Segment<'a>> {
        let (Some(next), Some(units)) = (bytes.u8(0), bytes.u8(1)) else {
            return short(bytes, "IPv6 extension", 8, context);
        };
        let length = match kind {
            protocol::FRAGMENT => 8,
            protocol::AUTHENTICATION => (usize::from(units) + 2) * 4,
            _ => (usize::from(units) + 1) * 8,
        };
        if bytes.data.len() < length {
            return short(bytes, "IPv6 extension", length, context);
        }
        if !context.enter() {
            return None;
        }
        let rest = bytes.after(length);
        let (Some(offset), Some(id)) = (bytes.u16(2), bytes.u32(4)) else { return None };
        // The last bit says that more fragments follow, the next two are reserved; a fragment
        // that is the whole of its datagram is none (RFC 6946).
        if kind == protocol::FRAGMENT && offset & 0xfff9 != 0 {
            // The protocol may differ between fragments and is that of the first (RFC 8200 §4.5):
            // it is no part of the key.
            let key = Key { ends, id, protocol: 0, interface: context.interface, scope: context.scope };
            let piece = Fragment { key, offset: u32::from(offset & 0xfff8), more: offset & 1 != 0, bytes: rest };
            self.fragments.add_with_protocol(&piece, next, context);
            return None;
        }
        self.payload(next, ends, rest, context)
    }
}
