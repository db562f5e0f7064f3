//! `session/replica-split`

use crate::join::World;
use crate::model::id::SessionId;
use crate::model::place::Hop;
use crate::model::record::LogEvent;
use crate::model::report::{Confidence, Severity};
use crate::rules::Rule;
use crate::rules::claim::{Claim, Claims, at_line, at_mark, at_request};
use crate::rules::stale::sessions::{Refused, Standing, is_answered, says_session};
use rustc_hash::FxHashSet;

/// See the module's name.
pub static RULE: Rule = Rule {
    name: "session/replica-split",
    says: "one live session id alternates between known and unknown: replicas without affinity",
    faults: &[Hop::Proxy],
    doc: "\
A session id is refused as unknown, and answered again afterwards, without having been given anew: requests reach \
several server processes of which only one knows the session.

Evidence: a refusal between two answers on the same id; or the servers' own words, where one process began the session and another, which ran at the same time, refuses it.

Looks like it and is legal: a server that restarts and keeps its sessions; a request that was on its way when the \
session ended.

Cannot tell: which process answered, unless the capture is taken behind the proxy, or its log names upstreams; why a request was refused, where a log shows neither: then one refusal is no more than possible, and by the only upstream there is it is nobody's fault.

What to do: route by `Mcp-Session-Id` (a hash of the header), or run the servers stateless.",
    check,
};

fn check(world: &World, claims: &mut Claims<'_>) {
    by_words(claims);
    for s in claims.refused().iter() {
        let Standing::Alternates { refused, answered } = s.standing else { continue };
        let (Some(bad), Some(good)) = (world.visits.get(refused as usize), world.visits.get(answered as usize)) else {
            continue;
        };
        let ways = ways(world, s);
        let mut evidence = vec![];
        for v in s.refusals.iter().take(3).filter_map(|v| world.visits.get(*v as usize)) {
            let mark = v.head.unwrap_or(crate::model::exchange::Mark { place: v.place, at: v.asked });
            evidence.push(at_mark(v, mark, format!("status {} on a live session", v.status.unwrap_or(0))));
        }
        evidence.push(at_request(good, "answered again on the same session id"));
        claims.claim(Claim {
            severity: Severity::Medium,
            confidence: match ways {
                Ways::Several => Confidence::Certain,
                Ways::Unknown if s.refusals.len() > 1 => Confidence::Probable,
                Ways::Unknown | Ways::One => Confidence::Possible,
            },
            fault: if ways == Ways::One { vec![] } else { vec![Hop::Proxy] },
            session: Some(s.session.clone()),
            at: bad.head.map(|m| m.at).or(Some(bad.asked)),
            until: Some(good.asked),
            others: s.calls(world).into_iter().take(8).collect(),
            summary: match (ways, s.refusals.len()) {
                (Ways::Several, n) => format!(
                    "the session id was refused {n} times between answers: its requests reach replicas that do not \
                     know it."
                ),
                (Ways::Unknown, n) => format!(
                    "requests of a live session were refused {n} times with 404, as where they reach replicas that do \
                     not know it; the log does not say why."
                ),
                (Ways::One, n) => format!(
                    "requests of a live session were refused {n} times with 404 by the upstream that answers the \
                     others; the log does not say why."
                ),
            },
            evidence,
            ..Claim::default()
        });
    }
}

/// What the processes say themselves: one began the session, another does not know it, and both run.
fn by_words(claims: &mut Claims<'_>) {
    let refused = claims.refused();
    let shown: FxHashSet<&SessionId> =
        refused.iter().filter(|r| r.standing != Standing::Gone).map(|r| &r.session).collect();
    for split in claims.splits().iter().filter(|s| !shown.contains(s.session)) {
        let mut evidence = vec![at_line(split.created.place, "one process of the server began the session")];
        let more = split.rejected.iter().take(3);
        evidence.extend(more.map(|e| at_line(e.place, "another, which ran beside it, does not know it")));
        let at = |e: Option<&&LogEvent>| e.and_then(|e| e.when).map(|w| w.at);
        claims.claim(Claim {
            severity: Severity::Medium,
            confidence: Confidence::Probable,
            fault: vec![Hop::Proxy],
            session: Some(split.session.clone()),
            at: at(split.rejected.first()),
            until: at(split.rejected.last()),
            summary: format!(
                "requests of a session that one process of the server began reached another, which refused {}.",
                match split.rejected.len() {
                    1 => "one".to_owned(),
                    n => format!("{n} of them"),
                }
            ),
            evidence,
            ..Claim::default()
        });
    }
}

/// In how many ways requests of a session went, as far as can be told.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ways {
    /// Some do not know it: they say so, packets or the proxy show that others answer.
    Several,
    /// Not known.
    Unknown,
    /// The proxy sent all to one place, behind which there may be more.
    One,
}

fn ways(world: &World, s: &Refused) -> Ways {
    let get = |v: &u32| world.visits.get(*v as usize);
    if s.refusals.iter().filter_map(get).any(|v| v.place.is_frame || says_session(v)) {
        return Ways::Several;
    }
    let upstreams = |of: &mut dyn Iterator<Item = &u32>| -> Option<FxHashSet<&str>> {
        of.filter_map(get).filter(|v| !v.place.is_frame).map(|v| v.upstream.as_deref()).collect()
    };
    let answered = |v: &&u32| get(v).is_some_and(|x| is_answered(x) && !x.is_get());
    let (Some(refusing), Some(answering)) =
        (upstreams(&mut s.refusals.iter()), upstreams(&mut s.visits.iter().filter(answered)))
    else {
        return Ways::Unknown;
    };
    match refusing.is_disjoint(&answering) {
        _ if answering.is_empty() => Ways::Unknown,
        true => Ways::Several,
        false if refusing == answering && refusing.len() == 1 => Ways::One,
        false => Ways::Unknown,
    }
}
