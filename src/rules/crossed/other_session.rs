//! `crossed/other-session`

use super::told;
use crate::join::World;
use crate::model::place::Hop;
use crate::rules::Rule;
use crate::rules::claim::Claims;

/// See the module's name.
pub static RULE: Rule = Rule {
    name: "crossed/other-session",
    says: "a reply reached a call of another session or client",
    faults: &[Hop::Server, Hop::Proxy],
    doc: "\
A call got a reply that holds what a call of another session asked for. Happens where one server or transport object \
is shared by several sessions and replies are routed by the bare id.

Evidence: an argument that only the other session's call has, in a reply of a tool that always echoes its own \
arguments and here echoes none; the other call was left without a reply.

Looks like it and is legal: equal ids on different sessions, which are everywhere; results that name shared records.

Cannot tell: tools that echo nothing of their arguments.

What to do: create one server object and transport a session; upgrade; run stateless.",
    check,
};

fn check(world: &World, claims: &mut Claims<'_>) {
    for (c, verdict) in told::foreign(world).filter(|(_, v)| v.other_group) {
        if let Some(claim) = told::claim(world, c, verdict) {
            claims.claim(claim);
        }
    }
}
