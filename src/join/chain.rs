//! The same exchange at several hops: in front of a proxy and behind it, found by exact keys
//! (session, message hashes, reply hashes) and by being nested in time.

use super::drift::{self, Offset};
use super::groups::{Groups, HopKey};
use crate::mcp::Visit;
use crate::model::id::SessionId;
use crate::model::place::InputId;
use crate::model::time::Time;
use rustc_hash::{FxHashMap, FxHashSet, FxHasher};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Slack in "nested in time", ns: captures on one host stamp the same moment a little differently.
const SLACK_NS: i64 = 5_000_000;
/// Candidates looked at for one visit.
const OPEN: usize = 64;

/// Exchanges joined over hops.
#[derive(Debug, Default)]
pub struct Chains {
    /// Visits of each joint exchange, the one nearest the client first.
    pub all: Vec<Vec<u32>>,
    /// Joint exchange of each visit.
    pub of: Vec<u32>,
    /// For each hop, how many proxies stand before it as far as seen (0: nearest the client).
    pub depth: Vec<u32>,
    /// Hops that are joined to another one.
    pub joined: Vec<bool>,
}

impl Chains {
    /// Makes `visit` part of the joint exchange of `of`, behind those that are in it.
    pub fn merge_into(&mut self, of: u32, visit: u32) {
        let chain = |c: &Chains, v: u32| c.of.get(v as usize).copied().filter(|c| *c != u32::MAX);
        if let (Some(a), Some(b)) = (chain(self, of), chain(self, visit))
            && a != b
        {
            merge(self, a, b);
        }
    }
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    session: Option<SessionId>,
    method: Option<Arc<str>>,
    messages: u64,
}

fn key(visit: &Visit) -> Key {
    let mut h = FxHasher::default();
    visit.rpc.iter().for_each(|r| r.sha256().hash(&mut h));
    visit.last_event_id.hash(&mut h);
    Key { session: visit.session.clone(), method: visit.method.clone(), messages: h.finish() }
}

/// How often an exchange of the one hop lay within one of the other, by hops (outer, inner).
pub type Votes = FxHashMap<(u32, u32), i64>;

/// Pairs of hops of which the first stands in front of the second.
type Before = FxHashSet<(u32, u32)>;

/// Joins visits of different hops; `order` lists them by time. `votes` are those of earlier visits, and take in
/// those of these.
pub fn chains(visits: &[Visit], hop_of: &[u32], groups: &Groups, order: &[u32], votes: &mut Votes) -> Chains {
    let hops = groups.servers.len();
    let mut keyed: FxHashMap<Key, Vec<u32>> = FxHashMap::default();
    if hops > 1 {
        for &v in order {
            if let Some(visit) = visits.get(v as usize)
                && visit.has_request
                && !visit.request_gap
            {
                keyed.entry(key(visit)).or_default().push(v);
            }
        }
    }
    let hop = |v: u32| hop_of.get(v as usize).copied().unwrap_or(0);
    vote(visits, &keyed, &hop, votes);
    let before = direction(groups, votes);
    let depth = depths(&before, hops);
    let mut joined = vec![false; hops];
    for hop in before.iter().flat_map(|(a, b)| [*a, *b]) {
        if let Some(slot) = joined.get_mut(hop as usize) {
            *slot = true;
        }
    }
    let mut out = Chains { all: vec![], of: vec![u32::MAX; visits.len()], joined, depth };
    for list in keyed.values() {
        if list.len() > 1 {
            join_list(visits, list, &hop, &before, &mut out);
        }
    }
    for &v in order {
        if out.of.get(v as usize) == Some(&u32::MAX) {
            set(&mut out, v, None);
        }
    }
    let depth = std::mem::take(&mut out.depth);
    for chain in &mut out.all {
        chain.sort_by_key(|v| (depth.get(hop(*v) as usize).copied().unwrap_or(0), *v));
    }
    out.depth = depth;
    out
}

fn set(out: &mut Chains, v: u32, chain: Option<u32>) {
    let n = chain.unwrap_or(out.all.len() as u32);
    match out.all.get_mut(n as usize) {
        Some(list) => list.push(v),
        None => out.all.push(vec![v]),
    }
    if let Some(slot) = out.of.get_mut(v as usize) {
        *slot = n;
    }
}

/// Counts which hop's exchanges lie within which other's, over exchanges that only fit one way.
fn vote(visits: &[Visit], keyed: &FxHashMap<Key, Vec<u32>>, hop: &impl Fn(u32) -> u32, votes: &mut Votes) {
    for list in keyed.values().filter(|l| l.len() > 1) {
        // Keys that a hop has twice say nothing certain about order.
        let mut once: Vec<u32> = vec![];
        for &v in list {
            if list.iter().take(OPEN).filter(|o| hop(**o) == hop(v)).count() == 1 {
                once.push(v);
            }
        }
        for &a in once.iter().take(8) {
            for &b in once.iter().take(8) {
                if hop(a) != hop(b)
                    && let (Some(x), Some(y)) = (visits.get(a as usize), visits.get(b as usize))
                    && is_around(x, y)
                    && nested(x, y)
                    && agree(x, y)
                {
                    *votes.entry((hop(a), hop(b))).or_default() += 1;
                }
            }
        }
    }
}

/// Which hop stands in front of which, by majority.
fn direction(groups: &Groups, votes: &Votes) -> Before {
    let address = |hop: u32| match groups.servers.get(hop as usize) {
        Some(HopKey::Server(address)) => Some(address),
        _ => None,
    };
    let wins = |(a, b): (u32, u32), n: i64| n > votes.get(&(b, a)).copied().unwrap_or(0);
    let fits = |(a, b): (u32, u32)| address(a).zip(address(b)).is_some_and(|(x, y)| x != y);
    votes.iter().filter(|(pair, n)| fits(**pair) && wins(**pair, **n)).map(|(pair, _)| *pair).collect()
}

/// How many hops stand before each; a cycle (which no proxy makes) ends the count.
fn depths(before: &Before, hops: usize) -> Vec<u32> {
    let mut depth = vec![0u32; hops];
    for _ in 0..before.len().min(hops) {
        for (a, b) in before {
            let next = depth.get(*a as usize).copied().unwrap_or(0) + 1;
            if let Some(d) = depth.get_mut(*b as usize).filter(|_| next <= hops as u32) {
                *d = (*d).max(next);
            }
        }
    }
    depth
}

/// Is the first exchange the one around the other? Between clocks that were aligned the way through a proxy
/// can be shorter than what is known of the offset: then the one that took longer is.
fn is_around(a: &Visit, b: &Visit) -> bool {
    let took = |v: &Visit| v.replies.first().map(|r| r.last.at.since(v.asked));
    let error = a.at.error_ns.saturating_add(b.at.error_ns);
    match (took(a), took(b)) {
        (Some(x), Some(y)) if error > 0 && b.at.at.since(a.at.at).abs() <= error => x >= y,
        _ => a.at.at <= b.at.at,
    }
}

/// Does `inner` lie within `outer` in time, as behind a proxy?
fn nested(outer: &Visit, inner: &Visit) -> bool {
    let error = outer.at.error_ns.saturating_add(inner.at.error_ns);
    inner.at.at.since(outer.at.at) >= -(SLACK_NS / 10 + error) && inner.at.at.since(outer.last_seen()) <= SLACK_NS
}

/// Does nothing that both show differ? The reply's hash and the session given must be equal where
/// both have them, but for `initialize` on a server that is asked by many: there both must.
fn agree(a: &Visit, b: &Visit) -> bool {
    if let (Some(x), Some(y)) = (&a.given, &b.given)
        && x != y
    {
        return false;
    }
    if let (Some(x), Some(y)) = (a.replies.first(), b.replies.first()) {
        return x.content() == y.content() || a.session.is_some();
    }
    a.session.is_some() || a.given.is_none() || b.given.is_none() || a.given == b.given
}

fn join_list(visits: &[Visit], list: &[u32], hop: &impl Fn(u32) -> u32, before: &Before, out: &mut Chains) {
    let related = |a: u32, b: u32| before.contains(&(a, b));
    // Front to back: each inner visit goes to the outer one that fits best and has none yet.
    let mut taken: FxHashMap<(u32, u32), ()> = FxHashMap::default();
    let mut chained: Vec<(u32, u32)> = vec![];
    for &inner in list {
        let Some(y) = visits.get(inner as usize) else { continue };
        let outer = list.iter().copied().filter(|&o| {
            o != inner
                && related(hop(o), hop(inner))
                && !taken.contains_key(&(o, hop(inner)))
                && visits.get(o as usize).is_some_and(|x| nested(x, y) && agree(x, y))
        });
        let same_reply = |o: &u32| {
            let x = visits.get(*o as usize).and_then(|x| x.replies.first());
            matches!((x, y.replies.first()), (Some(a), Some(b)) if a.sha256() == b.sha256())
        };
        let best = outer.take(OPEN).min_by_key(|o| (!same_reply(o), visits.get(*o as usize).map(|x| x.at.at)));
        if let Some(o) = best {
            taken.insert((o, hop(inner)), ());
            chained.push((o, inner));
        }
    }
    for (o, inner) in chained {
        let known = |v: u32| out.of.get(v as usize).copied().filter(|c| *c != u32::MAX);
        match (known(o), known(inner)) {
            (Some(c), None) => set(out, inner, Some(c)),
            (None, Some(c)) => set(out, o, Some(c)),
            (None, None) => {
                set(out, o, None);
                let c = out.of.get(o as usize).copied();
                set(out, inner, c);
            }
            (Some(a), Some(b)) if a != b => merge(out, a, b),
            _ => {}
        }
    }
}

fn merge(out: &mut Chains, a: u32, b: u32) {
    let moved = out.all.get_mut(b as usize).map(std::mem::take).unwrap_or_default();
    for v in &moved {
        if let Some(slot) = out.of.get_mut(*v as usize) {
            *slot = a;
        }
    }
    if let Some(list) = out.all.get_mut(a as usize) {
        list.extend(moved);
    }
}

/// What must be added to the times of each capture to put all on the clock of the first, from exchanges that both ends of a proxy saw: the way there and the way back
/// take about as long. None: nothing to align by.
pub fn capture_offsets(visits: &[Visit], inputs: &[InputId]) -> FxHashMap<InputId, Option<Offset>> {
    let mut unique: FxHashMap<Key, Vec<u32>> = FxHashMap::default();
    // One capture has nothing to be aligned with, and keys are hashes of messages.
    for (v, visit) in visits.iter().enumerate().filter(|_| inputs.len() > 1) {
        if visit.rpc.iter().any(|r| r.id.is_some()) && visit.session.is_some() && visit.has_request {
            let list = unique.entry(key(visit)).or_default();
            if list.len() < 4 {
                list.push(v as u32);
            }
        }
    }
    let mut moments: FxHashMap<InputId, Vec<(Time, i64)>> = FxHashMap::default();
    let first = inputs.first().copied().unwrap_or(0);
    for list in unique.values().filter(|l| l.len() == 2) {
        let (Some(a), Some(b)) =
            (list.first().and_then(|v| visits.get(*v as usize)), list.get(1).and_then(|v| visits.get(*v as usize)))
        else {
            continue;
        };
        if a.input == b.input || a.server == b.server {
            continue;
        }
        let (Some(ra), Some(rb)) = (a.replies.first(), b.replies.first()) else { continue };
        let (reference, other, rr, ro) = if a.input == first {
            (a, b, ra, rb)
        } else if b.input == first {
            (b, a, rb, ra)
        } else {
            continue;
        };
        let there = reference.asked.since(other.asked);
        let back = rr.last.at.since(ro.last.at);
        moments.entry(other.input).or_default().push((other.asked, there / 2 + back / 2));
    }
    let mut out = FxHashMap::default();
    for input in inputs {
        let offset = moments.remove(input).filter(|m| m.len() >= 2).and_then(|m| drift::fit(m, 0));
        out.insert(*input, if *input == first { Some(Offset::none(0)) } else { offset });
    }
    out
}
