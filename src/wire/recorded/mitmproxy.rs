//! mitmproxy's flow files (`mitmdump -w`): tagged netstrings, one flow after the other.
//!
//! Members as of flow format 4 to 21 (mitmproxy 3 to 12, `mitmproxy/io/compat.py`).

use super::tell::{Body, Recorded, RecordedResponse, Teller, UNKNOWN};
use super::tnetstring::{self, Value};
use super::{Counts, har};
use crate::model::exchange::{End, ExchangeSink, Peer, header};
use crate::model::place::InputId;
use crate::model::problem::{ProblemKind, Problems};
use crate::model::time::Time;
use crate::wire::body::coding::Decoder;
use std::io::{self, BufRead};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// Reads a flow file. What stands before a fault is kept; the fault is a problem.
///
/// # Errors
/// Only those of reading `bytes`.
pub fn read_mitmproxy(
    input: InputId,
    bytes: &mut dyn BufRead,
    next_exchange: &mut u64,
    sink: &mut dyn ExchangeSink,
    problems: &mut Problems,
) -> io::Result<Counts> {
    let mut teller = Teller::new(input, next_exchange, sink);
    let mut buffer = Vec::new();
    loop {
        let number = teller.counts.records + 1;
        match tnetstring::next(bytes, &mut buffer) {
            Ok(false) => break,
            Ok(true) => teller.counts.records = number,
            Err(tnetstring::Error::Io(e)) => return Err(e),
            Err(e) => {
                teller.counts.records = number;
                let kind = match e {
                    tnetstring::Error::Cut => ProblemKind::TruncatedRecord,
                    tnetstring::Error::TooLong(_) => ProblemKind::LimitHit,
                    _ => ProblemKind::Garbage,
                };
                problems.add(kind, || format!("entry {number}"), || format!("{e}; nothing after it is read"));
                break;
            }
        }
        match tnetstring::parse(&buffer) {
            Some(flow) => take(&flow, number, &mut teller, problems),
            None => {
                problems.add(ProblemKind::Garbage, || format!("entry {number}"), || "an entry that is no netstring")
            }
        }
    }
    teller.tell();
    Ok(teller.counts)
}

fn take(flow: &Value<'_>, number: u64, teller: &mut Teller<'_>, problems: &mut Problems) {
    let place = || format!("entry {number}");
    match flow.get("type").and_then(Value::text) {
        Some("http") | None => {}
        Some(other) => {
            let text = || format!("{other} flows are not read");
            problems.add(ProblemKind::UnreadProtocol, place, text);
            return;
        }
    }
    if !matches!(flow.get("websocket"), None | Some(Value::Null)) {
        problems.add(ProblemKind::WebSocket, place, || "WebSocket messages are not read");
    }
    match recorded(flow, number, problems) {
        Ok(entry) => teller.add(entry, problems),
        Err(expected) => {
            problems.add(ProblemKind::Garbage, place, || format!("expected {expected} in a flow"));
        }
    }
}

/// Reads one HTTP flow; the error names what was expected.
fn recorded(flow: &Value<'_>, number: u64, problems: &mut Problems) -> Result<Recorded, &'static str> {
    let request = flow.get("request").ok_or("\"request\"")?;
    let first = time(request, "timestamp_start").ok_or("\"timestamp_start\" of the request")?;
    let last = time(request, "timestamp_end").unwrap_or(first);
    let text = |name: &str| request.get(name).and_then(Value::text);
    let method = text("method").ok_or("\"method\"")?;
    let mut headers = headers(request);
    if header(&headers, "host").is_none() {
        let authority = text("authority").filter(|a| !a.is_empty()).map(str::to_owned);
        let host = || Some(format!("{}:{}", text("host")?, request.get("port")?.int()?));
        if let Some(host) = authority.or_else(host) {
            headers.push((Arc::from("host"), Arc::from(host)));
        }
    }
    let response = flow.get("response").filter(|r| **r != Value::Null);
    let response = response.and_then(|r| answer(r, last, number, problems));
    let error = flow.get("error").filter(|e| **e != Value::Null);
    let (end, ended_by) = match error {
        Some(e) => end_of(e.get("msg").and_then(Value::text).unwrap_or_default()),
        None if response.as_ref().is_none_or(|(_, whole)| !whole) => (End::InputEnded, None),
        None => (End::Complete, None),
    };
    let response = response.map(|(r, _)| r);
    let failed = error.and_then(|e| time(e, "timestamp"));
    let ended = failed.or(response.as_ref().map(|r| r.last)).unwrap_or(last);
    let server = flow.get("server_conn");
    let client = flow.get("client_conn");
    let body = body(request, &headers, number, problems);
    Ok(Recorded {
        number,
        client: client.and_then(|c| address(c, &["peername", "address"])).unwrap_or(UNKNOWN),
        server: server.and_then(|s| address(s, &["peername", "ip_address", "address"])).unwrap_or(UNKNOWN),
        connected: client.and_then(|c| time(c, "timestamp_start")),
        method: Arc::from(method),
        target: Arc::from(text("path").unwrap_or("/")),
        headers,
        body,
        first,
        last,
        response,
        end,
        ended_by,
        ended,
    })
}

/// The response, and whether it came to its end.
fn answer(response: &Value<'_>, sent: Time, number: u64, problems: &mut Problems) -> Option<(RecordedResponse, bool)> {
    let status = u16::try_from(response.get("status_code")?.int()?).ok()?;
    let headers = headers(response);
    let first = time(response, "timestamp_start").unwrap_or(sent);
    let end = time(response, "timestamp_end");
    let body = body(response, &headers, number, problems);
    let last = end.unwrap_or(first);
    Some((RecordedResponse { status, headers, body, events: Vec::new(), first, last }, end.is_some()))
}

fn headers(message: &Value<'_>) -> Vec<(Arc<str>, Arc<str>)> {
    let Some(Value::List(fields)) = message.get("headers") else { return Vec::new() };
    let lossy = |v: Option<&Value<'_>>| v.and_then(Value::bytes).map(|b| String::from_utf8_lossy(b).trim().to_owned());
    let pair = |field: &Value<'_>| {
        let name = lossy(field.at(0))?.to_ascii_lowercase();
        Some((Arc::from(name), Arc::from(lossy(field.at(1))?)))
    };
    fields.iter().filter_map(pair).collect()
}

/// The body, its content coding undone: mitmproxy keeps it as it was sent.
fn body(message: &Value<'_>, headers: &[(Arc<str>, Arc<str>)], number: u64, problems: &mut Problems) -> Body {
    let Some(bytes) = message.get("content").and_then(Value::bytes) else { return Body::Missing };
    let Some(codings) = header(headers, "content-encoding").filter(|_| !bytes.is_empty()) else {
        return Body::Kept(bytes.to_vec());
    };
    let decoder = Decoder::new(std::iter::once(codings));
    let decoded =
        decoder.and_then(|d| d.map_or_else(|| Ok(bytes.to_vec()), |mut d| d.decode(bytes).map(<[u8]>::to_vec)));
    match decoded {
        Ok(decoded) => Body::Kept(decoded),
        Err(e) => {
            let text = || format!("a body of coding {codings} that could not be undone: {e}");
            problems.add(ProblemKind::BadContentCoding, || format!("entry {number}"), text);
            Body::Missing
        }
    }
}

/// Seconds since the epoch, as a float.
fn time(of: &Value<'_>, name: &str) -> Option<Time> {
    let seconds = match of.get(name)? {
        Value::Float(s) => *s,
        Value::Int(s) => *s as f64,
        _ => return None,
    };
    (seconds > 0.0 && seconds < 9e9).then(|| Time::from_us((seconds * 1e6).round() as i64))
}

/// The first of these members that is `[host, port]` (or `{address: [host, port]}`, before
/// version 5) with an address for a host.
fn address(connection: &Value<'_>, names: &[&str]) -> Option<SocketAddr> {
    names.iter().find_map(|name| {
        let value = connection.get(name)?;
        let pair = value.get("address").unwrap_or(value);
        let ip: IpAddr = har::parse_ip(pair.at(0)?.text()?)?;
        Some(SocketAddr::new(ip, u16::try_from(pair.at(1)?.int()?).ok()?))
    })
}

/// How mitmproxy's error text says that an exchange ended, and by whom.
fn end_of(message: &str) -> (End, Option<Peer>) {
    let message = message.to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|w| message.contains(w));
    if has(&["client disconnected", "by client", "client closed"]) {
        let end = if message.contains("reset") { End::Reset } else { End::ClientClosed };
        (end, Some(Peer::Client))
    } else if has(&["killed"]) {
        (End::Reset, None)
    } else if has(&["reset"]) {
        (End::Reset, Some(Peer::Server))
    } else if has(&["server", "peer", "connect call failed", "refused", "eof"]) {
        (End::ServerClosed, Some(Peer::Server))
    } else {
        (End::Gap, None)
    }
}
