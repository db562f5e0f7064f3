//! What one line (or entry) of a log says, whatever its layout.

use super::id::{RpcId, SessionId};
use super::place::{Place, Vantage};
use super::time::Time;
use std::net::IpAddr;
use std::sync::Arc;

/// A record of a log.
#[derive(Clone, Debug)]
pub enum Record {
    /// One HTTP exchange, as a proxy's or server's access log tells it.
    Access(Box<AccessRecord>),
    /// Something that happened in or to the server (or proxy error log).
    Event(Box<LogEvent>),
    /// A call as the client itself recorded it.
    Client(Box<ClientCall>),
    /// One JSON-RPC message in a client's or bridge's own log.
    Message(Box<LoggedMessage>),
}

impl Record {
    /// Where it stands.
    pub fn place(&self) -> Option<Place> {
        match self {
            Record::Access(x) => x.place,
            Record::Event(x) => Some(x.place),
            Record::Client(x) => Some(x.place),
            Record::Message(x) => Some(x.place),
        }
    }
}

/// When something was, and how exactly that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct When {
    /// Best estimate.
    pub at: Time,
    /// The truth lies within this many nanoseconds of it, either side.
    pub error_ns: i64,
}

impl When {
    /// Is anything known of it? What has no time is put anywhere, with an error that no clock has.
    pub fn is_known(self) -> bool {
        self.error_ns <= UNKNOWN_NS
    }
}

/// An error from here on is that of a time which is not known, ns.
const UNKNOWN_NS: i64 = i64::MAX / 8;

/// One line of an access log. `None` is "the line does not say", never "empty".
#[derive(Clone, Debug, Default)]
pub struct AccessRecord {
    /// Where it stands.
    pub place: Option<Place>,
    /// Proxy or server.
    pub vantage: Option<Vantage>,
    /// Start of the request, where the log has it or it follows from end − duration.
    pub start: Option<When>,
    /// End of the request, where the log has it or it follows from start + duration.
    pub end: Option<When>,
    /// Total duration as logged, ns.
    pub duration_ns: Option<i64>,
    /// Time that the upstream took, ns.
    pub upstream_ns: Option<i64>,
    /// Request method.
    pub method: Option<Arc<str>>,
    /// Request target.
    pub target: Option<Arc<str>>,
    /// Status sent to the client.
    pub status: Option<u16>,
    /// Status received from the upstream.
    pub upstream_status: Option<u16>,
    /// Body (or total) bytes sent to the client.
    pub bytes: Option<u64>,
    /// Whether `bytes` counts the body alone.
    pub bytes_are_body: bool,
    /// Address of the peer.
    pub client_addr: Option<IpAddr>,
    /// Port of the peer.
    pub client_port: Option<u16>,
    /// Upstream chosen, as written.
    pub upstream: Option<Arc<str>>,
    /// `Mcp-Session-Id` of the request.
    pub session: Option<SessionId>,
    /// `Mcp-Session-Id` of the response.
    pub session_given: Option<SessionId>,
    /// User agent.
    pub user_agent: Option<Arc<str>>,
    /// A request id that a header carries at other vantage points too.
    pub request_id: Option<Arc<str>>,
    /// How the proxy says it ended: HAProxy termination state, Envoy response flags, Apache
    /// `%X`, nginx `$request_completion`, as written.
    pub termination: Option<Arc<str>>,
    /// Request body, where logged.
    pub request_body: Option<Arc<[u8]>>,
    /// Response body, where logged.
    pub response_body: Option<Arc<[u8]>>,
    /// JSON-RPC method and tool from the `Mcp-Method` and `Mcp-Name` headers, where logged.
    pub rpc_method: Option<Arc<str>>,
    /// See `rpc_method`.
    pub rpc_tool: Option<Arc<str>>,
    /// The line was written by hand or condensed (`x3`): this many equal requests.
    pub repeat: u32,
    /// What a person wrote behind it.
    pub comment: Option<Arc<str>>,
}

/// Records whose room is used again and again: they come boxed, and go on so.
pub type BoxedRecords = Vec<Box<AccessRecord>>;

/// What happened in or to the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LogEventKind {
    /// A session's transport was created (also for rejected first requests).
    SessionCreated,
    /// A session was terminated by DELETE or by the server.
    SessionEnded,
    /// A session crashed.
    SessionCrashed,
    /// A session was removed for idleness.
    SessionExpired,
    /// A request named an unknown or expired session.
    SessionRejected,
    /// The session manager or application started.
    ServerStarted,
    /// The session manager or application is shutting down.
    ServerStopping,
    /// The process ended.
    ServerStopped,
    /// The service manager started the unit.
    UnitStarted,
    /// The service manager is stopping the unit.
    UnitStopping,
    /// The service manager stopped the unit.
    UnitStopped,
    /// The unit's main process died, or the unit failed.
    UnitFailed,
    /// The service manager scheduled a restart.
    UnitRestart,
    /// A JSON-RPC request is being processed.
    Processing,
    /// A request was finished by its handler, as the handler or middleware says.
    Finished,
    /// A request was cancelled.
    Cancelled,
    /// A response could not be delivered, or was suppressed.
    ReplyDropped,
    /// The client side got a reply that it could not place.
    UnknownReply,
    /// A proxy says that its upstream timed out.
    UpstreamTimeout,
    /// A proxy says that its upstream closed or reset.
    UpstreamReset,
    /// A proxy could not connect to its upstream.
    UpstreamRefused,
    /// A traceback or error line.
    Error,
    /// A line that says nothing that a rule uses; it still shows that the log covers its time.
    Other,
}

impl LogEventKind {
    /// Whether the server takes requests from then on; none: it says nothing of that.
    pub const fn is_up(self) -> Option<bool> {
        match self {
            LogEventKind::ServerStarted => Some(true),
            LogEventKind::ServerStopping
            | LogEventKind::ServerStopped
            | LogEventKind::UnitStopping
            | LogEventKind::UnitStopped
            | LogEventKind::UnitFailed => Some(false),
            _ => None,
        }
    }

    /// What a report calls it.
    pub const fn name(self) -> &'static str {
        match self {
            LogEventKind::SessionCreated => "session created",
            LogEventKind::SessionEnded => "session ended",
            LogEventKind::SessionCrashed => "session crashed",
            LogEventKind::SessionExpired => "session expired",
            LogEventKind::SessionRejected => "unknown session refused",
            LogEventKind::ServerStarted => "server started",
            LogEventKind::ServerStopping => "server stopping",
            LogEventKind::ServerStopped => "server stopped",
            LogEventKind::UnitStarted => "unit started",
            LogEventKind::UnitStopping => "unit stopping",
            LogEventKind::UnitStopped => "unit stopped",
            LogEventKind::UnitFailed => "unit failed",
            LogEventKind::UnitRestart => "unit restart scheduled",
            LogEventKind::Processing => "request begun",
            LogEventKind::Finished => "request finished",
            LogEventKind::Cancelled => "request cancelled",
            LogEventKind::ReplyDropped => "reply not delivered",
            LogEventKind::UnknownReply => "reply not placed",
            LogEventKind::UpstreamTimeout => "upstream timed out",
            LogEventKind::UpstreamReset => "upstream reset",
            LogEventKind::UpstreamRefused => "upstream not reached",
            LogEventKind::Error => "error",
            LogEventKind::Other => "other",
        }
    }
}

/// One event of a server's or proxy's own log.
#[derive(Clone, Debug)]
pub struct LogEvent {
    /// Where it stands.
    pub place: Place,
    /// Proxy or server.
    pub vantage: Vantage,
    /// When, where known; without one its order in the file is all there is.
    pub when: Option<When>,
    /// What.
    pub kind: LogEventKind,
    /// The session it names.
    pub session: Option<SessionId>,
    /// The JSON-RPC id it names.
    pub rpc_id: Option<RpcId>,
    /// The JSON-RPC method or request type it names (`tools/call`).
    pub method: Option<Arc<str>>,
    /// The tool it names.
    pub tool: Option<Arc<str>>,
    /// Duration it states, ns.
    pub duration_ns: Option<i64>,
    /// Service unit or container.
    pub unit: Option<Arc<str>>,
    /// Host.
    pub host: Option<Arc<str>>,
    /// Process id.
    pub pid: Option<u32>,
    /// Journal cursor.
    pub cursor: Option<Arc<str>>,
    /// The message text, cut to what a report can quote.
    pub text: Arc<str>,
}

impl LogEvent {
    /// An event of which no more is known than this; `text` is cut to what a report can quote.
    pub fn new(kind: LogEventKind, when: Option<When>, place: Place, vantage: Vantage, text: Arc<str>) -> LogEvent {
        LogEvent {
            place,
            vantage,
            when,
            kind,
            session: None,
            rpc_id: None,
            method: None,
            tool: None,
            duration_ns: None,
            unit: None,
            host: None,
            pid: None,
            cursor: None,
            text,
        }
    }
}

/// What a client says became of its call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ClientOutcome {
    /// It got a result.
    Ok,
    /// It got an error.
    Error,
    /// It gave up waiting.
    Timeout,
    /// It gave the call up itself.
    Aborted,
    /// It recorded a success without content.
    Empty,
    /// The transport failed before any answer.
    Lost,
}

impl ClientOutcome {
    /// It waited for an answer as long as it says, and had none.
    pub const fn is_without_answer(self) -> bool {
        matches!(self, ClientOutcome::Timeout | ClientOutcome::Aborted | ClientOutcome::Lost)
    }
}

/// One call as the client recorded it (`crosswire-client`, transcripts, HAR-less clients).
#[derive(Clone, Debug)]
pub struct ClientCall {
    /// Where the call's record stands.
    pub place: Place,
    /// When it was issued.
    pub at: Option<When>,
    /// When it ended, as the client saw it.
    pub ended: Option<When>,
    /// The client's conversation.
    pub conversation: Option<Arc<str>>,
    /// The client's name for the server.
    pub server: Option<Arc<str>>,
    /// JSON-RPC method; `tools/call` where only a tool is named.
    pub method: Arc<str>,
    /// Tool.
    pub tool: Option<Arc<str>>,
    /// Arguments, as exact JSON text.
    pub arguments: Option<Arc<str>>,
    /// JSON-RPC id.
    pub id: Option<RpcId>,
    /// Session.
    pub session: Option<SessionId>,
    /// Local port of its connection.
    pub local_port: Option<u16>,
    /// `toolu_…`, equal to `params._meta["claudecode/toolUseId"]` on the wire.
    pub tool_use_id: Option<Arc<str>>,
    /// What became of it.
    pub outcome: Option<ClientOutcome>,
    /// The result that it took for this call's, as exact JSON text.
    pub result: Option<Arc<str>>,
    /// SHA-256 of the reply message's exact bytes, lower-case hex.
    pub result_sha256: Option<Arc<str>>,
    /// Free text: an error message, or the content as text.
    pub text: Option<Arc<str>>,
}

/// A JSON-RPC message in a client's or bridge's log (Claude Desktop, VS Code, mcp-remote).
#[derive(Clone, Debug)]
pub struct LoggedMessage {
    /// Where it stands.
    pub place: Place,
    /// When it was logged.
    pub when: Option<When>,
    /// From the client to the server?
    pub from_client: bool,
    /// The message as JSON text, as logged (may be cut or re-serialised).
    pub json: Arc<str>,
    /// Is `json` the exact message, so that its hash can be compared?
    pub exact: bool,
    /// The log left out or cut `params`, `result` or `error` (mcp-remote writes only
    /// `"result-present"`): nothing follows from what `json` lacks.
    pub elided: bool,
    /// The client's name for the server.
    pub server: Option<Arc<str>>,
    /// The session, where the log names it.
    pub session: Option<SessionId>,
}
