//! When requests were refused, and which: around a refusal more of other sessions is kept.

use crate::mcp::{Rpc, Visit};
use crate::model::time::Time;
use rustc_hash::{FxHashSet, FxHasher};
use std::hash::{Hash, Hasher};

/// Refused requests that are remembered to know them again; with more, every one is taken for one.
const REFUSED_ASKS: usize = 1 << 16;
/// Refusals closer together than this are one moment, ns.
const MOMENT_NS: i64 = 10_000_000_000;

/// Refusals so far.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    /// Moments at which a request was refused, in order.
    moments: Vec<Time>,
    /// Refusals that no older session was seen to outlive, in order.
    unsettled: Vec<Time>,
    /// What refused requests asked for.
    asks: FxHashSet<u64>,
}

impl Refusals {
    /// A request was refused.
    pub(super) fn note(&mut self, visit: &Visit) {
        if self.asks.len() < REFUSED_ASKS {
            self.asks.extend(visit.requests().map(asked_for));
        }
        let at = visit.answered();
        let place = self.unsettled.partition_point(|t| *t <= at);
        self.unsettled.insert(place, at);
        let place = self.moments.partition_point(|t| *t <= at);
        let near = |t: Option<&Time>| t.is_some_and(|t| at.since(*t).abs() < MOMENT_NS);
        if !near(place.checked_sub(1).and_then(|i| self.moments.get(i))) && !near(self.moments.get(place)) {
            self.moments.insert(place, at);
        }
    }

    /// Does the visit ask for the same as one that was refused?
    pub(super) fn has_asked(&self, visit: &Visit) -> bool {
        self.asks.len() >= REFUSED_ASKS || visit.requests().any(|r| self.asks.contains(&asked_for(r)))
    }

    /// Is the visit the first of its session, whose last one was asked at `before`, after another session was
    /// refused? Where it was answered, one is enough: it says that not all sessions were gone then.
    pub(super) fn lives_on(&mut self, before: Time, visit: &Visit) -> bool {
        let from = self.unsettled.partition_point(|t| *t <= before);
        let to = self.unsettled.partition_point(|t| *t <= visit.asked);
        if from >= to {
            return false;
        }
        if visit.status.is_some_and(|s| s < 500 && s != 404) {
            self.unsettled.drain(from..to);
        }
        true
    }

    /// Was anything refused after `from` and up to `until`?
    pub(super) fn are_between(&self, from: Time, until: Time) -> bool {
        let next = self.moments.get(self.moments.partition_point(|t| *t < from));
        next.is_some_and(|t| *t <= until)
    }
}

/// What makes a request the same one again.
fn asked_for(rpc: &Rpc) -> u64 {
    let mut h = FxHasher::default();
    (rpc.arguments(), &rpc.method, &rpc.tool).hash(&mut h);
    h.finish()
}
