//! Lines that say nothing but that a request was answered, in a log that names no sessions. Most logs are nothing
//! but such lines, so they are looked at as they are and only counted; what is odd becomes a visit.

use super::groups::GroupKey;
use super::hints::Hangs;
use super::past::{Past, SessionPast};
use super::patterns::{Look, Patterns};
use super::retire::Parts;
use super::sightings;
use crate::mcp::Visit;
use crate::mcp::visit::path_of;
use crate::model::place::Place;
use crate::model::record::{AccessRecord, BoxedRecords, When};
use crate::model::time::Time;
use rustc_hash::FxHashSet;

/// Lines that wait, and what is left of those before them.
#[derive(Default)]
pub(super) struct Quiet {
    waiting: Vec<Line>,
    /// By the number of the client.
    clients: Vec<SessionPast>,
}

struct Line {
    answered: Time,
    place: Place,
    at: When,
    /// It says nothing but that the request was answered.
    is_clean: bool,
    record: Box<AccessRecord>,
}

impl Quiet {
    /// Is it a line with a time that names no session, method or body, and stands for one request?
    pub(super) fn takes(r: &AccessRecord) -> bool {
        let names = r.session.is_some() || r.session_given.is_some() || r.rpc_method.is_some();
        let says = r.request_body.is_some() || r.response_body.is_some();
        !names && !says && r.repeat <= 1 && sightings::times(r).0.is_known()
    }

    /// Lets the lines of an endpoint wait.
    pub(super) fn add(&mut self, records: &mut BoxedRecords, paths: &FxHashSet<String>) {
        for record in records.drain(..) {
            let Some(place) = record.place.filter(|_| sightings::is_of_endpoint(&record, paths)) else { continue };
            let (at, end) = sightings::times(&record);
            let answered = end.map_or(at.at, |e| e.at);
            self.waiting.push(Line { answered, place, at, is_clean: is_clean(&record), record });
        }
    }

    /// Takes all but the last `waiting` lines, in order of time.
    pub(super) fn settle(
        &mut self,
        waiting: usize,
        patterns: &mut Patterns,
        parts: &mut Parts,
        spent: &mut BoxedRecords,
    ) {
        let when = |l: &Line| (l.answered, l.place.number);
        if !self.waiting.is_sorted_by_key(when) {
            self.waiting.sort_by_key(when);
        }
        let odd = self.waiting.iter().filter(|l| !l.is_clean && l.look().is_post());
        let hung = Hangs::of(odd.map(|l| (l.record.status, l.answered, l.client())));
        let done = self.waiting.len().saturating_sub(waiting);
        for line in self.waiting.drain(..done) {
            let look = line.look();
            let client = patterns.look(&look) as usize;
            let r = &line.record;
            let cancels =
                || r.status == Some(202) && !hung.is_empty() && hung.may_be_cancelled(&line.client(), line.at.at);
            if !line.is_clean || cancels() {
                parts.keep_line(sightings::visit(r, line.place));
                spent.push(line.record);
                continue;
            }
            let is_call = look.is_post() && r.status != Some(202);
            parts.past().gone.pass_line(line.at.at, is_call.then_some(look.exchange));
            if is_call {
                if self.clients.len() <= client {
                    self.clients.resize_with(client + 1, SessionPast::default);
                }
                if let Some(calls) = self.clients.get_mut(client) {
                    calls.add_line(&look);
                }
            }
            spent.push(line.record);
        }
    }

    /// Hands over what was counted.
    pub(super) fn count(&mut self, patterns: &Patterns, past: &mut Past) {
        for (n, calls) in (0u32..).zip(self.clients.drain(..)) {
            if let Some((peer, agent)) = patterns.who(n).filter(|_| calls.calls > 0) {
                // Such lines show a status and no more.
                past.shown.get_or_insert_default();
                past.add_client(GroupKey::Client(peer, agent), calls);
            }
        }
    }

    /// The lines that wait, as visits.
    pub(super) fn into_visits(self) -> impl Iterator<Item = Visit> {
        self.waiting.into_iter().map(|l| sightings::visit(&l.record, l.place))
    }
}

impl Line {
    fn client(&self) -> GroupKey {
        GroupKey::Client(self.record.client_addr, self.record.user_agent.clone())
    }

    fn look(&self) -> Look<'_> {
        let r = &self.record;
        Look {
            exchange: sightings::exchange_of(self.place),
            source: self.place.input,
            place: self.place,
            at: self.at,
            answered: self.answered,
            peer: r.client_addr,
            agent: r.user_agent.as_ref(),
            path: r.target.as_deref().and_then(path_of).unwrap_or_default(),
            method: r.method.as_ref(),
            target: r.target.as_ref(),
            status: r.status,
            comment: r.comment.as_ref(),
            given: None,
            initializes: false,
        }
    }
}

fn is_clean(r: &AccessRecord) -> bool {
    r.comment.is_none() && is_plainly_answered(r.method.as_deref(), r.status, r.bytes, r.termination.as_deref())
}

/// Does the line say nothing but that a request was answered?
pub(super) fn is_clean_line(v: &Visit) -> bool {
    let says_more = v.comment.is_some() || !v.replies.is_empty() || v.rpc.iter().any(|r| r.id.is_some());
    is_plainly_answered(v.method.as_deref(), v.status, v.bytes, v.termination.as_deref()) && !says_more
}

/// Was the request of a line answered as requests are, as far as HTTP tells?
fn is_plainly_answered(
    method: Option<&str>,
    status: Option<u16>,
    bytes: Option<u64>,
    termination: Option<&str>,
) -> bool {
    let ok = matches!(status, Some(200 | 202 | 204)) || method == Some("GET") && status == Some(405);
    let hung = method == Some("POST") && status == Some(200) && bytes == Some(0);
    // As HAProxy, Envoy, nginx and Apache write that nothing was wrong.
    let whole = termination.is_none_or(|t| matches!(t, "--" | "----" | "-" | "+" | "OK"));
    ok && !hung && whole && method != Some("DELETE")
}
