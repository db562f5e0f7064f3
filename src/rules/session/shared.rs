//! `session/shared`

use crate::join::World;
use crate::join::conversations::conversations;
use crate::join::groups::GroupKey;
use crate::model::place::{Hop, Vantage};
use crate::model::report::Severity;
use crate::rules::Rule;
use crate::rules::claim::{Claim, Claims, at_request};

/// See the module's name.
pub static RULE: Rule = Rule {
    name: "session/shared",
    says: "several conversations used one session id",
    faults: &[Hop::Client],
    doc: "\
Independent numberings of JSON-RPC ids run side by side on one `Mcp-Session-Id`: a connector pools one session over \
conversations. By itself this harms nobody; it is what lets ids collide in flight.

Evidence: chains of increasing ids that take turns and use the same numbers; or an id reused in flight from different \
addresses; or several `initialize` on one session.

Looks like it and is legal: requests that arrive out of order; a connector that sends id 1 for every call (no numbering \
to count); one handshake that comes from ten addresses.

Cannot tell: conversations that follow one another without overlap are not reported.

What to do: give each conversation its own session, or make ids unique over all of them.",
    check,
};

fn check(world: &World, claims: &mut Claims<'_>) {
    let mut said = rustc_hash::FxHashSet::default();
    for (group, list) in world.answers.by_group.iter().enumerate() {
        let Some((_, key)) = world.groups.all.get(group) else { continue };
        let GroupKey::Session(session) = key else { continue };
        // Ids that a log line has from elsewhere by time alone may be another line's.
        let shows_ids = |c: &u32| {
            world.visit_of(*c).is_some_and(|v| v.place.is_frame || v.vantage == Vantage::Client || !v.response_gap)
        };
        let seen = list.iter().filter(|c| shows_ids(c));
        let ids = seen.filter_map(|c| Some((world.hop_call(*c)?.asked, world.rpc_of(*c)?.id.as_ref()?)));
        let found = conversations(&world.past.numbers(key, ids));
        let (Some(count), true) = (found.count, found.interleaved) else { continue };
        if !said.insert(session.clone()) {
            continue;
        }
        let mut first: rustc_hash::FxHashMap<_, u32> = rustc_hash::FxHashMap::default();
        let pair = list.iter().find_map(|c| {
            let id = world.rpc_of(*c)?.id.clone()?;
            world.rpc_of(*c)?.tool.as_ref()?;
            first.insert(id, *c).map(|earlier| (earlier, *c))
        });
        let Some((a, b)) = pair.or_else(|| Some((*list.first()?, *list.last()?))) else { continue };
        let (Some(x), Some(y)) = (world.visit_of(a), world.visit_of(b)) else { continue };
        let id = world.rpc_of(b).and_then(|r| r.id.as_ref()).map(ToString::to_string).unwrap_or_default();
        claims.claim(Claim {
            severity: Severity::Low,
            fault: vec![Hop::Client],
            session: Some(session.clone()),
            at: Some(x.asked),
            until: list.last().and_then(|c| world.hop_call(*c)).map(|c| c.asked),
            others: [world.key(a), world.key(b)].into_iter().flatten().collect(),
            summary: format!(
                "{count} numberings of JSON-RPC ids run side by side on one session: several conversations share it."
            ),
            evidence: vec![at_request(x, format!("id {id} used")), at_request(y, format!("id {id} used again"))],
            ..Claim::default()
        });
    }
}
