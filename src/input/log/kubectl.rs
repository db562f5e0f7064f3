//! `kubectl logs --timestamps` and `docker logs -t`: a runtime's time before each line, and
//! `[pod/…/container] ` before that with `--prefix`.

use super::app::{Interpreter, Origin};
use super::{Format, Grade, LineReader, LogContext, Reader, RecordSink, container};
use crate::model::place::{Place, Vantage};
use crate::model::problem::ProblemKind;
use crate::model::record::When;

/// The format.
pub static FORMAT: Format = Format {
    name: "container-timestamps",
    vantage: Vantage::Server,
    carries: true,
    doc: "`docker logs -t` and `kubectl logs --timestamps` (also with `--prefix`): an RFC 3339 time with nanoseconds \
          before each line. Times are the runtime's. Messages are read as application lines.",
    samples: &[
        "2026-11-29T19:50:39.604364000Z StreamableHTTP session manager started\n2026-11-29T19:50:39.772448000Z INFO:     127.0.0.1:38110 - \"POST /mcp HTTP/1.1\" 200 OK",
    ],
    grade,
    reader: Reader::Lines(new),
};

/// Time with nanoseconds (runtimes write all nine digits, or as many as are not zero), message.
pub(super) fn split(line: &[u8]) -> Option<(When, &[u8])> {
    let end = memchr::memchr(b' ', line.get(..48.min(line.len()))?).unwrap_or(line.len());
    let time = line.get(..end).filter(|_| end <= 36)?;
    let when = container::when(time).filter(|_| time.get(10) == Some(&b'T'))?;
    Some((when, line.get(end + 1..).unwrap_or_default()))
}

/// `[pod/name/container] `.
fn prefix(line: &[u8]) -> (Option<&str>, &[u8]) {
    let named = line.strip_prefix(b"[pod/").and_then(|_| {
        let end = memchr::memchr(b']', line.get(..512.min(line.len()))?)?;
        let unit = std::str::from_utf8(line.get(5..end)?).ok()?;
        Some((Some(unit), line.get(end + 2..)?))
    });
    named.unwrap_or((None, line))
}

fn grade(bytes: &[u8]) -> Grade {
    let stamped = |nano: bool| {
        container::grade(bytes, |line| {
            let (unit, rest) = prefix(line);
            split(rest).is_some_and(|(w, message)| {
                // Rust's tracing and other applications write such times, too, and then a level
                let level = message.split(|b| *b == b' ').find(|w| !w.is_empty());
                let level = level.is_some_and(super::app::is_level);
                unit.is_some() || (!nano || w.at.digits() == 9) && !level
            })
        })
    };
    match stamped(true) {
        Grade::Certain => Grade::Certain,
        _ => stamped(false).min(Grade::Unsure),
    }
}

struct Kubectl {
    interpreter: Interpreter,
    input: u32,
    entries: u64,
}

/// A reader.
fn new(context: &LogContext<'_>) -> Box<dyn LineReader> {
    Box::new(Kubectl { interpreter: Interpreter::of_containers(context), input: context.input, entries: 0 })
}

impl LineReader for Kubectl {
    fn line(&mut self, line: &[u8], number: u64, out: &mut dyn RecordSink) {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() {
            return;
        }
        let place = Place::line(self.input, number);
        let (unit, rest) = prefix(line);
        let origin = Origin { unit, ..Origin::at(place) };
        self.entries += 1;
        match split(rest) {
            Some((when, message)) => self.interpreter.entry(message, &Origin { when: Some(when), ..origin }, out),
            None => {
                out.problem(ProblemKind::BadLine, place, "a line without the runtime's time");
                self.interpreter.entry(rest, &origin, out);
            }
        }
    }

    fn finish(&mut self, out: &mut dyn RecordSink) {
        self.interpreter.finish(out);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;
    use crate::input::log::told::{events, read, whens};

    #[test]
    fn with_and_without_prefix() {
        let got =
            read(&FORMAT, "[pod/mcp-0/app] 2026-11-29T19:50:39.604364000Z StreamableHTTP session manager started\nx\n");
        assert_eq!(events(&got), ["ServerStarted - - - StreamableHTTP session manager started"]);
        assert_eq!(got.events()[0].unit.as_deref(), Some("mcp-0/app"));
        assert_eq!(whens(&got), ["2026-11-29T19:50:39.604364000Z", "-"]);
        assert_eq!(got.count(ProblemKind::BadLine), 1);
        assert_eq!(grade(b"2026-11-29T19:49:34.640130Z  INFO x::y: z\n"), Grade::No);
    }
}
