//! `docker compose logs` and `up`: `web-1  | message`, coloured on terminals, with `-t` a time.

use super::app::{Interpreter, Origin};
use super::{Format, Grade, LineReader, LogContext, Reader, RecordSink, app, kubectl};
use crate::model::place::{Place, Vantage};
use crate::model::problem::ProblemKind;

/// The format.
pub static FORMAT: Format = Format {
    name: "compose",
    vantage: Vantage::Server,
    carries: true,
    doc: "`docker compose logs` (with or without `-t`) and `up`: the container's name, a bar, the line. Without `-t` \
          there is no time but what applications write themselves. `name exited with code N` is a stop of that container. \
          A container that writes access lines and says nothing else is a proxy, whatever its name.",
    samples: &[
        "mcp-1    | INFO:     Started server process [1]\nproxy-1  | starting\nmcp-1    | StreamableHTTP session manager started\nmcp-1 exited with code 137",
        "mcp-1  | 2026-11-29T19:50:39.584725130Z StreamableHTTP session manager started",
    ],
    grade,
    reader: Reader::Lines(new),
};

/// Container and message.
fn split(line: &[u8]) -> Option<(&str, &[u8])> {
    let bar = memchr::memchr(b'|', line.get(..96.min(line.len()))?)?;
    let name = line.get(..bar)?;
    let trimmed = name.trim_ascii_end();
    let named =
        !trimmed.is_empty() && trimmed.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'));
    let named = named && trimmed.first().is_some_and(u8::is_ascii_alphanumeric) && name.ends_with(b" ");
    let rest = line.get(bar + 1..).unwrap_or_default();
    named.then(|| Some((std::str::from_utf8(trimmed).ok()?, rest.strip_prefix(b" ").unwrap_or(rest)))).flatten()
}

fn grade(bytes: &[u8]) -> Grade {
    let (mut own, mut all) = (0u32, 0u32);
    for line in super::journal::whole_lines(bytes).take(200) {
        let line = app::plain(line);
        if !line.is_empty() {
            all += 1;
            own += u32::from(split(&line).is_some());
        }
    }
    match own {
        0 => Grade::No,
        _ if own * 10 >= all * 7 => Grade::Certain,
        _ if own * 2 >= all => Grade::Likely,
        _ => Grade::Unsure,
    }
}

struct Compose {
    interpreter: Interpreter,
    input: u32,
}

/// A reader.
fn new(context: &LogContext<'_>) -> Box<dyn LineReader> {
    Box::new(Compose { interpreter: Interpreter::of_containers(context), input: context.input })
}

impl LineReader for Compose {
    fn line(&mut self, line: &[u8], number: u64, out: &mut dyn RecordSink) {
        let line = app::plain(line);
        if line.is_empty() {
            return;
        }
        let place = Place::line(self.input, number);
        let Some((name, rest)) = split(&line) else {
            // compose's own words between the containers'
            if !self.interpreter.knows(&line, place) && !is_own(&line) {
                out.problem(ProblemKind::UnknownLine, place, "a line without a container's name");
            }
            return self.interpreter.entry(&line, &Origin::at(place), out);
        };
        let origin = Origin { unit: Some(name), ..Origin::at(place) };
        match kubectl::split(rest).filter(|(w, _)| w.at.digits() >= 6) {
            Some((when, message)) => self.interpreter.entry(message, &Origin { when: Some(when), ..origin }, out),
            None => self.interpreter.entry(rest, &origin, out),
        }
    }

    fn finish(&mut self, out: &mut dyn RecordSink) {
        self.interpreter.finish(out);
    }
}

fn is_own(line: &[u8]) -> bool {
    [
        &b"Attaching to "[..],
        b"Gracefully stopping",
        b"Aborting on container exit",
        b" Container ",
        b"[+] ",
        b"Container ",
    ]
    .iter()
    .any(|p| line.starts_with(p))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;
    use crate::input::log::told::{events, read, whens};

    #[test]
    fn containers_are_units() {
        let got = read(&FORMAT, FORMAT.samples[0]);
        assert_eq!(events(&got).len(), 3);
        assert!(events(&got)[2].starts_with("UnitFailed"));
        assert_eq!(got.events()[2].unit.as_deref(), Some("mcp-1"));
        let got = read(
            &FORMAT,
            "\x1b[36mmcp-1  | \x1b[0m2026-11-29T19:50:39.584725130Z StreamableHTTP session manager started\n??\n",
        );
        assert_eq!(whens(&got), ["2026-11-29T19:50:39.584725130Z", "-"]);
        assert_eq!(got.count(ProblemKind::UnknownLine), 1);
    }
}
