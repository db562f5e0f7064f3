//! What tells connections apart.

use crate::wire::Segment;
use crate::wire::tcp::Side;
use std::net::IpAddr;

/// Both ends and the network between them, the lower end first.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Key {
    low: u128,
    high: u128,
    ports: u32,
    scope: u64,
}

impl Key {
    /// The connection of a segment, and its sender.
    pub(super) fn of(segment: &Segment<'_>) -> (Key, Side) {
        let (src, dst) = ((bits(segment.src.ip()), segment.src.port()), (bits(segment.dst.ip()), segment.dst.port()));
        let (side, low, high) = if src <= dst { (Side::A, src, dst) } else { (Side::B, dst, src) };
        let ports = u32::from(low.1) << 16 | u32::from(high.1);
        (Key { low: low.0, high: high.0, ports, scope: segment.scope }, side)
    }

    /// Is the sender the lower end?
    pub(super) fn is_from_low(segment: &Segment<'_>) -> bool {
        Key::of(segment).1 == Side::A
    }
}

fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(v4) => u128::from(v4.to_bits()),
        IpAddr::V6(v6) => v6.to_bits(),
    }
}
