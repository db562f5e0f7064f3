//! Leads frames to their streams.

use super::block::{Block, Blocks, Step};
use super::frame::{Framer, Header, Piece, kind};
use super::stream::Stream;
use crate::model::exchange::{End, Mark, Peer};
use crate::model::limits;
use crate::model::problem::ProblemKind;
use crate::wire::{Close, Connection, Context, StreamParser};
use std::collections::{BTreeMap, BTreeSet};

/// The parser of one HTTP/2 connection.
pub struct Http2 {
    client: Half,
    pub(super) server: Half,
    /// Open streams, in order of their numbers.
    pub(super) streams: BTreeMap<u32, Stream>,
    /// The highest stream of the client's.
    last_stream: u32,
    /// Streams that were reset while frames on them may still be under way.
    reset: BTreeSet<u32>,
    /// Holes of the client's and the server's direction so far.
    pub(super) holes: [u64; 2],
    /// The lowest last stream that a GOAWAY of either end named.
    go_away: [u32; 2],
    pub(super) client_closed: bool,
    server_closed: bool,
    done: bool,
}

/// Reset streams that are remembered.
const RESET_STREAMS: usize = 1024;

/// One direction.
pub(super) struct Half {
    pub(super) framer: Framer,
    pub(super) blocks: Blocks,
    /// Something of it was not seen: streams may be open that are not known.
    pub(super) partly_seen: bool,
    /// Nothing of it was heard yet.
    fresh: bool,
}

impl Half {
    fn new(preface: bool) -> Half {
        Half { framer: Framer::new(preface), blocks: Blocks::new(false), partly_seen: false, fresh: true }
    }

    fn midstream() -> Half {
        Half { framer: Framer::midstream(), blocks: Blocks::new(true), partly_seen: true, fresh: false }
    }
}

impl Default for Http2 {
    /// For a connection from its beginning; a direction whose first bytes are not those of a beginning is
    /// taken to be midstream.
    fn default() -> Http2 {
        Http2 {
            client: Half::new(true),
            server: Half::new(false),
            streams: BTreeMap::new(),
            last_stream: 0,
            reset: BTreeSet::new(),
            holes: [0; 2],
            go_away: [u32::MAX; 2],
            client_closed: false,
            server_closed: false,
            done: false,
        }
    }
}

/// What is being done, where.
pub(super) struct At<'a, 'c> {
    pub(super) connection: &'a Connection,
    pub(super) from: Peer,
    pub(super) mark: Mark,
    pub(super) context: &'a mut Context<'c>,
}

impl At<'_, '_> {
    pub(super) fn problem(&mut self, kind: ProblemKind, count: u64, text: impl FnOnce() -> String) {
        if count > 0 {
            let number = self.mark.place.number;
            self.context.problems.add_many(kind, count, || format!("frame {number}"), text);
        }
    }
}

impl StreamParser for Http2 {
    fn data(&mut self, connection: &Connection, from: Peer, bytes: &[u8], mark: Mark, context: &mut Context<'_>) {
        if self.done {
            return;
        }
        let half = self.half(from);
        if std::mem::take(&mut half.fresh) && !begins(from, bytes) {
            *half = Half::midstream();
        }
        let at = &mut At { connection, from, mark, context };
        let mut input = bytes;
        // The framer is taken out so that what it hands over can be worked on.
        let mut framer = std::mem::replace(&mut self.half(from).framer, Framer::new(false));
        while let Some(piece) = framer.next(&mut input) {
            self.piece(at, piece);
        }
        self.half(from).framer = framer;
    }

    fn gap(&mut self, connection: &Connection, from: Peer, bytes: Option<u64>, mark: Mark, context: &mut Context<'_>) {
        if self.done {
            return;
        }
        let half = self.half(from);
        half.fresh = false;
        let (piece, lost) = half.framer.gap(bytes);
        let at = &mut At { connection, from, mark, context };
        if let Some(piece) = piece {
            self.piece(at, piece);
        }
        if lost {
            self.lose(at);
        }
    }

    fn close(&mut self, connection: &Connection, from: Peer, close: Close, mark: Mark, context: &mut Context<'_>) {
        let at = &mut At { connection, from, mark, context };
        match (close, from) {
            (Close::Fin, Peer::Client) => {
                self.close_client(at);
                if self.server_closed {
                    self.end_all(at, End::ServerClosed, Some(Peer::Server));
                }
            }
            (Close::Fin, Peer::Server) => {
                self.server_closed = true;
                self.end_all(at, End::ServerClosed, Some(Peer::Server));
            }
            (Close::Reset, _) => {
                if from == Peer::Client {
                    self.close_client(at);
                }
                self.end_all(at, End::Reset, Some(from));
                self.done = true;
            }
            (Close::InputEnded, _) => {
                self.end_all(at, End::InputEnded, None);
                self.done = true;
            }
        }
    }
}

/// Can a direction that is seen from its beginning begin like this (RFC 9113 §3.4)?
fn begins(from: Peer, bytes: &[u8]) -> bool {
    match from {
        Peer::Client => bytes.first() == Some(&b'P'),
        // The length and type of SETTINGS.
        Peer::Server => {
            bytes.iter().zip([Some(0), None, None, Some(kind::SETTINGS)]).all(|(a, b)| b.is_none_or(|b| *a == b))
        }
    }
}

impl Http2 {
    /// For a connection that was HTTP/1.1 up to here (RFC 7540 §3.2): stream 1 carries the response to the
    /// request that asked for the upgrade.
    pub(in crate::wire) fn upgraded(open: crate::wire::http1::Open) -> Http2 {
        let mut parser = Http2 { last_stream: 1, ..Http2::default() };
        parser.streams.insert(1, Stream::new(open, 1, parser.holes));
        parser
    }

    pub(super) fn half(&mut self, from: Peer) -> &mut Half {
        match from {
            Peer::Client => &mut self.client,
            Peer::Server => &mut self.server,
        }
    }

    /// An open stream, which then knows of all holes so far.
    pub(super) fn stream(&mut self, at: &mut At<'_, '_>, id: u32) -> Option<&mut Stream> {
        let stream = self.streams.get_mut(&id)?;
        stream.catch_up(self.holes, at.connection, at.context);
        Some(stream)
    }

    fn piece(&mut self, at: &mut At<'_, '_>, piece: Piece<'_>) {
        if self.half(at.from).blocks.is_pending()
            && !matches!(piece, Piece::Frame(Header { kind: kind::CONTINUATION, .. }, _))
        {
            at.problem(ProblemKind::BadHttp2, 1, || "a header block is not continued where it must be".to_owned());
            self.lost_block(at);
        }
        match piece {
            Piece::Data { stream, bytes, ends } => self.stream_data(at, stream, bytes, ends),
            Piece::DataGap { stream, ends } => self.data_gap(at, stream, ends),
            Piece::Frame(header, payload) => self.frame(at, header, payload),
            Piece::Damaged(header) => self.damaged(at, header),
            Piece::NotHttp2 => {
                at.problem(ProblemKind::BadHttp2, 1, || "bytes that are no HTTP/2 frame".to_owned());
                self.lose(at);
            }
        }
    }

    fn frame(&mut self, at: &mut At<'_, '_>, header: Header, payload: &[u8]) {
        match header.kind {
            kind::HEADERS | kind::PUSH_PROMISE | kind::CONTINUATION => {
                let step = self.half(at.from).blocks.frame(header, payload, at.mark);
                self.block_step(at, step);
            }
            kind::RST_STREAM => self.reset(at, header.stream),
            kind::GOAWAY => self.go_away(at, payload),
            _ => {}
        }
    }

    fn block_step(&mut self, at: &mut At<'_, '_>, step: Step) {
        match step {
            Step::Unfinished => {}
            Step::Whole(block) => {
                let (unknown, dropped) = (block.fields.unknown, block.fields.dropped);
                at.problem(ProblemKind::BadHttp2, unknown, || {
                    "header fields are unknown (`?`) that refer to a header block that was not captured".to_owned()
                });
                at.problem(ProblemKind::LimitHit, dropped, || {
                    "head-bytes, header-fields: too many fields in a header block".to_owned()
                });
                match (block.promised, at.from) {
                    (Some(promised), _) => self.promise(at, promised, *block),
                    (None, Peer::Client) => self.request(at, *block),
                    (None, Peer::Server) => self.response(at, *block),
                }
            }
            Step::Undecodable(stream, error) => {
                at.problem(ProblemKind::BadHttp2, 1, || format!("a header block does not decode: {error}"));
                self.lost_headers(at, stream);
            }
            Step::TooLong(stream) => {
                at.problem(ProblemKind::LimitHit, 1, || {
                    format!("header-block-bytes: a header block of more than {} bytes", limits::HEADER_BLOCK_BYTES)
                });
                self.lost_headers(at, stream);
            }
            Step::Illegal => {
                at.problem(ProblemKind::BadHttp2, 1, || "frames of a header block that break the rules".to_owned());
            }
        }
    }

    /// A header block from the client: a request, or the trailers of one.
    fn request(&mut self, at: &mut At<'_, '_>, block: Block) {
        let (id, end_stream, last) = (block.stream, block.end_stream, block.last);
        if !self.streams.contains_key(&id) {
            let is_request = block.fields.method.is_some() || block.fields.unknown > 0;
            if !is_request {
                let trailers = id <= self.last_stream || self.client.partly_seen;
                at.problem(ProblemKind::BadHttp2, u64::from(!trailers), || "a request without a method".to_owned());
                return;
            }
            self.last_stream = self.last_stream.max(id);
            if let Some(protocol) = &block.fields.protocol {
                let kind = if &**protocol == "websocket" { ProblemKind::WebSocket } else { ProblemKind::Tunnel };
                let text = format!("a stream carries `{protocol}` (RFC 8441), which is not read");
                return at.problem(kind, 1, || text);
            }
            self.make_room(at);
            let stream = Stream::with_request(at.connection, id, block, self.holes, at.context);
            self.streams.insert(id, stream);
        }
        if end_stream {
            self.request_end(at, id, &[], last);
        }
    }

    /// A header block from the server: an interim or final response, or trailers.
    fn response(&mut self, at: &mut At<'_, '_>, block: Block) {
        let Block { stream: id, end_stream, first, last, fields, .. } = block;
        let status = fields.status.as_ref().map(|status| status.parse().unwrap_or(0));
        if !self.streams.contains_key(&id) {
            // Late frames of a stream that was reset, unless its request was not seen.
            let may_be_open = self.client.partly_seen || at.connection.one_direction;
            if !may_be_open || self.reset.contains(&id) || status.is_none() && fields.unknown == 0 {
                return;
            }
            self.make_room(at);
            self.streams.insert(id, Stream::without_request(at.connection, id, self.holes, at.context));
        }
        let Some(stream) = self.stream(at, id) else { return };
        stream.in_hole = false;
        let is_head = !stream.open.answered && (status.is_some() || fields.unknown > 0);
        if is_head {
            let status = status.unwrap_or(0);
            // Interim responses answer nothing (RFC 9110 §15.2).
            if (100..200).contains(&status) && !end_stream {
                return;
            }
            close_cut_request(stream, at);
            stream.open.response_head(status, fields.fields, first, at.connection, at.context);
        }
        if end_stream {
            self.response_end(at, id, &[], last);
        }
    }

    /// The server announces a request that it answers unasked (RFC 9113 §8.4).
    fn promise(&mut self, at: &mut At<'_, '_>, promised: u32, block: Block) {
        self.make_room(at);
        let last = block.last;
        let mut stream = Stream::with_request(at.connection, promised, block, self.holes, at.context);
        stream.open.request_end(&[], last, at.connection, at.context);
        if let Some(older) = self.streams.insert(promised, stream) {
            older.end(End::Gap, None, at.mark, at.connection, at.context);
        }
    }

    fn stream_data(&mut self, at: &mut At<'_, '_>, id: u32, bytes: &[u8], ends: bool) {
        let Some(stream) = self.stream(at, id) else { return };
        match (at.from, ends) {
            (Peer::Client, false) => stream.open.request_bytes(bytes, at.mark, at.context),
            (Peer::Client, true) => self.request_end(at, id, bytes, at.mark),
            (Peer::Server, _) if !stream.open.answered => {
                // Its head was lost.
                if !stream.open.doubtful {
                    stream.open.response_gap(at.connection, at.context);
                }
                if ends {
                    self.end_stream(at, id, End::Gap, None);
                }
            }
            (Peer::Server, false) => {
                stream.in_hole = false;
                stream.open.response_chunk(bytes);
                stream.open.response_bytes(bytes, at.mark, at.connection, at.context);
            }
            (Peer::Server, true) => {
                stream.open.response_chunk(bytes);
                self.response_end(at, id, bytes, at.mark);
            }
        }
    }

    fn data_gap(&mut self, at: &mut At<'_, '_>, id: u32, ends: bool) {
        let Some(stream) = self.stream(at, id) else { return };
        match at.from {
            Peer::Client => {
                stream.request_gap();
                if ends {
                    self.request_end(at, id, &[], at.mark);
                }
            }
            Peer::Server => {
                stream.open.response_gap(at.connection, at.context);
                if ends {
                    self.response_end(at, id, &[], at.mark);
                }
            }
        }
    }

    fn request_end(&mut self, at: &mut At<'_, '_>, id: u32, tail: &[u8], mark: Mark) {
        let Some(stream) = self.stream(at, id) else { return };
        stream.open.request_end(tail, mark, at.connection, at.context);
        self.finish_done(at, id);
    }

    fn response_end(&mut self, at: &mut At<'_, '_>, id: u32, tail: &[u8], mark: Mark) {
        let Some(stream) = self.stream(at, id) else { return };
        stream.open.response_end(tail, mark, at.connection, at.context);
        self.finish_done(at, id);
    }

    pub(super) fn finish_done(&mut self, at: &mut At<'_, '_>, id: u32) {
        let is_done = |stream: &Stream| stream.open.request_done && stream.open.response_done.is_some();
        if self.streams.get(&id).is_some_and(is_done) {
            self.end_stream(at, id, End::Complete, None);
        }
    }

    fn end_stream(&mut self, at: &mut At<'_, '_>, id: u32, end: End, by: Option<Peer>) {
        if let Some(mut stream) = self.streams.remove(&id) {
            stream.catch_up(self.holes, at.connection, at.context);
            stream.end(end, by, at.mark, at.connection, at.context);
        }
    }

    pub(super) fn reset(&mut self, at: &mut At<'_, '_>, id: u32) {
        let Some(stream) = self.stream(at, id) else { return };
        stream.in_hole = false;
        stream.open.doubtful = false;
        if at.from == Peer::Client {
            stream.open.client_closed(at.mark, at.connection, at.context);
        }
        self.end_stream(at, id, End::Reset, Some(at.from));
        self.reset.insert(id);
        if self.reset.len() > RESET_STREAMS {
            self.reset.pop_first();
        }
    }

    /// Streams above the last one that the sender worked on were not processed (RFC 9113 §6.8).
    fn go_away(&mut self, at: &mut At<'_, '_>, payload: &[u8]) {
        let Some(last) = payload.first_chunk::<4>() else { return };
        let last = u32::from_be_bytes(*last) & 0x7fff_ffff;
        let [client, server] = &mut self.go_away;
        let before = if at.from == Peer::Client { client } else { server };
        if last >= *before {
            return;
        }
        *before = last;
        // Those of the other end are odd for the client's, even for the server's.
        let others = u32::from(at.from == Peer::Server);
        let refused: Vec<u32> = self.streams.keys().copied().filter(|id| *id > last && id % 2 == others).collect();
        for id in refused {
            self.end_stream(at, id, End::Reset, Some(at.from));
        }
    }

    fn make_room(&mut self, at: &mut At<'_, '_>) {
        if self.streams.len() < limits::H2_STREAMS {
            return;
        }
        at.problem(ProblemKind::LimitHit, 1, || "h2-streams: too many open streams on one connection".to_owned());
        if let Some((_, oldest)) = self.streams.pop_first() {
            oldest.end(End::Gap, None, at.mark, at.connection, at.context);
        }
    }
}

/// A request of which bytes are missing is not waited for once it is answered.
fn close_cut_request(stream: &mut Stream, at: &mut At<'_, '_>) {
    let cut = stream.open.exchange.request.as_ref().filter(|_| stream.cut_request).map(|request| request.last);
    if let Some(last) = cut {
        stream.open.request_end(&[], last, at.connection, at.context);
    }
}
