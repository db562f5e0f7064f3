//! A part of a capture, joined by itself: which of its exchanges are odd, and which the next part has to see.

use super::answers::{self, Answers, HopCallId, NEVER, Oddity, ReplyRef, rpc};
use super::chain::{self, Chains};
use super::content::{self, Contents};
use super::groups::{GroupKey, Groups};
use super::past::Past;
use crate::mcp::{RpcKind, Visit};
use crate::model::exchange::End;
use crate::model::id::RpcId;
use crate::model::place::Vantage;
use crate::model::time::Time;
use rustc_hash::FxHashMap;

/// A call that nobody answered is waited for this long, ns: a later reply of its id may be its own.
const GONE_NS: i64 = 600_000_000_000;
/// Exchanges of one group that go on into the next part, at most.
const CARRIED: usize = 256;

/// What stays of the exchanges that are over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Stays {
    /// Those that a rule may want; those kept for their neighbours' sake without what was said.
    #[default]
    Wanted,
    /// Those that a rule may want, whole.
    WantedWhole,
    /// All, since a log's line or another capture's exchange may be of any: those that are not odd by themselves
    /// without what was said, of which the hashes stay.
    All {
        /// And fingerprints of what was said, which clients' records are held against.
        values: bool,
    },
}

fn mark(slots: &mut [bool], v: usize) {
    if let Some(slot) = slots.get_mut(v) {
        *slot = true;
    }
}

/// What is decided about one exchange.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fate {
    /// Nothing more is asked of it.
    Clean,
    /// Its session's story needs that it was, but not what it said.
    Outline,
    /// A rule may want it.
    Wanted,
}

/// A part joined, without the rules.
pub(super) struct Part<'a> {
    pub visits: &'a [Visit],
    pub order: Vec<u32>,
    pub groups: Groups,
    pub chains: Chains,
    pub answers: Answers,
    pub contents: Contents,
}

impl<'a> Part<'a> {
    pub fn new(visits: &'a [Visit], past: &mut Past, new: std::ops::Range<usize>, stays: Stays) -> Part<'a> {
        let mut groups = Groups::from(&past.servers);
        let (order, hop_of) = groups.hops(visits);
        // Where all stays they are found at the end, when the captures have one clock.
        let chains = match stays {
            Stays::All { .. } => Chains::default(),
            _ => chain::chains(visits, &hop_of, &groups, &order, &mut past.votes),
        };
        let answers = answers::answers(visits, &mut groups, &order);
        let contents = content::contents(visits, &answers, &groups, &mut past.known, new);
        past.servers.clone_from(&groups.servers);
        Part { visits, order, groups, chains, answers, contents }
    }

    /// Hop-free key of a visit's session or client.
    pub fn key(&self, v: usize) -> GroupKey {
        let group = self.answers.group_of.get(v).copied().unwrap_or(0);
        self.groups.all.get(group as usize).map_or(GroupKey::Client(None, None), |(_, key)| key.clone())
    }

    fn visit_of(&self, c: HopCallId) -> Option<u32> {
        self.answers.calls.get(c as usize).map(|c| c.visit)
    }

    /// Until when a call was in flight.
    fn until(&self, c: HopCallId) -> Time {
        self.answers.calls.get(c as usize).and_then(|c| answers::until(self.visits, c)).unwrap_or(NEVER)
    }

    fn reply(&self, r: ReplyRef) -> Option<&crate::mcp::Reply> {
        self.visits.get(r.visit as usize)?.replies.get(r.reply as usize)
    }

    /// Marks every visit that is not clean by itself; in `told` those of which more than a gap is told, so that
    /// their replies are looked at again.
    pub fn find_odd(&self, odd: &mut [bool], told: &mut [bool], over: usize) {
        for (v, visit) in self.visits.iter().enumerate().take(over) {
            if !self.is_clean(v as u32, visit) {
                mark(odd, v);
                if !visit.request_gap && !visit.response_gap {
                    mark(told, v);
                }
            }
        }
        self.find_told(told);
        for v in (0..told.len()).filter(|v| told.get(*v) == Some(&true)) {
            mark(odd, v);
        }
    }

    /// Marks the visits of which ids or contents tell something.
    fn find_told(&self, told: &mut [bool]) {
        let mut mark = |v: Option<u32>| mark(told, v.map_or(usize::MAX, |v| v as usize));
        for oddity in &self.answers.oddities {
            let (reply, a, b) = match *oddity {
                Oddity::OtherId { reply, carrier, owner } => (reply, Some(carrier), Some(owner)),
                Oddity::UnknownId { reply, carrier } => (reply, Some(carrier), None),
                Oddity::OnGet { reply, owner } => (reply, owner, None),
                Oddity::Again { reply, carrier, owner, .. } => (reply, carrier, Some(owner)),
            };
            mark(Some(reply.visit));
            a.into_iter().chain(b).for_each(|c| mark(self.visit_of(c)));
        }
        for (c, verdict) in &self.contents.foreign {
            mark(self.visit_of(*c));
            mark(self.visit_of(verdict.owner));
        }
        self.contents.mismatch.keys().chain(&self.contents.unsettled).for_each(|c| mark(self.visit_of(*c)));
        for (c, other, _) in &self.contents.near {
            mark(self.visit_of(*c));
            mark(other.and_then(|o| self.visit_of(o)));
        }
        self.find_reused(told);
    }

    /// Was everything asked in the visit answered once, whole and in its place?
    fn is_clean(&self, v: u32, visit: &Visit) -> bool {
        if visit.vantage != Vantage::Wire || !visit.has_request || visit.request_gap || visit.response_gap {
            return false;
        }
        if visit.rpc.is_empty() && visit.session.is_none() && visit.given.is_none() && visit.replies.is_empty() {
            // Other HTTP traffic.
            return visit.last_event_id.is_none() && !visit.legacy_stream;
        }
        if visit.is_get() {
            let ended = matches!(visit.end, Some(End::Complete | End::ClientClosed));
            let ok = matches!(visit.status, Some(200 | 405));
            return ended && ok && visit.replies.is_empty() && visit.asks.is_empty() && visit.last_event_id.is_none();
        }
        let ok = visit.status.is_some_and(|s| (200..300).contains(&s));
        if !ok || visit.end != Some(End::Complete) || visit.client_closed.is_some() || visit.one_direction {
            return false;
        }
        let odd = visit.legacy_stream || !visit.asks.is_empty() || visit.last_event_id.is_some();
        let speaks = visit.rpc.iter().any(|r| r.kind == RpcKind::Response || r.cancels.is_some());
        if odd || speaks || visit.is_delete() {
            return false;
        }
        let Some(&(first, n)) = self.answers.by_visit.get(&v) else { return visit.replies.is_empty() };
        visit.replies.len() == n as usize && (first..first + n).all(|c| self.is_answered(c, v))
    }

    fn is_answered(&self, c: HopCallId, v: u32) -> bool {
        let Some(call) = self.answers.calls.get(c as usize) else { return false };
        let own = call.answer.is_some_and(|a| a.legal && !a.retyped && a.at.visit == v);
        let said = call.answer.and_then(|a| self.reply(a.at)).is_some_and(|r| !r.after_gap && !r.after_close);
        own && said && call.cancelled.is_none() && call.elsewhere.is_empty() && call.foreign.is_empty()
    }

    /// An id that was used again while it was in flight.
    fn find_reused(&self, told: &mut [bool]) {
        for list in &self.answers.by_group {
            let mut last: FxHashMap<&RpcId, HopCallId> = FxHashMap::default();
            for &c in list {
                let Some(call) = self.answers.calls.get(c as usize) else { continue };
                let Some(id) = rpc(self.visits, call).and_then(|r| r.id.as_ref()) else { continue };
                if let Some(earlier) = last.insert(id, c)
                    && self.until(earlier) > call.asked
                {
                    self.visit_of(earlier).into_iter().chain([call.visit]).for_each(|v| mark(told, v as usize));
                }
            }
        }
    }

    /// Wants what is odd and what was in flight with it: that is its batch, and may own its reply.
    pub fn want(&self, odd: &[bool], fates: &mut [Fate]) {
        fates.iter_mut().zip(odd).filter(|(_, odd)| **odd).for_each(|(fate, _)| *fate = Fate::Wanted);
        let is_odd = |c: HopCallId| self.visit_of(c).is_some_and(|v| odd.get(v as usize) == Some(&true));
        let asked = |c: HopCallId| self.answers.calls.get(c as usize).map(|c| c.asked);
        let mut with: Vec<u32> = vec![];
        for list in &self.answers.by_group {
            // Until when odd calls are in flight.
            let mut reach: Option<Time> = None;
            for &c in list {
                if is_odd(c) {
                    reach = reach.max(Some(self.until(c)));
                } else if reach.zip(asked(c)).is_some_and(|(r, a)| r >= a) {
                    with.extend(self.visit_of(c));
                }
            }
            let mut next: Option<Time> = None;
            for &c in list.iter().rev() {
                if is_odd(c) {
                    next = asked(c).or(next);
                } else if next.is_some_and(|n| n <= self.until(c)) {
                    with.extend(self.visit_of(c));
                }
            }
        }
        for v in with {
            if let Some(fate) = fates.get_mut(v as usize) {
                *fate = Fate::Wanted;
            }
        }
    }

    /// Which visits the next part has to see: those in flight with what is open, and calls without a reply,
    /// whose reply may come to somebody else.
    pub fn go_on(&self, odd: &[bool], over: usize) -> Vec<bool> {
        let mut out = vec![false; over];
        // Each capture has a clock of its own.
        let mut end: FxHashMap<u32, Time> = FxHashMap::default();
        for visit in self.visits {
            end.entry(visit.input).and_modify(|t| *t = visit.asked.max(*t)).or_insert(visit.asked);
        }
        for list in &self.answers.by_group {
            let is_open = |c: &HopCallId| self.visit_of(*c).is_some_and(|v| v as usize >= over);
            let open = list.iter().filter(|c| is_open(c));
            let since = open.filter_map(|c| self.answers.calls.get(*c as usize)).map(|c| c.asked).min();
            let mut carried = 0;
            for &c in list.iter().rev() {
                let Some(call) = self.answers.calls.get(c as usize).filter(|c| (c.visit as usize) < over) else {
                    continue;
                };
                let not_gone = |end: &Time| end.since(call.asked) < GONE_NS;
                let waits = call.answer.is_none()
                    && odd.get(call.visit as usize) == Some(&true)
                    && self.visits.get(call.visit as usize).and_then(|v| end.get(&v.input)).is_some_and(not_gone);
                if carried < CARRIED
                    && (waits || since.is_some_and(|s| self.until(c) >= s))
                    && let Some(slot) = out.get_mut(call.visit as usize)
                {
                    *slot = true;
                    carried += 1;
                }
            }
        }
        out
    }
}
