//! HAProxy's `option httplog`, alone or behind syslog.

use super::assemble::{Assembly, Field, Shared, Unit};
use super::clf::word;
use super::event;
use super::layout::{self, Layout, LayoutReader, Parsed};
use super::syslog_prefix;
use super::template::set_captures;
use super::time;
use super::{Format, Grade, Reader};
use crate::model::place::{Place, Vantage};
use crate::model::record::{LogEventKind, When};

/// The format.
pub(super) static FORMAT: Format = Format {
    name: "haproxy",
    vantage: Vantage::Proxy,
    carries: false,
    doc: "HAProxy's HTTP log (`option httplog`, `httpslog`), alone or behind any syslog prefix. The time in brackets is \
          the start of the request, local and to the millisecond (--tz ZONE, where the syslog prefix has none); Ta is \
          the total. Bytes count heads too. The termination state says who ended it: sD a server that never finished, \
          CD or CH a client that left, which says nothing of who left it waiting. Headers captured in {…} carry no names: what looks like a session id is taken for \
          one, of the request in the first braces and of the response in the second.",
    samples: &[
        "<134>Nov 29 19:50:42 edge-1 haproxy[18879]: 127.0.0.1:50550 [29/Nov/2026:19:50:42.262] mcp mcp/<NOSRV> -1/-1/-1/-1/0 400 \
         0 - - CR-- 1/1/0/0/0 0/0 \"<BADREQ>\"\n\
         <134>Nov 29 19:50:42 edge-1 haproxy[18879]: 127.0.0.1:50552 [29/Nov/2026:19:50:42.640] mcp trailhead/mcp1 0/0/0/7/7 200 \
         584 - - ---- 1/1/0/0/0 0/0 {} {518eef8e6c5c4168b8d52e59b7870bf8} \"POST /mcp HTTP/1.1\"\n\
         <132>Nov 29 19:50:47 edge-1 haproxy[18879]: Proxy mcp stopped (cumulated conns: FE: 8, BE: 0).\n",
        "[2001:db8::7]:50552 [29/Nov/2026:19:50:42.648] mcp~ trailhead/mcp1 0/0/0/1/8003 200 175 - - sD-- 1/1/0/0/0 0/0 \
         \"POST /mcp HTTP/1.1\"\n",
    ],
    grade: |head| layout::share(head, &mut HttpLog).grade(Grade::Certain),
    reader: Reader::Lines(|context| LayoutReader::boxed(context, Box::new(HttpLog))),
};

/// A line of the HTTP log.
pub(super) struct HttpLog;

impl Layout for HttpLog {
    fn parse(&mut self, line: &[u8], place: Place, shared: &mut Shared) -> Parsed {
        if let Some((prefix, message)) = syslog_prefix::strip(line) {
            let before = line.get(..line.len() - message.len()).unwrap_or_default();
            let parsed = parse_message(message, prefix.civil.offset_s, place, shared);
            return match parsed {
                // HAProxy's other messages: proxies and servers going up and down.
                Parsed::No if memchr::memmem::find(before, b"haproxy").is_some() => {
                    let when = shared.clock.resolve(&prefix.civil).map(|at| {
                        let half = time::resolution_of(at.digits()) / 2;
                        When { at: at.plus_ns(half), error_ns: half + 1_000_000 }
                    });
                    Parsed::Event(event::new(kind_of(message), when, message, place, shared))
                }
                parsed => parsed,
            };
        }
        parse_message(line, None, place, shared)
    }
}

/// `Server b/s is DOWN, reason: Layer4 connection problem, info: "Connection refused"…`
fn kind_of(message: &[u8]) -> LogEventKind {
    let says = |text: &[u8]| memchr::memmem::find(message, text).is_some();
    if !says(b" is DOWN") && !says(b"no server available") {
        LogEventKind::Other
    } else if says(b"timeout") {
        LogEventKind::UpstreamTimeout
    } else if says(b"reset") {
        LogEventKind::UpstreamReset
    } else {
        LogEventKind::UpstreamRefused
    }
}

/// `client:port [date] frontend backend/server TR/Tw/Tc/Tr/Ta status bytes cc cs state conns queues
/// {request captures} {response captures} "request"` (configuration manual §8.2.3).
fn parse_message(message: &[u8], offset_s: Option<i32>, place: Place, shared: &mut Shared) -> Parsed {
    let Some((client, rest)) = memchr::memmem::find(message.get(..80).unwrap_or(message), b" [")
        .map(|at| message.split_at(at))
        .filter(|(client, _)| !client.is_empty() && client.contains(&b':') && !client.contains(&b' '))
    else {
        return Parsed::No;
    };
    let after = rest.get(2..).unwrap_or_default();
    let Some((mut civil, len)) = time::clf(after).filter(|(civil, _)| civil.digits == 3 || civil.offset_s.is_none())
    else {
        return Parsed::No;
    };
    civil.offset_s = civil.offset_s.or(offset_s);
    let Some(rest) = after.get(len..).and_then(|r| r.strip_prefix(b"]")) else {
        return Parsed::No;
    };
    let Some(at) = shared.clock.resolve(&civil) else {
        return Parsed::Bad("a time that is none");
    };
    let mut out = Assembly::default();
    out.set(Field::ClientAddr, client, shared);
    out.set_instant(true, at);
    let Some(fields) = Fields::split(rest) else {
        return not_http(rest, out, place, shared);
    };
    let timers: Vec<_> = fields.timers.split(|c| *c == b'/').collect();
    let [request, queue, _connect, response, total] = timers.as_slice() else {
        return not_http(rest, out, place, shared);
    };
    let ms = Field::Duration(Unit::Ns(1_000_000));
    let fits = out.set(ms, total, shared)
        && out.set(Field::Status, fields.status, shared)
        && out.set(Field::Bytes, fields.bytes.strip_prefix(b"+").unwrap_or(fields.bytes), shared)
        && out.set(Field::Termination, fields.state, shared)
        && out.set(Field::RequestLine, fields.request, shared);
    if !fits {
        return Parsed::Bad("a field of HAProxy's HTTP log that cannot stand there");
    }
    // All but waiting for the request and in queues is the server's.
    let value = |t: &[u8]| time::decimal(t, 1_000_000).map(|(ns, _)| ns).filter(|ns| *ns >= 0);
    if let (Some(request), Some(queue), Some(_), Some(total)) =
        (value(request), value(queue), value(response), value(total))
        && !fields.timers.contains(&b'+')
    {
        out.record.upstream_ns = Some((total - request - queue).max(0));
    }
    if !fields.server.ends_with(b"<NOSRV>") && !fields.server.ends_with(b"<STATS>") {
        out.set(Field::Upstream, fields.server, shared);
    }
    for (response, captures) in [false, true].into_iter().zip(&fields.captures) {
        set_captures(&mut out, captures, response, shared);
    }
    Parsed::Access(out.finish(place, shared))
}

/// The TCP log and connection errors have the same beginning: no exchange, but the log covers its time.
fn not_http(rest: &[u8], mut out: Assembly, place: Place, shared: &mut Shared) -> Parsed {
    let words = rest.split(|c| *c == b' ').filter(|w| !w.is_empty()).count();
    if memchr::memmem::find(rest, b": ").is_some() || words >= 8 && !rest.contains(&b'"') {
        out.record.repeat = 1;
        return Parsed::Quiet(out.finish(place, shared).start);
    }
    Parsed::Bad("a line of HAProxy's HTTP log that breaks off")
}

/// The words behind the date.
struct Fields<'a> {
    server: &'a [u8],
    timers: &'a [u8],
    status: &'a [u8],
    bytes: &'a [u8],
    state: &'a [u8],
    captures: Vec<&'a [u8]>,
    request: &'a [u8],
}

impl Fields<'_> {
    fn split(rest: &[u8]) -> Option<Fields<'_>> {
        let (_frontend, rest) = word(rest)?;
        let (server, rest) = word(rest)?;
        let (timers, rest) = word(rest)?;
        let (status, rest) = word(rest)?;
        let (bytes, rest) = word(rest)?;
        let (_request_cookie, rest) = word(rest)?;
        let (_response_cookie, rest) = word(rest)?;
        let (state, rest) = word(rest)?;
        let (connections, rest) = word(rest)?;
        let (queues, rest) = word(rest)?;
        if !server.contains(&b'/') || !connections.contains(&b'/') || !queues.contains(&b'/') {
            return None;
        }
        let mut captures = Vec::new();
        let mut rest = rest;
        while let Some(braced) = rest.strip_prefix(b" {") {
            let end = memchr::memchr(b'}', braced)?;
            captures.push(rest.get(1..end + 3)?);
            rest = braced.get(end + 1..)?;
            if captures.len() > 8 {
                return None;
            }
        }
        let quoted = rest.strip_prefix(b" \"")?;
        // HAProxy cuts a long line without closing the quote.
        let request = match memchr::memrchr(b'"', quoted) {
            Some(end) => quoted.get(..end)?,
            None => quoted,
        };
        Some(Fields { server, timers, status, bytes, state, captures, request })
    }
}
