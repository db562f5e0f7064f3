//! A client's own record of a call to what others saw of it.
//!
//! Session and id decide where both have them, then tool and arguments, the connection's port, and
//! time; one to one. What a client claims and nobody saw is left over, for the rules to judge.

use super::attach::beyond;
use crate::mcp::visit::{MessageHash, Rpc, Visit};
use crate::model::record::ClientOutcome;
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

/// Slack beyond the record's own resolution, ns.
const SLACK_NS: i64 = 300_000_000;
/// Slack where session and id name the call, ns: only to tell reuses of an id apart.
const EXACT_SLACK_NS: i64 = 5_000_000_000;
/// Two writers stamp the same moment this differently though their clocks agree, ns.
const JITTER_NS: i64 = 2_000_000;
/// A client and a log that say that a call took so nearly as long can be of one call, ns.
const SAME_SPAN_NS: i64 = 100_000_000;
/// If so far from it, one that fits is not in doubt for another that does not, ns.
const OTHER_SPAN_NS: i64 = 300_000_000;
/// Candidates of one record.
const NEAREST: usize = 64;

/// Something seen elsewhere that a client's record can be about.
pub struct Seen<'a> {
    /// How the caller names it.
    pub name: u32,
    /// The exchange.
    pub visit: &'a Visit,
    /// The request in it.
    pub rpc: &'a Rpc,
}

/// What a client's record is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paired {
    /// The name of what was seen.
    pub name: u32,
    /// Something else that was seen fits no worse, as far as the times are known.
    pub ambiguous: bool,
}

/// What records are about.
#[derive(Debug, Default)]
pub struct Pairing {
    /// For each client visit (by its place in `records`) what was seen of it.
    pub found: FxHashMap<usize, Paired>,
    /// Those that are about nothing seen, though something that another record is about fits as well.
    contested: Vec<usize>,
}

/// Finds what was seen of each client visit.
pub fn pair(records: &[&Visit], seen: &[Seen<'_>]) -> Pairing {
    let mut by_time: Vec<(i64, usize, bool)> =
        seen.iter().enumerate().map(|(i, s)| (s.visit.asked.ns(), i, begins(s.visit))).collect();
    // A server's line is written when headers are sent: anywhere between asking and the end.
    let written = seen.iter().enumerate().filter(|(_, s)| !begins(s.visit));
    by_time.extend(written.filter_map(|(i, s)| Some((s.visit.head?.at.ns(), i, false))));
    by_time.sort_unstable();
    let mut pairs: Vec<(u8, i64, usize, usize)> = vec![];
    for (r, record) in records.iter().enumerate() {
        if !record.at.is_known() {
            continue;
        }
        let (asked, ended) = (record.asked.ns(), record.ended.map(|e| e.at.ns()));
        let wide = record.at.error_ns + EXACT_SLACK_NS;
        let mut near: Vec<(u8, i64, usize)> = vec![];
        for around in [Some(asked), ended].into_iter().flatten() {
            let middle = by_time.partition_point(|(t, _, _)| *t < around);
            let before = by_time.get(..middle).unwrap_or_default().iter().rev().take(NEAREST);
            let after = by_time.get(middle..).unwrap_or_default().iter().take(NEAREST);
            for (t, i, begun) in before.chain(after).filter(|(t, _, _)| (t - around).abs() <= wide) {
                if let Some(s) = seen.get(*i)
                    && let Some(rank) = rank(record, s)
                {
                    // Where the beginning is known, an end that is another call's must not outweigh it.
                    let end = ended.filter(|_| !begun).map_or(i64::MAX, |e| (t - e).abs());
                    let resolution = record.at.error_ns.saturating_add(s.visit.at.error_ns);
                    let distance = beyond((t - asked).abs().min(end), resolution);
                    let slack = resolution + SLACK_NS;
                    let within = *t >= asked - slack && *t <= ended.unwrap_or(asked).max(asked) + slack;
                    if rank <= EXACT || within {
                        near.push((rank, distance, *i));
                    }
                }
            }
        }
        near.sort_unstable();
        near.dedup();
        pairs.extend(near.into_iter().map(|(rank, distance, i)| (rank, distance, r, i)));
    }
    pairs.sort_unstable();
    let (mut found, mut used) = (FxHashMap::default(), FxHashMap::default());
    for (rank, distance, r, i) in &pairs {
        if !found.contains_key(r) && !used.contains_key(i) {
            used.insert(*i, (*rank, *distance, *r));
            found.insert(*r, (*rank, *distance, *i));
        }
    }
    let resolution = |record: &Visit, i: usize| {
        record.at.error_ns.max(seen.get(i).map_or(0, |s| s.visit.at.error_ns)).saturating_add(JITTER_NS)
    };
    let fits_as_well = |(rank, distance, r, i): (u8, i64, usize, usize), (held, near, _): (u8, i64, usize)| {
        let within = |record: &&Visit| distance - near <= 2 * resolution(record, i);
        held >= rank && records.get(r).is_some_and(within)
    };
    let answered = |r: usize| records.get(r).is_some_and(|v| was_answered(v));
    // What was answered was sent: of two that fit a line as well, that one left it.
    for &(rank, distance, r, i) in pairs.iter().filter(|(_, _, r, _)| answered(*r)) {
        if let Some(holder) = used.get(&i).copied().filter(|_| !found.contains_key(&r))
            && !answered(holder.2)
            && fits_as_well((rank, distance, r, i), holder)
        {
            found.remove(&holder.2);
            found.insert(r, (rank, distance, i));
            used.insert(i, (rank, distance, r));
        }
    }
    let mut unsure: FxHashSet<usize> = FxHashSet::default();
    let mut contested: FxHashSet<usize> = FxHashSet::default();
    for (rank, distance, r, i) in pairs {
        let Some(record) = records.get(r) else { continue };
        let Some((best, least, mine)) = found.get(&r) else {
            let as_well = |u: &&(u8, i64, usize)| !answered(u.2) && fits_as_well((rank, distance, r, i), **u);
            contested.extend(used.get(&i).filter(as_well).map(|_| r));
            continue;
        };
        // What another record has by a better key is not this one's.
        let free = used.get(&i).is_none_or(|(held, _, _)| *held >= rank);
        let is_told_apart = agrees(record, seen.get(*mine)) == Some(true) && agrees(record, seen.get(i)) == Some(false);
        let as_near = rank > EXACT && rank <= *best && free && distance - least <= resolution(record, i);
        if i != *mine && as_near && !is_told_apart {
            unsure.insert(r);
        }
    }
    let paired = |(r, (_, _, i)): (&usize, &(u8, i64, usize))| {
        Some((*r, Paired { name: seen.get(*i)?.name, ambiguous: unsure.contains(r) }))
    };
    Pairing { found: found.iter().filter_map(paired).collect(), contested: contested.into_iter().collect() }
}

/// Do both say that the call took as long? None where one does not, or where they nearly do.
fn agrees(record: &Visit, seen: Option<&Seen<'_>>) -> Option<bool> {
    let (mine, theirs) = (record.ended?.at.since(record.asked), seen?.visit.duration_ns?);
    match (mine - theirs).abs() {
        ..=SAME_SPAN_NS => Some(true),
        off => (off > OTHER_SPAN_NS).then_some(false),
    }
}

/// Clients' records that none of `lines` is about, which are of one log, though one that another record has
/// fits as well.
pub fn contested(visits: &[Visit], clients: &[u32], lines: &[u32]) -> Vec<u32> {
    if clients.is_empty() {
        return vec![];
    }
    let records: Vec<&Visit> = clients.iter().filter_map(|c| visits.get(*c as usize)).collect();
    let unclaimed = pair(&records, &seen_in(visits, lines)).contested;
    unclaimed.into_iter().filter_map(|r| clients.get(r).copied()).collect()
}

fn seen_in<'a>(visits: &'a [Visit], lines: &[u32]) -> Vec<Seen<'a>> {
    lines
        .iter()
        .filter_map(|l| visits.get(*l as usize).map(|v| (*l, v)))
        .filter_map(|(l, v)| Some(Seen { name: l, visit: v, rpc: v.requests().next()? }))
        .collect()
}

/// Does a client's record say what was answered? A bare success does not: clients record such for calls
/// that never left them.
pub fn was_answered(record: &Visit) -> bool {
    let text = || record.comment.as_deref().is_some_and(|t| !t.trim().is_empty());
    record.client_outcome == Some(ClientOutcome::Ok) && (!record.replies.is_empty() || text())
}

/// Is what was `seen` of a call behind a proxy, as its client's `record` tells: on a connection that is not the
/// client's own?
pub fn beyond_proxy(record: &Visit, seen: &Visit) -> bool {
    seen.forwarded || record.port.zip(seen.port).is_some_and(|(own, other)| own != other)
}

/// Does it tell when the request was sent?
fn begins(visit: &Visit) -> bool {
    visit.place.is_frame || visit.duration_ns.is_some()
}

/// Ranks up to this are named by id, and need not be near in time.
const EXACT: u8 = 2;

/// How well a record and a thing seen fit (less is better); none: they cannot be the same.
fn rank(record: &Visit, seen: &Seen<'_>) -> Option<u8> {
    let mine = record.rpc.first()?;
    let differ = |a: &Option<Arc<str>>, b: &Option<Arc<str>>| matches!((a, b), (Some(x), Some(y)) if x != y);
    if differ(&record.session, &seen.visit.session)
        || differ(&mine.method, &seen.rpc.method)
        || differ(&mine.tool, &seen.rpc.tool)
    {
        return None;
    }
    // A record without a session was made before there was one.
    if record.session.is_some() && seen.visit.session.is_none() && seen.rpc.method.as_deref() == Some("initialize") {
        return None;
    }
    if let (Some(a), Some(b)) = (&mine.tool_use_id, &seen.rpc.tool_use_id) {
        return (a == b).then_some(0);
    }
    let status = seen.visit.status;
    let success = matches!(record.client_outcome, Some(ClientOutcome::Ok | ClientOutcome::Empty));
    if success && status.is_some_and(|s| s >= 300) || record.client_outcome.is_none() && mine.method.is_none() {
        return None;
    }
    let arguments = match (mine.arguments(), seen.rpc.arguments()) {
        (0, _) | (_, 0) => 1,
        (a, b) if a == b => 0,
        _ if mine.tool.is_some() && seen.rpc.tool.is_some() => return None,
        _ => 1,
    };
    // `initialize` is told apart in most logs, whatever else they lack.
    let method = u8::from(mine.method.is_none() || seen.rpc.method.is_none());
    let port = match (record.port, seen.visit.port) {
        (Some(a), Some(b)) if a == b => 0,
        (Some(_), Some(_)) => 2,
        _ => 1,
    };
    match (&mine.id, &seen.rpc.id) {
        (Some(a), Some(b)) if a == b && (record.session.is_some() || port == 0) => {
            Some(if port == 0 { 0 } else { 1 + arguments })
        }
        (Some(a), Some(b)) if a != b => None,
        _ if record.client_outcome == Some(ClientOutcome::Lost) && status.is_some_and(is_answer) => None,
        _ => Some(3 + port * 8 + method * 4 + arguments * 2 + u8::from(outlives(record, status))),
    }
}

/// Is this an error that its client got to see? 499 and the like are the proxy's note on one that left, and at a
/// deadline both may leave at once.
fn is_answer(status: u16) -> bool {
    status >= 400 && !matches!(status, 408 | 460 | 499 | 504 | 524)
}

/// Does the client say that it got nothing back, of a request that was answered with an error?
fn outlives(record: &Visit, status: Option<u16>) -> bool {
    let gone = matches!(record.client_outcome, Some(ClientOutcome::Lost | ClientOutcome::Aborted));
    gone && status.is_some_and(|s| s >= 400 && s != 499)
}

/// Gives log lines that say nothing of JSON-RPC what the client's record of the call says; `lines` are
/// of one log. Gives each record that named a line, with that line, and whether another fits no worse.
pub fn enrich(visits: &mut [Visit], clients: &[u32], lines: &[u32]) -> Vec<(u32, u32, bool)> {
    let given = sessions_given(visits, clients);
    let records: Vec<&Visit> = clients.iter().filter_map(|c| visits.get(*c as usize)).collect();
    let paired = pair(&records, &seen_in(visits, lines)).found;
    let found: Vec<(u32, u32, bool)> =
        paired.into_iter().filter_map(|(r, p)| Some((*clients.get(r)?, p.name, p.ambiguous))).collect();
    for &(c, l, unsure) in &found {
        let Some(client) = visits.get(c as usize).cloned() else { continue };
        // A log of request bodies says what a record of results alone leaves out.
        let asked =
            visits.get(l as usize).and_then(|v| v.rpc.first()).filter(|r| !unsure && r.arguments() != 0).cloned();
        if let (Some(asked), Some(mine)) = (asked, visits.get_mut(c as usize).and_then(|v| v.rpc.first_mut()))
            && mine.arguments() == 0
            && mine.id == asked.id
        {
            (mine.fingerprint, mine.asks) = (asked.fingerprint, asked.asks);
            (mine.values, mine.body) = (asked.values, asked.body);
        }
        let Some(line) = visits.get_mut(l as usize) else { continue };
        if line.session.is_none() && line.given.is_none() {
            line.session.clone_from(&client.session);
            if let Some(s) = given.get(&c).filter(|_| client.carries("initialize")) {
                line.given = Some(s.clone());
            }
        }
        if let (Some(mine), Some(theirs)) = (line.rpc.first_mut(), client.rpc.first())
            && mine.id.is_none()
            && mine.tool.is_none()
        {
            *mine = Rpc { hash: MessageHash::unknown(), ..theirs.clone() };
            mine.forget_body();
        }
    }
    found
}

/// The session that each `initialize` of a client was given: the next new one that it names.
pub(super) fn sessions_given(visits: &[Visit], clients: &[u32]) -> FxHashMap<u32, Arc<str>> {
    let mut order: Vec<u32> = clients.to_vec();
    order.sort_by_key(|c| visits.get(*c as usize).map(|v| (v.input, v.asked, v.place)));
    let (mut out, mut open, mut known) = (FxHashMap::default(), None, FxHashSet::default());
    for c in order {
        let Some(v) = visits.get(c as usize) else { continue };
        if v.carries("initialize") {
            open = Some(c);
        } else if let Some(s) = &v.session
            && known.insert(s.clone())
            && let Some(init) = open.take()
        {
            out.insert(init, s.clone());
        }
    }
    out
}
