//! Sessions that were refused as unknown, and whether they came back.

use crate::join::World;
use crate::mcp::Visit;
use crate::model::id::SessionId;
use crate::model::report::CallKey;
use crate::model::time::Time;
use rustc_hash::FxHashMap;

/// How a refused session stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It was never answered again.
    Gone,
    /// It was answered again after a refusal (visits): replicas.
    Alternates {
        /// The refusal.
        refused: u32,
        /// The answer after it.
        answered: u32,
    },
}

/// A session with refusals.
#[derive(Clone, Debug)]
pub struct Refused {
    /// Its id.
    pub session: SessionId,
    /// Visits (nearest the client) that were refused, in order.
    pub refusals: Vec<u32>,
    /// All its visits nearest the client, in order of being asked.
    pub visits: Vec<u32>,
    /// How it stands.
    pub standing: Standing,
    /// Was it answered before the first refusal, or given?
    pub was_known: bool,
    /// Its story may have begun before the input: how it opened was not seen.
    pub begun_before: bool,
    /// Something answered after a refusal may have been of it: a line that may be another session's, or one on a clock
    /// that could not be aligned.
    pub may_alternate: bool,
    /// Refused with 404, as the specification wants, as far as can be told.
    pub right_status: bool,
}

impl Refused {
    /// The runs of refusals between answers, each as if the session had been refused only then; the
    /// last one is true where nothing was answered after it.
    pub fn runs(&self, world: &World) -> Vec<(Refused, bool)> {
        if self.standing == Standing::Gone {
            return vec![(self.clone(), true)];
        }
        let (mut out, mut run): (Vec<(Refused, bool)>, Vec<u32>) = (vec![], vec![]);
        let mut close = |run: &mut Vec<u32>, last: bool| {
            if !run.is_empty() {
                let known = self.was_known || !out.is_empty();
                out.push((Refused { refusals: std::mem::take(run), was_known: known, ..self.clone() }, last));
            }
        };
        for v in &self.visits {
            let answered = world.visits.get(*v as usize).is_some_and(|x| is_answered(x) && !x.is_get());
            if self.refusals.contains(v) {
                run.push(*v);
            } else if answered {
                close(&mut run, false);
            }
        }
        close(&mut run, true);
        out
    }

    /// Calls of its refusals.
    pub fn calls(&self, world: &World) -> Vec<CallKey> {
        self.refusals.iter().flat_map(|v| calls_of(world, *v)).collect()
    }
}

/// Keys of the calls that a visit carries.
pub fn calls_of(world: &World, v: u32) -> Vec<CallKey> {
    let Some(&(first, n)) = world.answers.by_visit.get(&v) else { return vec![] };
    (first..first + n).filter_map(|c| world.key(c)).collect()
}

/// Every session that was refused at least once, in order of the first refusal.
pub fn refused_sessions(world: &World) -> Vec<Refused> {
    let mut by_session: FxHashMap<&SessionId, Vec<u32>> = FxHashMap::default();
    let mut fronts: Vec<u32> = world.fronts().collect();
    fronts.sort_by_key(|v| world.visits.get(*v as usize).map(|x| (x.asked, *v)));
    for &v in &fronts {
        if let Some(s) = world.visits.get(v as usize).and_then(Visit::belongs_to) {
            by_session.entry(s).or_default().push(v);
        }
    }
    let mut out: Vec<Refused> = by_session.into_iter().filter_map(|(s, visits)| refused(world, s, visits)).collect();
    out.sort_by_key(|r| (first_refusal(world, r), r.session.clone()));
    out
}

/// When the session was first refused.
pub fn first_refusal(world: &World, r: &Refused) -> Option<Time> {
    r.refusals.first().and_then(|v| world.visits.get(*v as usize)).map(Visit::answered)
}

fn refused(world: &World, session: &SessionId, visits: Vec<u32>) -> Option<Refused> {
    let get = |v: u32| world.visits.get(v as usize);
    let ok = is_answered;
    let first_ok = visits.iter().filter_map(|v| get(*v)).filter(|v| ok(v)).map(Visit::answered).min();
    // A 404 on a path where the session never was is about the path.
    let paths: Vec<&str> =
        visits.iter().filter_map(|v| get(*v)).filter(|v| ok(v)).filter_map(Visit::endpoint_path).collect();
    let mut refusals: Vec<u32> = vec![];
    for &v in &visits {
        let Some(visit) = get(v) else { continue };
        if !says_session(visit) && !paths.is_empty() && visit.endpoint_path().is_some_and(|p| !paths.contains(&p)) {
            continue;
        }
        let known = first_ok.is_some_and(|t| t <= visit.asked);
        match refusal(visit) {
            Some(Refusal::Unknown) => refusals.push(v),
            Some(Refusal::Odd) if known => refusals.push(v),
            _ => {}
        }
    }
    // A 400 in no words on a session that goes on was about that one request.
    // One that is ended by its client afterwards was there until then.
    let goes_on = |v: &&Visit| ok(v) && !v.is_get();
    let last = |v: &Visit| if v.is_delete() { v.answered() } else { v.asked };
    let last_ok = visits.iter().filter_map(|v| get(*v)).filter(goes_on).map(last).max();
    refusals.retain(|v| {
        get(*v).is_some_and(|x| refusal(x) != Some(Refusal::Odd) || last_ok.is_none_or(|t| t <= x.answered()))
    });
    let first = *refusals.first()?;
    let opened = get(first)?.answered();
    let begun_before = first_ok.is_none() && began_before(world, get(first)?);
    if begun_before && refusals.len() < 3 {
        return None;
    }
    // An answer to a request that was sent after a refusal had come back. What began the session came before, however
    // coarse the times are.
    let error_ns = get(first)?.at.error_ns;
    let begins = |x: &Visit| {
        let apart = x.asked.since(opened);
        is_reinitialised(x) && x.session.is_none() && apart <= error_ns.saturating_add(x.at.error_ns)
    };
    let begun = first_ok.is_some_and(|t| t < opened);
    let sent_after = |x: &Visit| ok(x) && !x.is_get() && x.asked > opened && (begun || !begins(x));
    // On another clock "after" says nothing, and a line that may be another session's says nothing of this one.
    let own = get(first)?.input;
    let is_told = |v: u32, x: &Visit| {
        let comparable = x.input == own || world.logs.is_aligned(x.input) && world.logs.is_aligned(own);
        comparable && !world.logs.ambiguous.contains(&v)
    };
    let back = visits.iter().copied().find(|v| get(*v).is_some_and(|x| sent_after(x) && is_told(*v, x)));
    let standing = match back {
        Some(answered) if !is_reinitialised(get(answered)?) => Standing::Alternates { refused: first, answered },
        _ => Standing::Gone,
    };
    let may_be_back = |x: &Visit| sent_after(x) && !is_reinitialised(x);
    let may_alternate = standing == Standing::Gone && visits.iter().filter_map(|v| get(*v)).any(may_be_back);
    let right_status = refusals.iter().filter_map(|v| get(*v)).any(|v| v.status.is_none_or(|s| s == 404));
    Some(Refused {
        begun_before,
        session: session.clone(),
        was_known: first_ok.is_some_and(|t| t <= opened),
        refusals,
        visits,
        standing,
        may_alternate,
        right_status,
    })
}

/// A session never seen alive whose first refusal comes right at the beginning of a capture, on a
/// connection that is older than it: it may have been refused before, so its story was not seen.
fn began_before(world: &World, visit: &Visit) -> bool {
    const NS: i64 = 5_000_000_000;
    visit.midstream
        && visit.place.is_frame
        && world.input_start.get(&visit.input).is_some_and(|t| visit.asked.since(*t) < NS)
}

/// Was the request answered with success?
pub fn is_answered(visit: &Visit) -> bool {
    visit.status.is_some_and(|s| (200..300).contains(&s)) && refusal(visit).is_none()
}

/// A server may take an `initialize` under an old id and give it out again.
fn is_reinitialised(visit: &Visit) -> bool {
    visit.carries("initialize")
}

/// In what way a request was refused for its session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// As the specification wants (404), or in words that name the session.
    Unknown,
    /// With a status that can mean it, and no word that says so.
    Odd,
}

/// Words in which servers name the reason (Python, TypeScript, Go, Java, C#, rmcp).
const WORDS: &[&str] = &[
    "session not found",
    "session has been terminated",
    "no valid session",
    "unknown session",
    "invalid session",
    "session expired",
    "expired session",
    "session id not found",
    "not initialized",
    "session terminated",
    "session does not exist",
    "unknown or expired session",
];

/// How a request was refused, as evidence.
pub fn refused_how(visit: &Visit) -> String {
    match visit.status {
        Some(status) => format!("refused, status {status}"),
        None => "refused, as the server's log says; it shows no status".into(),
    }
}

/// Is the visit a refusal of its session id?
pub fn refusal(visit: &Visit) -> Option<Refusal> {
    visit.session.as_ref()?;
    // A server that writes no access lines says what it refused, and not how.
    let Some(status) = visit.status else {
        return (!visit.place.is_frame && says_session(visit)).then_some(Refusal::Unknown);
    };
    // A DELETE of an unknown session may be answered 404 or 405; a GET 405 means "no such stream".
    if visit.is_delete() || status == 405 || visit.legacy_stream {
        return None;
    }
    let error = visit.replies.iter().find(|r| r.error.is_some());
    let text = error_text(visit);
    let says_session = says_session(visit);
    match status {
        // 2026-07-28: an unknown method is 404 with -32601.
        404 if error.is_some_and(|r| r.error == Some(-32601)) && !says_session => None,
        // A page in plain text or HTML that says nothing of sessions is an edge's own.
        404 if visit.place.is_frame && error.is_none() && text.is_some() && !says_session => None,
        404 => Some(Refusal::Unknown),
        400 | 401 | 403 | 410 | 500 | 503 if says_session => Some(Refusal::Unknown),
        200 if says_session && error.is_some() => Some(Refusal::Unknown),
        // Without a body to read, a 400 on a session that was known can mean it.
        400 if text.is_none() && visit.is_post() => Some(Refusal::Odd),
        _ => None,
    }
}

/// What the answer says in words.
fn error_text(visit: &Visit) -> Option<&str> {
    let error = visit.replies.iter().find(|r| r.error.is_some());
    error.and_then(|r| r.error_text.as_deref()).or(visit.error_text.as_deref())
}

/// Does the answer say in words that it is about the session?
pub fn says_session(visit: &Visit) -> bool {
    error_text(visit).is_some_and(|t| {
        let t = t.to_ascii_lowercase();
        WORDS.iter().any(|w| t.contains(w))
    })
}
