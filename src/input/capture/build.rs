//! Captures made by tests.

use super::bytes::Order;

/// One packet: seconds, nanoseconds, bytes, length on the wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Made {
    pub(super) seconds: u32,
    pub(super) ns: u32,
    pub(super) data: Vec<u8>,
    pub(super) wire: u32,
}

impl Made {
    pub(super) fn at_ns(&self) -> i64 {
        i64::from(self.seconds) * 1_000_000_000 + i64::from(self.ns)
    }
}

/// `count` packets of growing length, a millisecond apart.
pub(super) fn packets(count: u32) -> Vec<Made> {
    let made = |n: u32| Made {
        seconds: 1_795_981_315,
        ns: n * 1_000_000,
        data: (0..n + 1).map(|b| (b * 7 + n) as u8).collect(),
        wire: n + 1 + n % 2 * 100,
    };
    (0..count).map(made).collect()
}

pub(super) fn put32(order: Order, out: &mut Vec<u8>, value: u32) {
    match order {
        Order::Little => out.extend(value.to_le_bytes()),
        Order::Big => out.extend(value.to_be_bytes()),
    }
}

fn put16(order: Order, out: &mut Vec<u8>, value: u16) {
    match order {
        Order::Little => out.extend(value.to_le_bytes()),
        Order::Big => out.extend(value.to_be_bytes()),
    }
}

/// A classic file; `magic` decides its unit of time.
pub(super) fn pcap(order: Order, magic: u32, link: u32, packets: &[Made]) -> Vec<u8> {
    let mut out = Vec::new();
    put32(order, &mut out, magic);
    put16(order, &mut out, 2);
    put16(order, &mut out, 4);
    for value in [0, 0, 262_144, link] {
        put32(order, &mut out, value);
    }
    for p in packets {
        let fraction = if magic == 0xa1b2_3c4d { p.ns } else { p.ns / 1000 };
        for value in [p.seconds, fraction, p.data.len() as u32, p.wire] {
            put32(order, &mut out, value);
        }
        if magic == 0xa1b2_cd34 {
            out.extend([0; 8]);
        }
        out.extend(&p.data);
    }
    out
}

/// A block of pcapng around `body`, which is padded.
pub(super) fn block(order: Order, kind: u32, body: &[u8]) -> Vec<u8> {
    let length = 12 + body.len().next_multiple_of(4) as u32;
    let mut out = Vec::new();
    put32(order, &mut out, kind);
    put32(order, &mut out, length);
    out.extend(body);
    out.resize(length as usize - 4, 0);
    put32(order, &mut out, length);
    out
}

pub(super) fn section(order: Order) -> Vec<u8> {
    let mut body = Vec::new();
    put32(order, &mut body, 0x1a2b_3c4d);
    put16(order, &mut body, 1);
    put16(order, &mut body, 0);
    body.extend([0xff; 8]);
    // A comment.
    body.extend(option(order, 1, b"made by a test"));
    block(order, 0x0a0d_0d0a, &body)
}

pub(super) fn option(order: Order, code: u16, value: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    put16(order, &mut out, code);
    put16(order, &mut out, value.len() as u16);
    out.extend(value);
    out.resize(out.len().next_multiple_of(4), 0);
    out
}

pub(super) fn interface(order: Order, link: u16, options: &[Vec<u8>]) -> Vec<u8> {
    let mut body = Vec::new();
    put16(order, &mut body, link);
    put16(order, &mut body, 0);
    put32(order, &mut body, 0);
    body.extend(options.concat());
    block(order, 1, &body)
}

/// An enhanced packet block with `ticks` of its interface's time.
pub(super) fn packet(order: Order, interface: u32, ticks: u64, p: &Made, options: &[Vec<u8>]) -> Vec<u8> {
    let mut body = Vec::new();
    for value in [interface, (ticks >> 32) as u32, ticks as u32, p.data.len() as u32, p.wire] {
        put32(order, &mut body, value);
    }
    body.extend(&p.data);
    body.resize(body.len().next_multiple_of(4), 0);
    body.extend(options.concat());
    block(order, 6, &body)
}

/// A section with one interface in nanoseconds.
pub(super) fn pcapng(order: Order, packets: &[Made]) -> Vec<u8> {
    let mut out = section(order);
    out.extend(interface(order, 1, &[option(order, 9, &[9]), option(order, 0, &[])]));
    for p in packets {
        out.extend(packet(order, 0, p.at_ns() as u64, p, &[]));
    }
    out
}
