//! What the MCP SDKs themselves log: Python `mcp` and FastMCP, TypeScript, Rust `rmcp`, C#.
//!
//! Texts from their sources: mcp/server/{streamable_http_manager,streamable_http,sse,lowlevel/
//! server}.py, server/streamableHttp.ts and shared/protocol.ts, rmcp's session/local.rs and
//! service.rs, and `McpSession` of the C# SDK.

use super::fields;
use super::phrase::{Phrase, Said};
use crate::model::record::LogEventKind as K;

/// The phrases.
pub(super) static PHRASES: &[Phrase] = &[
    // Python: streamable_http_manager
    Phrase::start("StreamableHTTP session manager started", K::ServerStarted, plain),
    Phrase::start("StreamableHTTP session manager shutting down", K::ServerStopping, plain),
    Phrase::start("Created new transport with session ID: ", K::SessionCreated, session_after),
    Phrase::start("Rejected request with unknown or expired session ID: ", K::SessionRejected, session_after),
    Phrase::start("Refusing to open a new session: ", K::Error, plain),
    Phrase::start("Cleaning up crashed session ", K::SessionCrashed, session_after),
    Phrase::start("Stateless session crashed", K::Error, plain),
    Phrase::start("Terminating session: ", K::SessionEnded, session_after),
    Phrase::start("Session ", K::SessionCrashed, session_fate),
    // Python: sse and lowlevel
    Phrase::start("Created new session with ID: ", K::SessionCreated, session_after),
    Phrase::start("Processing request of type ", K::Processing, request_type),
    Phrase::start("Request ", K::Cancelled, request_fate),
    // TypeScript
    Phrase::start("Session initialized with ID: ", K::SessionCreated, session_after),
    Phrase::start("Session initialized: ", K::SessionCreated, session_after),
    Phrase::start("New session created: ", K::SessionCreated, session_after),
    Phrase::start("New session initialized: ", K::SessionCreated, session_after),
    Phrase::start("Transport closed for session ", K::SessionEnded, session_after),
    Phrase::start("Received session termination request for session ", K::SessionEnded, session_after),
    Phrase::start("Session closed: ", K::SessionEnded, session_after),
    Phrase::start("Session terminated: ", K::SessionEnded, session_after),
    Phrase::start("Session expired: ", K::SessionExpired, session_after),
    Phrase::start("Session not found: ", K::SessionRejected, session_after),
    Phrase::anywhere("No connection established for request ID: ", K::ReplyDropped, id_after),
    Phrase::start("Failed to send response: ", K::ReplyDropped, dropped),
    Phrase::start("Failed to send response", K::ReplyDropped, plain),
    Phrase::anywhere("Received a response for an unknown message ID: ", K::UnknownReply, unknown_reply),
    Phrase::anywhere("Received response with an unknown request ID: ", K::UnknownReply, unknown_reply),
    // rmcp
    Phrase::start("create new session ", K::SessionCreated, session_field),
    Phrase::start("close session ", K::SessionEnded, session_field),
    Phrase::start("session closed ", K::SessionEnded, session_field),
    Phrase::start("cancelled ", K::Cancelled, cancelled),
    Phrase::start("received request ", K::Processing, rmcp_request),
    // servers of one's own, in the SDKs' words
    Phrase::start("session ", K::SessionCreated, own_session),
    // FastMCP's middleware
    Phrase::start("event=request_start ", K::Processing, middleware),
    Phrase::start("event=request_success ", K::Finished, middleware),
    Phrase::start("event=request_error ", K::Error, middleware),
    Phrase::start("{\"event\": \"request_start\"", K::Processing, middleware),
    Phrase::start("{\"event\": \"request_success\"", K::Finished, middleware),
    Phrase::start("{\"event\": \"request_error\"", K::Error, middleware),
    Phrase::anywhere("Handler called: call_tool ", K::Processing, handler_called),
    // C#
    Phrase::anywhere("' request handler called.", K::Processing, dotnet_method),
    Phrase::anywhere("' request handler completed", K::Finished, dotnet_method),
    Phrase::anywhere("' request handler failed", K::Error, dotnet_method),
    Phrase::anywhere("\" completed. IsError = ", K::Finished, dotnet_tool),
];

fn after(text: &str, end: usize) -> &str {
    text.get(end..).unwrap_or_default()
}

/// A message that says nothing beside its kind.
pub(super) fn plain(_: &str, _: usize, _: usize) -> Option<Said<'_>> {
    Some(Said::default())
}

/// The session id that follows; without one (stateless servers say `None`) there is no event.
fn session_after(text: &str, _: usize, end: usize) -> Option<Said<'_>> {
    Some(Said { session: Some(fields::session(after(text, end))?), ..Said::default() })
}

fn session_field(text: &str, _: usize, end: usize) -> Option<Said<'_>> {
    let session = fields::value(after(text, end), &["session_id", "session", "id"]).and_then(fields::session)?;
    Some(Said { session: Some(session), ..Said::default() })
}

/// `Session <id> crashed`, `Session <id> idle timeout`.
fn session_fate(text: &str, _: usize, end: usize) -> Option<Said<'_>> {
    let session = fields::session(after(text, end))?;
    let rest = after(text, end).split_once(session)?.1.trim_start();
    let kind = if rest.starts_with("crashed") {
        K::SessionCrashed
    } else if rest.starts_with("idle timeout") || rest.starts_with("expired") || rest.starts_with("timed out") {
        K::SessionExpired
    } else if rest.starts_with("closed") || rest.starts_with("terminated") || rest.starts_with("ended") {
        K::SessionEnded
    } else if rest.starts_with("not found") {
        K::SessionRejected
    } else if rest.starts_with("created") || rest.starts_with("initialized") {
        K::SessionCreated
    } else {
        return None;
    };
    Some(Said { session: Some(session), kind: Some(kind), ..Said::default() })
}

fn own_session(text: &str, start: usize, end: usize) -> Option<Said<'_>> {
    session_fate(text, start, end)
}

/// `Request 7 cancelled - duplicate response suppressed`;
/// FastMCP's timing middleware: `Request tools/list completed in 2.68ms`.
fn request_fate(text: &str, _: usize, end: usize) -> Option<Said<'_>> {
    let rest = after(text, end);
    if let Some((method, took)) = rest.split_once(" completed in ") {
        let method = Some(fields::name(method)?);
        let duration_ns = fields::duration(took, 1e6);
        return Some(Said { method, duration_ns, kind: Some(K::Finished), ..Said::default() });
    }
    let (id, _) = rest.split_once(" cancelled")?;
    let rpc_id = Some(fields::rpc_id(id).or_else(|| fields::name(id).map(|n| crate::model::id::RpcId::Str(n.into())))?);
    Some(Said { rpc_id, ..Said::default() })
}

/// The JSON-RPC method of a Python request class.
pub(super) fn method_of(class: &str) -> Option<&'static str> {
    Some(match class {
        "CallToolRequest" | "CallToolRequestParams" => "tools/call",
        "ListToolsRequest" => "tools/list",
        "ListPromptsRequest" => "prompts/list",
        "GetPromptRequest" => "prompts/get",
        "ListResourcesRequest" => "resources/list",
        "ListResourceTemplatesRequest" => "resources/templates/list",
        "ReadResourceRequest" => "resources/read",
        "SubscribeRequest" => "resources/subscribe",
        "UnsubscribeRequest" => "resources/unsubscribe",
        "InitializeRequest" => "initialize",
        "PingRequest" => "ping",
        "SetLevelRequest" => "logging/setLevel",
        "CompleteRequest" => "completion/complete",
        "GetTaskRequest" => "tasks/get",
        "GetTaskPayloadRequest" => "tasks/result",
        "ListTasksRequest" => "tasks/list",
        "CancelTaskRequest" => "tasks/cancel",
        "DiscoverRequest" => "server/discover",
        _ => return None,
    })
}

fn request_type(text: &str, start: usize, end: usize) -> Option<Said<'_>> {
    let class = fields::name(after(text, end))?;
    // loggers of one's own may bind fields in front and behind
    let before = text.get(..start).unwrap_or_default();
    Some(Said {
        method: Some(method_of(class).unwrap_or(class)),
        session: fields::value(before, &["session", "session_id", "sid"]).and_then(fields::session),
        rpc_id: fields::value(before, &["id", "request_id"]).and_then(fields::rpc_id),
        tool: fields::value(after(text, end), &["name", "tool"]).and_then(fields::name),
        duration_ns: fields::stated_duration(after(text, end)),
        ..Said::default()
    })
}

fn id_after(text: &str, _: usize, end: usize) -> Option<Said<'_>> {
    let rest = after(text, end);
    let rpc_id = fields::rpc_id(rest).or_else(|| fields::name(rest).map(|n| crate::model::id::RpcId::Str(n.into())));
    Some(Said { rpc_id, ..Said::default() })
}

fn dropped(text: &str, _: usize, end: usize) -> Option<Said<'_>> {
    let id = text.get(end..)?.split_once("request ID: ").and_then(|(_, id)| fields::rpc_id(id));
    Some(Said { rpc_id: id, ..Said::default() })
}

/// The message that could not be placed follows as JSON.
fn unknown_reply(text: &str, _: usize, end: usize) -> Option<Said<'_>> {
    let rpc_id = fields::value(after(text, end), &["id"]).and_then(fields::rpc_id);
    Some(Said { rpc_id, ..Said::default() })
}

/// rmcp's `cancelled id=7 reason="timeout"`; `cancelled 7`.
fn cancelled(text: &str, _: usize, end: usize) -> Option<Said<'_>> {
    let rest = after(text, end);
    let rpc_id =
        fields::value(rest, &["id", "request_id"]).and_then(fields::rpc_id).or_else(|| fields::rpc_id(rest))?;
    Some(Said { rpc_id: Some(rpc_id), ..Said::default() })
}

/// `received request id=2 request=CallToolRequest(Request { method: CallToolRequestMethod, params: CallToolRequestParam { name: "echo", …`
fn rmcp_request(text: &str, _: usize, end: usize) -> Option<Said<'_>> {
    let rest = after(text, end);
    let class = fields::value(rest, &["request"]).and_then(fields::name)?;
    let tool = rest.split_once("name: \"").and_then(|(_, n)| fields::name(n));
    Some(Said {
        rpc_id: fields::value(rest, &["id"]).and_then(fields::rpc_id),
        method: Some(method_of(class).unwrap_or(class)),
        tool: tool.filter(|_| class == "CallToolRequest"),
        ..Said::default()
    })
}

/// `event=request_start method=tools/call source=client payload={…}`, or the same as JSON.
/// Only what a client asked for: FastMCP lists tools for itself, too.
fn middleware(text: &str, start: usize, _: usize) -> Option<Said<'_>> {
    let said = text.get(start..)?;
    if fields::value(said, &["source"]).and_then(fields::name)? != "client" {
        return None;
    }
    let method = fields::value(said, &["method"]).and_then(fields::name)?;
    let payload = said.split_once("payload=").map(|(_, p)| p);
    Some(Said {
        method: Some(method),
        tool: payload
            .filter(|_| method == "tools/call")
            .and_then(|p| fields::value(p, &["name"]))
            .and_then(fields::name),
        duration_ns: fields::stated_duration(said),
        ..Said::default()
    })
}

/// FastMCP at debug: `[server] Handler called: call_tool slow with {…}`.
fn handler_called(text: &str, _: usize, end: usize) -> Option<Said<'_>> {
    Some(Said { method: Some("tools/call"), tool: Some(fields::name(after(text, end))?), ..Said::default() })
}

/// `Server (x 1.0.0), Client (y 1.0) method 'tools/call' request handler called.`
fn dotnet_method(text: &str, start: usize, end: usize) -> Option<Said<'_>> {
    let (_, method) = text.get(..start)?.rsplit_once("method '")?;
    let duration_ns = after(text, end).strip_prefix(" in ").and_then(|d| fields::duration(d, 1e6));
    Some(Said { method: Some(fields::name(method)?), duration_ns, ..Said::default() })
}

/// `"execute_sql" completed. IsError = False.`
fn dotnet_tool(text: &str, start: usize, _: usize) -> Option<Said<'_>> {
    let (_, tool) = text.get(..start)?.rsplit_once('"')?;
    Some(Said { method: Some("tools/call"), tool: Some(fields::name(tool)?), ..Said::default() })
}
