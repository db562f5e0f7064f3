//! `session/replica-split`

use crate::join::World;
use crate::model::place::Hop;
use crate::model::report::Severity;
use crate::rules::Rule;
use crate::rules::claim::{Claim, Claims, at_mark, at_request};
use crate::rules::stale::sessions::Standing;

/// See the module's name.
pub static RULE: Rule = Rule {
    name: "session/replica-split",
    says: "one live session id alternates between known and unknown: replicas without affinity",
    faults: &[Hop::Proxy],
    doc: "\
A session id is refused as unknown, and answered again afterwards, without having been given anew: requests reach \
several server processes of which only one knows the session.

Evidence: a refusal between two answers on the same id.

Looks like it and is legal: a server that restarts and keeps its sessions; a request that was on its way when the \
session ended.

Cannot tell: which process answered, unless the capture is taken behind the proxy.

What to do: route by `Mcp-Session-Id` (a hash of the header), or run the servers stateless.",
    check,
};

fn check(world: &World, claims: &mut Claims<'_>) {
    for s in claims.refused().iter() {
        let Standing::Alternates { refused, answered } = s.standing else { continue };
        let (Some(bad), Some(good)) = (world.visits.get(refused as usize), world.visits.get(answered as usize)) else {
            continue;
        };
        let mut evidence = vec![];
        for v in s.refusals.iter().take(3).filter_map(|v| world.visits.get(*v as usize)) {
            let mark = v.head.unwrap_or(crate::model::exchange::Mark { place: v.place, at: v.asked });
            evidence.push(at_mark(v, mark, format!("status {} on a live session", v.status.unwrap_or(0))));
        }
        evidence.push(at_request(good, "answered again on the same session id"));
        claims.claim(Claim {
            severity: Severity::Medium,
            fault: vec![Hop::Proxy],
            session: Some(s.session.clone()),
            at: bad.head.map(|m| m.at).or(Some(bad.asked)),
            until: Some(good.asked),
            others: s.calls(world).into_iter().take(8).collect(),
            summary: format!(
                "the session id was refused {} times between answers: its requests reach replicas that do not know it.",
                s.refusals.len()
            ),
            evidence,
            ..Claim::default()
        });
    }
}
