//! How many independent numberings of JSON-RPC ids a session holds.
//!
//! A client numbers its requests upwards and never uses an id twice (JSON-RPC 2.0 §4, MCP "ids
//! must not have been previously used in the session"). Concurrent requests can arrive a little out of order, so
//! a chain takes an id below its greatest if that one has not been used in it.

use crate::model::id::RpcId;
use rustc_hash::FxHashSet;

/// How far below a chain's greatest id a late one may be and still belong to it.
const DISORDER: i64 = 64;
/// Most chains that are told apart.
const CHAINS: usize = 256;

/// What the ids of one session show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conversations {
    /// Least number of chains that explains the ids; none: constant, or too few to tell.
    pub count: Option<u64>,
    /// Do two of them run side by side (each goes on after the other had begun, twice)?
    pub interleaved: bool,
}

#[derive(Default)]
struct Chain {
    used: FxHashSet<i64>,
    greatest: i64,
    positions: Vec<usize>,
}

/// Looks at the numbers among the ids of a session's requests in order of time.
pub fn conversations(numbers: &[i64]) -> Conversations {
    let distinct: FxHashSet<i64> = numbers.iter().copied().collect();
    // A connector that sends the same id for every call has no numbering to count.
    if numbers.len() < 2 || distinct.len() < 2 || distinct.len() * 4 < numbers.len() {
        return Conversations { count: None, interleaved: false };
    }
    let mut chains: Vec<Chain> = vec![];
    for (position, &n) in numbers.iter().enumerate() {
        let fits = |c: &Chain| !c.used.contains(&n) && n >= c.greatest - DISORDER;
        // The chain in which it is next, else the nearest below, else one it fills a hole of.
        let rank = |c: &Chain| if n > c.greatest { n - c.greatest } else { DISORDER * 2 + c.greatest - n };
        let best = chains.iter().enumerate().filter(|(_, c)| fits(c)).min_by_key(|(_, c)| rank(c)).map(|(i, _)| i);
        let chain = match best {
            Some(i) => chains.get_mut(i),
            None if chains.len() < CHAINS => {
                chains.push(Chain { greatest: i64::MIN / 2, ..Chain::default() });
                chains.last_mut()
            }
            None => None,
        };
        if let Some(c) = chain {
            c.used.insert(n);
            c.greatest = c.greatest.max(n);
            c.positions.push(position);
        }
    }
    let interleaved = chains.iter().enumerate().any(|(i, a)| chains.iter().skip(i + 1).any(|b| alternate(a, b)));
    Conversations { count: Some(chains.len() as u64), interleaved }
}

/// Do the two take turns at least twice (a, b, a, b)?
fn alternate(a: &Chain, b: &Chain) -> bool {
    let (mut i, mut j, mut turns, mut last) = (0, 0, 0, 0u8);
    while i < a.positions.len() || j < b.positions.len() {
        let take_a = match (a.positions.get(i), b.positions.get(j)) {
            (Some(x), Some(y)) => x < y,
            (Some(_), None) => true,
            _ => false,
        };
        let now = if take_a { 1 } else { 2 };
        if now != last {
            turns += 1;
            last = now;
        }
        if take_a { i += 1 } else { j += 1 }
    }
    turns >= 4
}

/// The number of an id: integers, and the counter at the end of string ids (`"3f2a9c01-7"`, Java).
pub(super) fn number(id: &RpcId) -> Option<i64> {
    match id {
        RpcId::Int(n) => Some(*n),
        RpcId::Str(s) => {
            let digits = s.rsplit(|c: char| !c.is_ascii_digit()).next()?;
            if digits.is_empty() || digits.len() == s.len() && s.len() > 9 { None } else { digits.parse().ok() }
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(ids: &[i64]) -> Conversations {
        conversations(ids)
    }

    #[test]
    fn one_numbering_with_arrivals_out_of_order_is_one() {
        assert_eq!(of(&[1, 2, 4, 3, 6, 5, 7]), Conversations { count: Some(1), interleaved: false });
    }

    #[test]
    fn two_side_by_side_are_two() {
        let c = of(&[1, 2, 1, 2, 3, 3, 4, 4, 5, 5]);
        assert_eq!(c, Conversations { count: Some(2), interleaved: true });
    }

    #[test]
    fn one_after_the_other_is_no_side_by_side() {
        assert_eq!(of(&[1, 2, 3, 4, 1, 2, 3, 4]), Conversations { count: Some(2), interleaved: false });
    }

    #[test]
    fn a_constant_id_tells_nothing() {
        assert_eq!(of(&[1, 1, 1, 1, 1, 1, 1, 1, 1]).count, None);
        assert_eq!(of(&[0, 1, 1, 1, 1, 1, 1, 1, 1, 1]).count, None);
    }
}
