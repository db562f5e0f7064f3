//! Datagrams put together from IP fragments (RFC 791 §3.2, RFC 8200 §4.5).
//!
//! Where fragments overlap the first copy wins. A fragment cut by the snap length leaves a
//! datagram that is complete on the wire and captured up to the cut.

use super::ip::Ends;
use super::{Bytes, Context};
use crate::model::limits::FRAGMENTED_DATAGRAMS;
use crate::model::problem::{ProblemKind, Problems};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, VecDeque};

/// Fragments of one datagram come within this time (RFC 8200 §4.5: 60 s), ns. Later ones with
/// the same number belong to another.
const LIFETIME_NS: i64 = 60_000_000_000;
/// The largest datagram.
const DATAGRAM_BYTES: u32 = 65_535;

/// What fragments of one datagram have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) ends: Ends,
    pub(super) id: u32,
    pub(super) protocol: u8,
    /// The same fragment may be seen on several interfaces.
    pub(super) interface: u32,
    pub(super) scope: u64,
}

/// One fragment.
#[derive(Debug)]
pub(super) struct Fragment<'a> {
    pub(super) key: Key,
    pub(super) offset: u32,
    pub(super) more: bool,
    pub(super) bytes: Bytes<'a>,
}

/// A whole datagram without its IP header.
#[derive(Debug)]
pub(super) struct Rebuilt {
    pub(super) bytes: Vec<u8>,
    pub(super) wire: u32,
    pub(super) ends: Ends,
    pub(super) protocol: u8,
    pub(super) scope: u64,
}

/// A run of bytes of which the end may have been cut off.
#[derive(Debug)]
struct Piece {
    data: Vec<u8>,
    wire: u32,
}

#[derive(Debug)]
struct Datagram {
    /// Tells it from an earlier one of the same key in `order`.
    serial: u64,
    first_ns: i64,
    frame: u64,
    /// Pieces that do not overlap, by offset.
    pieces: BTreeMap<u32, Piece>,
    /// Sum of their lengths on the wire.
    have: u32,
    /// Known once the last fragment came.
    total: Option<u32>,
    protocol: u8,
}

/// All datagrams under reassembly.
#[derive(Debug, Default)]
pub(super) struct Fragments {
    datagrams: FxHashMap<Key, Datagram>,
    /// In order of their first fragment; finished ones are cleared away now and then.
    order: VecDeque<(Key, u64)>,
    serial: u64,
    rebuilt: Option<Rebuilt>,
    incomplete: u64,
    first_incomplete: Option<u64>,
}

impl Fragments {
    #[inline]
    pub(super) fn has_rebuilt(&self) -> bool {
        self.rebuilt.is_some()
    }

    pub(super) fn take_rebuilt(&mut self) -> Option<Rebuilt> {
        self.rebuilt.take()
    }

    /// Takes a fragment of IPv4, whose protocol is part of the key.
    pub(super) fn add(&mut self, fragment: &Fragment<'_>, context: &mut Context<'_>) {
        self.add_with_protocol(fragment, fragment.key.protocol, context);
    }

    /// Takes a fragment whose content is `protocol` if it is the first of its datagram.
    pub(super) fn add_with_protocol(&mut self, fragment: &Fragment<'_>, protocol: u8, context: &mut Context<'_>) {
        let end = fragment.offset.saturating_add(fragment.bytes.wire);
        if end > DATAGRAM_BYTES || fragment.bytes.wire == 0 || (fragment.more && !fragment.bytes.wire.is_multiple_of(8))
        {
            return context.problem(ProblemKind::BadPacket, || {
                format!("an IP fragment of {} bytes at offset {}", fragment.bytes.wire, fragment.offset)
            });
        }
        let now = context.mark.at.ns();
        let old = self.datagrams.get(&fragment.key).is_some_and(|d| now.saturating_sub(d.first_ns) > LIFETIME_NS);
        if old {
            self.give_up(&fragment.key);
        }
        if !self.datagrams.contains_key(&fragment.key) {
            self.begin(fragment.key, context);
        }
        let Some(datagram) = self.datagrams.get_mut(&fragment.key) else { return };
        if fragment.offset == 0 {
            datagram.protocol = protocol;
        }
        if !fragment.more {
            datagram.end_at(end);
        }
        datagram.insert(fragment.offset, fragment.bytes);
        if datagram.is_complete() {
            let done = self.datagrams.remove(&fragment.key);
            self.rebuilt = done.map(|d| d.rebuild(&fragment.key));
        }
    }

    fn begin(&mut self, key: Key, context: &mut Context<'_>) {
        if self.datagrams.len() >= FRAGMENTED_DATAGRAMS {
            context.problem(ProblemKind::LimitHit, || {
                format!("more than {FRAGMENTED_DATAGRAMS} fragmented datagrams at once; the oldest were given up")
            });
            while self.datagrams.len() >= FRAGMENTED_DATAGRAMS {
                let Some((oldest, serial)) = self.order.pop_front() else { break };
                if self.datagrams.get(&oldest).is_some_and(|d| d.serial == serial) {
                    self.give_up(&oldest);
                }
            }
        }
        if self.order.len() >= 2 * FRAGMENTED_DATAGRAMS {
            let datagrams = &self.datagrams;
            self.order.retain(|(key, serial)| datagrams.get(key).is_some_and(|d| d.serial == *serial));
        }
        self.serial += 1;
        self.order.push_back((key, self.serial));
        let datagram = Datagram {
            serial: self.serial,
            first_ns: context.mark.at.ns(),
            frame: context.mark.place.number,
            pieces: BTreeMap::new(),
            have: 0,
            total: None,
            protocol: key.protocol,
        };
        self.datagrams.insert(key, datagram);
    }

    fn give_up(&mut self, key: &Key) {
        let Some(datagram) = self.datagrams.remove(key) else { return };
        self.incomplete += 1;
        let first = self.first_incomplete.get_or_insert(datagram.frame);
        *first = datagram.frame.min(*first);
    }

    /// Counts what was never completed.
    pub(super) fn finish(&mut self, problems: &mut Problems) {
        let left: Vec<Key> = self.datagrams.keys().copied().collect();
        left.iter().for_each(|key| self.give_up(key));
        self.order.clear();
        if let Some(frame) = self.first_incomplete.take() {
            problems.add_many(
                ProblemKind::IncompleteFragments,
                std::mem::take(&mut self.incomplete),
                || format!("frame {frame}"),
                || "fragmented IP datagrams of which parts were not captured; what they carried cannot be told",
            );
        }
    }
}

impl Datagram {
    /// Takes over those bytes of a fragment that are not there yet.
    fn insert(&mut self, offset: u32, bytes: Bytes<'_>) {
        let end = (offset + bytes.wire).min(self.total.unwrap_or(u32::MAX));
        let mut at = offset;
        while at < end {
            let before = self.pieces.range(..=at).next_back().map(|(start, piece)| start + piece.wire);
            if let Some(covered) = before.filter(|&covered| covered > at) {
                at = covered;
                continue;
            }
            let until = self.pieces.range(at..end).next().map_or(end, |(start, _)| *start);
            let wire = until - at;
            let rest = bytes.data.get((at - offset) as usize..).unwrap_or_default();
            let data = rest.get(..wire as usize).unwrap_or(rest).to_vec();
            self.pieces.insert(at, Piece { data, wire });
            self.have += wire;
            at = until;
        }
    }

    /// The last fragment says how long the datagram is: what was said to lie behind goes.
    fn end_at(&mut self, total: u32) {
        if self.total.is_some() {
            return;
        }
        self.total = Some(total);
        self.pieces.split_off(&total);
        if let Some((start, last)) = self.pieces.iter_mut().next_back() {
            last.wire = last.wire.min(total - start);
            last.data.truncate(last.wire as usize);
        }
        self.have = self.pieces.values().map(|piece| piece.wire).sum();
    }

    /// Pieces do not overlap, and none lies behind the end.
    fn is_complete(&self) -> bool {
        self.total.is_some_and(|total| self.have >= total)
    }

    fn rebuild(self, key: &Key) -> Rebuilt {
        let wire = self.total.unwrap_or(0);
        let mut bytes = Vec::with_capacity(wire as usize);
        for piece in self.pieces.values() {
            bytes.extend_from_slice(&piece.data);
            if piece.data.len() < piece.wire as usize {
                break;
            }
        }
        Rebuilt { bytes, wire, ends: key.ends, protocol: self.protocol, scope: key.scope }
    }
}
