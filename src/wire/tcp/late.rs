//! How long a connection waits for packets that come late, and what becomes of those that do not.

use super::connection::{Reassembler, acked};
use super::direction::{Hole, WINDOW};
use super::held::Trust;
use super::{At, Output, Side};
use crate::model::exchange::Mark;
use crate::model::limits;
use crate::model::problem::ProblemKind;
use crate::model::time::Time;
use crate::wire::Close;

/// How long a packet may come late: behind the acknowledgment of its bytes, or in a second capture.
const LATE_NS: i64 = 1_000_000_000;
/// The same in a capture that is alone: there it is late by what the capturing machine turned around, and by what
/// the times of the file show (see [`Clock::disorder_ns`]).
const LATE_ALONE_NS: i64 = 200_000_000;
/// And how many segments (of any connection) may come before it.
const LATE_SEGMENTS: u64 = 64;
/// How long a hole that nobody acknowledged waits: it will be sent again.
const UNACKNOWLEDGED_NS: i64 = 60 * LATE_NS;
/// The same where the peer's acknowledgments are not captured.
const UNACKNOWLEDGED_ONE_SIDED_NS: i64 = 3 * LATE_NS;
/// After this many segments in order a connection without SYN is taken to begin where it seems to.
const MIDSTREAM_SEGMENTS: u32 = 64;
/// The time by which waiting is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    /// Time of the segment at hand.
    pub now: Time,
    /// Segments read so far, of all connections.
    pub count: u64,
    /// How far times of this input step back, ns: packets may come that much later still.
    pub disorder_ns: i64,
    /// All segments are of one input.
    pub alone: bool,
    /// Nothing more will come.
    pub ended: bool,
}

impl Clock {
    /// Has what has waited since then waited for `wait_ns`, as far as times can be trusted?
    fn is_over(&self, since: Time, arrived: u64, wait_ns: i64) -> bool {
        // Times that step back do so in all that is measured by them.
        let disorder_ns = self.disorder_ns.saturating_mul(2).saturating_mul((wait_ns / LATE_NS).max(1));
        let wait = wait_ns.saturating_add(disorder_ns);
        self.ended || (self.count.saturating_sub(arrived) >= LATE_SEGMENTS && self.now.since(since) >= wait)
    }
}

impl Reassembler {
    /// Stops waiting for what has had its time.
    pub(crate) fn expire(&mut self, clock: &Clock, out: &mut impl Output) {
        let begun = self.a.started && self.b.started;
        if !self.over && !begun {
            let settled = clock.disorder_ns == 0 && self.segments >= MIDSTREAM_SEGMENTS;
            if settled || clock.is_over(self.first.at, self.first_count, LATE_NS) {
                self.begin_midstream(out);
            }
        }
        self.settle(clock, out);
        while !self.over {
            let due = [Side::A, Side::B].into_iter().find_map(|side| Some((side, self.due(side, clock)?)));
            let Some((side, hole)) = due else { return };
            self.give_up(side, hole, out);
        }
    }

    /// A FIN that the peer leaves without an answer does not wait for ever.
    fn settle(&mut self, clock: &Clock, out: &mut impl Output) {
        let mut settled = false;
        for d in [&mut self.a, &mut self.b] {
            if let Some(fin) = d.fin.filter(|_| !d.fin_settled)
                && clock.is_over(fin.mark.at, fin.arrived, LATE_NS)
            {
                d.fin_settled = true;
                settled = true;
            }
        }
        if settled {
            self.pump(out);
        }
    }

    fn due(&self, side: Side, clock: &Clock) -> Option<Hole> {
        let hole = self.of(side).hole()?;
        // Bytes that are there but wait for the other direction are no hole.
        if hole.suspect && self.of(side).held.first().is_some_and(|(_, held)| held.origin.trust != Trust::Suspect) {
            return None;
        }
        let wait_ns = match (hole.acked, self.of(side.other()).seen) {
            (true, _) if clock.alone => LATE_ALONE_NS,
            (true, _) => LATE_NS,
            (false, true) => UNACKNOWLEDGED_NS,
            (false, false) => UNACKNOWLEDGED_ONE_SIDED_NS,
        };
        clock.is_over(hole.at, hole.arrived, wait_ns).then_some(hole)
    }

    fn give_up(&mut self, side: Side, mut hole: Hole, out: &mut impl Output) {
        if let Some(ack) = self.waits_for(side.other()).filter(|ack| *ack > self.of(side).next && hole.acked) {
            // No more than lets the other side go on, so that what it says stays in its place.
            hole.end = hole.end.min(ack);
        }
        let (me, peer) = self.pair(side);
        let at = At { offset: me.next - me.start, acked: acked(Some(me.heard), peer), mark: hole.mark };
        if hole.suspect {
            if let Some((_, held)) = me.held.pop() {
                self.deliver(side, &held.bytes, held.origin, out);
            }
        } else if me.acked == me.next + 1 && !me.fin_assumed && me.held.is_empty() && me.high <= me.next {
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

    /// What the next thing of a side acknowledges.
    fn waits_for(&mut self, side: Side) -> Option<u64> {
        let (me, _) = self.pair(side);
        if me.started && me.ready() {
            return me.held.first().and_then(|(_, held)| held.origin.ack);
        }
        me.ending().and_then(|ending| ending.ack)
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
            if let Some((start, held)) = me.held.first()
                && *held.bytes == *b"\0"
                && me.low_ack == Some(start + 1)
            {
                // The first packet was a keep-alive probe with its byte of garbage.
                me.held.pop();
                me.low = me.low_ack;
            }
            let lowest = [me.low, me.fin.map(|fin| fin.seq), me.rst.map(|rst| rst.seq)].into_iter().flatten().min();
            // What the peer acknowledged before any of these bytes came is where they begin; in
            // between something is missing.
            let acked = me.low_ack.filter(|ack| lowest.is_none_or(|low| *ack <= low && low - *ack < WINDOW));
            match acked.or(lowest) {
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
    pub(super) fn relieve(&mut self, clock: &Clock, out: &mut impl Output) {
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

    /// Nothing more will be captured: delivers all that waits, holes as gaps, and closes. `last` is
    /// where the input ends.
    pub(crate) fn finish(&mut self, clock: &Clock, last: Option<Mark>, out: &mut impl Output) {
        if self.over {
            return;
        }
        self.expire(&Clock { ended: true, ..*clock }, out);
        if !self.over {
            let side = if self.a.closed { Side::B } else { Side::A };
            let mark = last.unwrap_or(self.last);
            let offset = self.of(side).next - self.of(side).start;
            let acked = self.of(side.other()).next - self.of(side.other()).start;
            out.close(side, Close::InputEnded, At { offset, acked, mark });
            self.end();
        }
    }
}
