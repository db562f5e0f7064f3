//! `session/not-echoed`

use crate::join::World;
use crate::mcp::Visit;
use crate::model::id::SessionId;
use crate::model::place::{Hop, Vantage};
use crate::model::report::Severity;
use crate::rules::Rule;
use crate::rules::claim::{Claim, Claims, at_mark, at_request};
use rustc_hash::{FxHashMap, FxHashSet};

/// See the module's name.
pub static RULE: Rule = Rule {
    name: "session/not-echoed",
    says: "the client never sends back the session id it was given",
    faults: &[Hop::Client],
    doc: "\
The server gave a session id with its `initialize` reply; the client must send it with every later request, and sent \
requests without it that were refused for it.

Evidence: the `initialize` reply that carries the id, and requests of the same client afterwards without it, answered 400.

Looks like it and is legal: probe sessions that are opened and never used; servers without sessions; a useless session \
header on a 400 of the Python SDK.

Cannot tell: two clients behind one address with one user agent.

What to do: fix the client; proxies that strip unknown headers do this as well.",
    check,
};

/// A client at a hop: address and user agent.
type Who<'a> = (u32, Option<std::net::IpAddr>, Option<&'a str>);

fn check(world: &World, claims: &mut Claims<'_>) {
    let echoed: FxHashSet<&SessionId> = world.visits.iter().filter_map(|v| v.session.as_ref()).collect();
    let shows = shows_session(world);
    let mut given: FxHashMap<Who<'_>, (u32, u32)> = FxHashMap::default();
    let mut without: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
    for v in world.fronts() {
        let (Some(visit), Some(hop)) = (world.visits.get(v as usize), world.hop_of.get(v as usize)) else { continue };
        let who = (*hop, visit.peer, visit.user_agent.as_deref());
        match visit.belongs_to() {
            Some(s) if visit.carries("initialize") && !echoed.contains(s) => drop(given.insert(who, (v, 0))),
            Some(_) => drop(given.remove(&who)),
            None if lacks_session(visit) && (visit.place.is_frame || shows.contains(&visit.input)) => {
                if let Some((init, n)) = given.get_mut(&who) {
                    *n += 1;
                    without.entry(*init).or_default().push(v);
                }
            }
            None => {}
        }
    }
    let mut found: Vec<(u32, Vec<u32>)> = without.into_iter().filter(|(_, l)| l.len() >= 2).collect();
    found.sort_unstable();
    for (init, requests) in found {
        let Some(first) = world.visits.get(init as usize) else { continue };
        let mut evidence = vec![at_request(first, "initialize")];
        evidence.extend(first.head.map(|h| at_mark(first, h, "the reply gives a session id")));
        let later = requests.iter().take(3).filter_map(|v| world.visits.get(*v as usize));
        evidence.extend(later.map(|v| at_request(v, format!("request without it, status {}", v.status.unwrap_or(0)))));
        claims.claim(Claim {
            severity: Severity::Medium,
            fault: vec![Hop::Client],
            session: first.given.clone(),
            at: Some(first.asked),
            until: requests.last().and_then(|v| world.visits.get(*v as usize)).map(|v| v.asked),
            summary: format!("the client was given a session id and sent {} requests without it.", requests.len()),
            evidence,
            ..Claim::default()
        });
    }
}

/// Logs that would have shown a session id that a request carried: a line without one says nothing where no
/// line has one.
fn shows_session(world: &World) -> FxHashSet<u32> {
    let shows = |v: &&Visit| match v.vantage {
        Vantage::Proxy => v.session.is_some() || v.given.is_some(),
        _ => v.session.is_some() && v.status.is_some_and(|s| s < 300),
    };
    world.visits.iter().filter(|v| !v.place.is_frame).filter(shows).map(|v| v.input).collect()
}

fn lacks_session(visit: &Visit) -> bool {
    visit.is_post()
        && visit.status == Some(400)
        && !visit.rpc.is_empty()
        && !visit.carries("initialize")
        && !visit.carries("server/discover")
}
