//! Both directions of one connection: what is delivered when.

use super::direction::{Direction, Ending, WINDOW};
use super::held::{Origin, Trust};
use super::{At, Clock, Output, Side};
use crate::model::exchange::Mark;
use crate::model::problem::ProblemKind;
use crate::model::time::Time;
use crate::wire::{Checksum, Close, Segment, flags};

/// How far before the first segment seen a SYN that came late may stand, bytes.
const LATE_SYN_BYTES: i64 = 16 << 20;

/// Puts the segments of one connection in order.
#[derive(Debug)]
pub(crate) struct Reassembler {
    /// The end with the lower address and port.
    pub(super) a: Direction,
    /// The other.
    pub(super) b: Direction,
    pub(super) first: Mark,
    pub(super) last: Mark,
    pub(super) first_count: u64,
    pub(super) segments: u32,
    pub(super) over: bool,
}

impl Reassembler {
    /// A connection whose first captured segment is that of `mark`.
    pub(crate) fn new(mark: Mark, clock: &Clock) -> Reassembler {
        Reassembler {
            a: Direction::default(),
            b: Direction::default(),
            first: mark,
            last: mark,
            first_count: clock.count,
            segments: 0,
            over: false,
        }
    }

    /// Both directions have ended.
    pub(crate) fn is_over(&self) -> bool {
        self.over
    }
    /// Bytes that wait.
    pub(crate) fn held_bytes(&self) -> usize {
        self.a.held.bytes() + self.b.held.bytes()
    }
    /// Does anything wait for packets that may come late?
    pub(crate) fn is_waiting(&self) -> bool {
        !self.over
            && [&self.a, &self.b].iter().any(|d| {
                !d.held.is_empty()
                    || d.rst.is_some()
                    || (!d.closed && d.fin.is_some())
                    || (!d.started && d.seen)
                    || d.hole().is_some()
            })
    }

    pub(super) fn pair(&mut self, side: Side) -> (&mut Direction, &mut Direction) {
        match side {
            Side::A => (&mut self.a, &mut self.b),
            Side::B => (&mut self.b, &mut self.a),
        }
    }
    pub(super) fn of(&self, side: Side) -> &Direction {
        match side {
            Side::A => &self.a,
            Side::B => &self.b,
        }
    }

    /// Can this segment belong to this connection, or is it of another between the same ports?
    #[inline]
    pub(crate) fn fits(&self, side: Side, segment: &Segment<'_>) -> bool {
        let (me, peer) = (self.of(side), self.of(side.other()));
        if me.started && segment.seq == me.next as u32 && segment.flags & flags::SYN == 0 {
            return true;
        }
        self.may_fit(me, peer, segment)
    }

    fn may_fit(&self, me: &Direction, peer: &Direction, segment: &Segment<'_>) -> bool {
        if segment.flags & flags::SYN != 0 {
            return match me.isn {
                Some(isn) => isn == segment.seq,
                None if me.started || me.low.is_some() || me.low_ack.is_some() => {
                    let lowest = if me.started {
                        me.start
                    } else {
                        me.low.into_iter().chain(me.low_ack).min().unwrap_or(me.next)
                    };
                    let before = i64::from((lowest as u32).wrapping_sub(segment.seq.wrapping_add(1)).cast_signed());
                    before == 0 || (!me.started && (0..LATE_SYN_BYTES).contains(&before))
                }
                None => true,
            };
        }
        if !me.known {
            return segment.ack.is_none_or(|ack| !peer.known || self.near_enough(peer, ack));
        }
        self.near_enough(me, segment.seq)
    }

    fn near_enough(&self, of: &Direction, number: u32) -> bool {
        let number = of.near(number);
        let high = of.high.max(of.next);
        let low = if of.started { of.start } else { of.low.unwrap_or(of.next) };
        let before = if of.isn.is_some() { 1 } else { LATE_SYN_BYTES.unsigned_abs() };
        let after = if self.over { 1 } else { WINDOW };
        number + before >= low && number <= high + after
    }

    /// Takes the next captured segment from `side`. True if it was the usual one, and nothing
    /// waits.
    #[inline]
    pub(crate) fn segment(&mut self, side: Side, segment: &Segment<'_>, clock: &Clock, out: &mut impl Output) -> bool {
        self.segments = self.segments.saturating_add(1);
        self.last = segment.mark;
        if self.over {
            return false;
        }
        let usual = self.in_order(side, segment, out);
        if !usual {
            self.out_of_order(side, segment, clock, out);
        }
        usual
    }

    /// The usual case: the next segment, and all that it acknowledges is known. Nothing is copied.
    #[inline]
    fn in_order(&mut self, side: Side, segment: &Segment<'_>, out: &mut impl Output) -> bool {
        let (me, peer) = self.pair(side);
        let simple = me.started
            && peer.started
            && segment.seq == me.next as u32
            && segment.flags & (flags::SYN | flags::RST) == 0
            && segment.payload.len() == segment.wire_len as usize
            && me.held.is_empty()
            && peer.held.is_empty()
            && !me.closed
            && me.fin.is_none()
            && peer.fin.or(peer.rst).is_none()
            && me.high <= me.next
            && !(me.good && segment.checksum == Checksum::Bad)
            && (segment.flags & flags::FIN == 0 || peer.closed);
        let Some(ack) = segment.ack.filter(|_| simple) else { return false };
        let ack = peer.near(ack);
        if ack > peer.delivered() {
            return false;
        }
        me.good |= segment.checksum == Checksum::Good;
        me.seen = true;
        me.spoke = me.spoke.max(Some(segment.mark.at));
        me.heard = me.heard.max(ack);
        let at =
            At { offset: me.next - me.start, acked: ack.min(peer.next).saturating_sub(peer.start), mark: segment.mark };
        if !segment.payload.is_empty() {
            me.copies.delivered(me.next, segment.payload);
            me.next += segment.payload.len() as u64;
            me.high = me.next;
            out.data(side, segment.payload, at);
        }
        if segment.flags & flags::FIN != 0 {
            let ending = Ending { seq: me.next, ack: Some(ack), mark: segment.mark, arrived: 0 };
            self.close(side, ending, Close::Fin, out);
        }
        true
    }

    fn out_of_order(&mut self, side: Side, segment: &Segment<'_>, clock: &Clock, out: &mut impl Output) {
        let ack = self.note_numbers(side, segment, clock);
        self.note_payload(side, segment, ack, clock, out);
        self.note_ending(side, segment, ack, clock);
        self.pump(out);
        self.expire(clock, out);
        self.relieve(clock, out);
    }

    /// Learns from the sequence and acknowledgment numbers where the directions begin.
    fn note_numbers(&mut self, side: Side, segment: &Segment<'_>, clock: &Clock) -> Option<u64> {
        let (me, peer) = self.pair(side);
        me.seen = true;
        me.absent = false;
        me.good |= segment.checksum == Checksum::Good;
        if segment.flags & flags::SYN != 0 && me.isn.is_none() {
            me.isn = Some(segment.seq);
            if !me.started {
                let first = me.unwrap(segment.seq.wrapping_add(1));
                me.begin(first);
            }
        }
        let number = segment.ack?;
        let shakes_hands = segment.flags & flags::SYN != 0
            || (me.isn.is_some_and(|isn| segment.seq == isn.wrapping_add(1)) && segment.flags & flags::RST == 0);
        let ack = peer.unwrap(number);
        if shakes_hands && !peer.started {
            // A SYN-ACK names the other side's first byte, and so does what follows it at once.
            peer.begin(ack);
        }
        peer.low_ack = Some(peer.low_ack.map_or(ack, |low| low.min(ack)));
        let believable = !peer.started || ack <= peer.next.max(peer.high) + WINDOW;
        if believable && ack > peer.acked {
            if peer.acked <= peer.acknowledgeable() && ack > peer.acknowledgeable() {
                peer.ack_since = Some((segment.mark, clock.count));
            }
            peer.acked = ack;
        }
        let (me, peer) = self.pair(side);
        if me.started && me.near(segment.seq) <= me.next {
            me.heard = me.heard.max(ack);
            me.spoke = me.spoke.max(Some(segment.mark.at));
            peer.fin_settled |= peer.fin.is_some_and(|fin| segment.mark.at >= fin.mark.at || ack > fin.seq);
        }
        Some(ack)
    }

    fn note_payload(
        &mut self,
        side: Side,
        segment: &Segment<'_>,
        ack: Option<u64>,
        clock: &Clock,
        out: &mut impl Output,
    ) {
        let (me, _) = self.pair(side);
        let seq = me.unwrap(segment.seq.wrapping_add(u32::from(segment.flags & flags::SYN != 0)));
        let wire_end = seq + u64::from(segment.wire_len);
        if segment.wire_len == 0 || me.closed || (me.started && seq > me.next.max(me.high) + WINDOW) {
            return;
        }
        let one_byte = segment.wire_len == 1;
        if me.started && wire_end <= me.next {
            if !one_byte && me.copies.differ(seq, segment.payload) {
                out.problem(ProblemKind::ConflictingOverlap, segment.mark, DIFFERS);
            }
            return;
        }
        me.low = Some(me.low.map_or(seq, |low| low.min(seq)));
        me.high = me.high.max(wire_end);
        if segment.payload.len() < segment.wire_len as usize {
            me.cut = Some((segment.mark, clock.count));
        }
        let (mut seq, mut payload) = (seq, segment.payload);
        if me.started && seq < me.next {
            let old = (me.next - seq) as usize;
            if me.copies.differ(seq, payload.get(..old).unwrap_or(payload)) {
                out.problem(ProblemKind::ConflictingOverlap, segment.mark, DIFFERS);
            }
            payload = payload.get(old..).unwrap_or_default();
            seq = me.next;
        }
        if payload.is_empty() {
            return;
        }
        let suspect = me.good && segment.checksum == Checksum::Bad;
        if suspect {
            out.problem(ProblemKind::BadChecksum, segment.mark, "the checksum does not fit, others of this sender do");
        }
        let trust = if suspect {
            Trust::Suspect
        } else if one_byte {
            Trust::OneByte
        } else {
            Trust::Full
        };
        let end = seq + payload.len() as u64;
        let origin = Origin { mark: segment.mark, ack, trust, arrived: clock.count };
        let alone = me.held.first().is_none_or(|(first, _)| first >= end);
        if me.started && seq == me.next && alone && !suspect && !self.is_blocked(side, ack) {
            self.deliver(side, payload, origin, out);
            return;
        }
        let (me, _) = self.pair(side);
        if me.held.insert(seq, payload, origin) {
            out.problem(ProblemKind::ConflictingOverlap, segment.mark, DIFFERS);
        }
    }

    fn note_ending(&mut self, side: Side, segment: &Segment<'_>, ack: Option<u64>, clock: &Clock) {
        let (me, peer) = self.pair(side);
        let seq = me.unwrap(segment.seq) + u64::from(segment.wire_len);
        let ending = Ending { seq, ack, mark: segment.mark, arrived: clock.count };
        let near = !me.started || (seq <= me.next.max(me.high) + WINDOW && seq + (1 << 20) >= me.next);
        if segment.flags & flags::FIN != 0 && me.fin.is_none() && (!me.started || seq >= me.next) && near {
            me.fin = Some(ending);
            me.fin_settled = peer.spoke > Some(segment.mark.at) || peer.heard > seq;
        }
        if segment.flags & flags::RST != 0 && me.rst.is_none() && near {
            me.rst = Some(ending);
        }
    }

    /// Would delivering something that acknowledges `ack` overtake bytes of the other side?
    fn is_blocked(&self, side: Side, ack: Option<u64>) -> bool {
        let peer = self.of(side.other());
        ack.is_some_and(|ack| {
            !peer.absent && !peer.closed && (!peer.started || (ack > peer.delivered() && ack <= peer.acked))
        })
    }

    /// Has the peer been heard past this FIN? In a file whose packets are out of the order of time,
    /// what it sent before may follow, its own FIN too, and who ended a call depends on which was first.
    fn is_settled(&self, side: Side) -> bool {
        let (me, peer) = (self.of(side), self.of(side.other()));
        me.fin_settled || me.rst.is_some() || peer.closed || peer.absent || !peer.seen
    }

    /// What `side` says at `time` comes after a FIN of the peer from before.
    fn close_peer_before(&mut self, side: Side, time: Time, out: &mut impl Output) {
        let (other, peer) = (side.other(), self.of(side.other()));
        if let Some(fin) = peer.fin.filter(|fin| !peer.closed && fin.seq <= peer.delivered() && fin.mark.at <= time)
            && !self.is_blocked(other, fin.ack)
        {
            self.close(other, fin, Close::Fin, out);
        }
    }

    /// Where the other direction is not captured, what this side acknowledges of it is missing.
    fn tell_absent(&mut self, side: Side, ack: Option<u64>, mark: Mark, out: &mut impl Output) {
        let (me, peer) = self.pair(side);
        if let Some(ack) = ack.filter(|ack| peer.absent && peer.started && *ack > peer.next && *ack <= peer.acked) {
            let at = At { offset: peer.next - peer.start, acked: acked(Some(peer.heard), me), mark };
            let bytes = ack - peer.next;
            peer.next = ack;
            out.gap(side.other(), Some(bytes), at);
        }
    }

    pub(super) fn deliver(&mut self, side: Side, bytes: &[u8], origin: Origin, out: &mut impl Output) {
        self.close_peer_before(side, origin.mark.at, out);
        self.tell_absent(side, origin.ack, origin.mark, out);
        let (me, peer) = self.pair(side);
        let at = At { offset: me.next - me.start, acked: acked(origin.ack, peer), mark: origin.mark };
        me.heard = me.heard.max(origin.ack.unwrap_or(0));
        me.copies.delivered(me.next, bytes);
        me.next += bytes.len() as u64;
        me.high = me.high.max(me.next);
        out.data(side, bytes, at);
    }

    fn close(&mut self, side: Side, ending: Ending, close: Close, out: &mut impl Output) {
        self.tell_absent(side, ending.ack, ending.mark, out);
        let (me, peer) = self.pair(side);
        if peer.fin_assumed && !peer.closed && ending.ack == Some(peer.next + 1) {
            // This answers a FIN that the capture lacks: the other side closed first.
            peer.closed = true;
            let at = At { offset: peer.next - peer.start, acked: acked(None, me), mark: ending.mark };
            out.close(side.other(), Close::Fin, at);
        }
        let (me, peer) = self.pair(side);
        let at = At { offset: me.next - me.start, acked: acked(ending.ack, peer), mark: ending.mark };
        me.closed = true;
        me.fin = None;
        me.held.clear();
        let over = close != Close::Fin || peer.closed;
        out.close(side, close, at);
        if over {
            self.end();
        }
    }

    pub(super) fn end(&mut self) {
        self.over = true;
        for d in [&mut self.a, &mut self.b] {
            d.closed = true;
            d.held.clear();
            d.copies.clear();
        }
    }

    /// Delivers what can be delivered.
    pub(super) fn pump(&mut self, out: &mut impl Output) {
        while !self.over {
            let moved = self.advance(Side::A, out) | self.advance(Side::B, out);
            if !moved && !self.break_circle(out) {
                return;
            }
        }
    }

    fn advance(&mut self, side: Side, out: &mut impl Output) -> bool {
        let mut moved = false;
        while self.of(side).started && !self.over {
            let (me, peer) = self.pair(side);
            if me.ready() {
                let Some((_, held)) = me.held.first() else { return moved };
                let origin = held.origin;
                if origin.trust == Trust::Suspect || self.is_blocked(side, origin.ack) {
                    return moved;
                }
                let (me, _) = self.pair(side);
                let Some((_, held)) = me.held.pop() else { return moved };
                self.deliver(side, &held.bytes, origin, out);
            } else if let Some(ending) = me.ending().filter(|_| !me.closed || me.fin.is_none()) {
                // What the peer sent before it knew of this comes first.
                let close = if me.fin.is_some() { Close::Fin } else { Close::Reset };
                if !peer.closed && peer.started && self.is_blocked(side, ending.ack) {
                    return moved;
                }
                if close == Close::Fin && !self.is_settled(side) {
                    return moved;
                }
                self.close(side, ending, close, out);
            } else {
                return moved;
            }
            moved = true;
        }
        moved
    }

    /// Segments that were sent again carry later acknowledgments than the first copies, so that
    /// each direction can wait for the other: then the one captured first goes first.
    fn break_circle(&mut self, out: &mut impl Output) -> bool {
        let waiting = |d: &mut Direction| {
            if !d.started || d.closed {
                None
            } else if d.ready() {
                d.held
                    .first()
                    .filter(|(_, held)| held.origin.trust != Trust::Suspect)
                    .map(|(_, held)| held.origin.arrived)
            } else {
                d.ending().filter(|_| d.fin.is_none() || d.fin_settled).map(|ending| ending.arrived)
            }
        };
        let (Some(a), Some(b)) = (waiting(&mut self.a), waiting(&mut self.b)) else { return false };
        let side = if a <= b { Side::A } else { Side::B };
        let (me, _) = self.pair(side);
        if me.ready() {
            let Some((_, held)) = me.held.pop() else { return false };
            self.deliver(side, &held.bytes, held.origin, out);
        } else if let Some(ending) = me.ending() {
            let kind = if me.fin.is_some() { Close::Fin } else { Close::Reset };
            self.close(side, ending, kind, out);
        }
        true
    }
}

const DIFFERS: &str = "a second copy of these bytes differs from the first, which was kept";

/// Bytes of `peer` that come before its number `ack`, as far as told.
pub(super) fn acked(ack: Option<u64>, peer: &Direction) -> u64 {
    ack.map_or(u64::MAX, |ack| ack.min(peer.next).saturating_sub(peer.start))
}
