//! One stream: an exchange and what has been seen of it.

use super::block::{Block, FieldList, UNKNOWN};
use crate::model::exchange::{End, Mark, Peer};
use crate::wire::http1::{Head, Open, Start};
use crate::wire::{Connection, Context};
use std::sync::Arc;

/// An open stream.
pub(super) struct Stream {
    pub(super) open: Open,
    /// The server's frames on it may have been in a hole, its last one too.
    pub(super) in_hole: bool,
    /// Bytes of the request's body are missing: its end may never be seen.
    pub(super) cut_request: bool,
    /// Holes of the client's and the server's direction that it knows of.
    told: [u64; 2],
}

impl Stream {
    /// A stream whose exchange is open already.
    pub(super) fn new(open: Open, id: u32, holes: [u64; 2]) -> Stream {
        let mut stream = Stream { open, in_hole: false, cut_request: false, told: holes };
        stream.open.exchange.h2_stream = Some(id);
        stream
    }

    /// Tells it of the holes since it was last looked at: frames of it may have been in them.
    pub(super) fn catch_up(&mut self, holes: [u64; 2], connection: &Connection, context: &mut Context<'_>) {
        let [client, server] = self.told;
        self.told = holes;
        if client != holes[0] && !self.open.request_done {
            self.request_gap();
        }
        if server != holes[1] && self.open.response_done.is_none() {
            self.open.response_gap(connection, context);
            self.in_hole = true;
        }
    }

    /// One that begins with a request.
    pub(super) fn with_request(
        connection: &Connection,
        id: u32,
        block: Block,
        holes: [u64; 2],
        context: &mut Context<'_>,
    ) -> Stream {
        let Block { first, last, fields, .. } = block;
        let is_whole = fields.unknown == 0;
        let head = Head { start: start(&fields), fields: request_fields(fields), odd_lines: 0 };
        let mut stream = Stream::new(Open::with_request(connection, head, (first, last), (0, 0), context), id, holes);
        if let Some(request) = stream.open.exchange.request.as_mut().filter(|_| !is_whole) {
            // The session, or what else a rule may look for, can be among what is not known.
            request.gap = true;
        }
        stream
    }

    /// One whose request was not seen.
    pub(super) fn without_request(
        connection: &Connection,
        id: u32,
        holes: [u64; 2],
        context: &mut Context<'_>,
    ) -> Stream {
        Stream::new(Open::without_request(connection, context), id, holes)
    }

    /// Bytes of the request are missing.
    pub(super) fn request_gap(&mut self) {
        self.cut_request = true;
        self.open.request_gap();
    }

    /// Nothing more will come. `end` is how the connection or the stream ended, `by` whose doing it was.
    pub(super) fn end(
        self,
        end: End,
        by: Option<Peer>,
        mark: Mark,
        connection: &Connection,
        context: &mut Context<'_>,
    ) {
        let open = self.open;
        if let Some(done) = open.response_done {
            return open.end(End::Complete, None, done, connection, context);
        }
        let (end, by) = if end != End::Gap && (open.doubtful || self.in_hole) { (End::Gap, None) } else { (end, by) };
        let (end, by) = match end {
            // A client that closed ends the exchange, whatever the server does then.
            End::ServerClosed if open.exchange.client_closed.is_some() => (End::ClientClosed, Some(Peer::Client)),
            _ => (end, by),
        };
        open.end(end, by, mark, connection, context);
    }
}

fn start(fields: &FieldList) -> Start {
    let or_unknown = |text: &Option<Arc<str>>| text.clone().unwrap_or_else(|| UNKNOWN.into());
    // CONNECT has no path, but an authority (RFC 9113 §8.5).
    let target =
        fields.path.as_ref().or(fields.authority.as_ref().filter(|_| fields.method.as_deref() == Some("CONNECT")));
    Start::Request(or_unknown(&fields.method), or_unknown(&target.cloned()))
}

/// The fields of a request, with the authority as `host` (RFC 9113 §8.3.1).
fn request_fields(list: FieldList) -> crate::wire::http1::Fields {
    let mut fields = list.fields;
    if let Some(authority) = list.authority
        && !fields.iter().any(|(name, _)| &**name == "host")
    {
        fields.insert(0, ("host".into(), authority));
    }
    fields
}
