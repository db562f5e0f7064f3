//! Everything that logs say, on one clock with the captures, as visits beside theirs.

use super::attach::{attach, of_input};
use super::chain::Chains;
use super::clock::{self, Tick};
use super::drift::Offset;
use super::islands::{self, Source};
use super::sources::{Shown, Sources, vantage_of};
use super::unlogged::{Unlogged, is_unlogged};
use super::{clients, ordered, sightings};
use crate::mcp::Tracked;
use crate::mcp::visit::{Visit, without_slash};
use crate::model::options::GivenClock;
use crate::model::place::{InputId, Place, Vantage};
use crate::model::record::{AccessRecord, LogEvent, LogEventKind, Record, When};
use rustc_hash::{FxHashMap, FxHashSet};

/// What the logs of a run say.
#[derive(Default)]
pub struct Logs {
    /// Events, in order of input and place, on the reference clock.
    pub events: Vec<LogEvent>,
    /// Offset found for each input that has times; none: nothing to align it by.
    pub offsets: FxHashMap<InputId, Option<Offset>>,
    /// Client visits.
    pub clients: Vec<u32>,
    /// Inputs that show requests (access lines), by vantage.
    pub access_inputs: Vec<InputId>,
    /// Lines and clients' records that other exchanges fit as well as the one that they are joined to.
    pub ambiguous: FxHashSet<u32>,
    /// Clients' records that have no line of an input, though one that another record has fits as well: which
    /// of the two calls the input lacks cannot be told.
    pub contested: FxHashSet<(u32, InputId)>,
    /// Whose lines are whose; the inputs above are sources.
    pub sources: Sources,
    /// Sources whose lines have no times, and those whose order told when they were.
    pub ordered: FxHashMap<InputId, InputId>,
    /// What the lines of each source say by themselves.
    pub shown: FxHashMap<InputId, Shown>,
}

impl Logs {
    /// Can times of an input be compared with those of others? Not where it has requests that others saw
    /// too, and they fit at no offset, or at several.
    pub fn is_aligned(&self, input: InputId) -> bool {
        !matches!(self.offsets.get(&input), Some(None))
    }

    /// How far the clock of a source may be off the reference, ns.
    pub fn clock_error(&self, input: InputId) -> i64 {
        self.offsets.get(&input).copied().flatten().map_or(0, |o| o.error_ns)
    }
}

/// Puts all captures on the clock of the first, by exchanges that both sides of a proxy saw.
pub fn align_captures(visits: &mut [Visit]) -> FxHashMap<InputId, Option<Offset>> {
    let mut captures: Vec<InputId> = visits.iter().filter(|v| v.vantage == Vantage::Wire).map(|v| v.input).collect();
    captures.sort_unstable();
    captures.dedup();
    let found = super::chain::capture_offsets(visits, &captures);
    for v in visits.iter_mut() {
        if let Some(Some(offset)) = found.get(&v.input)
            && (offset.drift.is_some() || offset.ns.abs() > offset.error_ns + SAME_CLOCK_NS)
        {
            clock::shift(v, offset);
        }
    }
    found
}

/// Captures that differ by less have one clock: the rest is the way between their vantages, ns.
const SAME_CLOCK_NS: i64 = 2_000_000;

/// Turns records into visits beside those of `tracked`, aligned.
/// `is_joined`: lines of the only log were joined while it was read. `writers`: see [`Sources::writer`]. `clocks`: what
/// is known of them before, by input.
pub fn read(
    records: Vec<Record>,
    tracked: &mut Tracked,
    endpoint: Option<&str>,
    is_joined: bool,
    writers: FxHashMap<InputId, InputId>,
    clocks: &[Option<GivenClock>],
) -> Logs {
    let (mut access, mut events, mut calls, mut messages) = (vec![], vec![], vec![], vec![]);
    for r in records {
        match r {
            Record::Access(r) => access.push(*r),
            Record::Event(e) => events.push(*e),
            Record::Client(c) => calls.push(*c),
            Record::Message(m) => messages.push(*m),
        }
    }
    let mut logs = Logs { sources: Sources::of(&access, &events, writers), events, ..Logs::default() };
    // Lines of a log that was joined in parts stand behind those of captures already.
    let first_log = tracked.visits.iter().position(|v| !v.place.is_frame).unwrap_or(tracked.visits.len());
    let none_kept = first_log == tracked.visits.len();
    if none_kept && access.is_empty() && logs.events.is_empty() && calls.is_empty() && messages.is_empty() {
        return logs;
    }
    let mut paths: FxHashSet<String> = endpoint.map(|p| without_slash(p).to_owned()).into_iter().collect();
    let wire_paths =
        tracked.visits.iter().filter(|v| !v.rpc.is_empty() || v.session.is_some()).filter_map(Visit::endpoint_path);
    paths.extend(wire_paths.map(str::to_owned));
    // Others show requests better than a server's words do.
    let is_alone = !is_joined && tracked.visits.is_empty() && calls.is_empty() && messages.is_empty();
    let is_alone = is_alone && access.iter().all(|r| vantage_of(r) == Vantage::Server);
    let mut lines = lines(access, &paths, &logs, is_alone);
    let of_lines = lines.iter().filter(|v| !is_unlogged(v));
    of_lines.for_each(|v| logs.shown.entry(v.input).or_default().add(v));
    tracked.visits.append(&mut lines);
    let sources = &logs.sources;
    logs.ordered = ordered::time(&mut tracked.visits, first_log, &mut logs.events, |e| sources.of_event(e));
    let mut own = sightings::clients(&calls);
    own.extend(sightings::messages_logged(&messages));
    let first_client = tracked.visits.len() as u32;
    tracked.visits.extend(own);
    logs.clients = (first_client..tracked.visits.len() as u32).collect();
    let given = (0..).zip(clocks).filter_map(|(input, clock)| Some((input, (*clock)?)));
    align(&mut tracked.visits, first_log, &mut logs, &given.collect());
    let mut inputs: Vec<InputId> =
        tracked.visits.iter().filter(|v| v.vantage != Vantage::Client && !v.place.is_frame).map(|v| v.input).collect();
    inputs.sort_unstable();
    inputs.dedup();
    logs.access_inputs = inputs;
    logs
}

fn lines(access: Vec<AccessRecord>, paths: &FxHashSet<String>, logs: &Logs, is_alone: bool) -> Vec<Visit> {
    let mut by_source: FxHashMap<InputId, Vec<AccessRecord>> = FxHashMap::default();
    if is_alone {
        by_source.extend(logs.events.iter().map(|e| (logs.sources.of_event(e), vec![])));
    }
    for r in access {
        if let Some(place) = r.place {
            by_source.entry(logs.sources.source(place.input, vantage_of(&r))).or_default().push(r);
        }
    }
    let mut sources: Vec<InputId> = by_source.keys().copied().collect();
    sources.sort_unstable();
    let mut out = vec![];
    for source in sources {
        let records = by_source.remove(&source).unwrap_or_default();
        let mut visits = sightings::access(&records, paths);
        visits.iter_mut().for_each(|v| v.input = source);
        let events = || logs.events.iter().filter(|e| logs.sources.of_event(e) == source);
        let logged = name_sessions(&mut visits, events());
        if is_alone {
            let mut unlogged = Unlogged::default();
            visits.extend(events().filter_map(|e| unlogged.visit(e, logged.contains(&e.place))));
        }
        sightings::handshakes(&mut visits);
        out.extend(visits);
    }
    out
}

/// Lines between an event about a session and the access line it belongs to.
const NEAR_LINES: u64 = 12;
/// Time between the two, where an entry has many lines (the journal's export format) or none, ns.
const NEAR_NS: i64 = 50_000_000;

/// Does a line of the same log that follows an event stand right behind it?
fn is_right_behind(v: &Visit, e: &LogEvent) -> bool {
    let apart = |w: When| v.at.at.since(w.at).abs();
    v.place.number.saturating_sub(e.place.number) <= NEAR_LINES
        || e.when.is_some_and(|w| w.error_ns <= NEAR_NS && v.at.error_ns <= NEAR_NS && apart(w) <= NEAR_NS)
}

/// A server says which session it created or refused right before the access line of that request. Gives the places of
/// those events for which there is one.
pub(super) fn name_sessions<'e>(visits: &mut [Visit], events: impl Iterator<Item = &'e LogEvent>) -> FxHashSet<Place> {
    let mut logged = FxHashSet::default();
    let mut events = events.peekable();
    if events.peek().is_none() {
        return logged;
    }
    let mut order: Vec<usize> = (0..visits.len()).collect();
    order.sort_by_key(|i| visits.get(*i).map(|v| v.place.number));
    for e in events {
        let Some(session) = &e.session else { continue };
        let wanted = |v: &Visit| match e.kind {
            LogEventKind::SessionCreated => v.status == Some(200),
            LogEventKind::SessionRejected => matches!(v.status, Some(400 | 404)),
            _ => false,
        };
        let from = order.partition_point(|i| visits.get(*i).is_some_and(|v| v.place.number < e.place.number));
        let next = order
            .get(from..)
            .unwrap_or_default()
            .iter()
            .copied()
            .find(|i| visits.get(*i).is_some_and(|v| !is_right_behind(v, e) || v.is_post()));
        let Some(v) = next.and_then(|i| visits.get_mut(i)).filter(|v| is_right_behind(v, e) && wanted(v)) else {
            continue;
        };
        logged.insert(e.place);
        if v.session.is_none() && v.given.is_none() {
            match e.kind {
                LogEventKind::SessionCreated => v.given = Some(session.clone()),
                _ => v.session = Some(session.clone()),
            }
        }
    }
    logged
}

/// Puts every log on the reference clock: that of the captures, else the one by which clocks are `given`, else that of
/// the first of those logs that can be aligned.
fn align(visits: &mut [Visit], first_log: usize, logs: &mut Logs, given: &FxHashMap<InputId, GivenClock>) {
    let mut reference: Vec<Tick> = vec![];
    visits.iter().take(first_log).for_each(|v| clock::ticks(v, &mut reference));
    // Requests in order say nothing new where packets name every call; between logs they do.
    let wire = !reference.is_empty();
    let mut inputs: Vec<(u8, InputId)> = visits
        .iter()
        .skip(first_log)
        .map(|v| (order_of(v.vantage), v.input))
        .chain(logs.events.iter().map(|e| (order_of(e.vantage), logs.sources.of_event(e))))
        .collect();
    // Proxies' clocks first: they have the finest times and the most keys.
    inputs.sort_unstable();
    // One can have a proxy's lines and a server's words, and others stand between these.
    let mut known = FxHashSet::default();
    inputs.retain(|(_, input)| known.insert(*input));
    let of_one = |(_, input): &(u8, InputId)| inputs.first().is_some_and(|(_, i)| logs.sources.are_one(*i, *input));
    if !wire && given.is_empty() && inputs.iter().all(of_one) && has_times(visits.get(first_log..).unwrap_or_default())
    {
        logs.offsets.extend(inputs.iter().map(|(_, input)| (*input, Some(Offset::none(0)))));
        return;
    }
    let mut sources: Vec<Source> = vec![];
    let mut written: FxHashMap<InputId, Vec<InputId>> = FxHashMap::default();
    for (_, input) in inputs {
        let mut ticks = vec![];
        visits.iter().skip(first_log).filter(|v| v.input == input).for_each(|v| clock::ticks(v, &mut ticks));
        if !wire {
            let own: Vec<&Visit> = visits.iter().skip(first_log).filter(|v| v.input == input).collect();
            clock::sequences(&own, &mut ticks);
        }
        // A client records no session that it was given, but the one that it names from then on.
        for (n, session) in clients::sessions_given(visits, &of_client(visits, input)) {
            if let Some(v) = visits.get(n as usize).filter(|v| v.at.is_known()) {
                let answered = v.ended.map_or(v.asked, |m| m.at);
                ticks.push(clock::created(input, &session, answered, v.at.error_ns));
            }
        }
        // The line of the request says it too, where there is one.
        let said: FxHashSet<u64> = ticks.iter().map(|t| t.key).collect();
        for e in logs.events.iter().filter(|e| logs.sources.of_event(e) == input) {
            if let (LogEventKind::SessionCreated, Some(s), Some(w)) = (e.kind, &e.session, e.when)
                && !said.contains(&clock::created(input, s, w.at, 0).key)
            {
                ticks.push(clock::created(input, s, w.at, w.error_ns));
            }
        }
        // One writer has one clock, in however many files.
        let writer = logs.sources.writer(input);
        if ticks.is_empty() && !given.contains_key(&writer) {
            continue;
        }
        ticks.iter_mut().for_each(|t| t.input = writer);
        match sources.iter_mut().find(|s| s.input == writer) {
            Some(source) => source.ticks.append(&mut ticks),
            None => sources.push(Source { input: writer, ticks }),
        }
        written.entry(writer).or_default().push(input);
    }
    let offsets = islands::offsets(reference, sources, given);
    let files = offsets.into_iter().flat_map(|(writer, found)| {
        written.remove(&writer).unwrap_or_default().into_iter().map(move |input| (input, found))
    });
    for (input, found) in files {
        logs.offsets.insert(input, found);
        let Some(offset) = found else { continue };
        visits.iter_mut().skip(first_log).filter(|v| v.input == input).for_each(|v| clock::shift(v, &offset));
        let own = &logs.sources;
        for w in logs.events.iter_mut().filter(|e| own.of_event(e) == input).filter_map(|e| e.when.as_mut()) {
            w.at = offset.apply(w.at);
        }
    }
}

/// A source that is alone is its own reference, if it has a time at all.
fn has_times(visits: &[Visit]) -> bool {
    let mut ticks = vec![];
    visits.iter().any(|v| {
        clock::ticks(v, &mut ticks);
        !ticks.is_empty()
    })
}

fn of_client(visits: &[Visit], input: InputId) -> Vec<u32> {
    let mine = |v: &Visit| v.input == input && v.vantage == Vantage::Client;
    (0u32..).zip(visits).filter(|(_, v)| mine(v)).map(|(n, _)| n).collect()
}

fn order_of(vantage: Vantage) -> u8 {
    match vantage {
        Vantage::Wire => 0,
        Vantage::Proxy => 1,
        Vantage::Client => 2,
        Vantage::Server => 3,
    }
}

/// Joins the lines of access logs to the exchanges of the wire, or of the logs before them.
pub fn join_lines(visits: &mut [Visit], chains: &mut Chains, logs: &mut Logs) {
    let mut inputs: Vec<(u8, InputId)> = logs
        .access_inputs
        .iter()
        .filter_map(|i| visits.iter().find(|v| v.input == *i).map(|v| (order_of(v.vantage), *i)))
        .collect();
    inputs.sort_unstable();
    let mut ambiguous = FxHashSet::default();
    inputs.retain(|(_, input)| logs.is_aligned(*input));
    let of_aligned = |c: &u32| visits.get(*c as usize).is_some_and(|v| logs.is_aligned(v.input));
    let records: Vec<u32> = logs.clients.iter().copied().filter(of_aligned).collect();
    // Which record told what a line is about.
    let mut named: FxHashMap<u32, u32> = FxHashMap::default();
    for (n, (_, input)) in inputs.iter().enumerate() {
        // What one writer wrote twice is two requests.
        let is_other = |i: &InputId| !logs.sources.are_one(*i, *input);
        let earlier: FxHashSet<InputId> = inputs.iter().take(n).map(|(_, i)| *i).filter(is_other).collect();
        let is_own = |v: &u32| visits.get(*v as usize).is_some_and(|x| !x.place.is_frame && !is_other(&x.input));
        let vantage = visits.iter().find(|v| v.input == *input).map_or(Vantage::Proxy, |v| v.vantage);
        let lines = of_input(visits, *input, vantage);
        let mut known: Vec<u32> = vec![];
        for chain in chains.all.iter().filter(|c| !c.iter().any(is_own)) {
            let seen = |v: &&u32| visits.get(**v as usize);
            let frame = |v: &&u32| seen(v).is_some_and(|x| x.place.is_frame);
            let logged = |v: &&u32| seen(v).is_some_and(|x| earlier.contains(&x.input));
            // A proxy's lines tell of the side towards the client, a server's of the other one; packets have
            // the finer times.
            let end = if vantage == Vantage::Server {
                chain.iter().rev().find(frame).or_else(|| chain.iter().rev().find(logged))
            } else {
                chain.iter().find(frame).or_else(|| chain.iter().find(logged))
            };
            known.extend(end);
        }
        logs.contested.extend(clients::contested(visits, &records, &lines).into_iter().map(|c| (c, *input)));
        let offset = logs.offsets.get(input).copied().flatten();
        let before = known.clone();
        let rest = attach_all(visits, chains, &mut known, lines, offset, &mut ambiguous);
        // What the client's record says comes in only where nothing else tells what a line is about, and once
        // in a log.
        let left: FxHashSet<u32> = known.iter().copied().collect();
        let told: FxHashSet<u32> =
            before.iter().filter(|k| !left.contains(k)).filter_map(|k| named.get(k).copied()).collect();
        let records: Vec<u32> = records.iter().copied().filter(|c| !told.contains(c)).collect();
        if !records.is_empty() && !rest.is_empty() {
            for (client, line, unsure) in clients::enrich(visits, &records, &rest) {
                named.insert(line, client);
                ambiguous.extend(unsure.then_some(line));
            }
            attach_all(visits, chains, &mut known, rest, offset, &mut ambiguous);
        }
    }
    logs.ambiguous = ambiguous;
}

/// Joins `lines` to exchanges of `known`, takes these out of it, and gives the lines that are left.
fn attach_all(
    visits: &mut [Visit],
    chains: &mut Chains,
    known: &mut Vec<u32>,
    mut lines: Vec<u32>,
    offset: Option<Offset>,
    ambiguous: &mut FxHashSet<u32>,
) -> Vec<u32> {
    let found = attach(visits, known, &lines, offset);
    for (line, joined) in &found {
        chains.merge_into(joined.to, *line);
        let of = |v: u32| visits.get(v as usize).map(|v| (&v.session, &v.given));
        let one_session = joined.rivals.iter().all(|r| of(*r) == of(joined.to));
        if !joined.rivals.is_empty() {
            ambiguous.insert(*line);
        }
        // What may be another's is not taken over.
        if one_session {
            share(visits, joined.to, *line, joined.rivals.is_empty());
        }
    }
    lines.retain(|l| !found.contains_key(l));
    let taken: FxHashSet<u32> = found.into_values().map(|j| j.to).collect();
    known.retain(|k| !taken.contains(k));
    lines
}

/// What one line of an exchange knows and the other does not: the session, and, where the join is `sure`,
/// what was asked.
fn share(visits: &mut [Visit], a: u32, b: u32, sure: bool) {
    let (Some(x), Some(y)) = (visits.get(a as usize).cloned(), visits.get(b as usize).cloned()) else { return };
    for (v, other) in [(a, &y), (b, &x)] {
        let Some(v) = visits.get_mut(v as usize).filter(|v| !v.place.is_frame) else { continue };
        if v.session.is_none() && v.given.is_none() {
            v.session.clone_from(&other.session);
            v.given.clone_from(&other.given);
        }
        if sure
            && v.rpc.iter().all(|r| r.method.is_none())
            && other.rpc.iter().any(|r| r.method.is_some())
            && !other.place.is_frame
        {
            v.rpc.clone_from(&other.rpc);
        }
    }
}
