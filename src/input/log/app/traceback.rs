//! Tracebacks and error lines.

use super::mcp_messages::plain;
use super::phrase::{Anchor, Meaning, Phrase};
use crate::model::record::LogEventKind as K;

/// The phrases.
pub(super) static PHRASES: &[Phrase] = &[
    Phrase::anywhere("Traceback (most recent call last)", K::Error, plain),
    Phrase::start("panicked at ", K::Error, plain),
    Phrase::anywhere("' panicked at ", K::Error, plain),
    Phrase::start("Unhandled exception", K::Error, plain),
    Phrase::start("Unhandled Exception", K::Error, plain),
    Phrase::start("UnhandledPromiseRejection", K::Error, plain),
    Phrase::start("Uncaught ", K::Error, plain),
    Phrase::start("Segmentation fault", K::Error, plain),
    Phrase { text: "ERROR", anchor: Anchor::Start, meaning: Meaning::ErrorLevel },
    Phrase { text: "CRITICAL", anchor: Anchor::Start, meaning: Meaning::ErrorLevel },
    Phrase { text: "FATAL", anchor: Anchor::Start, meaning: Meaning::ErrorLevel },
    Phrase { text: "SEVERE", anchor: Anchor::Start, meaning: Meaning::ErrorLevel },
    Phrase { text: "level=error", anchor: Anchor::Start, meaning: Meaning::ErrorLevel },
    Phrase { text: "[error]", anchor: Anchor::Start, meaning: Meaning::ErrorLevel },
    Phrase { text: "fail: ", anchor: Anchor::Start, meaning: Meaning::ErrorLevel },
    Phrase { text: "crit: ", anchor: Anchor::Start, meaning: Meaning::ErrorLevel },
];

/// A Python traceback whose lines come as entries of their own.
#[derive(Debug, Default)]
pub(super) struct Open {
    lines: usize,
}

/// What a line is to an open traceback.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// Inside it.
    Frame,
    /// The exception that ends it.
    Exception,
    /// None of it: it was written in between, or the traceback's end was lost.
    Foreign,
}

/// Lines after which a traceback counts as ended without its exception.
const MAX_LINES: usize = 2000;

impl Open {
    /// Takes one more line.
    pub fn part(&mut self, line: &[u8]) -> Part {
        self.lines += 1;
        if self.lines > MAX_LINES {
            return Part::Exception;
        }
        match line.first() {
            None | Some(b' ' | b'\t') => Part::Frame,
            _ if is_exception(line) => Part::Exception,
            _ => Part::Foreign,
        }
    }
}

/// `anyio.ClosedResourceError`, `ValueError: no such park`.
fn is_exception(line: &[u8]) -> bool {
    let n = line.iter().take_while(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_')).count();
    let name = line.get(..n).unwrap_or_default();
    let last = name.rsplit(|b| *b == b'.').next().unwrap_or_default();
    let named = last.first().is_some_and(u8::is_ascii_uppercase) && last.iter().any(u8::is_ascii_lowercase);
    named && matches!(line.get(n), None | Some(b':'))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;

    #[test]
    fn frames_exceptions_and_what_was_written_between() {
        let mut open = Open::default();
        assert_eq!(open.part(b"  File \"x.py\", line 3, in f"), Part::Frame);
        assert_eq!(open.part(b"INFO:     127.0.0.1:1 - \"POST /mcp HTTP/1.1\" 200 OK"), Part::Foreign);
        assert_eq!(open.part(b"anyio.ClosedResourceError"), Part::Exception);
        assert_eq!(open.part(b"ValueError: x"), Part::Exception);
    }
}
