//! Both directions of one connection: what is delivered when.

use super::direction::{Direction, Ending, Hole, WINDOW};
use super::held::{Origin, Trust};
use super::{At, Output, Side};
use crate::model::exchange::Mark;
use crate::model::limits;
use crate::model::problem::ProblemKind;
use crate::model::time::Time;
use crate::wire::{Checksum, Close, Segment, flags};

/// How long a packet may come late: behind the acknowledgment of its bytes, or in a second capture.
const LATE_NS: i64 = 1_000_000_000;
/// And how many segments (of any connection) may come before it.
const LATE_SEGMENTS: u64 = 32;
/// A hole that nobody acknowledged waits this many times longer: it will be sent again.
const UNACKNOWLEDGED: i64 = 60;
/// The same where the peer's acknowledgments are not captured.
const UNACKNOWLEDGED_ONE_SIDED: i64 = 3;
/// After this many segments in order a connection without SYN is taken to begin where it seems to.
const MIDSTREAM_SEGMENTS: u32 = 64;
/// How far before the first segment seen a SYN that came late may stand, bytes.
const LATE_SYN_BYTES: i64 = 16 << 20;

/// The time by which waiting is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    /// Time of the segment at hand.
    pub now: Time,
    /// Segments read so far, of all connections.
    pub count: u64,
    /// How far times of this input step back, ns: packets may come that much later still.
    pub disorder_ns: i64,
    /// Nothing more will come.
    pub ended: bool,
}

impl Clock {
    fn is_over(&self, since: Time, arrived: u64, times: i64) -> bool {
        let wait = LATE_NS.saturating_add(self.disorder_ns.saturating_mul(2)).saturating_mul(times);
        self.ended || (self.count.saturating_sub(arrived) >= LATE_SEGMENTS && self.now.since(since) >= wait)
    }
}

/// Puts the segments of one connection in order.
#[derive(Debug)]
pub(crate) struct Reassembler {
    a: Direction,
    b: Direction,
    first: Mark,
    last: Mark,
    first_count: u64,
    segments: u32,
    over: bool,
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

    fn pair(&mut self, side: Side) -> (&mut Direction, &mut Direction) {
        match side {
            Side::A => (&mut self.a, &mut self.b),
            Side::B => (&mut self.b, &mut self.a),
        }
    }
    fn of(&self, side: Side) -> &Direction {
        match side {
            Side::A => &self.a,
            Side::B => &self.b,
        }
    }

    /// Can this segment belong to this connection, or is it of another between the same ports?
    pub(crate) fn fits(&self, side: Side, segment: &Segment<'_>) -> bool {
        let (me, peer) = (self.of(side), self.of(side.other()));
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

    /// Takes the next captured segment from `side`.
    #[inline]
    pub(crate) fn segment(&mut self, side: Side, segment: &Segment<'_>, clock: &Clock, out: &mut impl Output) {
        self.segments = self.segments.saturating_add(1);
        self.last = segment.mark;
        if self.over {
            return;
        }
        if !self.in_order(side, segment, out) {
            self.out_of_order(side, segment, clock, out);
        }
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
            && peer.rst.is_none()
            && me.high <= me.next
            && !(me.good && segment.checksum == Checksum::Bad);
        let Some(ack) = segment.ack.filter(|_| simple) else { return false };
        let ack = peer.near(ack);
        if ack > peer.acknowledgeable() {
            return false;
        }
        me.good |= segment.checksum == Checksum::Good;
        me.seen = true;
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
        self.tell_absent(side, ack, segment.mark, out);
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
        Some(ack)
    }

    /// Where the other direction is not captured, what is acknowledged of it is missing.
    fn tell_absent(&mut self, side: Side, ack: Option<u64>, mark: Mark, out: &mut impl Output) {
        let (_, peer) = self.pair(side);
        if let Some(ack) = ack.filter(|ack| peer.absent && peer.started && *ack > peer.next) {
            let at = At { offset: peer.next - peer.start, acked: 0, mark };
            let bytes = ack - peer.next;
            peer.next = ack;
            out.gap(side.other(), Some(bytes), at);
        }
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
        if !me.started && one_byte && me.low_ack.is_some_and(|low| low > seq) {
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
        let (me, _) = self.pair(side);
        let seq = me.unwrap(segment.seq) + u64::from(segment.wire_len);
        let ending = Ending { seq, ack, mark: segment.mark, arrived: clock.count };
        let near = !me.started || (seq <= me.next.max(me.high) + WINDOW && seq + (1 << 20) >= me.next);
        if segment.flags & flags::FIN != 0 && me.fin.is_none() && (!me.started || seq >= me.next) && near {
            me.fin = Some(ending);
        }
        if segment.flags & flags::RST != 0 && me.rst.is_none() && near {
            me.rst = Some(ending);
        }
    }

    /// Would delivering something that acknowledges `ack` overtake bytes of the other side?
    fn is_blocked(&self, side: Side, ack: Option<u64>) -> bool {
        let peer = self.of(side.other());
        ack.is_some_and(|ack| {
            !peer.absent && !peer.closed && (!peer.started || (ack > peer.acknowledgeable() && ack <= peer.acked))
        })
    }

    fn deliver(&mut self, side: Side, bytes: &[u8], origin: Origin, out: &mut impl Output) {
        let (me, peer) = self.pair(side);
        let at = At { offset: me.next - me.start, acked: acked(origin.ack, peer), mark: origin.mark };
        me.copies.delivered(me.next, bytes);
        me.next += bytes.len() as u64;
        me.high = me.high.max(me.next);
        out.data(side, bytes, at);
    }

    fn close(&mut self, side: Side, ending: Ending, close: Close, out: &mut impl Output) {
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

    fn end(&mut self) {
        self.over = true;
        for d in [&mut self.a, &mut self.b] {
            d.closed = true;
            d.held.clear();
            d.copies.clear();
        }
    }

    /// Delivers what can be delivered.
    fn pump(&mut self, out: &mut impl Output) {
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
            } else if let Some(fin) = me.fin.filter(|fin| fin.seq <= me.next) {
                if me.closed || self.is_blocked(side, fin.ack) {
                    return moved;
                }
                self.close(side, fin, Close::Fin, out);
            } else if let Some(rst) = me.rst.filter(|rst| rst.seq <= me.next + 1) {
                // What the peer sent before it knew of the RST comes first.
                if !peer.closed && peer.started && self.is_blocked(side, rst.ack) {
                    return moved;
                }
                self.close(side, rst, Close::Reset, out);
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
            let ready = d.started && d.ready();
            d.held.first().filter(|_| ready).map(|(_, held)| held.origin).filter(|o| o.trust != Trust::Suspect)
        };
        let (Some(a), Some(b)) = (waiting(&mut self.a), waiting(&mut self.b)) else { return false };
        let side = if a.arrived <= b.arrived { Side::A } else { Side::B };
        let (me, _) = self.pair(side);
        let Some((_, held)) = me.held.pop() else { return false };
        self.deliver(side, &held.bytes, held.origin, out);
        true
    }

    /// Stops waiting for what has had its time.
    pub(crate) fn expire(&mut self, clock: &Clock, out: &mut impl Output) {
        if !self.over && !(self.a.started && self.b.started) {
            let settled = clock.disorder_ns == 0 && self.segments >= MIDSTREAM_SEGMENTS;
            if settled || clock.is_over(self.first.at, self.first_count, 1) {
                self.begin_midstream(out);
            }
        }
        while !self.over {
            let due = [Side::A, Side::B].into_iter().find_map(|side| Some((side, self.due(side, clock)?)));
            let Some((side, hole)) = due else { return };
            self.give_up(side, hole, out);
        }
    }

    fn due(&self, side: Side, clock: &Clock) -> Option<Hole> {
        let hole = self.of(side).hole()?;
        // Bytes that are there but wait for the other direction are no hole.
        if hole.suspect && self.of(side).held.first().is_some_and(|(_, held)| held.origin.trust != Trust::Suspect) {
            return None;
        }
        let times = match (hole.acked, self.of(side.other()).seen) {
            (true, _) => 1,
            (false, true) => UNACKNOWLEDGED,
            (false, false) => UNACKNOWLEDGED_ONE_SIDED,
        };
        clock.is_over(hole.at, hole.arrived, times).then_some(hole)
    }

    fn give_up(&mut self, side: Side, hole: Hole, out: &mut impl Output) {
        let (me, peer) = self.pair(side);
        let at = At { offset: me.next - me.start, acked: peer.next - peer.start, mark: hole.mark };
        if hole.suspect {
            if let Some((_, held)) = me.held.pop() {
                self.deliver(side, &held.bytes, held.origin, out);
            }
        } else if hole.acked && hole.end == me.next + 1 && me.held.is_empty() && me.high <= me.next {
            me.fin_assumed = true;
        } else {
            let bytes = hole.end - me.next;
            me.next = hole.end;
            if me.seen {
                out.problem(ProblemKind::StreamGap, hole.mark, "bytes before this are not in the capture");
            } else {
                me.absent = true;
            }
            out.gap(side, Some(bytes), at);
        }
        self.pump(out);
    }

    /// Nothing tells where the directions begin, and waiting is over.
    fn begin_midstream(&mut self, out: &mut impl Output) {
        let both = [Side::A, Side::B];
        if both.into_iter().any(|side| !self.of(side).started && !self.of(side).held.is_empty()) {
            let runs = |side: Side| self.of(side).held.iter().map(move |(_, held)| (side, &*held.bytes));
            out.midstream(&mut runs(Side::A).chain(runs(Side::B)), self.first);
        }
        for side in both {
            let first = self.first;
            let (me, _) = self.pair(side);
            if me.started {
                continue;
            }
            let lowest = [me.low, me.fin.map(|fin| fin.seq), me.rst.map(|rst| rst.seq)].into_iter().flatten().min();
            match lowest.or(me.low_ack) {
                Some(start) => {
                    me.begin(start);
                    me.absent = !me.seen;
                    out.gap(side, None, At { offset: 0, acked: 0, mark: first });
                }
                None => me.absent = true,
            }
        }
        self.pump(out);
    }

    /// Keeps what waits within its caps.
    fn relieve(&mut self, clock: &Clock, out: &mut impl Output) {
        for side in [Side::A, Side::B] {
            while !self.over
                && (self.of(side).held.bytes() > limits::REORDER_BYTES
                    || self.of(side).held.len() > limits::REORDER_SEGMENTS)
            {
                out.problem(
                    ProblemKind::LimitHit,
                    self.last,
                    "reorder-bytes: too much waits for bytes that are missing",
                );
                if !self.force(clock, out) {
                    break;
                }
            }
        }
    }

    /// Stops waiting for the first thing that is waited for; false if nothing was.
    pub(crate) fn force(&mut self, clock: &Clock, out: &mut impl Output) -> bool {
        let before = (self.a.next, self.b.next, self.held_bytes());
        if !(self.a.started && self.b.started) {
            self.begin_midstream(out);
        }
        let ended = Clock { ended: true, ..*clock };
        for side in [Side::A, Side::B] {
            if let Some(hole) = self.due(side, &ended) {
                self.give_up(side, hole, out);
                break;
            }
        }
        before != (self.a.next, self.b.next, self.held_bytes())
    }

    /// Nothing more will be captured: delivers all that waits, holes as gaps, and closes.
    pub(crate) fn finish(&mut self, clock: &Clock, out: &mut impl Output) {
        if self.over {
            return;
        }
        self.expire(&Clock { ended: true, ..*clock }, out);
        if !self.over {
            let side = if self.a.closed { Side::B } else { Side::A };
            let mark = self.last;
            let offset = self.of(side).next - self.of(side).start;
            let acked = self.of(side.other()).next - self.of(side.other()).start;
            out.close(side, Close::InputEnded, At { offset, acked, mark });
            self.end();
        }
    }
}

const DIFFERS: &str = "a second copy of these bytes differs from the first, which was kept";

fn acked(ack: Option<u64>, peer: &Direction) -> u64 {
    ack.map_or(u64::MAX, |ack| ack.min(peer.next).saturating_sub(peer.start))
}
