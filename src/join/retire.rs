//! Decides which exchanges no rule can still need.
//!
//! Clean is what every rule has looked past: a request that was answered once, whole, on its own stream, under
//! its own id, by a reply that content does not give to another call, and that was in flight with no call of
//! which the same cannot be said. Whoever adds a rule that needs more of clean exchanges has to keep it here;
//! `tests/parts.rs` compares findings with and without.

use super::answers::{self, Answers, HopCallId, NEVER, Oddity, ReplyRef, rpc};
use super::chain::{self, Chains};
use super::content::{self, Contents};
use super::groups::{GroupKey, Groups};
use super::hints::{may_be_call, may_hang, may_refuse};
use super::kept::Kept;
use super::past::{Numbering, Past, SessionPast, without_bodies, without_replies};
use super::patterns::Pattern;
use super::quiet::is_clean_line;
use super::unlogged::is_unlogged;
use crate::mcp::{RpcKind, Tracked, Visit};
use crate::model::exchange::End;
use crate::model::id::{RpcId, SessionId};
use crate::model::limits::{KEPT_LINES, KEPT_VISITS};
use crate::model::place::Vantage;
use crate::model::time::Time;
use rustc_hash::FxHashMap;

/// A call that nobody answered is waited for this long, ns: a later reply of its id may be its own.
const GONE_NS: i64 = 600_000_000_000;
/// After a refusal a client may start anew for this long, ns.
const REINIT_NS: i64 = 600_000_000_000;
/// The requests that follow such a start for this long show whether refused calls were sent again, ns.
const FRESH_NS: i64 = 15_000_000_000;
/// What cancels a call comes this near its end, ns.
const CANCEL_NS: i64 = 2_000_000_000;
/// Calls of a session that a window's sequence can show.
const FIRST_CALLS: u32 = 3;
/// Exchanges of one session kept for how its ids run, or after a refusal.
const KEPT: u32 = 256;
/// Exchanges of one group that go on into the next part, at most.
const CARRIED: usize = 256;

/// An exchange that is over and goes on into the next part: whether it is odd by itself, and what was decided.
struct Carried {
    visit: Visit,
    odd: bool,
    fate: Fate,
}

/// Joins a capture in parts, and keeps what the rules need at the end.
#[derive(Default)]
pub struct Parts {
    /// Also keep the replies of what is kept for its neighbours' sake.
    keep_replies: bool,
    past: Past,
    carried: Vec<Carried>,
    kept: Kept,
}

/// What is decided about one exchange.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fate {
    /// Nothing more is asked of it.
    Clean,
    /// Its session's story needs that it was, but not what it said.
    Outline,
    /// A rule may want it.
    Wanted,
}

impl Parts {
    /// Nothing joined yet. `keep_replies`: the output shows what was said.
    pub fn new(keep_replies: bool) -> Parts {
        Parts { keep_replies, ..Parts::default() }
    }

    /// Takes exchanges that have ended; `open` are those that have begun and not ended.
    pub fn take(&mut self, ended: Vec<Visit>, open: Vec<Visit>) {
        let carried = std::mem::take(&mut self.carried);
        let (old, over) = (carried.len(), carried.len() + ended.len());
        let mut odd: Vec<bool> = carried.iter().map(|c| c.odd).collect();
        let mut fates: Vec<Fate> = carried.iter().map(|c| c.fate).collect();
        let visits: Vec<Visit> = carried.into_iter().map(|c| c.visit).chain(ended).chain(open).collect();
        odd.resize(visits.len(), false);
        fates.resize(visits.len(), Fate::Clean);
        let part = Part::new(&visits, &mut self.past, old..over);
        part.find_odd(&mut odd, over);
        part.want(&odd, &mut fates);
        let mut go_on = part.go_on(&odd, over);
        let keys: Vec<GroupKey> = (0..over).map(|v| part.key(v)).collect();
        let Part { order, chains, .. } = part;
        self.outline(&visits, &order, &keys, &mut fates, old..over);
        let behind = together(&chains, &mut fates, &mut go_on, over);
        for (v, visit) in visits.into_iter().take(over).enumerate() {
            let fate = fates.get(v).copied().unwrap_or(Fate::Wanted);
            if go_on.get(v) == Some(&true) {
                let odd = odd.get(v) == Some(&true);
                self.carried.push(Carried { visit, odd, fate });
                continue;
            }
            match (fate, keys.get(v)) {
                (Fate::Clean, _) if behind.get(v) == Some(&true) => self.past.exchanges += 1,
                (Fate::Clean, Some(key)) => self.past.retire(key, visit),
                (Fate::Outline, _) => self.kept.push(without_bodies(visit)),
                (Fate::Wanted, _) if self.keep_replies || odd.get(v) != Some(&false) => self.kept.push(visit),
                // What was in flight with something odd may own its reply; its own was looked at.
                _ => self.kept.push(without_replies(visit)),
            }
        }
        self.cap(KEPT_VISITS);
    }

    /// Takes the first `done` lines of a log that is read alone, in order of time.
    pub fn take_lines(&mut self, all: &mut Vec<Visit>, done: usize) {
        let lines = all.get(..done).unwrap_or_default();
        let of_lines = lines.iter().filter(|v| !is_unlogged(v));
        of_lines.for_each(|line| self.past.shown.get_or_insert_default().add(line));
        for line in lines.iter().filter(|v| may_refuse(v)) {
            self.past.note_refusal(line);
        }
        let hung: Vec<(SessionId, Time)> = lines.iter().filter_map(may_hang).collect();
        for line in all.drain(..done.min(all.len())) {
            let key = GroupKey::of(&line);
            let begins = is_unlogged(&line) && line.carries("initialize");
            let mut fate = if begins && self.past.refused_between(line.asked.plus_ns(-REINIT_NS), line.asked) {
                Fate::Outline
            } else if begins || is_clean_line(&line) {
                Fate::Clean
            } else {
                Fate::Wanted
            };
            if let GroupKey::Session(session) = &key {
                let mut story = self.past.sessions.remove(&key).unwrap_or_default();
                fate = fate.max(self.needs(&mut story, &line));
                self.past.sessions.insert(key.clone(), story);
                // What may have cancelled a call that looks as if it had hung.
                let near = |(s, end): &(SessionId, Time)| s == session && line.asked.since(*end).abs() <= CANCEL_NS;
                if line.status == Some(202) && hung.iter().any(near) {
                    fate = Fate::Wanted;
                }
            }
            match fate {
                Fate::Clean => self.past.retire(&key, line),
                Fate::Outline => self.kept.push(without_bodies(line)),
                Fate::Wanted => self.kept.push(line),
            }
        }
        self.cap(KEPT_LINES);
    }

    /// Takes a line that is not clean, of a log that names no sessions.
    pub(super) fn keep_line(&mut self, line: Visit) {
        self.kept.push(line);
        self.cap(KEPT_LINES);
    }

    /// What is left of lines that were passed.
    pub(super) fn past(&mut self) -> &mut Past {
        &mut self.past
    }

    /// Windows that the lines of the log showed by their order.
    pub fn found(&mut self, patterns: Vec<Pattern>) {
        self.past.patterns = Some(patterns);
    }

    fn cap(&mut self, most: usize) {
        while let Some(visit) = self.kept.excess(most) {
            self.past.dropped += 1;
            self.past.forget(&GroupKey::of(&visit), &visit);
        }
    }

    /// What is left for the rules: what retired, everything kept with what `rest` has, and how many of
    /// these visits are not of `rest`.
    pub fn finish(mut self, rest: Tracked) -> (Past, Tracked, usize) {
        self.past.close();
        let last = self.past.take_last();
        let mut visits = Vec::with_capacity(self.kept.len() + last.len() + self.carried.len() + rest.visits.len());
        self.kept.append_to(&mut visits);
        visits.extend(last);
        visits.extend(self.carried.into_iter().map(|c| c.visit));
        let known = visits.len();
        visits.extend(rest.visits);
        (self.past, Tracked { visits, ..rest }, known)
    }

    /// Marks the exchanges of `new` that their sessions' stories need, in order of time.
    fn outline(
        &mut self,
        visits: &[Visit],
        order: &[u32],
        keys: &[GroupKey],
        fates: &mut [Fate],
        new: std::ops::Range<usize>,
    ) {
        for visit in visits.get(new.clone()).unwrap_or_default().iter().filter(|v| may_refuse(v)) {
            self.past.note_refusal(visit);
        }
        for v in order.iter().map(|v| *v as usize).filter(|v| new.contains(v)) {
            let (Some(visit), Some(key), Some(fate)) = (visits.get(v), keys.get(v), fates.get_mut(v)) else { continue };
            if matches!(key, GroupKey::Client(..)) {
                continue;
            }
            let mut session = self.past.sessions.remove(key).unwrap_or_default();
            *fate = (*fate).max(self.needs(&mut session, visit));
            self.past.sessions.insert(key.clone(), session);
        }
    }

    /// Does the story of its session need the visit? Notes what it adds to the story.
    fn needs(&mut self, session: &mut SessionPast, visit: &Visit) -> Fate {
        let mut need = Fate::Clean;
        if visit.carries("initialize") {
            session.began = Some(session.began.unwrap_or(visit.asked));
            need = Fate::Outline;
        }
        if visit.carries("notifications/initialized") {
            need = Fate::Outline;
        }
        let is_use = visit.is_post() && need == Fate::Clean;
        if is_use && !std::mem::replace(&mut session.has_use, true) {
            need = Fate::Outline;
        }
        if may_be_call(visit) && session.tool_calls == 0 {
            need = Fate::Outline;
        }
        // The first request after others were refused says whether this session lived on.
        if let Some(before) = session.asked.replace(visit.asked)
            && self.past.lives_on(before, visit)
        {
            need = Fate::Outline;
        }
        session.tool_calls += u32::from(may_be_call(visit));
        // How a client went on after a refusal: up to its first calls, and what it sent again.
        if let Some(began) = session.began
            && self.past.refused_between(began.plus_ns(-REINIT_NS), visit.asked)
            && (session.tool_calls <= FIRST_CALLS
                || visit.asked.since(began) <= FRESH_NS && self.past.was_refused_before(visit))
        {
            need = Fate::Outline;
        }
        session.refused |= may_refuse(visit);
        let ids = visit.requests().filter_map(|r| r.id.as_ref());
        let by_id = ids.map(|id| by_number(session, id)).max().unwrap_or(Fate::Clean);
        if by_id == Fate::Wanted || session.refused {
            if session.kept < KEPT {
                session.kept += 1;
                need = Fate::Wanted;
            }
            return need;
        }
        need.max(by_id)
    }
}

/// Lets the exchanges of a chain leave together: one that goes on or is wanted holds the others. Gives those
/// that are not the first of their chain, which is the one that counts as the call.
fn together(chains: &Chains, fates: &mut [Fate], go_on: &mut [bool], over: usize) -> Vec<bool> {
    let mut behind = vec![false; over];
    for chain in chains.all.iter().filter(|c| c.len() > 1) {
        let most = chain.iter().filter_map(|v| fates.get(*v as usize)).copied().max();
        let stays = chain.iter().any(|v| *v as usize >= over || go_on.get(*v as usize) == Some(&true));
        for (n, v) in chain.iter().map(|v| *v as usize).enumerate() {
            if let (Some(fate), Some(most)) = (fates.get_mut(v), most) {
                *fate = most;
            }
            if let Some(slot) = go_on.get_mut(v) {
                *slot |= stays;
            }
            if let Some(slot) = behind.get_mut(v) {
                *slot = n > 0;
            }
        }
    }
    behind
}

/// A number that its session has passed already is wanted, since two conversations may share it. A connector
/// that sends one id for every call is no such case: only the first repetition is kept.
fn by_number(session: &mut SessionPast, id: &RpcId) -> Fate {
    let Some(n) = super::conversations::number(id) else { return Fate::Clean };
    let Some(before) = session.numbering.replace(Numbering { greatest: n, latest: n, steps: 0, repeats: false }) else {
        return Fate::Clean;
    };
    let grew = n > before.greatest;
    let repeats = n == before.latest && before.steps < 2;
    session.numbering = Some(Numbering {
        greatest: before.greatest.max(n),
        latest: n,
        steps: before.steps.saturating_add(u32::from(grew)),
        repeats: before.repeats || repeats,
    });
    match (grew, repeats) {
        (true, _) => Fate::Clean,
        (false, true) if before.repeats => Fate::Clean,
        (false, true) => Fate::Outline,
        (false, false) => Fate::Wanted,
    }
}

/// A part joined, without the rules.
struct Part<'a> {
    visits: &'a [Visit],
    order: Vec<u32>,
    groups: Groups,
    chains: Chains,
    answers: Answers,
    contents: Contents,
}

impl<'a> Part<'a> {
    fn new(visits: &'a [Visit], past: &mut Past, new: std::ops::Range<usize>) -> Part<'a> {
        let mut groups = Groups::from(&past.servers);
        let (order, hop_of) = groups.hops(visits);
        let chains = chain::chains(visits, &hop_of, &groups, &order, &mut past.votes);
        let answers = answers::answers(visits, &mut groups, &order);
        let contents = content::contents(visits, &answers, &groups, &mut past.known, new);
        past.servers.clone_from(&groups.servers);
        Part { visits, order, groups, chains, answers, contents }
    }

    /// Hop-free key of a visit's session or client.
    fn key(&self, v: usize) -> GroupKey {
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

    /// Marks every visit that is not clean by itself.
    fn find_odd(&self, odd: &mut [bool], over: usize) {
        let mut mark = |v: Option<u32>| {
            if let Some(slot) = v.and_then(|v| odd.get_mut(v as usize)) {
                *slot = true;
            }
        };
        for (v, visit) in self.visits.iter().enumerate().take(over) {
            if !self.is_clean(v as u32, visit) {
                mark(Some(v as u32));
            }
        }
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
        self.find_reused(odd);
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
    fn find_reused(&self, odd: &mut [bool]) {
        for list in &self.answers.by_group {
            let mut last: FxHashMap<&RpcId, HopCallId> = FxHashMap::default();
            for &c in list {
                let Some(call) = self.answers.calls.get(c as usize) else { continue };
                let Some(id) = rpc(self.visits, call).and_then(|r| r.id.as_ref()) else { continue };
                if let Some(earlier) = last.insert(id, c)
                    && self.until(earlier) > call.asked
                {
                    for v in [self.visit_of(earlier), Some(call.visit)].into_iter().flatten() {
                        if let Some(slot) = odd.get_mut(v as usize) {
                            *slot = true;
                        }
                    }
                }
            }
        }
    }

    /// Wants what is odd and what was in flight with it: that is its batch, and may own its reply.
    fn want(&self, odd: &[bool], fates: &mut [Fate]) {
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
    fn go_on(&self, odd: &[bool], over: usize) -> Vec<bool> {
        let mut out = vec![false; over];
        let end = self.order.last().and_then(|v| self.visits.get(*v as usize)).map(|v| v.asked);
        for list in &self.answers.by_group {
            let is_open = |c: &HopCallId| self.visit_of(*c).is_some_and(|v| v as usize >= over);
            let open = list.iter().filter(|c| is_open(c));
            let since = open.filter_map(|c| self.answers.calls.get(*c as usize)).map(|c| c.asked).min();
            let mut carried = 0;
            for &c in list.iter().rev() {
                let Some(call) = self.answers.calls.get(c as usize).filter(|c| (c.visit as usize) < over) else {
                    continue;
                };
                let waits = call.answer.is_none()
                    && odd.get(call.visit as usize) == Some(&true)
                    && end.is_some_and(|e| e.since(call.asked) < GONE_NS);
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
