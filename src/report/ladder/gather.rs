//! From the report to messages: each call's request, reply or hanging end; exchanges that are no
//! calls; stale windows; findings about no call.

use super::{Direction, Group, Message, Mood};
use crate::model::exchange::End;
use crate::model::place::{Side, Vantage};
use crate::model::report::{Call, CallKey, Delivered, ExchangeRow, Outcome, Report, RpcRow, Sighting};
use crate::model::time::Time;
use crate::report::clean::{clean, clean_short};
use crate::report::tables::{cause_name, end_name, outcome_name, waited_ns};
use crate::report::view::{View, label, size, span};
use rustc_hash::{FxHashMap, FxHashSet};
use std::sync::Arc;

type Session = Option<Arc<str>>;

/// Columns from client to server, and the messages of each group in order of time.
pub(super) fn gather(view: &View<'_>) -> (Vec<&'static str>, Vec<Group>) {
    let path = Path::of(view.report);
    let mut gathering = Gathering {
        view,
        path,
        roots: tied_sessions(view.report),
        order: Vec::new(),
        groups: FxHashMap::default(),
        found: findings_by_call(view.report),
    };
    for s in &view.report.sessions {
        gathering.group(&s.session);
    }
    view.report.calls.iter().for_each(|c| gathering.call(c));
    gathering.exchanges();
    gathering.windows();
    gathering.marks();
    let columns = gathering.path.columns();
    (columns, gathering.finish())
}

/// Which parts of the way from client to server the inputs can show.
#[derive(Clone, Copy)]
struct Path {
    has_proxy: bool,
    /// Parts that some input covers.
    covered: u8,
}

impl Path {
    fn of(report: &Report) -> Path {
        let has_proxy = report.inputs.iter().any(|i| i.side.is_some() || i.vantage == Some(Vantage::Proxy));
        let path = Path { has_proxy, covered: 0 };
        let covered = report.inputs.iter().fold(0, |seen, i| seen | path.seen(i.vantage, i.side));
        Path { covered, ..path }
    }

    /// Parts that no input can show; where nothing was seen, nothing is supposed either.
    fn dark(self, seen: u8) -> u8 {
        let all = if self.has_proxy { 0b11 } else { 0b1 };
        if seen == 0 { 0 } else { all & !self.covered }
    }

    fn columns(self) -> Vec<&'static str> {
        if self.has_proxy { vec!["client", "proxy", "server"] } else { vec!["client", "server"] }
    }

    /// The parts on which this vantage point proves a message.
    fn seen(self, vantage: Option<Vantage>, side: Option<Side>) -> u8 {
        match (vantage, side) {
            _ if !self.has_proxy => u8::from(vantage != Some(Vantage::Client)),
            (Some(Vantage::Wire), Some(Side::Front)) | (Some(Vantage::Proxy), _) => 0b01,
            (Some(Vantage::Wire), Some(Side::Back)) | (Some(Vantage::Server), _) => 0b10,
            (Some(Vantage::Wire), None) => 0b11,
            (Some(Vantage::Client) | None, _) => 0,
        }
    }
}

/// Sessions that stale windows tie together, each with the first of its chain.
fn tied_sessions(report: &Report) -> FxHashMap<Arc<str>, Arc<str>> {
    let mut roots: FxHashMap<Arc<str>, Arc<str>> = FxHashMap::default();
    for w in &report.windows {
        if let (Some(old), Some(new)) = (&w.stale_session, &w.new_session) {
            let root = roots.get(old).unwrap_or(old).clone();
            if root != *new {
                roots.insert(new.clone(), root);
            }
        }
    }
    roots
}

/// Numbers (from 1) of the findings about each call: those of which it is the victim.
fn findings_by_call(report: &Report) -> FxHashMap<CallKey, Vec<usize>> {
    let mut out: FxHashMap<CallKey, Vec<usize>> = FxHashMap::default();
    for (n, f) in report.findings.iter().enumerate() {
        if let Some(key) = f.victim {
            out.entry(key).or_default().push(n + 1);
        }
    }
    out
}

fn is_notification(r: &RpcRow) -> bool {
    r.method.as_deref().is_some_and(|m| m.starts_with("notifications/"))
}

/// What has been gathered of a group.
#[derive(Default)]
struct Gathered {
    messages: Vec<Message>,
    sessions: Vec<Session>,
    windows: Vec<(Time, Time)>,
}

struct Gathering<'a, 'v> {
    view: &'a View<'v>,
    path: Path,
    roots: FxHashMap<Arc<str>, Arc<str>>,
    order: Vec<Session>,
    groups: FxHashMap<Session, Gathered>,
    found: FxHashMap<CallKey, Vec<usize>>,
}

impl Gathering<'_, '_> {
    /// The group of a session; makes it where it is new.
    fn group(&mut self, session: &Session) -> &mut Gathered {
        let root = session.as_ref().map(|id| self.roots.get(id).unwrap_or(id).clone());
        let order = &mut self.order;
        let group = self.groups.entry(root.clone()).or_insert_with(|| {
            order.push(root);
            Gathered::default()
        });
        if !group.sessions.contains(session) {
            group.sessions.push(session.clone());
        }
        group
    }

    fn push(&mut self, session: &Session, message: Message) {
        self.group(session).messages.push(message);
    }

    fn call(&mut self, c: &Call) {
        let request = self.request(c);
        self.push(&c.session, request);
        if let Some(end) = self.ending(c) {
            self.push(&c.session, end);
        }
    }

    fn request(&self, c: &Call) -> Message {
        let places = c.sightings.iter().map(|s| self.place(s, s.frame.or(s.line))).collect();
        let seen = c.sightings.iter().fold(0, |seen, s| seen | self.seen(s));
        let method = c.method.as_deref().filter(|m| *m != "tools/call" || c.tool.is_none());
        let name = c.tool.as_deref().or(method);
        let mut note = Vec::new();
        if c.outcome == Outcome::NotSent {
            note.push("issued by the client, seen nowhere else".to_string());
        }
        Message {
            at: c.sent.or(c.issued),
            direction: if c.from == Some("server") { Direction::ToClient } else { Direction::ToServer },
            seen,
            dark: self.path.dark(seen),
            text: format!("{} ({})", clean_short(&label(name, c.id.as_ref()), 120), c.key),
            note: note.join("  "),
            places,
            mood: if c.outcome == Outcome::NotSent { Mood::Hanging } else { Mood::Plain },
            call: Some(c.key),
            opens: true,
            closes: c.outcome == Outcome::NotSent,
            owner: None,
            findings: if c.outcome == Outcome::NotSent { self.numbers(c.key) } else { Vec::new() },
        }
    }

    /// The reply, or what there is instead of one; none where the inputs do not show the end.
    fn ending(&self, c: &Call) -> Option<Message> {
        let replied = c.sightings.iter().filter(|s| s.reply_at.is_some() || s.reply_frame.is_some());
        let mut places: Vec<String> = replied.clone().map(|s| self.place(s, s.reply_frame)).collect();
        let mut seen = replied.fold(0, |seen, s| seen | self.seen(s));
        let id = c.id.as_ref().map_or_else(|| c.key.to_string(), |id| format!("id {id} ({})", c.key));
        let (mood, what) = match c.outcome {
            Outcome::NotSent => return None,
            Outcome::Unobserved if c.replied.is_none() => return None,
            Outcome::NoReply => (Mood::Hanging, self.no_reply(c)),
            _ if c.delivered == Delivered::Foreign => (Mood::Crossed, self.foreign(c, &id)),
            Outcome::HttpError => (Mood::Refused, format!("refused {id}")),
            Outcome::ToolError | Outcome::RpcError => (Mood::Refused, format!("{} {id}", outcome_name(c.outcome))),
            Outcome::Cancelled => (Mood::Note, format!("cancelled {id}")),
            Outcome::Result | Outcome::Unobserved => (Mood::Plain, format!("result {id}")),
        };
        let ended = c.sightings.iter().filter_map(|s| s.ended_at).max();
        let is_event = c.outcome == Outcome::NoReply || (c.outcome == Outcome::Cancelled && c.replied.is_none());
        if seen == 0 && !is_event {
            // No frame of the reply is known, only that there was one: where the request was seen.
            let answered = c.sightings.iter().filter(|s| s.status.is_some());
            seen = answered.clone().fold(0, |seen, s| seen | self.seen(s));
            places.clear();
        }
        let back = if c.from == Some("server") { Direction::ToServer } else { Direction::ToClient };
        Some(Message {
            at: c.replied.or(ended),
            direction: if is_event { Direction::At(0) } else { back },
            seen,
            dark: self.path.dark(seen),
            text: clean_short(&what, 200).into_owned(),
            note: self.measures(c),
            places,
            mood,
            call: Some(c.key),
            opens: false,
            closes: true,
            owner: if mood == Mood::Crossed { self.owner(c.key) } else { None },
            findings: self.numbers(c.key),
        })
    }

    fn numbers(&self, key: CallKey) -> Vec<usize> {
        self.found.get(&key).cloned().unwrap_or_default()
    }

    fn owner(&self, victim: CallKey) -> Option<CallKey> {
        let numbers = self.found.get(&victim)?;
        numbers.iter().find_map(|n| self.view.report.findings.get(n - 1)?.owner)
    }

    fn foreign(&self, c: &Call, id: &str) -> String {
        match self.owner(c.key) {
            Some(owner) => format!("{id} got the payload of {}", self.view.key_label(owner)),
            None => format!("{id} got the payload of another call"),
        }
    }

    fn no_reply(&self, c: &Call) -> String {
        let numbers = self.found.get(&c.key).map_or(&[][..], Vec::as_slice);
        let waited = numbers.iter().find_map(|n| waited_ns(self.view.report.findings.get(n - 1)?));
        let end = c.sightings.iter().find_map(|s| s.end).filter(|e| *e != End::Complete);
        let mut out = format!("{} ({}): no reply", self.view.call_label(c), c.key);
        if let Some(ns) = waited {
            out.push_str(&format!(" in {}", span(ns)));
        }
        if let Some(end) = end {
            out.push_str(&format!(", {}", end_name(end)));
        }
        out
    }

    /// Status, size, latency.
    fn measures(&self, c: &Call) -> String {
        let mut out = Vec::new();
        out.extend(c.sightings.iter().find_map(|s| s.status).map(|s| s.to_string()));
        out.extend(c.sightings.iter().find_map(|s| s.bytes).map(size));
        out.extend(self.view.latency_ns(c).map(span));
        out.join("  ")
    }

    fn side(&self, input: u32) -> Option<Side> {
        self.view.report.inputs.get(input as usize).and_then(|i| i.side)
    }

    fn seen(&self, s: &Sighting) -> u8 {
        self.path.seen(s.vantage, self.side(s.input))
    }

    fn place(&self, s: &Sighting, number: Option<u64>) -> String {
        let name = clean_short(self.view.input(s.input), 60);
        number.map_or_else(|| name.to_string(), |n| format!("{name}:{n}"))
    }

    /// Exchanges (and the replies on them) that no call tells of.
    fn exchanges(&mut self) {
        let calls = &self.view.report.calls;
        let sightings = || calls.iter().flat_map(|c| &c.sightings);
        let frames: FxHashSet<(u32, u64)> = sightings().filter_map(|s| Some((s.input, s.frame?))).collect();
        let times: FxHashSet<(u32, i64)> = sightings().filter_map(|s| Some((s.input, s.at?.ns()))).collect();
        let replies: FxHashSet<(u32, u64)> = sightings().filter_map(|s| Some((s.input, s.reply_frame?))).collect();
        // Lines of logs tell of calls without an id; each sighting is one line.
        let mut lines: FxHashMap<(u32, i64), usize> = FxHashMap::default();
        for s in sightings().filter(|s| s.line.is_some()) {
            if let Some(at) = s.at {
                *lines.entry((s.input, at.ns())).or_default() += 1;
            }
        }
        let mut twins: FxHashMap<String, (Session, usize, u32)> = FxHashMap::default();
        for e in &self.view.report.exchanges {
            let is_told = e.request_frame.is_some_and(|f| frames.contains(&(e.input, f)))
                || e.at.is_some_and(|t| times.contains(&(e.input, t.ns())));
            let left = e.at.and_then(|t| lines.get_mut(&(e.input, t.ns()))).filter(|n| **n > 0);
            let is_line = e.request_frame.is_none() && e.rpc.iter().any(|r| !is_notification(r));
            let is_call = e.rpc.iter().any(|r| r.id.is_some());
            match left.filter(|_| is_line) {
                Some(left) => *left -= 1,
                None if is_told && is_call => {}
                None => self.exchange(e, &mut twins),
            }
            for r in e.replies.iter().filter(|r| !r.frame.is_some_and(|f| replies.contains(&(e.input, f)))) {
                if is_told && e.replies.len() == 1 {
                    continue;
                }
                let what =
                    format!("{} on a {} stream", label(r.kind, r.id.as_ref()), e.method.as_deref().unwrap_or("?"));
                let message = Message {
                    at: r.at,
                    places: self.frame_place(e.input, r.frame),
                    mood: Mood::Note,
                    ..self.plain(e, Direction::ToClient, &what)
                };
                self.push(&e.session, message);
            }
        }
    }

    /// One row for an exchange: what was asked and the status. The same exchange seen by a
    /// second input is the same row.
    fn exchange(&mut self, e: &ExchangeRow, twins: &mut FxHashMap<String, (Session, usize, u32)>) {
        const TWIN_NS: i64 = 1_000_000_000;
        let method = e.method.as_deref().unwrap_or("?");
        let target = e.target.as_deref().unwrap_or("");
        let named: Vec<String> =
            e.rpc.iter().map(|r| label(r.tool.as_deref().or(r.method.as_deref()), r.id.as_ref())).collect();
        let what = if named.is_empty() { format!("{method} {target}") } else { named.join(", ") };
        let key = format!("{:?} {method} {target} {what} {:?}", e.session, e.status);
        if let Some((session, at, input)) = twins.get(&key).cloned() {
            let seen = self.path.seen(Some(Vantage::Wire), self.side(e.input));
            let place = self.frame_place(e.input, e.request_frame);
            if let Some(m) = self.group(&session).messages.get_mut(at) {
                let is_near = m.at.zip(e.at).is_some_and(|(a, b)| a.since(b).abs() < TWIN_NS);
                if input != e.input && m.seen & seen == 0 && is_near {
                    m.seen |= seen;
                    m.places.extend(place);
                    return;
                }
            }
        }
        let mut note: Vec<String> = e.status.iter().map(u16::to_string).collect();
        note.extend(e.end.filter(|end| *end != End::Complete).map(|end| end_name(end).to_string()));
        let message = Message {
            note: note.join("  "),
            mood: if e.status.is_some_and(|s| s >= 400) { Mood::Refused } else { Mood::Plain },
            ..self.plain(e, Direction::ToServer, &what)
        };
        let at = self.group(&e.session).messages.len();
        self.push(&e.session, message);
        twins.insert(key, (e.session.clone(), at, e.input));
    }

    fn plain(&self, e: &ExchangeRow, direction: Direction, text: &str) -> Message {
        let vantage = self.view.report.inputs.get(e.input as usize).and_then(|i| i.vantage);
        let seen = self.path.seen(vantage, self.side(e.input));
        Message {
            at: e.at,
            direction,
            seen,
            dark: self.path.dark(seen),
            text: clean_short(text, 160).into_owned(),
            note: String::new(),
            places: self.frame_place(e.input, e.request_frame),
            mood: Mood::Plain,
            call: None,
            opens: false,
            closes: false,
            owner: None,
            findings: Vec::new(),
        }
    }

    fn frame_place(&self, input: u32, frame: Option<u64>) -> Vec<String> {
        frame.map(|f| format!("{}:{f}", clean_short(self.view.input(input), 60))).into_iter().collect()
    }

    fn windows(&mut self) {
        for w in &self.view.report.windows {
            let session = w.stale_session.clone();
            let (Some(opened), end) = (w.opened, w.recovered.or(w.next_call)) else { continue };
            self.group(&session).windows.push((opened, end.unwrap_or(opened)));
            let named = |id: &Session| id.as_deref().map_or("unknown".into(), |id| self.view.session(id));
            let cause = w.cause.map_or("unknown", cause_name);
            let opening = format!("session {} is stale from here (cause: {cause})", clean(&named(&session)));
            let closing = match end {
                Some(end) => format!("recovered in {} as {}", span(end.since(opened)), clean(&named(&w.new_session))),
                None => "never recovered".into(),
            };
            let lost = if w.lost.is_empty() {
                String::new()
            } else {
                format!("{} lost", super::super::table::counted(w.lost.len() as u64, "call"))
            };
            self.push(&session, remark(Some(opened), opening, String::new(), Mood::Refused));
            self.push(&session, remark(end.or(Some(opened)), closing, lost, Mood::Note));
        }
    }

    /// Findings about no call: a line of their own.
    fn marks(&mut self) {
        for (n, f) in self.view.report.findings.iter().enumerate().filter(|(_, f)| f.victim.is_none()) {
            let message = Message {
                findings: vec![n + 1],
                ..remark(f.at, f.rule.to_string(), clean_short(&f.summary, 200).into_owned(), Mood::Note)
            };
            self.push(&f.session, message);
        }
    }

    fn finish(mut self) -> Vec<Group> {
        let mut out = Vec::new();
        for root in std::mem::take(&mut self.order) {
            let Some(Gathered { mut messages, sessions, windows }) = self.groups.remove(&root) else { continue };
            if messages.is_empty() {
                continue;
            }
            // A message of unknown time stays behind the one it was gathered after.
            let mut last = Time::from_ns(i64::MIN, 0);
            let mut keyed: Vec<(Time, usize, Message)> = Vec::with_capacity(messages.len());
            for (n, m) in messages.drain(..).enumerate() {
                last = m.at.unwrap_or(last);
                keyed.push((last, n, m));
            }
            keyed.sort_by_key(|(at, n, m)| (*at, order_of(m), *n));
            let messages = keyed.into_iter().map(|(_, _, m)| m).collect();
            out.push(Group { title: self.title(&sessions), messages, windows });
        }
        out
    }

    fn title(&self, sessions: &[Session]) -> String {
        let names: Vec<String> = sessions
            .iter()
            .map(|s| match s.as_deref() {
                Some(id) => format!("session {}", clean_short(&self.view.session(id), 80)),
                None => "without a session id".into(),
            })
            .collect();
        names.join(", then ")
    }
}

fn remark(at: Option<Time>, text: String, note: String, mood: Mood) -> Message {
    Message {
        at,
        direction: Direction::At(0),
        seen: 0,
        dark: 0,
        text,
        note,
        places: Vec::new(),
        mood,
        call: None,
        opens: false,
        closes: false,
        owner: None,
        findings: Vec::new(),
    }
}

/// At the same instant: ends before beginnings, remarks last.
fn order_of(m: &Message) -> u8 {
    match (m.closes && !m.opens, m.direction) {
        (_, Direction::At(_)) if m.call.is_none() => 2,
        (true, _) => 0,
        (false, _) => 1,
    }
}
