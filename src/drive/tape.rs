//! A recording of MCP traffic as it can be played again: every exchange with its messages and the
//! times between them.

use super::wire::Headers;
use crate::input::capture::CaptureInput;
use crate::input::{Detected, detect, expand};
use crate::mcp::jsonrpc::{self, Kind, Payload};
use crate::mcp::scan;
use crate::model::exchange::{BodyKind, End, Event, Exchange, ExchangeId, ExchangeSink, Peer};
use crate::model::id::RpcId;
use crate::model::options::ReadOptions;
use crate::model::place::InputId;
use crate::model::problem::{Problem, Problems};
use crate::wire::tls::KeyStore;
use crate::wire::{captures, recorded};
use rustc_hash::FxHashMap;
use serde_json::Value;
use std::net::SocketAddr;

/// A request that the client sent.
#[derive(Clone, Debug)]
pub struct TapeCall {
    /// Its id.
    pub id: RpcId,
    /// Its method.
    pub method: String,
    /// Its `params`; null if it has none.
    pub params: Value,
}

impl TapeCall {
    /// Tool of a `tools/call`.
    pub fn tool(&self) -> Option<&str> {
        (self.method == "tools/call").then(|| self.params.get("name")?.as_str()).flatten()
    }
}

/// One message of a response.
#[derive(Clone, Debug)]
pub struct TapeMessage {
    /// From the end of the request to its last byte, ns.
    pub after_ns: i64,
    /// The message; none if it is no JSON.
    pub message: Option<Value>,
    /// It is a result or error.
    pub is_reply: bool,
    /// Its id.
    pub id: Option<RpcId>,
}

/// One exchange.
#[derive(Clone, Debug)]
pub struct TapeExchange {
    /// Input and stream, which name its connection.
    pub connection: (InputId, u64),
    /// It shared its connection with others at the same time (HTTP/2).
    pub is_h2: bool,
    /// The answering end.
    pub server: SocketAddr,
    /// `POST`, `GET`, `DELETE`.
    pub method: String,
    /// When the request was complete, ns since 1970.
    pub at_ns: i64,
    /// Header fields of the request.
    pub headers: Headers,
    /// Session of the request.
    pub session: Option<String>,
    /// Session that an `initialize` was given.
    pub given: Option<String>,
    /// Requests in it.
    pub calls: Vec<TapeCall>,
    /// Status; none if there was no response.
    pub status: Option<u16>,
    /// The response is an event stream.
    pub is_stream: bool,
    /// From the end of the request to the status line, ns.
    pub head_ns: Option<i64>,
    /// What the server sent.
    pub messages: Vec<TapeMessage>,
    /// How it ended.
    pub end: Option<End>,
    /// From the end of the request to its end, ns.
    pub end_ns: i64,
    /// From the end of the request to the client's close, if that came first, ns.
    pub left_ns: Option<i64>,
}

impl TapeExchange {
    /// The reply to the call of this exchange; by id, else the only one.
    pub fn reply(&self, call: &TapeCall) -> Option<&TapeMessage> {
        let mut replies = self.messages.iter().filter(|m| m.is_reply);
        let is_own = |m: &&TapeMessage| m.id.as_ref() == Some(&call.id);
        let own = replies.clone().find(is_own);
        own.or_else(|| replies.next().filter(|_| self.calls.len() == 1))
    }

    /// When the call was over: its reply's time, else the end, ns since 1970.
    pub fn over_ns(&self, call: &TapeCall) -> i64 {
        self.at_ns + self.reply(call).map_or(self.end_ns, |m| m.after_ns)
    }
}

/// The exchanges of one server, in order of time.
#[derive(Clone, Debug, Default)]
pub struct Tape {
    /// Exchanges that carry JSON-RPC or belong to a session.
    pub exchanges: Vec<TapeExchange>,
    /// Exchanges of other ends of the path, which are not played.
    pub left_out: usize,
    /// Inputs that could not be read, each as a sentence.
    pub troubles: Vec<String>,
    /// What of the others could not be read, and inputs that nothing can be played from.
    pub notes: Vec<String>,
}

/// Reads captures and flow files.
pub fn read(inputs: &[String], options: &ReadOptions) -> Tape {
    let mut tape = Tape::default();
    let (sources, errors) = expand(inputs);
    tape.troubles.extend(errors.iter().map(ToString::to_string));
    let (mut captures, mut flows) = (vec![], vec![]);
    let mut names = vec![];
    for source in sources {
        let open = match source.open() {
            Ok(open) => open,
            Err(e) => {
                tape.troubles.push(e.to_string());
                continue;
            }
        };
        let input = names.len() as InputId;
        names.push(source.name.clone());
        match detect(&source.name, open.head(), options) {
            Err(e) => tape.troubles.push(e.to_string()),
            Ok(Detected::Capture(kind)) => captures.push(CaptureInput { input, kind, source, open: Some(open) }),
            Ok(Detected::Recorded(kind)) => flows.push((input, kind, open)),
            Ok(Detected::Log(format, _)) => tape.notes.push(format!(
                "{}: a log ({}) holds no replies that could be played; a capture does",
                source.name, format.name
            )),
            Ok(Detected::Empty | Detected::Unknown) => {
                tape.troubles.push(format!("{}: expected a capture, a HAR file or a flow file", source.name));
            }
        }
    }
    let mut problems = vec![Problems::default(); names.len()];
    let mut taping = Taping::default();
    read_captures(captures, options, &mut taping, &mut problems, &mut tape.troubles);
    let mut next_exchange = recorded::FIRST_EXCHANGE;
    for (input, kind, mut open) in flows {
        let Some(problems) = problems.get_mut(input as usize) else { continue };
        if let Err(e) = recorded::read(kind, input, &mut open, &mut next_exchange, &mut taping, problems) {
            tape.troubles.push(format!("a flow file could not be read on: {e}"));
        }
    }
    for (name, problem) in names.iter().zip(&problems).flat_map(|(n, all)| all.iter().map(move |p| (n, p))) {
        tape.notes.push(sentence(name, problem));
    }
    tape.take(taping.done);
    tape
}

fn read_captures(
    captures: Vec<CaptureInput>,
    options: &ReadOptions,
    taping: &mut Taping,
    problems: &mut [Problems],
    troubles: &mut Vec<String>,
) {
    let keys = KeyStore::new();
    for path in &options.keylogs {
        match std::fs::read(path) {
            Ok(log) => drop(keys.read(&log)),
            Err(e) => troubles.push(format!("{}: the key log cannot be read: {e}", path.display())),
        }
    }
    let inputs: Vec<InputId> = captures.iter().map(|c| c.input).collect();
    let (stats, _) = captures::read(captures, keys, options.filter.as_deref(), taping, problems);
    for (input, stats) in inputs.into_iter().zip(stats) {
        if let Some(problems) = problems.get_mut(input as usize) {
            problems.merge(&stats.into_info("").problems);
        }
    }
}

/// `cut.pcap: truncated-record, once (frame 97): the file ends inside a record`
fn sentence(name: &str, problem: &Problem) -> String {
    let times = if problem.count == 1 { "once".to_owned() } else { format!("{} times", problem.count) };
    let place = problem.place.as_ref().map(|p| format!(" ({p})")).unwrap_or_default();
    let text = problem.text.as_ref().map(|t| format!(": {t}")).unwrap_or_default();
    format!("{name}: {}, {times}{place}{text}", problem.kind.name())
}

/// Collects exchanges.
#[derive(Default)]
struct Taping {
    open: FxHashMap<ExchangeId, TapeExchange>,
    done: Vec<TapeExchange>,
}

impl ExchangeSink for Taping {
    fn event(&mut self, exchange: &Exchange, event: Event<'_>) {
        let Some(request) = &exchange.request else { return };
        let asked = request.last.at;
        let tape = self.open.entry(exchange.id).or_insert_with(|| TapeExchange {
            connection: (exchange.input, exchange.stream),
            is_h2: exchange.h2_stream.is_some(),
            server: exchange.server,
            method: request.method.to_string(),
            at_ns: asked.ns(),
            headers: request.headers.clone(),
            session: exchange.request_header("mcp-session-id").map(str::to_owned),
            given: None,
            calls: vec![],
            status: None,
            is_stream: false,
            head_ns: None,
            messages: vec![],
            end: None,
            end_ns: 0,
            left_ns: None,
        });
        match event {
            Event::Message(m) if m.from == Peer::Client => tape.calls = calls(m.data),
            Event::Message(m) => {
                let after_ns = m.last.at.since(asked);
                let parts: Vec<&[u8]> = match jsonrpc::parse(m.data) {
                    Payload::Batch(all, _) => all.iter().map(|m| m.raw).collect(),
                    _ => vec![m.data],
                };
                for part in parts {
                    let message = serde_json::from_slice(part).ok();
                    let (is_reply, id) = match jsonrpc::parse(part) {
                        Payload::One(m) => (matches!(m.kind, Kind::Result | Kind::Error), m.id),
                        _ => (false, None),
                    };
                    tape.messages.push(TapeMessage { after_ns, message, is_reply, id });
                }
            }
            Event::Head => {
                let Some(response) = &exchange.response else { return };
                tape.status = Some(response.status);
                tape.is_stream = response.kind == BodyKind::EventStream;
                tape.head_ns = Some(response.first.at.since(asked));
                tape.given = exchange.response_header("mcp-session-id").map(str::to_owned);
            }
            Event::End => {
                let Some(mut tape) = self.open.remove(&exchange.id) else { return };
                tape.end = exchange.end;
                tape.end_ns = exchange.ended.map_or(0, |m| m.at.since(asked));
                tape.left_ns = exchange.client_closed.map(|m| m.at.since(asked));
                self.done.push(tape);
            }
            Event::Request | Event::ResponseGap | Event::ClientClosed => {}
        }
    }
}

fn calls(body: &[u8]) -> Vec<TapeCall> {
    let call = |m: &jsonrpc::Message<'_>| {
        let params = scan::member(m.raw, "params").and_then(|p| serde_json::from_slice(p).ok()).unwrap_or_default();
        (m.kind == Kind::Request)
            .then(|| Some(TapeCall { id: m.id.clone()?, method: m.method.as_deref()?.to_owned(), params }))
            .flatten()
    };
    match jsonrpc::parse(body) {
        Payload::One(m) => call(&m).into_iter().collect(),
        Payload::Batch(all, _) => all.iter().filter_map(call).collect(),
        Payload::Other | Payload::Invalid => vec![],
    }
}

impl Tape {
    /// Keeps the exchanges of one end: where captures show both sides of a proxy, each call is in
    /// them twice.
    fn take(&mut self, done: Vec<TapeExchange>) {
        let mut counts: FxHashMap<SocketAddr, usize> = FxHashMap::default();
        for exchange in done.iter().filter(|e| !e.calls.is_empty()) {
            *counts.entry(exchange.server).or_default() += 1;
        }
        let most = counts.into_iter().max_by_key(|(address, n)| (*n, *address)).map(|(address, _)| address);
        let all = done.len();
        self.exchanges = done.into_iter().filter(|e| Some(e.server) == most).collect();
        self.left_out = all - self.exchanges.len();
        self.exchanges.retain(|e| !e.calls.is_empty() || e.session.is_some());
        self.exchanges.sort_by_key(|e| e.at_ns);
    }
}
