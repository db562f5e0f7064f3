//! `protocol/id-retyped`

use crate::join::World;
use crate::model::place::Hop;
use crate::model::report::Severity;
use crate::rules::Rule;
use crate::rules::claim::{Claim, Claims, at_reply, at_request, call_name};

/// See the module's name.
pub static RULE: Rule = Rule {
    name: "protocol/id-retyped",
    says: "the reply's id has another JSON type than the request's",
    faults: &[Hop::Server],
    doc: "\
A reply must carry the id of its request, value and type (JSON-RPC 2.0 §5). Strict clients drop `\"7\"` as a reply to \
`7`, and the call hangs.

Evidence: the request and the reply on its own stream.

Looks like it and is legal: an error with a null or made-up id that refuses the HTTP request as a whole (4xx).

Cannot tell: what the client made of it.

What to do: report it to the server's maintainers.",
    check,
};

fn check(world: &World, claims: &mut Claims<'_>) {
    for joint in &world.calls {
        let found = joint.hops.iter().find_map(|c| Some((*c, world.hop_call(*c)?.answer.filter(|a| a.retyped)?)));
        let Some((c, answer)) = found else { continue };
        if claims.has("crossed", joint.key) {
            continue;
        }
        let (Some(call), Some(visit), Some((_, reply))) =
            (world.hop_call(c), world.visit_of(c), world.reply(answer.at))
        else {
            continue;
        };
        let name = call_name(world, call);
        let got = reply.id.as_ref().map_or_else(|| "no id".to_owned(), |i| format!("id {i}"));
        let mut evidence = vec![at_request(visit, format!("request of {name}"))];
        evidence.extend(at_reply(world, answer.at, format!("its reply carries {got}")));
        claims.claim(Claim {
            severity: Severity::Medium,
            fault: vec![Hop::Server],
            session: world.session_of(c),
            at: Some(call.asked),
            until: Some(reply.last.at),
            victim: Some(joint.key),
            summary: format!("the reply of {name} carries {got}."),
            evidence,
            ..Claim::default()
        });
    }
}
