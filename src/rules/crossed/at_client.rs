//! `crossed/at-client`

use crate::join::World;
use crate::join::clients::beyond_proxy;
use crate::join::told::Told;
use crate::model::place::Hop;
use crate::model::report::Confidence;
use crate::rules::Rule;
use crate::rules::batch::batch;
use crate::rules::claim::{Claim, Claims, at_mark, at_reply, at_request, call_name};

/// See the module's name.
pub static RULE: Rule = Rule {
    name: "crossed/at-client",
    says: "every vantage point that carries content had the right reply, the client's record shows another call's",
    faults: &[Hop::Client, Hop::Proxy],
    doc: "\
The call's own reply came to the client on its own stream, and the client recorded another call's content for it: the \
client attached a late or concurrent reply to a sibling.

Evidence: the reply on the wire with its frame, and the client's record whose hash or value is that of another call's \
reply.

Looks like it and is legal: two calls whose replies are equal; a client that trims or re-serialises results (values \
are compared, not bytes, where no hash is recorded).

Cannot tell: what the client did with the reply it got, beyond its record; where the capture was taken behind a proxy, \
which of the two mixed them up: both are named then.

What to do: report it to the client's maintainers with the call's ids and both hashes.",
    check,
};

fn check(world: &World, claims: &mut Claims<'_>) {
    for (key, told) in world.told() {
        let Told::Other { owner, exact } = told else { continue };
        let by_key = |k| world.calls.get((k as usize).saturating_sub(1));
        let (Some(joint), Some(other)) = (by_key(key.0), by_key(owner.0)) else { continue };
        let (Some(&c), Some(&o), Some(mine)) = (joint.hops.first(), other.hops.first(), joint.client) else { continue };
        // Where the wire itself carried that content to this call, the wire's finding says so.
        let Some(answer) = world.hop_call(c).and_then(|h| h.answer) else { continue };
        if world.contents.foreign.contains_key(&c) {
            continue;
        }
        let (Some(call), Some(owning), Some(visit), Some(record)) =
            (world.hop_call(c), world.hop_call(o), world.visit_of(c), world.visit_of(mine))
        else {
            continue;
        };
        let behind = beyond_proxy(record, visit);
        let (own, whose) = (call_name(world, call), call_name(world, owning));
        let how = if exact { "the hash" } else { "the value" };
        let mut evidence = vec![at_request(visit, format!("request of {own}"))];
        evidence.extend(at_reply(world, answer.at, "its own reply, on its own stream"));
        evidence.extend(owning.answer.and_then(|a| at_reply(world, a.at, format!("reply of {whose}"))));
        let end = record.ended.unwrap_or(crate::model::exchange::Mark { place: record.place, at: record.asked });
        evidence.push(at_mark(record, end, format!("the client's record of {own} has {how} of {whose}'s reply")));
        claims.claim(Claim {
            confidence: if exact { Confidence::Certain } else { Confidence::Probable },
            // Right behind a proxy, it may have been mixed up there as well.
            fault: if behind { vec![Hop::Client, Hop::Proxy] } else { vec![Hop::Client] },
            cleared: vec![Hop::Server, Hop::Proxy],
            session: world.session_of(c),
            at: Some(call.asked),
            until: record.ended.map(|e| e.at),
            victim: Some(key),
            owner: Some(owner),
            batch: batch(world, c),
            summary: format!("{own} got its own reply on the wire; the client recorded that of {whose} for it."),
            evidence,
            shown: "right on the wire".into(),
            ..Claim::default()
        });
    }
}
