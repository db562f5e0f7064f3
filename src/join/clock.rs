//! What must be added to a log's times to put them on the reference clock.
//!
//! Exact keys decide where there are any (a session's creation, a call's session and id); else the
//! offset at which most of the log's requests meet one of the reference's, if no other offset does
//! nearly as well.

use super::attach::says_given;
use super::drift::{self, Offset};
use crate::mcp::Visit;
use crate::model::id::SessionId;
use crate::model::place::{InputId, Vantage};
use crate::model::time::Time;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;
use std::collections::hash_map::Entry;
use std::hash::{Hash, Hasher};

/// One moment of a source that another may have seen too.
#[derive(Clone, Debug)]
pub struct Tick {
    /// Which source.
    pub input: InputId,
    /// When.
    pub at: Time,
    /// How exactly that is known, ns.
    pub error_ns: i64,
    /// What it is, as far as both can know.
    pub key: u64,
    /// Nothing else of this source can have the key, and why; none: others can.
    pub exact: Option<Exact>,
    /// Hash of the session that it is of, or that it began; 0: not known.
    pub whose: u64,
}

impl Tick {
    /// A moment of a visit.
    fn of(v: &Visit, at: Time, key: u64, exact: Option<Exact>) -> Tick {
        Tick { input: v.input, at, error_ns: v.at.error_ns, key, exact, whose: whose(v) }
    }

    /// Are both known to be of a session, and not of one?
    fn is_of_another(&self, other: &Tick) -> bool {
        self.whose != 0 && other.whose != 0 && self.whose != other.whose
    }
}

/// Why a key is exact. What is exact for one reason is measured in one way, so that its moments differ
/// less from each other than from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Exact {
    /// A request id header.
    Request,
    /// The client's own id of a tool use.
    ToolUse,
    /// Session and JSON-RPC id of a call.
    Call,
    /// Tool and arguments of a call.
    Arguments,
    /// A session's creation.
    Created,
    /// Place in a list of requests that both saw, and which list.
    Sequence(u64),
}

/// A key of any parts.
pub fn key(parts: impl Hash) -> u64 {
    let mut h = rustc_hash::FxHasher::default();
    parts.hash(&mut h);
    h.finish()
}

/// A session's creation.
pub fn created(input: InputId, session: &SessionId, at: Time, error_ns: i64) -> Tick {
    Tick { input, at, error_ns, key: key(("created", session)), exact: Some(Exact::Created), whose: key(session) }
}

/// The ticks of a visit: its response head by method and status, with and without its session, and
/// what is exact about it.
pub fn ticks(v: &Visit, out: &mut Vec<Tick>) {
    if !v.at.is_known() {
        return;
    }
    let head = v.answered();
    // A client's record has no head: its end is nearest to it.
    let answered = v.head.or(v.ended).map_or(v.asked, |m| m.at);
    if let (true, Some(s)) = (v.carries("initialize"), &v.given) {
        out.push(created(v.input, s, answered, v.at.error_ns));
    }
    if let Some(id) = &v.request_id {
        out.push(Tick::of(v, v.asked, key(("request", id)), Some(Exact::Request)));
    }
    for r in v.requests() {
        let mut exact = |why, key| out.push(Tick::of(v, v.asked, key, Some(why)));
        if let Some(id) = &r.tool_use_id {
            exact(Exact::ToolUse, key(("tool use", id)));
        }
        if let (Some(tool), true) = (&r.tool, r.arguments() != 0) {
            exact(Exact::Arguments, key(("arguments", tool, r.arguments())));
        }
        if let (Some(s), Some(id)) = (&v.session, &r.id) {
            exact(Exact::Call, key(("call", s, id, &r.method, &r.tool)));
        }
        // Without sessions the names of the calls in their order still make a pattern.
        if let (Some(id), Some(method)) = (&r.id, &r.method) {
            out.push(Tick::of(v, v.asked, key(("named", id, method, &r.tool)), None));
        }
    }
    if let (Some(method), Some(status)) = (&v.method, v.status) {
        out.push(Tick::of(v, head, key(("http", method, status)), None));
        if let Some(s) = &v.session {
            out.push(Tick::of(v, head, key(("http", method, status, s)), None));
        }
    }
}

/// Hash of the session that a request is of, or began.
fn whose(v: &Visit) -> u64 {
    let given = v.given.as_ref().filter(|_| says_given(v));
    v.session.as_ref().or(given).map_or(0, key)
}

/// What a source's requests are in order, where it shows all of them: the k-th of n on one port of the
/// client, the k-th of n of a session. Equal counts pair them one by one.
pub fn sequences(visits: &[&Visit], out: &mut Vec<Tick>) {
    let mut lists: FxHashMap<u64, Vec<&Visit>> = FxHashMap::default();
    for v in visits.iter().filter(|v| v.is_post() && v.requests().next().is_some() && v.at.is_known()) {
        // Where one has a request more, the times of most still fit.
        let loose = [Some(key("asked")), v.session.as_ref().map(|s| key(("asked", s)))];
        out.extend(loose.into_iter().flatten().map(|key| Tick::of(v, v.asked, key, None)));
        // A line that does not say how long it took may be of the end, which a client's record has too.
        let is_one_time = v.vantage == Vantage::Client || v.duration_ns.is_none() && !v.place.is_frame;
        if let Some(over) = v.ended.filter(|_| is_one_time) {
            out.push(Tick::of(v, over.at, key("over"), None));
        }
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
            out.push(Tick::of(v, v.asked, key((name, n, k)), Some(Exact::Sequence(name))));
        }
    }
}

/// Sources of the reference that can have seen the same moment.
const SOURCES: usize = 16;
/// Moments of one kind that suffice by themselves.
const SEVERAL: usize = 3;
/// Requests paired by their order alone differ by no more than this, ns.
const STEADY_NS: i64 = 2_000_000_000;
/// Pairs looked at for a pattern.
const PAIRS: usize = 4_000_000;
/// Ticks of one key that are compared with each other.
const SAME: usize = 1500;
/// Exchanges that must meet before a pattern counts.
const ENOUGH: usize = 5;
/// Width of a bin, ns.
const BIN_NS: i64 = 250_000_000;
/// Width of a bin where both know their times that well, ns: requests that follow each other closely fit at
/// many offsets by the wide one, and at one by this.
const FINE_NS: i64 = 25_000_000;

/// The offset that brings `log` onto `reference`; none: nothing to align it by.
pub fn offset(reference: &[Tick], log: &[Tick]) -> Option<Offset> {
    let keys = (&by_key(reference), &by_key(log));
    let by_pattern = |bin_ns| by_pattern(reference, log, keys, bin_ns);
    exact(keys).or_else(|| by_pattern(FINE_NS)).or_else(|| by_pattern(BIN_NS))
}

/// The pattern of when requests were asked, or that of when they were over: whichever more of them meet by. A log
/// that has one time for each may have either.
fn by_pattern(reference: &[Tick], log: &[Tick], (a, b): Keys<'_>, bin_ns: i64) -> Option<Offset> {
    let (asked, over) = (key("asked"), key("over"));
    let has_over = b.contains_key(&over) && a.contains_key(&over);
    let by = |without: u64| pattern(reference, log, (a, b), without, bin_ns);
    let of_ends = if has_over { by(asked) } else { None };
    let found = [by(over), of_ends].into_iter().flatten();
    found.max_by_key(|(most, offset)| (*most, -offset.error_ns)).map(|(_, offset)| offset)
}

type ByKey<'a> = FxHashMap<u64, Vec<&'a Tick>>;
/// Of the reference, and of the log.
type Keys<'a> = (&'a ByKey<'a>, &'a ByKey<'a>);

fn by_key(ticks: &[Tick]) -> ByKey<'_> {
    let mut out = ByKey::default();
    for t in ticks {
        out.entry(t.key).or_default().push(t);
    }
    out
}

/// Moments that one reason gives, and how exactly they are known.
#[derive(Default)]
struct Moments {
    all: Vec<(Time, i64)>,
    error_ns: i64,
}

impl Moments {
    fn add(&mut self, other: Moments) {
        self.all.extend(other.all);
        self.error_ns = self.error_ns.max(other.error_ns);
    }

    fn fit(self) -> Option<Offset> {
        drift::fit(self.all, self.error_ns)
    }
}

fn exact((a, b): Keys<'_>) -> Option<Offset> {
    let mut found: BTreeMap<Exact, Moments> = BTreeMap::new();
    for (key, mine) in b {
        // The same id can be used again; only what each source has once is exact.
        let Some(theirs) = a.get(key) else { continue };
        let again = theirs.iter().enumerate().any(|(n, t)| theirs.iter().take(n).any(|o| o.input == t.input));
        let (Some(x), [y], false) = (theirs.first(), mine.as_slice(), again || theirs.len() > SOURCES) else {
            continue;
        };
        let Some(why) = y.exact.filter(|_| !y.is_of_another(x)) else { continue };
        let error_ns = x.error_ns.max(y.error_ns);
        found.entry(why).or_default().add(Moments { all: vec![(y.at, x.at.since(y.at))], error_ns });
    }
    let (lists, keys): (Vec<_>, Vec<_>) = found.into_iter().partition(|(why, _)| matches!(why, Exact::Sequence(_)));
    let several = keys.iter().any(|(_, m)| m.all.len() >= SEVERAL);
    if several {
        // What is measured in one way tells the clock best; other ways would only add their differences.
        let enough = keys.into_iter().filter(|(_, m)| m.all.len() >= SEVERAL);
        return enough.filter_map(|(_, m)| m.fit()).min_by_key(|o| o.error_ns);
    }
    let mut all = Moments::default();
    keys.into_iter().for_each(|(_, m)| all.add(m));
    // A list that lost one request and gained another has equal counts and pairs nothing rightly.
    let (mut sure, mut short) = (Moments::default(), Moments::default());
    for (_, list) in lists {
        let steady = drift::fit(list.all.clone(), list.error_ns).is_some_and(|o| o.error_ns <= STEADY_NS);
        match (list.all.len() >= SEVERAL, steady || list.error_ns > STEADY_NS) {
            (true, true) => sure.add(list),
            (false, true) => short.add(list),
            _ => {}
        }
    }
    all.add(if sure.all.is_empty() { short } else { sure });
    all.fit()
}

/// The offset at which most meet, and how many; of keys but `without`.
fn pattern(reference: &[Tick], log: &[Tick], (a, b): Keys<'_>, without: u64, bin_ns: i64) -> Option<(usize, Offset)> {
    let b: Vec<(&u64, &Vec<&Tick>)> = b.iter().filter(|(key, _)| **key != without).collect();
    let is_fine = bin_ns < BIN_NS;
    let mut bins: FxHashMap<i64, Vec<(Time, i64)>> = FxHashMap::default();
    let (mut pairs, mut error) = (0, 0);
    for (key, mine) in &b {
        let Some(theirs) = a.get(key) else { continue };
        for y in mine.iter().take(SAME) {
            error = error.max(y.error_ns);
            if is_fine && error > bin_ns {
                return None;
            }
            for x in theirs.iter().take(SAME).filter(|x| !y.is_of_another(x)) {
                let delta = x.at.since(y.at);
                bins.entry(delta.div_euclid(bin_ns)).or_default().push((y.at, delta));
                pairs += 1;
            }
            if pairs > PAIRS {
                return None;
            }
        }
    }
    let wide = (error / bin_ns).clamp(1, 8);
    let counts = meeting(&bins, wide);
    // Of equals, the one nearest to "no offset".
    let (best, most) = counts.iter().copied().max_by_key(|(b, count)| (*count, -b.abs()))?;
    let far = counts.iter().filter(|(b, _)| (b - best).abs() > 2 * wide);
    let rival = far.map(|(_, count)| *count).max().unwrap_or(0);
    // Two clocks are more often right than off by just so much; what is told finely needs no such belief.
    let near_zero = !is_fine && best.abs() <= wide + 1;
    if most < ENOUGH && !(near_zero && most >= fewest(reference, log)) || !near_zero && rival * 10 >= most * 8 {
        return None;
    }
    let near: Vec<(Time, i64)> = (best - wide..=best + wide).filter_map(|b| bins.get(&b)).flatten().copied().collect();
    let rough = drift::fit(densest(near, bin_ns.max(error)), error)?;
    let within = rough.error_ns.max(bin_ns);
    let near: Vec<(Time, i64)> =
        b.iter().filter_map(|(key, mine)| Some(nearest(&rough, within, mine, a.get(key)?))).flatten().collect();
    Some((most, drift::fit(near, error).filter(|o| o.error_ns < BIN_NS).unwrap_or(rough)))
}

/// Of each bin how many meet in it and the `wide` ones on either side, in order. An exchange counts once on either side,
/// however many keys it has and whatever it is near to.
fn meeting(bins: &FxHashMap<i64, Vec<(Time, i64)>>, wide: i64) -> Vec<(i64, usize)> {
    let mut all: Vec<(i64, &[(Time, i64)])> = bins.iter().map(|(bin, pairs)| (*bin, pairs.as_slice())).collect();
    all.sort_unstable_by_key(|(bin, _)| *bin);
    // Bins come in at one end and go out at the other, so that no pair is looked at for each bin that it is near.
    let (mut mine, mut theirs): (FxHashMap<i64, u32>, FxHashMap<i64, u32>) = Default::default();
    let (mut coming, mut going) = (all.iter().peekable(), all.iter().peekable());
    let count = |(bin, _): &(i64, &[(Time, i64)])| {
        while let Some((_, pairs)) = coming.next_if(|(b, _)| *b <= bin + wide) {
            for (at, delta) in *pairs {
                *mine.entry(at.ns()).or_default() += 1;
                *theirs.entry(at.plus_ns(*delta).ns()).or_default() += 1;
            }
        }
        while let Some((_, pairs)) = going.next_if(|(b, _)| *b < bin - wide) {
            for (at, delta) in *pairs {
                leave(&mut mine, at.ns());
                leave(&mut theirs, at.plus_ns(*delta).ns());
            }
        }
        (*bin, mine.len().min(theirs.len()))
    };
    all.iter().map(count).collect()
}

fn leave(counts: &mut FxHashMap<i64, u32>, key: i64) {
    if let Entry::Occupied(mut n) = counts.entry(key) {
        *n.get_mut() -= 1;
        if *n.get() == 0 {
            n.remove();
        }
    }
}

/// Of pairs near the best offset, those within `width` of each other that are about the most exchanges:
/// requests that follow closely make wrong pairs on either side of the right ones.
fn densest(mut near: Vec<(Time, i64)>, width: i64) -> Vec<(Time, i64)> {
    near.sort_unstable_by_key(|(at, delta)| (*delta, *at));
    let (mut best, mut from) = (0..0, 0);
    let mut inside: FxHashMap<Time, usize> = FxHashMap::default();
    let (mut most, mut spread) = (0, i64::MAX);
    for (to, (at, delta)) in near.iter().enumerate() {
        *inside.entry(*at).or_default() += 1;
        while let Some((first, _)) = near.get(from).filter(|(_, least)| delta - least > width) {
            if let Some(n) = inside.get_mut(first) {
                *n -= 1;
                if *n == 0 {
                    inside.remove(first);
                }
            }
            from += 1;
        }
        let wide = near.get(from).map_or(0, |(_, least)| delta - least);
        if inside.len() > most || inside.len() == most && wide < spread {
            (most, spread, best) = (inside.len(), wide, from..to + 1);
        }
    }
    near.get(best).map(<[_]>::to_vec).unwrap_or_default()
}

/// How many exchanges must meet where the clocks seem to agree: two, or one if a source has no more.
fn fewest(reference: &[Tick], log: &[Tick]) -> usize {
    let moments = |ticks: &[Tick]| ticks.iter().map(|t| t.at).collect::<FxHashSet<Time>>().len();
    moments(reference).min(moments(log)).min(2)
}

/// For each moment of a log the nearest of the reference's, once it is about on its clock.
fn nearest(rough: &Offset, within: i64, mine: &[&Tick], theirs: &[&Tick]) -> Vec<(Time, i64)> {
    let mut times: Vec<Time> = theirs.iter().map(|t| t.at).collect();
    times.sort_unstable();
    let near = |t: &&Tick| {
        let at = rough.apply(t.at);
        let from = times.partition_point(|x| *x < at);
        let around = times.get(from.saturating_sub(1)..times.len().min(from + 1))?;
        let x = around.iter().min_by_key(|x| x.since(at).abs())?;
        (x.since(at).abs() <= within).then(|| (t.at, x.since(t.at)))
    };
    mine.iter().filter_map(near).collect()
}

/// Puts all times of a visit on the reference clock, which is known as well as the offset is.
pub fn shift(v: &mut Visit, offset: &Offset) {
    if !v.at.is_known() {
        return;
    }
    v.at.error_ns = v.at.error_ns.saturating_add(offset.error_ns);
    if offset.is_none() {
        return;
    }
    v.at.at = offset.apply(v.at.at);
    v.asked = offset.apply(v.asked);
    for mark in [&mut v.head, &mut v.ended, &mut v.client_closed].into_iter().flatten() {
        mark.at = offset.apply(mark.at);
    }
    for ask in &mut v.asks {
        ask.last.at = offset.apply(ask.last.at);
    }
    for r in &mut v.replies {
        r.first.at = offset.apply(r.first.at);
        r.last.at = offset.apply(r.last.at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tick(at_ms: i64, key: u64, exact: bool) -> Tick {
        let exact = exact.then_some(Exact::Call);
        Tick { input: 0, at: Time::from_ns(at_ms * 1_000_000, 3), error_ns: 1_000_000, key, exact, whose: 0 }
    }

    proptest! {
        #[test]
        fn what_meets_is_counted_as_if_each_bin_were_counted_by_itself(
            pairs in prop::collection::vec((-6i64..6, 0i64..5, 0i64..5), 0..40),
            wide in 1i64..4,
        ) {
            let mut bins: FxHashMap<i64, Vec<(Time, i64)>> = FxHashMap::default();
            for (bin, at, delta) in &pairs {
                bins.entry(*bin).or_default().push((Time::from_ns(*at, 9), *delta));
            }
            let mut want: Vec<(i64, usize)> = bins.keys().map(|bin| {
                let near = || pairs.iter().filter(|(b, ..)| (b - bin).abs() <= wide);
                let mine: FxHashSet<i64> = near().map(|(_, at, _)| *at).collect();
                let theirs: FxHashSet<i64> = near().map(|(_, at, delta)| at + delta).collect();
                (*bin, mine.len().min(theirs.len()))
            }).collect();
            want.sort_unstable();
            prop_assert_eq!(meeting(&bins, wide), want);
        }
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
