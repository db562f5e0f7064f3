//! Calls that nothing with content saw, by the client's record of them and the proxy's line.

use super::calls::{JointCall, World};
use crate::mcp::Visit;
use crate::model::place::Vantage;
use crate::model::record::ClientOutcome;
use crate::model::time::Time;

/// What a line's end and the client's may differ by though both are of the same moment, ns.
const SLACK_NS: i64 = 200_000_000;

/// A cancel comes this near the end of the call that it cancels, ns.
pub(super) const CANCEL_NS: i64 = 2_000_000_000;

/// What the two logs have of a call.
pub struct Both<'w> {
    /// The client's record.
    pub record: &'w Visit,
    /// The proxy's line.
    pub line: &'w Visit,
    /// When its caller had no answer yet and waited no longer.
    pub gave_up: Time,
    /// When the proxy had done with it.
    pub ended: Time,
    /// How far these two may be off each other.
    pub error_ns: i64,
}

/// What a client's record and a proxy's line say of a call that the proxy calls a success, where no packets show it.
pub fn both<'w>(world: &'w World, joint: &JointCall) -> Option<Both<'w>> {
    let record = world.visit_of(joint.client?)?;
    let gave_up = record.ended?.at;
    let mut seen = joint.hops.iter().chain(&joint.lines).filter_map(|h| world.visit_of(*h));
    let line = seen.clone().find(|v| v.vantage == Vantage::Proxy && v.is_post())?;
    let took = line.duration_ns?;
    let is_told = line.status == Some(200) && line.session.is_some() && !seen.any(|v| v.place.is_frame);
    if !is_told || world.is_ambiguous(joint) || may_be_cancelled(world, line, took) {
        return None;
    }
    let clock = |v: &Visit| world.logs.clock_error(v.input);
    let error_ns = clock(record).max(clock(line)).max(record.at.error_ns).max(line.at.error_ns) + SLACK_NS;
    Some(Both { record, line, gave_up, ended: line.asked.plus_ns(took), error_ns })
}

impl Both<'_> {
    /// Does the client say that it had no answer, and the proxy that it sent no byte of one?
    pub fn is_unanswered(&self) -> bool {
        self.line.bytes == Some(0) && self.record.client_outcome.is_some_and(ClientOutcome::is_without_answer)
    }
}

/// Was a notification taken about when the call ended, which may have cancelled it? Where the log names no session, one
/// of the same client.
pub fn may_be_cancelled(world: &World, visit: &Visit, took: i64) -> bool {
    let list = visit.session.as_ref().map_or(Some(&world.order), |s| world.of_session.get(s));
    let mut taken = list.into_iter().flat_map(|list| taken_about(world, list, visit, took));
    taken.any(|v| visit.session.is_some() || is_one_client(v, visit))
}

/// Have the lines the same address and user agent, in one log?
fn is_one_client(a: &Visit, b: &Visit) -> bool {
    (a.input, a.peer, &a.user_agent) == (b.input, b.peer, &b.user_agent)
}

/// What was answered 202 about when a call ended, of a list in order of being asked.
fn taken_about<'w>(world: &'w World, list: &'w [u32], visit: &Visit, took: i64) -> impl Iterator<Item = &'w Visit> {
    let end = visit.asked.plus_ns(took);
    // What was taken before the call was asked cannot have cancelled it.
    let since = end.plus_ns(-CANCEL_NS).max(visit.asked);
    let from = list.partition_point(|v| world.visits.get(*v as usize).is_some_and(|v| v.asked < since));
    let after = list.get(from..).unwrap_or_default().iter().filter_map(|v| world.visits.get(*v as usize));
    let near = after.take_while(move |v| v.asked <= end.plus_ns(CANCEL_NS));
    near.filter(|v| v.is_post() && v.status == Some(202))
}
