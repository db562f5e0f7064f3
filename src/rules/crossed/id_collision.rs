//! `crossed/id-collision`

use super::told;
use crate::join::World;
use crate::model::place::Hop;
use crate::rules::Rule;
use crate::rules::claim::Claims;

/// See the module's name.
pub static RULE: Rule = Rule {
    name: "crossed/id-collision",
    says: "two calls in flight on one session shared a JSON-RPC id, and one caller received the other's reply",
    faults: &[Hop::Server, Hop::Client, Hop::Proxy],
    doc: "\
Servers that key their in-flight requests by the bare id within a session (Python SDK 1.x, TypeScript SDK, rmcp) \
overwrite the first caller's entry when the id comes again. The first handler to end then answers the second caller, \
and the first caller hangs. `7` and `\"7\"` collide where ids are compared as text. The requests need not overlap on \
the wire: a handler runs on after its caller has gone.

Evidence: both requests with their id on one session, the reply that the second caller got, and content that is the \
first call's (an argument only it has, its tool's shape or output schema) against the second's own; the first caller \
left without a reply is a sign of its own.

Looks like it and is legal: an id used again after its call was answered (common, no finding); equal ids on different \
sessions or without sessions; servers that bind replies to their transport (Java, C#), where both calls are answered.

Cannot tell: which payload it was where both calls are of one tool and nothing of the arguments is echoed; then \
session/id-reused-in-flight says that the id was reused, and no more.

What to do: give every conversation its own session, or unique ids; run the server stateless; upgrade to an SDK that \
refuses duplicate ids in flight.",
    check,
};

fn check(world: &World, claims: &mut Claims<'_>) {
    for (c, verdict) in told::foreign(world).filter(|(_, v)| v.collision && !v.other_group) {
        if let Some(mut claim) = told::claim(world, c, verdict) {
            // The client broke the rule that ids be unique; the hop that mixed up is at fault too.
            claim.fault.push(Hop::Client);
            claims.claim(claim);
        }
    }
}
