//! Conversations made by hand, as segments, and what comes out of them as text.

mod http;
mod order;
mod tcp;

use super::{Checksum, Segment, Wire, WireOptions, flags};
use crate::model::exchange::{Event, Exchange, ExchangeSink, Mark, Peer};
use crate::model::place::Place;
use crate::model::problem::{ProblemKind, Problems};
use crate::model::time::Time;
use std::net::SocketAddr;

/// A segment that owns its payload.
#[derive(Clone, Debug)]
pub(super) struct Sent {
    pub from: Peer,
    pub seq: u32,
    pub ack: u32,
    pub flags: u8,
    pub payload: Vec<u8>,
    pub wire_len: u32,
    pub checksum: Checksum,
    pub client_port: u16,
    /// When it was captured, ms.
    pub at_ms: i64,
    pub input: u32,
}

/// Plays both ends of a connection and notes what they send.
#[derive(Clone)]
pub(super) struct Talk {
    pub sent: Vec<Sent>,
    next: [u32; 2],
    client_port: u16,
    clock_ms: i64,
}

impl Talk {
    /// A connection with its handshake.
    pub(super) fn open(client_port: u16, isns: [u32; 2]) -> Talk {
        let mut talk = Talk { sent: Vec::new(), next: isns, client_port, clock_ms: 0 };
        talk.send(Peer::Client, flags::SYN, b"");
        talk.send(Peer::Server, flags::SYN | flags::ACK, b"");
        talk.send(Peer::Client, flags::ACK, b"");
        talk
    }

    /// One segment.
    pub(super) fn send(&mut self, from: Peer, flags: u8, payload: &[u8]) -> &mut Talk {
        let (me, peer) = (from as usize, 1 - from as usize);
        self.clock_ms += 1;
        self.sent.push(Sent {
            from,
            seq: self.next[me],
            ack: self.next[peer],
            flags,
            payload: payload.to_vec(),
            wire_len: payload.len() as u32,
            checksum: Checksum::Unknown,
            client_port: self.client_port,
            at_ms: self.clock_ms,
            input: 0,
        });
        let numbers = payload.len() as u32 + u32::from(flags & (super::flags::SYN | super::flags::FIN) != 0);
        self.next[me] = self.next[me].wrapping_add(numbers);
        self
    }

    /// Data in segments of `size` bytes, acknowledged.
    pub(super) fn say(&mut self, from: Peer, data: &[u8], size: usize) -> &mut Talk {
        for piece in data.chunks(size.max(1)) {
            self.send(from, flags::ACK | flags::PSH, piece);
        }
        self.send(other(from), flags::ACK, b"")
    }

    /// Time passes.
    pub(super) fn wait(&mut self, ms: i64) -> &mut Talk {
        self.clock_ms += ms;
        self
    }

    /// Both ends close, `first` first.
    pub(super) fn close(&mut self, first: Peer) -> &mut Talk {
        self.send(first, flags::FIN | flags::ACK, b"");
        self.send(other(first), flags::FIN | flags::ACK, b"");
        self.send(first, flags::ACK, b"")
    }
}

pub(super) fn other(peer: Peer) -> Peer {
    match peer {
        Peer::Client => Peer::Server,
        Peer::Server => Peer::Client,
    }
}

/// What a run says.
#[derive(Debug, Default)]
pub(super) struct Heard {
    /// One line an event, by exchange, without frames.
    pub lines: Vec<String>,
    /// The exchanges as they ended.
    pub ended: Vec<Exchange>,
    /// Frames of each message.
    pub frames: Vec<(u64, u64)>,
    pub problems: Problems,
}

impl ExchangeSink for Heard {
    fn event(&mut self, exchange: &Exchange, event: Event<'_>) {
        let line = match event {
            Event::Request => {
                let request = exchange.request.as_ref().unwrap();
                format!("{} {}{}", request.method, request.target, if request.gap { " gap" } else { "" })
            }
            Event::Head => format!("{}", exchange.response.as_ref().unwrap().status),
            Event::Message(message) => {
                self.frames.push((message.first.place.number, message.last.place.number));
                let from = if message.from == Peer::Client { ">" } else { "<" };
                format!("{from} {}", String::from_utf8_lossy(message.data))
            }
            Event::ResponseGap => "response gap".to_owned(),
            Event::ClientClosed => "client closed".to_owned(),
            Event::End => {
                self.ended.push(exchange.clone());
                format!("end {:?}", exchange.end.unwrap())
            }
        };
        self.lines.push(format!("{}: {line}", exchange.id));
    }
}

impl Heard {
    /// The lines of each exchange together, exchanges in order of their first appearance.
    pub(super) fn by_exchange(&self) -> Vec<String> {
        let mut all: Vec<(String, Vec<String>)> = Vec::new();
        for line in &self.lines {
            let (id, text) = line.split_once(": ").unwrap();
            match all.iter_mut().find(|(known, _)| known == id) {
                Some((_, texts)) => texts.push(text.to_owned()),
                None => all.push((id.to_owned(), vec![text.to_owned()])),
            }
        }
        let mut all: Vec<String> = all.into_iter().map(|(_, texts)| texts.join(" | ")).collect();
        all.sort();
        all
    }

    pub(super) fn count(&self, kind: ProblemKind) -> u64 {
        self.problems.count(kind)
    }
}

/// Captures `sent` in this order and reads it.
pub(super) fn read(sent: &[Sent]) -> Heard {
    let mut heard = Heard::default();
    let mut wire = Wire::new(WireOptions::default());
    let inputs = sent.iter().map(|sent| sent.input).max().unwrap_or(0) as usize + 1;
    let mut problems = vec![Problems::default(); inputs];
    let server: SocketAddr = "10.0.0.2:8080".parse().unwrap();
    for (n, sent) in sent.iter().enumerate() {
        let client = SocketAddr::new("10.0.0.1".parse().unwrap(), sent.client_port);
        let (src, dst) = if sent.from == Peer::Client { (client, server) } else { (server, client) };
        let mark = Mark { place: Place::frame(sent.input, n as u64 + 1), at: Time::from_us(sent.at_ms * 1000) };
        let segment = Segment {
            mark,
            src,
            dst,
            scope: 0,
            seq: sent.seq,
            ack: (sent.flags & flags::ACK != 0).then_some(sent.ack),
            flags: sent.flags,
            payload: &sent.payload,
            wire_len: sent.wire_len,
            checksum: sent.checksum,
        };
        wire.segment(segment, &mut heard, &mut problems);
    }
    wire.finish(&mut heard, &mut problems);
    for of_input in &problems {
        heard.problems.merge(of_input);
    }
    heard
}

/// A POST with a JSON body.
pub(super) fn post(body: &str) -> Vec<u8> {
    format!(
        "POST /mcp HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// A 200 with a JSON body.
pub(super) fn json(body: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}", body.len())
        .into_bytes()
}

/// A 200 with one chunk for each event of an event stream.
pub(super) fn sse(events: &[&str]) -> Vec<u8> {
    let mut bytes =
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    for event in events {
        bytes.extend_from_slice(&chunk(&format!("event: message\r\ndata: {event}\r\n\r\n")));
    }
    bytes.extend_from_slice(b"0\r\n\r\n");
    bytes
}

/// One chunk.
pub(super) fn chunk(data: &str) -> Vec<u8> {
    format!("{:x}\r\n{data}\r\n", data.len()).into_bytes()
}
