//! What the rules about unanswered calls have in common.

use crate::join::World;
use crate::join::answers::HopCallId;
use crate::join::calls::JointCall;
use crate::join::fate::Fate;
use crate::model::exchange::Peer;
use crate::model::report::{Confidence, Severity};
use crate::rules::claim::{Claim, Claims, at_mark, at_request, call_name, duration};

/// A caller that waited this long before it closed had given up on a silent server; one that
/// closed sooner than this ended the call itself. ns.
pub(super) const PATIENCE_NS: i64 = 30_000_000_000;

/// A call without a reply, as its caller saw it.
pub struct Orphan<'w> {
    /// The call.
    pub joint: &'w JointCall,
    /// At the hop nearest the client.
    pub front: HopCallId,
    /// Its fate there.
    pub fate: Fate,
    /// The other call with the same id in flight.
    pub partner: Option<HopCallId>,
}

impl Orphan<'_> {
    /// Did the caller itself end the call before its patience can have run out?
    pub fn caller_left(&self, world: &World) -> bool {
        let Fate::Cut { by: Peer::Client, mark, .. } = self.fate else { return false };
        let asked = world.hop_call(self.front).map(|c| c.asked);
        self.partner.is_none() && asked.is_some_and(|a| mark.at.since(a) < PATIENCE_NS)
    }
}

/// Every call that its caller got no reply to, though the inputs would have shown one.
pub fn orphans<'w>(world: &'w World, claims: &Claims<'_>) -> Vec<Orphan<'w>> {
    world
        .calls
        .iter()
        .filter(|j| !claims.has("crossed", j.key))
        .filter_map(|joint| {
            let front = *joint.hops.first()?;
            // It may stay unanswered, however its stream ends (2026-07-28).
            if world.rpc_of(front).and_then(|r| r.method.as_deref()) == Some("subscriptions/listen") {
                return None;
            }
            let fate = world.fate_at(front);
            fate.is_orphan().then(|| Orphan { joint, front, fate, partner: partner(world, front) })
        })
        .collect()
}

/// The call of the same session that took over this one's id while it was in flight.
pub fn partner(world: &World, c: HopCallId) -> Option<HopCallId> {
    let away = world.call_of.get(&c).is_some_and(|n| world.given_away.contains(n));
    if away {
        let same_call = |owner: &HopCallId| world.call_of.get(owner) == world.call_of.get(&c);
        let victims = world.contents.foreign.iter().filter(|(_, v)| v.collision && same_call(&v.owner));
        // The one at this hop first, so that front and back are not mixed.
        let hop = |x: HopCallId| world.hop_call(x).map(|x| x.hop);
        if let Some(victim) = victims.map(|(victim, _)| *victim).min_by_key(|v| (hop(*v) != hop(c), *v)) {
            return Some(victim);
        }
    }
    world.reused.get(&c).or_else(|| world.reuses.get(&c)).copied()
}

/// The finding about an orphan, with what is common to all of them.
pub fn claim(world: &World, orphan: &Orphan<'_>, how: &str) -> Option<Claim> {
    let (call, visit) = (world.hop_call(orphan.front)?, world.visit_of(orphan.front)?);
    let name = call_name(world, call);
    let waited = world.waited_ns(orphan.front);
    let mut evidence = vec![at_request(visit, format!("request of {name}"))];
    if let Some(head) = visit.head {
        evidence.push(at_mark(visit, head, format!("response head, status {}", visit.status.unwrap_or(0))));
    }
    for r in &call.foreign {
        let id =
            world.reply(*r).and_then(|(_, x)| x.id.as_ref()).map_or_else(|| "no id".to_owned(), |i| format!("id {i}"));
        evidence.extend(crate::rules::claim::at_reply(
            world,
            *r,
            format!("a reply with {id} on its stream, which is not its own"),
        ));
    }
    if let Some(end) = visit.client_closed.or(visit.ended) {
        evidence.push(at_mark(visit, end, how));
    }
    for h in orphan.joint.hops.iter().skip(1) {
        if let (Some(v), Some(x)) = (world.visit_of(*h), world.hop_call(*h)) {
            let seen = if x.answer.is_some() {
                "the reply behind the proxy"
            } else {
                "request behind the proxy, without a reply"
            };
            let mark = world.replied(*h).unwrap_or(crate::model::exchange::Mark { place: v.place, at: v.asked });
            evidence.push(at_mark(v, mark, seen));
        }
    }
    let after = waited.map(|w| format!(" after {}", duration(w))).unwrap_or_default();
    // A stream that was resumed, or a call that was cancelled, where packets were dropped would not be known.
    let doubtful = orphan.fate == Fate::Silent || world.dropped_inputs.contains(&visit.input);
    Some(Claim {
        severity: Severity::High,
        confidence: if doubtful { Confidence::Probable } else { Confidence::Certain },
        session: world.session_of(orphan.front),
        at: Some(call.asked),
        until: visit.client_closed.or(visit.ended).map(|m| m.at),
        victim: Some(orphan.joint.key),
        summary: format!("{name} was sent and never answered: {how}{after}."),
        evidence,
        waited_ns: waited,
        shown: last_seen(world, orphan),
        ..Claim::default()
    })
}

fn last_seen(world: &World, orphan: &Orphan<'_>) -> String {
    let status = world.visit_of(orphan.front).and_then(|v| v.status);
    let bytes = world.visit_of(orphan.front).and_then(|v| v.bytes).unwrap_or(0);
    let head = match status {
        Some(s) => format!("status {s}, {bytes} body bytes"),
        None => "no response".to_owned(),
    };
    if orphan.joint.hops.len() > 1 { format!("{head}; request seen behind the proxy") } else { head }
}
