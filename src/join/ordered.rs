//! Lines without any time: where another log has the same requests in the same order, and in one way only, its lines
//! say when these were.

use crate::mcp::visit::Visit;
use crate::model::exchange::Mark;
use crate::model::place::InputId;
use crate::model::record::{LogEvent, When};
use crate::model::time::Time;
use rustc_hash::{FxHashMap, FxHashSet};

/// Requests that must follow each other alike.
const ENOUGH: usize = 5;
/// Requests compared; of longer logs the order is not looked at.
const MOST: usize = 20_000;
/// Two logs of the same requests on one clock differ by less, ns.
const APART_NS: i64 = 2_000_000_000;

/// What a line says that both logs know.
type Kind<'a> = (Option<&'a str>, Option<u16>);

/// The line without a time, and the one that has its time, by their places among the visits.
type Pairs = Vec<(usize, usize)>;

/// Gives the lines of `visits` from `first` on, and the events around them, the times of the log whose order they
/// have; `source` tells whose an event is. Gives each such source, and the one that its times are of.
pub fn time(
    visits: &mut [Visit],
    first: usize,
    events: &mut [LogEvent],
    source: impl Fn(&LogEvent) -> InputId,
) -> FxHashMap<InputId, InputId> {
    let mut by_source: FxHashMap<InputId, Vec<usize>> = FxHashMap::default();
    for (n, v) in visits.iter().enumerate().skip(first) {
        by_source.entry(v.input).or_default().push(n);
    }
    let untimed = |list: &[usize]| list.iter().all(|n| visits.get(*n).is_some_and(|v| !v.at.is_known()));
    let (mut without, mut with): (Vec<_>, Vec<_>) = by_source.into_iter().partition(|(_, list)| untimed(list));
    for (_, list) in without.iter_mut().chain(&mut with) {
        list.sort_by_key(|n| visits.get(*n).map(|v| v.place));
    }
    with.retain(|(_, list)| list.iter().all(|n| visits.get(*n).is_some_and(|v| v.at.is_known())));
    with.sort_unstable();
    let mut found: Vec<(InputId, InputId, Pairs)> = vec![];
    for (input, list) in &without {
        let fits = |(other, theirs): &(InputId, Vec<usize>)| Some((*input, *other, pairs(visits, list, theirs)?));
        let mut all = with.iter().filter_map(fits);
        let Some(first) = all.next() else { continue };
        if all.all(|(_, _, pairs)| agree(visits, &first.2, &pairs)) {
            found.push(first);
        }
    }
    let mut out = FxHashMap::default();
    for (input, other, pairs) in found {
        for (mine, theirs) in &pairs {
            let Some(of) = visits.get(*theirs).cloned() else { continue };
            if let Some(v) = visits.get_mut(*mine) {
                take_time(v, &of);
            }
        }
        let lines: Vec<&Visit> = pairs.iter().filter_map(|(mine, _)| visits.get(*mine)).collect();
        events.iter_mut().filter(|e| source(e) == input).for_each(|e| e.when = placed(&lines, e));
        out.insert(input, other);
    }
    out
}

/// Do two logs say the same of when lines were?
fn agree(visits: &[Visit], a: &[(usize, usize)], b: &[(usize, usize)]) -> bool {
    let at = |n: usize| visits.get(n).map(|v| (v.answered(), v.at.error_ns));
    a.len() == b.len()
        && a.iter().zip(b).all(|((mine, x), (same, y))| {
            let near = |(x, x_error): (Time, i64), (y, y_error): (Time, i64)| {
                x.since(y).abs() <= APART_NS.saturating_add(x_error).saturating_add(y_error)
            };
            mine == same && at(*x).zip(at(*y)).is_some_and(|(x, y)| near(x, y))
        })
}

/// Which lines are the same requests, if the shorter log lies in the longer one in just one place.
fn pairs(visits: &[Visit], mine: &[usize], theirs: &[usize]) -> Option<Pairs> {
    // What a proxy answered by itself never reached the server.
    let by_itself = |n: &&usize| visits.get(**n).is_some_and(|v| matches!(v.status, Some(499 | 502..=504)));
    let reached: Vec<usize> = theirs.iter().filter(|n| !by_itself(n)).copied().collect();
    [theirs, &reached].into_iter().find_map(|theirs| pairs_of(visits, mine, theirs))
}

fn pairs_of(visits: &[Visit], mine: &[usize], theirs: &[usize]) -> Option<Pairs> {
    let kind = |n: &usize| visits.get(*n).map_or((None, None), |v| (v.method.as_deref(), v.status));
    let (short, long) = if mine.len() <= theirs.len() { (mine, theirs) } else { (theirs, mine) };
    let (a, b): (Vec<Kind<'_>>, Vec<Kind<'_>>) = (short.iter().map(kind).collect(), long.iter().map(kind).collect());
    let kinds: FxHashSet<&Kind<'_>> = a.iter().collect();
    if a.len() < ENOUGH || b.len() > MOST || kinds.len() < 2 {
        return None;
    }
    let mut places = b.windows(a.len()).enumerate().filter(|(_, part)| *part == a).map(|(at, _)| at);
    let (at, None) = (places.next()?, places.next()) else { return None };
    let along = long.get(at..at + a.len())?;
    let both = short.iter().copied().zip(along.iter().copied());
    Some(if mine.len() <= theirs.len() { both.collect() } else { both.map(|(s, l)| (l, s)).collect() })
}

/// A server answers at some time between the request and the end that a proxy saw.
fn take_time(v: &mut Visit, of: &Visit) {
    let took = of.ended.map_or(0, |e| e.at.since(of.asked).max(0));
    v.at = When { at: of.at.at, error_ns: of.at.error_ns.saturating_add(took) };
    v.asked = of.asked;
    let answered = Mark { place: v.place, at: of.answered() };
    (v.head, v.ended) = (Some(answered), Some(answered));
}

/// An event's time: its own where that agrees with its place among the lines, whose clock is another.
fn placed(lines: &[&Visit], e: &LogEvent) -> Option<When> {
    match (e.when, between(lines, e)) {
        (Some(own), Some(place)) => {
            let apart = own.at.since(place.at).abs();
            Some(if apart <= own.error_ns.saturating_add(place.error_ns) { own } else { place })
        }
        (own, place) => place.or(own),
    }
}

/// An event's time, from the lines before and behind it.
fn between(lines: &[&Visit], e: &LogEvent) -> Option<When> {
    let behind = lines.partition_point(|v| v.place.number < e.place.number);
    let (before, after) = (lines.get(behind.checked_sub(1)?)?, lines.get(behind)?);
    let half = after.answered().since(before.answered()) / 2;
    let error_ns = half.abs().saturating_add(before.at.error_ns.max(after.at.error_ns));
    Some(When { at: before.answered().plus_ns(half), error_ns })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::model::place::{Place, Vantage};

    /// Lines of these statuses, one a second, or without times.
    fn lines(input: InputId, statuses: &[u16], timed: bool) -> Vec<Visit> {
        let line = |(n, status): (usize, &u16)| {
            let at = if timed { Time::from_ns(n as i64 * 1_000_000_000, 3) } else { Time::from_ns(0, 0) };
            let error_ns = if timed { 1_000_000 } else { i64::MAX / 4 };
            let place = Place::line(input, n as u64 + 1);
            let v = Visit::new(n as u64, place, Vantage::Proxy, When { at, error_ns });
            Visit { status: Some(*status), method: Some("POST".into()), ..v }
        };
        statuses.iter().enumerate().map(line).collect()
    }

    fn timed(untimed: &[u16], timed: &[u16]) -> Vec<Option<i64>> {
        let mut visits = [lines(0, untimed, false), lines(1, timed, true)].concat();
        let found = time(&mut visits, 0, &mut [], |e| e.place.input);
        let mine = visits.iter().take(untimed.len());
        let times: Vec<Option<i64>> = mine.map(|v| v.at.is_known().then(|| v.at.at.ns() / 1_000_000_000)).collect();
        assert_eq!(found.contains_key(&0), times.iter().any(Option::is_some));
        times
    }

    #[test]
    fn an_order_that_fits_in_one_way_only_tells_the_times() {
        let run = [200, 202, 200, 404, 200, 202];
        assert_eq!(timed(&run, &run), [0, 1, 2, 3, 4, 5].map(Some));
        assert_eq!(timed(&run, &[200, 200, 202, 200, 404, 200, 202, 200]), [1, 2, 3, 4, 5, 6].map(Some));
        assert_eq!(
            timed(&[404, 200, 202, 200, 404, 200, 202], &run),
            [None, Some(0), Some(1), Some(2), Some(3), Some(4), Some(5)]
        );
        // the proxy's own answers are no lines of the server's
        assert_eq!(timed(&run, &[200, 202, 200, 502, 404, 499, 200, 202]), [0, 1, 2, 4, 6, 7].map(Some));
    }

    #[test]
    fn two_logs_that_disagree_tell_nothing() {
        let run = [200, 202, 200, 404, 200, 202];
        for (later_s, told) in [(1, true), (90, false)] {
            let mut other = lines(2, &run, true);
            for v in &mut other {
                v.asked = v.asked.plus_ns(later_s * 1_000_000_000);
            }
            let mut visits = [lines(0, &run, false), lines(1, &run, true), other].concat();
            assert_eq!(time(&mut visits, 0, &mut [], |e| e.place.input).contains_key(&0), told, "{later_s}");
        }
    }

    #[test]
    fn an_order_that_says_little_tells_nothing() {
        for (mine, theirs) in [
            // too few; all alike; in two places; not the same
            (&[200, 202, 404, 200][..], &[200, 202, 404, 200][..]),
            (&[200, 200, 200, 200, 200], &[200, 200, 200, 200, 200]),
            (&[200, 202, 200, 202, 200], &[200, 202, 200, 202, 200, 202, 200]),
            (&[200, 202, 200, 404, 200], &[200, 202, 200, 200, 404]),
        ] {
            assert!(timed(mine, theirs).iter().all(Option::is_none), "{mine:?} {theirs:?}");
        }
    }
}
