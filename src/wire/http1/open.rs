//! One exchange while it is open.

use super::head::{Fields, Head, Start, codings};
use crate::model::exchange::{BodyKind, End, Event, Exchange, Mark, Message, Peer, Request, Response, header};
use crate::model::problem::ProblemKind;
use crate::wire::body::{BodyError, BodyReader, Whole};
use crate::wire::sse::SseEvent;
use crate::wire::{Connection, Context};

/// An exchange and what reads its bodies.
pub(in crate::wire) struct Open {
    pub exchange: Exchange,
    request_body: BodyReader,
    response_body: BodyReader,
    /// Nothing more of the request will come.
    pub request_done: bool,
    /// The response has come to its end, here.
    pub response_done: Option<Mark>,
    /// The final response head was seen.
    pub answered: bool,
    /// A response to it may have been in bytes that are missing.
    pub doubtful: bool,
    /// Where its request begins among the client's bytes.
    pub begin: u64,
    /// Where it ends, at the latest; of one that was not captured, what the server had by then.
    pub end: u64,
    /// The server's bytes that the client had when it sent the request.
    pub acked: u64,
}

impl Open {
    fn new(connection: &Connection, context: &mut Context<'_>) -> Open {
        let id = *context.next_exchange;
        *context.next_exchange += 1;
        let exchange = Exchange {
            id,
            input: connection.input,
            stream: connection.stream,
            h2_stream: None,
            client: connection.client,
            server: connection.server,
            request: None,
            response: None,
            end: None,
            ended: None,
            ended_by: None,
            client_closed: None,
            connected: connection.connected,
            one_direction: connection.one_direction,
        };
        Open {
            exchange,
            request_body: BodyReader::default(),
            response_body: BodyReader::default(),
            request_done: true,
            response_done: None,
            answered: false,
            doubtful: false,
            begin: 0,
            end: 0,
            acked: 0,
        }
    }

    /// One whose request was not captured.
    pub(in crate::wire) fn without_request(connection: &Connection, context: &mut Context<'_>) -> Open {
        Open::new(connection, context)
    }

    /// One that begins with this request head.
    pub(in crate::wire) fn with_request(
        connection: &Connection,
        head: Head,
        (first, last): (Mark, Mark),
        (begin, acked): (u64, u64),
        context: &mut Context<'_>,
    ) -> Open {
        let mut open = Open::new(connection, context);
        let Start::Request(method, target) = head.start else { return open };
        let (body, problem) = body_reader(&head.fields, false);
        open.request_body = body;
        open.request_done = false;
        (open.begin, open.acked) = (begin, acked);
        let request =
            Request { first, last, method, target, headers: head.fields, body_bytes: 0, gap: problem.is_some() };
        open.exchange.request = Some(request);
        tell(problem, last, context);
        open
    }

    /// The request's method, where it was seen.
    pub(in crate::wire) fn method(&self) -> Option<&str> {
        self.exchange.request.as_ref().map(|request| &*request.method)
    }

    /// Tells the sink of a step.
    pub(in crate::wire) fn emit(&mut self, event: Event<'_>, connection: &Connection, context: &mut Context<'_>) {
        self.exchange.one_direction = connection.one_direction;
        context.sink.event(&self.exchange, event);
    }

    /// More of the request body.
    pub(in crate::wire) fn request_bytes(&mut self, bytes: &[u8], mark: Mark, context: &mut Context<'_>) {
        let Some(request) = &mut self.exchange.request else { return };
        request.last = mark;
        request.body_bytes += bytes.len() as u64;
        if let Err(error) = self.request_body.push(bytes, mark, &mut |_| {}) {
            request.gap = true;
            tell(Some(error), mark, context);
        }
    }

    /// Bytes of the request are missing.
    pub(in crate::wire) fn request_gap(&mut self) {
        self.request_body.gap();
        if let Some(request) = &mut self.exchange.request {
            request.gap = true;
        }
    }

    /// The request ends, with `tail` as the last bytes of its body; `mark` is that of its last
    /// byte, framing included.
    pub(in crate::wire) fn request_end(
        &mut self,
        tail: &[u8],
        mark: Mark,
        connection: &Connection,
        context: &mut Context<'_>,
    ) {
        if std::mem::replace(&mut self.request_done, true) {
            return;
        }
        let Some(request) = &mut self.exchange.request else { return };
        request.last = mark;
        request.body_bytes += tail.len() as u64;
        let whole = self.request_body.finish(tail, mark, &mut |_| {});
        let whole = whole.unwrap_or_else(|error| {
            request.gap = true;
            tell(Some(error), mark, context);
            None
        });
        self.exchange.one_direction = connection.one_direction;
        context.sink.event(&self.exchange, Event::Request);
        if let Some(whole) = whole {
            context.sink.event(&self.exchange, Event::Message(message(Peer::Client, whole)));
        }
    }

    /// The final response head.
    pub(in crate::wire) fn response_head(
        &mut self,
        status: u16,
        fields: Fields,
        first: Mark,
        connection: &Connection,
        context: &mut Context<'_>,
    ) {
        let (body, problem) = body_reader(&fields, true);
        self.answered = true;
        let kind = body.kind();
        self.response_body = body;
        let gap = problem.is_some();
        let response = Response { first, status, headers: fields, kind, body_bytes: 0, last: None, gap };
        self.exchange.response = Some(response);
        self.emit(Event::Head, connection, context);
        if gap {
            self.emit(Event::ResponseGap, connection, context);
        }
        tell(problem, first, context);
    }

    /// More of the response body.
    pub(in crate::wire) fn response_bytes(
        &mut self,
        bytes: &[u8],
        mark: Mark,
        connection: &Connection,
        context: &mut Context<'_>,
    ) {
        self.response_count(bytes, mark, connection);
        let (exchange, sink) = (&self.exchange, &mut *context.sink);
        let result = self.response_body.push(bytes, mark, &mut |e| sink.event(exchange, Event::Message(event(e))));
        self.response_kind();
        if let Err(error) = result {
            self.response_error(error, mark, connection, context);
        }
    }

    /// A chunk of the response body begins.
    pub(in crate::wire) fn response_chunk(&mut self, bytes: &[u8]) {
        self.response_body.chunk(bytes);
    }

    /// A body, or a chunk of it, has so many bytes, of which not all are at hand.
    pub(in crate::wire) fn announce(&mut self, from: Peer, bytes: u64) {
        match from {
            Peer::Client => self.request_body.reserve(bytes),
            Peer::Server => self.response_body.reserve(bytes),
        }
    }

    /// See [`BodyReader::begins_event`].
    pub(in crate::wire) fn begins_event(&self, bytes: &[u8]) -> bool {
        self.response_body.begins_event(bytes)
    }

    fn response_count(&mut self, bytes: &[u8], mark: Mark, connection: &Connection) {
        self.exchange.one_direction = connection.one_direction;
        if let Some(response) = self.exchange.response.as_mut().filter(|_| !bytes.is_empty()) {
            response.body_bytes += bytes.len() as u64;
            response.last = Some(mark);
        }
    }

    /// The type of a body may only show in its first byte.
    fn response_kind(&mut self) {
        if let Some(response) = self.exchange.response.as_mut().filter(|response| response.kind == BodyKind::Other) {
            response.kind = self.response_body.kind();
        }
    }

    fn response_error(&mut self, error: BodyError, mark: Mark, connection: &Connection, context: &mut Context<'_>) {
        tell(Some(error), mark, context);
        self.response_gap(connection, context);
    }

    /// Bytes of the response are missing.
    pub(in crate::wire) fn response_gap(&mut self, connection: &Connection, context: &mut Context<'_>) {
        self.response_body.gap();
        self.doubtful |= !self.answered;
        if let Some(response) = &mut self.exchange.response {
            response.gap = true;
        }
        self.emit(Event::ResponseGap, connection, context);
    }

    /// The response ends as framed, with `tail` as the last bytes of its body.
    pub(in crate::wire) fn response_end(
        &mut self,
        tail: &[u8],
        mark: Mark,
        connection: &Connection,
        context: &mut Context<'_>,
    ) {
        self.response_done = Some(mark);
        self.response_count(tail, mark, connection);
        let (exchange, sink) = (&mut self.exchange, &mut *context.sink);
        let whole = self.response_body.finish(tail, mark, &mut |e| sink.event(exchange, Event::Message(event(e))));
        match whole {
            Ok(Some(whole)) => {
                if let Some(response) = exchange.response.as_mut().filter(|response| response.kind == BodyKind::Other) {
                    response.kind = sniffed(whole.bytes);
                }
                sink.event(exchange, Event::Message(message(Peer::Server, whole)));
            }
            Ok(None) => {}
            Err(error) => self.response_error(error, mark, connection, context),
        }
    }

    /// The client's side is closed.
    pub(in crate::wire) fn client_closed(&mut self, mark: Mark, connection: &Connection, context: &mut Context<'_>) {
        if self.exchange.client_closed.is_none() && self.response_done.is_none() {
            self.exchange.client_closed = Some(mark);
            self.emit(Event::ClientClosed, connection, context);
        }
    }

    /// Nothing more will come.
    pub(in crate::wire) fn end(
        mut self,
        end: End,
        by: Option<Peer>,
        mark: Mark,
        connection: &Connection,
        context: &mut Context<'_>,
    ) {
        if !self.request_done {
            self.request_gap();
            let last = self.exchange.request.as_ref().map_or(mark, |request| request.last);
            self.request_end(&[], last, connection, context);
        }
        self.exchange.end = Some(end);
        self.exchange.ended = Some(mark);
        self.exchange.ended_by = by;
        self.emit(Event::End, connection, context);
    }
}

fn sniffed(bytes: &[u8]) -> BodyKind {
    match bytes.iter().find(|byte| !byte.is_ascii_whitespace()) {
        Some(b'{' | b'[') => BodyKind::Json,
        _ => BodyKind::Other,
    }
}

fn body_reader(fields: &Fields, may_be_events: bool) -> (BodyReader, Option<BodyError>) {
    BodyReader::new(header(fields, "content-type"), codings(fields), may_be_events)
}

fn message(from: Peer, whole: Whole<'_>) -> Message<'_> {
    let Whole { bytes: data, first, last } = whole;
    Message { from, data, first, last, is_event: false, event: None, event_id: None }
}

fn event(event: SseEvent<'_>) -> Message<'_> {
    let SseEvent { data, first, last, event, id } = event;
    Message { from: Peer::Server, data, first, last, is_event: true, event, event_id: id }
}

fn tell(error: Option<BodyError>, mark: Mark, context: &mut Context<'_>) {
    let Some(error) = error else { return };
    let kind = match error {
        BodyError::Coding(crate::wire::body::CodingError::Bomb) | BodyError::TooLong => ProblemKind::LimitHit,
        BodyError::Coding(_) => ProblemKind::BadContentCoding,
    };
    context.problems.add(kind, || format!("frame {}", mark.place.number), || error.to_string());
}
