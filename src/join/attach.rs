//! Lines of access logs to the exchanges that other vantage points saw: by session, port, method
//! and status where both have them, and by time within what each can know; one to one.

use super::drift::Offset;
use crate::mcp::Visit;
use crate::model::place::{InputId, Vantage};
use rustc_hash::{FxHashMap, FxHashSet};

/// Slack beyond what both sides' resolutions explain, ns.
const SLACK_NS: i64 = 300_000_000;
/// Exchanges looked at for one line.
const NEAREST: usize = 64;

/// For each visit of `logs` the visit of `known` that it is the same exchange as.
pub fn attach(visits: &[Visit], known: &[u32], logs: &[u32], offset: Option<Offset>) -> FxHashMap<u32, u32> {
    let error = offset.map_or(0, |o| o.error_ns);
    let indices = [Index::new(visits, known, start), Index::new(visits, known, head), Index::new(visits, known, end)];
    let mut pairs: Vec<(u8, i64, u32, u32)> = vec![];
    for &l in logs {
        let Some(line) = visits.get(l as usize) else { continue };
        if line.at.error_ns > i64::MAX / 8 {
            continue;
        }
        let slack = line.at.error_ns.max(error) + SLACK_NS;
        let mut near: Vec<(u8, i64, u32)> = vec![];
        // A line that knows its start is found by it; else its time is that of the head or the end.
        let (which, at) = match line.duration_ns {
            Some(_) => (indices.get(..1), line.asked.ns()),
            None => (indices.get(..), head(line).unwrap_or(line.asked.ns())),
        };
        for k in which.into_iter().flatten().flat_map(|i| i.within(at, slack)) {
            if let Some((rank, distance)) = visits.get(k as usize).and_then(|seen| fit(line, seen, slack)) {
                near.push((rank, distance, k));
            }
        }
        near.sort_unstable();
        near.dedup();
        pairs.extend(near.into_iter().take(NEAREST).map(|(rank, distance, k)| (rank, distance, l, k)));
    }
    pairs.sort_unstable();
    let (mut out, mut used) = (FxHashMap::default(), FxHashSet::default());
    for (_, _, l, k) in pairs {
        if !out.contains_key(&l) && used.insert(k) {
            out.insert(l, k);
        }
    }
    out
}

fn start(v: &Visit) -> Option<i64> {
    Some(v.at.at.ns())
}

fn head(v: &Visit) -> Option<i64> {
    v.head.map(|m| m.at.ns())
}

fn end(v: &Visit) -> Option<i64> {
    v.ended.map(|m| m.at.ns())
}

/// Exchanges by one of their times.
struct Index(Vec<(i64, u32)>);

impl Index {
    fn new(visits: &[Visit], known: &[u32], time: fn(&Visit) -> Option<i64>) -> Index {
        let timed = known.iter().filter_map(|v| Some((time(visits.get(*v as usize)?)?, *v)));
        let mut all: Vec<(i64, u32)> = timed.collect();
        all.sort_unstable();
        Index(all)
    }

    /// Those within `slack` of a time, nearest times first on either side, at most [`NEAREST`] each.
    fn within(&self, at: i64, slack: i64) -> impl Iterator<Item = u32> + '_ {
        let middle = self.0.partition_point(|(t, _)| *t < at);
        let before = self.0.get(..middle).unwrap_or_default().iter().rev();
        let after = self.0.get(middle..).unwrap_or_default().iter();
        let before = before.take_while(move |(t, _)| at - t <= slack).take(NEAREST);
        let after = after.take_while(move |(t, _)| t - at <= slack).take(NEAREST);
        before.chain(after).map(|(_, v)| *v)
    }
}

/// How well a line and an exchange fit (less is better), if they can be the same.
fn fit(line: &Visit, seen: &Visit, slack: i64) -> Option<(u8, i64)> {
    if line.method.is_some() && differ(&line.method, &seen.method) || differ(&line.session, &seen.session) {
        return None;
    }
    // 499 is the proxy's own note that its client left.
    if line.status != Some(499) && differ(&line.status, &seen.status) {
        return None;
    }
    // An exchange without a session that a log knows one for is `initialize` or none of ours.
    if line.vantage == Vantage::Proxy
        && line.session.is_some()
        && seen.session.is_none()
        && seen.has_request
        && !seen.request_gap
    {
        return None;
    }
    let port = match (line.port, seen.port, line.peer == seen.peer) {
        (Some(a), Some(b), true) if a == b => 0,
        (Some(_), Some(_), true) => 2,
        _ => 1,
    };
    if line.request_id.is_some() && line.request_id == seen.request_id {
        return Some((0, 0));
    }
    let distance = distance(line, seen);
    (distance <= slack)
        .then_some((if line.session.is_some() && line.session == seen.session { port } else { port + 3 }, distance))
}

fn differ<T: PartialEq>(a: &Option<T>, b: &Option<T>) -> bool {
    matches!((a, b), (Some(x), Some(y)) if x != y)
}

/// How far apart in time they are: by starts, or by the line's time and the response's head or end.
fn distance(line: &Visit, seen: &Visit) -> i64 {
    let starts = line.asked.since(seen.at.at).abs().min(line.asked.since(seen.asked).abs());
    if line.duration_ns.is_some() {
        return starts;
    }
    let at = line.head.map_or(line.asked, |h| h.at);
    let heads = seen.head.map(|h| at.since(h.at).abs());
    let ends = seen.ended.map(|e| at.since(e.at).abs());
    [Some(starts), heads, ends].into_iter().flatten().min().unwrap_or(starts)
}

/// Visits of one input, by time.
pub fn of_input(visits: &[Visit], input: InputId, vantage: Vantage) -> Vec<u32> {
    let mut out: Vec<u32> = visits
        .iter()
        .enumerate()
        .filter(|(_, v)| v.input == input && v.vantage == vantage)
        .map(|(i, _)| i as u32)
        .collect();
    out.sort_by_key(|v| visits.get(*v as usize).map(|x| (x.asked, x.exchange)));
    out
}
