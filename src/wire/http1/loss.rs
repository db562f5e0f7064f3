//! Bytes that are missing or make no sense, and where reading can go on behind them.

use super::chunked::{Chunked, size_line, whole_chunk};
use super::head::{Start, grade_after_loss};
use super::parser::{Begin, Http1, Slice, State};
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
                self.pairing.response(status, begin.offset, begin.acked, first, connection, context);
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
        match self.start(from, slice) {
            Grade::Certain => return slice,
            Grade::Unsure => return all,
            Grade::No => {}
        }
        if from == Peer::Client {
            self.pairing.lost_client(Some(slice.acked));
        } else if matches!(self.server.state, State::LostChunked) {
            return self.lost_chunk(connection, slice, context).unwrap_or(all);
        }
        all
    }

    /// Is this slice, or what came just before it and this, the start of a message? If certain,
    /// that is where the direction stands.
    fn start(&mut self, from: Peer, slice: Slice<'_>) -> Grade {
        let half = self.half(from);
        if !half.head.is_empty() {
            let before = half.head.len();
            half.head.extend_from_slice(slice.bytes);
            let grade = grade_after_loss(from, &half.head);
            if grade == Grade::Unsure {
                return grade;
            }
            half.head.truncate(before);
            if grade == Grade::Certain && self.resume(from) {
                self.half(from).state = State::Head;
                return grade;
            }
            if from == Peer::Client {
                // Of a request that was not understood; the next one may have followed at once.
                self.pairing.lost_client(Some(self.client.begin.acked));
            }
        }
        let grade = grade_after_loss(from, slice.bytes);
        let half = self.half(from);
        half.head.clear();
        half.begin = Begin { mark: Some(slice.mark), offset: slice.offset, acked: slice.acked };
        if grade == Grade::Unsure {
            half.head.extend_from_slice(slice.bytes);
        }
        let refused = grade == Grade::Certain && !self.resume(from);
        if refused { Grade::No } else { grade }
    }

    /// A message seems to begin where `begin` says; is that possible?
    fn resume(&mut self, from: Peer) -> bool {
        let offset = self.half(from).begin.offset;
        if from == Peer::Server {
            if !self.pairing.may_answer(offset) {
                return false;
            }
            self.pairing.resynced(offset);
        }
        self.half(from).state = State::Between;
        true
    }

    /// A chunk that is whole proves itself; a longer one is believed if it begins as an event does.
    fn lost_chunk<'a>(
        &mut self,
        connection: &Connection,
        slice: Slice<'a>,
        context: &mut Context<'_>,
    ) -> Option<Slice<'a>> {
        if !self.pairing.may_continue(slice.acked) {
            return None;
        }
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

    /// Bytes of one direction are missing or make no sense: it is out of step. `heard` is what its
    /// end had received of the other before, where that is known.
    pub(super) fn lose(&mut self, connection: &Connection, from: Peer, heard: Option<u64>, context: &mut Context<'_>) {
        let half = self.half(from);
        let was = std::mem::replace(&mut half.state, State::Lost);
        half.head.clear();
        match (from, was) {
            (_, State::Done) => half.state = State::Done,
            (Peer::Client, was) => {
                let begins = matches!(was, State::Between | State::Head | State::Lost);
                self.pairing.lost_client(heard.filter(|_| begins));
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
