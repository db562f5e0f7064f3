//! `crossed/foreign-body`

use super::told;
use crate::join::World;
use crate::model::place::Hop;
use crate::rules::Rule;
use crate::rules::claim::Claims;

/// See the module's name.
pub static RULE: Rule = Rule {
    name: "crossed/foreign-body",
    says: "the id is right, the content belongs to a sibling call",
    faults: &[Hop::Server, Hop::Proxy],
    doc: "\
A reply came on its call's own stream with the right id, and holds what a call in flight beside it asked for.

Evidence: a sign for the sibling (a distinctive argument echoed, the shape learnt from its tool's uncontested replies, \
its output schema) together with a sign against the call's own tool. One independent pair is probable; a unique echo \
against a contradiction is certain.

Looks like it and is legal: a search result that happens to name what a sibling asked about; error results; tasks \
whose first reply is no result.

Cannot tell: two calls of one tool with nothing of the arguments in the results.

What to do: look for state shared between handlers (a global, a reused buffer, a cache keyed too coarsely).",
    check,
};

fn check(world: &World, claims: &mut Claims<'_>) {
    for (c, verdict) in told::foreign(world).filter(|(_, v)| !v.collision && !v.other_group) {
        if let Some(claim) = told::claim(world, c, verdict) {
            claims.claim(claim);
        }
    }
}
