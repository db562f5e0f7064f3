//! `protocol/get-stream`

use crate::join::World;
use crate::mcp::Visit;
use crate::model::exchange::{End, Peer};
use crate::model::id::SessionId;
use crate::model::place::Hop;
use crate::model::report::Severity;
use crate::rules::Rule;
use crate::rules::claim::{Claim, Claims, at_mark, at_request};
use crate::rules::fault::Blame;
use rustc_hash::FxHashMap;

/// See the module's name.
pub static RULE: Rule = Rule {
    name: "protocol/get-stream",
    says: "the standalone GET stream was dropped or refused (409, 400) at least 3 times in a session",
    faults: &[Hop::Proxy, Hop::Server],
    doc: "\
A session's GET stream carries what the server has to say by itself. Here it was closed before the session ended, or \
refused, again and again: usually a proxy's idle timeout below the server's keep-alive interval.

Evidence: each GET with the frame that ended or refused it.

Looks like it and is legal: 405 (no such stream); a 2025-11-25 server that closes a resumable stream by itself to be \
polled; the end of the session.

Cannot tell: from one side of a proxy alone, which of both ended it.

What to do: raise the proxy's read timeout for the endpoint, or make the server send keep-alives more often.",
    check,
};

/// Times that make a finding.
const OFTEN: usize = 3;

enum Trouble {
    Dropped,
    Refused,
}

fn check(world: &World, claims: &mut Claims<'_>) {
    let mut by_session: FxHashMap<&SessionId, Vec<(u32, Trouble)>> = FxHashMap::default();
    let mut deleted: FxHashMap<&SessionId, crate::model::time::Time> = FxHashMap::default();
    for visit in world.fronts().filter_map(|v| world.visits.get(v as usize)) {
        if let (true, Some(s)) = (visit.is_delete(), &visit.session) {
            deleted.insert(s, visit.at.at);
        }
    }
    for v in world.fronts() {
        let Some(visit) = world.visits.get(v as usize) else { continue };
        let Some(session) = visit.session.as_ref().filter(|_| visit.is_get() && !visit.legacy_stream) else { continue };
        let ended = visit.ended.map(|m| m.at);
        let after_delete = deleted.get(session).zip(ended).is_some_and(|(d, e)| *d <= e);
        let chain = world.chains.of.get(v as usize).and_then(|c| world.chains.all.get(*c as usize));
        if !after_delete && let Some(t) = trouble(world, chain.map_or(&[], |c| c), visit) {
            by_session.entry(session).or_default().push((v, t));
        }
    }
    let mut found: Vec<_> = by_session.into_iter().filter(|(_, l)| l.len() >= OFTEN).collect();
    found.sort_by_key(|(_, l)| l.first().map(|(v, _)| *v));
    for (session, list) in found {
        let dropped = list.iter().filter(|(_, t)| matches!(t, Trouble::Dropped)).count();
        let mut evidence = vec![];
        for visit in list.iter().take(6).filter_map(|(v, _)| world.visits.get(*v as usize)) {
            evidence.push(at_request(visit, "GET stream asked for"));
            if let Some(end) = visit.ended {
                evidence.push(at_mark(visit, end, format!("its end, status {}", visit.status.unwrap_or(0))));
            }
        }
        let blame = blame(world, &list);
        let at = list.first().and_then(|(v, _)| world.visits.get(*v as usize)).map(|v| v.asked);
        let until = list.last().and_then(|(v, _)| world.visits.get(*v as usize)).and_then(|v| v.ended).map(|m| m.at);
        claims.claim(Claim {
            severity: Severity::Low,
            fault: blame.fault,
            cleared: blame.cleared,
            session: Some(session.clone()),
            at,
            until,
            summary: format!(
                "the session's GET stream was dropped {dropped} times and refused {} times.",
                list.len() - dropped
            ),
            evidence,
            ..Claim::default()
        });
    }
}

fn trouble(world: &World, chain: &[u32], visit: &Visit) -> Option<Trouble> {
    match visit.status {
        Some(409 | 400) => return Some(Trouble::Refused),
        Some(200) => {}
        _ => return None,
    }
    // A resumed or resumable stream may be closed by the server at will.
    if visit.last_event_id.is_some() || !visit.resumable.is_empty() {
        return None;
    }
    let by_far_end = |v: &Visit| {
        matches!(v.end, Some(End::ServerClosed | End::Complete))
            || v.end == Some(End::Reset) && v.ended_by == Some(Peer::Server)
    };
    let by_near_end = |v: &Visit| v.client_closed.is_some() || v.end == Some(End::ClientClosed);
    let behind = chain.iter().skip(1).filter_map(|v| world.visits.get(*v as usize)).any(by_near_end);
    // Seen behind a proxy alone, the closing "client" is the proxy.
    (by_far_end(visit) || behind || visit.forwarded && by_near_end(visit) || by_near_end(visit) && short_lived(visit))
        .then_some(Trouble::Dropped)
}

/// An idle stream that lives only seconds was cut by somebody's deadline.
fn short_lived(visit: &Visit) -> bool {
    visit.ended.is_some_and(|e| e.at.since(visit.asked) < 400_000_000_000)
}

fn blame(world: &World, list: &[(u32, Trouble)]) -> Blame {
    let mut blame = Blame { fault: vec![Hop::Proxy, Hop::Server], ..Blame::default() };
    let both = list.iter().all(|(v, t)| {
        let chain = world.chains.of.get(*v as usize).and_then(|c| world.chains.all.get(*c as usize));
        let mut backs = chain.into_iter().flatten().filter(|b| *b != v).filter_map(|b| world.visits.get(*b as usize));
        // A server's own line among them does not say who closed.
        matches!(t, Trouble::Refused) || backs.any(|b| b.client_closed.is_some() || b.end == Some(End::ClientClosed))
    });
    if both && list.iter().any(|(_, t)| matches!(t, Trouble::Dropped)) {
        // Behind the proxy it is the proxy that closes.
        blame.fault = vec![Hop::Proxy];
    }
    blame
}
