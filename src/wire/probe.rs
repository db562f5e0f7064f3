//! What does a connection carry? One line a protocol, graded by the first bytes of both ends.

use super::http1::Http1;
use super::http2::Http2;
use super::tls::{Application, TlsParser};
use super::{Close, Connection, Context, StreamParser, WireOptions};
use crate::model::exchange::{Mark, Peer};
use crate::model::limits;
use crate::model::problem::ProblemKind;
use std::rc::Rc;

/// How sure a protocol is that first bytes are its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grade {
    /// Not this protocol.
    No,
    /// More bytes are needed.
    Unsure,
    /// It is.
    Certain,
}

/// A protocol that can be read.
pub struct Protocol {
    /// Its name.
    pub name: &'static str,
    /// How sure is it that an end's first bytes (cut anywhere, never empty) are its own?
    pub grade: fn(Peer, &[u8]) -> Grade,
    /// A parser for one connection.
    pub parser: fn(&WireOptions) -> Box<dyn StreamParser>,
}

/// Every protocol that a connection may carry. The order decides ties.
pub static PROTOCOLS: &[&Protocol] = &[&HTTP1, &HTTP2, &TLS];

/// HTTP/1.0 and 1.1 (RFC 9112).
pub static HTTP1: Protocol =
    Protocol { name: "http/1.1", grade: super::http1::grade, parser: |_| Box::new(Http1::default()) };

/// HTTP/2 (RFC 9113).
pub static HTTP2: Protocol =
    Protocol { name: "h2", grade: super::http2::grade, parser: |_| Box::new(Http2::default()) };

/// TLS 1.0 to 1.3 (RFC 8446), decrypted where there are keys.
pub static TLS: Protocol = Protocol {
    name: "tls",
    grade: super::tls::grade,
    parser: |options| {
        let inner = options.clone();
        Box::new(TlsParser::new(options.tls.clone(), Rc::new(move |application| inside_tls(application, &inner))))
    },
};

fn inside_tls(application: Application, options: &WireOptions) -> Box<dyn StreamParser> {
    match application {
        Application::Http1 => (HTTP1.parser)(options),
        Application::Http2 => (HTTP2.parser)(options),
        Application::Unknown => Box::new(Probe::new(options)),
    }
}

/// Which end would begin a slice with these bytes, if they can be those of one end only?
pub(crate) fn looks_like(bytes: &[u8]) -> Option<Peer> {
    let is = |protocol: &Protocol, peer| (protocol.grade)(peer, bytes) == Grade::Certain;
    let (client, server) =
        [Peer::Client, Peer::Server].map(|peer| PROTOCOLS.iter().any(|protocol| is(protocol, peer))).into();
    match (client, server) {
        (true, false) => Some(Peer::Client),
        (false, true) => Some(Peer::Server),
        _ => None,
    }
}

/// Finds out what a connection carries and then is the parser of that.
pub struct Probe {
    state: State,
    options: WireOptions,
}

enum State {
    /// Nothing is decided; what was heard so far.
    Undecided(Undecided),
    /// It is decided.
    Parser(Box<dyn StreamParser>),
    /// It is nothing that can be read.
    Unreadable,
}

#[derive(Default)]
struct Undecided {
    client: Vec<u8>,
    server: Vec<u8>,
    heard: Vec<Heard>,
    /// The beginning is missing: any slice may be the first that can be recognised.
    midstream: [bool; 2],
    /// Where in each buffer that may begin.
    begin: [usize; 2],
}

struct Heard {
    from: Peer,
    mark: Mark,
    offset: u64,
    acked: u64,
    what: What,
}

enum What {
    /// That many bytes, which stand in the buffer of its end.
    Data(usize),
    Gap(Option<u64>),
    Close(Close),
}

impl Probe {
    /// Nothing heard yet.
    pub fn new(options: &WireOptions) -> Probe {
        Probe { state: State::Undecided(Undecided::default()), options: options.clone() }
    }

    /// One that reads nothing.
    pub(crate) fn spent() -> Probe {
        Probe { state: State::Unreadable, options: WireOptions::default() }
    }

    /// What was taken for the client is the server.
    pub(crate) fn swap_ends(&mut self) {
        if let State::Undecided(undecided) = &mut self.state {
            std::mem::swap(&mut undecided.client, &mut undecided.server);
            undecided.midstream.reverse();
            undecided.begin.reverse();
            for heard in &mut undecided.heard {
                heard.from = match heard.from {
                    Peer::Client => Peer::Server,
                    Peer::Server => Peer::Client,
                };
            }
        }
    }
}

impl Undecided {
    fn buffer(&mut self, from: Peer) -> &mut Vec<u8> {
        match from {
            Peer::Client => &mut self.client,
            Peer::Server => &mut self.server,
        }
    }

    /// Takes the next bytes of an end; a protocol once one is certain, or `Err` if there is none.
    fn decide(&mut self, from: Peer, bytes: &[u8]) -> Result<Option<&'static Protocol>, ()> {
        let begin = self.begin[from as usize];
        let known = self.buffer(from).get(begin..).unwrap_or_default();
        if !known.is_empty() {
            let (grade, protocol) = best(from, &[known, bytes].concat());
            match grade {
                Grade::Certain => return Ok(Some(protocol)),
                Grade::Unsure => return Ok(None),
                Grade::No if !self.midstream[from as usize] => return Err(()),
                Grade::No => {}
            }
        }
        let before = self.buffer(from).len();
        let (grade, protocol) = best(from, bytes);
        self.begin[from as usize] = if grade == Grade::No { before + bytes.len() } else { before };
        match grade {
            Grade::Certain => Ok(Some(protocol)),
            Grade::No if !self.midstream[from as usize] => Err(()),
            _ => Ok(None),
        }
    }
}

/// The protocol that is surest of first bytes.
fn best(from: Peer, bytes: &[u8]) -> (Grade, &'static Protocol) {
    let mut best = (Grade::No, &HTTP1);
    for protocol in PROTOCOLS {
        let grade = (protocol.grade)(from, bytes);
        if grade > best.0 {
            best = (grade, protocol);
        }
    }
    best
}

impl StreamParser for Probe {
    #[inline]
    fn data(&mut self, connection: &Connection, from: Peer, bytes: &[u8], mark: Mark, context: &mut Context<'_>) {
        match &mut self.state {
            State::Parser(parser) => parser.data(connection, from, bytes, mark, context),
            State::Undecided(_) => self.hear(connection, from, bytes, mark, context),
            State::Unreadable => {}
        }
    }

    fn gap(&mut self, connection: &Connection, from: Peer, bytes: Option<u64>, mark: Mark, context: &mut Context<'_>) {
        match &mut self.state {
            State::Parser(parser) => parser.gap(connection, from, bytes, mark, context),
            State::Undecided(undecided) => {
                undecided.midstream[from as usize] = true;
                undecided.note(connection, from, mark, What::Gap(bytes));
            }
            State::Unreadable => {}
        }
    }

    fn close(&mut self, connection: &Connection, from: Peer, close: Close, mark: Mark, context: &mut Context<'_>) {
        match &mut self.state {
            State::Parser(parser) => parser.close(connection, from, close, mark, context),
            State::Undecided(undecided) => {
                undecided.note(connection, from, mark, What::Close(close));
                if close != Close::Fin && undecided.heard.iter().any(|heard| matches!(heard.what, What::Data(_))) {
                    self.give_up(mark, context);
                }
            }
            State::Unreadable => {}
        }
    }
}

impl Undecided {
    fn note(&mut self, connection: &Connection, from: Peer, mark: Mark, what: What) {
        self.heard.push(Heard { from, mark, offset: connection.offset, acked: connection.acked, what });
    }
}

impl Probe {
    fn hear(&mut self, connection: &Connection, from: Peer, bytes: &[u8], mark: Mark, context: &mut Context<'_>) {
        let State::Undecided(undecided) = &mut self.state else { return };
        match undecided.decide(from, bytes) {
            Ok(Some(protocol)) => {
                let mut parser = (protocol.parser)(&self.options);
                std::mem::take(undecided).repeat(connection, &mut *parser, context);
                parser.data(connection, from, bytes, mark, context);
                self.state = State::Parser(parser);
            }
            Ok(None) => {
                undecided.note(connection, from, mark, What::Data(bytes.len()));
                undecided.buffer(from).extend_from_slice(bytes);
                let kept = undecided.client.len() + undecided.server.len();
                if kept > limits::PROBE_BYTES || undecided.heard.len() > limits::PROBE_BYTES / 16 {
                    if undecided.midstream.contains(&true) {
                        undecided.forget();
                    } else {
                        self.give_up(mark, context);
                    }
                }
            }
            // One end may speak first what the other does not understand; only the second decides.
            Err(()) if self.other_end_may_tell(from) => {
                let State::Undecided(undecided) = &mut self.state else { return };
                undecided.note(connection, from, mark, What::Data(bytes.len()));
                undecided.buffer(from).extend_from_slice(bytes);
            }
            Err(()) => self.give_up(mark, context),
        }
    }

    fn other_end_may_tell(&self, from: Peer) -> bool {
        let State::Undecided(undecided) = &self.state else { return false };
        let (mine, other) = match from {
            Peer::Client => (&undecided.client, &undecided.server),
            Peer::Server => (&undecided.server, &undecided.client),
        };
        other.is_empty() && mine.len() < limits::PROBE_BYTES / 4
    }

    fn give_up(&mut self, mark: Mark, context: &mut Context<'_>) {
        let state = std::mem::replace(&mut self.state, State::Unreadable);
        if matches!(state, State::Undecided(undecided) if undecided.midstream.contains(&true)) {
            // It may well have been HTTP; that its beginning is missing has been told.
            return;
        }
        let place = || format!("frame {}", mark.place.number);
        context.problems.add(ProblemKind::NotHttp, place, || "a connection that carries no HTTP was passed over");
    }
}

impl Undecided {
    /// Tells a parser what was heard before it was known that it is the right one.
    fn repeat(self, connection: &Connection, parser: &mut dyn StreamParser, context: &mut Context<'_>) {
        let (mut client, mut server) = (&*self.client, &*self.server);
        for heard in &self.heard {
            let connection = Connection { offset: heard.offset, acked: heard.acked, ..*connection };
            match heard.what {
                What::Data(len) => {
                    let bytes = match heard.from {
                        Peer::Client => &mut client,
                        Peer::Server => &mut server,
                    };
                    let (now, later) = bytes.split_at_checked(len).unwrap_or((*bytes, &[]));
                    *bytes = later;
                    parser.data(&connection, heard.from, now, heard.mark, context);
                }
                What::Gap(bytes) => parser.gap(&connection, heard.from, bytes, heard.mark, context),
                What::Close(close) => parser.close(&connection, heard.from, close, heard.mark, context),
            }
        }
    }

    /// Nothing was recognised in all this; what comes later may be.
    fn forget(&mut self) {
        self.client.clear();
        self.server.clear();
        self.begin = [0, 0];
        self.heard.retain(|heard| matches!(heard.what, What::Gap(None) | What::Close(_)));
        self.midstream = [true, true];
    }
}
