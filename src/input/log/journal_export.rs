//! The journal export format (`journalctl -o export`; systemd, docs/JOURNAL_EXPORT_FORMATS.md):
//! `NAME=value` lines, binary fields as `NAME`, a little-endian length of 64 bits and the bytes,
//! an empty line after each entry.

use super::app::Interpreter;
use super::journal::{self, Entry};
use super::{Format, Grade, LogContext, Reader, RecordSink};
use crate::model::limits;
use crate::model::place::{Place, Vantage};
use crate::model::problem::ProblemKind;
use std::io::{self, BufRead, Read};

/// The format.
pub static FORMAT: Format = Format {
    name: "journal-export",
    vantage: Vantage::Server,
    carries: true,
    doc: "The journal export format, as `journalctl -o export` writes it and systemd-journal-remote sends it. Times \
          are the journal's, UTC to the microsecond. Lines are counted as in the file, binary fields included.",
    samples: &[
        "__CURSOR=s=0f;i=1;b=01;m=2;t=3;x=1\n__REALTIME_TIMESTAMP=1795981839604364\n__MONOTONIC_TIMESTAMP=8999880000\n_HOSTNAME=h\nSYSLOG_IDENTIFIER=uvicorn\n_PID=42\nMESSAGE=StreamableHTTP session manager started\n\n",
    ],
    grade,
    reader: Reader::Bytes(read),
};

fn grade(bytes: &[u8]) -> Grade {
    let head = bytes.get(..bytes.len().min(16 << 10)).unwrap_or_default();
    let mut lines = journal::whole_lines(head).filter(|l| !l.is_empty());
    let starts =
        |l: Option<&[u8]>| l.is_some_and(|l| l.starts_with(b"__CURSOR=") || l.starts_with(b"__REALTIME_TIMESTAMP="));
    match (
        starts(lines.next()),
        memchr::memmem::find(head, b"\n__REALTIME_TIMESTAMP=").is_some() || head.starts_with(b"__REALTIME"),
    ) {
        (true, true) => Grade::Certain,
        (true, false) => Grade::Likely,
        (false, true) if memchr::memmem::find(head, b"\n__CURSOR=").is_some() => Grade::Likely,
        _ => Grade::No,
    }
}

/// Reads a whole export.
fn read(context: &LogContext<'_>, input: &mut dyn BufRead, out: &mut dyn RecordSink) -> io::Result<()> {
    let mut interpreter = Interpreter::new(context);
    let mut state = Export { entry: Entry::default(), number: 1, first: 1, begun: false, line: Vec::new() };
    loop {
        let place = |state: &Export| Place::line(context.input, state.first);
        match state.field(input)? {
            Field::Set => {}
            Field::TooLong => {
                out.problem(ProblemKind::LimitHit, place(&state), "field-bytes: a journal field was passed over")
            }
            Field::Bad => {
                out.problem(ProblemKind::BadJournal, place(&state), "a line that is no field of a journal entry")
            }
            Field::Cut => out.problem(ProblemKind::TruncatedRecord, place(&state), "the export ends inside a field"),
            Field::EndOfEntry | Field::EndOfInput if !state.begun => {}
            Field::EndOfEntry | Field::EndOfInput => {
                state.entry.tell(place(&state), None, &mut interpreter, out);
                state.entry.clear();
                state.begun = false;
            }
        }
        if state.line.is_empty() && state.at_end(input)? {
            break;
        }
    }
    if state.begun {
        state.entry.tell(Place::line(context.input, state.first), None, &mut interpreter, out);
    }
    interpreter.finish(out);
    Ok(())
}

enum Field {
    Set,
    TooLong,
    Bad,
    Cut,
    EndOfEntry,
    EndOfInput,
}

struct Export {
    entry: Entry,
    /// Line about to be read, and the one on which the entry began.
    number: u64,
    first: u64,
    begun: bool,
    line: Vec<u8>,
}

impl Export {
    fn at_end(&self, input: &mut dyn BufRead) -> io::Result<bool> {
        Ok(input.fill_buf()?.is_empty())
    }

    /// Reads one field, or the empty line after an entry.
    fn field(&mut self, input: &mut dyn BufRead) -> io::Result<Field> {
        let whole = self.read_line(input)?;
        let line = std::mem::take(&mut self.line);
        let field = self.take(&line, whole, input);
        self.line = line;
        self.line.clear();
        field
    }

    fn take(&mut self, line: &[u8], whole: bool, input: &mut dyn BufRead) -> io::Result<Field> {
        if line.is_empty() {
            return Ok(if whole { Field::EndOfEntry } else { Field::EndOfInput });
        }
        if !self.begun {
            (self.begun, self.first) = (true, self.number.saturating_sub(1));
        }
        if line.len() > limits::FIELD_BYTES {
            return Ok(Field::TooLong);
        }
        if let Some(eq) = memchr::memchr(b'=', line) {
            let (name, value) = line.split_at(eq);
            if !is_name(name) {
                return Ok(Field::Bad);
            }
            self.entry.set(name, value.get(1..).unwrap_or_default());
            return Ok(if whole { Field::Set } else { Field::Cut });
        }
        if !is_name(line) {
            return Ok(Field::Bad);
        }
        if !whole {
            return Ok(Field::Cut);
        }
        self.binary(line, input)
    }

    fn binary(&mut self, name: &[u8], input: &mut dyn BufRead) -> io::Result<Field> {
        let mut length = [0u8; 8];
        if !fill(input, &mut length)? {
            return Ok(Field::Cut);
        }
        let length = u64::from_le_bytes(length);
        if length > limits::FIELD_BYTES as u64 {
            // a real field of that size, or a length that is none: skip what there is of it
            let skipped = io::copy(&mut input.take(length.saturating_add(1)), &mut io::sink())?;
            return Ok(if skipped > length { Field::TooLong } else { Field::Cut });
        }
        let mut value = Vec::new();
        let got = input.take(length).read_to_end(&mut value)?;
        self.number += memchr::memchr_iter(b'\n', &value).count() as u64;
        self.entry.set(name, &value);
        if (got as u64) < length {
            return Ok(Field::Cut);
        }
        let mut newline = [0u8; 1];
        if !fill(input, &mut newline)? {
            return Ok(Field::Cut);
        }
        self.number += 1;
        Ok(if newline == [b'\n'] { Field::Set } else { Field::Bad })
    }

    /// Reads a line without its end into `line`; `false` where the input ends first. Of a line
    /// longer than the cap one byte more than the cap is kept.
    fn read_line(&mut self, input: &mut dyn BufRead) -> io::Result<bool> {
        loop {
            let buffer = input.fill_buf()?;
            if buffer.is_empty() {
                return Ok(false);
            }
            let end = memchr::memchr(b'\n', buffer);
            let part = buffer.get(..end.unwrap_or(buffer.len())).unwrap_or_default();
            let room = (limits::FIELD_BYTES + 1).saturating_sub(self.line.len());
            self.line.extend_from_slice(part.get(..room.min(part.len())).unwrap_or_default());
            let used = part.len() + usize::from(end.is_some());
            input.consume(used);
            if end.is_some() {
                self.number += 1;
                return Ok(true);
            }
        }
    }
}

fn is_name(name: &[u8]) -> bool {
    (1..=64).contains(&name.len()) && name.iter().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || *b == b'_')
}

fn fill(input: &mut dyn BufRead, buffer: &mut [u8]) -> io::Result<bool> {
    match input.read_exact(buffer) {
        Ok(()) => Ok(true),
        Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(e) => Err(e),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;
    use crate::input::log::told::{events, read, whens};

    fn binary(message: &[u8]) -> Vec<u8> {
        let mut b = b"__CURSOR=s=1\n__REALTIME_TIMESTAMP=1795981839604364\nMESSAGE\n".to_vec();
        b.extend((message.len() as u64).to_le_bytes());
        b.extend(message);
        b.extend(b"\n_PID=42\n\n");
        b
    }

    #[test]
    fn text_and_binary_fields() {
        let mut bytes = FORMAT.samples[0].as_bytes().to_vec();
        bytes.extend(binary(
            b"\x1b[2m2026-11-29T19:49:34Z\x1b[0m INFO create new session \x1b[3msession_id\x1b[0m=\"974c93c5\"\nx",
        ));
        let got = read(&FORMAT, &bytes);
        assert_eq!(whens(&got), ["2026-11-29T19:50:39.604364Z"; 2]);
        assert!(events(&got)[1].starts_with("SessionCreated 974c93c5"));
        assert_eq!(got.events()[1].place.number, 9);
        assert!(got.problems.is_empty());
    }

    #[test]
    fn cut_anywhere_it_is_counted() {
        let whole = [binary(b"one\ntwo"), binary(b"three")].concat();
        for end in 0..whole.len() {
            let got = read(&FORMAT, &whole[..end]);
            assert!(got.entries.len() <= 2);
        }
        let got = read(&FORMAT, &whole[..whole.len() - 20]);
        assert_eq!((got.entries.len(), got.count(ProblemKind::TruncatedRecord)), (2, 1));
    }

    #[test]
    fn a_length_that_is_none() {
        let mut bytes = b"MESSAGE\n".to_vec();
        bytes.extend(u64::MAX.to_le_bytes());
        bytes.extend(b"rest");
        assert_eq!(read(&FORMAT, &bytes).count(ProblemKind::TruncatedRecord), 1);
    }
}
