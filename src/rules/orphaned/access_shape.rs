//! What an access log alone shows of a call that hung: no answer in its body, and an end at a usual deadline, or one that
//! the proxy's flags lay to the side that waited.

use super::ended_by::{EndedBy, at_deadline, bytes_text, ended_by, fault_of_leaving, is_bodiless};
use super::unanswered::PATIENCE_NS;
use crate::join::World;
use crate::join::calls::JointCall;
use crate::join::two_logs::may_be_cancelled;
use crate::mcp::Visit;
use crate::model::place::{Hop, Vantage};
use crate::model::record::ClientOutcome;
use crate::model::report::{Confidence, Severity};
use crate::model::time::Time;
use crate::rules::claim::{Claim, at_request, call_name, duration};
use rustc_hash::FxHashMap;
use std::net::IpAddr;

/// A stream that is opened again this soon after its end was no call, ns.
const REOPENED_NS: i64 = 5_000_000_000;

/// What a line does not tell of its call: where it names no session, which notification was about it.
fn unsaid(line: &Visit) -> &'static str {
    let is_told = line.session.is_some() && line.status == Some(200) && line.bytes == Some(0);
    if is_told { "" } else { " Whether its caller cancelled it, the log does not show for sure." }
}

/// A call whose line has such a shape.
struct Hung<'w> {
    joint: &'w JointCall,
    line: &'w Visit,
    took: i64,
    by: Option<EndedBy>,
}

impl Hung<'_> {
    fn end(&self) -> Time {
        self.line.asked.plus_ns(self.took)
    }
}

/// The claims about calls whose line shows a response that had begun, or was never to.
pub fn hung(world: &World) -> Vec<Claim> {
    let shaped = shaped(world, |h| h.line.status == Some(200) || h.by == Some(EndedBy::Deadline));
    shaped.iter().filter_map(|h| claim(world, h)).collect()
}

/// The claims about calls whose caller left before there was a response, as the proxy's flags have it: what nginx
/// writes as 499.
pub fn left(world: &World) -> Vec<Claim> {
    let shaped = shaped(world, |h| h.line.status.is_none() && h.by == Some(EndedBy::Caller));
    shaped.iter().filter_map(|h| claim_of_leaving(world, h)).collect()
}

fn shaped<'w>(world: &'w World, wanted: impl Fn(&Hung<'_>) -> bool) -> Vec<Hung<'w>> {
    let mut all: Vec<Hung<'w>> =
        world.calls.iter().filter_map(|joint| of(world, joint)).filter(|h| wanted(h)).collect();
    all.sort_by_key(|h| h.line.asked);
    let spans = Spans::all(&all);
    all.retain(|h| !spans.get(&stream(h.line)).is_some_and(|spans| spans.is_opened_again(h)));
    all
}

fn of<'w>(world: &'w World, joint: &'w JointCall) -> Option<Hung<'w>> {
    let at = *joint.hops.first()?;
    let line = world.visit_of(at)?;
    let (took, by) = (line.duration_ns?, ended_by(line));
    let is_unanswered = match line.status {
        Some(200) => is_bodiless(line) && (at_deadline(took) || by.is_some() && took >= PATIENCE_NS),
        // Nothing was sent. What another status says is another rule's.
        None => by.is_some(),
        _ => false,
    };
    let is_line = !line.place.is_frame && line.is_post() && line.vantage != Vantage::Client;
    if !is_line || !is_unanswered || line.replies.iter().any(|r| r.body.is_some()) {
        return None;
    }
    // What is said to be a stream of notifications may never be answered (2026-07-28).
    let method = world.rpc_of(at).and_then(|r| r.method.as_deref());
    let told = joint.client.and_then(|c| world.visit_of(c)).and_then(|v| v.client_outcome);
    let answered = matches!(told, Some(ClientOutcome::Ok | ClientOutcome::Error | ClientOutcome::Aborted));
    let is_outside = line.session.is_none() && method != Some("tools/call") && names_sessions(world, line);
    if method == Some("subscriptions/listen") || answered || is_outside || may_be_cancelled(world, line, took) {
        return None;
    }
    Some(Hung { joint, line, took, by })
}

/// Does the log say of other requests which session they are of? Then this one is of none.
fn names_sessions(world: &World, line: &Visit) -> bool {
    let shown = world.logs.shown.get(&line.input).or(world.past.shown.as_ref());
    shown.is_some_and(|s| s.sessions || s.begins)
}

/// Whose requests for what: log, target, address and user agent.
type Stream<'w> = (u32, Option<&'w str>, Option<IpAddr>, Option<&'w str>);

fn stream<'w>(line: &'w Visit) -> Stream<'w> {
    (line.input, line.target.as_deref(), line.peer, line.user_agent.as_deref())
}

/// When the requests of one client for one target began and ended, each in order.
#[derive(Default)]
struct Spans {
    begun: Vec<Time>,
    ended: Vec<Time>,
}

impl Spans {
    fn all<'w>(hung: &[Hung<'w>]) -> FxHashMap<Stream<'w>, Spans> {
        let mut out: FxHashMap<Stream<'w>, Spans> = FxHashMap::default();
        for h in hung {
            let spans = out.entry(stream(h.line)).or_default();
            spans.begun.push(h.line.asked);
            spans.ended.push(h.end());
        }
        for spans in out.values_mut() {
            spans.begun.sort_unstable();
            spans.ended.sort_unstable();
        }
        out
    }

    /// Where nothing says what was asked: a client that opens such a request whenever one has ended reads a stream.
    fn is_opened_again(&self, h: &Hung<'_>) -> bool {
        let is_told = h.line.session.is_some() || h.joint.client.is_some();
        // One that took no time stands among them itself.
        let own = usize::from((0..=REOPENED_NS).contains(&-h.took));
        let within = |times: &[Time], from: Time, to: Time| {
            times.get(times.partition_point(|t| *t < from) + own).is_some_and(|t| *t <= to)
        };
        let begun = h.line.asked;
        !is_told
            && (within(&self.begun, h.end(), h.end().plus_ns(REOPENED_NS))
                || within(&self.ended, begun.plus_ns(-REOPENED_NS), begun))
    }
}

fn claim(world: &World, h: &Hung<'_>) -> Option<Claim> {
    let call = world.hop_call(*h.joint.hops.first()?)?;
    let (name, took, bytes) = (call_name(world, call), duration(h.took), bytes_text(h.line));
    let unsaid = unsaid(h.line);
    let status = h.line.status.map_or("no status".to_owned(), |s| format!("status {s}"));
    let how = match h.by {
        Some(EndedBy::Caller) => "where its caller gave up, as the proxy has it",
        Some(EndedBy::Deadline) => "where the proxy waited no longer, as it says",
        None => "a usual deadline",
    };
    let shown = format!("{status}, {bytes}");
    Some(Claim {
        confidence: Confidence::Possible,
        fault: vec![Hop::Server, Hop::Proxy],
        session: h.line.session.clone(),
        at: Some(call.asked),
        until: h.line.ended.map(|e| e.at),
        victim: Some(h.joint.key),
        summary: format!(
            "{name} may never have been answered: the log shows {shown} and an end after {took}, {how}. Bodies would be \
             needed to say more: in a crossing this is the call whose reply went elsewhere.{unsaid}"
        ),
        evidence: vec![at_request(h.line, format!("{shown}, ended after {took}{}", flags(h.line)))],
        waited_ns: Some(h.took),
        shown,
        ..Claim::default()
    })
}

fn claim_of_leaving(world: &World, h: &Hung<'_>) -> Option<Claim> {
    let call = world.hop_call(*h.joint.hops.first()?)?;
    let (name, took, unsaid) = (call_name(world, call), duration(h.took), unsaid(h.line));
    let record = h.joint.client.and_then(|c| world.visit_of(c));
    Some(Claim {
        severity: Severity::Medium,
        // It may have cancelled the call, by a notification or, from 2026-07-28, by leaving.
        confidence: Confidence::Possible,
        fault: fault_of_leaving(h.took, record),
        session: h.line.session.clone(),
        at: Some(call.asked),
        until: h.line.ended.map(|e| e.at),
        victim: Some(h.joint.key),
        summary: format!(
            "{name} was sent and never answered: its caller left after {took}, before there was a response.{unsaid}"
        ),
        evidence: vec![at_request(h.line, format!("no status, ended by the caller after {took}{}", flags(h.line)))],
        waited_ns: Some(h.took),
        shown: "no response".into(),
        ..Claim::default()
    })
}

fn flags(line: &Visit) -> String {
    line.termination.as_deref().filter(|_| ended_by(line).is_some()).map(|t| format!(", {t}")).unwrap_or_default()
}
