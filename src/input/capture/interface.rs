//! An interface of a pcapng section: its link type, and how its times are to be read.

use super::bytes::Order;
use crate::model::time::Time;

/// What an Interface Description Block (draft-ietf-opsawg-pcapng §4.2) says, and what was dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Interface {
    pub(super) link: u16,
    /// Largest captured length, bytes; 0: no limit.
    pub(super) snap: u32,
    /// Fractional digits of a second in its times.
    pub(super) digits: u8,
    ticks: Ticks,
    /// Seconds to add to its times (`if_tsoffset`).
    offset_s: i64,
    /// From its newest statistics block.
    pub(super) dropped_by_statistics: u64,
    /// Sum of the packets' own drop counts.
    pub(super) dropped_by_packets: u64,
}

/// How long a unit of its times is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ticks {
    /// This many nanoseconds.
    Nanoseconds(u64),
    /// This part of a nanosecond.
    PerNanosecond(u64),
    /// 2 to the minus this many seconds.
    Binary(u8),
}

impl Interface {
    /// Reads a whole block. What its options lack takes the defaults of the specification.
    pub(super) fn parse(order: Order, block: &[u8]) -> Interface {
        const TSRESOL: u16 = 9;
        const TSOFFSET: u16 = 14;
        let mut interface = Interface {
            link: order.u16(block, 8),
            snap: order.u32(block, 12),
            digits: 6,
            ticks: Ticks::Nanoseconds(1000),
            offset_s: 0,
            dropped_by_statistics: 0,
            dropped_by_packets: 0,
        };
        for (code, value) in options(order, block.get(16..block.len().saturating_sub(4)).unwrap_or_default()) {
            match (code, value) {
                (TSRESOL, [resolution]) => (interface.ticks, interface.digits) = resolution_of(*resolution),
                (TSOFFSET, [_, _, _, _, _, _, _, _]) => interface.offset_s = order.u64(value, 0) as i64,
                _ => {}
            }
        }
        interface
    }

    /// The time that `ticks` of this interface stand for.
    #[inline]
    pub(super) fn time(&self, ticks: u64) -> Time {
        let ns = match self.ticks {
            Ticks::Nanoseconds(n) => ticks.saturating_mul(n),
            Ticks::PerNanosecond(n) => ticks / n,
            Ticks::Binary(bits) => binary_ns(ticks, bits),
        };
        let ns = i64::try_from(ns).unwrap_or(i64::MAX);
        Time::from_ns(ns.saturating_add(self.offset_s.saturating_mul(1_000_000_000)), self.digits)
    }

    /// Takes note of the drop count among a packet's options.
    pub(super) fn packet_options(&mut self, order: Order, bytes: &[u8]) {
        const DROP_COUNT: u16 = 4;
        for (code, value) in options(order, bytes) {
            if code == DROP_COUNT && value.len() == 8 {
                self.dropped_by_packets = self.dropped_by_packets.saturating_add(order.u64(value, 0));
            }
        }
    }
}

/// `if_tsresol`: a negative power of 10, or of 2 where the top bit is set.
fn resolution_of(value: u8) -> (Ticks, u8) {
    let power = value & 0x7f;
    if value & 0x80 != 0 {
        // A bit is 0.3 of a digit.
        return (Ticks::Binary(power), (u16::from(power) * 3 / 10).min(9) as u8);
    }
    match power {
        0..=9 => (Ticks::Nanoseconds(10_u64.pow(u32::from(9 - power))), power),
        // Finer than 10^-19 s overflows 64 bits, and so would its times.
        _ => (Ticks::PerNanosecond(10_u64.saturating_pow(u32::from(power - 9))), 9),
    }
}

fn binary_ns(ticks: u64, bits: u8) -> u64 {
    let ns = (u128::from(ticks) * 1_000_000_000).checked_shr(u32::from(bits)).unwrap_or(0);
    u64::try_from(ns).unwrap_or(u64::MAX)
}

/// The options in `bytes`: code and value. Ends where they stop making sense.
pub(super) fn options(order: Order, mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        if bytes.len() < 4 {
            return None;
        }
        let (code, length) = (order.u16(bytes, 0), usize::from(order.u16(bytes, 2)));
        let value = bytes.get(4..4 + length)?;
        if code == 0 {
            return None;
        }
        bytes = bytes.get((4 + length).next_multiple_of(4)..).unwrap_or_default();
        Some((code, value))
    })
}

#[cfg(test)]
mod tests {
    use super::{Order, resolution_of};

    fn at(resolution: u8, offset_s: i64, ticks: u64) -> String {
        let (unit, digits) = resolution_of(resolution);
        let block = [0; 20];
        let mut interface = super::Interface::parse(Order::Little, &block);
        (interface.ticks, interface.digits, interface.offset_s) = (unit, digits, offset_s);
        interface.time(ticks).to_string()
    }

    #[test]
    fn times_in_every_resolution() {
        assert_eq!(at(6, 0, 1_795_981_315_562_000), "2026-11-29T19:41:55.562000Z");
        assert_eq!(at(9, 0, 1_795_981_315_562_000_123), "2026-11-29T19:41:55.562000123Z");
        assert_eq!(at(0, 0, 1_795_981_315), "2026-11-29T19:41:55Z");
        assert_eq!(at(3, 0, 1_795_981_315_562), "2026-11-29T19:41:55.562Z");
        assert_eq!(at(12, 1_795_981_315, 562_000_000_000), "2026-11-29T19:41:55.562000000Z");
        assert_eq!(at(0x80 | 10, 0, 1_795_981_315 * 1024 + 512), "2026-11-29T19:41:55.500Z");
        assert_eq!(at(0x80 | 20, -3600, (1_795_981_315 << 20) + (1 << 19)), "2026-11-29T18:41:55.500000Z");
        assert_eq!(at(0x80 | 32, 0, (1_795_981_315 << 32) + (1 << 31)), "2026-11-29T19:41:55.500000000Z");
        for resolution in 0..=255 {
            at(resolution, i64::MAX, u64::MAX);
        }
    }
}
