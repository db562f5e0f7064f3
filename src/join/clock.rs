//! What must be added to a log's times to put them on the reference clock.
//!
//! Exact keys decide where there are any (a session's creation, a call's session and id); else the
//! offset at which most of the log's requests meet one of the reference's, if no other offset does
//! nearly as well.

use crate::mcp::Visit;
use crate::model::id::SessionId;
use crate::model::time::Time;
use rustc_hash::FxHashMap;
use std::hash::{Hash, Hasher};

/// An offset with its error, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offset {
    /// Added to the log's times.
    pub ns: i64,
    /// The truth lies within this of it.
    pub error_ns: i64,
}

/// One moment of a source that another may have seen too.
#[derive(Clone, Debug)]
pub struct Tick {
    /// When.
    pub at: Time,
    /// How exactly that is known, ns.
    pub error_ns: i64,
    /// What it is, as far as both can know.
    pub key: u64,
    /// Nothing else of this source can have the key.
    pub is_exact: bool,
}

/// A key of any parts.
pub fn key(parts: impl Hash) -> u64 {
    let mut h = rustc_hash::FxHasher::default();
    parts.hash(&mut h);
    h.finish()
}

/// A session's creation.
pub fn created(session: &SessionId, at: Time, error_ns: i64) -> Tick {
    Tick { at, error_ns, key: key(("created", session)), is_exact: true }
}

/// The ticks of a visit: its response head by method and status, with and without its session, and
/// what is exact about it.
pub fn ticks(v: &Visit, out: &mut Vec<Tick>) {
    if v.at.error_ns > i64::MAX / 8 {
        return;
    }
    let head = v.head.map_or(v.asked, |h| h.at);
    if let (true, Some(s)) = (v.carries("initialize"), &v.given) {
        out.push(created(s, head, v.at.error_ns));
    }
    if let Some(id) = &v.request_id {
        out.push(Tick { at: v.asked, error_ns: v.at.error_ns, key: key(("request", id)), is_exact: true });
    }
    for r in v.requests() {
        if let (Some(s), Some(id)) = (&v.session, &r.id) {
            let call = key(("call", s, id, &r.method, &r.tool));
            out.push(Tick { at: v.asked, error_ns: v.at.error_ns, key: call, is_exact: true });
        }
    }
    if let (Some(method), Some(status)) = (&v.method, v.status) {
        let loose = key(("http", method, status));
        out.push(Tick { at: head, error_ns: v.at.error_ns, key: loose, is_exact: false });
        if let Some(s) = &v.session {
            let exact = key(("http", method, status, s));
            out.push(Tick { at: head, error_ns: v.at.error_ns, key: exact, is_exact: false });
        }
    }
}

/// What a source's requests are in order, where it shows all of them: the k-th of n on one port of the
/// client, the k-th of n of a session. Equal counts pair them one by one.
pub fn sequences(visits: &[&Visit], out: &mut Vec<Tick>) {
    let mut lists: FxHashMap<u64, Vec<&Visit>> = FxHashMap::default();
    for v in visits.iter().filter(|v| v.is_post() && v.requests().next().is_some() && v.at.error_ns < i64::MAX / 8) {
        if let Some(port) = v.port {
            lists.entry(key(("port", port))).or_default().push(v);
        }
        if let Some(s) = &v.session {
            lists.entry(key(("session", s))).or_default().push(v);
        }
    }
    for (name, mut list) in lists {
        list.sort_by_key(|v| (v.asked, v.exchange));
        let n = list.len();
        for (k, v) in list.iter().enumerate() {
            out.push(Tick { at: v.asked, error_ns: v.at.error_ns, key: key((name, n, k)), is_exact: true });
        }
    }
}

/// Pairs looked at for a pattern.
const PAIRS: usize = 4_000_000;
/// Ticks of one key that are compared with each other.
const SAME: usize = 1500;
/// Exchanges that must meet before a pattern counts.
const ENOUGH: usize = 5;
/// Width of a bin, ns.
const BIN_NS: i64 = 250_000_000;

/// The offset that brings `log` onto `reference`; none: nothing to align it by.
pub fn offset(reference: &[Tick], log: &[Tick]) -> Option<Offset> {
    exact(reference, log).or_else(|| pattern(reference, log))
}

fn by_key(ticks: &[Tick]) -> FxHashMap<u64, Vec<&Tick>> {
    let mut out: FxHashMap<u64, Vec<&Tick>> = FxHashMap::default();
    for t in ticks {
        out.entry(t.key).or_default().push(t);
    }
    out
}

fn exact(reference: &[Tick], log: &[Tick]) -> Option<Offset> {
    let (a, b) = (by_key(reference), by_key(log));
    let mut deltas: Vec<i64> = vec![];
    let mut error = 0;
    for (key, mine) in &b {
        let (Some(theirs), true) = (a.get(key), mine.first().is_some_and(|t| t.is_exact)) else { continue };
        // The same id can be used again; only what both have once is exact.
        if let ([x], [y]) = (theirs.as_slice(), mine.as_slice()) {
            deltas.push(x.at.since(y.at));
            error = error.max(x.error_ns).max(y.error_ns);
        }
    }
    if deltas.is_empty() {
        return None;
    }
    deltas.sort_unstable();
    let middle = *deltas.get(deltas.len() / 2)?;
    let spread = deltas.get(deltas.len() * 9 / 10)?.saturating_sub(*deltas.get(deltas.len() / 10)?);
    Some(Offset { ns: middle, error_ns: error.max(spread) })
}

fn pattern(reference: &[Tick], log: &[Tick]) -> Option<Offset> {
    let (a, b) = (by_key(reference), by_key(log));
    let mut bins: FxHashMap<i64, Vec<i64>> = FxHashMap::default();
    let (mut pairs, mut error) = (0, 0);
    for (key, mine) in &b {
        let Some(theirs) = a.get(key) else { continue };
        for y in mine.iter().take(SAME) {
            error = error.max(y.error_ns);
            for x in theirs.iter().take(SAME) {
                let delta = x.at.since(y.at);
                bins.entry(delta.div_euclid(BIN_NS)).or_default().push(delta);
                pairs += 1;
            }
            if pairs > PAIRS {
                return None;
            }
        }
    }
    let wide = (error / BIN_NS).clamp(1, 8);
    let count = |bin: i64| (bin - wide..=bin + wide).filter_map(|b| bins.get(&b)).map(Vec::len).sum::<usize>();
    // Of equals, the one nearest to "no offset".
    let best = bins.keys().copied().max_by_key(|b| (count(*b), -b.abs()))?;
    let most = count(best);
    let rival = bins.keys().filter(|b| (**b - best).abs() > 2 * wide).map(|b| count(*b)).max().unwrap_or(0);
    let near_zero = best.abs() <= wide + 1;
    if most < ENOUGH && !(near_zero && most >= 2) || !near_zero && rival * 10 >= most * 8 {
        return None;
    }
    let mut deltas: Vec<i64> = (best - wide..=best + wide).filter_map(|b| bins.get(&b)).flatten().copied().collect();
    deltas.sort_unstable();
    let middle = *deltas.get(deltas.len() / 2)?;
    Some(Offset { ns: middle, error_ns: error.max(BIN_NS) })
}

/// Moves all times of a visit.
pub fn shift(v: &mut Visit, ns: i64) {
    if v.at.error_ns > i64::MAX / 8 {
        return;
    }
    v.at.at = v.at.at.plus_ns(ns);
    v.asked = v.asked.plus_ns(ns);
    for mark in [&mut v.head, &mut v.ended, &mut v.client_closed].into_iter().flatten() {
        mark.at = mark.at.plus_ns(ns);
    }
    for ask in &mut v.asks {
        ask.last.at = ask.last.at.plus_ns(ns);
    }
    for r in &mut v.replies {
        r.first.at = r.first.at.plus_ns(ns);
        r.last.at = r.last.at.plus_ns(ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tick(at_ms: i64, key: u64, is_exact: bool) -> Tick {
        Tick { at: Time::from_ns(at_ms * 1_000_000, 3), error_ns: 1_000_000, key, is_exact }
    }

    #[test]
    fn exact_keys_decide() {
        let reference = [tick(1000, 1, true), tick(2000, 2, true)];
        let log = [tick(3_601_000, 1, true), tick(3_602_001, 2, true)];
        assert_eq!(offset(&reference, &log).map(|o| o.ns / 1_000_000_000), Some(-3600));
    }

    #[test]
    fn a_pattern_needs_enough_and_no_rival() {
        let times = [0, 700, 2100, 2900, 7300, 9800, 15_000];
        let reference: Vec<Tick> = times.iter().map(|t| tick(*t, 7, false)).collect();
        let moved: Vec<Tick> = times.iter().map(|t| tick(*t + 3000, 7, false)).collect();
        assert_eq!(offset(&reference, &moved).map(|o| o.ns), Some(-3_000_000_000));
        let regular: Vec<Tick> = (0..50).map(|t| tick(t * 1000, 7, false)).collect();
        let moved: Vec<Tick> = (0..50).map(|t| tick(t * 1000 + 3000, 7, false)).collect();
        assert_eq!(offset(&regular, &moved).map(|o| o.ns), None);
    }
}
