//! `crossed/unplaced`

use super::told::sign;
use crate::join::World;
use crate::model::place::Hop;
use crate::rules::Rule;
use crate::rules::batch::batch;
use crate::rules::claim::{Claim, Claims, at_mark, at_request, call_name};

/// See the module's name.
pub static RULE: Rule = Rule {
    name: "crossed/unplaced",
    says: "the client's record shows another call's content, and no vantage point that carries content saw the replies",
    faults: &[Hop::Client, Hop::Proxy, Hop::Server],
    doc: "\
The client recorded for a call what another of its calls asked for. No capture shows what was on the wire, so the \
crossing can be anyone's that the other inputs do not clear.

Evidence: both calls in the client's record, and the content that is the other's: its arguments, its tool's shape or \
output schema.

Looks like it and is legal: results that name what a sibling asked about; two calls with equal results.

Cannot tell: where it was crossed: the fault is the set that remains.

What to do: take a capture in front of and behind the proxy the next time, or record through `crosswire proxy`.",
    check,
};

fn check(world: &World, claims: &mut Claims<'_>) {
    for joint in &world.calls {
        let Some(c) = joint.client else { continue };
        let Some(verdict) = world.contents.foreign.get(&c) else { continue };
        // A reply seen on the wire speaks for itself.
        let on_wire = |h: &u32| {
            world.hop_call(*h).is_some_and(|x| x.answer.is_some())
                && world.visit_of(*h).is_some_and(|v| v.place.is_frame)
        };
        if joint.hops.iter().any(on_wire) || claims.has("crossed", joint.key) {
            continue;
        }
        let (Some(call), Some(owner), Some(record), Some(theirs)) =
            (world.hop_call(c), world.hop_call(verdict.owner), world.visit_of(c), world.visit_of(verdict.owner))
        else {
            continue;
        };
        let (own, other) = (call_name(world, call), call_name(world, owner));
        let why: Vec<String> = verdict.signs.iter().map(|s| sign(s, &own, &other)).collect();
        let mut evidence = vec![at_request(record, format!("the client's record of {own}: {}", why.join("; ")))];
        evidence.push(at_request(theirs, format!("the client's record of {other}")));
        for h in joint.hops.iter().chain(&joint.lines) {
            let Some(line) = world.visit_of(*h) else { continue };
            let mark = line.head.unwrap_or(crate::model::exchange::Mark { place: line.place, at: line.asked });
            let sure =
                if world.is_ambiguous(joint) { "perhaps its line (another call fits as well)" } else { "its line" };
            evidence.push(at_mark(line, mark, format!("{sure}, status {}", line.status.unwrap_or(0))));
        }
        claims.claim(Claim {
            confidence: verdict.confidence,
            // That no input is a proxy's does not say that there is none.
            fault: vec![Hop::Client, Hop::Server, Hop::Proxy],
            session: record.session.clone(),
            at: Some(call.asked),
            until: record.ended.map(|e| e.at),
            victim: Some(joint.key),
            owner: world.key(verdict.owner),
            batch: batch(world, c),
            summary: format!("the client recorded the reply of {other} for {own}: {}.", why.join("; ")),
            evidence,
            shown: "no vantage with content saw the replies".into(),
            ..Claim::default()
        });
    }
}
