//! Classic pcap files (draft-ietf-opsawg-pcap): a 24-byte header, then records.
//!
//! Own code rather than the readers of `pcap-parser`, which stop at the first implausible record,
//! cannot grow their buffer and copy it in a ring; they are the oracle in the tests.

use super::Current;
use super::bytes::Order;
use super::resync::{Bad, Proof, resynchronise};
use super::tally::Tally;
use super::window::Window;
use crate::model::limits::PACKET_BYTES;
use crate::model::problem::ProblemKind;
use crate::model::time::Time;
use std::io::Read;

/// Length of the file header.
pub(super) const FILE_HEADER: usize = 24;
/// What libpcap and Wireshark take as the largest packet of any writer that says nothing else
/// (MAXIMUM_SNAPLEN in libpcap's pcap-int.h).
const USUAL_SNAPLEN: u32 = 262_144;
/// Records of a found chain may be this far from the last good one, seconds.
const SEARCH_SECONDS: u32 = 86_400;
/// Whole records in a row that prove each other.
const CHAIN: usize = 3;

/// How the records of a classic pcap file are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pcap {
    order: Order,
    nanoseconds: bool,
    /// 16, or 24 in Kuznetzov's modified format.
    record_header: usize,
    largest: u32,
    link: u16,
}

/// A record header.
#[derive(Clone, Copy, Debug)]
struct Record {
    seconds: u32,
    fraction: u32,
    captured: u32,
    original: u32,
}

impl Pcap {
    /// Reads a file header; none: the bytes are none.
    pub(super) fn parse_header(bytes: &[u8]) -> Option<Pcap> {
        let header: &[u8; FILE_HEADER] = bytes.first_chunk()?;
        let (order, nanoseconds, record_header) = match header {
            [0xd4, 0xc3, 0xb2, 0xa1, ..] => (Order::Little, false, 16),
            [0x4d, 0x3c, 0xb2, 0xa1, ..] => (Order::Little, true, 16),
            [0x34, 0xcd, 0xb2, 0xa1, ..] => (Order::Little, false, 24),
            [0xa1, 0xb2, 0xc3, 0xd4, ..] => (Order::Big, false, 16),
            [0xa1, 0xb2, 0x3c, 0x4d, ..] => (Order::Big, true, 16),
            [0xa1, 0xb2, 0xcd, 0x34, ..] => (Order::Big, false, 24),
            _ => return None,
        };
        let snaplen = order.u32(header, 16);
        let largest = match snaplen {
            0 => PACKET_BYTES as u32,
            n => n.clamp(USUAL_SNAPLEN, PACKET_BYTES as u32),
        };
        // The upper half holds the length of a frame check sequence, if frames carry one.
        let link = order.u32(header, 20) as u16;
        Some(Pcap { order, nanoseconds, record_header, largest, link })
    }

    /// The next record, now at the front of the window.
    #[inline]
    pub(super) fn next<R: Read>(&mut self, window: &mut Window<R>, tally: &mut Tally) -> Option<Current> {
        loop {
            if !window.fill(self.record_header) {
                let left = window.data().len();
                if left > 0 {
                    tally.truncated(left as u64, self.record_header as u64, window.offset());
                }
                return None;
            }
            let record = self.record(window.data());
            // A file header read as a record has a captured length of 0.
            if record.captured == 0 && self.next_file(window, tally) {
                continue;
            }
            if !self.is_possible(&record) {
                if self.resynchronise(window, tally, Bad::Garbage) {
                    continue;
                }
                return None;
            }
            let whole = self.record_header + record.captured as usize;
            if !window.fill(whole) {
                if self.resynchronise(window, tally, Bad::Cut(whole as u64)) {
                    continue;
                }
                return None;
            }
            let packet = Current {
                start: self.record_header,
                length: record.captured as usize,
                whole,
                wire_len: record.original.max(record.captured),
                at: self.time(&record),
                link: self.link,
                interface: 0,
            };
            tally.packet(&packet);
            return Some(packet);
        }
    }

    #[inline]
    fn record(&self, bytes: &[u8]) -> Record {
        Record {
            seconds: self.order.u32(bytes, 0),
            fraction: self.order.u32(bytes, 4),
            captured: self.order.u32(bytes, 8),
            original: self.order.u32(bytes, 12),
        }
    }

    fn time(&self, record: &Record) -> Time {
        let (factor, digits) = if self.nanoseconds { (1, 9) } else { (1000, 6) };
        let ns = i64::from(record.seconds) * 1_000_000_000 + i64::from(record.fraction) * factor;
        Time::from_ns(ns, digits)
    }

    /// Can it be a record at all? Lenient: some writers leave fractions of a second that exceed
    /// their unit, or an original length below the captured one.
    #[inline]
    fn is_possible(&self, record: &Record) -> bool {
        record.captured <= self.largest && record.fraction < 1_000_000_000 && record.original < 1 << 28
    }

    /// Is it surely one, some way into a file whose last good record was at `near` seconds?
    fn is_likely(&self, record: &Record, near: Option<u32>) -> bool {
        let unit = if self.nanoseconds { 1_000_000_000 } else { 1_000_000 };
        self.is_possible(record)
            && record.captured > 0
            && record.captured <= record.original
            && record.fraction < unit
            && near.is_none_or(|near| near.abs_diff(record.seconds) <= SEARCH_SECONDS)
    }

    /// Files joined with `cat`: a whole file header stands where a record should.
    #[cold]
    fn next_file<R: Read>(&mut self, window: &mut Window<R>, tally: &mut Tally) -> bool {
        window.fill(FILE_HEADER);
        let bytes = window.data();
        let Some(next) = Pcap::parse_header(bytes) else { return false };
        if next.order.u16(bytes, 4) != 2 {
            return false;
        }
        let offset = window.offset();
        tally.problem_next(ProblemKind::Garbage, || {
            format!("another pcap file begins at byte {offset}: files were joined; it was read too")
        });
        tally.forget_times();
        window.consume(FILE_HEADER);
        *self = next;
        true
    }

    /// Looks behind a bad record for the next that can be proved, and goes there.
    fn resynchronise<R: Read>(&self, window: &mut Window<R>, tally: &mut Tally, bad: Bad) -> bool {
        let near = tally.latest_ns().and_then(|ns| u32::try_from(ns / 1_000_000_000).ok());
        resynchronise(window, tally, bad, |data, ended| self.begins_chain(data, near, ended))
    }

    /// Do some whole records follow each other here, or one that ends with the file?
    fn begins_chain(&self, mut data: &[u8], near: Option<u32>, ended: bool) -> Proof {
        for _ in 0..CHAIN {
            if data.len() < self.record_header {
                return if ended { Proof::Refuted } else { Proof::Open };
            }
            let record = self.record(data);
            if !self.is_likely(&record, near) {
                return Proof::Refuted;
            }
            match data.get(self.record_header + record.captured as usize..) {
                Some([]) if ended => return Proof::Given,
                Some(rest) => data = rest,
                None if ended => return Proof::Refuted,
                None => return Proof::Open,
            }
        }
        Proof::Given
    }
}
