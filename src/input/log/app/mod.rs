//! What applications say in their lines, wherever the lines come from: a journal, a container's
//! log or a file. Readers of those hand each message to one [`Interpreter`].
//!
//! A phrase counts only where the application itself would have put it: at the start of the
//! message, after nothing but a head ([`head`]). What a tool's argument quotes is not the server's.

mod access;
mod ansi;
mod emit;
mod fields;
mod fold;
mod gunicorn;
pub(super) mod head;
mod json_lines;
mod layout;
mod mcp_messages;
mod node;
mod phrase;
mod proxied;
mod reader;
mod systemd;
#[cfg(test)]
mod tests;
mod tools;
mod traceback;
mod uvicorn;
mod writers;

pub(super) use ansi::plain;
pub use emit::{Cursor, Origin};
pub use gunicorn::FORMAT as GUNICORN;
pub use json_lines::FORMAT as JSON_LINES;
pub use layout::{APPLICATION, DOTNET, ELIXIR, LOGBACK, LOGFMT, LOGURU, PYTHON, RICH, TRACING};
pub use node::{CONSOLE as NODE_CONSOLE, MORGAN};
pub use uvicorn::FORMAT as UVICORN;

use super::layout::ProxyLines;
use super::reading::{self, LocalClock};
use super::{LogContext, RecordSink, journal};
use crate::model::limits;
use crate::model::place::Place;
use crate::model::problem::ProblemKind;
use crate::model::record::{LogEventKind, When};
use emit::{Emitter, Held};
use fold::Fold;
use phrase::{Anchor, Meaning, PHRASES, Said};
use std::borrow::Cow;
use writers::{Asked, Writers};

/// Resolution from which a container's time is finer than what an application writes, ns.
const COARSE_NS: i64 = 400_000_000;
/// Lines of others after which a folded message counts as whole.
const FOLD_PATIENCE: u8 = 8;

/// One writer of lines: a process, or one of its streams.
#[derive(Debug, Default)]
struct Stream {
    key: u64,
    fold: Option<(Fold, Held)>,
    patience: u8,
    trace: Option<(traceback::Open, Held)>,
    /// The time that Rich wrote last, for lines whose unchanged time is blank.
    rich_when: Option<When>,
}

impl Stream {
    fn is_idle(&self) -> bool {
        self.fold.is_none() && self.trace.is_none() && self.rich_when.is_none()
    }
}

/// Interprets the messages of one input, in order.
pub struct Interpreter {
    clock: LocalClock,
    emitter: Emitter,
    streams: Vec<Stream>,
    proxies: ProxyLines,
    writers: Writers,
}

impl Interpreter {
    /// For a file of an application's, or a journal of named programs.
    pub fn new(context: &LogContext<'_>) -> Interpreter {
        Interpreter::with(context, Asked::Nobody)
    }

    /// For a log whose names say nothing of what the containers run.
    pub fn of_containers(context: &LogContext<'_>) -> Interpreter {
        Interpreter::with(context, Asked::All)
    }

    /// For a log of named programs with lines from elsewhere in it.
    pub fn with_strays(context: &LogContext<'_>) -> Interpreter {
        Interpreter::with(context, Asked::Nameless)
    }

    fn with(context: &LogContext<'_>, asked: Asked) -> Interpreter {
        let emitter = Emitter::new(context);
        Interpreter {
            clock: LocalClock::new(context.options, context.modified_ns),
            streams: Vec::new(),
            proxies: ProxyLines::new(context),
            writers: Writers::new(if emitter.is_told { Asked::Nobody } else { asked }),
            emitter,
        }
    }

    /// One entry of a journal, container log or file: counts it, and tells what it says. Lines
    /// after the first are read as its continuation.
    pub fn entry(&mut self, message: &[u8], origin: &Origin<'_>, out: &mut dyn RecordSink) {
        let mut lines = message.split(|b| *b == b'\n');
        let first = plain(lines.next().unwrap_or_default());
        let first = utf8(&first);
        if self.described(&first, origin, out) {
            return lines.filter(|l| !l.is_empty()).for_each(|line| self.continuation(line, origin, out));
        }
        let json = if first.starts_with('{') { json_lines::parse(&first) } else { None };
        let when = self.when(&first, json.as_ref(), origin, out);
        out.entry(when);
        let origin = Origin { when, ..*origin };
        if self.writers.is_asked(&origin)
            && self.writers.known(&origin).is_none()
            && self.is_applications(&first, json.as_ref(), &origin)
        {
            self.writers.is_server(&origin, out);
        }
        let said = match json {
            Some(json) if json.is_proxy && self.proxy(&first, &origin, out) => true,
            Some(json) => self.emitter.json(json, &first, &origin, out),
            None => false,
        };
        if !said {
            self.line(&first, &origin, out);
        }
        for line in lines.filter(|l| !l.is_empty()) {
            self.continuation(line, &origin, out);
        }
    }

    /// Is this a line that an application or a proxy writes?
    pub(super) fn knows(&mut self, line: &[u8], place: Place) -> bool {
        is_known(line) || self.proxies.knows(line, place)
    }

    /// A further line of the entry before: no entry of its own.
    pub fn continuation(&mut self, line: &[u8], origin: &Origin<'_>, out: &mut dyn RecordSink) {
        let line = plain(line);
        self.line(&utf8(&line), origin, out);
    }

    /// Is this line, in a file without containers, the rest of the entry before?
    fn continues(&self, line: &str) -> bool {
        let Some(stream) = self.streams.first() else { return line.starts_with([' ', '\t']) };
        if let Some((fold, _)) = &stream.fold
            && fold.clone().add(line)
        {
            return true;
        }
        let framed = stream.trace.is_some() && !line.is_empty();
        // Rich's lines with a blank time begin with spaces, too
        (line.starts_with([' ', '\t']) && fold::open(line).is_none())
            || framed && traceback::Open::default().part(line.as_bytes()) == traceback::Part::Exception
    }

    /// Nothing follows.
    pub fn finish(&mut self, out: &mut dyn RecordSink) {
        for mut stream in std::mem::take(&mut self.streams) {
            if let Some((fold, held)) = stream.fold.take() {
                self.say(&fold.text, &held.origin(), out);
            }
            if let Some((_, held)) = stream.trace.take() {
                self.emitter.error(held.text(), &held.origin(), out);
            }
        }
        self.writers.finish(out);
    }

    /// The time of an entry: its container's, refined by the application's own where that is
    /// finer and fits; without a container, the application's.
    fn when(
        &mut self,
        line: &str,
        json: Option<&json_lines::Json<'_>>,
        origin: &Origin<'_>,
        out: &mut dyn RecordSink,
    ) -> Option<When> {
        let own = |clock: &mut LocalClock| {
            let reading = match json {
                Some(json) => json.reading,
                None => logfmt_reading(line)
                    .or_else(|| head::stamp(line.as_bytes()).map(|s| s.0))
                    .or_else(|| request_time(line.as_bytes())),
            };
            reading.and_then(|r| clock.resolve(&r))
        };
        if let Some(outer) = origin.when {
            if outer.error_ns < COARSE_NS {
                return Some(outer);
            }
            return Some(own(&mut self.clock).map_or(outer, |inner| refine(outer, inner.when)));
        }
        if let Some(instant) = own(&mut self.clock) {
            if instant.inferred {
                out.problem(
                    ProblemKind::InferredTime,
                    origin.place,
                    "a time without zone, year or date: --tz, --year; UTC taken",
                );
            }
            return Some(instant.when);
        }
        let blank = line.starts_with("          ").then(|| self.stream(origin.key()).rich_when).flatten();
        if blank.is_none() {
            out.problem(ProblemKind::NoTime, origin.place, "a line without any time: only its order is known");
        }
        blank
    }

    fn stream(&mut self, key: u64) -> &mut Stream {
        let at = match self.streams.iter().position(|s| s.key == key) {
            Some(at) => at,
            None => {
                if self.streams.len() >= limits::LOG_STREAMS {
                    // the one that has been there longest, if none is idle
                    let old = self.streams.iter().position(Stream::is_idle).unwrap_or(0);
                    self.streams.swap_remove(old);
                }
                self.streams.push(Stream { key, ..Stream::default() });
                self.streams.len() - 1
            }
        };
        &mut self.streams[at]
    }

    fn line(&mut self, line: &str, origin: &Origin<'_>, out: &mut dyn RecordSink) {
        let may_fold = matches!(line.as_bytes().first(), Some(b' ' | b'[' | b'a'..=b'z'));
        if (may_fold || !self.streams.is_empty()) && self.gather(line, origin, out) {
            return;
        }
        self.say(line, origin, out);
    }

    /// Puts folded messages and tracebacks together; `true` if the line was part of one.
    fn gather(&mut self, line: &str, origin: &Origin<'_>, out: &mut dyn RecordSink) -> bool {
        let key = origin.key();
        let opened = fold::open(line);
        if opened.is_none() && !self.streams.iter().any(|s| s.key == key) {
            return false;
        }
        let stream = self.stream(key);
        if let Some((fold, reading)) = opened {
            let before = stream.fold.replace((fold, Held::of(line, origin)));
            stream.patience = FOLD_PATIENCE;
            if reading.is_some() {
                stream.rich_when = origin.when;
            }
            if let Some((fold, held)) = before {
                self.say(&fold.text, &held.origin(), out);
            }
            return true;
        }
        if let Some((fold, _)) = &mut stream.fold {
            if fold.add(line) {
                return true;
            }
            stream.patience = stream.patience.saturating_sub(1);
            if stream.patience == 0
                && let Some((fold, held)) = stream.fold.take()
            {
                self.say(&fold.text, &held.origin(), out);
            }
        }
        self.trace_line(key, line, out)
    }

    fn trace_line(&mut self, key: u64, line: &str, out: &mut dyn RecordSink) -> bool {
        let stream = self.stream(key);
        let Some((open, held)) = &mut stream.trace else { return false };
        match open.part(line.as_bytes()) {
            traceback::Part::Frame => true,
            traceback::Part::Foreign => false,
            traceback::Part::Exception => {
                let text = format!("{} {line}", held.text());
                let held = stream.trace.take().map(|t| t.1);
                if let Some(held) = held {
                    self.emitter.error(&text, &held.origin(), out);
                }
                true
            }
        }
    }

    /// What one whole message says.
    fn say(&mut self, text: &str, origin: &Origin<'_>, out: &mut dyn RecordSink) {
        if let Some(kind) = origin.message_id.and_then(systemd::by_id) {
            return self.emitter.unit(kind, text, origin, out);
        }
        if line_opens_traceback(text) {
            let held = Held::of(text, origin);
            let stream = self.stream(origin.key());
            if let Some((_, old)) = stream.trace.replace((traceback::Open::default(), held)) {
                self.emitter.error(old.text(), &old.origin(), out);
            }
            return;
        }
        if origin.unit.is_some_and(journal::is_proxy) && self.proxy(text, origin, out) {
            return;
        }
        match meaning(text) {
            Some(Found::Event(kind, said)) => self.emitter.event(kind, said, text, origin, out),
            Some(Found::Access(line)) => {
                if line.reading.is_some() && self.common(text, origin, out) {
                    return;
                }
                let when = origin.when.or_else(|| line.reading.and_then(|r| self.clock.resolve(&r)).map(|i| i.when));
                self.emitter.access(&line, when, origin, out);
            }
            None if origin.is_manager => {
                if let Some(kind) = manager_text(text) {
                    self.emitter.unit(kind, text, origin, out);
                }
            }
            None if proxied::may_be(text) && self.proxy(text, origin, out) => {}
            None => self.unread(text, origin, out),
        }
    }

    /// Is this a line that no proxy writes?
    fn is_applications(&mut self, line: &str, json: Option<&json_lines::Json<'_>>, origin: &Origin<'_>) -> bool {
        if let Some(json) = json {
            return json.has_level && !json.is_proxy && !self.proxies.knows(line.as_bytes(), origin.place);
        }
        match meaning(line) {
            Some(Found::Event(kind, _)) if kind != LogEventKind::Error => true,
            Some(Found::Access(line)) => line.reading.is_none(),
            _ => head::stamp(line.as_bytes()).is_some() && !self.proxies.knows(line.as_bytes(), origin.place),
        }
    }
}

/// The time of a request in the common log format, which stands in brackets before it.
fn request_time(line: &[u8]) -> Option<reading::Reading> {
    let end = memchr::memmem::find(line, b"] \"")?;
    let before = line.get(..end)?;
    let start = memchr::memrchr(b'[', before)?;
    reading::clf(before.get(start + 1..)?).map(|(r, _)| r)
}

/// What a message was found to mean.
enum Found<'t> {
    Event(LogEventKind, Said<'t>),
    Access(access::Line<'t>),
}

/// The meaning of a message: of its phrases the first that is in its place and can be read.
fn meaning(text: &str) -> Option<Found<'_>> {
    let automaton = PHRASES.automaton.as_ref()?;
    let mut error = false;
    for found in automaton.find_iter(text.as_bytes()) {
        let phrase = PHRASES.all.get(found.pattern().as_usize())?;
        let before = text.as_bytes().get(..found.start()).unwrap_or_default();
        if phrase.anchor == Anchor::Start && !head::is_head(before) {
            continue;
        }
        match phrase.meaning {
            Meaning::Event(kind, read) => {
                if let Some(said) = read(text, found.start(), found.end()) {
                    return Some(Found::Event(said.kind.unwrap_or(kind), said));
                }
            }
            Meaning::Access => {
                if let Some(line) = access::read(text, found.start()) {
                    return Some(Found::Access(line));
                }
            }
            Meaning::ErrorLevel => error = true,
        }
    }
    error.then(|| Found::Event(LogEventKind::Error, Said::default()))
}

/// Does a line hold a message that is known (error levels apart)?
fn says_something(text: &str) -> bool {
    match meaning(text) {
        Some(Found::Event(kind, said)) => kind != LogEventKind::Error || said != Said::default(),
        Some(Found::Access(_)) => true,
        None => false,
    }
}

/// Is this a line that some application writes: with a time in its head, or a known message?
pub(super) fn is_known(line: &[u8]) -> bool {
    let line = plain(line);
    head::stamp(&line).is_some() || std::str::from_utf8(&line).is_ok_and(says_something)
}

/// Is this word the name of a level?
pub(super) fn is_level(word: &[u8]) -> bool {
    head::level(word).is_some()
}

/// systemd before 248 names units by their description alone.
fn manager_text(text: &str) -> Option<LogEventKind> {
    let verbs = [
        ("Started ", LogEventKind::UnitStarted),
        ("Stopping ", LogEventKind::UnitStopping),
        ("Stopped ", LogEventKind::UnitStopped),
        ("Failed to start ", LogEventKind::UnitFailed),
    ];
    verbs.iter().find(|(verb, _)| text.starts_with(verb)).map(|(_, kind)| *kind)
}

fn line_opens_traceback(text: &str) -> bool {
    text.strip_suffix("Traceback (most recent call last):").is_some_and(|head| head::is_head(head.as_bytes()))
}

/// A time of logfmt's: `time=…`, `ts="…"`.
fn logfmt_reading(line: &str) -> Option<reading::Reading> {
    let value = ["time=", "ts=", "t=", "timestamp="].iter().find_map(|k| line.strip_prefix(k))?;
    let value = value.trim_start_matches('"').as_bytes();
    reading::iso(value).or_else(|| reading::epoch(value)).map(|r| r.0)
}

/// The application's own time where it agrees with a coarse outer time up to a zone's offset.
fn refine(outer: When, inner: When) -> When {
    const QUARTER_NS: i64 = 900 * reading::SECOND_NS;
    let apart = outer.at.since(inner.at);
    let zone = (apart + QUARTER_NS / 2).div_euclid(QUARTER_NS) * QUARTER_NS;
    let fits = (apart - zone).abs() <= outer.error_ns + inner.error_ns + reading::SECOND_NS / 4;
    let finer = inner.error_ns < outer.error_ns;
    if fits && finer { When { at: inner.at.plus_ns(zone), error_ns: inner.error_ns } } else { outer }
}

/// Bytes as text, what is no UTF-8 replaced.
fn utf8(bytes: &[u8]) -> Cow<'_, str> {
    std::str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
}
