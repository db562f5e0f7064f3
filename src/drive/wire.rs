//! What was heard on one connection, told by the parser that reads captures.

use crate::model::exchange::{End, Event, Exchange, ExchangeSink, Mark, Peer, header};
use crate::model::place::Place;
use crate::model::problem::Problems;
use crate::model::time::Time;
use crate::wire::http1::Http1;
use crate::wire::{Close, Connection, Context, StreamParser};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;

/// Header fields in order, names in lower case.
pub type Headers = Vec<(Arc<str>, Arc<str>)>;

/// One message that came: a whole body, or an event's data.
#[derive(Clone, Debug)]
pub struct HeardMessage {
    /// The payload after transfer and content decoding.
    pub data: Vec<u8>,
    /// When its last byte was read, ns since 1970.
    pub at_ns: i64,
    /// Is it an SSE event?
    pub is_event: bool,
    /// The SSE event id in force.
    pub event_id: Option<String>,
}

/// A response as far as it came.
#[derive(Clone, Debug, Default)]
pub struct Heard {
    /// Status code, once the head was read.
    pub status: Option<u16>,
    /// Response header fields.
    pub headers: Headers,
    /// When the head was read, ns since 1970.
    pub head_ns: Option<i64>,
    /// What came, in order.
    pub messages: Vec<HeardMessage>,
    /// How it ended; none while it is open.
    pub end: Option<End>,
}

impl Heard {
    /// The first value of a response header; `name` in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        header(&self.headers, name)
    }
}

/// A request as a server gets it.
#[derive(Clone, Debug)]
pub struct Asked {
    /// `POST`, `GET`, …
    pub method: Arc<str>,
    /// Path and query.
    pub target: Arc<str>,
    /// Request header fields.
    pub headers: Headers,
    /// Its body; empty if it has none or is no JSON.
    pub body: Vec<u8>,
    /// When its last byte was read, ns since 1970.
    pub at_ns: i64,
}

impl Asked {
    /// The first value of a request header; `name` in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        header(&self.headers, name)
    }
}

/// The parser of one connection with what it told.
pub(crate) struct Ears {
    parser: Http1,
    connection: Connection,
    sent: [u64; 2],
    problems: Problems,
    next_exchange: u64,
    pub(crate) told: Told,
}

/// What the parser told and was not taken yet.
#[derive(Default)]
pub(crate) struct Told {
    pub(crate) asked: VecDeque<Asked>,
    pub(crate) heard: Heard,
}

impl ExchangeSink for Told {
    fn event(&mut self, exchange: &Exchange, event: Event<'_>) {
        match event {
            Event::Request => {
                let Some(request) = &exchange.request else { return };
                self.asked.push_back(Asked {
                    method: request.method.clone(),
                    target: request.target.clone(),
                    headers: request.headers.clone(),
                    body: Vec::new(),
                    at_ns: request.last.at.ns(),
                });
            }
            Event::Message(m) if m.from == Peer::Client => {
                if let Some(asked) = self.asked.back_mut() {
                    asked.body = m.data.to_vec();
                }
            }
            Event::Head => {
                let Some(response) = &exchange.response else { return };
                self.heard.status = Some(response.status);
                self.heard.headers = response.headers.clone();
                self.heard.head_ns = Some(response.first.at.ns());
            }
            Event::Message(m) => self.heard.messages.push(HeardMessage {
                data: m.data.to_vec(),
                at_ns: m.last.at.ns(),
                is_event: m.is_event,
                event_id: m.event_id.map(str::to_owned),
            }),
            Event::End => self.heard.end = exchange.end,
            Event::ResponseGap | Event::ClientClosed => {}
        }
    }
}

impl Ears {
    pub(crate) fn new(client: SocketAddr, server: SocketAddr) -> Ears {
        let connection = Connection {
            input: 0,
            stream: 0,
            client,
            server,
            connected: None,
            one_direction: false,
            offset: 0,
            acked: u64::MAX,
        };
        Ears {
            parser: Http1::default(),
            connection,
            sent: [0, 0],
            problems: Problems::default(),
            next_exchange: 0,
            told: Told::default(),
        }
    }

    /// Bytes went over the connection at `at_ns`.
    pub(crate) fn data(&mut self, from: Peer, bytes: &[u8], at_ns: i64) {
        let [client, server] = &mut self.sent;
        let (own, other) = if from == Peer::Client { (client, server) } else { (server, client) };
        self.connection.offset = *own;
        self.connection.acked = *other;
        *own += bytes.len() as u64;
        let connection = self.connection;
        self.with(at_ns, |parser, mark, context| parser.data(&connection, from, bytes, mark, context));
    }

    /// One end closed or reset.
    pub(crate) fn close(&mut self, from: Peer, close: Close, at_ns: i64) {
        let connection = self.connection;
        self.with(at_ns, |parser, mark, context| parser.close(&connection, from, close, mark, context));
    }

    fn with(&mut self, at_ns: i64, tell: impl FnOnce(&mut Http1, Mark, &mut Context<'_>)) {
        let mark = Mark { place: Place::frame(0, 0), at: Time::from_ns(at_ns, 9) };
        let mut context =
            Context { sink: &mut self.told, problems: &mut self.problems, next_exchange: &mut self.next_exchange };
        tell(&mut self.parser, mark, &mut context);
    }
}
