//! Which exchanges and log lines the findings of a report rest on.

use super::gather::Caught;
use crate::model::exchange::Mark;
use crate::model::place::{InputId, Place};
use crate::model::report::{Call, CallKey, Report};
use crate::model::time::Time;
use crate::report::cited;
use rustc_hash::{FxHashMap, FxHashSet};

/// How much of the inputs goes into a bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// What is cited, with the handshakes of its sessions.
    Cited,
    /// That, and the calls in flight with those of a batch, and those of the log lines beside the cited ones.
    Beside,
    /// The whole of the sessions that are cited.
    Sessions,
    /// Everything.
    All,
}

impl Scope {
    /// From the least to the most.
    pub const EVERY: &'static [Scope] = &[Scope::Cited, Scope::Beside, Scope::Sessions, Scope::All];

    /// As the summary spells it; `is_chosen`: calls were named.
    pub const fn name(self, is_chosen: bool) -> &'static str {
        match self {
            Scope::Cited if is_chosen => "the chosen calls with their handshakes",
            Scope::Cited => "the cited calls with their handshakes",
            Scope::Beside => {
                "the cited calls with their handshakes, and the calls in flight with them or in the log lines beside theirs, because the findings need them"
            }
            Scope::Sessions => "the sessions of the cited calls, because the findings need more than these calls",
            Scope::All => "all that was read, because the findings need it",
        }
    }
}

/// The places and sessions that findings name.
#[derive(Debug, Default)]
pub struct Cited {
    places: FxHashSet<Place>,
    /// Sessions.
    pub sessions: Vec<String>,
}

/// Methods whose exchanges are the handshake of a session.
const HANDSHAKE: &[&str] = &[
    "\"initialize\"",
    "\"notifications/initialized\"",
    "\"tools/list\"",
    "\"server/discover\"",
    "\"notifications/cancelled\"",
];

impl Cited {
    /// What this report cites, and these calls.
    pub fn of(report: &Report, calls: &[CallKey]) -> Cited {
        let mut out = Cited::default();
        let by_key: FxHashMap<CallKey, &Call> = report.calls.iter().map(|c| (c.key, c)).collect();
        let mut sessions: FxHashSet<String> = FxHashSet::default();
        for call in cited(report).iter().chain(calls).filter_map(|key| by_key.get(key)) {
            sessions.extend(call.session.iter().map(|s| s.to_string()));
            for s in &call.sightings {
                out.places.extend(s.frame.into_iter().chain(s.reply_frame).map(|n| Place::frame(s.input, n)));
                out.places.extend(s.line.map(|n| Place::line(s.input, n)));
            }
        }
        for finding in &report.findings {
            sessions.extend(finding.session.iter().map(|s| s.to_string()));
            for e in &finding.evidence {
                let Some(input) = e.input else { continue };
                out.places.extend(e.frame.map(|n| Place::frame(input, n)));
                out.places.extend(e.line.map(|n| Place::line(input, n)));
            }
        }
        for window in &report.windows {
            let both = window.stale_session.iter().chain(&window.new_session);
            sessions.extend(both.map(|s| s.to_string()));
        }
        out.sessions = sessions.into_iter().collect();
        out.sessions.sort_unstable();
        out
    }

    /// The packets of the calls that these lines of logs tell of, and those of the batches that findings
    /// count.
    pub fn beside(report: &Report, is_there: impl Fn(InputId, u64) -> bool) -> Cited {
        let mut out = Cited::default();
        let counted = report.findings.iter().filter(|f| f.batch.is_some()).filter_map(|f| f.victim.or(f.owner));
        let counted: FxHashSet<CallKey> = counted.collect();
        let victims: Vec<&Call> = report.calls.iter().filter(|c| counted.contains(&c.key)).collect();
        for call in &report.calls {
            if victims.iter().any(|v| v.session == call.session && in_flight_together(v, call))
                || call.sightings.iter().any(|s| s.line.is_some_and(|n| is_there(s.input, n)))
            {
                let frames = call
                    .sightings
                    .iter()
                    .flat_map(|s| s.frame.into_iter().chain(s.reply_frame).map(|n| Place::frame(s.input, n)));
                out.places.extend(frames);
            }
        }
        out
    }

    /// The cited lines of a log.
    pub fn lines(&self, input: InputId) -> FxHashSet<u64> {
        let of_input = self.places.iter().filter(|p| p.input == input);
        of_input.map(|p| p.number).collect()
    }

    /// Does this exchange go into a bundle?
    pub fn wants(&self, caught: &Caught, scope: Scope) -> bool {
        let x = &caught.exchange;
        let is_cited = || marks(caught).any(|m| self.holds(m.place));
        let session = || {
            let of = x.request_header("mcp-session-id").or(x.response_header("mcp-session-id"));
            of.is_some_and(|s| self.sessions.binary_search_by(|known| known.as_str().cmp(s)).is_ok())
        };
        match scope {
            Scope::All => true,
            Scope::Sessions => is_cited() || session(),
            Scope::Cited | Scope::Beside => is_cited() || (session() && is_handshake(caught)),
        }
    }

    fn holds(&self, place: Place) -> bool {
        self.places.contains(&place) || self.places.contains(&Place { is_frame: !place.is_frame, ..place })
    }
}

fn in_flight_together(a: &Call, b: &Call) -> bool {
    let begin = |c: &Call| c.sent.or(c.issued);
    let end = |c: &Call| c.replied.or(c.sightings.iter().filter_map(|s| s.ended_at).max());
    let not_after = |x: Option<Time>, y: Option<Time>| x.zip(y).is_none_or(|(x, y)| x <= y);
    not_after(begin(a), end(b)) && not_after(begin(b), end(a))
}

fn marks(caught: &Caught) -> impl Iterator<Item = Mark> + '_ {
    let x = &caught.exchange;
    let request = x.request.iter().flat_map(|r| [r.first, r.last]);
    let response = x.response.iter().flat_map(|r| [Some(r.first), r.last]).flatten();
    request.chain(response).chain(x.ended).chain(x.client_closed).chain(caught.messages.iter().map(|m| m.last))
}

fn is_handshake(caught: &Caught) -> bool {
    let x = &caught.exchange;
    let method = x.request.as_ref().map_or("", |r| &*r.method);
    let names = |text: &str| caught.messages.iter().any(|m| memchr::memmem::find(&m.data, text.as_bytes()).is_some());
    matches!(method, "DELETE" | "GET")
        || x.response.as_ref().is_some_and(|r| r.status >= 400)
        || HANDSHAKE.iter().any(|text| names(text))
}
