//! Tunnels that carry IP or Ethernet in IP or UDP.

use super::ip::protocol;
use super::link::{ethertype, short};
use super::{Bytes, Context, State};
use crate::model::problem::ProblemKind;
use crate::wire::Segment;

/// UDP ports of tunnels (IANA).
mod port {
    pub(super) const L2TP: u16 = 1701;
    pub(super) const GTP_U: u16 = 2152;
    pub(super) const TEREDO: u16 = 3544;
    pub(super) const IPSEC_NAT: u16 = 4500;
    pub(super) const GRE: u16 = 4754;
    pub(super) const VXLAN: u16 = 4789;
    pub(super) const AYIYA: u16 = 5072;
    pub(super) const GENEVE: u16 = 6081;
    pub(super) const MPLS: u16 = 6635;
    /// The Linux kernel's port for VXLAN before there was an assigned one.
    pub(super) const VXLAN_LINUX: u16 = 8472;
    pub(super) const WIREGUARD: u16 = 51820;
}

/// ERSPAN types II and III in GRE (draft-foschiano-erspan).
mod erspan {
    pub(super) const TWO: u16 = 0x88be;
    pub(super) const THREE: u16 = 0x22eb;
}

impl State {
    /// What IP carries besides TCP and UDP.
    #[cold]
    pub(super) fn tunnel<'a>(
        &mut self,
        carries: u8,
        bytes: Bytes<'a>,
        context: &mut Context<'_>,
    ) -> Option<Segment<'a>> {
        if !context.enter() {
            return None;
        }
        match carries {
            protocol::IPV4 | protocol::IPV6 => self.ip(bytes, context),
            protocol::GRE => self.gre(bytes, context),
            protocol::MPLS => self.mpls(bytes, context),
            // RFC 3378 §3: two bytes, then the frame.
            protocol::ETHERIP => self.ethernet(bytes.after(2), context),
            protocol::ETHERNET => self.ethernet(bytes, context),
            protocol::ESP => not_read("IPsec (ESP)", context),
            protocol::IPCOMP => not_read("compressed IP (IPComp)", context),
            protocol::L2TP => not_read("L2TP", context),
            _ => self.nothing(),
        }
    }

    /// What a tunnel in UDP carries; none: it is no tunnel.
    pub(super) fn udp_tunnel<'a>(
        &mut self,
        from: u16,
        to: u16,
        bytes: Bytes<'a>,
        context: &mut Context<'_>,
    ) -> Option<Option<Segment<'a>>> {
        let either = |port: u16| from == port || to == port;
        let data = bytes.data;
        if !context.enter() {
            return Some(None);
        }
        Some(match data {
            // RFC 7348 §5: a flag says that the network identifier is valid, the rest is reserved.
            [0x08, 0, 0, 0, a, b, c, 0, ..] if to == port::VXLAN || to == port::VXLAN_LINUX => {
                context.enter_network(24, u32::from_be_bytes([0, *a, *b, *c]));
                self.ethernet(bytes.after(8), context)
            }
            // RFC 8926 §3.4: version and length of options, flags, EtherType, network identifier.
            [first @ 0x00..=0x3f, _, p, q, a, b, c, 0, ..] if to == port::GENEVE => {
                context.enter_network(24, u32::from_be_bytes([0, *a, *b, *c]));
                let length = 8 + usize::from(*first) * 4;
                self.ether_payload(u16::from_be_bytes([*p, *q]), bytes.after(length), context)
            }
            // 3GPP TS 29.281 §5.1: version 1, GTP (not GTP'), message type G-PDU.
            [first, 0xff, ..] if either(port::GTP_U) && first >> 4 == 3 => self.gtp(*first, bytes, context),
            [_, ..] if either(port::TEREDO) => return self.teredo(bytes, context),
            [_, ..] if to == port::GRE => self.gre(bytes, context),
            [_, ..] if to == port::MPLS => self.mpls(bytes, context),
            [_, ..] if either(port::AYIYA) => self.ayiya(bytes, context),
            [0, 0, 0, 0, ..] if either(port::IPSEC_NAT) => return None,
            [_, _, _, _, ..] if either(port::IPSEC_NAT) => not_read("IPsec (ESP)", context),
            [_, 0x02 | 0x03, ..] if from == port::L2TP && to == port::L2TP => not_read("L2TP", context),
            [1..=4, 0, 0, 0, ..] if either(port::WIREGUARD) => not_read("WireGuard", context),
            _ => return None,
        })
    }

    /// Generic Routing Encapsulation (RFC 2784, RFC 2890), version 1 for PPTP (RFC 2637 §4.1).
    fn gre<'a>(&mut self, bytes: Bytes<'a>, context: &mut Context<'_>) -> Option<Segment<'a>> {
        let (Some(set), Some(carries)) = (bytes.u16(0), bytes.u16(2)) else { return short(bytes, "GRE", 4, context) };
        if set & 0x4000 != 0 {
            return not_read("GRE with source routes", context);
        }
        let has = |flag: u16| set & flag != 0;
        let checksum = usize::from(has(0x8000)) * 4;
        let key = usize::from(has(0x2000)) * 4;
        let sequence = usize::from(has(0x1000)) * 4;
        let acknowledgment = usize::from(set & 7 == 1 && has(0x0080)) * 4;
        let rest = bytes.after(4 + checksum + key + sequence + acknowledgment);
        match carries {
            // Without a sequence number it is type I, which has no header.
            erspan::TWO if sequence == 0 => self.ethernet(rest, context),
            erspan::TWO => self.ethernet(rest.after(8), context),
            erspan::THREE => {
                let subheader = usize::from(rest.u8(11).is_some_and(|b| b & 1 == 1)) * 8;
                self.ethernet(rest.after(12 + subheader), context)
            }
            // NVGRE (RFC 7637 §3.2): the upper 24 bits of the key are the virtual subnet.
            ethertype::ETHERNET => {
                if let Some(id) = bytes.u32(4 + checksum).filter(|_| key != 0) {
                    context.enter_network(24, id >> 8);
                }
                self.ethernet(rest, context)
            }
            _ => self.ether_payload(carries, rest, context),
        }
    }

    /// GTP-U: optional fields, extension headers, then IP.
    fn gtp<'a>(&mut self, first: u8, bytes: Bytes<'a>, context: &mut Context<'_>) -> Option<Segment<'a>> {
        let mut rest = bytes.after(8);
        if first & 7 != 0 {
            let mut extension = rest.u8(3).filter(|_| first & 4 != 0).unwrap_or(0);
            rest = rest.after(4);
            // The last byte of each extension header is the type of the next (§5.2.1).
            while extension != 0 {
                let length = usize::from(rest.u8(0)?) * 4;
                if length == 0 {
                    return not_read("GTP-U with an empty extension header", context);
                }
                extension = rest.u8(length - 1)?;
                rest = rest.after(length);
            }
        }
        match rest.u8(0).map(|b| b >> 4) {
            Some(4 | 6) => self.ip(rest, context),
            _ => self.nothing(),
        }
    }

    /// Teredo (RFC 4380 §5.1.1): authentication and origin indications, then IPv6.
    fn teredo<'a>(&mut self, mut bytes: Bytes<'a>, context: &mut Context<'_>) -> Option<Option<Segment<'a>>> {
        if let [0, 1, id, value, ..] = bytes.data {
            bytes = bytes.after(13 + usize::from(*id) + usize::from(*value));
        }
        if let [0, 0, ..] = bytes.data {
            bytes = bytes.after(8);
        }
        (bytes.u8(0)? >> 4 == 6).then(|| self.ip(bytes, context))
    }

    /// Anything in Anything (draft-massar-v6ops-ayiya): identity, signature, then IPv6.
    fn ayiya<'a>(&mut self, bytes: Bytes<'a>, context: &mut Context<'_>) -> Option<Segment<'a>> {
        let &[lengths, signature, _, next, ..] = bytes.data else { return short(bytes, "AYIYA", 8, context) };
        let identity = 1_usize << (lengths >> 4);
        let header = 8 + identity + usize::from(signature >> 4) * 4;
        match next {
            protocol::IPV4 | protocol::IPV6 => self.ip(bytes.after(header), context),
            _ => self.nothing(),
        }
    }
}

#[cold]
fn not_read<'a>(what: &str, context: &mut Context<'_>) -> Option<Segment<'a>> {
    context.problem(ProblemKind::Tunnel, || format!("{what} is not looked into; capture behind it"));
    None
}
