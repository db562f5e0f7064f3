//! The TCP checksum (RFC 9293 §3.1, RFC 1071).

use super::ip::{Ends, protocol};
use crate::wire::Checksum;
use std::net::IpAddr;

/// Does the checksum of a whole TCP segment fit?
#[inline]
pub(super) fn tcp(ends: Ends, segment: &[u8]) -> Checksum {
    let Some(field) = segment.get(16..).and_then(|b| b.first_chunk()) else { return Checksum::Unknown };
    let pseudo = address_sum(ends.0) + address_sum(ends.1) + word(u16::from(protocol::TCP));
    let length = word((segment.len() & 0xffff) as u16) + word((segment.len() >> 16) as u16);
    // A host that leaves the sum to its network card writes that of the pseudo-header alone, and
    // for segments that the card will cut that of a pseudo-header without length.
    let field = u16::from_ne_bytes(*field);
    if field == fold(pseudo + length) || field == fold(pseudo) {
        return Checksum::Unknown;
    }
    match fold(pseudo + length + sum(segment)) {
        0xffff => Checksum::Good,
        _ => Checksum::Bad,
    }
}

/// A 16-bit value as it stands in network byte order, in the byte order in which sums are made.
fn word(value: u16) -> u64 {
    u64::from(u16::from_ne_bytes(value.to_be_bytes()))
}

fn address_sum(address: IpAddr) -> u64 {
    match address {
        IpAddr::V4(a) => sum(&a.octets()),
        IpAddr::V6(a) => sum(&a.octets()),
    }
}

/// The sum of 16-bit words, not yet folded. One's complement sums do not depend on the byte
/// order, so words are taken as the machine reads them, 32 bits at a time.
#[inline]
fn sum(bytes: &[u8]) -> u64 {
    let (chunks, rest) = bytes.as_chunks::<4>();
    let mut total: u64 = chunks.iter().map(|c| u64::from(u32::from_ne_bytes(*c))).sum();
    let mut last = [0; 4];
    for (to, from) in last.iter_mut().zip(rest) {
        *to = *from;
    }
    total += u64::from(u32::from_ne_bytes(last));
    total
}

fn fold(mut total: u64) -> u16 {
    while total > 0xffff {
        total = (total & 0xffff) + (total >> 16);
    }
    total as u16
}

#[cfg(test)]
mod tests {
    use super::{fold, sum, tcp};
    use crate::wire::Checksum;
    use std::net::{IpAddr, Ipv4Addr};

    #[test]
    fn sums_as_the_definition_does() {
        let bytes: Vec<u8> = (0..=255).chain(7..90).collect();
        for length in 0..bytes.len() {
            let bytes = bytes.get(..length).unwrap_or_default();
            let slow: u64 =
                bytes.chunks(2).map(|w| u64::from(u16::from_be_bytes([w[0], w.get(1).copied().unwrap_or(0)]))).sum();
            assert_eq!(fold(sum(bytes)).to_be(), fold(slow));
        }
    }

    #[test]
    fn good_bad_and_left_to_the_card() {
        let ends = (IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V4(Ipv4Addr::new(10, 0, 0, 9)));
        let mut segment =
            vec![0x1f, 0x90, 0x80, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0x50, 0x18, 0, 9, 0, 0, 0, 0, b'o', b'd', b'd'];
        let pseudo = fold(0x7f00 + 1 + 0x0a00 + 9 + 6 + segment.len() as u64);
        segment[16..18].copy_from_slice(&pseudo.to_be_bytes());
        assert_eq!(tcp(ends, &segment), Checksum::Unknown);
        segment[16..18].fill(0);
        let right = !fold(u64::from(pseudo) + u64::from(fold(sum(&segment)).to_be()));
        segment[16..18].copy_from_slice(&right.to_be_bytes());
        assert_eq!(tcp(ends, &segment), Checksum::Good);
        segment[22] ^= 1;
        assert_eq!(tcp(ends, &segment), Checksum::Bad);
    }
}
