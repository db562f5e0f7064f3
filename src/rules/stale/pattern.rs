//! Windows in logs that name no session, as the report tells them.

use super::sessions::calls_of;
use super::told::Told;
use crate::join::World;
use crate::join::patterns::{Found, Pattern, Patterns, Seen};
use crate::mcp::Visit;
use crate::model::place::{InputId, Vantage};
use crate::model::record::LogEventKind;
use crate::model::report::{Cause, SequenceLine, Window};
use crate::model::time::Time;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What the order of lines shows in logs without session ids, where no other input knows the sessions.
pub fn in_order(world: &World) -> Arc<Found> {
    world.past.patterns.clone().unwrap_or_else(|| of_lines(world).into())
}

/// The windows in it, as they are told.
pub fn patterns<'f>(world: &World, found: &'f [Pattern], told: &Told<'_>) -> Vec<(&'f Pattern, Window)> {
    if found.is_empty() {
        return vec![];
    }
    let refused = world.visits.iter().enumerate().filter(|(_, v)| v.status == Some(404));
    let by_exchange: FxHashMap<u64, u32> = refused.map(|(n, v)| (v.exchange, n as u32)).collect();
    let refused = |p: &Pattern| by_exchange.get(&p.refused.exchange).copied();
    found.iter().map(|p| (p, window(world, p, refused(p), told))).collect()
}

fn of_lines(world: &World) -> Found {
    if world.visits.iter().any(|v| v.vantage == Vantage::Wire || v.session.is_some() && v.vantage != Vantage::Client) {
        return Found::default();
    }
    let mut lines: Vec<_> = world.fronts().filter_map(|v| world.visits.get(v as usize)).collect();
    // Lines without times stand in the order of their file, and by no others.
    let is_timed = |v: &&Visit| v.at.is_known();
    let timed: FxHashSet<InputId> = lines.iter().filter(|v| is_timed(v)).map(|v| v.input).collect();
    lines.retain(|v| is_timed(v) || !timed.contains(&v.input));
    lines.sort_by_key(|v| (v.answered(), v.place));
    // What came after what is known among those on one clock.
    let mut patterns: BTreeMap<Option<InputId>, Patterns> = BTreeMap::new();
    for v in lines {
        let is_apart = |i: &InputId| !timed.contains(i) || !world.logs.is_aligned(*i);
        patterns.entry(Some(v.input).filter(is_apart)).or_default().line(v);
    }
    let mut out = Found::default();
    for found in patterns.into_values().map(Patterns::finish) {
        out.windows.extend(found.windows);
        out.stuck.extend(found.stuck);
    }
    out.windows.sort_by_key(|p| (p.refused.answered, p.refused.place));
    out.stuck.sort_by_key(|s| (s.refused.answered, s.refused.place));
    out
}

fn window(world: &World, p: &Pattern, refused: Option<u32>, told: &Told<'_>) -> Window {
    Window {
        stale_session: None,
        new_session: p.initialize.given.clone(),
        opened: time(&p.refused, p.refused.answered),
        initialize: time(&p.initialize, p.initialize.asked),
        recovered: p.recovered.filter(|_| p.refused.is_timed()),
        next_call: None,
        silence_s: p.silence_ns.map(|ns| (ns as f64 / 1e6).round() / 1e3),
        cause: Some(cause(p, told)),
        trigger_call: refused.and_then(|v| calls_of(world, v).first().copied()),
        lost: vec![],
        shows_lost: false,
        sequence: p.lines.iter().map(|l| line(l, p)).collect(),
    }
}

/// A time of a line, if it has any.
fn time(l: &Seen, at: Time) -> Option<Time> {
    Some(at).filter(|_| l.is_timed())
}

fn line(l: &Seen, p: &Pattern) -> SequenceLine {
    let note = match l.exchange {
        e if e == p.refused.exchange => "stale session id",
        e if e == p.initialize.exchange => "initialize",
        _ => "",
    };
    let target = l.target.as_deref().unwrap_or("?");
    let path = target.split(['?', '#']).next().unwrap_or(target);
    SequenceLine {
        at: time(l, l.answered),
        what: format!("{} {path}", l.method.as_deref().unwrap_or("?")),
        status: l.status,
        note: match l.comment.as_deref() {
            Some(comment) if comment.contains(note) => comment.to_owned(),
            Some(comment) => format!("{note}: {comment}"),
            None => note.to_owned(),
        },
        evidence: format!("line {}", l.place.number),
    }
}

/// A restart that the logs tell of between the last answer and the refusal.
fn cause(p: &Pattern, told: &Told<'_>) -> Cause {
    // A server that starts before anything was seen alive is no restart.
    let Some((alive, error_ns)) = p.alive else { return Cause::Unknown };
    let slack = error_ns.min(1_000_000_000) + 100_000_000;
    let turns = told.between(Some(alive), p.refused.answered, slack).filter(|t| t.at.plus_ns(slack) >= alive);
    let kinds: Vec<LogEventKind> = turns.map(|t| t.kind).collect();
    if is_restart(&kinds, slack) { Cause::Restart } else { Cause::Unknown }
}

/// Do these events, between an answer and a refusal, say that the server restarted? A start alone does
/// only where times are fine enough to tell that it was not before the answer.
pub fn is_restart(events: &[LogEventKind], slack_ns: i64) -> bool {
    use LogEventKind::{
        ServerStarted, ServerStopped, ServerStopping, UnitFailed, UnitRestart, UnitStarted, UnitStopped, UnitStopping,
    };
    let started = events.iter().any(|k| matches!(k, ServerStarted | UnitStarted | UnitRestart));
    let stopped =
        events.iter().any(|k| matches!(k, ServerStopped | ServerStopping | UnitStopped | UnitStopping | UnitFailed));
    stopped || started && slack_ns < 300_000_000
}
