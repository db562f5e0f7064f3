//! Docker's json-file logging driver: `{"log":"…\n","stream":"stdout","time":"…Z"}`.

use super::app::{Interpreter, Origin};
use super::container::{self, Partial};
use super::{Format, Grade, LineReader, LogContext, Reader, RecordSink, reading};
use crate::model::place::{Place, Vantage};
use crate::model::problem::ProblemKind;
use crate::model::record::When;
use std::borrow::Cow;

/// The format.
pub static FORMAT: Format = Format {
    name: "docker-json",
    vantage: Vantage::Server,
    carries: true,
    doc: "Docker's json-file driver (`/var/lib/docker/containers/*/*-json.log`). Times are the daemon's, UTC to the \
          nanosecond. Lines that Docker split at 16 KiB are joined. Messages are read as application lines.",
    samples: &[
        "{\"log\":\"StreamableHTTP session manager started\\n\",\"stream\":\"stderr\",\"time\":\"2026-11-29T19:50:39.604364Z\"}\n{\"log\":\"INFO:     127.0.0.1:38110 - \\\"POST /mcp HTTP/1.1\\\" 200 OK\\n\",\"stream\":\"stdout\",\"time\":\"2026-11-29T19:50:39.772448Z\"}",
    ],
    grade,
    reader: Reader::Lines(new),
};

#[derive(serde::Deserialize)]
struct Line<'a> {
    #[serde(borrow)]
    log: Cow<'a, str>,
    #[serde(borrow, default)]
    stream: Cow<'a, str>,
    #[serde(borrow)]
    time: Cow<'a, str>,
    #[serde(default)]
    attrs: Option<Attrs>,
}

#[derive(serde::Deserialize)]
struct Attrs {
    tag: Option<String>,
    #[serde(rename = "com.docker.compose.service")]
    service: Option<String>,
}

fn grade(bytes: &[u8]) -> Grade {
    container::grade(bytes, |line| {
        serde_json::from_slice::<Line<'_>>(line).is_ok_and(|l| reading::iso(l.time.as_bytes()).is_some())
    })
}

struct Docker {
    interpreter: Interpreter,
    input: u32,
    partial: Partial,
}

/// A reader.
fn new(context: &LogContext<'_>) -> Box<dyn LineReader> {
    Box::new(Docker {
        interpreter: Interpreter::of_containers(context),
        input: context.input,
        partial: Partial::default(),
    })
}

impl LineReader for Docker {
    fn line(&mut self, line: &[u8], number: u64, out: &mut dyn RecordSink) {
        // a daemon that died while it wrote leaves zero bytes
        let line = line.trim_ascii().trim_ascii_start();
        let line = line.strip_prefix(b"\0").map_or(line, |l| l.trim_ascii_start());
        if line.is_empty() {
            return;
        }
        let place = Place::line(self.input, number);
        let Ok(Line { log, stream, time, attrs }) = serde_json::from_slice(line) else {
            // something else was written into the file; an application's line is still one
            out.problem(ProblemKind::BadLine, place, "no line of Docker's json-file driver");
            return self.interpreter.entry(line, &Origin::at(place), out);
        };
        let unit = attrs.and_then(|a| a.service.or(a.tag));
        let when = container::when(time.as_bytes());
        self.part(&log, &stream, when, unit, place, out);
    }

    fn finish(&mut self, out: &mut dyn RecordSink) {
        self.partial.finish(&mut self.interpreter, out);
        self.interpreter.finish(out);
    }
}

impl Docker {
    fn part(
        &mut self,
        log: &str,
        stream: &str,
        when: Option<When>,
        unit: Option<String>,
        place: Place,
        out: &mut dyn RecordSink,
    ) {
        let origin = Origin { when, unit: unit.as_deref(), stream: container::stream(stream), ..Origin::at(place) };
        match log.strip_suffix('\n') {
            Some(last) => self.partial.last(last.as_bytes(), &origin, &mut self.interpreter, out),
            None => self.partial.part(log.as_bytes(), &origin, out),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
mod tests {
    use super::*;
    use crate::input::log::told::{accesses, events, read, whens};

    #[test]
    fn lines_parts_and_garbage() {
        let got = read(&FORMAT, FORMAT.samples[0]);
        assert_eq!(whens(&got)[0], "2026-11-29T19:50:39.604364Z");
        assert_eq!((events(&got).len(), accesses(&got)), (1, vec!["POST /mcp 200 Some(38110)".to_owned()]));
        let text = r#"{"log":"Terminating session: 0073ab","stream":"stderr","time":"2026-11-29T19:50:39Z"}
{"log":"between\n","stream":"stdout","time":"2026-11-29T19:50:39Z"}
{"log":"4574\n","stream":"stderr","time":"2026-11-29T19:50:39.1Z"}
{"log":
"#;
        let got = read(&FORMAT, text);
        assert_eq!(events(&got), ["SessionEnded 0073ab4574 - - Terminating session: 0073ab4574"]);
        assert_eq!((got.entries.len(), got.count(ProblemKind::BadLine)), (3, 1));
    }
}
