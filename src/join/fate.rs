//! What became of a call: answered, refused, cut, left without a reply, or not to be known.

use super::answers::HopCallId;
use super::calls::{JointCall, World};
use crate::mcp::visit::Visit;
use crate::model::exchange::{BodyKind, End, Mark, Peer};
use crate::model::report::{Delivered, Outcome};
use crate::model::time::Time;

/// What became of a call, as its caller saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// A reply came on the call's own stream, or where the specification lets it come.
    Answered,
    /// The reply came after the caller had closed.
    Late,
    /// The caller cancelled it.
    Cancelled,
    /// Refused with an HTTP error.
    Refused(u16),
    /// A gateway's error stands in for a reply: 499, 502, 503, 504, 524.
    Gateway(u16),
    /// Answered 202 and nothing more.
    Accepted,
    /// The exchange came to its proper end without a reply.
    EndedEmpty,
    /// Someone closed or reset before a reply.
    Cut {
        /// Who.
        by: Peer,
        /// When and where.
        mark: Mark,
        /// By RST.
        reset: bool,
    },
    /// Open and silent for longer than a caller waits.
    Silent,
    /// The inputs do not show.
    Unobserved,
}

impl Fate {
    /// Is it a call without a reply that the inputs would have shown?
    pub fn is_orphan(self) -> bool {
        matches!(self, Fate::Accepted | Fate::EndedEmpty | Fate::Cut { .. } | Fate::Silent | Fate::Gateway(_))
    }
}

/// From 2026-07-28 on, closing the stream is the cancel.
const CLOSING_CANCELS: &str = "2026-07-28";

/// Replies without a request that are looked at for one call, at most.
const LOOK_AT: usize = 256;
/// A stream that its server ended to be polled is resumed by its client within this time. ns.
const RESUMED_NS: i64 = 10_000_000_000;
/// A resumed stream brings the reply within this time of the break, if it is to be taken for it. ns.
const RESUMED_REPLY_NS: i64 = 60_000_000_000;
/// A caller that closes its side this soon after its request has not given up: it half-closes. ns.
const HALF_CLOSE_NS: i64 = 50_000_000;

/// Servers may end a stream with event ids early, to be polled, since this revision.
const POLLING_SINCE: &str = "2025-11-25";

impl World {
    /// What became of a call at one hop. In a capture that lost packets a reply that is not there may
    /// have been lost, unless the numbers of its stream, seen to their end, leave no room for it. Where many were
    /// lost, so may have been a whole exchange that cancelled or resumed it.
    pub fn fate_at(&self, c: HopCallId) -> Fate {
        let fate = self.fate_as_captured(c);
        let lost = |v: &Visit| {
            let holed = self.holed_inputs.contains(&v.input) && !matches!(fate, Fate::Gateway(_));
            holed || self.dropped_inputs.contains(&v.input) && !is_seen_whole(fate)
        };
        if fate.is_orphan() && self.visit_of(c).is_some_and(lost) { Fate::Unobserved } else { fate }
    }

    fn fate_as_captured(&self, c: HopCallId) -> Fate {
        let (Some(call), Some(visit)) = (self.hop_call(c), self.visit_of(c)) else { return Fate::Unobserved };
        if call.cancelled.is_some() {
            return Fate::Cancelled;
        }
        if let Some((_, reply)) = call.answer.filter(|a| a.legal).and_then(|a| self.reply(a.at)) {
            return match visit.status {
                Some(s) if s >= 400 => refusal(s),
                _ if reply.after_close && !reads_on(visit) => self.closing_or(visit, Fate::Late),
                _ => Fate::Answered,
            };
        }
        let Some(status) = visit.status else { return self.unanswered_or_resumed(c, visit) };
        match status {
            // A redirect is no answer either: the client asks again elsewhere.
            300.. => refusal(status),
            202 if self.is_legacy_call(c, visit) => self.legacy(c),
            202 if self.silence_counts(visit) && visit.end == Some(End::Complete) => Fate::Accepted,
            _ => self.unanswered_or_resumed(c, visit),
        }
    }

    /// What became of a call for its caller: as seen nearest to it.
    pub fn fate(&self, call: &JointCall) -> Fate {
        call.hops.first().map_or(Fate::Unobserved, |c| self.fate_at(*c))
    }

    fn closing_or(&self, visit: &Visit, fate: Fate) -> Fate {
        let named = visit.revision.as_deref().or(visit.rpc.iter().find_map(|r| r.revision.as_deref()));
        if named.is_some_and(|r| r >= CLOSING_CANCELS) { Fate::Cancelled } else { fate }
    }

    /// A stream that the client resumed, on a GET of which not all was captured, may have had its reply there.
    fn unanswered_or_resumed(&self, c: HopCallId, visit: &Visit) -> Fate {
        // A call whose reply went to another caller will not get one, however long the input goes on.
        let given_away = self.call_of.get(&c).is_some_and(|n| self.given_away.contains(n));
        if given_away
            && !visit.response_gap
            && !visit.one_direction
            && matches!(visit.end, Some(End::InputEnded) | None)
        {
            return Fate::Silent;
        }
        let fate = self.unanswered(visit);
        let group = self.hop_call(c).map(|c| c.group);
        let resumed = group.and_then(|g| self.resumptions.get(&g)).into_iter().flatten();
        let unseen = resumed.filter_map(|v| self.visits.get(*v as usize)).any(|get| {
            // A priming event (id, no data) is no message, so the stream's ids need not be known.
            let soon = visit.ended.is_some_and(|e| get.asked.since(e.at) < 30_000_000_000);
            let named = get.last_event_id.as_ref().is_some_and(|id| visit.resumable.contains(id));
            let resumable = visit.resumable.is_empty() && visit.kind == BodyKind::EventStream;
            let of_this = named || resumable && soon;
            let not_all = get.status.is_none() || get.response_gap || !self.silence_counts(get);
            of_this && get.asked >= visit.asked && not_all
        });
        if !fate.is_orphan() {
            return fate;
        }
        let ids = group.is_none_or(|g| !self.not_resumable.contains(&g));
        let unseen = unseen || ids && visit.kind == BodyKind::EventStream && self.may_resume_unseen(visit);
        match visit.ended {
            _ if unseen || self.answered_headless(c, visit) => Fate::Unobserved,
            // Who ends a session ends all that is in flight on it.
            Some(end) if self.was_deleted(visit, end.at) => Fate::Cancelled,
            _ => fate,
        }
    }

    /// Did a reply with the call's id come on a stream whose request was not captured, and which may
    /// have resumed the call's?
    fn answered_headless(&self, c: HopCallId, visit: &Visit) -> bool {
        let Some(id) = self.rpc_of(c).and_then(|r| r.id.as_ref()).filter(|_| !visit.resumable.is_empty()) else {
            return false;
        };
        let times = self.headless.get(&(visit.peer, id.loose()));
        let broke = visit.ended.map_or(visit.asked, |m| m.at);
        // One that waited for its deadline gave up; it did not break.
        if broke.since(visit.asked) > RESUMED_REPLY_NS {
            return false;
        }
        let resumed = |t: &Time| *t >= broke && t.since(broke) < RESUMED_REPLY_NS;
        times.is_some_and(|l| l.iter().take(LOOK_AT).any(resumed))
    }

    fn was_deleted(&self, visit: &Visit, ended: Time) -> bool {
        let at = visit.belongs_to().and_then(|s| self.deleted.get(s));
        at.is_some_and(|t| *t >= visit.asked && *t <= ended)
    }

    /// Did the client open a stream after this one broke, whose request was not captured and whose
    /// content was not seen whole?
    fn may_resume_unseen(&self, visit: &Visit) -> bool {
        let Some(ended) = visit.ended.map(|e| e.at) else { return false };
        let list = self.nameless.get(&visit.peer).map_or(&[][..], |l| l);
        let from = list.partition_point(|v| self.visits.get(*v as usize).is_some_and(|x| x.asked < ended));
        let later = list.get(from..).unwrap_or_default().iter().take(32).filter_map(|v| self.visits.get(*v as usize));
        later.take_while(|x| x.asked.since(ended) < 30_000_000_000).any(|x| {
            let same = x.given.is_none() || x.given == visit.session;
            same && x.server == visit.server && (x.response_gap || x.end == Some(End::Gap))
        })
    }

    fn unanswered(&self, visit: &Visit) -> Fate {
        if !self.silence_counts(visit) {
            return Fate::Unobserved;
        }
        if let Some(mark) = visit.client_closed {
            let reset = visit.end == Some(End::Reset) && visit.ended_by == Some(Peer::Client);
            return self.closing_or(visit, Fate::Cut { by: Peer::Client, mark, reset });
        }
        match (visit.end, visit.ended) {
            // A stream with event ids that ends is to be resumed, which the client may yet do.
            (Some(End::Complete), Some(mark)) if self.may_be_resumed(visit, mark) => Fate::Unobserved,
            (Some(End::Complete), _) => Fate::EndedEmpty,
            (Some(End::ServerClosed), Some(mark)) => Fate::Cut { by: Peer::Server, mark, reset: false },
            (Some(End::ClientClosed), Some(mark)) => {
                self.closing_or(visit, Fate::Cut { by: Peer::Client, mark, reset: false })
            }
            (Some(End::Reset), Some(mark)) => {
                let by = visit.ended_by.unwrap_or(Peer::Server);
                let cut = Fate::Cut { by, mark, reset: true };
                if by == Peer::Client { self.closing_or(visit, cut) } else { cut }
            }
            (Some(End::InputEnded) | None, _) => Fate::Silent,
            _ => Fate::Unobserved,
        }
    }

    fn may_be_resumed(&self, visit: &Visit, ended: Mark) -> bool {
        let watched = self.input_end.get(&visit.input).is_some_and(|t| t.since(ended.at) > RESUMED_NS);
        // The server's early close, to be polled, came with 2025-11-25; before, only a broken stream is resumed.
        let polled = visit.revision.as_deref().is_none_or(|r| r >= POLLING_SINCE);
        !visit.resumable.is_empty() && !watched && polled
    }

    /// Is the exchange one of the 2024-11-05 transport, whose replies come on the GET stream?
    pub fn is_legacy(&self, visit: &Visit) -> bool {
        visit.names_session_in_query()
    }

    /// As above, where the session stands in the path or nowhere: no mark of a later revision, and no
    /// POST of the client was ever answered on its own stream.
    fn is_legacy_call(&self, c: HopCallId, visit: &Visit) -> bool {
        let unmarked = visit.session.is_none() && visit.revision.is_none();
        let group = self.hop_call(c).map(|c| c.group);
        self.is_legacy(visit) || unmarked && group.is_some_and(|g| !self.answers_on_posts.contains(&g))
    }

    /// A call of the 2024-11-05 transport without a reply: only its GET stream can tell.
    fn legacy(&self, c: HopCallId) -> Fate {
        let Some(call) = self.hop_call(c) else { return Fate::Unobserved };
        let stream = self.legacy_streams.get(&call.group).and_then(|v| self.visits.get(*v as usize));
        let Some(stream) = stream else { return Fate::Unobserved };
        if stream.response_gap || stream.one_direction {
            return Fate::Unobserved;
        }
        let watched_until = match stream.end {
            Some(End::InputEnded) | None => self.input_end.get(&stream.input).copied(),
            _ => return Fate::EndedEmpty,
        };
        if watched_until.is_some_and(|t| t.since(call.asked) > self.client_timeout_ns) {
            Fate::Silent
        } else {
            Fate::Unobserved
        }
    }

    /// Outcome and delivery for the report.
    pub fn outcome(&self, call: &JointCall) -> (Outcome, Delivered) {
        let Some(&front) = call.hops.first() else { return (Outcome::Unobserved, Delivered::Unknown) };
        let Some(hop) = self.hop_call(front) else { return (Outcome::Unobserved, Delivered::Unknown) };
        let fate = self.fate_at(front);
        let reply = hop.answer.filter(|a| a.legal).and_then(|a| self.reply(a.at)).map(|(_, r)| r);
        let what = |r: &crate::mcp::Reply| match (r.error, r.tool_error) {
            (Some(_), _) => Outcome::RpcError,
            (None, true) => Outcome::ToolError,
            (None, false) => Outcome::Result,
        };
        let foreign = self.contents.foreign.contains_key(&front);
        let delivered = if foreign { Delivered::Foreign } else { Delivered::Own };
        match fate {
            Fate::Cancelled => (Outcome::Cancelled, if reply.is_some() { delivered } else { Delivered::None }),
            Fate::Answered | Fate::Late => {
                reply.map_or((Outcome::Unobserved, Delivered::Unknown), |r| (what(r), delivered))
            }
            Fate::Refused(_) | Fate::Gateway(_) => match reply {
                Some(r) if r.error.is_some() => (Outcome::HttpError, Delivered::Own),
                Some(r) => (what(r), delivered),
                None => (Outcome::HttpError, Delivered::None),
            },
            Fate::Unobserved => (Outcome::Unobserved, Delivered::Unknown),
            // A reply with another call's id is what came back on this stream.
            _ => match hop.foreign.first().and_then(|r| self.reply(*r)) {
                Some((_, r)) => (what(r), Delivered::Foreign),
                None => (Outcome::NoReply, Delivered::None),
            },
        }
    }

    /// How long the caller waited: to its reply or the end of its stream.
    pub fn waited_ns(&self, c: HopCallId) -> Option<i64> {
        let call = self.hop_call(c)?;
        let visit = self.visit_of(c)?;
        // A line of a log is written when the call is over; when it began, not every line says.
        if !visit.place.is_frame {
            return visit.duration_ns.or(call.closed.map(|t| t.since(call.asked)).filter(|ns| *ns > 0));
        }
        let until: Option<Time> =
            visit.client_closed.map(|m| m.at).or(call.closed).or(self.input_end.get(&visit.input).copied());
        until.map(|t| t.since(call.asked))
    }
}

/// Do the sequence and acknowledgment numbers of the exchange account for every byte of its response? Those
/// of a client's RST need not (RFC 9293 §3.10.7.4).
fn is_seen_whole(fate: Fate) -> bool {
    match fate {
        Fate::Cut { by, reset, .. } => by == Peer::Server || !reset,
        Fate::Gateway(_) | Fate::EndedEmpty | Fate::Accepted => true,
        _ => false,
    }
}

/// Did the caller close its side with its request, to say that it sends no more, and read on (half-close)?
fn reads_on(visit: &Visit) -> bool {
    let with_request = visit.client_closed.is_some_and(|m| m.at.since(visit.asked) < HALF_CLOSE_NS);
    with_request && visit.end == Some(End::Complete)
}

fn refusal(status: u16) -> Fate {
    match status {
        499 | 502 | 503 | 504 | 524 => Fate::Gateway(status),
        s => Fate::Refused(s),
    }
}
