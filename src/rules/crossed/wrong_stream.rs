//! `crossed/wrong-stream`

use crate::join::{Oddity, World};
use crate::model::place::Hop;
use crate::rules::Rule;
use crate::rules::batch::batch;
use crate::rules::claim::{Claim, Claims, at_reply, at_request, call_name};
use crate::rules::fault::server_side;

/// See the module's name.
pub static RULE: Rule = Rule {
    name: "crossed/wrong-stream",
    says: "a reply was delivered on another call's POST stream, or on a GET stream without a legal resumption",
    faults: &[Hop::Server, Hop::Proxy],
    doc: "\
Streamable HTTP binds a reply to the POST that asked for it. Here it came on another call's stream, beside that call's \
own reply, or on a standalone GET stream that resumes nothing.

Evidence: the request, and the frame of the reply on the stream where it does not belong. Across HTTP/2 streams the \
same holds as across connections.

Looks like it and is legal: the 2024-11-05 transport, where every reply comes on the GET; a GET with Last-Event-ID, \
which resumes a broken stream (it may stay open afterwards); notifications, progress and the server's own requests on \
a GET stream.

Cannot tell: a GET stream whose request the capture does not hold could have been a resumption; nothing is said then.

What to do: report it to the server's maintainers; clients drop such replies and the call hangs.",
    check,
};

fn check(world: &World, claims: &mut Claims<'_>) {
    for odd in &world.answers.oddities {
        let (reply, victim, owner) = match *odd {
            Oddity::OtherId { reply, carrier, owner }
                if world.hop_call(carrier).is_some_and(|c| c.answer.is_some()) =>
            {
                (reply, carrier, owner)
            }
            Oddity::OnGet { reply, owner: Some(owner) } => (reply, owner, owner),
            _ => continue,
        };
        if world.hop_call(owner).is_some_and(|c| c.cancelled.is_some()) {
            continue;
        }
        let (Some(v), Some(o)) = (world.hop_call(victim), world.hop_call(owner)) else { continue };
        let (own, other) = (call_name(world, v), call_name(world, o));
        let on_get = victim == owner;
        let where_ =
            if on_get { "a GET stream that resumes nothing".to_owned() } else { format!("the stream of {own}") };
        let mut evidence = vec![];
        evidence.extend(world.visit_of(owner).map(|x| at_request(x, format!("request of {other}"))));
        if !on_get {
            evidence.extend(world.visit_of(victim).map(|x| at_request(x, format!("request of {own}"))));
        }
        evidence.extend(at_reply(world, reply, format!("reply of {other} on {where_}")));
        let blame = server_side(world, world.joint(victim).map_or(&[], |j| &j.hops));
        claims.claim(Claim {
            fault: blame.fault,
            cleared: blame.cleared,
            session: world.session_of(owner),
            at: Some(o.asked),
            until: world.reply(reply).map(|(_, r)| r.last.at),
            victim: world.key(victim),
            owner: world.key(owner),
            batch: batch(world, victim),
            summary: format!("the reply of {other} was delivered on {where_}."),
            evidence,
            shown: "seen on the wire".into(),
            ..Claim::default()
        });
    }
}
