//! Syslog as it travels: RFC 5424 (`<34>1 time host app procid msgid [data] message`) and RFC 3164
//! with its priority (`<34>Nov 29 14:50:39 host app[pid]: message`). Files without the priority are
//! [`super::journal_short`]'s.

use super::app::{Interpreter, Origin};
use super::journal::{self, TRANSPORT_ERROR_NS};
use super::reading::{self, LocalClock};
use super::{Format, Grade, LineReader, LogContext, Reader, RecordSink, container, journal_short};
use crate::model::place::{Place, Vantage};
use crate::model::problem::ProblemKind;
use crate::model::record::When;

/// The format.
pub static FORMAT: Format = Format {
    name: "syslog",
    vantage: Vantage::Server,
    carries: true,
    doc: "Syslog messages with their priority: RFC 5424 and RFC 3164. RFC 5424 times carry their zone; those of RFC 3164 \
          are local and lack the year: `--tz`, `--year`, else the file's modification and UTC. Messages are read as \
          application lines.",
    samples: &[
        "<34>1 2026-11-29T19:50:39.604364Z h uvicorn 42 - - StreamableHTTP session manager started",
        "<30>1 2026-11-29T14:50:39.604364-05:00 h app 42 ID47 [x@1 a=\"b ] \\\" c\"] \u{feff}Terminating session: 0073ab4574",
        "<30>Nov 29 14:50:39 h uvicorn[42]: StreamableHTTP session manager started",
    ],
    grade: |bytes| grade(bytes),
    reader: Reader::Lines(new),
};

/// The program that a line names.
fn program(line: &[u8]) -> Option<&str> {
    let rest = priority(line)?;
    rfc5424(rest).map(|m| m.app.unwrap_or_default()).or_else(|| journal_short::ident(rest))
}

fn grade(bytes: &[u8]) -> Grade {
    let grade = container::grade(bytes, |line| program(line).is_some());
    // a proxy's log that came through syslog says more to the proxy's own format
    match container::grade(bytes, |line| program(line).is_some_and(journal::is_proxy)) {
        Grade::Certain | Grade::Likely => grade.min(Grade::Unsure),
        _ => grade,
    }
}

/// What follows `<PRI>`, a number up to 191.
fn priority(line: &[u8]) -> Option<&[u8]> {
    // RFC 6587 octet counting: a length before each message
    let counted = line.iter().take_while(|b| b.is_ascii_digit()).count();
    let line = match line.get(counted) {
        Some(b' ') if counted > 0 && counted < 8 => line.get(counted + 1..)?,
        _ => line,
    };
    let rest = line.strip_prefix(b"<")?;
    let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
    let value: u16 =
        std::str::from_utf8(rest.get(..digits).filter(|d| (1..=3).contains(&d.len()))?).ok()?.parse().ok()?;
    rest.get(digits..)?.strip_prefix(b">").filter(|_| value <= 191)
}

struct Message<'a> {
    when: Option<reading::Reading>,
    host: Option<&'a str>,
    app: Option<&'a str>,
    pid: Option<u32>,
    text: &'a [u8],
}

/// RFC 5424 §6 after the priority; `-` is the nil value.
fn rfc5424(rest: &[u8]) -> Option<Message<'_>> {
    let rest = rest.strip_prefix(b"1 ")?;
    let mut at = 0;
    let mut word = || {
        let from = rest.get(at..)?;
        let n = memchr::memchr(b' ', from).unwrap_or(from.len());
        at += n + 1;
        from.get(..n)
    };
    let time = word()?;
    let [host, app, pid, _msgid] = [word()?, word()?, word()?, word()?];
    let text = |w| std::str::from_utf8(w).ok().filter(|w| *w != "-");
    let when = reading::iso(time).map(|r| r.0);
    if when.is_none() && time != b"-" {
        return None;
    }
    let data = rest.get(at.min(rest.len())..)?;
    let message = data.get(structured_data(data)?..).unwrap_or_default();
    let message = message.strip_prefix(b" ").unwrap_or(message);
    Some(Message {
        when,
        host: text(host),
        app: text(app),
        pid: text(pid).and_then(|p| p.parse().ok()),
        text: message.strip_prefix(b"\xef\xbb\xbf").unwrap_or(message),
    })
}

/// Length of the structured data: `-`, or elements in brackets whose values may hold escaped ones.
fn structured_data(s: &[u8]) -> Option<usize> {
    if s.first() != Some(&b'[') {
        return s.starts_with(b"-").then_some(1);
    }
    let (mut quoted, mut escaped) = (false, false);
    for (i, b) in s.iter().enumerate() {
        match b {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b']' if !quoted && s.get(i + 1) != Some(&b'[') => return Some(i + 1),
            _ => {}
        }
    }
    None
}

struct Syslog {
    interpreter: Interpreter,
    clock: LocalClock,
    input: u32,
    /// RFC 3164 and lines without a priority.
    short: Box<dyn LineReader>,
}

/// A reader.
fn new(context: &LogContext<'_>) -> Box<dyn LineReader> {
    Box::new(Syslog {
        interpreter: Interpreter::new(context),
        clock: LocalClock::new(context.options, context.modified_ns),
        input: context.input,
        short: journal_short::new(context),
    })
}

impl LineReader for Syslog {
    fn line(&mut self, line: &[u8], number: u64, out: &mut dyn RecordSink) {
        let rest = priority(line);
        let Some(m) = rest.and_then(rfc5424) else {
            return self.short.line(rest.unwrap_or(line), number, out);
        };
        let place = Place::line(self.input, number);
        let instant = m.when.and_then(|r| self.clock.resolve(&r));
        if instant.is_some_and(|i| i.inferred) {
            out.problem(ProblemKind::InferredTime, place, "a time without a zone: --tz; UTC taken");
        }
        let when = instant.map(|i| When { at: i.when.at, error_ns: i.when.error_ns + TRANSPORT_ERROR_NS });
        let origin = Origin {
            when,
            host: m.host,
            unit: m.app,
            pid: m.pid,
            is_manager: m.app.is_some_and(journal::is_manager),
            ..Origin::at(place)
        };
        self.interpreter.entry(m.text, &origin, out);
    }

    fn finish(&mut self, out: &mut dyn RecordSink) {
        self.short.finish(out);
        self.interpreter.finish(out);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;
    use crate::input::log::told::{events, read_with, whens};
    use crate::model::options::ReadOptions;

    #[test]
    fn both_forms_in_one_file() {
        let options = ReadOptions { year: Some(2026), tz: "America/New_York".parse().ok(), ..ReadOptions::default() };
        let got = read_with(&FORMAT, FORMAT.samples.join("\n"), &options, None);
        assert_eq!(whens(&got), ["2026-11-29T19:50:39.604364Z", "2026-11-29T19:50:39.604364Z", "2026-11-29T19:50:39Z"]);
        assert_eq!(events(&got)[1], "SessionEnded 0073ab4574 - - Terminating session: 0073ab4574");
        assert!(got.problems.is_empty(), "{:?}", got.problems);
        assert!(priority(b"<192>1 x").is_none() && priority(b"<>1").is_none());
    }
}
