//! Fault by elimination: it lies between the last vantage where a thing was right and the first
//! where it was wrong. With a vantage missing it is a set, not a guess.

use crate::join::World;
use crate::join::answers::HopCallId;
use crate::mcp::Visit;
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
    let Some(last) = states.iter().rposition(Option::is_some) else {
        blame.fault = vec![Hop::Server, Hop::Proxy];
        return blame;
    };
    if states.get(last) == Some(&Some(true)) {
        // Wrong where it is seen nearest to the server.
        blame.fault.push(Hop::Server);
        if behind {
            // Between this vantage and the server there is nothing that could have mixed it up.
            if states.iter().take(last).all(|s| *s != Some(false)) {
                blame.cleared.push(Hop::Proxy);
            }
        } else {
            blame.fault.push(Hop::Proxy);
        }
        blame.shown = if states.len() > 1 {
            "front and back carry the same wrong reply".into()
        } else {
            "wrong on the wire".into()
        };
    } else {
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
    let Some(call) = hop.and_then(|c| world.hop_call(c)) else { return false };
    if world.chains.depth.get(call.hop as usize).is_some_and(|d| *d > 0) {
        return true;
    }
    world.visits.get(call.visit as usize).is_some_and(|v| v.forwarded)
}

/// Is what was `seen` of a call behind a proxy, as its client's `record` tells: on a connection that is not the
/// client's own?
pub fn beyond_proxy(record: &Visit, seen: &Visit) -> bool {
    seen.forwarded || record.port.zip(seen.port).is_some_and(|(own, other)| own != other)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Vantages, whether the last known one is behind every proxy, fault, cleared.
    type Row = (&'static [Option<bool>], bool, &'static [Hop], &'static [Hop]);

    /// Every combination of what the front and the back of a proxy can show.
    #[test]
    fn truth_table() {
        use Hop::{Proxy, Server};
        const WRONG: Option<bool> = Some(true);
        const RIGHT: Option<bool> = Some(false);
        const UNKNOWN: Option<bool> = None;
        let table: &[Row] = &[
            (&[], false, &[Server, Proxy], &[]),
            (&[UNKNOWN], false, &[Server, Proxy], &[]),
            (&[UNKNOWN, UNKNOWN], true, &[Server, Proxy], &[]),
            (&[WRONG], false, &[Server, Proxy], &[]),
            (&[WRONG], true, &[Server], &[Proxy]),
            (&[WRONG, UNKNOWN], false, &[Server, Proxy], &[]),
            (&[UNKNOWN, WRONG], true, &[Server], &[Proxy]),
            (&[WRONG, WRONG], true, &[Server], &[Proxy]),
            (&[WRONG, WRONG], false, &[Server, Proxy], &[]),
            (&[WRONG, RIGHT], true, &[Proxy], &[Server]),
            (&[WRONG, RIGHT], false, &[Proxy], &[Server]),
            (&[WRONG, WRONG, RIGHT], true, &[Proxy], &[Server]),
            (&[WRONG, RIGHT, UNKNOWN], true, &[Proxy], &[Server]),
            (&[WRONG, UNKNOWN, WRONG], true, &[Server], &[Proxy]),
        ];
        for (states, behind, fault, cleared) in table {
            let blame = eliminate(states, *behind);
            assert_eq!((&blame.fault[..], &blame.cleared[..]), (*fault, *cleared), "{states:?} behind {behind}");
        }
    }
}
