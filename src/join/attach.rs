//! Lines of access logs to the exchanges that other vantage points saw: by session, port, method
//! and status where both have them, and by time within what each can know; one to one.

use super::drift::Offset;
use crate::mcp::Visit;
use crate::model::place::{InputId, Vantage};
use rustc_hash::FxHashMap;

/// Slack beyond what both sides' resolutions explain, ns.
const SLACK_NS: i64 = 300_000_000;
/// Exchanges looked at for one line.
const NEAREST: usize = 64;
/// Two writers stamp the same moment this differently though their clocks agree, ns.
const JITTER_NS: i64 = 2_000_000;
/// Other exchanges that a line may be, at most.
const RIVALS: usize = 8;
const SECOND_NS: i64 = 1_000_000_000;

/// What a line is the same exchange as.
#[derive(Clone, Debug, Default)]
pub struct Joined {
    /// The exchange that fits best.
    pub to: u32,
    /// Others that fit no worse, as far as the times are known: the join is ambiguous.
    pub rivals: Vec<u32>,
}

/// A candidate: rank, how far apart in time, and how far their sizes differ.
type Candidate = (Fit, u32);

/// For each visit of `logs` the visit of `known` that it is the same exchange as.
pub fn attach(visits: &[Visit], known: &[u32], logs: &[u32], offset: Option<Offset>) -> FxHashMap<u32, Joined> {
    let error = offset.map_or(0, |o| o.error_ns);
    let indices = [Index::new(visits, known, start), Index::new(visits, known, head), Index::new(visits, known, end)];
    let mut pairs: Vec<(Fit, u32, u32)> = vec![];
    let mut others: FxHashMap<u32, Vec<Candidate>> = FxHashMap::default();
    for &l in logs {
        let Some(line) = visits.get(l as usize) else { continue };
        if !line.at.is_known() {
            continue;
        }
        let slack = line.at.error_ns.max(error) + SLACK_NS;
        let mut near: Vec<Candidate> = vec![];
        // A line that knows its start is found by it; else its time is that of the head or the end.
        let (which, at) = match line.duration_ns {
            Some(_) => (indices.get(..1), line.asked.ns()),
            None => (indices.get(..), head(line).unwrap_or(line.asked.ns())),
        };
        for k in which.into_iter().flatten().flat_map(|i| i.within(at, slack)) {
            if let Some(fit) = visits.get(k as usize).and_then(|seen| fit(line, seen, slack)) {
                near.push((fit, k));
            }
        }
        near.sort_unstable();
        near.dedup();
        if near.len() > 1 {
            others.insert(l, near.iter().take(RIVALS * 2).copied().collect());
        }
        pairs.extend(near.into_iter().take(NEAREST).map(|(fit, k)| (fit, l, k)));
    }
    pairs.sort_unstable();
    let (mut out, mut used): (FxHashMap<u32, (Fit, u32)>, FxHashMap<u32, u32>) = Default::default();
    for (fit, l, k) in pairs {
        if !out.contains_key(&l) && !used.contains_key(&k) {
            used.insert(k, l);
            out.insert(l, (fit, k));
        }
    }
    let join = |(l, (best, k)): (&u32, &(Fit, u32))| {
        let candidates = others.get(l).map_or(&[][..], |c| c);
        let same = |(fit, other): &Candidate| {
            *other != *k && may_be_other(visits, (*l, *best, *k), (*fit, *other), used.get(other).copied(), error)
        };
        let rivals = candidates.iter().filter(|c| same(c)).map(|(_, k)| *k).take(RIVALS).collect();
        (*l, Joined { to: *k, rivals })
    };
    out.iter().map(join).collect()
}

/// Could the line be the other exchange as well: by itself, or with the line that was joined to that one
/// in its place?
fn may_be_other(visits: &[Visit], mine: (u32, Fit, u32), other: Candidate, holder: Option<u32>, error: i64) -> bool {
    let ((l, best, k), (found, rival)) = (mine, other);
    let Some(line) = visits.get(l as usize) else { return false };
    let resolution = line.at.error_ns.max(error) + JITTER_NS;
    if (found.rank, found.size) > (best.rank, best.size) {
        return false;
    }
    let Some(held) = holder.and_then(|h| visits.get(h as usize)) else {
        return found.apart_ns - best.apart_ns <= resolution;
    };
    let (Some(here), Some(there)) = (visits.get(k as usize), visits.get(rival as usize)) else { return false };
    if in_order((line, held), (here, there)) {
        return false;
    }
    let slack = resolution + SLACK_NS;
    let (Some(now), Some(swapped)) = (fit(held, there, slack), fit(held, here, slack)) else { return false };
    let worse = found.apart_ns + swapped.apart_ns - best.apart_ns - now.apart_ns;
    (swapped.rank, swapped.size) <= (now.rank, now.size) && worse <= 2 * resolution
}

/// Do two lines stand in the order in which their exchanges were answered and ended? A writer's lines are
/// in order whatever its clock says.
fn in_order(lines: (&Visit, &Visit), seen: (&Visit, &Visit)) -> bool {
    let order = lines.0.place.number.cmp(&lines.1.place.number);
    let same = |time: fn(&Visit) -> Option<i64>| match (time(seen.0), time(seen.1)) {
        (Some(a), Some(b)) => (a - b).abs() > JITTER_NS && a.cmp(&b) == order,
        _ => false,
    };
    same(|v| head(v).or(end(v))) && same(|v| end(v).or(head(v)))
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

/// How well a line and an exchange fit; less is better, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Fit {
    /// What names both: request id, session and port.
    rank: u8,
    /// How far apart in time they are, ns.
    apart_ns: i64,
    /// Whether their sizes are equal, nearly, or not.
    size: u8,
}

/// How well a line and an exchange fit, if they can be the same.
fn fit(line: &Visit, seen: &Visit, slack: i64) -> Option<Fit> {
    if line.method.is_some() && differ(&line.method, &seen.method)
        || differ(&line.session, &seen.session)
        || says_given(line) && says_given(seen) && differ(&line.given, &seen.given)
    {
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
        return Some(Fit { rank: 0, apart_ns: 0, size: 0 });
    }
    let (starts, apart_ns) = distance(line, seen);
    let apart_ns = beyond(apart_ns, line.at.error_ns.max(seen.at.error_ns).max(slack - SLACK_NS));
    let rank = if line.session.is_some() && line.session == seen.session { port } else { port + 3 };
    (starts <= slack).then_some(Fit { rank, apart_ns, size: size(line, seen) })
}

/// Times known no better than this do not rank what they may both be, ns.
const COARSE_NS: i64 = 5_000_000;

/// How far apart two moments are beyond what their resolution explains, where that is coarse: within a
/// second of a log that has no finer times its order tells more.
pub fn beyond(apart_ns: i64, resolution_ns: i64) -> i64 {
    if resolution_ns < COARSE_NS { apart_ns } else { (apart_ns - resolution_ns).max(0) }
}

/// Does it say itself which session the answer gave? What a server says beside its lines may be of the next line.
pub(super) fn says_given(v: &Visit) -> bool {
    v.place.is_frame || v.vantage == Vantage::Proxy
}

/// A body of chunks is logged with what frames them, by some.
const FRAMING_BYTES: u64 = 64;

fn size(line: &Visit, seen: &Visit) -> u8 {
    match (line.bytes, seen.bytes) {
        (Some(a), Some(b)) if a == b => 0,
        (Some(a), Some(b)) if a.abs_diff(b) > FRAMING_BYTES => 2,
        _ => 1,
    }
}

fn differ<T: PartialEq>(a: &Option<T>, b: &Option<T>) -> bool {
    matches!((a, b), (Some(x), Some(y)) if x != y)
}

/// How far apart in time they are, ns: by starts, or by the line's time and the response's head or end;
/// and the same with the ends looked at too, where the line knows both.
fn distance(line: &Visit, seen: &Visit) -> (i64, i64) {
    let starts = line.asked.since(seen.at.at).abs().min(line.asked.since(seen.asked).abs());
    let at = line.head.map_or(line.asked, |h| h.at);
    let ends = seen.ended.map(|e| at.since(e.at).abs());
    if line.duration_ns.is_some() {
        return (starts, starts.max(ends.unwrap_or(0)));
    }
    let heads = seen.head.map(|h| at.since(h.at).abs());
    let least = [Some(starts), heads, ends].into_iter().flatten().min().unwrap_or(starts);
    (least, least)
}

/// Visits of one input, by time; within a second of a log that has no finer times, as its lines stand.
pub fn of_input(visits: &[Visit], input: InputId, vantage: Vantage) -> Vec<u32> {
    let mut out: Vec<u32> = visits
        .iter()
        .enumerate()
        .filter(|(_, v)| v.input == input && v.vantage == vantage)
        .map(|(i, _)| i as u32)
        .collect();
    let order = |v: &Visit| match v.at.error_ns < COARSE_NS {
        true => (v.asked.ns(), v.exchange),
        false => (v.asked.ns().saturating_sub(v.asked.ns().rem_euclid(SECOND_NS)), v.exchange),
    };
    out.sort_by_key(|v| visits.get(*v as usize).map(order));
    out
}
