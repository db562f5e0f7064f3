//! Sessions as rows of the report.

use crate::join::World;
use crate::join::conversations::conversations;
use crate::join::groups::GroupKey;
use crate::join::past::PEERS;
use crate::mcp::Visit;
use crate::model::place::Vantage;
use crate::model::report::{Session, SessionEnd};
use crate::rules::stale::sessions::refusal;
use rustc_hash::FxHashMap;
use std::net::IpAddr;

/// A row for each session, and for each client without one that made calls.
pub fn rows(world: &World) -> Vec<Session> {
    let mut rows: Vec<Session> = vec![];
    let mut known: FxHashMap<GroupKey, usize> = FxHashMap::default();
    let mut members: FxHashMap<usize, Vec<u32>> = FxHashMap::default();
    let client_only = world.fronts().next().is_none();
    let fronts = world.chains.all.iter().filter_map(|c| c.first().copied());
    for v in fronts {
        if !client_only && world.visits.get(v as usize).is_some_and(|x| x.vantage == Vantage::Client) {
            continue;
        }
        let (Some(visit), Some((_, key))) = (
            world.visits.get(v as usize),
            world.answers.group_of.get(v as usize).and_then(|g| world.groups.all.get(*g as usize)),
        ) else {
            continue;
        };
        // A group without an id is listed where it has calls; other HTTP traffic is no session.
        if matches!(key, GroupKey::Client(..)) && visit.requests().next().is_none() {
            continue;
        }
        let row = *known.entry(key.clone()).or_insert_with(|| {
            rows.push(blank(key));
            rows.len() - 1
        });
        members.entry(row).or_default().push(v);
    }
    for key in world.past.sessions.keys() {
        known.entry(key.clone()).or_insert_with(|| {
            rows.push(blank(key));
            rows.len() - 1
        });
    }
    for (key, n) in &known {
        if let Some(row) = rows.get_mut(*n) {
            fill(world, row, key, members.get(n).map_or(&[], |m| m));
        }
    }
    // A refused first request makes no session worth a row of its own.
    rows.retain(|r| r.session.is_some() || r.calls > 0);
    rows.sort_by_cached_key(|r| (r.started.map_or(i64::MAX, |t| t.ns()), r.session.clone(), r.peers.first().cloned()));
    rows
}

fn blank(key: &GroupKey) -> Session {
    Session {
        session: match key {
            GroupKey::Session(s) => Some(s.clone()),
            GroupKey::Client(..) => None,
        },
        revision: None,
        client: None,
        server: None,
        started: None,
        ended: None,
        end: None,
        calls: 0,
        conversations: None,
        peers: vec![],
        endpoint: None,
    }
}

fn fill(world: &World, row: &mut Session, key: &GroupKey, visits: &[u32]) {
    let mut visits: Vec<&Visit> = visits.iter().filter_map(|v| world.visits.get(*v as usize)).collect();
    visits.sort_by_key(|v| v.asked);
    let past = world.past.sessions.get(key);
    let mut peers: Vec<IpAddr> = past.map(|p| p.peers.clone()).unwrap_or_default();
    if let Some(p) = past {
        row.calls = p.calls;
        (row.started, row.ended) = (p.started, p.ended);
        (row.client, row.server, row.revision) = (p.client.clone(), p.server.clone(), p.revision.clone());
        row.endpoint = p.endpoint.clone();
    }
    let (mut deleted, mut refused) = (false, None);
    for v in &visits {
        row.started = Some(row.started.map_or(v.at.at, |t| t.min(v.at.at)));
        row.ended = Some(row.ended.map_or(v.last_seen(), |t| t.max(v.last_seen())));
        if let Some(h) = &v.handshake {
            row.client = row.client.take().or_else(|| h.client.clone());
            row.server = row.server.take().or_else(|| h.server.clone());
            row.revision = row.revision.take().or_else(|| h.revision.clone());
        }
        row.revision = row.revision.take().or_else(|| v.revision.clone());
        if let Some(ip) = v.peer
            && peers.len() < PEERS
            && !peers.contains(&ip)
        {
            peers.push(ip);
        }
        if row.endpoint.is_none() {
            row.endpoint = v.endpoint();
        }
        let ok = v.status.is_some_and(|s| s < 300);
        deleted |= v.is_delete() && ok;
        if ok && !v.is_delete() {
            refused = None;
        } else if refused.is_none() && refusal(v).is_some() {
            refused = Some(v.asked);
        }
        row.calls += v.requests().count() as u64;
    }
    // What retired came first here, whenever it was: by address the order does not depend on that.
    peers.sort_unstable();
    row.peers = peers.iter().map(ToString::to_string).collect();
    let answered = past.and_then(|p| p.answered);
    let is_stale = refused.is_some_and(|at| answered.is_none_or(|t| t < at));
    row.end = row.session.as_ref().map(|_| match (deleted, is_stale) {
        (true, _) => SessionEnd::Deleted,
        (_, true) => SessionEnd::Stale,
        _ => SessionEnd::Open,
    });
    if row.session.is_some() {
        let seen = visits.iter().flat_map(|v| v.requests().filter_map(|r| Some((v.asked, r.id.as_ref()?))));
        row.conversations = conversations(&world.past.numbers(key, seen)).count;
    }
}
