//! `orphaned/empty-success`

use super::unsent::{claim, is_empty_success, unsent};
use crate::join::World;
use crate::model::place::Hop;
use crate::rules::Rule;
use crate::rules::claim::Claims;

/// See the module's name.
pub static RULE: Rule = Rule {
    name: "orphaned/empty-success",
    says: "as never-sent, but the client recorded a success with no content",
    faults: &[Hop::Client, Hop::Proxy, Hop::Server],
    doc: "\
The client recorded a success without content for a call that was never sent: its user believes that the tool found \
nothing.

Evidence: as for orphaned/never-sent, and the client's recorded success.

Looks like it and is legal: tools that really return nothing (their call is seen).

Cannot tell: as for orphaned/never-sent.

What to do: report it to the client's maintainers: a call lost in a re-initialisation must fail, not succeed.",
    check,
};

fn check(world: &World, claims: &mut Claims<'_>) {
    for u in unsent(world).iter().filter(|u| is_empty_success(world, u)) {
        if let Some(c) =
            claim(world, u, "no vantage point that covers the time saw it, and the client recorded an empty success.")
        {
            claims.claim(c);
        }
    }
}
