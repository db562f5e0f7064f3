//! The prefix that a syslog transport puts before a proxy's own line.

use super::time::{self, Civil};

/// What the prefix says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Prefix {
    /// When the message was sent or received.
    pub(super) civil: Civil,
}

/// Splits a line into its syslog prefix and the message: RFC 3164 with and without `<PRI>`,
/// RFC 5424, and rsyslog's and syslog-ng's files with ISO times. None: no such prefix.
pub(super) fn strip(line: &[u8]) -> Option<(Prefix, &[u8])> {
    let (had_priority, rest) = match line.first()? {
        b'<' => {
            let end = memchr::memchr(b'>', line.get(..6).unwrap_or(line))?;
            let digits = line.get(1..end).filter(|d| !d.is_empty() && d.iter().all(u8::is_ascii_digit))?;
            (!digits.is_empty(), line.get(end + 1..)?)
        }
        _ => (false, line),
    };
    // RFC 5424: VERSION TIMESTAMP HOST APP PROCID MSGID SD MSG.
    if had_priority && let Some(after) = rest.strip_prefix(b"1 ") {
        let (civil, len) = time::iso8601(after)?;
        let mut rest = after.get(len..)?.strip_prefix(b" ")?;
        for _ in 0..4 {
            rest = rest.get(memchr::memchr(b' ', rest)? + 1..)?;
        }
        let message = match rest.first()? {
            b'[' => rest.get(memchr::memmem::find(rest, b"] ")? + 2..)?,
            _ => rest.strip_prefix(b"- ")?,
        };
        let message = message.strip_prefix(b"\xef\xbb\xbf").unwrap_or(message);
        return Some((Prefix { civil }, message));
    }
    let (civil, len) = match rest.first()? {
        c if c.is_ascii_alphabetic() => time::syslog(rest)?,
        c if c.is_ascii_digit() => time::iso8601(rest)?,
        _ => return None,
    };
    let mut rest = rest.get(len..)?.strip_prefix(b" ")?;
    // A host (left out by some senders) and `tag[pid]:`.
    for _ in 0..2 {
        let end = memchr::memchr(b' ', rest)?;
        let word = rest.get(..end)?;
        rest = rest.get(end + 1..)?;
        if word.ends_with(b":") {
            return Some((Prefix { civil }, rest.trim_ascii_start()));
        }
        if word.is_empty() || word.iter().any(|c| matches!(c, b'"' | b'[' | b'{' | b'=' | b'/')) {
            return None;
        }
    }
    None
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    #[test]
    fn every_transport_is_taken_off() {
        for line in [
            "<134>Nov 29 19:50:42 edge-1 haproxy[18879]: 127.0.0.1:5 x",
            "Nov 29 19:50:42 edge-1 haproxy[18879]: 127.0.0.1:5 x",
            "<190>Nov  9 19:50:42 nginx: 127.0.0.1:5 x",
            "<134>1 2026-11-29T19:50:42.5Z edge-1 haproxy 18879 - - 127.0.0.1:5 x",
            "<134>1 2026-11-29T19:50:42.5Z edge-1 haproxy 18879 - [a b=\"c\"] 127.0.0.1:5 x",
            "2026-11-29T19:50:42.123456+00:00 edge-1 haproxy[18879]: 127.0.0.1:5 x",
        ] {
            assert_eq!(strip(line.as_bytes()).unwrap_or_else(|| panic!("{line}")).1, b"127.0.0.1:5 x", "{line}");
        }
        for line in [
            "2026-11-29T19:38:38+00:00 127.0.0.1:54550 \"POST /mcp HTTP/1.1\" 200 362",
            "127.0.0.1 - - [29/Nov/2026:19:38:38 +0000] \"GET / HTTP/1.1\" 200 1",
            "<html>",
            "<>Nov 29 19:50:42 a b: c",
            "Nov 29 19:50:42",
        ] {
            assert!(strip(line.as_bytes()).is_none(), "{line}");
        }
    }
}
