//! `orphaned/late-reply`

use super::false_timeout::{before_ns, timed_out};
use super::two_logs::late;
use crate::join::World;
use crate::join::fate::Fate;
use crate::model::report::Severity;
use crate::rules::Rule;
use crate::rules::claim::{Claim, Claims, at_mark, at_reply, at_request, call_name, duration};

/// See the module's name.
pub static RULE: Rule = Rule {
    name: "orphaned/late-reply",
    says: "the reply came after the caller had closed or timed out",
    faults: &[],
    doc: "\
The caller had closed its side, or recorded a timeout, when the reply came. Nobody is proved to be at fault: the \
server answered, the caller had stopped waiting.

Evidence: the frame of the caller's close and the frame of the reply. Without a capture, a proxy's line that ends later \
than the timeout in the client's record, with bytes, makes it possible.

Looks like it and is legal: after a cancel a late reply is expected and no finding; a caller that half-closes after its \
request and reads on.

Cannot tell: whether the caller still read.

What to do: compare the client's timeout with what the tool takes.",
    check,
};

fn check(world: &World, claims: &mut Claims<'_>) {
    after_timeout(world, claims);
    for joint in &world.calls {
        let Some(&front) = joint.hops.first() else { continue };
        if world.fate_at(front) != Fate::Late || claims.has("crossed", joint.key) {
            continue;
        }
        let (Some(call), Some(visit)) = (world.hop_call(front), world.visit_of(front)) else { continue };
        let (Some(answer), Some(closed), Some(reply)) = (call.answer, visit.client_closed, world.replied(front)) else {
            continue;
        };
        let name = call_name(world, call);
        let mut evidence =
            vec![at_request(visit, format!("request of {name}")), at_mark(visit, closed, "the caller closed")];
        evidence.extend(at_reply(world, answer.at, "the reply came"));
        claims.claim(Claim {
            severity: Severity::Low,
            session: world.session_of(front),
            at: Some(call.asked),
            until: Some(reply.at),
            victim: Some(joint.key),
            summary: format!(
                "the reply of {name} came {} after its caller had closed.",
                duration(reply.at.since(closed.at))
            ),
            evidence,
            waited_ns: Some(closed.at.since(call.asked)),
            shown: "answered late".into(),
            ..Claim::default()
        });
    }
    for (after, claim) in late(world) {
        let summary = format!(
            "the proxy was done with {} {} after its client had recorded a timeout, and had sent something.",
            claim.summary,
            duration(after)
        );
        claims.claim(Claim { summary, ..claim });
    }
}

/// Replies that came after the client had recorded a timeout.
fn after_timeout(world: &World, claims: &mut Claims<'_>) {
    for joint in &world.calls {
        let Some((record, front, reply)) = timed_out(world, joint) else { continue };
        if before_ns(world, record, reply).is_none_or(|b| b > 0) || world.fate_at(front) == Fate::Cancelled {
            continue;
        }
        let (Some(call), Some(visit), Some(told)) =
            (world.hop_call(front), world.visit_of(front), world.visit_of(record))
        else {
            continue;
        };
        let Some(ended) = told.ended else { continue };
        let name = call_name(world, call);
        let mut evidence =
            vec![at_request(visit, format!("request of {name}")), at_mark(told, ended, "the client's record: timeout")];
        evidence.extend(call.answer.and_then(|a| at_reply(world, a.at, "the reply came")));
        claims.claim(Claim {
            severity: Severity::Low,
            session: world.session_of(front),
            at: Some(call.asked),
            until: Some(reply.at),
            victim: Some(joint.key),
            summary: format!(
                "the reply of {name} came {} after its client had recorded a timeout.",
                duration(reply.at.since(ended.at).max(0))
            ),
            evidence,
            waited_ns: Some(ended.at.since(call.asked)),
            shown: "answered late".into(),
            ..Claim::default()
        });
    }
}
