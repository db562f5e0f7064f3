//! pcapng files (draft-ietf-opsawg-pcapng): blocks, in sections that each have their byte order
//! and their interfaces.
//!
//! Own code rather than `pcap-parser`, whose blocks allocate a list of options for each packet
//! and whose option readers ignore the byte order; it is the oracle in the tests.

use super::Current;
use super::bytes::Order;
use super::interface::{Interface, options};
use super::resync::{Bad, Proof, resynchronise};
use super::tally::Tally;
use super::window::Window;
use crate::model::limits::{INTERFACES, PACKET_BYTES};
use crate::model::problem::ProblemKind;
use crate::model::time::Time;
use std::io::Read;

/// Block types (draft-ietf-opsawg-pcapng §4 and §11.1).
mod block {
    pub(super) const SECTION: u32 = 0x0a0d_0d0a;
    pub(super) const INTERFACE: u32 = 1;
    pub(super) const OBSOLETE_PACKET: u32 = 2;
    pub(super) const SIMPLE_PACKET: u32 = 3;
    pub(super) const NAMES: u32 = 4;
    pub(super) const STATISTICS: u32 = 5;
    pub(super) const PACKET: u32 = 6;
    pub(super) const JOURNAL: u32 = 9;
    pub(super) const SECRETS: u32 = 10;
    pub(super) const CUSTOM: u32 = 0x0bad;
    pub(super) const CUSTOM_NO_COPY: u32 = 0x4000_0bad;
}

/// The secrets type of a TLS key log: "TLSK".
const TLS_KEY_LOG: u32 = 0x544c_534b;
/// Type, two lengths.
const FRAMING: usize = 12;
/// A block may hold a packet of the largest size and its options.
const BLOCK_BYTES: u32 = PACKET_BYTES as u32 + (64 << 10);

/// State of a pcapng file.
#[derive(Debug)]
pub(super) struct Pcapng {
    order: Order,
    /// Interfaces of all sections so far.
    interfaces: Vec<Interface>,
    /// Where those of this section begin.
    section: usize,
}

/// The front of a block.
#[derive(Clone, Copy, Debug)]
struct Head {
    kind: u32,
    length: u32,
    order: Order,
}

impl Pcapng {
    pub(super) fn new() -> Pcapng {
        Pcapng { order: Order::Little, interfaces: Vec::new(), section: 0 }
    }

    /// The next packet, in a block now at the front of the window.
    #[inline]
    pub(super) fn next<R: Read>(&mut self, window: &mut Window<R>, tally: &mut Tally) -> Option<Current> {
        loop {
            if !window.fill(FRAMING) {
                let left = window.data().len();
                if left > 0 {
                    tally.truncated(left as u64, FRAMING as u64, window.offset());
                }
                return None;
            }
            let Some(head) = self.head(window.data()) else {
                if self.resynchronise(window, tally, Bad::Garbage) {
                    continue;
                }
                return None;
            };
            let whole = head.length as usize;
            if !window.fill(whole) {
                if self.resynchronise(window, tally, Bad::Cut(whole as u64)) {
                    continue;
                }
                return None;
            }
            let block = window.slice(0, whole).unwrap_or_default();
            if head.order.u32(block, whole - 4) != head.length {
                if self.resynchronise(window, tally, Bad::Garbage) {
                    continue;
                }
                return None;
            }
            self.order = head.order;
            if let Some(packet) = self.block(head.kind, block, tally) {
                tally.packet(&packet);
                return Some(packet);
            }
            window.consume(whole);
        }
    }

    /// Packets that the statistics of all interfaces say were dropped.
    pub(super) fn dropped(&self) -> u64 {
        self.interfaces.iter().map(|i| i.dropped_by_statistics.max(i.dropped_by_packets)).fold(0, u64::saturating_add)
    }

    /// Type and length of a block whose length can be true.
    #[inline]
    fn head(&self, bytes: &[u8]) -> Option<Head> {
        let mut order = self.order;
        if order.u32(bytes, 0) == block::SECTION {
            order = match bytes.get(8..12)? {
                [0x4d, 0x3c, 0x2b, 0x1a] => Order::Little,
                [0x1a, 0x2b, 0x3c, 0x4d] => Order::Big,
                _ => return None,
            };
        }
        let head = Head { kind: order.u32(bytes, 0), length: order.u32(bytes, 4), order };
        (head.length >= FRAMING as u32 && head.length.is_multiple_of(4) && head.length <= BLOCK_BYTES).then_some(head)
    }

    #[inline]
    fn block(&mut self, kind: u32, bytes: &[u8], tally: &mut Tally) -> Option<Current> {
        match kind {
            block::PACKET => {
                let interface = self.order.u32(bytes, 8);
                self.packet(interface, bytes, tally)
            }
            block::OBSOLETE_PACKET => {
                let interface = u32::from(self.order.u16(bytes, 8));
                self.packet(interface, bytes, tally)
            }
            block::SIMPLE_PACKET => self.simple_packet(bytes, tally),
            block::SECTION => {
                self.section = self.interfaces.len();
                None
            }
            block::INTERFACE => {
                self.interface(bytes, tally);
                None
            }
            block::STATISTICS => {
                self.statistics(bytes);
                None
            }
            block::SECRETS => {
                self.secrets(bytes, tally);
                None
            }
            // Wireshark gives these a frame number.
            block::JOURNAL | block::CUSTOM | block::CUSTOM_NO_COPY => {
                tally.other_record();
                None
            }
            _ => None,
        }
    }

    /// Enhanced Packet Block (§4.3); the obsolete Packet Block (§A) differs in its first fields.
    #[inline]
    fn packet(&mut self, interface: u32, bytes: &[u8], tally: &mut Tally) -> Option<Current> {
        const DATA: usize = 28;
        let order = self.order;
        let length = order.u32(bytes, 20) as usize;
        let padded = length.saturating_add(3) & !3;
        if padded.saturating_add(DATA + 4) > bytes.len() {
            tally.other_record();
            tally.problem(ProblemKind::Garbage, || format!("a packet of {length} bytes in a block of {}", bytes.len()));
            return None;
        }
        let number = self.section.saturating_add(interface as usize);
        let Some(interface) = self.interfaces.get_mut(number) else {
            tally.other_record();
            tally
                .problem(ProblemKind::Garbage, || format!("a packet of interface {interface}, which is not described"));
            return None;
        };
        if let Some(rest @ [_, ..]) = bytes.get(DATA + padded..bytes.len() - 4) {
            interface.packet_options(order, rest);
        }
        let ticks = u64::from(order.u32(bytes, 12)) << 32 | u64::from(order.u32(bytes, 16));
        Some(Current {
            start: DATA,
            length,
            whole: bytes.len(),
            wire_len: order.u32(bytes, 24).max(length as u32),
            at: interface.time(ticks),
            link: interface.link,
            interface: number as u32,
        })
    }

    /// Simple Packet Block (§4.4): of the first interface, without a time.
    fn simple_packet(&mut self, bytes: &[u8], tally: &mut Tally) -> Option<Current> {
        const DATA: usize = 12;
        let Some(interface) = self.interfaces.get(self.section) else {
            tally.other_record();
            tally.problem(ProblemKind::Garbage, || "a packet without any interface described".to_owned());
            return None;
        };
        let original = self.order.u32(bytes, 8);
        let room = bytes.len().saturating_sub(DATA + 4);
        let snap = if interface.snap == 0 { u32::MAX } else { interface.snap };
        let length = room.min(original as usize).min(snap as usize);
        let at = Time::from_ns(tally.latest_ns().unwrap_or(0), interface.digits);
        let packet = Current {
            start: DATA,
            length,
            whole: bytes.len(),
            wire_len: original,
            at,
            link: interface.link,
            interface: self.section as u32,
        };
        tally.problem_next(ProblemKind::NoTime, || {
            "a simple packet block has no time; the time of the packet before it was taken".to_owned()
        });
        Some(packet)
    }

    fn interface(&mut self, bytes: &[u8], tally: &mut Tally) {
        if self.interfaces.len() >= INTERFACES {
            tally.problem_next(ProblemKind::LimitHit, || {
                format!("more than {INTERFACES} interfaces; packets of the others were passed over")
            });
            return;
        }
        self.interfaces.push(Interface::parse(self.order, bytes));
    }

    /// Interface Statistics Block (§4.6). Counts run from the beginning of the capture.
    fn statistics(&mut self, bytes: &[u8]) {
        const IF_DROP: u16 = 5;
        const OS_DROP: u16 = 7;
        let order = self.order;
        let number = self.section.saturating_add(order.u32(bytes, 8) as usize);
        let Some(interface) = self.interfaces.get_mut(number) else { return };
        let mut dropped = 0_u64;
        for (code, value) in options(order, bytes.get(20..bytes.len().saturating_sub(4)).unwrap_or_default()) {
            if matches!(code, IF_DROP | OS_DROP) && value.len() == 8 {
                dropped = dropped.saturating_add(order.u64(value, 0));
            }
        }
        interface.dropped_by_statistics = interface.dropped_by_statistics.max(dropped);
    }

    /// Decryption Secrets Block (§4.7).
    fn secrets(&self, bytes: &[u8], tally: &mut Tally) {
        const DATA: usize = 16;
        let length = self.order.u32(bytes, 12) as usize;
        if self.order.u32(bytes, 8) != TLS_KEY_LOG {
            return;
        }
        let room = bytes.len().saturating_sub(DATA + 4);
        if let Some(log) = bytes.get(DATA..DATA + length.min(room)) {
            tally.secrets.push(log.to_vec());
        }
    }

    /// Looks behind a bad block for the next whole block of a known type, and goes there.
    fn resynchronise<R: Read>(&self, window: &mut Window<R>, tally: &mut Tally, bad: Bad) -> bool {
        resynchronise(window, tally, bad, |data, ended| self.is_block(data, ended))
    }

    /// Does a whole block of a known type begin here? Its two equal lengths prove it.
    fn is_block(&self, data: &[u8], ended: bool) -> Proof {
        if data.len() < FRAMING {
            return if ended { Proof::Refuted } else { Proof::Open };
        }
        let Some(head) = self.head(data) else { return Proof::Refuted };
        let known = matches!(
            head.kind,
            block::SECTION
                | block::INTERFACE
                | block::OBSOLETE_PACKET
                | block::SIMPLE_PACKET
                | block::NAMES
                | block::STATISTICS
                | block::PACKET
                | block::JOURNAL
                | block::SECRETS
                | block::CUSTOM
                | block::CUSTOM_NO_COPY
        );
        let end = head.length as usize;
        match data.get(..end) {
            _ if !known || end == FRAMING => Proof::Refuted,
            Some(block) if head.order.u32(block, end - 4) == head.length => Proof::Given,
            None if !ended => Proof::Open,
            _ => Proof::Refuted,
        }
    }
}
