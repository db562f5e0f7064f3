//! `session/id-reused-in-flight`

use crate::join::World;
use crate::model::place::Hop;
use crate::model::report::{Confidence, Severity};
use crate::rules::Rule;
use crate::rules::claim::{Claim, Claims, at_request, call_name};

/// See the module's name.
pub static RULE: Rule = Rule {
    name: "session/id-reused-in-flight",
    says: "an id was reused while in flight, without a crossing that can be shown",
    faults: &[Hop::Client],
    doc: "\
A request took the id of another that was still unanswered on the same session. Servers that key their in-flight \
requests by id may cross or drop replies; here no crossing can be shown.

Evidence: both requests, and that the first had no reply when the second was sent.

Looks like it and is legal: an id used again after its call was answered; the same message sent again (a retry).

Cannot tell: whether replies were crossed where both calls are of one tool that echoes nothing.

What to do: make ids unique over all that share a session.",
    check,
};

fn check(world: &World, claims: &mut Claims<'_>) {
    for joint in &world.calls {
        // Where packets show the call they tell what was in flight, else the client's own record does.
        let is_shown = joint.hops.iter().filter_map(|c| world.visit_of(*c)).any(|v| v.place.is_frame);
        let told = joint.client.iter().filter(|_| !is_shown);
        let reuse = joint.hops.iter().chain(told).find_map(|c| world.reuses.get(c).map(|e| (*c, *e)));
        let Some((later, earlier)) = reuse else { continue };
        if claims.has("crossed", joint.key) {
            continue;
        }
        let (Some(a), Some(b), Some(x), Some(y)) =
            (world.hop_call(earlier), world.hop_call(later), world.visit_of(earlier), world.visit_of(later))
        else {
            continue;
        };
        let (first, second) = (call_name(world, a), call_name(world, b));
        claims.claim(Claim {
            severity: Severity::Low,
            confidence: if x.response_gap || !is_shown { Confidence::Probable } else { Confidence::Certain },
            fault: vec![Hop::Client],
            session: world.session_of(later),
            at: Some(b.asked),
            until: world.until(later),
            victim: Some(joint.key),
            owner: world.key(earlier),
            summary: format!("{second} was sent with the id of {first}, which was still in flight on the session."),
            evidence: vec![
                at_request(x, format!("request of {first}")),
                at_request(y, format!("request of {second}, with the same id")),
            ],
            ..Claim::default()
        });
    }
}
