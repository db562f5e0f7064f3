//! Where a message came from, and the records made of it.

use super::json_lines::Json;
use super::phrase::Said;
use super::{access, fields, systemd};
use crate::input::detect::same_file;
use crate::input::log::{LogContext, RecordSink};
use crate::model::limits;
use crate::model::place::{Place, Vantage};
use crate::model::record::{AccessRecord, LogEvent, LogEventKind, Record, When};
use rustc_hash::{FxHashMap, FxHasher};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// A journal entry's cursor.
#[derive(Clone, Copy, Debug)]
pub enum Cursor<'a> {
    /// As text.
    Text(&'a str),
    /// Its parts, written out only where they are needed (systemd, `sd_journal_get_cursor`).
    Parts {
        /// Sequence number id of the file.
        seqnum_id: &'a [u8],
        /// Sequence number.
        seqnum: u64,
        /// Boot id.
        boot_id: &'a [u8],
        /// Monotonic time, µs.
        monotonic_us: u64,
        /// Wall clock, µs.
        realtime_us: u64,
        /// XOR of the entry's hashes.
        xor_hash: u64,
    },
}

impl Cursor<'_> {
    /// As `__CURSOR` has it.
    pub fn text(&self) -> String {
        let hex = |b: &[u8]| b.iter().map(|b| format!("{b:02x}")).collect::<String>();
        match self {
            Cursor::Text(t) => (*t).to_owned(),
            Cursor::Parts { seqnum_id, seqnum, boot_id, monotonic_us, realtime_us, xor_hash } => format!(
                "s={};i={seqnum:x};b={};m={monotonic_us:x};t={realtime_us:x};x={xor_hash:x}",
                hex(seqnum_id),
                hex(boot_id)
            ),
        }
    }
}

/// Where a message came from.
#[derive(Clone, Copy, Debug)]
pub struct Origin<'a> {
    /// Its place in the input.
    pub place: Place,
    /// The container's time for it.
    pub when: Option<When>,
    /// Host.
    pub host: Option<&'a str>,
    /// Service unit, container, or the program's name.
    pub unit: Option<&'a str>,
    /// Process.
    pub pid: Option<u32>,
    /// Journal cursor.
    pub cursor: Option<Cursor<'a>>,
    /// systemd's MESSAGE_ID.
    pub message_id: Option<&'a str>,
    /// Was it written by the service manager?
    pub is_manager: bool,
    /// Tells streams of one process apart (standard output and error), where known.
    pub stream: u8,
}

impl<'a> Origin<'a> {
    /// A line of which nothing but its place is known.
    pub fn at(place: Place) -> Origin<'a> {
        Origin {
            place,
            when: None,
            host: None,
            unit: None,
            pid: None,
            cursor: None,
            message_id: None,
            is_manager: false,
            stream: 0,
        }
    }

    /// Names the writer of the line.
    pub(in crate::input::log) fn key(&self) -> u64 {
        let mut h = FxHasher::default();
        (self.unit, self.pid, self.host, self.stream).hash(&mut h);
        h.finish()
    }
}

/// A message and its origin, kept while it waits for its other lines.
#[derive(Clone, Debug)]
pub(super) struct Held {
    text: String,
    place: Place,
    when: Option<When>,
    host: Option<String>,
    unit: Option<String>,
    pid: Option<u32>,
    cursor: Option<String>,
    stream: u8,
}

impl Held {
    /// Keeps `text` (cut to what a report can quote).
    pub fn of(text: &str, origin: &Origin<'_>) -> Held {
        Held {
            text: cut(text).to_owned(),
            place: origin.place,
            when: origin.when,
            host: origin.host.map(str::to_owned),
            unit: origin.unit.map(str::to_owned),
            pid: origin.pid,
            cursor: origin.cursor.map(|c| c.text()),
            stream: origin.stream,
        }
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The origin.
    pub fn origin(&self) -> Origin<'_> {
        Origin {
            when: self.when,
            host: self.host.as_deref(),
            unit: self.unit.as_deref(),
            pid: self.pid,
            cursor: self.cursor.as_deref().map(Cursor::Text),
            stream: self.stream,
            ..Origin::at(self.place)
        }
    }
}

/// The part of a message that a report can quote.
fn cut(text: &str) -> &str {
    let text = text.trim();
    let mut end = limits::EVENT_TEXT_BYTES.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or(text)
}

/// Makes records, sharing the strings that repeat.
#[derive(Debug)]
pub(super) struct Emitter {
    names: FxHashMap<Box<str>, Arc<str>>,
    vantage: Vantage,
    /// The user said so.
    pub is_told: bool,
}

impl Emitter {
    /// For one input; applications are servers unless `--vantage` says otherwise.
    pub fn new(context: &LogContext<'_>) -> Emitter {
        let chosen = context.options.vantages.iter().rev().find(|(_, path)| same_file(path, context.name));
        Emitter {
            names: FxHashMap::default(),
            vantage: chosen.map_or(Vantage::Server, |(v, _)| *v),
            is_told: chosen.is_some(),
        }
    }

    fn name(&mut self, s: &str) -> Arc<str> {
        if let Some(a) = self.names.get(s) {
            return a.clone();
        }
        let a: Arc<str> = Arc::from(s);
        if self.names.len() < limits::LOG_NAMES {
            self.names.insert(s.into(), a.clone());
        }
        a
    }

    /// An event.
    pub fn event(
        &mut self,
        kind: LogEventKind,
        said: Said<'_>,
        text: &str,
        origin: &Origin<'_>,
        out: &mut dyn RecordSink,
    ) {
        let event = LogEvent {
            place: origin.place,
            vantage: self.vantage,
            when: origin.when,
            kind,
            session: said.session.map(|s| self.name(s)),
            rpc_id: said.rpc_id,
            method: said.method.map(|m| self.name(m)),
            tool: said.tool.map(|t| self.name(t)),
            duration_ns: said.duration_ns,
            unit: said.unit.or(origin.unit).map(|u| self.name(u)),
            host: origin.host.map(|h| self.name(h)),
            pid: origin.pid,
            cursor: origin.cursor.map(|c| Arc::from(c.text())),
            text: Arc::from(cut(text)),
        };
        out.record(Record::Event(Box::new(event)));
    }

    /// An error or traceback.
    pub fn error(&mut self, text: &str, origin: &Origin<'_>, out: &mut dyn RecordSink) {
        self.event(LogEventKind::Error, Said::default(), text, origin, out);
    }

    /// A message of the service manager's, known by its id or its author.
    pub fn unit(&mut self, kind: LogEventKind, text: &str, origin: &Origin<'_>, out: &mut dyn RecordSink) {
        let kind = match text.split_once(": Main process exited, ") {
            Some((_, rest)) => systemd::exit_kind(rest),
            None => kind,
        };
        // the manager's own unit (`init.scope`) is not the one it speaks of
        let unit = systemd::unit_of(text).or(origin.unit.filter(|u| !matches!(*u, "init.scope" | "systemd")));
        let origin = Origin { unit: None, ..*origin };
        self.event(kind, Said { unit, ..Said::default() }, text, &origin, out);
    }

    /// An access line.
    pub fn access(
        &mut self,
        line: &access::Line<'_>,
        when: Option<When>,
        origin: &Origin<'_>,
        out: &mut dyn RecordSink,
    ) {
        let record = AccessRecord {
            place: Some(origin.place),
            vantage: Some(self.vantage),
            end: when,
            ..line.record(|s| self.name(s))
        };
        out.record(Record::Access(Box::new(record)));
    }

    /// A JSON line; `false` if it says nothing, so that its text may be tried.
    pub fn json(&mut self, json: Json<'_>, line: &str, origin: &Origin<'_>, out: &mut dyn RecordSink) -> bool {
        if let (Some(method), Some(target), Some(status)) = (&json.method, &json.target, json.status) {
            let start =
                origin.when.zip(json.duration_ns).map(|(w, d)| When { at: w.at.plus_ns(-d), error_ns: w.error_ns });
            let record = AccessRecord {
                place: Some(origin.place),
                vantage: Some(self.vantage),
                start,
                end: origin.when,
                duration_ns: json.duration_ns,
                session: json.session.as_deref().map(|s| self.name(s)),
                session_given: json.session_given.as_deref().map(|s| self.name(s)),
                user_agent: json.user_agent.as_deref().map(|s| self.name(s)),
                method: Some(self.name(method)),
                target: Some(self.name(target)),
                status: Some(status),
                repeat: 1,
                ..AccessRecord::default()
            };
            out.record(Record::Access(Box::new(record)));
            return true;
        }
        let message = json.message.as_deref().unwrap_or_default();
        let from_fields = Said {
            session: json.session.as_deref().and_then(fields::session),
            rpc_id: json.rpc_id.clone(),
            method: json.method.as_deref(),
            tool: json.tool.as_deref(),
            duration_ns: json.duration_ns,
            ..Said::default()
        };
        let middleware = match (message, json.source.as_deref()) {
            ("request_start", Some("client")) => Some(LogEventKind::Processing),
            ("request_success", Some("client")) => Some(LogEventKind::Finished),
            ("request_error", Some("client")) => Some(LogEventKind::Error),
            _ => None,
        };
        if let Some(kind) = middleware {
            self.event(kind, from_fields, line, origin, out);
            return true;
        }
        match super::meaning(message) {
            Some(super::Found::Event(kind, said)) => {
                let said = Said {
                    session: said.session.or(from_fields.session),
                    rpc_id: said.rpc_id.or(from_fields.rpc_id),
                    method: said.method.or(from_fields.method.filter(|m| m.contains('/'))),
                    tool: said.tool.or(from_fields.tool),
                    duration_ns: said.duration_ns.or(from_fields.duration_ns),
                    unit: said.unit,
                    kind: None,
                };
                self.event(kind, said, message, origin, out);
            }
            Some(super::Found::Access(found)) => self.access(&found, origin.when, origin, out),
            None if json.is_error => self.event(LogEventKind::Error, from_fields, message, origin, out),
            None => return json.message.is_some(),
        }
        true
    }
}
