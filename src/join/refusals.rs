//! When requests were refused, and which: around a refusal more of other sessions is kept.

use super::sightings::GIVEN_NS;
use crate::mcp::{Rpc, Visit};
use crate::model::time::Time;
use rustc_hash::{FxHashSet, FxHasher};
use std::hash::{Hash, Hasher};
use std::net::IpAddr;

/// Refused requests that are remembered to know them again; with more, every one is taken for one.
const REFUSED_ASKS: usize = 1 << 16;
/// Refusals closer together than this are one moment, ns.
const MOMENT_NS: i64 = 10_000_000_000;
/// After a refusal any client may be the one that starts anew for this long, ns.
const REINIT_NS: i64 = 600_000_000_000;

/// Refusals so far.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    /// Moments at which a request was refused, in order.
    moments: Vec<Time>,
    /// Whose requests were refused.
    peers: FxHashSet<IpAddr>,
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
        self.peers.extend(visit.peer);
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

    /// May a session that began at `began` be that of a client which was refused before `visit`? Soon after a refusal
    /// it may be anybody's; hours later only one from the same address is believed.
    pub(super) fn may_explain(&self, began: Time, visit: &Visit) -> bool {
        // Where its `initialize` names no session, it can have begun so much before its first line.
        let from = began.plus_ns(-REINIT_NS - GIVEN_NS);
        let soon = self.moments.get(self.moments.partition_point(|t| *t < from)).is_some_and(|t| *t <= visit.asked);
        soon || visit.peer.is_some_and(|peer| self.peers.contains(&peer))
    }
}

/// What makes a request the same one again.
fn asked_for(rpc: &Rpc) -> u64 {
    let mut h = FxHasher::default();
    (rpc.arguments(), &rpc.method, &rpc.tool).hash(&mut h);
    h.finish()
}
