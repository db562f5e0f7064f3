//! Which exchanges of a hop belong to one session, or, without session ids, to one client.

use crate::mcp::Visit;
use crate::model::id::SessionId;
use rustc_hash::FxHashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// Number of a session or session-less group at one hop.
pub type GroupId = u32;

/// What makes exchanges belong together at one hop.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum GroupKey {
    /// A session id. A session is never keyed by address: one handshake can come from ten.
    Session(SessionId),
    /// No session id: the client's address and user agent.
    Client(Option<IpAddr>, Option<Arc<str>>),
}

impl GroupKey {
    /// That of a visit.
    pub fn of(visit: &Visit) -> GroupKey {
        match visit.belongs_to() {
            Some(s) => GroupKey::Session(s.clone()),
            None => GroupKey::Client(visit.peer, visit.user_agent.clone()),
        }
    }
}

/// Numbers hops (answering ends) and the groups at each.
#[derive(Debug, Default)]
pub struct Groups {
    hops: FxHashMap<HopKey, u32>,
    groups: FxHashMap<(u32, GroupKey), GroupId>,
    /// Hop and key of each group.
    pub all: Vec<(u32, GroupKey)>,
    /// The answering end of each hop.
    pub servers: Vec<HopKey>,
}

/// What tells hops apart: where requests were sent, or the log that tells of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HopKey {
    /// An address and port that answers.
    Server(SocketAddr),
    /// A log, by input.
    Log(u32),
}

impl Groups {
    /// Numbers hops on from `servers`, which have the first numbers in their order.
    pub fn from(servers: &[HopKey]) -> Groups {
        let hops = servers.iter().enumerate().map(|(n, k)| (*k, u32::try_from(n).unwrap_or(u32::MAX))).collect();
        Groups { hops, servers: servers.to_vec(), ..Groups::default() }
    }

    /// Numbers the hops of `visits` in order of time: that order, and the hop of each visit.
    pub fn hops(&mut self, visits: &[Visit]) -> (Vec<u32>, Vec<u32>) {
        let mut order: Vec<u32> = (0..visits.len() as u32).collect();
        order.sort_by_key(|v| visits.get(*v as usize).map(|x| (x.asked, x.at.at, x.exchange)));
        let mut hop_of = vec![0; visits.len()];
        for &v in &order {
            if let (Some(visit), Some(slot)) = (visits.get(v as usize), hop_of.get_mut(v as usize)) {
                *slot = self.hop(visit);
            }
        }
        (order, hop_of)
    }

    /// The hop of a visit.
    pub fn hop(&mut self, visit: &Visit) -> u32 {
        let key = visit.server.map_or(HopKey::Log(visit.input), HopKey::Server);
        let next = u32::try_from(self.hops.len()).unwrap_or(u32::MAX);
        let hop = *self.hops.entry(key).or_insert(next);
        if hop == next {
            self.servers.push(key);
        }
        hop
    }

    /// The group of a visit at its hop.
    pub fn group(&mut self, hop: u32, visit: &Visit) -> GroupId {
        let key = GroupKey::of(visit);
        let next = u32::try_from(self.all.len()).unwrap_or(u32::MAX);
        let id = *self.groups.entry((hop, key.clone())).or_insert(next);
        if id == next {
            self.all.push((hop, key));
        }
        id
    }

    /// Does the group stand for a session id?
    pub fn is_session(&self, group: GroupId) -> bool {
        matches!(self.all.get(group as usize), Some((_, GroupKey::Session(_))))
    }
}
