//! The Container Runtime Interface's log files: `time stream P|F message` (Kubernetes,
//! pkg/kubelet/kuberuntime/logs; `P` marks a part that goes on in the next line).

use super::app::{Interpreter, Origin};
use super::container::{self, Partial};
use super::{Format, Grade, LineReader, LogContext, Reader, RecordSink};
use crate::model::place::{Place, Vantage};
use crate::model::problem::ProblemKind;
use crate::model::record::When;

/// The format.
pub static FORMAT: Format = Format {
    name: "cri",
    vantage: Vantage::Server,
    carries: true,
    doc: "Log files of containerd and CRI-O (`/var/log/pods/…`): time, stream, `F` or `P`, message. Times are the \
          runtime's to the nanosecond, with a zone. Partial lines are joined. Messages are read as application lines.",
    samples: &[
        "2026-11-29T19:50:39.604364000Z stderr F StreamableHTTP session manager started\n2026-11-29T19:50:39.772448000Z stdout F INFO:     127.0.0.1:38110 - \"POST /mcp HTTP/1.1\" 200 OK",
    ],
    grade: |bytes| grade(bytes),
    reader: Reader::Lines(new),
};

fn grade(bytes: &[u8]) -> Grade {
    container::grade(bytes, |line| parse(line).is_some())
}

struct Line<'a> {
    when: Option<When>,
    stream: u8,
    partial: bool,
    message: &'a [u8],
}

fn parse(line: &[u8]) -> Option<Line<'_>> {
    let mut words = line.splitn(4, |b| *b == b' ');
    let when = container::when(words.next()?);
    let stream = container::stream(std::str::from_utf8(words.next()?).ok()?);
    // tags may follow each other after colons; the first says what matters
    let tag = words.next()?.split(|b| *b == b':').next()?;
    let known = when.is_some() && stream != 0 && matches!(tag, b"F" | b"P");
    known.then(|| Line { when, stream, partial: tag == b"P", message: words.next().unwrap_or_default() })
}

struct Cri {
    interpreter: Interpreter,
    input: u32,
    partial: Partial,
}

/// A reader.
fn new(context: &LogContext<'_>) -> Box<dyn LineReader> {
    Box::new(Cri {
        interpreter: Interpreter::of_containers(context),
        input: context.input,
        partial: Partial::default(),
    })
}

impl LineReader for Cri {
    fn line(&mut self, line: &[u8], number: u64, out: &mut dyn RecordSink) {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() {
            return;
        }
        let place = Place::line(self.input, number);
        let Some(l) = parse(line) else {
            // something else was written into the file; an application's line is still one
            out.problem(ProblemKind::BadLine, place, "no line of a CRI log: time, stream, F or P, message");
            return self.interpreter.entry(line, &Origin::at(place), out);
        };
        let origin = Origin { when: l.when, stream: l.stream, ..Origin::at(place) };
        if l.partial {
            self.partial.part(l.message, &origin, out);
        } else {
            self.partial.last(l.message, &origin, &mut self.interpreter, out);
        }
    }

    fn finish(&mut self, out: &mut dyn RecordSink) {
        self.partial.finish(&mut self.interpreter, out);
        self.interpreter.finish(out);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;
    use crate::input::log::told::{events, read};

    #[test]
    fn parts_are_joined_by_stream() {
        let text = "2026-11-29T19:50:39.1+00:00 stderr P Terminating session: 0073ab\n\
                    2026-11-29T19:50:39.2+00:00 stdout F x\n\
                    2026-11-29T19:50:39.3+00:00 stderr F 4574\n\
                    2026-11-29T19:50:39.3+00:00 stderr P never ended\n\
                    garbage\n";
        let got = read(&FORMAT, text);
        assert_eq!(events(&got), ["SessionEnded 0073ab4574 - - Terminating session: 0073ab4574"]);
        assert_eq!(
            (got.entries.len(), got.count(ProblemKind::BadLine), got.count(ProblemKind::TruncatedRecord)),
            (4, 1, 1)
        );
    }
}
