//! Start lines and header fields (RFC 9112 §2–5), read as tolerantly as the robust servers do.

use crate::model::exchange::{Peer, header};
use crate::model::limits;
use crate::wire::probe::Grade;
use memchr::{memchr, memchr_iter, memrchr};
use std::sync::Arc;

/// Header fields in order: names in lower case, values trimmed.
pub(in crate::wire) type Fields = Vec<(Arc<str>, Arc<str>)>;

/// The start line of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::wire) enum Start {
    /// Method and target.
    Request(Arc<str>, Arc<str>),
    /// Status code.
    Response(u16),
}

/// A head as read.
#[derive(Clone, Debug)]
pub(in crate::wire) struct Head {
    pub start: Start,
    pub fields: Fields,
    /// Lines that are no header fields, or fields beyond the cap.
    pub odd_lines: usize,
}

/// Length of the head that `bytes` begin with, its empty line included. Line ends may be a bare
/// LF (RFC 9112 §2.2). `from` bytes are known to hold no end.
pub(super) fn head_len(bytes: &[u8], from: usize) -> Option<usize> {
    let base = from.saturating_sub(3);
    for at in memchr_iter(b'\n', bytes.get(base..)?) {
        let next = base + at + 1;
        match bytes.get(next..)? {
            [b'\n', ..] => return Some(next + 1),
            [b'\r', b'\n', ..] => return Some(next + 2),
            _ => {}
        }
    }
    None
}

/// Reads heads, and shares what repeats from one head of a connection to the next.
#[derive(Debug, Default)]
pub(super) struct HeadReader {
    previous: Vec<Field>,
    method: Option<Arc<str>>,
    target: Option<Arc<str>>,
}

#[derive(Debug)]
struct Field {
    /// The name as spelled.
    spelled: Box<[u8]>,
    name: Arc<str>,
    value: Arc<str>,
}

impl HeadReader {
    /// Reads a head that is cut: its whole lines, and of a start line that is cut itself what
    /// there is. None if that could be anything.
    pub(super) fn read_cut(&mut self, from: Peer, head: &[u8]) -> Option<Head> {
        if let Some(end) = memrchr(b'\n', head) {
            return self.read(from, head.get(..=end)?);
        }
        let head = trim_cr(head);
        let start = match from {
            _ if grade(from, head) != Grade::Certain => return None,
            Peer::Client => {
                let (method, target) = head.split_at(memchr(b' ', head)?);
                let target = target.trim_ascii().split(|byte| *byte == b' ').next()?;
                Start::Request(text(method).into(), text(target).into())
            }
            Peer::Server => Start::Response(status_line(head)?),
        };
        Some(Head { start, fields: Vec::new(), odd_lines: 0 })
    }

    /// Reads a whole head, or none if its start line is not one.
    pub(super) fn read(&mut self, from: Peer, head: &[u8]) -> Option<Head> {
        let mut lines = head.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
        let start = match from {
            Peer::Client => {
                let (method, target) = request_line(lines.next()?)?;
                Start::Request(share(&mut self.method, method), share(&mut self.target, target))
            }
            Peer::Server => Start::Response(status_line(lines.next()?)?),
        };
        let mut fields: Fields = Vec::with_capacity(self.previous.len());
        let mut odd_lines = 0;
        for line in lines {
            if line.is_empty() {
                break;
            }
            if matches!(line.first(), Some(b' ' | b'\t')) {
                // A folded line continues the value before it (RFC 9112 §5.2).
                match fields.last_mut() {
                    Some((_, value)) => *value = format!("{value} {}", text(line.trim_ascii())).trim().into(),
                    None => odd_lines += 1,
                }
                continue;
            }
            match memchr(b':', line) {
                Some(colon) if colon > 0 && fields.len() < limits::HEADER_FIELDS => {
                    let (name, value) = line.split_at(colon);
                    let field = self.field(fields.len(), name, value.get(1..).unwrap_or_default().trim_ascii());
                    fields.push(field);
                }
                _ => odd_lines += 1,
            }
        }
        Some(Head { start, fields, odd_lines })
    }

    fn field(&mut self, n: usize, spelled: &[u8], value: &[u8]) -> (Arc<str>, Arc<str>) {
        if let Some(field) = self.previous.get_mut(n) {
            if *field.spelled != *spelled {
                *field = Field::new(spelled, value);
            } else if field.value.as_bytes() != value {
                field.value = text(value).into();
            }
            return (field.name.clone(), field.value.clone());
        }
        let field = Field::new(spelled, value);
        let both = (field.name.clone(), field.value.clone());
        self.previous.push(field);
        both
    }
}

impl Field {
    fn new(spelled: &[u8], value: &[u8]) -> Field {
        let name = text(spelled.trim_ascii()).to_ascii_lowercase().into();
        Field { spelled: spelled.into(), name, value: text(value).into() }
    }
}

fn text(bytes: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

fn share(last: &mut Option<Arc<str>>, bytes: &[u8]) -> Arc<str> {
    match last {
        Some(last) if last.as_bytes() == bytes => last.clone(),
        _ => last.insert(text(bytes).into()).clone(),
    }
}

/// `METHOD SP target SP HTTP/1.x` (RFC 9112 §3). Spaces within the target are tolerated.
fn request_line(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let line = line.trim_ascii_end();
    let space = memchr(b' ', line)?;
    let version = memrchr(b' ', line)?;
    let (method, version_text) = (line.get(..space)?, line.get(version + 1..)?);
    let target = line.get(space + 1..version).unwrap_or_default().trim_ascii();
    (is_method(method) && is_version(version_text)).then_some((method, target))
}

/// `HTTP/1.x SP 3DIGIT [SP reason]` (RFC 9112 §4).
fn status_line(line: &[u8]) -> Option<u16> {
    let (version, rest) = line.split_at_checked(8)?;
    let rest = rest.strip_prefix(b" ")?.trim_ascii_start();
    let code = match rest {
        [a, b, c] | [a, b, c, b' ' | b'\t', ..] if [a, b, c].iter().all(|d| d.is_ascii_digit()) => [*a, *b, *c],
        _ => return None,
    };
    let code = code.iter().fold(0, |all, digit| all * 10 + u16::from(digit - b'0'));
    (is_version(version) && (100..1000).contains(&code)).then_some(code)
}

/// Some spell it in lower case.
fn is_version(bytes: &[u8]) -> bool {
    matches!(bytes, [h, t, u, p, b'/', b'1', b'.', minor]
        if [*h, *t, *u, *p].eq_ignore_ascii_case(b"HTTP") && minor.is_ascii_digit())
}

/// A token (RFC 9110 §5.6.2) of reasonable length.
fn is_method(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.len() <= 32 && bytes.iter().all(|byte| is_token_byte(*byte))
}

fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// How sure is it that bytes of this end begin with a start line? Empty lines before it are
/// passed over (RFC 9112 §2.2).
pub(in crate::wire) fn grade(from: Peer, bytes: &[u8]) -> Grade {
    let begin = bytes.iter().position(|byte| !matches!(byte, b'\r' | b'\n')).unwrap_or(bytes.len());
    let bytes = bytes.get(begin..).unwrap_or_default();
    match (from, memchr(b'\n', bytes)) {
        (_, None) if bytes.is_empty() => Grade::Unsure,
        (Peer::Client, Some(end)) if request_line(bytes.get(..end).unwrap_or_default()).is_some() => Grade::Certain,
        (Peer::Client, None) => unfinished_request(bytes),
        (Peer::Server, Some(end)) if status_line(trim_cr(bytes.get(..end).unwrap_or_default())).is_some() => {
            Grade::Certain
        }
        (Peer::Server, None) => {
            let (given, wanted) = (bytes.get(..7).unwrap_or(bytes), b"HTTP/1.");
            match given.eq_ignore_ascii_case(wanted.get(..given.len()).unwrap_or_default()) {
                true if bytes.len() < 13 => Grade::Unsure,
                true if bytes.get(..13).is_some_and(|line| status_line(trim_cr(line)).is_some()) => Grade::Certain,
                _ => Grade::No,
            }
        }
        _ => Grade::No,
    }
}

fn trim_cr(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// Methods that make a line a request even before its version is seen, and even where it is not
/// known whether a line begins: none of them ends as another does.
const METHODS: [&[u8]; 9] = [b"GET", b"POST", b"DELETE", b"OPTIONS", b"HEAD", b"PUT", b"PATCH", b"CONNECT", b"TRACE"];

/// As [`grade`], where the bytes may just as well begin in the middle of a message.
pub(super) fn grade_after_loss(from: Peer, bytes: &[u8]) -> Grade {
    match (from, grade(from, bytes)) {
        (Peer::Client, Grade::Certain) if !METHODS.iter().any(|method| is_of(bytes, method)) => Grade::No,
        (_, grade) => grade,
    }
}

fn is_of(bytes: &[u8], method: &[u8]) -> bool {
    bytes.trim_ascii_start().strip_prefix(method).is_some_and(|rest| rest.starts_with(b" "))
}

fn unfinished_request(bytes: &[u8]) -> Grade {
    let method = memchr(b' ', bytes).and_then(|space| bytes.get(..space));
    match method {
        None if is_method(bytes) => Grade::Unsure,
        Some(method) if is_method(method) => {
            let target = bytes.get(method.len() + 1..).unwrap_or_default();
            // The line's end may be cut in two.
            let plain = !trim_cr(target).iter().any(|byte| byte.is_ascii_control());
            match METHODS.contains(&method) && matches!(target, [b'/' | b'*' | b'h', _, ..]) {
                true if plain => Grade::Certain,
                // Targets with control bytes are no URI, and are seen: the whole line decides.
                _ if bytes.len() < 8192 => Grade::Unsure,
                _ => Grade::No,
            }
        }
        _ => Grade::No,
    }
}

/// How the length of a body is known (RFC 9112 §6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Length {
    /// There is no body.
    None,
    /// `Content-Length`.
    Bytes(u64),
    /// `Transfer-Encoding` ends with chunked.
    Chunked,
    /// Up to the end of the connection.
    UntilClose,
    /// The head contradicts itself.
    Invalid,
}

/// The body length of a request.
pub(super) fn request_length(fields: &Fields) -> Length {
    match transfer_coding(fields) {
        Transfer::Chunked => Length::Chunked,
        // §6.3 (4): the length of such a request cannot be known.
        Transfer::Other => Length::Invalid,
        Transfer::None => match content_length(fields) {
            Ok(None | Some(0)) => Length::None,
            Ok(Some(bytes)) => Length::Bytes(bytes),
            Err(()) => Length::Invalid,
        },
    }
}

/// The body length of a response to `method`.
pub(super) fn response_length(status: u16, method: Option<&str>, fields: &Fields) -> Length {
    // §6.3 (1) and (2).
    if matches!(status, 100..200 | 204 | 304) || method == Some("HEAD") {
        return Length::None;
    }
    match transfer_coding(fields) {
        Transfer::Chunked => Length::Chunked,
        Transfer::Other => Length::UntilClose,
        Transfer::None => match content_length(fields) {
            Ok(Some(0)) => Length::None,
            Ok(Some(bytes)) => Length::Bytes(bytes),
            Ok(None) => Length::UntilClose,
            Err(()) => Length::Invalid,
        },
    }
}

enum Transfer {
    None,
    Chunked,
    Other,
}

fn transfer_coding(fields: &Fields) -> Transfer {
    let codings = values(fields, "transfer-encoding").flat_map(|value| value.split(','));
    let names = codings.map(|coding| coding.split(';').next().unwrap_or_default().trim());
    let last = names.filter(|coding| !coding.is_empty()).last();
    match last {
        None => Transfer::None,
        Some(last) if last.eq_ignore_ascii_case("chunked") => Transfer::Chunked,
        Some(last) if last.eq_ignore_ascii_case("identity") => Transfer::None,
        Some(_) => Transfer::Other,
    }
}

/// Equal repeated values are one (§6.3 (5)); everything else that is no number is an error.
fn content_length(fields: &Fields) -> Result<Option<u64>, ()> {
    let mut length = None;
    for value in values(fields, "content-length").flat_map(|value| value.split(',')).map(str::trim) {
        if value.is_empty() || !value.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(());
        }
        let bytes: u64 = value.parse().map_err(|_| ())?;
        if length.is_some_and(|length| length != bytes) {
            return Err(());
        }
        length = Some(bytes);
    }
    Ok(length)
}

/// Codings of a body in order of application: those of the content, then those of the transfer.
pub(super) fn codings(fields: &Fields) -> impl Iterator<Item = &str> {
    let transfer = values(fields, "transfer-encoding")
        .flat_map(|value| value.split(','))
        .map(str::trim)
        .filter(|coding| !coding.eq_ignore_ascii_case("chunked"));
    values(fields, "content-encoding").chain(transfer)
}

/// All values of a header field.
pub(super) fn values<'a>(fields: &'a Fields, name: &'static str) -> impl Iterator<Item = &'a str> {
    fields.iter().filter(move |(n, _)| &**n == name).map(|(_, value)| &**value)
}

/// Does a field name a token among its values?
pub(super) fn has_token(fields: &Fields, name: &str, token: &str) -> bool {
    header(fields, name).is_some_and(|value| value.split(',').any(|v| v.trim().eq_ignore_ascii_case(token)))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn head(from: Peer, text: &str) -> Option<Head> {
        HeadReader::default().read(from, text.as_bytes())
    }

    fn fields(text: &str) -> Vec<(String, String)> {
        let head = head(Peer::Server, &format!("HTTP/1.1 200 OK\r\n{text}\r\n\r\n")).unwrap();
        head.fields.iter().map(|(n, v)| (n.to_string(), v.to_string())).collect()
    }

    fn own(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect()
    }

    #[test]
    fn the_end_of_a_head() {
        for (text, len) in [("a\r\n\r\nx", Some(5)), ("a\n\nx", Some(3)), ("a\n\r\n", Some(4)), ("a\r\nb\r\n", None)] {
            for from in 0..3 {
                assert_eq!(head_len(text.as_bytes(), from), len, "{text:?}");
            }
        }
    }

    #[test]
    fn start_lines() {
        let request = |text| head(Peer::Client, text).map(|h| h.start);
        let start = |m: &str, t: &str| Some(Start::Request(m.into(), t.into()));
        assert_eq!(request("POST /mcp HTTP/1.1\r\n\r\n"), start("POST", "/mcp"));
        assert_eq!(request("GET http://a/b c HTTP/1.0\n\n"), start("GET", "http://a/b c"));
        assert_eq!(request("get / http/1.1\r\n\r\n"), start("get", "/"));
        assert_eq!(request("GET HTTP/1.1\r\n\r\n"), start("GET", ""));
        for wrong in
            ["GET /\r\n\r\n", "GET / HTTP/2.0\r\n\r\n", "{\"a\": 1} x HTTP/1.1\r\n\r\n", " GET / HTTP/1.1\r\n\r\n"]
        {
            assert_eq!(request(wrong), None, "{wrong:?}");
        }
        let response = |text| head(Peer::Server, text).map(|h| h.start);
        assert_eq!(response("HTTP/1.1 200\r\n\r\n"), Some(Start::Response(200)));
        assert_eq!(response("HTTP/1.0 404 Not Found\n\n"), Some(Start::Response(404)));
        for wrong in ["HTTP/1.1 2000 OK\r\n\r\n", "HTTP/1.1 OK\r\n\r\n", "HTTP/2 200\r\n\r\n", "SSH-2.0-x\r\n\r\n"] {
            assert_eq!(response(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn heads_that_are_cut() {
        let cut =
            |from, text: &str| HeadReader::default().read_cut(from, text.as_bytes()).map(|h| (h.start, h.fields.len()));
        let request = |target: &str, fields| Some((Start::Request("POST".into(), target.into()), fields));
        assert_eq!(cut(Peer::Client, "POST /mcp HTTP/1.1\r\nA: b\r\nHo"), request("/mcp", 1));
        assert_eq!(cut(Peer::Client, "POST /mcp HTTP/1.1\r"), request("/mcp", 0));
        assert_eq!(cut(Peer::Client, "POST /mcp HT"), request("/mcp", 0));
        assert_eq!(cut(Peer::Client, "POST /mc"), request("/mc", 0));
        assert_eq!(cut(Peer::Client, "POST"), None);
        assert_eq!(cut(Peer::Server, "HTTP/1.1 200 O"), Some((Start::Response(200), 0)));
        assert_eq!(cut(Peer::Server, "HTTP/1.1 2"), None);
    }

    #[test]
    fn header_fields() {
        let want = own(&[("content-type", "application/json"), ("x", ""), ("fold", "a b"), ("x", "2")]);
        assert_eq!(fields("CONTENT-Type :  application/json \r\nX:\r\nFold: a\r\n\t b\r\nnonsense\r\nX:2"), want);
        let mut reader = HeadReader::default();
        let mut read = |text: &str| reader.read(Peer::Server, text.as_bytes()).unwrap().fields;
        let (one, two) =
            (read("HTTP/1.1 200 OK\r\nA: 1\r\nB: 2\r\n\r\n"), read("HTTP/1.1 200 OK\r\nA: 1\r\nB: 3\r\n\r\n"));
        assert!(Arc::ptr_eq(&one[0].1, &two[0].1) && Arc::ptr_eq(&one[1].0, &two[1].0));
        assert_eq!(&*two[1].1, "3");
        let shorter = read("HTTP/1.1 200 OK\r\nB: 2\r\n\r\n");
        assert_eq!((shorter.len(), &*shorter[0].0, &*shorter[0].1), (1, "b", "2"));
    }

    #[test]
    fn body_lengths() {
        let of = |text: &str| head(Peer::Server, &format!("HTTP/1.1 200 OK\r\n{text}\r\n\r\n")).unwrap().fields;
        let request = |text: &str| request_length(&of(text));
        assert_eq!(request("A: b"), Length::None);
        assert_eq!(request("Content-Length: 007"), Length::Bytes(7));
        assert_eq!(request("Content-Length: 5, 5\r\nContent-Length: 5"), Length::Bytes(5));
        for wrong in ["-1", "+1", "5, 6", "99999999999999999999999", "", "0x10"] {
            assert_eq!(request(&format!("Content-Length: {wrong}")), Length::Invalid, "{wrong}");
        }
        assert_eq!(request("Content-Length: 5\r\nTransfer-Encoding: chunked"), Length::Chunked);
        assert_eq!(request("Transfer-Encoding:\r\n chunked"), Length::Chunked);
        assert_eq!(request("Transfer-Encoding: chunked, gzip"), Length::Invalid);
        let response = |status, method, text: &str| response_length(status, method, &of(text));
        assert_eq!(response(200, Some("GET"), "Transfer-Encoding: gzip, Chunked"), Length::Chunked);
        assert_eq!(response(200, Some("GET"), "Transfer-Encoding: gzip"), Length::UntilClose);
        assert_eq!(response(200, Some("GET"), "A: b"), Length::UntilClose);
        assert_eq!(response(200, Some("HEAD"), "Content-Length: 5"), Length::None);
        assert_eq!(response(304, Some("GET"), "Content-Length: 5"), Length::None);
        assert_eq!(response(204, None, "Transfer-Encoding: chunked"), Length::None);
    }

    #[test]
    fn grades() {
        let client = |text: &str| grade(Peer::Client, text.as_bytes());
        assert_eq!(client("\r\nPOST /mcp HTTP/1.1\r\nHost"), Grade::Certain);
        assert_eq!(client("POST /mc"), Grade::Certain);
        assert_eq!(client("POST /mcp HTTP/1.1\r"), Grade::Certain);
        for unsure in ["\r\n", "P", "POST", "POST ", "POST /", "BREW /pot"] {
            assert_eq!(client(unsure), Grade::Unsure, "{unsure:?}");
        }
        for no in ["{\"a\"", "\x16\x03\x01", "PRI * HTTP/2.0\r\n\r\n", "SSH-2.0-x\r\n"] {
            assert_eq!(client(no), Grade::No, "{no:?}");
        }
        let server = |text: &str| grade(Peer::Server, text.as_bytes());
        assert_eq!(server("HTTP/1.1 200 OK\r\n"), Grade::Certain);
        assert_eq!(server("HTTP/1.1 200 "), Grade::Certain);
        assert_eq!(server("HTTP/1.1 2"), Grade::Unsure);
        assert_eq!(server("HTTP/2 200"), Grade::No);
        assert_eq!(server("HTTP/1.1 two hundred"), Grade::No);
    }
}
