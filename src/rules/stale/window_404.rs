//! `stale/404-window`

use super::pattern::patterns;
use super::sessions::answered_at;
use super::windows::stories;
use crate::join::World;
use crate::model::place::Hop;
use crate::model::report::{Confidence, Severity};
use crate::rules::Rule;
use crate::rules::claim::{Claim, Claims, at_line, at_mark, at_request, duration};

/// See the module's name.
pub static RULE: Rule = Rule {
    name: "stale/404-window",
    says: "an old session id got 404 and the client re-initialised: the window, its cause, the calls lost in it",
    faults: &[Hop::Client],
    doc: "\
A session ends without the client's knowledge (restart, idle eviction, another replica). Its next request gets 404, and \
the client starts a new session, as it must. Calls that were refused and not sent again, or issued meanwhile and never \
sent, are lost: that is the client's fault. Where nothing was lost the window is of low severity and nobody's fault.

Evidence: the refusal, the `initialize` after it, and the calls of the new session.

Looks like it and is legal: 404 before any session (a wrong path), OAuth discovery, DELETE answered 404, GET answered \
405, 404 with -32601 (unknown method, 2026-07-28), an edge's own 404 while a backend restarts.

Cannot tell: which client re-initialised, where address and user agent of the handshake differ: confidence is lower then.

What to do: send refused calls again after re-initialising; keep sessions over restarts, or run stateless.",
    check,
};

fn check(world: &World, claims: &mut Claims<'_>) {
    by_pattern(world, claims);
    for story in stories(world) {
        let (Some(window), Some(init)) = (story.window, story.initialize.and_then(|v| world.visits.get(v as usize)))
        else {
            continue;
        };
        let r = &story.refused;
        let Some(first) = r.refusals.first().and_then(|v| world.visits.get(*v as usize)) else { continue };
        claims.windows.push(window.clone());
        if !r.right_status {
            // `stale/wrong-status` speaks of it.
            continue;
        }
        let mut evidence = vec![at_request(first, "request with the old session id")];
        evidence
            .extend(first.head.map(|h| at_mark(first, h, format!("refused, status {}", first.status.unwrap_or(0)))));
        evidence.push(at_request(init, "the client re-initialises"));
        let lost = window.lost.len();
        let took = duration(init.asked.since(answered_at(first)));
        let summary = match lost {
            0 => format!(
                "a stale session id was refused; the client re-initialised {took} later and lost no call seen here."
            ),
            1 => {
                format!("a stale session id was refused; the client re-initialised {took} later and one call was lost.")
            }
            n => format!(
                "a stale session id was refused; the client re-initialised {took} later and {n} calls were lost."
            ),
        };
        claims.claim(Claim {
            severity: if lost > 0 { Severity::Medium } else { Severity::Low },
            confidence: if story.stranger || !r.was_known { Confidence::Probable } else { Confidence::Certain },
            fault: if lost > 0 { vec![Hop::Client] } else { vec![] },
            session: Some(r.session.clone()),
            at: window.opened,
            until: window.recovered.or(window.initialize),
            others: window.trigger_call.into_iter().chain(window.lost.iter().copied()).collect(),
            summary,
            evidence,
            ..Claim::default()
        });
    }
}

/// Windows that the order of requests alone shows, in logs without session ids.
fn by_pattern(world: &World, claims: &mut Claims<'_>) {
    for (p, window) in patterns(world) {
        let evidence = vec![
            at_line(p.refused.place, "refused, status 404"),
            at_line(p.initialize.place, "answered 200, and 202 after it: the client re-initialises"),
        ];
        let took = duration(p.initialize.answered.since(p.refused.answered).max(0));
        claims.claim(Claim {
            severity: Severity::Low,
            confidence: if p.is_loose { Confidence::Possible } else { Confidence::Probable },
            session: window.new_session.clone(),
            at: window.opened,
            until: window.recovered.or(window.initialize),
            others: window.trigger_call.into_iter().collect(),
            summary: format!(
                "a request was refused with 404 and a new session begun {took} later; the log names no session ids."
            ),
            evidence,
            ..Claim::default()
        });
        claims.windows.push(window);
    }
}
