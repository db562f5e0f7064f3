//! `orphaned/accepted-only`

use super::unanswered::{claim, orphans};
use crate::join::World;
use crate::join::fate::Fate;
use crate::model::place::Hop;
use crate::rules::Rule;
use crate::rules::claim::{Claim, Claims};
use crate::rules::fault::behind_proxy;

/// See the module's name.
pub static RULE: Rule = Rule {
    name: "orphaned/accepted-only",
    says: "a request was answered 202 and nothing more",
    faults: &[Hop::Server],
    doc: "\
A 202 says that a notification or response was taken; a request needs a reply on the same exchange (streamable HTTP, \
\"Sending Messages to the Server\").

Evidence: the request with its id, the 202, and no reply on any stream until the input ends. An access log and the \
client's record make it possible: the one request of the session about then was answered 202, and the client has nothing.

Looks like it and is legal: the 2024-11-05 transport, where POSTs are answered 202 and replies come on the GET; \
notifications and responses.

Cannot tell: why; a server that takes a null or fractional id for a notification does this.

What to do: use ids that are integers or strings; report it to the server's maintainers.",
    check,
};

fn check(world: &World, claims: &mut Claims<'_>) {
    for c in super::record_shape::accepted(world, claims) {
        claims.claim(c);
    }
    for orphan in orphans(world, claims).iter().filter(|o| o.fate == Fate::Accepted) {
        if let Some(c) = claim(world, orphan, "answered 202 Accepted and nothing more") {
            let direct = behind_proxy(world, orphan.joint.hops.last().copied());
            claims.claim(Claim {
                fault: vec![Hop::Server],
                cleared: if direct { vec![Hop::Proxy] } else { vec![] },
                ..c
            });
        }
    }
}
