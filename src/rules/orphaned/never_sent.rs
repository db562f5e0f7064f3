//! `orphaned/never-sent`

use super::unsent::{claim, is_empty_success, unsent};
use crate::join::World;
use crate::model::place::Hop;
use crate::rules::Rule;
use crate::rules::claim::Claims;

/// See the module's name.
pub static RULE: Rule = Rule {
    name: "orphaned/never-sent",
    says: "the client says it issued the call; no vantage point that covers the time saw it",
    faults: &[Hop::Client, Hop::Proxy, Hop::Server],
    doc: "\
The client's record has a call that no capture and no log shows, though they have records before it was issued and \
after it would have been on its way.

Evidence: the client's record, and the inputs that cover the time. One log makes it possible, two independent ones \
probable, a capture without loss on the path certain.

Looks like it and is legal: calls before the capture began or after it ended; a log gap or rotation; one log of \
several replicas.

Cannot tell: whether a line was lost from the one log that covers the time; where only what looks from behind a proxy \
covers it, whether the proxy lost the call; where only the server's log does, whether the server took it and never \
answered: then these are named too.

What to do: look at what the client did at that moment: a re-initialisation swallows calls issued during it.",
    check,
};

fn check(world: &World, claims: &mut Claims<'_>) {
    for u in unsent(world).iter().filter(|u| !is_empty_success(world, u)) {
        if let Some(c) = claim(world, u, "no vantage point that covers the time saw it.") {
            claims.claim(c);
        }
    }
}
