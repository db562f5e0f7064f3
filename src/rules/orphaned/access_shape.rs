//! What an access log alone shows of a call that hung: 200, no body, and an end at a usual deadline.

use crate::join::World;
use crate::join::calls::JointCall;
use crate::mcp::Visit;
use crate::model::place::Hop;
use crate::model::record::ClientOutcome;
use crate::model::report::Confidence;
use crate::rules::claim::{Claim, at_request, call_name, duration};

const SECOND_NS: i64 = 1_000_000_000;
/// Deadlines of clients and proxies after which hung calls are ended, s.
const DEADLINES_S: [i64; 4] = [60, 120, 240, 300];
/// How far from a deadline a call may have ended, ns.
const NEAR_NS: i64 = 500_000_000;
/// A cancel comes this near the end of the call that it cancels, ns.
const CANCEL_NS: i64 = 2 * SECOND_NS;

/// The claim about such a call.
pub fn claim(world: &World, joint: &JointCall) -> Option<Claim> {
    let line = *joint.hops.first()?;
    let (call, visit) = (world.hop_call(line)?, world.visit_of(line)?);
    let took = visit.duration_ns?;
    let shaped = !visit.place.is_frame && visit.is_post() && visit.status == Some(200) && visit.bytes == Some(0);
    if !shaped || visit.replies.iter().any(|r| r.body.is_some()) || !at_deadline(took) {
        return None;
    }
    // Without a session it may be a stream of notifications, which is never answered (2026-07-28).
    let tool = world.rpc_of(line).is_some_and(|r| r.method.as_deref() == Some("tools/call"));
    let told = joint.client.and_then(|c| world.visit_of(c)).and_then(|v| v.client_outcome);
    let answered = matches!(told, Some(ClientOutcome::Ok | ClientOutcome::Error | ClientOutcome::Aborted));
    if visit.session.is_none() && !tool || answered || may_be_cancelled(world, visit, took) {
        return None;
    }
    let name = call_name(world, call);
    Some(Claim {
        confidence: Confidence::Possible,
        fault: vec![Hop::Server, Hop::Proxy],
        session: visit.session.clone(),
        at: Some(call.asked),
        until: visit.ended.map(|e| e.at),
        victim: Some(joint.key),
        summary: format!(
            "{name} may never have been answered: the log shows status 200, no body and an end after {}, a usual \
             deadline. Bodies would be needed to say more: in a crossing this is the call whose reply went elsewhere.",
            duration(took)
        ),
        evidence: vec![at_request(visit, format!("status 200, 0 body bytes, ended after {}", duration(took)))],
        waited_ns: Some(took),
        shown: "status 200, 0 body bytes".into(),
        ..Claim::default()
    })
}

fn at_deadline(took: i64) -> bool {
    DEADLINES_S.iter().any(|d| (took - d * SECOND_NS).abs() <= NEAR_NS)
}

/// Was a notification taken about when the call ended, which may have cancelled it?
pub(super) fn may_be_cancelled(world: &World, visit: &Visit, took: i64) -> bool {
    let Some(list) = visit.session.as_ref().and_then(|s| world.of_session.get(s)) else { return false };
    let end = visit.asked.plus_ns(took);
    let from =
        list.partition_point(|v| world.visits.get(*v as usize).is_some_and(|v| v.asked < end.plus_ns(-CANCEL_NS)));
    let after = list.get(from..).unwrap_or_default().iter().filter_map(|v| world.visits.get(*v as usize));
    after.take_while(|v| v.asked <= end.plus_ns(CANCEL_NS)).any(|v| v.is_post() && v.status == Some(202))
}
