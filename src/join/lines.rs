//! Takes the access lines of a log that is read alone, and keeps of them what a rule may still want: a log of
//! years has few lines that are odd.
//!
//! Lines wait in [`WAITING`] places, since servers write them when a request is over and several processes write
//! one log. What is about neighbours (which line an event of the server speaks of, which request opened a
//! session) is looked for among those.

use super::apart::Stays;
use super::logs::name_sessions;
use super::part::Fate;
use super::past::Left;
use super::patterns::Patterns;
use super::quiet::Quiet;
use super::retire::{Parts, Ruling};
use super::sightings::{self, Handshakes};
use super::unlogged::Unlogged;
use crate::mcp::Visit;
use crate::mcp::visit::without_slash;
use crate::model::place::Place;
use crate::model::record::{AccessRecord, BoxedRecords, LogEvent, LogEventKind};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeMap;

/// Lines that are looked at together; half of them wait for the next ones.
const WAITING: usize = 2048;
/// The same for a slice of time, whose memory was planned for: in a busy log, what is a moment apart is many lines
/// apart.
pub(super) const SLICE_WAITING: usize = 16_384;
/// Lines after an event in which its access line may come.
const BEHIND: u64 = 64;

/// The access lines of one log, in the order of the file.
pub struct Lines {
    waiting: usize,
    /// Endpoint paths.
    paths: FxHashSet<String>,
    records: BoxedRecords,
    /// Those that were taken.
    spent: BoxedRecords,
    /// What the server said of sessions near the lines at hand.
    events: Vec<LogEvent>,
    /// Of those, what was found a line of.
    logged: FxHashSet<Place>,
    unlogged: Unlogged,
    /// The lines that wait, as long as none has more to say than HTTP.
    quiet: Option<Quiet>,
    pending: Vec<Visit>,
    handshakes: Handshakes,
    /// Until a line names a session.
    patterns: Option<Patterns>,
    /// A line had a time.
    timed: bool,
    /// Lines that stay, by the numbers of their visits.
    stays: FxHashMap<u64, Fate>,
    parts: Parts,
}

impl Lines {
    /// No line yet. `endpoint` is a path known from elsewhere; `waiting` is how many lines are looked at together,
    /// 0 for the usual number.
    pub fn new(endpoint: Option<&str>, waiting: usize) -> Lines {
        Lines {
            waiting: if waiting == 0 { WAITING } else { waiting },
            paths: endpoint.map(|p| without_slash(p).to_owned()).into_iter().collect(),
            records: vec![],
            spent: vec![],
            events: vec![],
            logged: FxHashSet::default(),
            unlogged: Unlogged::default(),
            quiet: Some(Quiet::default()),
            pending: vec![],
            handshakes: Handshakes::default(),
            patterns: Some(Patterns::default()),
            timed: false,
            stays: FxHashMap::default(),
            parts: Parts::default(),
        }
    }

    /// Lines of a slice of time of a log, which answers for `core`; what is not clean is kept however much it is.
    pub fn of_slice(endpoint: Option<&str>, core: Option<(i64, i64)>) -> Lines {
        let mut lines = Lines::new(endpoint, SLICE_WAITING);
        lines.parts.answer_for(core);
        lines
    }

    /// Takes a line.
    pub fn access(&mut self, record: Box<AccessRecord>) {
        self.records.push(record);
        self.fill();
    }

    /// Takes a line that stays, as was found [apart](super::apart).
    pub fn stays(&mut self, line: Stays) {
        if let Some(place) = line.record.place {
            self.stays.insert(sightings::exchange_of(place), line.fate());
            self.access(line.record);
        }
    }

    /// Adds what is left of lines that do not come, as was found apart.
    pub fn absorb(&mut self, left: Left) {
        self.parts.past().absorb(left);
    }

    /// Records that were taken and are not needed any more.
    pub fn spent(&mut self) -> BoxedRecords {
        std::mem::take(&mut self.spent)
    }

    fn fill(&mut self) {
        if self.records.len() + self.events.len().saturating_sub(BEHIND as usize) >= self.waiting {
            self.settle(false);
            // Not every reader uses their room again.
            self.spent.truncate(self.waiting);
        }
    }

    /// Does an event tell something of the lines next to it?
    pub fn wants(event: &LogEvent) -> bool {
        matches!(event.kind, LogEventKind::SessionCreated | LogEventKind::SessionRejected)
    }

    /// Can a rule still want an event when the lines of its time are gone? What handlers say is held against bodies,
    /// which a log that is read alone does not have.
    pub fn outlives(kind: LogEventKind) -> bool {
        !matches!(kind, LogEventKind::Processing | LogEventKind::Finished | LogEventKind::Other)
    }

    /// Takes what the server says between the lines, where it [is wanted](Lines::wants).
    pub fn event(&mut self, event: LogEvent) {
        self.events.push(event);
        self.fill();
    }

    /// The log has ended. `said`: its events that were not kept, by the names of their kinds.
    pub fn finish(mut self, said: BTreeMap<&'static str, u64>) -> Parts {
        self.settle(true);
        self.parts.past().said = said;
        if let (Some(mut quiet), Some(patterns)) = (self.quiet.take(), &self.patterns) {
            quiet.count(patterns, self.parts.past());
        }
        self.parts.found(self.patterns.map(Patterns::finish).unwrap_or_default());
        self.parts
    }

    fn settle(&mut self, last: bool) {
        if let (Some(quiet), Some(patterns)) = (&mut self.quiet, &mut self.patterns) {
            if self.events.is_empty() && self.records.iter().all(|r| Quiet::takes(r)) {
                let waiting = if last { 0 } else { self.waiting / 2 };
                quiet.add(&mut self.records, &self.paths);
                return quiet.settle(waiting, patterns, &mut self.parts, &mut self.spent);
            }
            quiet.count(patterns, self.parts.past());
        }
        if let Some(quiet) = self.quiet.take() {
            self.pending.extend(quiet.into_visits());
        }
        let line = self.records.last().and_then(|r| r.place).max(self.events.last().map(|e| e.place));
        sightings::of_records(&self.records, &mut self.paths, &mut self.pending);
        self.spent.append(&mut self.records);
        if let Some(line) = line {
            self.logged.extend(name_sessions(&mut self.pending, self.events.iter()));
            let gone = self.events.iter().take_while(|e| last || e.place.number + BEHIND <= line.number).count();
            for event in self.events.drain(..gone) {
                let is_logged = self.logged.remove(&event.place);
                self.pending.extend(self.unlogged.visit(&event, is_logged));
            }
        }
        let when = |v: &Visit| (v.answered(), v.exchange);
        if !self.pending.is_sorted_by_key(when) {
            self.pending.sort_by_key(when);
        }
        let done = if last { self.pending.len() } else { self.pending.len().saturating_sub(self.waiting / 2) };
        self.handshakes.infer(&mut self.pending, done);
        let lines = self.pending.get_mut(..done).unwrap_or_default();
        self.handshakes.name(lines);
        if lines.iter().any(|v| v.session.is_some()) {
            self.patterns = None;
        }
        if let Some(patterns) = &mut self.patterns {
            // Where no line has a time, their order is all there is.
            let is_timed = |v: &&Visit| v.at.is_known();
            self.timed |= lines.iter().any(|v| is_timed(&v));
            lines.iter().filter(|v| is_timed(v) || !self.timed).for_each(|v| patterns.line(v));
        }
        let stays = &self.stays;
        let rule = |v: &Visit| stays.get(&v.exchange).map_or(Ruling::AtLeast(Fate::Clean), |fate| Ruling::Found(*fate));
        self.parts.take_lines(&mut self.pending, done, &rule);
    }
}
