//! From the refusal of an old session id to the client's recovery.

use super::pairing::{Identity, Paired, comes_after, pair};
use super::pattern::is_restart;
use super::sequence::sequence;
use super::sessions::{Refused, Standing, calls_of, first_refusal};
use super::told::{Told, UNSURE_NS};
use crate::join::World;
use crate::join::answers::HopCallId;
use crate::join::clients::was_answered;
use crate::join::sources::Shown;
use crate::mcp::Visit;
use crate::model::id::SessionId;
use crate::model::report::{CallKey, Cause, Window};
use crate::model::time::Time;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// A refused call that is sent again within this time after the re-initialisation was replayed, ns.
const REPLAY_NS: i64 = 5_000_000_000;
/// A refused session and what came of it.
pub struct Story {
    /// The refused session.
    pub refused: Refused,
    /// The `initialize` that followed (visit), and whose it was as far as can be told.
    pub initialize: Option<u32>,
    /// The window, where there is one.
    pub window: Option<Window>,
    /// How sure it is that the new handshake is the refused client's.
    pub identity: Identity,
    /// The client made calls in it of which no input can say what came of them.
    pub has_unknown: bool,
    /// The session was answered again after a refusal, if only by the client's word or by a line that may be another's.
    pub takes_turns: bool,
    /// Nothing was answered on the session after these refusals.
    pub last: bool,
    /// Somebody of the same address started anew right after the last refusal.
    pub followed: bool,
}

/// The stories of all sessions that were refused for good.
pub fn stories(world: &World, refused: &[Refused], told: &Told<'_>) -> Vec<Story> {
    // A session that replicas answer by turns counts as gone where its client starts anew at once.
    let (refused, last): (Vec<Refused>, Vec<bool>) = refused.iter().flat_map(|r| r.runs(world)).unzip();
    let pairs = pair(world, &refused);
    let died = deaths(world, &refused);
    let restarts = restarts(world, &died);
    let alone = Alone::of(world);
    let stories = refused.into_iter().zip(last).enumerate().map(|(i, (r, last))| {
        let alternates = r.standing != Standing::Gone;
        let initialize = pairs
            .get(&i)
            .copied()
            .filter(|p| p.rank == 0 || !alternates && !r.begun_before || alternates && last && p.rank == 1)
            .filter(|p| {
                let init = p.initialize;
                !alternates || is_told(world, &r, init, |shown| shown.sessions) && left(world, &r, init)
            });
        let found = initialize
            .and_then(|Paired { initialize: v, .. }| window(world, &r, v, cause(world, &r, &restarts, told), &alone));
        let (window, has_unknown) = found.map_or((None, false), |(w, u)| (Some(w), u));
        let followed = pairs.get(&i).is_some_and(|p| p.rank <= 1 && at_once(world, &r, p.initialize));
        Story {
            identity: initialize.map_or(Identity::Same, |p| p.identity),
            initialize: initialize.map(|p| p.initialize),
            window,
            has_unknown,
            takes_turns: alternates || r.may_alternate || answers_again(world, &r, &alone),
            refused: r,
            last,
            followed,
        }
    });
    let lives = |s: &Story| {
        let last = s.refused.refusals.last().and_then(|v| world.visits.get(*v as usize));
        // On clocks that could not be aligned nothing is later.
        let comparable = |v: &Visit, last: &Visit| world.logs.is_aligned(v.input) && world.logs.is_aligned(last.input);
        last.is_some_and(|last| alone.answered_after(&s.refused.session, last.answered()).any(|v| comparable(v, last)))
    };
    // A window whose opening was not seen is no window; a client that never recovers is seen to the end.
    let seen = |s: &Story| !s.refused.begun_before || s.initialize.is_none() && !s.followed;
    stories.filter(|s| (s.last || s.window.is_some()) && seen(s) && !lives(s)).collect()
}

/// Does the client say that the session was answered after its first refusal?
fn answers_again(world: &World, r: &Refused, alone: &Alone<'_>) -> bool {
    let first = r.refusals.first().and_then(|v| world.visits.get(*v as usize)).map(Visit::answered);
    first.is_some_and(|t| alone.answered_after(&r.session, t).next().is_some())
}

/// Is what came after the refusal told in the way in which that was: by the log itself, where it `shows` it, or by a
/// client's record that goes on?
fn is_told(world: &World, r: &Refused, init: u32, shows: fn(&Shown) -> bool) -> bool {
    let get = |v: u32| world.visits.get(v as usize);
    let Some((first, init)) = r.refusals.first().and_then(|v| get(*v)).zip(get(init)) else { return false };
    let reaches = |v: &Visit| world.input_end.get(&v.input).is_some_and(|t| *t >= init.asked);
    first.place.is_frame
        || world.logs.shown.get(&first.input).is_some_and(shows)
        || world.logs.clients.is_empty()
        || world.logs.clients.iter().filter_map(|v| get(*v)).any(reaches)
}

/// Was the refused session not tried again after the `initialize`? Who begins anew leaves the old one.
fn left(world: &World, r: &Refused, init: u32) -> bool {
    let asked = |v: u32| world.visits.get(v as usize).filter(|x| !x.is_get()).map(|x| x.asked);
    r.refusals.last().and_then(|v| asked(*v)).zip(asked(init)).is_none_or(|(last, begun)| last <= begun)
}

/// When sessions were found to be gone, in order.
fn deaths(world: &World, refused: &[Refused]) -> Vec<Time> {
    let gone = refused.iter().filter(|r| r.standing == Standing::Gone);
    let mut times: Vec<Time> = gone.filter_map(|r| first_refusal(world, r)).collect();
    times.sort_unstable();
    times
}

/// Refusals that follow each other within this time can be of one restart, ns.
const ONE_RESTART_NS: i64 = 120_000_000_000;

/// For each time at which a session was found to be gone, whether all were gone since the first of
/// those around it.
fn restarts(world: &World, died: &[Time]) -> FxHashMap<Time, bool> {
    let mut known: FxHashMap<Time, bool> = FxHashMap::default();
    let mut out = FxHashMap::default();
    for t in died {
        let Some(first) = began(died, Some(*t)) else { continue };
        let all = *known.entry(first).or_insert_with(|| died.len() >= 2 && all_died(world, Some(first)));
        out.insert(*t, all);
    }
    out
}

/// The first of the refusals that this one is among.
fn began(died: &[Time], opened: Option<Time>) -> Option<Time> {
    let opened = opened?;
    let upto = died.get(..died.partition_point(|t| *t <= opened)).unwrap_or_default();
    let mut first = opened;
    for t in upto.iter().rev() {
        if first.since(*t) > ONE_RESTART_NS {
            break;
        }
        first = *t;
    }
    Some(first)
}

/// Does an `initialize` come within a second of the last refusal?
fn at_once(world: &World, r: &Refused, init: u32) -> bool {
    let last = r.refusals.last().and_then(|v| world.visits.get(*v as usize)).map(Visit::answered);
    let asked = world.visits.get(init as usize).map(|x| x.asked);
    last.zip(asked).is_some_and(|(l, a)| a.since(l).abs() < 1_000_000_000)
}

/// Calls that only a client's record shows, by the session that it names.
struct Alone<'w>(FxHashMap<&'w SessionId, Vec<(HopCallId, CallKey, &'w Visit)>>);

impl<'w> Alone<'w> {
    fn of(world: &'w World) -> Alone<'w> {
        let mut out: FxHashMap<&SessionId, Vec<_>> = FxHashMap::default();
        for v in &world.logs.clients {
            let Some((call, _)) = world.answers.by_visit.get(v).copied() else { continue };
            let (Some(joint), Some(visit)) = (world.joint(call), world.visits.get(*v as usize)) else { continue };
            if let (true, true, Some(session)) = (joint.hops.is_empty(), joint.lines.is_empty(), &visit.session) {
                out.entry(session).or_default().push((call, joint.key, visit));
            }
        }
        Alone(out)
    }

    /// The calls of a session that were asked after `t` and answered.
    fn answered_after(&self, session: &SessionId, t: Time) -> impl Iterator<Item = &'w Visit> {
        let calls = self.of_session(Some(session)).iter().map(|(_, _, v)| *v);
        calls.filter(move |v| v.asked > t && was_answered(v))
    }

    fn of_session(&self, session: Option<&SessionId>) -> &[(HopCallId, CallKey, &'w Visit)] {
        session.and_then(|s| self.0.get(s)).map_or(&[], |list| list)
    }
}

fn window(world: &World, r: &Refused, init: u32, cause: Cause, alone: &Alone<'_>) -> Option<(Window, bool)> {
    let first = world.visits.get(*r.refusals.first()? as usize)?;
    let initialize = world.visits.get(init as usize)?;
    let new = initialize.given.clone();
    let after = following(world, init, initialize);
    let get = |v: &u32| world.visits.get(*v as usize);
    let initialized = after.iter().filter_map(get).find(|v| v.carries("notifications/initialized")).map(|v| v.asked);
    let since = initialized.unwrap_or(initialize.asked);
    let recovered = after
        .iter()
        .filter_map(get)
        .filter(|v| {
            v.asked > since
                && !v.carries("notifications/initialized")
                && v.status.is_some_and(|s| (200..300).contains(&s))
        })
        .map(Visit::answered)
        .min();
    let set_up = after.iter().take_while(|v| get(v).is_some_and(is_set_up)).count();
    let last_set_up = after
        .get(..set_up)
        .unwrap_or_default()
        .iter()
        .filter_map(get)
        .map(|v| v.asked)
        .max()
        .unwrap_or(initialize.asked);
    let next = after.get(set_up).and_then(get).map(|v| v.at.at);
    let next_call = after.iter().filter_map(get).find(|v| v.carries("tools/call")).map(|v| v.at.at);
    // What was sent again is known of a session that is known.
    let mut lost = if new.is_some() && is_told(world, r, init, |shown| shown.requests) {
        lost(world, r, &again(world, &after, alone.of_session(new.as_ref()), last_set_up))
    } else {
        vec![]
    };
    let until = next.or(next_call);
    let claimed = [alone.of_session(new.as_ref()), alone.of_session(Some(&r.session))].concat();
    let (unsent, unknown) = unseen_in(world, &claimed, first.answered(), until);
    lost.extend(unsent);
    lost.sort_unstable();
    lost.dedup();
    let window = Window {
        stale_session: Some(r.session.clone()),
        new_session: new,
        opened: Some(first.answered()),
        initialize: Some(initialize.at.at),
        recovered,
        next_call,
        // Two logs' clocks can disagree on what came first; nobody is silent for less than no time.
        silence_s: next.map(|n| (n.since(last_set_up).max(0) as f64 / 1e6).round() / 1e3),
        cause: Some(cause),
        trigger_call: r.refusals.iter().find_map(|v| calls_of(world, *v).first().copied()),
        lost,
        shows_lost: shows_lost(world, r),
        sequence: sequence(world, r, init, &after),
    };
    Some((window, unknown > 0))
}

/// Do the inputs tell what each refused request asked for: packets, a client's record, or lines with bodies or methods?
fn shows_lost(world: &World, r: &Refused) -> bool {
    let is_told = |v: &Visit| v.place.is_frame || v.rpc.iter().all(|r| r.method.is_some()) && !v.rpc.is_empty();
    !world.logs.clients.is_empty() || r.refusals.iter().filter_map(|v| world.visits.get(*v as usize)).all(is_told)
}

/// The requests of the new session after its `initialize`, in order.
fn following(world: &World, init: u32, initialize: &Visit) -> Vec<u32> {
    let Some(new) = &initialize.given else { return vec![] };
    let mut out: Vec<u32> =
        world.of_session.get(new).map(|l| l.iter().copied().filter(|v| *v != init).collect()).unwrap_or_default();
    out.retain(|v| world.visits.get(*v as usize).is_some_and(|x| comes_after(x, initialize)));
    out
}

/// Requests that belong to the re-initialisation itself.
fn is_set_up(visit: &Visit) -> bool {
    if visit.is_get() {
        return true;
    }
    !visit.rpc.is_empty()
        && visit.rpc.iter().all(|r| {
            let m = r.method.as_deref().unwrap_or("");
            matches!(m, "initialize" | "notifications/initialized" | "ping" | "logging/setLevel")
                || m.ends_with("/list")
        })
}

/// Methods whose loss hurts: lists and pings are asked again by themselves.
fn matters(method: Option<&str>) -> bool {
    method.is_some_and(|m| {
        !matches!(m, "ping" | "initialize" | "server/discover" | "logging/setLevel") && !m.ends_with("/list")
    })
}

/// What makes a request the same one again: arguments, method, tool.
type Asked<'a> = (u64, Option<&'a Arc<str>>, Option<&'a Arc<str>>);

/// What was asked in the new session soon after it was set up, also where only the client's record has it.
fn again<'w>(
    world: &'w World,
    after: &[u32],
    alone: &[(HopCallId, CallKey, &'w Visit)],
    last_set_up: Time,
) -> Vec<Asked<'w>> {
    let seen = after.iter().filter_map(|v| world.visits.get(*v as usize));
    // What is of the new session came after it was begun, whatever the client's clock says.
    let told = alone.iter().map(|(_, _, v)| *v).filter(|v| was_answered(v));
    let soon = seen.chain(told).filter(|v| v.asked.since(last_set_up) <= REPLAY_NS);
    soon.flat_map(|v| v.requests().map(|q| (q.arguments(), q.method.as_ref(), q.tool.as_ref()))).collect()
}

fn lost(world: &World, r: &Refused, again: &[Asked<'_>]) -> Vec<CallKey> {
    let mut again = again.to_vec();
    let mut lost = vec![];
    for &v in &r.refusals {
        let Some(&(first, n)) = world.answers.by_visit.get(&v) else { continue };
        for c in first..first + n {
            let Some(rpc) = world.rpc_of(c) else { continue };
            if !matters(rpc.method.as_deref()) {
                continue;
            }
            let me = (rpc.arguments(), rpc.method.as_ref(), rpc.tool.as_ref());
            match again.iter().position(|a| *a == me) {
                Some(i) => drop(again.swap_remove(i)),
                None => lost.extend(world.key(c)),
            }
        }
    }
    lost.sort_unstable();
    lost.dedup();
    lost
}

/// Calls that the client says it issued in the window and that no other vantage point saw, and how many there are
/// of which none would have shown whether they were sent.
fn unseen_in(
    world: &World,
    alone: &[(HopCallId, CallKey, &Visit)],
    opened: Time,
    until: Option<Time>,
) -> (Vec<CallKey>, usize) {
    let within = |v: &Visit| v.asked >= opened && until.is_none_or(|t| v.asked <= t);
    let hurts = |v: &Visit| v.requests().all(|q| matters(q.method.as_deref()));
    let within = alone.iter().filter(|(_, _, v)| within(v) && hurts(v));
    let (unsent, rest): (Vec<_>, Vec<_>) = within.partition(|(c, _, _)| world.coverage(*c).is_some());
    (unsent.iter().map(|(_, key, _)| *key).collect(), rest.len())
}

fn cause(world: &World, r: &Refused, restarts: &FxHashMap<Time, bool>, told: &Told<'_>) -> Cause {
    let opened = first_refusal(world, r);
    if let Some(cause) = said(world, r, opened, told) {
        return cause;
    }
    let deleted = r
        .visits
        .iter()
        .filter_map(|v| world.visits.get(*v as usize))
        .any(|v| v.is_delete() && v.status.is_some_and(|s| s < 300) && opened.is_some_and(|o| v.asked < o));
    if deleted {
        return Cause::Deleted;
    }
    if r.standing != Standing::Gone {
        return Cause::Replica;
    }
    if opened.and_then(|t| restarts.get(&t)) == Some(&true) {
        return Cause::Restart;
    }
    Cause::Unknown
}

/// What the server's or the service manager's own words say of it.
fn said(world: &World, r: &Refused, opened: Option<Time>, told: &Told<'_>) -> Option<Cause> {
    let opened = opened?;
    let alive = r.visits.iter().filter_map(|v| world.visits.get(*v as usize));
    let last_alive =
        alive.filter(|v| v.status.is_some_and(|s| s < 300)).map(Visit::answered).filter(|t| *t <= opened).max();
    let first = r.refusals.first().and_then(|v| world.visits.get(*v as usize));
    let coarse = first.map_or(0, |v| v.at.error_ns.min(1_000_000_000)) + 100_000_000;
    let near = |t: &&Time| {
        **t <= opened.plus_ns(UNSURE_NS + coarse)
            && last_alive.is_none_or(|alive| t.plus_ns(UNSURE_NS + coarse) >= alive)
    };
    if told.expired(&r.session).iter().any(|t| near(&t)) {
        return Some(Cause::Idle);
    }
    let (mut kinds, mut slack) = (vec![], coarse);
    for turn in told.between(last_alive, opened, coarse) {
        kinds.push(turn.kind);
        slack = slack.max(turn.error_ns + coarse);
    }
    is_restart(&kinds, slack).then_some(Cause::Restart)
}

/// Did every session that was in use before the refusal, and again after it, turn out to be unknown?
fn all_died(world: &World, opened: Option<Time>) -> bool {
    let Some(opened) = opened else { return false };
    let mut gone = 0;
    for list in world.of_session.values() {
        let visits = || list.iter().filter_map(|v| world.visits.get(*v as usize));
        if visits().next().is_none_or(|v| v.asked >= opened) {
            continue;
        }
        match visits().find(|v| v.asked >= opened && v.status.is_some_and(|s| s < 500)) {
            Some(v) if v.status == Some(404) => gone += 1,
            Some(_) => return false,
            None => {}
        }
    }
    gone >= 2
}
