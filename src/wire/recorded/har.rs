//! HAR 1.2 files: what browsers, debugging proxies and mitmproxy export.
//!
//! Format: W3C "HTTP Archive (HAR) format" (draft), with the members that Chromium (`_error`,
//! `_eventSourceMessages`, `_webSocketMessages`) adds.

use super::tell::{Body, Recorded, RecordedResponse, Teller, TimedEvent, UNKNOWN, kind_of};
use super::{Counts, base64};
use crate::input::client::json::{self, Fields};
use crate::input::client::stamp;
use crate::model::exchange::{BodyKind, End, ExchangeSink, Peer, header};
use crate::model::place::InputId;
use crate::model::problem::{ProblemKind, Problems};
use crate::model::time::Time;
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;
use std::io::{self, BufRead};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

/// Reads a HAR file. What stands before a fault in its JSON is kept; the fault is a problem.
///
/// # Errors
/// Only those of reading `bytes`.
pub fn read_har(
    input: InputId,
    bytes: &mut dyn BufRead,
    next_exchange: &mut u64,
    sink: &mut dyn ExchangeSink,
    problems: &mut Problems,
) -> io::Result<Counts> {
    let mut teller = Teller::new(input, next_exchange, sink);
    if bytes.fill_buf()?.starts_with(b"\xef\xbb\xbf") {
        bytes.consume(3);
    }
    let mut json = serde_json::Deserializer::from_reader(bytes);
    let mut found = false;
    let document = Document { teller: &mut teller, problems, found: &mut found };
    let result = document.deserialize(&mut json).and_then(|()| json.end());
    teller.tell();
    let mut counts = teller.counts;
    if let Err(e) = result {
        if e.is_io() {
            return Err(e.into());
        }
        let kind = if e.is_eof() { ProblemKind::TruncatedRecord } else { ProblemKind::Garbage };
        let after = counts.records;
        problems.add(kind, || format!("line {}", e.line()), || format!("not whole JSON after entry {after}: {e}"));
        if counts.records == 0 {
            // The fault itself is all that there is of a record.
            counts.records = u64::from(!found);
        }
    } else if !found {
        problems.add(ProblemKind::Empty, String::new, || "a HAR file without log.entries");
    }
    Ok(counts)
}

/// Walks to `log.entries` and takes the entries one by one, so that one at a time is in memory.
struct Document<'a, 'b> {
    teller: &'a mut Teller<'b>,
    problems: &'a mut Problems,
    found: &'a mut bool,
}

impl<'de> DeserializeSeed<'de> for Document<'_, '_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Document<'_, '_> {
    type Value = ();
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a HAR document: an object with \"log\"")
    }
    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<(), M::Error> {
        let Document { teller, problems, found } = self;
        while let Some(name) = map.next_key::<String>()? {
            if name == "log" {
                map.next_value_seed(Log { teller, problems, found })?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}

struct Log<'a, 'b> {
    teller: &'a mut Teller<'b>,
    problems: &'a mut Problems,
    found: &'a mut bool,
}

impl<'de> DeserializeSeed<'de> for Log<'_, '_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Log<'_, '_> {
    type Value = ();
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with \"entries\" in \"log\"")
    }
    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<(), M::Error> {
        let Log { teller, problems, found } = self;
        while let Some(name) = map.next_key::<String>()? {
            if name == "entries" {
                *found = true;
                map.next_value_seed(Entries { teller, problems })?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}

struct Entries<'a, 'b> {
    teller: &'a mut Teller<'b>,
    problems: &'a mut Problems,
}

impl<'de> DeserializeSeed<'de> for Entries<'_, '_> {
    type Value = ();
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Entries<'_, '_> {
    type Value = ();
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of entries")
    }
    fn visit_seq<S: SeqAccess<'de>>(self, mut entries: S) -> Result<(), S::Error> {
        while let Some(raw) = entries.next_element::<Box<RawValue>>()? {
            self.teller.counts.records += 1;
            let number = self.teller.counts.records;
            match entry(raw.get(), number, self.problems) {
                Ok(recorded) => self.teller.add(recorded, self.problems),
                Err(expected) => {
                    let text = || format!("expected {expected} in a HAR entry");
                    self.problems.add(ProblemKind::Garbage, || format!("entry {number}"), text);
                }
            }
            if number == u64::MAX {
                return Err(S::Error::custom("too many entries"));
            }
        }
        Ok(())
    }
}

/// Reads one entry; the error names what was expected.
fn entry(raw: &str, number: u64, problems: &mut Problems) -> Result<Recorded, &'static str> {
    let fields = Fields::parse(raw).map_err(|_| "an object")?;
    let started = fields.string("startedDateTime").ok_or("\"startedDateTime\"")?;
    let first = stamp::rfc3339(&started).ok_or("an RFC 3339 time in \"startedDateTime\"")?.at;
    let request = fields.object("request").ok_or("an object \"request\"")?;
    let method = request.shared("method").ok_or("\"method\"")?;
    let url = request.string("url").ok_or("\"url\"")?;
    let Url { authority, host, port, target } = split_url(&url).ok_or("an absolute URL")?;
    if fields.raw("_webSocketMessages").is_some() {
        problems.add(ProblemKind::WebSocket, || format!("entry {number}"), || "WebSocket messages are not read");
    }

    let times = times(&fields, first);
    let mut headers = headers(&request);
    if header(&headers, "host").is_none() {
        headers.push((Arc::from("host"), Arc::from(authority)));
    }
    let response = fields.object("response");
    let error = response.as_ref().and_then(|r| r.shared("_error")).or_else(|| fields.shared("_error"));
    let status = response.as_ref().and_then(|r| r.raw("status")).and_then(|s| s.parse::<u16>().ok()).unwrap_or(0);
    let answered = (status != 0).then_some(response.as_ref()).flatten();
    let (end, ended_by) = match error {
        Some(text) => end_of(&text),
        None if status == 0 => (End::InputEnded, None),
        None => (End::Complete, None),
    };
    let server_ip = fields.string("serverIPAddress").and_then(|ip| parse_ip(&ip)).or_else(|| parse_ip(host));
    Ok(Recorded {
        number,
        client: UNKNOWN,
        server: SocketAddr::new(server_ip.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED)), port),
        connected: None,
        body: request_body(&request, &headers, number, problems),
        method,
        target: Arc::from(target),
        headers,
        first,
        last: times.sent,
        response: answered.map(|r| answer(r, &fields, status, &times, number, problems)),
        end,
        ended_by,
        ended: times.end,
    })
}

/// When the steps of an entry were.
struct Times {
    sent: Time,
    head: Time,
    end: Time,
}

/// From HAR's durations in milliseconds; -1 means "does not apply". `ssl` is part of `connect`.
fn times(entry: &Fields<'_>, first: Time) -> Times {
    let timings = entry.object("timings");
    let ns = |text: Option<&str>| {
        let ms = text.and_then(|t| t.parse::<f64>().ok()).filter(|ms| *ms > 0.0).unwrap_or(0.0);
        (ms * 1e6).min(i64::MAX as f64 / 4.0) as i64
    };
    let part = |name: &str| ns(timings.as_ref().and_then(|t| t.raw(name)));
    let total = ns(entry.raw("time"));
    let sent = ["blocked", "dns", "connect", "send"].iter().map(|n| part(n)).sum::<i64>();
    let (wait, receive) = (part("wait"), part("receive"));
    let end = total.max(wait + receive);
    // Recorders disagree on whether connecting is part of the total; never let a step pass the end.
    let head = (end - receive).max(0);
    let sent = sent.min((head - wait).max(0));
    Times { sent: first.plus_ns(sent), head: first.plus_ns(head), end: first.plus_ns(end) }
}

fn headers(message: &Fields<'_>) -> Vec<(Arc<str>, Arc<str>)> {
    let list = message.raw("headers").and_then(json::array).unwrap_or_default();
    let pair = |raw: &&RawValue| {
        let field = Fields::parse(raw.get()).ok()?;
        let name = field.string("name")?.to_ascii_lowercase();
        let value = field.string("value").unwrap_or_default();
        // HTTP/2 pseudo-header fields (RFC 9113 §8.3): `host` is what the others know it by.
        let name = if name == ":authority" { "host".to_owned() } else { name };
        (!name.starts_with(':')).then(|| (Arc::from(name), Arc::from(value.trim())))
    };
    list.iter().filter_map(pair).collect()
}

fn request_body(request: &Fields<'_>, headers: &[(Arc<str>, Arc<str>)], number: u64, problems: &mut Problems) -> Body {
    if let Some(data) = request.object("postData")
        && let Some(text) = data.string("text")
    {
        return text_or_coded(&text, data.string("encoding").as_deref(), number, problems);
    }
    let announced = header(headers, "content-length").and_then(|v| v.parse::<u64>().ok());
    let size = request.raw("bodySize").and_then(|s| s.parse::<i64>().ok()).unwrap_or(0);
    if size > 0 || announced.is_some_and(|n| n > 0) { Body::Missing } else { Body::Kept(Vec::new()) }
}

fn text_or_coded(text: &str, encoding: Option<&str>, number: u64, problems: &mut Problems) -> Body {
    if encoding != Some("base64") {
        return Body::Kept(text.as_bytes().to_vec());
    }
    match base64::decode(text) {
        Some(bytes) => Body::Kept(bytes),
        None => {
            let what = || "a body in base64 that does not decode";
            problems.add(ProblemKind::BadContentCoding, || format!("entry {number}"), what);
            Body::Missing
        }
    }
}

fn answer(
    response: &Fields<'_>,
    entry: &Fields<'_>,
    status: u16,
    times: &Times,
    number: u64,
    problems: &mut Problems,
) -> RecordedResponse {
    let mut headers = headers(response);
    let content = response.object("content");
    let mime = content.as_ref().and_then(|c| c.string("mimeType")).unwrap_or_default();
    if header(&headers, "content-type").is_none() && !mime.is_empty() && mime != "x-unknown" {
        headers.push((Arc::from("content-type"), Arc::from(&*mime)));
    }
    let events = timed_events(entry, times);
    let text = content.as_ref().and_then(|c| c.string("text")).filter(|t| !t.is_empty());
    let body = match text {
        _ if !events.is_empty() => Body::Kept(Vec::new()),
        Some(text) => {
            let encoding = content.as_ref().and_then(|c| c.string("encoding"));
            text_or_coded(&text, encoding.as_deref(), number, problems)
        }
        None if may_have_had_a_body(response, content.as_ref(), &headers, status) => Body::Missing,
        None => Body::Kept(Vec::new()),
    };
    RecordedResponse { status, headers, body, events, first: times.head, last: times.end }
}

/// Recorders leave out bodies for their size, and most leave out those of streams.
fn may_have_had_a_body(
    response: &Fields<'_>,
    content: Option<&Fields<'_>>,
    headers: &[(Arc<str>, Arc<str>)],
    status: u16,
) -> bool {
    if status < 200 || matches!(status, 202 | 204 | 304) {
        return false;
    }
    let positive = |text: Option<&str>| text.and_then(|t| t.parse::<i64>().ok()).is_some_and(|n| n > 0);
    positive(response.raw("bodySize"))
        || positive(content.and_then(|c| c.raw("size")))
        || positive(header(headers, "content-length"))
        || kind_of(headers) == BodyKind::EventStream
}

/// Chromium's `_eventSourceMessages`; `time` is seconds since the epoch.
fn timed_events(entry: &Fields<'_>, times: &Times) -> Vec<TimedEvent> {
    let list = entry.raw("_eventSourceMessages").and_then(json::array).unwrap_or_default();
    let event = |raw: &&RawValue| {
        let fields = Fields::parse(raw.get()).ok()?;
        let seconds = fields.raw("time").and_then(|t| t.parse::<f64>().ok()).filter(|s| *s > 0.0 && *s < 9e9);
        let named = |name: &str| fields.string(name).filter(|s| !s.is_empty()).map(|s| s.into_owned());
        Some(TimedEvent {
            at: seconds.map_or(times.end, |s| Time::from_ns((s * 1e9) as i64, 6)),
            event: named("eventName").filter(|n| n != "message"),
            event_id: named("eventId"),
            data: fields.string("data")?.into_owned(),
        })
    };
    list.iter().filter_map(event).collect()
}

/// How a recorder's error text says that an exchange ended, and by whom.
fn end_of(error: &str) -> (End, Option<Peer>) {
    let error = error.to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|w| error.contains(w));
    if has(&["aborted", "cancel", "client disconnected", "timed_out", "timed out"]) {
        (End::ClientClosed, Some(Peer::Client))
    } else if has(&["reset"]) {
        (End::Reset, Some(Peer::Server))
    } else if has(&["empty_response", "connection_closed", "incomplete", "http2", "server", "refused", "peer"]) {
        (End::ServerClosed, Some(Peer::Server))
    } else {
        (End::Gap, None)
    }
}

/// The parts of an absolute URL that an exchange needs.
struct Url<'a> {
    authority: &'a str,
    host: &'a str,
    port: u16,
    target: String,
}

/// Splits `scheme://authority/path?query#fragment` (RFC 3986 §3); the target has no fragment.
fn split_url(url: &str) -> Option<Url<'_>> {
    let (scheme, rest) = url.split_once("://")?;
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at_checked(end)?;
    let authority = authority.rsplit('@').next().unwrap_or(authority);
    let path = path.split('#').next().unwrap_or_default();
    let target = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    let default = if scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("ws") { 80 } else { 443 };
    let colon = authority.rfind(':').filter(|c| authority.rfind(']').is_none_or(|b| b < *c));
    let (host, port) = match colon.and_then(|c| authority.split_at_checked(c)) {
        Some((host, port)) => (host, port.trim_start_matches(':').parse().ok()?),
        None => (authority, default),
    };
    Some(Url { authority, host, port, target })
}

/// An address literal, or the one name whose address is known (RFC 6761 §6.3).
pub(super) fn parse_ip(host: &str) -> Option<IpAddr> {
    if host.eq_ignore_ascii_case("localhost") {
        return Some(IpAddr::V4(Ipv4Addr::LOCALHOST));
    }
    host.trim_start_matches('[').trim_end_matches(']').parse().ok()
}
