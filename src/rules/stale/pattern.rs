//! Windows in logs that name no session: the 404 → initialize → 202 → 200 pattern of one endpoint.
//!
//! Address and user agent of the handshake are preferred to agree; that they do not lowers confidence
//! and never forbids, since one handshake can come from ten addresses.

use super::sessions::answered_at;
use crate::join::World;
use crate::mcp::Visit;
use crate::model::place::Vantage;
use crate::model::record::{LogEvent, LogEventKind};
use crate::model::report::{Cause, SequenceLine, Window};
use crate::model::time::Time;
use rustc_hash::FxHashSet;

/// A client re-initialises within this time, ns.
const REINIT_NS: i64 = 60_000_000_000;
/// `notifications/initialized` follows its `initialize` within this time, ns.
const HANDSHAKE_NS: i64 = 10_000_000_000;
/// Lines looked at after a refusal.
const AHEAD: usize = 512;

/// A window that a pattern shows.
pub struct Pattern {
    /// The refusal.
    pub refused: u32,
    /// The `initialize`.
    pub initialize: u32,
    /// Address or user agent differ.
    pub stranger: bool,
    /// The window.
    pub window: Window,
}

/// Windows of all logs without session ids, where no other input knows the sessions.
pub fn patterns(world: &World) -> Vec<Pattern> {
    if world.visits.iter().any(|v| v.vantage == Vantage::Wire || v.session.is_some() && v.vantage != Vantage::Client) {
        return vec![];
    }
    let mut lines: Vec<u32> = world.fronts().collect();
    lines.retain(|v| world.visits.get(*v as usize).is_some_and(|x| x.at.error_ns < i64::MAX / 8));
    lines.sort_by_key(|v| world.visits.get(*v as usize).map(|x| (answered_at(x), x.place)));
    let mut used = FxHashSet::default();
    let mut out = vec![];
    for (i, &v) in lines.iter().enumerate() {
        let Some(refused) = world.visits.get(v as usize).filter(|x| x.status == Some(404) && !x.is_delete()) else {
            continue;
        };
        let ahead = lines.get(i + 1..).unwrap_or_default();
        let Some(init) = initialize(world, refused, ahead, &used) else { continue };
        // Further refusals before the same handshake are of the same window.
        used.insert(init);
        if let Some(p) = pattern(world, v, init, &lines) {
            out.push(p);
        }
    }
    out
}

fn initialize(world: &World, refused: &Visit, ahead: &[u32], used: &FxHashSet<u32>) -> Option<u32> {
    let mut best: Option<(u8, usize)> = None;
    for (n, v) in ahead.iter().take(AHEAD).enumerate() {
        let Some(x) = world.visits.get(*v as usize) else { continue };
        if answered_at(x).since(answered_at(refused)) > REINIT_NS {
            break;
        }
        if !x.is_post()
            || x.status != Some(200)
            || x.path() != refused.path()
            || !is_handshake(world, x, ahead.get(n + 1..).unwrap_or_default())
        {
            continue;
        }
        let rank = rank(refused, x);
        if best.is_none_or(|(r, _)| rank < r) {
            best = Some((rank, n));
        }
        if rank == 0 {
            break;
        }
    }
    best.and_then(|(_, n)| ahead.get(n)).copied().filter(|v| !used.contains(v))
}

/// Is a POST answered 200 followed by the 202 of `notifications/initialized`?
fn is_handshake(world: &World, init: &Visit, after: &[u32]) -> bool {
    if init.given.is_some() || init.carries("initialize") {
        return true;
    }
    let posts = after.iter().take(AHEAD).filter_map(|v| world.visits.get(*v as usize)).filter(|x| x.is_post());
    let mut near = posts.take_while(|x| answered_at(x).since(answered_at(init)) <= HANDSHAKE_NS);
    near.find(|x| x.path() == init.path() && rank(init, x) == 0).is_some_and(|x| x.status == Some(202))
}

fn rank(a: &Visit, b: &Visit) -> u8 {
    let differ = |x: bool, y: bool| u8::from(x) + u8::from(y);
    differ(
        matches!((a.peer, b.peer), (Some(p), Some(q)) if p != q),
        matches!((&a.user_agent, &b.user_agent), (Some(p), Some(q)) if p != q),
    )
}

fn pattern(world: &World, v: u32, init: u32, lines: &[u32]) -> Option<Pattern> {
    let (refused, initialize) = (world.visits.get(v as usize)?, world.visits.get(init as usize)?);
    let from = lines.iter().position(|x| *x == init)?;
    let mine = |x: &&Visit| rank(initialize, x) == 0 && x.path() == initialize.path();
    let after = lines.get(from + 1..)?.iter().filter_map(|x| world.visits.get(*x as usize)).filter(mine);
    let after: Vec<&Visit> = after.take(64).collect();
    let ok = |x: &&&Visit| x.is_post() && x.status == Some(200);
    let recovered = after.iter().find(ok).map(|x| answered_at(x));
    // Without methods, what follows at once belongs to the re-initialisation.
    let mut last = answered_at(initialize);
    let mut next = None;
    for x in &after {
        if answered_at(x).since(last) > 1_500_000_000 {
            next = Some(answered_at(x));
            break;
        }
        last = answered_at(x);
    }
    let start = lines.iter().position(|x| *x == v)?;
    let shown = lines.get(start.saturating_sub(2)..(from + 4).min(lines.len()))?;
    let opened = answered_at(refused);
    Some(Pattern {
        refused: v,
        initialize: init,
        stranger: rank(refused, initialize) > 0,
        window: Window {
            stale_session: None,
            new_session: initialize.given.clone(),
            opened: Some(opened),
            initialize: Some(initialize.at.at),
            recovered,
            next_call: None,
            silence_s: next.map(|n| (n.since(last) as f64 / 1e6).round() / 1e3),
            cause: Some(cause(world, lines.get(..start).unwrap_or_default(), opened)),
            trigger_call: super::sessions::calls_of(world, v).first().copied(),
            lost: vec![],
            sequence: shown
                .iter()
                .filter_map(|x| world.visits.get(*x as usize).map(|y| line(y, *x == v, *x == init)))
                .collect(),
        },
    })
}

fn line(x: &Visit, refused: bool, init: bool) -> SequenceLine {
    let note = match (refused, init) {
        (true, _) => "stale session id",
        (_, true) => "initialize",
        _ => "",
    };
    SequenceLine {
        at: answered_at(x),
        what: format!("{} {}", x.method.as_deref().unwrap_or("?"), x.path().unwrap_or("?")),
        status: x.status,
        note: match x.comment.as_deref() {
            Some(comment) if comment.contains(note) => comment.to_owned(),
            Some(comment) => format!("{note}: {comment}"),
            None => note.to_owned(),
        },
        evidence: format!("line {}", x.place.number),
    }
}

/// A restart that the logs tell of between the last answer and the refusal.
fn cause(world: &World, before: &[u32], opened: Time) -> Cause {
    let last =
        before.iter().rev().filter_map(|v| world.visits.get(*v as usize)).find(|v| v.status.is_some_and(|s| s < 300));
    // A server that starts before anything was seen alive is no restart.
    let Some((alive, slack)) = last.map(|v| (answered_at(v), v.at.error_ns.min(1_000_000_000) + 100_000_000)) else {
        return Cause::Unknown;
    };
    let within = |e: &&LogEvent| {
        e.when.is_some_and(|w| w.at <= opened.plus_ns(slack + w.error_ns) && w.at.plus_ns(slack) >= alive)
    };
    let events: Vec<LogEventKind> = world.logs.events.iter().filter(within).map(|e| e.kind).collect();
    if is_restart(&events, slack) { Cause::Restart } else { Cause::Unknown }
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
