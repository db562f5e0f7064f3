//! Link layers (<https://www.tcpdump.org/linktypes.html>) and what lies between them and IP:
//! VLAN tags, LLC, MPLS, PPP.

use super::{Bytes, Context, State};
use crate::model::problem::ProblemKind;
use crate::wire::Segment;

/// EtherTypes.
pub(super) mod ethertype {
    pub(crate) const IPV4: u16 = 0x0800;
    pub(crate) const IPV6: u16 = 0x86dd;
    pub(crate) const VLAN: u16 = 0x8100;
    pub(crate) const SERVICE_VLAN: u16 = 0x88a8;
    pub(crate) const OLD_SERVICE_VLAN: u16 = 0x9100;
    pub(crate) const OLDER_SERVICE_VLAN: u16 = 0x9200;
    pub(crate) const MPLS: u16 = 0x8847;
    pub(crate) const MPLS_UPSTREAM: u16 = 0x8848;
    pub(crate) const PPPOE_SESSION: u16 = 0x8864;
    pub(crate) const PPP: u16 = 0x880b;
    pub(crate) const ETHERNET: u16 = 0x6558;
    pub(crate) const MACSEC: u16 = 0x88e5;
    /// Below this it is a length (IEEE 802.3).
    pub(crate) const LEAST: u16 = 0x0600;
}

/// Link types.
mod linktype {
    pub(super) const NULL: u16 = 0;
    pub(super) const ETHERNET: u16 = 1;
    pub(super) const ARCNET: u16 = 7;
    pub(super) const PPP: u16 = 9;
    pub(super) const RAW_BSD: u16 = 12;
    pub(super) const RAW_OPENBSD: u16 = 14;
    pub(super) const PPP_HDLC: u16 = 50;
    pub(super) const PPP_ETHER: u16 = 51;
    pub(super) const RAW: u16 = 101;
    pub(super) const CISCO_HDLC: u16 = 104;
    pub(super) const LOOP: u16 = 108;
    pub(super) const ENC: u16 = 109;
    pub(super) const LINUX_SLL: u16 = 113;
    pub(super) const PFLOG: u16 = 117;
    pub(super) const ARCNET_LINUX: u16 = 129;
    pub(super) const APPLE_FIREWIRE: u16 = 138;
    pub(super) const PPP_PPPD: u16 = 166;
    pub(super) const IPV4: u16 = 228;
    pub(super) const IPV6: u16 = 229;
    pub(super) const NFLOG: u16 = 239;
    pub(super) const LINUX_SLL2: u16 = 276;
}

impl State {
    /// Takes the link layer off.
    #[inline]
    pub(super) fn link<'a>(
        &mut self,
        link_type: u16,
        bytes: Bytes<'a>,
        context: &mut Context<'_>,
    ) -> Option<Segment<'a>> {
        match link_type {
            linktype::ETHERNET => self.ethernet(bytes, context),
            linktype::LINUX_SLL => match bytes.u16(14) {
                Some(protocol) => self.ether_payload(protocol, bytes.after(16), context),
                None => short(bytes, "cooked", 16, context),
            },
            linktype::LINUX_SLL2 => match (bytes.u16(0), bytes.u32(4), bytes.u8(19)) {
                (Some(protocol), Some(interface), Some(_)) => {
                    context.interface = interface;
                    self.ether_payload(protocol, bytes.after(20), context)
                }
                _ => short(bytes, "cooked", 20, context),
            },
            linktype::RAW | linktype::RAW_BSD | linktype::RAW_OPENBSD | linktype::IPV4 | linktype::IPV6 => {
                self.ip(bytes, context)
            }
            // The address family in front is in the byte order of some host; IP tells itself.
            linktype::NULL | linktype::LOOP => self.family(bytes, context),
            _ => self.rare_link(link_type, bytes, context),
        }
    }

    #[cold]
    fn rare_link<'a>(&mut self, link_type: u16, bytes: Bytes<'a>, context: &mut Context<'_>) -> Option<Segment<'a>> {
        match link_type {
            linktype::NFLOG => self.nflog(bytes, context),
            linktype::PPP | linktype::PPP_PPPD => self.ppp(bytes, context),
            linktype::PPP_ETHER => self.ppp(bytes.after(6), context),
            linktype::PPP_HDLC if bytes.u8(0) == Some(0xff) => self.ppp(bytes, context),
            linktype::PPP_HDLC | linktype::CISCO_HDLC => match bytes.u16(2) {
                Some(protocol) => self.ether_payload(protocol, bytes.after(4), context),
                None => short(bytes, "HDLC", 4, context),
            },
            linktype::ENC => self.ip(bytes.after(12), context),
            linktype::PFLOG => match bytes.u8(0) {
                Some(length) => self.ip(bytes.after(usize::from(length).next_multiple_of(4)), context),
                None => short(bytes, "pflog", 4, context),
            },
            linktype::APPLE_FIREWIRE => match bytes.u16(16) {
                Some(protocol) => self.ether_payload(protocol, bytes.after(18), context),
                None => short(bytes, "FireWire", 18, context),
            },
            linktype::ARCNET => self.arcnet(bytes, 2, context),
            linktype::ARCNET_LINUX => self.arcnet(bytes, 4, context),
            other => {
                context.problem(ProblemKind::UnreadProtocol, || {
                    format!("link type {other} ({}) is not read", link_name(other))
                });
                None
            }
        }
    }

    /// Ethernet II, or IEEE 802.3 with LLC.
    #[inline]
    pub(super) fn ethernet<'a>(&mut self, bytes: Bytes<'a>, context: &mut Context<'_>) -> Option<Segment<'a>> {
        match bytes.u16(12) {
            Some(ethertype::IPV4) => self.ip(bytes.after(14), context),
            Some(protocol) => self.ether_payload(protocol, bytes.after(14), context),
            None => short(bytes, "Ethernet", 14, context),
        }
    }

    /// What an EtherType says follows.
    pub(super) fn ether_payload<'a>(
        &mut self,
        mut protocol: u16,
        mut bytes: Bytes<'a>,
        context: &mut Context<'_>,
    ) -> Option<Segment<'a>> {
        loop {
            match protocol {
                ethertype::IPV4 | ethertype::IPV6 => return self.ip(bytes, context),
                ethertype::VLAN
                | ethertype::SERVICE_VLAN
                | ethertype::OLD_SERVICE_VLAN
                | ethertype::OLDER_SERVICE_VLAN => {
                    let (Some(tag), Some(inner)) = (bytes.u16(0), bytes.u16(2)) else {
                        return short(bytes, "VLAN", 4, context);
                    };
                    if !context.enter() {
                        return None;
                    }
                    // 0 is no VLAN but a priority (IEEE 802.1Q §6.9).
                    if tag & 0xfff != 0 {
                        context.enter_network(12, u32::from(tag & 0xfff));
                    }
                    (protocol, bytes) = (inner, bytes.after(4));
                }
                ethertype::MPLS | ethertype::MPLS_UPSTREAM => return self.mpls(bytes, context),
                ethertype::PPPOE_SESSION => return self.ppp(bytes.after(6), context),
                ethertype::PPP => return self.ppp(bytes, context),
                ethertype::ETHERNET => return context.enter().then(|| self.ethernet(bytes, context)).flatten(),
                ethertype::MACSEC => {
                    context.problem(ProblemKind::Tunnel, || "MACsec is not looked into".to_owned());
                    return None;
                }
                // SNAP: the EtherType follows (IEEE 802 §9.4). Cooked captures mark LLC with 4.
                length if length < ethertype::LEAST => match (bytes.u32(0), bytes.u16(6)) {
                    (Some(0xaaaa_0300), Some(inner)) if context.enter() => {
                        (protocol, bytes) = (inner, bytes.after(8));
                    }
                    _ => return self.nothing(),
                },
                _ => return self.nothing(),
            }
        }
    }

    /// A label stack (RFC 3032 §2.1). What is under it is told by its first bits, as routers do.
    pub(super) fn mpls<'a>(&mut self, mut bytes: Bytes<'a>, context: &mut Context<'_>) -> Option<Segment<'a>> {
        loop {
            let Some(label) = bytes.u32(0) else { return short(bytes, "MPLS", 4, context) };
            if !context.enter() {
                return None;
            }
            bytes = bytes.after(4);
            if label & 0x100 != 0 {
                break;
            }
        }
        match bytes.u8(0).map(|b| b >> 4) {
            Some(4 | 6) => self.ip(bytes, context),
            // A pseudowire with a control word (RFC 4385 §3).
            Some(0) => self.ethernet(bytes.after(4), context),
            _ => self.ethernet(bytes, context),
        }
    }

    /// PPP, with or without its address and control fields (RFC 1661 §2, RFC 1662 §3.1).
    pub(super) fn ppp<'a>(&mut self, mut bytes: Bytes<'a>, context: &mut Context<'_>) -> Option<Segment<'a>> {
        if let [0xff | 0x00 | 0x01, 0x03, ..] = bytes.data {
            bytes = bytes.after(2);
        }
        let Some(first) = bytes.u8(0) else { return short(bytes, "PPP", 2, context) };
        let (protocol, length) = match bytes.u16(0) {
            // A compressed protocol field is odd (RFC 1661 §6.5).
            Some(_) | None if first & 1 == 1 => (u16::from(first), 1),
            Some(two) => (two, 2),
            None => return short(bytes, "PPP", 2, context),
        };
        let bytes = bytes.after(length);
        match protocol {
            0x21 | 0x57 => self.ip(bytes, context),
            0x281 | 0x283 => self.mpls(bytes, context),
            // Compressed or encrypted datagrams (RFC 1962, RFC 1968).
            0xfd | 0xfb | 0x53 => {
                context.problem(ProblemKind::Tunnel, || "compressed or encrypted PPP is not looked into".to_owned());
                None
            }
            _ => self.nothing(),
        }
    }

    /// BSD loopback: four bytes of address family.
    fn family<'a>(&mut self, bytes: Bytes<'a>, context: &mut Context<'_>) -> Option<Segment<'a>> {
        // AF_INET, and AF_INET6 of Linux, Windows, NetBSD, OpenBSD, FreeBSD and macOS.
        match bytes.data {
            [2 | 10 | 23 | 24 | 28 | 30, 0, 0, 0, ..] | [0, 0, 0, 2 | 10 | 23 | 24 | 28 | 30, ..] => {
                self.ip(bytes.after(4), context)
            }
            [_, _, _, _, ..] => self.nothing(),
            _ => short(bytes, "loopback", 4, context),
        }
    }

    /// The Linux netfilter log: attributes in host byte order, one of which is the packet.
    fn nflog<'a>(&mut self, bytes: Bytes<'a>, context: &mut Context<'_>) -> Option<Segment<'a>> {
        const PAYLOAD: u16 = 9;
        let mut rest = bytes.after(4);
        while let Some(&[a, b, c, d]) = rest.data.first_chunk() {
            let little = (u16::from_le_bytes([a, b]), u16::from_le_bytes([c, d]));
            let big = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
            // Types are small, so their byte order shows.
            let (length, kind) = if little.1 & 0x7fff < 0x100 { little } else { big };
            if length < 4 {
                break;
            }
            if kind & 0x7fff == PAYLOAD {
                return self.ip(rest.after(4).trimmed(u32::from(length) - 4), context);
            }
            rest = rest.after(usize::from(length).next_multiple_of(4));
        }
        self.nothing()
    }

    /// ARCNET with RFC 1201 or RFC 1051 framing; `addresses` bytes precede the protocol.
    fn arcnet<'a>(&mut self, bytes: Bytes<'a>, addresses: usize, context: &mut Context<'_>) -> Option<Segment<'a>> {
        const RFC1051_IP: u8 = 240;
        const RFC1201_IP: u8 = 212;
        match (bytes.u8(addresses), bytes.u8(addresses + 1)) {
            (Some(RFC1051_IP), _) => self.ip(bytes.after(addresses + 1), context),
            // Flags of 0 are an unfragmented packet; then a sequence number.
            (Some(RFC1201_IP), Some(0)) => self.ip(bytes.after(addresses + 4), context),
            (Some(RFC1201_IP), _) => {
                context.problem(ProblemKind::UnreadProtocol, || "fragments of ARCNET are not read".to_owned());
                None
            }
            _ => self.nothing(),
        }
    }

    /// The packet carries nothing of interest.
    pub(super) fn nothing<'a>(&mut self) -> Option<Segment<'a>> {
        self.ignored += 1;
        None
    }
}

#[cold]
pub(super) fn short<'a>(
    bytes: Bytes<'_>,
    what: &'static str,
    need: usize,
    context: &mut Context<'_>,
) -> Option<Segment<'a>> {
    context.short(bytes, what, need);
    None
}

/// Names of link types that people meet and that are not read.
fn link_name(link_type: u16) -> &'static str {
    match link_type {
        6 => "Token Ring",
        10 => "FDDI",
        105 | 119 | 127 | 163 | 192 => "IEEE 802.11; decrypt and convert it, or capture on the host",
        187 | 201 | 251 | 254..=256 | 272 => "Bluetooth",
        189 | 220 | 249 | 266 => "USB",
        195 | 215 | 230 | 283 => "IEEE 802.15.4",
        147..=162 => "private use",
        247 => "InfiniBand",
        253 => "netlink",
        _ => "unknown here",
    }
}
