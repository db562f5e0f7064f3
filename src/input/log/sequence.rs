//! Sequences that people condense by hand: `17:19:52  POST /mcp -> 404  stale session`, one line
//! a request, alone or inside the Markdown of an issue.

use super::app_lines::AppLines;
use super::assemble::Shared;
use super::condensed::{self, Line};
use super::layout::{self, Parsed, Strays};
use super::{Format, Grade, LineReader, LogContext, Reader, RecordSink};
use crate::model::place::{Place, Vantage};
use crate::model::problem::ProblemKind;
use std::borrow::Cow;

/// The format.
pub(super) static FORMAT: Format = Format {
    name: "sequence",
    vantage: Vantage::Proxy,
    carries: false,
    doc: "Requests as people condense them for a report: `17:19:52  POST /mcp -> 404  comment`, with or without date, \
          arrow, repetition (`x3`), session id, duration or bytes; also in lists, tables, quotes and code fences of a \
          Markdown text, whose prose is passed over. Times are taken for the start of the request, to what was \
          written; a day is taken from a date named before, else from the file, else it is not known and 1970-01-01 \
          stands for it. A time of day that falls back by hours begins the next day. Access-log lines of known \
          layouts among them are read as such.",
    samples: &[
        "17:19:52  POST /mcp -> 404   stale session id\n17:19:52  POST /mcp -> 404  x3\n17:20:05  POST /mcp -> 200  initialize\n",
        "### What the proxy saw on 2026-07-19\n\nThe window, from the access log:\n\n```\n17:19:52  POST /mcp → 404   (old session)\n\
         17:20:05.2  POST /mcp → 200  initialize\n17:20:05.3  POST /mcp → 202\n```\n",
        "| time | request | status |\n|---|---|---|\n| 17:19:52 | `POST /mcp` | 404 |\n| 17:20:05 | `POST /mcp` | 200 |\n",
    ],
    grade,
    reader: Reader::Lines(|context| Box::new(SequenceReader::new(context))),
};

fn grade(head: &[u8]) -> Grade {
    let (mut strong, mut weak, mut all) = (0, 0, 0);
    let mut fences = Fences::default();
    for line in head.split(|c| *c == b'\n') {
        let line = layout::tidy(line, 1);
        if line.is_empty() || fences.is_fence(line) {
            continue;
        }
        all += 1;
        match condensed::read(&as_shown(line), fences.open) {
            Line::Request(request) if request.has_arrow && request.time.is_some() => strong += 1,
            Line::Request(_) => weak += 1,
            Line::Text | Line::Timed => {}
        }
    }
    match (strong, weak) {
        (2.., _) => Grade::Likely,
        (1, _) if all <= 3 => Grade::Likely,
        (s, w) if s + w >= 2 && (s + w) * 10 >= all * 4 => Grade::Likely,
        (0, 0) => Grade::No,
        _ => Grade::Unsure,
    }
}

/// A line as a reader of the page sees it: copied from a page's source, or through an editor that escapes,
/// an arrow is `-&gt;` or `-\>`.
fn as_shown(line: &[u8]) -> Cow<'_, [u8]> {
    const SHOWN: [(&str, &str); 9] = [
        ("&gt;", ">"),
        ("&lt;", "<"),
        ("&quot;", "\""),
        ("&#39;", "'"),
        ("&nbsp;", " "),
        ("&rarr;", "→"),
        ("&times;", "×"),
        ("\\>", ">"),
        ("&amp;", "&"),
    ];
    match std::str::from_utf8(line) {
        Ok(text) if memchr::memchr2(b'&', b'\\', line).is_some() => {
            let shown = SHOWN.iter().fold(text.to_owned(), |text, (written, shown)| text.replace(written, shown));
            Cow::Owned(shown.into_bytes())
        }
        _ => Cow::Borrowed(line),
    }
}

/// Markdown's code fences.
#[derive(Default)]
struct Fences {
    open: bool,
}

impl Fences {
    fn is_fence(&mut self, line: &[u8]) -> bool {
        let text = line.trim_ascii_start();
        let text = text.strip_prefix(b">").unwrap_or(text).trim_ascii_start();
        let fence = text.starts_with(b"```") || text.starts_with(b"~~~");
        self.open ^= fence;
        fence
    }
}

struct SequenceReader {
    shared: Shared,
    strays: Strays,
    apps: AppLines,
    fences: Fences,
}

impl SequenceReader {
    fn new(context: &LogContext<'_>) -> SequenceReader {
        SequenceReader {
            shared: Shared::new(context, Vantage::Proxy),
            strays: Strays::default(),
            apps: AppLines::new(context),
            fences: Fences::default(),
        }
    }
}

impl LineReader for SequenceReader {
    fn line(&mut self, line: &[u8], number: u64, out: &mut dyn RecordSink) {
        let line = layout::tidy(line, number);
        if line.is_empty() || self.fences.is_fence(line) {
            return;
        }
        let place = Place::line(self.shared.input, number);
        let shown = as_shown(line);
        let read = condensed::read(&shown, self.fences.open);
        let parsed = match read {
            Line::Request(request) => {
                if request.time.is_none() {
                    out.problem(ProblemKind::NoTime, place, "a line without any time: only its order is known");
                }
                request.into_record(place, &mut self.shared)
            }
            Line::Text | Line::Timed => match self.strays.parse(line, place, &mut self.shared) {
                Some(parsed) => parsed,
                None if self.apps.read(line, place, out) => return,
                None => {
                    condensed::dates_in(line, &mut self.shared.clock);
                    // Prose is no record; what stands in a fence or begins with a time should be.
                    if matches!(read, Line::Text) && !self.fences.open {
                        return;
                    }
                    Parsed::No
                }
            },
        };
        if let Some(inferred) = self.shared.clock.take_inferred() {
            out.problem(ProblemKind::InferredTime, place, inferred.text());
        }
        layout::emit(parsed, place, "a line in a code block, or with a time, that is of no known layout", out);
    }

    fn finish(&mut self, out: &mut dyn RecordSink) {
        self.apps.finish(out);
    }
}
