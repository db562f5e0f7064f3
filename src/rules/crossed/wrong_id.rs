//! `crossed/wrong-id`

use crate::join::{Oddity, World};
use crate::model::place::Hop;
use crate::model::report::Confidence;
use crate::rules::Rule;
use crate::rules::batch::batch;
use crate::rules::claim::{Claim, Claims, at_reply, at_request, call_name};
use crate::rules::fault::wrong_reply;

/// See the module's name.
pub static RULE: Rule = Rule {
    name: "crossed/wrong-id",
    says: "a stream carried a reply whose id is another call's",
    faults: &[Hop::Server, Hop::Proxy],
    doc: "\
A call's own POST stream carried, instead of its reply, one whose id belongs to another call of the session. Clients \
that overwrite the id by the request's (Python SDK 2.x) take it without a word.

Evidence: the request, the reply with the other id on its stream, and the request that has this id.

Looks like it and is legal: replies on a GET stream; the server's own requests and their numbers; errors that refuse \
the HTTP request as a whole and carry no id or a made-up one.

Cannot tell: whether the body is the one call's or the other's, where nothing in it says so.

What to do: report it to the server's maintainers with the two frames; it breaks JSON-RPC 2.0 §5.",
    check,
};

fn check(world: &World, claims: &mut Claims<'_>) {
    for odd in &world.answers.oddities {
        let Oddity::OtherId { reply, carrier, owner } = *odd else { continue };
        // Where the stream's own call got its reply too, the reply was on a wrong stream.
        if world.hop_call(carrier).is_none_or(|c| c.answer.is_some() || c.cancelled.is_some()) {
            continue;
        }
        let (Some(c), Some(o), Some(joint)) = (world.hop_call(carrier), world.hop_call(owner), world.joint(carrier))
        else {
            continue;
        };
        let (own, other) = (call_name(world, c), call_name(world, o));
        let blame = wrong_reply(world, &joint.hops, |h| {
            let call = world.hop_call(h)?;
            if call.answer.is_some() { Some(false) } else { (!call.foreign.is_empty()).then_some(true) }
        });
        let mut evidence = vec![];
        evidence.extend(world.visit_of(carrier).map(|v| at_request(v, format!("request of {own}"))));
        evidence.extend(world.visit_of(owner).map(|v| at_request(v, format!("request of {other}"))));
        evidence.extend(at_reply(world, reply, format!("reply with the id of {other} on the stream of {own}")));
        claims.claim(Claim {
            confidence: Confidence::Certain,
            fault: blame.fault,
            cleared: blame.cleared,
            shown: blame.shown,
            session: world.session_of(carrier),
            at: Some(c.asked),
            until: world.reply(reply).map(|(_, r)| r.last.at),
            victim: world.key(carrier),
            owner: world.key(owner),
            batch: batch(world, carrier),
            summary: format!("the stream of {own} carried a reply with the id of {other}, and none of its own."),
            evidence,
            ..Claim::default()
        });
    }
}
