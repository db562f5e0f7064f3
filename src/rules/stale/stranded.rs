//! `stale/stranded`

use super::sessions::{Standing, refused_how};
use crate::join::World;
use crate::join::groups::GroupKey;
use crate::join::unlogged::is_unlogged;
use crate::mcp::Visit;
use crate::model::id::SessionId;
use crate::model::place::Hop;
use crate::model::report::{Confidence, Severity};
use crate::model::time::Time;
use crate::rules::Rule;
use crate::rules::claim::{Claim, Claims, at_line, at_mark, at_request, duration};
use rustc_hash::{FxHashMap, FxHashSet};

/// The input must go on for this long after a refusal before "never" can be said, ns.
const WATCHED_NS: i64 = 10_000_000_000;
/// Who begins a session later than this after a refusal, and may be anybody, is not taken for the refused client, ns.
pub(super) const LATE_NS: i64 = 600_000_000_000;

/// See the module's name.
pub static RULE: Rule = Rule {
    name: "stale/stranded",
    says: "an old session id was refused and the client never re-initialised",
    faults: &[Hop::Client],
    doc: "\
The client got 404 for its session and did not start a new one: every call fails until a person restarts it. Python, \
Go and C# clients do this.

Evidence: the refusals, and an input that goes on without an `initialize` of this client. In a log without session ids: three refusals and more of a client that had been answered, and no answer since; whose fault is not told.

Looks like it and is legal: a client that ended its session by DELETE; one that was about to end; health checks.

Cannot tell: a client that re-initialised elsewhere, or after the input ended: how long was watched is said.

What to do: upgrade or restart the client.",
    check,
};

/// A client as logs show it: address and user agent.
type Who<'a> = (Option<std::net::IpAddr>, Option<&'a str>);

/// Does a session begin here, or go on that may be the client's, since the line does not name it?
fn may_go_on(x: &Visit) -> bool {
    let nameless = !x.place.is_frame && x.session.is_none();
    x.carries("initialize") || nameless && x.is_post() && matches!(x.status, Some(200 | 202))
}

/// When sessions began of which a server's words tell, in order.
pub(super) struct Begun(Vec<Time>);

impl Begun {
    /// All of them.
    pub(super) fn by_unknown(world: &World) -> Begun {
        let all = world.fronts().filter_map(|v| world.visits.get(v as usize));
        let mut times: Vec<Time> = all.filter(|x| is_unlogged(x) && x.carries("initialize")).map(|x| x.asked).collect();
        times.sort_unstable();
        Begun(times)
    }

    /// How many began after `from` and up to `to`.
    pub(super) fn after(&self, from: Time, to: Time) -> usize {
        let upto = self.0.partition_point(|t| *t <= to);
        upto.saturating_sub(self.0.partition_point(|t| *t <= from))
    }
}

/// When each client last began a session or was answered on another, as far as can be told.
fn last_begun(world: &World) -> FxHashMap<Who<'_>, Time> {
    let mut out: FxHashMap<Who<'_>, Time> = FxHashMap::default();
    for x in world.fronts().filter_map(|v| world.visits.get(v as usize)).filter(|x| may_go_on(x)) {
        let last = out.entry((x.peer, x.user_agent.as_deref())).or_insert(x.asked);
        *last = x.asked.max(*last);
    }
    // A log that does not show which session an answer gave shows a new one when it is first used.
    for x in world.of_session.values().filter_map(|all| world.visits.get(*all.first()? as usize)) {
        if !x.place.is_frame && x.status.is_some_and(|s| s < 300) {
            let last = out.entry((x.peer, x.user_agent.as_deref())).or_insert(x.asked);
            *last = x.asked.max(*last);
        }
    }
    out
}

/// A client of a log without session ids that had been answered, and is only refused from then on.
fn by_order(world: &World, claims: &mut Claims<'_>) {
    for s in &claims.in_order().stuck {
        let end = world.input_end.get(&s.refused.source).copied().unwrap_or(s.last.answered);
        let watched = end.since(s.refused.answered);
        if watched < WATCHED_NS {
            continue;
        }
        claims.claim(Claim {
            severity: Severity::Medium,
            confidence: Confidence::Possible,
            at: Some(s.refused.answered),
            until: Some(s.last.answered),
            summary: format!(
                "a client that had been answered was refused {} times with 404, and no session began in the {} watched \
                 since; the log names no session ids, and does not tell why.",
                s.times,
                duration(watched)
            ),
            evidence: vec![at_line(s.refused.place, "refused, status 404"), at_line(s.last.place, "refused again")],
            ..Claim::default()
        });
    }
}

/// Was the client of `first` answered later by lines that name no session, and left memory since they were clean?
fn goes_on_namelessly(world: &World, first: &Visit) -> bool {
    let key = GroupKey::Client(first.peer, first.user_agent.clone());
    world.past.sessions.get(&key).and_then(|s| s.answered).is_some_and(|t| t > first.asked)
}

fn check(world: &World, claims: &mut Claims<'_>) {
    by_order(world, claims);
    let begun = last_begun(world);
    let unknown = Begun::by_unknown(world);
    // `session/replica-split` speaks of them.
    let splits = claims.splits();
    let split: FxHashSet<&SessionId> = splits.iter().map(|s| s.session).collect();
    for story in claims.stories().iter() {
        let r = &story.refused;
        // Where replicas take turns, a refusal or two more say nothing about the client.
        let turns = r.standing != Standing::Gone && r.refusals.len() < 3;
        if story.initialize.is_some() || !r.right_status || turns || split.contains(&r.session) {
            continue;
        }
        let (Some(first), Some(last)) = (
            r.refusals.first().and_then(|v| world.visits.get(*v as usize)),
            r.refusals.last().and_then(|v| world.visits.get(*v as usize)),
        ) else {
            continue;
        };
        // A log does not tell clients of one address apart: any that began anew may be this one, however late.
        let anew = if is_unlogged(first) {
            unknown.after(first.asked, last.answered().plus_ns(LATE_NS)) > 0
        } else {
            begun.get(&(first.peer, first.user_agent.as_deref())).is_some_and(|t| *t > first.asked)
                || goes_on_namelessly(world, first)
        };
        if !first.place.is_frame && anew {
            continue;
        }
        let deleted = r
            .visits
            .iter()
            .filter_map(|v| world.visits.get(*v as usize))
            .any(|v| v.is_delete() && v.asked <= last.asked);
        let end = world.input_end.get(&first.input).copied().unwrap_or(last.asked);
        let watched = end.since(last.answered());
        // The client of a session that replicas answer by turns need not begin anew after each refusal.
        let shown = r.refusals.len() >= 3 && r.standing == Standing::Gone;
        // A log may have been cut right before the client did.
        let long = first.place.is_frame || end.since(first.answered()) >= WATCHED_NS;
        if deleted || watched < WATCHED_NS && !(shown && long) {
            continue;
        }
        let mut evidence = vec![];
        for visit in r.refusals.iter().take(4).filter_map(|v| world.visits.get(*v as usize)) {
            evidence.push(at_request(visit, "request with the old session id"));
            evidence.extend(visit.head.map(|h| at_mark(visit, h, refused_how(visit))));
        }
        claims.claim(Claim {
            severity: Severity::Medium,
            // That a log has no line of it is no proof.
            confidence: if !first.place.is_frame {
                Confidence::Possible
            } else if watched >= WATCHED_NS && r.was_known {
                Confidence::Certain
            } else {
                Confidence::Probable
            },
            fault: vec![Hop::Client],
            session: Some(r.session.clone()),
            at: Some(first.answered()),
            until: Some(last.answered()),
            others: r.calls(world),
            summary: format!(
                "the session was refused {} times and the client never re-initialised in the {} watched since.",
                r.refusals.len(),
                duration(end.since(first.answered()))
            ),
            evidence,
            ..Claim::default()
        });
    }
}
