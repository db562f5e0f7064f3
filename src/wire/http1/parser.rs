//! Follows the messages of both directions.

use super::chunked::{Chunked, Step};
use super::head::{Head, HeadReader, Length, Start, grade, grade_after_loss, has_token, head_len};
use super::head::{request_length, response_length};
use super::open::Open;
use super::pairing::Pairing;
use crate::model::exchange::{End, Mark, Peer};
use crate::model::limits;
use crate::model::problem::ProblemKind;
use crate::wire::{Close, Connection, Context, StreamParser, http2::Http2, probe::Grade};

/// The parser of one HTTP/1 connection.
#[derive(Default)]
pub struct Http1 {
    pub(super) client: Half,
    pub(super) server: Half,
    pub(super) pairing: Pairing,
    pub(super) client_closed: bool,
    pub(super) server_closed: bool,
    /// The connection goes on as HTTP/2 (RFC 7540 §3.2).
    upgraded: Option<Box<Http2>>,
}

/// One direction.
#[derive(Default)]
pub(super) struct Half {
    pub(super) state: State,
    /// A head that began in an earlier slice.
    pub(super) head: Vec<u8>,
    pub(super) begin: Begin,
    pub(super) reader: HeadReader,
    /// A request waits for leave to send its body.
    pub(super) expects: bool,
    /// It was lost by a head just read.
    pub(super) behind_head: bool,
    /// Bytes so far, missing ones included.
    pub(super) sent: u64,
}

/// Where a message began.
#[derive(Clone, Copy, Default)]
pub(super) struct Begin {
    pub(super) mark: Option<Mark>,
    pub(super) offset: u64,
    pub(super) acked: u64,
}

#[derive(Clone, Copy, Default)]
pub(super) enum State {
    /// Between messages.
    #[default]
    Between,
    /// In a head.
    Head,
    /// In a body with so many bytes left.
    Body(u64),
    /// In a chunked body.
    Chunked(Chunked),
    /// In a body up to the close.
    UntilClose,
    /// Bytes are missing and it is not known where the next message begins.
    Lost,
    /// The same, and what is lost is a chunked body, whose next chunk may be recognised.
    LostChunked,
    /// Nothing more is read: another protocol follows, or the end has closed.
    Done,
}

/// A slice of the stream and where it lies.
#[derive(Clone, Copy)]
pub(super) struct Slice<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) mark: Mark,
    pub(super) offset: u64,
    pub(super) acked: u64,
    /// It is the beginning of what one segment brought.
    pub(super) begins: bool,
}

impl<'a> Slice<'a> {
    pub(super) fn skip(self, used: usize) -> Slice<'a> {
        let bytes = self.bytes.get(used..).unwrap_or_default();
        Slice { bytes, offset: self.offset + used as u64, begins: self.begins && used == 0, ..self }
    }
}

impl StreamParser for Http1 {
    fn data(&mut self, connection: &Connection, from: Peer, bytes: &[u8], mark: Mark, context: &mut Context<'_>) {
        let mut slice = Slice { bytes, mark, offset: connection.offset, acked: connection.acked, begins: true };
        self.half(from).sent = connection.offset + bytes.len() as u64;
        while !slice.bytes.is_empty() {
            if let Some(http2) = &mut self.upgraded {
                return http2.data(connection, from, slice.bytes, mark, context);
            }
            slice = self.step(connection, from, slice, context);
        }
    }

    fn gap(&mut self, connection: &Connection, from: Peer, bytes: Option<u64>, mark: Mark, context: &mut Context<'_>) {
        if let Some(http2) = &mut self.upgraded {
            return http2.gap(connection, from, bytes, mark, context);
        }
        let half = self.half(from);
        half.sent = connection.offset + bytes.unwrap_or(0);
        let skipped = match (&mut half.state, bytes) {
            (State::Body(left), Some(bytes)) if bytes <= *left => {
                *left -= bytes;
                true
            }
            (State::Chunked(chunked), Some(bytes)) => chunked.skip(bytes),
            (State::UntilClose, _) => true,
            (State::Done, _) => return,
            _ => false,
        };
        if !skipped {
            self.cut_head(connection, from, mark, context);
            self.lose(connection, from, bytes.map(|_| connection.acked), context);
            return;
        }
        match from {
            Peer::Client => self.pairing.back().into_iter().for_each(Open::request_gap),
            Peer::Server => self.pairing.front().into_iter().for_each(|open| open.response_gap(connection, context)),
        }
        if matches!(self.half(from).state, State::Body(0)) {
            self.end_message(connection, from, &[], mark, context);
        }
    }

    fn close(&mut self, connection: &Connection, from: Peer, close: Close, mark: Mark, context: &mut Context<'_>) {
        if let Some(http2) = &mut self.upgraded {
            return http2.close(connection, from, close, mark, context);
        }
        match (close, from) {
            (Close::Fin, Peer::Client) => self.close_client(connection, mark, context),
            (Close::Fin, Peer::Server) => {
                if matches!(self.server.state, State::UntilClose) {
                    self.end_message(connection, Peer::Server, &[], mark, context);
                }
                self.end_all(connection, End::ServerClosed, Some(Peer::Server), mark, context);
                self.server.state = State::Done;
                self.server_closed = true;
            }
            (Close::Reset, _) => {
                if from == Peer::Client {
                    self.close_client(connection, mark, context);
                }
                self.end_all(connection, End::Reset, Some(from), mark, context);
            }
            (Close::InputEnded, _) => self.end_all(connection, End::InputEnded, None, mark, context),
        }
    }
}

impl Http1 {
    pub(super) fn half(&mut self, from: Peer) -> &mut Half {
        match from {
            Peer::Client => &mut self.client,
            Peer::Server => &mut self.server,
        }
    }

    /// Reads on from the start of a slice; gives what is left of it.
    fn step<'a>(
        &mut self,
        connection: &Connection,
        from: Peer,
        slice: Slice<'a>,
        context: &mut Context<'_>,
    ) -> Slice<'a> {
        if from == Peer::Client && std::mem::take(&mut self.client.expects) && self.body_is_left_out(slice) {
            let request = self.pairing.back().and_then(|open| open.exchange.request.as_ref());
            let last = request.map_or(slice.mark, |request| request.last);
            self.end_message(connection, from, &[], last, context);
        }
        match self.half(from).state {
            State::Between => self.between(from, slice),
            State::Head => self.head(connection, from, slice, context),
            State::Body(left) => {
                let len = usize::try_from(left).map_or(slice.bytes.len(), |left| left.min(slice.bytes.len()));
                let (body, _) = slice.bytes.split_at(len);
                if len as u64 == left {
                    self.end_message(connection, from, body, slice.mark, context);
                } else {
                    self.half(from).state = State::Body(left - len as u64);
                    if let Some(open) = self.pairing.of(from) {
                        open.announce(from, left);
                    }
                    self.body(connection, from, body, slice.mark, context);
                }
                slice.skip(len)
            }
            State::Chunked(chunked) => self.chunked(connection, from, chunked, slice, context),
            State::UntilClose => {
                self.body(connection, from, slice.bytes, slice.mark, context);
                slice.skip(slice.bytes.len())
            }
            State::Lost | State::LostChunked => self.lost(connection, from, slice, context),
            State::Done => slice.skip(slice.bytes.len()),
        }
    }

    /// A client that was refused what it asked with `Expect` (RFC 9110 §10.1.1) may go on with its
    /// next request.
    fn body_is_left_out(&mut self, slice: Slice<'_>) -> bool {
        matches!(self.client.state, State::Body(_) | State::Chunked(Chunked::START))
            && self.pairing.back().is_some_and(|open| open.answered)
            && grade_after_loss(Peer::Client, slice.bytes) == Grade::Certain
    }

    /// Empty lines before a start line are passed over (RFC 9112 §2.2).
    fn between<'a>(&mut self, from: Peer, slice: Slice<'a>) -> Slice<'a> {
        let empty = slice.bytes.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
        let slice = slice.skip(empty);
        if !slice.bytes.is_empty() {
            let half = self.half(from);
            half.begin = Begin { mark: Some(slice.mark), offset: slice.offset, acked: slice.acked };
            half.head.clear();
            half.state = State::Head;
        }
        slice
    }

    fn head<'a>(
        &mut self,
        connection: &Connection,
        from: Peer,
        slice: Slice<'a>,
        context: &mut Context<'_>,
    ) -> Slice<'a> {
        let half = self.half(from);
        let before = half.head.len();
        let (len, head) = if before == 0 {
            let len = head_len(slice.bytes, 0);
            (len, len.and_then(|len| half.reader.read(from, slice.bytes.get(..len)?)))
        } else {
            half.head.extend_from_slice(slice.bytes);
            let len = head_len(&half.head, before);
            (len.map(|len| len - before), len.and_then(|len| half.reader.read(from, half.head.get(..len)?)))
        };
        if let (Some(len), Some(head)) = (len, head) {
            half.head.clear();
            let begin = half.begin;
            self.message_head(connection, head, begin, slice.mark, context);
            return slice.skip(len);
        }
        if before == 0 {
            half.head.extend_from_slice(slice.bytes);
        }
        let too_long = half.head.len() > limits::HEAD_BYTES;
        if len.is_some() || too_long || grade(from, &half.head) == Grade::No {
            let text = match from {
                Peer::Client => "the client's bytes are no HTTP/1 request",
                Peer::Server => "the server's bytes are no HTTP/1 response",
            };
            let (kind, text) = if too_long {
                (ProblemKind::LimitHit, "head-bytes: a head is too long")
            } else {
                (ProblemKind::BadHttp, text)
            };
            tell(kind, slice.mark, text, context);
            let acked = self.half(from).begin.acked;
            self.lose(connection, from, Some(acked), context);
        }
        slice.skip(slice.bytes.len())
    }

    fn message_head(
        &mut self,
        connection: &Connection,
        head: Head,
        begin: Begin,
        last: Mark,
        context: &mut Context<'_>,
    ) {
        if head.odd_lines > 0 {
            tell(
                ProblemKind::BadHttp,
                last,
                "a header line is no field, or there are too many (header-fields)",
                context,
            );
        }
        match head.start {
            Start::Request(..) => self.request_head(connection, head, begin, last, context),
            Start::Response(status) => self.response_head(connection, status, head, begin, last, context),
        }
    }

    fn request_head(
        &mut self,
        connection: &Connection,
        head: Head,
        begin: Begin,
        last: Mark,
        context: &mut Context<'_>,
    ) {
        let length = request_length(&head.fields);
        self.client.expects = has_token(&head.fields, "expect", "100-continue");
        self.add_request(connection, head, begin, last, context);
        self.begin_body(connection, Peer::Client, length, last, context);
    }

    pub(super) fn add_request(
        &mut self,
        connection: &Connection,
        head: Head,
        begin: Begin,
        last: Mark,
        context: &mut Context<'_>,
    ) {
        let first = begin.mark.unwrap_or(last);
        let open = Open::with_request(connection, head, (first, last), (begin.offset, begin.acked), context);
        let is_followed = !matches!(self.server.state, State::Lost | State::LostChunked);
        if self.pairing.request(open, self.server.sent, is_followed, connection, context)
            && matches!(self.server.state, State::Lost | State::LostChunked | State::Head)
        {
            self.server.state = State::Between;
        }
    }

    fn response_head(
        &mut self,
        connection: &Connection,
        status: u16,
        head: Head,
        begin: Begin,
        last: Mark,
        context: &mut Context<'_>,
    ) {
        // Interim responses (RFC 9110 §15.2) answer nothing; 101 is final for HTTP.
        if (100..200).contains(&status) && status != 101 {
            self.server.state = State::Between;
            return;
        }
        let first = begin.mark.unwrap_or(last);
        self.pairing.response(status, begin.offset, begin.acked, first, connection, context);
        if status == 101 && has_token(&head.fields, "upgrade", "h2c") {
            self.upgraded = self.pairing.take().pop_front().map(Http2::upgraded).map(Box::new);
            (self.client.state, self.server.state) = (State::Done, State::Done);
            return;
        }
        let Some(open) = self.pairing.front() else { return };
        let (method, upgrades) = (open.method(), has_token(&head.fields, "upgrade", "websocket"));
        let length = response_length(status, method, &head.fields);
        let tunnels = status == 101 || (method == Some("CONNECT") && (200..300).contains(&status));
        open.response_head(status, head.fields, first, connection, context);
        if !tunnels {
            self.begin_body(connection, Peer::Server, length, last, context);
            return;
        }
        let (kind, text) = match upgrades {
            true => (ProblemKind::WebSocket, "the connection goes on as WebSocket, which is not read"),
            false => (ProblemKind::Tunnel, "the connection goes on as a tunnel or another protocol, which is not read"),
        };
        tell(kind, last, text, context);
        self.end_message(connection, Peer::Server, &[], last, context);
        self.end_all(connection, End::Complete, None, last, context);
        (self.client.state, self.server.state) = (State::Done, State::Done);
    }

    fn begin_body(
        &mut self,
        connection: &Connection,
        from: Peer,
        length: Length,
        last: Mark,
        context: &mut Context<'_>,
    ) {
        self.half(from).state = match length {
            Length::None => return self.end_message(connection, from, &[], last, context),
            Length::Bytes(bytes) => State::Body(bytes),
            Length::Chunked => State::Chunked(Chunked::START),
            Length::UntilClose => State::UntilClose,
            Length::Invalid => {
                tell(ProblemKind::BadHttp, last, "the length of a body contradicts itself or is no number", context);
                self.lose(connection, from, None, context);
                self.half(from).behind_head = true;
                return;
            }
        };
    }

    fn body(&mut self, connection: &Connection, from: Peer, bytes: &[u8], mark: Mark, context: &mut Context<'_>) {
        match from {
            Peer::Client => {
                if let Some(open) = self.pairing.back() {
                    open.request_bytes(bytes, mark, context);
                }
            }
            Peer::Server => {
                if let Some(open) = self.pairing.front() {
                    open.response_bytes(bytes, mark, connection, context);
                }
            }
        }
    }

    fn chunked<'a>(
        &mut self,
        connection: &Connection,
        from: Peer,
        mut chunked: Chunked,
        slice: Slice<'a>,
        context: &mut Context<'_>,
    ) -> Slice<'a> {
        let step = chunked.step(slice.bytes);
        self.half(from).state = State::Chunked(chunked);
        match step {
            Step::Framing(used) => {
                let rest = slice.skip(used);
                if from == Peer::Server
                    && let Chunked::Data(size) = chunked
                    && let Some(open) = self.pairing.front()
                {
                    open.response_chunk(rest.bytes);
                    if (rest.bytes.len() as u64) < size {
                        open.announce(from, size);
                    }
                }
                rest
            }
            Step::Data(len) => {
                self.body(connection, from, slice.bytes.get(..len).unwrap_or_default(), slice.mark, context);
                slice.skip(len)
            }
            Step::End(used) => {
                self.end_message(connection, from, &[], slice.mark, context);
                slice.skip(used)
            }
            Step::Broken => {
                tell(ProblemKind::BadHttp, slice.mark, "a chunk has no size or no end where it should", context);
                self.lose(connection, from, None, context);
                slice.skip(slice.bytes.len())
            }
        }
    }

    /// A message ends, with `tail` as the last bytes of its body.
    pub(super) fn end_message(
        &mut self,
        connection: &Connection,
        from: Peer,
        tail: &[u8],
        mark: Mark,
        context: &mut Context<'_>,
    ) {
        self.half(from).state = State::Between;
        match from {
            Peer::Client => {
                let sent = self.client.sent;
                if let Some(open) = self.pairing.back() {
                    open.end = sent;
                    open.request_end(tail, mark, connection, context);
                }
            }
            Peer::Server => {
                if let Some(open) = self.pairing.front() {
                    open.response_end(tail, mark, connection, context);
                }
            }
        }
        self.finish_done(connection, context);
    }

    pub(super) fn finish_done(&mut self, connection: &Connection, context: &mut Context<'_>) {
        while let Some((open, mark)) = self.pairing.pop_done() {
            open.end(End::Complete, None, mark, connection, context);
        }
    }
}

fn tell(kind: ProblemKind, mark: Mark, text: &'static str, context: &mut Context<'_>) {
    context.problems.add(kind, || format!("frame {}", mark.place.number), || text);
}
