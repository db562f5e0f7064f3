//! Which inputs would have shown a call that the client claims to have made.

use super::answers::HopCallId;
use super::calls::World;
use crate::mcp::Visit;
use crate::model::report::Confidence;
use crate::model::time::Time;
use rustc_hash::FxHashSet;

/// By then after being issued a request is on its way, ns.
const ON_ITS_WAY_NS: i64 = 2_000_000_000;

/// What a line's time and the client's may differ by though both are right, ns.
const SLACK_NS: i64 = 500_000_000;
/// Silence that ends a cluster of calls, ns.
const QUIET_NS: i64 = 3_000_000_000;

fn gap(calls: &[Time], i: usize) -> i64 {
    calls.get(i).zip(calls.get(i + 1)).map_or(i64::MAX, |(a, b)| b.since(*a))
}

/// Is the line's session one that the client's record names too?
fn calls_session(world: &World, line: &Visit, client: u32) -> bool {
    let named = world.logs.clients.iter().filter_map(|v| world.visits.get(*v as usize));
    named.filter(|v| v.input == client).any(|v| v.session.is_some() && v.session == line.session)
}

/// Inputs that cover a call, and how sure its absence from them makes.
#[derive(Clone, Debug)]
pub struct Coverage {
    /// The inputs, captures first.
    pub inputs: Vec<u32>,
    /// Absence from one log is possible only; from two independent inputs probable; from a capture
    /// without loss that covers the path, certain.
    pub confidence: Confidence,
}

impl World {
    /// Inputs with records before the call was issued and after it would have been seen, which show
    /// requests of its kind; none: nothing follows from not having seen it.
    pub fn coverage(&self, c: HopCallId) -> Option<Coverage> {
        let visit = self.visit_of(c)?;
        if visit.at.error_ns > i64::MAX / 8 {
            return None;
        }
        let (at, by) = (visit.asked, visit.asked.plus_ns(ON_ITS_WAY_NS));
        let mut captures: Vec<u32> = self.of_this_client(c);
        captures.retain(|i| self.spans(*i, at, by));
        let mut logs: Vec<u32> = self
            .logs
            .access_inputs
            .iter()
            .copied()
            .filter(|i| self.spans(*i, at, by) && self.lacks(*i, visit))
            .collect();
        let whole = captures.iter().any(|i| !self.lossy_inputs.contains(i));
        let confidence = match (whole, captures.len() + logs.len()) {
            (true, _) => Confidence::Certain,
            (_, 0) => return None,
            (_, 1) => Confidence::Possible,
            _ => Confidence::Probable,
        };
        let mut inputs = captures;
        inputs.append(&mut logs);
        Some(Coverage { inputs, confidence })
    }

    /// Does a log have fewer requests than the client says it made around that time? Lines are joined by
    /// time, so that a line too many there may be this call's.
    fn lacks(&self, input: u32, record: &Visit) -> bool {
        let clock = self.logs.offsets.get(&record.input).copied();
        // A client whose clock could not be aligned is not held against a log.
        let Some(error) = clock.and_then(|o| o.map(|o| o.error_ns)) else { return false };
        let slack = error + SLACK_NS;
        let mut calls: Vec<Time> = self
            .logs
            .clients
            .iter()
            .filter_map(|v| self.visits.get(*v as usize))
            .filter(|v| v.input == record.input)
            .map(|v| v.asked)
            .collect();
        calls.sort_unstable();
        let Ok(here) = calls.binary_search(&record.asked) else { return false };
        // The cluster of calls around it, with silence on either side.
        let (mut first, mut last) = (here, here);
        while first > 0 && gap(&calls, first - 1) < QUIET_NS {
            first -= 1;
        }
        while last + 1 < calls.len() && gap(&calls, last) < QUIET_NS {
            last += 1;
        }
        let (Some(from), Some(to)) = (calls.get(first), calls.get(last)) else { return false };
        let (from, to) = (from.plus_ns(-slack), to.plus_ns(slack + ON_ITS_WAY_NS));
        let lines = self.visits.iter().filter(|v| v.input == input && v.is_post() && v.requests().next().is_some());
        let other = |v: &Visit| {
            matches!((&v.session, &record.session), (Some(a), Some(b)) if a != b)
                && !calls_session(self, v, record.input)
        };
        let lines = lines.filter(|v| {
            let at = if v.duration_ns.is_some() { v.asked } else { v.head.map_or(v.asked, |h| h.at) };
            at >= from.plus_ns(-v.at.error_ns.min(SLACK_NS))
                && at <= to.plus_ns(v.at.error_ns.min(SLACK_NS))
                && !other(v)
        });
        lines.count() < last - first + 1
    }

    fn spans(&self, input: u32, at: Time, by: Time) -> bool {
        let shifted = self.logs.offsets.get(&input).copied().flatten().map_or(0, |o| o.ns);
        let first = self.input_start.get(&input).map(|t| t.plus_ns(shifted));
        let last = self.input_end.get(&input).map(|t| t.plus_ns(shifted));
        first.is_some_and(|t| t <= at) && last.is_some_and(|t| t >= by) && !self.gapped_inputs.contains(&input)
    }

    /// Captures that hold other calls of the same client's record, so that they are on its path.
    fn of_this_client(&self, c: HopCallId) -> Vec<u32> {
        let Some(input) = self.visit_of(c).map(|v| v.input) else { return vec![] };
        let mut found: FxHashSet<u32> = FxHashSet::default();
        for joint in &self.calls {
            if joint.client.and_then(|c| self.visit_of(c)).is_some_and(|v| v.input == input) {
                found.extend(
                    joint.hops.iter().filter_map(|h| self.visit_of(*h)).filter(|v| v.place.is_frame).map(|v| v.input),
                );
            }
        }
        let mut list: Vec<u32> = found.into_iter().collect();
        list.sort_unstable();
        list
    }
}
