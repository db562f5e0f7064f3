//! Which inputs would have shown a call that the client claims to have made.

use super::answers::HopCallId;
use super::calls::World;
use super::clients::{beyond_proxy, was_answered};
use super::content::Verdict;
use super::handlers::ServerLog;
use super::sources::file_of;
use crate::mcp::Visit;
use crate::model::id::SessionId;
use crate::model::place::Vantage;
use crate::model::record::ClientOutcome;
use crate::model::report::Confidence;
use crate::model::time::Time;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// By then after being issued a request is on its way, ns.
const ON_ITS_WAY_NS: i64 = 2_000_000_000;

/// What a line's time and the client's may differ by though both are right, ns.
const SLACK_NS: i64 = 500_000_000;
/// Silence that ends a cluster of calls, ns.
const QUIET_NS: i64 = 3_000_000_000;

fn gap(calls: &[(Time, u32)], i: usize) -> i64 {
    calls.get(i).zip(calls.get(i + 1)).map_or(i64::MAX, |((a, _), (b, _))| b.since(*a))
}

/// What coverage is worked out from, once for all calls.
struct Records {
    /// When each client's record says that it called, over all sessions and in each that it names.
    clients: FxHashMap<Caller, Calls>,
    /// Logs that lack calls of a client which their servers answered: what else they lack says nothing.
    incomplete: FxHashSet<(Caller, u32)>,
    /// Requests in each log, by time.
    lines: FxHashMap<u32, Vec<(Time, u32)>>,
    /// When each server's log says that it went up or down, in order.
    up: FxHashMap<u32, Vec<(Time, u64, bool)>>,
    /// Logs whose lines are written when their calls are over, and not when they are answered.
    late: FxHashSet<u32>,
    /// Captures that hold other calls of a client's record, so that they are on its path.
    captures: FxHashMap<u32, Vec<u32>>,
    /// Of these, by the client's record, those taken behind a proxy, whose connections are not the client's.
    behind: FxHashSet<(u32, u32)>,
    /// Logs that servers write.
    servers: FxHashSet<u32>,
    /// Calls (by place in the joint calls) whose replies reached others, so that they were sent.
    owners: FxHashSet<u32>,
}

/// A client's record, and what it calls the server.
type Caller = (u32, Option<Arc<str>>);

fn caller(record: &Visit) -> Caller {
    (record.input, record.upstream.clone())
}

/// When a client's record says that it called, in order, and its visit of each call.
#[derive(Default)]
struct Calls {
    all: Vec<(Time, u32)>,
    in_session: FxHashMap<SessionId, Vec<(Time, u32)>>,
}

impl Records {
    fn of(world: &World) -> Records {
        let mut clients: FxHashMap<Caller, Calls> = FxHashMap::default();
        for (n, v) in world.logs.clients.iter().filter_map(|n| Some((*n, world.visits.get(*n as usize)?))) {
            let calls = clients.entry(caller(v)).or_default();
            calls.all.push((v.asked, n));
            if let Some(s) = &v.session {
                calls.in_session.entry(s.clone()).or_default().push((v.asked, n));
            }
        }
        for calls in clients.values_mut() {
            calls.all.sort_unstable();
            calls.in_session.values_mut().for_each(|l| l.sort_unstable());
        }
        let mut lines: FxHashMap<u32, Vec<(Time, u32)>> = FxHashMap::default();
        for (n, v) in world.visits.iter().enumerate() {
            // A 202 may answer a call too, if badly.
            let may_be_call = v.status == Some(202) || v.requests().next().is_some();
            if !v.place.is_frame && v.vantage != Vantage::Client && v.is_post() && may_be_call {
                let at = if v.duration_ns.is_some() { v.asked } else { v.answered() };
                lines.entry(v.input).or_default().push((at, n as u32));
            }
        }
        lines.values_mut().for_each(|l| l.sort_unstable());
        let writes_late =
            |v: &&Visit| v.vantage == Vantage::Proxy || v.vantage == Vantage::Server && v.duration_ns.is_some();
        let late = world.visits.iter().filter(writes_late).map(|v| v.input).collect();
        let mut captures: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
        let (mut behind, mut beside) = (FxHashSet::default(), FxHashSet::default());
        for joint in &world.calls {
            let Some(client) = joint.client.and_then(|c| world.visit_of(c)) else { continue };
            for v in joint.hops.iter().filter_map(|h| world.visit_of(*h)).filter(|v| v.place.is_frame) {
                if beyond_proxy(client, v) {
                    behind.insert((client.input, v.input));
                } else if client.port.is_some() && v.port.is_some() {
                    beside.insert((client.input, v.input));
                }
                let list = captures.entry(client.input).or_default();
                if !list.contains(&v.input) {
                    list.push(v.input);
                }
            }
        }
        captures.values_mut().for_each(|l| l.sort_unstable());
        let mut up: FxHashMap<u32, Vec<(Time, u64, bool)>> = FxHashMap::default();
        for e in world.logs.events.iter().filter(|e| e.vantage == Vantage::Server) {
            if let (Some(when), Some(is_up)) = (e.when, e.kind.is_up()) {
                up.entry(world.logs.sources.of_event(e)).or_default().push((when.at, e.place.number, is_up));
            }
        }
        up.values_mut().for_each(|l| l.sort_unstable());
        behind.retain(|b| !beside.contains(b));
        let servers = world.visits.iter().filter(|v| v.vantage == Vantage::Server).map(|v| v.input).collect();
        let owner_of = |v: &Verdict| world.call_of.get(&v.owner).copied();
        let owners = world.contents.foreign.values().filter_map(owner_of).collect();
        Records { clients, incomplete: FxHashSet::default(), lines, up, late, captures, behind, servers, owners }
    }
}

/// Clocks known no better than this do not tell which of several calls a log lacks, ns.
const COARSE_NS: i64 = 250_000_000;

/// Answered calls without a line that are looked at to tell whether a log is complete.
const LACKING: usize = 200;

/// Was the call answered by a server, if with an error? Codes of the SDKs' own (-32000 for a connection that closed,
/// -32001 for a request that timed out; Python's and TypeScript's `shared/protocol`) are the client's.
fn is_answered_by_server(record: &Visit) -> bool {
    let is_server_s = |code: i64| matches!(code, -32700 | -32603..=-32600);
    // As the SDKs put an error into words.
    let in_words = || {
        let text = record.comment.as_deref()?.split_once("MCP error ")?.1;
        text.get(..6)?.parse().ok()
    };
    was_answered(record)
        || record.client_outcome == Some(ClientOutcome::Error)
            && record.replies.iter().filter_map(|r| r.error).chain(in_words()).any(is_server_s)
}

/// What a log lacks around a call that the client alone shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lacks {
    /// Nothing.
    None,
    /// As many lines as it has none of the client's calls for, this one among them.
    ThisOne,
    /// Fewer: one of these calls, perhaps another.
    One,
}

/// Calls that follow each other closely, and what a log has of them.
struct Around {
    /// How many lines fewer it has.
    missing: usize,
    /// How many of the calls were joined to none of its lines.
    without: usize,
    /// How many of them no server answered.
    unanswered: usize,
    /// Its clock, or its times, do not tell which.
    is_coarse: bool,
}

/// Inputs that cover a call, and how sure its absence from them makes.
#[derive(Clone, Debug)]
pub struct Coverage {
    /// The inputs, captures first.
    pub inputs: Vec<u32>,
    /// Absence from one log is possible only; from two independent inputs probable; from a capture
    /// without loss that covers the path, certain.
    pub confidence: Confidence,
    /// All of them are behind a proxy, or may be: what they lack may have been lost there.
    pub is_behind: bool,
    /// One of them at least shows requests as they come, and not as they are answered, as servers' logs do.
    pub as_asked: bool,
}

impl World {
    /// Inputs with records before the call was issued and after it would have been seen, which show
    /// requests of its kind; none: nothing follows from not having seen it.
    pub fn coverage(&self, c: HopCallId) -> Option<Coverage> {
        self.covered.get(&c).cloned()
    }

    /// Works out the coverage of every call that only a client's record shows.
    pub fn cover(&mut self) {
        let alone = self.calls.iter().filter(|j| j.hops.is_empty() && j.lines.is_empty()).filter_map(|j| j.client);
        let mut records = Records::of(self);
        let logs = ServerLog::all(self);
        // What its handler began was sent, whatever the requests in the logs add up to.
        let alone: Vec<HopCallId> = alone.filter(|c| !logs.iter().any(|l| l.names(self, *c))).collect();
        let mut callers: Vec<Caller> = alone.iter().filter_map(|c| self.visit_of(*c)).map(caller).collect();
        callers.sort_unstable();
        callers.dedup();
        let incomplete = callers.iter().flat_map(|caller| {
            let lacking = self.logs.access_inputs.iter().filter(|log| self.is_incomplete(**log, caller, &records));
            lacking.map(|log| (caller.clone(), *log)).collect::<Vec<_>>()
        });
        records.incomplete = incomplete.collect();
        let found: Vec<(HopCallId, Coverage)> =
            alone.into_iter().filter_map(|c| Some((c, self.covering(c, &records)?))).collect();
        self.covered = found.into_iter().collect();
    }

    fn covering(&self, c: HopCallId, records: &Records) -> Option<Coverage> {
        let (visit, visit_no) = (self.visit_of(c)?, self.hop_call(c)?.visit);
        let was_received = self.call_of.get(&c).is_some_and(|joint| records.owners.contains(joint));
        if !visit.at.is_known() || was_received {
            return None;
        }
        let (at, by) = (visit.asked, visit.asked.plus_ns(ON_ITS_WAY_NS));
        let mut captures: Vec<u32> = records.captures.get(&visit.input).cloned().unwrap_or_default();
        captures.retain(|i| !self.is_filtered && self.spans(*i, at, by));
        // Whoever lost a part of a file lost it for all who wrote in it.
        let mut sure: FxHashSet<u32> = FxHashSet::default();
        let caller = caller(visit);
        let mut logs: Vec<u32> = self
            .logs
            .access_inputs
            .iter()
            .copied()
            .filter(|i| self.would_show(*i, visit, records))
            .filter(|i| !self.logs.contested.contains(&(visit_no, *i)))
            .filter(|i| !self.was_down(*i, at, records) && !records.incomplete.contains(&(caller.clone(), *i)))
            .filter(|i| {
                let lacks = self.lacks(*i, visit, records);
                sure.extend((lacks == Lacks::ThisOne).then_some(file_of(*i)));
                lacks != Lacks::None
            })
            .collect();
        let whole = captures.iter().any(|i| !self.lossy_inputs.contains(i));
        let as_asked = !captures.is_empty();
        if captures.is_empty() && logs.is_empty() {
            return None;
        }
        let confidence = match (whole, captures.len() + sure.len()) {
            (true, _) => Confidence::Certain,
            (_, 0 | 1) => Confidence::Possible,
            _ => Confidence::Probable,
        };
        // What was answered was sent, and a log lacks its line: only packets say otherwise.
        if is_answered_by_server(visit) && confidence < Confidence::Certain {
            return None;
        }
        let is_behind = captures.iter().all(|i| records.behind.contains(&(visit.input, *i)))
            && logs.iter().all(|i| records.servers.contains(i));
        // An error may be the answer of the proxy in front of all of them.
        if is_behind && !captures.is_empty() && visit.client_outcome == Some(ClientOutcome::Error) {
            return None;
        }
        let mut inputs = captures;
        inputs.append(&mut logs);
        Some(Coverage { inputs, confidence, is_behind, as_asked })
    }

    /// Does a log lack calls of a client which the server answered, or, where the client has several servers, all
    /// those of this one? Then it is another's, one of several, or lines are missing in it.
    fn is_incomplete(&self, log: u32, caller: &Caller, records: &Records) -> bool {
        let Some(calls) = records.clients.get(caller) else { return false };
        let of = |(_, n): &(Time, u32)| Some((*n, self.visits.get(*n as usize)?));
        let answered = || calls.all.iter().filter_map(of).filter(|(_, v)| is_answered_by_server(v));
        let several = records.clients.keys().filter(|c| c.0 == caller.0).nth(1).is_some();
        if several && !calls.all.iter().any(|(_, n)| self.line_of(*n, log).is_some()) {
            return true;
        }
        let mut lacking = answered().filter(|(n, v)| {
            self.line_of(*n, log).is_none()
                && !self.logs.contested.contains(&(*n, log))
                && self.would_show(log, v, records)
                && !self.was_down(log, v.asked, records)
        });
        // A line that is missing may be that of a call which nobody answered.
        let lacks_answered = |v| self.around(log, v, records).is_some_and(|a| a.missing > a.unanswered);
        lacking.by_ref().take(LACKING).any(|(_, v)| lacks_answered(v))
    }

    /// The line of a log that a client's call was joined to.
    fn line_of(&self, call: u32, log: u32) -> Option<u32> {
        let joint = self.answers.by_visit.get(&call).and_then(|(c, _)| self.joint(*c));
        let seen = joint.into_iter().flat_map(|j| j.hops.iter().chain(&j.lines)).filter_map(|c| self.hop_call(*c));
        let mut lines = seen.map(|c| c.visit);
        lines.find(|v| self.visits.get(*v as usize).is_some_and(|v| v.input == log))
    }

    /// Does a log go on for long enough around a call to have a line of it?
    fn would_show(&self, log: u32, record: &Visit, records: &Records) -> bool {
        let (at, by, error) =
            (record.asked, record.asked.plus_ns(ON_ITS_WAY_NS), self.logs.clock_error(log) + SLACK_NS);
        let over = record.ended.map_or(by, |m| by.max(m.at));
        // One that writes a line when its call is over lacks those that were open when it ended. What stands at the
        // beginning may be of the same moment as what was cut off before it.
        self.spans(log, at.plus_ns(-error), if records.late.contains(&log) { over.plus_ns(error) } else { by })
    }

    /// Was the server that writes this log down about then? What came meanwhile was refused before it.
    fn was_down(&self, source: u32, at: Time, records: &Records) -> bool {
        let error = self.logs.clock_error(source) + SLACK_NS;
        let told = records.up.get(&source).map_or(&[][..], |l| l);
        let before = told.get(..told.partition_point(|(t, _, _)| *t <= at.plus_ns(error))).unwrap_or_default();
        let Some((down, _, _)) = before.iter().rfind(|(_, _, up)| !up) else { return false };
        let up_again = before.last().is_some_and(|(_, _, up)| *up);
        let answers = || {
            let lines = records.lines.get(&source).map_or(&[][..], |l| l);
            let next = lines.get(lines.partition_point(|(t, _)| t <= down)..).and_then(|l| l.first());
            next.is_some_and(|(t, _)| *t <= at)
        };
        *down >= at.plus_ns(-error) || !up_again && !answers()
    }

    /// Does a log have fewer requests than the client says it made around that time? Lines are joined by
    /// time, so that a line too many there may be this call's.
    fn lacks(&self, input: u32, record: &Visit, records: &Records) -> Lacks {
        match self.around(input, record, records) {
            None | Some(Around { missing: 0, .. }) => Lacks::None,
            Some(around) if around.without > around.missing || around.is_coarse => Lacks::One,
            Some(_) => Lacks::ThisOne,
        }
    }

    /// What a log has of the calls around one, if the two can be compared.
    fn around(&self, input: u32, record: &Visit, records: &Records) -> Option<Around> {
        // A client whose clock could not be aligned is not held against a log, nor the other way round.
        let error = |input| self.logs.offsets.get(&input).copied().flatten().map(|o| o.error_ns);
        let (Some(mine), Some(theirs)) = (error(record.input), error(input)) else { return None };
        let error = mine.max(theirs);
        let slack = error + SLACK_NS;
        let client = records.clients.get(&caller(record))?;
        let lines = records.lines.get(&input).map_or(&[][..], |l| l);
        // Where the log names the session of every request, those of the others cannot be this call's.
        let named = |(_, v): &(Time, u32)| {
            self.visits.get(*v as usize).is_some_and(|v| v.session.is_some() || v.given.is_some())
        };
        let own = record.session.as_ref().filter(|_| lines.iter().all(named));
        let calls = own.and_then(|s| client.in_session.get(s)).unwrap_or(&client.all);
        let same = |(_, n): &(Time, u32)| self.visits.get(*n as usize).is_some_and(|v| v.place == record.place);
        let from = calls.partition_point(|(t, _)| *t < record.asked);
        let found = calls.get(from..).unwrap_or_default().iter().take_while(|(t, _)| *t == record.asked).position(same);
        let here = from + found?;
        // The cluster of calls around it, with silence on either side.
        let (mut first, mut last) = (here, here);
        while first > 0 && gap(calls, first - 1) < QUIET_NS {
            first -= 1;
        }
        while last + 1 < calls.len() && gap(calls, last) < QUIET_NS {
            last += 1;
        }
        let (Some((from, _)), Some((to, _))) = (calls.get(first), calls.get(last)) else { return None };
        let line_of = |n: &u32| self.line_of(*n, input);
        // Calls before the log began, or open when it ended, are not missing from it, unless it has them.
        let is_sure = |line: u32| !self.logs.ambiguous.contains(&line);
        let counted = |(_, n): &&(Time, u32)| {
            let shows = self.visits.get(*n as usize).is_some_and(|v| self.would_show(input, v, records));
            shows || line_of(n).is_some_and(is_sure)
        };
        let inside: Vec<u32> =
            calls.get(first..=last).unwrap_or_default().iter().filter(counted).map(|(_, n)| *n).collect();
        // Each `initialize` brings a notification that is answered 202 and that clients do not record.
        let begins = |n: &&u32| self.visits.get(**n as usize).is_some_and(|v| v.carries("initialize"));
        let handshakes = inside.iter().filter(begins).count();
        let expected = inside.len() + if own.is_some() { 0 } else { handshakes };
        let (from, to) = (from.plus_ns(-slack), to.plus_ns(slack + ON_ITS_WAY_NS));
        let counts = |v: &&Visit| match own {
            Some(s) => v.session.as_ref() == Some(s) && (v.rpc.is_empty() || v.requests().next().is_some()),
            None => {
                let differs = matches!((&v.session, &record.session), (Some(a), Some(b)) if a != b);
                !differs || v.session.as_ref().is_some_and(|s| client.in_session.contains_key(s))
            }
        };
        let start = lines.partition_point(|(t, _)| *t < from.plus_ns(-SLACK_NS));
        let around = lines.get(start..).unwrap_or_default().iter().take_while(|(t, _)| *t <= to.plus_ns(SLACK_NS));
        let lines = around.filter_map(|(_, v)| self.visits.get(*v as usize)).filter(counts);
        let late = self.unclaimed(
            input,
            record,
            (to.plus_ns(SLACK_NS), record.asked.plus_ns(self.client_timeout_ns)),
            records,
        );
        let missing = expected.saturating_sub(lines.count() + late);
        let without = calls.get(first..=last).unwrap_or_default().iter().filter(|(_, n)| line_of(n).is_none()).count();
        let written = records.lines.get(&input).and_then(|l| self.visits.get(l.first()?.1 as usize));
        let is_coarse = error.max(written.map_or(0, |v| v.at.error_ns)) > COARSE_NS;
        let answered = |n: &&u32| self.visits.get(**n as usize).is_some_and(is_answered_by_server);
        let unanswered = inside.len() - inside.iter().filter(answered).count();
        Some(Around { missing, without, unanswered, is_coarse })
    }

    /// Lines that stand for no call of a client's record, and may have begun when this one did: they say
    /// when they were written, and not how long it took until then.
    fn unclaimed(&self, input: u32, record: &Visit, (from, to): (Time, Time), records: &Records) -> usize {
        let lines = records.lines.get(&input).map_or(&[][..], |l| l);
        let start = lines.partition_point(|(t, _)| *t < from);
        let later = lines.get(start..).unwrap_or_default().iter().take_while(|(t, _)| *t <= to);
        let may_be = |v: &Visit| {
            let differs = matches!((&v.session, &record.session), (Some(a), Some(b)) if a != b);
            v.duration_ns.is_none() && !differs && !v.carries("initialize") && v.status != Some(202)
        };
        let joint = |n: &u32| self.answers.by_visit.get(n).and_then(|(c, _)| self.joint(*c));
        let free = later.filter(|(_, n)| joint(n).is_none_or(|j| j.client.is_none()));
        free.filter(|(_, n)| self.visits.get(*n as usize).is_some_and(may_be)).count()
    }

    fn spans(&self, input: u32, at: Time, by: Time) -> bool {
        let (first, last) = (self.input_start.get(&input), self.input_end.get(&input));
        first.is_some_and(|t| *t <= at)
            && last.is_some_and(|t| *t >= by)
            && !self.gapped_inputs.contains(&file_of(input))
    }
}
