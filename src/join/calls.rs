//! Calls over all vantage points, and everything the rules look at.

use super::answers::{self, Answers, HopCallId, ReplyRef, rpc};
use super::chain::{self, Chains};
use super::clients;
use super::content::{self, Contents};
use super::drift::Offset;
use super::groups::{GroupId, Groups};
use super::logs::{self, Logs};
use super::past::Past;
use crate::mcp::visit::{Reply, Rpc, Visit};
use crate::mcp::{RpcKind, Tracked};
use crate::model::exchange::{End, Mark};
use crate::model::id::SessionId;
use crate::model::options::{GivenClock, ReadOptions};
use crate::model::place::{InputId, Vantage};
use crate::model::record::{ClientOutcome, Record};
use crate::model::report::CallKey;
use crate::model::time::Time;
use rustc_hash::FxHashMap;

/// A call over all vantage points.
#[derive(Clone, Debug)]
pub struct JointCall {
    /// Its key.
    pub key: CallKey,
    /// The call at each hop that saw it, the one nearest the client first.
    pub hops: Vec<HopCallId>,
    /// The call in the lines of logs, where it is also seen on the wire.
    pub lines: Vec<HopCallId>,
    /// The call in the client's own record.
    pub client: Option<HopCallId>,
    /// The server's own request: where it was asked, and the visit of the client's answer.
    pub ask: Option<ServerCall>,
}

impl JointCall {
    /// A call that only its client's record shows.
    fn of_client(c: HopCallId) -> JointCall {
        JointCall { key: CallKey(0), hops: vec![], lines: vec![], client: Some(c), ask: None }
    }
}

/// A request of the server.
#[derive(Clone, Debug)]
pub struct ServerCall {
    /// Visit on whose stream it came.
    pub visit: u32,
    /// Index in the visit's `asks`.
    pub ask: u32,
    /// Visit and message index of the client's response.
    pub response: Option<(u32, u32)>,
}

/// Everything that was seen, joined.
pub struct World {
    /// All exchanges at all vantage points.
    pub visits: Vec<Visit>,
    /// What logs say beside exchanges.
    pub logs: Logs,
    /// Visits by time.
    pub order: Vec<u32>,
    /// Hops and groups.
    pub groups: Groups,
    /// Hop of each visit.
    pub hop_of: Vec<u32>,
    /// Calls and replies at each hop.
    pub answers: Answers,
    /// What content says.
    pub contents: Contents,
    /// Exchanges over hops.
    pub chains: Chains,
    /// Calls over hops, in order of being sent.
    pub calls: Vec<JointCall>,
    /// Joint call of each call at a hop.
    pub call_of: FxHashMap<HopCallId, u32>,
    /// Calls (by place in `calls`) whose reply went to another caller in an id collision.
    pub given_away: rustc_hash::FxHashSet<u32>,
    /// Exchanges (nearest the client) of each session, in order of being asked.
    pub of_session: FxHashMap<SessionId, Vec<u32>>,
    /// Calls whose id another call of their session took while they were in flight: by which.
    pub reused: FxHashMap<HopCallId, HopCallId>,
    /// The other way round: calls that took an id in flight, and whose.
    pub reuses: FxHashMap<HopCallId, HopCallId>,
    /// Groups whose event streams carry no event ids: they cannot be resumed.
    pub not_resumable: rustc_hash::FxHashSet<GroupId>,
    /// Event streams whose request was not captured, by the client's address, in order of time.
    pub nameless: FxHashMap<Option<std::net::IpAddr>, Vec<u32>>,
    /// GETs with `Last-Event-ID` of each group, in order of being asked.
    pub resumptions: FxHashMap<GroupId, Vec<u32>>,
    /// When each session was ended by its client's DELETE.
    pub deleted: FxHashMap<SessionId, Time>,
    /// When replies came on streams whose request was not captured, by client and id.
    pub headless: FxHashMap<(Option<std::net::IpAddr>, std::sync::Arc<str>), Vec<Time>>,
    /// The first GET stream of the 2024-11-05 transport of each group.
    pub legacy_streams: FxHashMap<GroupId, u32>,
    /// Groups of which a POST got replies on its own stream.
    pub answers_on_posts: rustc_hash::FxHashSet<GroupId>,
    /// What is left of calls that retired before.
    pub past: Past,
    /// First time seen in each input.
    pub input_start: FxHashMap<u32, Time>,
    /// Last time seen in each input.
    pub input_end: FxHashMap<u32, Time>,
    /// Which inputs cover the calls that only a client's record shows.
    pub covered: FxHashMap<HopCallId, super::coverage::Coverage>,
    /// Captures that lost packets.
    pub lossy_inputs: rustc_hash::FxHashSet<u32>,
    /// Captures of which the capturing host says that it dropped packets: what did not come in them may
    /// have been among these.
    pub dropped_inputs: rustc_hash::FxHashSet<u32>,
    /// Of these, those that lost so many that whole exchanges may be missing.
    pub holed_inputs: rustc_hash::FxHashSet<u32>,
    /// The user chose packets of the captures: what is not among them may be in the files.
    pub is_filtered: bool,
    /// Logs with a gap.
    pub gapped_inputs: rustc_hash::FxHashSet<u32>,
    /// How long a caller waits at most, ns.
    pub client_timeout_ns: i64,
}

/// Default of `--client-timeout`, ns (the contract's 300 s).
pub const CLIENT_TIMEOUT_NS: i64 = 300_000_000_000;

impl World {
    /// Joins what the exchanges left. The first `known` visits are what was kept of earlier parts, `past` is what
    /// else they left; `writers` says which logs are one in turn, `clocks` what is known of their clocks before.
    pub fn new(
        mut tracked: Tracked,
        records: Vec<Record>,
        options: &ReadOptions,
        mut past: Past,
        known: usize,
        writers: FxHashMap<InputId, InputId>,
        clocks: &[Option<GivenClock>],
    ) -> World {
        let captures = logs::align_captures(&mut tracked.visits);
        let is_joined = past.patterns.is_some();
        let mut logs = logs::read(records, &mut tracked, options.endpoint.as_deref(), is_joined, writers, clocks);
        logs.offsets.extend(captures);
        if past.patterns.is_some() && past.gone.is_any {
            // One log, read alone: its own clock is the reference.
            logs.offsets.entry(0).or_insert(Some(Offset::none(0)));
        }
        let mut visits = tracked.visits;
        let mut groups = Groups::from(&past.servers);
        let (order, hop_of) = groups.hops(&visits);
        let mut chains = chain::chains(&visits, &hop_of, &groups, &order, &mut past.votes);
        logs::join_lines(&mut visits, &mut chains, &mut logs);
        let answers = answers::answers(&visits, &mut groups, &order);
        let contents = content::contents(&visits, &answers, &groups, &mut past.known, known..visits.len());
        let mut world = World {
            visits,
            logs,
            order,
            groups,
            hop_of,
            answers,
            contents,
            chains,
            calls: vec![],
            call_of: FxHashMap::default(),
            of_session: FxHashMap::default(),
            reused: FxHashMap::default(),
            reuses: FxHashMap::default(),
            not_resumable: Default::default(),
            nameless: FxHashMap::default(),
            resumptions: FxHashMap::default(),
            deleted: FxHashMap::default(),
            legacy_streams: FxHashMap::default(),
            answers_on_posts: rustc_hash::FxHashSet::default(),
            headless: FxHashMap::default(),
            given_away: Default::default(),
            past,
            covered: FxHashMap::default(),
            lossy_inputs: Default::default(),
            dropped_inputs: Default::default(),
            holed_inputs: Default::default(),
            is_filtered: options.filter.is_some(),
            gapped_inputs: Default::default(),
            input_start: FxHashMap::default(),
            input_end: FxHashMap::default(),
            client_timeout_ns: options.client_timeout_ns.unwrap_or(CLIENT_TIMEOUT_NS),
        };
        world.list_sessions();
        let mut ids: FxHashMap<GroupId, (bool, bool)> = FxHashMap::default();
        for (visit, group) in world.visits.iter().zip(&world.answers.group_of) {
            let seen = ids.entry(*group).or_default();
            seen.0 |= visit.replies.iter().any(|r| r.is_event);
            seen.1 |= !visit.resumable.is_empty() || visit.last_event_id.is_some();
        }
        world.not_resumable = ids.into_iter().filter(|(_, (events, ids))| *events && !ids).map(|(g, _)| g).collect();
        for &v in &world.order {
            if let Some(visit) = world.visits.get(v as usize).filter(|x| !x.has_request && x.status == Some(200)) {
                world.nameless.entry(visit.peer).or_default().push(v);
            }
            if let (Some(visit), Some(group)) = (world.visits.get(v as usize), world.answers.group_of.get(v as usize))
                && visit.last_event_id.is_some()
            {
                world.resumptions.entry(*group).or_default().push(v);
            }
        }
        world.list_marks();
        world.find_reuse();
        world.put_together();
        let owners = world.contents.foreign.values().filter(|v| v.collision).map(|v| v.owner);
        world.given_away = owners.filter_map(|c| world.call_of.get(&c).copied()).collect();
        world
    }

    /// What fates are told by, in one pass.
    fn list_marks(&mut self) {
        for &v in &self.order {
            let (Some(visit), Some(group)) = (self.visits.get(v as usize), self.answers.group_of.get(v as usize))
            else {
                continue;
            };
            if visit.legacy_stream {
                self.legacy_streams.entry(*group).or_insert(v);
            } else if visit.is_post() && !visit.replies.is_empty() && visit.status.is_some_and(|s| s < 300) {
                self.answers_on_posts.insert(*group);
            }
            if let (true, Some(session)) = (visit.is_delete(), &visit.session)
                && visit.status.is_none_or(|s| s < 300)
            {
                self.deleted.entry(session.clone()).or_insert(visit.asked);
            }
            for reply in visit.replies.iter().filter(|_| !visit.has_request) {
                if let Some(id) = &reply.id {
                    self.headless.entry((visit.peer, id.loose())).or_default().push(reply.last.at);
                }
            }
        }
    }

    fn list_sessions(&mut self) {
        let mut fronts: Vec<u32> = self.fronts().collect();
        fronts.sort_by_key(|v| self.visits.get(*v as usize).map(|x| (x.asked, *v)));
        for v in fronts {
            if let Some(s) = self.visits.get(v as usize).and_then(Visit::belongs_to) {
                self.of_session.entry(s.clone()).or_default().push(v);
            }
        }
    }

    /// Ids used again within a session while the call that had them was still in flight.
    fn find_reuse(&mut self) {
        for (group, list) in self.answers.by_group.iter().enumerate() {
            if !self.groups.is_session(group as GroupId) {
                continue;
            }
            let mut last: FxHashMap<std::sync::Arc<str>, HopCallId> = FxHashMap::default();
            for &c in list {
                let Some(call) = self.hop_call(c) else { continue };
                let Some(id) = self.rpc_of(c).and_then(|r| r.id.as_ref()).filter(|i| i.is_legal()) else { continue };
                let Some(earlier) = last.insert(id.loose(), c) else { continue };
                let again = self.rpc_of(earlier).zip(self.rpc_of(c)).is_some_and(|(a, b)| a.is_again(b));
                if !again && self.is_open_at(earlier, call.asked) {
                    self.reused.insert(earlier, c);
                    self.reuses.insert(c, earlier);
                }
            }
        }
    }

    /// Is it known that the call was in flight at a time?
    fn is_open_at(&self, c: HopCallId, at: Time) -> bool {
        let Some(visit) = self.visit_of(c) else { return false };
        if visit.place.is_frame {
            return self.until(c).is_none_or(|t| t > at) && self.is_seen_open(c);
        }
        // A record or a line that does not say when the call ended says nothing of its being open.
        let logged = visit.duration_ns.map(|d| visit.asked.plus_ns(d - visit.at.error_ns));
        let waited = visit.ended.filter(|_| visit.client_outcome.is_some_and(ClientOutcome::is_without_answer));
        let told = (visit.vantage == Vantage::Client).then(|| self.replied(c).or(waited)).flatten().map(|m| m.at);
        logged.or(told).is_some_and(|t| t > at)
    }

    /// Is it known that the call was open, so that "in flight" is no guess? A stream that goes on
    /// has not been answered yet, even if some of its bytes are missing: servers end it with the reply.
    fn is_seen_open(&self, c: HopCallId) -> bool {
        let answered = self.replied(c).is_some();
        answered || self.visit_of(c).is_some_and(|v| !v.one_direction && v.status.is_none_or(|s| s < 400))
    }

    fn put_together(&mut self) {
        let mut calls: Vec<(Time, JointCall)> = vec![];
        for chain in &self.chains.all {
            let seen = |v: &u32| self.visits.get(*v as usize).map(|x| x.vantage);
            if chain.first().and_then(seen) == Some(Vantage::Client) {
                continue;
            }
            // Packets show what was said; lines only that something was.
            let (wire, lines): (Vec<u32>, Vec<u32>) = chain.iter().partition(|v| seen(v) == Some(Vantage::Wire));
            let (main, rest) =
                if wire.is_empty() { (lines.get(..1), lines.get(1..)) } else { (Some(&wire[..]), Some(&lines[..])) };
            let main = main.unwrap_or_default();
            let Some((first, n)) = main.first().and_then(|v| self.answers.by_visit.get(v)).copied() else { continue };
            for i in 0..n {
                let same = |v: &u32| self.answers.by_visit.get(v).filter(|(_, m)| *m == n).map(|(f, _)| f + i);
                let hops: Vec<HopCallId> = main.iter().filter_map(same).collect();
                let lines = rest
                    .unwrap_or_default()
                    .iter()
                    .filter_map(|v| self.answers.by_visit.get(v))
                    .map(|(f, _)| *f)
                    .collect();
                let at = self.answers.calls.get((first + i) as usize).map_or(Time::from_ns(0, 0), |c| c.asked);
                calls.push((at, JointCall { key: CallKey(0), hops, lines, client: None, ask: None }));
            }
        }
        self.join_clients(&mut calls);
        calls.extend(self.server_calls());
        calls.sort_by_key(|(at, c)| (*at, c.hops.first().copied()));
        let numbered = calls.into_iter().enumerate().map(|(n, (at, mut call))| {
            // Calls that retired have their numbers too, so that a key names the same call in every output.
            let exchange = call.hops.first().and_then(|c| self.visit_of(*c)).map_or(0, |v| v.exchange);
            let number = n as u64 + 1 + self.past.gone.calls_before(at, exchange);
            call.key = CallKey(u32::try_from(number).unwrap_or(u32::MAX));
            call
        });
        self.calls = numbered.collect();
        for (n, call) in self.calls.iter().enumerate() {
            for h in call.hops.iter().chain(&call.lines).chain(&call.client) {
                self.call_of.insert(*h, n as u32);
            }
        }
    }

    /// Gives each call the client's record of it; records of calls that nobody saw become calls of their own.
    fn join_clients(&mut self, calls: &mut Vec<(Time, JointCall)>) {
        let (mine, apart): (Vec<(HopCallId, &Visit)>, Vec<_>) = self
            .logs
            .clients
            .iter()
            .filter_map(|v| Some((self.answers.by_visit.get(v)?.0, self.visits.get(*v as usize)?)))
            .partition(|(_, v)| self.logs.is_aligned(v.input));
        let records: Vec<&Visit> = mine.iter().map(|(_, v)| *v).collect();
        let seen: Vec<clients::Seen<'_>> = calls
            .iter()
            .enumerate()
            .filter_map(|(n, (_, j))| {
                let c = *j.hops.first()?;
                let seen = self.visit_of(c).filter(|v| v.place.is_frame || self.logs.is_aligned(v.input))?;
                Some(clients::Seen { name: n as u32, visit: seen, rpc: self.rpc_of(c)? })
            })
            .collect();
        let found = clients::pair(&records, &seen).found;
        let mut unsure = vec![];
        for (r, (c, visit)) in mine.iter().enumerate() {
            match found.get(&r).and_then(|p| Some((calls.get_mut(p.name as usize)?, p.ambiguous))) {
                Some(((_, joint), ambiguous)) => {
                    joint.client = Some(*c);
                    // A line that got its name from a record that fits another line is no surer than that.
                    let line = joint.hops.first().and_then(|h| self.hop_call(*h)).map(|h| h.visit);
                    let ambiguous = ambiguous || line.is_some_and(|v| self.logs.ambiguous.contains(&v));
                    unsure.extend(self.hop_call(*c).filter(|_| ambiguous).map(|call| call.visit));
                }
                None => calls.push((visit.asked, JointCall::of_client(*c))),
            }
        }
        calls.extend(apart.iter().map(|(c, visit)| (visit.asked, JointCall::of_client(*c))));
        self.logs.ambiguous.extend(unsure);
    }

    /// The server's own requests, once each: at the hop nearest the client that shows them.
    fn server_calls(&self) -> Vec<(Time, JointCall)> {
        let mut responses: FxHashMap<(GroupId, crate::model::id::RpcId), (u32, u32)> = FxHashMap::default();
        for &v in &self.order {
            let (Some(visit), Some(group)) = (self.visits.get(v as usize), self.answers.group_of.get(v as usize))
            else {
                continue;
            };
            for (i, r) in visit.rpc.iter().enumerate().filter(|(_, r)| r.kind == RpcKind::Response) {
                if let Some(id) = &r.id {
                    responses.insert((*group, id.clone()), (v, i as u32));
                }
            }
        }
        let mut out = vec![];
        for chain in &self.chains.all {
            let Some(&v) = chain.first() else { continue };
            let (Some(visit), Some(group)) = (self.visits.get(v as usize), self.answers.group_of.get(v as usize))
            else {
                continue;
            };
            for (i, ask) in visit.asks.iter().enumerate() {
                let response = responses.get(&(*group, ask.id.clone())).copied();
                let call = ServerCall { visit: v, ask: i as u32, response };
                out.push((
                    ask.last.at,
                    JointCall { key: CallKey(0), hops: vec![], lines: vec![], client: None, ask: Some(call) },
                ));
            }
        }
        out
    }

    /// Of every exchange that someone else than the client saw, the visit nearest to the client.
    pub fn fronts(&self) -> impl Iterator<Item = u32> + '_ {
        let firsts = self.chains.all.iter().filter_map(|c| c.first().copied());
        firsts.filter(|v| self.visits.get(*v as usize).is_some_and(|x| x.vantage != Vantage::Client))
    }

    /// Could a line or client's record of the call be another call's as well?
    pub fn is_ambiguous(&self, joint: &JointCall) -> bool {
        let all = joint.hops.iter().chain(&joint.lines).chain(&joint.client);
        all.filter_map(|c| self.hop_call(*c)).any(|c| self.logs.ambiguous.contains(&c.visit))
    }

    /// The visit of a call at a hop.
    pub fn visit_of(&self, c: HopCallId) -> Option<&Visit> {
        self.visits.get(self.answers.calls.get(c as usize)?.visit as usize)
    }

    /// The request of a call at a hop.
    pub fn rpc_of(&self, c: HopCallId) -> Option<&Rpc> {
        rpc(&self.visits, self.answers.calls.get(c as usize)?)
    }

    /// Is a call's hop known to lie behind every proxy: it was joined to one in front of it, or the requests there
    /// carry a proxy's marks?
    pub fn is_behind_proxy(&self, c: HopCallId) -> bool {
        let Some(call) = self.hop_call(c) else { return false };
        let is_deep = self.chains.depth.get(call.hop as usize).is_some_and(|d| *d > 0);
        is_deep || self.visits.get(call.visit as usize).is_some_and(|v| v.forwarded)
    }

    /// A call at a hop.
    pub fn hop_call(&self, c: HopCallId) -> Option<&answers::HopCall> {
        self.answers.calls.get(c as usize)
    }

    /// A reply with its visit.
    pub fn reply(&self, r: ReplyRef) -> Option<(&Visit, &Reply)> {
        let visit = self.visits.get(r.visit as usize)?;
        Some((visit, visit.replies.get(r.reply as usize)?))
    }

    /// The joint call that a call at a hop is part of.
    pub fn joint(&self, c: HopCallId) -> Option<&JointCall> {
        self.calls.get(*self.call_of.get(&c)? as usize)
    }

    /// Key of the joint call of a call at a hop.
    pub fn key(&self, c: HopCallId) -> Option<CallKey> {
        self.joint(c).map(|j| j.key)
    }

    /// Session of a call at a hop.
    pub fn session_of(&self, c: HopCallId) -> Option<SessionId> {
        self.visit_of(c)?.belongs_to().cloned()
    }

    /// When the reply of a call at a hop was complete.
    pub fn replied(&self, c: HopCallId) -> Option<Mark> {
        answers::replied(&self.visits, self.hop_call(c)?)
    }

    /// Until when a call was in flight at its hop: its reply, else its stream's end.
    pub fn until(&self, c: HopCallId) -> Option<Time> {
        answers::until(&self.visits, self.hop_call(c)?)
    }

    /// Has the call's stream been watched for so long that silence means no reply?
    pub fn silence_counts(&self, visit: &Visit) -> bool {
        if visit.request_gap || visit.response_gap || visit.one_direction || !visit.has_request {
            return false;
        }
        match visit.end {
            Some(End::Complete | End::ClientClosed | End::ServerClosed | End::Reset) => true,
            Some(End::Gap) => false,
            Some(End::InputEnded) | None => {
                let last = self.input_end.get(&visit.input).copied().or(visit.ended.map(|m| m.at));
                last.is_some_and(|l| l.since(visit.asked) > self.client_timeout_ns)
            }
        }
    }
}
