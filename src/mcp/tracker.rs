//! Listens to HTTP exchanges and leaves a [`Visit`] for each.

use super::jsonrpc::{self, Kind, Payload};
use super::scan;
use super::visit::{Heads, MessageHash, Reply, ReplyParts, Rpc, RpcKind, ServerRequest, Sha256, Tool, Visit, span};
use crate::model::exchange::{Event, Exchange, ExchangeId, ExchangeSink, Message, Peer, shared_header};
use crate::model::id::SessionId;
use crate::model::limits::BATCH;
use crate::model::place::{InputId, Place, Vantage};
use crate::model::problem::{ProblemKind, Problems};
use crate::model::record::When;
use rustc_hash::FxHashMap;
use sha2::Digest;
use std::sync::{Arc, OnceLock};

/// Longest piece of foreign text that is kept for a report, bytes.
const QUOTE_BYTES: usize = 200;

/// Request headers that only a proxy adds (RFC 7239, RFC 9110 §7.6.3, nginx's and Envoy's custom).
const FORWARDED: &[&str] =
    &["x-forwarded-for", "forwarded", "x-real-ip", "via", "x-forwarded-proto", "x-envoy-external-address"];

/// Everything that the exchanges of a run left.
#[derive(Debug, Default)]
pub struct Tracked {
    /// One for each exchange, in order of being ended.
    pub visits: Vec<Visit>,
    /// What could not be read as JSON-RPC, by input.
    pub problems: FxHashMap<InputId, Problems>,
}

/// Makes visits of exchanges.
#[derive(Debug, Default)]
pub struct Tracker {
    /// Keep all header fields of every exchange.
    pub keep_heads: bool,
    ended_bytes: usize,
    open: FxHashMap<ExchangeId, Visit>,
    tracked: Tracked,
}

impl Tracker {
    /// How many exchanges have ended and were not taken, and how many bytes their messages have.
    pub fn ended(&self) -> (usize, usize) {
        (self.tracked.visits.len(), self.ended_bytes)
    }

    /// Takes the exchanges that have ended, and copies of those that have not.
    pub fn take_ended(&mut self) -> (Vec<Visit>, Vec<Visit>) {
        self.ended_bytes = 0;
        (std::mem::take(&mut self.tracked.visits), self.open.values().cloned().collect())
    }

    /// All visits, once every source has ended its exchanges.
    pub fn finish(mut self) -> Tracked {
        let mut rest: Vec<Visit> = self.open.into_values().collect();
        rest.sort_by_key(|v| v.exchange);
        self.tracked.visits.extend(rest);
        self.tracked
    }

    fn visit(&mut self, exchange: &Exchange, vantage: Vantage) -> &mut Visit {
        self.open.entry(exchange.id).or_insert_with(|| blank(exchange, vantage))
    }

    fn problem(&mut self, kind: ProblemKind, place: Place, text: &str) {
        let word = if place.is_frame { "frame" } else { "entry" };
        let at = || format!("{word} {}", place.number);
        self.tracked.problems.entry(place.input).or_default().add(kind, at, || text);
    }

    /// Elements of a batch that were passed over.
    fn odd_elements(&mut self, m: &Message<'_>, taken: usize, odd: usize) {
        if odd > 0 && taken >= BATCH {
            self.problem(ProblemKind::LimitHit, m.last.place, "batch: the rest of a batch was passed over");
        } else if odd > 0 {
            self.problem(ProblemKind::BadJson, m.last.place, "an element of a batch is no JSON-RPC message");
        }
    }

    fn client_message(&mut self, exchange: &Exchange, m: &Message<'_>) {
        let post = exchange.request.as_ref().is_some_and(|r| &*r.method == "POST");
        match jsonrpc::parse(m.data) {
            Payload::One(one) => {
                let rpc = client_rpc(&one);
                let visit = self.visit(exchange, Vantage::Wire);
                take_handshake(visit, &one);
                visit.add_rpc(rpc);
            }
            Payload::Batch(all, odd) => {
                self.odd_elements(m, all.len(), odd);
                let visit = self.visit(exchange, Vantage::Wire);
                visit.request_gap |= odd > 0;
                visit.rpc.extend(all.iter().map(client_rpc));
            }
            Payload::Other | Payload::Invalid => {
                let gap = exchange.request.as_ref().is_some_and(|r| r.gap);
                if post && !gap && is_mcp_request(exchange) {
                    // What it asked is not known; an answer to it must not seem to come out of nowhere.
                    self.visit(exchange, Vantage::Wire).request_gap = true;
                    self.problem(
                        ProblemKind::BadJson,
                        m.last.place,
                        "the body of an MCP request is no JSON-RPC message",
                    );
                }
            }
        }
    }

    fn server_message(&mut self, exchange: &Exchange, m: &Message<'_>) {
        let status = exchange.response.as_ref().map_or(200, |r| r.status);
        match jsonrpc::parse(m.data) {
            Payload::One(one) => self.server_rpc(exchange, m, &one),
            Payload::Batch(all, odd) => {
                self.odd_elements(m, all.len(), odd);
                all.iter().for_each(|one| self.server_rpc(exchange, m, one));
            }
            Payload::Invalid if scan::is_too_deep(m.data) => {
                // It may be the reply.
                self.visit(exchange, Vantage::Wire).response_gap = true;
                self.problem(ProblemKind::LimitHit, m.last.place, "json-depth: a message is nested too deeply");
            }
            Payload::Invalid if is_whole_json(exchange, m, status) => {
                self.problem(ProblemKind::BadJson, m.last.place, "the JSON body of a response cannot be read");
            }
            Payload::Other | Payload::Invalid => self.server_text(exchange, m, status),
        }
    }

    fn server_text(&mut self, exchange: &Exchange, m: &Message<'_>, status: u16) {
        if m.is_event && m.event == Some("endpoint") {
            let session = legacy_session(&String::from_utf8_lossy(m.data));
            let visit = self.visit(exchange, Vantage::Wire);
            visit.legacy_stream = true;
            visit.session = visit.session.take().or(session);
            return;
        }
        if status >= 400 {
            let text = quote(&String::from_utf8_lossy(m.data));
            self.visit(exchange, Vantage::Wire).error_text.get_or_insert(text);
        } else if m.is_event
            && !m.data.is_empty()
            && matches!(m.event, None | Some("message"))
            && is_mcp_request(exchange)
        {
            self.problem(ProblemKind::BadJson, m.last.place, "an event of an MCP stream is no JSON-RPC message");
        }
    }

    fn server_rpc(&mut self, exchange: &Exchange, m: &Message<'_>, one: &jsonrpc::Message<'_>) {
        match one.kind {
            Kind::Notification => {}
            Kind::Request => {
                let ask = ServerRequest {
                    last: m.last,
                    id: one.id.clone().unwrap_or(crate::model::id::RpcId::Null),
                    method: one.method.clone().unwrap_or_default(),
                    sha256: sha256(one.raw),
                };
                self.visit(exchange, Vantage::Wire).asks.push(ask);
            }
            Kind::Result | Kind::Error => {
                let mut reply = server_reply(exchange, m, one);
                let visit = self.visit(exchange, Vantage::Wire);
                take_handshake_reply(visit, one);
                reply.after_gap = visit.response_gap;
                visit.add_reply(reply);
            }
        }
    }
}

impl ExchangeSink for Tracker {
    fn event(&mut self, exchange: &Exchange, event: Event<'_>) {
        match event {
            Event::Request => {
                self.visit(exchange, Vantage::Wire);
            }
            Event::Head => take_head(self.visit(exchange, Vantage::Wire), exchange),
            Event::Message(m) => {
                if let Some(id) = m.event_id {
                    let visit = self.visit(exchange, Vantage::Wire);
                    if visit.resumable.last().is_none_or(|last| &**last != id) {
                        visit.resumable.push(Arc::from(id));
                    }
                }
                match m.from {
                    Peer::Client => self.client_message(exchange, &m),
                    Peer::Server => self.server_message(exchange, &m),
                }
            }
            Event::ResponseGap => self.visit(exchange, Vantage::Wire).response_gap = true,
            Event::ClientClosed => self.visit(exchange, Vantage::Wire).client_closed = exchange.client_closed,
            Event::End => {
                let mut visit = self.open.remove(&exchange.id).unwrap_or_else(|| blank(exchange, Vantage::Wire));
                take_end(&mut visit, exchange);
                if self.keep_heads {
                    visit.heads = Some(Box::new(Heads {
                        request: exchange.request.as_ref().map(|r| r.headers.clone()).unwrap_or_default(),
                        response: exchange.response.as_ref().map(|r| r.headers.clone()).unwrap_or_default(),
                    }));
                }
                self.ended_bytes += visit.body_bytes();
                self.tracked.visits.push(visit);
            }
        }
    }
}

/// Should it be JSON to its end? Errors are free to say it in other ways, and what was cut is told
/// as a gap.
fn is_whole_json(exchange: &Exchange, m: &Message<'_>, status: u16) -> bool {
    let is_json = exchange.response_header("content-type").is_some_and(|t| t.starts_with("application/json"));
    let is_cut = exchange.response.as_ref().is_some_and(|r| r.gap);
    status < 400 && !m.is_event && !m.data.is_empty() && is_json && !is_cut && is_mcp_request(exchange)
}

/// A visit with what the request's head says.
fn blank(exchange: &Exchange, vantage: Vantage) -> Visit {
    let request = exchange.request.as_ref();
    let response = exchange.response.as_ref();
    let (first, last) = match (request, response) {
        (Some(r), _) => (r.first, r.last),
        (None, Some(r)) => (r.first, r.first),
        (None, None) => {
            let mark = exchange.ended.unwrap_or(crate::model::exchange::Mark {
                place: Place::frame(exchange.input, 0),
                at: crate::model::time::Time::from_ns(0, 0),
            });
            (mark, mark)
        }
    };
    // Heads of one connection share what repeats, and so do the visits.
    let arc = |name: &str| request.and_then(|r| shared_header(&r.headers, name)).cloned();
    let target: Option<Arc<str>> = request.map(|r| r.target.clone());
    let mut visit = Visit {
        input: exchange.input,
        first: Some(first.place),
        asked: last.at,
        stream: Some(exchange.stream),
        h2_stream: exchange.h2_stream,
        server: Some(exchange.server),
        peer: Some(exchange.client.ip()),
        port: Some(exchange.client.port()),
        user_agent: arc("user-agent"),
        method: request.map(|r| r.method.clone()),
        session: session_header(arc("mcp-session-id"))
            .or_else(|| target.as_deref().filter(|t| t.contains("ession")).and_then(legacy_session)),
        target,
        host: arc("host"),
        revision: arc("mcp-protocol-version"),
        last_event_id: arc("last-event-id"),
        request_id: arc("x-request-id"),
        request_gap: request.is_some_and(|r| r.gap),
        response_gap: response.is_some_and(|r| r.gap),
        one_direction: exchange.one_direction,
        has_request: request.is_some(),
        midstream: exchange.connected.is_none(),
        forwarded: FORWARDED.iter().any(|name| exchange.request_header(name).is_some()),
        ..Visit::new(exchange.id, last.place, vantage, When { at: first.at, error_ns: 0 })
    };
    if response.is_some() {
        take_head(&mut visit, exchange);
    }
    visit
}

fn take_head(visit: &mut Visit, exchange: &Exchange) {
    let Some(r) = &exchange.response else { return };
    visit.status = Some(r.status).filter(|s| *s != 0);
    visit.head = Some(r.first);
    visit.kind = r.kind;
    visit.given = session_header(shared_header(&r.headers, "mcp-session-id").cloned());
    // A head of which not even the status is known shows no refusal, and so no silence either.
    visit.response_gap |= r.gap || r.status == 0;
}

fn take_end(visit: &mut Visit, exchange: &Exchange) {
    if let Some(r) = &exchange.request {
        visit.request_gap |= r.gap;
    }
    if let Some(r) = &exchange.response {
        visit.bytes = Some(r.body_bytes);
        visit.response_gap |= r.gap;
        if visit.status.is_none() {
            take_head(visit, exchange);
        }
    }
    visit.end = exchange.end;
    visit.ended = exchange.ended;
    visit.ended_by = exchange.ended_by;
    visit.client_closed = exchange.client_closed;
    visit.one_direction = exchange.one_direction;
}

fn session_header(value: Option<Arc<str>>) -> Option<SessionId> {
    let value = value?;
    match value.trim() {
        "" => None,
        trimmed if trimmed.len() == value.len() => Some(value),
        trimmed => Some(Arc::from(trimmed)),
    }
}

/// The session of the 2024-11-05 transport, which stands in the query of the message endpoint
/// (`/messages/?session_id=…`, TypeScript `?sessionId=…`).
fn legacy_session(target: &str) -> Option<SessionId> {
    let query = target.split_once('?')?.1;
    query.split('&').find_map(|pair| {
        let (name, value) = pair.split_once('=')?;
        matches!(name, "session_id" | "sessionId").then(|| Arc::from(value.trim()))
    })
}

/// Does the exchange look like MCP, so that an unreadable body is worth a word?
fn is_mcp_request(exchange: &Exchange) -> bool {
    exchange.request_header("mcp-session-id").is_some()
        || exchange.request_header("mcp-protocol-version").is_some()
        || exchange
            .request_header("accept")
            .is_some_and(|a| a.contains("text/event-stream") && a.contains("application/json"))
}

/// Text from an input, cut to what a report can quote.
pub fn quote(text: &str) -> Arc<str> {
    let text = text.trim();
    let mut end = text.len().min(QUOTE_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    Arc::from(text.get(..end).unwrap_or_default())
}

/// SHA-256 of exact bytes.
pub fn sha256(bytes: &[u8]) -> Sha256 {
    sha2::Sha256::digest(bytes).into()
}

/// A client's message as the rules see it.
pub fn client_rpc(m: &jsonrpc::Message<'_>) -> Rpc {
    let is_tool_call = m.method.as_deref() == Some("tools/call");
    let (mut arguments, mut name, mut meta, mut request) = (None, None, None, None);
    scan::members(m.params.unwrap_or(b""), |key, value| match key {
        b"arguments" => arguments = Some(value),
        b"name" => name = Some(value),
        b"_meta" => meta = Some(value),
        b"requestId" => request = Some(value),
        _ => {}
    });
    let arguments = if is_tool_call { arguments } else { m.params };
    let kind = match m.kind {
        Kind::Request => RpcKind::Request,
        Kind::Notification => RpcKind::Notification,
        Kind::Result | Kind::Error => RpcKind::Response,
    };
    Rpc {
        kind,
        id: m.id.clone(),
        tool: name.filter(|_| is_tool_call).and_then(scan::text).map(|t| Arc::from(&*t)),
        hash: MessageHash::default(),
        fingerprint: OnceLock::new(),
        values: is_tool_call.then(Arc::default),
        asks: span(m.raw, arguments),
        cancels: (m.method.as_deref() == Some("notifications/cancelled")).then(|| request.map(jsonrpc::id)).flatten(),
        tool_use_id: meta.and_then(|v| text_member(v, "claudecode/toolUseId")),
        revision: meta.and_then(|v| text_member(v, "io.modelcontextprotocol/protocolVersion")),
        body: Some(Arc::from(m.raw)),
        method: m.method.clone(),
    }
}

fn text_member(object: &[u8], key: &str) -> Option<Arc<str>> {
    scan::member(object, key).and_then(scan::text).map(|t| Arc::from(&*t))
}

fn server_reply(exchange: &Exchange, m: &Message<'_>, one: &jsonrpc::Message<'_>) -> Reply {
    let code =
        one.error.and_then(|e| scan::member(e, "code")).and_then(|c| std::str::from_utf8(c).ok()?.parse::<i64>().ok());
    Reply {
        first: m.first,
        last: m.last,
        id: one.id.clone(),
        error: if one.kind == Kind::Error { Some(code.unwrap_or(0)) } else { None },
        error_text: one.error.and_then(|e| scan::member(e, "message")).and_then(scan::text).map(|t| quote(&t)),
        tool_error: one.inside.is_error,
        interim: one.inside.interim,
        hash: MessageHash::default(),
        parts: ReplyParts::of(one),
        content: OnceLock::new(),
        value: OnceLock::new(),
        shape: OnceLock::new(),
        conforms: OnceLock::new(),
        event_id: m.event_id.map(Arc::from),
        is_event: m.is_event,
        after_gap: false,
        after_close: exchange.client_closed.is_some_and(|c| c.at <= m.last.at),
        body: Some(Arc::from(one.raw)),
    }
}

fn take_handshake(visit: &mut Visit, m: &jsonrpc::Message<'_>) {
    let Some(params) = m.params else { return };
    let named = |info: &[u8]| -> Option<Arc<str>> {
        let name = text_member(info, "name")?;
        Some(match text_member(info, "version") {
            Some(version) => Arc::from(format!("{name}/{version}")),
            None => name,
        })
    };
    let meta = scan::member(params, "_meta");
    let client = match m.method.as_deref() {
        Some("initialize") => scan::member(params, "clientInfo").and_then(named),
        _ => meta.and_then(|v| scan::member(v, "io.modelcontextprotocol/clientInfo")).and_then(named),
    };
    let revision = match m.method.as_deref() {
        Some("initialize") => text_member(params, "protocolVersion"),
        _ => meta.and_then(|v| text_member(v, "io.modelcontextprotocol/protocolVersion")),
    };
    if client.is_some() || revision.is_some() {
        let h = visit.handshake.get_or_insert_default();
        h.client = client.or(h.client.take());
        h.revision = revision.or(h.revision.take());
    }
}

fn take_handshake_reply(visit: &mut Visit, m: &jsonrpc::Message<'_>) {
    let Some(result) = m.result else { return };
    if visit.carries("initialize") || visit.carries("server/discover") {
        let h = visit.handshake.get_or_insert_default();
        h.revision = text_member(result, "protocolVersion").or(h.revision.take());
        if let Some(info) = scan::member(result, "serverInfo")
            && let Some(name) = text_member(info, "name")
        {
            let version = text_member(info, "version");
            h.server = Some(version.map_or(name.clone(), |v| Arc::from(format!("{name}/{v}"))));
        }
    }
    if visit.carries("tools/list")
        && let Some(tools) = scan::member(result, "tools")
    {
        scan::elements(tools, |tool| {
            if let Some(name) = text_member(tool, "name") {
                let schema = scan::member(tool, "outputSchema").map(|s| Arc::from(String::from_utf8_lossy(s)));
                visit.tools.push(Tool { name, output_schema: schema });
            }
        });
    }
}
