//! Makes IP packets: TCP and UDP with right checksums (RFC 791, RFC 8200, RFC 9293, RFC 768).

use std::net::{IpAddr, SocketAddr};

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
