//! `journalctl -o verbose`: a header line with the time and the cursor, then one field a line.

use super::app::{Cursor, Interpreter};
use super::journal::{self, Entry};
use super::reading::LocalClock;
use super::{Format, Grade, LineReader, LogContext, Reader, RecordSink, reading};
use crate::model::limits;
use crate::model::place::{Place, Vantage};
use crate::model::problem::ProblemKind;

/// The format.
pub static FORMAT: Format = Format {
    name: "journal-verbose",
    vantage: Vantage::Server,
    carries: true,
    doc: "`journalctl -o verbose`: every field of an entry, indented below its time and cursor. The time is taken from \
          the cursor, so the zone of the header does not matter. Units, hosts, processes and message ids are known.",
    samples: &[
        "Sun 2026-11-29 20:01:15.730640 UTC [s=bb89e4dd8d5f46c6be51cc3503060834;i=3;b=7bf184193ba148489d1a343eae05349b;m=dd8f3aa9;t=6616fc17d1ed0;x=89acd9b6c0278581]\n    _PID=25705\n    SYSLOG_IDENTIFIER=trailhead-mcp\n    MESSAGE=StreamableHTTP session manager started\n    _HOSTNAME=trail-prod-02",
    ],
    grade,
    reader: Reader::Lines(new),
};

fn grade(bytes: &[u8]) -> Grade {
    let mut lines = journal::whole_lines(bytes).filter(|l| !l.starts_with(b"-- ") && !l.is_empty());
    let Some(first) = lines.next() else { return Grade::No };
    match (cursor(first), lines.next()) {
        (Some(_), Some(field)) if field_of(field).is_some() => Grade::Certain,
        (Some(_), None) => Grade::Likely,
        _ => Grade::No,
    }
}

/// The cursor in a header line: `Sun 2026-11-29 20:01:15.730640 UTC [s=…;…]`.
fn cursor(line: &[u8]) -> Option<&str> {
    if !line.first()?.is_ascii_uppercase() {
        return None;
    }
    let text = std::str::from_utf8(line.trim_ascii_end()).ok()?;
    text.strip_suffix(']')?.split_once(" [s=").and_then(|(head, _)| text.get(head.len() + 2..text.len() - 1))
}

/// Name and value of a field line: exactly four spaces, an upper-case name, `=`.
fn field_of(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let field = line.strip_prefix(b"    ")?;
    let eq = memchr::memchr(b'=', field.get(..80.min(field.len()))?)?;
    let name = field
        .get(..eq)
        .filter(|n| !n.is_empty() && n.iter().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || *b == b'_'))?;
    Some((name, field.get(eq + 1..)?))
}

struct Verbose {
    interpreter: Interpreter,
    clock: LocalClock,
    input: u32,
    entry: Entry,
    number: Option<u64>,
    cursor: String,
    /// The field that is being read, and its value so far.
    name: Vec<u8>,
    value: Vec<u8>,
    /// Column of the value, to which its further lines are indented.
    column: usize,
    over_cap: bool,
}

/// A reader.
fn new(context: &LogContext<'_>) -> Box<dyn LineReader> {
    Box::new(Verbose {
        interpreter: Interpreter::new(context),
        clock: LocalClock::new(context.options, context.modified_ns),
        input: context.input,
        entry: Entry::default(),
        number: None,
        cursor: String::new(),
        name: Vec::new(),
        value: Vec::new(),
        column: 0,
        over_cap: false,
    })
}

impl LineReader for Verbose {
    fn line(&mut self, line: &[u8], number: u64, out: &mut dyn RecordSink) {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if let Some(cursor) = cursor(line) {
            self.flush(out);
            self.number = Some(number);
            self.cursor.push_str(cursor);
            self.set_time(line);
        } else if let Some((name, value)) = field_of(line).filter(|_| self.number.is_some()) {
            self.close_field();
            self.column = line.len() - value.len();
            self.name.extend_from_slice(name);
            self.value.extend_from_slice(value);
        } else if self.number.is_some() && (line.starts_with(b"    ") || line.is_empty()) {
            self.further(line);
        } else if !line.is_empty() && !line.starts_with(b"-- ") {
            out.entry(None);
            out.problem(ProblemKind::UnknownLine, Place::line(self.input, number), "no line of journalctl -o verbose");
        }
    }

    fn finish(&mut self, out: &mut dyn RecordSink) {
        self.flush(out);
        self.interpreter.finish(out);
    }
}

impl Verbose {
    /// The time is `t=` of the cursor, µs in hexadecimal; else that of the header.
    fn set_time(&mut self, line: &[u8]) {
        let us =
            self.cursor.split(';').find_map(|p| p.strip_prefix("t=")).and_then(|t| i64::from_str_radix(t, 16).ok());
        let us = us.or_else(|| {
            let (r, _) = reading::iso(line.get(4..)?)?;
            self.clock.resolve(&r).map(|i| i.when.at.ns() / 1000)
        });
        if let Some(us) = us {
            self.entry.set_realtime(us);
        }
    }

    fn further(&mut self, line: &[u8]) {
        if self.value.len() + line.len() > limits::FIELD_BYTES {
            self.over_cap = true;
            return;
        }
        let indent = line.iter().take_while(|b| **b == b' ').count().min(self.column);
        self.value.push(b'\n');
        self.value.extend_from_slice(line.get(indent..).unwrap_or_default());
    }

    fn close_field(&mut self) {
        if !self.name.is_empty() {
            // the blank line between entries is no part of the value
            self.entry.set(&self.name, self.value.trim_ascii_end());
        }
        self.name.clear();
        self.value.clear();
    }

    fn flush(&mut self, out: &mut dyn RecordSink) {
        self.close_field();
        if let Some(number) = self.number.take() {
            let place = Place::line(self.input, number);
            if std::mem::take(&mut self.over_cap) {
                out.problem(ProblemKind::LimitHit, place, "field-bytes: a journal field was cut");
            }
            self.entry.tell(place, Some(Cursor::Text(&self.cursor)), &mut self.interpreter, out);
        }
        self.entry.clear();
        self.cursor.clear();
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;
    use crate::input::log::told::{events, read, whens};

    #[test]
    fn fields_and_their_further_lines() {
        let text = format!(
            "{}\n\nSun 2026-11-29 15:01:16.000000 EST [s=b;i=4;b=7;m=1;t=6616fc17d1ed0;x=8]\n    MESSAGE=Traceback (most recent call last):\n              File \"x\"\n            ValueError: no\n    _PID=7\n",
            FORMAT.samples[0]
        );
        let got = read(&FORMAT, &text);
        assert_eq!(whens(&got), ["2026-11-29T20:01:15.730640Z"; 2]);
        assert_eq!(
            events(&got),
            [
                "ServerStarted - - - StreamableHTTP session manager started",
                "Error - - - Traceback (most recent call last): ValueError: no"
            ]
        );
        assert_eq!(
            got.events()[0].cursor.as_deref(),
            Some(
                "s=bb89e4dd8d5f46c6be51cc3503060834;i=3;b=7bf184193ba148489d1a343eae05349b;m=dd8f3aa9;t=6616fc17d1ed0;x=89acd9b6c0278581"
            )
        );
        assert!(got.problems.is_empty());
    }
}
