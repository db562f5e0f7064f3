//! nginx's error log.

use super::assemble::Shared;
use super::event;
use super::layout::{self, Layout, LayoutReader, Parsed};
use super::time;
use super::{Format, Grade, Reader};
use crate::model::place::{Place, Vantage};
use crate::model::record::{LogEventKind, When};

/// The format.
pub(super) static FORMAT: Format = Format {
    name: "nginx-error",
    vantage: Vantage::Proxy,
    carries: false,
    doc: "nginx's error log: upstream timeouts, resets and refused connections. Times are local and to the second \
          (--tz ZONE). A complaint names the client's address and the request line, never the session.",
    samples: &[
        "2026/11/29 20:03:25 [error] 25945#25945: *2 upstream timed out (110: Connection timed out) while reading \
         upstream, client: 127.0.0.1, server: mcp.trailhead.example, request: \"POST /mcp HTTP/1.1\", upstream: \
         \"http://127.0.0.1:9311/mcp\", host: \"mcp.trailhead.example\"\n\
         2026/11/29 20:03:26 [notice] 25945#25945: signal process started\n",
    ],
    grade: |head| layout::share(head, &mut ErrorLog).grade(Grade::Certain),
    reader: Reader::Lines(|context| LayoutReader::boxed(context, Box::new(ErrorLog))),
};

/// A line of the error log: `YYYY/MM/DD HH:MM:SS [level] pid#tid: *connection message, key: value, …`
/// (`ngx_log_error_core`, `ngx_http_log_error`).
pub(super) struct ErrorLog;

impl Layout for ErrorLog {
    fn parse(&mut self, line: &[u8], place: Place, shared: &mut Shared) -> Parsed {
        let Some((civil, len)) = time::slashed(line) else {
            return Parsed::No;
        };
        let Some(rest) = line.get(len..).and_then(|r| r.strip_prefix(b" [")) else {
            return Parsed::No;
        };
        let Some((level, rest)) = split_at(rest, b"] ") else {
            return if rest.len() < 8 { Parsed::Bad("an error log line that breaks off") } else { Parsed::No };
        };
        if !matches!(level, b"debug" | b"info" | b"notice" | b"warn" | b"error" | b"crit" | b"alert" | b"emerg") {
            return Parsed::No;
        }
        let Some(at) = shared.clock.resolve(&civil) else {
            return Parsed::Bad("a time that is none");
        };
        let when = Some(When { at: at.plus_ns(time::SECOND_NS / 2), error_ns: time::SECOND_NS / 2 + 1_000_000 });
        let (process, message) = split_at(rest, b": ").unwrap_or((b"", rest));
        let about_upstream = memchr::memmem::find(message, b"upstream").is_some();
        let kind = match event::upstream_kind(message).filter(|_| about_upstream) {
            Some(kind) => kind,
            None if matches!(level, b"error" | b"crit" | b"alert" | b"emerg") => LogEventKind::Error,
            None => LogEventKind::Other,
        };
        let mut event = event::new(kind, when, message, place, shared);
        event.pid = process.split(|c| *c == b'#').next().and_then(|p| std::str::from_utf8(p).ok()?.parse().ok());
        Parsed::Event(event)
    }
}

fn split_at<'a>(text: &'a [u8], mark: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let at = memchr::memmem::find(text, mark)?;
    Some((text.get(..at)?, text.get(at + mark.len()..)?))
}
