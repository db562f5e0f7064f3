//! When requests were refused, and which: around a refusal more of other sessions is kept.

use crate::mcp::{Rpc, Visit};
use crate::model::time::Time;
use rustc_hash::{FxHashSet, FxHasher};
use std::hash::{Hash, Hasher};

/// Refused requests that are remembered to know them again; with more, every one is taken for one.
const REFUSED_ASKS: usize = 1 << 16;

/// Refusals so far.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    /// The first.
    first: Option<Time>,
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
        self.first = self.first.into_iter().chain([at]).min();
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

    /// Was anything refused before? A client may start anew hours later.
    pub(super) fn are_before(&self, until: Time) -> bool {
        self.first.is_some_and(|t| t <= until)
    }
}

/// What makes a request the same one again.
fn asked_for(rpc: &Rpc) -> u64 {
    let mut h = FxHasher::default();
    (rpc.arguments(), &rpc.method, &rpc.tool).hash(&mut h);
    h.finish()
}
