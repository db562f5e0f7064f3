//! Bytes that are missing or make no sense, and where reading can go on behind them.

use super::chunked::{Chunked, size_line, whole_chunk};
use super::head::{Start, grade};
use super::parser::{Http1, Slice, State};
use crate::model::exchange::{Mark, Peer};
use crate::wire::probe::Grade;
use crate::wire::{Connection, Context};

impl Http1 {
    /// The rest of a head is missing; its start line still says what it was.
    pub(super) fn cut_head(&mut self, connection: &Connection, from: Peer, mark: Mark, context: &mut Context<'_>) {
        let half = self.half(from);
        if !matches!(half.state, State::Head) {
            return;
        }
        let bytes = std::mem::take(&mut half.head);
        let begin = half.begin;
        let Some(head) = half.reader.read_cut(from, &bytes) else { return };
        let first = begin.mark.unwrap_or(mark);
        match head.start {
            Start::Request(..) => {
                self.add_request(connection, head, begin, first, context);
                if let Some(open) = self.pairing.back() {
                    open.request_gap();
                    open.request_end(&[], first, connection, context);
                }
            }
            Start::Response(status) if (100..200).contains(&status) => {}
            Start::Response(status) => {
                self.pairing.response(begin.offset, begin.acked, first, connection, context);
                if let Some(open) = self.pairing.front() {
                    open.response_head(status, head.fields, first, connection, context);
                }
            }
        }
    }

    /// Looks for a place where a message provably begins.
    pub(super) fn lost<'a>(
        &mut self,
        connection: &Connection,
        from: Peer,
        slice: Slice<'a>,
        context: &mut Context<'_>,
    ) -> Slice<'a> {
        let all = slice.skip(slice.bytes.len());
        // Behind a head that cannot tell its length the next may follow at once.
        let follows = std::mem::take(&mut self.half(from).behind_head);
        if !slice.begins && !follows {
            return all;
        }
        let is_start = grade(from, slice.bytes) == Grade::Certain;
        if is_start && (from == Peer::Client || self.pairing.may_answer(slice.offset)) {
            self.half(from).state = State::Between;
            if from == Peer::Server {
                self.pairing.resynced(slice.offset);
            }
            return slice;
        }
        if from == Peer::Server && matches!(self.server.state, State::LostChunked) {
            return self.lost_chunk(connection, slice, context).unwrap_or(all);
        }
        all
    }

    /// A chunk that is whole proves itself; a longer one is believed if it begins as an event does.
    fn lost_chunk<'a>(
        &mut self,
        connection: &Connection,
        slice: Slice<'a>,
        context: &mut Context<'_>,
    ) -> Option<Slice<'a>> {
        let open = self.pairing.front()?;
        match whole_chunk(slice.bytes) {
            Some((_, 0)) => {
                self.end_message(connection, Peer::Server, &[], slice.mark, context);
                return Some(slice.skip(slice.bytes.len()));
            }
            Some(_) => {}
            None => {
                let (line, size) = size_line(slice.bytes)?;
                let data = slice.bytes.get(line..)?;
                if size <= data.len() || !open.begins_event(data) {
                    return None;
                }
            }
        }
        self.server.state = State::Chunked(Chunked::START);
        Some(slice)
    }

    /// Bytes of one direction are missing, or make no sense: it is out of step.
    pub(super) fn lose(&mut self, connection: &Connection, from: Peer, context: &mut Context<'_>) {
        let half = self.half(from);
        let was = std::mem::replace(&mut half.state, State::Lost);
        half.head.clear();
        match (from, was) {
            (_, State::Done) => half.state = State::Done,
            (Peer::Client, was) => {
                self.pairing.lost_client();
                if matches!(was, State::Body(_) | State::Chunked(_))
                    && let Some(open) = self.pairing.back().filter(|open| !open.request_done)
                {
                    open.request_gap();
                    let last = open.exchange.request.as_ref().map(|request| request.last);
                    if let Some(last) = last {
                        open.request_end(&[], last, connection, context);
                    }
                    self.finish_done(connection, context);
                }
            }
            (Peer::Server, was) => {
                if matches!(was, State::Chunked(_) | State::LostChunked) {
                    self.server.state = State::LostChunked;
                }
                self.pairing.lost_server(connection, context);
            }
        }
    }
}
