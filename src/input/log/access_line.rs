//! Access-log lines of a layout that nobody described: a time, a quoted request line, a status.

use super::app;
use super::assemble::{Assembly, Field, Shared, address};
use super::clf::quoted;
use super::layout::{self, Layout, LayoutReader, Parsed};
use super::tail::{self, next_field};
use super::time;
use super::{Format, Grade, Reader, names};
use crate::model::place::{Place, Vantage};

/// The format.
pub(super) static FORMAT: Format = Format {
    name: "access-line",
    vantage: Vantage::Proxy,
    carries: false,
    doc: "Lines of a custom access log that hold a time and a quoted request line with its status. What else stands \
          there is taken by its name (key=value) or for what it must be (an address, a session id, seconds with three \
          decimals). A single time is taken for the end of the request, as most proxies have it; of two equal ones the \
          first is the start. --log-format STRING says exactly what is what.",
    samples: &[
        "2026-11-29T19:38:38+00:00 127.0.0.1:54550 \"POST /mcp HTTP/1.1\" 200 362 sid=- \
         rid=798f8ce12a9c04129217d44b6c9d79ed ut=0.006 0.005\n",
        "1795981981147 1795981981155 127.0.0.1:42226 [29/Nov/2026:19:53:01 +0000] \"POST /mcp HTTP/1.1\" 200 548 7739 0 \"-\" \
         \"570547409bfd42dd8cd91cbbfeb0fe67\"\n",
        "1795982008.174 127.0.0.1:55642 \"POST /mcp HTTP/1.1\" 200 0.005\n",
    ],
    grade: |head| layout::share(head, &mut AccessLine).grade(Grade::Likely),
    reader: Reader::Lines(|context| LayoutReader::boxed(context, Box::new(AccessLine))),
};

/// Such a line.
pub(super) struct AccessLine;

impl Layout for AccessLine {
    fn parse(&mut self, line: &[u8], place: Place, shared: &mut Shared) -> Parsed {
        let Some((before, request, after)) = request_line(line) else {
            return match breaks_off(line) {
                true => Parsed::Bad("an access line that breaks off in its request"),
                false => Parsed::No,
            };
        };
        let mut out = Assembly::default();
        if !read_before(before, &mut out, shared) {
            return Parsed::No;
        }
        out.set(Field::RequestLine, request, shared);
        let Some((status, rest)) = number(after).filter(|(status, _)| status.len() == 3) else {
            return Parsed::No;
        };
        if !out.set(Field::Status, status, shared) {
            return Parsed::No;
        }
        let mut rest = rest;
        if let Some((bytes, after)) = number(rest)
            && !bytes.contains(&b'.')
        {
            out.set(Field::Bytes, bytes, shared);
            rest = after;
        }
        tail::read(rest, &mut out, shared);
        if !out.has_time() { Parsed::No } else { Parsed::Access(out.finish(place, shared)) }
    }
}

/// Splits a line at its first quoted text that is `METHOD target HTTP/x`.
fn request_line(line: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let mut from = 0;
    loop {
        let at = from + memchr::memchr(b'"', line.get(from..)?)?;
        let (text, after) = quoted(line.get(at + 1..)?)?;
        let method = text.iter().take_while(|c| c.is_ascii_uppercase()).count();
        if (3..=24).contains(&method)
            && text.get(method) == Some(&b' ')
            && memchr::memmem::find(text, b" HTTP/").is_some()
        {
            return Some((line.get(..at)?, text, after));
        }
        from = line.len() - after.len();
    }
}

/// Does the line begin as one of these, and end before its request does?
fn breaks_off(line: &[u8]) -> bool {
    let Some(at) = memchr::memchr(b'"', line) else { return false };
    let rest = line.get(at + 1..).unwrap_or_default();
    let method = rest.iter().take_while(|c| c.is_ascii_uppercase()).count();
    let timed = line.first().is_some_and(|c| c.is_ascii_digit() || *c == b'[');
    timed && memchr::memchr(b'"', rest).is_none() && method >= 3 && rest.get(method) == Some(&b' ')
}

/// Times, address and named values before the request. False: no time is among them.
fn read_before(before: &[u8], out: &mut Assembly, shared: &mut Shared) -> bool {
    let mut rest = before.trim_ascii_start();
    let mut epochs = Vec::new();
    let mut said_when = false;
    let mut addressed = false;
    while !rest.is_empty() {
        let bare = rest.strip_prefix(b"[").unwrap_or(rest);
        if bare.first().is_some_and(u8::is_ascii_digit)
            && let Some((civil, len)) = time::any_civil(bare)
            && let Some(at) = shared.clock.resolve(&civil)
        {
            out.set_instant(false, at);
            said_when = true;
            let after = bare.get(len..).unwrap_or_default();
            rest = after.strip_prefix(b"]").unwrap_or(after).trim_ascii_start();
            continue;
        }
        let (name, value, after) = next_field(rest);
        rest = after.trim_ascii_start();
        if let Some(name) = name {
            let field = names::common(name).unwrap_or(Field::Skip);
            said_when |= matches!(field, Field::Start | Field::End) && out.set(field, value, shared);
            if !matches!(field, Field::Start | Field::End) {
                out.set(field, value, shared);
            }
        } else if let Some(at) = time::epoch(value) {
            epochs.push(at);
        } else if !addressed && address(value).is_some() {
            out.set(Field::ClientAddr, value, shared);
            addressed = true;
        } else if app::is_level(value.trim_ascii_end().strip_suffix(b":").unwrap_or(value)) {
            // A logger of the application itself wrote it.
            return false;
        }
    }
    match epochs.as_slice() {
        [start, end, ..] if start <= end => {
            out.set_instant(true, *start);
            out.set_instant(false, *end);
        }
        [at, ..] => out.set_instant(false, *at),
        [] => return said_when,
    }
    true
}

/// The next word, if it is a number.
fn number(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let text = text.trim_ascii_start();
    let end = memchr::memchr(b' ', text).unwrap_or(text.len());
    let (word, rest) = text.split_at(end);
    time::decimal(word, 1).map(|_| (word, rest))
}
