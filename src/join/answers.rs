//! Which reply belongs to which call at one hop, by stream and id.
//!
//! The HTTP transaction comes first, the JSON-RPC id second: real connectors send id 1 for every
//! call. A reply belongs to the POST whose stream carried it; its id confirms or contradicts.

use super::groups::{GroupId, Groups};
use crate::mcp::content::occurs;
use crate::mcp::visit::{Reply, Visit};
use crate::mcp::{Rpc, RpcKind};
use crate::model::exchange::{End, Mark};
use crate::model::id::RpcId;
use crate::model::report::Channel;
use crate::model::time::Time;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Number of a call at a hop.
pub type HopCallId = u32;

/// A reply: which visit, which of its replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ReplyRef {
    /// Index of the visit.
    pub visit: u32,
    /// Index in its replies.
    pub reply: u32,
}

/// The reply that a call's caller took for its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The reply.
    pub at: ReplyRef,
    /// On what it came.
    pub channel: Channel,
    /// Its id has another JSON type than the request's, or is null.
    pub retyped: bool,
    /// It came where the specification lets it come.
    pub legal: bool,
}

/// A call as seen at one hop.
#[derive(Clone, Debug)]
pub struct HopCall {
    /// Its exchange.
    pub visit: u32,
    /// Index in the exchange's messages.
    pub rpc: u32,
    /// Hop.
    pub hop: u32,
    /// Session or client group.
    pub group: GroupId,
    /// When the request had been sent.
    pub asked: Time,
    /// When its own stream ended, if that was seen.
    pub closed: Option<Time>,
    /// What its caller got.
    pub answer: Option<Answer>,
    /// When its caller cancelled it.
    pub cancelled: Option<Time>,
    /// Replies with its id that others carried.
    pub elsewhere: Vec<ReplyRef>,
    /// Replies on its stream that are not its own.
    pub foreign: Vec<ReplyRef>,
}

/// Something about a reply that stream and id do not agree on.
#[derive(Clone, Copy, Debug)]
pub enum Oddity {
    /// A POST stream carried a reply with the id of another call of its session.
    OtherId {
        /// The reply.
        reply: ReplyRef,
        /// A call of that stream.
        carrier: HopCallId,
        /// The call with that id.
        owner: HopCallId,
    },
    /// A POST stream carried a reply whose id no request seen has.
    UnknownId {
        /// The reply.
        reply: ReplyRef,
        /// A call of that stream.
        carrier: HopCallId,
    },
    /// A GET stream that resumes nothing carried a reply.
    OnGet {
        /// The reply.
        reply: ReplyRef,
        /// The call with that id, if seen.
        owner: Option<HopCallId>,
    },
    /// A reply that its call had got before.
    Again {
        /// The further copy.
        reply: ReplyRef,
        /// The call on whose stream it came; none: a GET stream.
        carrier: Option<HopCallId>,
        /// The call that it answers.
        owner: HopCallId,
        /// Are both copies the same?
        equal: bool,
    },
}

/// Calls and oddities of all hops.
#[derive(Debug, Default)]
pub struct Answers {
    /// Every request that expects a reply, in order of being asked within a group.
    pub calls: Vec<HopCall>,
    /// What did not fit.
    pub oddities: Vec<Oddity>,
    /// Calls of each group, in order of being asked.
    pub by_group: Vec<Vec<HopCallId>>,
    /// First call of each visit and their number.
    pub by_visit: FxHashMap<u32, (HopCallId, u32)>,
    /// Group of each visit.
    pub group_of: Vec<GroupId>,
}

/// Works out answers for all visits; `order` lists visits by time of being asked.
pub fn answers(visits: &[Visit], groups: &mut Groups, order: &[u32]) -> Answers {
    let mut out = Answers { group_of: vec![0; visits.len()], ..Answers::default() };
    enlist(visits, groups, order, &mut out);
    let index = Index::new(visits, &out);
    cancel(visits, &index, &mut out);
    // Replies in order of time, so that the first copy is the one that counts.
    let mut replies: Vec<ReplyRef> = vec![];
    for &v in order {
        let n = visits.get(v as usize).map_or(0, |x| x.replies.len());
        replies.extend((0..n as u32).map(|reply| ReplyRef { visit: v, reply }));
    }
    replies.sort_by_key(|r| get(visits, *r).map(|(_, reply)| (reply.last.at, *r)));
    for r in replies {
        place(visits, groups, &index, r, &mut out);
    }
    out
}

fn get(visits: &[Visit], r: ReplyRef) -> Option<(&Visit, &Reply)> {
    let v = visits.get(r.visit as usize)?;
    Some((v, v.replies.get(r.reply as usize)?))
}

fn enlist(visits: &[Visit], groups: &mut Groups, order: &[u32], out: &mut Answers) {
    for &v in order {
        let Some(visit) = visits.get(v as usize) else { continue };
        let hop = groups.hop(visit);
        let group = groups.group(hop, visit);
        if out.by_group.len() <= group as usize {
            out.by_group.resize(group as usize + 1, vec![]);
        }
        if let Some(slot) = out.group_of.get_mut(v as usize) {
            *slot = group;
        }
        let first = out.calls.len() as u32;
        for (i, rpc) in visit.rpc.iter().enumerate() {
            if rpc.kind != RpcKind::Request {
                continue;
            }
            if let Some(list) = out.by_group.get_mut(group as usize) {
                list.push(out.calls.len() as u32);
            }
            out.calls.push(HopCall {
                visit: v,
                rpc: i as u32,
                hop,
                group,
                asked: visit.asked,
                // A stream that the input's end or a hole cut short is not known to have ended.
                closed: visit
                    .ended
                    .map(|m| m.at)
                    .filter(|_| !matches!(visit.end, Some(End::InputEnded | End::Gap) | None)),
                answer: None,
                cancelled: None,
                elsewhere: vec![],
                foreign: vec![],
            });
        }
        let n = out.calls.len() as u32 - first;
        if n > 0 {
            out.by_visit.insert(v, (first, n));
        }
    }
}

/// Finds calls of a group by id, newest first.
struct Index {
    by_id: FxHashMap<(GroupId, Arc<str>), Vec<HopCallId>>,
    groups_of: FxHashMap<Arc<str>, Vec<GroupId>>,
}

impl Index {
    fn new(visits: &[Visit], answers: &Answers) -> Index {
        let mut by_id: FxHashMap<(GroupId, Arc<str>), Vec<HopCallId>> = FxHashMap::default();
        for (n, call) in answers.calls.iter().enumerate() {
            if let Some(id) = rpc(visits, call).and_then(|r| r.id.as_ref()) {
                by_id.entry((call.group, id.loose())).or_default().push(n as u32);
            }
        }
        let mut groups_of: FxHashMap<Arc<str>, Vec<GroupId>> = FxHashMap::default();
        for (group, id) in by_id.keys() {
            groups_of.entry(id.clone()).or_default().push(*group);
        }
        groups_of.values_mut().for_each(|g| g.sort_unstable());
        Index { by_id, groups_of }
    }

    /// Calls of `group` with this id (by its text) that had been asked by `by`, newest first.
    fn asked_by<'a>(
        &'a self,
        calls: &'a [HopCall],
        group: GroupId,
        id: &RpcId,
        by: Time,
    ) -> impl Iterator<Item = HopCallId> + 'a {
        let list = self.by_id.get(&(group, id.loose())).map_or(&[][..], |l| l);
        let until = list.partition_point(|c| calls.get(*c as usize).is_some_and(|c| c.asked <= by));
        list.get(..until).unwrap_or_default().iter().rev().take(LOOK_BACK).copied()
    }
}

/// How many earlier uses of an id are looked at: a connector that sends id 1 for every call must
/// not make this quadratic.
const LOOK_BACK: usize = 64;

/// When what a call's caller got was complete.
pub fn replied(visits: &[Visit], call: &HopCall) -> Option<Mark> {
    Some(get(visits, call.answer?.at)?.1.last)
}

/// Until when a call was in flight: its reply, else its stream's end. None: it is open.
pub fn until(visits: &[Visit], call: &HopCall) -> Option<Time> {
    replied(visits, call).map(|m| m.at).or(call.closed)
}

/// Of a call that is open: no time is later.
pub const NEVER: Time = Time::from_ns(i64::MAX, 9);

/// The request of a call.
pub fn rpc<'a>(visits: &'a [Visit], call: &HopCall) -> Option<&'a Rpc> {
    visits.get(call.visit as usize)?.rpc.get(call.rpc as usize)
}

fn cancel(visits: &[Visit], index: &Index, out: &mut Answers) {
    for (v, visit) in visits.iter().enumerate() {
        for note in visit.rpc.iter().filter(|r| r.kind == RpcKind::Notification) {
            let (Some(id), Some(group)) = (&note.cancels, out.group_of.get(v)) else { continue };
            // Where one id serves for all, it is the one that waits that is cancelled.
            let waits = |c: &HopCallId| {
                let replies = out.calls.get(*c as usize).and_then(|c| visits.get(c.visit as usize)).map(|v| &v.replies);
                replies.is_none_or(|r| r.iter().all(|r| r.last.at > visit.asked))
            };
            let asked = || index.asked_by(&out.calls, *group, id, visit.asked);
            let target = asked().find(waits).or_else(|| asked().next());
            if let Some(call) = target.and_then(|c| out.calls.get_mut(c as usize)) {
                call.cancelled.get_or_insert(visit.asked);
            }
        }
    }
}

fn place(visits: &[Visit], groups: &Groups, index: &Index, r: ReplyRef, out: &mut Answers) {
    let Some((visit, reply)) = get(visits, r) else { return };
    if visit.request_gap && visit.rpc.is_empty() && !visit.is_get() {
        // What it answers is in bytes that are missing.
        return;
    }
    if visit.is_get() || visit.rpc.is_empty() {
        on_stream(visits, index, r, out);
        return;
    }
    let (first, n) = out.by_visit.get(&r.visit).copied().unwrap_or((0, 0));
    if n == 0 {
        return;
    }
    let own: Vec<HopCallId> = (first..first + n).collect();
    let exact = |c: &HopCallId| call_id(visits, out, *c) == reply.id.as_ref();
    let loose = |c: &HopCallId| match (call_id(visits, out, *c), &reply.id) {
        (Some(a), Some(b)) => a.loose() == b.loose(),
        _ => false,
    };
    let open = |c: &HopCallId| out.calls.get(*c as usize).is_some_and(|c| c.answer.is_none());
    let channel = if reply.is_event { Channel::PostSse } else { Channel::PostJson };
    if let Some(&c) = own.iter().find(|c| exact(c) && open(c)) {
        return answer(out, c, Answer { at: r, channel, retyped: false, legal: true });
    }
    // Behind a hole the stream may be the next exchange's, whose request was in the hole.
    if reply.after_gap {
        return;
    }
    if let Some(&c) = own.iter().find(|c| exact(c)) {
        return again(visits, out, r, Some(c), c);
    }
    // An error that refuses the HTTP request as a whole carries no id of ours: null, "server-error".
    let refused = visit.status.is_some_and(|s| s >= 400) && reply.error.is_some();
    if refused || n == 1 && matches!(reply.id, None | Some(RpcId::Null)) || own.iter().any(|c| loose(c) && open(c)) {
        let target = own.iter().find(|c| loose(c) && open(c)).or_else(|| own.iter().find(|c| open(c)));
        if let Some(&c) = target {
            return answer(out, c, Answer { at: r, channel, retyped: !refused, legal: true });
        }
    }
    let carrier = first;
    let Some(id) = &reply.id else { return };
    // A broken member of a batch is answered with a null id (JSON-RPC 2.0 §6).
    if reply.error.is_some() && *id == RpcId::Null {
        return;
    }
    let group = out.calls.get(carrier as usize).map_or(0, |c| c.group);
    let others = || index.asked_by(&out.calls, group, id, reply.last.at).filter(|c| !own.contains(c));
    // Only a session has one numbering; session-less clients number their calls alike.
    let owner = if groups.is_session(group) { others().find(|c| open(c)).or_else(|| others().next()) } else { None };
    if let Some(c) = out.calls.get_mut(carrier as usize) {
        c.foreign.push(r);
    }
    match owner {
        None => out.oddities.push(Oddity::UnknownId { reply: r, carrier }),
        Some(owner) => {
            let had = out.calls.get(owner as usize).and_then(|c| c.answer);
            let equal = had.and_then(|a| get(visits, a.at)).is_some_and(|(_, first)| first.sha256() == reply.sha256());
            if equal {
                again(visits, out, r, Some(carrier), owner);
            } else {
                if let Some(c) = out.calls.get_mut(owner as usize) {
                    c.elsewhere.push(r);
                }
                out.oddities.push(Oddity::OtherId { reply: r, carrier, owner });
            }
        }
    }
}

fn call_id<'a>(visits: &'a [Visit], out: &Answers, c: HopCallId) -> Option<&'a RpcId> {
    rpc(visits, out.calls.get(c as usize)?)?.id.as_ref()
}

fn answer(out: &mut Answers, c: HopCallId, a: Answer) {
    if let Some(call) = out.calls.get_mut(c as usize) {
        call.answer.get_or_insert(a);
    }
}

fn again(visits: &[Visit], out: &mut Answers, r: ReplyRef, carrier: Option<HopCallId>, owner: HopCallId) {
    let first = out.calls.get(owner as usize).and_then(|c| c.answer).and_then(|a| get(visits, a.at));
    let equal = match (first, get(visits, r)) {
        (Some((_, a)), Some((_, b))) => a.sha256() == b.sha256(),
        _ => false,
    };
    out.oddities.push(Oddity::Again { reply: r, carrier, owner, equal });
}

/// A reply on a GET stream, or on a stream whose request the capture does not hold.
fn on_stream(visits: &[Visit], index: &Index, r: ReplyRef, out: &mut Answers) {
    let Some((visit, reply)) = get(visits, r) else { return };
    let (Some(id), Some(&group)) = (&reply.id, out.group_of.get(r.visit as usize)) else { return };
    // An error that refuses the request itself answers no call. An `endpoint` event says what a
    // stream is, without its request too.
    if !visit.has_request && !visit.legacy_stream || visit.status.is_some_and(|s| s >= 400) {
        return;
    }
    let of_group: Vec<HopCallId> = index
        .asked_by(&out.calls, group, id, reply.last.at)
        .filter(|c| call_id(visits, out, *c).is_some_and(|have| have == id))
        .collect();
    let answered = |c: &HopCallId| out.calls.get(*c as usize).and_then(|c| c.answer);
    // 2024-11-05: every reply comes on the GET. Before 2026, a GET with Last-Event-ID resumes.
    let legal = visit.legacy_stream || visit.last_event_id.is_some();
    let open = |c: &HopCallId| answered(c).is_none();
    if legal {
        if let Some(c) = of_group.iter().copied().find(open) {
            answer(out, c, Answer { at: r, channel: Channel::GetSse, retyped: false, legal });
        }
        return;
    }
    // A call whose own stream has a hole may have had its reply there: nothing is said of it.
    let holed = |c: &HopCallId| {
        let visit = out.calls.get(*c as usize).and_then(|c| visits.get(c.visit as usize));
        visit.is_some_and(|v| v.response_gap)
    };
    let own: Vec<HopCallId> =
        of_group.iter().copied().filter(|c| open(c) && waits(out, *c, reply) && !holed(c)).collect();
    let equal = |c: &HopCallId| {
        let had = answered(c).and_then(|a| get(visits, a.at));
        had.is_some_and(|(_, first)| first.sha256() == reply.sha256())
    };
    if let Some(c) = of_group.iter().copied().find(|c| equal(c)) {
        return again(visits, out, r, None, c);
    }
    // A client that started a new session may have kept the old one's GET stream.
    let elsewhere = waiting_elsewhere(visits, index, visit, reply, group, out);
    let owner = pick(visits, reply, &own, &elsewhere, out);
    if let Some(c) = owner {
        // The `endpoint` event may be lost, or older than the capture: a POST answered 202 says it too.
        let legal = posted_for_a_get(visits, out, c);
        answer(out, c, Answer { at: r, channel: Channel::GetSse, retyped: false, legal });
        if legal {
            return;
        }
    } else if reply.after_gap || of_group.iter().any(|c| open(c) && holed(c)) {
        return;
    }
    out.oddities.push(Oddity::OnGet { reply: r, owner });
}

/// Was the call posted as the 2024-11-05 transport does: no session header, and 202 for an answer?
fn posted_for_a_get(visits: &[Visit], out: &Answers, c: HopCallId) -> bool {
    let visit = out.calls.get(c as usize).and_then(|c| visits.get(c.visit as usize));
    visit.is_some_and(|v| {
        v.status == Some(202) && v.revision.is_none() && (v.names_session_in_query() || v.session.is_none())
    })
}

/// Does a call still wait, or has its stream ended just now?
fn waits(out: &Answers, c: HopCallId, reply: &Reply) -> bool {
    let closed = out.calls.get(c as usize).and_then(|c| c.closed);
    closed.is_none_or(|t| reply.last.at.since(t) < 1_000_000_000)
}

/// The call that a reply on a GET stream is meant for, if it is the only one that it can be.
fn pick(
    visits: &[Visit],
    reply: &Reply,
    own: &[HopCallId],
    elsewhere: &[HopCallId],
    out: &Answers,
) -> Option<HopCallId> {
    let all = || own.iter().chain(elsewhere).copied();
    let one = |list: Vec<HopCallId>| match list.as_slice() {
        [c] => Some(*c),
        _ => None,
    };
    let echoed = |c: &HopCallId| {
        let values = out.calls.get(*c as usize).and_then(|c| rpc(visits, c)).map(Rpc::values);
        values.zip(reply.body.as_deref()).is_some_and(|(v, body)| v.iter().any(|v| occurs(body, v)))
    };
    // A server that lets the reply out elsewhere ends the call's own stream empty at that moment.
    let ended_with_it = |c: &HopCallId| {
        let closed = out.calls.get(*c as usize).and_then(|c| c.closed);
        closed.is_some_and(|t| t.since(reply.last.at).abs() < 100_000_000)
    };
    one(all().filter(echoed).collect())
        .or_else(|| one(all().filter(ended_with_it).collect()))
        .or_else(|| one(own.to_vec()))
        .or_else(|| one(elsewhere.to_vec()).filter(|_| own.is_empty()))
}

/// Calls of the same client, in other sessions, that wait for a reply with this id.
fn waiting_elsewhere(
    visits: &[Visit],
    index: &Index,
    stream: &Visit,
    reply: &Reply,
    group: GroupId,
    out: &Answers,
) -> Vec<HopCallId> {
    let mut waiting: Vec<HopCallId> = vec![];
    let Some(id) = reply.id.as_ref() else { return waiting };
    let Some(groups) = index.groups_of.get(&id.loose()) else { return waiting };
    for g in groups.iter().rev().filter(|g| **g != group).take(LOOK_BACK) {
        let newest = index.asked_by(&out.calls, *g, id, reply.last.at).next();
        let Some(c) = newest else { continue };
        let Some(call) = out.calls.get(c as usize).filter(|c| c.answer.is_none()) else { continue };
        let Some(visit) = visits.get(call.visit as usize) else { continue };
        let known = !visit.response_gap && visit.status.is_none_or(|s| s < 300);
        if visit.peer == stream.peer && visit.server == stream.server && known && waits(out, c, reply) {
            waiting.push(c);
        }
    }
    waiting
}
