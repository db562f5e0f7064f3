//! What is missing of a connection, and its end.

use super::frame::{Header, kind};
use super::parser::{At, Http2};
use crate::model::exchange::{End, Peer};
use crate::model::limits;
use crate::model::problem::ProblemKind;

impl Http2 {
    /// A frame that is no DATA is damaged.
    pub(super) fn damaged(&mut self, at: &mut At<'_, '_>, header: Header) {
        let too_long = header.length > limits::HEADER_BLOCK_BYTES;
        at.problem(ProblemKind::LimitHit, u64::from(too_long), || {
            format!("header-block-bytes: a frame of more than {} bytes", limits::HEADER_BLOCK_BYTES)
        });
        match header.kind {
            kind::HEADERS | kind::PUSH_PROMISE | kind::CONTINUATION => {
                self.half(at.from).blocks.lost();
                self.lost_headers(at, header.stream);
            }
            kind::RST_STREAM => self.reset(at, header.stream),
            _ => {}
        }
    }

    /// A header block is given up before its end.
    pub(super) fn lost_block(&mut self, at: &mut At<'_, '_>) {
        if let Some(stream) = self.half(at.from).blocks.lost() {
            self.lost_headers(at, stream);
        }
    }

    /// The header block of a stream is lost.
    pub(super) fn lost_headers(&mut self, at: &mut At<'_, '_>, id: u32) {
        let half = self.half(at.from);
        half.partly_seen = true;
        if let Some(stream) = self.stream(at, id) {
            match at.from {
                Peer::Client => stream.request_gap(),
                Peer::Server => {
                    stream.open.response_gap(at.connection, at.context);
                    // It may have ended the stream.
                    stream.in_hole = true;
                }
            }
        }
    }

    /// The frame boundary is lost, and any frame may have been.
    pub(super) fn lose(&mut self, at: &mut At<'_, '_>) {
        let half = self.half(at.from);
        half.partly_seen = true;
        half.blocks.lost();
        let [client, server] = &mut self.holes;
        *(if at.from == Peer::Client { client } else { server }) += 1;
    }

    pub(super) fn close_client(&mut self, at: &mut At<'_, '_>) {
        if std::mem::replace(&mut self.client_closed, true) {
            return;
        }
        for stream in self.streams.values_mut() {
            stream.catch_up(self.holes, at.connection, at.context);
            if !stream.open.request_done {
                stream.request_gap();
                stream.open.request_end(&[], at.mark, at.connection, at.context);
            }
            stream.open.client_closed(at.mark, at.connection, at.context);
        }
        let ids: Vec<u32> = self.streams.keys().copied().collect();
        ids.into_iter().for_each(|id| self.finish_done(at, id));
    }

    pub(super) fn end_all(&mut self, at: &mut At<'_, '_>, end: End, by: Option<Peer>) {
        let lost = self.server.framer.is_lost();
        for (_, mut stream) in std::mem::take(&mut self.streams) {
            stream.catch_up(self.holes, at.connection, at.context);
            stream.in_hole |= lost;
            stream.end(end, by, at.mark, at.connection, at.context);
        }
    }
}
