//! Ids, `key=value` pairs and durations inside messages.

use crate::model::id::RpcId;
use std::sync::Arc;

/// The session id at the start of `s`: 32 hexadecimal digits, a UUID, or any other token, with
/// its quotes taken off. `None`, `null` and `undefined` are no ids.
pub(super) fn session(s: &str) -> Option<&str> {
    let s = s.trim_start_matches([' ', '\t']);
    let (quoted, s) = match s.as_bytes().first() {
        Some(q @ (b'"' | b'\'' | b'`')) => (Some(*q as char), s.get(1..)?),
        _ => (None, s),
    };
    // a line that was folded without a space may run on: `<32 hex>crashed`
    let run = s.bytes().take_while(|b| b.is_ascii_alphanumeric() || *b == b'-').count();
    for len in [36, 32] {
        let Some(id) = s.get(..len).filter(|id| run >= len && is_id_of(id, len)) else { continue };
        let tail = s.get(len..run).unwrap_or_default();
        if tail.is_empty() || tail.bytes().any(|b| b.is_ascii_lowercase() && b > b'f') {
            return Some(id);
        }
    }
    let end = s.find(|c: char| {
        c.is_whitespace() || c.is_control() || Some(c) == quoted || matches!(c, ',' | ';' | ')' | ']' | '}' | '"')
    });
    let id = s.get(..end.unwrap_or(s.len()))?.trim_end_matches(['.', ':', '\'']);
    let void = ["None", "null", "undefined", "nil", "-", ""].contains(&id);
    // MCP 2025-03-26, Session Management: visible ASCII only (0x21 to 0x7E)
    (!void && id.len() <= 256 && id.bytes().all(|b| (0x21..=0x7e).contains(&b))).then_some(id)
}

fn is_id_of(id: &str, len: usize) -> bool {
    id.bytes().enumerate().all(|(i, b)| match (len, i) {
        (36, 8 | 13 | 18 | 23) => b == b'-',
        _ => b.is_ascii_hexdigit(),
    })
}

/// The JSON-RPC id at the start of `s`: an integer or a quoted string.
pub(super) fn rpc_id(s: &str) -> Option<RpcId> {
    let s = s.trim_start();
    if let Some(inner) = s.strip_prefix(['"', '\'']) {
        let quote = s.chars().next()?;
        return inner.split(quote).next().filter(|i| i.len() <= 256).map(|i| RpcId::Str(Arc::from(i)));
    }
    let end = s.find(|c: char| !c.is_ascii_digit() && c != '-').unwrap_or(s.len());
    let after = s.get(end..)?.chars().next();
    if after.is_some_and(|c| c.is_alphanumeric() || c == '_') {
        return None;
    }
    s.get(..end)?.parse().ok().map(RpcId::Int)
}

/// A name (of a tool, a method) at the start of `s`, without its quotes.
pub(super) fn name(s: &str) -> Option<&str> {
    let s = s.trim_start_matches([' ', '"', '\'', '`']);
    let end = s.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/'))).unwrap_or(s.len());
    s.get(..end).map(|n| n.trim_end_matches('.')).filter(|n| !n.is_empty() && n.len() <= 128)
}

/// The value of the first of `keys` in `key=value` pairs, or `"key": value` members, of `s`.
/// A key begins at the start or after a separator.
pub(super) fn value<'t>(s: &'t str, keys: &[&str]) -> Option<&'t str> {
    memchr::memchr2_iter(b'=', b':', s.as_bytes()).find_map(|at| {
        let before = s.get(..at)?.trim_end_matches('"');
        let key = keys.iter().find(|k| before.ends_with(*k))?;
        let edge = before.len().checked_sub(key.len() + 1);
        let starts = edge.is_none_or(|i| {
            before.as_bytes().get(i).is_some_and(|b| !b.is_ascii_alphanumeric() && *b != b'_' && *b != b'.')
        });
        starts.then(|| s.get(at + 1..)).flatten().map(str::trim_start).filter(|v| !v.is_empty())
    })
}

/// A duration at the start of `s` (`12.3ms`, `0.5s`, `812 ms`, a bare number in `unit_ns`), ns.
pub(super) fn duration(s: &str, unit_ns: f64) -> Option<i64> {
    let s = s.trim_start_matches([' ', '"']);
    let end = s.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(s.len());
    let n: f64 = s.get(..end)?.parse().ok()?;
    let unit = s.get(end..)?.trim_start();
    let letters = unit.find(|c: char| !c.is_alphabetic()).unwrap_or(unit.len());
    let scale = match unit.get(..letters)? {
        "ns" => 1.0,
        "us" | "µs" | "micros" => 1e3,
        "ms" | "msec" | "msecs" | "millis" | "milliseconds" => 1e6,
        "s" | "sec" | "secs" | "seconds" => 1e9,
        "m" | "min" => 60e9,
        _ => unit_ns,
    };
    let ns = n * scale;
    (ns.is_finite() && (0.0..9e18).contains(&ns)).then_some(ns as i64)
}

/// The duration that a message states under one of the usual names, ns.
pub(super) fn stated_duration(s: &str) -> Option<i64> {
    let ms = value(s, &["duration_ms", "ms", "elapsed_ms", "took_ms", "latency_ms", "durationMs", "elapsedMs"]);
    ms.and_then(|v| duration(v, 1e6)).or_else(|| {
        let v = value(s, &["dur", "duration", "elapsed", "took", "latency", "time_taken"])?;
        duration(v, 1e9)
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_every_server() {
        assert_eq!(session("a239b748aa674a05904f99928763bc6bcrashed"), Some("a239b748aa674a05904f99928763bc6b"));
        assert_eq!(
            session("4ee86a91-06c6-406f-9d5a-b07b8f81ed2c, removing"),
            Some("4ee86a91-06c6-406f-9d5a-b07b8f81ed2c")
        );
        assert_eq!(session("\"974c93c5\" x"), Some("974c93c5"));
        assert_eq!(session("deadbeef."), Some("deadbeef"));
        assert_eq!(session("None"), None);
        assert_eq!(session(""), None);
        assert_eq!(rpc_id("7 cancelled"), Some(RpcId::Int(7)));
        assert_eq!(rpc_id("\"a-1\" x"), Some(RpcId::Str("a-1".into())));
        assert_eq!(rpc_id("7abc"), None);
        assert_eq!(value("a=1 id=2 grid=3", &["id"]), Some("2 grid=3"));
        assert_eq!(value("grid=3", &["id"]), None);
        assert_eq!(value("{\"method\": \"tools/call\"}", &["method"]).and_then(name), Some("tools/call"));
        assert_eq!(duration("10.04ms", 1e9), Some(10_040_000));
        assert_eq!(stated_duration("tool=x done ms=501"), Some(501_000_000));
        assert_eq!(stated_duration("dur=1.250s bytes=3"), Some(1_250_000_000));
    }
}
