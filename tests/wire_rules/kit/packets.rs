//! Packets of a capture: made, read, written, cut and joined.

use std::net::SocketAddrV4;

pub const FIN: u8 = 1;
pub const SYN: u8 = 2;
pub const RST: u8 = 4;
pub const PSH: u8 = 8;
pub const ACK: u8 = 16;

const ETHERNET: usize = 14;

/// One packet: Ethernet, IPv4, TCP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// µs since 1970.
    pub us: i64,
    pub bytes: Vec<u8>,
}

/// What a TCP segment says.
pub struct Segment<'a> {
    pub from: SocketAddrV4,
    pub to: SocketAddrV4,
    pub seq: u32,
    pub ack: u32,
    pub flags: u8,
    pub payload: &'a [u8],
}

impl Segment<'_> {
    pub fn packet(&self, us: i64) -> Packet {
        let mut b = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
        let total = (40 + self.payload.len()) as u16;
        b.extend([0x45, 0]);
        b.extend(total.to_be_bytes());
        b.extend([0, 0, 0x40, 0, 64, 6, 0, 0]);
        b.extend(self.from.ip().octets());
        b.extend(self.to.ip().octets());
        b.extend(self.from.port().to_be_bytes());
        b.extend(self.to.port().to_be_bytes());
        b.extend(self.seq.to_be_bytes());
        b.extend(self.ack.to_be_bytes());
        b.extend([0x50, self.flags, 0xff, 0xff, 0, 0, 0, 0]);
        b.extend(self.payload);
        let mut packet = Packet { us, bytes: b };
        packet.seal();
        packet
    }
}

impl Packet {
    fn tcp(&self) -> usize {
        ETHERNET + usize::from(self.bytes[ETHERNET] & 15) * 4
    }

    fn body(&self) -> usize {
        self.tcp() + usize::from(self.bytes[self.tcp() + 12] >> 4) * 4
    }

    fn end(&self) -> usize {
        ETHERNET + usize::from(u16::from_be_bytes([self.bytes[ETHERNET + 2], self.bytes[ETHERNET + 3]]))
    }

    fn is_tcp(&self) -> bool {
        self.bytes[12..14] == [8, 0] && self.bytes[ETHERNET + 9] == 6
    }

    fn flags(&self) -> u8 {
        self.bytes[self.tcp() + 13]
    }

    fn seq(&self) -> u32 {
        let at = self.tcp() + 4;
        u32::from_be_bytes(self.bytes[at..at + 4].try_into().unwrap())
    }

    pub fn payload(&self) -> &[u8] {
        if self.is_tcp() { &self.bytes[self.body()..self.end()] } else { &[] }
    }

    /// Carries neither payload nor SYN, FIN, RST.
    pub fn is_pure_ack(&self) -> bool {
        self.is_tcp() && self.payload().is_empty() && self.flags() & (SYN | FIN | RST) == 0
    }

    fn replace(&self, skip: u32, payload: &[u8], flags: u8) -> Packet {
        let (tcp, body) = (self.tcp(), self.body());
        let mut bytes = self.bytes[..body].to_vec();
        bytes.extend(payload);
        bytes[tcp + 4..tcp + 8].copy_from_slice(&self.seq().wrapping_add(skip).to_be_bytes());
        bytes[tcp + 13] = flags;
        let total = ((bytes.len() - ETHERNET) as u16).to_be_bytes();
        bytes[ETHERNET + 2..ETHERNET + 4].copy_from_slice(&total);
        let mut packet = Packet { us: self.us, bytes };
        packet.seal();
        packet
    }

    /// The packet as several, its payload cut at the given places.
    pub fn split(&self, cuts: &[usize]) -> Vec<Packet> {
        let payload = self.payload();
        let mut at: Vec<usize> = cuts.iter().copied().filter(|c| *c > 0 && *c < payload.len()).collect();
        if at.is_empty() || self.flags() & SYN != 0 {
            return vec![self.clone()];
        }
        at.sort_unstable();
        at.dedup();
        at.push(payload.len());
        let mut from = 0;
        let pieces = at.iter().map(|&to| {
            let flags = if to == payload.len() { self.flags() } else { self.flags() & !(FIN | PSH | RST) };
            let piece = self.replace(from as u32, &payload[from..to], flags);
            from = to;
            piece
        });
        pieces.collect()
    }

    /// This packet and the next as one, where the next goes on where this ends.
    pub fn join(&self, next: &Packet) -> Option<Packet> {
        let both = self.is_tcp() && next.is_tcp();
        if !both
            || self.payload().is_empty()
            || next.payload().is_empty()
            || (self.flags() | next.flags()) & (SYN | FIN | RST) != 0
        {
            return None;
        }
        let ports = |p: &Packet| p.bytes[ETHERNET + 12..p.tcp() + 4].to_vec();
        let follows = self.seq().wrapping_add(self.payload().len() as u32) == next.seq();
        (ports(self) == ports(next) && follows).then(|| {
            let joined = self.replace(0, &[self.payload(), next.payload()].concat(), next.flags());
            Packet { us: next.us, ..joined }
        })
    }

    /// Writes both checksums.
    fn seal(&mut self) {
        let (tcp, end) = (self.tcp(), self.end());
        self.bytes[ETHERNET + 10..ETHERNET + 12].fill(0);
        let ip = sum(&self.bytes[ETHERNET..tcp], 0);
        self.bytes[ETHERNET + 10..ETHERNET + 12].copy_from_slice(&ip.to_be_bytes());
        self.bytes[tcp + 16..tcp + 18].fill(0);
        let pseudo: u32 = self.bytes[ETHERNET + 12..ETHERNET + 20]
            .chunks(2)
            .map(|w| u32::from(u16::from_be_bytes([w[0], w[1]])))
            .sum::<u32>()
            + 6
            + (end - tcp) as u32;
        let check = sum(&self.bytes[tcp..end], pseudo);
        self.bytes[tcp + 16..tcp + 18].copy_from_slice(&check.to_be_bytes());
    }
}

/// The Internet checksum (RFC 1071).
fn sum(bytes: &[u8], start: u32) -> u16 {
    let mut total: u32 = start;
    for w in bytes.chunks(2) {
        total += u32::from(u16::from_be_bytes([w[0], w.get(1).copied().unwrap_or(0)]));
    }
    while total > 0xffff {
        total = (total & 0xffff) + (total >> 16);
    }
    !(total as u16)
}

/// A pcap file of these packets, in the order given.
pub fn write(packets: &[Packet]) -> Vec<u8> {
    let mut out = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0];
    for n in [0u32, 0, 262_144, 1] {
        out.extend(n.to_le_bytes());
    }
    for p in packets {
        let length = p.bytes.len() as u32;
        for n in [(p.us / 1_000_000) as u32, (p.us % 1_000_000) as u32, length, length] {
            out.extend(n.to_le_bytes());
        }
        out.extend(&p.bytes);
    }
    out
}

/// The packets of a little-endian Ethernet pcap file with µs.
pub fn read(file: &[u8]) -> Vec<Packet> {
    assert_eq!(file[..4], [0xd4, 0xc3, 0xb2, 0xa1]);
    assert_eq!(file[20..24], [1, 0, 0, 0]);
    let number = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap());
    let mut out = vec![];
    let mut at = 24;
    while at + 16 <= file.len() {
        let length = number(at + 8) as usize;
        let us = i64::from(number(at)) * 1_000_000 + i64::from(number(at + 4));
        out.push(Packet { us, bytes: file[at + 16..at + 16 + length].to_vec() });
        at += 16 + length;
    }
    out
}
