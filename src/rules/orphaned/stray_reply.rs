//! `orphaned/stray-reply`

use crate::join::fate::Fate;
use crate::join::{Oddity, World};
use crate::model::place::Hop;
use crate::model::report::{Confidence, Severity};
use crate::rules::Rule;
use crate::rules::claim::{Claim, Claims, at_reply, at_request, call_name};

/// See the module's name.
pub static RULE: Rule = Rule {
    name: "orphaned/stray-reply",
    says: "a reply that answers no request seen, in a capture that would have shown it",
    faults: &[Hop::Server],
    doc: "\
A stream carried a reply whose id no request of its session has.

Evidence: the reply's frame, and the request whose stream carried it.

Looks like it and is legal: errors that refuse an HTTP request as a whole; replies whose request was sent before the \
capture began, or in a hole of it.

Cannot tell: in a capture with holes the request may have been lost: then it is probable only.

What to do: report it to the server's maintainers; clients log `Received a response for an unknown message ID`.",
    check,
};

fn check(world: &World, claims: &mut Claims<'_>) {
    let holes = world.visits.iter().any(|v| v.request_gap);
    on_get(world, claims);
    for odd in &world.answers.oddities {
        let Oddity::UnknownId { reply, carrier } = *odd else { continue };
        let (Some(call), Some(visit), Some((_, stray))) =
            (world.hop_call(carrier), world.visit_of(carrier), world.reply(reply))
        else {
            continue;
        };
        if visit.request_gap
            || call.cancelled.is_some()
            // Where the stream's own call got none, its finding cites the stray.
            || world.key(carrier).is_some_and(|k| claims.has("crossed", k) || claims.has("orphaned", k))
        {
            continue;
        }
        // Where the right reply is seen behind the proxy, the server did not send this one.
        let back = world.joint(carrier).and_then(|j| j.hops.last().copied()).filter(|b| *b != carrier);
        let right_behind = call.answer.is_none() && back.is_some_and(|b| world.fate_at(b) == Fate::Answered);
        let (fault, cleared) = if right_behind { (vec![], vec![Hop::Server]) } else { (vec![Hop::Server], vec![]) };
        let name = call_name(world, call);
        let id = stray.id.as_ref().map_or_else(|| "no id".to_owned(), |i| format!("id {i}"));
        let mut evidence = vec![];
        evidence.extend(at_reply(world, reply, format!("reply with {id}, which no request has")));
        evidence.push(at_request(visit, format!("request of {name}, whose stream carried it")));
        claims.claim(Claim {
            severity: Severity::Medium,
            confidence: if holes { Confidence::Probable } else { Confidence::Certain },
            fault,
            cleared,
            session: world.session_of(carrier),
            at: Some(stray.last.at),
            others: world.key(carrier).into_iter().collect(),
            summary: format!("the stream of {name} carried a reply with {id}, which answers no request."),
            evidence,
            shown: "seen on the wire".into(),
            ..Claim::default()
        });
    }
}

/// Replies on a GET stream that resumes nothing, to no request that was seen.
fn on_get(world: &World, claims: &mut Claims<'_>) {
    for odd in &world.answers.oddities {
        let Oddity::OnGet { reply, owner: None } = *odd else { continue };
        let Some((visit, stray)) = world.reply(reply).filter(|(v, _)| !v.request_gap) else { continue };
        let id = stray.id.as_ref().map_or_else(|| "no id".to_owned(), |i| format!("id {i}"));
        let mut evidence = vec![at_request(visit, "the GET, without Last-Event-ID")];
        evidence.extend(at_reply(world, reply, format!("reply with {id}, which no request seen waits for")));
        claims.claim(Claim {
            severity: Severity::Medium,
            confidence: Confidence::Probable,
            fault: vec![Hop::Server],
            session: visit.session.clone(),
            at: Some(stray.last.at),
            summary: format!(
                "a GET stream that resumes nothing carried a reply with {id}, which answers no request seen."
            ),
            evidence,
            shown: "seen on the wire".into(),
            ..Claim::default()
        });
    }
}
