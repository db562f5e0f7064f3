//! The rows of the report: what every output format renders, and nothing else.
//!
//! Longer than 500 lines: it is one table of fields, each with its meaning.
//!
//! Field names and meanings are the JSON report's (`crosswire.report/1`); its serialisation is
//! `serde`'s of these types, so that what is documented here is what is written.

use super::exchange::End;
use super::id::{RpcId, SessionId};
use super::place::{Hop, InputId, Side, Vantage};
use super::problem::Problems;
use super::time::Time;
use rustc_hash::FxHashSet;
use serde::Serialize;
use std::sync::Arc;

/// The calls that a finding names.
pub fn finding_calls(f: &Finding) -> impl Iterator<Item = CallKey> + '_ {
    f.calls.iter().copied().chain(f.victim).chain(f.owner)
}

/// The calls that findings and windows cite.
pub fn cited(findings: &[Finding], windows: &[Window]) -> FxHashSet<CallKey> {
    let lost = windows.iter().flat_map(|w| w.lost.iter().copied().chain(w.trigger_call));
    findings.iter().flat_map(finding_calls).chain(lost).collect()
}

/// A call's key in a report: `c8`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallKey(pub u32);
impl std::fmt::Display for CallKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "c{}", self.0)
    }
}
impl Serialize for CallKey {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

/// Everything a run found out.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Report {
    /// What was read.
    pub inputs: Vec<InputInfo>,
    /// Counts.
    pub summary: Summary,
    /// Sessions, in order of their start.
    pub sessions: Vec<Session>,
    /// Calls, in order of being sent.
    pub calls: Vec<Call>,
    /// Stale-session windows, in order of opening.
    pub windows: Vec<Window>,
    /// Findings, in order of time.
    pub findings: Vec<Finding>,
    /// HTTP exchanges, only filled for `timeline`.
    #[serde(skip)]
    pub exchanges: Vec<ExchangeRow>,
    /// What gave reason to look and is no finding, and why; reports say it with `-v`.
    #[serde(skip)]
    pub near: Vec<Near>,
    /// Files found in directories that are of no known format; the program names them on standard error.
    #[serde(skip)]
    pub passed_over: Vec<String>,
    /// Inputs that could not be read at all, each as a sentence that names the file, what was
    /// expected and what to do. Any entry makes the exit status 2.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub troubles: Vec<String>,
}

/// What gave reason to look and is no finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Near {
    /// The call that it is about; null where it says how many more there are.
    pub call: Option<CallKey>,
    /// The call by name, what it might have been, and why it is not.
    pub text: String,
}

/// One file, stream or interface that was read.
#[derive(Clone, Debug, Default, Serialize)]
pub struct InputInfo {
    /// As given on the command line; `archive!member`, `capture#interface`.
    pub name: String,
    /// Name in the table of formats; null if none was recognised.
    pub format: Option<String>,
    /// Where it was taken.
    pub vantage: Option<Vantage>,
    /// Front or back of a proxy, for captures where both were seen.
    pub side: Option<Side>,
    /// Packets, journal entries or log lines, unreadable ones included.
    pub records: u64,
    /// Time of the first record.
    pub first: Option<Time>,
    /// Time of the last record.
    pub last: Option<Time>,
    /// Its clock.
    #[serde(flatten)]
    pub clock: Clock,
    /// What could not be read.
    pub problems: Problems,
    /// How many of its records were joined to calls seen elsewhere too.
    pub joined: u64,
    /// Of these, how many could be another call's as well.
    pub ambiguous: u64,
    /// What it can and cannot show, one line for the source table.
    pub shows: String,
    /// Where several wrote in it: each by itself.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part>,
}

/// How a clock stands to the reference.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Clock {
    /// Added to its times to reach the reference clock, ms; null: nothing to align it by. Where the clock
    /// drifts, at its first record.
    #[serde(rename = "clock_offset_ms")]
    pub offset_ms: Option<f64>,
    /// How far that may be off, ms.
    #[serde(rename = "clock_error_ms")]
    pub error_ms: Option<f64>,
    /// What the offset grows by, µs a second of the clock (parts in a million); null: none can be told.
    #[serde(rename = "clock_drift_ppm")]
    pub drift_ppm: Option<f64>,
    /// How far that may be off.
    #[serde(rename = "clock_drift_error_ppm")]
    pub drift_error_ppm: Option<f64>,
}

/// What one of several who wrote in an input left there.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Part {
    /// Who wrote it.
    pub vantage: Option<Vantage>,
    /// Its requests and events.
    pub records: u64,
    /// Time of the first of these.
    pub first: Option<Time>,
    /// Time of the last.
    pub last: Option<Time>,
    /// Their clock.
    #[serde(flatten)]
    pub clock: Clock,
    /// How many of its records were joined to calls seen elsewhere too.
    pub joined: u64,
    /// Of these, how many could be another call's as well.
    pub ambiguous: u64,
    /// What it can and cannot show.
    pub shows: String,
}

/// How [`InputInfo::shows`] begins for a log from which no call can be made.
pub const NO_REQUESTS: &str = "no requests";

/// Counts over the whole run.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Summary {
    /// HTTP exchanges, summed over inputs before joining.
    pub exchanges: u64,
    /// Sessions and session-less groups listed.
    pub sessions: u64,
    /// Calls after joining.
    pub calls: u64,
    /// Of these, `tools/call`.
    pub tool_calls: u64,
    /// Findings listed.
    pub findings: u64,
    /// Findings left out because `--baseline` lists them.
    pub known: u64,
    /// Calls whose end is not in the inputs.
    #[serde(skip)]
    pub unobserved: u64,
    /// TLS connections met.
    pub tls_connections: u64,
    /// Of these, decrypted.
    pub tls_readable: u64,
}

/// How a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SessionEnd {
    /// By the client's DELETE.
    Deleted,
    /// Refused as unknown.
    Stale,
    /// The server stopped.
    ServerStopped,
    /// Not within the inputs.
    Open,
}

/// What one `Mcp-Session-Id` names, or a group of session-less calls.
#[derive(Clone, Debug, Serialize)]
pub struct Session {
    /// The id; null for a group without one.
    pub session: Option<SessionId>,
    /// Protocol revision agreed on.
    pub revision: Option<Arc<str>>,
    /// `name/version` of the client.
    pub client: Option<Arc<str>>,
    /// `name/version` of the server.
    pub server: Option<Arc<str>>,
    /// First request.
    pub started: Option<Time>,
    /// Last thing seen of it.
    pub ended: Option<Time>,
    /// How it ended.
    pub end: Option<SessionEnd>,
    /// Calls in it.
    pub calls: u64,
    /// Least number of increasing id chains; null where it cannot be told.
    pub conversations: Option<u64>,
    /// Client addresses, without ports, in their order.
    pub peers: Vec<String>,
    /// Host or address and port, and path, of the server.
    pub endpoint: Option<Arc<str>>,
}

/// What came back on a call's own stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// A result.
    Result,
    /// A result with `isError`.
    ToolError,
    /// A JSON-RPC error.
    RpcError,
    /// An HTTP error without a JSON-RPC reply.
    HttpError,
    /// Cancelled by the caller.
    Cancelled,
    /// Nothing, though it would have been seen.
    NoReply,
    /// The client claims it; nobody else saw it.
    NotSent,
    /// The inputs do not show.
    Unobserved,
}

/// Whose reply the caller got.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Delivered {
    /// Its own.
    Own,
    /// Another call's.
    Foreign,
    /// None.
    None,
    /// Not known.
    Unknown,
}

/// On what a reply came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Channel {
    /// The POST's JSON body.
    PostJson,
    /// The POST's event stream.
    PostSse,
    /// A GET event stream.
    GetSse,
    /// None.
    None,
}

/// One JSON-RPC request that expects a reply.
#[derive(Clone, Debug, Serialize)]
pub struct Call {
    /// Unique in the report.
    pub key: CallKey,
    /// Its session.
    pub session: Option<SessionId>,
    /// The id with its JSON type; null where not known.
    pub id: Option<RpcId>,
    /// JSON-RPC method; null where only HTTP was seen.
    pub method: Option<Arc<str>>,
    /// Tool.
    pub tool: Option<Arc<str>>,
    /// `server` for the server's own requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<&'static str>,
    /// When the client says it issued it.
    pub issued: Option<Time>,
    /// When it was first seen on its way.
    pub sent: Option<Time>,
    /// When the reply was complete.
    pub replied: Option<Time>,
    /// What came back.
    pub outcome: Outcome,
    /// Whose it was.
    pub delivered: Delivered,
    /// What the client's record says: outcome and a short text.
    pub client_saw: Option<serde_json::Value>,
    /// Where it was seen.
    pub sightings: Vec<Sighting>,
    /// Request and reply as text, only with `--bodies`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bodies: Option<Bodies>,
}

/// Exact message texts, only with `--bodies`.
#[derive(Clone, Debug, Serialize)]
pub struct Bodies {
    /// The JSON-RPC request.
    pub request: Option<String>,
    /// The JSON-RPC reply.
    pub reply: Option<String>,
}

/// A call as one vantage point saw it.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Sighting {
    /// Which input.
    pub input: InputId,
    /// Its vantage.
    pub vantage: Option<Vantage>,
    /// Frame of the request's last byte.
    pub frame: Option<u64>,
    /// Line of its record.
    pub line: Option<u64>,
    /// Estimated start of the request.
    pub at: Option<Time>,
    /// How far that may be off, ms.
    pub at_error_ms: Option<f64>,
    /// It could be another call's as well, as far as times and what is logged tell.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub ambiguous: bool,
    /// The client's address and port as seen here.
    pub peer: Option<String>,
    /// HTTP status.
    pub status: Option<u16>,
    /// On what the reply came.
    pub channel: Option<Channel>,
    /// Frame of the reply's last byte.
    pub reply_frame: Option<u64>,
    /// The reply's id.
    pub reply_id: Option<RpcId>,
    /// SHA-256 of the request message's exact bytes, lower-case hex.
    pub request_sha256: Option<String>,
    /// SHA-256 of the reply message's exact bytes, lower-case hex.
    pub reply_sha256: Option<String>,
    /// Bytes of the response body, where known.
    pub bytes: Option<u64>,
    /// How the exchange ended here.
    pub end: Option<End>,
    /// When it ended here.
    pub ended_at: Option<Time>,
    /// When the status line was seen here.
    pub head_at: Option<Time>,
    /// When the reply's last byte was seen here.
    pub reply_at: Option<Time>,
    /// TCP stream as Wireshark numbers it.
    pub stream: Option<u64>,
    /// Everything this vantage shows of the exchange, only for `show`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<Box<Detail>>,
}

/// Everything one vantage shows of a call, as text; only for `show`.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Detail {
    /// `POST /mcp HTTP/1.1`, as far as known.
    pub request_line: Option<String>,
    /// Request header fields in order.
    pub request_headers: Vec<(Arc<str>, Arc<str>)>,
    /// The JSON-RPC request.
    pub request: Option<String>,
    /// `HTTP/1.1 200 OK`, as far as known.
    pub status_line: Option<String>,
    /// Response header fields in order.
    pub response_headers: Vec<(Arc<str>, Arc<str>)>,
    /// The JSON-RPC reply, or the body of an HTTP error.
    pub reply: Option<String>,
    /// The log's own text of the record.
    pub record: Option<String>,
}

/// Why a session id was no longer known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Cause {
    /// The server restarted.
    Restart,
    /// Evicted for idleness.
    Idle,
    /// Deleted by the client.
    Deleted,
    /// Another replica answered.
    Replica,
    /// The evidence does not say.
    Unknown,
}

/// From the refusal of an old session id to the client's recovery.
#[derive(Clone, Debug, Serialize)]
pub struct Window {
    /// The refused id.
    pub stale_session: Option<SessionId>,
    /// The id that the client got instead.
    pub new_session: Option<SessionId>,
    /// The refusal.
    pub opened: Option<Time>,
    /// The initialize request that followed.
    pub initialize: Option<Time>,
    /// First 2xx to a request sent after `notifications/initialized`.
    pub recovered: Option<Time>,
    /// First tool call after it that any vantage but the client saw.
    pub next_call: Option<Time>,
    /// From the last request of the re-initialisation to the next request, s.
    pub silence_s: Option<f64>,
    /// Why.
    pub cause: Option<Cause>,
    /// The call that was refused.
    pub trigger_call: Option<CallKey>,
    /// Calls refused and never replayed, or issued in the window and never seen.
    pub lost: Vec<CallKey>,
    /// The inputs tell what was refused and what was sent again, so that no call in `lost` means that none was.
    #[serde(skip)]
    pub shows_lost: bool,
    /// The requests around it, for the annotated sequence.
    #[serde(skip)]
    pub sequence: Vec<SequenceLine>,
}

/// One line of a window's annotated sequence: `17:19:52  POST /mcp -> 404  stale session id`.
#[derive(Clone, Debug)]
pub struct SequenceLine {
    /// When; none: the log has its order and no times.
    pub at: Option<Time>,
    /// `POST /mcp`, or what happened otherwise.
    pub what: String,
    /// Status, where there is one.
    pub status: Option<u16>,
    /// Note behind it.
    pub note: String,
    /// `file:frame` or `file:line`.
    pub evidence: String,
}

/// How bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Harmed no call.
    Low,
    /// Calls failed visibly, or a session was stranded.
    Medium,
    /// Crossed, or lost without a word.
    High,
}

/// How sure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// One sign.
    Possible,
    /// Two independent signs.
    Probable,
    /// Proved by what is cited.
    Certain,
}

/// A piece of proof.
#[derive(Clone, Debug, Serialize)]
pub struct Evidence {
    /// Which input.
    pub input: Option<InputId>,
    /// Frame, from 1.
    pub frame: Option<u64>,
    /// Line, from 1.
    pub line: Option<u64>,
    /// Byte offset in the input.
    pub offset: Option<u64>,
    /// Journal cursor.
    pub cursor: Option<String>,
    /// What it shows.
    pub text: Option<String>,
    /// A display filter that shows it in Wireshark.
    pub filter: Option<String>,
}

/// A claim over sightings.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// Name in the table of rules.
    pub rule: &'static str,
    /// How bad.
    pub severity: Severity,
    /// How sure.
    pub confidence: Confidence,
    /// Hops that can be at fault; empty: none is proved.
    pub fault: Vec<Hop>,
    /// Hops that were right.
    pub cleared: Vec<Hop>,
    /// Session.
    pub session: Option<SessionId>,
    /// When it began.
    pub at: Option<Time>,
    /// When it ended.
    pub until: Option<Time>,
    /// Calls concerned, the victim first.
    pub calls: Vec<CallKey>,
    /// The call whose caller was hurt.
    pub victim: Option<CallKey>,
    /// The call that the content belongs to.
    pub owner: Option<CallKey>,
    /// Tool calls of the session in flight with the victim, itself included.
    pub batch: Option<u64>,
    /// One sentence that a stranger understands.
    pub summary: String,
    /// Proof, never empty.
    pub evidence: Vec<Evidence>,
    /// What each server-side vantage shows for the calls, as one reads it in the table.
    pub shown: String,
    /// How long the caller waited, ns, where that is part of the claim.
    pub waited_ns: Option<i64>,
}

/// One HTTP exchange of `crosswire.timeline/1`.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ExchangeRow {
    /// Which input.
    pub input: InputId,
    /// TCP stream as Wireshark numbers it.
    pub stream: Option<u64>,
    /// Frame of the request's first byte… see the contract: any frame of the request.
    pub request_frame: Option<u64>,
    /// Frame of the status line.
    pub response_frame: Option<u64>,
    /// Time of the request.
    pub at: Option<Time>,
    /// HTTP method.
    pub method: Option<Arc<str>>,
    /// Request target.
    pub target: Option<Arc<str>>,
    /// Status.
    pub status: Option<u16>,
    /// Session of the request; for `initialize` the new one.
    pub session: Option<SessionId>,
    /// The client's requests and notifications.
    pub rpc: Vec<RpcRow>,
    /// The server's results and errors.
    pub replies: Vec<ReplyRow>,
    /// How it ended.
    pub end: Option<End>,
    /// When it ended.
    pub ended: Option<Time>,
    /// The client's address and port.
    pub peer: Option<String>,
    /// Bytes of the response body.
    pub bytes: Option<u64>,
}

/// A request or notification in an exchange.
#[derive(Clone, Debug, Serialize)]
pub struct RpcRow {
    /// Its id; null for notifications.
    pub id: Option<RpcId>,
    /// Method.
    pub method: Option<Arc<str>>,
    /// Tool.
    pub tool: Option<Arc<str>>,
}

/// A reply in an exchange.
#[derive(Clone, Debug, Serialize)]
pub struct ReplyRow {
    /// Frame of its last byte.
    pub frame: Option<u64>,
    /// Time of that frame.
    pub at: Option<Time>,
    /// Its id.
    pub id: Option<RpcId>,
    /// `result` or `error`.
    pub kind: Option<&'static str>,
    /// SHA-256 of its exact bytes, lower-case hex.
    pub sha256: Option<String>,
}
