//! From the fields of a line, whatever its layout, to one access record.

use super::LogContext;
use super::clock::Clock;
use super::escape::{unescape, unescape_body};
use super::intern::Interner;
use super::time::{self, Civil, SECOND_NS};
use crate::input::detect::same_file;
use crate::model::place::{InputId, Place, Vantage};
use crate::model::record::{AccessRecord, BoxedRecords, When};
use crate::model::time::Time;
use std::net::{IpAddr, Ipv4Addr};

/// How far a proxy's own clock reading may lag behind what it stamps (nginx caches its time over
/// one turn of the event loop), ns.
const SLACK_NS: i64 = 1_000_000;

/// What a field of a line means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    /// Nothing that a record holds.
    Skip,
    /// When the request began, in any layout of `time`, or as an epoch.
    Start,
    /// When the request ended.
    End,
    /// Total duration.
    Duration(Unit),
    /// Time that the upstream took, also as nginx's list over several upstreams.
    UpstreamDuration(Unit),
    /// `METHOD target HTTP/x`.
    RequestLine,
    /// Request method.
    Method,
    /// Request target, or its path.
    Target,
    /// Query string, which the target may lack.
    Query,
    /// Status sent to the client.
    Status,
    /// Status of the upstream, also as a list.
    UpstreamStatus,
    /// Bytes sent, head included.
    Bytes,
    /// Body bytes sent.
    BodyBytes,
    /// Body bytes sent, `-` for none (Apache `%b`).
    ClfBytes,
    /// Peer's address, also with its port.
    ClientAddr,
    /// `X-Forwarded-For`: its last address stands in where the peer is not logged.
    ForwardedFor,
    /// Peer's port.
    ClientPort,
    /// Upstream.
    Upstream,
    /// Session id of the request.
    Session,
    /// Session id of the response.
    SessionGiven,
    /// A header of the request whose name the log does not tell: a session id if it looks like one.
    Captured,
    /// The same of the response.
    CapturedGiven,
    /// User agent.
    UserAgent,
    /// Request id.
    RequestId,
    /// How it ended, as the proxy puts it.
    Termination,
    /// Apache's `%X`, whose `-` says that the connection was closed.
    ConnectionStatus,
    /// Request body.
    RequestBody,
    /// Response body.
    ResponseBody,
    /// `Mcp-Method`.
    RpcMethod,
    /// `Mcp-Name`.
    RpcTool,
}

/// Unit of a duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    /// So many nanoseconds.
    Ns(i64),
    /// As written behind the number, else this many nanoseconds.
    SuffixOr(i64),
    /// As written behind the number; seconds where it has a decimal point, else milliseconds.
    Guess,
}

impl Unit {
    /// Value and resolution of `text`, ns.
    fn read(self, text: &[u8]) -> Option<(i64, i64)> {
        match self {
            Unit::Ns(unit) => time::decimal(text, unit),
            Unit::SuffixOr(unit) => time::decimal(text, unit).or_else(|| time::duration(text)),
            Unit::Guess => {
                let unit = if text.contains(&b'.') { SECOND_NS } else { 1_000_000 };
                time::decimal(text, unit).or_else(|| time::duration(text))
            }
        }
    }
}

/// What the lines of one input share.
pub(super) struct Shared {
    pub(super) clock: Clock,
    pub(super) strings: Interner,
    pub(super) input: InputId,
    pub(super) vantage: Vantage,
    /// The user said so: nothing in a line changes it.
    pub(super) vantage_given: bool,
    /// The time written last and what it is: neighbouring lines often have the same.
    last_time: (Vec<u8>, Time),
    /// Room for records.
    pub(super) spare: BoxedRecords,
}

impl Shared {
    pub(super) fn new(context: &LogContext<'_>, vantage: Vantage) -> Shared {
        let chosen = context.options.vantages.iter().rev().find(|(_, path)| same_file(path, context.name));
        Shared {
            clock: Clock::new(context),
            strings: Interner::new(),
            input: context.input,
            vantage: chosen.map_or(vantage, |(v, _)| *v),
            vantage_given: chosen.is_some(),
            last_time: (Vec::new(), Time::from_ns(0, 0)),
            spare: vec![],
        }
    }
}

/// One end of an exchange while its line is read.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stamp {
    /// Finest time so far, and its resolution in ns.
    best: Option<(Time, i64)>,
    /// Fields that come one by one (`%{%d/%b/%Y}t`, `%{usec_frac}t`).
    pub(super) civil: Option<Civil>,
}

impl Stamp {
    fn offer(&mut self, time: Time) {
        let resolution = time::resolution_of(time.digits());
        if self.best.is_none_or(|(_, best)| resolution < best) {
            self.best = Some((time, resolution));
        }
    }

    /// The stamped instant lies within the unit that was written: a logged second is its floor.
    fn when(&mut self, clock: &mut Clock) -> Option<When> {
        if let Some(civil) = self.civil.take() {
            if civil.month_day.is_some() {
                clock.resolve(&civil).into_iter().for_each(|time| self.offer(time));
            } else if let Some((time, SECOND_NS)) = self.best {
                // A fraction that stands apart from its second.
                self.offer(Time::from_ns(time.ns().saturating_add(i64::from(civil.nanos)), civil.digits));
            }
        }
        let (time, resolution) = self.best?;
        Some(When { at: time.plus_ns(resolution / 2), error_ns: resolution / 2 + SLACK_NS })
    }
}

/// Collects the fields of one line.
#[derive(Default)]
pub(super) struct Assembly {
    pub(super) record: AccessRecord,
    pub(super) start: Stamp,
    pub(super) end: Stamp,
    duration: Option<(i64, i64)>,
    query: Option<Vec<u8>>,
}

impl Assembly {
    /// Takes one field, still escaped as the log has it. False: no such value can stand there.
    pub(super) fn set(&mut self, field: Field, value: &[u8], shared: &mut Shared) -> bool {
        let r = &mut self.record;
        if value.is_empty() || value == b"-" {
            if field == Field::ClfBytes {
                (r.bytes, r.bytes_are_body) = (Some(0), true);
            } else if field == Field::ConnectionStatus && !value.is_empty() {
                r.termination = Some(shared.strings.text(value));
            }
            return true;
        }
        match field {
            Field::Skip => {}
            Field::Start => return set_time(&mut self.start, value, shared),
            Field::End => return set_time(&mut self.end, value, shared),
            // HAProxy with `option logasap`: the exchange goes on.
            Field::Duration(_) if value.first() == Some(&b'+') => {}
            Field::Duration(unit) => match unit.read(value) {
                Some((ns, resolution)) => {
                    if ns >= 0 && self.duration.is_none_or(|(_, finest)| resolution < finest) {
                        self.duration = Some((ns, resolution));
                    }
                }
                None => return false,
            },
            Field::UpstreamDuration(unit) => match sum_list(value, unit) {
                Some(sum) => r.upstream_ns = sum.or(r.upstream_ns),
                None => return false,
            },
            Field::RequestLine => set_request_line(r, value, shared),
            Field::Method => r.method = Some(shared.strings.text(value)),
            Field::Target => r.target = Some(shared.strings.text(&unescape(origin_form(value)))),
            Field::Query => self.query = Some(unescape(value).into_owned()),
            Field::Status => match status(value) {
                Some(status) => r.status = status,
                None => return false,
            },
            Field::UpstreamStatus => {
                let last = value.split(|c| matches!(c, b' ' | b',')).rfind(|v| !matches!(*v, b"" | b":" | b"-"));
                r.upstream_status = last.and_then(status).flatten();
            }
            Field::Bytes | Field::BodyBytes | Field::ClfBytes => {
                let Some((bytes, _)) = time::decimal(value, 1).filter(|(n, _)| *n >= 0) else {
                    return false;
                };
                let is_body = field != Field::Bytes;
                if is_body || !r.bytes_are_body {
                    (r.bytes, r.bytes_are_body) = (Some(bytes as u64), is_body);
                }
            }
            Field::ClientAddr => {
                if let Some((addr, port)) = address(value) {
                    r.client_addr = Some(addr);
                    r.client_port = port.or(r.client_port);
                }
            }
            Field::ForwardedFor => {
                if r.client_addr.is_none() {
                    let last = value.rsplit(|c| *c == b',').next().unwrap_or_default();
                    r.client_addr = address(last.trim_ascii()).map(|(addr, _)| addr);
                }
            }
            Field::ClientPort => match time::decimal(value, 1).and_then(|(n, _)| u16::try_from(n).ok()) {
                Some(port) => r.client_port = Some(port),
                None => return false,
            },
            Field::Upstream => r.upstream = Some(shared.strings.text(&unescape(value))),
            Field::Session => r.session = Some(shared.strings.text(&unescape(value))),
            Field::SessionGiven => r.session_given = Some(shared.strings.text(&unescape(value))),
            Field::Captured => {
                if is_session_like(value) {
                    r.session = Some(shared.strings.text(value));
                }
            }
            Field::CapturedGiven => {
                if is_session_like(value) {
                    r.session_given = Some(shared.strings.text(value));
                }
            }
            Field::UserAgent => r.user_agent = Some(shared.strings.text(&unescape(value))),
            Field::RequestId => {
                if r.request_id.is_none() {
                    r.request_id = Some(shared.strings.once(value));
                }
            }
            Field::Termination | Field::ConnectionStatus => r.termination = Some(shared.strings.text(value)),
            Field::RequestBody => r.request_body = Some(unescape_body(value).into()),
            Field::ResponseBody => r.response_body = Some(unescape_body(value).into()),
            Field::RpcMethod => r.rpc_method = Some(shared.strings.text(&unescape(value))),
            Field::RpcTool => r.rpc_tool = Some(shared.strings.text(&unescape(value))),
        }
        true
    }

    /// Has the line said when?
    pub(super) fn has_time(&self) -> bool {
        [&self.start, &self.end].iter().any(|s| s.best.is_some() || s.civil.is_some())
    }

    /// A time already placed.
    pub(super) fn set_instant(&mut self, is_start: bool, time: Time) {
        if is_start { self.start.offer(time) } else { self.end.offer(time) }
    }

    /// A duration already read: value and resolution, ns.
    pub(super) fn set_duration(&mut self, value_ns: i64, resolution_ns: i64) {
        self.duration = Some((value_ns, resolution_ns));
    }

    /// The record: the missing end of the exchange follows from the other and the duration.
    pub(super) fn finish(mut self, place: Place, shared: &mut Shared) -> Box<AccessRecord> {
        let r = &mut self.record;
        r.place = Some(place);
        if shared.vantage_given || r.vantage.is_none() {
            r.vantage = Some(shared.vantage);
        }
        r.repeat = r.repeat.max(1);
        r.start = self.start.when(&mut shared.clock);
        r.end = self.end.when(&mut shared.clock);
        if let Some((ns, resolution)) = self.duration {
            r.duration_ns = Some(ns);
            let moved =
                |w: When, by: i64| When { at: w.at.plus_ns(by), error_ns: w.error_ns.saturating_add(resolution) };
            match (r.start, r.end) {
                (None, Some(end)) => r.start = Some(moved(end, -ns)),
                (Some(start), None) => r.end = Some(moved(start, ns)),
                _ => {}
            }
        }
        if let (Some(query), Some(target)) = (self.query, &r.target)
            && !target.contains('?')
        {
            let query = query.strip_prefix(b"?").unwrap_or(&query);
            r.target = Some(shared.strings.text(&[target.as_bytes(), b"?", query].concat()));
        }
        match shared.spare.pop() {
            Some(mut room) => {
                *room = self.record;
                room
            }
            None => Box::new(self.record),
        }
    }
}

fn set_time(stamp: &mut Stamp, value: &[u8], shared: &mut Shared) -> bool {
    if shared.last_time.0 == value {
        stamp.offer(shared.last_time.1);
        return true;
    }
    let bare = value.strip_prefix(b"[").and_then(|v| v.strip_suffix(b"]")).unwrap_or(value);
    let time = match time::epoch(bare) {
        Some(time) => time,
        None => {
            let Some((civil, _)) = time::any_civil(bare) else { return false };
            let Some(time) = shared.clock.resolve(&civil) else { return false };
            // What had to be inferred is to be said each time.
            if civil.offset_s.is_some() && civil.year.is_some() {
                shared.last_time.0.clear();
                shared.last_time.0.extend_from_slice(value);
                shared.last_time.1 = time;
            }
            time
        }
    };
    stamp.offer(time);
    true
}

/// Splits `METHOD target HTTP/x`. A line that is none of HTTP (`"-"`, TLS bytes, port scanners)
/// leaves method and target unknown: the server refused it before they were.
fn set_request_line(r: &mut AccessRecord, value: &[u8], shared: &mut Shared) {
    let Some(space) = memchr::memchr(b' ', value) else {
        return;
    };
    let (method, rest) = value.split_at(space);
    let rest = rest.get(1..).unwrap_or_default();
    let target = match memchr::memrchr(b' ', rest) {
        Some(at) if rest.get(at + 1..).is_some_and(|p| p.starts_with(b"HTTP/")) => rest.get(..at).unwrap_or_default(),
        _ => rest,
    };
    let is_token = method.len() <= 24 && method.iter().all(|c| c.is_ascii_uppercase() || matches!(c, b'-' | b'_'));
    if !is_token || method.is_empty() || target.is_empty() {
        return;
    }
    r.method = Some(shared.strings.text(method));
    r.target = Some(shared.strings.text(&unescape(origin_form(target))));
}

/// The path and query of an absolute target (RFC 9112 §3.2.2), as other vantage points see it.
fn origin_form(target: &[u8]) -> &[u8] {
    let Some(rest) = target.strip_prefix(b"http://").or_else(|| target.strip_prefix(b"https://")) else {
        return target;
    };
    match memchr::memchr3(b'/', b'?', b'#', rest) {
        Some(at) if rest.get(at) == Some(&b'/') => rest.get(at..).unwrap_or(target),
        Some(_) => target,
        None => b"/",
    }
}

/// A status: none where the value is no number, `Some(None)` for what stands for "none was sent"
/// (`0`, `000`, `-1`).
pub(super) fn status(value: &[u8]) -> Option<Option<u16>> {
    let (number, _) = time::decimal(value, 1)?;
    let status = u16::try_from(number.max(0)).ok()?;
    Some((100..=999).contains(&status).then_some(status))
}

/// The sum of nginx's `0.001, 0.002 : 0.5` (several upstreams tried), `-` skipped.
fn sum_list(value: &[u8], unit: Unit) -> Option<Option<i64>> {
    let mut sum = None;
    for item in value.split(|c| matches!(c, b' ' | b',')).filter(|v| !matches!(*v, b"" | b":" | b"-")) {
        let (ns, _) = unit.read(item)?;
        if ns >= 0 {
            sum = Some(sum.unwrap_or(0i64).saturating_add(ns));
        }
    }
    Some(sum)
}

/// `127.0.0.1`, `127.0.0.1:80`, `::1`, `[::1]`, `[::1]:80`.
pub(super) fn address(value: &[u8]) -> Option<(IpAddr, Option<u16>)> {
    if let Some((v4, len)) = ipv4(value) {
        return match value.get(len..)? {
            [] => Some((v4.into(), None)),
            [b':', port @ ..] => Some((v4.into(), Some(port_number(port)?))),
            _ => None,
        };
    }
    if value.len() > 64 || !value.contains(&b':') {
        return None;
    }
    let text = std::str::from_utf8(value).ok()?;
    match text.strip_prefix('[') {
        Some(rest) => {
            let (addr, port) = rest.split_once(']')?;
            let port = match port.strip_prefix(':') {
                Some(port) => Some(port_number(port.as_bytes())?),
                None if port.is_empty() => None,
                None => return None,
            };
            Some((addr.split('%').next()?.parse::<IpAddr>().ok()?, port))
        }
        None => Some((text.split('%').next()?.parse::<IpAddr>().ok()?, None)),
    }
}

fn port_number(digits: &[u8]) -> Option<u16> {
    if digits.is_empty() || digits.len() > 5 {
        return None;
    }
    digits.iter().try_fold(0u16, |v, c| {
        if !c.is_ascii_digit() {
            return None;
        }
        v.checked_mul(10)?.checked_add(u16::from(c - b'0'))
    })
}

fn ipv4(b: &[u8]) -> Option<(Ipv4Addr, usize)> {
    let mut octets = [0u8; 4];
    let mut at = 0;
    for (i, octet) in octets.iter_mut().enumerate() {
        if i > 0 {
            if b.get(at) != Some(&b'.') {
                return None;
            }
            at += 1;
        }
        let mut value = 0u16;
        let begin = at;
        while let Some(c) = b.get(at).filter(|c| c.is_ascii_digit()) {
            value = value * 10 + u16::from(c - b'0');
            at += 1;
            if at - begin > 3 {
                return None;
            }
        }
        if at == begin || value > 255 {
            return None;
        }
        *octet = value as u8;
    }
    Some((octets.into(), at))
}

/// Does a text without a name look like a session id: 32 hex digits or a UUID?
pub(super) fn is_session_like(value: &[u8]) -> bool {
    match value.len() {
        32 => value.iter().all(u8::is_ascii_hexdigit),
        36 => value.iter().enumerate().all(|(i, c)| match i {
            8 | 13 | 18 | 23 => *c == b'-',
            _ => c.is_ascii_hexdigit(),
        }),
        _ => false,
    }
}
