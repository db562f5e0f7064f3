//! `orphaned/lost-at-proxy`

use super::unanswered::{claim, orphans};
use crate::join::World;
use crate::join::fate::Fate;
use crate::model::exchange::Peer;
use crate::model::place::Hop;
use crate::model::report::Confidence;
use crate::rules::Rule;
use crate::rules::claim::{Claim, Claims};

/// See the module's name.
pub static RULE: Rule = Rule {
    name: "orphaned/lost-at-proxy",
    says: "one side of the proxy saw the request or reply, the other did not",
    faults: &[Hop::Proxy],
    doc: "\
Captures on both sides of a proxy were given. A reply came out of the server and not out of the proxy, or a request \
went into the proxy and never came out.

Evidence: the frames on the side that has it, and the other side's exchange without it, or a capture there that covers \
the time without a gap and holds other exchanges of the same session.

Looks like it and is legal: a caller that closed before the reply came; a gateway's error when the server is down.

Cannot tell: nothing, if the capture on the missing side has holes: then it is not claimed.

What to do: look at the proxy's error log at the time; buffering and response size limits are usual causes.",
    check,
};

fn check(world: &World, claims: &mut Claims<'_>) {
    for orphan in orphans(world, claims) {
        let back = orphan.joint.hops.last().copied().filter(|b| *b != orphan.front);
        let reply_lost = back.is_some_and(|b| matches!(world.fate_at(b), Fate::Answered));
        let caller_first = match (orphan.fate, back.and_then(|b| world.replied(b))) {
            (Fate::Cut { by: Peer::Client, mark, .. }, Some(r)) => mark.at <= r.at,
            _ => false,
        };
        if reply_lost && !caller_first {
            if let Some(c) = claim(world, &orphan, "the server's reply is seen behind the proxy and not in front of it")
            {
                claims.claim(Claim { fault: vec![Hop::Proxy], cleared: vec![Hop::Server], ..c });
            }
            continue;
        }
        if back.is_none()
            && !matches!(orphan.fate, Fate::Gateway(_))
            && request_lost(world, orphan.front)
            && let Some(c) = claim(world, &orphan, "its request is seen in front of the proxy and not behind it")
        {
            claims.claim(Claim {
                confidence: Confidence::Probable,
                fault: vec![Hop::Proxy],
                cleared: vec![Hop::Server],
                ..c
            });
        }
    }
}

/// Does another hop show the session's exchanges before and after this call, from behind the proxy,
/// and not this one?
fn request_lost(world: &World, front: crate::join::answers::HopCallId) -> bool {
    let Some(call) = world.hop_call(front) else { return false };
    let depth = |hop: u32| world.chains.depth.get(hop as usize).copied().unwrap_or(0);
    let joined = world.chains.joined.get(call.hop as usize) == Some(&true);
    if !joined || depth(call.hop) > 0 {
        return false;
    }
    let Some(list) = world.answers.by_group.get(call.group as usize) else { return false };
    let seen_behind = |c: &u32| world.joint(*c).is_some_and(|j| j.hops.len() > 1);
    let Ok(i) = list.binary_search(&front) else { return false };
    let before = list.get(..i).unwrap_or_default().iter().rev().take(8).any(seen_behind);
    let after = list.get(i + 1..).unwrap_or_default().iter().take(8).any(seen_behind);
    before
        && after
        && !world.visits.iter().zip(&world.hop_of).any(|(v, hop)| (v.response_gap || v.request_gap) && depth(*hop) > 0)
}
