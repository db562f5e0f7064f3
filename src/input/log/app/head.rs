//! The head of an application's line: the time, level, logger and thread before the message.
//!
//! Layouts differ in order and punctuation, and people make their own; so the head is read token
//! by token and not by layout.

use crate::input::log::reading::{self, Reading};

/// How grave a line says it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::input::log) enum Level {
    /// Warnings and less.
    Low,
    /// Errors and worse.
    Error,
}

/// The level that a word names, in any of the usual spellings (upper or lower case).
pub(in crate::input::log) fn level(word: &[u8]) -> Option<Level> {
    let mut upper = [0u8; 8];
    let upper = upper.get_mut(..word.len())?;
    upper.copy_from_slice(word);
    upper.make_ascii_uppercase();
    Some(match &*upper {
        b"TRACE" | b"DEBUG" | b"INFO" | b"WARN" | b"WARNING" | b"NOTICE" | b"SUCCESS" | b"INF" | b"WRN" | b"DBG"
        | b"DBUG" | b"TRCE" => Level::Low,
        b"ERROR" | b"CRITICAL" | b"FATAL" | b"SEVERE" | b"FAIL" | b"CRIT" | b"ERR" | b"EMERG" | b"PANIC" => {
            Level::Error
        }
        _ => return None,
    })
}

/// A clock reading at the very start of `s`, of any layout but a bare month and day.
fn reading(s: &[u8]) -> Option<(Reading, usize)> {
    if !s.first()?.is_ascii_digit() {
        return None;
    }
    reading::iso(s).or_else(|| reading::us_date(s)).or_else(|| reading::clf(s)).or_else(|| reading::epoch(s)).or_else(
        || {
            let (day_ns, digits, n) = reading::time_of_day(s)?;
            Some((Reading { date: reading::Date::None, day_ns, digits, offset_s: None }, n))
        },
    )
}

/// The reading in a line's head and where it ends: at the start, in brackets, or after a level.
pub(in crate::input::log) fn stamp(line: &[u8]) -> Option<(Reading, usize)> {
    let mut at = 0;
    for _ in 0..3 {
        at += line.get(at..)?.iter().take_while(|b| matches!(b, b' ' | b'\t' | b'[' | b'(' | b'|')).count();
        let rest = line.get(at..)?;
        if let Some((r, n)) = reading(rest).or_else(|| reading::month_day(rest)) {
            let ends = rest.get(n).is_none_or(|b| !b.is_ascii_alphanumeric() && *b != b'.' || *b == b'T');
            return ends.then_some((r, at + n));
        }
        let word = rest.iter().take_while(|b| b.is_ascii_alphabetic()).count();
        level(rest.get(..word)?)?;
        at += word;
        at += line.get(at..)?.iter().take_while(|b| matches!(b, b']' | b':' | b'|' | b'-')).count();
    }
    None
}

/// Is this text, all that comes before a message, nothing but a head? Free prose is none, so
/// that a message quoted in another's argument is not taken for the server's own.
pub(in crate::input::log) fn is_head(prefix: &[u8]) -> bool {
    let (mut at, mut names, mut words, mut tokens) = (0, 0, 0, 0);
    while let Some(rest) = prefix.get(at..).filter(|r| !r.is_empty()) {
        if matches!(rest.first(), Some(b' ' | b'\t')) {
            at += 1;
            continue;
        }
        tokens += 1;
        if tokens > 24 || names > 4 || words > 1 {
            return false;
        }
        if let Some((_, n)) = reading(rest) {
            at += n;
            continue;
        }
        if let Some(n) = bracketed(rest) {
            at += n;
            continue;
        }
        let n = rest.iter().take_while(|b| !matches!(b, b' ' | b'\t')).count();
        let word = rest.get(..n).unwrap_or_default();
        at += n;
        let bare = word.strip_suffix(b":").unwrap_or(word);
        if level(bare).is_some() || bare.iter().all(|b| b.is_ascii_punctuation()) || is_pair(word) {
            continue;
        }
        if bare.iter().all(u8::is_ascii_digit) || is_name(bare) {
            names += 1;
            // loggers have dots and colons; words in a row are prose
            let letters = bare.iter().all(u8::is_ascii_alphabetic);
            words += u32::from(letters && (words > 0 || bare == word));
            continue;
        }
        return false;
    }
    names <= 4 && words <= 1
}

/// A bracketed group at the start: its length with the brackets.
fn bracketed(s: &[u8]) -> Option<usize> {
    let close = match s.first()? {
        b'[' => b']',
        b'(' => b')',
        b'{' => b'}',
        _ => return None,
    };
    memchr::memchr(close, s.get(..96.min(s.len()))?).map(|i| i + 1)
}

/// `key=value`.
fn is_pair(word: &[u8]) -> bool {
    memchr::memchr(b'=', word).is_some_and(|i| i > 0 && word.iter().take(i).all(|b| is_name_byte(*b)))
}

/// A logger, module, thread, host or program name.
fn is_name(word: &[u8]) -> bool {
    !word.is_empty() && word.len() <= 96 && word.iter().all(|b| is_name_byte(*b))
}

fn is_name_byte(b: u8) -> bool {
    b.is_ascii_alphanumeric()
        || matches!(b, b'.' | b'_' | b'-' | b':' | b'/' | b'[' | b']' | b'<' | b'>' | b'$' | b'#' | b'@' | b'|')
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    #[test]
    fn heads_of_many_layouts_and_none_of_prose() {
        for head in [
            "",
            "INFO:     ",
            "2026-11-29 20:01:16,297 INFO mcp.server.streamable_http_manager: ",
            "2026-11-29 20:01:16,297 - mcp.server.streamable_http_manager - INFO - ",
            "2026-11-29 14:50:39.123 | INFO     | mcp.server.x:handle:116 - ",
            "[2026-11-29 19:50:48 +0000] [18949] [INFO] ",
            "2026-11-29T14:50:39.123+01:00  INFO 12345 --- [app] [nio-8080-exec-1] i.m.s.t.HttpServlet   : ",
            "2026-11-29T19:49:34.640130Z  INFO serve_inner: rmcp::service: ",
            "INFO mcp.server.lowlevel.server session=1a2b id=12 ",
            "14:50:39.123 [info] ",
        ] {
            assert!(is_head(head.as_bytes()), "{head}");
        }
        for prose in ["tool=echo start text=the user said: \"", "got, as he wrote: ", "a b c d e f "] {
            assert!(!is_head(prose.as_bytes()), "{prose}");
        }
    }

    #[test]
    fn stamps_are_found_in_the_head_alone() {
        for line in [
            "2026-11-29 14:50:39,123 - x",
            "[2026-11-29 14:50:39 +0000] [1] [INFO] x",
            "INFO 2026-11-29 14:50:39 x",
            "WARN  [2026-11-29 14:50:39,123] org.x: y",
            "[11/29/26 14:50:39] INFO x",
            "[INFO] [2026-11-29T14:50:39.000Z] x",
        ] {
            assert!(stamp(line.as_bytes()).is_some(), "{line}");
        }
        for line in ["started at 2026-11-29 14:50:39", "12345 x", "2026-11-29", ""] {
            assert!(stamp(line.as_bytes()).is_none(), "{line}");
        }
    }
}
