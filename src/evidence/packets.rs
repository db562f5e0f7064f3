//! Makes packets and a pcapng file of them: raw IP, TCP and UDP with right checksums (RFC 791, RFC
//! 8200, RFC 9293, RFC 768), Enhanced Packet Blocks with a comment each
//! (draft-ietf-opsawg-pcapng §4.3).

use crate::model::time::Time;
use std::net::{IpAddr, SocketAddr};

/// LINKTYPE_RAW: packets begin with the IP header.
const LINK_RAW: u16 = 101;
/// Data of one segment, bytes; small enough for every IP length field.
pub const SEGMENT_BYTES: usize = 16_384;
const WINDOW: u16 = 0xffff;
const HOPS: u8 = 64;
const TCP: u8 = 6;
const UDP: u8 = 17;

/// A TCP segment to be written.
pub struct Tcp<'a> {
    /// Sender.
    pub from: SocketAddr,
    /// Receiver.
    pub to: SocketAddr,
    /// Sequence number of the first byte.
    pub seq: u32,
    /// Acknowledgment number; its flag is set by the caller.
    pub ack: u32,
    /// Flag bits (RFC 9293 §3.1).
    pub flags: u8,
    /// Data.
    pub data: &'a [u8],
}

/// The IP packet that carries a segment.
pub fn tcp(segment: &Tcp<'_>) -> Vec<u8> {
    let mut body = vec![];
    body.extend(segment.from.port().to_be_bytes());
    body.extend(segment.to.port().to_be_bytes());
    body.extend(segment.seq.to_be_bytes());
    body.extend(segment.ack.to_be_bytes());
    body.extend([5 << 4, segment.flags]);
    body.extend(WINDOW.to_be_bytes());
    body.extend([0; 4]);
    body.extend(segment.data);
    ip(segment.from.ip(), segment.to.ip(), TCP, 16, body)
}

/// An IP packet with a UDP datagram.
pub fn udp(from: SocketAddr, to: SocketAddr, data: &[u8]) -> Vec<u8> {
    let mut body = vec![];
    body.extend(from.port().to_be_bytes());
    body.extend(to.port().to_be_bytes());
    body.extend(((8 + data.len()) as u16).to_be_bytes());
    body.extend([0; 2]);
    body.extend(data);
    ip(from.ip(), to.ip(), UDP, 6, body)
}

/// Puts the IP header before a body, and the checksum at `sum_at` of it. An end of the other family
/// than the receiver is written as an IPv4-mapped address.
fn ip(from: IpAddr, to: IpAddr, protocol: u8, sum_at: usize, mut body: Vec<u8>) -> Vec<u8> {
    let length = body.len();
    let (mut header, pseudo) = match (from, to) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let mut h = vec![0x45, 0];
            h.extend(((20 + length) as u16).to_be_bytes());
            h.extend([0, 0, 0x40, 0, HOPS, protocol, 0, 0]);
            h.extend(from.octets());
            h.extend(to.octets());
            let sum = checksum(&[&h]).to_be_bytes();
            if let Some(field) = h.get_mut(10..12) {
                field.copy_from_slice(&sum);
            }
            let mut pseudo = [from.octets(), to.octets()].concat();
            pseudo.extend([0, protocol]);
            pseudo.extend((length as u16).to_be_bytes());
            (h, pseudo)
        }
        (from, to) => {
            let long = |ip: IpAddr| match ip {
                IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
                IpAddr::V6(ip) => ip.octets(),
            };
            let mut h = vec![0x60, 0, 0, 0];
            h.extend((length as u16).to_be_bytes());
            h.extend([protocol, HOPS]);
            h.extend(long(from));
            h.extend(long(to));
            let mut pseudo = [long(from), long(to)].concat();
            pseudo.extend((length as u32).to_be_bytes());
            pseudo.extend([0, 0, 0, protocol]);
            (h, pseudo)
        }
    };
    let sum = checksum(&[&pseudo, &body]);
    // RFC 768: a sum of zero is written as all ones.
    let sum = if sum == 0 && protocol == UDP { 0xffff } else { sum };
    if let Some(field) = body.get_mut(sum_at..sum_at + 2) {
        field.copy_from_slice(&sum.to_be_bytes());
    }
    header.extend(body);
    header
}

/// RFC 1071; each part but the last has an even length.
fn checksum(parts: &[&[u8]]) -> u16 {
    let mut sum: u64 = 0;
    for pair in parts.iter().flat_map(|part| part.chunks(2)) {
        sum += match pair {
            [a, b] => u64::from(u16::from_be_bytes([*a, *b])),
            [a] => u64::from(u16::from_be_bytes([*a, 0])),
            _ => 0,
        };
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// A pcapng file being written.
pub struct File {
    bytes: Vec<u8>,
    /// Decimal places of the times of each interface.
    interfaces: Vec<u8>,
}

impl File {
    /// The comment says what it is.
    pub fn new(comment: &str) -> File {
        let mut file = File { bytes: vec![], interfaces: vec![] };
        let mut section = vec![0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0];
        section.extend([0xff; 8]);
        option(&mut section, 1, comment.as_bytes());
        option(&mut section, 4, concat!("crosswire ", env!("CARGO_PKG_VERSION")).as_bytes());
        option(&mut section, 0, b"");
        file.block(0x0a0d_0d0a, &section);
        file
    }

    /// The interface whose times have the resolution of this one.
    fn interface(&mut self, at: Time) -> (u32, u64) {
        let unit = |digits: u8| 10i64.pow(9 - u32::from(digits));
        let digits = at.digits();
        let known = self.interfaces.iter().position(|d| *d == digits);
        let number = known.unwrap_or_else(|| {
            let mut interface = vec![];
            interface.extend(LINK_RAW.to_le_bytes());
            interface.extend([0; 6]);
            option(&mut interface, 9, &[digits]);
            option(&mut interface, 0, b"");
            self.block(1, &interface);
            self.interfaces.push(digits);
            self.interfaces.len() - 1
        });
        (number as u32, u64::try_from(at.ns() / unit(digits)).unwrap_or(0))
    }

    /// One packet.
    pub fn packet(&mut self, at: Time, packet: &[u8], comment: &str) {
        let (interface, ticks) = self.interface(at);
        let mut body = interface.to_le_bytes().to_vec();
        body.extend(((ticks >> 32) as u32).to_le_bytes());
        body.extend((ticks as u32).to_le_bytes());
        let length = (packet.len() as u32).to_le_bytes();
        body.extend(length);
        body.extend(length);
        body.extend(packet);
        body.resize(body.len().next_multiple_of(4), 0);
        if !comment.is_empty() {
            option(&mut body, 1, comment.as_bytes());
            option(&mut body, 0, b"");
        }
        self.block(6, &body);
    }

    /// The file.
    pub fn into_bytes(mut self) -> Vec<u8> {
        if self.interfaces.is_empty() {
            // A file without packets says of what kind they would be.
            self.interface(Time::from_us(0));
        }
        self.bytes
    }

    fn block(&mut self, kind: u32, body: &[u8]) {
        let length = (12 + body.len() as u32).to_le_bytes();
        self.bytes.extend(kind.to_le_bytes());
        self.bytes.extend(length);
        self.bytes.extend(body);
        self.bytes.extend(length);
    }
}

fn option(out: &mut Vec<u8>, code: u16, value: &[u8]) {
    let value = value.get(..value.len().min(4096)).unwrap_or_default();
    out.extend(code.to_le_bytes());
    out.extend((value.len() as u16).to_le_bytes());
    out.extend(value);
    out.resize(out.len().next_multiple_of(4), 0);
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// An independent parser accepts the packets and finds the checksums right.
    #[test]
    fn checksums_are_right() {
        for (from, to) in [("10.0.0.1:40000", "10.0.0.2:80"), ("[2001:db8::1]:40000", "[2001:db8::2]:80")] {
            let (from, to): (SocketAddr, SocketAddr) = (from.parse().unwrap(), to.parse().unwrap());
            for data in [&b""[..], b"odd", b"even"] {
                let packet = tcp(&Tcp { from, to, seq: 7, ack: 9, flags: 0x18, data });
                let parsed = etherparse::PacketHeaders::from_ip_slice(&packet).unwrap();
                let tcp = parsed.transport.unwrap().tcp().unwrap();
                let want = match parsed.net.unwrap() {
                    etherparse::NetHeaders::Ipv4(ip, _) => {
                        assert_eq!(ip.header_checksum, ip.calc_header_checksum());
                        tcp.calc_checksum_ipv4(&ip, data).unwrap()
                    }
                    etherparse::NetHeaders::Ipv6(ip, _) => tcp.calc_checksum_ipv6(&ip, data).unwrap(),
                    _ => 0,
                };
                assert_eq!((tcp.checksum, tcp.sequence_number), (want, 7));
                let packet = udp(from, to, data);
                assert!(etherparse::PacketHeaders::from_ip_slice(&packet).unwrap().transport.is_some());
            }
        }
    }
}
