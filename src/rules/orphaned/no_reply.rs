//! `orphaned/no-reply`

use super::record_shape::{Shape, shaped};
use super::two_logs::{self, Ending, unanswered};
use super::unanswered::{Orphan, claim, orphans};
use crate::join::World;
use crate::join::fate::Fate;
use crate::model::exchange::Peer;
use crate::model::place::Hop;
use crate::rules::Rule;
use crate::rules::claim::{Claim, Claims, call_name};
use crate::rules::fault::{behind_proxy, server_side};

/// See the module's name.
pub static RULE: Rule = Rule {
    name: "orphaned/no-reply",
    says: "the request arrived, no reply was ever delivered",
    faults: &[Hop::Server, Hop::Proxy],
    doc: "\
The call's stream ended, or stayed silent for longer than a caller waits, without a reply. In an id collision it is \
the call whose reply went to another caller, or was dropped.

Evidence: the request, and the end of its stream: a clean end without a message, an empty body, keep-alives until the \
caller gave up. An access log alone makes it possible: status 200, no body, and an end at a usual deadline (60, 120, \
240 or 300 s), or after 30 s and more where the proxy's flags say that its caller left (HAProxy C, Envoy DC) or that the \
proxy waited no longer (HAProxy s, Envoy SI); so do an access log and the client's record of a timeout that end together, or of no answer beside a \
line of no byte.

Looks like it and is legal: cancelled calls, which may stay unanswered; a stream that breaks and is resumed; \
subscriptions/listen, which may never be answered; calls still open when the input ends; in an access log also a 202, \
a GET stream, a POST that its client opens again whenever it ends, and a call that a notification at its end may have \
cancelled (which a log that is read alone shows only where it names sessions).

Cannot tell: calls whose packets are missing are `unobserved` and never reported here.

What to do: look at the cited frames for the id; where it was in flight twice, see crossed/id-collision.",
    check,
};

fn check(world: &World, claims: &mut Claims<'_>) {
    for orphan in orphans(world, claims) {
        let Some(c) = claim(world, &orphan, how(&orphan)) else { continue };
        let blame = server_side(world, &orphan.joint.hops);
        let mut c = Claim { fault: blame.fault, cleared: blame.cleared, ..c };
        // Behind a proxy the caller that gave up is the proxy, which may have had no patience.
        let gave_up = orphan.partner.is_none() && matches!(orphan.fate, Fate::Cut { by: Peer::Client, .. });
        if gave_up && behind_proxy(world, Some(orphan.front)) {
            c.fault.push(Hop::Proxy);
        }
        if let Some(other) = orphan.partner.and_then(|p| world.hop_call(p).map(|x| (p, x))) {
            c.fault.push(Hop::Client);
            c.others.extend(world.key(other.0));
            let whose = call_name(world, other.1);
            c.summary = format!("{} Its id was in flight twice: {whose} used it meanwhile.", c.summary);
            c.evidence.extend(
                world
                    .visit_of(other.0)
                    .map(|v| crate::rules::claim::at_request(v, format!("request of {whose}, with the same id"))),
            );
        }
        claims.claim(c);
    }
    for s in shaped(world, claims, Shape::Hung) {
        s.claim(world, vec![Hop::Server, Hop::Proxy]).into_iter().for_each(|c| claims.claim(c));
    }
    let by_two_logs =
        unanswered(world).filter(|t| t.ending == Ending::NoReply).filter_map(|t| two_logs::claim(world, &t));
    for c in by_two_logs.chain(super::access_shape::hung(world)) {
        claims.claim(c);
    }
}

fn how(orphan: &Orphan<'_>) -> &'static str {
    match orphan.fate {
        Fate::EndedEmpty => "its response ended without a message",
        Fate::Cut { by: Peer::Client, .. } => "its caller gave up",
        Fate::Cut { .. } => "its stream was closed",
        _ => "its stream stayed silent",
    }
}
