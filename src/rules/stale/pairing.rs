//! Which handshake is that of a client that was refused.

use super::sessions::Refused;
use crate::join::World;
use crate::join::unlogged::is_unlogged;
use crate::mcp::Visit;
use crate::model::time::Time;
use rustc_hash::{FxHashMap, FxHashSet};
use std::net::IpAddr;
use std::sync::Arc;

/// A client re-initialises within this time of a refusal, ns; later it is another start.
const REINIT_NS: i64 = 600_000_000_000;
/// As above where neither address nor user agent agree.
const REINIT_STRANGER_NS: i64 = 60_000_000_000;
/// As above where nothing is known of who asked, ns: clients that begin anew do so at once.
pub const REINIT_UNKNOWN_NS: i64 = 10_000_000_000;
/// Nobody else began a session this long before and after, so that it is no chance, ns.
const ALONE_NS: i64 = 30_000_000_000;
/// A handshake that comes so soon from another address is likelier than a late one from the same, ns.
const AT_ONCE_NS: i64 = 5_000_000_000;
/// Who was seen at an address is taken for gone after this time, ns.
const GONE_NS: i64 = 86_400_000_000_000;
/// `initialize` requests looked at for one refused session.
const CANDIDATES: usize = 32;

/// Whether a handshake is that of a refused client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Identity {
    /// Connection, or address and user agent, agree; or the user agent does, and no address is known.
    Same,
    /// Address or user agent differ: one client can come from ten addresses.
    Differs,
    /// Others might be it as well, or it comes so late that it may be another start.
    Unsure,
}

/// The handshake that a refused session is given.
#[derive(Clone, Copy, Debug)]
pub struct Paired {
    /// The visit of its `initialize`.
    pub initialize: u32,
    /// How far its maker is from the refused one: on the same connection (0), of the same address and agent (1), the
    /// same agent (2), the same address (3), or neither (4).
    pub rank: u8,
    /// What that says.
    pub identity: Identity,
}

/// A handshake that may be a refused client's; the least fits best.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    kind: Kind,
    rank: u8,
    delay_ns: i64,
    refused: usize,
    initialize: u32,
    /// Address or agent differ, as far as both are known.
    differs: bool,
}

/// How a candidate comes, what is likelier first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// The same client, soon.
    Same,
    /// Another, at once, and no other about then.
    AtOnce,
    /// The same client, late.
    Late,
    /// Another, soon.
    Other,
}

/// All `initialize` requests, in order of time.
struct Handshakes<'w> {
    world: &'w World,
    all: Vec<u32>,
    by_who: FxHashMap<Who<'w>, Vec<u32>>,
    /// When each of `all` was asked.
    times: Vec<Time>,
    /// When sessions were first refused of which a server's words alone tell, in order.
    refused_in_words: Vec<Time>,
}

type Who<'w> = (Option<IpAddr>, Option<&'w Arc<str>>);

/// Gives each refused session the `initialize` that fits best: one each.
pub fn pair(world: &World, refused: &[Refused]) -> FxHashMap<usize, Paired> {
    let handshakes = Handshakes::of(world, refused);
    let mut candidates: Vec<Candidate> = vec![];
    for (i, r) in refused.iter().enumerate() {
        let mut own = handshakes.candidates(i, r);
        mark(&mut own);
        candidates.append(&mut own);
    }
    candidates.sort_unstable();
    let late: FxHashSet<usize> = candidates.iter().filter(|c| c.kind == Kind::Late).map(|c| c.refused).collect();
    let mut others: FxHashMap<usize, u32> = FxHashMap::default();
    candidates.iter().filter(|c| c.kind == Kind::Other).for_each(|c| *others.entry(c.refused).or_default() += 1);
    let (mut out, mut used) = (FxHashMap::default(), FxHashSet::default());
    for c in candidates {
        if out.contains_key(&c.refused) || !used.insert(c.initialize) {
            continue;
        }
        let is_one_of_several =
            late.contains(&c.refused) || c.kind == Kind::Other && others.get(&c.refused).is_some_and(|n| *n > 1);
        let identity = match c.kind {
            Kind::Same => Identity::Same,
            Kind::Late => Identity::Unsure,
            Kind::AtOnce | Kind::Other if !c.differs => Identity::Same,
            Kind::AtOnce | Kind::Other if is_one_of_several => Identity::Unsure,
            Kind::AtOnce | Kind::Other => Identity::Differs,
        };
        out.insert(c.refused, Paired { initialize: c.initialize, rank: c.rank, identity });
    }
    out
}

/// Marks the one of another that came at once, where no other did soon.
fn mark(own: &mut [Candidate]) {
    let mut others = own.iter_mut().filter(|c| c.kind == Kind::Other && c.delay_ns <= REINIT_STRANGER_NS);
    if let (Some(one), None) = (others.next(), others.next())
        && one.delay_ns <= AT_ONCE_NS
    {
        one.kind = Kind::AtOnce;
    }
}

impl<'w> Handshakes<'w> {
    fn of(world: &'w World, refused: &[Refused]) -> Handshakes<'w> {
        let get = |v: &u32| world.visits.get(*v as usize);
        let mut all: Vec<u32> = world.fronts().filter(|v| get(v).is_some_and(|x| x.carries("initialize"))).collect();
        all.sort_by_key(|v| get(v).map(|x| (x.asked, *v)));
        let mut by_who: FxHashMap<Who<'_>, Vec<u32>> = FxHashMap::default();
        for v in &all {
            if let Some(x) = get(v) {
                by_who.entry((x.peer, x.user_agent.as_ref())).or_default().push(*v);
            }
        }
        let first = |r: &Refused| r.refusals.first().and_then(get);
        let mut refused_in_words: Vec<Time> =
            refused.iter().filter_map(first).filter(|v| is_unlogged(v)).map(|v| v.asked).collect();
        refused_in_words.sort_unstable();
        let times = all.iter().filter_map(get).map(|x| x.asked).collect();
        Handshakes { world, all, by_who, times, refused_in_words }
    }

    /// What may have followed the first refusal of a session.
    fn candidates(&self, refused: usize, r: &Refused) -> Vec<Candidate> {
        let Some(first) = r.refusals.first().and_then(|v| self.world.visits.get(*v as usize)) else { return vec![] };
        let same = self.by_who.get(&(first.peer, first.user_agent.as_ref()));
        let mut near = same.map(|l| self.after(l, first)).unwrap_or_default();
        near.extend(self.after(&self.all, first));
        near.sort_unstable();
        near.dedup();
        let mut out = vec![];
        for initialize in near {
            let Some(x) = self.world.visits.get(initialize as usize) else { continue };
            let Some((a, b)) = r.refusals.first().and_then(|f| at_one_hop(self.world, *f, initialize)) else {
                continue;
            };
            if !same_endpoint(a, b) || x.given.as_ref() == Some(&r.session) {
                continue;
            }
            let (delay_ns, rank) = (x.asked.since(first.asked), rank(a, b));
            if let Some(kind) = self.kind(first, x, delay_ns, rank) {
                let differs = rank > 2 || rank == 2 && a.peer.is_some() && b.peer.is_some();
                out.push(Candidate { kind, rank, delay_ns, refused, initialize, differs });
            }
        }
        out
    }

    fn kind(&self, first: &Visit, initialize: &Visit, delay_ns: i64, rank: u8) -> Option<Kind> {
        if is_unlogged(first) {
            return (delay_ns <= REINIT_UNKNOWN_NS && self.is_alone(initialize.asked)).then_some(Kind::Other);
        }
        match rank {
            0 | 1 if delay_ns <= REINIT_NS => Some(Kind::Same),
            // Behind a proxy all have one address; a log says whose a request was.
            0 | 1 => (delay_ns <= GONE_NS && !first.place.is_frame && first.peer.is_some()).then_some(Kind::Late),
            2 => (delay_ns <= REINIT_NS).then_some(Kind::Other),
            _ => (delay_ns <= REINIT_STRANGER_NS).then_some(Kind::Other),
        }
    }

    /// The next of `list` after a refusal.
    fn after(&self, list: &[u32], first: &Visit) -> Vec<u32> {
        let get = |v: &u32| self.world.visits.get(*v as usize);
        let from = first.asked.plus_ns(-first.at.error_ns.min(REINIT_NS));
        let at = list.partition_point(|v| get(v).is_some_and(|x| x.asked < from));
        let later = list.get(at..).unwrap_or_default().iter().copied();
        later.filter(|v| get(v).is_some_and(|x| comes_after(x, first))).take(CANDIDATES).collect()
    }

    /// Is a session that began at `at` the only one that began about then, and behind a single refusal?
    fn is_alone(&self, at: Time) -> bool {
        let count = |times: &[Time], from: i64, to: i64| {
            let upto = times.partition_point(|t| *t <= at.plus_ns(to));
            upto.saturating_sub(times.partition_point(|t| *t < at.plus_ns(from)))
        };
        count(&self.times, -ALONE_NS, ALONE_NS) == 1 && count(&self.refused_in_words, -REINIT_UNKNOWN_NS, 0) == 1
    }
}

/// Two requests as seen at one place, the nearest to the client that saw both; where there is none, as seen nearest
/// to the client each.
fn at_one_hop(world: &World, a: u32, b: u32) -> Option<(&Visit, &Visit)> {
    let chain = |v: u32| world.chains.of.get(v as usize).and_then(|c| world.chains.all.get(*c as usize));
    let hop = |v: u32| world.hop_of.get(v as usize);
    let of_b = chain(b).map_or(&[][..], |c| c);
    let both = chain(a).into_iter().flatten().find_map(|x| Some((*x, *of_b.iter().find(|y| hop(**y) == hop(*x))?)));
    let (x, y) = both.unwrap_or((a, b));
    world.visits.get(x as usize).zip(world.visits.get(y as usize))
}

/// Did `b` come before `a`? Within one log the order of lines tells, whose times may be coarse.
pub(super) fn comes_after(a: &Visit, b: &Visit) -> bool {
    if a.input == b.input && !a.place.is_frame {
        return a.place.number > b.place.number;
    }
    a.asked >= b.asked.plus_ns(-a.at.error_ns.max(b.at.error_ns).min(REINIT_NS))
}

/// See [`Paired::rank`]. One handshake can come from ten addresses, so no rank forbids.
fn rank(a: &Visit, b: &Visit) -> u8 {
    let connection = a.stream.is_some() && a.stream == b.stream && a.input == b.input;
    let address = a.peer.is_some() && a.peer == b.peer;
    let agent = a.user_agent.is_some() && a.user_agent == b.user_agent;
    match (connection, address, agent) {
        (true, _, _) => 0,
        (_, true, true) => 1,
        (_, true, false) if a.user_agent.is_none() || b.user_agent.is_none() => 1,
        (_, false, true) => 2,
        (_, true, false) => 3,
        _ => 4,
    }
}

fn same_endpoint(a: &Visit, b: &Visit) -> bool {
    a.endpoint_path() == b.endpoint_path()
        && (a.server.map(|s| s.port()) == b.server.map(|s| s.port()) || a.server.is_none() || b.server.is_none())
}
