//! `orphaned/cut-off`

use super::access_shape;
use super::ended_by::fault_of_leaving;
use super::record_shape::{Shape, shaped};
use super::two_logs::{self, Ending, unanswered};
use super::unanswered::{Orphan, PATIENCE_NS, claim, orphans};
use crate::join::World;
use crate::join::fate::Fate;
use crate::model::exchange::Peer;
use crate::model::place::Hop;
use crate::model::record::ClientOutcome;
use crate::model::report::Severity;
use crate::model::time::Time;
use crate::rules::Rule;
use crate::rules::claim::{Claim, Claims, duration};
use crate::rules::fault::behind_proxy;

/// See the module's name.
pub static RULE: Rule = Rule {
    name: "orphaned/cut-off",
    says: "a hop ended the call: reset, 499, 502, 503, 504, 524, idle deadline",
    faults: &[Hop::Client, Hop::Proxy, Hop::Server],
    doc: "\
Something ended the call before its reply: a connection closed or reset, or a gateway's error in place of an answer.

Evidence: the request and the frame that ended it; with both sides of a proxy, which side ended first. Without a \
capture, the client's record that it got no answer and the proxy's line of a success without a byte make it possible, and \
so do a proxy's flags (Envoy DC, HAProxy CH) that its caller left before there was a status. A 499 is certain; that who \
left is at fault is not: after a usual deadline (60, 120, 240 or 300 s), or a timeout in the client's record, it is who \
left it waiting, and after 30 s any of them.

Looks like it and is legal: cancelled calls; a stream that the server closes and the client resumes; from 2026-07-28, \
a caller that closes (which is the cancel).

Cannot tell: from one side of a proxy alone, whether the proxy or what lies behind it ended the call: both are named.

What to do: compare the time waited with the timeouts of the client and the proxy (proxy_read_timeout and the like).",
    check,
};

fn check(world: &World, claims: &mut Claims<'_>) {
    let told = claims.told();
    for s in shaped(world, claims, Shape::CutShort) {
        let stopped = s.server_stopped(&told);
        let fault = if stopped { vec![Hop::Server] } else { vec![Hop::Server, Hop::Proxy] };
        s.claim(world, fault).into_iter().for_each(|c| claims.claim(Claim { severity: Severity::Medium, ..c }));
    }
    // In an id collision the lost reply is the server's doing, whoever closed in the end.
    for orphan in
        orphans(world, claims).into_iter().filter(|o| o.partner.is_none() || matches!(o.fate, Fate::Gateway(_)))
    {
        let Some((how, fault, cleared)) = blame(world, &orphan) else { continue };
        if let Some(c) = claim(world, &orphan, &how) {
            claims.claim(Claim { severity: Severity::Medium, fault, cleared, ..c });
        }
    }
    for c in unanswered(world).filter(|t| t.ending != Ending::NoReply).filter_map(|t| two_logs::claim(world, &t)) {
        claims.claim(c);
    }
    for c in access_shape::left(world) {
        claims.claim(c);
    }
    for s in shaped(world, claims, Shape::Left) {
        s.claim_of_leaving(world).into_iter().for_each(|c| claims.claim(c));
    }
}

fn blame(world: &World, orphan: &Orphan<'_>) -> Option<(String, Vec<Hop>, Vec<Hop>)> {
    let back = orphan.joint.hops.last().copied().filter(|b| *b != orphan.front);
    let back_fate = back.map(|b| world.fate_at(b));
    match orphan.fate {
        Fate::Gateway(status) => {
            let how = format!("status {status} stood in for an answer");
            match back_fate {
                // The proxy's own note that its client left, whatever came of the call behind it.
                _ if status == 499 => Some(left(world, orphan)),
                Some(Fate::Gateway(s)) if s == status => Some((how, vec![Hop::Server], vec![Hop::Proxy])),
                Some(Fate::Cut { by: Peer::Server, .. } | Fate::EndedEmpty) => {
                    Some((how, vec![Hop::Server], vec![Hop::Proxy]))
                }
                None | Some(Fate::Unobserved) => Some((how, vec![Hop::Proxy, Hop::Server], vec![])),
                Some(_) => Some((how, vec![Hop::Proxy], vec![])),
            }
        }
        Fate::Cut { by: Peer::Client, reset, .. } => {
            let how = if reset { "its caller reset the connection" } else { "its caller closed the connection" };
            orphan.caller_left(world).then(|| {
                // Behind a proxy the caller is the proxy, which may only pass on what the client did.
                let hops = if behind_proxy(world, Some(orphan.front)) {
                    vec![Hop::Client, Hop::Proxy]
                } else {
                    vec![Hop::Client]
                };
                (how.to_owned(), hops, vec![])
            })
        }
        Fate::Cut { by: Peer::Server, reset, mark } => {
            let how = if reset {
                "the connection was reset by the answering side"
            } else {
                "the answering side closed the connection"
            };
            if let Some((early, waited)) = gave_up_before(world, orphan, mark.at) {
                let how = format!("its caller had given up {} before {how}", duration(early));
                // Who waited long gave up on a silent server.
                return (waited < PATIENCE_NS).then(|| (how, vec![Hop::Client], vec![]));
            }
            let (fault, cleared) = match back_fate {
                Some(Fate::Cut { by: Peer::Client, .. }) => (vec![Hop::Proxy], vec![Hop::Server]),
                Some(Fate::Cut { by: Peer::Server, .. } | Fate::EndedEmpty) => (vec![Hop::Server], vec![Hop::Proxy]),
                Some(Fate::Answered) => (vec![Hop::Proxy], vec![Hop::Server]),
                _ if behind_proxy(world, Some(orphan.front)) => (vec![Hop::Server], vec![Hop::Proxy]),
                _ => (vec![Hop::Server, Hop::Proxy], vec![]),
            };
            Some((how.to_owned(), fault, cleared))
        }
        // A proxy can turn a cut upstream stream into a clean end.
        Fate::EndedEmpty => match back_fate {
            Some(Fate::Cut { by: Peer::Server, .. }) => {
                Some(("the server cut it and the proxy ended it as if complete".into(), vec![Hop::Server], vec![]))
            }
            Some(Fate::Cut { by: Peer::Client, .. }) => Some((
                "the proxy cut it behind and ended it as if complete".into(),
                vec![Hop::Proxy],
                vec![Hop::Server],
            )),
            _ => None,
        },
        _ => None,
    }
}

/// The caller left, and the proxy wrote 499.
fn left(world: &World, orphan: &Orphan<'_>) -> (String, Vec<Hop>, Vec<Hop>) {
    let record = orphan.joint.client.and_then(|c| world.visit_of(c));
    let took = world.visit_of(orphan.front).and_then(|v| v.duration_ns).unwrap_or(0);
    let fault = fault_of_leaving(took, record);
    let how = if fault == [Hop::Client] { "its caller left (status 499)" } else { "its caller gave up (status 499)" };
    (how.into(), fault, vec![])
}

/// How long before `at` the client says that it gave the call up, as far as the clocks can tell, and how long it had
/// waited, ns.
fn gave_up_before(world: &World, orphan: &Orphan<'_>, at: Time) -> Option<(i64, i64)> {
    let record = orphan.joint.client.and_then(|c| world.visit_of(c))?;
    let gave_up = matches!(record.client_outcome, Some(ClientOutcome::Timeout | ClientOutcome::Aborted));
    let clock = world.logs.clock_error(record.input);
    let ended = record.ended?.at;
    let early = at.since(ended) - clock.max(record.at.error_ns);
    (gave_up && early > 0).then(|| (early, ended.since(record.asked)))
}
