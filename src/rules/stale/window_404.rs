//! `stale/404-window`

use super::pairing::{Identity, REINIT_UNKNOWN_NS};
use super::pattern::patterns;
use super::sessions::refused_how;
use super::stranded::{Begun, LATE_NS};
use super::windows::Story;
use crate::join::World;
use crate::join::patterns::Pattern;
use crate::join::unlogged::is_unlogged;
use crate::model::place::Hop;
use crate::model::report::{CallKey, Confidence, Severity, Window};
use crate::rules::Rule;
use crate::rules::claim::{Claim, Claims, at_line, at_mark, at_request, duration};
use crate::rules::orphaned::unsent::culprits;
use rustc_hash::FxHashMap;

/// See the module's name.
pub static RULE: Rule = Rule {
    name: "stale/404-window",
    says: "an old session id got 404 and the client re-initialised: the window, its cause, the calls lost in it",
    faults: &[Hop::Client, Hop::Proxy, Hop::Server],
    doc: "\
A session ends without the client's knowledge (restart, idle eviction, another replica). Its next request gets 404, and \
the client starts a new session, as it must. Calls that were refused and not sent again, or issued meanwhile and never \
sent, are lost: that is the client's fault. Where nothing was lost the window is of low severity and nobody's fault.

Evidence: the refusal, the `initialize` after it, and the calls of the new session. Of a server that writes no access \
lines, its words on the session that it refused; whose the next new session is they say only where no other began.

Looks like it and is legal: 404 before any session (a wrong path), OAuth discovery, DELETE answered 404, GET answered \
405, 404 with -32601 (unknown method, 2026-07-28), an edge's own 404 while a backend restarts.

Cannot tell: which client re-initialised, where address and user agent of the handshake differ: confidence is lower then.

What to do: send refused calls again after re-initialising; keep sessions over restarts, or run stateless.",
    check,
};

fn check(world: &World, claims: &mut Claims<'_>) {
    let stories = claims.stories();
    in_words(world, claims, &stories);
    by_pattern(world, claims, stories.iter().filter(|s| s.window.is_some()).count());
    for story in stories.iter() {
        let (Some(window), Some(init)) =
            (story.window.clone(), story.initialize.and_then(|v| world.visits.get(v as usize)))
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
        evidence.extend(first.head.map(|h| at_mark(first, h, refused_how(first))));
        evidence.push(at_request(init, "the client re-initialises"));
        let lost = window.lost.len();
        let took = duration(init.asked.since(first.answered()).max(0));
        let summary = match lost {
            0 if !window.shows_lost => format!(
                "a stale session id was refused; the client re-initialised {took} later. What it had asked for, and \
                 whether it did again, the log does not tell."
            ),
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
            confidence: confidence(world, story, &window),
            fault: fault(world, story, &window),
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

/// Refusals of which a server's words alone tell, where more than one session began about then: who went on is not
/// told, and that the session was refused is.
fn in_words(world: &World, claims: &mut Claims<'_>, stories: &[Story]) {
    let begun = Begun::by_unknown(world);
    for r in stories.iter().filter(|s| s.initialize.is_none()).map(|s| &s.refused) {
        let get = |v: Option<&u32>| v.and_then(|v| world.visits.get(*v as usize));
        let (Some(first), Some(last)) = (get(r.refusals.first()), get(r.refusals.last())) else { continue };
        // Where nobody began anew, `stale/stranded` speaks of it.
        if !is_unlogged(first) || begun.after(first.asked, last.answered().plus_ns(LATE_NS)) == 0 {
            continue;
        }
        let began = match begun.after(first.asked, first.asked.plus_ns(REINIT_UNKNOWN_NS)) {
            0 => "no session began".to_owned(),
            1 => "one session began".to_owned(),
            n => format!("{n} sessions began"),
        };
        claims.claim(Claim {
            severity: Severity::Low,
            confidence: Confidence::Possible,
            session: Some(r.session.clone()),
            at: Some(first.answered()),
            until: Some(last.answered()),
            summary: format!(
                "the server says that it refused an unknown session id; {began} within {} of it, and its log does not \
                 tell by whom.",
                duration(REINIT_UNKNOWN_NS)
            ),
            evidence: vec![at_line(first.place, refused_how(first))],
            ..Claim::default()
        });
    }
}

/// Who lost the calls: the client, which did not send them again, or what kept them from the inputs.
fn fault(world: &World, story: &Story, window: &Window) -> Vec<Hop> {
    // A turn of another replica, whose line is missing or on another clock, may have answered them.
    if may_be_a_turn(world, story) {
        return vec![];
    }
    let of_call = |key: &CallKey| {
        let joint = world.calls.get(world.calls.binary_search_by_key(key, |j| j.key).ok()?)?;
        let alone = joint.client.filter(|_| joint.hops.is_empty() && joint.lines.is_empty());
        Some(alone.and_then(|c| world.coverage(c)).map_or_else(|| vec![Hop::Client], |c| culprits(&c)))
    };
    // The fewest that one of them can be laid to.
    window.lost.iter().filter_map(of_call).min_by_key(Vec::len).unwrap_or_default()
}

/// Is the window told by lines, of a session that replicas may have answered by turns?
fn may_be_a_turn(world: &World, story: &Story) -> bool {
    let first = story.refused.refusals.first().and_then(|v| world.visits.get(*v as usize));
    story.takes_turns && first.is_some_and(|v| !v.place.is_frame)
}

/// That calls were lost is no surer than that the logs would have shown them.
fn confidence(world: &World, story: &Story, window: &Window) -> Confidence {
    // A request that is taken for an `initialize`, and of which no log says what session it began.
    let first = story.refused.refusals.first().and_then(|v| world.visits.get(*v as usize));
    let by_line = first.is_some_and(|v| !v.place.is_frame);
    // So does one that cannot say what came of a call that the client made in it; a server's words tell nothing of who
    // asked.
    let is_open = window.new_session.is_none() || story.has_unknown && window.lost.is_empty();
    // Where replicas take turns, a line that is missing makes of a turn the end.
    if by_line && is_open || may_be_a_turn(world, story) || first.is_some_and(is_unlogged) {
        return Confidence::Possible;
    }
    let known = match story.identity {
        Identity::Unsure => return Confidence::Possible,
        Identity::Same if story.refused.was_known => Confidence::Certain,
        // An id that nobody was ever given, and somebody else who begins.
        Identity::Differs if by_line && !story.refused.was_known => return Confidence::Possible,
        _ => Confidence::Probable,
    };
    let sure = |key: &CallKey| {
        // Calls are in the order of their keys.
        let joint = world.calls.get(world.calls.binary_search_by_key(key, |j| j.key).ok()?)?;
        let alone = joint.client.filter(|_| joint.hops.is_empty() && joint.lines.is_empty());
        // That it was not sent again is said by packets, or by the client's record of itself, and not by one log.
        let is_shown = joint.client.is_some()
            || joint.hops.first().and_then(|h| world.visit_of(*h)).is_some_and(|v| v.place.is_frame);
        let refused = if is_shown { Confidence::Certain } else { Confidence::Possible };
        Some(alone.and_then(|c| world.coverage(c)).map_or(refused, |c| c.confidence))
    };
    window.lost.iter().filter_map(sure).max().map_or(known, |c| c.min(known))
}

/// Windows that the order of requests alone shows, in logs without session ids. Those of a log whose clock
/// fits no other's may be the ones that others tell of, and are told where there are more.
fn by_pattern(world: &World, claims: &mut Claims<'_>, told: usize) {
    let found = claims.in_order();
    let patterns = patterns(world, &found.windows, &claims.told());
    let input = |p: &Pattern| p.refused.source;
    let is_apart = |p: &Pattern| !world.logs.is_aligned(input(p));
    let told = told + patterns.iter().filter(|(p, _)| !is_apart(p)).count();
    let mut own: FxHashMap<u32, usize> = FxHashMap::default();
    patterns.iter().for_each(|(p, _)| *own.entry(input(p)).or_default() += 1);
    for (p, window) in patterns {
        if is_apart(p) && own.get(&input(p)).is_some_and(|n| *n <= told) {
            continue;
        }
        let evidence = vec![
            at_line(p.refused.place, "refused, status 404"),
            at_line(p.initialize.place, "answered 200, and 202 after it: the client re-initialises"),
        ];
        let took = duration(p.initialize.answered.since(p.refused.answered).max(0));
        claims.claim(Claim {
            severity: Severity::Low,
            confidence: match p.is_loose || !p.refused.is_timed() {
                true => Confidence::Possible,
                false => Confidence::Probable,
            },
            at: window.opened,
            until: window.recovered.or(window.initialize),
            others: window.trigger_call.into_iter().collect(),
            summary: match p.refused.is_timed() {
                true => format!(
                    "a request was refused with 404 and a new session begun {took} later; the log names no session ids."
                ),
                false => {
                    "a request was refused with 404 and a new session begun after it, as far as the order of lines \
                          tells; the log names neither session ids nor times."
                        .into()
                }
            },
            evidence,
            ..Claim::default()
        });
        claims.windows.push(window);
    }
}
