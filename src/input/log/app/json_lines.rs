//! Applications that log JSON: pino, bunyan, winston, structlog, python-json-logger, slog.

use super::fields;
use super::{layout, reader};
use crate::input::log::reading::{self, Reading};
use crate::input::log::{Format, Grade, Reader};
use crate::model::id::RpcId;
use crate::model::place::Vantage;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;

/// JSON lines of an application.
pub static FORMAT: Format = Format {
    name: "json-lines",
    vantage: Vantage::Server,
    carries: false,
    doc: "One JSON object a line, as pino, bunyan, winston, structlog, python-json-logger and slog write them: a \
          message (`msg`, `message`, `event`), a time (`time`, `timestamp`, `ts`, …, ISO or epoch), a level. pino-http \
          and its like also name request, status and duration, and the session where headers are logged.",
    samples: &[
        r#"{"level":30,"time":1795981839604,"pid":17,"hostname":"h","msg":"Session initialized with ID: ab9f644e-23dc-4cf6-8440-c1e6f5ad9cea"}"#,
        r#"{"level":"info","message":"Transport closed for session ab9f644e-23dc-4cf6-8440-c1e6f5ad9cea","timestamp":"2026-11-29T19:50:39.604Z"}"#,
        r#"{"name":"srv","hostname":"h","pid":7,"level":30,"req":{"method":"POST","url":"/mcp","headers":{"mcp-session-id":"s-1"}},"res":{"statusCode":404},"responseTime":3,"msg":"request completed","time":"2026-11-29T19:50:39.604Z","v":0}"#,
    ],
    grade: |bytes| match (layout::grade(bytes, layout::is_json_line), layout::grade(bytes, layout::is_whole_json_line))
    {
        // level, message and time together: no access log has them, whatever else it has
        (Grade::Likely, Grade::Likely) => Grade::Certain,
        (grade, _) => grade,
    },
    reader: Reader::Lines(reader::new),
};

/// What a JSON log line says.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Json<'t> {
    /// Its message.
    pub message: Option<Cow<'t, str>>,
    /// Its time.
    pub reading: Option<Reading>,
    /// It is an error line.
    pub is_error: bool,
    /// It names a level.
    pub has_level: bool,
    /// Session.
    pub session: Option<Cow<'t, str>>,
    /// Session given by the response.
    pub session_given: Option<Cow<'t, str>>,
    /// JSON-RPC id.
    pub rpc_id: Option<RpcId>,
    /// Tool.
    pub tool: Option<Cow<'t, str>>,
    /// HTTP or JSON-RPC method.
    pub method: Option<Cow<'t, str>>,
    /// Request target.
    pub target: Option<Cow<'t, str>>,
    /// Status.
    pub status: Option<u16>,
    /// Duration, ns.
    pub duration_ns: Option<i64>,
    /// User agent.
    pub user_agent: Option<Cow<'t, str>>,
    /// A proxy's access line (Caddy, Traefik, Envoy, nginx).
    pub is_proxy: bool,
    /// FastMCP's `source`.
    pub source: Option<Cow<'t, str>>,
}

/// Parses one line; none where it is no JSON object.
pub(super) fn parse(line: &str) -> Option<Json<'_>> {
    let mut json = Json::default();
    fill(&mut json, line, Part::Top)?;
    Some(json)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Top,
    Request,
    Response,
    RequestHeaders,
    ResponseHeaders,
}

fn fill<'t>(json: &mut Json<'t>, text: &'t str, part: Part) -> Option<()> {
    struct Members<'j, 't>(&'j mut Json<'t>, Part);
    impl<'t> Visitor<'t> for Members<'_, 't> {
        type Value = ();
        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("an object")
        }
        fn visit_map<A: MapAccess<'t>>(self, mut map: A) -> Result<(), A::Error> {
            while let Some(key) = map.next_key::<Cow<'t, str>>()? {
                if key.len() > 24 {
                    map.next_value::<IgnoredAny>()?;
                    continue;
                }
                let raw: &'t RawValue = map.next_value()?;
                member(self.0, &key, raw.get(), self.1);
            }
            Ok(())
        }
    }
    let mut de = serde_json::Deserializer::from_str(text);
    serde::Deserializer::deserialize_map(&mut de, Members(json, part)).ok()?;
    // trailing bytes make it something else (a concatenation, a prefix of text)
    de.end().ok()
}

fn member<'t>(json: &mut Json<'t>, key: &str, raw: &'t str, part: Part) {
    let once = |slot: &mut Option<Cow<'t, str>>| {
        if slot.is_none() {
            *slot = string(raw);
        }
    };
    match (part, key) {
        (Part::RequestHeaders, "mcp-session-id" | "Mcp-Session-Id" | "MCP-Session-Id") => once(&mut json.session),
        (Part::ResponseHeaders, "mcp-session-id" | "Mcp-Session-Id" | "MCP-Session-Id") => {
            once(&mut json.session_given)
        }
        (Part::RequestHeaders, "user-agent" | "User-Agent") => once(&mut json.user_agent),
        (Part::RequestHeaders | Part::ResponseHeaders, _) => {}
        (_, "req" | "request" | "httpRequest") if part == Part::Top => drop(fill(json, raw, Part::Request)),
        (_, "res" | "response" | "meta") if part == Part::Top => drop(fill(json, raw, Part::Response)),
        (Part::Request, "headers") => drop(fill(json, raw, Part::RequestHeaders)),
        (Part::Response, "headers") => drop(fill(json, raw, Part::ResponseHeaders)),
        (_, "msg" | "message" | "event" | "@m" | "Message") if part == Part::Top => once(&mut json.message),
        (
            _,
            "time" | "timestamp" | "ts" | "@timestamp" | "@t" | "t" | "datetime" | "asctime" | "Timestamp" | "created",
        ) if part == Part::Top && json.reading.is_none() => {
            json.reading = reading(raw);
        }
        (_, "level" | "severity" | "levelname" | "@l" | "LogLevel" | "log.level" | "lvl") if part == Part::Top => {
            json.has_level = true;
            json.is_error |= is_error(raw);
        }
        (_, "sessionId" | "session_id" | "mcpSessionId" | "mcp_session_id" | "mcp-session-id" | "sid" | "session")
            if json.session.is_none() =>
        {
            json.session = string(raw).filter(|s| fields::session(s).is_some());
        }
        (Part::Top, "requestId" | "request_id" | "rpcId" | "rpc_id" | "jsonrpc_id") => {
            json.rpc_id = fields::rpc_id(raw)
        }
        (Part::Top, "tool" | "toolName" | "tool_name") => once(&mut json.tool),
        (_, "method") => once(&mut json.method),
        (_, "url" | "path" | "uri" | "originalUrl" | "requestUrl") => once(&mut json.target),
        (_, "status" | "statusCode" | "status_code") => {
            json.status = json.status.or_else(|| raw.trim_matches('"').parse().ok())
        }
        (_, "responseTime" | "duration_ms" | "durationMs" | "elapsed_ms" | "response_time_ms") => {
            json.duration_ns = json.duration_ns.or_else(|| fields::duration(raw, 1e6));
        }
        (Part::Top, "source") => once(&mut json.source),
        (Part::Top, "logger") => json.is_proxy |= raw.starts_with("\"http.log"),
        (
            Part::Top,
            "RequestMethod"
            | "DownstreamStatus"
            | "upstream_addr"
            | "upstream_status"
            | "upstream_response_time"
            | "upstream_cluster"
            | "response_flags"
            | "remote_addr",
        ) => json.is_proxy = true,
        _ => {}
    }
}

fn string(raw: &str) -> Option<Cow<'_, str>> {
    let inner = raw.strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains('\\') { serde_json::from_str(raw).ok().map(Cow::Owned) } else { Some(Cow::Borrowed(inner)) }
}

fn reading(raw: &str) -> Option<Reading> {
    let bare = raw.trim_matches('"').as_bytes();
    reading::iso(bare).or_else(|| reading::epoch(bare)).map(|r| r.0)
}

/// pino and bunyan number their levels: 50 is error, 60 fatal.
fn is_error(raw: &str) -> bool {
    match raw.parse::<u32>() {
        Ok(n) => n >= 50,
        Err(_) => super::head::level(raw.trim_matches('"').as_bytes()) == Some(super::head::Level::Error),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    #[test]
    fn pino_bunyan_winston() {
        let j = parse(FORMAT.samples[0]).unwrap();
        assert!(j.message.unwrap().starts_with("Session initialized") && j.reading.is_some() && !j.is_error);
        let j = parse(FORMAT.samples[2]).unwrap();
        assert_eq!((j.method.as_deref(), j.target.as_deref(), j.status), (Some("POST"), Some("/mcp"), Some(404)));
        assert_eq!((j.session.as_deref(), j.duration_ns), (Some("s-1"), Some(3_000_000)));
        let j = parse(r#"{"level":"error","msg":"a \"b\"","time":"x","time":1795981839.25}"#).unwrap();
        assert_eq!((j.message.as_deref(), j.is_error, j.reading.is_some()), (Some("a \"b\""), true, true));
        assert_eq!(parse("{\"a\":1} trailing"), None);
        assert_eq!(parse("{\"a\":"), None);
        assert_eq!(parse("[1]"), None);
    }
}
