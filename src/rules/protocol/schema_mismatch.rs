//! `protocol/schema-mismatch`

use crate::join::World;
use crate::model::place::Hop;
use crate::model::report::Severity;
use crate::rules::Rule;
use crate::rules::claim::{Claim, Claims, at_reply, at_request, call_name};
use crate::rules::fault::behind_proxy;

/// See the module's name.
pub static RULE: Rule = Rule {
    name: "protocol/schema-mismatch",
    says: "structuredContent does not satisfy the tool's outputSchema as last listed",
    faults: &[Hop::Server],
    doc: "\
A server that declares an output schema must return structured results that conform to it (MCP 2025-06-18, server/tools).

Evidence: the `tools/list` reply with the schema, and the result with the place in it that breaks it.

Looks like it and is legal: error results (`isError`), `input_required`, task results; results without structured content.

Cannot tell: a tool list that changed without being listed again within the inputs.

What to do: if the content looks like another tool's, compare its arguments with those of calls in flight beside it.",
    check,
};

fn check(world: &World, claims: &mut Claims<'_>) {
    for joint in &world.calls {
        let found = joint.hops.iter().find_map(|c| world.contents.mismatch.get(c).map(|m| (*c, m)));
        let Some((c, mismatch)) = found else { continue };
        if claims.has("crossed", joint.key) {
            continue;
        }
        let (Some(call), Some(visit)) = (world.hop_call(c), world.visit_of(c)) else { continue };
        let name = call_name(world, call);
        let mut evidence = vec![at_request(visit, format!("request of {name}"))];
        evidence.extend(call.answer.and_then(|a| at_reply(world, a.at, format!("its result: {}", mismatch.what))));
        let direct = behind_proxy(world, joint.hops.last().copied());
        claims.claim(Claim {
            severity: Severity::Medium,
            fault: vec![Hop::Server],
            cleared: if direct { vec![Hop::Proxy] } else { vec![] },
            session: world.session_of(c),
            at: Some(call.asked),
            until: world.replied(c).map(|m| m.at),
            victim: Some(joint.key),
            summary: format!("the structured result of {name} breaks the tool's output schema: {}.", mismatch.what),
            evidence,
            ..Claim::default()
        });
    }
}
