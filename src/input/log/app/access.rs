//! Access lines that servers write themselves: uvicorn, hypercorn, gunicorn, werkzeug, morgan.
//!
//! None of them states a duration that runs to the end of a streamed response, so no start is
//! derived. uvicorn writes when the response's head is sent, the others at its end; both go to
//! `end`, which for the short answers that matter here is the same within the error.

use super::head::is_head;
use super::phrase::{Anchor, Meaning, Phrase};
use crate::input::log::reading::{self, Reading};
use crate::model::record::AccessRecord;
use std::net::IpAddr;

const fn method(text: &'static str) -> Phrase {
    Phrase { text, anchor: Anchor::Anywhere, meaning: Meaning::Access }
}

/// Request lines.
pub(super) static PHRASES: &[Phrase] = &[
    method("POST /"),
    method("GET /"),
    method("DELETE /"),
    method("OPTIONS /"),
    method("HEAD /"),
    method("PUT /"),
    method("PATCH /"),
];

/// What an access line says, borrowed.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Line<'t> {
    /// Request method.
    pub method: &'t str,
    /// Request target.
    pub target: &'t str,
    /// Status.
    pub status: u16,
    /// Body bytes.
    pub bytes: Option<u64>,
    /// Peer.
    pub peer: Option<(IpAddr, Option<u16>)>,
    /// User agent.
    pub user_agent: Option<&'t str>,
    /// A time of its own in the Common Log Format.
    pub reading: Option<Reading>,
}

impl Line<'_> {
    /// The record without its place, vantage and time; `name` makes shared strings.
    pub fn record(&self, mut name: impl FnMut(&str) -> std::sync::Arc<str>) -> AccessRecord {
        AccessRecord {
            method: Some(name(self.method)),
            target: Some(name(self.target)),
            status: Some(self.status),
            bytes: self.bytes,
            bytes_are_body: true,
            client_addr: self.peer.map(|p| p.0),
            client_port: self.peer.and_then(|p| p.1),
            user_agent: self.user_agent.map(name),
            repeat: 1,
            ..AccessRecord::default()
        }
    }
}

/// Reads the access line around a request line that starts at `start`.
pub(super) fn read(text: &str, start: usize) -> Option<Line<'_>> {
    let before = text.get(..start)?;
    let from = text.get(start..)?;
    match before.strip_suffix('"') {
        Some(before) => quoted(before, from),
        None if is_head(before.as_bytes()) => bare(from),
        None => None,
    }
}

/// `ADDRESS - "POST /mcp HTTP/1.1" 200 OK` and `ADDRESS - - [time] "POST /mcp HTTP/1.1" 200 182 "-" "agent"`.
fn quoted<'t>(before: &'t str, from: &'t str) -> Option<Line<'t>> {
    let (request, rest) = from.split_once('"')?;
    let mut words = request.split(' ');
    let (method, target) = (words.next()?, words.next()?);
    let (status, rest) = status(rest)?;
    let before = before.trim_end();
    let mut line = Line { method, target, status, ..Line::default() };
    if let Some(inner) = before.strip_suffix(']') {
        let (head, time) = inner.rsplit_once('[')?;
        line.reading = reading::clf(time.as_bytes()).map(|r| r.0);
        // address, identity, user
        let mut fields = head.trim_end().rsplitn(3, ' ');
        let (_user, _identity, front) = (fields.next()?, fields.next()?, fields.next()?);
        let (head, address) = front.rsplit_once(' ').unwrap_or(("", front));
        line.peer = Some(peer(address).filter(|_| is_head(head.as_bytes()))?);
        let mut words = rest.split_ascii_whitespace();
        line.bytes = words.next().and_then(|w| w.parse().ok());
        line.user_agent = rest.rsplit('"').nth(1).filter(|a| *a != "-" && rest.matches('"').count() >= 4);
        return Some(line);
    }
    let front = before.strip_suffix('-')?.trim_end();
    let (head, address) = front.rsplit_once(' ').unwrap_or(("", front));
    line.peer = peer(address);
    (line.peer.is_some() && is_head(head.as_bytes())).then_some(line)
}

/// `POST /mcp 200 182 - 28.596 ms` (morgan tiny), `POST /mcp 200 12.295 ms - 182` (dev).
fn bare(from: &str) -> Option<Line<'_>> {
    let (method, rest) = from.split_once(' ')?;
    let (target, rest) = rest.split_once(' ')?;
    let (status, rest) = status(rest)?;
    let mut words = rest.split_ascii_whitespace();
    let words = [words.next(), words.next(), words.next(), words.next(), words.next()];
    let number = |w: &str| w == "-" || w.parse::<f64>().is_ok();
    let bytes = match words {
        [Some(bytes), Some("-"), Some(ms), Some("ms"), None] if number(bytes) && number(ms) => bytes,
        [Some(ms), Some("ms"), Some("-"), Some(bytes), None] if number(bytes) && number(ms) => bytes,
        [Some("-"), Some("ms"), Some("-"), Some("-"), None] => "-",
        [None, ..] => "-",
        _ => return None,
    };
    Some(Line { method, target, status, bytes: bytes.parse().ok(), ..Line::default() })
}

/// A status, with space around it, and what follows.
fn status(rest: &str) -> Option<(u16, &str)> {
    let rest = rest.trim_start();
    let status: u16 = rest.get(..3)?.parse().ok()?;
    let after = rest.get(3..)?;
    ((100..=599).contains(&status) && (after.is_empty() || after.starts_with(' '))).then_some((status, after))
}

/// `127.0.0.1:57788`, `::1:57788` (as uvicorn writes it), `[::1]:57788`, `::ffff:10.0.0.1`.
/// Port 0 is what uvicorn writes for a peer behind a proxy that it trusts.
fn peer(s: &str) -> Option<(IpAddr, Option<u16>)> {
    let bare = s.trim_start_matches('[');
    if let Some((host, port)) = bare.rsplit_once(':') {
        let host = host.trim_end_matches(']');
        if let (Ok(ip), Ok(port)) = (host.parse(), port.parse::<u16>()) {
            let whole: Option<IpAddr> = bare.parse().ok();
            // `fe80::1:80` may be either; a server that writes ports writes them on every line
            if whole.is_none() || port > 999 {
                return Some((ip, Some(port).filter(|p| *p != 0)));
            }
        }
    }
    bare.trim_end_matches(']').parse().ok().map(|ip| (ip, None))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    fn line(text: &str) -> Option<Line<'_>> {
        let start = PHRASES.iter().filter_map(|p| text.find(p.text)).min()?;
        read(text, start)
    }

    #[test]
    fn every_server_writes_them_another_way() {
        let l = line("INFO:     127.0.0.1:57788 - \"POST /mcp HTTP/1.1\" 200 OK").unwrap();
        assert_eq!(
            (l.method, l.target, l.status, l.peer),
            ("POST", "/mcp", 200, Some(("127.0.0.1".parse().unwrap(), Some(57788))))
        );
        let l = line("2026-11-29 20:01:16,299 INFO uvicorn.access: 127.0.0.1:0 - \"POST /mcp HTTP/1.1\" 404").unwrap();
        assert_eq!((l.status, l.peer.unwrap().1), (404, None));
        let l = line("[2026-11-29 19:50:48 +0000] [9] [INFO] 127.0.0.1:45394 - - [29/Nov/2026:19:50:48 +0000] \"DELETE /mcp 1.1\" 404 91 \"-\" \"-\"").unwrap();
        assert_eq!((l.method, l.bytes, l.user_agent, l.reading.is_some()), ("DELETE", Some(91), None, true));
        let l = line("::1 - - [29/Nov/2026:19:55:19 +0000] \"POST /mcp HTTP/1.1\" 202 - \"-\" \"node\"").unwrap();
        assert_eq!((l.status, l.bytes, l.user_agent), (202, None, Some("node")));
        assert_eq!(line("POST /mcp 200 182 - 28.596 ms").unwrap().bytes, Some(182));
        assert_eq!(line("POST /mcp 202 1.578 ms - -").unwrap().status, 202);
        assert_eq!(line("INFO uvicorn.access 10.0.0.1:4000 - \"GET /mcp/ HTTP/1.1\" 405").unwrap().target, "/mcp/");
        for not in [
            "he wrote POST /mcp 200 to me",
            "17:19:52  POST /mcp -> 404  stale session id",
            "tool=x text=127.0.0.1:1 - \"POST /mcp HTTP/1.1\" banana",
            "POST /mcp 2000",
        ] {
            assert_eq!(line(not), None, "{not}");
        }
    }
}
