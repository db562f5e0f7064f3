//! What the server's own log says of a call: the lines of its handler, found by tool, arguments, id
//! and time.

use super::answers::HopCallId;
use super::calls::{JointCall, World};
use crate::mcp::content::occurs;
use crate::mcp::visit::Rpc;
use crate::model::place::{InputId, Vantage};
use crate::model::record::{LogEvent, LogEventKind};
use crate::model::time::Time;
use rustc_hash::FxHashMap;

/// A handler may begin this long after its request was sent, beyond what the clocks can be off, ns.
const BEGINS_NS: i64 = 2_000_000_000;
/// A handler that says nothing more within this time of its beginning has no end that can be told, ns.
const LONGEST_NS: i64 = 3_600_000_000_000;
/// Events looked at for one call.
const LOOK_AT: usize = 4096;

/// One server's log, in order of time.
pub struct ServerLog<'w> {
    /// Its input.
    pub input: InputId,
    /// How far its clock may be off the reference, ns.
    pub error_ns: i64,
    events: Vec<(Time, &'w LogEvent)>,
    /// Those that say that the server, or its unit, started.
    starts: Vec<(Time, &'w LogEvent)>,
}

/// What a log says of a call.
#[derive(Clone, Copy)]
pub struct Handled<'w> {
    /// Its handler's first line.
    pub began: &'w LogEvent,
    /// The line that says how it ended.
    pub ended: Option<&'w LogEvent>,
    /// Another call's handler writes the same lines at the same time: these may be its.
    pub ambiguous: bool,
}

impl<'w> ServerLog<'w> {
    /// The logs of servers among the inputs, those that say anything with a time.
    pub fn all(world: &'w World) -> Vec<ServerLog<'w>> {
        let mut found: FxHashMap<InputId, Vec<(Time, &LogEvent)>> = FxHashMap::default();
        for e in world.logs.events.iter().filter(|e| e.vantage == Vantage::Server) {
            if let Some(when) = e.when {
                found.entry(world.logs.sources.of_event(e)).or_default().push((when.at, e));
            }
        }
        let mut all: Vec<ServerLog<'_>> = found
            .into_iter()
            .map(|(input, mut events)| {
                events.sort_by_key(|(t, e)| (*t, e.place.number));
                let error_ns = world.logs.clock_error(input);
                let is_start = |e: &LogEvent| matches!(e.kind, LogEventKind::ServerStarted | LogEventKind::UnitStarted);
                let starts = events.iter().copied().filter(|(_, e)| is_start(e)).collect();
                ServerLog { input, error_ns, events, starts }
            })
            .collect();
        all.sort_by_key(|l| l.input);
        all
    }

    /// Events from `from` to `to`, both included.
    pub fn between(&self, from: Time, to: Time) -> impl Iterator<Item = (Time, &'w LogEvent)> {
        let start = self.events.partition_point(|(t, _)| *t < from);
        self.events.get(start..).unwrap_or_default().iter().take_while(move |(t, _)| *t <= to).copied()
    }

    /// The last start of the server, or of its unit, before `at`.
    pub fn started(&self, at: Time) -> Option<(Time, &'w LogEvent)> {
        let end = self.starts.partition_point(|(t, _)| *t < at);
        self.starts.get(..end)?.last().copied()
    }

    /// The handler's lines for a call.
    pub fn handled(&self, world: &World, joint: &JointCall) -> Option<Handled<'w>> {
        let c = *joint.hops.last().or(joint.client.as_ref())?;
        let rpc = world.rpc_of(c).filter(|r| r.tool.is_some())?;
        // The arguments are best known where the bodies are.
        let told = joint.client.and_then(|c| world.rpc_of(c)).filter(|_| rpc.values().is_empty()).unwrap_or(rpc);
        let asked = world.hop_call(c)?.asked;
        let slack = self.error_ns + world.visit_of(c)?.at.error_ns.min(BEGINS_NS);
        let near = self.between(asked.plus_ns(-slack - 5_000_000), asked.plus_ns(slack + BEGINS_NS)).take(LOOK_AT);
        let begun: Vec<(Time, &LogEvent)> =
            near.filter(|(_, e)| e.kind == LogEventKind::Processing && is_of(e, rpc)).collect();
        let named: Vec<_> = begun.iter().filter(|(_, e)| names(e, told)).collect();
        let (began, mut ambiguous) = match (named.as_slice(), begun.as_slice()) {
            ([one], _) => (**one, false),
            ([], [one]) => (*one, false),
            ([first, ..], _) => (**first, true),
            ([], [first, ..]) => (*first, true),
            ([], []) => return None,
        };
        let (at, event) = began;
        let mut others = 0u32;
        let mut ended = None;
        for (_, e) in self.between(at, at.plus_ns(LONGEST_NS)).take(LOOK_AT) {
            let later = e.place.number > event.place.number;
            if !later || !is_of(e, rpc) || e.pid != event.pid {
                continue;
            }
            match e.kind {
                LogEventKind::Processing => others += 1,
                LogEventKind::Finished | LogEventKind::Error | LogEventKind::Cancelled => {
                    ended = Some(e);
                    break;
                }
                _ => {}
            }
        }
        // An earlier call of the tool that is still being worked on writes the same end.
        let open = self.open_before(event, rpc);
        ambiguous |= ended.is_some_and(|e| e.rpc_id.is_none()) && (others > 0 || open);
        Some(Handled { began: event, ended, ambiguous })
    }

    /// Does a handler that began about then name an argument of a call that only the client's record shows?
    pub fn names(&self, world: &World, record: HopCallId) -> bool {
        let (Some(rpc), Some(call)) = (world.rpc_of(record).filter(|r| r.tool.is_some()), world.hop_call(record))
        else {
            return false;
        };
        let slack = self.error_ns + world.visit_of(record).map_or(0, |v| v.at.error_ns.min(BEGINS_NS));
        let near = self.between(call.asked.plus_ns(-slack - 5_000_000), call.asked.plus_ns(slack + BEGINS_NS));
        let begun = near.take(LOOK_AT).filter(|(_, e)| e.kind == LogEventKind::Processing && is_of(e, rpc));
        begun.map(|(_, e)| e).any(|e| names(e, rpc))
    }

    /// Did another handler of the tool begin before `event` and not end by then?
    fn open_before(&self, event: &LogEvent, rpc: &Rpc) -> bool {
        let Some(when) = event.when else { return false };
        let mut open = 0i64;
        let recent = self.between(when.at.plus_ns(-600_000_000_000), when.at).take(LOOK_AT);
        for (_, e) in recent.filter(|(_, e)| e.place.number < event.place.number && is_of(e, rpc)) {
            match e.kind {
                LogEventKind::Processing => open += 1,
                LogEventKind::Finished | LogEventKind::Error | LogEventKind::Cancelled => open = (open - 1).max(0),
                _ => {}
            }
        }
        open > 0
    }
}

impl World {
    /// The tool calls of the session in flight with a call at its hop, itself included, in order.
    pub fn batch_of(&self, c: HopCallId) -> Vec<HopCallId> {
        let Some(call) = self.hop_call(c) else { return vec![] };
        let Some(list) = self.answers.by_group.get(call.group as usize) else { return vec![] };
        let Ok(here) = list.binary_search(&c) else { return vec![] };
        let end = self.until(c);
        let is_tool = |x: &HopCallId| self.rpc_of(*x).is_some_and(|r| r.tool.is_some());
        let before = list.get(..here).unwrap_or_default().iter().rev().take(NEIGHBOURS);
        let mut out: Vec<HopCallId> =
            before.filter(|x| is_tool(x) && self.until(**x).is_none_or(|t| t >= call.asked)).copied().collect();
        out.reverse();
        out.push(c);
        let after = list.get(here + 1..).unwrap_or_default().iter().take(NEIGHBOURS);
        out.extend(
            after
                .filter(|x| is_tool(x))
                .take_while(|x| self.hop_call(**x).is_some_and(|o| end.is_none_or(|e| o.asked <= e))),
        );
        out
    }
}

/// Calls looked at on either side for a batch, at most.
const NEIGHBOURS: usize = 512;

fn is_of(e: &LogEvent, rpc: &Rpc) -> bool {
    let id = match (&e.rpc_id, &rpc.id) {
        (Some(a), Some(b)) => a.loose() == b.loose(),
        _ => true,
    };
    e.tool.is_some() && e.tool == rpc.tool && id
}

/// Does the line hold an argument of the call?
fn names(e: &LogEvent, rpc: &Rpc) -> bool {
    rpc.values().iter().any(|v| occurs(e.text.as_bytes(), v))
}
