//! Takes the access lines of a log that is read alone, and keeps of them what a rule may still want: a log of
//! years has few lines that are odd.
//!
//! Lines wait in [`WAITING`] places, since servers write them when a request is over and several processes write
//! one log. What is about neighbours (which line an event of the server speaks of, which request opened a
//! session) is looked for among those.

use super::logs::name_sessions;
use super::patterns::Patterns;
use super::retire::Parts;
use super::sightings::{self, Handshakes};
use crate::mcp::Visit;
use crate::model::record::{AccessRecord, LogEvent, LogEventKind};
use rustc_hash::FxHashSet;

/// Lines that are looked at together; half of them wait for the next ones.
const WAITING: usize = 8192;
/// Lines after an event in which its access line may come.
const BEHIND: u64 = 64;

/// The access lines of one log, in the order of the file.
pub struct Lines {
    waiting: usize,
    /// Endpoint paths.
    paths: FxHashSet<String>,
    records: Vec<AccessRecord>,
    /// What the server said of sessions near the lines at hand.
    events: Vec<LogEvent>,
    pending: Vec<Visit>,
    handshakes: Handshakes,
    /// Until a line names a session.
    patterns: Option<Patterns>,
    parts: Parts,
}

impl Lines {
    /// No line yet. `endpoint` is a path known from elsewhere; `waiting` is how many lines are looked at together,
    /// 0 for the usual number.
    pub fn new(endpoint: Option<&str>, waiting: usize) -> Lines {
        Lines {
            waiting: if waiting == 0 { WAITING } else { waiting },
            paths: endpoint.map(str::to_owned).into_iter().collect(),
            records: vec![],
            events: vec![],
            pending: vec![],
            handshakes: Handshakes::default(),
            patterns: Some(Patterns::default()),
            parts: Parts::default(),
        }
    }

    /// Takes a line.
    pub fn access(&mut self, record: AccessRecord) {
        self.records.push(record);
        if self.records.len() >= self.waiting {
            self.settle(false);
        }
    }

    /// Takes what the server says between the lines.
    pub fn event(&mut self, event: &LogEvent) {
        if matches!(event.kind, LogEventKind::SessionCreated | LogEventKind::SessionRejected) {
            self.events.push(event.clone());
        }
    }

    /// The log has ended.
    pub fn finish(mut self) -> Parts {
        self.settle(true);
        self.parts.found(self.patterns.map(Patterns::finish).unwrap_or_default());
        self.parts
    }

    fn settle(&mut self, last: bool) {
        let records = std::mem::take(&mut self.records);
        let line = records.last().and_then(|r| r.place);
        self.pending.extend(sightings::of_records(&records, &mut self.paths));
        if let Some(line) = line {
            name_sessions(&mut self.pending, &self.events, line.input);
            self.events.retain(|e| e.place.number + BEHIND > line.number);
        }
        self.pending.sort_by_key(|v| (v.answered(), v.exchange));
        let done = if last { self.pending.len() } else { self.pending.len().saturating_sub(self.waiting / 2) };
        self.handshakes.infer(&mut self.pending, done);
        let mut lines: Vec<Visit> = self.pending.drain(..done).collect();
        self.handshakes.name(&mut lines);
        if lines.iter().any(|v| v.session.is_some()) {
            self.patterns = None;
        }
        if let Some(patterns) = &mut self.patterns {
            lines.iter().filter(|v| v.at.error_ns < i64::MAX / 8).for_each(|v| patterns.line(v));
        }
        self.parts.take_lines(lines);
    }
}
