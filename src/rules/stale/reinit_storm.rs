//! `stale/reinit-storm`

use crate::join::World;
use crate::mcp::Visit;
use crate::model::place::Hop;
use crate::model::report::{Confidence, Severity};
use crate::rules::Rule;
use crate::rules::claim::{Claim, Claims, at_request, duration};
use rustc_hash::{FxHashMap, FxHashSet};

/// Handshakes without a call in them that make a storm.
const STORM: usize = 6;
/// Within this time, ns.
const WITHIN_NS: i64 = 120_000_000_000;

/// See the module's name.
pub static RULE: Rule = Rule {
    name: "stale/reinit-storm",
    says: "re-initialisation or GET re-opening in a loop, sessions leaked",
    faults: &[Hop::Client],
    doc: "\
A client opens session after session without using any: each is left on the server until it is evicted.

Evidence: at least six `initialize` of one client within two minutes whose sessions carry no tool call and no DELETE.

Looks like it and is legal: single probe sessions that are opened and never deleted; many clients behind one address \
(they use their sessions).

Cannot tell: several idle clients with one address and one user agent that start at once.

What to do: look at why the client discards its session: a missing header, a refused GET stream, a 404 after the handshake.",
    check,
};

/// Anything but the handshake is a use.
fn is_use(visit: &Visit) -> bool {
    let handshake = visit.is_get() || visit.carries("initialize") || visit.carries("notifications/initialized");
    !handshake || visit.carries("tools/call")
}

fn check(world: &World, claims: &mut Claims<'_>) {
    let mut by_client: FxHashMap<_, Vec<u32>> = FxHashMap::default();
    // That of a refused request can be known from what the server says beside its lines.
    let names = |o: &&Visit| o.session.is_some() && !matches!(o.status, None | Some(400 | 404));
    let naming: FxHashSet<u32> = world.visits.iter().filter(names).map(|o| o.input).collect();
    for v in world.fronts() {
        let Some(visit) = world.visits.get(v as usize).filter(|x| x.carries("initialize")) else { continue };
        let used = visit
            .belongs_to()
            .and_then(|s| world.of_session.get(s))
            .is_some_and(|l| l.iter().filter_map(|o| world.visits.get(*o as usize)).any(is_use));
        // A log that does not say which session a request is of cannot show that one was not used.
        let shown = visit.place.is_frame || naming.contains(&visit.input);
        if !used && visit.given.is_some() && shown {
            by_client
                .entry((visit.peer, visit.user_agent.clone(), visit.endpoint_path().map(str::to_owned)))
                .or_default()
                .push(v);
        }
    }
    for list in by_client.values_mut() {
        list.sort_by_key(|v| world.visits.get(*v as usize).map(|x| x.asked));
        let asked = |v: &u32| world.visits.get(*v as usize).map(|x| x.asked);
        let storm = list.windows(STORM).any(|w| match (w.first().and_then(asked), w.last().and_then(asked)) {
            (Some(a), Some(b)) => b.since(a) <= WITHIN_NS,
            _ => false,
        });
        let (true, Some(first), Some(last)) = (
            storm,
            list.first().and_then(|v| world.visits.get(*v as usize)),
            list.last().and_then(|v| world.visits.get(*v as usize)),
        ) else {
            continue;
        };
        let evidence = list
            .iter()
            .take(STORM)
            .filter_map(|v| world.visits.get(*v as usize))
            .map(|v| at_request(v, "initialize"))
            .collect();
        claims.claim(Claim {
            severity: Severity::Low,
            confidence: Confidence::Probable,
            fault: vec![Hop::Client],
            session: first.given.clone(),
            at: Some(first.asked),
            until: Some(last.asked),
            summary: format!(
                "one client opened {} sessions within {} and used none.",
                list.len(),
                duration(last.asked.since(first.asked))
            ),
            evidence,
            ..Claim::default()
        });
    }
}
