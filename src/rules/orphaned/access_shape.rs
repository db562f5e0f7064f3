//! What an access log alone shows of a call that hung: 200, no body, and an end at a usual deadline.

use crate::join::World;
use crate::join::calls::JointCall;
use crate::join::two_logs::may_be_cancelled;
use crate::model::place::Hop;
use crate::model::record::ClientOutcome;
use crate::model::report::Confidence;
use crate::rules::claim::{Claim, at_request, call_name, duration};

const SECOND_NS: i64 = 1_000_000_000;
/// Deadlines of clients and proxies after which hung calls are ended, s.
const DEADLINES_S: [i64; 4] = [60, 120, 240, 300];
/// How far from a deadline a call may have ended, ns.
const NEAR_NS: i64 = 500_000_000;

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
