//! One HTTP exchange at one vantage point, with the JSON-RPC it carried.

use super::content::fingerprint;
use super::jsonrpc::Message;
pub use super::rpc::{Rpc, RpcKind};
use super::scan;
use super::shape::ShapeId;
use crate::model::exchange::{BodyKind, End, ExchangeId, Mark, Peer};
use crate::model::id::{RpcId, SessionId};
use crate::model::place::{InputId, Place, Vantage};
use crate::model::record::{AccessRecord, When};
use crate::model::time::Time;
use sha2::Digest;
use std::hash::{Hash, Hasher};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, OnceLock};

/// SHA-256 of a message's exact bytes; all zeros where they are not known.
pub type Sha256 = [u8; 32];

/// The hash of a message, worked out when it is first asked for: most messages are never cited, and
/// hashing them all costs more than reading them.
#[derive(Clone, Debug, Default)]
pub struct MessageHash(OnceLock<Sha256>);

impl MessageHash {
    /// A hash that an input states.
    pub fn known(hash: Sha256) -> MessageHash {
        MessageHash(OnceLock::from(hash))
    }

    /// None can be known: the input does not hold the exact bytes.
    pub fn unknown() -> MessageHash {
        MessageHash::known([0; 32])
    }

    pub(super) fn of(&self, body: Option<&[u8]>) -> Sha256 {
        *self.0.get_or_init(|| body.map_or([0; 32], |b| sha2::Sha256::digest(b).into()))
    }
}

/// One result or error that the server sent.
#[derive(Clone, Debug)]
pub struct Reply {
    /// First and last byte.
    pub first: Mark,
    /// See `first`.
    pub last: Mark,
    /// Its id; none where the member is missing.
    pub id: Option<RpcId>,
    /// Code of a JSON-RPC error.
    pub error: Option<i64>,
    /// Message of a JSON-RPC error, cut.
    pub error_text: Option<Arc<str>>,
    /// A result with `isError: true`.
    pub tool_error: bool,
    /// A result that is a task, input_required, or otherwise not yet the tool's content.
    pub interim: bool,
    /// Hash of its exact bytes, see [`Reply::sha256`].
    pub hash: MessageHash,
    /// Where its parts lie.
    pub parts: ReplyParts,
    /// See [`Reply::content`].
    pub content: OnceLock<u64>,
    /// See [`Reply::value`].
    pub value: OnceLock<Option<u64>>,
    /// Shape of a result, once it was asked for.
    pub shape: OnceLock<Option<ShapeId>>,
    /// The number of a schema that it was seen to satisfy.
    pub conforms: OnceLock<u32>,
    /// The SSE event id it came with, where there was one.
    pub event_id: Option<Arc<str>>,
    /// It came on an event stream.
    pub is_event: bool,
    /// Bytes of the stream were missing before it: it may be the next exchange's on the connection.
    pub after_gap: bool,
    /// It came after the client had closed.
    pub after_close: bool,
    /// Exact bytes, kept while a rule or the output may want them.
    pub body: Option<Arc<[u8]>>,
}

/// Where in the bytes of a reply its parts lie: finding them again would mean to pass over the whole of it.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReplyParts {
    result: Span,
    error: Span,
    structured: Span,
}

/// From and to, bytes; empty where there is none.
pub type Span = (u32, u32);

/// Where a part lies in the whole.
pub(super) fn span(whole: &[u8], part: Option<&[u8]>) -> Span {
    let from = |p: &[u8]| u32::try_from((p.as_ptr() as usize).wrapping_sub(whole.as_ptr() as usize)).ok();
    let to = |p: &[u8], from: u32| Some((from, from.checked_add(u32::try_from(p.len()).ok()?)?));
    part.and_then(|p| to(p, from(p)?)).unwrap_or_default()
}

impl ReplyParts {
    /// Those of a message that was just read.
    pub fn of(m: &Message<'_>) -> ReplyParts {
        let span = |part| span(m.raw, part);
        ReplyParts { result: span(m.result), error: span(m.error), structured: span(m.inside.structured) }
    }
}

/// A request that the server sent on a stream.
#[derive(Clone, Debug)]
pub struct ServerRequest {
    /// Last byte.
    pub last: Mark,
    /// Its id, of the server's own numbering.
    pub id: RpcId,
    /// Its method.
    pub method: Arc<str>,
    /// Hash of its exact bytes.
    pub sha256: Sha256,
}

/// One HTTP exchange at one vantage point.
#[derive(Clone, Debug)]
pub struct Visit {
    /// The exchange it was made from, unique in a run; logs number theirs from the top down.
    pub exchange: ExchangeId,
    /// Input.
    pub input: InputId,
    /// Vantage of the input.
    pub vantage: Vantage,
    /// Where the request begins and ends (frames), or its line.
    pub first: Option<Place>,
    /// See `first`.
    pub place: Place,
    /// Start of the request.
    pub at: When,
    /// When the whole request had been sent.
    pub asked: Time,
    /// TCP stream.
    pub stream: Option<u64>,
    /// HTTP/2 stream.
    pub h2_stream: Option<u32>,
    /// The answering end as addressed here.
    pub server: Option<SocketAddr>,
    /// The asking end as seen here.
    pub peer: Option<IpAddr>,
    /// Its port.
    pub port: Option<u16>,
    /// User agent.
    pub user_agent: Option<Arc<str>>,
    /// HTTP method.
    pub method: Option<Arc<str>>,
    /// Request target.
    pub target: Option<Arc<str>>,
    /// `Host` header.
    pub host: Option<Arc<str>>,
    /// Session of the request header (or of the legacy transport's message endpoint).
    pub session: Option<SessionId>,
    /// Session of the response header.
    pub given: Option<SessionId>,
    /// `MCP-Protocol-Version` header.
    pub revision: Option<Arc<str>>,
    /// `Last-Event-ID` header.
    pub last_event_id: Option<Arc<str>>,
    /// Request id header (`X-Request-Id` and the like).
    pub request_id: Option<Arc<str>>,
    /// Status.
    pub status: Option<u16>,
    /// The response head.
    pub head: Option<Mark>,
    /// Response body kind.
    pub kind: BodyKind,
    /// Body bytes of the response.
    pub bytes: Option<u64>,
    /// What the client sent.
    pub rpc: Vec<Rpc>,
    /// What the server answered.
    pub replies: Vec<Reply>,
    /// What the server asked.
    pub asks: Vec<ServerRequest>,
    /// An `endpoint` event was sent: this GET is the legacy transport's reply stream.
    pub legacy_stream: bool,
    /// First characters of an error body that is no JSON-RPC.
    pub error_text: Option<Arc<str>>,
    /// An SSE event id was sent on this stream (it can be resumed).
    pub resumable: Vec<Arc<str>>,
    /// How it ended.
    pub end: Option<End>,
    /// When.
    pub ended: Option<Mark>,
    /// Who ended it early.
    pub ended_by: Option<Peer>,
    /// The client's FIN or RST before the end of the response.
    pub client_closed: Option<Mark>,
    /// Parts of the request are missing, or could not be read.
    pub request_gap: bool,
    /// Parts of the response are missing: a reply may have been in them.
    pub response_gap: bool,
    /// Only one direction was captured.
    pub one_direction: bool,
    /// The request was seen.
    pub has_request: bool,
    /// Its connection had begun before the capture.
    pub midstream: bool,
    /// How the proxy says it ended.
    pub termination: Option<Arc<str>>,
    /// Where its writer says that it sent the request: a proxy's upstream, a client's name for the server.
    pub upstream: Option<Arc<str>>,
    /// Duration as logged, ns.
    pub duration_ns: Option<i64>,
    /// A person's note behind the line.
    pub comment: Option<Arc<str>>,
    /// Clients' and servers' names and revision, from `initialize`.
    pub handshake: Option<Box<Handshake>>,
    /// The request carries a proxy's marks (`X-Forwarded-For`, `Forwarded`, `Via`, `X-Real-IP`).
    pub forwarded: bool,
    /// What the client itself says became of the call, at a client's vantage.
    pub client_outcome: Option<crate::model::record::ClientOutcome>,
    /// Tools with their output schemas, from `tools/list`.
    pub tools: Vec<Tool>,
    /// All header fields, only where they are asked for.
    pub heads: Option<Box<Heads>>,
    /// The line that it was made of, only where that is handed on.
    pub line: Option<Box<AccessRecord>>,
}

/// The header fields of an exchange in order.
#[derive(Clone, Debug, Default)]
pub struct Heads {
    /// Of the request.
    pub request: Vec<(Arc<str>, Arc<str>)>,
    /// Of the response.
    pub response: Vec<(Arc<str>, Arc<str>)>,
}

/// What `initialize` (or `_meta`) says of both ends.
#[derive(Clone, Debug, Default)]
pub struct Handshake {
    /// `name/version` of the client.
    pub client: Option<Arc<str>>,
    /// `name/version` of the server.
    pub server: Option<Arc<str>>,
    /// Revision agreed on.
    pub revision: Option<Arc<str>>,
}

/// A tool as listed.
#[derive(Clone, Debug)]
pub struct Tool {
    /// Name.
    pub name: Arc<str>,
    /// Its `outputSchema`, exact JSON text.
    pub output_schema: Option<Arc<str>>,
}

impl Reply {
    fn part(&self, (from, to): Span) -> Option<&[u8]> {
        self.body.as_ref()?.get(from as usize..to as usize).filter(|p| !p.is_empty())
    }
    /// Exact bytes of its `result`.
    pub fn result(&self) -> Option<&[u8]> {
        self.part(self.parts.result)
    }
    /// Exact bytes of the `structuredContent` of its result.
    pub fn structured(&self) -> Option<&[u8]> {
        self.part(self.parts.structured)
    }
    /// Hash of the bytes of `result` or `error` alone, which survives a changed id.
    pub fn content(&self) -> u64 {
        *self.content.get_or_init(|| {
            let mut h = rustc_hash::FxHasher::default();
            self.result().or(self.part(self.parts.error)).hash(&mut h);
            h.finish()
        })
    }
    /// Order-free fingerprint of its `result` or `error`; none where the bytes are not known.
    pub fn value(&self) -> Option<u64> {
        *self.value.get_or_init(|| {
            let body = self.body.as_deref()?;
            scan::member(body, "result").or_else(|| scan::member(body, "error")).map(fingerprint)
        })
    }
    /// SHA-256 of its exact bytes.
    pub fn sha256(&self) -> Sha256 {
        self.hash.of(self.body.as_deref())
    }
}

fn push_lean<T>(list: &mut Vec<T>, item: T) {
    if list.is_empty() {
        list.reserve_exact(1);
    }
    list.push(item);
}

impl Visit {
    /// A visit about which no more is known than where it stands and when; everything else is
    /// "not seen", and no bytes are missing.
    pub fn new(exchange: ExchangeId, place: Place, vantage: Vantage, at: When) -> Visit {
        Visit {
            exchange,
            input: place.input,
            vantage,
            first: None,
            place,
            at,
            asked: at.at,
            stream: None,
            h2_stream: None,
            server: None,
            peer: None,
            port: None,
            user_agent: None,
            method: None,
            target: None,
            host: None,
            session: None,
            given: None,
            revision: None,
            last_event_id: None,
            request_id: None,
            status: None,
            head: None,
            kind: BodyKind::Other,
            bytes: None,
            rpc: vec![],
            replies: vec![],
            asks: vec![],
            legacy_stream: false,
            error_text: None,
            resumable: vec![],
            end: None,
            ended: None,
            ended_by: None,
            client_closed: None,
            request_gap: false,
            response_gap: false,
            one_direction: false,
            has_request: true,
            midstream: false,
            termination: None,
            upstream: None,
            duration_ns: None,
            comment: None,
            handshake: None,
            forwarded: false,
            client_outcome: None,
            tools: vec![],
            heads: None,
            line: None,
        }
    }

    /// Adds a message that the client sent. Most exchanges have one, so there is room for no more at first: exchanges
    /// are what is kept the longest.
    pub fn add_rpc(&mut self, rpc: Rpc) {
        push_lean(&mut self.rpc, rpc);
    }
    /// Adds a reply, likewise.
    pub fn add_reply(&mut self, reply: Reply) {
        push_lean(&mut self.replies, reply);
    }
    /// Requests that expect a reply.
    pub fn requests(&self) -> impl Iterator<Item = &Rpc> {
        self.rpc.iter().filter(|r| r.kind == RpcKind::Request)
    }
    /// Is it a POST?
    pub fn is_post(&self) -> bool {
        self.method.as_deref() == Some("POST")
    }
    /// Is it a GET?
    pub fn is_get(&self) -> bool {
        self.method.as_deref() == Some("GET")
    }
    /// Does the target's query name the session, as the message endpoint of 2024-11-05 does?
    pub fn names_session_in_query(&self) -> bool {
        self.target.as_deref().is_some_and(|t| t.contains("session_id=") || t.contains("sessionId="))
    }

    /// Is it a DELETE?
    pub fn is_delete(&self) -> bool {
        self.method.as_deref() == Some("DELETE")
    }
    /// Does it carry a client message of this method?
    pub fn carries(&self, method: &str) -> bool {
        self.rpc.iter().any(|r| r.method.as_deref() == Some(method))
    }
    /// The session that it belongs to: that of the request, for an answered `initialize` the new one.
    pub fn belongs_to(&self) -> Option<&SessionId> {
        if self.session.is_some() {
            return self.session.as_ref();
        }
        // A session exists from initialize + 2xx only: other replies may carry a useless header.
        let answered = self.status.is_some_and(|s| (200..300).contains(&s));
        if answered && self.carries("initialize") { self.given.as_ref() } else { None }
    }
    /// When its response head was seen; where none was, when it was asked.
    pub fn answered(&self) -> Time {
        self.head.map_or(self.asked, |m| m.at)
    }
    /// When the last thing of it was seen.
    pub fn last_seen(&self) -> Time {
        let reply = self.replies.iter().map(|r| r.last.at);
        reply
            .chain(self.ended.map(|m| m.at))
            .chain(self.head.map(|m| m.at))
            .chain([self.asked])
            .max()
            .unwrap_or(self.asked)
    }
    /// Bytes of the messages that are kept with it.
    pub fn body_bytes(&self) -> usize {
        let length = |b: &Option<Arc<[u8]>>| b.as_ref().map_or(0, |b| b.len());
        let sent: usize = self.rpc.iter().map(|r| length(&r.body)).sum();
        sent + self.replies.iter().map(|r| length(&r.body)).sum::<usize>()
    }
    /// Host and path of the endpoint that was asked.
    pub fn endpoint(&self) -> Option<Arc<str>> {
        let host = self.host.as_deref().map(str::to_owned).or_else(|| self.server.map(|s| s.to_string()));
        host.map(|h| Arc::from(format!("{h}{}", self.path().unwrap_or(""))))
    }
    /// The path of the request target, without query.
    pub fn path(&self) -> Option<&str> {
        self.target.as_deref().and_then(path_of)
    }
    /// The path, as what it is the endpoint of.
    pub fn endpoint_path(&self) -> Option<&str> {
        self.path().map(without_slash)
    }
}

/// `/mcp/` and `/mcp` are one endpoint: servers that mount applications answer both, or send from one to the other.
pub fn without_slash(path: &str) -> &str {
    match path.trim_end_matches('/') {
        "" => path,
        trimmed => trimmed,
    }
}

/// The path of a request target, which may be an absolute one (RFC 9112 §3.2), without query.
pub fn path_of(target: &str) -> Option<&str> {
    let absolute = if target.starts_with('/') { None } else { target.find("://") };
    let target = match absolute {
        Some(i) => target.get(i + 3..).and_then(|rest| rest.find('/').and_then(|j| rest.get(j..))).unwrap_or("/"),
        None => target,
    };
    let end = memchr::memchr2(b'?', b'#', target.as_bytes()).unwrap_or(target.len());
    target.get(..end)
}
