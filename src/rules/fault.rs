//! Fault by elimination: it lies between the last vantage where a thing was right and the first
//! where it was wrong. With a vantage missing it is a set, not a guess.

use crate::join::World;
use crate::join::answers::HopCallId;
use crate::model::place::Hop;

/// Who can have put a wrong reply on the way to the caller.
#[derive(Clone, Debug, Default)]
pub struct Blame {
    /// The set that remains.
    pub fault: Vec<Hop>,
    /// Who was right.
    pub cleared: Vec<Hop>,
    /// What each server-side vantage shows, for the table.
    pub shown: String,
}

/// Blames for a wrong reply to the call whose sightings are `hops` (client side first), where
/// `wrong` tells whether the reply was wrong at a hop (none: it is not known there).
pub fn wrong_reply(world: &World, hops: &[HopCallId], wrong: impl Fn(HopCallId) -> Option<bool>) -> Blame {
    let states: Vec<Option<bool>> = hops.iter().map(|c| wrong(*c)).collect();
    let last = states.iter().rposition(Option::is_some).and_then(|l| hops.get(l).copied());
    eliminate(&states, behind_proxy(world, last))
}

/// The elimination itself: `states` tells for each vantage, the client's side first, whether the reply
/// was wrong there (none: not known); `behind` whether the last one that knows lies behind every proxy.
fn eliminate(states: &[Option<bool>], behind: bool) -> Blame {
    let mut blame = Blame::default();
    let Some(last) = states.iter().rev().find_map(|s| *s) else {
        blame.fault = vec![Hop::Server, Hop::Proxy];
        return blame;
    };
    let is_right_somewhere = states.contains(&Some(false));
    let times_wrong = states.iter().filter(|s| **s == Some(true)).count();
    if last {
        // Wrong where it is seen nearest to the server.
        blame.fault.push(Hop::Server);
        if !behind {
            blame.fault.push(Hop::Proxy);
        } else if !is_right_somewhere {
            // Between this vantage and the server there is nothing that could have mixed it up.
            blame.cleared.push(Hop::Proxy);
        }
        blame.shown = match times_wrong {
            1 => "wrong on the wire".into(),
            _ => "front and back carry the same wrong reply".into(),
        };
    } else if times_wrong > 0 {
        // Right behind the proxy, wrong before it.
        blame.fault.push(Hop::Proxy);
        blame.cleared.push(Hop::Server);
        blame.shown = "right behind the proxy, wrong in front of it".into();
    }
    blame
}

/// Blames for what came out of the server's side as seen at the last of `hops`: the server alone where
/// nothing can stand between, else the proxy too.
pub fn server_side(world: &World, hops: &[HopCallId]) -> Blame {
    if behind_proxy(world, hops.last().copied()) {
        Blame { fault: vec![Hop::Server], cleared: vec![Hop::Proxy], shown: String::new() }
    } else {
        Blame { fault: vec![Hop::Server, Hop::Proxy], ..Blame::default() }
    }
}

/// Is the vantage of this call known to lie behind every proxy: it was joined to a hop in front of
/// it, or the requests there carry a proxy's marks?
pub fn behind_proxy(world: &World, hop: Option<HopCallId>) -> bool {
    hop.is_some_and(|c| world.is_behind_proxy(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where a reply can have been mixed up.
    #[derive(Clone, Copy)]
    enum Place {
        Server,
        /// By a proxy between the server and the vantage nearest to it.
        Beyond,
        /// By a proxy between this vantage and the next one towards the server.
        Behind(usize),
    }

    /// What each vantage shows of it: wrong from there to the client, right from there to the server.
    fn is_wrong_at(place: Place, vantage: usize) -> bool {
        match place {
            Place::Server | Place::Beyond => true,
            Place::Behind(n) => vantage <= n,
        }
    }

    /// Every row of `n` vantages, each of them wrong, right or not known.
    fn rows(n: u32) -> impl Iterator<Item = Vec<Option<bool>>> {
        let state = |code: usize| [None, Some(true), Some(false)][code % 3];
        (0..3usize.pow(n)).map(move |code| (0..n).map(|i| state(code / 3usize.pow(i))).collect())
    }

    /// Over every combination of vantages that are present and know: the fault is what can have been, all of it and
    /// nothing else, and the rest is cleared.
    #[test]
    fn truth_table() {
        let mut told = 0;
        for (row, behind) in (0..=4).flat_map(rows).flat_map(|row| [(row.clone(), false), (row, true)]) {
            let last = row.iter().rposition(Option::is_some);
            // Of a vantage behind every proxy it is known only if there is one.
            if behind && last.is_none() {
                continue;
            }
            let mut blame = eliminate(&row, behind);
            if last.is_some() && !row.contains(&Some(true)) {
                // Nothing is known to be wrong.
                assert!(blame.fault.is_empty() && blame.cleared.is_empty(), "{row:?} behind {behind}: {blame:?}");
                continue;
            }
            let between = (0..last.unwrap_or(0)).map(Place::Behind);
            let beyond = (!behind).then_some(Place::Beyond);
            let can_be = |place: &Place| {
                row.iter().enumerate().all(|(n, s)| s.is_none_or(|wrong| wrong == is_wrong_at(*place, n)))
            };
            let places: Vec<Place> = between.chain(beyond).chain([Place::Server]).filter(can_be).collect();
            let hop = |p: &Place| if matches!(p, Place::Server) { Hop::Server } else { Hop::Proxy };
            let mut fault: Vec<Hop> = places.iter().map(hop).collect();
            fault.sort_unstable();
            fault.dedup();
            blame.fault.sort_unstable();
            assert!(blame.cleared.iter().all(|h| !blame.fault.contains(h)), "{row:?} behind {behind}: {blame:?}");
            if places.is_empty() {
                // Wrong twice over: nobody is cleared of what one mistake does not explain.
                let is_mended = row.contains(&Some(true)) && last.and_then(|l| row.get(l)) == Some(&Some(false));
                assert!(blame.cleared.is_empty() || is_mended, "{row:?} behind {behind}: {blame:?}");
                assert!(!blame.fault.is_empty(), "{row:?} behind {behind}");
                continue;
            }
            told += 1;
            assert_eq!(blame.fault, fault, "{row:?} behind {behind}");
            let is_known = last.is_some();
            let cleared: Vec<Hop> =
                [Hop::Server, Hop::Proxy].into_iter().filter(|h| is_known && !fault.contains(h)).collect();
            assert_eq!(blame.cleared, cleared, "{row:?} behind {behind}");
        }
        assert_eq!(told, 103);
    }

    #[test]
    fn what_the_table_shows_is_what_was_seen() {
        let shown = |states: &[Option<bool>]| eliminate(states, true).shown;
        assert_eq!(shown(&[Some(true), None]), "wrong on the wire");
        assert_eq!(shown(&[Some(true), Some(true)]), "front and back carry the same wrong reply");
        assert_eq!(shown(&[Some(true), Some(false)]), "right behind the proxy, wrong in front of it");
    }
}
