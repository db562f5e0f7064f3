//! `crossed/duplicate-reply`

use crate::join::{Oddity, World};
use crate::model::place::Hop;
use crate::model::report::Confidence;
use crate::rules::Rule;
use crate::rules::batch::batch;
use crate::rules::claim::{Claim, Claims, at_reply, at_request, call_name};
use crate::rules::fault::server_side;

/// See the module's name.
pub static RULE: Rule = Rule {
    name: "crossed/duplicate-reply",
    says: "the same reply was delivered more than once outside a legal resumption",
    faults: &[Hop::Server, Hop::Proxy],
    doc: "\
A reply that its caller had got came again: on the same stream, on another call's stream, or on a GET stream.

Evidence: the frames of both copies. The victim is the call on whose stream the extra copy came.

Looks like it and is legal: replayed events of a stream resumed with Last-Event-ID; TCP retransmissions, which are one \
message.

Cannot tell: a second, different message with the same id is reported as possible only: which of the two is the reply \
is not said on the wire.

What to do: report it to the server's maintainers; a client that takes the copy for another call's reply crosses them.",
    check,
};

fn check(world: &World, claims: &mut Claims<'_>) {
    for odd in &world.answers.oddities {
        let Oddity::Again { reply, carrier, owner, equal } = *odd else { continue };
        let victim = carrier.unwrap_or(owner);
        let (Some(v), Some(o)) = (world.hop_call(victim), world.hop_call(owner)) else { continue };
        if o.cancelled.is_some() {
            continue;
        }
        let other = call_name(world, o);
        let place = match carrier {
            None => "a GET stream that resumes nothing".to_owned(),
            Some(c) if c == owner => "its own stream".to_owned(),
            Some(_) => format!("the stream of {}", call_name(world, v)),
        };
        let what = if equal { "the same reply" } else { "another reply with the same id" };
        let mut evidence = vec![];
        evidence.extend(world.visit_of(owner).map(|x| at_request(x, format!("request of {other}"))));
        evidence.extend(o.answer.and_then(|a| at_reply(world, a.at, format!("reply of {other}"))));
        evidence.extend(at_reply(world, reply, format!("{what} again, on {place}")));
        let blame = server_side(world, world.joint(victim).map_or(&[], |j| &j.hops));
        claims.claim(Claim {
            confidence: if equal { Confidence::Certain } else { Confidence::Possible },
            fault: blame.fault,
            cleared: blame.cleared,
            session: world.session_of(owner),
            at: Some(o.asked),
            until: world.reply(reply).map(|(_, r)| r.last.at),
            victim: world.key(victim),
            owner: world.key(owner),
            batch: batch(world, victim),
            summary: format!("{other} was answered, and {what} came again on {place}."),
            evidence,
            shown: "seen on the wire".into(),
            ..Claim::default()
        });
    }
}
