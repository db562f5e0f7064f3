//! JSON-RPC 2.0 messages as MCP carries them: one a body or event, or a batch of them
//! (allowed in revision 2025-03-26 only).

use super::scan::{self, Cursor};
use crate::model::id::RpcId;
use crate::model::limits::BATCH;
use std::sync::Arc;

/// What kind of message it is (JSON-RPC 2.0 §4, §5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Has `method` and an `id` member (even a null one).
    Request,
    /// Has `method` and no `id`.
    Notification,
    /// Has `result`.
    Result,
    /// Has `error`.
    Error,
}

/// One message with the exact bytes of its parts.
#[derive(Clone, Debug)]
pub struct Message<'a> {
    /// Exact bytes of the whole message.
    pub raw: &'a [u8],
    /// What it is.
    pub kind: Kind,
    /// Its id; none where the member is missing.
    pub id: Option<RpcId>,
    /// Its method.
    pub method: Option<Arc<str>>,
    /// Exact bytes of `params`.
    pub params: Option<&'a [u8]>,
    /// Exact bytes of `result`.
    pub result: Option<&'a [u8]>,
    /// Exact bytes of `error`.
    pub error: Option<&'a [u8]>,
    /// What a `result` that is an object says of itself.
    pub inside: Inside<'a>,
}

/// Members of a `result` that say what it is, found on the way to its end.
#[derive(Clone, Copy, Debug, Default)]
pub struct Inside<'a> {
    /// `isError` is true (server/tools "Error Handling").
    pub is_error: bool,
    /// A task (2025-11-25) or a request for more input (2026-07-28): a complete reply that does not yet
    /// hold what the tool returns.
    pub interim: bool,
    /// Exact bytes of `structuredContent`.
    pub structured: Option<&'a [u8]>,
}

/// What a payload is.
#[derive(Clone, Debug)]
pub enum Payload<'a> {
    /// One message.
    One(Message<'a>),
    /// A batch; elements that are no messages are left out, and counted in the second place.
    Batch(Vec<Message<'a>>, usize),
    /// JSON, but no JSON-RPC.
    Other,
    /// No (whole) JSON.
    Invalid,
}

/// Reads one payload: a POST body, a JSON response body, or one SSE event's data.
pub fn parse(data: &[u8]) -> Payload<'_> {
    let data = trim(data);
    match data.first() {
        Some(b'{') => match fields(data) {
            None => Payload::Invalid,
            Some(f) => message(data, f).map_or(Payload::Other, Payload::One),
        },
        Some(b'[') => {
            let (mut out, mut odd) = (vec![], 0);
            let whole = scan::elements(data, |e| match fields(e).and_then(|f| message(e, f)) {
                Some(m) if out.len() < BATCH => out.push(m),
                _ => odd += 1,
            });
            match (whole, out.is_empty()) {
                (false, _) => Payload::Invalid,
                (true, true) => Payload::Other,
                (true, false) => Payload::Batch(out, odd),
            }
        }
        Some(b'"' | b'-' | b'0'..=b'9') => Payload::Other,
        _ if matches!(data, b"null" | b"true" | b"false") => Payload::Other,
        _ => Payload::Invalid,
    }
}

fn trim(data: &[u8]) -> &[u8] {
    // A byte order mark is no JSON, and some writers send one (RFC 8259 §8.1 lets a reader ignore it).
    data.strip_prefix(b"\xef\xbb\xbf").unwrap_or(data).trim_ascii()
}

#[derive(Default)]
struct Fields<'a> {
    is_rpc: bool,
    id: Option<&'a [u8]>,
    method: Option<&'a [u8]>,
    params: Option<&'a [u8]>,
    result: Option<&'a [u8]>,
    error: Option<&'a [u8]>,
    inside: Inside<'a>,
}

fn fields(data: &[u8]) -> Option<Fields<'_>> {
    let mut f = Fields::default();
    let mut c = Cursor::new(data);
    // Results are most of what is captured: their members are looked at on the way to their end.
    scan::walk_object(&mut c, &mut |c, key| {
        if key == b"result" && c.peek() == Some(b'{') {
            f.inside = Inside::default();
            f.result = Some(c.passed(|c| scan::walk_object(c, &mut |c, key| f.inside.member(key, c.value()?)))?);
            return Some(());
        }
        let value = c.value()?;
        match key {
            b"jsonrpc" => f.is_rpc = true,
            b"id" => f.id = Some(value),
            b"method" => f.method = Some(value),
            b"params" => f.params = Some(value),
            b"result" => (f.result, f.inside) = (Some(value), Inside::default()),
            b"error" => f.error = Some(value),
            _ => {}
        }
        Some(())
    })?;
    c.at_end().then_some(f)
}

impl<'a> Inside<'a> {
    fn member(&mut self, key: &[u8], value: &'a [u8]) -> Option<()> {
        match key {
            b"isError" => self.is_error = value == b"true",
            b"task" => self.interim = true,
            b"resultType" => self.interim |= value == b"\"input_required\"",
            b"structuredContent" => self.structured = Some(value),
            _ => {}
        }
        Some(())
    }
}

fn message<'a>(raw: &'a [u8], f: Fields<'a>) -> Option<Message<'a>> {
    let method = f.method.and_then(scan::text);
    let kind = match (&method, f.id, f.result, f.error) {
        (Some(_), Some(_), _, _) => Kind::Request,
        (Some(_), None, _, _) => Kind::Notification,
        // `"error": null` beside a result is JSON-RPC 1.0's way to say that there was none.
        (None, _, Some(_), None | Some(b"null")) => Kind::Result,
        (None, _, _, Some(_)) => Kind::Error,
        (None, _, None, None) => return None,
    };
    // Some servers leave "jsonrpc" out of errors; without it a lone method is not enough.
    if !f.is_rpc && f.id.is_none() {
        return None;
    }
    Some(Message {
        raw,
        kind,
        id: f.id.map(id),
        method: method.map(|m| Arc::from(&*m)),
        params: f.params,
        result: f.result,
        error: f.error,
        inside: f.inside,
    })
}

/// An id from its exact JSON text.
pub fn id(value: &[u8]) -> RpcId {
    if value == b"null" {
        return RpcId::Null;
    }
    if let Some(s) = scan::text(value) {
        return RpcId::Str(Arc::from(&*s));
    }
    let text = String::from_utf8_lossy(value);
    match text.parse::<i64>() {
        Ok(n) if is_plain(value) => RpcId::Int(n),
        _ => RpcId::Other(Arc::from(&*text)),
    }
}

/// `-0`, `+1` and `007` are other texts of integers; they stay what they are.
fn is_plain(number: &[u8]) -> bool {
    matches!(number, b"0" | [b'-', b'1'..=b'9', ..] | [b'1'..=b'9', ..])
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests {
    use super::*;

    fn one(text: &str) -> Message<'_> {
        match parse(text.as_bytes()) {
            Payload::One(m) => m,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn kinds() {
        assert_eq!(one(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#).kind, Kind::Request);
        assert_eq!(one(r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#).kind, Kind::Request);
        assert_eq!(one(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).kind, Kind::Notification);
        assert_eq!(one(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#).kind, Kind::Result);
        assert_eq!(one(r#"{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600}}"#).kind, Kind::Error);
    }

    #[test]
    fn ids_keep_their_type() {
        let id = |t: &str| super::id(t.as_bytes());
        assert_eq!(id("7"), RpcId::Int(7));
        assert_eq!(id("\"7\""), RpcId::Str("7".into()));
        assert_eq!(id("1.5"), RpcId::Other("1.5".into()));
        assert_eq!(id("92233720368547758070"), RpcId::Other("92233720368547758070".into()));
        assert_eq!(id("null"), RpcId::Null);
        assert_eq!(id(r#""a\u0041""#), RpcId::Str("aA".into()));
        assert_eq!(id("7").loose(), id("\"7\"").loose());
    }

    #[test]
    fn a_batch_gives_exact_elements() {
        let text = br#"[ {"jsonrpc":"2.0","id":1,"method":"a"} , 5, {"jsonrpc":"2.0","method":"b"}]"#;
        let Payload::Batch(m, odd) = parse(text) else { panic!() };
        assert_eq!((m.len(), odd), (2, 1));
        assert_eq!(m[0].raw, br#"{"jsonrpc":"2.0","id":1,"method":"a"}"#);
    }

    #[test]
    fn what_is_no_message() {
        assert!(matches!(parse(br#"{"a":1}"#), Payload::Other));
        assert!(matches!(parse(br#"{"method":"POST"}"#), Payload::Other));
        assert!(matches!(parse(b"[]"), Payload::Other));
        assert!(matches!(parse(br#"{"jsonrpc":"2.0","id":1,"met"#), Payload::Invalid));
        assert!(matches!(parse(b"Not Found"), Payload::Invalid));
        assert!(matches!(parse(b""), Payload::Invalid));
    }
}
