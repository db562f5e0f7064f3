//! What the server's log adds to findings: the line that rules the server out, and, for a batch with
//! crossed payloads, what it shows for each call.

use super::claim::duration;
use crate::join::World;
use crate::join::calls::JointCall;
use crate::join::handlers::{Handled, ServerLog};
use crate::join::sources::file_of;
use crate::model::place::Hop;
use crate::model::record::{LogEvent, LogEventKind};
use crate::model::report::{Evidence, Finding};
use crate::model::time::Time;

/// Calls of a batch that are told one by one.
const TOLD: usize = 6;
/// Neighbours of a call: those this long before and after it, ns.
const AROUND_NS: i64 = 60_000_000_000;
/// The server's troubles count this long before and after a finding, ns.
const MARGIN_NS: i64 = 1_000_000_000;

/// Completes findings by what the server's logs show.
pub fn complete(world: &World, findings: &mut [Finding]) {
    let logs = ServerLog::all(world);
    if logs.is_empty() {
        return;
    }
    let latencies = latencies(world);
    for f in findings {
        if f.rule.starts_with("crossed/") {
            let said: Vec<String> = logs.iter().filter_map(|l| batch(world, l, f)).collect();
            for text in said {
                f.shown = if f.shown.is_empty() { text } else { format!("{}; {text}", f.shown) };
            }
        }
        if f.cleared.contains(&Hop::Server) {
            let lines: Vec<Evidence> = logs.iter().filter_map(|l| cleared(world, l, f, &latencies)).collect();
            f.evidence.extend(lines);
        }
    }
}

fn joint(world: &World, key: crate::model::report::CallKey) -> Option<&JointCall> {
    world.calls.get((key.0 as usize).checked_sub(1)?)
}

/// `server log: journal_append id 3 done after 600 ms; entity_update id 3 done after 900 ms`.
fn batch(world: &World, log: &ServerLog<'_>, f: &Finding) -> Option<String> {
    let victim = joint(world, f.victim?)?;
    // Without packets the client's record knows best when its calls were open.
    let front = victim.hops.first().filter(|c| world.visit_of(**c).is_some_and(|v| v.place.is_frame));
    let keys = world.batch_of(*front.or(victim.client.as_ref()).or(victim.hops.first())?);
    // The owner may have been asked, and forgotten, before.
    let mut calls: Vec<&JointCall> = keys.iter().filter_map(|c| world.joint(*c)).collect();
    let owner = f.owner.and_then(|k| joint(world, k));
    calls.splice(0..0, owner.filter(|o| calls.iter().all(|c| c.key != o.key)));
    let handled: Vec<Option<Handled<'_>>> = calls.iter().map(|j| log.handled(world, j)).collect();
    if handled.iter().all(Option::is_none) {
        return None;
    }
    let told = calls.iter().zip(&handled).take(TOLD);
    let mut parts: Vec<String> = told.map(|(j, h)| format!("{} {}", name(world, j), fate(h.as_ref()))).collect();
    if calls.len() > TOLD {
        parts.push(format!("and {} more", calls.len() - TOLD));
    }
    Some(format!("server log: {}", parts.join(", ")))
}

fn name(world: &World, j: &JointCall) -> String {
    let rpc = j.hops.first().or(j.client.as_ref()).and_then(|c| world.rpc_of(*c));
    let tool = rpc.and_then(|r| r.tool.as_deref().or(r.method.as_deref())).unwrap_or("call");
    rpc.and_then(|r| r.id.as_ref()).map_or_else(|| tool.to_owned(), |id| format!("{tool} id {id}"))
}

fn fate(h: Option<&Handled<'_>>) -> String {
    let Some(h) = h else { return "not in it".into() };
    if h.ambiguous {
        return "begun, its end not told from another call's".into();
    }
    let Some(end) = h.ended else { return "begun, no end logged".into() };
    let word = match end.kind {
        LogEventKind::Finished => "done",
        LogEventKind::Cancelled => "cancelled",
        _ => "failed",
    };
    match took(h) {
        Some(ns) => format!("{word} after {}", duration(ns)),
        None => word.into(),
    }
}

fn took(h: &Handled<'_>) -> Option<i64> {
    let end = h.ended?;
    end.duration_ns.or(Some(end.when?.at.since(h.began.when?.at)))
}

/// Why the server can be ruled out, as a person would write it; none where the log does not cover the
/// time.
fn cleared(world: &World, log: &ServerLog<'_>, f: &Finding, latencies: &[(Time, i64, u32)]) -> Option<Evidence> {
    let from = f.at?;
    let until = f.until.unwrap_or(from).max(from);
    let covers = world.input_start.get(&log.input).is_some_and(|t| *t <= from)
        && world.input_end.get(&log.input).is_some_and(|t| *t >= until)
        && !world.gapped_inputs.contains(&file_of(log.input));
    if !covers {
        return None;
    }
    let troubled = trouble(log, from, until);
    let begin = if troubled.is_err() { "the server's log of the time" } else { "rules the server out" };
    let mut parts = vec![up_since(log, from), troubled.unwrap_or_else(|said| said)];
    let own = f.calls.iter().filter_map(|k| joint(world, *k)).next();
    let handled = own.and_then(|j| Some((j, log.handled(world, j)?)));
    if let Some((j, h)) = &handled {
        parts.push(format!("its handler of {} began {} and {}", name(world, j), clock(h.began), ending(h)));
    }
    parts.extend(neighbours(latencies, f, from, until));
    let cited = handled.map(|(_, h)| h.ended.unwrap_or(h.began));
    Some(Evidence {
        input: Some(file_of(log.input)),
        frame: None,
        line: cited.and_then(|e| e.place.as_line()),
        offset: None,
        cursor: cited.and_then(|e| e.cursor.as_deref()).map(str::to_owned),
        text: Some(format!("{begin}: {}", parts.join("; "))),
        filter: None,
    })
}

fn ending(h: &Handled<'_>) -> String {
    if h.ambiguous || h.ended.is_none() { "no end of it can be told".into() } else { format!("was {}", fate(Some(h))) }
}

fn clock(e: &LogEvent) -> String {
    e.when.map_or_else(|| "at an unknown time".into(), |w| w.at.clock())
}

/// `up since 19:38:40 (trailhead.service)`.
fn up_since(log: &ServerLog<'_>, from: Time) -> String {
    match log.started(from.plus_ns(log.error_ns)) {
        Some((t, e)) => {
            let unit = e.unit.as_deref().map_or(String::new(), |u| format!(" ({u})"));
            format!("up since {}{unit}", t.clock())
        }
        None => "up since before its log begins".into(),
    }
}

/// `no restart, crash or traceback from 19:38:46 to 19:38:52`; an error that says what there was.
fn trouble(log: &ServerLog<'_>, from: Time, until: Time) -> Result<String, String> {
    use LogEventKind as K;
    let slack = MARGIN_NS + log.error_ns;
    let (mut restarts, mut crashes, mut errors, mut first) = (0u64, 0u64, 0u64, None);
    for (_, e) in log.between(from.plus_ns(-slack), until.plus_ns(slack)) {
        let count = match e.kind {
            K::ServerStopping | K::ServerStopped | K::UnitStopping | K::UnitStopped | K::UnitRestart => &mut restarts,
            K::UnitFailed | K::SessionCrashed => &mut crashes,
            K::Error => &mut errors,
            _ => continue,
        };
        *count += 1;
        first = first.or(e.place.as_line());
    }
    let (begin, end) = (from.clock(), until.clock());
    let span = if begin == end { format!("around {begin}") } else { format!("from {begin} to {end}") };
    if restarts + crashes + errors == 0 {
        return Ok(format!("no restart, crash or traceback {span}"));
    }
    let at = first.map_or(String::new(), |n| format!(", the first in line {n}"));
    let counted = [(restarts, "of stopping or restarting"), (crashes, "of crashing"), (errors, "of errors")];
    let some: Vec<String> = counted.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
    Err(format!("but lines {span}: {}{at}", some.join(", ")))
}

/// When calls were asked, how long their answers took, and which they are.
fn latencies(world: &World) -> Vec<(Time, i64, u32)> {
    let took = |j: &JointCall| {
        let c = *j.hops.first()?;
        let (call, visit) = (world.hop_call(c)?, world.visit_of(c)?);
        let ns = world.replied(c).map(|m| m.at.since(call.asked)).or(visit.duration_ns)?;
        visit.status.is_some_and(|s| s < 400).then_some((call.asked, ns, j.key.0))
    };
    let mut all: Vec<(Time, i64, u32)> = world.calls.iter().filter_map(took).collect();
    all.sort_unstable();
    all
}

/// `14 other calls around it took 2 ms to 1.3 s`.
fn neighbours(latencies: &[(Time, i64, u32)], f: &Finding, from: Time, until: Time) -> Option<String> {
    let start = latencies.partition_point(|(t, _, _)| *t < from.plus_ns(-AROUND_NS));
    let around = latencies.get(start..)?.iter().take_while(|(t, _, _)| *t <= until.plus_ns(AROUND_NS));
    let others: Vec<i64> =
        around.filter(|(_, _, key)| !f.calls.iter().any(|c| c.0 == *key)).map(|(_, ns, _)| *ns).collect();
    let (least, most) = (others.iter().min()?, others.iter().max()?);
    Some(match others.len() {
        1 => format!("one other call around it was answered after {}", duration(*most)),
        n => format!("{n} other calls around it were answered after {} to {}", duration(*least), duration(*most)),
    })
}
