//! Log records as visits: what an access log, a journal or a client's record tells of an exchange,
//! in the same form as what packets show.

use crate::mcp::content::{ArgumentValues, fingerprint};
use crate::mcp::jsonrpc::{self, Kind, Payload};
use crate::mcp::scan;
use crate::mcp::tracker::client_rpc;
use crate::mcp::visit::{MessageHash, Reply, ReplyParts, Rpc, RpcKind, Tool, Visit, without_slash};
use crate::model::exchange::{End, Mark};
use crate::model::id::RpcId;
use crate::model::place::{Place, Vantage};
use crate::model::record::{AccessRecord, ClientCall, ClientOutcome, LoggedMessage, When};
use crate::model::time::Time;
use rustc_hash::{FxHashMap, FxHashSet};
use std::borrow::Borrow;
use std::sync::{Arc, OnceLock};

/// Numbers visits of logs above every exchange of the wire.
const LOG_EXCHANGES: u64 = 1 << 48;

/// Without any time the order in the file is all there is: kept, but never compared.
pub(super) const NO_TIME: When = When { at: Time::from_ns(0, 0), error_ns: i64::MAX / 4 };

/// A visit about which nothing is known yet.
pub(super) fn blank(place: Place, vantage: Vantage, at: When) -> Visit {
    let exchange = exchange_of(place);
    // A log shows no bodies: nothing may be concluded from a reply that it does not show.
    Visit { request_gap: true, response_gap: true, ..Visit::new(exchange, place, vantage, at) }
}

/// The lines of access logs that speak of MCP, as visits. `paths` are endpoint paths known from
/// elsewhere.
pub fn access(records: &[AccessRecord], paths: &FxHashSet<String>) -> Vec<Visit> {
    let mut out = vec![];
    of_records(records, &mut paths.clone(), &mut out);
    handshakes(&mut out);
    out
}

/// As [`access`], into `out`, for lines of which more will come, and without what neighbours say of each other.
/// Endpoint paths that the lines name are added to `paths`.
pub fn of_records<R: Borrow<AccessRecord>>(records: &[R], paths: &mut FxHashSet<String>, out: &mut Vec<Visit>) {
    for r in records.iter().map(R::borrow) {
        if let Some(path) =
            path_of(r).filter(|_| r.session.is_some() || r.session_given.is_some() || r.rpc_method.is_some())
            && !paths.contains(path)
        {
            paths.insert(path.to_owned());
        }
    }
    out.reserve(records.len());
    for r in records.iter().map(R::borrow) {
        let Some(place) = r.place.filter(|_| is_of_endpoint(r, paths)) else { continue };
        for _ in 0..r.repeat.clamp(1, 1000) {
            out.push(visit(r, place));
        }
    }
}

/// Does the line speak of an endpoint? Where no paths are known, of one with a usual name.
pub fn is_of_endpoint(r: &AccessRecord, paths: &FxHashSet<String>) -> bool {
    let is_endpoint = |p: &str| if paths.is_empty() { looks_like_endpoint(p) } else { paths.contains(p) };
    path_of(r).is_some_and(is_endpoint)
}

/// Number of the visit that a line becomes.
pub fn exchange_of(place: Place) -> u64 {
    LOG_EXCHANGES + (u64::from(place.input) << 32) + place.number
}

/// Nanoseconds of a second.
const SECOND_NS: i64 = 1_000_000_000;

/// When the request of a line began, and when it was over.
pub fn times(r: &AccessRecord) -> (When, Option<When>) {
    let after = |s: When| When { at: s.at.plus_ns(r.duration_ns.unwrap_or(0)), error_ns: s.error_ns };
    // A second and so many milliseconds are no finer than the second, in whose middle its time is put: within it lines
    // stand in the order in which they were over.
    let is_middle = |w: When| w.error_ns >= SECOND_NS / 2 && w.at.ns().rem_euclid(SECOND_NS) == SECOND_NS / 2;
    let whole = |w: When| match r.start.is_some_and(is_middle) {
        true => When { at: w.at.plus_ns(SECOND_NS / 2 - w.at.ns().rem_euclid(SECOND_NS)), ..w },
        false => w,
    };
    (r.start.or(r.end).unwrap_or(NO_TIME), r.end.or(r.start.map(after)).map(whole))
}

pub(super) fn path_of(r: &AccessRecord) -> Option<&str> {
    r.target.as_deref()?.split(['?', '#']).next().map(without_slash)
}

/// Where nothing else tells, the usual names of endpoints.
fn looks_like_endpoint(path: &str) -> bool {
    ["/mcp", "/sse", "/messages", "/message"].iter().any(|e| path.ends_with(e)) || path.contains("/mcp/")
}

/// A line as a visit.
pub fn visit(r: &AccessRecord, place: Place) -> Visit {
    let (start, end) = times(r);
    let mut v = blank(place, r.vantage.unwrap_or(Vantage::Proxy), start);
    v.method.clone_from(&r.method);
    v.target.clone_from(&r.target);
    v.status = r.status;
    v.head = end.map(|e| Mark { place, at: e.at });
    v.ended = v.head;
    v.bytes = r.bytes;
    v.peer = r.client_addr;
    v.port = r.client_port.filter(|p| *p != 0);
    v.user_agent.clone_from(&r.user_agent);
    v.session.clone_from(&r.session);
    v.given.clone_from(&r.session_given);
    v.request_id.clone_from(&r.request_id);
    v.termination.clone_from(&r.termination);
    v.upstream.clone_from(&r.upstream);
    v.duration_ns = r.duration_ns;
    v.comment.clone_from(&r.comment);
    if let Some(body) = &r.request_body {
        messages(&mut v, body);
    }
    if let Some(body) = &r.response_body {
        answers(&mut v, body, place);
    }
    if v.rpc.is_empty() && v.is_post() && v.status != Some(202) {
        let mut rpc = Rpc::unknown(r.rpc_method.as_deref());
        rpc.tool = r.rpc_tool.clone().filter(|_| r.rpc_method.as_deref() == Some("tools/call"));
        v.add_rpc(rpc);
    }
    v
}

fn messages(v: &mut Visit, body: &[u8]) {
    match jsonrpc::parse(body) {
        Payload::One(m) => v.add_rpc(client_rpc(&m)),
        Payload::Batch(all, _) => v.rpc.extend(all.iter().map(client_rpc)),
        Payload::Other | Payload::Invalid => {}
    }
}

fn answers(v: &mut Visit, body: &[u8], place: Place) {
    let Payload::One(m) = jsonrpc::parse(body) else { return };
    if !matches!(m.kind, Kind::Result | Kind::Error) {
        return;
    }
    let mark = v.head.unwrap_or(Mark { place, at: v.asked });
    v.add_reply(reply(&m, mark, MessageHash::default()));
    v.response_gap = false;
}

fn reply(m: &jsonrpc::Message<'_>, mark: Mark, hash: MessageHash) -> Reply {
    Reply {
        first: mark,
        last: mark,
        id: m.id.clone(),
        error: (m.kind == Kind::Error).then_some(0),
        error_text: None,
        tool_error: m.inside.is_error,
        interim: false,
        hash,
        parts: ReplyParts::of(m),
        content: OnceLock::new(),
        value: OnceLock::new(),
        shape: OnceLock::new(),
        conforms: OnceLock::new(),
        event_id: None,
        is_event: false,
        after_gap: false,
        after_close: false,
        body: Some(Arc::from(m.raw)),
    }
}

/// In a log with session ids: a POST without one that is given one with 2xx is `initialize`, and the
/// first of a session, if answered 202, is `notifications/initialized`.
pub fn handshakes(visits: &mut [Visit]) {
    let mut order: Vec<usize> = (0..visits.len()).collect();
    order.sort_by_key(|i| visits.get(*i).map(|v| (v.answered(), v.exchange)));
    let mut handshakes = Handshakes::default();
    handshakes.infer_in(visits, &order, visits.len());
    handshakes.name_in(visits, &order);
}

/// A new session appears within this time of the `initialize` that was given it, ns.
pub(super) const GIVEN_NS: i64 = 10_000_000_000;

/// Finds the handshakes of a log, a part at a time.
#[derive(Default)]
pub struct Handshakes {
    /// The log says which session a response gave.
    says_given: bool,
    /// Sessions that were seen.
    known: FxHashSet<Arc<str>>,
    /// Sessions whose `initialize` was found.
    found: FxHashSet<Arc<str>>,
    /// Sessions that were answered.
    begun: FxHashSet<Arc<str>>,
}

impl Handshakes {
    /// In a log that has the request's session alone: the POST without one that was answered 200 right
    /// before a session first appears is the `initialize` that was given it. The first `done` of `visits`, which
    /// are in order, do not come again.
    pub fn infer(&mut self, visits: &mut [Visit], done: usize) {
        let order: Vec<usize> = (0..visits.len()).collect();
        self.infer_in(visits, &order, done);
    }

    /// Names the requests of the handshakes of `visits`, which are in order.
    pub fn name(&mut self, visits: &mut [Visit]) {
        let order: Vec<usize> = (0..visits.len()).collect();
        self.name_in(visits, &order);
    }

    fn infer_in(&mut self, visits: &mut [Visit], order: &[usize], done: usize) {
        let said = |v: &Visit| v.given.as_ref().is_some_and(|s| !self.found.contains(s));
        self.says_given |= visits.iter().any(said);
        if self.says_given {
            return;
        }
        let mut seen: FxHashSet<Arc<str>> = FxHashSet::default();
        let mut open: Vec<usize> = vec![];
        let mut found: Vec<(usize, Arc<str>)> = vec![];
        for &i in order {
            let Some(v) = visits.get(i) else { continue };
            match &v.session {
                None if v.is_post() && v.status == Some(200) && v.given.is_none() => open.push(i),
                None => {}
                Some(s) if self.known.contains(s) || seen.contains(s) => {}
                Some(s) if v.status.is_some_and(|s| s < 300) => {
                    seen.insert(s.clone());
                    let recent = |o: &usize| visits.get(*o).is_some_and(|x| v.asked.since(x.asked) <= GIVEN_NS);
                    let same =
                        |o: &usize| visits.get(*o).is_some_and(|x| x.peer == v.peer && x.user_agent == v.user_agent);
                    let best =
                        open.iter().rposition(|o| recent(o) && same(o)).or_else(|| open.iter().rposition(recent));
                    if let Some(n) = best.filter(|_| !self.found.contains(s)) {
                        found.push((open.remove(n), s.clone()));
                    }
                    open.retain(recent);
                }
                Some(s) => drop(seen.insert(s.clone())),
            }
        }
        for (i, s) in found {
            if let Some(v) = visits.get_mut(i) {
                self.found.insert(s.clone());
                v.given = Some(s);
            }
        }
        let past = order.iter().take(done).filter_map(|i| visits.get(*i)?.session.clone());
        self.known.extend(past);
    }

    fn name_in(&mut self, visits: &mut [Visit], order: &[usize]) {
        for &i in order {
            let Some(v) = visits.get_mut(i).filter(|v| v.is_post()) else { continue };
            let ok = v.status.is_some_and(|s| (200..300).contains(&s));
            let unnamed = v.rpc.iter().all(|r| r.method.is_none());
            if v.session.is_none() && v.given.is_some() && v.status == Some(200) && unnamed {
                v.rpc = vec![Rpc::unknown(Some("initialize"))];
            }
            let Some(s) = v.session.as_ref().filter(|s| ok && !self.begun.contains(*s)) else { continue };
            self.begun.insert(s.clone());
            if v.status == Some(202) && v.rpc.is_empty() {
                let note = Rpc { kind: RpcKind::Notification, ..Rpc::unknown(Some("notifications/initialized")) };
                v.add_rpc(note);
            }
        }
    }
}

/// Calls of clients' own records, as visits of the client's vantage.
pub fn clients(calls: &[ClientCall]) -> Vec<Visit> {
    calls.iter().map(client).collect()
}

fn client(c: &ClientCall) -> Visit {
    let mut v = blank(c.place, Vantage::Client, c.at.unwrap_or(NO_TIME));
    v.method = Some(Arc::from("POST"));
    v.session.clone_from(&c.session);
    v.port = c.local_port;
    v.upstream.clone_from(&c.server);
    v.client_outcome = c.outcome;
    v.comment.clone_from(&c.text);
    v.ended = c.ended.map(|e| Mark { place: c.place, at: e.at });
    v.end = v.ended.map(|_| End::Complete);
    let arguments = c.arguments.as_deref().map(str::as_bytes);
    v.add_rpc(Rpc {
        id: c.id.clone(),
        tool: c.tool.clone(),
        fingerprint: OnceLock::from(arguments.map_or(0, fingerprint)),
        values: arguments.map(|a| Arc::new(OnceLock::from(ArgumentValues::of(a)))),
        tool_use_id: c.tool_use_id.clone(),
        body: arguments.map(Arc::from),
        ..Rpc::unknown(Some(&c.method))
    });
    if let (Some(result), Some(ended)) = (&c.result, v.ended) {
        // As if it had come on the wire, so that the same signs are looked for in it.
        let id = c.id.clone().unwrap_or(RpcId::Null);
        let text = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}");
        let hash = MessageHash::known(c.result_sha256.as_deref().and_then(unhex).unwrap_or_default());
        if let Payload::One(m) = jsonrpc::parse(text.as_bytes()) {
            v.add_reply(reply(&m, ended, hash));
        }
        if &*c.method == "tools/list" {
            v.tools = tools(result.as_bytes());
        }
        if &*c.method == "initialize" {
            v.status = Some(200);
        }
    } else if let (Some(hash), Some(ended)) = (c.result_sha256.as_deref().and_then(unhex), v.ended)
        && c.outcome == Some(ClientOutcome::Ok)
    {
        v.add_reply(hashed(c, hash, ended));
    }
    v
}

/// A reply of which the client kept the hash alone.
fn hashed(c: &ClientCall, hash: [u8; 32], mark: Mark) -> Reply {
    // What is told apart by its content is told apart by its hash.
    let content = hash.first_chunk().map_or(0, |first| u64::from_le_bytes(*first));
    Reply {
        first: mark,
        last: mark,
        id: Some(c.id.clone().unwrap_or(RpcId::Null)),
        error: None,
        error_text: None,
        tool_error: false,
        interim: false,
        hash: MessageHash::known(hash),
        parts: ReplyParts::default(),
        content: OnceLock::from(content),
        value: OnceLock::new(),
        shape: OnceLock::new(),
        conforms: OnceLock::new(),
        event_id: None,
        is_event: false,
        after_gap: false,
        after_close: false,
        body: None,
    }
}

fn tools(result: &[u8]) -> Vec<Tool> {
    let mut out = vec![];
    if let Some(list) = scan::member(result, "tools") {
        scan::elements(list, |tool| {
            if let Some(name) = scan::member(tool, "name").and_then(scan::text) {
                let schema = scan::member(tool, "outputSchema").map(|s| Arc::from(String::from_utf8_lossy(s)));
                out.push(Tool { name: Arc::from(&*name), output_schema: schema });
            }
        });
    }
    out
}

fn unhex(text: &str) -> Option<[u8; 32]> {
    let mut out = [0; 32];
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    for (i, byte) in out.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(i * 2..i * 2 + 2)?, 16).ok()?;
    }
    Some(out)
}

/// Requests and replies in a client's or bridge's log, as client visits: each request with the
/// reply of its id that follows it.
pub fn messages_logged(messages: &[LoggedMessage]) -> Vec<Visit> {
    let mut out: Vec<Visit> = vec![];
    let mut open: FxHashMap<(u32, RpcId), usize> = FxHashMap::default();
    for m in messages {
        let Payload::One(one) = jsonrpc::parse(m.json.as_bytes()) else { continue };
        let when = m.when.unwrap_or(NO_TIME);
        match (m.from_client, one.kind, &one.id) {
            (true, Kind::Request, Some(id)) => {
                let mut v = blank(m.place, Vantage::Client, when);
                v.method = Some(Arc::from("POST"));
                v.session.clone_from(&m.session);
                let mut rpc = client_rpc(&one);
                if !m.exact {
                    rpc.hash = MessageHash::unknown();
                }
                v.upstream.clone_from(&m.server);
                v.add_rpc(rpc);
                open.insert((m.place.input, id.clone()), out.len());
                out.push(v);
            }
            (false, Kind::Result | Kind::Error, Some(id)) if !m.elided => {
                let Some(v) = open.remove(&(m.place.input, id.clone())).and_then(|i| out.get_mut(i)) else { continue };
                let mark = Mark { place: m.place, at: when.at };
                let r = reply(&one, mark, if m.exact { MessageHash::default() } else { MessageHash::unknown() });
                if let (Some(result), true) = (one.result, v.carries("tools/list")) {
                    v.tools = tools(result);
                }
                v.client_outcome = Some(if r.error.is_some() { ClientOutcome::Error } else { ClientOutcome::Ok });
                v.ended = Some(mark);
                v.end = Some(End::Complete);
                v.add_reply(r);
            }
            _ => {}
        }
    }
    out
}
