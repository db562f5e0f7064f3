//! What one line says in one layout, and a reader that tries the other layouts where a line is
//! not of its own.

use super::app_lines::AppLines;
use super::assemble::Shared;
use super::{Grade, LineReader, LogContext, RecordSink};
use super::{described, syslog_prefix};
use crate::model::options::ReadOptions;
use crate::model::place::{Place, Vantage};
use crate::model::problem::ProblemKind;
use crate::model::record::{AccessRecord, LogEvent, Record, When};

/// What a layout makes of a line.
pub(super) enum Parsed {
    /// An exchange.
    Access(Box<AccessRecord>),
    /// Something that happened.
    Event(Box<LogEvent>),
    /// A line of this layout that says nothing of use; its time, where it has one.
    Quiet(Option<When>),
    /// A line of this layout that is broken: what is wrong.
    Bad(&'static str),
    /// Not a line of this layout.
    No,
}

/// One layout of a line.
pub(super) trait Layout {
    /// What `line` says, without its line end.
    fn parse(&mut self, line: &[u8], place: Place, shared: &mut Shared) -> Parsed;
}

/// Every layout that a stray line may be of; those that nearly any line fits are not among them.
fn strays() -> Vec<Box<dyn Layout>> {
    vec![
        Box::new(super::traefik::TextLog),
        Box::new(super::nginx::Combined),
        Box::new(super::haproxy::HttpLog),
        Box::new(super::nginx_error::ErrorLog),
        Box::new(super::apache_error::ErrorLog),
        Box::new(super::caddy::layout()),
        Box::new(super::traefik::json_layout()),
        Box::new(super::envoy::json_layout()),
        Box::new(super::json_access::layout()),
        Box::new(super::envoy::TextLog::new()),
        Box::new(super::alb::AlbLog),
        Box::new(super::nginx_proxy_manager::ManagerLog::new()),
    ]
}

/// Reads a log whose lines are of one layout, mostly.
pub(super) struct LayoutReader {
    own: Box<dyn Layout>,
    strays: Strays,
    apps: AppLines,
    shared: Shared,
    /// What a line of no known layout is told to be.
    hint: &'static str,
}

impl LayoutReader {
    pub(super) fn boxed(context: &LogContext<'_>, own: Box<dyn Layout>) -> Box<dyn LineReader> {
        Box::new(LayoutReader {
            own,
            strays: Strays::default(),
            apps: AppLines::new(context),
            shared: Shared::new(context, Vantage::Proxy),
            hint: "a line of no layout known here; --log-format STRING describes one",
        })
    }

    /// For a layout that the user described.
    pub(super) fn described(context: &LogContext<'_>, own: Box<dyn Layout>) -> Box<dyn LineReader> {
        Box::new(LayoutReader {
            own,
            strays: Strays::default(),
            apps: AppLines::new(context),
            shared: Shared::new(context, Vantage::Proxy),
            hint: "a line that fits neither the format given by --log-format nor any known one",
        })
    }
}

impl LineReader for LayoutReader {
    fn line(&mut self, line: &[u8], number: u64, out: &mut dyn RecordSink) {
        let line = tidy(line, number);
        if line.is_empty() {
            return;
        }
        if self.shared.spare.is_empty() {
            self.shared.spare = out.spent();
        }
        let place = Place::line(self.shared.input, number);
        let mut parsed = self.own.parse(line, place, &mut self.shared);
        if matches!(parsed, Parsed::No | Parsed::Bad(_)) {
            let unprefixed = syslog_prefix::strip(line);
            if let Some((_, message)) = unprefixed
                && let found @ (Parsed::Access(_) | Parsed::Event(_) | Parsed::Quiet(_)) =
                    self.own.parse(message, place, &mut self.shared)
            {
                parsed = found;
            } else if let Some(found) = self.strays.parse(line, place, &mut self.shared) {
                parsed = found;
            }
        }
        let inferred = self.shared.clock.take_inferred();
        if matches!(parsed, Parsed::No) && self.apps.read(line, place, out) {
            return;
        }
        if let Some(inferred) = inferred {
            out.problem(ProblemKind::InferredTime, place, inferred.text());
        }
        emit(parsed, place, self.hint, out);
    }

    fn finish(&mut self, out: &mut dyn RecordSink) {
        self.apps.finish(out);
    }
}

/// Tells a sink what a line said.
pub(super) fn emit(parsed: Parsed, place: Place, hint: &str, out: &mut dyn RecordSink) {
    match parsed {
        Parsed::Access(record) => {
            out.entry(record.end.or(record.start));
            out.record(Record::Access(record));
        }
        Parsed::Event(event) => {
            out.entry(event.when);
            out.record(Record::Event(event));
        }
        Parsed::Quiet(when) => out.entry(when),
        Parsed::Bad(text) => {
            out.entry(None);
            out.problem(ProblemKind::BadLine, place, text);
        }
        Parsed::No => {
            out.entry(None);
            out.problem(ProblemKind::UnknownLine, place, hint);
        }
    }
}

/// A line without its line end, and without a byte order mark; empty if there is nothing on it.
pub(super) fn tidy(line: &[u8], number: u64) -> &[u8] {
    let line = if number == 1 { line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line) } else { line };
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.trim_ascii().is_empty() { &[] } else { line }
}

/// The other layouts, tried in order, the one that fitted last first.
#[derive(Default)]
pub(super) struct Strays {
    layouts: Vec<Box<dyn Layout>>,
    last: usize,
}

impl Strays {
    pub(super) fn parse(&mut self, line: &[u8], place: Place, shared: &mut Shared) -> Option<Parsed> {
        if self.layouts.is_empty() {
            self.layouts = strays();
        }
        let message = syslog_prefix::strip(line).map(|(_, message)| message);
        for step in 0..=self.layouts.len() {
            // Step 0 is the last that fitted.
            let at = if step == 0 { self.last } else { step - 1 };
            let Some(layout) = self.layouts.get_mut(at) else { continue };
            for text in std::iter::once(line).chain(message) {
                let parsed = layout.parse(text, place, shared);
                if matches!(parsed, Parsed::Access(_) | Parsed::Event(_) | Parsed::Quiet(_)) {
                    self.last = at;
                    return Some(parsed);
                }
            }
        }
        None
    }
}

/// Finds the access and error lines of proxies among the messages of another log (a journal, a
/// container's output, syslog).
pub struct ProxyLines {
    /// The layout that the user described, and whether it was bound to this input.
    described: Option<(Box<dyn Layout>, bool)>,
    strays: Strays,
    shared: Shared,
}

impl ProxyLines {
    /// For the messages of one input.
    pub fn new(context: &LogContext<'_>) -> ProxyLines {
        ProxyLines {
            described: described::layout(context),
            strays: Strays::default(),
            shared: Shared::new(context, Vantage::Proxy),
        }
    }

    /// Did the user say of just this input that its lines are of a layout?
    pub(super) fn is_bound(&self) -> bool {
        self.described.as_ref().is_some_and(|(_, bound)| *bound)
    }

    /// What a message says in the layout that the user described, if it is of that.
    pub(super) fn described(&mut self, message: &[u8], place: Place, out: &mut dyn RecordSink) -> Option<Parsed> {
        let (layout, _) = self.described.as_mut()?;
        let parsed = layout.parse(message.trim_ascii_end(), place, &mut self.shared);
        let inferred = self.shared.clock.take_inferred();
        if !matches!(parsed, Parsed::Access(_) | Parsed::Event(_) | Parsed::Quiet(_)) {
            return None;
        }
        if let Some(inferred) = inferred {
            out.problem(ProblemKind::InferredTime, place, inferred.text());
        }
        Some(parsed)
    }

    /// Is it such a line, whatever it says?
    pub(super) fn knows(&mut self, message: &[u8], place: Place) -> bool {
        let message = message.trim_ascii_end();
        let described = self.described.as_mut().is_some_and(|(layout, _)| {
            !matches!(layout.parse(message, place, &mut self.shared), Parsed::No | Parsed::Bad(_))
        });
        described || self.strays.parse(message, place, &mut self.shared).is_some()
    }

    /// What a message says, if it is such a line; inferred times are told to `out`.
    pub fn read(&mut self, message: &[u8], place: Place, out: &mut dyn RecordSink) -> Option<Record> {
        let parsed = self.strays.parse(message.trim_ascii_end(), place, &mut self.shared);
        if let Some(inferred) = self.shared.clock.take_inferred()
            && parsed.is_some()
        {
            out.problem(ProblemKind::InferredTime, place, inferred.text());
        }
        match parsed? {
            Parsed::Access(record) => Some(Record::Access(record)),
            Parsed::Event(event) => Some(Record::Event(event)),
            _ => None,
        }
    }
}

/// How many of the first lines are of a layout, and how many there are.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Share {
    pub(super) own: usize,
    pub(super) all: usize,
}

impl Share {
    /// `top` where nearly all lines fit, less where fewer do: one odd line does not decide.
    pub(super) fn grade(self, top: Grade) -> Grade {
        match (self.own, self.all) {
            (0, _) => Grade::No,
            (own, all) if own * 10 >= all * 7 => top,
            (own, all) if own * 3 >= all => top.min(Grade::Likely),
            _ => Grade::Unsure,
        }
    }
}

/// Lines looked at to grade an input.
const GRADED_LINES: usize = 128;

/// The whole lines at the beginning of an input, tidied; a last line that may be cut is left out.
pub(super) fn head_lines(head: &[u8]) -> impl Iterator<Item = &[u8]> {
    let whole = match memchr::memrchr(b'\n', head) {
        Some(end) => head.get(..end).unwrap_or(head),
        None => head,
    };
    whole
        .split(|c| *c == b'\n')
        .enumerate()
        .map(|(i, line)| tidy(line, i as u64 + 1))
        .filter(|line| !line.is_empty())
        .take(GRADED_LINES)
}

/// The share of the first lines that a layout reads, also behind a syslog prefix.
pub(super) fn share(head: &[u8], layout: &mut dyn Layout) -> Share {
    let mut share = Share::default();
    with_plain_context(|shared| {
        for line in head_lines(head) {
            share.all += 1;
            let mut fits = |text: &[u8]| {
                matches!(
                    layout.parse(text, Place::line(0, 1), shared),
                    Parsed::Access(_) | Parsed::Event(_) | Parsed::Quiet(_)
                )
            };
            if fits(line) || syslog_prefix::strip(line).is_some_and(|(_, message)| fits(message)) {
                share.own += 1;
            }
        }
    });
    share
}

/// Does a layout read any of the first lines as they stand?
pub(super) fn reads_any(head: &[u8], layout: &mut dyn Layout) -> bool {
    let mut any = false;
    with_plain_context(|shared| {
        any = head_lines(head)
            .any(|line| !matches!(layout.parse(line, Place::line(0, 1), shared), Parsed::No | Parsed::Bad(_)));
    });
    any
}

/// Runs something that parses without an input, to grade.
pub(super) fn with_plain_context(run: impl FnOnce(&mut Shared)) {
    let options = ReadOptions::default();
    let context = LogContext { input: 0, name: "", options: &options, modified_ns: Some(0) };
    run(&mut Shared::new(&context, Vantage::Proxy));
}
