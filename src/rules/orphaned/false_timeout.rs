//! `orphaned/false-timeout`

use super::record_shape::{Shape, shaped};
use crate::join::World;
use crate::join::answers::HopCallId;
use crate::join::calls::JointCall;
use crate::join::clients::beyond_proxy;
use crate::model::exchange::Mark;
use crate::model::place::Hop;
use crate::model::record::ClientOutcome;
use crate::model::report::Confidence;
use crate::rules::Rule;
use crate::rules::claim::{Claim, Claims, at_mark, at_reply, at_request, call_name, duration};

/// See the module's name.
pub static RULE: Rule = Rule {
    name: "orphaned/false-timeout",
    says: "the client recorded a timeout though the reply had reached it before",
    faults: &[Hop::Client, Hop::Proxy],
    doc: "\
The reply's last byte was on the client's side before the moment at which the client says that it gave up, with the \
clocks' error taken into account.

Evidence: the reply's frame in front of every proxy, and the client's record of the timeout. Where no input has bodies, \
a proxy's line that was over long before makes it possible, and names nobody.

Looks like it and is legal: a reply that came after the timeout (orphaned/late-reply).

Cannot tell: captures taken behind a proxy do not show when the reply reached the client: then it is probable, and the \
proxy is named as well.

What to do: look for a lost or mis-attached reply in the client; see crossed/at-client.",
    check,
};

/// Where no input has bodies, the proxy's line shows that something came in time, and not what: nobody is named.
fn by_logs(world: &World, claims: &mut Claims<'_>) {
    for s in shaped(world, claims, Shape::OverBefore) {
        s.claim(world, vec![]).into_iter().for_each(|c| claims.claim(c));
    }
}

/// A call whose client recorded a timeout: its record, and the reply on the wire nearest to it.
pub fn timed_out(world: &World, joint: &JointCall) -> Option<(HopCallId, HopCallId, Mark)> {
    let record = joint.client?;
    (world.visit_of(record)?.client_outcome == Some(ClientOutcome::Timeout)).then_some(())?;
    let front = *joint.hops.first()?;
    world.visit_of(front)?.place.is_frame.then_some(())?;
    Some((record, front, world.replied(front)?))
}

/// How far the reply came before the recorded timeout, beyond what the clocks can be off, ns.
pub fn before_ns(world: &World, record: HopCallId, reply: Mark) -> Option<i64> {
    let visit = world.visit_of(record)?;
    let clock = world.logs.clock_error(visit.input);
    Some(visit.ended?.at.since(reply.at) - clock.max(visit.at.error_ns))
}

fn check(world: &World, claims: &mut Claims<'_>) {
    by_logs(world, claims);
    for joint in &world.calls {
        let Some((record, front, reply)) = timed_out(world, joint) else { continue };
        let beyond =
            world.visit_of(front).zip(world.visit_of(record)).is_some_and(|(seen, own)| beyond_proxy(own, seen));
        let Some(before) = before_ns(world, record, reply).filter(|b| *b > 0) else { continue };
        let (Some(call), Some(visit), Some(told)) =
            (world.hop_call(front), world.visit_of(front), world.visit_of(record))
        else {
            continue;
        };
        let name = call_name(world, call);
        let reached = if beyond { "its reply, behind the proxy" } else { "its reply reached the client's side" };
        let mut evidence = vec![at_request(visit, format!("request of {name}"))];
        evidence.extend(call.answer.and_then(|a| at_reply(world, a.at, reached)));
        evidence.extend(told.ended.map(|e| at_mark(told, e, "the client's record: timeout")));
        claims.claim(Claim {
            confidence: if beyond { Confidence::Probable } else { Confidence::Certain },
            fault: if beyond { vec![Hop::Client, Hop::Proxy] } else { vec![Hop::Client] },
            cleared: vec![Hop::Server, Hop::Proxy],
            session: world.session_of(front),
            at: Some(call.asked),
            until: told.ended.map(|e| e.at),
            victim: Some(joint.key),
            summary: format!(
                "the client recorded a timeout for {name}, whose reply had {} {} before.",
                if beyond { "been sent, behind the proxy," } else { "reached it" },
                duration(before)
            ),
            evidence,
            waited_ns: told.ended.map(|e| e.at.since(call.asked)),
            shown: "answered in time".into(),
            ..Claim::default()
        });
    }
}
