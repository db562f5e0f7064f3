//! HTTP exchanges as events, whoever saw them: packets in the clear, decrypted packets,
//! HTTP/2 streams, HAR files, mitmproxy flows.
//!
//! A source owns the [`Exchange`] while it is open and tells an [`ExchangeSink`] of each step
//! in the order in which the bytes became known. JSON-RPC is not looked at here: a message is
//! a body or the data of one SSE event, after transfer and content decoding.

use super::place::{InputId, Place};
use super::time::Time;
use std::net::SocketAddr;
use std::sync::Arc;

/// Names one exchange within a run.
pub type ExchangeId = u64;

/// Where and when a run of bytes was captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The frame that carried it.
    pub place: Place,
    /// That frame's time.
    pub at: Time,
}

/// How an exchange ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// The response came to its end as framed.
    Complete,
    /// The client closed (FIN) before the response was complete.
    ClientClosed,
    /// The server closed (FIN) before the response was complete, or before any.
    ServerClosed,
    /// A RST (or RST_STREAM) ended it; `Exchange::reset_by` says by whom.
    Reset,
    /// The input ended while it was open.
    InputEnded,
    /// Bytes are missing, so the end is not known.
    Gap,
}

/// One of the two ends of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Peer {
    /// The end that sends requests.
    Client,
    /// The end that answers.
    Server,
}

/// How a body is delimited and typed, as far as the rules care.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum BodyKind {
    /// No body, or one of another type.
    #[default]
    Other,
    /// `application/json`.
    Json,
    /// `text/event-stream`.
    EventStream,
}

/// The request half. Fields are as seen; a request that was never seen (capture began later)
/// is `None` in [`Exchange::request`].
#[derive(Clone, Debug)]
pub struct Request {
    /// First byte of the request line.
    pub first: Mark,
    /// Last byte of the request with its body.
    pub last: Mark,
    /// `POST`, `GET`, …, as sent.
    pub method: Arc<str>,
    /// The request target as sent.
    pub target: Arc<str>,
    /// Every header field in order, names in lower case, values trimmed. Values that are no
    /// UTF-8 are converted lossily.
    pub headers: Vec<(Arc<str>, Arc<str>)>,
    /// Decoded body bytes.
    pub body_bytes: u64,
    /// Bytes of the request are missing (hole, cut frame): nothing may be concluded from what
    /// the body lacks.
    pub gap: bool,
}

/// The response half, present once the final (not 1xx) status line was seen.
#[derive(Clone, Debug)]
pub struct Response {
    /// First byte of the status line.
    pub first: Mark,
    /// Status code; 0 where it is not known (HTTP/2 behind a lost header block).
    pub status: u16,
    /// As [`Request::headers`].
    pub headers: Vec<(Arc<str>, Arc<str>)>,
    /// What the body is.
    pub kind: BodyKind,
    /// Body bytes so far, after transfer decoding, before content decoding.
    pub body_bytes: u64,
    /// The last body byte so far.
    pub last: Option<Mark>,
    /// Bytes of the response are missing: a reply may have been in them.
    pub gap: bool,
}

/// One HTTP request and its response on one stream.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// Unique within the run, in order of being opened.
    pub id: ExchangeId,
    /// Input of the request's (else the response's) first frame.
    pub input: InputId,
    /// TCP stream as Wireshark numbers it (per input, from 0); for HAR and flows the entry.
    pub stream: u64,
    /// HTTP/2 stream id.
    pub h2_stream: Option<u32>,
    /// The requesting end.
    pub client: SocketAddr,
    /// The answering end.
    pub server: SocketAddr,
    /// What was asked; none if the capture does not hold it.
    pub request: Option<Request>,
    /// What was answered; none if nothing (yet).
    pub response: Option<Response>,
    /// Set with [`Event::End`].
    pub end: Option<End>,
    /// When and where the end was seen (last body byte, FIN, RST, or the input's last record).
    pub ended: Option<Mark>,
    /// Who sent the RST or FIN that ended it early.
    pub ended_by: Option<Peer>,
    /// The client's FIN or RST, where it came before the end of the response. It may still
    /// read (half-close), so a reply after a FIN is late only if the caller had given up.
    pub client_closed: Option<Mark>,
    /// When the connection began (SYN), if captured: `None` means the capture started later.
    pub connected: Option<Time>,
    /// Only one direction of this connection was captured.
    pub one_direction: bool,
}

impl Exchange {
    /// The value of a request header (lower-case name), the first where it repeats.
    pub fn request_header(&self, name: &str) -> Option<&str> {
        header(&self.request.as_ref()?.headers, name)
    }
    /// The value of a response header (lower-case name), the first where it repeats.
    pub fn response_header(&self, name: &str) -> Option<&str> {
        header(&self.response.as_ref()?.headers, name)
    }
}

/// The first value of a header field; `name` in lower case.
pub fn header<'a>(headers: &'a [(Arc<str>, Arc<str>)], name: &str) -> Option<&'a str> {
    shared_header(headers, name).map(|v| &**v)
}

/// As [`header`], to be kept.
pub fn shared_header<'a>(headers: &'a [(Arc<str>, Arc<str>)], name: &str) -> Option<&'a Arc<str>> {
    headers.iter().find(|(n, _)| &**n == name).map(|(_, v)| v)
}

/// One message of an exchange: a whole body that is not an event stream, or one SSE event.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// Who sent it.
    pub from: Peer,
    /// The payload: the decoded body, or the event's data lines joined with `\n`
    /// (WHATWG HTML §9.2.6).
    pub data: &'a [u8],
    /// First payload byte.
    pub first: Mark,
    /// Last payload byte.
    pub last: Mark,
    /// Is it an SSE event?
    pub is_event: bool,
    /// The SSE `event:` type; none means `message`.
    pub event: Option<&'a str>,
    /// The last event id in force (SSE `id:`), if any.
    pub event_id: Option<&'a str>,
}

/// A step of an exchange.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// The request is complete (or ends in a gap): head and body are known.
    Request,
    /// The final response head was seen.
    Head,
    /// A message; client messages come right after `Request`.
    Message(Message<'a>),
    /// Bytes of the response are missing from here on; more messages may follow.
    ResponseGap,
    /// The client closed or reset its side while the response was incomplete.
    ClientClosed,
    /// Nothing more will come; the exchange is dropped after this.
    End,
}

/// Receives every step of every exchange.
pub trait ExchangeSink {
    /// `exchange` is as known at this step.
    fn event(&mut self, exchange: &Exchange, event: Event<'_>);
}
