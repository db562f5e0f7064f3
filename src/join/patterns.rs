//! Windows in logs that name no session: the 404 → initialize → 202 → 200 pattern of one endpoint, found line
//! by line, with memory for what is open alone.
//!
//! A client is an address and user agent. The handshake of the refused client itself is taken first; where it
//! has none, that of another client soon after, since one handshake can come from ten addresses: that lowers
//! confidence and never forbids. Where no handshake of a user agent came from one address, its `initialize` and the
//! notification behind it may be of two, and what it does next of any.

pub(super) use super::seen::Look;
pub use super::seen::Seen;
use super::seen::Texts;
use crate::mcp::Visit;
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
/// Handshakes from several addresses whose next lines are kept.
const ROTATING: usize = 16;
/// Lines of a client looked at after its handshake.
const FOLLOWED: u32 = 64;
/// Lines of a client shown before the refusal, between it and the handshake, and behind that.
const SHOWN: (usize, usize, usize) = (2, 32, 3);

/// A window that a pattern shows.
#[derive(Clone, Debug)]
pub struct Pattern {
    /// The refusal.
    pub refused: Seen,
    /// The `initialize`.
    pub initialize: Seen,
    /// Address or user agent differ, the parts of the pattern are far apart in time, or the client was refused and
    /// answered by turns before.
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

/// A client that had been answered, was refused again and again, and was not answered any more.
#[derive(Clone, Debug)]
pub struct Stuck {
    /// The first refusal.
    pub refused: Seen,
    /// The last.
    pub last: Seen,
    /// How many there were.
    pub times: u32,
}

/// What the order of lines shows.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// In order of the refusals.
    pub windows: Vec<Pattern>,
    /// Likewise.
    pub stuck: Vec<Stuck>,
}

/// Refusals after which a client counts as stuck.
const STUCK: u32 = 3;

/// Finds patterns in lines in order of time.
#[derive(Default)]
pub struct Patterns {
    texts: Texts,
    by_name: FxHashMap<u64, Vec<u32>>,
    clients: Vec<Client>,
    /// Refusals younger than [`REINIT_NS`], by client.
    waiting: VecDeque<(Time, u32)>,
    /// Handshakes that nobody was found for yet, as young; none: one that was taken. Each has a number.
    handshakes: VecDeque<Option<Handshake>>,
    /// The number of the first of them.
    first_handshake: u64,
    /// Of these, those whose client changes its address, the latest last.
    rotating: VecDeque<u64>,
    /// By endpoint and user agent.
    kinds: FxHashMap<u64, Kind>,
    /// Windows whose client changes its address, the latest last, and its endpoint and user agent.
    followed: VecDeque<(u64, Followed)>,
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
    candidate: Option<Candidate>,
    followed: Option<Followed>,
    /// It was answered after a refusal without a handshake in between: by another replica, or it is several clients.
    alternates: bool,
    /// A request of it was answered.
    answered: bool,
    /// Its last handshake among those that nobody was found for.
    handshake: Option<u64>,
    /// Endpoint and user agent.
    kind: u64,
}

/// A client that was refused and has not begun anew.
#[derive(Clone)]
struct Refusal {
    refused: Seen,
    alive: Option<(Time, i64)>,
    lines: Vec<Seen>,
    /// Of POSTs: the last, and how many.
    last: Option<Seen>,
    times: u32,
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
    /// The lines of its client since.
    since: Vec<Seen>,
    /// The notification came from another address.
    is_mixed: bool,
}

/// Clients of one endpoint and user agent.
#[derive(Default)]
struct Kind {
    /// The last POST answered 200, and whose it was.
    last_ok: Option<(u32, Seen)>,
    /// How many notifications came from the address of the request before them.
    steady: u32,
    /// And how many from one that had asked for nothing.
    mixed: u32,
}

/// The window whose client is watched on.
struct Followed {
    pattern: usize,
    last: Time,
    left: u32,
}

impl Patterns {
    /// Takes the next line.
    pub fn line(&mut self, visit: &Visit) {
        self.look(&Look::of(visit));
    }

    /// Takes the next line; gives the number of its client.
    pub(super) fn look(&mut self, visit: &Look<'_>) -> u32 {
        let seen = Seen::of(visit, &mut self.texts);
        self.expire(seen.answered);
        let n = self.client(visit);
        self.follow(n, &seen);
        self.keep(n, &seen);
        let post = visit.is_post();
        if post {
            self.meet(n, &seen);
        }
        let candidate = if post { self.of(n).and_then(|c| c.candidate.take()) } else { None };
        if let Some(c) = candidate {
            // One request after the other, the order tells as much as the time.
            let own = || self.clients.get(n as usize).and_then(|c| c.refusal.as_ref()).is_some_and(|r| r.is_stuck);
            let soon = seen.answered.since(c.initialize.answered) <= HANDSHAKE_NS;
            if visit.status == Some(202) && (soon || own()) {
                self.shake_hands(n, Candidate { since: [c.since, vec![seen.clone()]].concat(), ..c });
            } else if let Some((r, alternates)) =
                self.of(n).and_then(|c| Some((c.refusal.as_mut()?, &mut c.alternates)))
            {
                r.is_stuck = false;
                *alternates = true;
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
                c.candidate = Some(candidate);
            }
        }
        if let Some(c) = self.of(n).filter(|_| post && visit.status.is_some_and(|s| s < 300)) {
            c.answered = true;
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

    /// All that was found.
    pub fn finish(mut self) -> Found {
        self.expire(Time::from_ns(i64::MAX, 0));
        let mut windows: Vec<Pattern> = self.found.into_iter().flatten().collect();
        windows.sort_by_key(|p| (p.refused.answered, p.refused.place));
        let known = self.clients.into_iter().filter(|c| c.answered && c.candidate.is_none()).filter_map(|c| c.refusal);
        let stuck = known.filter(|r| r.is_stuck && r.provisional.is_none() && r.times >= STUCK);
        let stuck = stuck.filter_map(|r| Some(Stuck { last: r.last?, refused: r.refused, times: r.times }));
        let mut stuck: Vec<Stuck> = stuck.collect();
        stuck.sort_by_key(|s| (s.refused.answered, s.refused.place));
        Found { windows, stuck }
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
        let mut kind = rustc_hash::FxHasher::default();
        (visit.agent, path).hash(&mut kind);
        self.clients.push(Client {
            peer: visit.peer,
            agent: visit.agent.cloned(),
            path: Arc::from(path),
            recent: VecDeque::with_capacity(SHOWN.0),
            refusal: None,
            candidate: None,
            followed: None,
            alternates: false,
            answered: false,
            handshake: None,
            kind: kind.finish(),
        });
        n
    }

    /// Puts a handshake among those that nobody was found for.
    fn wait(&mut self, h: Handshake) {
        let number = self.first_handshake + self.handshakes.len() as u64;
        if self.is_rotating(h.client) {
            if self.rotating.len() == ROTATING {
                self.rotating.pop_front();
            }
            self.rotating.push_back(number);
        }
        if let Some(client) = self.of(h.client) {
            client.handshake = Some(number);
        }
        self.handshakes.push_back(Some(h));
    }

    /// Is this a client of a kind whose handshakes come from one address by chance only?
    fn is_rotating(&self, n: u32) -> bool {
        let kind = self.clients.get(n as usize).and_then(|c| self.kinds.get(&c.kind));
        kind.is_none_or(|k| k.mixed >= 2 * k.steady)
    }

    /// Keeps what a client does after a handshake that nobody was found for.
    fn keep(&mut self, n: u32, seen: &Seen) {
        let Some(client) = self.clients.get(n as usize) else { return };
        let (own, kind) = (client.handshake, client.kind);
        let others = self.rotating.iter().copied().filter(|number| Some(*number) != own);
        for number in own.into_iter().chain(others) {
            let Some(at) = number.checked_sub(self.first_handshake) else { continue };
            let Some(Some(h)) = self.handshakes.get_mut(at as usize) else { continue };
            let same = h.client == n || self.clients.get(h.client as usize).is_some_and(|c| c.kind == kind);
            if same && h.since.len() < FOLLOWED as usize {
                h.since.push(seen.clone());
            }
        }
    }

    /// Takes a POST into account that was answered 200, or 202: the two of a handshake from one address, or from two.
    fn meet(&mut self, n: u32, seen: &Seen) {
        let Some(client) = self.clients.get(n as usize) else { return };
        let kind = self.kinds.entry(client.kind).or_default();
        match seen.status {
            Some(200) => kind.last_ok = Some((n, seen.clone())),
            Some(202) if client.recent.iter().any(|s| s.is_post() && s.status == Some(200)) => kind.steady += 1,
            Some(202) => {
                let soon = |(_, ok): &(u32, Seen)| seen.answered.since(ok.answered) <= HANDSHAKE_NS;
                let Some((other, initialize)) = kind.last_ok.take_if(|ok| soon(ok) && ok.0 != n) else { return };
                kind.mixed += 1;
                if !self.waiting.is_empty() && self.is_rotating(n) {
                    self.wait(Handshake { client: other, initialize, since: vec![seen.clone()], is_mixed: true });
                }
            }
            _ => {}
        }
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
            if seen.is_post() {
                r.last = Some(seen.clone());
                r.times += 1;
            }
            return;
        }
        let lines = client.recent.iter().chain([seen]).cloned().collect();
        let refused = seen.clone();
        let (last, times) = if seen.is_post() { (Some(seen.clone()), 1) } else { (None, 0) };
        client.refusal =
            Some(Box::new(Refusal { refused, alive, lines, last, times, is_stuck: true, provisional: None }));
        self.waiting.push_back((seen.answered, n));
    }

    /// A client's handshake is complete.
    fn shake_hands(&mut self, n: u32, c: Candidate) {
        let Some(client) = self.of(n) else { return };
        let Some(refusal) = client.refusal.take() else {
            if !self.waiting.is_empty() {
                self.wait(Handshake { client: n, initialize: c.initialize, since: c.since, is_mixed: false });
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
        // Where refusals and answers alternate, one line less can make any of them a window.
        let is_loose = late > REINIT_NS || shook > HANDSHAKE_NS || self.of(n).is_some_and(|c| c.alternates);
        let own = Handshake { client: n, initialize: c.initialize, since: c.since, is_mixed: false };
        self.find(*refusal, own, is_loose);
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
        let mut followed = Followed { pattern, last, left: FOLLOWED };
        for seen in &h.since {
            watch(&mut self.found, &mut followed, seen);
        }
        let is_rotating = is_loose && self.is_rotating(h.client);
        let Some(client) = self.clients.get_mut(h.client as usize) else { return };
        if !is_rotating {
            client.followed = Some(followed);
            return;
        }
        if self.followed.len() == ROTATING {
            self.followed.pop_front();
        }
        self.followed.push_back((client.kind, followed));
    }

    /// What a client does after its handshake.
    fn follow(&mut self, n: u32, seen: &Seen) {
        let Some(client) = self.clients.get_mut(n as usize) else { return };
        client.followed.take_if(|f| watch(&mut self.found, f, seen));
        let kind = client.kind;
        self.followed.retain_mut(|(of, f)| *of != kind || !watch(&mut self.found, f, seen));
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
            if let Some(h) = best.and_then(|i| self.handshakes.get_mut(i)).and_then(Option::take) {
                self.find((*refusal).clone(), h, true);
            }
            let provisional = best.map(|_| self.found.len() - 1);
            if let Some(client) = self.of(n).filter(|_| refusal.is_stuck) {
                client.refusal = Some(Box::new(Refusal { provisional, ..*refusal }));
            }
        }
        let is_over = |h: &Handshake| now.since(h.initialize.answered) > REINIT_NS;
        while self.handshakes.front().is_some_and(|h| h.as_ref().is_none_or(is_over)) {
            self.handshakes.pop_front();
            self.first_handshake += 1;
        }
        while self.rotating.front().is_some_and(|number| *number < self.first_handshake) {
            self.rotating.pop_front();
        }
    }

    /// Which of the waiting handshakes fits a refusal best: nearest identity first, then the earliest.
    fn stranger(&self, refused: &Client, at: Time) -> Option<usize> {
        let within = |h: &Handshake| h.initialize.answered >= at && h.initialize.answered.since(at) <= REINIT_NS;
        let waiting = self.handshakes.iter().enumerate().filter_map(|(i, h)| Some((i, h.as_ref()?)));
        let mut all = waiting.filter(|(_, h)| within(h)).take(AHEAD).filter_map(|(i, h)| {
            let c = self.clients.get(h.client as usize).filter(|c| c.path == refused.path)?;
            Some((h.is_mixed, apart(refused, c), i))
        });
        let first = all.next()?;
        Some(all.fold(first, |best, x| best.min(x)).2)
    }
}

/// Takes the next line of the client of a window; true: it has shown all.
fn watch(found: &mut [Option<Pattern>], followed: &mut Followed, seen: &Seen) -> bool {
    let Some(Some(p)) = found.get_mut(followed.pattern) else { return true };
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
    followed.left = followed.left.saturating_sub(1);
    followed.left == 0 || p.recovered.is_some() && p.silence_ns.is_some() && behind as usize >= SHOWN.2
}

/// In how many of address and user agent two clients are known to differ.
fn apart(a: &Client, b: &Client) -> u8 {
    let address = matches!((a.peer, b.peer), (Some(p), Some(q)) if p != q);
    let agent = matches!((&a.agent, &b.agent), (Some(p), Some(q)) if p != q);
    u8::from(address) + u8::from(agent)
}
