//! Sessions that one process of the server began and another refused, while both ran: what their logs say.

use crate::join::World;
use crate::model::id::SessionId;
use crate::model::record::{LogEvent, LogEventKind};
use crate::model::time::Time;
use rustc_hash::FxHashMap;

/// A process, as its lines tell it from others: log, service or container, host, process id.
type Writer<'w> = (u32, Option<&'w str>, Option<&'w str>, Option<u32>);

/// What the processes say of one session.
#[derive(Default)]
struct Said<'w> {
    created: Option<&'w LogEvent>,
    ended: Option<Time>,
    rejected: Vec<&'w LogEvent>,
}

/// A session, who began it, and who does not know it.
pub struct Split<'w> {
    /// The session.
    pub session: &'w SessionId,
    /// What the process says that began it.
    pub created: &'w LogEvent,
    /// What another says that refused it afterwards, while both ran.
    pub rejected: Vec<&'w LogEvent>,
}

/// All such sessions, in order of their beginning.
pub fn splits(world: &World) -> Vec<Split<'_>> {
    let mut said: FxHashMap<&SessionId, Said<'_>> = FxHashMap::default();
    let mut heard: FxHashMap<Writer<'_>, (Time, Time)> = FxHashMap::default();
    for e in world.logs.events.iter().filter(|e| world.logs.is_aligned(world.logs.sources.of_event(e))) {
        let Some(at) = e.when.map(|w| w.at) else { continue };
        let span = heard.entry(writer(world, e)).or_insert((at, at));
        *span = (span.0.min(at), span.1.max(at));
        let Some(session) = &e.session else { continue };
        let of = said.entry(session).or_default();
        match e.kind {
            LogEventKind::SessionCreated => drop(of.created.get_or_insert(e)),
            LogEventKind::SessionRejected => of.rejected.push(e),
            LogEventKind::SessionEnded | LogEventKind::SessionExpired | LogEventKind::SessionCrashed => {
                of.ended = Some(of.ended.map_or(at, |t| t.min(at)));
            }
            _ => {}
        }
    }
    let mut out: Vec<Split<'_>> = vec![];
    for (session, of) in said {
        let Some((created, began)) = of.created.and_then(|e| Some((e, e.when?.at))) else { continue };
        let own = writer(world, created);
        let until = heard.get(&own).map_or(began, |(_, last)| *last);
        let by_another = |e: &&LogEvent| {
            let other = writer(world, e);
            let Some(at) = e.when.map(|w| w.at).filter(|t| *t > began) else { return false };
            // A process that only began when the other was gone took its place: that is a restart.
            let both = until >= at || heard.get(&other).is_some_and(|(first, _)| *first < began);
            other != own && both && of.ended.is_none_or(|t| t > at)
        };
        let rejected: Vec<&LogEvent> = of.rejected.iter().copied().filter(by_another).collect();
        if !rejected.is_empty() {
            out.push(Split { session, created, rejected });
        }
    }
    out.sort_by_key(|s| (s.created.when.map(|w| w.at), s.session));
    out
}

fn writer<'w>(world: &World, e: &'w LogEvent) -> Writer<'w> {
    let log = world.logs.sources.writer(world.logs.sources.of_event(e));
    (log, e.unit.as_deref(), e.host.as_deref(), e.pid)
}
