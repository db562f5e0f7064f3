//! Which lines of a log have one writer. A journal or a container's log can hold the access lines of the proxy
//! beside those of the server: each is a vantage point of its own, and absence from one says nothing of the other.

use crate::mcp::Visit;
use crate::model::place::{InputId, Vantage};
use crate::model::record::{AccessRecord, LogEvent, When};
use crate::model::time::Time;
use rustc_hash::{FxHashMap, FxHashSet};

/// Set in the number of a source that is the proxy's lines in a server's log; the rest is the input's number.
const ASIDE: InputId = 1 << 31;

/// The input that a source is in.
pub const fn file_of(source: InputId) -> InputId {
    source & !ASIDE
}

/// Sources of the logs of a run. What is an input to the rest of the house is a source here: they differ in
/// logs that hold lines of several vantage points.
#[derive(Debug, Default)]
pub struct Sources {
    mixed: FxHashSet<InputId>,
    spans: FxHashMap<InputId, Span>,
    writers: FxHashMap<InputId, InputId>,
}

/// What one who wrote in an input left there.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// Whose lines they are, and the input's number.
    pub source: InputId,
    /// The first time of these, on their own clock.
    pub first: Option<Time>,
    /// The last.
    pub last: Option<Time>,
    /// How many they are.
    pub records: u64,
}

impl Sources {
    /// Finds the logs with access lines of both proxy and server. `writers`: of logs that go on from file to file,
    /// the file that stands for all.
    pub fn of(access: &[AccessRecord], events: &[LogEvent], writers: FxHashMap<InputId, InputId>) -> Sources {
        let vantages = access.iter().filter_map(|r| Some((r.place?.input, vantage_of(r))));
        let seen: FxHashSet<(InputId, Vantage)> = vantages.collect();
        let both = |i: &InputId| seen.contains(&(*i, Vantage::Proxy)) && seen.contains(&(*i, Vantage::Server));
        let mixed = seen.iter().map(|(i, _)| *i).filter(both).collect();
        let mut sources = Sources { mixed, spans: FxHashMap::default(), writers };
        if sources.mixed.is_empty() {
            return sources;
        }
        for r in access {
            let Some(place) = r.place else { continue };
            sources.spans(place.input, vantage_of(r), r.end.or(r.start));
        }
        for e in events {
            sources.spans(e.place.input, e.vantage, e.when);
        }
        sources
    }

    fn spans(&mut self, input: InputId, vantage: Vantage, when: Option<When>) {
        if !self.mixed.contains(&input) {
            return;
        }
        let source = self.source(input, vantage);
        let span = self.spans.entry(source).or_insert(Span { source, first: None, last: None, records: 0 });
        span.records += 1;
        if let Some(at) = when.map(|w| w.at) {
            span.first = Some(span.first.map_or(at, |t| t.min(at)));
            span.last = Some(span.last.map_or(at, |t| t.max(at)));
        }
    }

    /// Who wrote a source: the same for the files of a rotated set.
    pub fn writer(&self, source: InputId) -> InputId {
        self.writers.get(&file_of(source)).map_or(source, |writer| writer | source & ASIDE)
    }

    /// Did one writer leave both sources? Then they have one clock, and no request is in both.
    pub fn are_one(&self, a: InputId, b: InputId) -> bool {
        self.writer(a) == self.writer(b)
    }

    /// The source of a line.
    pub fn source(&self, input: InputId, vantage: Vantage) -> InputId {
        if vantage == Vantage::Proxy && self.mixed.contains(&input) { input | ASIDE } else { input }
    }

    /// The source of an event.
    pub fn of_event(&self, event: &LogEvent) -> InputId {
        self.source(event.place.input, event.vantage)
    }

    /// The sources that are only a part of their input, in order.
    pub fn parts(&self) -> Vec<Span> {
        let mut parts: Vec<Span> = self.spans.values().copied().collect();
        parts.sort_unstable_by_key(|p| (file_of(p.source), p.source));
        parts
    }
}

/// Where a line was written, a proxy's unless it says otherwise.
pub fn vantage_of(record: &AccessRecord) -> Vantage {
    record.vantage.unwrap_or(Vantage::Proxy)
}

/// What the lines of a source show by themselves: what others know of the same requests is not theirs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shown {
    /// Which session a request is of.
    pub sessions: bool,
    /// Which request began a session.
    pub begins: bool,
    /// Request bodies.
    pub requests: bool,
    /// Response bodies.
    pub replies: bool,
}

impl Shown {
    /// Adds what a line says.
    pub fn add(&mut self, line: &Visit) {
        // A refused session can be known from what the server says beside its lines.
        self.sessions |= line.session.is_some() && !matches!(line.status, Some(400 | 404));
        self.begins |= line.given.is_some();
        self.requests |= line.rpc.iter().any(|r| r.body.is_some());
        self.replies |= line.replies.iter().any(|r| r.body.is_some());
    }

    /// Adds what other lines of the source show.
    pub fn merge(&mut self, other: Shown) {
        let Shown { sessions, begins, requests, replies } = other;
        self.sessions |= sessions;
        self.begins |= begins;
        self.requests |= requests;
        self.replies |= replies;
    }

    /// In words.
    pub fn text(&self) -> String {
        let mut shown = vec!["status"];
        let mut lacking = vec![];
        match (self.sessions, self.begins) {
            (true, _) => shown.push("session"),
            (false, true) => shown.push("where sessions begin"),
            (false, false) => lacking.push("no session"),
        }
        match (self.requests, self.replies) {
            (true, true) => shown.push("bodies"),
            (true, false) => (shown.push("requests"), lacking.push("no replies")).1,
            (false, true) => (shown.push("replies"), lacking.push("no requests")).1,
            (false, false) => lacking.push("no bodies"),
        }
        let lacking = if lacking.is_empty() { String::new() } else { format!("; {}", lacking.join(", ")) };
        format!("{}{lacking}", shown.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lines_say_in_words() {
        let told = |sessions, begins, requests, replies| Shown { sessions, begins, requests, replies }.text();
        assert_eq!(told(true, true, false, false), "status, session; no bodies");
        assert_eq!(told(false, false, false, false), "status; no session, no bodies");
        assert_eq!(told(false, true, false, false), "status, where sessions begin; no bodies");
        assert_eq!(told(true, false, true, false), "status, session, requests; no replies");
        assert_eq!(told(false, false, true, true), "status, bodies; no session");
    }
}
