//! Caddy's JSON logs.

use super::assemble::{Field, Shared, Unit};
use super::event;
use super::json_layout::JsonLayout;
use super::json_scan::{Value, walk};
use super::layout::{self, Layout, LayoutReader, Parsed};
use super::time::{self, SECOND_NS};
use super::{Format, Grade, Reader, names};
use crate::model::place::{Place, Vantage};
use crate::model::record::{LogEventKind, When};

/// The format.
pub(super) static FORMAT: Format = Format {
    name: "caddy",
    vantage: Vantage::Proxy,
    carries: false,
    doc: "Caddy's JSON log: access lines (`http.log.access`) and what the reverse proxy says of its upstream. `ts` is \
          the end of the request, `duration` in seconds; request and response headers are there by default, the \
          session ids among them. A client that goes away after the head leaves status 200.",
    samples: &[
        "{\"level\":\"info\",\"ts\":1795981836.4404132,\"logger\":\"http.log.access.log0\",\"msg\":\"handled request\",\"request\":\
         {\"remote_ip\":\"127.0.0.1\",\"remote_port\":\"34258\",\"proto\":\"HTTP/1.1\",\"method\":\"POST\",\"host\":\
         \"mcp.trailhead.example\",\"uri\":\"/mcp\",\"headers\":{\"User-Agent\":[\"connector-egress/1.4\"],\"Mcp-Session-Id\":\
         [\"a474f0912285469cbe1c0fc601888e31\"]}},\"user_id\":\"\",\"duration\":0.004639497,\"size\":350,\"status\":200,\
         \"resp_headers\":{\"Content-Type\":[\"text/event-stream\"],\"Mcp-Session-Id\":[\"a474f0912285469cbe1c0fc601888e31\"]}}\n\
         {\"level\":\"error\",\"ts\":1795981838.1,\"logger\":\"http.log.error.log0\",\"msg\":\"dial tcp 127.0.0.1:9311: connect: \
         connection refused\",\"request\":{\"method\":\"GET\",\"uri\":\"/mcp\"},\"duration\":0.0003,\"status\":502}\n",
    ],
    grade: |head| layout::share(head, &mut layout()).grade(Grade::Certain),
    reader: Reader::Lines(|context| LayoutReader::boxed(context, Box::new(CaddyLog { is_known: true, ..layout() }))),
};

/// A line of Caddy's log.
pub(super) struct CaddyLog {
    access: JsonLayout,
    /// The file is known to be Caddy's: lines of its start-up need not name a logger.
    is_known: bool,
}

pub(super) fn layout() -> CaddyLog {
    let access = JsonLayout::new(access_key, MARKS, |_, marks| marks == MARKS.len());
    CaddyLog { access, is_known: false }
}

/// Keys that every access line has (`caddyhttp.LoggableHTTPRequest`).
const MARKS: &[&[u8]] = &[b"logger", b"ts", b"request.method", b"request.uri", b"duration", b"size", b"status"];

fn access_key(path: &[u8]) -> Option<Field> {
    Some(match path {
        b"ts" => Field::End,
        b"duration" => Field::Duration(Unit::SuffixOr(SECOND_NS)),
        b"status" => Field::Status,
        b"size" => Field::BodyBytes,
        b"request.remote_ip" | b"request.remote_addr" => Field::ClientAddr,
        b"request.remote_port" => Field::ClientPort,
        b"request.method" => Field::Method,
        b"request.uri" => Field::Target,
        _ => {
            let text = std::str::from_utf8(path).ok()?;
            if let Some(header) = text.strip_prefix("request.headers.") {
                return names::request_header(header);
            }
            return names::response_header(text.strip_prefix("resp_headers.")?);
        }
    })
}

impl Layout for CaddyLog {
    fn parse(&mut self, line: &[u8], place: Place, shared: &mut Shared) -> Parsed {
        if !line.starts_with(b"{") || memchr::memmem::find(line, b"\"ts\"").is_none() {
            return Parsed::No;
        }
        if is_access(line) {
            return self.access.parse(line, place, shared);
        }
        event_of(line, self.is_known, place, shared)
    }
}

fn is_access(line: &[u8]) -> bool {
    memchr::memmem::find(line, b"http.log.access").is_some()
        || memchr::memmem::find(line, b"\"msg\":\"handled request\"").is_some()
}

/// Caddy's other lines (zap's JSON encoder: `level`, `ts`, `logger`, `msg`).
fn event_of(line: &[u8], is_known: bool, place: Place, shared: &mut Shared) -> Parsed {
    let (mut level, mut at, mut logger, mut message, mut cause) = (None, None, None, None, None);
    let whole = walk(line, &mut |path, value| {
        if let Value::Text(text) | Value::Bare(text) = value {
            match path {
                b"level" => level = Some(text),
                b"ts" => at = Some(text),
                b"logger" => logger = Some(text),
                b"msg" => message = Some(text),
                b"error" => cause = Some(text),
                _ => {}
            }
        }
    });
    let (Some(level), Some(at), Some(message)) = (level, at, message) else {
        return Parsed::No;
    };
    // Many programs log with zap: the logger's name or start-up texts tell Caddy's lines.
    let logger = logger.unwrap_or_default();
    let is_caddy = is_known
        || [b"http".as_slice(), b"admin", b"tls", b"caddy", b"pki", b"events"].iter().any(|p| logger.starts_with(p));
    if !is_caddy || !whole {
        return Parsed::No;
    }
    let Some(time) =
        time::epoch(at).or_else(|| time::any_civil(at).and_then(|(civil, _)| shared.clock.resolve(&civil)))
    else {
        return Parsed::Bad("a time that is none");
    };
    let half = time::resolution_of(time.digits()) / 2;
    let when = Some(When { at: time.plus_ns(half), error_ns: half + 1_000_000 });
    let told = [message, cause.unwrap_or_default()].join(&b' ');
    let kind = match event::upstream_kind(&told).filter(|_| level == b"error" || level == b"warn") {
        Some(kind) if logger.starts_with(b"http") => kind,
        _ if level == b"error" => LogEventKind::Error,
        _ => LogEventKind::Other,
    };
    Parsed::Event(event::new(kind, when, told.trim_ascii_end(), place, shared))
}
