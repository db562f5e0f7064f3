//! Windows in logs that name no session: the 404 → initialize → 202 → 200 pattern of one endpoint, found line
//! by line, with memory for what is open alone.
//!
//! A client is an address and user agent. The handshake of the refused client itself is taken first; where it
//! has none, that of another client soon after, since one handshake can come from ten addresses: that lowers
//! confidence and never forbids.

use crate::mcp::Visit;
use crate::model::id::SessionId;
use crate::model::place::{InputId, Place};
use crate::model::record::When;
use crate::model::time::Time;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::hash::{Hash, Hasher};
use std::net::IpAddr;
use std::sync::Arc;

/// A client re-initialises within this time, ns: after it, only one that did nothing else meanwhile is believed.
const REINIT_NS: i64 = 60_000_000_000;
/// And within this time in any case, ns.
const GONE_NS: i64 = 86_400_000_000_000;
/// `notifications/initialized` follows its `initialize` within this time, ns.
const HANDSHAKE_NS: i64 = 10_000_000_000;
/// Without methods, what follows within this time belongs to the re-initialisation, ns.
const SET_UP_NS: i64 = 1_500_000_000;
/// Handshakes of other clients looked at for one refusal.
const AHEAD: usize = 512;
/// Lines of a client looked at after its handshake.
const FOLLOWED: u32 = 64;
/// Lines of a client shown before the refusal, between it and the handshake, and behind that.
const SHOWN: (usize, usize, usize) = (2, 32, 3);

/// A line as a window shows it.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The visit it was made of.
    pub exchange: u64,
    /// Whose line it is.
    pub source: InputId,
    /// Where it stands.
    pub place: Place,
    /// When the request began, as far as the line tells.
    pub asked: Time,
    /// When it was answered.
    pub answered: Time,
    /// How exact that is, ns.
    pub error_ns: i64,
    /// Method.
    pub method: Option<Arc<str>>,
    /// Request target.
    pub target: Option<Arc<str>>,
    /// Status.
    pub status: Option<u16>,
    /// A person's note.
    pub comment: Option<Arc<str>>,
    /// Session of the response.
    pub given: Option<SessionId>,
}

/// A window that a pattern shows.
#[derive(Clone, Debug)]
pub struct Pattern {
    /// The refusal.
    pub refused: Seen,
    /// The `initialize`.
    pub initialize: Seen,
    /// Address or user agent differ, or the parts of the pattern are far apart in time.
    pub is_loose: bool,
    /// The last success of anybody before the refusal, and how exact its time is, ns.
    pub alive: Option<(Time, i64)>,
    /// The first answered request after it.
    pub recovered: Option<Time>,
    /// How long the client was silent after re-initialising, ns.
    pub silence_ns: Option<i64>,
    /// Lines of the client around it, in order.
    pub lines: Vec<Seen>,
}

/// Finds patterns in lines in order of time.
#[derive(Default)]
pub struct Patterns {
    by_name: FxHashMap<u64, Vec<u32>>,
    clients: Vec<Client>,
    /// Refusals younger than [`REINIT_NS`], by client.
    waiting: VecDeque<(Time, u32)>,
    /// Handshakes that nobody was found for yet, as young.
    handshakes: VecDeque<Handshake>,
    alive: Option<(Time, i64)>,
    /// A provisional one is taken back when the refused client comes itself.
    found: Vec<Option<Pattern>>,
}

struct Client {
    peer: Option<IpAddr>,
    agent: Option<Arc<str>>,
    path: Arc<str>,
    recent: VecDeque<Seen>,
    refusal: Option<Box<Refusal>>,
    candidate: Option<Box<Candidate>>,
    followed: Option<Followed>,
}

/// A client that was refused and has not begun anew.
#[derive(Clone)]
struct Refusal {
    refused: Seen,
    alive: Option<(Time, i64)>,
    lines: Vec<Seen>,
    /// Nothing of the client succeeded since.
    is_stuck: bool,
    /// What another client's handshake made of it.
    provisional: Option<usize>,
}

/// A POST answered 200 that may be an `initialize`, and the lines of its client since.
struct Candidate {
    initialize: Seen,
    since: Vec<Seen>,
}

struct Handshake {
    client: u32,
    initialize: Seen,
    since: Vec<Seen>,
}

/// The window whose client is watched on.
struct Followed {
    pattern: usize,
    last: Time,
    left: u32,
}

/// What is looked at of a line.
#[derive(Clone, Copy)]
pub(super) struct Look<'a> {
    pub exchange: u64,
    pub source: InputId,
    pub place: Place,
    /// When the request began.
    pub at: When,
    pub answered: Time,
    pub peer: Option<IpAddr>,
    pub agent: Option<&'a Arc<str>>,
    pub path: &'a str,
    pub method: Option<&'a Arc<str>>,
    pub target: Option<&'a Arc<str>>,
    pub status: Option<u16>,
    pub comment: Option<&'a Arc<str>>,
    pub given: Option<&'a SessionId>,
    /// It is known to be an `initialize`.
    pub initializes: bool,
}

impl<'a> Look<'a> {
    pub(super) fn of(v: &'a Visit) -> Look<'a> {
        Look {
            exchange: v.exchange,
            source: v.input,
            place: v.place,
            at: v.at,
            answered: v.answered(),
            peer: v.peer,
            agent: v.user_agent.as_ref(),
            path: v.endpoint_path().unwrap_or_default(),
            method: v.method.as_ref(),
            target: v.target.as_ref(),
            status: v.status,
            comment: v.comment.as_ref(),
            given: v.given.as_ref(),
            initializes: v.carries("initialize"),
        }
    }

    pub(super) fn is_post(&self) -> bool {
        self.method.is_some_and(|m| &**m == "POST")
    }
}

impl Seen {
    fn of(v: &Look<'_>) -> Seen {
        Seen {
            exchange: v.exchange,
            source: v.source,
            place: v.place,
            asked: v.at.at,
            answered: v.answered,
            error_ns: v.at.error_ns,
            method: v.method.cloned(),
            target: v.target.cloned(),
            status: v.status,
            comment: v.comment.cloned(),
            given: v.given.cloned(),
        }
    }

    fn is_post(&self) -> bool {
        self.method.as_deref() == Some("POST")
    }
}

impl Patterns {
    /// Takes the next line.
    pub fn line(&mut self, visit: &Visit) {
        self.look(&Look::of(visit));
    }

    /// Takes the next line; gives the number of its client.
    pub(super) fn look(&mut self, visit: &Look<'_>) -> u32 {
        let seen = Seen::of(visit);
        self.expire(seen.answered);
        let n = self.client(visit);
        self.follow(n, &seen);
        let post = visit.is_post();
        let candidate = if post { self.of(n).and_then(|c| c.candidate.take()) } else { None };
        if let Some(c) = candidate {
            // One request after the other, the order tells as much as the time.
            let own = || self.clients.get(n as usize).and_then(|c| c.refusal.as_ref()).is_some_and(|r| r.is_stuck);
            let soon = seen.answered.since(c.initialize.answered) <= HANDSHAKE_NS;
            if visit.status == Some(202) && (soon || own()) {
                self.shake_hands(n, Candidate { since: [c.since, vec![seen.clone()]].concat(), ..*c });
            } else if let Some(r) = self.of(n).and_then(|c| c.refusal.as_mut()) {
                r.is_stuck = false;
            }
        } else if let Some(c) = self.of(n).and_then(|c| c.candidate.as_mut()) {
            c.since.push(seen.clone());
        }
        let is_delete = visit.method.is_some_and(|m| &**m == "DELETE");
        if visit.status == Some(404) && !is_delete {
            self.refuse(n, &seen);
        } else if let Some(r) = self.of(n).and_then(|c| c.refusal.as_mut())
            && r.lines.len() < SHOWN.0 + SHOWN.1
        {
            r.lines.push(seen.clone());
        }
        // A handshake explains only what was refused before it.
        let is_wanted = !self.waiting.is_empty() || self.of(n).is_some_and(|c| c.refusal.is_some());
        if post && visit.status == Some(200) && is_wanted {
            let candidate = Candidate { initialize: seen.clone(), since: vec![] };
            if visit.given.is_some() || visit.initializes {
                self.shake_hands(n, candidate);
            } else if let Some(c) = self.of(n) {
                c.candidate = Some(Box::new(candidate));
            }
        }
        if visit.status.is_some_and(|s| s < 300) {
            self.alive = Some((seen.answered, seen.error_ns));
        }
        if let Some(c) = self.of(n) {
            if c.recent.len() == SHOWN.0 {
                c.recent.pop_front();
            }
            c.recent.push_back(seen);
        }
        n
    }

    /// Address and user agent of a client.
    pub(super) fn who(&self, n: u32) -> Option<(Option<IpAddr>, Option<Arc<str>>)> {
        self.clients.get(n as usize).map(|c| (c.peer, c.agent.clone()))
    }

    /// All patterns, in order of the refusals.
    pub fn finish(mut self) -> Vec<Pattern> {
        self.expire(Time::from_ns(i64::MAX, 0));
        let mut out: Vec<Pattern> = self.found.into_iter().flatten().collect();
        out.sort_by_key(|p| (p.refused.answered, p.refused.place));
        out
    }

    fn of(&mut self, n: u32) -> Option<&mut Client> {
        self.clients.get_mut(n as usize)
    }

    fn client(&mut self, visit: &Look<'_>) -> u32 {
        let path = visit.path.trim_end_matches('/');
        let mut hasher = rustc_hash::FxHasher::default();
        (visit.peer, visit.agent, path).hash(&mut hasher);
        let named = self.by_name.entry(hasher.finish()).or_default();
        let is_it = |c: &Client| c.peer == visit.peer && c.agent.as_ref() == visit.agent && &*c.path == path;
        if let Some(n) = named.iter().find(|n| self.clients.get(**n as usize).is_some_and(is_it)) {
            return *n;
        }
        let n = u32::try_from(self.clients.len()).unwrap_or(u32::MAX);
        named.push(n);
        self.clients.push(Client {
            peer: visit.peer,
            agent: visit.agent.cloned(),
            path: Arc::from(path),
            recent: VecDeque::with_capacity(SHOWN.0),
            refusal: None,
            candidate: None,
            followed: None,
        });
        n
    }

    /// Further refusals before the same handshake are of the same window.
    fn refuse(&mut self, n: u32, seen: &Seen) {
        let alive = self.alive;
        let Some(client) = self.of(n) else { return };
        let same = |r: &Refusal| r.is_stuck || seen.answered.since(r.refused.answered) <= REINIT_NS;
        if let Some(r) = client.refusal.as_mut().filter(|r| same(r)) {
            if r.lines.len() < SHOWN.0 + SHOWN.1 {
                r.lines.push(seen.clone());
            }
            return;
        }
        let lines = client.recent.iter().chain([seen]).cloned().collect();
        let refused = seen.clone();
        client.refusal = Some(Box::new(Refusal { refused, alive, lines, is_stuck: true, provisional: None }));
        self.waiting.push_back((seen.answered, n));
    }

    /// A client's handshake is complete.
    fn shake_hands(&mut self, n: u32, c: Candidate) {
        let Some(client) = self.of(n) else { return };
        let Some(refusal) = client.refusal.take() else {
            if !self.waiting.is_empty() {
                self.handshakes.push_back(Handshake { client: n, initialize: c.initialize, since: c.since });
            }
            return;
        };
        let late = c.initialize.answered.since(refusal.refused.answered);
        if late > GONE_NS || late > REINIT_NS && !refusal.is_stuck {
            return;
        }
        if let Some(slot) = refusal.provisional.and_then(|p| self.found.get_mut(p)) {
            *slot = None;
        }
        let shook = c.since.last().map_or(0, |l| l.answered.since(c.initialize.answered));
        let is_loose = late > REINIT_NS || shook > HANDSHAKE_NS;
        self.find(*refusal, Handshake { client: n, initialize: c.initialize, since: c.since }, is_loose);
    }

    fn find(&mut self, refusal: Refusal, h: Handshake, is_loose: bool) {
        let pattern = self.found.len();
        let mut lines = refusal.lines;
        // The line of the handshake was taken for one in between.
        if let Some(own) = lines.iter().position(|l| l.exchange == h.initialize.exchange) {
            lines.truncate(own);
        }
        lines.push(h.initialize.clone());
        let last = h.initialize.answered;
        self.found.push(Some(Pattern {
            refused: refusal.refused,
            initialize: h.initialize,
            is_loose,
            alive: refusal.alive,
            recovered: None,
            silence_ns: None,
            lines,
        }));
        if let Some(client) = self.of(h.client) {
            client.followed = Some(Followed { pattern, last, left: FOLLOWED });
        }
        h.since.iter().for_each(|seen| self.follow(h.client, seen));
    }

    /// What a client does after its handshake.
    fn follow(&mut self, n: u32, seen: &Seen) {
        let Some(followed) = self.clients.get_mut(n as usize).and_then(|c| c.followed.as_mut()) else { return };
        let Some(Some(p)) = self.found.get_mut(followed.pattern) else { return };
        let behind = FOLLOWED - followed.left;
        if (behind as usize) < SHOWN.2 {
            p.lines.push(seen.clone());
        }
        if p.recovered.is_none() && seen.is_post() && seen.status == Some(200) {
            p.recovered = Some(seen.answered);
        }
        if p.silence_ns.is_none() {
            let silence = seen.answered.since(followed.last);
            followed.last = seen.answered;
            p.silence_ns = Some(silence).filter(|ns| *ns > SET_UP_NS);
        }
        followed.left -= 1;
        let done = p.recovered.is_some() && p.silence_ns.is_some() && behind as usize >= SHOWN.2;
        if (done || followed.left == 0)
            && let Some(client) = self.of(n)
        {
            client.followed = None;
        }
    }

    /// Gives refusals whose client has not come back the best handshake of another one.
    fn expire(&mut self, now: Time) {
        while let Some((at, n)) = self.waiting.front().copied().filter(|(at, _)| now.since(*at) > REINIT_NS) {
            self.waiting.pop_front();
            let Some(client) = self.clients.get(n as usize) else { continue };
            let waits = |r: &Refusal| r.refused.answered == at && r.provisional.is_none();
            if !client.refusal.as_deref().is_some_and(waits) {
                continue;
            }
            let best = self.stranger(client, at);
            let Some(refusal) = self.of(n).and_then(|c| c.refusal.take()) else { continue };
            if let Some(h) = best.and_then(|i| self.handshakes.remove(i)) {
                self.find((*refusal).clone(), h, true);
            }
            let provisional = best.map(|_| self.found.len() - 1);
            if let Some(client) = self.of(n).filter(|_| refusal.is_stuck) {
                client.refusal = Some(Box::new(Refusal { provisional, ..*refusal }));
            }
        }
        while self.handshakes.front().is_some_and(|h| now.since(h.initialize.answered) > REINIT_NS) {
            self.handshakes.pop_front();
        }
    }

    /// Which of the waiting handshakes fits a refusal best: nearest identity first, then the earliest.
    fn stranger(&self, refused: &Client, at: Time) -> Option<usize> {
        let within = |h: &Handshake| h.initialize.answered >= at && h.initialize.answered.since(at) <= REINIT_NS;
        let mut all = self.handshakes.iter().enumerate().filter(|(_, h)| within(h)).take(AHEAD).filter_map(|(i, h)| {
            let c = self.clients.get(h.client as usize).filter(|c| c.path == refused.path)?;
            Some((apart(refused, c), i))
        });
        let first = all.next()?;
        Some(all.fold(first, |best, x| best.min(x)).1)
    }
}

/// In how many of address and user agent two clients are known to differ.
fn apart(a: &Client, b: &Client) -> u8 {
    let address = matches!((a.peer, b.peer), (Some(p), Some(q)) if p != q);
    let agent = matches!((&a.agent, &b.agent), (Some(p), Some(q)) if p != q);
    u8::from(address) + u8::from(agent)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::model::exchange::Mark;
    use crate::model::place::Vantage;

    /// Lines `(second, client, status)` as the windows in them: refused line, line of the handshake, loose.
    fn windows(lines: &[(i64, u8, u16)]) -> Vec<(u64, u64, bool)> {
        let mut patterns = Patterns::default();
        for (n, (second, client, status)) in lines.iter().enumerate() {
            let place = Place::line(0, n as u64 + 1);
            let at = Time::from_ns(second * 1_000_000_000, 0);
            let mut v = Visit::new(n as u64, place, Vantage::Proxy, When { at, error_ns: 500_000_000 });
            v.method = Some("POST".into());
            v.target = Some("/mcp".into());
            v.peer = Some(IpAddr::from([192, 0, 2, *client]));
            v.status = Some(*status);
            v.head = Some(Mark { place, at });
            patterns.line(&v);
        }
        let told = |p: Pattern| (p.refused.place.number, p.initialize.place.number, p.is_loose);
        patterns.finish().into_iter().map(told).collect()
    }

    #[test]
    fn a_refusal_its_handshake_and_what_follows() {
        assert_eq!(windows(&[(0, 1, 200), (9, 1, 404), (10, 1, 404), (11, 1, 200), (11, 1, 202)]), [(2, 4, false)]);
        // Nothing of a handshake, or of another client long after.
        assert_eq!(windows(&[(9, 1, 404), (11, 1, 200), (12, 1, 200)]), []);
        assert_eq!(windows(&[(9, 1, 404), (111, 2, 200), (111, 2, 202)]), []);
    }

    #[test]
    fn a_client_that_did_nothing_else_is_known_however_late_it_comes() {
        assert_eq!(windows(&[(0, 1, 404), (4000, 2, 200), (7000, 1, 200), (7100, 1, 202)]), [(1, 3, true)]);
        // It went on meanwhile: the 404 was of another session of that address, or of something else.
        assert_eq!(windows(&[(0, 1, 404), (10, 1, 200), (20, 1, 200), (7000, 1, 200), (7001, 1, 202)]), []);
        assert_eq!(windows(&[(0, 1, 404), (90_000, 1, 200), (90_001, 1, 202)]), []);
    }

    #[test]
    fn another_address_counts_until_the_refused_one_comes_itself() {
        let stranger = [(0, 1, 404), (5, 2, 200), (5, 2, 202), (100, 3, 200)];
        assert_eq!(windows(&stranger), [(1, 2, true)]);
        let itself = [&stranger[..], &[(200, 1, 200), (200, 1, 202)]].concat();
        assert_eq!(windows(&itself), [(1, 5, true)]);
        // One handshake explains one refusal.
        assert_eq!(windows(&[(0, 1, 404), (1, 3, 404), (5, 2, 200), (5, 2, 202)]), [(1, 3, true)]);
    }
}
