//! `stale/wrong-status`

use super::pairing::Identity;
use super::sessions::Refused;
use super::windows::Story;
use crate::join::World;
use crate::mcp::Visit;
use crate::model::id::SessionId;
use crate::model::place::Hop;
use crate::model::report::{Confidence, Severity};
use crate::rules::Rule;
use crate::rules::claim::{Claim, Claims, at_mark, at_request};
use rustc_hash::FxHashSet;

/// Who starts anew within this time of a refusal does so for it, ns.
const ANEW_NS: i64 = 60_000_000_000;

/// See the module's name.
pub static RULE: Rule = Rule {
    name: "stale/wrong-status",
    says: "an unknown session was refused with something other than 404 (400, 401, 403, 500, 200 with an error)",
    faults: &[Hop::Server],
    doc: "\
A server must answer an unknown session id with 404, which is what tells the client to start anew (streamable HTTP, \
\"Session Management\"). Clients that wait for the 404 are stranded by another status.

Evidence: a session that was known, and the refusal that names it.

Looks like it and is legal: 400 for a request that carries no session id; 401 before OAuth; a bad protocol version.

Cannot tell: a 400 without a body to read counts only where the session had been known and is refused from then on. \
One such, the last that is seen of its session, is as well a bad request before the client stopped: that is possible. \
Refused twice, or followed by a new session, it is probable.

What to do: answer 404; the TypeScript SDK's older example answers 400.",
    check,
};

fn check(world: &World, claims: &mut Claims<'_>) {
    let stories = claims.stories();
    let begun_anew: FxHashSet<&SessionId> =
        stories.iter().filter(|s| begins_anew(world, s)).map(|s| &s.refused.session).collect();
    for r in claims.refused().iter() {
        // Refused with 404 while replicas took turns, and with another status at another time: that one counts.
        let Some(r) = r.runs(world).into_iter().map(|(run, _)| run).find(|run| !is_right(world, run)) else { continue };
        let Some(first) = r.refusals.first().and_then(|v| world.visits.get(*v as usize)) else { continue };
        let status = first.status.unwrap_or(0);
        let text = first.replies.iter().find_map(|x| x.error_text.clone()).or(first.error_text.clone());
        let said = text.as_deref().map(|t| format!(": {t}")).unwrap_or_default();
        let mut evidence = vec![at_request(first, "request with the old session id")];
        evidence.extend(first.head.map(|h| at_mark(first, h, format!("refused, status {status}{said}"))));
        claims.claim(Claim {
            severity: Severity::Medium,
            confidence: match &text {
                Some(_) if r.was_known => Confidence::Certain,
                None if r.refusals.len() < 2 && !begun_anew.contains(&r.session) => Confidence::Possible,
                _ => Confidence::Probable,
            },
            fault: vec![Hop::Server],
            session: Some(r.session.clone()),
            at: Some(first.answered()),
            until: r.refusals.last().and_then(|v| world.visits.get(*v as usize)).map(Visit::answered),
            others: r.calls(world),
            summary: format!("an unknown session id was refused with {status} instead of 404{said}."),
            evidence,
            ..Claim::default()
        });
    }
}

/// Did the client start anew as one does that was told that its session is gone?
fn begins_anew(world: &World, story: &Story) -> bool {
    let get = |v: Option<&u32>| v.and_then(|v| world.visits.get(*v as usize));
    let last = get(story.refused.refusals.last()).map(Visit::answered);
    let begun = get(story.initialize.as_ref()).map(|v| v.asked);
    let soon = last.zip(begun).is_some_and(|(last, begun)| begun.since(last) <= ANEW_NS);
    story.followed || soon && story.identity != Identity::Unsure
}

/// Was it refused with 404, as the specification wants, or with what the log does not say?
fn is_right(world: &World, r: &Refused) -> bool {
    r.refusals.iter().filter_map(|v| world.visits.get(*v as usize)).any(|v| v.status.is_none_or(|s| s == 404))
}
