//! Which response answers which request.

use super::open::Open;
use crate::model::exchange::{End, Mark, Peer};
use crate::model::limits;
use crate::model::problem::ProblemKind;
use crate::wire::{Connection, Context};
use std::collections::VecDeque;

/// The exchanges of a connection that are open, in order of requests, and what is known of how
/// the two directions fit together.
#[derive(Default)]
pub(super) struct Pairing {
    open: VecDeque<Open>,
    /// The client has sent a request before the response to the one before was complete.
    pipelines: bool,
    /// Bytes are missing since the directions were last known to fit.
    doubt: bool,
    /// Bytes of the client are missing since its last request: it may have sent others.
    unseen_requests: bool,
    /// How many bytes of the server the client had before a request of it went missing.
    lost_at: Option<u64>,
    /// Bytes have been missing at some time.
    was_doubtful: bool,
    /// The server's bytes have been followed without a break from here on.
    synced: u64,
}

impl Pairing {
    /// The exchange whose response is, or will be next, on the wire.
    pub(super) fn front(&mut self) -> Option<&mut Open> {
        self.open.front_mut()
    }
    /// The exchange of the last request.
    pub(super) fn back(&mut self) -> Option<&mut Open> {
        self.open.back_mut()
    }
    /// The exchange whose message an end is sending.
    pub(super) fn of(&mut self, from: Peer) -> Option<&mut Open> {
        match from {
            Peer::Client => self.back(),
            Peer::Server => self.front(),
        }
    }
    /// All, in order.
    pub(super) fn all(&mut self) -> impl Iterator<Item = &mut Open> {
        self.open.iter_mut()
    }
    /// Takes all out.
    pub(super) fn take(&mut self) -> VecDeque<Open> {
        std::mem::take(&mut self.open)
    }
    /// Bytes of the client are missing, and a request may have been among them; for sure if
    /// `heard` tells how many bytes of the server it had before them.
    pub(super) fn lost_client(&mut self, heard: Option<u64>) {
        self.doubt = true;
        self.was_doubtful = true;
        self.lost_at = heard.or(self.lost_at);
        self.unseen_requests = true;
    }

    /// Bytes of the server are missing, and the end of a response may have been among them.
    pub(super) fn lost_server(&mut self, connection: &Connection, context: &mut Context<'_>) {
        self.doubt = true;
        self.was_doubtful = true;
        for open in self.open.iter_mut().filter(|open| open.response_done.is_none()) {
            open.response_gap(connection, context);
        }
    }

    /// A request head has come. True if it proves that the server is at the start of a response:
    /// the client acknowledged all that the server sent, `sent` bytes.
    pub(super) fn request(
        &mut self,
        open: Open,
        sent: u64,
        is_followed: bool,
        connection: &Connection,
        context: &mut Context<'_>,
    ) -> bool {
        // Two requests without a byte of the server between them, or a second one while the first
        // is known to be unanswered.
        let waits = |before: &&Open| before.request_done && before.response_done.is_none();
        let mut waiting = self.open.iter().filter(waits);
        self.pipelines |= match self.doubt || !is_followed {
            true => waiting.any(|before| before.acked == open.acked && open.acked != u64::MAX && !before.answered),
            false => waiting.next().is_some(),
        };
        // Or the first of the two is missing.
        self.pipelines |= self.unseen_requests && self.lost_at == Some(open.acked);
        let proves = self.doubt && !self.pipelines && open.acked == sent;
        if proves {
            let first = open.exchange.request.as_ref().map(|request| request.first);
            for before in self.open.drain(..) {
                let mark = before.response_done.or(first);
                if let Some(mark) = mark {
                    before.end(End::Gap, None, mark, connection, context);
                }
            }
            self.doubt = false;
            self.synced = sent;
        }
        self.unseen_requests = false;
        self.open.push_back(open);
        if self.open.len() > limits::PIPELINED
            && let Some(oldest) = self.open.pop_front()
        {
            let mark = oldest.exchange.request.as_ref().map(|request| request.last);
            if let Some(mark) = mark.or(first_mark(&oldest)) {
                context.problems.add(
                    ProblemKind::LimitHit,
                    || format!("frame {}", mark.place.number),
                    || "pipelined: too many requests wait for a response",
                );
                oldest.end(End::Gap, None, mark, connection, context);
            }
        }
        proves
    }

    /// May a response begin at `offset`, where what looks like one begins a segment after a gap?
    pub(super) fn may_answer(&self, offset: u64) -> bool {
        self.unseen_requests
            || self.pipelines
            || self.open.is_empty()
            || self.open.iter().any(|open| !open.answered && open.acked == offset)
    }

    /// Can what the server sent when it had `acked` of the client's bytes still be of the response
    /// at hand? Not once it had another request.
    pub(super) fn may_continue(&self, acked: u64) -> bool {
        self.open.len() == 1 && self.open.front().is_some_and(|open| acked <= open.end)
    }

    /// The server is in step again, from `offset` on.
    pub(super) fn resynced(&mut self, offset: u64) {
        self.synced = offset;
    }

    /// A final response begins at `offset` of the server's bytes, sent when the server had `acked`
    /// of the client's: brings the exchange that it belongs to to the front, a new one without
    /// request if none is proved. What stands before it can have no response any more.
    pub(super) fn response(
        &mut self,
        status: u16,
        offset: u64,
        acked: u64,
        first: Mark,
        connection: &Connection,
        context: &mut Context<'_>,
    ) {
        // A server that has waited long enough says 408 to no request at all.
        let doubtful = self.was_doubtful || status == 408;
        let waits = |open: &Open| !open.answered;
        let owner = if !self.doubt {
            self.open.iter().position(|open| waits(open) && (!doubtful || open.begin < acked))
        } else if self.pipelines {
            None
        } else {
            let fits = |open: &Open| {
                waits(open)
                    && open.acked <= offset
                    && open.acked >= self.synced
                    && open.exchange.request.is_some()
                    && open.begin < acked
            };
            self.open.iter().rposition(fits)
        };
        // What is before the owner has had its response, or never will.
        let over = owner.unwrap_or_else(|| self.open.iter().take_while(|open| open.answered).count());
        for before in self.open.drain(..over) {
            let end = if before.response_done.is_some() { End::Complete } else { End::Gap };
            let mark = before.response_done.unwrap_or(first);
            before.end(end, None, mark, connection, context);
        }
        if owner.is_none() {
            let mut open = Open::without_request(connection, context);
            open.end = acked;
            self.open.push_front(open);
        }
    }

    /// The front exchange, if both its halves are done.
    pub(super) fn pop_done(&mut self) -> Option<(Open, Mark)> {
        let front = self.open.front()?;
        let mark = front.response_done.filter(|_| front.request_done)?;
        Some((self.open.pop_front()?, mark))
    }
}

fn first_mark(open: &Open) -> Option<Mark> {
    open.exchange.response.as_ref().map(|response| response.first)
}
