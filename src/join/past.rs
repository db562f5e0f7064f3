//! What is left of calls that are over and clean, so that memory follows what is open.
//!
//! A long capture is joined in parts. Behind each part the exchanges that no rule can still need are
//! [retired](super::retire): they leave their counts, and their session's first and last exchanges stay, without
//! their bodies. Everything else waits for the end, where the rules see it together.

use super::chain::Votes;
use super::content::Known;
use super::conversations::number;
use super::groups::{GroupKey, HopKey};
use super::patterns::Look;
use super::refusals::Refusals;
use super::sources::Shown;
use crate::mcp::{Rpc, Visit};
use crate::model::id::{RpcId, SessionId};
use crate::model::time::Time;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Exchanges of a session that stay because they are its last ones.
const LAST: usize = 3;
/// Ids of a session that are looked at to tell numberings apart.
pub const NUMBERED: usize = 1024;
/// Addresses of a session that are listed.
pub const PEERS: usize = 32;

/// What earlier parts left.
#[derive(Default)]
pub struct Past {
    /// What is usual for the tools.
    pub known: Known,
    /// Hops in the order of their numbers.
    pub servers: Vec<HopKey>,
    /// Which hop is in front of which.
    pub(super) votes: Votes,
    /// What retired, by session.
    pub sessions: FxHashMap<GroupKey, SessionPast>,
    /// What retired, counted.
    pub gone: Gone,
    /// Exchanges dropped though a rule might have needed them, because there were too many.
    pub dropped: u64,
    /// What the order of the lines showed of a log that was joined in parts.
    pub patterns: Option<Arc<super::patterns::Found>>,
    /// What the lines of such a log show, those that retired too.
    pub shown: Option<Shown>,
    /// Events of such a log that retired, by the names of their kinds.
    pub said: BTreeMap<&'static str, u64>,
    /// When requests were refused, and which.
    pub(super) refusals: Refusals,
}

/// What retired, over all sessions. Counts are of what began within the time that is answered for.
#[derive(Debug, Default)]
pub struct Gone {
    /// The time that is answered for, ns, the end not included; none: all.
    pub core: Option<(i64, i64)>,
    /// Something retired, whenever it was.
    pub is_any: bool,
    /// Exchanges.
    pub exchanges: u64,
    /// Calls.
    pub calls: u64,
    /// Of these, `tools/call`.
    pub tool_calls: u64,
    /// Calls of which logs do not show what became of them.
    pub unobserved: u64,
    /// Calls: when they were asked, and the exchange, which order them among all.
    pub order: Vec<(i64, u64)>,
}

/// What retired of one session.
#[derive(Debug, Default)]
pub struct SessionPast {
    /// Calls.
    pub calls: u64,
    /// First request.
    pub started: Option<Time>,
    /// Last thing seen.
    pub ended: Option<Time>,
    /// The last request that was answered with success.
    pub answered: Option<Time>,
    /// `name/version` of the client.
    pub client: Option<Arc<str>>,
    /// `name/version` of the server.
    pub server: Option<Arc<str>>,
    /// Revision.
    pub revision: Option<Arc<str>>,
    /// Its endpoint.
    pub endpoint: Option<Arc<str>>,
    /// Addresses that used it.
    pub peers: Vec<std::net::IpAddr>,
    /// Ids of retired calls that are numbers, behind when they were asked, ns: at most [`NUMBERED`].
    pub numbers: Vec<(i64, i64)>,
    /// The exchanges that stay because they are the last, without bodies.
    last: VecDeque<Visit>,
    /// When the session began, where its `initialize` was seen.
    pub(super) began: Option<Time>,
    /// When the first request behind the last handshake was answered with success.
    pub(super) used: Option<Time>,
    /// Exchanges with a `tools/call` that were looked at.
    pub(super) tool_calls: u32,
    /// How its ids run.
    pub(super) numbering: Option<Numbering>,
    /// Exchanges kept because of their numbers, or because the session was refused.
    pub(super) kept: u32,
    /// The last request looked at.
    pub(super) asked: Option<Time>,
    /// It was refused.
    pub(super) refused: bool,
    /// When a request was refused that may have been so for its session, which was not answered since.
    pub(super) doubted: Option<Time>,
}

/// How the numbers among a session's ids run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbering {
    /// The greatest.
    pub greatest: i64,
    /// The last one sent.
    pub latest: i64,
    /// How often the greatest grew.
    pub steps: u32,
    /// One was sent twice in a row.
    pub repeats: bool,
}

/// What is left of some sessions of a log, where others look at the rest of it.
#[derive(Debug, Default)]
pub struct Left {
    /// What retired of each, in the order of their ids.
    pub sessions: Vec<(SessionId, SessionPast)>,
    /// What retired, counted.
    pub gone: Gone,
    /// What the lines show.
    pub shown: Option<Shown>,
}

impl Left {
    /// That of a log all of whose lines name sessions.
    pub(super) fn of(past: Past) -> Left {
        let named = |(key, session)| match key {
            GroupKey::Session(id) => Some((id, session)),
            GroupKey::Client(..) => None,
        };
        let mut sessions: Vec<_> = past.sessions.into_iter().filter_map(named).collect();
        sessions.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        let mut gone = past.gone;
        // What is near each other is alike, which makes it small.
        gone.order.sort_unstable_by_key(|(_, exchange)| *exchange);
        Left { sessions, gone, shown: past.shown }
    }
}

impl Past {
    /// Adds what is left of sessions that others looked at.
    pub(super) fn absorb(&mut self, left: Left) {
        let Left { sessions, gone, shown } = left;
        for (id, session) in sessions {
            self.sessions.entry(GroupKey::Session(id)).or_default().absorb(session);
        }
        let Gone { core: _, is_any, exchanges, calls, tool_calls, unobserved, order } = gone;
        self.gone.is_any |= is_any;
        self.gone.exchanges = self.gone.exchanges.saturating_add(exchanges);
        self.gone.calls = self.gone.calls.saturating_add(calls);
        self.gone.tool_calls = self.gone.tool_calls.saturating_add(tool_calls);
        self.gone.unobserved = self.gone.unobserved.saturating_add(unobserved);
        self.gone.order.extend(order);
        if let Some(shown) = shown {
            self.shown.get_or_insert_default().merge(shown);
        }
    }

    /// The last exchanges of sessions that were refused, which went before that, and of those whose ids go back, where
    /// they tell conversations apart. Those of others tell nothing that their counts do not.
    pub fn take_last(&mut self) -> Vec<Visit> {
        let (mut out, mut over) = (vec![], vec![]);
        for (key, session) in &mut self.sessions {
            let last = std::mem::take(&mut session.last);
            match session.refused
                || session.doubted.is_some()
                || session.kept > 0
                || session.numbering.is_some_and(|n| n.repeats)
            {
                true => out.extend(last),
                false => over.push((key.clone(), last)),
            }
        }
        for (key, last) in over {
            last.iter().for_each(|visit| self.forget(&key, visit));
        }
        out
    }

    /// The numbers among the first ids of a session in order of time: those that retired, and those `seen` still.
    pub fn numbers<'a>(&self, key: &GroupKey, seen: impl Iterator<Item = (Time, &'a RpcId)>) -> Vec<i64> {
        let past = self.sessions.get(key).map_or(&[][..], |s| &s.numbers);
        let seen = seen.filter_map(|(t, id)| Some((t.ns(), number(id)?)));
        let mut all: Vec<(i64, i64)> = past.iter().copied().chain(seen).collect();
        all.sort_by_key(|(t, _)| *t);
        all.into_iter().take(NUMBERED).map(|(_, n)| n).collect()
    }

    /// Makes [`Gone::calls_before`] ready, once all is retired.
    pub fn close(&mut self) {
        self.gone.order.sort_unstable();
    }

    /// Only what was learnt of the tools, and the numbers of their hops.
    pub(super) fn learnt(self) -> Past {
        Past { known: self.known, servers: self.servers, ..Past::default() }
    }

    /// Takes `visit`, which is clean, out of the work: it stays as one of its session's last, and the
    /// one that it pushes out is gone but for its counts.
    pub(super) fn retire(&mut self, key: &GroupKey, visit: Visit) {
        if matches!(key, GroupKey::Client(..)) {
            return self.forget(key, &visit);
        }
        self.gone.retire(self.sessions.entry(key.clone()).or_default(), visit);
    }

    /// Counts a visit that nothing will be asked about any more.
    pub(super) fn forget(&mut self, key: &GroupKey, visit: &Visit) {
        // Without an id, requests alone make a session.
        if matches!(key, GroupKey::Client(..)) && visit.requests().next().is_none() {
            self.gone.pass(visit.at.at);
            return;
        }
        self.gone.forget(self.sessions.entry(key.clone()).or_default(), visit);
    }

    /// Adds the calls of a client, which were [passed](Past::pass_line) one by one.
    pub(super) fn add_client(&mut self, key: GroupKey, calls: SessionPast) {
        let session = self.sessions.entry(key).or_default();
        session.calls += calls.calls;
        if let Some((began, seen)) = calls.started.zip(calls.ended) {
            session.reach(began, seen, calls.answered);
        }
        let new = calls.peers.into_iter().filter(|p| !session.peers.contains(p)).collect::<Vec<_>>();
        session.peers.extend(new.into_iter().take(PEERS.saturating_sub(session.peers.len())));
    }
}

impl Gone {
    /// How many retired calls were asked before a call of the exchange.
    pub fn calls_before(&self, asked: Time, exchange: u64) -> u64 {
        self.order.partition_point(|o| *o < (asked.ns(), exchange)) as u64
    }

    /// Counts an exchange; gives 1 where it began within the time that is answered for.
    pub(super) fn pass(&mut self, began: Time) -> u64 {
        let own = u64::from(is_within(self.core, began));
        self.is_any = true;
        self.exchanges += own;
        own
    }

    /// A line that shows but that something was answered `at` a time; it has a call, if it is one.
    pub(super) fn pass_line(&mut self, at: Time, call: Option<u64>) {
        let own = self.pass(at);
        if let Some(exchange) = call {
            self.calls += own;
            self.unobserved += own;
            self.order.push((at.ns(), exchange));
        }
    }

    /// As [`Past::retire`], for a visit of `session`.
    pub(super) fn retire(&mut self, session: &mut SessionPast, visit: Visit) {
        let at = session.last.partition_point(|v| v.asked <= visit.asked);
        session.last.insert(at, without_bodies(visit));
        if session.last.len() > LAST
            && let Some(oldest) = session.last.pop_front()
        {
            self.forget(session, &oldest);
        }
    }

    /// As [`Past::forget`], for a visit of `session`.
    fn forget(&mut self, session: &mut SessionPast, visit: &Visit) {
        let own = self.pass(visit.at.at);
        for rpc in visit.requests() {
            self.calls += own;
            self.unobserved += own * u64::from(!visit.place.is_frame);
            self.tool_calls += own * u64::from(rpc.method.as_deref() == Some("tools/call"));
            self.order.push((visit.asked.ns(), visit.exchange));
            if let (Some(n), true) = (rpc.id.as_ref().and_then(number), session.numbers.len() < NUMBERED) {
                session.numbers.push((visit.asked.ns(), n));
            }
        }
        session.add(visit);
    }
}

/// Is a time within the one that is answered for?
pub fn is_within(core: Option<(i64, i64)>, at: Time) -> bool {
    core.is_none_or(|(from, to)| at.ns() >= from && at.ns() < to)
}

impl SessionPast {
    /// Adds a call of which a line tells but that it was answered.
    pub(super) fn add_line(&mut self, line: &Look<'_>) {
        self.calls += 1;
        let is_answered = line.status.is_some_and(|s| s < 300);
        self.reach(line.at.at, line.answered.max(line.at.at), is_answered.then_some(line.at.at));
        if self.peers.is_empty() {
            self.peers.extend(line.peer);
        }
    }

    /// It reaches from `began` to `seen`, and a request of it asked at `answered` was answered.
    fn reach(&mut self, began: Time, seen: Time, answered: Option<Time>) {
        self.started = Some(self.started.map_or(began, |t| t.min(began)));
        self.ended = self.ended.max(Some(seen));
        self.answered = self.answered.max(answered);
    }

    fn absorb(&mut self, other: SessionPast) {
        self.calls = self.calls.saturating_add(other.calls);
        if let Some((began, seen)) = other.started.zip(other.ended) {
            self.reach(began, seen, other.answered);
        }
        self.client = self.client.take().or(other.client);
        self.server = self.server.take().or(other.server);
        self.revision = self.revision.take().or(other.revision);
        self.endpoint = self.endpoint.take().or(other.endpoint);
        self.numbers.extend(other.numbers);
        self.numbers.truncate(NUMBERED);
        for ip in other.peers {
            if self.peers.len() < PEERS && !self.peers.contains(&ip) {
                self.peers.push(ip);
            }
        }
    }

    fn add(&mut self, visit: &Visit) {
        self.calls += visit.requests().count() as u64;
        let is_answered = visit.status.is_some_and(|s| s < 300) && !visit.is_delete();
        self.reach(visit.at.at, visit.last_seen(), is_answered.then_some(visit.asked));
        if let Some(h) = &visit.handshake {
            self.client = self.client.take().or_else(|| h.client.clone());
            self.server = self.server.take().or_else(|| h.server.clone());
            self.revision = self.revision.take().or_else(|| h.revision.clone());
        }
        self.revision = self.revision.take().or_else(|| visit.revision.clone());
        if let Some(ip) = visit.peer
            && self.peers.len() < PEERS
            && !self.peers.contains(&ip)
        {
            self.peers.push(ip);
        }
        self.endpoint = self.endpoint.take().or_else(|| visit.endpoint());
    }
}

/// The visit with all but what its messages say.
pub(super) fn without_bodies(mut visit: Visit) -> Visit {
    visit.rpc.iter_mut().for_each(Rpc::forget_body);
    visit.replies.iter_mut().for_each(|r| r.body = None);
    visit
}

/// The visit without the text of its replies, of which the hashes stay.
pub(super) fn without_replies(mut visit: Visit) -> Visit {
    for reply in &mut visit.replies {
        reply.sha256();
        reply.content();
        reply.body = None;
    }
    visit
}

/// The visit without what was said, of which the hashes stay, and with `values` the fingerprints.
pub(super) fn hashed(mut visit: Visit, values: bool) -> Visit {
    for rpc in &mut visit.rpc {
        rpc.sha256();
        rpc.forget_body();
    }
    for reply in visit.replies.iter().filter(|_| values) {
        reply.value();
    }
    without_replies(visit)
}
